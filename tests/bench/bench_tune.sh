#!/bin/bash
# bench_tune.sh - what applying and reverting a profile takes
#
# usage: tests/bench/bench_tune.sh [PROFILE [ROUNDS]]      default: reference 20
#
# On this machine, if root asks for it, and on the recorded trees of others: of
# that many rounds, apply and revert in turn, the median, the least and the most
# milliseconds.  Exit status 1 if not everything came back.

set -eu -o pipefail
export LC_ALL=C

REPO=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
PROFILE=${1:-reference}
ROUNDS=${2:-20}

# help: the text at the head of this file
help()
{
	sed -n '2,/^$/s/^# \{0,1\}//p' "$REPO/tests/bench/bench_tune.sh"
}

if [ "$PROFILE" = --help ]; then
	help
	exit
elif [[ $# -gt 2 || $PROFILE = -* || ! $ROUNDS =~ ^[1-9][0-9]*$ ]]; then
	help | sed -n 3p >&2
	exit 2
fi

SCRATCH=$(mktemp -d /tmp/blinksort-bench.XXXXXX)
trap 'rm -rf "$SCRATCH"' EXIT
cd "$SCRATCH"

# files FOLDER: those that knobs are about, with what they hold
files()
{
	grep -r -s . "$1"/proc/sys/{vm,kernel/nmi_watchdog,net/core} \
		"$1"/sys/kernel/mm/transparent_hugepage/{enabled,defrag} \
		"$1"/sys/block/*/queue/{scheduler,read_ahead_kb,write_cache} \
		"$1"/sys/class/net/*/{mtu,tx_queue_len} \
		"$1"/sys/devices/system/cpu/cpufreq |
		grep -v -E 'cur_freq|stats|nr_|compact_memory' || true
}

# snapshot: of the machine, also what is in no file
snapshot()
{
	local nic

	if [ "${ROOT:-}" ]; then
		tar -c --mtime=@0 --sort=name -C "$ROOT" . | cksum
		return
	fi
	files ''
	for nic in /sys/class/net/*; do
		ethtool -k "${nic##*/}" 2>&1 || true
		ethtool -g "${nic##*/}" 2>&1 || true
		ethtool -c "${nic##*/}" 2>&1 || true
	done
	if [ -d /run/systemd/system ]; then
		systemctl list-units --no-legend --plain --state=running
	fi
}

# milliseconds COMMAND...: how long it took, in MS
milliseconds()
{
	local begin=${EPOCHREALTIME/./}

	"$@" >out 2>&1 || {
		cat out >&2
		return 1
	}
	MS=$((${EPOCHREALTIME/./} - begin))
	MS=$((MS / 1000)).$((MS / 100 % 10))
}

# summary FILE: median, least and most of its numbers
summary()
{
	sort -n "$1" | awk '
		{ value[NR] = $1 }
		END {
			middle = value[int((NR + 1) / 2)]
			middle = (middle + value[int(NR / 2) + 1]) / 2
			printf "%7.1f %7.1f %7.1f", middle, value[1], value[NR]
		}'
}

# bench NAME OPTION...
bench()
{
	local name=$1 round
	local -a tune=("$REPO/tune/blinktune" --state "$SCRATCH/state" "${@:2}")

	: >apply.ms
	: >revert.ms
	snapshot >before
	for ((round = 0; round < ROUNDS; round++)); do
		milliseconds "${tune[@]}" apply "$PROFILE"
		echo "$MS" >>apply.ms
		milliseconds "${tune[@]}" revert
		echo "$MS" >>revert.ms
	done
	snapshot >after
	paste apply.ms revert.ms | awk '{ print $1 + $2 }' >both.ms
	printf '%-16s %s  %s  %s\n' "$name" "$(summary apply.ms)" \
		"$(summary revert.ms)" "$(summary both.ms)"
	diff before after || {
		echo "bench_tune: $name: not everything came back" >&2
		exit 1
	}
}

printf '%-16s %-23s  %-23s  %-23s\n' "ms" '  apply' '  revert' '  both'
printf '%-16s %s  %s  %s\n' '' ' median   least    most' \
	' median   least    most' ' median   least    most'
if [ "$UID" = 0 ]; then
	bench 'this machine'
else
	echo 'this machine: not root' >&2
fi
for machine in "$REPO"/tests/data/machines/*/; do
	ROOT=$SCRATCH/tree
	rm -rf "$ROOT"
	cp -R "$machine" "$ROOT"
	bench "$(basename "$machine")" --root "$ROOT"
done
