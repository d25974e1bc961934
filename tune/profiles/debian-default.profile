# A plain Debian 12 (Linux 6.1, amd64) as it is installed, for comparison.  What
# differs from one driver or drive to the next has no line.
summary  a plain Debian 12

try cpu-governor schedutil/powersave
  because  the frequency follows the load; with intel_pstate that is called powersave
  source   Debian 12, package linux-config-6.1, amd64: CONFIG_CPU_FREQ_DEFAULT_GOV_SCHEDUTIL

try cpu-frequency all
  because  all frequencies of the CPU are allowed
  source   Documentation/admin-guide/pm/cpufreq.rst

try turbo on
  because  so unless the firmware says otherwise
  source   Documentation/admin-guide/pm/cpufreq.rst

try c-states default
  because  no process limits how deep a CPU sleeps
  source   Documentation/power/pm_qos_interface.rst

try nmi-watchdog 1
  because  the detector is built in, and on
  source   Debian 12, package linux-config-6.1, amd64: CONFIG_HARDLOCKUP_DETECTOR

try timer-migration 1
  because  the kernel's default
  source   kernel/time/timer.c

try stat-interval 1
  because  the kernel's default
  source   Documentation/admin-guide/sysctl/vm.rst

try transparent-huge-pages:enabled always
  because  Debian's choice
  source   Debian 12, package linux-config-6.1, amd64: CONFIG_TRANSPARENT_HUGEPAGE_ALWAYS

try transparent-huge-pages:defrag madvise
  because  the kernel's default
  source   Documentation/admin-guide/mm/transhuge.rst

try transparent-huge-pages:shmem_enabled never
  because  the kernel's default
  source   Documentation/admin-guide/mm/transhuge.rst

try swappiness 60
  because  the kernel's default
  source   Documentation/admin-guide/sysctl/vm.rst

try dirty-limits ratio 20 background-ratio 10
  because  the kernel's defaults
  source   mm/page-writeback.c, vm_dirty_ratio and dirty_background_ratio

try socket-buffers:?mem_* 212992
  because  the kernel's default
  source   net/core/sock.c, SK_RMEM_MAX and SK_WMEM_MAX

try socket-buffers:netdev_max_backlog 1000
  because  the kernel's default
  source   Documentation/admin-guide/sysctl/net.rst

try busy-poll 0
  because  off
  source   Documentation/admin-guide/sysctl/net.rst

try read-ahead 128
  because  the kernel's default of a disk
  source   include/linux/pagemap.h, VM_READAHEAD_PAGES

try md-stripe-cache 256
  because  the kernel's default
  source   Documentation/admin-guide/md.rst

try mtu 1500
  because  Ethernet
  source   include/uapi/linux/if_ether.h, ETH_DATA_LEN

try tx-queue-length 1000
  because  the kernel's default of Ethernet
  source   include/net/pkt_sched.h, DEFAULT_TX_QUEUE_LEN
