#!/bin/bash
# check_sort_kill.sh - blinksort ended by a signal at any moment
#
# Afterwards the output is absent or complete, or still the old one, and
# nothing else has appeared.  Every moment and every ending is legal, so how
# fast the machine is does not matter.

# shellcheck disable=SC2317 # cases are called by check
. "$(dirname "$0")/sort_lib.sh"

# As many rounds for each of the cases below.
rounds=20
[ -z "$QUICK" ] || rounds=5
SIGNALS=(KILL INT TERM)

make_shape uniform 150000 "$SEED" >"$SCRATCH/in"
sort_reference "$SCRATCH/in" -o "$SCRATCH/want"
echo old >"$SCRATCH/old"

# How long one takes: the least of a few, as it is waited for often.
whole_us=
for _ in 1 2 3 4 5; do
	begin_ns=$(date +%s%N)
	"${BLINKSORT[@]}" "$SCRATCH/in" -o "$SCRATCH/out"
	took_us=$((($(date +%s%N) - begin_ns) / 1000))
	if [ -z "$whole_us" ] || [ "$took_us" -lt "$whole_us" ]; then
		whole_us=$took_us
	fi
	rm "$SCRATCH/out"
done

# kill_at SIGNAL DELAY-US ARGUMENT...: sort and send the signal; $status.
# Shells start background processes with SIGINT ignored: not so here.
kill_at()
{
	local signal=$1 delay_us=$2 pid
	shift 2

	env --default-signal=INT,TERM "${BLINKSORT[@]}" "$@" \
		>"$STDOUT" 2>"$STDERR" </dev/null &
	pid=$!
	nap "$((delay_us / 1000000)).$(printf %06d $((delay_us % 1000000)))"
	kill -s "$signal" "$pid" 2>/dev/null || true
	status=0
	wait "$pid" 2>/dev/null || status=$?
}

# expect_complete_or OLD FILE WANT: the file is as it should be, or, unless the
# run ended well, still what it was (OLD is "" if it did not exist).
expect_complete_or()
{
	if [ "$status" != 0 ]; then
		[ -n "$1" ] || [ -e "$2" ] || return 0
		[ -z "$1" ] || ! cmp -s "$1" "$2" || return 0
	fi
	expect_same "$2" "$3"
}

# Between the moment when a new file has a name and the one when it takes the
# place of the old, only SIGKILL can come: then that one file may be left.
expect_nothing_else()
{
	local signal=$1 left
	shift

	for left in .[!.]*; do
		if [ "$signal" != KILL ] || [ ! -e "$left" ]; then
			continue
		fi
		cmp -s "$left" "$SCRATCH/want" || fail "left behind: $left"
		echo "  SIGKILL between link and rename left $left" >&2
		rm "$left"
	done
	for left in * .[!.]*; do
		[[ ! -e "$left" || " $* " == *" $left "* ]] ||
			fail "left behind: $left"
	done
}

# case_killed OLD IO: OLD is the file that was there before, or ""
case_killed()
{
	local round signal random early=0

	for ((round = 0; round < rounds; round++)); do
		signal=${SIGNALS[round % 3]}
		[ -z "$1" ] || cp "$1" out
		random_below $((whole_us * 5 / 4 + 1))
		kill_at "$signal" "$random" "$SCRATCH/in" -o out --io="$2"
		[ "$(wc -l <"$STDERR")" -le 1 ] || expect_one_line "$STDERR"
		expect_complete_or "$1" out "$SCRATCH/want"
		expect_nothing_else "$signal" out
		[ "$status" = 0 ] || early=$((early + 1))
		rm -f out
	done
	echo "  $early of $rounds did not finish" >&2
}

# Of several outputs each is complete or absent.
case_killed_two_outputs()
{
	local round signal random

	for ((round = 0; round < rounds; round++)); do
		signal=${SIGNALS[round % 3]}
		random_below $((whole_us * 5 / 4 + 1))
		kill_at "$signal" "$random" "$SCRATCH/in" -o out1 -o out2 \
			--sync
		if [ "$status" = 0 ] || { [ -e out1 ] && [ -e out2 ]; }; then
			cat out1 out2 | expect_same - "$SCRATCH/want"
		elif [ -e out1 ]; then
			cmp -n "$(stat -c %s out1)" out1 "$SCRATCH/want"
		fi
		expect_nothing_else "$signal" out1 out2
		rm -f out1 out2
	done
}

if [ "$SANITIZED" = tsan ]; then
	skip killed "ThreadSanitizer holds signals back"
	finish
fi
if ! has_tmpfile "$SCRATCH"; then
	# Then only signals that can be caught leave nothing.
	SIGNALS=(INT TERM TERM)
fi
check killed_buffered case_killed "" buffered
check killed_mmap case_killed "" mmap
check killed_direct case_killed "" direct
check killed_old_output case_killed "$SCRATCH/old" auto
check killed_two_outputs case_killed_two_outputs
finish
