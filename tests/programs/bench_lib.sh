# shellcheck shell=bash disable=SC2034 # variables are for the scripts
#
# bench_lib.sh - what the checks of benchmarks beyond memory share, on top of
# tool_lib.sh
#
#   run_bench SCRIPT KIND ROWS VARIABLE=VALUE...
#                         the script of tests/bench with these rows, one round,
#                         its files in ./files and what it prints in ./said; its
#                         record, whose name has KIND, becomes ./record
#   ask EXPRESSION        Python, of ./record; true is what is wanted
#   check_measured NAME FUNCTION
#                         a case, or skipped where there is no memory cgroup, or
#                         no disk

# shellcheck source=tests/programs/tool_lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/tool_lib.sh"

run_bench()
{
	local script=$1 kind=$2 rows=$3 variant
	shift 3

	mkdir -p build files
	for variant in musl dyn; do
		[ ! -d "$BUILD/$variant" ] ||
			ln -sfn "$BUILD/$variant" "build/$variant"
	done
	env BUILD="$PWD/build" BENCH_ONLY="$rows" BENCH_ROUNDS=1 "$@" \
		timeout 600 "$REPO/tests/bench/$script" --label check \
		>said 2>&1 || fail "$(tail -n 20 said)"
	mv build/bench-*-"$kind"-check.json record
	expect_folder files
}

# In the expression, result is the first row's, row its contestants by name, told
# what was skipped and what failed, and results all rows by name.
ask()
{
	python3 - "$1" <<-'END' || fail "not so: $1: $(cat said)"
		import json, sys
		record = json.load(open("record"))
		told = str(record["skipped"]) + str(record["failed"])
		results = {one["name"]: one for one in record["results"]}
		result = record["results"][0]
		row = {one["name"]: one for one in result["contestants"]}
		sys.exit(not eval(sys.argv[1]))
	END
}

find_why_no_cgroup()
{
	PYTHONPATH=$REPO/results python3 -B - 2>&1 <<-'END' || true
		from trials.machine.memory_cgroup import MemoryCgroup, Unavailable
		try:
		    MemoryCgroup(100 << 20).close()
		except Unavailable as reason:
		    print(reason)
	END
}

check_measured()
{
	why_no_cgroup=${why_no_cgroup-$(find_why_no_cgroup)}
	if [ "$why_no_cgroup" ]; then
		skip "$1" "no memory cgroup: $why_no_cgroup"
	elif [ "$(stat -f -c %T "$SCRATCH")" = tmpfs ]; then
		skip "$1" "$SCRATCH has no disk"
	else
		check "$@"
	fi
}
