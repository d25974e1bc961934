summary  reference, but huge pages for all programs
include  reference

try transparent-huge-pages:enabled always
  because  Debian's choice
  source   Debian 12, package linux-config-6.1, amd64: CONFIG_TRANSPARENT_HUGEPAGE_ALWAYS
