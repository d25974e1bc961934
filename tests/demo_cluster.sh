#!/bin/bash
#
# demo_cluster.sh NODES - sort a million records with a cluster on this machine
# (make demo NODES=16)
#
# Starts NODES command daemons on 127.0.0.2 and following, gives each a part of
# the records, has all of them sort together, checks the parts as one, and shows
# where the time went.
#
# Needs the programs in bin/, and 350 MB in ${TMPDIR:-/tmp}, all of which it
# gives back.  Changes nothing else.
set -eu -o pipefail
export LC_ALL=C

ROOT=$(cd "$(dirname "$0")/.." && pwd)
RECORDS=1000000
ROUNDS=7
NODES=${1:-16}

SCRATCH=$(mktemp -d)
export BLINK_CLUSTER=$SCRATCH/cluster
trap '"$ROOT/tests/cluster" down 2>/dev/null; rm -rf "$SCRATCH"' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP

bold='' dim='' plain=''
if [ -t 1 ] && [ "${TERM:-dumb}" != dumb ]; then
	bold=$'\e[1m' dim=$'\e[2m' plain=$'\e[0m'
fi

die()
{
	echo "demo_cluster.sh: $*" >&2
	exit 1
}

# show COMMAND TEXT: what is run, and what came of it
show()
{
	printf '%s  %-46s%s %s\n' "$dim" "$1" "$plain" "$2"
}

checksum_of()
{
	sed -n 's/^Checksum: //p' "$1"
}

make_parts()
{
	local rank first next

	for ((rank = 0; rank < NODES; rank++)); do
		first=$((RECORDS * rank / NODES))
		next=$((RECORDS * (rank + 1) / NODES))
		blinkgen -a -b "$first" "$((next - first))" "in.$rank" ||
			die "blinkgen failed"
	done
	show "blinkgen -a -b FIRST COUNT in.0 ... in.$((NODES - 1))" \
		"100 MB of records"
}

sort_parts()
{
	blinksh --json -- "$ROOT/bin/blinksort" --cluster "$PWD/in.%r" \
		-o "$PWD/out.%r" --json >answer || die "blinksort failed"
}

check_parts()
{
	local outs=() rank

	for ((rank = 0; rank < NODES; rank++)); do
		outs+=("out.$rank")
	done
	blinkval "${outs[@]}" >report 2>&1 ||
		die "blinkval: $(tail -n 1 report)"
	blinkgen -a -c "$RECORDS" /dev/null 2>whole ||
		die "blinkgen failed"
	grep -q -x -F "Checksum: $(checksum_of whole)$(cat whole)" report ||
		[ "$(checksum_of report)" = "$(checksum_of whole)" ] ||
		die "the outputs' checksum is $(checksum_of report)"
	show "blinkval out.0 ... out.$((NODES - 1))" \
		"one sorted whole, with the checksum of the input"
}

find_spawn()
{
	:
}

case $NODES in
*[!0-9]* | '' | 0) die "$NODES: not a number of nodes" ;;
esac
PATH=$ROOT/bin:$PATH
cd "$SCRATCH"
