#!/bin/bash
# check_man.sh - the man pages render in 80 columns, without warnings

# shellcheck disable=SC2317 # cases are called by check
. "$(dirname "$0")/tool_lib.sh"

if ! type -P mandoc >/dev/null; then
	skip "$(basename "$0" .sh)" 'no mandoc here'
	finish
fi

readonly PAGES=("$REPO"/{src/programs/*,shell,tune,results}/*.[157])

# wide_lines PAGE: prints what is wider than a terminal.  A page in ASCII has as
# many bytes in a line as columns, once bold letters are no longer overstruck.
wide_lines()
{
	mandoc -Tascii -Owidth=80 "$1" | sed 's/.\x08//g' |
		awk 'length > 80 { print length ": " $0 }'
}

case_width()
{
	local page

	for page in "${PAGES[@]}"; do
		wide_lines "$page" >wide
		[ ! -s wide ] || fail "${page##*/}: $(cat wide)"
	done
}

# A longer page is not read in one sitting: it is two pages.
case_words()
{
	local page words

	for page in "${PAGES[@]}"; do
		words=$(mandoc -Tascii "$page" | sed 's/.\x08//g' | wc -w)
		[ "$words" -le 4000 ] || fail "${page##*/}: $words words"
	done
}

case_warnings()
{
	mandoc -T lint -W warning "${PAGES[@]}" >said 2>&1 ||
		fail "$(cat said)"
	expect_empty said
}

# A backslash at the end of a line joins it with the next.
case_joined_lines_are_found()
{
	sed 's/\\e$/\\/' "$REPO/src/programs/blinksort/blinksort.1" >joined.1
	wide_lines joined.1 >wide
	expect_match '^[0-9]+: .*--against' wide
}

# Who finds one page finds the others: a page that SEE ALSO names has this page
# in its own.
case_see_also_both_ways()
{
	awk '
	FNR == 1 { page = FILENAME; sub(/.*\//, "", page) }
	/^\.Sh / { inside = /^\.Sh SEE ALSO/ }
	inside && /^\.Xr blink/ { print page, $2 "." $3 }' "${PAGES[@]}" |
		sort >forth
	[ "$(wc -l <forth)" -gt 40 ] || fail "few pages: $(cat forth)"
	awk '{ print $2, $1 }' forth | sort | expect_same forth -
}

check width case_width
check words case_words
check see_also_both_ways case_see_also_both_ways
check warnings case_warnings
check joined_lines_are_found case_joined_lines_are_found
finish
