# shellcheck shell=bash disable=SC2034 # variables are for the scripts
#
# external_ranks_lib.sh - ranks whose records do not fit into their memory, for
# the checks of them, on top of cluster_lib.sh
#
#   make_whole SHAPE SIZE RANKS HOW OPTION...   records in ./whole, a part of them
#                                   for each rank, and in ./want what is wanted
#   start_external RANKS OPTION...  the ranks, to wait for by wait_ranks
#   sort_externally RANKS OPTION... all of them succeed, and have spilled
#   expect_external RANKS OPTION... and their outputs are ./want
#   case_ended SIGNAL OPTION...     a case: a rank gets it, at a random moment
#
# $MEMORY is that of each rank; $BYTES are those of all records.

# shellcheck source=tests/programs/cluster_lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/cluster_lib.sh"

# Of all ranks together; less than their memory would suffice for in memory.
readonly BYTES=48000000
MEMORY=12M
# test_cluster_paths stops more ranks, in simulated time.
kills=${KILLS:-2} short_s=3
# Ranks that are slow must not be taken for dead ones.
[ -z "$SANITIZED" ] || short_s=10

# start_external COUNT OPTION...: the ranks, each with scratch files of its own;
# $input is what all of them read, or unset: each has in.RANK
start_external()
{
	local count=$1 rank
	shift

	for ((rank = 0; rank < count; rank++)); do
		mkdir -p "scratch.$rank"
		# shellcheck disable=SC2086 # several words
		start_rank "$rank" ${rank_launchers[rank]-} "${BLINKSORT[@]}" --rank="$rank" \
			--nodes="127.0.0.[2-$((count + 1))]" --job="$SCRATCH" \
			"${input:-in.$rank}" -S "$MEMORY" -T "scratch.$rank" --json \
			--deadline="${deadline:-$DEADLINE_S}" "$@" \
			${rank_options[rank]:--o out.$rank}
	done
}
# Of some ranks, by number: the output, and what follows; the words before the
# command.
rank_options=() rank_launchers=()

# sort_externally COUNT OPTION...: all of them succeed, and have spilled
sort_externally()
{
	local count=$1 statuses=() rank all
	pids=()

	rm -rf out.* scratch.*
	start_external "$@"
	mapfile -t all < <(seq 0 $((count - 1)))
	wait_ranks "${all[@]}"
	[[ ${statuses[*]} =~ ^[0\ ]*$ ]] || fail "${statuses[*]}: $(cat err.*)"
	for rank in "${all[@]}"; do
		expect_match '"external": \{' "said.$rank"
		expect_folder "scratch.$rank"
	done
}

# expect_external COUNT OPTION...: and the outputs are the file "want"
expect_external()
{
	sort_externally "$@" || fail "$*"
	expect_whole "$1" want || fail "$*"
}

# make_whole SHAPE SIZE RANKS HOW OPTION...: the inputs, and what is wanted
make_whole()
{
	local shape=$1 size=$2 ranks=$3 how=$4 count
	shift 4

	# Of small records fewer suffice, since each takes memory beside.
	count=$((BYTES / size < 1000000 ? BYTES / size : 1000000))
	make_shape "$shape" "$count" "$SEED" --record-size="$size" "$@" >whole
	sort_reference whole -o want --record-size="$size" "$@"
	cut_input whole "$size" "$ranks" "$how"
}

# --- failures -------------------------------------------------------------------

# expect_ended VICTIM: all other ranks say that this one is at fault, and nothing
# is left
expect_ended()
{
	local rank

	for rank in 0 1 2 3; do
		expect_folder "scratch.$rank"
		[ "$rank" != "$1" ] || continue
		expect_blamed "$1" "$rank"
	done
	expect_none
}

# end_one SIGNAL OPTION...: at a random moment, a random rank
end_one()
{
	local random victim statuses=() signal=$1
	pids=()
	shift

	rm -rf out.* scratch.*
	deadline=$short_s start_external 4 "$@"
	random_below 4
	victim=$random
	random_below 400
	sleep "0.$(printf %03d "$random")"
	kill "-$signal" "${pids[victim]}" 2>/dev/null || true
	if [ "$signal" = STOP ]; then
		wait_others "$victim"
		kill -KILL "${pids[victim]}" 2>/dev/null || true
	fi
	wait_ranks 0 1 2 3
	if has_ended_before "$victim"; then
		expect_whole 4 want
	else
		expect_ended "$victim"
		ended=$((ended + 1))
	fi
}

# wait_others RANK: until all but this one have ended
wait_others()
{
	local rank

	for rank in 0 1 2 3; do
		[ "$rank" = "$1" ] || wait "${pids[rank]}" 2>/dev/null || true
	done
}

# case_ended SIGNAL OPTION...
case_ended()
{
	local i ended=0

	make_whole uniform 100 4 even
	# On some machines most runs are done before.
	for ((i = 0; i < kills || (ended == 0 && i < 10 * kills); i++)); do
		end_one "$@"
	done
	[ "$ended" -gt 0 ] || fail "all runs were done before"
}
