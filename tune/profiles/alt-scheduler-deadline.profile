summary  reference, but the deadline scheduler
include  reference

try io-scheduler mq-deadline
  because  what the kernel itself gives a disk with one queue
  source   Documentation/block/deadline-iosched.rst
