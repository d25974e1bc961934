#!/bin/bash
# check_sort_keys.sh - blinksort's order by keys of any type against numpy's

# shellcheck disable=SC2317 # cases are called by check
. "$(dirname "$0")/sort_lib.sh"

# Of inputs; a tenth goes over ranks.
random_count=900 ranks_count=100
if [ -n "$QUICK$SANITIZED" ]; then
	random_count=90 ranks_count=10
fi

# case_keys WHAT COUNT
case_keys()
{
	local IFS=,

	/usr/bin/python3 "$REPO/tests/programs/sort_keys.py" "$1" "$2" \
		"$SEED" "${KERNELS[*]}" "${BLINKSORT[@]}"
}

# expect_keys KEYS OPTION...: what the document has, behind the record's size
expect_keys()
{
	local want=$1
	shift

	expect_sorted in -o out --json "$@"
	python3 -c 'import json, sys
document = json.load(sys.stdin)
print(document["record_size"], *document["keys"])' <"$STDOUT" >keys
	[ "$(cat keys)" = "$want" ] || fail "$(cat keys), not $want, of: $*"
}

# The document has the keys as they are compared: slices joined, and the
# direction of each.
case_json()
{
	head -c 1200 /dev/zero >in
	expect_keys '100 0:10'
	expect_keys '4 0:4' --record-size=4
	expect_keys '100 0:10:desc' -r
	expect_keys '24 0:u64 8:f64:desc 16:i32be' --record-size=24 \
		--key=0:u64 --key=8:f64:desc --key=16:i32be
	expect_keys '24 0:u64:desc 8:f64 16:i32be:desc' --record-size=24 \
		--key=0:u64 --key=8:f64:desc --key=16:i32be --reverse
	expect_keys '24 0:f16:nanlast 8:bf16be:desc:nanfirst' --record-size=24 \
		--key=0:f16:nanlast --key=8:bf16be:nanfirst:desc
	expect_keys '24 0:f16:desc:nanlast 8:bf16be:nanfirst' --record-size=24 \
		--key=0:f16:nanlast --key=8:bf16be:nanfirst:desc -r
	expect_keys '24 0:8' --record-size=24 --key=0:4 --key=4:u32be
	expect_keys '24 0:4 4:4:desc 4:1' --record-size=24 --key=0:4 \
		--key=4:u32be:desc --key=4:u8
}

check types case_keys types 0
check random case_keys random "$random_count"
check ranks case_keys ranks "$ranks_count"
check differ case_keys differ 0
check json case_json
finish
