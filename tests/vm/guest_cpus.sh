#!/bin/bash
# guest_cpus.sh - the first process of the machines of check.sh with many CPUs
#
# Each runs on a CPU that is not there: what counts are plans, numbers of
# threads, memory and exactness.
# shellcheck disable=SC2317 # cases are called by check

# shellcheck source=tests/vm/guest_lib.sh
. /blinksort/tests/vm/guest_lib.sh

BIN=/usr/bin
# shellcheck source=tests/programs/sort_lib.sh
. /blinksort/tests/programs/sort_lib.sh

CPUS=$(nproc)
readonly CPUS RECORDS=600000

set_up()
{
	echo "$CPUS CPUs"
	mount -t tmpfs tmpfs /mnt
	blinkgen $RECORDS "$SCRATCH/in" 2>/dev/null
	blinksort "$SCRATCH/in" -o "$SCRATCH/want" --threads=1
}

# threads_of ARGUMENT...: sorts exactly; prints how many threads did it
threads_of()
{
	expect_sorted "$SCRATCH/in" -o /mnt/out --json "$@"
	expect_same /mnt/out "$SCRATCH/want"
	rm /mnt/out
	sed -n 's/.*"threads": \([0-9]*\),.*/\1/p' "$STDOUT"
}

# 60 MB pay for many threads, and not for more than there are CPUs.
case_own_choice()
{
	local threads

	threads=$(threads_of)
	echo "  $threads threads on $CPUS CPUs" >&2
	[ "$threads" -ge 4 ] || fail "$threads threads"
	[ "$threads" -le "$CPUS" ] || fail "$threads threads"
}

case_threads()
{
	local threads

	for threads in 2 "$CPUS" 256; do
		[ "$(threads_of --threads="$threads")" = "$threads" ] ||
			fail "$threads: $(cat "$STDOUT")"
	done
}

# What a plan says that it takes is what it may take.
case_memory()
{
	local planned

	threads_of --threads="$CPUS" >/dev/null
	planned=$(sed -n 's/.*"memory_bytes": \([0-9]*\),.*/\1/p' "$STDOUT")
	threads_of --threads="$CPUS" -S "$planned" >/dev/null
	expect_match '"external": null' "$STDOUT"
	run_tested "$SCRATCH/in" -o /mnt/out --threads=8 -S $((planned / 2)) \
		-T /mnt --json
	[ "$status" = 0 ] || fail "status $status: $(cat "$STDERR")"
	expect_same /mnt/out "$SCRATCH/want"
	expect_match '"external": \{' "$STDOUT"
	rm /mnt/out
}

case_sampled()
{
	threads_of --splitters=sampled --threads="$CPUS" >/dev/null
	threads_of --checksum --threads="$CPUS" >/dev/null
}

case_ranks()
{
	local rank pids=()

	ip link set lo up
	for rank in 0 1; do
		# A name of its own for what both have
		ln -f "$SCRATCH/in" "$SCRATCH/in.$rank"
		blinksort --cluster --nodes=127.0.0.1:7001,127.0.0.1:7002 \
			--rank=$rank \
			"$SCRATCH/in.$rank" -o /mnt/out.$rank &
		pids+=($!)
	done
	wait "${pids[0]}" && wait "${pids[1]}"
	[ "$(cat /mnt/out.? | wc -c)" = $((2 * RECORDS * 100)) ] || fail "bytes"
	blinkval /mnt/out.0 /mnt/out.1
	rm /mnt/out.?
}

set_up
check cpus_own_choice case_own_choice
check cpus_threads case_threads
check cpus_memory case_memory
check cpus_sampled case_sampled
check cpus_ranks case_ranks
end_machine
