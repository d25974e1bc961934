#!/bin/bash
# check_option_words.sh - an option of several programs has one name and one kind
# of value, by what their --help says

# shellcheck disable=SC2317 # cases are called by check
. "$(dirname "$0")/tool_lib.sh"

if [ "${VARIANT:-dyn}" != dyn ]; then
	skip option_words "the plain build is enough"
	finish
fi

readonly PROGRAMS=("$BIN"/blink{sort,gen,val,probe,sh,d}
	"$REPO"/tune/blinktune "$REPO"/results/blink{trial,report})

# What differs, and why it does
declare -rA EXCEPTIONS=(
	[--help]="blinksort's may have a topic"
	[--key]="a slice or a number, a line each"
	[--nodes]="blinkreport predicts for numbers of nodes, which have no names"
	[-b]="gensort's first record, and dshbak's gathered output"
	[-o]="valsort's, which has no long name"
	[-s]="gensort's skewed keys, valsort's summaries, sort's stable order"
)

# options_in PROGRAM: of its help, "OPTION<tab>VALUE, LONG NAME<tab>PROGRAM" for
# each option, of which a short one has the value and the name of the long one
# beside it.  A list of values is written as one of them is.
options_in()
{
	local how=--help

	[ "${1##*/}" != blinksort ] || how=--help=all
	"$1" "$how" | awk -v program="${1##*/}" '
	!/^ +-/ { next }
	{
		sub(/^ +/, "")
		sub(/  .*/, "")
		n = split($0, part, /,? /)
		count = 0
		long = "no long name"
		for (i = 1; i <= n; i++) {
			if (part[i] !~ /^-/) {
				value[count] = part[i]
				continue
			}
			split(part[i], half, "=")
			option[++count] = half[1]
			value[count] = substr(part[i], length(half[1]) + 2)
			if (option[count] ~ /^--/ && long !~ /^--/)
				long = option[count]
		}
		for (i = 1; i <= count; i++) {
			is_long = option[i] ~ /^--/
			what = value[is_long ? i : count]
			sub(/,\.\.\.$/, "", what)
			if (what == "")
				what = "no value"
			print option[i] "\t" what (is_long ? "" : ", " long) \
				"\t" program
		}
	}'
}

# differing < LINES: prints each option of which they say several things, behind
# it what they say
differing()
{
	sort -u | awk -F '\t' '
	{
		said[$1] = said[$1] " " $3 ": " $2 ";"
		if ($1 in first && first[$1] != $2)
			differs[$1] = 1
		first[$1] = $2
	}
	END { for (option in differs) print option said[option] }' |
		sort
}

all_options()
{
	local program

	for program in "${PROGRAMS[@]}"; do
		options_in "$program" >options
		[ "$(wc -l <options)" -gt 3 ] || fail "$program: $(cat options)"
		cat options
	done
}

case_one_word()
{
	local option said

	all_options >all
	differing <all >different
	while read -r option said; do
		[ "${EXCEPTIONS[$option]+known}" ] || echo "  $option $said"
	done <different >found
	[ ! -s found ] || fail "$(cat found)"
	for option in "${!EXCEPTIONS[@]}"; do
		grep -q -e "^$option " different ||
			fail "$option: no exception, all say the same"
	done
}

# Words for one kind of value: FILE, DIR, SECONDS, N
case_one_word_for_a_value()
{
	all_options | cut -f 2 | sort -u >values
	! grep -n -E '^(PATH|FOLDER|DIRECTORY|S|SEC|COUNT|NUMBER|THREADS)(,|$)' \
		values || fail "another word for FILE, DIR, SECONDS or N"
}

case_differences_are_found()
{
	printf '%s\n' $'--a\tN\tx' $'--a\tFILE\ty' $'--b\tN\tx' $'--b\tN\ty' \
		$'-q\tno value, --quiet\tx' $'-q\tno value, no long name\ty' |
		differing >said
	printf '%s\n' '--a y: FILE; x: N;' \
		'-q x: no value, --quiet; y: no value, no long name;' |
		expect_same - said
}

check one_word case_one_word
check one_word_for_a_value case_one_word_for_a_value
check differences_are_found case_differences_are_found
finish
