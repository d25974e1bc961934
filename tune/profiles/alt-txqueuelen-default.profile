summary  reference, but transmit queues of 1000 packets
include  reference

try tx-queue-length 1000
  because  the kernel's default of Ethernet
  source   include/net/pkt_sched.h, DEFAULT_TX_QUEUE_LEN
