summary  reference, but without jumbo frames
include  reference

try mtu 1500
  because  Ethernet
  source   include/uapi/linux/if_ether.h, ETH_DATA_LEN
