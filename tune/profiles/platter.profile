# As reference, but what counts as written is on the platters: the only profile for
# times that are called platter to platter.
summary  as reference, with the write cache of the drives off
include  reference

try drive-write-cache off
  because  a file is written when it would survive a power cut, not when the drive has heard of it
  source   ours; hdparm(8), -W
