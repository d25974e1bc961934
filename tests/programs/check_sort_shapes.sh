#!/bin/bash
# check_sort_shapes.sh - blinksort's order against the reference's, for input
# of every shape
#
# Each input goes through some of the combinations of kernel, mode, splitters
# and threads; a walk over all of them, whose step shares no factor with their
# number, makes every combination meet many inputs.

# shellcheck disable=SC2317 # cases are called by check
. "$(dirname "$0")/sort_lib.sh"

THREADS=(1 2 3 5)
COUNTS=(0 1 2 3 7 8 99 100 101 1000 4097 20479 20480 20481 70000)
runs_each=5 random_rounds=150 big_rounds=24
if [ -n "$QUICK$SANITIZED" ]; then
	COUNTS=(0 1 3 100 1000 20481)
	runs_each=1 random_rounds=25 big_rounds=6
fi

# The walk goes on over all cases: they run in subshells, so where it stands
# follows from the number of the input.
combination_count=$((${#KERNELS[@]} * 4 * 3 * 4))

# options_for NUMBER: in $options
options_for()
{
	local walk=$((($1 * 37 + SEED) % combination_count))

	options=(--kernel="${KERNELS[walk % ${#KERNELS[@]}]}")
	walk=$((walk / ${#KERNELS[@]}))
	options+=(--io="${IO_MODES[walk % 4]}")
	walk=$((walk / 4))
	options+=(--splitters="${SPLITTERS[walk % 3]}")
	walk=$((walk / 3))
	options+=(--threads="${THREADS[walk]}")
}

# Of one input: compare_runs NUMBER RUNS "HOW IT WAS MADE" [OPTION...]
compare_runs()
{
	local number=$1 runs=$2 made=$3 run options
	shift 3

	sort_reference in -o want "$@"
	for ((run = 0; run < runs; run++)); do
		options_for $((number * runs + run))
		expect_sorted in -o out "${options[@]}" "$@"
		cmp -s out want ||
			fail "wrong order: make_shape $made; ${options[*]} $*"
	done
}

# case_shape SHAPE NUMBER-OF-SHAPE
case_shape()
{
	local c made

	for c in "${!COUNTS[@]}"; do
		made="$1 ${COUNTS[c]} $((SEED + c))"
		# shellcheck disable=SC2086 # several words
		make_shape $made >in
		compare_runs $(($2 * ${#COUNTS[@]} + c)) "$runs_each" "$made"
	done
}

# random_slice SIZE: a key within that, in $key; often short, now and then all
random_slice()
{
	local offset length

	random_below "$1"
	offset=$random
	length=$(($1 - offset))
	random_below 3
	if [ "$random" != 0 ] && [ "$length" -gt 20 ]; then
		length=20
	fi
	random_below "$length"
	key=$offset:$((random + 1))
	random_below 8
	[ "$random" != 0 ] || key=0:$1
}

# random_input SIZE COUNT SEED: some shape and some key, to the file "in"; what
# describes the records in $shape_options, how to make it again in $made
random_input()
{
	local key

	random_slice "$1"
	shape_options=(--record-size="$1" --key="$key")
	random_below ${#SHAPES[@]}
	made="${SHAPES[random]} $2 $3 ${shape_options[*]}"
	make_shape "${SHAPES[random]}" "$2" "$3" "${shape_options[@]}" >in
}

# Sizes, slices and counts drawn at random.
case_random()
{
	local round size made shape_options random

	RANDOM=$((SEED + $1))
	for ((round = 0; round < random_rounds; round++)); do
		random_below 300
		size=$((random + 1))
		random_below 3000
		random_input "$size" "$random" "$round"
		compare_runs "$round" 2 "$made" "${shape_options[@]}"
	done
}

# Records larger than pages and buffers, a few or just one.
case_big_records()
{
	local round size made shape_options random

	RANDOM=$((SEED + 1))
	for ((round = 0; round < big_rounds; round++)); do
		case $((round % 4)) in
		0) random_below 3000 && size=$((4097 + random)) ;;
		1) random_below 60000 && size=$((4097 + random)) ;;
		2) size=$((4096 << round % 3)) ;;
		3) random_below 3000000 && size=$((1000000 + random)) ;;
		esac
		random_below $((3000000 / size + 3))
		random_input "$size" "$random" "$round"
		compare_runs "$round" 3 "$made" "${shape_options[@]}"
	done
	size=$((16 << 20))
	shape_options=(--record-size="$size" --key=$((size - 1)):1)
	make_shape reversed 3 1 "${shape_options[@]}" >in
	compare_runs 0 3 "reversed 3 1" "${shape_options[@]}"
}

# split_input PARTS COUNT SIZE: in at random places; names in $parts
split_input()
{
	local at=0 part cut

	parts=()
	for ((part = 1; part <= $1; part++)); do
		random_below $(($2 - at + 1))
		cut=$((part == $1 ? $2 - at : random))
		parts+=("part-$part")
		tail -c +$((at * $3 + 1)) in | head -c $((cut * $3)) \
			>"part-$part" || true
		at=$((at + cut))
	done
}

# One input in several files, empty ones too, and several outputs: as the
# reference does with all of it in one.
case_several_files()
{
	local round size made shape_options random count parts outs out options

	RANDOM=$((SEED + 2))
	for ((round = 0; round < random_rounds; round++)); do
		random_below 120
		size=$((random + 1))
		random_below 5000
		count=$random
		random_input "$size" "$count" "$round"
		sort_reference in -o want "${shape_options[@]}"
		random_below 6
		split_input $((random + 1)) "$count" "$size"
		random_below 4
		outs=()
		for ((out = 0; out <= random; out++)); do
			outs+=("out-$out")
		done
		options_for $((round * 5))
		expect_sorted "${parts[@]}" "${outs[@]/#/-o}" "${options[@]}" \
			"${shape_options[@]}"
		cat "${outs[@]}" | cmp -s - want ||
			fail "wrong order: make_shape $made; parts of" \
				"$(stat -c %s "${parts[@]}" | xargs) bytes" \
				"into ${#outs[@]}; ${options[*]}"
		rm -f part-* out-*
	done
}

# Every combination meets one input of more than a block in every set.
case_all_combinations()
{
	local made="$1 20481 $SEED"

	# shellcheck disable=SC2086 # several words
	make_shape $made >in
	compare_runs 0 "$combination_count" "$made"
}

mapfile -t SHAPES < <(make_shape --list)
for s in "${!SHAPES[@]}"; do
	check "shape_${SHAPES[s]}" case_shape "${SHAPES[s]}" "$s"
done
check random_records case_random 0
check big_records case_big_records
check several_files case_several_files
if [ -z "$QUICK$SANITIZED" ]; then
	check combinations_ascii case_all_combinations ascii
	check combinations_zipf case_all_combinations zipf
fi
finish
