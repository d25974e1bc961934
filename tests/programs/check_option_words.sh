#!/bin/bash
# check_option_words.sh - an option of several programs has one name and one kind
# of value, by what their --help says; and all programs shorten a long word in
# their messages, so that its reason stands

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

# expect_short PROGRAM ARGUMENT...: the message shortens a word of W in its middle,
# begins with the program's name and ends with $reason
expect_short()
{
	local program=$1
	shift

	! "$program" "$@" >out 2>err </dev/null ||
		fail "$program ${*//WW*W/W}: status 0"
	expect_one_line err
	expect_match "^${program##*/}: .*$reason\$" err
	expect_match '[^W]W{20,102}[.]{3}W{20,102}[^W]' err
	[ "$(wc -c <err)" -lt 800 ] || fail "too long: $(head -c 400 err)"
	expect_empty out
}

case_long_name_leaves_the_reason()
{
	local bytes word reason

	"$BIN/blinkgen" 1 in
	for bytes in 4700 100000; do
		word=$(head -c "$bytes" /dev/zero | tr '\0' W)
		reason='File ?name too long'
		expect_short "$BIN/blinksort" "$word." -o out
		expect_short "$BIN/blinksort" in -o "./$word."
		expect_short "$BIN/blinkval" "$word."
		expect_short "$BIN/blinkgen" 10 "$word."
		expect_short "$BIN/blinksh" -w 127.0.0.2 "--key-file=$word." ping
		expect_short "$BIN/blinksh" -w "^$word." ping
		expect_short "$BIN/blinkd" --foreground --listen=127.0.0.1 \
			--allow=/bin "--key-file=$word."
		expect_short "$REPO/results/blinktrial" validate "$word."
		expect_short "$REPO/results/blinkreport" "$word."
		reason='there are .*'
		expect_short "$REPO/results/blinktrial" --trials=1 --out=d \
			"--scenario=$word."
		reason='(use|see) .*'
		expect_short "$REPO/tune/blinktune" plan "$word."
		expect_short "$REPO/tune/blinktune" explain "$word."
	done
}

case_long_option_leaves_the_reason()
{
	local bytes word program reason

	"$BIN/blinkgen" 1 in
	for bytes in 4700 100000; do
		word=$(head -c "$bytes" /dev/zero | tr '\0' W)
		reason='see .*'
		for program in "${PROGRAMS[@]}"; do
			expect_short "$program" "--$word."
		done
		reason='a number from .*'
		expect_short "$BIN/blinksort" in -o out "--threads=$word."
		expect_short "$REPO/results/blinktrial" "--trials=$word."
		reason='if that is its name'
		expect_short "$BIN/blinksort" in -o "-$word."
		reason='choose from .*'
		expect_short "$REPO/results/blinkreport" "--format=$word." in
	done
}

# A plan is no message, and its lines are for people all the same.
case_long_value_in_a_plan()
{
	local word

	word=$(head -c 100000 /dev/zero | tr '\0' W)
	"$REPO/tune/blinktune" plan "swappiness=$word" >out
	expect_match 'W{20,102}[.]{3}W{20,102}[^W]' out
	expect_match 'not 0 to 200' out
	[ "$(wc -c <out)" -lt 1000 ] || fail "too long: $(head -c 400 out)"
}

check one_word case_one_word
check one_word_for_a_value case_one_word_for_a_value
check differences_are_found case_differences_are_found
check long_name_leaves_the_reason case_long_name_leaves_the_reason
check long_option_leaves_the_reason case_long_option_leaves_the_reason
check long_value_in_a_plan case_long_value_in_a_plan
finish
