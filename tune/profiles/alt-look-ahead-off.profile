summary  reference, but drives do not read ahead themselves
include  reference

try drive-look-ahead off
  because  only what was asked for is read
  source   ours; hdparm(8), -A
