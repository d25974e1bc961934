#!/bin/bash
# check_sort_pipes.sh - blinksort from and to pipes, sockets and FIFOs
#
# What comes by a pipe must become the same output as it does from files,
# whether it fits into the memory or is sorted in runs.

# shellcheck disable=SC2317 # cases are called by check
. "$(dirname "$0")/sort_lib.sh"

ENDS=$REPO/tests/programs/pipe_ends.py
# Less than most inputs here have; sanitizers do not change what is planned.
MEMORY=12M
COUNT=130000

unset TMPDIR

# from_pipe ARGUMENT...: as run_tested, with what comes by standard input; what
# goes to standard output is in "out".
from_pipe()
{
	status=0
	timeout 300 "${BLINKSORT[@]}" "$@" >out 2>"$STDERR" || status=$?
	forget_warning
}

# forget_warning: that scratch files are on a tmpfs, as with_memory wants it
forget_warning()
{
	sed -i '/: scratch files here are memory/d' "$STDERR"
}

# expect_done: the run just had ended well and said nothing.
expect_done()
{
	[ "$status" = 0 ] ||
		fail "exit status $status: $(head -c 400 "$STDERR"): $*"
	expect_empty "$STDERR"
}

# expect_stream WANT ARGUMENT...: from a pipe to a pipe, and to a file
expect_stream()
{
	local want=$1
	shift

	from_pipe - -o - "$@" < <(cat in)
	expect_done "$@"
	expect_same "$want" out
	from_pipe - -o file "$@" < <(cat in)
	expect_done "$@"
	expect_same "$want" file
	expect_empty out
	rm file out
}

# with_memory CASE: its scratch files are on a tmpfs, to spare the disk.
with_memory()
{
	local folder

	folder=$(mktemp -d /dev/shm/blinksort-pipes.XXXXXX)
	(
		at_end 'rm -rf "$folder"'
		TMPDIR=$folder "$@"
		expect_folder "$folder"
	)
}

# --- what comes out -----------------------------------------------------------

case_counts()
{
	local count

	for count in 0 1 2 10 1309 1310 1311 13000 100000; do
		make_shape uniform "$count" 1 >in
		sort_reference in -o want
		expect_stream want
		expect_stream want -S 20M
		expect_stream want -S "$MEMORY" --threads=1
		from_pipe in -o - -S "$MEMORY" </dev/null
		expect_done
		expect_same want out
		rm out
		expect_folder . in want
	done
}

case_shapes()
{
	local shape

	for shape in $("$HELPERS/make_shape" --list); do
		make_shape "$shape" "$COUNT" "$SEED" >in
		sort_reference in -o want
		expect_stream want -S "$MEMORY"
		expect_stream want -S "$MEMORY" --splitters=sampled --threads=3
		expect_stream want -S 1G --splitters=sampled
	done
}

# One record is longer than what is read at once.
case_record_sizes()
{
	local size

	for size in 1 7 4096 300000; do
		set -- --record-size="$size" --key=0:1
		make_shape few-distinct $((20000000 / size)) 1 "$@" >in
		sort_reference in -o want "$@"
		expect_stream want "$@" -S 40M
		from_pipe in -o - -S 20M --io=direct "$@" </dev/null
		expect_done
		expect_same want out
		expect_stream want "$@"
	done
}

case_unique_and_reverse()
{
	local options

	make_shape zipf "$COUNT" "$SEED" >in
	for options in --unique --reverse "--unique --reverse"; do
		# shellcheck disable=SC2086 # one option or two
		"${BLINKSORT[@]}" in -o want $options
		# shellcheck disable=SC2086
		expect_stream want $options -S "$MEMORY"
		# shellcheck disable=SC2086
		expect_stream want $options
	done
}

# Merges of runs into runs; batches that are spilled when all has come.
case_many_runs()
{
	local memory

	make_shape long-runs "$COUNT" "$SEED" >in
	sort_reference in -o want
	for memory in 11M 12M 15M 19M 24M 33M 41M; do
		expect_stream want -S "$memory" --batch-size=2
		expect_stream want -S "$memory" --batch-size=3
	done
	make_shape uniform 2000 1 --record-size=5000 --key=0:13 >in
	sort_reference in -o want --record-size=5000 --key=0:13
	for memory in 15900000 15910000 15920000 17777777; do
		expect_stream want -S "$memory" --batch-size=3 --threads=2 \
			--record-size=5000 --key=0:13
	done
}

# --- ends ---------------------------------------------------------------------

case_fifos_and_files()
{
	local i

	mkfifo f1 f2 to
	for i in 1 2 3 4; do
		make_shape few-distinct $((COUNT / i)) "$i" >"in$i"
	done
	cat in1 in2 in3 in4 >in
	sort_reference in -o want
	# One writer, that opens the second FIFO when it has written the first.
	(
		cat in1 >f1
		cat in4 >f2
	) &
	from_pipe f1 in2 - f2 -o - -S "$MEMORY" < <(cat in3)
	expect_done
	expect_same want out
	cat <to >got &
	(
		cat in1 >f1
		cat in4 >f2
	) &
	from_pipe f1 in2 in3 f2 -o to -S "$MEMORY" </dev/null
	expect_done
	wait
	expect_same want got
	[ -p to ] || fail "the FIFO was replaced"
	from_pipe - in1 -o file <in2
	expect_done
	cat in2 in1 >in
	sort_reference in -o want
	expect_same want file
	from_pipe /dev/null -o empty </dev/null
	expect_done
	expect_empty empty
	# Several files at once into several outputs.
	cat in1 >f1 &
	from_pipe f1 -o p1 -o p2 -S "$MEMORY" </dev/null
	expect_done
	sort_reference in1 -o want
	cat p1 p2 >both
	expect_same want both
}

# From where it stands, as other programs do.
case_redirected_files()
{
	make_shape uniform 1000 1 >in
	tail -c +30001 in >rest
	sort_reference rest -o want
	{
		head -c 1 >begin </dev/null
		dd bs=30000 count=1 of=begin 2>dd.log
		from_pipe - -o -
	} <in
	expect_done
	expect_same want out
	status=0
	{ echo before && "${BLINKSORT[@]}" in -o -; } >out || status=$?
	expect_done
	sort_reference in -o want
	tail -c +8 out >behind
	expect_same want behind
}

case_ends()
{
	local kind

	make_shape uniform "$COUNT" 1 >in
	sort_reference in -o want
	for kind in socket nonblocking; do
		"$ENDS" input-"$kind" timeout 300 "${BLINKSORT[@]}" - -o - \
			-S "$MEMORY" <in >out
		expect_same want out
		"$ENDS" output-"$kind" timeout 300 "${BLINKSORT[@]}" - -o - \
			-S "$MEMORY" <in >out
		expect_same want out
	done
}

slow_writer()
{
	head -c 12345 in
	nap 0.1
	head -c 1012346 in | tail -c 1000001
	nap 0.1
	tail -c +1012347 in
}

slow_reader()
{
	local i

	for ((i = 0; i < 20; i++)); do
		nap 0.01
		dd bs=777 count=1 status=none
	done
	cat
}

case_slow_ends()
{
	make_shape uniform "$COUNT" 1 >in
	sort_reference in -o want
	from_pipe - -o - -S "$MEMORY" < <(slow_writer)
	expect_done
	expect_same want out
	{ timeout 300 "${BLINKSORT[@]}" - -o - -S "$MEMORY" | slow_reader; } \
		<in >out
	expect_same want out
}

# expect_bounded KIB: of resident memory; so are what Python had before.
expect_bounded()
{
	local limit=$1
	shift

	# shellcheck disable=SC2002
	cat in | "$ENDS" memory "$limit" "$BIN/blinksort" - -o - "$@" >out
	expect_same want out
}

case_memory()
{
	make_shape uniform 400000 1 >in
	sort_reference in -o want
	expect_bounded 20480 -S 20M
	expect_bounded 40960 -S 40M --splitters=sampled
	# What is small takes little of what is allowed.
	make_shape uniform 1000 1 >in
	sort_reference in -o want
	expect_bounded 20480 -S 8G
}

# --- what goes wrong ----------------------------------------------------------

# expect_silent ARGUMENT...: the reader leaves after 100 bytes
expect_silent()
{
	local status=0

	# shellcheck disable=SC2002
	cat in 2>cat.log |
		(
			"${BLINKSORT[@]}" - -o - -T scratch "$@" 2>"$STDERR" ||
				status=$?
			echo "$status" >status
		) | head -c 100 >begin || true
	[ "$(cat status)" = 3 ] || fail "status $(cat status): $*"
	expect_empty "$STDERR"
	[ "$(stat -c %s begin)" = 100 ] || fail "$(stat -c %s begin) bytes"
	expect_folder scratch
}

case_reader_leaves()
{
	mkdir scratch
	make_shape uniform "$COUNT" 1 >in
	expect_silent
	expect_silent -S "$MEMORY"
	expect_silent -S "$MEMORY" --threads=1
	expect_silent -S "$MEMORY" --unique --json
	# Before the first byte.
	make_shape uniform 100 1 >in
	status=0
	"${BLINKSORT[@]}" in -o - 2>"$STDERR" | true || status=$?
	expect_empty "$STDERR"
}

case_cut_records()
{
	local bytes

	make_shape uniform "$COUNT" 1 >whole
	mkdir scratch
	for bytes in 1 99 101 $((COUNT * 100 - 1)); do
		head -c "$bytes" whole >in
		from_pipe - -o file -S "$MEMORY" -T scratch < <(cat in)
		[ "$status" = 3 ] || fail "status $status: $bytes bytes"
		expect_message
		expect_match "standard input: $bytes bytes are not a whole number \
of 100-byte records" "$STDERR"
		mkfifo fifo
		cat in >fifo &
		from_pipe whole fifo -o - -S "$MEMORY" -T scratch </dev/null
		wait
		[ "$status" = 3 ] || fail "status $status: $bytes bytes"
		expect_match "^blinksort: fifo: $bytes bytes" "$STDERR"
		expect_empty out
		rm fifo
	done
	expect_folder . in out scratch whole
	expect_folder scratch
}

# The writer is killed within a record, the rest of which never comes.
case_writer_dies()
{
	local pid

	mkfifo fifo
	make_shape uniform "$COUNT" 1 >in
	{
		head -c 1234561 in
		kill -KILL "$BASHPID"
	} >fifo &
	pid=$!
	from_pipe fifo -o file -S "$MEMORY" </dev/null
	wait "$pid" 2>killed || true
	[ "$status" = 3 ] || fail "status $status"
	expect_match '^blinksort: fifo: 1234561 bytes are not' "$STDERR"
	expect_folder . fifo in killed out
}

case_killed_itself()
{
	local pid status=0

	mkdir scratch
	mkfifo fifo
	make_shape uniform "$COUNT" 1 >in
	"${BLINKSORT[@]}" fifo -o file -S "$MEMORY" -T scratch 2>"$STDERR" &
	pid=$!
	{
		cat in
		kill -TERM "$pid"
		nap 0.1
	} >fifo
	wait "$pid" || status=$?
	[ "$status" = 143 ] || fail "status $status"
	expect_folder scratch
	expect_folder . fifo in scratch
}

case_errors()
{
	make_shape uniform 1000 1 >in
	status=0
	"${BLINKSORT[@]}" in -o - >/dev/full 2>"$STDERR" || status=$?
	[ "$status" = 3 ] || fail "/dev/full: status $status"
	expect_message
	expect_match '^blinksort: standard output: .*No space left' "$STDERR"
	status=0
	"${BLINKSORT[@]}" in -o - >&- 2>"$STDERR" || status=$?
	[ "$status" = 3 ] || fail "closed: status $status"
	expect_match '^blinksort: standard output: .*Bad file' "$STDERR"
	from_pipe - -o file <&-
	[ "$status" = 3 ] || fail "closed: status $status"
	expect_match '^blinksort: standard input: .*Bad file' "$STDERR"
	rm out
	expect_refused 3 '^missing: ' - missing -o out
	expect_refused 3 '^\.: is a folder' - . -o out
	from_pipe - -o file <.
	[ "$status" = 3 ] || fail "a folder: status $status"
	expect_match '^blinksort: standard input: is a folder' "$STDERR"
	rm out
	expect_refused 2 '' - - -o out
	expect_refused 2 '' in -o - -o out
	expect_refused 2 '' in -o out -o -
	expect_refused 2 '' in -o - -o -
	expect_refused 2 '' in -o - --sync
	expect_refused 2 '' - -o out --explain
	expect_refused 2 '' - -o out --nodes=localhost --rank=0
	expect_refused 2 '' in -o - --nodes=localhost --rank=0
	expect_refused 2 '' in --gather=- --nodes=localhost --rank=0
	expect_refused 5 '^--memory: .* at least' - -o out -S 1M
}

# What comes after a pause finds the line due.
case_progress()
{
	make_shape uniform "$COUNT" 1 >in
	status=0
	{
		head -c 9000000 in
		sleep 1.5
		tail -c +9000001 in
	} | "$ENDS" error-terminal "${BLINKSORT[@]}" - -o out -S "$MEMORY" \
		--progress >screen || status=$?
	[ "$status" = 0 ] || fail "status $status"
	expect_match 'blinksort: runs: [0-9.]* MiB, [^%]*/s; waits: input ' screen
	sort_reference in -o want
	expect_same want out
}

case_terminals()
{
	make_shape uniform 100 1 >in
	status=0
	"$ENDS" input-terminal "${BLINKSORT[@]}" - -o out 2>"$STDERR" ||
		status=$?
	[ "$status" = 3 ] || fail "status $status"
	expect_message
	expect_match 'standard input: is a terminal' "$STDERR"
	status=0
	"$ENDS" output-terminal "${BLINKSORT[@]}" in -o - >screen \
		2>"$STDERR" || status=$?
	[ "$status" = 3 ] || fail "status $status"
	expect_message
	expect_match 'standard output: is a terminal' "$STDERR"
	expect_empty screen
	expect_folder . in screen
}

# --- reports and scratch ------------------------------------------------------

case_reports()
{
	local sum

	make_shape uniform "$COUNT" 1 >in
	sort_reference in -o want
	sum=$("${BLINKSORT[@]}" in -o file --checksum)
	from_pipe - -o - --checksum -S "$MEMORY" <in
	expect_same want out
	[ "$(cat "$STDERR")" = "$sum" ] || fail "not $sum: $(cat "$STDERR")"
	# By another name, too.
	"${BLINKSORT[@]}" in -o /dev/stdout --checksum 2>"$STDERR" | cat >out
	forget_warning
	expect_same want out
	[ "$(cat "$STDERR")" = "$sum" ] || fail "not $sum: $(cat "$STDERR")"
	from_pipe - -o - --checksum --json <in
	expect_same want out
	expect_one_line "$STDERR"
	python3 - "$STDERR" "$COUNT" "$sum" <<-'END'
		import json, sys
		report = json.load(open(sys.argv[1]))
		assert report["records"] == int(sys.argv[2]), report
		assert report["checksum"] == sys.argv[3], report
		assert report["inputs"] == report["outputs"] == ["-"], report
	END
	from_pipe - -o - --trace=trace -S "$MEMORY" <in
	expect_done
	expect_same want out
	python3 -m json.tool trace >/dev/null
	# Where records do not go, reports do.
	from_pipe - -o file --checksum <in
	expect_done
	[ "$(cat out)" = "$sum" ] || fail "not $sum: $(cat out)"
}

# expect_unread ARGUMENT...: it is refused, and all of "in" is left to be read.
expect_unread()
{
	{
		from_pipe - -o - "$@"
		cat >rest
	} <in
	[ "$status" = 3 ] || fail "status $status: $*"
	expect_message
	expect_same in rest
	expect_empty out
}

# Folders that are named by -T are tried before the stream is read, though what
# comes may turn out to need none.
case_named_scratch()
{
	local bad

	make_shape uniform 1000 1 >in
	sort_reference in -o want
	mkdir one
	: >file
	for bad in missing file; do
		expect_unread -T "$bad"
		expect_match "^blinksort: $bad: cannot make a scratch" "$STDERR"
		expect_unread -T one -T "$bad"
		expect_match "^blinksort: $bad: " "$STDERR"
	done
	expect_folder one
	# No room is reserved: nothing may be written there.
	# shellcheck disable=SC2002
	cat in | (
		ulimit -f 0
		"${BLINKSORT[@]}" - -o - -T one 2>"$STDERR"
	) | cat >out
	expect_same want out
	# Others are tried when they are needed.
	TMPDIR=$PWD/missing from_pipe - -o - <in
	expect_done
	expect_same want out
	# Records that are counted need none.
	from_pipe - -o - -T missing --record-size=1 --key=0:1 <in
	expect_done
	[ "$(stat -c %s out)" = 100000 ] || fail "$(stat -c %s out) bytes"
}

# $TMPDIR, else the current folder
case_scratch()
{
	make_shape uniform "$COUNT" 1 >in
	TMPDIR=$PWD/nowhere from_pipe - -o - -S "$MEMORY" <in
	[ "$status" = 3 ] || fail "status $status"
	expect_message
	expect_match '/nowhere: ' "$STDERR"
	mkdir gone
	(
		cd gone || exit
		rmdir ../gone
		status=0
		"${BLINKSORT[@]}" - -o - -S "$MEMORY" <../in >../out \
			2>"$STDERR" || status=$?
		[ "$status" = 3 ] || fail "sorted without a folder"
		expect_match '^blinksort: \.: ' "$STDERR"
	)
	from_pipe - -o - -S "$MEMORY" -T . <in
	expect_done
}

# --- faults -------------------------------------------------------------------

FAULTS=(read:EIO read:EINTR read:EAGAIN write:EIO write:EINTR write:EAGAIN
	write:ENOSPC open:EMFILE poll:EINTR fcntl:EMFILE malloc:ENOMEM
	aligned_alloc:ENOMEM mmap:ENOMEM pthread_create:EAGAIN close:EIO)
# No reasons to fail
SURVIVED='EINTR|read:EAGAIN|write:EAGAIN'

# run_fault NTH SETTING...: from a pipe to a pipe; $calls as in check_sort_fault
run_fault()
{
	local nth=$1
	shift

	# shellcheck disable=SC2002
	cat in 2>cat.log | {
		status=0
		timeout 300 env LD_PRELOAD="$BUILD/fault.so" FAULT_NTH="$nth" \
			FAULT_COUNT_FILE=calls "$@" "$DYN/blinksort" - -o - \
			-S "$MEMORY" --threads=2 2>"$STDERR" ||
			status=$?
		echo "$status" >status
	} | cat >out || true
	status=$(cat status)
	forget_warning
	calls=$(od -An -tu8 calls)
}

# judge WHAT: after such a run
judge()
{
	if [ "$status" = 0 ]; then
		expect_same want out || fail "$1"
	else
		[[ $status =~ ^(3|5)$ ]] || fail "$1: status $status"
		expect_message || fail "$1"
	fi
	expect_folder "$TMPDIR" || fail "$1"
}

case_faults()
{
	local fault nth hits=0

	make_shape uniform "$COUNT" 1 >in
	sort_reference in -o want
	for fault in "${FAULTS[@]}"; do
		for ((nth = 1; nth < 1000; nth = nth < 8 ? nth + 1 : nth * 2))
		do
			run_fault "$nth" FAULT_CALL="${fault%:*}" \
				FAULT_ERRNO="${fault#*:}"
			judge "$fault $nth"
			[[ ! $fault =~ $SURVIVED || $status == 0 ]] ||
				fail "$fault $nth: status $status"
			[ "$calls" -ge "$nth" ] || break
			hits=$((hits + 1))
		done
	done
	for fault in read write; do
		run_fault 0 FAULT_CALL="$fault" FAULT_DO=short
		[ "$status" = 0 ] || fail "$fault short: status $status"
		judge "$fault short"
	done
	echo "  $hits faults" >&2
	[ "$hits" -gt 20 ] || fail "hardly anything was hit"
}

check counts case_counts
check shapes with_memory case_shapes
check record_sizes with_memory case_record_sizes
check unique_and_reverse with_memory case_unique_and_reverse
check many_runs with_memory case_many_runs
check fifos_and_files case_fifos_and_files
check redirected_files case_redirected_files
check ends case_ends
check slow_ends case_slow_ends
check reader_leaves case_reader_leaves
check cut_records case_cut_records
check writer_dies case_writer_dies
check killed_itself case_killed_itself
check errors case_errors
check progress case_progress
check terminals case_terminals
check reports case_reports
check scratch case_scratch
check named_scratch case_named_scratch
if [ -n "$SANITIZED" ]; then
	skip memory "sanitizers take memory of their own"
	skip faults "sanitizers bring allocators and wrappers of their own"
else
	check memory case_memory
	check faults with_memory case_faults
fi
finish
