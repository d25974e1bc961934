summary  reference, but without busy polling
include  reference

try busy-poll 0
  because  the kernel's default
  source   Documentation/admin-guide/sysctl/net.rst
