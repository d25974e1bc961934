#!/bin/bash
# check_cluster_liar.sh - a rank that has the key and lies, over real sockets
#
# Three ranks: two of them are blinksort, and the third is lying_rank, a real
# one that changes what it says (lie.h).  Whatever it is, the two end with
# status 4, name it, and leave no output: none crashes, none waits for ever, and
# none takes a lie for a lack of memory.  (One that lives and does not say that it
# has sent all can make the others wait, as a slow one does.)  With a grid there are
# five ranks, or nine, of which one lies.

# shellcheck disable=SC2317 # cases are called by check
# shellcheck source=tests/programs/cluster_lib.sh
. "$(dirname "$0")/cluster_lib.sh"

COUNT=3000
# More than fits into the memory that the ranks are given.
readonly COUNT_BEYOND=300000
# A rank that hangs is killed after this many deadlines.
readonly DEADLINES_MAX=8
# What impossible numbers mean.
readonly FAULTY='it is faulty or of another version'

"$BIN/blinksh" keygen "$SCRATCH/key"
"$BIN/blinkgen" -a $COUNT "$SCRATCH/whole"
"$BIN/blinksort" "$SCRATCH/whole" -o "$SCRATCH/want"
"$BIN/blinkgen" -a $COUNT_BEYOND "$SCRATCH/large"
"$BIN/blinksort" "$SCRATCH/large" -o "$SCRATCH/want_large"
# The ranks of a job
all=(0 1 2)

# one_rank RANK COMMAND...: the deadline is the case's $deadline_s
one_rank()
{
	local rank=$1 output=(-o "out.$1")
	shift

	[ -z "${gathers-}" ] || output=(--gather=out.0)
	start_rank "$rank" timeout $((DEADLINES_MAX * deadline_s)) "$@" \
		--nodes="127.0.0.[2-$((${#all[@]} + 1))]" --rank="$rank" --job="$job" \
		--key-file="$SCRATCH/key" --deadline="$deadline_s" \
		-T "scratch.$rank" "${options[@]}" "in.$rank" "${output[@]}"
}

# run_with LIAR LIE...: all ranks, with $options
run_with()
{
	local liar=$1 rank
	shift

	deadline_s=$((3 * ${patience:-1}))
	job=liar.$$.$RANDOM
	cut_input "${whole:-$SCRATCH/whole}" 100 "${#all[@]}" even
	for rank in "${all[@]}"; do
		mkdir -p "scratch.$rank"
		[[ " ${options[*]} " != *" --shared-input "* ]] ||
			cp "${whole:-$SCRATCH/whole}" "in.$rank"
		if [ "$rank" = "$liar" ]; then
			one_rank "$rank" "$HELPERS/lying_rank" "$@" -- \
				--transport=udp
		else
			one_rank "$rank" "${BLINKSORT[@]}"
		fi
	done
}

# expect_found LIAR LIE...: by the rank's number, and why in the case's $words
expect_found()
{
	local liar=$1 rank pids=() statuses=() job deadline_s

	run_with "$@"
	for rank in "${all[@]}"; do
		[ "$rank" = "$liar" ] && continue
		wait_ranks "$rank"
		[ "${statuses[rank]}" = 4 ] ||
			fail "$*: rank $rank: ${statuses[rank]}: $(
				cat "err.$rank"
			)"
		expect_match "^blinksort: ${finder-.*rank $liar }${words+.*$words: $FAULTY}" \
			"err.$rank"
		expect_one_line "err.$rank"
		[ ! -e "out.$rank" ] || fail "$*: rank $rank has an output"
		expect_folder "scratch.$rank"
	done
	kill "${pids[liar]}" 2>/dev/null || true
	wait_ranks "$liar"
	# What the liar gave a name itself is its own affair.
	rm -f "out.$liar" said.* err.*
	expect_none
}

# lies OPTIONS LIE...: as told by the last rank, and by rank 0
lies()
{
	local options liar

	read -r -a options <<<"$1"
	shift
	for liar in 2 0; do
		expect_found "$liar" "$@"
	done
}

# --- the truth -----------------------------------------------------------------

# Through the same hands, with none of it changed.
case_truth()
{
	local pids=() statuses=() job deadline_s options=()

	run_with 1
	wait_ranks 0 1 2
	[ "${statuses[*]}" = "0 0 0" ] || fail "${statuses[*]}: $(cat err.*)"
	expect_whole 3 "$SCRATCH/want"
}

# --- lengths -------------------------------------------------------------------

# case_sampled K: a sample of 2^64 - K bytes, in segments that make it possible
case_sampled()
{
	lies --splitters=sampled "total:1:1:set:-$1" \
		field:1:segment_bytes:set:0xffffffff
	lies --splitters=sampled "total:1:1:set:-$1"
}

# The same where the others would have no need to sample.
case_made_to_sample()
{
	lies "" hello:any:13:set:0 total:1:1:set:-5000 \
		field:1:segment_bytes:set:0xffffffff
}

case_segments()
{
	local bytes

	for bytes in 0 223 0xffffffff; do
		lies "" field:1:segment_bytes:set:"$bytes"
	done
}

case_buckets()
{
	lies --splitters=sampled total:2:1:add:4
	lies --splitters=sampled total:2:1:add:-4
	lies --splitters=sampled total:2:1:set:0
	lies --splitters=sampled payload:2:3:add:1
}

# More than it has, a part of one, and the last of what it has twice.
case_records()
{
	lies "" total:1:1:add:300000
	lies "" total:1:1:add:1
	lies "" total:1:1:set:0
	lies "" total:1:1:set:-100
	lies "" hello:any:10:set:10 hello:any:21:set:10
	lies "" payload:1:0:add:1
	lies --unique payload:1:0:add:1
	lies --splitters=sampled total:3:1:add:100
	lies --splitters=sampled payload:3:0:add:1
}

# In collective 1 the words from the 1000th on are those of records.  One of them that
# is all ones, the key with the rest, is in no bucket but the last one of the last
# rank.
case_keys()
{
	local word record=()

	for ((word = 1000; word < 1025; word++)); do
		record+=("payload:1:$word:set:-1")
	done
	lies "" "${record[@]}"
	lies --unique "${record[@]}"
	lies --key=0:4 "${record[@]}"
	in_grid 9 4 "" "${record[@]/:1:/:5:}"
	record=("${record[@]/:1:/:3:}")
	lies --splitters=sampled "${record[@]}"
}

# A sampled key that others hear otherwise than the rank has it, the lowest of all then.
# Where only one of them hears that, honest ranks differ, too, and blame each other.
case_division()
{
	local finder

	lies --splitters=sampled payload:1:30:set:31
	finder='.*rank [0-9]+ .*divides the keys otherwise'
	lies --splitters=sampled payload:1:30:set:31:0:1
	in_grid 9 4 --splitters=sampled payload:1:11:set:31
}

# Words of it: 2 is the first key, 10 the number of records, 12 what was found in
# the keys, 13 has flags and the number of gathered files, 14 the schedule, 21 the
# number of slots, 26 what is known of the link, 27 the rank's roles.  Of a shared
# input a rank has a part that is known.
case_hello()
{
	words='sent impossible numbers of its input' lies "" hello:any:12:set:1
	words='sent an impossible hello' lies "" hello:any:2:set:0
	lies "" hello:any:10:set:-1
	lies "" hello:any:10:set:4000000000 hello:any:21:set:4000000000
	lies "" hello:any:21:set:-1
	lies "" hello:any:14:set:0x100000003
	lies "" hello:any:2:add:0x5b000000
	lies "" hello:any:13:set:4096
	lies "" hello:any:26:set:3
	lies "" hello:any:27:set:8
	lies "" hello:any:27:set:0
	lies "" hello:any:27:xor:4
	lies --shared-input hello:any:10:add:1 hello:any:21:add:1
	lies "" field:any:application_bytes:set:0
}

case_trace()
{
	local options=(--trace=trace)

	# To rank 0, which has the others' spans; and to one that has none.
	expect_found 2 total:2:0:set:-1
	expect_found 2 total:2:0:set:0x7fffffff
	lies --trace=trace total:2:1:set:8
}

# To the ranks that write one file with it: no key is there twice, so that each
# rank keeps all of its share.
case_kept()
{
	local gathers=yes

	lies --unique payload:2:0:add:1
	lies --unique payload:2:1:set:0xff
}

# --- compressed records -------------------------------------------------------------
#
# Collectives: 1 samples, 2 how many records each rank has for each, 3 what each gets,
# 4 the records.  Of these the first words are counts of buckets and the digest of 64
# bits; then the table has a word for each block.

# find_table: the first word of the table, in $table
find_table()
{
	local pids=() statuses=() job deadline_s
	local options=(--compress=lz4 --json)

	run_with 1
	wait_ranks 0 1 2
	[ "${statuses[*]}" = "0 0 0" ] || fail "${statuses[*]}: $(cat err.*)"
	expect_whole 3 "${1:-$SCRATCH/want}"
	expect_match '"compress": "lz4"' said.0
	table=$(python3 -c 'import json
print(json.load(open("said.0"))["buckets"] // 3 + 2)')
	rm out.*
}

# (Shares that do not add up are no rank's alone.)
case_compressed()
{
	local lie table number

	find_table
	for lie in set:0 set:-1 add:1 add:-1 add:1000000; do
		words='sends blocks of impossible lengths' \
			lies --compress=lz4 "payload:4:$table:$lie"
	done
	for lie in set:0 add:1 add:-1; do
		for number in 2 3; do
			finder='.*(no rank gets|gets) [0-9]+ ' \
				lies --compress=lz4 "payload:$number:0:$lie"
		done
		# Where a sample divides the keys, nobody asks for shares.
		lies "--splitters=sampled --compress=lz4" "payload:4:0:$lie"
	done
	finder='.*has [0-9]+ records for rank [0-9], of its 1000$' \
		lies --compress=lz4 payload:2:0:set:-1
	lies --compress=lz4 payload:4:0:add:1
	# All others then send their records as they are.
	lies --compress=lz4 payload:1:0:set:0
}

# What is no block, of each codec; and blocks whose lengths add up, but of which one
# is longer than its records.
case_compressed_blocks()
{
	local codec lie word block=() table whole=$SCRATCH/large

	find_table "$SCRATCH/want_large"
	for lie in set:0 set:-1 add:1 add:-1; do
		lies --compress=lz4 "total:4:1:$lie"
	done
	# More than the records; and not all of the table.
	for lie in add:3000000 set:$((4 * table + 1)); do
		finder='.*announces [0-9]+ bytes for [0-9]+ records$' \
			lies --compress=lz4 "total:4:1:$lie"
	done
	words='sends blocks of impossible lengths' \
		lies --compress=lz4 "payload:4:$table:add:36000" \
		"payload:4:$((table + 1)):add:-36000"
	for ((word = table + 60; word < table + 90; word++)); do
		block+=("payload:4:$word:set:-1")
	done
	for codec in lz4 zstd; do
		finder='.*sent a (block that cannot be|record whose key is)' \
			lies --compress="$codec" "${block[@]}"
	done
}

# --- what a STATUS says -----------------------------------------------------------

# Silence that would outlast any deadline.
case_busy()
{
	lies "" field:any:delay_ms:set:0xffffffff
	lies "" field:1:delay_ms:set:0xffffffff
}

# It answers, and what it sends does not come, or it takes nothing: each is more than
# a slow rank would do.  The others ask it again until the deadline, so that these
# take most of the time here: of two like lies the last rank tells one, and rank 0
# the other.
case_stuck()
{
	local schedule options

	for schedule in rounds all-at-once; do
		options=("--schedule=$schedule")
		expect_found 2 segment:1:epoch:set:77
		expect_found 0 field:1:data_port:set:9
	done
	options=()
	expect_found 2 segment:1:source:add:40
	expect_found 0 segment:1:length:add:-1
	expect_found 2 segment:1:offset:add:1
	expect_found 0 field:1:prefix_bytes:set:0
	expect_found 2 field:1:grant_bytes:set:0
	expect_found 0 field:1:flags:set:0
	options=(--splitters=sampled)
	expect_found 2 segment:3:epoch:set:77
}

# Not once, but as a bad cable does: what is lost is sent again.
case_stuck_once()
{
	local pids=() statuses=() job deadline_s options=()

	run_with 1 segment:1:epoch:set:77:0:8
	wait_ranks 0 1 2
	[ "${statuses[*]}" = "0 0 0" ] || fail "${statuses[*]}: $(cat err.*)"
	expect_whole 3 "$SCRATCH/want"
}

case_gaps()
{
	lies "" gap:1:1:set:5000000
	lies "" gap:1:0xffffffff:set:0
	lies "" gap:1:1:set:0 gap:1:1:set:0
}

# Only what it has for the one that hears it, in a STATUS of that length.
case_lengths_untold()
{
	local finder='.*did not announce its messages to all ranks'

	lies "" field:1:total_count:set:1 length:1:0:set:128
}

case_progress()
{
	lies "" field:1:sent_bytes:set:-1
	lies "" field:1:prefix_bytes:set:-1
	lies "" field:1:grant_bytes:set:-1
	lies "" field:1:total_count:set:2
	lies --splitters=sampled field:2:epoch:set:100
	lies --splitters=sampled field:2:phase:set:1 field:2:epoch:set:1
}

# --- beyond memory ------------------------------------------------------------------
#
# Collectives: 1 limits, 2 samples, 3 parts, 4 wants, 5 the first wave, 6 shares,
# 7 the next wave.

# lies_beyond OPTIONS LIE...: where the records do not fit into the ranks' memory
lies_beyond()
{
	local more=$1 whole=$SCRATCH/large
	shift

	lies "-S 12M $more" "$@"
}

# lies_unnamed LIE...: no rank can know who has told it; the one that finds that
# something does not fit says so
lies_unnamed()
{
	local finder='.*(does not add up|than the ranks have told of)'

	lies_beyond "" "$@"
}

# The truth, so that the lies are told where there is something to lie about.
case_truth_beyond()
{
	local pids=() statuses=() job deadline_s whole=$SCRATCH/large
	local options=(-S 12M --json)

	run_with 1
	wait_ranks 0 1 2
	[ "${statuses[*]}" = "0 0 0" ] || fail "${statuses[*]}: $(cat err.*)"
	expect_whole 3 "$SCRATCH/want_large"
	expect_match '"external": \{' said.0
}

# Where a codec is to be chosen, two collectives come before: what measures the
# links, and what comes of that.  Any rate may be true.
case_links()
{
	lies_beyond --compress=auto total:1:1:set:0
	lies_beyond --compress=auto total:1:1:add:1
	lies_beyond --compress=auto total:1:1:set:-1
	lies_beyond --compress=auto total:2:1:set:0
	lies_beyond --compress=auto total:2:1:add:8
	lies_beyond --compress=auto total:2:1:set:-1
}

# Four numbers of 64 bits: records of a piece and of a block, bytes of a wave, and
# records for a rank that keeps other ranks' runs.
case_limits()
{
	local word

	for word in 0 2 4; do
		[ "$word" = 2 ] || lies_beyond "" payload:1:"$word":set:0
		lies_beyond "" payload:1:"$word":set:1
	done
	words='sent impossible limits, blocks of no records' \
		lies_beyond "" payload:1:2:set:0
	lies_beyond "" payload:1:2:set:-1
	lies_beyond "" total:1:1:set:0
	lies_beyond "" total:1:1:add:8
}

# While they read one input: how many records each has taken and read, its rate
# and its batch.  What it has taken is bounded; the other three may be any number,
# as those of a slow rank (test_input_division).
case_shared()
{
	words='claims an impossible [0-9]+ records of the shared input' \
		lies_beyond --shared-input payload:2:0:set:-1
	lies_beyond --shared-input payload:2:1:set:1
	lies_beyond --shared-input payload:3:0:set:0 payload:3:1:set:0
	lies_beyond --shared-input total:2:1:set:0
	lies_beyond --shared-input total:2:1:add:8
}

# The number of runs and that of records; then of each sampled block the key, the
# run, the place in it, and the records.  A key that is not below the next one
# moves no cut, and is found; others cut elsewhere, and then do not fit.
case_samples()
{
	lies_beyond "" payload:2:0:set:0
	lies_beyond "" payload:2:0:set:-1
	lies_beyond "" payload:2:1:add:1
	lies_beyond "" payload:2:2:set:-1
	lies_beyond "" payload:2:3:set:-1
	lies_beyond "" payload:2:6:set:-1
	lies_beyond "" payload:2:8:add:1
	words='sent a list of its runs that is too short' \
		lies_beyond "" total:2:1:set:0
	lies_beyond "" total:2:1:set:-1
	lies_beyond "" total:2:1:add:4
}

# Blocks of each run; then records, bytes, CRC-32C and key of each block.
case_parts()
{
	local word

	for word in 0 1 2 3; do
		words='sent an impossible list of run blocks' \
			lies_beyond "" payload:3:"$word":set:-1
	done
	lies_beyond "" payload:3:0:add:1
	lies_beyond "" total:3:1:set:0
	lies_beyond "" total:3:1:set:-1
	lies_beyond "" total:3:1:add:4
}

# Pieces; then for each the blocks before it.
case_wants()
{
	lies_beyond "" payload:4:0:set:-1
	lies_beyond "" payload:4:0:add:1
	lies_beyond "" payload:4:1:set:1
	words='asked for run blocks outside of its part' \
		lies_beyond "" payload:4:2:set:-1
	lies_beyond "" total:4:1:set:0
	lies_beyond "" total:4:1:add:4
}

case_waves()
{
	local wave

	for wave in 5 7; do
		lies_beyond "" total:"$wave":1:add:1
		lies_beyond "" total:"$wave":1:set:0
		lies_beyond "" total:"$wave":1:set:-1
		lies_beyond "" payload:"$wave":3:add:1
	done
}

case_shares()
{
	lies_unnamed payload:6:0:add:1
	lies_unnamed payload:6:2:add:1
	lies_beyond "" payload:6:2:set:-1
	lies_beyond "" payload:6:3:set:-1
	lies_beyond "" total:6:1:set:0
}

# --- runs that other ranks keep -----------------------------------------------------
#
# Then what comes behind the limits are waves, in which a rank sends what others
# are to keep.  Of the first ones some may have nothing but the head, in which
# nothing is looked at.

# kept_lies KIND STEP INDEX...: the same in each of these collectives, or in every
# other one; in $lies
kept_lies()
{
	local kind=$1 step=$2 rest=$3 i
	lies=()

	for ((i = 2; i <= 28; i += step)); do
		lies+=("$kind:$i:$rest")
	done
}

# lies_kept KIND STEP REST: as told by a rank that does not keep
lies_kept()
{
	local options liar lies whole=$SCRATCH/large

	kept_lies "$@"
	for liar in 2 0; do
		read -r -a options <<<"-S 12M ${kept_options-}"
		options+=(--roles="keep:$((1 - liar / 2))-$((2 - liar / 2))")
		expect_found "$liar" "${lies[@]}"
	done
}

case_truth_kept()
{
	local pids=() statuses=() job deadline_s whole=$SCRATCH/large
	local options=(-S 12M --json --roles=keep:0-1)

	run_with 2
	wait_ranks 0 1 2
	[ "${statuses[*]}" = "0 0 0" ] || fail "${statuses[*]}: $(cat err.*)"
	expect_whole 3 "$SCRATCH/want_large"
}

# The head: where the batch begins, its records of the input, and those that are
# left, with 64 bits each.
case_kept_heads()
{
	local word

	for word in 0 1 2 3 4 5; do
		words='sent an impossible batch of its input' \
			lies_kept payload 1 "$word:set:-1"
		lies_kept payload 1 "$word:add:1"
	done
	lies_kept payload 1 2:set:0
	lies_kept payload 1 4:set:0
}

# Batches of fewer records than they had before duplicates were dropped; with
# --unique that could be, but for more.
case_kept_unique()
{
	local kept_options=--unique

	lies_kept payload 1 4:add:0x10000000
	lies_kept payload 1 2:add:-1
}

# Slices of one batch say the same of it.
case_kept_slices()
{
	lies_kept payload 2 0:add:1
	lies_kept payload 2 2:add:1
	lies_kept payload 2 4:add:-1
}

case_kept_lengths()
{
	local options=(-S 12M --roles=keep:0-1) whole=$SCRATCH/large keeper
	local lies

	for keeper in 0 1; do
		expect_found 2 total:2:"$keeper":set:-1
		expect_found 2 total:2:"$keeper":set:40000000
		expect_found 2 total:2:"$keeper":set:31
		expect_found 2 total:2:"$keeper":set:33
	done
	kept_lies total 1 0:add:1
	expect_found 2 "${lies[@]}"
	kept_lies total 1 0:add:-1
	expect_found 2 "${lies[@]}"
}

# Blocks whose first keys descend.
case_kept_keys()
{
	lies_kept payload 1 8:set:-1
}

# A keeper that takes nothing.
case_keepers()
{
	local options=(-S 12M --roles=keep:2) whole=$SCRATCH/large

	expect_found 2 payload:1:6:set:0 payload:1:7:set:0
}

# --- a grid ---------------------------------------------------------------------------
#
# Each collective is two.  1 and 2: how many records each rank has for each, or the
# samples where there are some; 3 and 4: what each gets; 5 and 6: the records.  The
# first words of a bundle are the lengths of its parts, two words each.

# in_grid RANKS LIAR OPTIONS LIE...: the liar is named
in_grid()
{
	local all options liar=$2

	mapfile -t all < <(seq 0 $(($1 - 1)))
	read -r -a options <<<"--schedule=grid $3"
	shift 3
	expect_found "$liar" "$@"
}

# lies_in_grid OPTIONS LIE...: as told by a rank that only sends, by one that passes
# on, and by one of a complete grid
lies_in_grid()
{
	in_grid 5 4 "$@"
	in_grid 5 1 "$@"
	in_grid 9 4 "$@"
}

# lies_by_passing OPTIONS LIE...: the same, by ranks that pass on; in the grid of 5
# ranks 4 is in the column of 1
lies_by_passing()
{
	in_grid 5 1 "$@"
	in_grid 9 4 "$@"
}

case_truth_grid()
{
	local pids statuses job deadline_s options all ranks

	for ranks in 5 9; do
		pids=() statuses=() options=(--schedule=grid --json)
		mapfile -t all < <(seq 0 $((ranks - 1)))
		run_with 4
		wait_ranks "${all[@]}"
		[[ "${statuses[*]}" =~ ^[0\ ]+$ ]] ||
			fail "${statuses[*]}: $(cat err.*)"
		expect_whole "$ranks" "$SCRATCH/want"
		expect_match '"schedule": "grid"' said.0
		rm out.*
	done
}

# What a bundle is long.
case_grid_bundles()
{
	local how lie

	for how in "" --splitters=sampled; do
		for lie in set:0 set:-1 set:0x7fffffffffffffff add:1 add:-8 \
			add:1000000000; do
			lies_in_grid "$how" total:1:0:"$lie"
			lies_by_passing "$how" total:2:0:"$lie"
		done
	done
	# And in segments that would make that possible
	lies_in_grid --splitters=sampled total:1:0:set:-5000 \
		field:1:segment_bytes:set:0xffffffff
}

# Lengths that are not those of the bundle's parts.
case_grid_tables()
{
	local lie

	for lie in set:0 set:-1 add:1 add:100 add:-100; do
		lies_in_grid "" payload:1:0:"$lie"
		lies_by_passing "" payload:2:0:"$lie"
	done
	for lie in set:0 add:100 add:-100; do
		lies_in_grid "" payload:5:0:"$lie"
		lies_by_passing "" payload:6:0:"$lie"
	done
	for lie in set:-1 set:0x7fffffff; do
		lies_in_grid "" payload:1:1:"$lie"
		lies_by_passing "" payload:2:1:"$lie"
		lies_in_grid --splitters=sampled payload:1:1:"$lie"
		lies_by_passing --splitters=sampled payload:2:1:"$lie"
	done
}

# With the sum that was announced: what is wrong is found by the rank for which it
# is, which knows only whose message it was to be.
case_grid_sums()
{
	local finder='.*rank [0-9]+ '

	in_grid 9 4 "" payload:5:0:add:100 payload:5:2:add:-100
	in_grid 9 4 "" payload:5:0:add:-100 payload:5:2:add:100
	in_grid 5 4 "" payload:5:0:add:100 payload:5:2:add:-100
	lies_by_passing "" payload:6:0:add:100 payload:6:2:add:-100
	lies_by_passing "" payload:6:0:add:-100 payload:6:2:add:100
	in_grid 9 4 --splitters=sampled payload:1:0:add:4 payload:1:2:add:-4
	lies_by_passing --splitters=sampled payload:2:0:add:4 payload:2:2:add:-4
}

# In the heads of what is passed on.  (A record that is changed on the way, or by its
# own rank, is found by no rank if its key remains in the bucket.)
case_grid_messages()
{
	local finder='.*rank [0-9]+ '

	in_grid 9 4 "" payload:1:6:add:1
	lies_by_passing "" payload:2:10:add:1
	in_grid 9 4 "" payload:5:6:add:1
	in_grid 5 1 "" payload:6:10:add:1
	in_grid 9 4 "" payload:6:6:add:1
	lies_by_passing --unique payload:2:10:add:1
	in_grid 9 4 --splitters=sampled payload:3:6:add:1
	lies_by_passing --splitters=sampled payload:4:10:add:1
}

# Steps that are not its turn; and totals of other numbers of ranks.
case_grid_steps()
{
	local epoch count

	for epoch in 2 3 4; do
		lies_in_grid "" field:1:epoch:set:"$epoch"
	done
	for epoch in 0 3 4; do
		lies_in_grid "" field:2:epoch:set:"$epoch"
	done
	for count in 0 2 4096; do
		in_grid 5 1 "" field:1:total_count:set:"$count"
	done
	lies_in_grid "" field:1:sent_bytes:set:-1
	lies_in_grid "" field:2:prefix_bytes:set:-1
	lies_in_grid "" hello:any:14:set:0x100000003
}

check truth patiently case_truth
for less in 40 100 5000 40000; do
	check "sampled_$less" patiently case_sampled "$less"
done
check made_to_sample patiently case_made_to_sample
check segments patiently case_segments
check buckets patiently case_buckets
check records patiently case_records
check keys patiently case_keys
check division patiently case_division
check hello patiently case_hello
check trace patiently case_trace
check kept patiently case_kept
check compressed patiently case_compressed
check compressed_blocks patiently case_compressed_blocks
check busy patiently case_busy
check stuck patiently case_stuck
check stuck_once patiently case_stuck_once
check gaps patiently case_gaps
check progress patiently case_progress
check lengths_untold patiently case_lengths_untold
check truth_beyond patiently case_truth_beyond
check links patiently case_links
check limits patiently case_limits
check shared patiently case_shared
check samples patiently case_samples
check parts patiently case_parts
check wants patiently case_wants
check waves patiently case_waves
check shares patiently case_shares
check truth_kept patiently case_truth_kept
check kept_heads patiently case_kept_heads
check kept_unique patiently case_kept_unique
check kept_slices patiently case_kept_slices
check kept_lengths patiently case_kept_lengths
check kept_keys patiently case_kept_keys
check keepers patiently case_keepers
check truth_grid patiently case_truth_grid
check grid_bundles patiently case_grid_bundles
check grid_tables patiently case_grid_tables
check grid_sums patiently case_grid_sums
check grid_messages patiently case_grid_messages
check grid_steps patiently case_grid_steps

finish
