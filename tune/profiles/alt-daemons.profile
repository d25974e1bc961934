summary  reference, but daemons keep running
include  reference

try daemons keep
  because  the system as it is installed, before its daemons are pruned
  source   "Datamation: A Quarter of a Century and Four Orders of Magnitude Later", CLUSTER 2011, abstract: pruning of system daemons

try irqbalance keep
  because  it is one of them
  source   ours
