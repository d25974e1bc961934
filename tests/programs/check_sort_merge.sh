#!/bin/bash
# check_sort_merge.sh - blinksort --merge: files that are sorted already
#
# What it writes is what numpy sorts; a record that is out of order is named; and
# nothing is spilled but where the files are too many for the memory.  Without
# --merge, what is found in order is not spilled either.

# shellcheck disable=SC2317 # cases are called by check
# shellcheck source=tests/programs/sort_lib.sh
. "$(dirname "$0")/sort_lib.sh"

count=400
[ -z "$QUICK$SANITIZED" ] || count=40
# Less than the inputs
LITTLE=(--threads=2 -S 10M)
merge=(-m)

# case_random WHAT
case_random()
{
	/usr/bin/python3 "$REPO/tests/programs/sort_merges.py" "$1" "$count" \
		"$SEED" "${BLINKSORT[@]}"
}

# make_files FILES RECORDS [SHAPE [OPTION...]]: sorted files in.0 and so on, and
# "want" of all of them
make_files()
{
	local files=$1 records=$2 shape=${3:-uniform} i
	shift $(($# < 3 ? $# : 3))

	ins=()
	for ((i = 0; i < files; i++)); do
		make_shape "$shape" "$records" $((SEED + i)) "$@" >raw
		sort_reference raw -o "in.$i" "$@"
		ins+=("in.$i")
	done
	rm -f raw
	cat "${ins[@]}" >all
	sort_reference all -o want "$@"
	rm all
}

# expect_report EXPRESSION: of the document on standard output as d, and what it
# has of the passes as e
expect_report()
{
	python3 -c '
import json, sys
d = json.load(open(sys.argv[1]))
e = d.get("external")
assert eval(sys.argv[2].replace("\n", " ")), d' "$STDOUT" "$1"
}

# All is read once, but for pages with keys, and nothing is spilled.
case_one_pass()
{
	make_files 5 60000
	expect_sorted -m "${ins[@]}" -o out "${LITTLE[@]}" --json
	cmp out want
	expect_report 'd["record_size"] * d["records"] == 30000000'
	expect_report 'e["merges_inputs"] and e["runs"] == 5 and
		e["merges"] == 0 and e["spilled_bytes"] == 0 and
		e["pieces"] > 10 and e["passes"][0]["read_bytes"] < 5000000'
	rm out
	"${BLINKSORT[@]}" -m "${ins[@]}" -o out "${LITTLE[@]}" --json >json
	python3 "$REPO/tests/programs/stage_sums.py" json
	"${BLINKSORT[@]}" -m "${ins[@]}" -o - "${LITTLE[@]}" | cmp - want
	expect_sorted -m "${ins[@]}" -o out1 -o out2 --checksum
	cat out1 out2 | cmp - want
	"$BIN/blinkval" want 2>report
	expect_match "^Checksum: $(cat "$STDOUT")\$" report
	# One of the inputs is replaced.
	expect_sorted --merge "${ins[@]}" -o in.0 "${LITTLE[@]}"
	cmp in.0 want
}

# Each key in one piece, or in many of them
case_unique()
{
	local shape records

	for shape in uniform few-distinct all-equal zipf; do
		for records in 1000 80000; do
			make_files 3 "$records" "$shape"
			cat "${ins[@]}" >all
			"${BLINKSORT[@]}" all -o want --unique
			expect_sorted -m "${ins[@]}" -o out --unique \
				"${LITTLE[@]}" --json
			cmp out want || fail "$shape, $records"
			expect_report "d['dropped_records'] * 100 == \
				300 * $records - $(stat -c %s want)"
			expect_sorted -m "${ins[@]}" -o out --unique \
				"${LITTLE[@]}" --batch-size=2
			cmp out want || fail "$shape, $records, in twos"
		done
	done
}

# Files without records; one file; and none with any
case_empty()
{
	make_files 2 1000
	: >empty
	expect_sorted -m empty in.0 empty in.1 empty -o out
	cmp out want
	expect_sorted -m in.0 -o out
	cmp out in.0
	expect_sorted -m empty empty -o out
	[ ! -s out ] || fail "records"
}

case_large_records()
{
	make_files 3 5 uniform --record-size=16777216
	expect_sorted -m "${ins[@]}" -o out --record-size=16777216
	cmp out want
}

# So many that they are merged into runs before
case_many_files()
{
	local i

	ins=()
	for ((i = 0; i < 1024; i++)); do
		ln -s "in.$((i % 8))" "many.$i"
		ins+=("many.$i")
	done
	(make_files 8 400)
	cat "${ins[@]}" >all
	"${BLINKSORT[@]}" all -o want
	expect_sorted -m "${ins[@]}" -o out --json
	cmp out want
	expect_report 'e["merges"] == 0 and e["runs"] == 1024'
	expect_sorted -m "${ins[@]}" -o out "${LITTLE[@]}" --json
	cmp out want
	expect_report 'e["merges"] > 1 and e["spilled_bytes"] > 0'
	expect_sorted -m "${ins[@]}" -o out "${LITTLE[@]}" --explain
	expect_match '^merges +about [0-9]+, of .*, before the last' "$STDOUT"
	expect_match '^inputs +1024, .* in order: they are merged' "$STDOUT"
}

case_explain()
{
	make_files 3 100000
	expect_sorted -m "${ins[@]}" -o out --explain "${LITTLE[@]}"
	expect_match '^inputs +3, .* in order: they are merged' "$STDOUT"
	expect_match '^passes +1.00: ' "$STDOUT"
	expect_sorted -m "${ins[@]}" -o out --explain --json "${LITTLE[@]}"
	expect_report 'd["merges_inputs"] and d["spilled_bytes"] == 0 and
		d["scratch_bytes"] == 0 and d["input_passes"] == 1'
	[ ! -e out ] || fail "an output"
}

# expect_found MEGABYTES INPUT...: so many at least are found in order, and not
# spilled
expect_found()
{
	local least=$1
	shift

	cat "$@" >all
	sort_reference all -o want --key=0:4
	expect_sorted "$@" -o out "${LITTLE[@]}" --key=0:4 --json
	cmp out want
	expect_report "e['reread_bytes'] > $least * 1000000"
}

case_found()
{
	make_files 2 200000 uniform --key=0:4
	make_shape few-distinct 200000 "$SEED" >raw
	# One run each, and what stays in memory
	expect_found 38 "${ins[@]}"
	expect_report 'e["spilled_bytes"] == 0 and e["merges"] == 0 and
		e["runs"] - e["resident_runs"] == 2'
	# All batches that have records of it alone; what is spilled and merged
	# twice is the other one.
	expect_found 18 raw in.0
	expect_found 18 in.0 raw
	expect_report 'e["spilled_bytes"] < 2 * 20000000'
	cat in.0 raw in.1 >mixed
	expect_found 36 mixed
	expect_sorted raw raw -o out "${LITTLE[@]}" --json
	expect_report 'e["reread_bytes"] == 0 < e["spilled_bytes"]'
}

# Batches of several files, whose runs are more than one merge may have
case_found_many()
{
	local i names=()

	(make_files 7 2000)
	for ((i = 0; i < 300; i++)); do
		ln -s "in.$((i % 7))" "many.$i"
		names+=("many.$i")
	done
	cat "${names[@]}" >all
	"${BLINKSORT[@]}" all -o want
	expect_sorted "${names[@]}" -o out "${LITTLE[@]}" --batch-size=4 --json
	cmp out want
	expect_report 'e["reread_bytes"] > 20000000 and e["merges"] > 10'
}

# Scratch files on another disk may be the better place.
case_found_elsewhere()
{
	folder=$(mktemp -d /dev/shm/blinksort-merge.XXXXXX)
	at_end 'rm -rf "$folder"'
	make_files 2 200000
	"${BLINKSORT[@]}" "${ins[@]}" -o out "${LITTLE[@]}" -T "$folder" --json \
		>"$STDOUT" 2>err
	cmp out want
	expect_report 'e["reread_bytes"] == 0 < e["spilled_bytes"]'
}

# expect_changed REASON COMMAND...: in.1 is changed by the command when the merge has
# begun, as its first byte tells
expect_changed()
{
	local why=$1 status=0 sort
	shift

	make_files 2 200000
	mkfifo pipe
	"${BLINKSORT[@]}" "${merge[@]}" "${ins[@]}" -o pipe "${LITTLE[@]}" \
		2>err &
	sort=$!
	exec {end}<pipe
	head -c 1 <&"$end" >first
	"$@"
	cat <&"$end" >rest
	wait "$sort" || status=$?
	[ "$status" = 3 ] || fail "status $status: $(cat err)"
	expect_match "^blinksort: in.1: $why while it was read\$" err
}

case_shrinks()
{
	expect_changed shrank truncate -s 1000000 in.1
}

overwrite_keys()
{
	head -c 2000000 /dev/zero | tr '\0' '\377' |
		dd of=in.1 bs=2000000 seek=9 conv=notrunc status=none
}

# The first key is no longer that of the index.
case_changes()
{
	expect_changed changed overwrite_keys
}

case_changes_unsaid()
{
	merge=()
	expect_changed changed overwrite_keys
}

case_refusals()
{
	make_files 2 1000
	mkfifo pipe
	expect_refused 2 '^--merge: not of a pipe, .*: without it, ' \
		-m in.0 pipe -o out
	expect_refused 2 '^--merge: not of a pipe, ' -m - -o out
	expect_refused 2 '^--merge: not with --cluster or --nodes: without it, ' \
		-m in.0 -o out --nodes=127.0.0.2 --rank=0
	expect_refused 2 '^--merge: not with --suppose' -m --explain \
		--suppose=1:1000
	expect_refused 3 '^nothere: cannot open' -m nothere -o out
	expect_refused 1 '^in.0: record [0-9]+ \(from 0\) belongs before the one' \
		-m in.0 in.1 -o out --key=20:10
	[ ! -e out ] || fail "an output"
}

check random_merges case_random merge
check random_disorder case_random disorder
check one_pass case_one_pass
check unique case_unique
check empty case_empty
check large_records case_large_records
check many_files case_many_files
check explain case_explain
check found case_found
check found_many case_found_many
if [ "$(stat -f -c %T /dev/shm 2>/dev/null)" = tmpfs ] &&
	[ "$(stat -f -c %T .)" != tmpfs ]; then
	check found_elsewhere case_found_elsewhere
else
	skip found_elsewhere "no /dev/shm beside another file system"
fi
check shrinks case_shrinks
check changes case_changes
check changes_unsaid case_changes_unsaid
check refusals case_refusals
finish
