#!/bin/bash
# check_report_model.sh - blinkreport model: forecasts, formats, refusals

# shellcheck disable=SC2317 # cases are called by check
. "$(dirname "$0")/tool_lib.sh"

if [ "${VARIANT:-dyn}" != dyn ]; then
	skip report_model "nothing of it is compiled"
	exit 77
fi

REPORT=$BIN/blinkreport
TESTED=("$REPORT" model) TESTED_AS=blinkreport
RUNS=$REPO/results/runs
MACHINE=$RUNS/2026-11-22-zen4-1-machine

case_as_written()
{
	"$REPORT" model "$MACHINE" --nodes=16,64,256,1024 --link=10G >out 2>err
	expect_empty err
	[ "$(wc -L <out)" -le 100 ] || fail "wider than 100 columns"
	expect_match '^1M records of 100 bytes, links of 10 Gbit/s' out
	expect_match '^100M records of 100 bytes' out
	expect_match '^16 .* [0-9.]+\*  ' out
	expect_match ', 4 x 300 Mbit/s, 500k .*rounds .*263\.5' \
		out
	expect_match '^2026-11-22-zen4-1, platter, .* whole ' out
	expect_match 'Error of exchanges that their links limited, in 20' out
	"$REPORT" model --link=10Gbit "$MACHINE" --nodes=16..1024 -o again
	expect_same out again
}

# What is printed is what blinksort says.
case_one_arithmetic()
{
	"$REPORT" model "$MACHINE" --nodes=64 --records=1M --mtu=9000 \
		--cpus=2+4 --link=100G >out
	"$BIN/blinksort" --explain --link-rate=100Gbit --json \
		--suppose=64:1000000,mtu=9000,senders=2,receivers=4 >said
	/usr/bin/python3 - <<-'END'
		import json
		said = json.load(open("said"))["exchange"]
		row = next(line for line in open("out") if line.startswith("64 "))
		cells = row.replace("KiB", "").split()
		assert cells[0] == "64" and cells[6].endswith("*"), cells
		for at, key in ((5, "rounds"), (6, "all_at_once"), (7, "grid")):
		    shown = float(cells[at].rstrip("*"))
		    assert abs(shown * 1e6 - said[key + "_ns"]) < 600, (at, row)
	END
}

case_page()
{
	"$REPORT" model "$MACHINE" --nodes=16..4096 --format=html -o page.html \
		--png=pictures
	expect_folder . page.html pictures
	expect_folder pictures exchange.png measured.png stages.png
	[ "$(grep -c '<svg' page.html)" = 6 ] || fail "not 2 of each picture"
	if grep -q -i -E '<(script|img|link|iframe)|url\([^#]|@import' page.html
	then
		fail "not by itself"
	fi
}

case_runs()
{
	"$REPORT" model "$MACHINE" "$RUNS/exchanges.json" >out
	! grep -q 'sorts: ms' out || fail "trials that were not given"
	expect_match ', 16 x 25 Mbit/s, 1M ' out
	"$REPORT" model "$MACHINE" "$RUNS/2026-11-22-zen4-1-sweep" >out
	! grep -q 'exchanges: ms' out || fail "exchanges that were not given"
	cp -r "$MACHINE" alone
	"$REPORT" model alone >out 2>err
	expect_empty err
	! grep -q 'beside measured' out || fail "compared with nothing"
}

case_refused()
{
	expect_refused 2 'one record is needed'
	expect_refused 2 "--nodes: '0' is not numbers" --nodes=0 "$MACHINE"
	expect_refused 2 "'64\.\.16' is not from" --nodes=64..16 "$MACHINE"
	expect_refused 2 "--records: '1m' is not" --records=1m "$MACHINE"
	expect_refused 2 "--link: '10Gbyte' is not" --link=10Gbyte "$MACHINE"
	expect_refused 2 "--mtu: '575' is not" --mtu=575 "$MACHINE"
	expect_refused 2 "--cpus: '2' is not" --cpus=2 "$MACHINE"
	expect_refused 2 "--scenario: invalid" --scenario=disk "$MACHINE"
	expect_refused 2 "--format: invalid" --format=csv "$MACHINE"
	expect_refused 2 "at most 64" "--nodes=$(seq -s , 65)" "$MACHINE"
	expect_refused 3 'No such file' nowhere
	expect_refused 3 'has trials' "$RUNS/2026-11-22-zen4-1"
	expect_refused 3 'nowhere' "$MACHINE" nowhere
	echo '{"schema": "blinkreport-exchanges-1"}' >runs
	expect_refused 3 'runs: .*required' "$MACHINE" runs
	expect_refused 3 'missing/out' -o missing/out "$MACHINE"
	head -c 900 "$MACHINE/characterisation.jsonl" >part
	mkdir machine
	mv part machine/characterisation.jsonl
	expect_refused 3 'was never finished' machine
	expect_folder . machine runs
}

check as_written case_as_written
check one_arithmetic case_one_arithmetic
check page case_page
check runs case_runs
check refused case_refused
finish
