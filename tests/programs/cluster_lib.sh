# shellcheck shell=bash disable=SC2034 # variables are for the scripts
#
# cluster_lib.sh - what the checks of the cluster sort share, on top of
# sort_lib.sh and shell_lib.sh
#
# Rank r reads in.r and writes out.r, both in the current folder.
#
#   cut_input FILE SIZE RANKS HOW   in.0 ... of a file of records of this size:
#                                   HOW is even, random, first or last (that
#                                   rank has all)
#   cluster_run RANKS OPTION...     blinksort on the first nodes of the cluster,
#                                   its report in ./report, what was printed in
#                                   ./said, blinksh's status in $status
#   expect_whole RANKS FILE         the outputs one after the other are FILE,
#                                   and there is nothing else that was left
#   expect_none                     there is no output
#   expect_all_or_none RANKS        after the death of a rank, see below
#   on_small_disk FOLDER COMMAND... a command, while that folder is a full disk
#   await_open RANK FILE            a rank of a launcher's job has opened it
#   expect_blamed VICTIM RANK       the rank says that the victim is at fault
#   start_rank, wait_ranks, has_ended_before, job_name
#                                   ranks without daemons, see below
#
# DEADLINE_S is so long that a slow machine is not taken for a dead peer.

# shellcheck source=tests/programs/sort_lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/sort_lib.sh"
# shellcheck source=tests/programs/shell_lib.sh
. "$REPO/tests/programs/shell_lib.sh"

DEADLINE_S=30

# The daemons start programs by path.
if [ "${BLINKSORT[0]}" = setarch ]; then
	BLINKSORT[0]=$(command -v setarch)
fi

# share_of RANK: records of the next part, in $share; of the caller's $left
share_of()
{
	local ranks=$2 how=$3 random

	case $how in
	even) share=$((left / (ranks - $1))) ;;
	random)
		random_below $((left + 1))
		share=$random
		;;
	first) share=$left ;;
	last) share=0 ;;
	*) fail "cut_input: $how" ;;
	esac
	[ "$1" != $((ranks - 1)) ] || share=$left
}

# cut_input FILE SIZE RANKS HOW
cut_input()
{
	local rank left share

	left=$(($(stat -c %s "$1") / $2))
	for ((rank = 0; rank < $3; rank++)); do
		share_of "$rank" "$3" "$4"
		head -c $((share * $2)) >"in.$rank"
		left=$((left - share))
	done <"$1"
}

# first_nodes COUNT: as a list for -w
first_nodes()
{
	local IFS=,

	echo "${nodes[*]:0:$1}"
}

# on_nodes RANKS COMMAND...: each to its own end
on_nodes()
{
	local ranks=$1
	shift

	status=0
	timeout 300 "$BIN/blinksh" --json --keep-going "${PATIENT[@]}" \
		-w "$(first_nodes "$ranks")" -- "$@" >report 2>said \
		</dev/null || status=$?
}

# cluster_run RANKS OPTION...
cluster_run()
{
	local ranks=$1
	shift

	on_nodes "$ranks" "${BLINKSORT[@]}" --cluster "$PWD/in.%r" \
		-o "$PWD/out.%r" --deadline="$DEADLINE_S" "$@"
}

# what_they_said: of each rank, a line with its end and its first words
what_they_said()
{
	python3 -c 'import json
for node in json.load(open("report"))["nodes"]:
    print("  rank %d: %s %s: %s" % (node["rank"], node["state"],
          node.get("status"), node.get("stderr", "")[:300].strip()))' ||
		cat said
}

expect_done()
{
	[ "$status" = 0 ] ||
		fail "status $status: $*"$'\n'"$(what_they_said 2>&1)"
}

# outputs_of RANKS: their names, in order
outputs_of()
{
	local rank

	for ((rank = 0; rank < $1; rank++)); do
		echo "out.$rank"
	done
}

# No output but these, and nothing hidden.
expect_outputs()
{
	local got

	got=$(find . \( -name '.?*' -o -name 'out.*' \) -printf '%P\n' |
		sort -V | paste -s -d ' ')
	[ "$got" = "$(paste -s -d ' ')" ] || fail "there is '$got'"
}

# expect_whole RANKS FILE
expect_whole()
{
	local outs

	mapfile -t outs < <(outputs_of "$1")
	outputs_of "$1" | expect_outputs
	cat "${outs[@]}" | expect_same - "$2"
}

expect_none()
{
	: | expect_outputs
}

# expect_cluster RANKS FILE OPTION...: run, and FILE is what comes out
expect_cluster()
{
	local ranks=$1 want=$2
	shift 2

	cluster_run "$ranks" "$@"
	expect_done "$ranks ranks, $*"
	expect_whole "$ranks" "$want" || fail "$ranks ranks, $*"
	rm -f out.*
}

# is_of_want FILE: not empty, and byte for byte a part of ./want
is_of_want()
{
	[ -s "$1" ] && python3 -c 'import sys
sys.exit(open(sys.argv[1], "rb").read() not in open("want", "rb").read())' "$1"
}

# expect_all_or_none RANKS: a job of these, of which one was killed, has ended with
# $status.  All outputs are there and make up ./want, or none is; which one is in
# $outcome: all, or none.  It is "some" of them, each of them whole, if the rank
# was killed while the files got their names: the one exception of
# blinksort-cluster(7).
# Without all there is a status that is not 0.
expect_all_or_none()
{
	local outs out

	mapfile -t outs < <(find . -name 'out.*' -printf '%P\n' | sort -V)
	if [ "${#outs[@]}" = "$1" ]; then
		outcome=all
		expect_whole "$1" want
		return
	fi
	[ "$status" != 0 ] || fail "status 0, and ${#outs[@]} of $1 outputs"
	if [ "${#outs[@]}" = 0 ]; then
		outcome=none
		expect_none
		return
	fi
	outcome=some
	printf '%s\n' "${outs[@]}" | expect_outputs
	for out in "${outs[@]}"; do
		is_of_want "$out" || fail "$out is not whole"
	done
}

# expect_rare SOME TRIES: the exception is one
expect_rare()
{
	[ $((3 * $1)) -le $(($2 + 2)) ] || fail "$1 of $2 left some outputs"
}

# on_small_disk FOLDER COMMAND...: that folder is a disk of 200 KB
on_small_disk()
(
	at_end 'umount "$folder"'
	folder=$1
	shift
	mount -t tmpfs -o size=200k none "$folder"
	"$@"
)

# await_open RANK FILE: until the process of pid.RANK has opened the file; 1 if
# ./ended says that its job has ended before.  The file may be open for a few
# milliseconds only, which a loop that naps, or starts find(1), may miss.
await_open()
{
	local pid fd

	pid=$(cat "pid.$1")
	until [ -s ended ]; do
		for fd in "/proc/$pid/fd"/*; do
			[ ! "$fd" -ef "$2" ] || return 0
		done
	done
	return 1
}

# expect_blamed VICTIM RANK: the rank has failed, and says that it is the victim's
# fault.  Where rank 0 was ended when it had given the secret to some ranks only,
# another one cannot come, which may be noticed first.
expect_blamed()
{
	local victim=$1 rank=$2

	[ "${statuses[rank]}" = 4 ] ||
		fail "rank $rank: ${statuses[rank]}: $(cat "err.$rank")"
	expect_one_line "err.$rank"
	if [ "$victim" = 0 ] && grep -q 'has not come within' "err.$rank"; then
		cat err.? >told
		expect_match '^blinksort: .*rank 0 ' told
	else
		expect_match "^blinksort: .*rank $victim " "err.$rank"
	fi
}

# --- ranks without daemons ------------------------------------------------

end_ranks()
{
	local left

	mapfile -t left < <(jobs -p)
	kill -KILL "${left[@]}" 2>/dev/null || true
}

# start_rank RANK COMMAND...: in the background, its process in $pids[RANK]; it
# does not outlive the case
start_rank()
{
	local rank=$1
	shift

	at_end end_ranks
	"$@" >"said.$rank" 2>"err.$rank" </dev/null &
	pids[rank]=$!
}

# wait_ranks RANK...: their statuses in $statuses[RANK]
wait_ranks()
{
	local rank

	for rank; do
		statuses[rank]=0
		# The shell prints a message of its own for a killed process.
		wait "${pids[rank]}" 2>/dev/null || statuses[rank]=$?
	done
}

# sort_by_ranks RANKS WORD...: so many ranks, with these options and files, whose
# names may have %r; all of them succeed
sort_by_ranks()
{
	local ranks=$1 rank all=() pids=() statuses=()
	local job=ranks.$$.$RANDOM
	shift

	for ((rank = 0; rank < ranks; rank++)); do
		all+=("$rank")
		start_rank "$rank" timeout 120 "${BLINKSORT[@]}" \
			--nodes="127.0.0.[2-$((ranks + 1))]" --rank="$rank" \
			--job="$job" --deadline="$DEADLINE_S" "$@"
	done
	wait_ranks "${all[@]}"
	for rank in "${all[@]}"; do
		[ "${statuses[rank]}" = 0 ] ||
			fail "rank $rank: ${statuses[rank]}: $(cat "err.$rank")"
	done
}

# has_ended_before VICTIM: of four ranks, all others have succeeded: the signal came
# when all outputs had their names
has_ended_before()
{
	local rank

	for rank in 0 1 2 3; do
		[ "$rank" = "$1" ] || [ "${statuses[rank]}" = 0 ] || return 1
	done
}

# job_name RANK: of a job without a key, the name in the abstract namespace at
# which its rank 0, started by start_rank, listens
job_name()
{
	local inodes

	inodes=$(find "/proc/${pids[$1]}/fd" -lname 'socket:*' \
		-printf '%l\n' | tr -dc '0-9\n' | paste -s -d '|')
	[ -n "$inodes" ] || return 1
	grep -o -E " ($inodes) @blinksort-[0-9]+-[0-9a-f]+$" /proc/net/unix |
		sed 's/.*@//' | grep .
}

# at_once COUNT COMMAND...: as background jobs, each in a folder of its own and
# with its number behind; what they wait for is mostly time
at_once()
{
	local count=$1 i workers=() failed=0
	shift

	for ((i = 0; i < count; i++)); do
		mkdir "$i"
		(
			set -e
			cd "$i"
			"$@" "$i"
		) &
		workers+=($!)
	done
	for i in "${workers[@]}"; do
		wait "$i" || failed=1
	done
	[ "$failed" = 0 ]
}
