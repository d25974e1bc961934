#!/bin/bash
# check_sort_head.sh - blinksort --head: in memory, beyond it, from pipes and by
# several ranks
#
# What it writes are the first records of what the reference sorts, of which
# another program has dropped duplicates where that is asked for.

# shellcheck disable=SC2317 # cases are called by check
# shellcheck source=tests/programs/external_ranks_lib.sh
. "$(dirname "$0")/external_ranks_lib.sh"

rounds=12 large_rounds=6
if [ -n "$QUICK$SANITIZED" ]; then
	rounds=3 large_rounds=2
fi
readonly SIZE=30 KEYS=(--record-size=30 --key=3:9)

# first_of_keys <SORTED >FIRSTS: one record of each key
first_of_keys()
{
	python3 -c '
import sys
data, before = sys.stdin.buffer.read(), None
for at in range(0, len(data), 30):
    key = data[at + 3:at + 12]
    if key != before:
        sys.stdout.buffer.write(data[at:at + 30])
    before = key'
}

# make_input SHAPE COUNT SEED: "in", and "sorted"
make_input()
{
	make_shape "$1" "$2" "$3" "${KEYS[@]}" >in
	sort_reference in -o sorted "${KEYS[@]}"
}

# want_head N: the first of what is sorted
want_head()
{
	head -c $(($1 * SIZE)) sorted >want
}

# random_head COUNT: in $n, from few to more than there are
random_head()
{
	local most=(3 1000 "$(($1 / 3 + 1))" "$(($1 + 10))")

	random_below ${#most[@]}
	random_below "${most[random]}"
	n=$((random + 1))
}

random_options()
{
	random_below ${#KERNELS[@]}
	options=(--kernel="${KERNELS[random]}")
	random_below 3
	options+=(--splitters="${SPLITTERS[random]}")
	random_below 4
	options+=(--threads=$((random + 1)))
}

# case_shape SHAPE
case_shape()
{
	local round options random n count

	for ((round = 0; round < rounds; round++)); do
		random_below 70000
		count=$random
		make_input "$1" "$count" $((SEED + round))
		random_head "$count"
		want_head "$n"
		random_options
		random_below 4
		expect_sorted in -o out "${KEYS[@]}" --head="$n" \
			--io="${IO_MODES[random]}" "${options[@]}"
		cmp -s out want || fail "$1 $count: --head=$n ${options[*]}"
	done
}

# case_beyond SHAPE: of many records; the first of them, in a third of the turns
# so many that memory does not keep them
case_beyond()
{
	local round options random n

	make_input "$1" 700000 "$SEED"
	for ((round = 0; round < large_rounds; round++)); do
		random_below 5000
		n=$((random + 1))
		[ $((round % 3)) != 2 ] || n=$((random * 80 + 100000))
		want_head "$n"
		random_options
		expect_sorted in -o out "${KEYS[@]}" --head="$n" --io=direct \
			-S 14M "${options[@]}" --json
		cmp -s out want || fail "$1: --head=$n ${options[*]}"
		[ "$n" -gt 5000 ] ||
			expect_match '"way": "head".*"spilled_bytes": 0' "$STDOUT"
		expect_match '"written_records": '"$n," "$STDOUT"
		# shellcheck disable=SC2002 # a pipe is wanted
		cat in | "$BIN/blinksort" - -o - "${KEYS[@]}" --head="$n" \
			-S 14M "${options[@]}" | cmp - want ||
			fail "$1: pipe, --head=$n ${options[*]}"
	done
}

# The runs of too many records for the memory: what is spilled follows from how
# many are wanted.
case_spill()
{
	local spilled

	make_input uniform 1000000 "$SEED"
	want_head 100000
	expect_sorted in -o out "${KEYS[@]}" --head=100000 --io=direct -S 12M \
		--json
	cmp out want
	spilled=$(grep -o '"spilled_bytes": [0-9]*' "$STDOUT" | tail -n 1)
	[ "${spilled##* }" -lt 20000000 ] || fail "$spilled"
}

# As many as there are, and more: all are wanted.
case_all()
{
	local n

	make_input uniform 700000 "$SEED"
	for n in 700000 700001 9223372036854775807; do
		expect_sorted in -o out "${KEYS[@]}" --head="$n" --io=direct \
			-S 14M
		cmp -s out sorted || fail "--head=$n"
		# shellcheck disable=SC2002 # a pipe is wanted
		cat in | "$BIN/blinksort" - -o - "${KEYS[@]}" --head="$n" \
			-S 14M | cmp - sorted || fail "pipe, --head=$n"
	done
}

# Large records, of which only the keys are read first.
case_keys()
{
	"$BIN/blinkgen" 400000 whole
	sort_reference whole -o sorted --record-size=40000 --key=0:10
	head -c 4000000 sorted >want
	expect_sorted whole -o out --record-size=40000 --head=100 -S 8M \
		--io=direct --json
	cmp out want
}

case_counted()
{
	head -c 300000 /dev/urandom >in
	sort_reference in -o sorted --record-size=1 --key=0:1
	head -c 1000 sorted >want
	expect_sorted in -o out --record-size=1 --head=1000 --checksum
	cmp out want
	expect_sorted in -o out --record-size=1 --head=1000 -S 9M --io=direct
	cmp out want
}

# case_unique SHAPE
case_unique()
{
	local n

	make_input "$1" 300000 "$SEED"
	first_of_keys <sorted >firsts
	mv firsts sorted
	for n in 1 2 1000 50000; do
		want_head "$n"
		expect_sorted in -o out "${KEYS[@]}" --unique --head="$n"
		cmp -s out want || fail "--head=$n"
		expect_sorted in -o out "${KEYS[@]}" --unique --head="$n" -S 8M \
			--io=direct
		cmp -s out want || fail "--head=$n beyond memory"
	done
}

# Of no records the first ones are none, and a stream tells only at its end.
case_nothing()
{
	local memory

	: >empty
	for memory in "" "-S 14M"; do
		# shellcheck disable=SC2086 # two words or none
		expect_sorted empty -o out --head=3 $memory
		expect_empty out
		# shellcheck disable=SC2086
		"$BIN/blinksort" - -o out --head=3 $memory <empty
		expect_empty out
		# shellcheck disable=SC2086,SC2002 # a pipe is wanted
		cat empty | "$BIN/blinksort" - -o - --head=3 $memory >out
		expect_empty out
	done
}

case_parts()
{
	make_input uniform 50000 "$SEED"
	want_head 1001
	expect_sorted in -o out-0 -o out-1 -o out-2 "${KEYS[@]}" --head=1001
	cat out-0 out-1 out-2 | cmp - want
	[ "$(stat -c %s out-0)" = $((333 * SIZE)) ]
	expect_sorted in -o out-0 -o out-1 -o out-2 "${KEYS[@]}" --head=1001 \
		-S 9M --io=direct
	cat out-0 out-1 out-2 | cmp - want
}

# The sum is of what is written.
case_checksum()
{
	local how

	"$BIN/blinkgen" 100000 in
	for how in "" "-S 8M --io=direct"; do
		# shellcheck disable=SC2086 # several words
		expect_sorted in -o out --checksum --head=777 $how
		"$BIN/blinkval" out 2>report
		expect_match "^Checksum: $(cat "$STDOUT")\$" report
	done
}

case_explain()
{
	truncate -s 100G in
	expect_sorted in -o out --head=1000 -S 100M --explain \
		--disk-rates=1G:1G:1G
	expect_match 'head +only the first 1000 are written' "$STDOUT"
	expect_match 'nothing is spilled' "$STDOUT"
	expect_sorted in -o out --head=100000000 -S 100M --explain \
		--disk-rates=1G:1G:1G
	expect_match 'or are not wanted' "$STDOUT"
}

# case_ranks RANKS GATHER
case_ranks()
{
	local ranks=$1 gather=$2 round options random shape n count
	local how=(even random first last) files=(-o out.%r)

	[ -z "$gather" ] || files=(--gather=out)
	for ((round = 0; round < rounds; round++)); do
		random_below ${#SHAPES[@]}
		shape=${SHAPES[random]}
		random_below 30000
		count=$random
		make_input "$shape" "$count" "$round"
		random_head "$count"
		random_options
		[ $((round % 3)) != 0 ] || options+=(--by-reference=auto)
		if [ $((round % 4)) = 3 ]; then
			options+=(--unique)
			first_of_keys <sorted >firsts
			mv firsts sorted
		fi
		want_head "$n"
		cut_input in "$SIZE" "$ranks" "${how[round % 4]}"
		sort_by_ranks "$ranks" in.%r "${files[@]}" "${KEYS[@]}" \
			--head="$n" "${options[@]}"
		[ -n "$gather" ] || cat out.? >out
		cmp -s out want ||
			fail "$ranks ranks, $shape, --head=$n, $round: ${options[*]}"
		rm -f out out.? in.?
	done
}

# case_external_ranks SHAPE RANKS OPTION...
case_external_ranks()
{
	local ranks=$2 n

	make_whole "$1" 100 "$ranks" random --key=0:10
	shift 2
	mv want sorted
	for n in 1 1000 70000 300000; do
		head -c $((n * 100)) sorted >want
		expect_external "$ranks" --key=0:10 --head="$n" "$@"
	done
}

# The files of each rank lie on two devices, which are read side by side unless
# the first records stay in memory: those of equal keys that come first.
case_devices()
{
	local rank folder rank_options=()

	folder=$(mktemp -d /dev/shm/blinksort-head.XXXXXX)
	at_end 'rm -rf "$folder"'
	make_whole all-equal 100 4 even --key=0:10
	mv want sorted
	mv in.1 "$folder/second.0"
	mv in.2 in.1
	mv in.3 "$folder/second.1"
	for rank in 0 1; do
		rank_options[rank]="-o out.$rank $folder/second.$rank"
	done
	for n in 1000 200000; do
		head -c $((n * 100)) sorted >want
		MEMORY=20M expect_external 2 --key=0:10 --head="$n"
	done
}

# A rank that does not sort has no part of the output.
case_roles()
{
	make_whole uniform 100 3 even --key=0:10
	mv want sorted
	head -c 200000 sorted >want
	sort_externally 3 --key=0:10 --head=2000 --roles=sort:1-2
	cat out.1 out.2 | cmp - want
}

case_refused()
{
	"$BIN/blinkgen" 1000 in
	expect_refused 2 '--head=0: not a number from 1' in -o out --head=0
	expect_refused 2 '--head=-1: not a number' in -o out --head=-1
	expect_refused 2 '--head=1k: not a number' in -o out --head=1k
	expect_folder . in
}

case_ranks_differ()
{
	local statuses=() pids=() rank

	"$BIN/blinkgen" 1000 in
	cut_input in 100 2 even
	for rank in 0 1; do
		start_rank "$rank" timeout 60 "${BLINKSORT[@]}" "in.$rank" \
			-o "out.$rank" --nodes='127.0.0.[2-3]' --rank="$rank" \
			--job="differ.$$" --head=$((rank + 5))
	done
	wait_ranks 0 1
	# The first to tell may end the other, which then names it.
	[[ ${statuses[*]} =~ ^(2\ 2|2\ 4|4\ 2)$ ]] || fail "${statuses[*]}"
	cat err.0 err.1 >errs
	expect_match 'has another --head than rank' errs
}

mapfile -t SHAPES < <(make_shape --list)
for shape in "${SHAPES[@]}"; do
	check "shape_$shape" case_shape "$shape"
done
for shape in uniform zipf few-distinct; do
	check "beyond_$shape" case_beyond "$shape"
	check "unique_$shape" case_unique "$shape"
done
check spill case_spill
check all case_all
check keys case_keys
check counted case_counted
check nothing case_nothing
check parts case_parts
check checksum case_checksum
check explain case_explain
for ranks in 2 4; do
	check "ranks_$ranks" case_ranks "$ranks" ""
	check "gathered_$ranks" case_ranks "$ranks" yes
done
for shape in uniform sorted; do
	check "external_ranks_$shape" case_external_ranks "$shape" 3
done
check external_rounds case_external_ranks uniform 2 --schedule=rounds
if [ -w /dev/shm ]; then
	check devices case_devices
else
	skip devices "no /dev/shm here"
fi
check roles case_roles
check refused case_refused
check ranks_differ case_ranks_differ
finish
