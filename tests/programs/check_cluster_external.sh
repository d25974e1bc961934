#!/bin/bash
# check_cluster_external.sh - ranks whose records do not fit into their memory
#
# The outputs equal those of one process with memory enough, whatever the
# records, sizes and numbers of ranks; a rank that dies, stops or has no room
# ends the run on all; and nothing is left of any run.

# shellcheck disable=SC2317 # cases are called by check
# shellcheck source=tests/programs/external_ranks_lib.sh
. "$(dirname "$0")/external_ranks_lib.sh"

# --- exact ----------------------------------------------------------------------

case_shapes()
{
	local shape

	for shape in $("$HELPERS/make_shape" --list); do
		make_whole "$shape" 100 4 even
		expect_external 4 || fail "$shape"
	done
}

case_ranks()
{
	local ranks

	for ranks in 2 3 7; do
		make_whole uniform 100 "$ranks" random
		expect_external "$ranks"
	done
}

# All is one rank's, or it has been cut as it is sorted.
case_uneven()
{
	make_whole uniform 100 4 last
	expect_external 4
	expect_external 4 --plain --payload=1472 --schedule=rounds
	sort_reference whole -o whole.sorted
	cut_input whole.sorted 100 4 even
	expect_external 4
}

case_record_sizes()
{
	make_whole uniform 16 3 even --key=4:8
	expect_external 3 --record-size=16 --key=4:8
	make_whole uniform 4096 3 even --key=4090:6
	expect_external 3 --record-size=4096 --key=4090:6
	make_whole uniform 7 3 even --key=0:7
	expect_external 3 --record-size=7 --key=0:7
}

case_keys()
{
	make_whole uniform 100 3 even
	"${BLINKSORT[@]}" whole -o want --key=96:i32be:desc --key=3:2
	expect_external 3 --key=96:i32be:desc --key=3:2
}

# expect_documented FILE: the man page tells every member
expect_documented()
{
	local member

	# Without the line ends that a backslash hides.
	sed -e ':again' -e '/\\$/N; s/\\\n//; t again' \
		"$REPO/src/programs/blinksort/blinksort-json.5" >page
	grep -o '"[a-z_0-9]*":' "$1" | tr -d '":' | sort -u >members
	[ "$(wc -l <members)" -gt 60 ] || fail "few members: $(cat "$1")"
	while read -r member; do
		grep -q "^\.\(It \)\?Cm .*\b$member\b" page ||
			fail "the man page lacks $member"
	done <members
}

case_compress()
{
	make_whole ascii 100 4 even
	expect_external 4 --compress=lz4
	expect_match '"compress": "lz4"' said.1
	expect_external 4 --compress=auto --checksum
	expect_match '"compress_choice": (null|\{)' said.1
	# Over a slow link it is chosen, as soon as the first run is written.
	expect_external 4 --compress=auto --link-rate=10K
	expect_match '"compress": "lz4"' said.1
	expect_match '"none_passes": .*"output", "ns": [0-9]*, "limit": "link"' \
		said.1
	expect_documented said.1
}

case_unique()
{
	make_whole few-distinct 100 4 random
	"${BLINKSORT[@]}" whole -o want --unique
	expect_external 4 --unique
	make_whole uniform 100 4 even
	cat in.0 in.1 in.2 in.0 >whole
	cp in.0 in.3
	"${BLINKSORT[@]}" whole -o want --unique
	expect_external 4 --unique
}

case_gather()
{
	local options

	make_whole zipf 100 4 even
	for options in --gather=a "--gather=a --gather=b" \
		"--gather=a --gather=b --gather=c"; do
		rank_options=([0]="$options" [1]="$options" [2]="$options"
			[3]="$options")
		sort_externally 4
		# shellcheck disable=SC2086 # options are words
		printf '%s\n' ${options//--gather=/} | xargs cat |
			expect_same - want
		expect_none
		rm -f a b c
	done
}

# Several batches of runs are merged into longer ones before.
case_many_runs()
{
	make_whole uniform 100 4 even
	MEMORY=9M expect_external 4 --threads=1
	grep -q '"merges": [1-9]' said.0 || fail "no runs were merged before"
}

# With a little more or less memory than a sort in memory takes, ranks sort.
case_edge()
{
	local mib statuses pids io

	make_shape uniform 120000 "$SEED" >whole
	sort_reference whole -o want
	cut_input whole 100 4 even
	for io in direct buffered auto; do
		for mib in 10 11 12 13 14 16; do
			statuses=() pids=()
			rm -rf out.* scratch.*
			MEMORY=${mib}M start_external 4 --threads=1 --io="$io"
			wait_ranks 0 1 2 3
			[ "${statuses[*]}" = "0 0 0 0" ] ||
				fail "$mib MiB, $io: $(cat err.*)"
			expect_whole 4 want || fail "$mib MiB, $io"
		done
	done
}

# passes_of FILE MEMBER: of each rank and pass, in $values
passes_of()
{
	mapfile -t values < <(grep -o '"passes": \[{[^]]*predicted_ns[^]]*\]' \
		"$1" | grep -o "\"$2\": [^,}]*" |
		sed 's/.*: //')
}

# expect_between NUMBER ABOVE MOST WHAT
expect_between()
{
	if [ "$1" -le "$2" ] || [ "$1" -gt "$3" ]; then
		fail "$4: $1, not above $2 and up to $3"
	fi
}

# Rank 0 knows the passes of all: every byte is read twice and written twice, and
# what is sent arrives.
case_passes()
{
	local values sum name sums=()

	make_whole uniform 100 4 even
	expect_external 4 --disk-rates=1G:1G:2G
	for name in read_bytes written_bytes sent_bytes received_bytes \
		predicted_ns; do
		passes_of said.0 "$name"
		[ "${#values[@]}" = 12 ] || fail "$name: ${values[*]}"
		sum=0
		for value in "${values[@]}"; do
			[ "$value" = null ] || sum=$((sum + value))
		done
		sums+=("$sum")
	done
	# Some of it stays in memory; direct I/O reads and writes whole pages,
	# and blocks where parts meet are read for both.
	expect_between "${sums[0]}" $((BYTES * 3 / 2)) $((BYTES * 5 / 2)) read
	expect_between "${sums[1]}" $((BYTES * 3 / 2)) $((BYTES * 22 / 10)) \
		written
	expect_between "${sums[2]}" $((BYTES / 2)) "$BYTES" sent
	[ "${sums[2]}" = "${sums[3]}" ] || fail "sent and received: ${sums[*]}"
	[ "${sums[4]}" -gt 0 ] || fail "nothing is predicted"
	passes_of said.0 limit
	[[ ${values[*]} =~ ^(\"(disk|cpu|link)\"\ ?)+$ ]] || fail "${values[*]}"
	passes_of said.1 limit
	[ "${#values[@]}" = 3 ] || fail "rank 1: ${values[*]}"
	python3 "$REPO/tests/programs/stage_sums.py" said.? ||
		fail "stages"
}

# member_of FILE MEMBER: its value, of the rank itself
member_of()
{
	sed -E "s/.*\"external\": \{.*\"$2\": ([^,}]*).*/\1/" "$1"
}

# What is told of a link is used, and otherwise it is measured; it limits the last
# pass if it is slow.
case_links()
{
	local limits='"pass": "output"[^}]*"limit": '

	make_whole uniform 100 3 even
	expect_external 3 --disk-rates=1G:1G:2G --link-rate=1M
	[ "$(member_of said.1 link_rate)" = 1048576 ] || fail "$(cat said.1)"
	expect_match "$limits\"link\"" said.1
	rank_options=([2]="--link-rate=1T -o out.2")
	expect_external 3 --disk-rates=1M:1M:1M
	[ "$(member_of said.2 link_rate)" = 1099511627776 ] ||
		fail "$(cat said.2)"
	[ "$(member_of said.1 link_rate)" -gt 1000000 ] ||
		fail "nothing was measured: $(cat said.1)"
	expect_match "$limits\"disk\"" said.1
}

# predictions_of FILE
predictions_of()
{
	grep -o '"predicted_ns": .*"predicted_passes": [^]]*\]' "$1" | sed -n 1p
}

# What is supposed of ranks is what they predict of themselves.
case_suppose()
{
	local rates=(--disk-rates=100M:200M:250M --link-rate=7M --threads=1)

	make_whole uniform 100 4 even
	expect_external 4 "${rates[@]}"
	"$BIN/blinksort" --explain --suppose=4:$((BYTES / 100)) -S "$MEMORY" \
		"${rates[@]}" --json >supposed
	predictions_of supposed >want
	[ -s want ] || fail "$(cat supposed)"
	predictions_of said.3 | sed 's/, "predicted_after_ns.*//' | expect_same - want
	expect_match '"fits": false, .*"limit": "link"' supposed
}

# supposed_to_fit RANKS RECORDS SIZE: in so much memory, in bytes
supposed_to_fit()
{
	[[ $("$BIN/blinksort" --explain --suppose="$1:$2" --record-size="$3" \
		-S "$4" --threads=1 --json) == *'"fits": true'* ]]
}

# find_edge RANKS RECORDS SIZE: the least memory that is supposed to be enough
# for a sort in memory, in $edge
find_edge()
{
	local low=$((10 << 20)) middle

	edge=$((100 << 20))
	supposed_to_fit "$@" "$edge" || fail "$*: more than $edge"
	! supposed_to_fit "$@" "$low" || fail "$*: less than $low"
	while ((edge - low > 1)); do
		middle=$(((low + edge) / 2))
		if supposed_to_fit "$@" "$middle"; then
			edge=$middle
		else
			low=$middle
		fi
	done
}

# expect_way RANKS MEMORY WAY OPTION...: the ranks sort, and "external" is WAY
expect_way()
{
	local count=$1 memory=$2 way=$3 statuses=() pids=() all rank
	shift 3

	rm -rf out.* scratch.*
	MEMORY=$memory start_external "$count" --threads=1 --io=direct "$@"
	mapfile -t all < <(seq 0 $((count - 1)))
	wait_ranks "${all[@]}"
	[[ ${statuses[*]} =~ ^[0\ ]*$ ]] || fail "${statuses[*]}: $(cat err.*)"
	for rank in "${all[@]}"; do
		expect_match "\"external\": $way" "said.$rank"
	done
	expect_whole "$count" want
}

# With the memory that is supposed to be enough, ranks sort in memory; with a
# byte less, beyond it.
case_suppose_edge()
{
	local sizes=("4 120000 100" "3 450001 16" "2 2000 4096" "7 217000 90")
	local ranks records size edge line

	for line in "${sizes[@]}"; do
		read -r ranks records size <<<"$line"
		find_edge "$ranks" "$records" "$size"
		make_shape uniform "$records" "$SEED" --record-size="$size" \
			>whole
		sort_reference whole -o want --record-size="$size"
		cut_input whole "$size" "$ranks" even
		expect_way "$ranks" "$edge" null --record-size="$size"
		expect_way "$ranks" $((edge - 1)) '\{' --record-size="$size"
	done
}

# To a daemon's job, as lines that end with a carriage return; the table follows.
case_progress()
{
	make_whole uniform 100 3 even
	BLINK_JOB=1 sort_externally 3 --progress
	expect_match '^output +all .* (disk|cpu|link)$' err.0
	expect_match '^ +rank 2 .* (disk|cpu|link)$' err.0
	expect_match '^the input was read [1-3]\.[0-9]+ times, and written [12]\.[0-9]+ times$' \
		err.0
	[ ! -s err.1 ] || fail "$(cat err.1)"
}

# --- failures -------------------------------------------------------------------

# The folder of one rank's scratch files has no room: it says so, with the
# folder, and all others name the rank.
case_scratch_full()
{
	local statuses=() pids=() rank

	make_whole uniform 100 4 even
	rm -rf scratch.*
	mkdir scratch.2
	mount -t tmpfs -o size="$1" none scratch.2
	at_end 'umount -l scratch.2'
	start_external 4
	wait_ranks 0 1 2 3
	umount -l scratch.2
	[ "${statuses[*]}" = "4 4 3 4" ] || fail "${statuses[*]}: $(cat err.*)"
	expect_match 'scratch.2 .*are missing' err.2
	for rank in 0 1 3; do
		expect_match "rank 2 .*scratch.2" "err.$rank"
	done
	expect_none
}

# used_of FOLDER: KiB of its file system
used_of()
{
	df --output=used "$1" | tail -n 1
}

# fill_scratch PERCENT: of rank 2, on a file system that cannot reserve room, when
# so much of the runs has been written
fill_scratch()
{
	local empty

	rm -rf scratch.*
	mkdir scratch.2
	mkfs.ext2 -q -F -b 4096 -m 0 disk
	mount -o loop disk scratch.2
	at_end 'umount -l scratch.2'
	empty=$(used_of scratch.2)
	start_external 4
	at_end 'end_ranks; umount -l scratch.2'
	until [ "$(used_of scratch.2)" -gt $((empty + 40000 * $1 / 100)) ] ||
		! kill -0 "${pids[2]}" 2>/dev/null; do
		:
	done
	dd if=/dev/zero of=scratch.2/others bs=1M 2>dd.said || true
	wait_ranks 0 1 2 3
	rm -f scratch.2/others
	expect_folder scratch.2 lost+found
	umount -l scratch.2
	trap - EXIT
}

# Room that was there at the start is gone in the middle of the first pass; the
# ranks may be done before.
case_scratch_fills()
{
	local statuses pids try rank

	make_shape uniform 1600000 "$SEED" >whole
	cut_input whole 100 4 even
	truncate -s 90000K disk
	for try in 1 2 3 4 5; do
		statuses=() pids=()
		rm -f out.*
		fill_scratch "$1"
		[ "${statuses[*]}" = "0 0 0 0" ] || break
	done
	[ "${statuses[*]}" = "4 4 3 4" ] ||
		fail "$try: ${statuses[*]}: $(cat err.*)"
	expect_match 'scratch.2 .*no room for scratch files' err.2
	for rank in 0 1 3; do
		expect_match "rank 2 .*scratch.2" "err.$rank"
	done
	expect_none
}

# expect_ranks_refuse MESSAGE: by a rank or more; the others hear of that
expect_ranks_refuse()
{
	[[ " ${statuses[*]} " == *" 2 "* && "${statuses[*]}" =~ ^[24\ ]*$ ]] ||
		fail "${statuses[*]}: $(cat err.*)"
	cat err.* >errors
	expect_match "$1" errors
	expect_none
}

case_bad_options()
{
	local statuses=() pids=()

	make_whole uniform 100 4 even
	rank_options=([1]="-o out.1 --compress=lz4")
	start_external 4
	wait_ranks 0 1 2 3
	expect_ranks_refuse 'another --compress'
}

# All ranks refuse it, whatever takes them beyond memory, and begin no output.
case_gather_unique()
{
	local statuses=() pids=() rank option

	rm -f out.* whole.out
	make_whole uniform 100 4 even
	for rank in 0 1 2 3; do
		rank_options[rank]=--gather=whole.out
	done
	start_external 4 --unique
	wait_ranks 0 1 2 3
	expect_ranks_refuse '^blinksort: --gather: .*: write parts, or sort '
	for option in --shared-input --roles=keep:2; do
		statuses=() pids=()
		MEMORY=1G start_external 4 --unique "$option"
		wait_ranks 0 1 2 3
		expect_ranks_refuse '^blinksort: --gather: .*: write parts, or sort '
	done
	[ ! -e whole.out ] || fail "there is an output"
}

check shapes case_shapes
check ranks case_ranks
check uneven case_uneven
check record_sizes case_record_sizes
check keys case_keys
check compress case_compress
check unique case_unique
check gather case_gather
check many_runs case_many_runs
check edge case_edge
check passes case_passes
check links case_links
check suppose case_suppose
check suppose_edge case_suppose_edge
check progress case_progress
check killed case_ended KILL
check terminated case_ended TERM
check stopped case_ended STOP
check_able mount scratch_full_at_start case_scratch_full 4M
for percent in 0 40 70; do
	check_able loop,mount,mkfs.ext2.here "scratch_fills_at_$percent" case_scratch_fills \
		$percent
done
check bad_options case_bad_options
check gather_unique case_gather_unique

finish
