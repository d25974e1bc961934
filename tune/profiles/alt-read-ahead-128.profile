summary  reference, but 128 KiB of read-ahead
include  reference

try read-ahead 128
  because  the kernel's default of a disk
  source   include/linux/pagemap.h, VM_READAHEAD_PAGES
