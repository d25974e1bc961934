summary  reference, but without turbo
include  reference

try turbo off
  because  steadier: speed does not depend on heat and on how many CPUs work
  source   ours; Documentation/admin-guide/pm/intel_pstate.rst
