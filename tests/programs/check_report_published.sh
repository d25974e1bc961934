#!/bin/bash
# check_report_published.sh - blinkreport published: formats, refusals

# shellcheck disable=SC2317 # cases are called by check
. "$(dirname "$0")/tool_lib.sh"

if [ "${VARIANT:-dyn}" != dyn ]; then
	skip report_published "nothing of it is compiled"
	exit 77
fi

REPORT=$BIN/blinkreport
TESTED=("$REPORT" published) TESTED_AS=blinkreport
RUNS=$REPO/results/runs

case_text()
{
	"$REPORT" published "$RUNS"/* >out 2>err
	expect_empty err
	[ "$(wc -L <out)" -le 80 ] || fail "wider than 80 columns"
	expect_match '^cache-mean +< 39\.8 ms +90\.64 ms  2\.28 times$' out
	expect_match '^platter-overhead +> \+30 ms +\+15\.07 ms  0\.502 times$' out
	"$REPORT" published spsort -o one
	expect_match '^start-time +185 s ' one
	! grep cache-mean one || fail "of another document"
}

case_page()
{
	"$REPORT" published psort-2011 "$RUNS/2026-11-22-zen4-1" --format=html \
		-o page.html --png=pictures
	expect_folder . page.html pictures
	expect_folder pictures psort-2011-1.png psort-2011-2.png psort-2011-3.png
	expect_match '2011: median 40\.8 ms' page.html
}

case_refused()
{
	expect_refused 2 'spsrt: is neither .*; is spsort meant\?' spsrt
	expect_refused 2 '--format: invalid' --format=csv spsort
	expect_refused 3 'tritonsort.* No such file' spsort tritonsort
	expect_refused 3 'nowhere.* No such file' "$RUNS/2026-11-22-zen4-1" nowhere
}

check text case_text
check page case_page
check refused case_refused
finish
