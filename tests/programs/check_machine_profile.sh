#!/bin/bash
# check_machine_profile.sh - blinkreport of what a machine takes: formats, refusals

# shellcheck disable=SC2317 # cases are called by check
. "$(dirname "$0")/tool_lib.sh"

if [ "${VARIANT:-dyn}" != dyn ]; then
	skip machine_profile "nothing of it is compiled"
	exit 77
fi

REPORT=$BIN/blinkreport
TESTED=("$REPORT") TESTED_AS=blinkreport
WHOLE=$SCRATCH/whole

# make_profile FOLDER [PART...]: a characterisation, without these parts.
make_profile()
{
	/usr/bin/python3 -B - "$REPO/tests/unit" "$@" <<-'END'
		import sys
		sys.path.insert(0, sys.argv[1])
		import profile_samples

		profile_samples.make(sys.argv[2], without=tuple(sys.argv[3:]),
		                   hosts=("node02:7300", "node03:7300"))
	END
}

case_text()
{
	"$REPORT" "$WHOLE" >out 2>err
	expect_empty err
	expect_match '^disk, in order, by place +100\.1 to 49\.61 MB/s$' out
	expect_match '^node03:7300 +200 ' out
	expect_match '^8 of node 1 +node 0 +21 .* 100 %$' out
	expect_match '^read, 90 % of the most +from 8 threads on$' out
	awk 'length > 100 { exit 1 }' out || fail "wider than 100 columns"
}

case_csv()
{
	"$REPORT" --format=csv -o table.csv "$WHOLE" >out
	expect_empty out
	expect_match '^part,what,host,unit,sample,value,why,' table.csv
	[ "$(grep -c '^start,nothing,' table.csv)" = 1000 ] ||
		fail "not a row for each start"
}

case_page()
{
	"$REPORT" --format=html -o page.html --png=pictures "$WHOLE"
	expect_folder . page.html pictures
	expect_folder pictures access.png blocks.png codec.png files.png \
		memory.png positions.png round-trip.png start.png surface.png threads.png \
		throughput.png transfers.png
	[ "$(grep -c '<svg' page.html)" = 24 ] || fail "not 2 of each picture"
	[ "$(stat -c %s page.html)" -lt 2000000 ] || fail "too large"
	if grep -q -i -E '<(script|img|link|iframe)|url\([^#]|@import' page.html
	then
		fail "not by itself"
	fi
}

case_reasons()
{
	make_profile record memory codec disk extents network start
	"$REPORT" --format=html -o page.html record
	"$REPORT" record >out
	for file in page.html out; do
		expect_match 'disk rate: fio is not installed' "$file"
		expect_match 'round trip: node b:7300: no answer' "$file"
	done
	if grep -q '<svg' page.html; then
		fail "a picture of nothing"
	fi
}

case_refused()
{
	expect_refused 2 'for trials' --format=benchfmt "$WHOLE"
	expect_refused 3 'No such file' compare "$WHOLE" "$WHOLE"
	mkdir record
	expect_refused 3 'No such file' record
	: >record/characterisation.jsonl
	expect_refused 3 'has no measurement' record
	head -c 5000 "$WHOLE/characterisation.jsonl" \
		>record/characterisation.jsonl
	expect_refused 3 'was never finished' record
	sed '3s/"area_bytes"/"acres"/' "$WHOLE/characterisation.jsonl" \
		>record/characterisation.jsonl
	for format in text csv html; do
		expect_refused 3 "jsonl:3: is damaged: .*'area_bytes'" \
			--format="$format" record
	done
}

make_profile "$WHOLE"
check text case_text
check csv case_csv
check page case_page
check reasons case_reasons
check refused case_refused
finish
