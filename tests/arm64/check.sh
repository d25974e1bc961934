#!/bin/bash
# check.sh - the programs and unit tests as compiled for arm64 (make check-arm64)
#
# USAGE: tests/arm64/check.sh [FOLDER]      default: build/arm64
#
# QEMU runs single programs here (qemu-user): their system calls go to this
# machine's kernel.  Every cmocka test is run; then files are made, sorted and
# validated, each compared byte by byte with what the programs in BIN do.
#
# What the emulator cannot do is named in why_not: a test that fails because of
# it is skipped with that reason, any other failure counts.

# shellcheck source=tests/programs/tool_lib.sh
. "$(dirname "$0")/../programs/tool_lib.sh"

FOLDER=$(cd "$REPO" && realpath -m "${1:-$BUILD/arm64}")
NATIVE=$(cd "$REPO" && realpath "$BIN")
LOGS=$FOLDER/log
TIMEOUT_S=300
RECORDS=100000
# As check_sort_main.sh has it, from the original gensort.
CHECKSUM=c34e19c81885

passed=0 failed=0 skipped=0

# --- unit tests ---------------------------------------------------------------

# why_not NAME: why it cannot pass here, a case or a whole test; 1: it can
why_not()
{
	case $1 in
	test_daemon | test_job | test_process | test_proctree)
		echo "qemu-user refuses prctl(PR_SET_CHILD_SUBREAPER)" ;;
	test_udp)
		echo "qemu-user refuses getsockopt(IP_MTU)" ;;
	datagram_payload_bytes__*)
		echo "qemu-user refuses getsockopt(IP_MTU)" ;;
	datagram_*)
		echo "qemu-user's recvmsg() without a buffer receives nothing" ;;
	input_reader__no_* | input_reader__io_uring_* | residency__counts_pages)
		echo "qemu-user refuses seccomp filters" ;;
	external_lanes__calls_fail | external_sort__ring_fails)
		echo "qemu-user has no io_uring, of which a call would fail" ;;
	input_sigbus__others_as_ever)
		echo "qemu-user prints a line of its own when it ends by SIGBUS" ;;
	output_help__refused_store_is_written)
		echo "qemu-user's madvise() always succeeds" ;;
	pclmul__* | vpclmul__*)
		echo "an instruction set of x86-64" ;;
	*)
		return 1 ;;
	esac
}

# verdicts LOG: "OK NAME", "SKIPPED NAME", "FAILED NAME" or "ERROR NAME" of each
# case, by what cmocka prints as it goes, not by the lists at its end
verdicts()
{
	awk '$2 == "RUN" { name = $4 }
		$1 == "[" && $2 ~ /^(OK|SKIPPED|FAILED|ERROR)$/ &&
			NF == 4 && $4 == name { print $2, name; name = "" }' "$1"
}

# bad NAME WHY...
bad()
{
	echo "FAIL $1: ${*:2}"
	failed=$((failed + 1))
}

# omitted NAME WHY...
omitted()
{
	skip "$@"
	skipped=$((skipped + 1))
}

# excused NAME: whether there is a reason, which is said
excused()
{
	local why

	why=$(why_not "$1") || return 1
	omitted "$1" "$why"
}

# count_unit NAME LOG STATUS: each of its cases
count_unit()
{
	local announced said=0 ok=0 verdict name

	announced=$(awk '/^\[=+\] [0-9]+ test\(s\) run\.$/ { sum += $2 }
		END { print sum + 0 }' "$2")
	while read -r verdict name; do
		said=$((said + 1))
		case $verdict in
		OK) ok=$((ok + 1)) ;;
		SKIPPED) excused "$name" ||
			omitted "$name" "it skips itself, see $2" ;;
		*) excused "$name" || bad "$name" "see $2" ;;
		esac
	done < <(verdicts "$2")
	passed=$((passed + ok))
	if [ $said -gt 0 ] && [ $said = "$announced" ] &&
		{ [ "$3" = 0 ] || [ $said -gt $ok ]; }; then
		echo "ok $1: $ok of $said"
	else
		bad "$1" "exit status $3 after $said cases, see $2"
	fi
}

# run_unit NAME
run_unit()
{
	local log=$LOGS/$1.log status=0

	excused "$1" && return
	(
		cd "$REPO"
		exec timeout --kill-after=10 "$TIMEOUT_S" qemu-aarch64 \
			-L "$FOLDER/sysroot" "$FOLDER/dyn/tests/unit/$1" \
			>"$log" 2>&1 </dev/null
	) || status=$?
	count_unit "$1" "$log" $status
}

# --- whole programs -----------------------------------------------------------

# arm PROGRAM ARGUMENT...; PAGE_BYTES: of the kernel it believes to be on
arm()
{
	qemu-aarch64 ${PAGE_BYTES:+-p "$PAGE_BYTES"} \
		"$FOLDER/musl/bin/$1" "${@:2}"
}

# case_generated OPTION...: for the other cases, too
case_generated()
{
	arm blinkgen -c "$@" $RECORDS "$SCRATCH/in" 2>sum
	"$NATIVE/blinkgen" -c "$@" $RECORDS want 2>want.sum
	expect_same "$SCRATCH/in" want
	expect_same sum want.sum
}

# case_sorted OPTION...: files and options of blinksort
case_sorted()
{
	arm blinksort "$@" -o out --checksum >sum
	"$NATIVE/blinksort" "$@" -o want --checksum >want.sum
	expect_same out want
	expect_same sum want.sum
}

case_validated()
{
	arm blinksort "$SCRATCH/in" -o out
	arm blinkval out 2>report
	"$NATIVE/blinkval" out 2>want.report
	expect_same report want.report
	expect_match "^Checksum: $CHECKSUM\$" report
	expect_match "^SUCCESS - all records are in order\$" report
	expect_status 1 arm blinkval "$SCRATCH/in" 2>report
	expect_status 1 "$NATIVE/blinkval" "$SCRATCH/in" 2>want.report
	expect_same report want.report
}

case_kernel()
{
	arm blinksort "$SCRATCH/in" -o out --json >report
	expect_match '"kernel": "scalar"' report
	expect_status 2 arm blinksort --kernel=avx2 "$SCRATCH/in" -o out 2>why
	expect_one_line why
}

# On a kernel with other pages than x86-64 has: refused, not sorted wrongly.
case_pages()
{
	local PAGE_BYTES=$1

	expect_status 5 arm blinksort "$SCRATCH/in" -o out 2>why
	expect_one_line why
	expect_match "^blinksort: .* pages of $1 bytes, not 4096" why
	expect_gone out
	arm blinkgen -a $RECORDS in
	expect_same in "$SCRATCH/in"
	expect_status 1 arm blinkval in 2>report
	expect_match "^Checksum: $CHECKSUM\$" report
}

# program NAME CASE...
program()
{
	local before=$checks_failed

	check "$@"
	if [ "$checks_failed" = "$before" ]; then
		passed=$((passed + 1))
	else
		failed=$((failed + 1))
	fi
}

sort_everything()
{
	local in=$SCRATCH/in io threads

	for io in mmap buffered direct; do
		for threads in 1 2; do
			program "$1_${io}_$threads" case_sorted "$in" \
				--io=$io --threads=$threads
		done
	done
	program "$1_sampled" case_sorted "$in" --splitters=sampled
	program "$1_small_records" case_sorted "$in" "$in" --io=mmap \
		--record-size=16 --key=8:4
}

# --- all of it ----------------------------------------------------------------

mkdir -p "$LOGS"
for path in "$REPO"/tests/unit/test_*.c; do
	run_unit "$(basename "$path" .c)"
done

program generated_skewed case_generated -s
sort_everything skewed
program generated_ascii case_generated -a
sort_everything ascii
program validated case_validated
program kernel case_kernel
program pages_of_16_kib case_pages 16384
program pages_of_64_kib case_pages 65536
omitted io_uring "qemu-user has none: --io=direct was by plain reads"
omitted cluster_sort "qemu-user refuses getsockopt(IP_MTU)"
omitted remote_shell "qemu-user refuses prctl(PR_SET_CHILD_SUBREAPER)"

echo "$passed passed, $failed failed, $skipped skipped"
[ $failed = 0 ] && [ $passed -gt 0 ]
