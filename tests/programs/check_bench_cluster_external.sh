#!/bin/bash
# check_bench_cluster_external.sh - the benchmark of ranks beyond memory, on small
# files: its rows run within their memory, its record is whole, and a run that is
# ended leaves nothing

# shellcheck source=tests/programs/bench_lib.sh
. "$(dirname "$0")/bench_lib.sh"

readonly MEMORY=12582912
readonly SIZES="BENCH_CLUSTER_PART=10000000 BENCH_CLUSTER_MEMORY=$MEMORY
	BENCH_CLUSTER_LATE_RATE=20000000
	BENCH_CLUSTER_MANY_PART=6000000 BENCH_CLUSTER_MANY_MEMORY=$MEMORY
	BENCH_CLUSTER_SHAPES=20000000 BENCH_CLUSTER_SHAPES_MEMORY=$MEMORY
	BENCH_CLUSTER_LINKS_PART=10000000 BENCH_CLUSTER_LINKS_MEMORY=$MEMORY
	BENCH_CLUSTER_WAVE_ROUNDS=6"

# bench ROWS VARIABLE...
bench()
{
	# shellcheck disable=SC2086 # several words
	run_bench bench_cluster_external.py cluster-external "$1" \
		BENCH_CLUSTER_FOLDER="$PWD/files" $SIZES "${@:2}"
}

case_ranks()
{
	bench "=one-process =bytes"
	ask 'list(row) == ["4 ranks", "one process"] and told == "[][]"'
	ask 'row["4 ranks"]["limit_bytes"] == '$((MEMORY + (16 << 20)))
	ask 'all(one["peak_bytes"] <= one["limit_bytes"] for one in row.values())'
	ask 'row["4 ranks"]["spilled_bytes"] > 10000000'
	ask 'len(row["4 ranks"]["samples"][0]["ranks"]) == 4'
	ask 'result["ratio"]["median"] == row["4 ranks"]["ratios"]["one process"]'
	ask 'len(results["bytes"]["bytes"]) == 4'
	ask 'all(one[way]["told"] > 9000000 for one in results["bytes"]["bytes"]
		for way in ("read_bytes", "written_bytes"))'
	expect_match '^  peak MB of 4 ranks: ' said
	expect_match '^  counted by ' said
}

# What the late rank has not read, others have.
case_late()
{
	bench "=late-rank" BENCH_CLUSTER_PART=40000000
	ask 'list(row) == ["shared input", "own inputs"] and told == "[][]"'
	ask 'set(result["first_pass_ns"]) == set(row)'
	ask 'all(rank["passes"][0]["read_bytes"] > 39000000 for rank in
		row["own inputs"]["samples"][0]["ranks"])'
	ask 'sum(rank["passes"][0]["read_bytes"] for rank in
		row["shared input"]["samples"][0]["ranks"]) > 159000000'
	ask 'row["shared input"]["samples"][0]["ranks"][3]["passes"][0][
		"read_bytes"] < 36000000'
}

case_many()
{
	bench many-ranks
	ask 'len(row["16 ranks"]["samples"][0]["ranks"]) == 16'
}

case_shapes()
{
	bench "=shape-next-range-16 =shape-two-empty-4096 =shape-zipf-100"
	ask 'len(results) == 3 and told == "[][]"'
	# In the first pass a rank without input reads nothing.
	ask '[rank["passes"][0]["read_bytes"] > 0 for rank in
		results["shape-two-empty-4096"]["contestants"][0]["samples"][0]["ranks"]
		] == [True, False, True, False]'
	# Each rank sends all it has.
	ask 'all(rank["told"]["sent_bytes"] > 4500000 for rank in
		results["shape-next-range-16"]["contestants"][0]["samples"][0]["ranks"])'
}

case_links()
{
	bench "=links"
	ask 'list(row) == ["compress=lz4", "compress=auto", "compress=none"]'
	ask 'row["compress=lz4"]["samples"][0]["compress"] == "lz4"'
	# What came through the ports has all headers, and what was not blocks.
	ask '0 < row["compress=none"]["link_ns"] < row["compress=none"]["wire_ns"]'
	ask 'row["compress=lz4"]["link_ns"] < row["compress=none"]["link_ns"]'
}

case_wave()
{
	bench "=one-wave"
	ask 'list(row) == ["-S", "default"] and result["rounds"] == 6'
	ask 'result["ratio"]["interval"]["confidence"] >= 0.95'
}

left_behind()
{
	find /sys/fs/cgroup -maxdepth 2 -name "blink-$1-*"
	ls -A files
}

# Ended in the midst of a run: no process, no cgroup, no file.
case_terminated()
{
	local pid status=0 tries

	mkdir -p build files
	# shellcheck disable=SC2086 # several words
	env BENCH_ONLY="=one-process" BENCH_CLUSTER_FOLDER="$PWD/files" \
		BUILD="$PWD/build" $SIZES \
		"$REPO/tests/bench/bench_cluster_external.py" >said 2>&1 &
	pid=$!
	for ((tries = 0; tries < 600; tries++)); do
		[ -z "$(find files -name 'said.*')" ] || break
		sleep 0.05
	done
	kill -TERM "$pid"
	wait "$pid" || status=$?
	[ "$status" = 143 ] || fail "status $status: $(cat said)"
	[ -z "$(left_behind "$pid")" ] || fail "$(left_behind "$pid")"
}

for name in ranks late many shapes terminated; do
	check_measured $name case_$name
done
check_able root,netns links case_links
check wave case_wave
finish
