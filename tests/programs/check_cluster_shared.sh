#!/bin/bash
# check_cluster_shared.sh - ranks that read the same files together
#
# Whatever the ranks, records and rates, each record is read once, and the
# outputs are those of one process; a rank that is early reads for one that is
# late.

# shellcheck disable=SC2317 # cases are called by check
# shellcheck source=tests/programs/external_ranks_lib.sh
. "$(dirname "$0")/external_ranks_lib.sh"

input=whole

# expect_shared COUNT OPTION...
expect_shared()
{
	expect_external "$1" --shared-input "${@:2}"
	expect_match '"shared_input": true' said.0
}

# read_by RANK: bytes that its first pass has read
read_by()
{
	sed -E 's/.*"pass": "runs", [^}]*"read_bytes": ([0-9]+).*/\1/' "said.$1"
}

case_shapes()
{
	local shape

	for shape in uniform zipf all-equal few-distinct sorted; do
		make_whole "$shape" 100 4 even
		expect_shared 4 || fail "$shape"
	done
}

case_ranks()
{
	local ranks

	make_whole uniform 100 4 even
	for ranks in 2 3 7; do
		expect_shared "$ranks"
	done
}

case_sizes()
{
	make_whole uniform 16 3 even --key=4:8
	expect_shared 3 --record-size=16 --key=4:8
	make_whole uniform 4096 3 even --key=4090:6
	expect_shared 3 --record-size=4096 --key=4090:6
}

case_options()
{
	make_whole ascii 100 4 even
	expect_shared 4 --compress=lz4 --io=buffered
	make_whole few-distinct 100 4 random
	"${BLINKSORT[@]}" whole -o want --unique
	expect_shared 4 --unique
	make_whole zipf 100 4 even
	rank_options=([0]="--gather=whole.out" [1]="--gather=whole.out"
		[2]="--gather=whole.out" [3]="--gather=whole.out")
	sort_externally 4 --shared-input
	expect_same whole.out want
}

# expect_shared_late OPTION...: rank 2 gets a tenth of a CPU's time beside others,
# and is no more in the way when these read for it
expect_shared_late()
{
	rank_launchers=([2]="nice -n 19 taskset -c 0")
	# It ends with the case.
	taskset -c 0 sh -c "while kill -0 $BASHPID; do :; done" 2>/dev/null &
	expect_shared 4 "$@"
	kill %%
	wait
}

# Runs of parts that are no neighbours are not merged early.
case_many_runs()
{
	make_whole few-distinct 100 4 even
	MEMORY=9M expect_shared_late --threads=1
	grep -q '"merges": [1-9]' said.? || fail "no runs were merged before"
}

# Fewer records than ranks, none at all, and so few that nothing is spilled.
case_small()
{
	local count

	for count in 0 1 3 1000; do
		make_shape uniform "$count" "$SEED" >whole
		sort_reference whole -o want
		rm -rf out.*
		start_external 4 --shared-input
		statuses=()
		wait_ranks 0 1 2 3
		[ "${statuses[*]}" = "0 0 0 0" ] || fail "$count: $(cat err.*)"
		expect_whole 4 want
		pids=()
	done
	# A rank alone reads all of it.
	rm -rf out.*
	start_external 1 --shared-input
	statuses=()
	wait_ranks 0
	expect_whole 1 want
}

# Several files are one input.
case_files()
{
	make_whole uniform 100 4 random
	rank_options=([0]="in.1 in.2 in.3 -o out.0" [1]="in.1 in.2 in.3 -o out.1")
	input=in.0 expect_shared 2
}

# The others read for a rank that is late.  With luck it may have been as fast
# nevertheless.
case_late_rank()
{
	local try count=2000000 part

	# Many batches for each rank.
	part=$((count * 100 / 4))
	make_shape uniform "$count" "$SEED" >whole
	sort_reference whole -o want
	for try in 1 2 3 4 5; do
		expect_shared_late
		[ "$(read_by 2)" -ge $((part * 9 / 10)) ] || return 0
	done
	fail "the late rank has read $(read_by 2) bytes of $part, $try times"
}

# A rank or both refuse it; the other may hear of that first.
expect_usage()
{
	[[ " ${statuses[*]} " == *" 2 "* && "${statuses[*]}" =~ ^[24\ ]*$ ]] ||
		fail "${statuses[*]}: $(cat err.*)"
}

# Each rank says what it finds there.
case_differs()
{
	local statuses=() pids=()

	make_whole uniform 100 3 even
	head -c 100000 whole >in.1
	input='' start_external 2 --shared-input
	wait_ranks 0 1
	expect_usage
	# Rank 0 names the number of the rank whose hello comes first.
	expect_match 'finds (1000|160000) records in the shared input' err.0
	expect_none
	statuses=() pids=()
	rank_options=([1]="--shared-input -o out.1")
	start_external 2
	wait_ranks 0 1
	expect_usage
	expect_match 'another --shared-input' err.1
	expect_none
	# A rank without that role has not looked at the input.
	statuses=() pids=() rank_options=()
	input=whole start_external 2 --shared-input --roles=read:0
	wait_ranks 0 1
	expect_usage
	expect_match '--roles: not with --shared-input' err.0
	expect_none
	status=0
	"${BLINKSORT[@]}" whole -o out.0 --shared-input 2>err.0 || status=$?
	[ "$status" = 2 ] || fail "status $status"
	expect_match 'shared-input: only with --cluster' err.0
}

check shapes case_shapes
check ranks case_ranks
check sizes case_sizes
check options case_options
check many_runs case_many_runs
check small case_small
check files case_files
check late_rank case_late_rank
check differs case_differs
check killed case_ended KILL --shared-input
check stopped case_ended STOP --shared-input

finish
