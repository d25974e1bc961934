summary  reference, but cards interrupt as they did before
include  reference

try nic-coalescing keep
  because  each driver has a default of its own
  source   ours
