#!/bin/bash
# check_readme.sh - the commands of README.md, as a reader pastes them
#
# Every block of README.md that begins with ```sh is run, line by line, in one
# folder and from top to bottom, with these differences only:
#
#   - fewer trials, and blinktrial characterise --quick: for the time it takes
#   - 127.0.0.2 and 127.0.0.3 are other addresses of this machine, so that two of
#     these scripts may run at a time, and blinksh waits longer for the daemons
#   - blinktune sees a copied machine in place of /sys and /proc
#   - COMMAND is a program that does nothing
#   - make GOAL is not run: it must be a goal that make help lists.  The demos
#     are check_demo.sh's, make check is what runs this.
#
# Each goal and man page that the text names must be there; the same is asked of
# the other pages for readers.

# shellcheck disable=SC2317 # cases are called by check
# shellcheck source=tests/programs/shell_lib.sh
. "$(dirname "$0")/shell_lib.sh"

if [ "${VARIANT:-dyn}" != dyn ]; then
	skip readme "a reader has the plain build"
	finish
fi

readonly README=$REPO/README.md
# They have no blocks of commands.
readonly OTHERS=("$REPO"/{src/README,CONTRIBUTING,SECURITY}.md)
# Of a section; it is there to end what hangs.
readonly LIMIT_S=600

# commands_of SECTION: one a line
commands_of()
{
	awk -v wanted="## $1" '
	/^## / { section = $0 }
	/^```/ { inside = $0 == "```sh"; next }
	inside && section == wanted {
		if (sub(/\\$/, "")) {
			begun = begun $0
			next
		}
		print begun $0
		begun = ""
	}' "$README"
}

# sections: those that have commands
sections()
{
	awk '/^## / { section = substr($0, 4) }
		/^```sh$/ && !seen[section]++ { print section }' "$README"
}

# make_folder: the folder of a reader after make.
make_folder()
{
	mkdir -p "$SCRATCH/reader/path"
	cd "$SCRATCH/reader"
	ln -s "$BIN" bin
	ln -s "$REPO/tests" tests
	ln -s "$REPO/src" src
	ln -s "$REPO/Makefile" Makefile
	printf '#!/bin/sh\n' >path/COMMAND
	cat >path/make <<-END
		#!/bin/bash
		for goal; do
			case \$goal in
			*=*) ;;
			*) grep -q "^\$goal " <($(command -v make) -s \
				-C "$REPO" help) || exit 2 ;;
			esac
		done
	END
	chmod +x path/COMMAND path/make
	cp -R "$REPO/tests/data/machines/systemd-server" machine
}

# shortened COMMAND: as it is run here
shortened()
{
	sed -e 's/--trials=[0-9]*/--trials=4/' \
		-e "s/127\.0\.0\./127.$(($$ / 250 % 250)).$(($$ % 250))./g" \
		-e 's/blinksh -w/blinksh --lost-after=60 -w/' \
		-e 's/\(blinktrial characterise\)/\1 --quick/' <<<"$1"
}

# may_end COMMAND STATUS: that status is not a failure of the command's
may_end()
{
	[ "$2" != 0 ] || return 0
	# Whether something became slower or faster
	[[ $1 == 'bin/blinkreport compare'* && $2 =~ ^[167]$ ]] ||
		fail "status $2: $1"
}

# script_of SECTION: one script, since what a line exports is for those behind it
script_of()
{
	local line

	declare -f may_end fail
	# A line that fails leaves no daemon of the lines before it.
	echo "trap 'kill \$(jobs -p) 2>/dev/null' EXIT"
	while IFS= read -r line; do
		printf '%s\nmay_end %q $? || exit\n' "$(shortened "$line")" \
			"$line"
	done < <(commands_of "$1")
}

# case_section SECTION
case_section()
{
	local status=0

	script_of "$1" >script
	(
		cd "$SCRATCH/reader"
		export PATH=$PWD/path:$PWD/machine/tools:$PATH
		export BLINKTUNE_ROOT=$PWD/machine BLINKTUNE_STATE=$PWD/state
		exec timeout "$LIMIT_S" bash "$OLDPWD/script"
	) >out 2>&1 </dev/null || status=$?
	[ $status = 0 ] || fail "status $status: $(tail -n 5 out)"
}

# No command stands where it would not be run.
case_all_are_blocks()
{
	grep -n -E '^(    |	)(make |eval |for |bin/[a-z]|tests/[a-z])' \
		"$README" "${OTHERS[@]}" >unmarked || true
	grep -n -E '^```(sh|bash|console)?$' "${OTHERS[@]}" |
		grep -v ':```$' >>unmarked || true
	expect_empty unmarked
	commands_of Sort >commands
	expect_match '^bin/blinksort ' commands
}

# inline_of PROGRAM: what the text has in backquotes that begins with it
inline_of()
{
	cat "$README" "${OTHERS[@]}" | tr '\n' ' ' |
		grep -o "\`$1 [^\`]*\`" | tr -d '\`' | tr -s ' '
}

case_named_goals()
{
	local words

	inline_of make >goals
	expect_match '^make install$' goals
	while read -r -a words <&3; do
		"$SCRATCH/reader/path/${words[0]}" "${words[@]:1}" ||
			fail "no goal: ${words[*]}"
	done 3<goals
}

case_named_pages()
{
	local page

	inline_of man >pages
	expect_match '^man src/programs/blinksort/blinksort.1$' pages
	while read -r _ page <&3; do
		[ -f "$REPO/$page" ] || fail "no page: $page"
	done 3<pages
}

# What is cited is the version that NEWS begins with.
case_citation()
{
	sed -n '/^Version /{s/^Version \([0-9.]*\).*/version: \1/p;q}' \
		"$REPO/NEWS" >version
	expect_one_line version
	grep -q -x -F -f version "$REPO/CITATION.cff" ||
		fail "CITATION.cff has no line $(cat version)"
}

# git shows none of what the commands have made.
case_ignored()
{
	cd "$SCRATCH/reader"
	cp "$REPO/.gitignore" .
	git init -q
	git status --porcelain >../seen
	rm -r .git
	expect_match '\.gitignore$' ../seen
	grep -v -E ' (\.gitignore|bin|src|tests|Makefile|machine/|path/|state/)$' \
		../seen >../odd || true
	expect_empty ../odd
}

make_folder
cd "$SCRATCH"
check all_are_blocks case_all_are_blocks
check named_goals case_named_goals
check named_pages case_named_pages
check citation case_citation
while IFS= read -r section <&3; do
	name=${section,,}
	check "${name//[!a-z]/_}" case_section "$section"
done 3< <(sections)
check_able git.here ignored case_ignored
finish
