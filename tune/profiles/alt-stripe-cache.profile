summary  reference, but the stripe cache as it is by default
include  reference

try md-stripe-cache 256
  because  the kernel's default
  source   Documentation/admin-guide/md.rst
