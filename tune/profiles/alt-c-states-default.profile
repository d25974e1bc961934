summary  reference, but CPUs sleep as deep as they like
include  reference

try c-states keep
  because  what the kernel does without a limit
  source   ours; Documentation/admin-guide/pm/cpuidle.rst
