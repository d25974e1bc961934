# What reference says of the network, alone, and jumbo frames.  The MTU must be the
# same on all nodes, and the switch between them must take it: apply it with
# blinktune -w.
summary  datagrams with the least delay

try socket-buffers:?mem_max 16777216
  because  a receiver has room for what all others send at once; what finds none is sent again
  source   ours; datagrams: "Datamation: A Quarter of a Century and Four Orders of Magnitude Later", CLUSTER 2011, section II.B

try socket-buffers:netdev_max_backlog 10000
  because  a CPU that is late drops no packets
  source   ours; Documentation/admin-guide/sysctl/net.rst

try busy-poll 50
  because  the thread that waits for a packet polls the card itself, and saves the interrupt
  source   Documentation/admin-guide/sysctl/net.rst proposes 50

try nic-coalescing adaptive-rx? off adaptive-tx? off rx-usecs? 0 tx-usecs? 0
  because  the card interrupts for the first packet instead of waiting for a second
  source   ours; ethtool(8), -C

try nic-rings max
  because  a burst from all nodes finds room in the card
  source   ours; ethtool(8), -G

try nic-offloads lro? off
  because  the card does not hold a packet back to join it with the next
  source   ours; ethtool(8), -K

# Not in reference: where the switch or one of the nodes does not do jumbo frames,
# all that is larger is dropped silently, and the nodes are cut off.
try mtu 9000
  because  six times fewer packets for the same data
  source   ours; alt-mtu-9000 tells

try tx-queue-length 10000
  because  a burst to all nodes is queued instead of dropped
  source   ours; Documentation/ABI/testing/sysfs-class-net
