#!/bin/bash
# figure4.sh - the main picture of the study of 2011, without its sixteen PCs
#
# usage: tests/bench/figure4.sh namespaces|guest FOLDER
#
# Runs results/datamation-2011.sweep in the scenarios cache and platter, and puts the
# record into FOLDER, a new one: blinkreport draws it.  What a place cannot set is in
# the record with its reason; knobs that the study did not have are not tried.
#
#   namespaces  as root: sixteen nodes on this machine, each in a network namespace,
#               with three networks: one of links of FAST Mbit/s (10000) and an MTU
#               of 9000, and two of SLOW Mbit/s (1000), with 1500 and 7200
#   guest       two nodes in a machine of QEMU's (tests/vm/check.sh): each has six
#               AHCI disks, and for each stripe, number of disks and place on
#               them an MD RAID-0 with XFS; and two e1000e cards, one with MSI-X and
#               one without.  Each node sorts what one of sixteen did.
#
# All values that need another array, card or network are there all the time, so
# that the order of trials is random within each block.
#
# Variables: TRIALS (30), RECORDS (1000000; 125000 in the guest), NODES (16), PART:
# in the guest only its "arrays", disks and cards, which take 4 s a trial where KVM
# does not work, or only the "knobs", which take 24; KILLS: kill as many runs at
# random moments instead, and compare all settings with those before each; SEED of
# the moments.

set -eu -o pipefail
export LC_ALL=C

ROOT=$(cd "$(dirname "$0")/../.." && pwd)
export PATH=${BIN:-$ROOT/bin}:$PATH:/usr/sbin:/sbin
# They have blinksort-mpi of each MPI.
PATH+=:$ROOT/build/mpi-openmpi/bin:$ROOT/build/mpi-mpich/bin
# shellcheck source=tests/bench/figure4_lib.sh
. "$ROOT/tests/bench/figure4_lib.sh"

# link MBIT: as the sweep calls it
link()
{
	case $1 in
	10000) echo 10G ;;
	1000) echo 1G ;;
	*) echo "$1M" ;;
	esac
}

namespaces()
{
	local exports file one two fast slow

	fast=$(link "${FAST:-10000}") slow=$(link "${SLOW:-1000}")
	export BLINK_CLUSTER=$1.nodes
	"$ROOT/tests/cluster" down
	trap '"$ROOT/tests/cluster" down 2>/dev/null' EXIT
	# Not before blinktrial has ended, which puts all back.
	trap 'exit 130' INT
	trap 'exit 143' TERM
	exports=$("$ROOT/tests/cluster" up "${NODES:-16}" --netns --mtu=9000 \
		--rate="${FAST:-10000}" --net="${SLOW:-1000}:1500" \
		--net="${SLOW:-1000}:7200" 2>/dev/null)
	eval "$exports"
	read -r one two <<<"$BLINK_NETS"
	file=$BLINK_CLUSTER/namespaces.sweep
	# Of three networks the first; and what the study had.
	# shellcheck disable=SC2016 # a line's number
	sweep '/^# --- not in the study/,$d' 's/^tune.mtu /tune.mtu:eth0 /' "s/^\(machine.network  \).*/\1$fast | $slow $slow-mtu-7200/" \
		"$(at machine.network "nodes $slow $one")" \
		"$(at machine.network "nodes $slow-mtu-7200 $two")" >"$file"
	figure4 "$1" "$file" --records="${RECORDS:-1000000}"
}

guest()
{
	FIGURE4_OUT=$1 exec "$ROOT/tests/vm/check.sh" figure4
}

[ $# = 2 ] || {
	sed -n '2,/^$/s/^# \{0,1\}//p' "$0" >&2
	exit 2
}
case $1 in
namespaces | guest) "$1" "$(realpath -m "$2")" ;;
*)
	echo "figure4.sh: $1: neither namespaces nor guest" >&2
	exit 2
	;;
esac
