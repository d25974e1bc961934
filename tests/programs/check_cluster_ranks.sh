#!/bin/bash
# check_cluster_ranks.sh - the cluster sort with all numbers of ranks, by rounds
# and by way of a grid
#
# The ranks are started by hand, each at an address of its own of 127.0.1.0/24.
# What comes out must be, byte for byte, what one process makes of the same input
# in rank order; or, where that shares too much code, what the reference makes of
# it.
#
# RANKS=N   sort with all numbers of ranks up to N, instead of some up to 32
# MANY=N    in the cases of more ranks than tell each other all lengths
#           (EXCHANGE_KNOWN_MAX, 128): as many, up to 254, instead of 130

# shellcheck disable=SC2317 # cases are called by check
# shellcheck source=tests/programs/cluster_lib.sh
. "$(dirname "$0")/cluster_lib.sh"

COUNT=6000 SMALL=1500 MANY_COUNT=4000 KILL_COUNT=200000 KILL_TRIES=20
SOME=(1 2 3 4 5 7 8 9 13 16 23 32)
if [ -n "${RANKS:-}" ]; then
	mapfile -t SOME < <(seq "$RANKS")
elif [ -n "$QUICK$SANITIZED" ]; then
	COUNT=2000 SMALL=500 MANY_COUNT=1500 KILL_COUNT=50000 KILL_TRIES=10
	SOME=(1 2 3 5 7 11)
fi
MANY=${MANY:-130}
# A rank that hangs is killed after as many seconds.
readonly HUNG_S=200
# Where a rank is gone, others' silence for so long is an end.
readonly GONE_DEADLINE_S=3 END_AFTER_S=5

# one_rank RANK RANKS OPTION...
one_rank()
{
	local rank=$1 ranks=$2
	shift 2

	start_rank "$rank" timeout "$HUNG_S" "${BLINKSORT[@]}" --cluster \
		--nodes="127.0.1.[1-$ranks]" --rank="$rank" --job="$job" \
		"in.$rank" "$@"
}

# run_ranks RANKS OPTION...: all to their ends; into files of their own, unless
# an option says where
run_ranks()
{
	local ranks=$1 rank output
	shift

	job=ranks.$$.$RANDOM pids=() statuses=()
	for ((rank = 0; rank < ranks; rank++)); do
		output=(-o "out.$rank")
		[[ " $* " != *" --gather="* ]] || output=()
		one_rank "$rank" "$ranks" --deadline="$DEADLINE_S" \
			"${output[@]}" "$@"
	done
	mapfile -t all < <(seq 0 $((ranks - 1)))
	wait_ranks "${all[@]}"
}

# said_by_all: what the ranks have said, each different line once
said_by_all()
{
	sort -u err.* | sed -n 1,5p
}

expect_success()
{
	[[ "${statuses[*]}" =~ ^[0\ ]+$ ]] ||
		fail "$*: ${statuses[*]}: $(said_by_all)"
	expect_empty <(cat err.*)
}

# expect_ranks RANKS OPTION...: ./want is what comes out
expect_ranks()
{
	local job pids statuses all

	run_ranks "$@"
	expect_success "$@"
	expect_whole "$1" want || fail "$*"
	rm -f out.*
}

# expect_gathered RANKS OPTION...: the same in one file
expect_gathered()
{
	local job pids statuses all

	run_ranks "$@" --gather=out.all
	expect_success "$@"
	echo out.all | expect_outputs
	expect_same out.all want || fail "$*"
	rm out.all
}

# make_exact RANKS HOW: inputs of the benchmark, cut like that
make_exact()
{
	"$BIN/blinkgen" -a "$COUNT" whole
	expect_sorted whole -o want
	cut_input whole 100 "$1" "$2"
}

# make_shaped RANKS SHAPE: many equal keys show whether ranks keep their order,
# and most ranks have few records or none
make_shaped()
{
	make_shape "$2" "$SMALL" "$SEED" >whole
	sort_reference whole -o want
	cut_input whole 100 "$1" random
}

# --- all numbers of ranks -------------------------------------------------------

case_ranks()
{
	make_exact "$1" even
	expect_ranks "$1" --schedule=rounds
	expect_ranks "$1" --schedule=grid
}

# case_shapes RANKS: keys and inputs that make messages unequal
case_shapes()
{
	local schedule shape

	for shape in zipf all-equal; do
		make_shaped "$1" "$shape"
		for schedule in rounds grid; do
			expect_ranks "$1" --schedule="$schedule"
		done
	done
	"$BIN/blinkgen" -a $(($1 / 2)) whole
	sort_reference whole -o want
	cut_input whole 100 "$1" even
	expect_ranks "$1" --schedule=grid
	make_exact "$1" last
	expect_ranks "$1" --schedule=grid --transport=udp
}

# case_records RANKS
case_records()
{
	local of_size described

	for of_size in "1 0:1" "16 8:8" "4096 4000:90"; do
		read -r -a described <<<"$of_size"
		described=(--record-size="${described[0]}"
			--key="${described[1]}")
		make_shape zipf 400 "$SEED" "${described[@]}" >whole
		sort_reference whole -o want "${described[@]}"
		cut_input whole "${of_size% *}" "$1" random
		expect_ranks "$1" --schedule=grid "${described[@]}"
		expect_ranks "$1" --schedule=rounds "${described[@]}"
	done
}

for ranks in "${SOME[@]}"; do
	check "ranks_$ranks" case_ranks "$ranks"
done
for ranks in 7 16 31; do
	check "shapes_$ranks" case_shapes "$ranks"
	check "records_$ranks" case_records "$ranks"
done

# --- grids ------------------------------------------------------------------------

# Sides that are not alike, and a last row that is not complete.
case_sides()
{
	local sides ranks

	for sides in "8 2x4" "8 4x2" "7 1x7" "7 7x1" "5 2x3" "9 3x4" "11 2x10" \
		"13 5x3"; do
		ranks=${sides% *}
		make_exact "$ranks" random
		expect_ranks "$ranks" --schedule=grid="${sides#* }"
	done
}

# Datagrams that hold few records, without segmentation, and STATUS in datagrams
# as between machines.
case_datagrams()
{
	local ranks

	for ranks in 6 11; do
		make_exact "$ranks" even
		expect_ranks "$ranks" --schedule=grid --payload=1472
		expect_ranks "$ranks" --schedule=grid --plain --transport=udp
		expect_ranks "$ranks" --schedule=grid --plain --payload=256 \
			--transport=udp
	done
}

# Sampled splitters and skewed keys need more collectives than static ones.
case_splitters()
{
	local splitters

	"$BIN/blinkgen" -s "$COUNT" whole
	expect_sorted whole -o want
	cut_input whole 100 10 random
	for splitters in "${SPLITTERS[@]}"; do
		expect_ranks 10 --schedule=grid --splitters="$splitters"
	done
}

case_gather()
{
	local ranks

	for ranks in 7 16; do
		make_exact "$ranks" random
		expect_gathered "$ranks" --schedule=grid
		make_shape few-distinct "$SMALL" "$SEED" >whole
		expect_sorted whole -o want --unique
		cut_input whole 100 "$ranks" even
		expect_ranks "$ranks" --schedule=grid --unique
		expect_gathered "$ranks" --schedule=grid --unique
	done
}

# References, and the timelines of all ranks.
case_other_collectives()
{
	make_exact 7 even
	expect_ranks 7 --schedule=grid --by-reference=yes
	expect_ranks 7 --schedule=grid --trace=trace
	expect_match '"rank 6 ' trace
}

case_json()
{
	local job pids statuses all

	make_exact 5 even
	run_ranks 5 --schedule=grid --json
	expect_success
	expect_whole 5 want
	# Its file is the whole of what a rank prints.
	cat said.? >said
	[ "$(grep -c '"schedule": "grid"' said)" = 5 ] ||
		fail "$(grep -o '"schedule": "[^"]*"' said)"
	rm out.*
	run_ranks 5 --json
	expect_success
	expect_match '"schedule": "all-at-once"' said.0
}

# A limit in percent is one of a rank's even share of the machine.
case_memory_part()
{
	local job pids statuses all COUNT=400000

	make_exact 2 even
	# shellcheck disable=SC2016 # of the inner shell
	BLINKSORT=(sh -c 'ulimit -v 400000 && exec "$@"' sh "${BLINKSORT[@]}")
	run_ranks 2 --memory=5% --threads=1 --io=direct --json
	expect_success
	expect_whole 2 want
	# 5 % of the half of 400 MB, of which a rank has taken some already
	expect_match '"memory_bytes": 10[01][0-9]{5},' said.0
	rm out.*
}

check sides case_sides
if [ -n "$SANITIZED" ]; then
	skip memory_part "sanitizers map far more"
else
	check memory_part case_memory_part
fi
check datagrams case_datagrams
check splitters case_splitters
check gather case_gather
check other_collectives case_other_collectives
check json case_json

# --- what is refused ----------------------------------------------------------------

# expect_refusal RANKS WHY: each rank has found that itself, or has heard of it
# from one that has
expect_refusal()
{
	local rank

	for ((rank = 0; rank < $1; rank++)); do
		[[ "${statuses[rank]}" =~ ^[24]$ ]] ||
			fail "${statuses[*]}: $(said_by_all)"
		expect_match "^blinksort: (rank [0-9]+ [^ ]*: )?$2\$" \
			"err.$rank"
		expect_one_line "err.$rank"
	done
	[[ "${statuses[*]}" =~ 2 ]] || fail "${statuses[*]}"
	expect_none
}

# expect_all_refuse WHY RANKS OPTION...
expect_all_refuse()
{
	local why=$1 job pids statuses all
	shift

	run_ranks "$@"
	expect_refusal "$1" "$why" || fail "$*"
}

# expect_no_grid SIDES RANKS
expect_no_grid()
{
	expect_all_refuse "--schedule: a grid of $1 has no place for each of $2 \
ranks, or a row or column without a rank" "$2" --schedule=grid="$1"
}

# A row or a column too many or too few.
case_sides_refused()
{
	COUNT=100 make_exact 8 even
	expect_no_grid 4x3 8
	expect_no_grid 2x3 8
	expect_no_grid 1x9 8
	expect_no_grid 9x1 8
	expect_no_grid 4096x4096 8
	expect_no_grid 2x1 1
}

case_beyond_memory_refused()
{
	local why="--schedule=grid: not beyond memory, where --roles, \
--shared-input and large inputs lead"

	COUNT=100 make_exact 3 even
	expect_all_refuse "$why" 3 --schedule=grid --roles=sort:0-1
	COUNT=300000 make_exact 3 even
	expect_all_refuse "$why" 3 --schedule=grid -S 12M
	rm -f out.*
	expect_ranks 3 -S 12M --schedule=rounds
}

# differs OF-RANK-1 OF-OTHERS
differs()
{
	local job=ranks.$$.$RANDOM pids=() statuses=() rank schedule

	for rank in 0 1 2 3; do
		schedule=$2
		[ "$rank" != 1 ] || schedule=$1
		one_rank "$rank" 4 --schedule="$schedule" -o "out.$rank"
	done
	wait_ranks 0 1 2 3
	expect_refusal 4 "rank . .*has another --schedule than rank ." ||
		fail "$*"
}

case_schedules_differ()
{
	COUNT=100 make_exact 4 even
	differs rounds grid
	differs grid auto
	differs grid=2x2 grid
	differs grid=1x4 grid=4x1
}

check sides_refused case_sides_refused
check beyond_memory_refused case_beyond_memory_refused
check schedules_differ case_schedules_differ

# --- a rank that is gone --------------------------------------------------------------

# start_grid RANKS: with as long a deadline as the machine's slowness asks for
start_grid()
{
	local rank

	job=ranks.$$.$RANDOM pids=() statuses=()
	for ((rank = 0; rank < $1; rank++)); do
		one_rank "$rank" "$1" --schedule=grid -o "out.$rank" \
			--deadline=$((GONE_DEADLINE_S * patience))
	done
}

# now_ms: in $now_ms
now_ms()
{
	now_ms=${EPOCHREALTIME/[.,]/}
	now_ms=$((now_ms / 1000))
}

# expect_all_end RANKS VICTIM: all others have succeeded, or have ended in time
# and name it; and who has failed has left nothing
expect_all_end()
{
	local rank begin_ms=$now_ms most_ms

	for ((rank = 0; rank < $1; rank++)); do
		[ "$rank" = "$2" ] || wait_ranks "$rank"
	done
	now_ms
	most_ms=$((1000 * patience * (GONE_DEADLINE_S + END_AFTER_S)))
	[ $((now_ms - begin_ms)) -le "$most_ms" ] ||
		fail "after $((now_ms - begin_ms)) ms: $(said_by_all)"
	wait_ranks "$2"
	for ((rank = 0; rank < $1; rank++)); do
		[ "$rank" != "$2" ] || continue
		[ "${statuses[rank]}" != 0 ] || continue
		[ "${statuses[rank]}" = 4 ] ||
			fail "rank $rank: ${statuses[rank]}: $(cat "err.$rank")"
		expect_match "^blinksort: .*rank $2 " "err.$rank"
		expect_gone "out.$rank"
	done
	[ -z "$(find . -name '.?*')" ] || fail "left: $(find . -name '.?*')"
}

# kill_at TRY RANKS JOB-MS: the signal comes while the job lasts
kill_at()
{
	local victim signal=KILL job pids statuses now_ms child after_ms

	[ $(($1 % 3)) != 0 ] || signal=TERM
	random_below "$2"
	victim=$random
	start_grid "$2"
	random_below "$3"
	after_ms=$random
	nap_ms "$after_ms"
	now_ms
	# Its process is timeout's, which passes on no KILL.
	child=
	read -r child <"/proc/${pids[victim]}/task/${pids[victim]}/children" ||
		true
	[ -z "$child" ] || kill "-$signal" "$child" 2>/dev/null || true
	expect_all_end "$2" "$victim"
	[[ ! "${statuses[*]}" =~ 4 ]] || caught=$((caught + 1))
	echo "  rank $victim of $2, $signal after $after_ms ms: ${statuses[*]}"
	rm -f out.*
}

# case_killed RANKS: complete rows, and not
case_killed()
{
	local job pids statuses now_ms begin_ms try job_ms all caught=0

	COUNT=$KILL_COUNT make_exact "$1" even
	now_ms
	begin_ms=$now_ms
	start_grid "$1"
	mapfile -t all < <(seq 0 $(($1 - 1)))
	wait_ranks "${all[@]}"
	now_ms
	job_ms=$((now_ms - begin_ms))
	expect_success
	rm out.*
	for ((try = 0; try < KILL_TRIES / 2; try++)); do
		kill_at "$try" "$1" "$job_ms"
	done
	[ "$caught" -gt 0 ] || fail "each rank was gone too late"
}

check killed_9 patiently case_killed 9
check killed_11 patiently case_killed 11

# Each thread of a rank needs three descriptors more.
case_few_files()
{
	local limit

	head -c 1000 /dev/zero >in
	(umask 077 && printf '%064d' 1 >key)
	for limit in 5 8 12; do
		# shellcheck disable=SC2016 # bash expands them
		expect_status 5 bash -c 'ulimit -n "$1" && exec "${@:2}" 2>err' \
			bash "$limit" "$BIN/blinksort" --rank=1 in -o out \
			--nodes=127.0.1.[1-2] --key-file=key \
			--transport=udp --exchange-threads=8
		expect_match "exchange's threads: .* open no more files" err
		[ ! -e out ] || fail "there is an output"
	done
}

check few_files case_few_files

# --- more ranks than tell each other all lengths ------------------------------------------

# case_many BLINKGEN-OPTION...
case_many()
{
	"$BIN/blinkgen" "$@" "$MANY_COUNT" whole
	expect_sorted whole -o want
	cut_input whole 100 "$MANY" even
	expect_ranks "$MANY" --schedule=rounds
	expect_ranks "$MANY" --schedule=grid
}

case_many_shared()
{
	COUNT=$MANY_COUNT make_exact "$MANY" even
	expect_gathered "$MANY" --schedule=rounds
	expect_gathered "$MANY" --schedule=grid --transport=udp
}

check many_uniform case_many -a
check many_skewed case_many -a -s
check many_gather case_many_shared

finish
