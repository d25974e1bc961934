#!/bin/bash
# check_sort_unique.sh - blinksort --unique, of one process and of several ranks
#
# What it writes is what the reference sorts, without the records whose key is
# that of the record before, or, with --unique=last, behind: these are dropped
# here, by another program.

# shellcheck disable=SC2317 # cases are called by check
# shellcheck source=tests/programs/cluster_lib.sh
. "$(dirname "$0")/cluster_lib.sh"

COUNTS=(0 1 2 99 4097 20480 70000)
rounds=16
if [ -n "$QUICK$SANITIZED" ]; then
	COUNTS=(0 1 4097)
	rounds=4
fi
readonly SIZE=30 OFFSET=3 LENGTH=9
which=first # of the records with equal keys

# drop_duplicates SIZE OFFSET LENGTH <SORTED >KEPT
drop_duplicates()
{
	python3 -c '
import sys
which = sys.argv[1]
size, offset, length = map(int, sys.argv[2:])
data, kept = sys.stdin.buffer.read(), {}
for at in range(0, len(data), size):
    key = data[at + offset:at + offset + length]
    if which == "last" or key not in kept:
        kept[key] = data[at:at + size]
sys.stdout.buffer.write(b"".join(kept.values()))' "$which" "$@"
}

# make_input SHAPE COUNT SEED [SIZE OFFSET LENGTH]: the file "in", and "want"
make_input()
{
	local size=${4:-$SIZE} offset=${5:-$OFFSET} length=${6:-$LENGTH}
	local shape=(--record-size="$size" --key="$offset:$length")

	make_shape "$1" "$2" "$3" "${shape[@]}" >in
	sort_reference in -o sorted "${shape[@]}"
	drop_duplicates "$size" "$offset" "$length" <sorted >want
}

random_options()
{
	random_below ${#KERNELS[@]}
	options=(--kernel="${KERNELS[random]}")
	random_below 3
	options+=(--splitters="${SPLITTERS[random]}")
	random_below 4
	options+=(--threads=$((random + 1)) --unique="$which")
}

# What the report says was dropped is what the output lacks.
expect_dropped()
{
	local lacks=$(($(stat -c %s in) - $(stat -c %s want)))

	python3 -c '
import json, sys
report = json.load(open(sys.argv[1]))
lacks, size = int(sys.argv[2]), report["record_size"]
assert report["dropped_records"] * size == lacks, report' "$STDOUT" "$lacks"
}

# case_shape SHAPE
case_shape()
{
	local c i options random which

	for ((i = 0; i < 2 * ${#COUNTS[@]}; i++)); do
		c=$((i / 2))
		which=first
		[ $((i % 2)) = 0 ] || which=last
		make_input "$1" "${COUNTS[c]}" $((SEED + c))
		random_options
		random_below 4
		run_tested in -o out --json --io="${IO_MODES[random]}" \
			--record-size="$SIZE" --key="$OFFSET:$LENGTH" "${options[@]}"
		[ "$status" = 0 ] || fail "$1: status $status: $(cat "$STDERR")"
		cmp -s out want ||
			fail "make_shape $1 ${COUNTS[c]} $((SEED + c)): ${options[*]}"
		expect_dropped
	done
}

# Each has its part of what remains, and is no longer.
case_parts()
{
	local outs=(out-0 out-1 out-2) options random

	make_input few-distinct 50000 1 4 0 2
	random_options
	expect_sorted in "${outs[@]/#/-o}" --record-size=4 --key=0:2 \
		"${options[@]}"
	cat "${outs[@]}" | cmp - want
	python3 -c '
import os, sys
sizes = [os.path.getsize(name) for name in sys.argv[1:]]
assert max(sizes) - min(sizes) <= 4, sizes' "${outs[@]}"
}

# Room is needed only for what remains.
case_room()
{
	make_input few-distinct 50000 1 4 0 2
	(
		ulimit -f $(($(stat -c %s want) / 1024 + 1))
		expect_sorted in -o out --unique --record-size=4 --key=0:2
	)
	cmp out want
}

# All keys but the sign of zero; and records of which the key is everything.
case_types()
{
	python3 -c '
import struct, sys
numbers = [0.0, -0.0, 1.5, float("nan"), 0.0, 1.5, -0.0, float("nan")]
sys.stdout.buffer.write(struct.pack("<8d", *numbers))' >in
	expect_sorted in -o out --unique --record-size=8 --key=0:f64
	python3 -c '
import struct
found = struct.unpack("<4d", open("out", "rb").read())
assert [str(x) for x in found] == ["-0.0", "0.0", "1.5", "nan"], found'
	expect_sorted in -o out --unique --record-size=8 --key=0:f64:desc
	[ "$(stat -c %s out)" = 32 ]
	expect_sorted in -o out --unique --record-size=8 --key=0:f64:desc:nanlast
	python3 -c '
import struct
found = struct.unpack("<3d", open("out", "rb").read())
assert [str(x) for x in found] == ["1.5", "0.0", "nan"], found'
}

# Uniform keys need no sample, though all buckets are sorted before the chunks.
case_static()
{
	"$BIN/blinkgen" 100000 in
	expect_sorted in -o out --unique --json
	expect_match '"splitters": "static-256"' "$STDOUT"
}

# What is merged from runs, and from what a pipe brings.
case_external()
{
	local which shape

	for shape in few-distinct zipf; do
		for which in first last; do
			make_input "$shape" 160000 "$SEED" 100 0 10
			expect_sorted in -o out --unique="$which" --io=direct \
				--threads=2 -S 10M
			expect_same out want
			"${BLINKSORT[@]}" - -o - --unique="$which" -S 10M <in >out
			expect_same out want
		done
	done
}

# Records of which the key is everything are counted: any of them is the last.
case_counted()
{
	make_input uniform 300000 "$SEED" 2 0 2
	expect_sorted in -o out --unique=last --record-size=2 --key=0:2
	expect_same out want
}

case_refused()
{
	make_input uniform 10 1
	expect_refused 2 "^--unique=any: not first or last$" \
		in -o out --unique=any
}

case_checksum()
{
	make_input zipf 20000 "$SEED" 100 0 10
	expect_sorted in -o out --unique --checksum
	cmp out want
	"$BIN/blinkval" out 2>report
	expect_match "^Checksum: $(cat "$STDOUT")\$" report
}

# case_ranks RANKS GATHER
case_ranks()
{
	local ranks=$1 gather=$2 round options random shape
	local how=(even random first last) which=first files=(-o out.%r)

	[ -z "$gather" ] || files=(--gather=out)
	RANDOM=$((SEED + ranks))
	for ((round = 0; round < rounds; round++)); do
		random_below ${#SHAPES[@]}
		shape=${SHAPES[random]}
		random_below 30000
		[ $((round % 8)) -lt 4 ] || which=last
		make_input "$shape" "$random" "$round"
		cut_input in "$SIZE" "$ranks" "${how[round % 4]}"
		random_options
		[ $((round % 3)) != 0 ] || options+=(--by-reference=auto)
		sort_by_ranks "$ranks" in.%r "${files[@]}" "${options[@]}" \
			--record-size="$SIZE" --key="$OFFSET:$LENGTH"
		[ -n "$gather" ] || cat out.? >out
		cmp -s out want ||
			fail "$ranks ranks, $shape, $round: ${options[*]}"
		rm -f out out.? in.?
	done
}

mapfile -t SHAPES < <(make_shape --list)
for shape in "${SHAPES[@]}"; do
	check "shape_$shape" case_shape "$shape"
done
check parts case_parts
check room case_room
check types case_types
check static case_static
check checksum case_checksum
check external case_external
check counted case_counted
check refused case_refused
for ranks in 2 4; do
	check "ranks_$ranks" case_ranks "$ranks" ""
	check "gathered_$ranks" case_ranks "$ranks" yes
done
finish
