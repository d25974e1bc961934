#!/bin/bash
# check_cluster_shares.sh - which records go to which rank, and any way at all
#
# Ranks without daemons, in many combinations of shape, cut and options.

# shellcheck disable=SC2317 # cases are called by check
# shellcheck source=tests/programs/cluster_lib.sh
. "$(dirname "$0")/cluster_lib.sh"

SCHEDULES=(rounds all-at-once)
mapfile -t SHAPES < <(make_shape --list)
readonly SCHEDULES SHAPES
random_rounds=30 COUNT=40000
if [ -n "$QUICK$SANITIZED" ]; then
	random_rounds=6 COUNT=10000
fi

# ranks COUNT [OPTION...]: all of them, and those of rank_options[RANK] for one
rank_options=()
ranks()
{
	local count=$1 rank all
	shift

	mapfile -t all < <(seq 0 $((count - 1)))
	for rank in "${all[@]}"; do
		# shellcheck disable=SC2086 # several words
		start_rank "$rank" "${BLINKSORT[@]}" --rank="$rank" \
			--nodes="127.0.0.[2-$((count + 1))]" \
			--job="$SCRATCH" --deadline="$DEADLINE_S" "in.$rank" \
			-o "out.$rank" "$@" ${rank_options[rank]:-}
	done
	wait_ranks "${all[@]}"
}

# expect_ranks COUNT WHAT OPTION...: their outputs together are the file "want"
expect_ranks()
{
	local count=$1 what=$2 pids=() statuses=()
	shift 2

	rm -f out.*
	ranks "$count" "$@"
	[[ ${statuses[*]} =~ ^[0\ ]*$ ]] ||
		fail "${statuses[*]}: $what: $*: $(cat err.*)"
	expect_whole "$count" want || fail "$count ranks: $what: $*"
}

# random_options: how the ranks go about it, in $options
random_options()
{
	random_below 2
	options=(--schedule="${SCHEDULES[random]}")
	random_below 3
	options+=(--splitters="${SPLITTERS[random]}")
	random_below 4
	options+=(--io="${IO_MODES[random]}")
	random_below 3
	options+=(--threads=$((random + 1)))
	random_below 2
	[ "$random" = 0 ] || options+=(--pin=no)
	random_below 2
	[ "$random" = 0 ] || options+=(--by-reference=auto)
	random_below 3
	case $random in
	0) options+=(--plain) ;;
	1)
		random_below 1500
		options+=(--payload=$((256 + random)))
		;;
	esac
	random_below 4
	[ "$random" = 0 ] || options+=(--exchange-threads="$random")
}

# random_records: of any size, key and shape, described in $made and $described,
# as the input of $count ranks
random_records()
{
	local size offset

	random_below 200
	size=$((random + 1))
	random_below "$size"
	offset=$random
	random_below $((size - offset))
	described=(--record-size="$size" --key="$offset:$((random + 1))")
	random_below 5000
	made="$random $SEED ${described[*]}"
	random_below ${#SHAPES[@]}
	made="${SHAPES[random]} $made"
	# shellcheck disable=SC2086 # several words
	make_shape $made >whole
	random_below 7
	count=$((random + 1))
	cut_input whole "$size" "$count" random
}

case_random()
{
	local round made count random options described

	RANDOM=$((SEED + $1))
	for ((round = 0; round < random_rounds; round++)); do
		rm -f in.*
		random_records
		sort_reference whole -o want "${described[@]}"
		random_options
		expect_ranks "$count" "$made" "${described[@]}" "${options[@]}"
	done
}

# All equal, each share is as large as the others, in order of the ranks.
case_equal_keys()
{
	local rank

	make_shape all-equal "$COUNT" "$SEED" >whole
	sort_reference whole -o want
	cut_input whole 100 4 random
	expect_ranks 4 all-equal
	for rank in 0 1 2 3; do
		[ "$(stat -c %s "out.$rank")" = $((COUNT * 100 / 4)) ] ||
			fail "share $rank: $(stat -c %s "out.$rank") bytes"
	done
	# Nobody else may take the pieces of a rank's input out of order.
	expect_ranks 4 all-equal --splitters=static --threads=3 --io=mmap
}

# Records that a look finds evenly spread, though most lie in one part: shares
# are sampled when sizes show it.  What is looked at are 16 records at each of
# 32 places.
case_looks_even()
{
	local rank bytes

	python3 - "$SEED" <<-'END'
		import random, sys
		source = random.Random(int(sys.argv[1]))
		count = 20000
		for rank in range(4):
		    data = bytearray(source.randbytes(100 * count))
		    data[0::100] = bytes(b & 31 for b in data[0::100])
		    for place in range(32):
		        first = count * place // 32
		        for i in range(first, first + 16):
		            data[100 * i] = source.randrange(256)
		    open("in.%d" % rank, "wb").write(data)
	END
	cat in.0 in.1 in.2 in.3 >whole
	sort_reference whole -o want
	bytes=$(stat -c %s whole)
	expect_ranks 4 looks-even --json --threads="$1"
	expect_match '"splitters": "sampled"' said.0
	for rank in 0 1 2 3; do
		[ "$(stat -c %s "out.$rank")" -lt $((bytes * 3 / 10)) ] ||
			fail "share $rank: $(stat -c %s "out.$rank") bytes"
	done
	expect_ranks 4 looks-even --splitters=static --threads="$1"
	[ "$(stat -c %s out.0)" -gt $((bytes * 9 / 10)) ] ||
		fail "it could have been shared by equal ranges"
}

# Several inputs and outputs of a rank, as with one process.
case_files()
{
	local pids=() statuses=()

	make_shape ascii "$COUNT" "$SEED" >whole
	cut_input whole 100 3 random
	sort_reference in.0 in.1 in.2 in.0 -o want
	rank_options=([0]="-o out.0z" [2]="in.0 --sync")
	ranks 3
	[ "${statuses[*]}" = "0 0 0" ] || fail "${statuses[*]}: $(cat err.*)"
	cat out.0 out.0z out.1 out.2 >out
	expect_same out want
}

# case_no_memory LIMIT: refused before, or when shares are known; all end
case_no_memory()
{
	local pids=() statuses=() rank

	make_shape ascii "$COUNT" "$SEED" >whole
	cut_input whole 100 3 even
	rank_options[1]=--memory=$1
	ranks 3
	[ "${statuses[*]}" = "4 5 4" ] || fail "${statuses[*]}: $(cat err.*)"
	for rank in 0 1 2; do
		expect_one_line "err.$rank"
		expect_match ': --memory: .* are allowed$' "err.$rank"
	done
	expect_none
}

check equal_keys case_equal_keys
check looks_even_1 case_looks_even 1
check looks_even_2 case_looks_even 2
check files case_files
check no_memory_early case_no_memory 100K
check no_memory_late case_no_memory $((COUNT * 100 / 3 + 300000))
check random_1 case_random 1
check random_2 case_random 2
check random_3 case_random 3
finish
