summary  reference, but frequency on demand
include  reference

try cpu-governor ondemand/schedutil/powersave
  because  what the study rejects, by the name that the driver has for it
  source   "Datamation: A Quarter of a Century and Four Orders of Magnitude Later", CLUSTER 2011, abstract: no on-demand frequency scaling

try cpu-frequency all
  because  there must be something to choose
  source   ours
