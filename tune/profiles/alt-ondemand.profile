summary  reference, but frequency on demand
include  reference

try cpu-governor ondemand/schedutil/powersave
  because  what the study rejects, by the name that the driver has for it
  source   "Datamation: A Quarter of a Century and Four Orders of Magnitude Later", CLUSTER 2011, section III: a frequency on demand takes 10 ms more

try cpu-frequency all
  because  there must be something to choose
  source   ours
