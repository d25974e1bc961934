summary  reference, with jumbo frames; the switch and all nodes must take them
include  reference

try mtu 9000
  because  six times fewer packets for the same data
  source   ours
