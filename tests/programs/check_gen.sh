#!/bin/bash
# check_gen.sh - blinkgen as a whole: bytes, checksums, threads, refusals

# shellcheck disable=SC2317 # cases are called by check
. "$(dirname "$0")/pipe_lib.sh"

GEN=$BIN/blinkgen
TESTED=("$GEN") TESTED_AS=blinkgen

# --- bytes --------------------------------------------------------------------

case_vectors()
{
	local digest options count

	while IFS=$'\t' read -r digest options count; do
		case $digest in '#'*) continue ;; esac
		[ "$options" != . ] || options=
		# shellcheck disable=SC2086 # several options
		"$GEN" $options "$count" f
		[ "$(sha256sum <f)" = "$digest  -" ] ||
			fail "other bytes: $options $count"
	done <"$REPO/tests/data/vectors/gensort.tsv"
}

# expect_md5 DIGEST OPTION...
expect_md5()
{
	local digest=$1
	shift
	"$GEN" "$@" 1000000 f
	[ "$(md5sum <f)" = "$digest  -" ] || fail "other bytes: $*"
}

case_million_records()
{
	expect_md5 11b7c8fb09c3721676093b5739e2d7b5
	expect_md5 dcddf6e1545f0c81bf9e37d24963be70 -a
	expect_md5 a4cd19c6bf517eba86b16888beaa670a -s
	expect_md5 d23ad9e3c4b9500692bc70907ccfb6e4 -a -s
	expect_md5 d23ad9e3c4b9500692bc70907ccfb6e4 -s -a
}

# Whoever calls the same blocks by other threads gets the same bytes.
case_threads()
{
	local threads options

	for options in "" "-a -s"; do
		# shellcheck disable=SC2086 # several options
		"$GEN" $options -b77 -t1 50001 one
		for threads in 2 3 4 5; do
			# shellcheck disable=SC2086
			"$GEN" $options -b77 -t$threads 50001 many
			expect_same one many
		done
	done
}

case_parts_are_the_whole()
{
	local options

	for options in "" -a -s "-a -s"; do
		# shellcheck disable=SC2086 # several options
		{
			"$GEN" $options 10000 whole
			"$GEN" $options 4097 a
			"$GEN" $options -b4097 1 b
			"$GEN" $options -b4098 0 c
			"$GEN" $options -b4098 5902 d
		}
		cat a b c d >parts
		expect_same whole parts
	done
}

case_last_numbers()
{
	# 2^128 - 3 and four more: the numbers begin again at 0.
	"$GEN" -a -b340282366920938463463374607431768211453 5 f
	cut -c 13-44 <f >numbers
	printf '%s\n' FFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFD \
		FFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFE \
		FFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFF \
		00000000000000000000000000000000 \
		00000000000000000000000000000001 >expected
	expect_same expected numbers
	"$GEN" -a 2 first
	tail -n 2 f >last
	expect_same first last
	# 2^64 - 2: the carry into the upper half.
	"$GEN" -a -b18446744073709551614 4 f
	cut -c 13-44 <f | tail -n 2 | sed -n 1p >numbers
	echo 00000000000000010000000000000000 >expected
	expect_same expected numbers
}

# --- checksums ----------------------------------------------------------------

# expect_checksum HEX ARGUMENT...
expect_checksum()
{
	local hex=$1
	shift
	"$GEN" -c "$@" >out 2>err
	expect_empty out
	echo "$hex" >expected
	expect_same expected err
}

case_checksums()
{
	expect_checksum 0 0 /dev/null
	expect_checksum 9ea593a0 1 /dev/null
	expect_checksum 3fcaea0a -a 1 /dev/null
	expect_checksum 55fea8a1a 10 f
	expect_checksum 46073c01c -a -s 10 f
	expect_checksum c3068574c6ff 100000 /dev/null
	expect_checksum 7a0e0d4868cd4 1000000 /dev/null
	expect_checksum 79f9a7e6de673 -s 1000000 f
	expect_checksum 7a135fbce6df2 -t3 -a -s 1000000 /dev/null
	expect_checksum 7a0e0b9de11bf -b1 1000000 /dev/null
	expect_checksum 7a35031ad522d -b1000000 1000000 /dev/null
	expect_checksum 79fd435d6580e -s -b1152921504606846000 1000000 /dev/null
}

# published CLAIM: the figure of the memo of 2011
published()
{
	/usr/bin/python3 - "$REPO/results/published/psort-2011.json" "$1" <<-'END'
		import json, sys
		claims = json.load(open(sys.argv[1]))["claims"]
		print(*[c["value"] for c in claims if c["id"] == sys.argv[2]])
	END
}

# case_published NAME [COUNT]: the sum of so many records; those that a PennySort
# took in two minutes each
case_published()
{
	local count=${2:-$(published "$1-records")}

	expect_checksum "$(published "$1-checksum")" -a "$count" /dev/null
}

case_checksum_of_ten_million()
{
	expect_checksum 4c48a881c779d5 -a 10000000 /dev/null
	expect_checksum 4c478a4199c9fe -s 10000000 /dev/null
}

case_dev_null_stays()
{
	"$GEN" 1000 /dev/null
	[ -c /dev/null ] || fail "/dev/null is no device any more"
	expect_folder .
}

# --- files --------------------------------------------------------------------

case_no_records()
{
	"$GEN" 0 f >out 2>&1
	expect_empty out
	[ -f f ] || fail "no file"
	expect_empty f
}

case_output_is_replaced()
{
	"$GEN" 1000 f
	"$GEN" -a 10 f
	[ "$(stat -c %s f)" = 1000 ] || fail "not 10 records"
	"$GEN" -a 10 g
	expect_same f g
}

case_link_is_followed()
{
	mkdir folder
	echo old >folder/target
	ln -s folder/target link
	"$GEN" 10 link
	[ -L link ] || fail "the link is gone"
	[ "$(stat -c %s folder/target)" = 1000 ] || fail "not written"
}

case_output_is_a_folder()
{
	mkdir folder
	expect_refused 3 'folder: .*Is a directory' 10 folder
	expect_refused 3 '' 10 folder/
	expect_folder folder
}

case_output_is_a_device()
{
	expect_refused 3 'not a regular file' 10 /dev/zero
}

case_no_such_folder()
{
	expect_refused 3 'missing/f: .*No such file' 10 missing/f
}

case_unwritable_folder()
{
	mkdir folder
	chmod 555 folder
	expect_refused 3 'folder/f: .*Permission denied' 10 folder/f
	chmod 755 folder
}

case_too_large()
{
	expect_refused 3 'f: .*File too large' 18446744073709551615 f
	# 2^63 / 100, rounded up
	expect_refused 3 '' 92233720368547759 f
	(
		ulimit -f 9 # KiB: 92 records
		"$GEN" 92 f
		expect_refused 3 'g: .*File too large' 93 g
	)
}

# What did not get all of its bytes must not appear; what was there stays.
case_full_disk()
{
	local threads

	mkdir disk
	mount -t tmpfs -o size=2m tmpfs disk
	# shellcheck disable=SC2064 # now
	at_end "umount '$PWD/disk'"
	echo old >disk/old
	for threads in 1 2 5; do
		expect_refused 3 'disk/f: .*No space left' "-t$threads" 100000 \
			disk/f
		expect_folder disk old
		expect_refused 3 '' "-t$threads" -c 100000 disk/old
		[ "$(cat disk/old)" = old ] || fail "the old file is lost"
	done
	"$GEN" 10000 disk/f
}

# --- standard output ----------------------------------------------------------

# The same bytes as in a file, and nothing else.
case_stdout()
{
	local count options threads

	for options in "" "-a -s"; do
		for count in 0 1 1000 4096 4097 20001 $((QUICK ? 50000 : 1000000)); do
			# shellcheck disable=SC2086 # several options
			"$GEN" $options -b7 $count f
			for threads in "" -t1 -t2 -t5; do
				# shellcheck disable=SC2086
				"$GEN" $options -b7 $threads $count - 2>err |
					cmp - f
				expect_empty err
			done
		done
	done
	expect_folder . err f
}

case_stdout_is_a_file()
{
	"$GEN" 5000 f
	echo behind >g
	"$GEN" 5000 - >>g
	tail -n +2 <g | expect_same f -
	"$GEN" -c 5000 - >g 2>err
	expect_same f g
	"$GEN" -c 5000 /dev/null 2>want
	expect_same want err
}

case_stdout_is_a_fifo()
{
	"$GEN" 50000 f
	mkfifo fifo
	"$GEN" 50000 - >fifo &
	expect_same fifo f
	wait $!
}

# By sockets and by pipes that do not block, too.
case_stdout_is_unusual()
{
	"$GEN" 50000 f
	"$ENDS" output-socket "$GEN" 50000 - | expect_same f -
	"$ENDS" output-nonblocking "$GEN" 50000 - | expect_same f -
}

# Status 3, no line, no signal.
case_reader_leaves()
{
	local reader threads

	for threads in "" -t1 -t2 -t5; do
		for reader in "head -c 1000" true; do
			# shellcheck disable=SC2086 # none, or one
			{ "$GEN" $threads 1000000 - 2>err ||
				echo $? >status; } | $reader >out
			[ "$(cat status)" = 3 ] || fail "status $(cat status)"
			expect_empty err
			rm status
		done
	done
}

case_stdout_fails()
{
	local threads

	for threads in 1 2 5; do
		expect_status 3 "$GEN" "-t$threads" 100000 - >/dev/full 2>err
		expect_one_line err
		expect_match '^blinkgen: standard output: .*No space left' err
	done
	expect_status 3 "$GEN" 10 - >&- 2>err
	expect_one_line err
	expect_match '^blinkgen: standard output: .*Bad file descriptor' err
	expect_status 3 "$GEN" 10 - >&- 2>err <&-
	expect_one_line err
	# Of no signal
	(
		ulimit -f 9 # KiB: 92 records
		expect_status 3 "$GEN" 93 - >f 2>err
	)
	expect_one_line err
	expect_match '^blinkgen: standard output: .*File too large' err
}

case_terminal()
{
	expect_status 3 "$ENDS" output-terminal "$GEN" 1 - >out 2>err
	expect_empty out
	expect_one_line err
	expect_match '^blinkgen: standard output: is a terminal' err
	"$ENDS" output-terminal "$GEN" -a 1 - >out 2>err
	expect_empty err
	expect_match 'AsfAGHM5om  0000' out
}

# However many there are: 16 MiB are more than it takes for 300 MB.
case_stdout_memory()
{
	"$ENDS" memory 16384 "$GEN" 3000000 - | wc -c >bytes
	[ "$(cat bytes)" = 300000000 ] || fail "$(cat bytes) bytes"
}

# --- files that are larger than the page cache --------------------------------

# They are written past it.  The last block fills no page.
case_large()
{
	local threads

	"$GEN" -c 2700001 want 2>checksum
	for threads in 1 5; do
		scarce_memory "$GEN" -c "-t$threads" 2700001 f 2>err
		expect_same checksum err
		expect_uncached f
		expect_same want f
		[ -z "$QUICK" ] || break
	done
}

# --- usage --------------------------------------------------------------------

case_absurd_values()
{
	local value

	for value in 1e6 -1 +1 "" " 1" "1 " 0x10 1.5 18446744073709551616 \
		ten 1k; do
		expect_refused 2 '' -- "$value" f
	done
	for value in x 1e6 -1 340282366920938463463374607431768211456 "1 "; do
		expect_refused 2 '' "-b$value" 10 f
		expect_refused 2 '' -b "$value" 10 f
	done
	expect_refused 2 '' -b "" 10 f
	expect_refused 2 '' -b 10 f
	for value in "" 0 257 x -1 1e1 99999999999999999999999; do
		expect_refused 2 '' "-t$value" 10 f
	done
}

case_usage()
{
	expect_refused 2 ''
	expect_refused 2 '' 10
	expect_refused 2 '' 10 f g
	expect_refused 2 '' 10 f g -a
	expect_refused 2 '' -x 10 f
	expect_refused 2 '' -ax 10 f
	expect_refused 2 '' -b5 -b5 10 f
	expect_refused 2 '' --ascii 10 f
	expect_refused 2 '' -
}

case_end_of_options()
{
	"$GEN" -a -- 10 -f
	[ "$(stat -c %s ./-f)" = 1000 ] || fail "not written"
}

case_help()
{
	"$GEN" --help >out 2>err
	expect_empty err
	expect_match '^Usage: blinkgen ' out
	"$GEN" -a --version >out 2>err
	expect_empty err
	expect_one_line out
	expect_match '^blinkgen ' out
	expect_status 3 "$GEN" --help >/dev/full 2>err
	expect_one_line err
}

check vectors case_vectors
check million_records case_million_records
check threads case_threads
check parts_are_the_whole case_parts_are_the_whole
check last_numbers case_last_numbers
check checksums case_checksums
check published case_published datamation 1000000
# make check-long
if [ "${LONG:-}" ]; then
	check published_daytona case_published daytona
	check published_indy case_published indy
fi
if [ -z "$QUICK" ]; then
	check checksum_of_ten_million case_checksum_of_ten_million
fi
check dev_null_stays case_dev_null_stays
check no_records case_no_records
check output_is_replaced case_output_is_replaced
check link_is_followed case_link_is_followed
check output_is_a_folder case_output_is_a_folder
check output_is_a_device case_output_is_a_device
check no_such_folder case_no_such_folder
check_able be_refused unwritable_folder case_unwritable_folder
check too_large case_too_large
check_able mount full_disk case_full_disk
check stdout case_stdout
check stdout_is_a_file case_stdout_is_a_file
check stdout_is_a_fifo case_stdout_is_a_fifo
check stdout_is_unusual case_stdout_is_unusual
check reader_leaves case_reader_leaves
check stdout_fails case_stdout_fails
check terminal case_terminal
if [ -z "$SANITIZED" ]; then # which takes memory of its own
	check stdout_memory case_stdout_memory
fi
check_large large case_large
check absurd_values case_absurd_values
check usage case_usage
check end_of_options case_end_of_options
check help case_help
finish
