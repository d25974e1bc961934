# What the study of 2011 found best, in the terms of a Linux of today: the optimum of
# its Table II as far as there are knobs, which results/datamation-2011.sweep varies,
# and what it could not name.  Where a value differs from the table, its lines say
# so: "not the published value".  A sweep over the alt-* profiles tells what each of
# them does on the machine at hand.  All lines are optional, since machines differ.
summary  the published optimum in the terms of today
include  network

try mtu keep
  because  a switch that does not do jumbo frames cuts the nodes off; network sets it
  source   not the published value, which is 9000: ours

try tx-queue-length 100
  because  it was the best of 100, 1000 and 10000 packets
  source   "Datamation: A Quarter of a Century and Four Orders of Magnitude Later", CLUSTER 2011, Table II

# The CPU
try cpu-governor performance
  because  a burst of work begins at the full frequency instead of being noticed first
  source   "Datamation: A Quarter of a Century and Four Orders of Magnitude Later", CLUSTER 2011, section III: a frequency on demand takes 10 ms more

try cpu-frequency max
  because  with both limits alike the CPU itself has nothing to choose either
  source   "Datamation: A Quarter of a Century and Four Orders of Magnitude Later", CLUSTER 2011, Table II; Documentation/admin-guide/pm/intel_pstate.rst

try turbo on
  because  what is measured is speed; alt-turbo-off tells what its unsteadiness takes
  source   ours; Documentation/admin-guide/pm/cpufreq.rst

try c-states 3
  because  a CPU that waits for a packet or a disk wakes within 3 us, yet does not poll, which takes from the hyperthread beside it
  source   ours; Documentation/admin-guide/pm/cpuidle.rst

# What else moves
try daemons stopped
  because  each takes a CPU, a disk or memory at times of its own
  source   "Datamation: A Quarter of a Century and Four Orders of Magnitude Later", CLUSTER 2011, section III: daemons take 15 ms more, with a standard deviation of 45 to 60 ms

try irqbalance stopped
  because  interrupts stay where they are while something is measured
  source   ours; irqbalance(1)

try numa-balancing 0
  because  no faults and copies to find out where pages belong
  source   ours; Documentation/admin-guide/sysctl/kernel.rst

try nmi-watchdog 0
  because  no interrupts of a watchdog
  source   ours; Documentation/admin-guide/sysctl/kernel.rst

try stat-interval 10
  because  the counters of memory are summed up ten times less often
  source   ours; Documentation/admin-guide/sysctl/vm.rst

# Memory
try transparent-huge-pages:enabled madvise
  because  the sorter asks for huge pages where it wants them; those of other programs do not delay it
  source   ours; Documentation/admin-guide/mm/transhuge.rst

try transparent-huge-pages:defrag madvise
  because  a program that asks for them gets them at once, one that does not never waits for them
  source   ours; Documentation/admin-guide/mm/transhuge.rst

try swappiness 1
  because  buffers stay in memory as long as there is page cache to drop
  source   ours; Documentation/admin-guide/sysctl/vm.rst

try dirty-limits ratio 40 background-ratio 5
  because  writing out begins early, and the writer itself is held up late
  source   ours; Documentation/admin-guide/sysctl/vm.rst

# The disks
try read-ahead 1024
  because  2048 sectors, of 0, 256, 512 and 2048: a disk goes on reading while what it has read is sorted
  source   "Datamation: A Quarter of a Century and Four Orders of Magnitude Later", CLUSTER 2011, Table II; Documentation/ABI/stable/sysfs-block

try io-scheduler none
  because  each disk is read in order by one program: nothing is left to sort
  source   ours; Documentation/block/switching-sched.rst

try drive-look-ahead on
  because  the next request finds its data in the drive, not a turn of the disk later
  source   "Datamation: A Quarter of a Century and Four Orders of Magnitude Later", CLUSTER 2011, Table II; hdparm(8), -A

try drive-write-cache on
  because  a file counts as written when the drives have it; platter is stricter
  source   ours; hdparm(8), -W

try md-stripe-cache 4096
  because  RAID 5 and 6 gather whole stripes instead of reading back parts; RAID 0 has none
  source   ours; Documentation/admin-guide/md.rst
