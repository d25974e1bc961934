#!/bin/bash
# check_report_page.sh - the page of a report, in a browser
#
# Headless Chromium lays pages out as on a desktop and on a phone: nothing is
# wider than the window, no text of a picture is too small, cut off or covered
# by another, and no text of a record is run.  test_trial_page.py tests what the
# page says.
#
# SHOTS=FOLDER keeps a picture of what the browser shows.

# shellcheck disable=SC2317 # cases are called by check
# shellcheck source=tests/programs/tool_lib.sh
. "$(dirname "$0")/tool_lib.sh"

if ! command -v chromium >/dev/null; then
	skip report_page "no chromium"
	finish
fi

# Chromium and matplotlib write to the home folder.
export HOME=$SCRATCH/home MPLCONFIGDIR=$SCRATCH/home/matplotlib
mkdir -p "$MPLCONFIGDIR"

# browse OPTION... PAGE: Chromium, with a profile of its own and no network.
browse()
{
	timeout 120 chromium --headless --no-sandbox --disable-gpu \
		--disable-quic --no-first-run --disable-background-networking \
		--disable-component-update --disable-sync --hide-scrollbars \
		--disable-dev-shm-usage --virtual-time-budget=20000 \
		--user-data-dir="$SCRATCH/home/chromium" "$@" 2>browser.err
}

# expect_pages_good: of wrapper.html
expect_pages_good()
{
	browse --dump-dom "file://$PWD/wrapper.html" >dom ||
		fail "chromium: $(tail -n 3 browser.err)"
	/usr/bin/python3 "$REPO/tests/programs/report_browser.py" judge dom
}

case_layout()
{
	/usr/bin/python3 "$REPO/tests/programs/report_browser.py" make .
	expect_pages_good
	[ -z "${SHOTS:-}" ] || keep_shots
}

keep_shots()
{
	local name

	for name in three sweep nodes outliers single; do
		browse --window-size=1280,3000 \
			--screenshot="$SHOTS/$name-desktop.png" \
			"file://$PWD/$name.html"
		printf '<iframe src="%s.html" style="width: 390px; %s">' \
			"$name" "height: 5000px; border: 0" >phone.html
		browse --window-size=500,5000 \
			--screenshot="$SHOTS/$name-phone.png" \
			"file://$PWD/phone.html"
	done
}

# The judge finds what is wrong, or its silence would mean nothing.
case_judge()
{
	cat >page.html <<-'END'
		<!DOCTYPE html><html><body style="margin: 0">
		<h2 style="width: 300px">section</h2>
		<div class="scroll" style="width: 310px">sticks out</div>
		<div style="width: 2000px">wide</div>
		<svg aria-labelledby="a" viewBox="0 0 100 50" width="100">
		<text x="5" y="20" font-size="6">small</text>
		<text x="5" y="20" font-size="12">covered</text>
		<text x="80" y="40" font-size="12">cut off here</text>
		</svg></body></html>
	END
	/usr/bin/python3 "$REPO/tests/programs/report_browser.py" make . page.html
	if expect_pages_good 2>said; then
		fail "nothing was found"
	fi
	expect_match '390 px: 2000 pixels wide' said
	expect_match "small: \['small'" said
	expect_match "covered: \['small', 'covered'\]" said
	expect_match 'cut: cut off here' said
	expect_match 'beside: sticks out' said
	expect_match 'only \[.a.\] are shown' said
}

# The page of a real record.
case_real()
{
	"$BIN/blinktrial" --scenario pagecache --trials 3 --records 1000 \
		--quiet --out record
	"$BIN/blinkreport" record --format html -o page.html
	/usr/bin/python3 "$REPO/tests/programs/report_browser.py" make . page.html
	expect_pages_good
}

# The page of a forecast.
case_model()
{
	"$BIN/blinkreport" model "$REPO/results/runs/2026-11-22-zen4-1-machine" \
		--nodes=16..4096 --format=html -o page.html
	/usr/bin/python3 "$REPO/tests/programs/report_browser.py" make . page.html
	expect_pages_good
}

# The page of what documents say, of all records.
case_published()
{
	"$BIN/blinkreport" published --format=html -o page.html \
		"$REPO"/results/runs/*
	/usr/bin/python3 "$REPO/tests/programs/report_browser.py" make . page.html
	expect_pages_good
}

check layout case_layout
check judge case_judge
if [ -x "$BIN/blinktrial" ] && [ -x "$BIN/blinkreport" ]; then
	check real case_real
	check model case_model
	check published case_published
else
	skip real "no blinktrial and blinkreport"
	skip model "no blinktrial and blinkreport"
	skip published "no blinktrial and blinkreport"
fi
finish
