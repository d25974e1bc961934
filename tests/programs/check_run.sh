#!/bin/bash
# check_run.sh - tests/run: what it counts, what it shows of a failure, and that
# it leaves nothing running; .ci/run, what it says of that; and a fault of scripts
# that would make tests fail now and then
#
# Each case has a small tree of its own, with tests that say what they are told.

# shellcheck disable=SC2317 # cases are called by check
# shellcheck source=tests/programs/tool_lib.sh
. "$(dirname "$0")/tool_lib.sh"

# make_tests: the tree, with nothing in it but tests/run
make_tests()
{
	mkdir -p tree/tests/{unit,programs} tree/build/dyn/tests/unit
	cp "$REPO/tests/run" tree/tests
}

# script NAME: a check script of the tree, from stdin
script()
{
	cat >"tree/tests/programs/$1.sh"
}

# program NAME: a program of cmocka's, as far as tests/run can tell
program()
{
	: >"tree/tests/unit/$1.c"
	{
		echo '#!/bin/bash'
		cat
	} >"tree/build/dyn/tests/unit/$1"
	chmod +x "tree/build/dyn/tests/unit/$1"
}

# run_tests [NAME...]: with its words in ./out, its status in $status
run_tests()
{
	status=0
	env -u LANES RETRY="${retry:-}" VARIANT="${variant:-dyn}" BUILD=build \
		BIN=bin TIMEOUT_S="${limit_s:-60}" tree/tests/run "$@" \
		>out 2>&1 </dev/null || status=$?
}

# said: ./out, no line of which looks like one of this test's own
said()
{
	sed 's/^/    /' out
}

# expect_sums TEXT: as the last line
expect_sums()
{
	[ "$(tail -n 1 out)" = "$1" ] || fail "not '$1': $(said)"
}

expect_no_match()
{
	! grep -q -E -e "$1" "$2" || fail "'$1' is in: $(<"$2")"
}

case_static_twins()
{
	make_tests
	mkdir -p tree/tests/unit/musl tree/build/musl/tests/unit
	echo 'd    what it meets in the C library' >tree/tests/unit/musl/tests.txt
	echo build/musl >tree/build/bin.from
	program test_d <<<"echo '[  PASSED  ] 1 test(s).'"
	program test_e <<<"echo '[  PASSED  ] 10 test(s).'"
	printf '%s\n' '#!/bin/bash' "echo '[  PASSED  ] 100 test(s).'" |
		tee tree/build/musl/tests/unit/test_e >tree/build/musl/tests/unit/test_d
	chmod +x tree/build/musl/tests/unit/test_*
	run_tests
	expect_match '^ok .* test_d\.musl ' out
	expect_sums '111 passed, 0 failed, 0 skipped'
	echo build/dyn >tree/build/bin.from
	run_tests test_d
	expect_sums '1 passed, 0 failed, 0 skipped'
}

case_sums()
{
	make_tests
	printf '%s\n' 'echo ok one' 'echo "skip two: a reason"' | script check_a
	printf '%s\n' 'exit 77' | script check_b
	printf '%s\n' 'print("ok three")' >tree/tests/unit/test_c.py
	program test_d <<-'END'
		echo '[ RUN      ] elsewhere'
		echo 'no such device'
		echo '[  SKIPPED ] elsewhere'
		echo '[ RUN      ] silent'
		echo '[  SKIPPED ] silent'
		echo '[==========] 6 test(s) run.'
		echo '[  PASSED  ] 4 test(s).'
		echo '[  SKIPPED ] 2 test(s), listed below:'
		echo '[  SKIPPED ] elsewhere'
		echo '[  SKIPPED ] silent'
	END
	run_tests
	[ "$status" = 0 ] || fail "status $status: $(said)"
	expect_sums '6 passed, 0 failed, 4 skipped'
	expect_match '^  *skip two: a reason$' out
	expect_match '^  *skip elsewhere: no such device$' out
	expect_match '^  *skip silent$' out
}

case_sanitizer()
{
	make_tests
	echo 'echo ok one' | script check_sort_a
	echo 'echo ok two' | script check_tune_a
	variant=asan run_tests
	expect_sums '1 passed, 0 failed, 0 skipped'
	variant=asan run_tests check_tune_a
	expect_sums '1 passed, 0 failed, 0 skipped'
	run_tests
	expect_sums '2 passed, 0 failed, 0 skipped'
}

case_nothing_tested()
{
	local lanes

	make_tests
	echo 'exit 0' | script check_silent
	run_tests
	[ "$status" = 1 ] || fail "status $status"
	expect_sums '0 passed, 1 failed, 0 skipped'
	run_tests check_absent
	[ "$status" = 1 ] || fail "status $status"
	expect_match 'check_absent .*no such test' out
	for lanes in 0 -1 x; do
		expect_status 2 env LANES="$lanes" tree/tests/run check_silent
	done
}

# Good cases before and behind; what the bad one printed may come late.
case_cmocka_failure()
{
	make_tests
	program test_bad <<-'END'
		echo '[==========] Running 82 test(s).'
		for i in {1..40}; do
			echo "[ RUN      ] early_$i"
			echo "said by early_$i"
			echo "[       OK ] early_$i"
		done
		echo '[ RUN      ] bad'
		echo '[  ERROR   ] --- 0x1 != 0x2'
		echo '[   LINE   ] --- test_bad.c:9: error: Failure!'
		echo '[  FAILED  ] bad'
		echo 'said by bad'
		echo '[ RUN      ] untidy'
		echo 'Could not run test: Test teardown failed'
		echo '[  ERROR   ] untidy'
		for i in {1..40}; do
			echo "[ RUN      ] late_$i"
			echo "[       OK ] late_$i"
		done
		echo '[==========] 82 test(s) run.'
		echo '[  PASSED  ] 80 test(s).'
		echo '[  FAILED  ] 1 test(s), listed below:'
		echo '[  FAILED  ] bad'
		echo
		echo ' 2 FAILED TEST(S)'
		exit 2
	END
	run_tests
	expect_sums '80 passed, 2 failed, 0 skipped'
	expect_match '\[  FAILED  \] bad' out
	expect_match 'test_bad.c:9: error' out
	expect_match 'said by bad' out
	expect_match 'teardown failed' out
	expect_no_match 'early|late' out
	expect_match 'see build/log/dyn-test_bad.log$' out
}

# The header that stands for cmocka's in the static build says as much.
case_static_failures()
{
	make_tests
	cat >bad.c <<-'END'
		#include <setjmp.h>
		#include <stdarg.h>
		#include <stddef.h>
		#include <stdint.h>
		#include <cmocka.h>

		static void good(void **state) { (void)state; }
		static void bad(void **state) { (void)state; assert_true(0); }

		int main(void)
		{
			const struct CMUnitTest tests[] = {
				cmocka_unit_test(good), cmocka_unit_test(bad),
				cmocka_unit_test(good), cmocka_unit_test(bad),
			};
			return cmocka_run_group_tests(tests, NULL, NULL);
		}
	END
	: >tree/tests/unit/test_bad.c
	"${CC:-cc}" -D_GNU_SOURCE -I "$REPO/tests/unit/musl" bad.c \
		-o tree/build/dyn/tests/unit/test_bad
	run_tests
	expect_sums '2 passed, 2 failed, 0 skipped'
	expect_match '^FAILED .* test_bad .*2 failed' out
}

# The case that ran when the program ended
case_cmocka_crash()
{
	make_tests
	program test_dead <<-'END'
		echo '[ RUN      ] early'
		echo '[       OK ] early'
		echo '[ RUN      ] deadly'
		for i in {1..50}; do echo "about its end, line $i"; done
		kill -SEGV $$
	END
	run_tests
	expect_sums '0 passed, 1 failed, 0 skipped'
	expect_match 'RUN      \] deadly' out
	expect_match 'about its end, line 1$' out
	expect_no_match 'early' out
	expect_match 'see build/log/dyn-test_dead.log$' out
}

case_script_failure()
{
	make_tests
	script check_bad <<-'END'
		echo said by early; echo ok early
		echo said by bad; echo FAIL bad
		echo said by late; echo ok late
		exit 1
	END
	run_tests
	expect_sums '2 passed, 1 failed, 0 skipped'
	expect_match 'said by bad' out
	expect_no_match 'said by (early|late)' out
	expect_match 'see build/log/dyn-check_bad.log$' out
}

case_hanging()
{
	make_tests
	echo 'echo ok begun; sleep 1000' | script check_hang
	limit_s=1 run_tests
	expect_sums '1 passed, 1 failed, 0 skipped'
	expect_match 'check_hang .*timed out' out
	expect_match 'see build/log/dyn-check_hang.log$' out
}

# A test that passes when it runs again is flaky, and no failure.
case_retry()
{
	make_tests
	script check_flaky <<-'END'
		echo ok one
		[ -e met ] || { touch met; echo said at first; echo FAIL two; exit 1; }
		echo ok two
	END
	printf '%s\n' 'echo said by bad; echo FAIL bad; exit 1' | script check_bad
	script check_lost <<-'END'
		kill -KILL $PPID
	END
	printf '%s\n' 'echo ok good' | script check_good
	retry=1 run_tests check_flaky check_good
	[ "$status" = 0 ] || fail "status $status: $(said)"
	expect_match '^FLAKY .* check_flaky .*1 failed, exit status 1' out
	expect_match '^    \| said at first$' out
	expect_match '^    \| see build/log/dyn-check_flaky.log$' out
	expect_match '^FAIL two$' tree/build/log/dyn-check_flaky.log
	expect_no_match '^FAILED' out
	expect_sums '3 passed, 0 failed, 0 skipped'
	retry=1 run_tests check_bad check_flaky check_lost
	[ "$status" = 1 ] || fail "status $status"
	expect_match '^FAILED .* check_bad ' out
	expect_match '^    \| said by bad$' out
	expect_no_match '^FLAKY' out
	expect_sums '2 passed, 2 failed, 0 skipped'
	rm tree/met
	run_tests check_flaky
	[ "$status" = 1 ] || fail "status $status: without RETRY"
}

# Two of one group would meet in the folder; others run beside them, or the last
# would wait in vain.
case_groups()
{
	local name

	make_tests
	for name in check_tune_a check_tune_b check_tune_c; do
		script "$name" <<-'END'
			mkdir alone || exit 1
			sleep 0.3
			rmdir alone
			echo ok alone
		END
	done
	for name in check_x check_y; do
		script "$name" <<-'END'
			touch "met.${0##*/}"
			for ((i = 0; i < 600; i++)); do
				[ ! -e met.check_x.sh ] ||
					[ ! -e met.check_y.sh ] ||
					{ echo ok met; exit 0; }
				sleep 0.05
			done
		END
	done
	run_tests
	expect_sums '5 passed, 0 failed, 0 skipped'
}

# case_ended SIGNAL: what it runs ends, too
case_ended()
{
	local pid tries

	make_tests
	script check_long <<-'END'
		echo $$ >long.pid
		exec sleep 1000
	END
	env VARIANT=dyn BUILD=build BIN=bin tree/tests/run >out 2>&1 &
	pid=$!
	for ((tries = 0; tries < 1500; tries++)); do
		[ ! -s tree/long.pid ] || break
		sleep 0.02
	done
	kill "-$1" "$pid"
	wait "$pid" 2>/dev/null || true
	for ((tries = 0; tries < 1500; tries++)); do
		kill -0 "$(<tree/long.pid)" 2>/dev/null || return 0
		sleep 0.02
	done
	kill -KILL "$(<tree/long.pid)"
	fail "a test goes on"
}

# ci STATUS TEXT: .ci/run, with its words in ./out, when make check says so, and
# all other stages say nothing and are good
ci()
{
	printf '%s\n' "$2" >told
	cat >path/make <<-END
		#!/bin/bash
		[[ \$* == "-j"*" WERROR=1 check" ]] || exit 0
		cat "$PWD/told"
		exit $1
	END
	chmod +x path/make
	status=0
	PATH=$PWD/path:$PATH tree/.ci/run >out 2>&1 </dev/null || status=$?
}

case_ci()
{
	local flaky=$'FLAKY    1.00 s  check_a  1 failed\n    | said by a'
	local sums='3 passed, 0 failed, 1 skipped'

	mkdir -p tree/.ci path
	cp "$REPO/.ci/run" tree/.ci
	ci 0 "$flaky"$'\n'"$sums"
	[ "$status" = 0 ] || fail "status $status: $(said)"
	expect_match '^=== flaky tests: 1$' out
	[ "$(grep -c '^    | said by a$' out)" = 2 ] || fail "$(said)"
	expect_sums "$sums"
	ci 0 "$flaky"$'\n'"$flaky"$'\n'"$flaky"$'\n'"$flaky"$'\n'"$sums"
	[ "$status" = 1 ] || fail "status $status: $(said)"
	expect_match '^failed stages: flaky tests$' out
	expect_sums "$sums"
	ci 1 $'FAILED   1.00 s  check_b  1 failed\n2 passed, 1 failed, 0 skipped'
	[ "$status" = 1 ] || fail "status $status: $(said)"
	expect_match '^failed stages: check$' out
	[ "$(grep -c '^FAILED .* check_b ' out)" = 2 ] || fail "$(said)"
	expect_no_match '=== flaky' out
	expect_sums '2 passed, 1 failed, 0 skipped'
}

# early_readers FOLDER...: the lines of scripts that pipe into what may end before
# it has read all, unless the status does not matter: by SIGPIPE the writer fails,
# and so does the pipe, but only when the writer is slow.
early_readers()
{
	find "$@" -type f \( -name '*.sh' -o -name '*.bash' -o ! -name '*.*' \) \
		-exec awk '
		FNR == 1 { before = "" }
		/^[ \t]*#/ { next }
		{ line = before $0; before = "" }
		/\|[ \t]*$/ { before = $0 }
		line ~ /[^|]\|[ \t]*(grep -[a-zA-Z]*[qlm]|head -[n0-9])/ &&
			line !~ /\|\| true/ {
			print FILENAME ":" FNR ": " $0
		}' {} +
}

case_early_readers()
{
	mkdir scripts
	tr / '|' >scripts/one.sh <<-'END'
		tr a b / grep -q c
		tr a b /
			head -n 1
		tr a b // head -n 1
		# tr a b / head -n 1
		tr a b / head -n 1 // true
	END
	early_readers scripts >found
	[ "$(cut -d : -f 2 found | paste -s)" = "1	3" ] || fail "$(cat found)"
	cd "$REPO"
	early_readers .ci packaging tests tune >"$SCRATCH/found"
	[ ! -s "$SCRATCH/found" ] || fail "these pipe: $(cat "$SCRATCH/found")"
}

# loud_reads FOLDER...: the lines of scripts that want to be silent about a file that
# may be gone, but read it before that: the shell reports it all the same.
loud_reads()
{
	# shellcheck disable=SC2016 # text of scripts
	find "$@" -type f \( -name '*.sh' -o -name '*.bash' -o ! -name '*.*' \) \
		-exec grep -H -n -E \
		'^[^#]*[^<(]<("[^"]*"|[^ <>"()&]+) 2>(/dev/null|&"\$SILENCE")' {} + |
		grep -v '</dev/null 2>' || true
}

case_loud_reads()
{
	mkdir scripts
	cat >scripts/one.sh <<-'END'
		tr a b <"/proc/$1/cmdline" 2>/dev/null | grep x
		wc -l <$1 2>&"$SILENCE"
		(wc -l <"$1") 2>/dev/null
		wc -l 2>/dev/null <"$1"
		program </dev/null 2>/dev/null
		# wc -l <"$1" 2>/dev/null
		kill "$(<"$1")" 2>/dev/null
	END
	loud_reads scripts >found
	[ "$(cut -d : -f 2 found | paste -s)" = "1	2" ] || fail "$(cat found)"
	cd "$REPO"
	loud_reads .ci packaging tests tune >"$SCRATCH/found"
	# But for the examples above
	! grep -v check_run.sh "$SCRATCH/found" >&2 || fail 'these read too early'
}

check ci case_ci
check loud_reads case_loud_reads
check early_readers case_early_readers
check sums case_sums
check static_twins case_static_twins
check sanitizer case_sanitizer
check nothing_tested case_nothing_tested
check cmocka_failure case_cmocka_failure
check static_failures case_static_failures
check cmocka_crash case_cmocka_crash
check script_failure case_script_failure
check hanging case_hanging
check retry case_retry
check groups case_groups
check ended_by_term case_ended TERM
check ended_by_hup case_ended HUP
finish
