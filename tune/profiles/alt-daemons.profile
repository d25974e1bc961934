summary  reference, but daemons keep running
include  reference

try daemons keep
  because  the system as it is installed, before its daemons are pruned
  source   "Datamation: A Quarter of a Century and Four Orders of Magnitude Later", CLUSTER 2011, section III: daemons take 15 ms more, with a standard deviation of 45 to 60 ms

try irqbalance keep
  because  it is one of them
  source   ours
