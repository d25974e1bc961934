#!/bin/bash
# check_demo.sh - make demo, with and without NODES, as a user gets it
#
# Both demos run with each awk that Debian has, as far as it is installed:
# mawk is the one that is always there.

# shellcheck disable=SC2317 # cases are called by check
# shellcheck source=tests/programs/shell_lib.sh
. "$(dirname "$0")/shell_lib.sh"

if [ "${VARIANT:-dyn}" != dyn ]; then
	skip demo "make demo is of the plain build"
	finish
fi

# A demo takes seconds; one that hangs is ended.
readonly LIMIT_S=300

# use_awk NAME: awk is that program from here on
use_awk()
{
	local path

	path=$(command -v "$1")
	mkdir path
	case $1 in
	busybox) printf '#!/bin/sh\nexec %q awk "$@"\n' "$path" >path/awk ;;
	*) printf '#!/bin/sh\nexec %q "$@"\n' "$path" >path/awk ;;
	esac
	chmod +x path/awk
	PATH=$PWD/path:$PATH
	[ "$(printf '1 2\n' | awk '{ print $2 }')" = 2 ] || fail "no awk: $1"
}

# run_demo_of BUILD SCRIPT [ARGUMENT]: its output in ./out; it is silent on stderr
# and gives back the space that it has used
run_demo_of()
{
	local build=$1 script=$2 left
	shift 2

	mkdir tmp
	env BUILD="$build" TMPDIR="$PWD/tmp" timeout "$LIMIT_S" "$TESTS/$script" "$@" \
		>out 2>err </dev/null || fail "status $?: $(tail -n 3 err)"
	expect_empty err
	left=$(ls -A tmp)
	[ -z "$left" ] || fail "left behind: $left"
}

run_demo()
{
	run_demo_of "$BUILD" "$@"
}

# ms LABEL: the time in the line of that bar
ms()
{
	awk -v label="$1" '$1 == label && $3 == "ms" { print $2 }' out
}

# expect_ratio LABEL LABEL TEXT: the number before TEXT is the quotient of the two
# times as printed, up to the last digit of each
expect_ratio()
{
	local a b ratio

	a=$(ms "$1")
	b=$(ms "$2")
	ratio=$(sed -n "s/.* \([0-9.]*\) $3.*/\1/p" out)
	if [ -z "$a" ] || [ -z "$b" ] || [ -z "$ratio" ]; then
		fail "no times: $(<out)"
	fi
	awk -v a="$a" -v b="$b" -v r="$ratio" 'BEGIN {
		slack = 0.0051 + (a / b) * (0.0051 / a + 0.0051 / b)
		exit !(r > a / b - slack && r < a / b + slack)
	}' || fail "$a and $b make not $ratio"
}

case_demo()
{
	use_awk "$1"
	run_demo demo.sh
	expect_ratio blinksort cp 'times as long as copying'
	expect_match '^    order  *[0-9.]+ ms' out
}

case_cluster()
{
	use_awk "$1"
	run_demo demo_cluster.sh 3
	expect_ratio cluster alone 'times as long as one process'
	expect_match '^    exchange  *[0-9.]+ ms' out
}

case_cluster_memory()
{
	run_demo demo_cluster.sh 3 12M
	expect_ratio cluster alone 'times as long as one process with the memory'
	expect_match ' 113 MB of records' out
}

# Of these rounds, the median of the ratios is not the ratio of the medians:
# 0.88, but 40 ms to 80 ms are 0.50.
case_ratio_of_medians()
{
	local real=$BUILD/musl/tests/bench/bench_spawn

	[ -x "$real" ] || real=$BUILD/dyn/tests/bench/bench_spawn
	mkdir -p build/musl/tests/bench
	cat >build/musl/tests/bench/bench_spawn <<-END
		#!/bin/bash
		"$real" "\$@" | awk '
		BEGIN { split("1 10 20 30 40 50 60 70", sorts, " ")
			split("1 5 5 5 80 80 80 80", copies, " ") }
		NR % 4 == 2 { \$1 = sorts[++s] * 1000000 }
		NR % 4 == 0 { \$1 = copies[++c] * 1000000 }
		{ print }'
	END
	chmod +x build/musl/tests/bench/bench_spawn
	run_demo_of "$PWD/build" demo.sh
	expect_match '^    blinksort  *40.00 ms' out
	expect_match '^    cp  *80.00 ms' out
	expect_match ' 0.50 times as long as copying' out
}

check cluster_memory case_cluster_memory
check ratio_of_medians case_ratio_of_medians
for awk in mawk busybox gawk original-awk; do
	if ! command -v "$awk" >/dev/null; then
		skip "demo_$awk" "no $awk"
		skip "cluster_$awk" "no $awk"
		continue
	fi
	check "demo_$awk" case_demo "$awk"
	check "cluster_$awk" case_cluster "$awk"
done
finish
