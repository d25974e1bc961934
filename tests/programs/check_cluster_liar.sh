#!/bin/bash
# check_cluster_liar.sh - a rank that has the key and lies, over real sockets
#
# Three ranks: two of them are blinksort, and the third is lying_rank, a real
# one that changes what it says (lie.h).  The two end with status 4, name it, and
# leave no output.  Here is one lie of each kind, to see that over real sockets;
# test_cluster_liar tells all of them, in simulated time.

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

# --- the truth -----------------------------------------------------------------

# expect_truth OPTION...: through the same hands, with none of it changed
expect_truth()
{
	local pids=() statuses=() job deadline_s options=("$@")

	run_with 1
	wait_ranks "${all[@]}"
	[[ "${statuses[*]}" =~ ^[0\ ]+$ ]] || fail "${statuses[*]}: $(cat err.*)"
	expect_whole "${#all[@]}" "$want"
	rm out.*
}

case_truth()
{
	local want=$SCRATCH/want all=(0 1 2)

	expect_truth
	mapfile -t all < <(seq 0 4)
	expect_truth --schedule=grid
}

case_truth_beyond()
{
	local want=$SCRATCH/want_large whole=$SCRATCH/large

	expect_truth -S 12M --json
	expect_match '"external": \{' said.0
	expect_truth -S 12M --roles=keep:0-1
}

# --- lies ------------------------------------------------------------------------

case_lengths()
{
	local options=()

	expect_found 2 total:1:1:set:-100
	expect_found 0 total:1:1:set:-100
}

case_hello()
{
	local options=() words='sent an impossible hello'

	expect_found 2 hello:any:2:set:0
}

# It answers, and what it sends does not come.
case_stuck()
{
	local options=()

	expect_found 2 segment:1:epoch:set:77
}

case_compressed()
{
	local options=(--compress=lz4) finder

	finder='.*has [0-9]+ records for rank [0-9], of its 1000$'
	expect_found 2 payload:2:0:set:-1
}

case_beyond_memory()
{
	local options=(-S 12M) whole=$SCRATCH/large
	local words='sent an impossible list of run blocks'

	expect_found 2 payload:3:0:set:-1
}

case_grid()
{
	local options=(--schedule=grid) all

	mapfile -t all < <(seq 0 4)
	expect_found 4 payload:1:0:set:0
}

check truth patiently case_truth
check truth_beyond patiently case_truth_beyond
check lengths patiently case_lengths
check hello patiently case_hello
check stuck patiently case_stuck
check compressed patiently case_compressed
check beyond_memory patiently case_beyond_memory
check grid patiently case_grid

finish
