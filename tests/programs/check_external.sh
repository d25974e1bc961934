#!/bin/bash
# check_external.sh - blinksort on what does not fit into the memory it may take
#
# The output equals that of the sort in memory, whatever the records and however
# many runs are merged at once; scratch directories that fail or are full are
# named, or others take over; and whatever ends a run, nothing of it is left in
# any folder.

# shellcheck disable=SC2317 # cases are called by check
. "$(dirname "$0")/fault_lib.sh"

# Less than the input, so that it has to be sorted in runs: a mapped input would
# not count.
readonly BYTES=20000000
LITTLE=(--io=direct --threads=2 -S 10M)
# A disk that turns: reads and writes take turns.
readonly ARM=--disk-rates=150M:150M:150M:150

# sort_both ARGUMENT...: "in" in memory to "want", and in little memory to "out"
# by way of the scratch folders one and two; these must be empty in the end
sort_both()
{
	mkdir -p one two
	"$BIN/blinksort" in -o want "$@"
	expect_external "$@"
}

# expect_external ARGUMENT...: the second half of it
expect_external()
{
	expect_sorted in -o out "${LITTLE[@]}" -T one -T two "$@"
	expect_same out want
	rm out
	expect_folder one
	expect_folder two
}

# make_in [SHAPE [RECORD-SIZE [OPTION...]]]: the file "in"
make_in()
{
	local shape=${1:-uniform} size=${2:-100}
	shift $(($# < 2 ? $# : 2))

	make_shape "$shape" $((BYTES / size)) "$SEED" --record-size="$size" \
		"$@" >in
}

# --- exact ----------------------------------------------------------------------

case_shapes()
{
	local shape

	for shape in $("$HELPERS/make_shape" --list); do
		make_in "$shape"
		sort_both || fail "$shape"
		expect_external "$ARM" || fail "$shape, in turns"
	done
}

# Requests of an eighth of a MiB would cost its arm as much as those of a whole.
case_an_arm()
{
	local arguments=(in -o out -S 100M --explain --io=direct) rates

	make_in
	truncate -s 2G in
	expect_sorted "${arguments[@]}" "$ARM"
	expect_match '^threads +1 reads?, and as many' "$STDOUT"
	expect_match '^limits .*by the disk, which has an arm' "$STDOUT"
	expect_match '^memory .*: 1 batch, in turns, of ' "$STDOUT"
	expect_match '^pieces .*, read and written in turns$' "$STDOUT"
	expect_match '^ +serves 150 small reads a second from anywhere$' "$STDOUT"
	expect_match '^ +[0-9]+ other places of the disk cost [0-9.]+ m?s of it$' \
		"$STDOUT"
	expect_sorted "${arguments[@]}" --disk-rates=1G:1G:1G:100000
	expect_match '^threads +2 read, and as many' "$STDOUT"
	expect_match '^pieces .* from each run$' "$STDOUT"
	for rates in x:1:1 1:1 0:1:1 1:1:1: 1:1:1:0 1:1:1:1: 1:1:1:1:1; do
		expect_refused 2 "--disk-rates: '$rates'" --disk-rates="$rates"
	done
	expect_sorted "${arguments[@]}" --disk-rates=1:1:1
}

# The key is at the end of the record.
case_record_sizes()
{
	local size length

	for size in 1 2 7 16 100 4096 1048576; do
		length=$((size < 10 ? size : 10))
		LITTLE=(--io=direct --threads=2 -S "$(little_for "$size")")
		make_in uniform "$size" "--key=$((size - length)):$length"
		sort_both "--record-size=$size" \
			"--key=$((size - length)):$length" ||
			fail "records of $size bytes"
	done
}

# Records of one or two bytes that are all key are counted: in memory, beyond it,
# and between pipes.
case_small_records()
{
	local line format key options

	LITTLE=(--io=direct --threads=2 -S 14M)
	make_in uniform 2 --key=0:2
	while read -r format key options; do
		local size=1 arguments=("--key=0:$key")
		[[ $key == *8* ]] || size=2
		[[ $options == *reverse* && $key != *desc ]] &&
			arguments+=(--reverse)
		[[ $options == *unique* ]] && arguments+=(--unique)
		line="$format $key $options"
		arguments+=("--record-size=$size")
		# shellcheck disable=SC2086 # options are words
		"$REPO/tests/programs/counted_records.py" "$format" $options \
			<in >want
		expect_sorted in -o out "${arguments[@]}" --json
		expect_same out want || fail "$line"
		expect_match '"external": null' "$STDOUT"
		expect_sorted in -o out "${LITTLE[@]}" "${arguments[@]}" --json
		expect_same out want || fail "$line, in little memory"
		expect_match '"way": "counts"' "$STDOUT"
		"$BIN/blinksort" - -o - "${arguments[@]}" <in | cat >out
		expect_same out want || fail "$line, between pipes"
	done <<-EOF
		B u8
		b i8 reverse
		H u16 unique
		h i16:desc reverse
		h i16
	EOF
	expect_sorted in -o out1 -o out2 --record-size=2 --key=0:i16 --unique
	"$BIN/blinksort" in -o want --record-size=2 --key=0:i16 --unique
	cat out1 out2 | expect_same - want
	[ "$(stat -c %s out1)" = 65536 ] || fail "parts: $(ls -l out1 out2)"
}

# little_for RECORD-SIZE: a memory that suffices, and is too little for BYTES
little_for()
{
	case $1 in
	1048576) echo 18M ;;
	*) echo 13M ;;
	esac
}

case_options()
{
	local shape

	for shape in uniform few-distinct; do
		make_in "$shape"
		sort_both --unique
		expect_external --unique "$ARM"
		sort_both --reverse
		sort_both --key=4:i32:desc --key=0:2 --unique
		sort_both --sync --checksum >/dev/null
	done
}

# Two runs at once, so some are merged again and again.
case_batch_size()
{
	local shape

	for shape in uniform all-equal sorted; do
		make_in "$shape"
		sort_both --batch-size=2
		expect_external --batch-size=3
		expect_external --batch-size=2 "$ARM"
		sort_both --batch-size=2 --unique
	done
}

# All that was read and written is told, and all the time of the threads: each of
# them works or waits.
case_passes_tell_all()
{
	local size options

	make_in
	for options in '' --batch-size=2 --compress=lz4 --unique; do
		# shellcheck disable=SC2086 # it may be empty
		"${BLINKSORT[@]}" in -o out "${LITTLE[@]}" $options --json >json
		python3 "$REPO/tests/programs/stage_sums.py" json ||
			fail "$options"
	done
	for size in 1 100000; do
		"$BIN/blinksort" - -o out -S 10M "--record-size=$size" --json \
			<in >json
		python3 "$REPO/tests/programs/stage_sums.py" json ||
			fail "--record-size=$size"
	done
}

case_threads()
{
	local threads

	make_in
	"$BIN/blinksort" in -o want
	mkdir one two
	for threads in 1 2 3 4; do
		LITTLE=(--io=direct "--threads=$threads" -S 12M)
		expect_external
	done
}

case_io()
{
	local io

	make_in
	"$BIN/blinksort" in -o want
	mkdir one two
	for io in buffered direct; do
		LITTLE=("--io=$io" --threads=2 -S 10M)
		expect_external
	done
}

# Several files in, several out; one of the inputs is replaced.
case_files()
{
	mkdir one two
	make_in
	head -c 2000000 in >first
	: >empty
	tail -c +2000001 in >rest
	"$BIN/blinksort" in -o want
	expect_sorted first empty rest -o out1 -o out2 -o out3 "${LITTLE[@]}" \
		-T one
	cat out1 out2 out3 | expect_same - want
	expect_sorted first empty rest -o rest "${LITTLE[@]}" -T two
	expect_same rest want
	expect_folder . empty first in one out1 out2 out3 rest two want
	expect_folder one
}

# Where files lie is not supposed.
readonly WITHOUT_FILES='s/"directories": [^]]*\]/"directories": []/
s/"may_reread": true/"may_reread": false/'

# What is supposed of a file that is not there is what is explained of one that
# is; and nothing is read or written for that.
case_suppose()
{
	local options=("${LITTLE[@]}" --disk-rates=100M:200M:250M --json)

	make_in
	mkdir one
	expect_sorted in -o out "${options[@]}" -T one --explain
	sed "$WITHOUT_FILES" "$STDOUT" >want
	rm in
	expect_sorted --explain --suppose=1:$((BYTES / 100)) "${options[@]}"
	expect_same want "$STDOUT"
	expect_sorted --explain --suppose=1:1000 --json
	expect_match '"fits": true' "$STDOUT"
	# Without rates there is a plan without times.
	expect_sorted --explain --suppose=3:10000000000 -S 1G
	expect_match '^ranks +3, for 931.3 GiB: 10000000000 records' "$STDOUT"
	expect_match '^disk .*--disk-rates can tell them$' "$STDOUT"
	expect_sorted --explain --suppose=1:10000000 -S 10M --batch-size=2
	expect_match '^merges +about [0-9]+, of ' "$STDOUT"
	expect_match '^passes +about [0-9.]+: ' "$STDOUT"
	expect_said True "p['input_passes'] == round(1 + (p['spilled_bytes'] +
		p['merged_bytes']) / p['bytes'], 4) > 2" \
		--suppose=1:10000000 -S 10M --batch-size=2
	expect_refused 5 '^--memory: sorting this takes' --explain \
		--suppose=3:10000000000 -S 5M
	expect_folder . one want
}

# least_memory OPTION...: the bytes that a sort in memory takes
least_memory()
{
	"$BIN/blinksort" --explain --json "$@" |
		sed 's/.*"memory_bytes": \([0-9]*\).*/\1/'
}

# What is supposed is what is explained of files past the page cache, where memory
# is so little that all just fits, fits with fewer threads only, or does not.  On
# tmpfs an output takes other memory.
case_suppose_edge()
{
	local sort=(in -o out --io=direct) one two memory threads

	make_in
	expect_sorted "${sort[@]}" --json
	grep -q '"output_io": "direct"' "$STDOUT" || return 0
	rm out
	one=$(least_memory "${sort[@]}" --threads=1)
	two=$(least_memory "${sort[@]}" --threads=2)
	for memory in "$two" $((two - 1)) "$one" $((one - 1)); do
		for threads in '' --threads=2; do
			# shellcheck disable=SC2086 # none or one
			expect_sorted --explain --json "${sort[@]}" -T . \
				-S "$memory" $threads --disk-rates=1G:1G:1G
			sed "$WITHOUT_FILES; s/\"predicted.*//" "$STDOUT" >want
			# shellcheck disable=SC2086
			expect_sorted --explain --json -S "$memory" $threads \
				--suppose=1:$((BYTES / 100)) \
				--disk-rates=1G:1G:1G
			sed -i 's/"predicted.*//' "$STDOUT"
			expect_same want "$STDOUT"
		done
	done
	# What is refused says what suffices in memory.
	expect_refused 5 '^--memory: sorting this takes [0-9.]* KiB at least' \
		--explain --suppose=1:5 -S 1K
	expect_refused 5 '^--memory: sorting this takes [0-9.]* KiB at least' \
		--explain --suppose=2:5 -S 1K
	expect_folder . in want
}

# Without -S a sort in memory may take all that there is, a sort in runs a part.
case_suppose_limit()
{
	local memory sort=(in -o out --io=direct --threads=1)

	: >in
	expect_sorted "${sort[@]}" --json
	grep -q '"output_io": "direct"' "$STDOUT" || return 0
	truncate -s $((10 * BYTES)) in
	ulimit -v $((14 * BYTES / 1024))
	memory=$(least_memory "${sort[@]}")
	[ "$memory" -gt $((11 * BYTES)) ]
	[ "$memory" = "$(least_memory --threads=1 \
		--suppose=1:$((10 * BYTES / 100)))" ]
}

# said EXPRESSION OPTION...: of the plan that is printed, as p, and the exchange
# in it, as e
said()
{
	"$BIN/blinksort" --explain --json "${@:2}" | /usr/bin/python3 -c "
import json, sys
p = json.load(sys.stdin)
e = p.get('exchange')
print($1)"
}

# expect_said VALUE EXPRESSION OPTION...
expect_said()
{
	local got

	got=$(said "${@:2}")
	[ "$got" = "$1" ] || fail "$2 is '$got', not '$1'"
}

# In memory it says what the exchange takes, and with all rates what all does.
# test_exchange_model.c and test_memory_model.c test the arithmetic.
case_suppose_in_memory()
{
	local link=(--link-rate=1Gbit --record-size=10) option first
	local small=,overhead=100,latency-ns=0

	# A quarter of the bytes and the heads of 100 buckets, in 37 datagrams
	expect_said "52400 448800 all-at-once" "e['message_bytes'],
		e['link_ns'], e['schedule']" "${link[@]}" \
		"--suppose=2:20800$small"
	expect_said "2 20800 10400 125000000 None" "p['ranks'],
		p['whole_records'], p['records'], p['link_rate'],
		p['predicted_ns']" "${link[@]}" "--suppose=2:20800$small"
	expect_said "64 64 grid" "e['rows'], e['columns'], e['schedule']" \
		"${link[@]}" "--suppose=4096:20800$small"
	expect_said "rounds True" "e['schedule'], e['auto_ns'] ==
		e['rounds_ns'] > e['link_ns'] > 0" --suppose=16:100000000 \
		--link-rate=10Gbit -S 900T
	# Each changes what it is about.
	first=$(said "e['all_at_once_ns']" --suppose=64:1000000 \
		--link-rate=10Gbit)
	for option in mtu=9000 overhead=0 shared-cpus=2 latency-ns=0; do
		expect_said True "e['all_at_once_ns'] != $first" \
			"--suppose=64:1000000,$option" --link-rate=10Gbit
	done
	# Where the CPUs are the limit: 17361 datagrams, each 0.5 us to send and
	# 1 us to receive.
	for option in mtu=1500:17 senders=2:17 receivers=2:8 senders=2,receivers=4:4; do
		expect_said "${option##*:}" "e['all_at_once_ns'] // 10**6" \
			--suppose="2:1000000,${option%:*}" \
			--link-rate=1000Gbit --threads=1
	done
	# Each thread does both, for its part of them.
	expect_said "6 all-at-once" "e['all_at_once_ns'] // 10**6, e['schedule']" \
		--suppose=2:1000000 --link-rate=1000Gbit --threads=4
	expect_said "None None" "e, p['predicted_passes']" --suppose=64:1000
	# The same is printed as a text.
	expect_sorted --explain --link-rate=10Gbit --threads=2 --suppose=\
16:1000000,memory-read=4000000000,memory-copy=2000000000
	expect_match '^ranks +16, for 95.4 MiB: 1000000 records' "$STDOUT"
	expect_match '^exchange  rounds 5.20 ms, all-at-once 5.14 ms, grid of 4x4 ' \
		"$STDOUT"
	expect_match '; --schedule=auto takes rounds$' "$STDOUT"
	expect_match '^time      about [0-9.]+ ms$' "$STDOUT"
	expect_match '^          launch +1.3' "$STDOUT"
	expect_sorted --explain --suppose=16:1000000
	expect_match '^link .*--link-rate can tell it$' "$STDOUT"
	expect_folder .
}

# What a sort takes depends on whether the input is in the page cache, and it says
# so.
case_explain_cache()
{
	make_in
	expect_sorted in -o out --io=mmap --explain
	expect_match '^input .*: [0-9]* records of 100 bytes$' "$STDOUT"
	expect_match ' suffice, as the input stays in the page cache:$' "$STDOUT"
	expect_sorted in -o out --io=buffered --explain
	expect_match ' suffice, as the input is read into memory:$' "$STDOUT"
	expect_sorted in -o out "${LITTLE[@]}" -T . --explain
	expect_match '^in memory it would take [0-9.]+ MiB, as the input is read' \
		"$STDOUT"
}

# A hole is read without a disk.
case_explain_holes()
{
	make_in
	expect_sorted in -o out "${LITTLE[@]}" -T . --explain
	! grep '^holes' "$STDOUT" || fail "no hole is there"
	truncate -s 100M in
	expect_sorted in -o out "${LITTLE[@]}" -T . --explain
	expect_match '^holes     only .* of 100.0 MiB are on the disk: ' "$STDOUT"
}

# More than blinksort does is planned, and called so.
case_suppose_too_much()
{
	local options=(--explain -S 64G --threads=8 --json)

	expect_sorted "${options[@]}" --suppose=4096:9600000000000
	expect_match '"ranks": 4096, .*"refused": null' "$STDOUT"
	expect_sorted "${options[@]}" --suppose=4097:9600000000000
	expect_match '"refused": "it has at most 4096 ranks"' "$STDOUT"
}

# Roles that are chosen may be given, with the same times.  test_roles_choice.c
# tests the arithmetic.
case_suppose_roles()
{
	local options=(-S 1G --threads=2 --link-rate=1Gbit --explain
		--disk-rates=1G:1G:1500M) chosen
	local ranks=12:1000000000,readers=4,keepers=3,storage=400000000

	expect_sorted "${options[@]}" --suppose="$ranks" --roles=auto
	expect_match '^roles     3 ranks read' "$STDOUT"
	expect_match '^roles     [0-9]+ ranks sort:$' "$STDOUT"
	expect_match '^          output .*; limited by the (disk|link)$' \
		"$STDOUT"
	chosen=$(sed -n 's/^roles     chosen: --roles=//p' "$STDOUT")
	expect_said "$chosen" "p['roles']" "${options[@]}" \
		--suppose="$ranks" --roles=auto
	expect_said "$(said "None, p['predicted_passes'], p['role_groups']" \
		"${options[@]}" --suppose="$ranks" --roles="$chosen")" \
		"None, p['predicted_passes'], p['role_groups']" \
		"${options[@]}" --suppose="$ranks" --roles=auto
	expect_said "None []" "p['roles'], p['role_groups']" "${options[@]}" \
		--suppose="$ranks"
	# What fits into memory is sorted there by all, unless roles are given.
	expect_said True "p['fits']" "${options[@]}" --suppose=12:1000 \
		--roles=auto
	expect_said False "p['fits']" "${options[@]}" --suppose=12:1000 \
		--roles=keep:0
}

# A rank may have more records than a sort in memory could number: then it sorts
# beyond memory, whatever memory there is.
case_suppose_many_records()
{
	local options=(--explain --threads=8 --json)

	expect_sorted "${options[@]}" -S 64G --suppose=100:1000000000000
	expect_match '"records": 10000000000,' "$STDOUT"
	expect_match '"refused": null' "$STDOUT"
	expect_sorted "${options[@]}" -S 900T --suppose=2:6000000000
	expect_match '"fits": true' "$STDOUT"
	expect_sorted "${options[@]}" -S 900T --suppose=2:6600000000
	expect_match '"fits": false, .*"refused": null' "$STDOUT"
}

# The man page tells every member of the documents.
case_members()
{
	local page=$REPO/src/programs/blinksort/blinksort-json.5 member

	make_in
	mkdir one
	expect_sorted in -o out "${LITTLE[@]}" -T one --json
	cp "$STDOUT" documents
	expect_sorted in -o out "${LITTLE[@]}" -T one --json --explain
	cat "$STDOUT" >>documents
	expect_sorted --explain --suppose=9:1000000000 -S 1G --json \
		--roles=read:0
	cat "$STDOUT" >>documents
	expect_sorted --explain --json --link-rate=1G \
		--suppose=9:1000,memory-read=1000000,memory-copy=1000000
	cat "$STDOUT" >>documents
	grep -o '"[a-z_0-9]*":' documents | tr -d '":' | sort -u >members
	[ "$(wc -l <members)" -gt 40 ] || fail "few members: $(cat documents)"
	while read -r member; do
		grep -q "^\.\(It \)\?Cm .*\b$member\b" "$page" ||
			fail "the man page lacks $member"
	done <members
}

check shapes case_shapes
check record_sizes case_record_sizes
check small_records case_small_records
check options case_options
check batch_size case_batch_size
check passes_tell_all case_passes_tell_all
check threads case_threads
check io case_io
check files case_files
check suppose case_suppose
check suppose_edge case_suppose_edge
check suppose_too_much case_suppose_too_much
check suppose_many_records case_suppose_many_records
check suppose_in_memory case_suppose_in_memory
check suppose_roles case_suppose_roles
check members case_members

# --- how much memory ------------------------------------------------------------

# The least that is named suffices.
case_too_little_memory()
{
	local least

	make_in
	mkdir one two
	"$BIN/blinksort" in -o want
	expect_refused 5 'sorting this takes [0-9.]+ MiB at least' in -o out \
		--io=direct --threads=2 -S 1M -T one
	least=$(sed 's/.*takes \([0-9]*\).* MiB at least.*/\1/' "$STDERR")
	LITTLE=(--io=direct --threads=2 -S "${least}M")
	expect_external
}

# memory_group: makes a memory group in $group, below the one that this shell is
# in; 1 if that cannot be done
memory_group()
{
	local here

	here=$(sed -n 's/^[0-9]*:memory://p' /proc/self/cgroup)
	group=/sys/fs/cgroup/memory$here/blinksort-check.$$
	mkdir "$group" 2>/dev/null && [ -e "$group/memory.limit_in_bytes" ] &&
		return 0
	here=$(sed -n 's/^0:://p' /proc/self/cgroup)
	group=/sys/fs/cgroup$here/blinksort-check.$$
	mkdir "$group" 2>/dev/null || return 1
	[ -e "$group/memory.max" ] || { rmdir "$group"; return 1; }
}

# The page cache counts, too, but the kernel can take that back.
case_memory_is_kept()
{
	local limit_file=memory.max

	at_end 'rmdir "$group"'
	[ -e "$group/memory.max" ] || limit_file=memory.limit_in_bytes
	echo 16M >"$group/$limit_file"
	[ ! -e "$group/memory.swap.max" ] || echo 0 >"$group/memory.swap.max"
	make_in
	mkdir one two
	"$BIN/blinksort" in -o want
	# shellcheck disable=SC2016 # of the inner shell
	BLINKSORT=(sh -c 'echo $$ >"$0/cgroup.procs" && exec "$@"' "$group" \
		"$BIN/blinksort")
	LITTLE=(--io=direct --threads=2 -S 12M)
	expect_external
	expect_external --batch-size=2
	run_tested in -o out "${LITTLE[@]}" --explain
	[ "$status" = 0 ] || fail "--explain in 16 MiB: status $status"
	# One that takes more is killed there: the limit holds.
	run_tested in -o out --io=direct --threads=2
	[ "$status" = 137 ] || [ "$status" = 5 ] ||
		fail "a sort of $BYTES bytes in 16 MiB: status $status"
}

check too_little_memory case_too_little_memory
if [ -n "$SANITIZED" ]; then
	skip memory_is_kept "a sanitizer takes more memory than that"
elif memory_group; then
	check memory_is_kept case_memory_is_kept
else
	skip memory_is_kept "can't make a memory control group here"
fi

if [ -n "$SANITIZED" ]; then
	skip suppose_limit "a sanitizer takes more addresses than that"
else
	check suppose_limit case_suppose_limit
fi

# --- scratch directories --------------------------------------------------------

# expect_scratch "FOLDER..." COMMAND...: it makes files without a name in these
# folders, which are those of its output and of its scratch files
expect_scratch()
{
	local want=$1 got
	shift

	strace -f -y -e trace=open,openat -o trace "$@"
	got=$(sed -n 's/.*openat([0-9]*<\([^>]*\)>, "\.", .*O_TMPFILE.*/\1/p' \
		trace | sort -u | paste -s -d ' ')
	rm trace
	[ "$got" = "$want" ] || fail "files in '$got', not in '$want'"
}

# Those of -T, else $TMPDIR, else the output's folder: never /tmp silently.
case_default_scratch()
{
	local sort=("$BIN/blinksort" in "${LITTLE[@]}" -o folder/out)

	make_in
	mkdir one two folder
	unset TMPDIR
	expect_scratch "$PWD/folder" "${sort[@]}"
	TMPDIR='' expect_scratch "$PWD/folder" "${sort[@]}"
	export TMPDIR=$PWD/two
	expect_scratch "$PWD/folder $PWD/two" "${sort[@]}"
	expect_scratch "$PWD/folder $PWD/one" "${sort[@]}" -T one
	TMPDIR=missing expect_refused 3 'missing: ' in -o out "${LITTLE[@]}"
}

case_bad_directory()
{
	make_in
	mkdir one
	: >file
	for bad in missing file file/in missing/in; do
		expect_refused 3 "$bad: " in -o out "${LITTLE[@]}" -T "$bad"
		expect_refused 3 "$bad: " in -o out "${LITTLE[@]}" -T one -T \
			"$bad"
	done
	# It is no memory before it is a folder.
	expect_refused 3 '^/dev/shm/missing: ' in -o out "${LITTLE[@]}" -T \
		/dev/shm/missing
	# What fits into memory needs none.
	expect_sorted in -o out -T missing
}

case_not_writable()
{
	make_in
	chmod 755 "$SCRATCH"
	cp "$BIN/blinksort" "$SCRATCH/blinksort"
	BLINKSORT=("${AS_NOBODY[@]}" "$SCRATCH/blinksort")
	mkdir folder locked
	chmod 777 folder
	chmod 755 locked .
	expect_refused 3 'locked: .*Permission denied' in -o folder/out \
		"${LITTLE[@]}" -T locked
	expect_sorted in -o folder/out "${LITTLE[@]}" -T folder
}

# in_tmpfs SIZE COMMAND...: with a file system of that size in the folder small
in_tmpfs()
{
	local size=$1
	shift

	mkdir -p small
	mount -t tmpfs -o "size=$size" none small
	at_end 'umount -l small'
	"$@"
}

# expect_rates ARGUMENT...: --explain measures the disk
expect_rates()
{
	"${BLINKSORT[@]}" "$@" -o out "${LITTLE[@]}" --explain \
		>explained 2>"$STDERR" || fail "$(cat "$STDERR")"
	grep -q '^disk  *reads' explained || fail "$(cat explained)"
}

# Less room than is written to measure a disk.
case_explain_in_little_room()
{
	make_in
	in_tmpfs 40M expect_rates in -T small
}

# Files that are smaller than a request to the disk; and one that is smaller than
# a page.
case_explain_small_files()
{
	make_in
	split -b 100000 in part.
	: >empty
	head -c 1000 in >small
	expect_rates part.* empty small
	"${BLINKSORT[@]}" small -o - --explain >explained ||
		fail "status $?"
	expect_match '^disk  *reads' explained
}

# expect_unmeasured REASON [WANTED]: the run just had has told the plan without
# times, and this reason; its status is 3 if the sort would fail, by WANTED
expect_unmeasured()
{
	expect_plan "${2:-0}"
	[ "${2:-0}" = 0 ] ||
		expect_match '^refused  *.*: too little room for scratch files: .* are needed, .* are missing$' \
			"$STDOUT"
	expect_match '^runs ' "$STDOUT"
	expect_match "^disk  *its rates could not be measured: $1; --disk-rates" \
		"$STDOUT"
	! grep '^time ' "$STDOUT" || fail "$(cat "$STDOUT")"
}

# expect_plan STATUS
expect_plan()
{
	[ "$status" = "$1" ] || fail "status $status: $(cat "$STDERR")"
}

# expect_no_rates: the document just printed has a plan without times, for a sort
# that would fail
expect_no_rates()
{
	expect_plan 3
	python3 -c 'import json, sys
plan = json.load(open(sys.argv[1]))
assert plan["runs"] > 1 and not plan["fits"], plan
assert "too little room" in plan["refused"], plan
for member in ("disk_rates", "predicted_ns", "predicted_passes"):
    assert plan[member] is None, plan' "$STDOUT" || fail "$(cat "$STDOUT")"
}

# Without io_uring; and where nothing can be written.
case_explain_unmeasured()
{
	local limit="-f 8"

	make_in
	mkdir one
	run_tested in -o - "${LITTLE[@]}" -T one --explain
	expect_unmeasured '.*: File too large' 3
	run_tested in -o - "${LITTLE[@]}" -T one --explain --json
	expect_no_rates
	limit=
	if ! no_faults_because >/dev/null; then
		run_fault 0 FAULT_CALL=io_uring_queue_init FAULT_ERRNO=ENOSYS \
			-- in -o out "${LITTLE[@]}" -T one --explain
		expect_unmeasured 'io_uring: Function not implemented'
	fi
	run_tested in -o out "${LITTLE[@]}" -T one --explain \
		--disk-rates=700M:1400M:1300M
	expect_match '^time  *about ' "$STDOUT"
	: >empty
	run_tested empty -o - --explain
	[ "$status" = 0 ] || fail "status $status: $(cat "$STDERR")"
	expect_match 'measured: all inputs are empty; --disk-rates' "$STDOUT"
	expect_match '^passes  *1\.00: ' "$STDOUT"
	expect_refused 3 '^missing: ' in -o out "${LITTLE[@]}" -T missing \
		--explain
	expect_folder . empty in one
}

unmeasured_when_full()
{
	head -c 1G /dev/zero >small/filler 2>/dev/null || true
	run_tested in -o out "${LITTLE[@]}" -T small --explain
	expect_unmeasured '.*No space left on device' 3
	expect_match '^ *small has .* free$' "$STDOUT"
	run_tested in -o out "${LITTLE[@]}" -T small --explain --json
	expect_no_rates
}

case_explain_when_full()
{
	make_in
	in_tmpfs 1M unmeasured_when_full
}

full_at_start()
{
	# A line of warning says first that files on a tmpfs are memory.
	run_tested in -o out "${LITTLE[@]}" -T small
	[ "$status" = 3 ] || fail "status $status: $(cat "$STDERR")"
	expect_match '^blinksort: small .*too little room .* are missing$' \
		"$STDERR"
	[ ! -e out ] || fail "there is an output"
	expect_folder small
	run_tested in -o out "${LITTLE[@]}" -T small -T one
	[ "$status" = 0 ] || fail "status $status: $(cat "$STDERR")"
	expect_same out want
}

case_full_at_start()
{
	make_in
	mkdir one
	"$BIN/blinksort" in -o want
	in_tmpfs $((BYTES / 4)) full_at_start
}

# A file system without inodes takes no file, whatever its room.
no_inode_left()
{
	local folder

	run_tested in -o out "${LITTLE[@]}" -T small
	[ "$status" = 3 ] || fail "status $status: $(cat "$STDERR")"
	expect_match '^blinksort: small \(no room for a file\): no room for scratch ' \
		"$STDERR"
	[ ! -e out ] || fail "there is an output"
	for folder in small one; do
		run_tested in -o out "${LITTLE[@]}" -T "$folder" -T small -T one
		[ "$status" = 0 ] || fail "status $status: $(cat "$STDERR")"
		expect_same out want
		rm out
		expect_folder one
	done
	"${BLINKSORT[@]}" - -o - "${LITTLE[@]}" -T small -T one <in >"$STDOUT" \
		2>"$STDERR" || fail "of a pipe: $(cat "$STDERR")"
	expect_same "$STDOUT" want
	run_tested in -o out "${LITTLE[@]}" -T small -T one --explain
	[ "$status" = 0 ] || fail "status $status: $(cat "$STDERR")"
}

case_no_inode_left()
{
	make_in
	mkdir one
	"$BIN/blinksort" in -o want
	in_tmpfs "$((BYTES * 2)),nr_inodes=1" no_inode_left
}

# Another program fills the file system while it sorts.
full_in_the_middle()
{
	local round pid random

	for ((round = 0; round < 10; round++)); do
		random_below 100
		{
			nap_ms "$random"
			head -c 1G /dev/zero >small/filler
		} 2>/dev/null &
		pid=$!
		run_tested in -o out "${LITTLE[@]}" -T small -T one
		wait "$pid" || true
		rm small/filler
		if [ "$status" != 0 ]; then
			fail "status $status: $(cat "$STDERR")"
		fi
		expect_same out want
		expect_folder small
		expect_folder one
	done
}

case_full_in_the_middle()
{
	make_in
	mkdir one
	"$BIN/blinksort" in -o want
	in_tmpfs $((BYTES * 2)) full_in_the_middle
}

# The output finds room only where blocks of the runs have been given back.
room_given_back()
{
	run_tested in -o small/out "${LITTLE[@]}" -T small
	[ "$status" = 0 ] || fail "status $status: $(cat "$STDERR")"
	expect_same small/out want
	expect_folder small out
}

case_room_given_back()
{
	LITTLE=(--io=direct --threads=2 -S 13M)
	make_in
	"$BIN/blinksort" in -o want
	in_tmpfs $((BYTES * 19 / 10)) room_given_back
}

case_on_tmpfs()
{
	folder=$(mktemp -d /dev/shm/blinksort-external.XXXXXX)
	at_end 'rm -rf "$folder"'
	make_in
	"$BIN/blinksort" in -o want
	run_tested in -o out "${LITTLE[@]}" -T "$folder"
	[ "$status" = 0 ] || fail "status $status: $(cat "$STDERR")"
	expect_same out want
	expect_folder "$folder"
	# The output, too.
	run_tested in -o "$folder/out" "${LITTLE[@]}" -T "$folder"
	[ "$status" = 0 ] || fail "status $status: $(cat "$STDERR")"
	expect_same "$folder/out" want
	expect_folder "$folder" out
}

# No file may have more than a third of the input: the scratch files of one
# directory are too small, those of seven are not, as each gets its part.  Of a
# stream this is found when they have been written.
case_file_size_limit()
{
	local limit="-f $((BYTES * 3 / 10 / 1024))"
	local outputs=(-o out1 -o out2 -o out3 -o out4)
	local seven=() i

	for i in 1 2 3 4 5 6 7; do
		mkdir "s$i"
		seven+=(-T "s$i")
	done
	make_in
	"$BIN/blinksort" in -o want
	expect_refused 3 '^s1 .* in files of 5\.7 MiB, by RLIMIT_FSIZE\): ' in \
		"${outputs[@]}" "${LITTLE[@]}" -T s1
	expect_match 'too little room .* are missing$' "$STDERR"
	status=0
	(
		# shellcheck disable=SC2086 # two words
		ulimit $limit
		exec "${BLINKSORT[@]}" - "${outputs[@]}" --threads=2 -S 13M \
			-T s1 <in 2>"$STDERR"
	) || status=$?
	[ "$status" = 3 ] || fail "status $status: $(cat "$STDERR")"
	expect_match '^blinksort: s1 .*: no room .*: File too large$' "$STDERR"
	expect_folder s1
	run_tested in "${outputs[@]}" "${LITTLE[@]}" "${seven[@]}"
	[ "$status" = 0 ] || fail "status $status: $(cat "$STDERR")"
	cat out1 out2 out3 out4 | expect_same - want
	for i in 1 2 3 4 5 6 7; do
		expect_folder "s$i"
	done
}

if [ -n "$SANITIZED" ]; then
	skip default_scratch "a sanitizer looks for leaks by ptrace itself"
elif ! has_tmpfile "$SCRATCH"; then
	skip default_scratch "no files without a name in /tmp"
else
	check_able trace default_scratch case_default_scratch
fi
check bad_directory case_bad_directory
check_able be_nobody not_writable case_not_writable
check_able mount explain_in_little_room case_explain_in_little_room
check explain_cache case_explain_cache
check explain_holes case_explain_holes
check explain_small_files case_explain_small_files
check explain_unmeasured case_explain_unmeasured
check_able mount explain_when_full case_explain_when_full
check_able mount full_at_start case_full_at_start
check_able mount no_inode_left case_no_inode_left
check_able mount full_in_the_middle case_full_in_the_middle
check_able mount room_given_back case_room_given_back
if [ -w /dev/shm ]; then
	check on_tmpfs case_on_tmpfs
else
	skip on_tmpfs "no /dev/shm here"
fi
check file_size_limit case_file_size_limit

# --- signals ----------------------------------------------------------------------

# start ARGUMENT...: sort in the background; $pid.  Shells start background
# processes with SIGINT ignored: not so here.
start()
{
	env --default-signal=INT,TERM "${BLINKSORT[@]}" "$@" \
		>"$STDOUT" 2>"$STDERR" </dev/null &
	pid=$!
}

# has_ended PID: it is gone, or waits for its parent
has_ended()
{
	[ ! -e "/proc/$1" ] || grep -q '^State:.Z' "/proc/$1/status"
}

# random_moment: a part of what a whole run takes, in $random, in us
random_moment()
{
	random_below $((whole_us * 5 / 4 + 1))
}

# How long a whole run takes, to know when to kill: nothing is expected of it.
measure_whole()
{
	local begin_ns

	begin_ns=$(date +%s%N)
	expect_sorted in -o out "$@"
	whole_us=$((($(date +%s%N) - begin_ns) / 1000))
	rm out
}

# The output is absent or whole, the input as it was, and nothing else is there.
case_killed()
{
	local arguments=("${LITTLE[@]}" -T one -T two --batch-size=4)
	local signals=(KILL TERM INT) rounds=60 early=0 round random pid

	[ -z "$QUICK" ] || rounds=9
	make_in
	cp in before
	mkdir one two
	"$BIN/blinksort" in -o want
	measure_whole "${arguments[@]}"
	for ((round = 0; round < rounds; round++)); do
		random_moment
		start in -o out "${arguments[@]}"
		nap "$((random / 1000000)).$(printf %06d $((random % 1000000)))"
		kill -s "${signals[round % 3]}" "$pid" 2>/dev/null || true
		wait_until has_ended "$pid"
		status=0
		wait "$pid" 2>/dev/null || status=$?
		if [ "$status" = 0 ] || [ -e out ]; then
			expect_same out want
			rm out
		else
			early=$((early + 1))
		fi
		expect_folder one
		expect_folder two
		expect_folder . before in one two want
		expect_same in before
	done
	echo "  $early of $rounds did not finish" >&2
}

if [ "$SANITIZED" = tsan ]; then
	skip killed "ThreadSanitizer holds signals back"
elif ! has_tmpfile "$SCRATCH"; then
	skip killed "no files without a name in /tmp"
else
	check killed case_killed
fi

# --- calls that fail --------------------------------------------------------------

# As in check_sort_fault.sh, those that this sort makes.
FAILURES=(
	open:EMFILE openat:EMFILE openat:ENOSPC tmpfile:EMFILE fstat:EIO
	pread:EIO pread:EINTR pwrite:EIO pwrite:EINTR pwrite:ENOSPC
	mmap:ENOMEM madvise:EINVAL fallocate:ENOSPC fallocate:EOPNOTSUPP
	malloc:ENOMEM calloc:ENOMEM realloc:ENOMEM aligned_alloc:ENOMEM
	pthread_create:EAGAIN pthread_setaffinity_np:EINVAL
	futex_wait:EINTR io_uring_queue_init:ENOSYS
	io_uring_queue_init_params:ENOSYS
	io_uring_submit:EINTR io_uring_submit:EAGAIN uring_read:EBADF
	uring_write:EBADF
)
SURVIVED='EINTR|EOPNOTSUPP|madvise:|setaffinity|io_uring|uring_'
# judge WHAT: exact, or a documented end; nothing is left
judge()
{
	if [ "$status" = 0 ]; then
		cmp -s out want || fail "$1: status 0, bad output"
		rm out
	else
		[[ $status =~ ^(3|5)$ ]] ||
			fail "$1: status $status: $(head -c 300 "$STDERR")"
		expect_message || fail "$1"
	fi
	expect_folder one || fail "$1: status $status"
	expect_folder two || fail "$1: status $status"
	expect_folder . in one two want || fail "$1: status $status"
}

# make_small_in: that goes through scratch files nevertheless
make_small_in()
{
	LITTLE=(--io=direct --threads=2 -S 9M --batch-size=4 -T one -T two)
	make_shape uniform 60000 1 >in
	mkdir one two
	expect_sorted in -o out "${LITTLE[@]}" --json
	expect_match '"external": \{' "$STDOUT"
	rm out
	"$BIN/blinksort" in -o want
}

case_faults()
{
	make_small_in
	each_failure "${FAILURES[*]}" in -o out "${LITTLE[@]}"
}

# Each call fails once in a sort of records that are in order, and are not spilled
case_found_faults()
{
	make_small_in
	cp want in
	expect_sorted in -o out "${LITTLE[@]}" --json
	expect_match '"reread_bytes": [1-9]' "$STDOUT"
	rm out
	each_failure "${FAILURES[*]}" in -o out "${LITTLE[@]}"
}

# case_head_faults N: of the first records only, in memory or in runs
case_head_faults()
{
	make_small_in
	truncate -s $(($1 * 100)) want
	each_failure "${FAILURES[*]}" in -o out "${LITTLE[@]}" --head="$1"
}

# Every read and write moves about half of what was asked.
case_short_transfers()
{
	local call

	make_small_in
	for call in pread pwrite uring_read uring_write; do
		run_fault 0 FAULT_CALL="$call" FAULT_DO=short \
			-- in -o out "${LITTLE[@]}"
		[ "$status" = 0 ] || fail "$call: status $status: $(
			head -c 300 "$STDERR")"
		judge "all $call short"
	done
}

if why=$(no_faults_because); then
	skip faults "$why"
	skip short_transfers "$why"
else
	check faults case_faults
	check found_faults case_found_faults
	for n in 1000 20000; do
		check "head_faults_$n" case_head_faults "$n"
	done
	check short_transfers case_short_transfers
fi
finish
