#!/bin/bash
# check_bench_external.sh - the benchmark of sorts beyond memory, on small files:
# its copy copies, its rows run within their memory, its record is whole

# shellcheck source=tests/programs/bench_lib.sh
. "$(dirname "$0")/bench_lib.sh"

COPY=$BUILD/dyn/tests/bench/bench_copy
[ ! -x "$BUILD/musl/tests/bench/bench_copy" ] ||
	COPY=$BUILD/musl/tests/bench/bench_copy

if [ ! -x "$COPY" ]; then
	skip bench_external "the benchmarks are not built in this variant"
	finish
fi

# case_copy: sizes around a sector, a block and all blocks at once
case_copy()
{
	local size

	for size in 0 1 4096 4097 2097152 2097153 40000001; do
		head -c "$size" /dev/urandom >in
		echo "longer than some" >out
		"$COPY" in out
		expect_same in out
	done
}

case_copy_fails()
{
	expect_status 3 "$COPY" missing out 2>err
	expect_match '^bench_copy: missing: No such file' err
	expect_status 2 "$COPY" in 2>err
	expect_match '^usage: ' err
}

# copy_with ERRNO NTH: of the calls of the kernel that wait, this one fails
copy_with()
{
	timeout 60 strace -o trace -e trace=io_uring_enter \
		-e inject=io_uring_enter:error="$1":when="$2" "$COPY" in out
}

case_copy_waits_fail()
{
	local nth

	head -c 40000001 /dev/urandom >in
	for nth in 1 2 3; do
		expect_status 3 copy_with EBADF "$nth" 2>err
		expect_match '^bench_copy: io_uring: Bad file descriptor' err
		copy_with EINTR "$nth"
		expect_same in out
	done
}

# bench ROW: with a few megabytes
bench()
{
	run_bench bench_external.py external "=$1" BENCH_EXTERNAL_GB=0.06 \
		BENCH_EXTERNAL_MEMORY=40000000 BENCH_EXTERNAL_LEAST=40000000 \
		BENCH_EXTERNAL_FOLDER="$PWD/files" BENCH_PYTHON=/usr/bin/python3
}

case_memory()
{
	bench memory
	ask '{"blinksort", "copy"} <= set(row)'
	# Others may be killed in so little memory; then that is told.
	ask 'all(name in row or name in told for name in ("GNU sort", "cp+sync"))'
	ask 'all(one["peak_bytes"] <= 40000000 for one in row.values())'
	ask 'row["blinksort"]["spilled_bytes"] > 10000000'
	ask 'row["blinksort"]["samples"][0]["killed"] == 0'
	ask 'set(row["copy"]["ratios"]) == set(row) - {"copy"}'
	expect_match '^  blinksort ' said
}

case_curve()
{
	bench memory-curve
	ask 'len(row) == 11'
	ask 'row["memory=66000000"]["limit_bytes"] == 66000000'
	"$REPO/tests/bench/memory_curve.py" record plot.png
	[ "$(head -c 4 plot.png | tail -c 3)" = PNG ] || fail "no picture"
}

case_shape()
{
	bench shape-all-equal
	ask 'list(row) == ["all-equal", "uniform"]'
}

check copy case_copy
check copy_fails case_copy_fails
check_able trace copy_waits_fail case_copy_waits_fail
for name in memory curve shape; do
	check_measured $name case_$name
done
finish
