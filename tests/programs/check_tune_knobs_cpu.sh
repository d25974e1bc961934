#!/bin/bash
# check_tune_knobs_cpu.sh - the knobs of CPUs, memory, interrupts and daemons
#
# On trees in the place of /sys and /proc (tests/data/machines): each knob
# there, missing, not to be written, set and set back; and against models of
# what the kernel does that a tree does not.

# shellcheck disable=SC2317 # cases are called by check
. "$(dirname "$0")/tool_lib.sh"

TUNE=$REPO/tune
MACHINES=$REPO/tests/data/machines
readonly MACHINES

# use_machine NAME: ROOT is a copy of it, and before what it was.
use_machine()
{
	cp -r "$MACHINES/$1" tree
	ln -s "$MACHINES/$1" before
	use_root "$PWD/tree"
}

# use_root FOLDER: what the program itself reads before its knobs
use_root()
{
	ROOT=$1
	# shellcheck source=tune/lib/file.sh
	. "$TUNE/lib/file.sh"
	# shellcheck source=tune/lib/tool.sh
	. "$TUNE/lib/tool.sh"
	# shellcheck source=tune/lib/knob.sh
	. "$TUNE/lib/knob.sh"
}

# forget_modes: files' modes are looked at once in a run of the program.
forget_modes()
{
	# shellcheck disable=SC2034 # file.sh reads them
	file_readonly_known='' file_readonly=()
}

# expect_value KNOB TARGET VALUE
expect_value()
{
	knob_get "$1" "$2" || fail "$1:$2: can't be read: $WHY"
	[ "$VALUE" = "$3" ] || fail "$1:$2 is '$VALUE', not '$3'"
}

# expect_support KNOB TARGET supported|unsupported|denied
expect_support()
{
	knob_supported "$1" "$2" || true
	[ "$SUPPORT" = "$3" ] || fail "$1:$2 is $SUPPORT, not $3: $WHY"
	[ "$3" = supported ] || [ -n "$WHY" ] || fail "$1:$2: $3, but why?"
}

# expect_untouched: the tree is what it was.
expect_untouched()
{
	diff -r before/ tree >&2
}

# --- one file each ------------------------------------------------------------
#
# MACHINE | KNOB | TARGET | value there | wanted | file and what is in it then,
# more of them after ";" | refused values, after ";"

readonly P=/sys/devices/system/cpu/cpufreq
readonly V=/proc/sys/vm N=/proc/sys/net/core K=/proc/sys/kernel
readonly H=/sys/kernel/mm/transparent_hugepage

rows()
{
	cat <<-END
	intel-desktop|cpu-governor|policy3|powersave|performance|$P/policy3/scaling_governor performance|ondemand;perform;performance powersave
	amd-server|cpu-governor|policy10|schedutil|ondemand|$P/policy10/scaling_governor ondemand|nonsense
	intel-desktop|cpu-frequency|policy0|800000-4700000|4700000-4700000|$P/policy0/scaling_min_freq 4700000|2-1;-1;1-;0-1;08-9;1-2-3
	amd-server|cpu-frequency|policy2|1500000-2800000|1500000-2400000|$P/policy2/scaling_max_freq 2400000|full
	intel-desktop|energy-performance|policy7|balance_performance|performance|$P/policy7/energy_performance_preference performance|fast;256;-1
	intel-desktop|energy-performance|policy7|balance_performance|128|$P/policy7/energy_performance_preference 128|
	intel-desktop|turbo|-|on|off|/sys/devices/system/cpu/intel_pstate/no_turbo 1|0;1;maybe
	amd-server|turbo|-|on|off|$P/boost 0|0;1;maybe
	intel-desktop|irq-affinity|8|0-7|0|/proc/irq/8/smp_affinity_list 0|;x;1-0;0,;,0;0-;-1;0x1;9999
	intel-desktop|irq-affinity|16|0-7|0,2-4|/proc/irq/16/smp_affinity_list 0,2-4|
	intel-desktop|irq-affinity|default|0-7|0-3|/proc/irq/default_smp_affinity 0f|8;0-8
	amd-server|irq-affinity|default|0-127|0,31-32,127|/proc/irq/default_smp_affinity 80000000,00000000,00000001,80000001|128
	kvm-guest|irq-affinity|default|0-1|1|/proc/irq/default_smp_affinity 2|0-15
	systemd-server|irqbalance|-|running|stopped|/tools/units -|inactive;0
	amd-server|numa-balancing|-|1|0|$K/numa_balancing 0|4;-1;off
	kvm-guest|numa-balancing|-|0|2|$K/numa_balancing 2|01
	kvm-guest|transparent-huge-pages|enabled|madvise|never|$H/enabled always madvise [never]|sometimes;always madvise
	intel-desktop|transparent-huge-pages|defrag|madvise|defer+madvise|$H/defrag always defer [defer+madvise] madvise never|defer+
	intel-desktop|transparent-huge-pages|shmem_enabled|never|within_size|$H/shmem_enabled always [within_size] advise never deny force|madvise
	intel-desktop|swappiness|-|60|1|$V/swappiness 1|201;-1;1.5;01;1 2;99999999999999999999
	kvm-guest|dirty-limits|-|ratio 20 background-ratio 10|ratio 40 background-ratio 5|$V/dirty_ratio 40;$V/dirty_background_ratio 5|ratio 101 background-ratio 5;20 10;ratio 20;bytes 8191 background-bytes 1;bytes 8192 background-bytes 0;ratio 20 background-ratio 10 more
	kvm-guest|dirty-limits|-|ratio 20 background-ratio 10|bytes 8192 background-ratio 5|$V/dirty_bytes 8192;$V/dirty_ratio 0;$V/dirty_background_ratio 5|
	amd-server|dirty-limits|-|bytes 1073741824 background-bytes 268435456|ratio 20 background-ratio 10|$V/dirty_ratio 20;$V/dirty_bytes 0;$V/dirty_background_ratio 10;$V/dirty_background_bytes 0|
	kvm-guest|socket-buffers|rmem_max|4194304|16777216|$N/rmem_max 16777216|2147483648;lots
	intel-desktop|socket-buffers|wmem_default|212992|425984|$N/wmem_default 425984|-1
	intel-desktop|socket-buffers|netdev_max_backlog|1000|10000|$N/netdev_max_backlog 10000|
	intel-desktop|socket-buffers|udp_rmem_min|4096|8192|/proc/sys/net/ipv4/udp_rmem_min 8192|
	kvm-guest|busy-poll|busy_poll|0|50|$N/busy_poll 50|-1;on
	kvm-guest|busy-poll|busy_read|0|50|$N/busy_read 50|
	intel-desktop|nmi-watchdog|-|1|0|$K/nmi_watchdog 0|2
	intel-desktop|timer-migration|-|1|0|$K/timer_migration 0|2;off
	intel-desktop|stat-interval|-|1|10|$V/stat_interval 10|0
	END
}

# check_rows: each row is a case of its own.
check_rows()
{
	local machine knob target there wanted files refused name

	while IFS='|' read -r machine knob target there wanted files refused; do
		name=$machine:$knob:$target:${wanted// /-}
		check "${name//\//-}" case_row
	done < <(rows)
}

# Nothing of it may be heard on stderr, but why it fails.
case_row()
{
	exec 3>&2 2>stderr
	at_end 'cat stderr >&3'
	use_machine "$machine"
	knob_load "$knob" || fail "$knob: $WHY"
	row_act
	row_round_trip
	row_refused
	row_lacking
	expect_empty stderr
}

# The command that is shown does what is said, if the root is put before the
# file; a list with brackets and a pair of files need a kernel for that.
row_act()
{
	knob_act "$knob" "$target" "$wanted"
	case $ACT in
	systemctl\ *) ;;
	echo\ *\ \>/*)
		case $knob in
		transparent-huge-pages | dirty-limits) ;;
		*)
			eval "${ACT//>/>$ROOT}"
			expect_set
			;;
		esac
		;;
	*) fail "act: $ACT" ;;
	esac
	knob_values "$knob" "$target"
	[[ $VALUES && $VALUES != *$'\n'* ]] || fail "values: $VALUES"
	knob_explain "$knob"
	[[ $EXPLAIN == *Source:* ]] || fail "explain: $EXPLAIN"
	knob_traits "$knob"
	[[ $LIFETIME,$RISK,$ORDER == boot,none,[0-9][0-9] ]] ||
		fail "traits: $LIFETIME $RISK $ORDER"
}

# expect_set: the files have what the row says, and no other is changed.
expect_set()
{
	local pair file rest=$files expected='' changed

	while [ -n "$rest" ]; do
		pair=${rest%%;*} rest=${rest#"${rest%%;*}"} rest=${rest#;}
		file=${pair%% *}
		expected+="Files before$file and tree$file differ"$'\n'
		[ "${pair#* }" = - ] || [ "$(<"tree$file")" = "${pair#* }" ] ||
			fail "$file: $(<"tree$file")"
	done
	changed=$(diff -rq before/ tree) || true
	[ "$changed" = "$(sort <<<"${expected%$'\n'}")" ] ||
		fail "changed: $changed"
}

# Set, the files are as the row says; set back, they are what they were, byte
# for byte.
row_round_trip()
{
	knob_targets "$knob"
	[[ " ${TARGETS[*]} " == *" $target "* ]] ||
		fail "no target $target: ${TARGETS[*]}"
	expect_support "$knob" "$target" supported
	knob_set "$knob" "$target" "$there" || fail "not set: $WHY"
	expect_untouched
	expect_value "$knob" "$target" "$there"
	goal "$knob" "$target" "$wanted" "$wanted"
	knob_set "$knob" "$target" "$wanted" || fail "not set: $WHY"
	expect_value "$knob" "$target" "$wanted"
	expect_set
	knob_set "$knob" "$target" "$there" || fail "not set back: $WHY"
	expect_value "$knob" "$target" "$there"
	expect_untouched
}

# Refused by the plan, or what only the kernel knows when it is set.
row_refused()
{
	local value rest=$refused

	while [ -n "$rest" ]; do
		value=${rest%%;*} rest=${rest#"${rest%%;*}"} rest=${rest#;}
		! knob_goal "$knob" "$target" "$there" "$value" ||
			! knob_set "$knob" "$target" "$VALUE" ||
			fail "'$value' is taken"
		[[ $WHY == *'Invalid argument'* ]] || fail "'$value': $WHY"
	done
	expect_untouched
}

# The first of the row's files without permission, and then not there at all.
row_lacking()
{
	local file=tree${files%% *}

	if [ "$file" = tree/tools/units ]; then
		# A folder's mode says nothing to root.
		file=tree/run/systemd/system
		rm -r "$file"
		: >"$file"
	fi
	chmod 0444 "$file"
	forget_modes
	expect_support "$knob" "$target" denied
	if [ "$file" != tree/run/systemd/system ]; then
		! knob_set "$knob" "$target" "$wanted" || fail 'set nevertheless'
		[[ $WHY == *'Permission denied'* ]] || fail "$WHY"
		expect_untouched
	fi
	rm -f "$file"
	expect_support "$knob" "$target" unsupported
}

# --- wanted in other words ----------------------------------------------------

# goal KNOB TARGET WANTED VALUE
goal()
{
	knob_load "$1"
	knob_get "$1" "$2"
	knob_goal "$1" "$2" "$VALUE" "$3" || fail "$1 $3: $WHY"
	[ "$VALUE" = "$4" ] || fail "$1:$2 $3 means $VALUE, not $4"
}

case_goals_intel()
{
	use_machine intel-desktop
	goal cpu-governor policy0 ondemand/schedutil/powersave powersave
	goal cpu-governor policy0 performance performance
	goal cpu-governor policy0 ondemand/schedutil ondemand
	goal cpu-frequency policy0 max 4700000-4700000
	goal cpu-frequency policy0 all 800000-4700000
	goal cpu-frequency policy0 1000000 1000000-1000000
	goal cpu-frequency policy0 1000000-2000000 1000000-2000000
	goal irq-affinity 8 2,0,1,4 0-2,4
	goal irq-affinity default 07,0-3 0-3,7
	knob_load transparent-huge-pages
	! knob_goal transparent-huge-pages enabled always sometimes ||
		fail 'sometimes is a choice'
	! knob_goal irq-affinity 8 0-7 some || fail 'some is a list'
	goal swappiness - 1 1
}

case_goals_amd()
{
	use_machine amd-server
	goal cpu-governor policy0 ondemand/schedutil/powersave ondemand
	goal cpu-frequency policy0 max 2800000-2800000
}

# --- against what a kernel does -----------------------------------------------

# The limits may be written in either direction, and the minimum is never above
# the maximum on the way.
case_frequency_never_crosses()
{
	local limits=(800000-4700000 800000-800000 4700000-4700000
		1000000-2000000 3000000-4000000) from to

	use_machine intel-desktop
	knob_load cpu-frequency
	eval "plain_$(declare -f file_write)"
	file_write()
	{
		plain_file_write "$@"
		knob_cpu_frequency_get policy0
		((${VALUE%-*} <= ${VALUE#*-})) || fail "crossed: $VALUE"
	}
	for from in "${limits[@]}"; do
		for to in "${limits[@]}"; do
			knob_set cpu-frequency policy0 "$from"
			knob_set cpu-frequency policy0 "$to"
			expect_value cpu-frequency policy0 "$to"
		done
	done
}

# mm/page-writeback.c: what is written makes its counterpart 0, a ratio only if
# it changes; and bytes are never 0.
dirty_model()
{
	local name=${1##*/}

	case $name in
	*_bytes)
		if [[ $2 == 0 ]]; then
			WHY="$1: Invalid argument"
			return 1
		fi
		MODEL[${name%_bytes}_ratio]=0
		;;
	*_ratio) [[ ${MODEL[$name]} == "$2" ]] ||
		MODEL[${name%_ratio}_bytes]=0 ;;
	esac
	MODEL[$name]=$2
}

case_dirty_limits_of_a_kernel()
{
	local -A MODEL=([dirty_ratio]=20 [dirty_bytes]=0
		[dirty_background_ratio]=10 [dirty_background_bytes]=0)
	local values=('ratio 20' 'ratio 0' 'ratio 100' 'bytes 8192'
		'bytes 1073741824') front back from all=()

	use_root ''
	knob_load dirty-limits
	file_write()
	{
		dirty_model "$@"
	}
	file_read()
	{
		VALUE=${MODEL[${1##*/}]}
	}
	for front in "${values[@]}"; do
		for back in "${values[@]}"; do
			all+=("$front background-$back")
		done
	done
	for from in "${all[@]}"; do
		for back in "${all[@]}"; do
			knob_set dirty-limits - "$from" || fail "$from: $WHY"
			expect_value dirty-limits - "$from"
			knob_set dirty-limits - "$back" || fail "$back: $WHY"
			expect_value dirty-limits - "$back"
		done
	done
}

# What the kernel places itself refuses: EIO of old, EPERM of late.
case_interrupt_that_stays()
{
	local why

	use_machine intel-desktop
	knob_load irq-affinity
	for why in 'Input/output error' 'Operation not permitted'; do
		file_write()
		{
			WHY="$1: $why"
			return 1
		}
		SUPPORT=supported
		! knob_set irq-affinity 8 0 || fail 'set'
		[ "$SUPPORT" = unsupported ] || fail "$SUPPORT"
		[[ $WHY == *'kernel places'* ]] || fail "$WHY"
	done
	why='Invalid argument' SUPPORT=supported
	! knob_set irq-affinity 8 0 || fail 'set'
	[ "$SUPPORT" != unsupported ] || fail "$SUPPORT: $WHY"
}

case_targets_in_order()
{
	use_machine amd-server
	knob_load cpu-governor
	knob_targets cpu-governor
	[ "${TARGETS[*]}" = 'policy0 policy1 policy2 policy10' ]
	knob_load irq-affinity
	knob_targets irq-affinity
	[ "${TARGETS[*]}" = 'default 0 8 9 24 60 61 62' ] ||
		fail "${TARGETS[*]}"
}

# Undoing goes backwards: what is reset by another one comes after it.
case_order()
{
	local knob last=-1

	use_root ''
	for knob in daemons energy-performance cpu-governor turbo \
		cpu-frequency irqbalance irq-affinity; do
		knob_load "$knob"
		knob_traits "$knob"
		((10#$ORDER > last)) || fail "$knob: $ORDER"
		last=$((10#$ORDER))
	done
}

case_cpulists()
{
	local list mask like MASK

	use_root ''
	# shellcheck source=tune/lib/cpulist.sh
	. "$TUNE/lib/cpulist.sh"
	while read -r list mask like; do
		cpulist_mask "$list" "$like" || fail "$list: no mask"
		[ "$MASK" = "$mask" ] || fail "$list: $MASK, not $mask"
		cpulist_of_mask "$mask"
		[ "$VALUE" = "$list" ] || fail "$mask: $VALUE, not $list"
		cpulist_of "$list"
		[ "$VALUE" = "$list" ] || fail "$list: $VALUE"
	done <<-END
	0 1 f
	3 8 3
	0-3 0f ff
	5 020 fff
	0-1,4 00000013 ffffffff
	32 1,00000000 3,ffffffff
	31-32 01,80000000 ff,ffffffff
	0,63-64,95 80000001,80000000,00000001 ffffffff,ffffffff,ffffffff
	END
	! cpulist_mask 4 f || fail 'no room for 4'
	! cpulist_mask 0-32 ffffffff || fail 'no room for 32'
}

# --- C-states -----------------------------------------------------------------

case_c_states_on_a_tree()
{
	use_machine intel-desktop
	knob_load c-states
	knob_traits c-states
	[ "$LIFETIME" = holder ]
	expect_support c-states - supported
	expect_value c-states - default
	knob_hold c-states - 3 || fail "$WHY"
	[ -n "$HOLD_FD" ]
	exec {HOLD_FD}<&-
	expect_untouched
	goal c-states - 100 100
	goal c-states - default default
	! knob_goal c-states - default fast || fail "$VALUE"
	knob_hold c-states - default || fail "$WHY"
	exec {HOLD_FD}<&-
	for value in -1 x 2000000001 1.5 defaults ''; do
		! knob_hold c-states - "$value" || fail "holds '$value'"
		[[ $WHY == *'Invalid argument'* ]] || fail "'$value': $WHY"
	done
	knob_act c-states - default
	[ "$ACT" = 'exec 9<>/dev/cpu_dma_latency; printf 0x77359400 >&9' ]
	knob_act c-states - 100
	[ "$ACT" = 'exec 9<>/dev/cpu_dma_latency; printf 0x00000064 >&9' ]
	knob_explain c-states
	[[ $EXPLAIN == *Source:* ]]
}

case_c_states_lacking()
{
	use_machine intel-desktop
	knob_load c-states
	chmod 0444 tree/dev/cpu_dma_latency
	forget_modes
	expect_support c-states - denied
	rm -f tree/dev/cpu_dma_latency
	expect_support c-states - unsupported
	! knob_get c-states - || fail "$VALUE"
}

# The device gives four bytes, of which any may be 0 or a newline.
case_c_states_bytes()
{
	local number hex

	use_root ''
	knob_load c-states
	# shellcheck disable=SC2034 # the knob reads it
	knob_c_states_file=$PWD/device
	for number in 0 1 3 10 32 255 256 2560 65536 168430090 655360 1999999999; do
		printf -v hex '%08x' "$number"
		printf %b "\\x${hex:6:2}\\x${hex:4:2}\\x${hex:2:2}\\x${hex:0:2}" \
			>device
		expect_value c-states - "$number"
	done
	printf '\000\224\065\167' >device
	expect_value c-states - default
}

# The kernel's own: another one may hold less meanwhile.
case_c_states_of_this_kernel()
{
	use_root ''
	knob_load c-states
	knob_get c-states - || fail "$WHY"
	knob_hold c-states - 12345 || fail "$WHY"
	knob_get c-states -
	[ "$VALUE" -le 12345 ] || fail "$VALUE"
	exec {HOLD_FD}>&-
	knob_get c-states -
	[ "$VALUE" != 12345 ] || fail 'still held'
}

# --- daemons ------------------------------------------------------------------

case_daemons_targets()
{
	use_machine systemd-server
	knob_load daemons
	knob_targets daemons
	[ "${TARGETS[*]}" = 'chrony.service cron.service exim4.service rsyslog.service smartmontools.service udisks2.service apt-daily.timer logrotate.timer acpid.path' ] ||
		fail "${TARGETS[*]}"
	expect_untouched
}

case_daemons_never()
{
	local unit

	use_machine systemd-server
	knob_load daemons
	for unit in NetworkManager systemd-networkd networking wpa_supplicant \
		dhcpcd dhclient@eth0 ssh sshd ssh@1-2 blinkd blinkd@7777 dbus \
		dbus-broker systemd-journald systemd-logind systemd-udevd \
		systemd-resolved getty@tty1 serial-getty@ttyS0 user@0 polkit \
		multipathd iscsid nfs-server rpcbind mdmonitor cloud-init \
		lvm2-monitor dm-event cryptsetup qemu-guest-agent watchdog \
		docker auditd irqbalance; do
		expect_support daemons "$unit.service" unsupported
		[[ $WHY == 'never touched: '* || $WHY == *knob* ]] || fail "$WHY"
		! knob_set daemons "$unit.service" stopped ||
			fail "$unit is stopped"
	done
	expect_support daemons ssh.socket unsupported
	expect_support daemons iscsid.socket unsupported
	for unit in cron exim4 bind9 postgresql@15-main sshguard networkd-x; do
		expect_support daemons "$unit.service" supported
	done
	expect_untouched
	knob_explain daemons
	[[ $EXPLAIN == *wpa_supplicant* && $EXPLAIN == *Source:* ]]
}

# All stopped, and all started again: with rsyslog its socket, or it would run
# again at once; the socket first, or it could not be opened.
case_daemons_stop_and_start()
{
	local unit i stopped originals=()

	use_machine systemd-server
	knob_load daemons
	knob_targets daemons
	stopped=("${TARGETS[@]}")
	for unit in "${stopped[@]}"; do
		knob_get daemons "$unit"
		originals+=("$VALUE")
	done
	[ "${originals[3]}" = 'running syslog.socket' ] || fail "${originals[3]}"
	for unit in "${stopped[@]}"; do
		knob_set daemons "$unit" stopped || fail "$unit: $WHY"
		expect_value daemons "$unit" stopped
	done
	knob_targets daemons
	[ ${#TARGETS[@]} = 0 ] || fail "${TARGETS[*]}"
	grep -q '^ssh.service loaded active running' tree/tools/units
	knob_act daemons rsyslog.service "${originals[3]}"
	[ "$ACT" = 'systemctl start syslog.socket rsyslog.service' ] ||
		fail "$ACT"
	for ((i = ${#stopped[@]} - 1; i >= 0; i--)); do
		knob_set daemons "${stopped[i]}" "${originals[i]}" ||
			fail "${stopped[i]}: $WHY"
		expect_value daemons "${stopped[i]}" "${originals[i]}"
	done
	expect_untouched
}

# A service whose socket was closed gets it back closed.
case_daemons_partly()
{
	use_machine systemd-server
	sed -i 's/^\(syslog.socket loaded\) active running/\1 inactive dead/' \
		tree/tools/units
	rm before
	cp -r tree before
	knob_load daemons
	expect_value daemons rsyslog.service running
	knob_set daemons rsyslog.service stopped
	expect_value daemons rsyslog.service stopped
	knob_set daemons rsyslog.service running
	expect_untouched
	knob_goal daemons x.service 'running x.socket' running
	[ "$VALUE" = 'running x.socket' ]
	! knob_goal daemons x.service running on || fail "$VALUE"
	knob_goal daemons x.service 'running x.socket' stopped
	[ "$VALUE" = stopped ]
	for value in on 'running ssh.socket' 'stopped x' '' 'running '; do
		! knob_set daemons rsyslog.service "$value" || fail "'$value'"
		[[ $WHY == *'Invalid argument'* ]] || fail "$WHY"
	done
	expect_untouched
}

# What is never touched is not stopped for the sake of another either.
case_daemons_shared()
{
	use_machine systemd-server
	sed -i 's/^\(cron.service .* running\) -/\1 dbus.socket/' tree/tools/units
	knob_load daemons
	expect_value daemons cron.service running
	knob_act daemons cron.service stopped
	[ "$ACT" = 'systemctl stop cron.service' ] || fail "$ACT"
	knob_set daemons cron.service stopped
	grep -q '^dbus.socket loaded active' tree/tools/units
}

# One question for all of them; and what systemctl says against it is passed on.
case_daemons_calls()
{
	use_machine systemd-server
	mv tree/tools/systemctl tree/tools/real
	cat >tree/tools/systemctl <<-'END'
	#!/bin/bash
	echo "$*" >>"$BLINKTUNE_ROOT/calls"
	case " $* " in
	*' stop '*) echo "Failed to stop: Access denied" >&2; exit 4 ;;
	esac
	exec "${0%/*}/real" "$@"
	END
	chmod +x tree/tools/systemctl
	knob_load daemons
	knob_targets daemons
	for unit in "${TARGETS[@]}"; do
		knob_get daemons "$unit"
		knob_act daemons "$unit" stopped
	done
	[ "$(wc -l <tree/calls)" = 2 ] || fail "$(cat tree/calls)"
	! knob_set daemons cron.service stopped || fail 'stopped'
	[[ $WHY == *'Access denied' ]] || fail "$WHY"
	expect_value daemons cron.service running
	printf '#!/bin/bash\nexit 1\n' >tree/tools/systemctl
	# shellcheck disable=SC2034 # asked for anew
	unit_known=
	! knob_get daemons cron.service || fail "$VALUE"
	[ -n "$WHY" ]
	knob_targets daemons
	[ ${#TARGETS[@]} = 0 ]
}

case_daemons_lacking()
{
	use_machine systemd-server
	knob_load daemons
	knob_load irqbalance
	expect_support irqbalance - supported
	sed -i '/^irqbalance/d' tree/tools/units
	expect_support irqbalance - unsupported
	rm tree/tools/systemctl
	# It may be remembered where it was.
	tool_paths=()
	expect_support daemons cron.service unsupported
	[ "$WHY" = 'no systemctl' ] || fail "$WHY"
	knob_targets daemons
	[ ${#TARGETS[@]} = 0 ]
	expect_support irqbalance - unsupported
	rm -r tree/run
	expect_support daemons cron.service unsupported
	[ "$WHY" = 'systemd does not run here' ] || fail "$WHY"
}

# --- all of them --------------------------------------------------------------

# ask_all: of every knob everything that changes nothing
ask_all()
{
	local knob target

	knob_list
	for knob in "${KNOBS[@]}"; do
		knob_load "$knob" || fail "$knob: $WHY"
		knob_targets "$knob"
		for target in "${TARGETS[@]}"; do
			knob_supported "$knob" "$target" || true
			knob_get "$knob" "$target" || [ -n "$WHY" ] ||
				fail "$knob:$target: why?"
			[ "$SUPPORT" = supported ] || [ -n "$WHY" ] ||
				[ -n "$VALUE" ] || fail "$knob:$target: why?"
			knob_values "$knob" "$target"
			[ -z "$VALUE" ] || knob_act "$knob" "$target" "$VALUE"
			echo "$knob:$target $SUPPORT"
		done
	done
}

# A machine that has nothing: no errors, and nothing supported.
case_empty_machine()
{
	mkdir tree
	use_root "$PWD/tree"
	ask_all >said 2>stderr
	expect_empty stderr
	! grep ' supported' said >&2 || fail 'supported by nothing'
	expect_folder tree
}

case_every_machine()
{
	local machine

	for machine in "$MACHINES"/*/; do
		(
			mkdir "$(basename "$machine")"
			cd "$(basename "$machine")"
			use_machine "$(basename "$machine")"
			ask_all >said 2>stderr
			expect_empty stderr
			grep -q ' supported' said
			expect_untouched
		)
	done
}

# This machine's own settings are read and not set, as root and as nobody.
case_this_machine()
{
	use_root ''
	ask_all >said 2>stderr
	expect_empty stderr
	grep -q '^swappiness:- ' said
}

case_nobody()
{
	# A copy: the user nobody may have no access to the repository.
	cp -R "$TUNE" tune
	chmod 755 "$SCRATCH" .
	chmod -R go=u,go-w tune
	setpriv --reuid=65534 --regid=65534 --clear-groups bash -c "
		set -eu -o pipefail
		TUNE='$PWD/tune' HELP='' WHY='' VALUE='' ROOT=''
		$(declare -f use_root ask_all fail)
		use_root ''
		ask_all" >said 2>stderr
	expect_empty stderr
	expect_match '^swappiness:- denied' said
	# Every user may read what is only reported.
	! grep -v -e denied -e unsupported -e '^msi:' said >&2 ||
		fail 'by nobody'
}

# --- profiles -----------------------------------------------------------------

# profile_lines NAME: every line has its reason and its source, and knobs that
# there are (the loader ends at others).
profile_lines()
{
	local i

	profile_load "$1"
	[ -n "$PROFILE_SUMMARY" ] || fail "$1: no summary"
	[ ${#LINE_KNOB[@]} -gt 0 ] || fail "$1: no lines"
	for i in "${!LINE_KNOB[@]}"; do
		[ -n "${LINE_BECAUSE[i]}" ] || fail "$1: ${LINE_KNOB[i]}: why?"
		[ -n "${LINE_SOURCE[i]}" ] || fail "$1: ${LINE_KNOB[i]}: source?"
	done
}

use_profiles()
{
	use_root ''
	# shellcheck disable=SC2034 # message.sh reads it
	QUIET=
	# shellcheck source=tune/lib/message.sh
	. "$TUNE/lib/message.sh"
	# shellcheck source=tune/lib/profile.sh
	. "$TUNE/lib/profile.sh"
}

case_profiles()
{
	local name

	use_profiles
	profile_list
	for name in reference platter network debian-default; do
		[[ " ${PROFILES[*]} " == *" $name "* ]] || fail "no $name"
	done
	for name in "${PROFILES[@]}"; do
		profile_lines "$name"
	done
}

# An alternative is the reference but for one thing: its own lines come last,
# and each is about something that the reference has.
case_alternatives()
{
	local name i count reference

	use_profiles
	profile_load reference
	count=${#LINE_KNOB[@]}
	reference=" ${LINE_KNOB[*]} "
	for name in "$TUNE"/profiles/alt-*.profile; do
		name=$(basename "$name" .profile)
		profile_load "$name"
		((${#LINE_KNOB[@]} == count + 1 ||
			${#LINE_KNOB[@]} == count + 2)) || fail "$name"
		for ((i = count; i < ${#LINE_KNOB[@]}; i++)); do
			[[ $reference == *" ${LINE_KNOB[i]} "* ]] ||
				fail "$name: ${LINE_KNOB[i]}"
		done
	done
}

# --- the program --------------------------------------------------------------

case_list_and_explain()
{
	local knob

	use_root ''
	"$TUNE/blinktune" list >listed
	knob_list
	for knob in "${KNOBS[@]}"; do
		grep -q -w -e "$knob" listed || fail "list: no $knob"
		"$TUNE/blinktune" explain "$knob" >text 2>stderr ||
			fail "explain $knob: $(cat stderr)"
		expect_match Source: text
		expect_empty stderr
	done
}

# On a tree the plan of each profile says what it can and why not, no more.
case_plans()
{
	local profile

	use_machine intel-desktop
	for profile in low-latency debian-default alt-ondemand; do
		"$TUNE/blinktune" --root "$PWD/tree" --state "$PWD/state" \
			-v plan "$profile" >planned 2>stderr ||
			fail "$profile: $(cat stderr)"
		expect_empty stderr
		grep -q swappiness planned || fail "$profile"
	done
	expect_untouched
}

check_rows
check goals_intel case_goals_intel
check goals_amd case_goals_amd
check frequency_never_crosses case_frequency_never_crosses
check dirty_limits_of_a_kernel case_dirty_limits_of_a_kernel
check interrupt_that_stays case_interrupt_that_stays
check targets_in_order case_targets_in_order
check order case_order
check cpulists case_cpulists
check c_states_on_a_tree case_c_states_on_a_tree
check c_states_lacking case_c_states_lacking
check c_states_bytes case_c_states_bytes
if [ -w /dev/cpu_dma_latency ]; then
	check c_states_of_this_kernel case_c_states_of_this_kernel
else
	skip c_states_of_this_kernel "needs root, and cpuidle"
fi
check daemons_targets case_daemons_targets
check daemons_never case_daemons_never
check daemons_stop_and_start case_daemons_stop_and_start
check daemons_partly case_daemons_partly
check daemons_shared case_daemons_shared
check daemons_calls case_daemons_calls
check daemons_lacking case_daemons_lacking
check empty_machine case_empty_machine
check every_machine case_every_machine
check this_machine case_this_machine
if [ "$(id -u)" = 0 ]; then
	check nobody case_nobody
else
	skip nobody "needs root"
fi
check profiles case_profiles
check alternatives case_alternatives
check list_and_explain case_list_and_explain
check plans case_plans
finish
