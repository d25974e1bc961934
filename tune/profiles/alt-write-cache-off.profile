summary  reference, but without the write cache of the drives
include  reference

try drive-write-cache off
  because  what it costs to have the data on the platters
  source   ours; hdparm(8), -W
