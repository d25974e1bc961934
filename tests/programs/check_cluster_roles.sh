#!/bin/bash
# check_cluster_roles.sh - ranks that read, sort or keep, and do not do the rest
#
# Whatever the roles of the ranks are, the outputs equal those of one process.  A
# rank without a role does not look at what only that role needs: its input, the
# folder of its output or its scratch folder need not exist.

# shellcheck disable=SC2317 # cases are called by check
# shellcheck source=tests/programs/cluster_lib.sh
. "$(dirname "$0")/cluster_lib.sh"

# Of all ranks together; more than their memory would suffice for.
readonly BYTES=48000000
MEMORY=12M
# test_cluster_paths stops more ranks, in simulated time.
kills=${KILLS:-2} short_s=3
# Ranks that are slow must not be taken for dead ones.
[ -z "$SANITIZED" ] || short_s=10

# The ranks with each role; the case sets them.
readers=() sorters=() keepers=()

# is_among RANK RANK...
is_among()
{
	local rank

	for rank in "${@:2}"; do
		[ "$rank" != "$1" ] || return 0
	done
	return 1
}

# set_roles READERS SORTERS KEEPERS: each a text of ranks; the option in $roles
set_roles()
{
	read -r -a readers <<<"$1"
	read -r -a sorters <<<"$2"
	read -r -a keepers <<<"$3"
	roles=read:${1// /+},sort:${2// /+},keep:${3// /+}
}

# cut_for_readers FILE SIZE: the inputs of those that read; others have none
cut_for_readers()
{
	local i

	rm -f in.* input.*
	cut_input "$1" "$2" "${#readers[@]}" "${how:-even}"
	for ((i = ${#readers[@]} - 1; i >= 0; i--)); do
		mv "in.$i" "input.${readers[i]}"
	done
}

# start_roles COUNT OPTION...: the ranks
start_roles()
{
	local count=$1 rank output
	shift

	for ((rank = 0; rank < count; rank++)); do
		output=(-o "nowhere/out.$rank")
		! is_among "$rank" "${sorters[@]}" ||
			output=(-o "out.$rank")
		[ -z "${gather-}" ] || output=("${gather[@]}")
		! is_among "$rank" "${keepers[@]}" || mkdir -p "scratch.$rank"
		start_rank "$rank" "${BLINKSORT[@]}" --rank="$rank" \
			--nodes="127.0.0.[2-$((count + 1))]" --job="$SCRATCH" \
			"input.$rank" -S "$MEMORY" -T "scratch.$rank" --json \
			--deadline="${deadline:-$DEADLINE_S}" --roles="$roles" \
			"$@" "${output[@]}"
	done
}

# member_of FILE MEMBER: a number, of the rank itself
member_of()
{
	sed -E "s/.*\"external\": \{.*\"$2\": ([^,}]*).*/\1/" "$1"
}

# roles_of RANK: as its report has them, with commas between
roles_of()
{
	sed -E "s/.*\{\"rank\": $1,[^]]*\"roles\": \[([^]]*)\].*/\1/" "said.$1" |
		tr -d '" '
}

# wanted_roles RANK: the same
wanted_roles()
{
	local wanted=()

	! is_among "$1" "${readers[@]}" || wanted+=(read)
	! is_among "$1" "${sorters[@]}" || wanted+=(sort)
	! is_among "$1" "${keepers[@]}" || wanted+=(keep)
	local IFS=,
	echo "${wanted[*]}"
}

# expect_done_by COUNT: every rank has done what is its own, and nothing else.
# The callers are asked how it went, so "set -e" does not end them.
expect_done_by()
{
	local rank written

	for ((rank = 0; rank < $1; rank++)); do
		expect_match '"external": \{' "said.$rank" || return 1
		[ "$(roles_of "$rank")" = "$(wanted_roles "$rank")" ] ||
			fail "rank $rank: $(roles_of "$rank")" || return 1
		python3 "$REPO/tests/programs/stage_sums.py" "said.$rank" ||
			fail "rank $rank: stages" || return 1
		written=$(member_of "said.$rank" spilled_bytes)
		if is_among "$rank" "${keepers[@]}"; then
			expect_folder "scratch.$rank" || return 1
			continue
		fi
		[ "$written" = 0 ] ||
			fail "rank $rank has written $written bytes" ||
			return 1
		[ ! -e "scratch.$rank" ] ||
			fail "scratch.$rank is there" || return 1
	done
}

# run_roles COUNT OPTION...: all of them succeed
run_roles()
{
	local statuses=() all
	pids=()

	rm -rf out.* scratch.*
	start_roles "$@"
	mapfile -t all < <(seq 0 $(($1 - 1)))
	wait_ranks "${all[@]}"
	[[ ${statuses[*]} =~ ^[0\ ]*$ ]] ||
		fail "${statuses[*]}: $(cat err.*)" || return 1
	expect_done_by "$1"
}

# expect_sorted COUNT OPTION...: and the outputs are the file "want"
expect_sorted()
{
	local outs

	run_roles "$@" || fail "$roles, $*" || return 1
	mapfile -t outs < <(printf 'out.%s\n' "${sorters[@]}")
	printf '%s\n' "${outs[@]}" | expect_outputs || return 1
	cat "${outs[@]}" | expect_same - want || fail "$roles, $*"
}

# make_whole SHAPE SIZE OPTION...: the records, and what is wanted
make_whole()
{
	local shape=$1 size=$2 count
	shift 2

	count=$((BYTES / size < 1000000 ? BYTES / size : 1000000))
	make_shape "$shape" "${records:-$count}" "$SEED" --record-size="$size" \
		"$@" >whole
	sort_reference whole -o want --record-size="$size" "$@"
}

# sort_with COUNT READERS SORTERS KEEPERS OPTION...
sort_with()
{
	local count=$1
	set_roles "$2" "$3" "$4"
	shift 4
	cut_for_readers whole 100
	expect_sorted "$count" "$@"
}

# --- exact ----------------------------------------------------------------------

# Two of four have each role: the same, others, and some of both.
case_overlaps()
{
	make_whole uniform 100
	sort_with 4 "0 1" "0 1" "0 1"
	sort_with 4 "0 1" "2 3" "0 1"
	sort_with 4 "0 1" "2 3" "2 3"
	sort_with 4 "2 3" "0 1" "1 2"
	sort_with 4 "0 3" "1 2" "0 1"
	sort_with 4 "0 2" "1 3" "1 3"
}

# Of each rank one thing only, or all but one.
case_single()
{
	make_whole uniform 100
	sort_with 3 "0" "1" "2"
	sort_with 3 "2" "0" "1"
	sort_with 3 "1" "2" "0"
	sort_with 3 "0 1" "1 2" "0 2"
	sort_with 6 "0 1 2 3" "4" "5"
	sort_with 6 "0" "1 2 3" "4 5"
}

# All have all roles, by name: nothing changes, whatever fits into memory.
case_all()
{
	make_whole uniform 100
	sort_with 2 "0 1" "0 1" "0 1"
	[ "$(member_of said.0 received_bytes)" != 0 ] || fail "$(cat said.0)"
	MEMORY=200M
	set_roles "0 1" "0 1" "0 1"
	start_roles 2
	wait_ranks 0 1
	expect_match '"external": null' said.0
	cat out.0 out.1 | expect_same - want
}

case_shapes()
{
	local shape

	for shape in zipf all-equal few-distinct sorted reversed; do
		make_whole "$shape" 100
		sort_with 4 "0 1 3" "1 2" "2 3" || fail "$shape"
	done
}

case_record_sizes()
{
	local roles

	set_roles "0 1" "1 2" "2 3"
	make_whole uniform 16 --key=4:8
	cut_for_readers whole 16
	expect_sorted 4 --record-size=16 --key=4:8
	make_whole uniform 4096 --key=4090:6
	cut_for_readers whole 4096
	expect_sorted 4 --record-size=4096 --key=4090:6
	make_whole uniform 7 --key=0:7
	cut_for_readers whole 7
	expect_sorted 4 --record-size=7 --key=0:7
}

# What is supposed of each group of ranks is what these predict of themselves.
case_predicted()
{
	local rates=(--disk-rates=100M:200M:250M --link-rate=7M --threads=1)

	make_whole uniform 100
	sort_with 5 "0 1" "1 2 3" "3 4" "${rates[@]}"
	"$BIN/blinksort" --explain --suppose=5:$((BYTES / 100)) -S "$MEMORY" \
		"${rates[@]}" --roles="$roles" --json >supposed
	python3 - <<-'END' || fail "$(cat supposed said.*)"
		import json
		groups = {tuple(group["roles"]): group for group in
		          json.load(open("supposed"))["role_groups"]}
		assert len(groups) == 5, groups
		for rank in range(5):
		    said = json.load(open(f"said.{rank}"))
		    roles = tuple(one["roles"] for one in said["ranks"]
		                  if one["rank"] == rank)[0]
		    for member in "predicted_ns", "predicted_passes":
		        assert said["external"][member] == \
		            groups[tuple(roles)][member], (rank, member)
	END
}

# Few records, or none, go the same way.
case_small()
{
	local records

	for records in 0 1 2 1000; do
		make_whole uniform 100
		sort_with 4 "0 1" "1 2" "2 3" || fail "$records records"
		sort_with 3 "0" "1" "2" || fail "$records records"
	done
}

# The inputs are of any size, none among them.
case_uneven()
{
	local how

	make_whole uniform 100
	for how in random first last; do
		sort_with 5 "0 1 2 3" "2 4" "3 4" || fail "$how"
	done
	sort_with 4 "0 1" "1 2" "2 3" --plain --payload=1472 --schedule=rounds
}

case_unique()
{
	local roles

	set_roles "0 1 2" "1 2" "2 3"
	make_whole few-distinct 100
	"${BLINKSORT[@]}" whole -o want --unique
	cut_for_readers whole 100
	expect_sorted 4 --unique
	make_whole uniform 100
	cut_for_readers whole 100
	cp input.0 input.2
	cat input.0 input.1 input.2 >whole
	"${BLINKSORT[@]}" whole -o want --unique
	expect_sorted 4 --unique
}

case_compress()
{
	make_whole ascii 100
	sort_with 4 "0 1" "1 2" "2 3" --compress=lz4
	expect_match '"compress": "lz4"' said.3
	python3 -c 'import json
told = json.load(open("said.3"))["external"]
assert told["stored_bytes"] < told["plain_bytes"]' ||
		fail "nothing is smaller: $(cat said.3)"
	sort_with 4 "0 1" "1 2" "2 3" --compress=auto --checksum
	sort_with 4 "0 1" "1 2" "2 3" --compress=zstd:1
}

# Rank 0 does not sort: another rank gives the one file its name.
case_gather()
{
	local gather=(--gather=out.0) listed words roles

	make_whole zipf 100
	for listed in "0 1:2 3:1 2" "0 3:0 2:1" "0:3:1"; do
		IFS=: read -r -a words <<<"$listed"
		set_roles "${words[0]}" "${words[1]}" "${words[2]}"
		cut_for_readers whole 100
		run_roles 4
		echo out.0 | expect_outputs
		expect_same out.0 want
	done
	gather+=(--gather=out.1)
	set_roles "0 2" "1 3" "0 1"
	cut_for_readers whole 100
	run_roles 4
	printf 'out.0\nout.1\n' | expect_outputs
	cat out.0 out.1 | expect_same - want
}

# A keeper merges runs of several ranks, between whose inputs there are others.
case_many_runs()
{
	make_whole few-distinct 100
	sort_with 3 "0 1 2" "0 1 2" "1" --threads=1
	[ "$(member_of said.1 merges)" -gt 1 ] ||
		fail "few runs were merged before: $(cat said.1)"
	# Rank 2 has runs of ranks 0 and 2, between which those of rank 1 lie.
	sort_with 5 "0 1 2 4" "0 1" "2 4" --threads=1
	[ "$(member_of said.2 merges)" -gt 0 ] ||
		fail "no runs were merged before: $(cat said.2)"
}

# The same by a file, with comments.
case_file()
{
	local roles

	make_whole uniform 100
	set_roles "0 1" "1 2" "2 3"
	cut_for_readers whole 100
	printf '%s\n' '# who does what' 'read:0-1' '' '  sort:1+2 # two' \
		'keep:2' 'keep:3' >roles.list
	roles=roles.list
	expect_sorted 4
}

# --- what is wrong ----------------------------------------------------------------

# refuse ROLES MESSAGE [STATUS]: rank 0 of two says so, in one line
refuse()
{
	local statuses=() pids=() roles=$1 expected=${3:-2}

	set -- "$2"
	start_roles 2
	wait_ranks 0 1
	[ "${statuses[*]}" = "$expected $expected" ] ||
		fail "$roles: ${statuses[*]}"
	expect_one_line err.0
	expect_match "$1" err.0
	expect_none
}

case_refused()
{
	make_whole uniform 100
	set_roles "0 1" "0 1" "0 1"
	cut_for_readers whole 100
	refuse read:0-2 'there is no rank 2'
	refuse read:1-0 '--roles=read:1-0: ranks are numbers'
	refuse read:200 'there is no rank 200'
	refuse read:5000 'up to 4095'
	refuse write:0 'not ROLE:RANKS'
	refuse read:0, 'not ROLE:RANKS'
	refuse auto 'auto only with --suppose'
	refuse nofile 'nofile: cannot read this file of roles' 3
	mkdir folder
	refuse folder 'folder: cannot read this file of roles' 3
	printf 'read:0\n\nsort:1 keep:1\n' >lines
	refuse lines 'lines: line 3: not ROLE:RANKS'
	head -c 100000 /dev/zero >zeros
	refuse zeros 'zeros: cannot read this file of roles' 3
}

# Rank 0 keeps what all odd ranks read, and other ranks' inputs lie between: too
# many parts for one merge.  It is found before any of them is read.
case_many_parts()
{
	local MEMORY=16M pids=() statuses=() all rank
	mapfile -t all < <(seq 0 15)

	rm -f input.*
	set_roles "${all[*]}" "${all[*]}" "0 2 4 6 8 10 12 14"
	for rank in "${all[@]}"; do
		make_shape uniform $((rank % 2 ? 1000 : 20)) "$SEED" \
			>"input.$rank"
	done
	make_shape uniform 200000 "$SEED" >input.14
	start_roles 16
	wait_ranks "${all[@]}"
	[[ ${statuses[*]} =~ ^[45](\ 4)*$ ]] || fail "${statuses[*]}"
	for rank in "${all[@]}"; do
		expect_one_line "err.$rank"
		expect_match 'too little( memory)? to merge the 8 parts of the' \
			"err.$rank"
	done
	expect_match 'rank 0 ' err.1
	expect_none
}

# Of one rank that does not say the same: what all say together counts.
case_nobody()
{
	local statuses=() pids=() role rank

	make_whole uniform 100
	set_roles "0 1" "0 1" "0 1"
	cut_for_readers whole 100
	for role in read sort keep; do
		for rank in 0 1; do
			start_rank "$rank" "${BLINKSORT[@]}" "input.$rank" \
				-o "out.$rank" --nodes='127.0.0.[2-3]' \
				--job="$SCRATCH" --rank="$rank" \
				--roles="$role:$((1 - rank))" \
				--deadline="$DEADLINE_S"
		done
		wait_ranks 0 1
		# The one that says it first ends the run on the other.
		[[ ${statuses[*]} =~ ^(2\ [24]|4\ 2)$ ]] ||
			fail "$role: ${statuses[*]}"
		cat err.0 err.1 >errors
		expect_match "--roles: none of the 2 ranks has the role $role" \
			errors
		expect_none
	done
	"${BLINKSORT[@]}" whole -o out --roles=read:0 2>err.0 && fail "taken"
	expect_match '--roles: only with --cluster, --nodes or --suppose' err.0
}

# expect_ended VICTIM: all other ranks say that this one is at fault, and nothing
# is left
expect_ended()
{
	local rank

	for rank in 0 1 2 3; do
		[ ! -e "scratch.$rank" ] || expect_folder "scratch.$rank"
		[ "$rank" != "$1" ] || continue
		expect_blamed "$1" "$rank"
	done
	expect_none
}

# end_one SIGNAL: at a random moment, a random rank
end_one()
{
	local random victim rank statuses=()
	pids=()

	rm -rf out.* scratch.*
	deadline=$short_s start_roles 4
	random_below 4
	victim=$random
	random_below 400
	sleep "0.$(printf %03d "$random")"
	kill "-$1" "${pids[victim]}" 2>/dev/null || true
	if [ "$1" = STOP ]; then
		for rank in 0 1 2 3; do
			[ "$rank" = "$victim" ] ||
				wait "${pids[rank]}" 2>/dev/null || true
		done
		kill -KILL "${pids[victim]}" 2>/dev/null || true
	fi
	wait_ranks 0 1 2 3
	if has_ended_before "$victim"; then
		cat out.1 out.2 | expect_same - want
	else
		expect_ended "$victim"
		ended=$((ended + 1))
	fi
}

# case_ended SIGNAL
case_ended()
{
	local i ended=0 roles

	make_whole uniform 100
	set_roles "0 1" "1 2" "2 3"
	cut_for_readers whole 100
	# On some machines most runs are done before.
	for ((i = 0; i < kills || (ended == 0 && i < 10 * kills); i++)); do
		end_one "$1"
	done
	[ "$ended" -gt 0 ] || fail "all runs were done before"
}

# The folder of a keeper has no room, at the start or for what comes from others:
# it says so, with the folder, and all others name the rank.
case_scratch_full()
{
	local statuses=() pids=() rank roles

	make_whole uniform 100
	set_roles "0 1" "1 2" "2 3"
	cut_for_readers whole 100
	rm -rf scratch.*
	mkdir scratch.3
	mount -t tmpfs -o size="$1" none scratch.3
	at_end 'umount -l scratch.3'
	start_roles 4
	wait_ranks 0 1 2 3
	umount -l scratch.3
	[ "${statuses[*]}" = "4 4 4 3" ] || fail "${statuses[*]}: $(cat err.*)"
	expect_match 'scratch.3' err.3
	for rank in 0 1 2; do
		expect_match "rank 3 .*scratch.3" "err.$rank"
	done
	expect_none
}

# An input that ends too early, and one that is not there.
case_input_fails()
{
	local statuses=() pids=() roles

	make_whole uniform 100
	set_roles "0 1" "1 2" "2 3"
	cut_for_readers whole 100
	rm input.1
	start_roles 4
	wait_ranks 0 1 2 3
	[ "${statuses[*]}" = "4 3 4 4" ] || fail "${statuses[*]}: $(cat err.*)"
	expect_match 'input.1' err.1
	expect_none
}

check overlaps case_overlaps
check single case_single
check all case_all
check predicted case_predicted
check shapes case_shapes
check record_sizes case_record_sizes
check small case_small
check uneven case_uneven
check unique case_unique
check compress case_compress
check gather case_gather
check many_runs case_many_runs
check file case_file
check refused case_refused
check many_parts case_many_parts
check nobody case_nobody
check killed case_ended KILL
check stopped case_ended STOP
check_able mount scratch_full_at_start case_scratch_full 4M
check input_fails case_input_fails

finish
