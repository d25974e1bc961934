#!/bin/bash
# check_sort_numbers.sh - blinksort --key=random and --numbers, of one process and
# of several ranks
#
# What they write is what numbers_reference.py does, which knows the permutation by
# a program of its own; and no release changes it.

# shellcheck disable=SC2317 # cases are called by check
# shellcheck source=tests/programs/cluster_lib.sh
. "$(dirname "$0")/cluster_lib.sh"

readonly REFERENCE=$REPO/tests/programs/numbers_reference.py
# Less than the inputs here have, and past the page cache, where that counts
readonly LITTLE=(-S 12M --io=direct)
COUNT=160000
[ -z "$QUICK$SANITIZED" ] || COUNT=130000

# make_in SIZE COUNT: the file "in"
make_in()
{
	size=$1
	make_shape few-distinct "$2" "$SEED" --record-size="$1" --key=0:1 >in
}

# want KEYS NUMBERS [UNIQUE]: the file "want", and the options that ask for it
want()
{
	local key

	python3 "$REFERENCE" "$size" "$1" "$2" "${3:-no}" in >want
	options=(--record-size="$size")
	for key in ${1//,/ }; do
		options+=(--key="$key")
	done
	[ "$2" = 0 ] || options+=(--numbers=u$((8 * $2)))
	[ -z "${3:-}" ] || options+=(--unique="$3")
}

# expect_want OPTION...: from the file, and from a pipe to a pipe
expect_want()
{
	expect_sorted in -o out "${options[@]}" "$@"
	cmp -s out want || fail "not the reference: ${options[*]} $*"
	"${BLINKSORT[@]}" - -o - "${options[@]}" "$@" <in >out 2>"$STDERR" ||
		fail "$(cat "$STDERR"): ${options[*]} $*"
	cmp -s out want || fail "by a pipe: ${options[*]} $*"
	rm out
}

case_sizes()
{
	local size count

	for size in 1 2 3 7 8 100 1000; do
		for count in 0 1 2 4097; do
			make_in "$size" "$count"
			want random:42 0
			expect_want
			want random:0 4
			expect_want --threads=1
			want 0:1 8
			expect_want --threads=3
			want 0:1,random:18446744073709551615 8
			expect_want
			want 0:1 4 last
			expect_want
		done
	done
}

case_external()
{
	make_in 100 "$COUNT"
	want random:42 0
	expect_want "${LITTLE[@]}"
	want random:42 4
	expect_want "${LITTLE[@]}"
	# A slice that the random key, which follows in memory, would continue
	want 1:2,99:1,random:7 0
	expect_want "${LITTLE[@]}" --threads=1 --compress=lz4
	want 0:10 8
	expect_want "${LITTLE[@]}" --batch-size=2
	want 1:2 4 first
	expect_want "${LITTLE[@]}"
	want 1:2 8 last
	expect_want "${LITTLE[@]}"
}

# Records that would be fetched by their keys, and such that would be counted
case_other_ways()
{
	make_in 40000 600
	want 0:10 4
	expect_want "${LITTLE[@]}"
	want random:3 0
	expect_want "${LITTLE[@]}"
	make_in 2 70000
	want 0:2 8
	expect_want
	want 0:2,random:5 0
	expect_want
}

# Several inputs are numbered one behind the other; outputs have equal parts.
case_files()
{
	local file

	make_in 100 10000
	head -c 300000 in >a
	tail -c +300001 in >b
	want 0:10 4
	expect_sorted a b -o out.0 -o out.1 -o out.2 "${options[@]}"
	cat out.? | expect_same want -
	[ "$(stat -c %s out.1)" = 13332 ]
	want random:42 0
	expect_sorted a b -o out.0 -o out.1 "${options[@]}"
	cat out.[01] | expect_same want -
	# Behind headers, which are not numbered
	for file in a b; do
		{ printf 12345; cat "$file"; } >"head.$file"
	done
	want 0:10 4
	expect_sorted head.a head.b -o out "${options[@]}" --header=5:drop
	expect_same out want
	"${BLINKSORT[@]}" - head.b -o - "${options[@]}" <head.a \
		--header=5:drop >out
	expect_same out want
	want random:42 0
	expect_sorted head.a head.b -o out "${options[@]}" --header=5
	{ printf 12345; cat want; } | expect_same out -
}

# No release may change them.  The order of eight records for the seed 42
case_vectors()
{
	local orders

	printf '01234567' >in
	expect_sorted in -o out --record-size=1 --key=random:42
	[ "$(cat out)" = 53107246 ] || fail "seed 42: $(cat out)"
	expect_sorted in -o out --record-size=1 --key=random:43 --numbers=u32
	orders=$(od -An -v -w32 -tu4 out | tr -d ' ')
	[ "$orders" = 02156347 ] || fail "seed 43: $orders"
}

# Each of the 24 orders of four records comes about as often, over 24,000 seeds:
# 49.7 is the bound of chance, at 1 in 1,000, with 23 degrees of freedom.  So does
# each record at each of 16 places (225 degrees).
case_chance()
{
	PYTHONPATH=${REFERENCE%/*} python3 -c '
from collections import Counter
from numbers_reference import mixer

def spread(counts, cells, seeds):
    wanted = seeds / cells
    return sum((counts[i] - wanted) ** 2 for i in counts) / wanted + (
        (cells - len(counts)) * wanted)

orders, places = Counter(), Counter()
for seed in range(24000):
    mix = mixer(seed)
    orders[tuple(sorted(range(4), key=mix))] += 1
    if seed < 6000:
        places.update(enumerate(sorted(range(16), key=mix)))
found = spread(orders, 24, 24000), spread(places, 256, 16 * 6000)
assert found[0] < 49.7 and found[1] < 300, found'
}

case_reports()
{
	local sum

	make_in 100 5000
	expect_sorted in -o out --key=98:2 --key=random:42 --json --checksum
	python3 -c '
import json, sys
report = json.load(open(sys.argv[1]))
assert report["keys"] == ["98:2", "random:42"], report
assert report["numbers"] is None and report["record_size"] == 100, report
assert report["records"] == 5000 and report["bytes"] == 500000, report' \
		"$STDOUT"
	"$BIN/blinkval" out --against in --key=98:2 --key=random:42 2>report
	"$BIN/blinkval" out --against in --key=random:1 2>report
	expect_match '^SUCCESS - all records are there$' report
	head -c 499900 in >short
	expect_status 1 "$BIN/blinkval" out --against short --key=random:1 -q
	expect_sorted in -o out --numbers=u64 --checksum
	sum=$(cat "$STDOUT")
	expect_status 1 "$BIN/blinkval" out --record-size=8 --key=0:8 2>report
	expect_match "^Checksum: $sum\$" report
	expect_sorted in -o out --numbers=u32 --json
	expect_match '"numbers": "u32"' "$STDOUT"
	expect_sorted in -o out --numbers=u32 --explain
	expect_match 'to each of them 8 bytes are appended' "$STDOUT"
}

case_refused()
{
	make_in 100 10
	expect_refused 2 '^--key=random:: the seed is not a number' \
		in -o out --key=random:
	expect_refused 2 '^--key=random:-1: the seed is not a number' \
		in -o out --key=random:-1
	expect_refused 2 '^--key=0:10: behind a random key' \
		in -o out --key=random:1 --key=0:10
	expect_refused 2 '^--unique: not with a random key' \
		in -o out --key=random:1 -u
	expect_refused 2 '^--numbers=u16: not u32 or u64$' in -o out --numbers=u16
	expect_refused 2 '^--record-size: at most 16777208 bytes' \
		in -o out --record-size=16777216 --numbers=u32
	expect_refused 2 '^--suppose: not with --numbers' \
		--explain --suppose=1:1000 --numbers=u32
	expect_refused 2 '^--merge: not with --numbers' in -o out -m --numbers=u32
	expect_refused 2 '^--merge: not with --unique=last' in -o out -m -u \
		--unique=last
	expect_refused 2 '^--head: not with --unique=last' in -o out --head=3 \
		--unique=last
	expect_refused 2 '^--numbers: behind a header' in -o out --numbers=u32 \
		--header=100
	truncate -s 4294967297 large
	expect_refused 2 '^--numbers=u32: more than 4294967296 records: take u64$' \
		large -o out --record-size=1 --key=0:1 --numbers=u32
	expect_status 2 "$BIN/blinkval" in --key=random:1 2>report
	expect_match '^blinkval: --key: a random key alone leaves nothing' report
}

# expect_ranks RANKS OPTION...: of inputs of their own, and of a shared one
expect_ranks()
{
	sort_by_ranks "$@" "${options[@]}" in.%r -o out.%r
	cat out.? | cmp -s - want || fail "$* ${options[*]}"
	sort_by_ranks "$@" "${options[@]}" in -o out.%r --shared-input
	cat out.? | cmp -s - want || fail "shared: $* ${options[*]}"
	rm out.?
}

# case_ranks RANKS
case_ranks()
{
	make_in 100 50000
	cut_input in 100 "$1" random
	want random:42 0
	expect_ranks "$1"
	want 0:10 4
	expect_ranks "$1" -S 12M
	want 1:2,random:1 8
	expect_ranks "$1"
	want 1:2 4 last
	expect_ranks "$1"
}

case_gathered()
{
	make_in 100 20000
	cut_input in 100 3 even
	want random:42 4
	sort_by_ranks 3 in.%r --gather=out "${options[@]}"
	expect_same out want
	sort_by_ranks 3 in.%r -o out.%r "${options[@]}" --roles=keep:0-1
	cat out.? | expect_same want -
	sort_by_ranks 3 in.%r -o out.%r "${options[@]}" --by-reference=yes
	cat out.? | expect_same want -
}

# expect_differ WORDS OPTION OPTION: two ranks with one of these each
expect_differ()
{
	local rank job=numbers.$$.$RANDOM pids=() statuses=()
	local choices=("${@:2}")

	for rank in 0 1; do
		start_rank "$rank" timeout 120 "${BLINKSORT[@]}" \
			--nodes="127.0.0.[2-3]" --rank="$rank" --job="$job" \
			--deadline="$DEADLINE_S" "${choices[rank]}" \
			in."$rank" -o out."$rank"
	done
	wait_ranks 0 1
	for rank in 0 1; do
		[[ ${statuses[rank]} = [24] ]] ||
			fail "rank $rank: ${statuses[rank]}: $(cat "err.$rank")"
		expect_match "has another $1 than rank" "err.$rank"
		[ ! -e "out.$rank" ]
	done
}

case_ranks_refuse()
{
	make_in 100 100
	cut_input in 100 2 even
	expect_differ --key --key=random:1 --key=random:2
	expect_differ --numbers --numbers=u32 --numbers=u64
	expect_differ --numbers --numbers=u32 --key=0:10
	expect_differ --unique --unique --unique=last
	expect_refused 2 'not for one rank' --nodes=127.0.0.2 --rank=0 \
		--job="numbers.$$" in -o out --numbers=u32
}

check sizes case_sizes
check external case_external
check other_ways case_other_ways
check files case_files
check vectors case_vectors
check chance case_chance
check reports case_reports
check refused case_refused
for ranks in 2 4; do
	check "ranks_$ranks" case_ranks "$ranks"
done
check gathered case_gathered
check ranks_refuse case_ranks_refuse
finish
