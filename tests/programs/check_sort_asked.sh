#!/bin/bash
# check_sort_asked.sh - the lines that answer SIGUSR1, in whatever phase a run is
#
# Each run is asked from its beginning to its end, more often than anyone would:
# it must not notice.

# shellcheck disable=SC2317 # cases are called by check
# shellcheck source=tests/programs/cluster_lib.sh
. "$(dirname "$0")/cluster_lib.sh"

COUNT=300000

# ask PATTERN COMMAND...: see ask_progress.py
ask()
{
	"$REPO/tests/programs/ask_progress.py" asked "$@"
}

# expect_answers NAME: all that was printed are answers of this program, each in
# a line of its own
expect_answers()
{
	local size='[0-9.]+ ([KMGTPE]i)?B'

	! grep -Evx "$1: (rank [0-9]+: )?(preparing|finishing|exchange|\
(input|exchange and output|output): [0-9]+%, $size of $size|\
(runs|merges|output): ([0-9]+%|$size), $size/s(, [0-9]+ (s|min) left)?; \
waits: (disk|input) [0-9]+%, memory [0-9]+%|\
([0-9]+%, $size of $size|$size), $size/s(, [0-9]+ (s|min) left)?)" asked ||
		fail "these are no answers"
	rm asked asked.matched
}

# await_match NAME: a line has matched
await_match()
{
	until [ -e "$1.matched" ]; do
		sleep 0.01
	done
}

# slowly FILE: its first half, and when a line has matched, the other one
slowly()
{
	local bytes

	bytes=$(($(stat -c %s "$1") / 2))
	head -c "$bytes" "$1"
	await_match asked
	tail -c "+$((bytes + 1))" "$1"
}

make_files()
{
	"$BIN/blinkgen" -a "$COUNT" in
	sort_reference in -o want
}

case_memory()
{
	local options

	make_files
	for options in --threads=1 --unique "--io=direct --threads=2"; do
		# shellcheck disable=SC2086 # some options
		ask '^blinksort: (input|output): ' "${BLINKSORT[@]}" in -o out \
			$options || fail "$options: status $?"
		expect_answers blinksort
		expect_same out want || fail "$options"
	done
	head -c 20000000 /dev/zero >zeros
	ask '^blinksort: (input|output): ' "${BLINKSORT[@]}" zeros -o out \
		--record-size=1 --threads=1 || fail "counted: status $?"
	expect_answers blinksort
}

case_beyond_memory()
{
	local options

	make_files
	for options in "-S 12M" "-S 12M --threads=1 --unique" \
		"-S 14M --io=direct --compress=lz4"; do
		# shellcheck disable=SC2086 # some options
		ask '^blinksort: (runs|merges|output): [0-9]+%, ' \
			"${BLINKSORT[@]}" in -o out $options ||
			fail "$options: status $?"
		expect_answers blinksort
		expect_same out want || fail "$options"
	done
}

# A stream that has stopped is where one asks.
case_pipes()
{
	make_files
	slowly in | ask '^blinksort: runs: 14\.3 MiB, .*; waits: input ' \
		"${BLINKSORT[@]}" - -o out -S 100M || fail "status $?"
	expect_answers blinksort
	expect_same out want
	# Before there is anything to read
	mkfifo fifo
	{
		await_match asked
		cat in
	} >fifo &
	ask '^blinksort: (preparing|runs: 0 B, )' "${BLINKSORT[@]}" - -o out2 \
		-S 20M <fifo || fail "status $?"
	wait $!
	expect_answers blinksort
	expect_same out2 want
	# Nobody reads the output yet.
	ask '^blinksort: output: ' "${BLINKSORT[@]}" in -o - -S 12M > >(
		await_match asked
		cat >out3
		touch ended
	) || fail "status $?"
	until [ -e ended ]; do
		sleep 0.01
	done
	expect_answers blinksort
	expect_same out3 want
}

# Each rank answers for itself.
case_ranks()
{
	local job=asked.$$.$RANDOM pids=() statuses=() options rank

	make_files
	cut_input in 100 2 even
	for options in "-o out" "-o out -S 12M" --gather=../whole; do
		for rank in 1 0; do
			mkdir -p "$rank"
			# shellcheck disable=SC2086 # some options
			(
				cd "$rank" || exit
				exec "$REPO/tests/programs/ask_progress.py" \
					asked "^blinksort: rank $rank: " \
					"${BLINKSORT[@]}" --cluster \
					--nodes=127.0.1.[1-2] --rank="$rank" \
					--job="$job" --deadline="$DEADLINE_S" \
					../in."$rank" $options
			) &
			pids[rank]=$!
			# The other rank is asked for as long as nobody meets it.
			[ "$rank" = 0 ] || await_match "$rank/asked"
		done
		for rank in 0 1; do
			wait "${pids[rank]}" || fail "$options: rank $rank: $?"
			mv "$rank"/asked* .
			grep -q "^blinksort: rank $rank: " asked ||
				fail "rank $rank has not said which it is"
			expect_answers blinksort
		done
		if [ -e whole ]; then
			expect_same whole want
		else
			expect_same <(cat 0/out 1/out) want || fail "$options"
		fi
	done
}

case_other_programs()
{
	make_files
	ask '^blinkgen: [0-9]+%, ' "$BIN/blinkgen" -a "$COUNT" - > >(
		await_match asked
		cat >made
		touch ended
	) || fail "status $?"
	until [ -e ended ]; do
		sleep 0.01
	done
	expect_answers blinkgen
	expect_same made in
	slowly want | ask '^blinkval: 1[34]\.[0-9] MiB, ' "$BIN/blinkval" - \
		>"$STDOUT" || fail "status $?"
	sed -i '/^blinkval/!d' asked
	expect_answers blinkval
}

check memory case_memory
check beyond_memory case_beyond_memory
check pipes case_pipes
check ranks case_ranks
check other_programs case_other_programs
finish
