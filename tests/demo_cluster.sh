#!/bin/bash
#
# demo_cluster.sh NODES [MEMORY] - sort a million records with a cluster on this
# machine (make demo NODES=16), or, with so much memory for each node, three
# times as much as that (make demo NODES=4 MEMORY=100M)
#
# Starts NODES command daemons on 127.0.0.2 and following, gives each a part of
# the records, has all of them sort together, checks the parts as one, and shows
# where the time went.
#
# Needs the programs in BIN (bin/), and 350 MB in ${TMPDIR:-/tmp}, or 15 times the
# memory of all nodes, all of which it gives back.  Changes nothing else.
set -eu -o pipefail
export LC_ALL=C

ROOT=$(cd "$(dirname "$0")/.." && pwd)
BIN=$(cd "$ROOT" && realpath -m "${BIN:-bin}")
export BIN
RECORDS=1000000
ROUNDS=7
NODES=${1:-16}
MEMORY=${2:-}
RECORD_BYTES=100

SCRATCH=$(mktemp -d)
export BLINK_CLUSTER=$SCRATCH/cluster
trap '"$ROOT/tests/cluster" down 2>/dev/null; rm -rf "$SCRATCH"' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP

# shellcheck source=tests/demo_lib.sh
. "$ROOT/tests/demo_lib.sh"

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

make_parts()
{
	local rank first next

	for ((rank = 0; rank < NODES; rank++)); do
		first=$((RECORDS * rank / NODES))
		next=$((RECORDS * (rank + 1) / NODES))
		blinkgen -a -b"$first" "$((next - first))" "in.$rank" ||
			die "blinkgen failed"
	done
	show "blinkgen -a -bFIRST COUNT in.0 ... in.$((NODES - 1))" \
		"$((RECORDS * RECORD_BYTES / 1000000)) MB of records"
}

sort_parts()
{
	blinksh -- "${job[@]}" 2>told || die "$(head -n 1 told)"
	show "blinksh -- blinksort --cluster in.%r -o out.%r${MEMORY:+ -S $MEMORY}" \
		'sorted'
}

check_parts()
{
	blinkgen -a -c "$RECORDS" /dev/null 2>generated || die "blinkgen failed"
	blinkval "${outs[@]}" >report 2>&1 ||
		die "blinkval: $(tail -n 1 report)"
	[ "$(checksum_of report)" = "$(sed 's/.* //' generated)" ] ||
		die "the outputs' checksum is $(checksum_of report)"
	show "blinkval out.0 ... out.$((NODES - 1))" \
		'one sorted whole, and the checksum is that of the input'
}

# whole: the time that blinksh prints behind all others, in ms
whole()
{
	awk '{
		for (i = 1; i < NF; i++)
			if ($i == "whole") {
				unit = $(i + 2)
				factor = 1
				if (unit == "us")
					factor = 0.001
				if (unit == "s")
					factor = 1000
				print $(i + 1) * factor
			}
	}' "$1"
}

# Both start on a daemon and end with its reply: the cluster, and one process
# that sorts the same records alone.
measure()
{
	local i

	cat "${ins[@]}" >whole.in
	for ((i = 0; i <= ROUNDS; i++)); do
		rm -f out.* alone
		blinksh --json -- "${job[@]}" --json >answer.$i 2>told ||
			die "blinksort failed: $(tail -n 1 told)"
		json_whole answer.$i >cluster.$i
		blinksh -N -w "$(head -n 1 "$WCOLL")" -- \
			"$BIN/blinksort" "$PWD/whole.in" -o "$PWD/alone" \
			"${alone_options[@]}" 2>told || die "blinksort failed: $(tail -n 1 told)"
		whole told >alone.$i
	done
}

# The first document of blinksh --json
json_whole()
{
	sed -n 's/.*"whole_ns": *\([0-9]*\).*/\1/p' "$1" |
		awk 'NR == 1 { print $1 / 1e6 }'
}

# median FILE...: of one number each, without the first, which warms up
median()
{
	shift
	cat "$@" | sort -g | sed -n "$((($# + 1) / 2))p"
}

show_times()
{
	local together alone

	together=$(median cluster.*)
	alone=$(median alone.*)
	echo
	echo "  From the client's first datagram to the last reply, median of" \
		"$ROUNDS runs in turn:"
	printf '%s\n' "cluster $together" "alone $alone" | bars
	printf '    %s ranks on the %s CPUs of this machine take' \
		"$NODES" "$(nproc)"
	printf ' %s%.2f%s times as long as one process%s\n' "$bold" \
		"$(echo "$together $alone" | awk '{ print $1 / $2 }')" "$plain" \
		"${MEMORY:+ with the memory of all}"
}

# Rank 0 prints what all ranks have measured, as \"ranks\" in its document,
# which stands within a string of the client's.
show_phases()
{
	echo
	echo "  Where the time of a rank went, mean of all:"
	tr '{' '\n' <answer.$ROUNDS | sed 's/[\]//g' | awk -v RS='\n' '
	/^"rank": [0-9]+, "records_in"/ && !seen[$2]++ {
		n++
		split("join bucket arrange exchange order finish meet commit", p, " ")
		for (i = 1; i <= 8; i++)
			if (match($0, "\"" p[i] "_ns\": [0-9]+")) {
				t = substr($0, RSTART, RLENGTH)
				sub(/.*: /, "", t)
				sum[p[i]] += t
			}
	}
	END { for (i = 1; i <= 8; i++) print p[i], sum[p[i]] / n / 1e6 }' |
		bars
}

# Each node gets three times as many bytes as it has memory for.
use_memory()
{
	local bytes

	bytes=$(numfmt --from=iec "$MEMORY" 2>/dev/null) ||
		die "$MEMORY: not a size, such as 100M"
	RECORDS=$((3 * bytes * NODES / RECORD_BYTES))
	ROUNDS=3
	count_text=$RECORDS
	job+=(-S "$MEMORY" -T "$PWD")
	alone_options=(-S "$((bytes * NODES))" -T "$PWD")
}

count_text='A million'
case $NODES in
*[!0-9]* | '' | 0) die "$NODES: not a number of nodes" ;;
esac
PATH=$BIN:$PATH
cd "$SCRATCH"
ins=() outs=()
for ((rank = 0; rank < NODES; rank++)); do
	ins+=("in.$rank")
	outs+=("out.$rank")
done
job=("$BIN/blinksort" --cluster "$PWD/in.%r" -o "$PWD/out.%r")

alone_options=()
[ -z "$MEMORY" ] || use_memory

printf '%s  %s records of 100 bytes, on %s nodes%s%s\n\n' "$bold" "$count_text" \
	"$NODES" "${MEMORY:+ with $MEMORY of memory each}" "$plain"
"$ROOT/tests/cluster" up "$NODES" >up.log 2>&1 || die "$(tail -n 1 up.log)"
eval "$("$ROOT/tests/cluster" env)"
show "tests/cluster up $NODES" 'daemons on 127.0.0.2 and following'
make_parts
sort_parts
check_parts
measure
show_times
show_phases
