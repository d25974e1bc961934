#!/bin/bash
# check_val.sh - blinkval as a whole: verdicts, texts, parts, summaries, refusals

# shellcheck disable=SC2317 # cases are called by check
# shellcheck disable=SC2002 # "cat FILE |" makes a pipe of a file
. "$(dirname "$0")/val_lib.sh"

# --- verdicts -----------------------------------------------------------------

case_in_order()
{
	local threads

	sorted 100000 >f
	for threads in 1 2 3 4 5; do
		expect_report 0 "-t$threads" f <<-'END'
			Records: 100000
			Checksum: c34e19c81885
			Duplicate keys: 0
			SUCCESS - all records are in order
		END
	done
}

case_not_in_order()
{
	local threads

	"$GEN" -a 1000000 f
	for threads in 1 2 5; do
		expect_report 1 "-t$threads" f <<-'END'
			First unordered record is record 2
			Records: 1000000
			Checksum: 7a19cff467438
			ERROR - there are 500117 unordered records
		END
	done
}

# hint_of ARGUMENT...: what follows the report
hint_of()
{
	expect_status 1 "$VAL" "$@" 2>err
	sed -n '/^ERROR/,$!d; /^ERROR/!p' err
}

# on_terminal ARGUMENT...: the last line that a terminal shows
on_terminal()
{
	expect_status 1 with_terminal "$VAL" "$@" >out
	tr -d '\r' <out | tail -n 1
}

# Options that were forgotten are a reason for records not in order.  The report on
# records of valsort has no more lines than its own, except on a terminal.
case_hints()
{
	local by="blinkval: taken by default:"
	local parts="blinkval: two FILEs are parts of one output; --against=INPUT\
 compares with the input"

	"$GEN" -a 1000 f
	hint_of f | expect_same - /dev/null
	hint_of --record-size=100 --key=0:4 f | expect_same - /dev/null
	hint_of --record-size=20 f | expect_same - <(echo "$by --key=0:10")
	hint_of --record-size=4 f | expect_same - <(echo "$by --key=0:4")
	hint_of --key=0:u64 f | expect_same - <(echo "$by --record-size=100")
	on_terminal f | expect_same - <(echo "$by --record-size=100 --key=0:10")
	head -c 150 f >short
	on_terminal short | expect_same - <(echo "$by --record-size=100")
	on_terminal --key=0:4 short | expect_same - <(echo "$by --record-size=100")
	on_terminal --record-size=100 short |
		expect_same - <(echo "partial record found at end")
	expect_status 1 "$VAL" --key=0:4 short 2>err
	tail -n 1 err | expect_same - <(echo "$by --record-size=100")
	sorted 1000 >g
	hint_of g f | expect_same - <(echo "$parts")
	hint_of g f --against f | expect_same - \
		<(echo "blinkval: give --against once for each file of the input")
	"$VAL" -q -o s g
	hint_of -s s s | expect_same - /dev/null
	hint_of g f f | expect_same - /dev/null
}

case_other_kinds_not_in_order()
{
	"$GEN" 1000000 f
	expect_report 1 f <<-'END'
		First unordered record is record 2
		Records: 1000000
		Checksum: 7a0e0d4868cd4
		ERROR - there are 499452 unordered records
	END
	"$GEN" -s -a 1000000 f
	expect_report 1 f <<-'END'
		First unordered record is record 2
		Records: 1000000
		Checksum: 7a135fbce6df2
		ERROR - there are 500453 unordered records
	END
}

case_duplicates()
{
	"$GEN" -a -s 1000000 unsorted
	# By the key alone, stable: the sort of the published digests.
	sort -s -k 1.1,1.10 unsorted >f
	[ "$(md5sum <f)" = "8a696f5ac08afd1410766ac6254a2925  -" ] ||
		fail "not the sorted file"
	expect_report 0 f <<-'END'
		Records: 1000000
		Checksum: 7a135fbce6df2
		Duplicate keys: 35
		SUCCESS - all records are in order
	END
}

case_one_record()
{
	"$GEN" 1 f
	expect_report 0 f <<-'END'
		Records: 1
		Checksum: 9ea593a0
		Duplicate keys: 0
		SUCCESS - all records are in order
	END
}

case_quiet()
{
	sorted 100 >f
	expect_report 0 -q f </dev/null
	"$GEN" 100 g
	expect_report 1 -q g </dev/null
	head -c 150 f >h
	expect_report 1 -q h <<<'partial record found at end'
}

# A thread takes 4096 records at a time: faults on both sides of such a border.
case_faults_at_borders()
{
	local at verdict

	sorted 20000 >good
	for at in 1 4095 4096 4097 8192 19999; do
		# The record before it once more: a duplicate.
		{
			records 0 "$at" <good
			records $((at - 1)) 1 <good
			records $((at + 1)) 20000 <good
		} >f
		expect_status 0 "$VAL" -t2 f 2>err
		expect_match '^Duplicate keys: 1$' err
		# A key below all others.
		{
			records 0 "$at" <good
			"$GEN" -b5 1 low
			{ head -c 10 /dev/zero; tail -c 90 low; }
			records $((at + 1)) 20000 <good
		} >f
		expect_status 1 "$VAL" -t2 f 2>err
		expect_match "^First unordered record is record $at\$" err
		verdict='^ERROR - there are 1 unordered records$'
		expect_match "$verdict" err
	done
}

case_nothing()
{
	: >f
	expect_report 1 f <<<'there must be at least one record to be validated'
	expect_report 1 -q f f \
		<<<'there must be at least one record to be validated'
	expect_report 1 /dev/null \
		<<<'there must be at least one record to be validated'
	expect_report 1 -s f \
		<<<'there must be at least one record to be validated'
}

case_fragment()
{
	local bytes

	sorted 50 >good
	for bytes in 1 99 150 4999; do
		head -c "$bytes" good >f
		expect_report 1 -o summary f <<<'partial record found at end'
		expect_gone summary
	done
	"$GEN" -a 50 g
	head -c 4999 g >f
	expect_report 1 f <<-'END'
		First unordered record is record 2
		partial record found at end
	END
	expect_report 1 good f good <<-'END'
		First unordered record is record 50
		blinkval: f: partial record found at end
	END
}

# --- parts --------------------------------------------------------------------

case_parts()
{
	sorted 30000 >f
	records 0 1 <f >a
	records 1 4096 <f >b
	: >c
	records 4097 25903 <f >d
	"$VAL" -o whole f 2>report
	"$VAL" -o parts a b c d 2>err
	expect_same report err
	expect_same whole parts
	expect_status 1 "$VAL" b a d 2>err
	expect_match '^First unordered record is record 4096$' err
	expect_match '^ERROR - there are 1 unordered records$' err
	expect_status 0 "$VAL" a a b 2>err
	expect_match '^Duplicate keys: 1$' err
}

case_pipe()
{
	sorted 10000 >f
	"$VAL" f 2>report
	"$VAL" <(cat f) 2>err
	expect_same report err
	"$VAL" /dev/stdin <f 2>err
	expect_same report err
	"$VAL" <(records 0 5000 <f) <(records 5000 5000 <f) 2>err
	expect_same report err
	expect_report 1 <(head -c 250 f) <<<'partial record found at end'
}

# expect_as_file FILE OPTION...: standard input has the same verdict, report and
# summary as the file, by any number of threads
expect_as_file()
{
	local file=$1 status=0 threads
	shift

	rm -f want summary
	"$VAL" "$@" -o want "$file" 2>report || status=$?
	for threads in "" -t1 -t2 -t5; do
		# shellcheck disable=SC2086 # none, or one
		cat "$file" | expect_status $status "$VAL" $threads "$@" \
			-o summary - 2>err
		expect_same report err
		[ ! -e want ] || expect_same want summary
	done
	expect_status "$status" "$VAL" "$@" - <"$file" 2>err
	expect_same report err
}

case_stdin()
{
	local count

	for count in 0 1 1000 4096 4097 100000; do
		sorted "$count" >f
		expect_as_file f
	done
	"$GEN" -a -s $((QUICK ? 50000 : 1000000)) f
	expect_as_file f
	expect_as_file f -q
	sort -s -k 1.1,1.10 f >g
	expect_as_file g
	expect_as_file g -u
	expect_status 1 "$VAL" -r g 2>report
	expect_status 1 "$VAL" -r - <g 2>err
	expect_same report err
	# From where it is
	{
		head -c 100 >first
		"$VAL" -
	} <g 2>err
	expect_match "^Records: $((QUICK ? 49999 : 999999))\$" err
}

# Faults where one thread's piece ends and the next one's begins.
case_stdin_faults_at_borders()
{
	local at

	sorted 20000 >good
	for at in 1 4095 4096 4097 8191 8192 19999; do
		{
			records 0 "$at" <good
			records $((at - 1)) 1 <good
			records $((at + 1)) 20000 <good
		} >f
		expect_as_file f
		{
			records 0 "$at" <good
			records 0 1 <good
			records $((at + 1)) 20000 <good
		} >f
		expect_as_file f
	done
}

case_stdin_in_pieces()
{
	sorted 1000 >f
	"$VAL" f 2>report
	dd bs=37 <f status=none | "$VAL" - 2>err
	expect_same report err
	mkfifo fifo
	cat f >fifo &
	"$VAL" - <fifo 2>err
	expect_same report err
	cat f >fifo &
	"$VAL" fifo 2>err
	expect_same report err
	sorted 50000 >f
	"$VAL" f 2>report
	"$ENDS" input-socket "$VAL" - <f 2>err
	expect_same report err
	"$ENDS" input-nonblocking "$VAL" - <f 2>err
	expect_same report err
}

case_stdin_fragment()
{
	local bytes

	sorted 5000 >good
	for bytes in 1 99 150 409599 409601 499999; do
		head -c "$bytes" good >f
		expect_as_file f
		echo 'partial record found at end' | expect_same report -
		expect_gone summary
	done
	head -c 150 good | expect_status 1 "$VAL" good - 2>err
	cat >want <<-'END'
		First unordered record is record 5000
		blinkval: standard input: partial record found at end
	END
	expect_same want err
}

case_stdin_among_parts()
{
	sorted 30000 >f
	records 0 7000 <f >a
	records 7000 9000 <f >b
	records 16000 14000 <f >c
	"$VAL" f -o want 2>report
	cat b | "$VAL" a - c -o summary 2>err
	expect_same report err
	expect_same want summary
	cat c | "$VAL" <(cat a) <(cat b) - 2>err
	expect_same report err
	sort -R f >shuffled
	"$VAL" f --against=shuffled 2>report
	cat b | "$VAL" a - c --against=<(cat shuffled) 2>err
	expect_same report err
	expect_status 1 "$VAL" - <b a c 2>err
	expect_match '^First unordered record is record 9000$' err
	"$VAL" -q -o one a
	cat one | "$VAL" -s - 2>err
	expect_match '^Records: 7000$' err
}

# The program that writes two pipes by turns waits for both to be read: one CPU
# is enough for that.
case_two_streams()
{
	sorted 50000 >f
	mkfifo fifo
	tee fifo <f | timeout 60 taskset -c "$(first_cpu)" \
		"$VAL" - --against=fifo 2>err
	expect_match '^Input records: 50000$' err
}

first_cpu()
{
	taskset -cp "$BASHPID" | sed 's/.*: //; s/[,-].*//'
}

case_stdin_refused()
{
	sorted 10 >f
	expect_refused 2 '' - -
	# shellcheck disable=SC2094 # nothing is written
	{
		expect_refused 2 '' - f - <f
		expect_refused 2 'is an input file, too' - -o f <f
	}
	expect_refused 3 '^standard input: .*Bad file' - <&-
	# The file that is opened first must not be taken for it.
	expect_refused 3 '' f - <&-
	expect_refused 3 '' -o summary f - <&-
	expect_refused 3 '' -s - <&-
	expect_gone summary
	expect_refused 3 '^standard input: .*Is a directory' - <.
	expect_refused 3 '^standard input: cannot read: ' - </proc/self/mem
	expect_status 3 "$ENDS" input-terminal "$VAL" - 2>err
	expect_one_line err
	expect_match '^blinkval: standard input: is a terminal' err
}

case_stdin_memory()
{
	"$GEN" 3000000 - | expect_status 1 "$ENDS" memory 16384 "$VAL" -q -
}

# --- files that are larger than the page cache --------------------------------

# They are read past it, in pieces that begin and end within pages.
case_large()
{
	local size sizes=(100 27 30000 5000000)

	[ -z "$QUICK" ] || sizes=(27)
	scarce_memory "$GEN" -a 2700001 f
	expect_uncached f
	for size in "${sizes[@]}"; do
		expect_status 1 scarce_memory "$VAL" "--record-size=$size" \
			--key=0:10 f 2>"err.$size"
		expect_uncached f
	done
	for size in "${sizes[@]}"; do
		expect_status 1 "$VAL" "--record-size=$size" --key=0:10 f 2>err
		expect_same err "err.$size"
	done
}

# Nothing is read before all files are open.  So when the first pipe has been
# opened the size of f is known, and until the second one is, f is not read.
case_file_gets_shorter()
{
	sorted 10000 >f
	mkfifo first second
	"$VAL" -o summary f first second 2>err &
	: >first
	truncate -s 500000 f
	: >second
	expect_status 3 wait $!
	expect_one_line err
	expect_match '^blinkval: f: became shorter' err
	expect_gone summary
}

# --- summaries ----------------------------------------------------------------

case_summary_file()
{
	"$GEN" -a -s 100000 f
	expect_status 1 "$VAL" -q -o summary f
	[ "$(stat -c %s summary)" = 280 ] || fail "not 280 bytes"
	records 0 1 <f >first
	tail -c 100 f >last
	tail -c 200 summary >both
	cat first last | expect_same both -
	# Upper half first: record_count is the third.
	od -A n -v -t x8 -w8 -j 32 -N 48 summary >numbers
	printf ' %016x\n' 0 100000 0 0 0 0xc30e6c1fe3e5 >expected
	expect_same expected numbers
	expect_status 1 "$VAL" f 2>report
	expect_status 1 "$VAL" -s summary 2>err
	expect_same report err
	"$GEN" 10 other
	expect_status 1 "$VAL" -q -o old other
	expect_status 1 "$VAL" -q -o old f
	expect_same old summary
}

# compare_with_parts FILE: random cuts, summaries of the parts, all together.
compare_with_parts()
{
	local count begin=0 now status=0

	count=$(($(stat -c %s "$1") / 100))
	"$VAL" -o whole "$1" 2>report || status=$?
	: >all
	while [ "$begin" -lt "$count" ]; do
		now=$(($(random 9000) + 1))
		records "$begin" "$now" <"$1" >part
		"$VAL" -q -o one part || true
		cat one >>all
		begin=$((begin + now))
	done
	expect_status "$status" "$VAL" -s -o combined all 2>err
	expect_same report err
	expect_same whole combined
}

case_summaries_of_random_parts()
{
	RANDOM=${SEED:-$$}
	echo "SEED=${SEED:-$$}"
	sorted 30000 >f
	compare_with_parts f
	"$GEN" -a -s 20000 f
	compare_with_parts f
	# Many equal keys, wherever it is cut.
	sorted 300 >few
	for _ in {1..30}; do cat few; done | sort -s -k 1.1,1.10 >f
	compare_with_parts f
}

case_bad_summaries()
{
	sorted 100 >f
	"$VAL" -q -o good f
	head -c 279 good >f
	expect_report 1 -s f <<<'partial partition summary found at end'
	cat good f >g
	expect_report 1 -s g <<-'END'
		partial partition summary found at end
	END
	head -c 280 /dev/zero >f
	expect_refused 1 '^f: no records .* number 1$' -s f
	head -c 280 /dev/zero | tr '\0' '\377' >f
	cat good f >g
	expect_refused 1 ' number 2$' -s g
	# 2^128 - 1 records, twice
	{
		head -c 32 good
		head -c 16 /dev/zero | tr '\0' '\377'
		tail -c +49 good
	} >f
	cat f f >g
	expect_refused 1 'more than 128 bits' -s g
	expect_report 0 -s f <<-'END'
		Records: 340282366920938463463374607431768211455
		Checksum: 2f987241eb
		Duplicate keys: 0
		SUCCESS - all records are in order
	END
}

case_summary_cannot_be_written()
{
	sorted 10 >f
	mkdir folder
	expect_refused 3 '' -o folder f
	expect_refused 3 '' -o missing/summary f
	expect_folder . f folder
	expect_refused 3 '' -q -o summary f missing
	expect_folder . f folder
}

# --- refusals -----------------------------------------------------------------

case_files()
{
	sorted 10 >f
	mkdir folder
	expect_refused 3 '^missing: No such file or directory$' missing
	expect_refused 3 '' -q f missing
	expect_refused 3 '' -s missing
	expect_refused 3 '^folder: .*Is a directory$' folder
	expect_refused 3 '' -s folder
}

case_usage()
{
	local value

	sorted 10 >f
	expect_refused 2 ''
	expect_refused 2 '' -q
	expect_refused 2 '' -i f
	expect_refused 2 '' -qi f
	expect_refused 2 '' --quietly f
	expect_refused 2 '' -o
	expect_refused 2 '' -o -q f
	expect_refused 2 '' -osummary -ob f
	expect_refused 2 '' --record-size=16 -o summary f
	expect_refused 2 '' -s --against f f
	for value in "" 0 257 x -1 1e1 99999999999999999999999; do
		expect_refused 2 '' "-t$value" f
	done
	expect_folder . f
	sorted 10 >./-f
	expect_status 0 "$VAL" -q -- -f
}

case_help()
{
	local option

	"$VAL" --help >out 2>err
	expect_empty err
	expect_match '^Usage: blinkval ' out
	for option in --record-size --key -r --reverse --unique --head --against -q \
		-o -s -t --help --version; do
		expect_match "(^|[^a-z-])$option([^a-z-]|\$)" out
	done
	"$VAL" -q --version >out 2>err
	expect_empty err
	expect_one_line out
	expect_match '^blinkval ' out
	expect_status 3 "$VAL" --help >/dev/full 2>err
	expect_one_line err
}

check in_order case_in_order
check not_in_order case_not_in_order
check hints case_hints
check other_kinds_not_in_order case_other_kinds_not_in_order
check duplicates case_duplicates
check one_record case_one_record
check quiet case_quiet
check faults_at_borders case_faults_at_borders
check nothing case_nothing
check fragment case_fragment
check parts case_parts
check pipe case_pipe
check stdin case_stdin
check stdin_faults_at_borders case_stdin_faults_at_borders
check stdin_in_pieces case_stdin_in_pieces
check stdin_fragment case_stdin_fragment
check stdin_among_parts case_stdin_among_parts
check two_streams case_two_streams
check stdin_refused case_stdin_refused
if [ -z "$SANITIZED" ]; then # which takes memory of its own
	check stdin_memory case_stdin_memory
fi
check_large large case_large
check file_gets_shorter case_file_gets_shorter
check summary_file case_summary_file
check summaries_of_random_parts case_summaries_of_random_parts
check bad_summaries case_bad_summaries
check summary_cannot_be_written case_summary_cannot_be_written
check files case_files
check usage case_usage
check help case_help
finish
