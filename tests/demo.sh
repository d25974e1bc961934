#!/bin/bash
#
# demo.sh - sort a million records and show what happens (make demo)
#
# Makes 1,000,000 ascii records, sorts them, checks the result, and shows where
# the time of a sort goes and how it compares with cp(1) on the same file.
#
# Needs the programs in BIN (bin/) and bench_spawn of BUILD (build/), and 350 MB
# in ${TMPDIR:-/tmp}, all of which it gives back.  Changes nothing else.
set -eu -o pipefail
export LC_ALL=C

ROOT=$(cd "$(dirname "$0")/.." && pwd)
cd "$ROOT"
BUILD=$(realpath -m "${BUILD:-build}")
BIN=$(realpath -m "${BIN:-bin}")
RECORDS=1000000
ROUNDS=7 # enough for a median; bench_files.py is for figures to keep

SCRATCH=$(mktemp -d)
trap 'rm -rf "$SCRATCH"' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP

# shellcheck source=tests/demo_lib.sh
. "$ROOT/tests/demo_lib.sh"

die()
{
	echo "demo.sh: $*" >&2
	exit 1
}

# The programs of a user's build before those of the tests'.
find_spawn()
{
	local variant

	for variant in musl dyn; do
		if [ -x "$BUILD/$variant/tests/bench/bench_spawn" ]; then
			echo "$BUILD/$variant/tests/bench/bench_spawn"
			return
		fi
	done
	die "bench_spawn: not built: run make demo"
}

# show COMMAND TEXT: what is run, and what came of it
show()
{
	printf '%s  %-32s%s %s\n' "$dim" "$1" "$plain" "$2"
}

make_and_check()
{
	local sum

	blinkgen -a -c "$RECORDS" input 2>generated || die "blinkgen failed"
	sum=$(checksum_of generated)
	[ -n "$sum" ] || sum=$(cat generated)
	show "blinkgen -a $RECORDS input" "100 MB of records, checksum $sum"

	blinksort input -o output || die "blinksort failed"
	show 'blinksort input -o output' 'sorted'

	blinkval output >report 2>&1 || die "blinkval: $(tail -n 1 report)"
	[ "$(checksum_of report)" = "$sum" ] ||
		die "the output's checksum is $(checksum_of report)"
	show 'blinkval output' \
		'in order, and the checksum is that of the input'
}

# What bench_spawn is to run: both programs in turn, each to a new file.
rounds()
{
	local rm cp i

	rm=$(command -v rm)
	cp=$(command -v cp)
	for ((i = 0; i <= ROUNDS; i++)); do
		printf '%s\t-f\toutput\n' "$rm"
		printf '%s\tinput\t-o\toutput\t--json\n' "$BIN/blinksort"
		printf '%s\t-f\toutput\n' "$rm"
		printf '%s\t--reflink=never\tinput\toutput\n' "$cp"
	done
}

# The first round warms up: its four answers and its document are left out.
measure()
{
	local spawn

	spawn=$(find_spawn)
	rounds | "$spawn" printed >answers
	awk '$2 != 0 { exit 1 }' answers || die "a timed run failed"
	tail -n +2 printed >documents
	tail -n +5 answers | awk '
		NR % 4 == 2 { print $1 >"sort_ns" }
		NR % 4 == 0 { print $1 >"cp_ns" }'
}

# median FILE: of a column of numbers
median()
{
	sort -g "$1" | sed -n "$(((ROUNDS + 1) / 2))p"
}

# ns_to_ms: lines "label ns" as "label ms"
ns_to_ms()
{
	awk '{ print $1, $2 / 1e6 }'
}

show_times()
{
	local sort_ns cp_ns

	sort_ns=$(median sort_ns)
	cp_ns=$(median cp_ns)
	echo
	echo "  From process start to process end, median of $ROUNDS runs in turn:"
	printf '%s\n' "blinksort $sort_ns" "cp $cp_ns" | ns_to_ms | bars
	printf '    sorting takes %s%.2f%s times as long as copying\n' "$bold" \
		"$(echo "$sort_ns $cp_ns" | awk '{ print $1 / $2 }')" "$plain"
}

# value KEY: the number or the word that stands behind "KEY" in the run
value()
{
	sed 's/.*"'"$1"'": *"\{0,1\}\([a-z0-9]*\).*/\1/' run
}

show_phases()
{
	local line

	line=$(nl -w 1 sort_ns | sort -g -k 2 | sed -n "$(((ROUNDS + 1) / 2))p")
	sed -n "${line%%[!0-9]*}p" documents >run
	echo
	echo "  Where the time of that run went ($(value threads) threads," \
		"$(value kernel) kernels, input by $(value io)):"
	# "phases_ns": {"NAME": NS, ...}
	sed 's/.*"phases_ns": *{\([^}]*\)}.*/\1/' run | tr ',' '\n' |
		sed 's/[": ]\{1,\}/ /g' | ns_to_ms | bars
}

find_spawn >/dev/null
PATH=$BIN:$PATH
cd "$SCRATCH"
printf '%s  A million records of 100 bytes, file to file%s\n\n' "$bold" "$plain"
make_and_check
measure
show_times
show_phases
