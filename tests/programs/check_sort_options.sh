#!/bin/bash
# check_sort_options.sh - blinksort's options all together against numpy
#
# COUNT says how many cases, and SEED which ones:
#
#     COUNT=1000 tests/run check_sort_options

# shellcheck disable=SC2317 # cases are called by check
# shellcheck source=tests/programs/sort_lib.sh
. "$(dirname "$0")/sort_lib.sh"

count=150
[ -z "$QUICK$SANITIZED" ] || count=30
count=${COUNT:-$count}
echo "$count cases; for 1,000: COUNT=1000 tests/run check_sort_options"

case_options()
{
	local IFS=,

	/usr/bin/python3 "$REPO/tests/programs/sort_options.py" "$count" \
		"$SEED" "${KERNELS[*]}" "${BLINKSORT[@]}"
}

check options case_options
finish
