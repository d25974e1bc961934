#!/bin/bash
# check_completion.sh - completion by bash and zsh, as make install installs it

# shellcheck disable=SC2317 # cases are called by check
# shellcheck source=tests/programs/tool_lib.sh
. "$(dirname "$0")/tool_lib.sh"

if [ "${VARIANT:-dyn}" != dyn ]; then
	skip completion "the plain build is enough"
	finish
fi

readonly PROGRAMS=(blinksort blinkgen blinkval blinkprobe blinksh blinkd
	blinktune blinktrial blinkreport)
readonly PREFIX=$SCRATCH/prefix
readonly BASH_FILES=$PREFIX/share/bash-completion/completions
readonly ZSH_FILES=$PREFIX/share/zsh/site-functions

# What was built is there, and is not built again.
make -s -C "$REPO" -o all install BIN="$BIN" BUILD="$BUILD" \
	PREFIX="$PREFIX" >install.log 2>&1 || {
	cat install.log
	exit 1
}
PATH=$PREFIX/bin:$PATH
unset WCOLL

# complete_it LINE: what bash gets for it, in ./replies
complete_it()
{
	# As readline cuts it: at blanks, = and :.
	bash --norc -c '
		. "$1"
		COMP_LINE=$2 COMP_POINT=${#2} COMP_WORDBREAKS=$3
		COMP_WORDS=($(sed -E "s/([=:])/ \1 /g" <<<"$2"))
		[[ $2 != *" " ]] || COMP_WORDS+=("")
		COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
		_blink "${COMP_WORDS[0]}" "${COMP_WORDS[COMP_CWORD]}" ""
		[ ${#COMPREPLY[@]} = 0 ] || printf "%s\n" "${COMPREPLY[@]}"' \
		bash "$BASH_FILES/blinksort" "$1" $' \t\n"\'><=;|&(:' \
		>replies 2>complaints </dev/null || fail "status $?: $1"
	expect_empty complaints
}

# expect_all LINE WORD...: these and no others, in any order
expect_all()
{
	complete_it "$1"
	shift
	if [ $# = 0 ]; then
		expect_empty replies
		return
	fi
	printf '%s\n' "$@" | sort >want
	sort replies | expect_same want - || fail "$(paste -s -d ' ' replies)"
}

# expect_some LINE WORD...: these, and maybe others
expect_some()
{
	complete_it "$1"
	shift
	while [ $# -gt 0 ]; do
		grep -q -x -F -e "$1" replies || fail "no $1"
		shift
	done
}

# expect_meanings LINE...: of the options of ./program, whose help is standard
# input: those lines and no others
expect_meanings()
{
	{
		printf '#!/bin/sh\ncat <<"END"\nusage: program\n\n'
		cat
		echo END
	} >program
	chmod +x program
	"$PREFIX/lib/blinksort/completion/candidates" ./program -- |
		expect_same <(printf '%b\n' "$@") -
}

# However a help lays out an option and its text, no option is lost and none has
# another's text.
case_meanings()
{
	expect_meanings '--short=\tbe short' '--rather-long=\tbe long, and' \
		'--no-text\t' '--last=\tbe the last' <<-'END'
		  --short=A         be short
		  --rather-long=ABCDEF
		                    be long, and
		                    go on
		  --no-text
		  --last=A          be the last
		other: a heading
	END
	"$PREFIX/lib/blinksort/completion/candidates" blinkprobe noise --thre >said
	expect_match 'count gaps' said
}

# bash finds the file by the name of the command.
case_found_by_name()
{
	local name

	for name in "${PROGRAMS[@]}" blinksort-mpi; do
		bash --norc -c '. "$1" && complete -p "$2"' bash \
			"$BASH_FILES/$name" "$name" >said
		expect_match '^complete -F _blink ' said
		expect_match "^#compdef .*$name( |\$)" "$ZSH_FILES/_blinksort"
	done
}

# All that the help of a program has in its column of options.
case_options()
{
	local program help

	for program in "${PROGRAMS[@]}"; do
		help=--help
		[ "$program" != blinksort ] || help=--help=all
		{
			"$program" "$help"
			[ "$program" != blinktrial ] || "$program" --help=commands
		} | sed -n -E 's/^ +(-.*)/\1/p' |
			sed 's/  .*//' | grep -o -E -e '(^|[ ,])--?[A-Za-z][a-z0-9-]*' |
			tr -d ' ,' | sort -u >want
		[ "$(wc -l <want)" -gt 3 ] || fail "$program: $(cat want)"
		complete_it "$program -"
		sed 's/=$//' replies | sort -u | expect_same want - ||
			fail "$program: $(paste -s -d ' ' replies)"
	done
	expect_all 'blinksort --spl' --splitters=
	# Without a value, or with one that is a word of its own
	expect_all 'blinksort --js' --json
	expect_all 'blinktune --sta' --state=
	expect_all 'blinktrial --sh' --shell --show-output
	expect_all 'blinksort --hel' --help --help=
	# Also where it lies, and of another name
	expect_all "$BIN/blinksort --spl" --splitters=
}

case_values()
{
	expect_all 'blinksort --help=' order cluster external tuning all
	expect_all 'blinksort --io=' auto buffered mmap direct
	expect_all 'blinksort in --io=m' mmap
	expect_all 'blinksort --io m' mmap
	expect_all 'blinksort --kernel=avx' avx2 avx512
	expect_all 'blinksort --schedule=' auto rounds all-at-once grid
	expect_all 'blinksort --splitters=' auto static sampled
	expect_all 'blinksort --transport=' udp mpi
	expect_all 'blinksort --by-reference=' no yes auto
	expect_all 'blinksort --compress=z' zstd
	expect_all 'blinkprobe memory --pattern=r' read random random-write
	expect_all 'blinkprobe codec --codec=' lz4 zstd
	expect_all 'blinkprobe simulate --schedule=' rounds all-at-once auto grid
	expect_all 'blinkreport --format=h' html hyperfine hlog
	expect_all 'blinkreport compare --format=' text json
	expect_all 'blinkreport model --scenario=' platter cache pagecache
	expect_all 'blinktrial --order=' blocks sequence
	expect_all 'blinksort --threads='
}

case_verbs()
{
	expect_all 'blinkprobe ' memory codec spawn run network noise simulate \
		nothing
	expect_all 'blinksh -w a ' ping status cancel keygen
	expect_all 'blinktrial ' characterise gate validate
	expect_all 'blinktune re' revert
	expect_all 'blinktune disks ' plan make
	expect_some 'blinktune ' list explain plan apply confirm verify status \
		revert run hold export disks
	expect_some 'blinkreport ' compare model published rates
}

# The knobs and the profiles are files.
case_knobs_and_profiles()
{
	local names=()

	mapfile -t names < <(cd "$REPO/tune/knobs" && ls -- *.sh)
	expect_all 'blinktune explain ' "${names[@]%.sh}"
	names=("${names[@]/%.sh/=}")
	mapfile -t -O ${#names[@]} names < <(cd "$REPO/tune/profiles" &&
		ls -- *.profile)
	expect_all 'blinktune plan ' "${names[@]%.profile}"
	expect_all 'blinktune --json apply plat' platter
	expect_all 'blinktune export --tuned netw' network
	# Which takes no more
	expect_all 'blinktune plan platter '
}

case_scenarios_and_sweeps()
{
	expect_all 'blinktrial --scenario=' pagecache cache platter beyond-memory
	expect_all 'blinktrial --scenario=cache,p' cache,pagecache cache,platter
	expect_all 'blinktrial --scenario=cache,c'
	touch mine.sweep
	expect_some 'blinktrial --sweep=' datamation-2011.sweep mine.sweep \
		sorter.sweep transports.sweep
	expect_all 'blinktrial --sweep=sor' sorter.sweep
}

# shellcheck disable=SC2016 # nothing here may be expanded
case_hosts()
{
	printf 'node1 node2:7300 # two\nanother\n' >hosts
	export WCOLL=$PWD/hosts
	expect_all 'blinksh -w nod' node1 node2:7300
	expect_all 'blinksh -w node1,no' node1,node2:7300
	expect_all 'blinksort --nodes=an' another
	expect_all 'blinktune -w an' another
	# What a shell would run, or a program take for an option
	printf '%s\n' '$(touch ran)' '`touch${IFS}ran`' -x '*' 'node;ls' \
		'node[1-2]' >hosts
	expect_all 'blinksh -w node' 'node[1-2]'
	expect_all 'blinksh -w $'
	expect_all 'blinksh -w -'
	# As the system knows it
	expect_some 'blinksh -x loc' localhost
}

case_files()
{
	touch one.file 'one with blanks'
	mkdir one.folder
	expect_all 'blinksort one' one.file 'one with blanks' one.folder
	expect_all 'blinksort -o one.' one.file one.folder
	expect_all 'blinksort --output=one.' one.file one.folder
	expect_all 'blinksort --output-device=one.' one.file one.folder
	expect_all 'blinksort -T one' one.folder
	expect_all 'blinkd --allow=one' one.folder
	expect_all 'blinkgen 5 one.fi' one.file
	expect_all 'blinksh -w a -- one.fi' one.file
	expect_some 'blinksh -w a -- cat one' one.file
	expect_some 'blinktune run platter -- ' cat
}

# As it is typed: a blank is in a word if it is quoted.
# shellcheck disable=SC2016 # nothing here may be expanded
case_quoted_words()
{
	mkdir 'a folder'
	touch 'a b1' 'a b2' other 'a folder/c d' 'e$(touch ran)' 'f`touch ran`'
	expect_all 'blinksort a\ b' 'a b1' 'a b2'
	expect_all 'blinksort "a b' 'a b1' 'a b2'
	expect_all "blinksort in 'a b1" 'a b1'
	expect_all 'blinksort a\ folder/c\ ' 'a folder/c d'
	expect_all 'blinksort --output=a\ b1' 'a b1'
	expect_all 'blinksort --output="a b1' 'a b1'
	expect_all 'blinksort a\ b1 oth' other
	expect_all 'blinksort e' 'e$(touch ran)'
	expect_all 'blinksort f\`' 'f`touch ran`'
	expect_all 'blinksort $(touch ran)'
	expect_all 'blinksort `touch ran'
	expect_all 'blinksort -- oth' other
	expect_gone ran
}

# Without the program there is nothing to ask: no word, and no complaint.
case_no_program()
{
	expect_all './blinksort --'
	mkdir mine
	printf '#!/bin/sh\nexit 1\n' >mine/blinksort
	chmod +x mine/blinksort
	expect_all 'mine/blinksort --'
}

# shellcheck disable=SC2016 # for zsh
# zsh_types KEYS: what the line is then, in ./line
zsh_types()
{
	ZDOTDIR=$PWD timeout 60 zsh -f -c '
		zmodload zsh/zpty
		zpty shell "zsh -f -i"
		await() { local text; zpty -r -m shell text "*$1*"; print -r -- "$text" }
		zpty -w shell "PS1=; unsetopt zle_bracketed_paste beep; stty -echo"
		zpty -w shell "fpath=($1 \$fpath); autoload -U compinit; compinit -u -D"
		zpty -w shell "show() { print -r -- \"<<\$BUFFER>>\" >$3; print d\"\"one }"
		zpty -w shell "zle -N show; bindkey \"^X\" show"
		zpty -w shell "print rea\"\"dy"
		await ready >&2
		zpty -w -n shell "$2"$'"'\\t\\C-x'"'
		await done >&2
		zpty -d shell' zsh "$ZSH_FILES" "$1" "$PWD/line" 2>typed </dev/null ||
		fail "status $?: $(tail -c 300 typed)"
}

# expect_typed KEYS LINE: what a tab makes of them
expect_typed()
{
	zsh_types "$1"
	[ "$(cat line)" = "<<$2>>" ] || fail "$1: $(cat line)"
}

case_zsh()
{
	touch one.file
	expect_typed 'blinksort --spl' 'blinksort --splitters='
	expect_typed 'blinksort --js' 'blinksort --json '
	expect_typed 'blinksort --io=m' 'blinksort --io=mmap '
	expect_typed 'blinksort -o one' 'blinksort -o one.file '
	expect_typed 'blinksort --output=one' 'blinksort --output=one.file '
	expect_typed 'blinktune expl' 'blinktune explain '
	expect_typed 'blinktune explain busy' 'blinktune explain busy-poll '
	expect_typed 'blinktune apply plat' 'blinktune apply platter '
	expect_typed 'blinktrial --scenario=cache,pl' \
		'blinktrial --scenario=cache,platter '
	echo another >hosts
	export WCOLL=$PWD/hosts
	expect_typed 'blinksh -w ano' 'blinksh -w another '
}

check meanings case_meanings
check found_by_name case_found_by_name
check options case_options
check values case_values
check verbs case_verbs
check knobs_and_profiles case_knobs_and_profiles
check scenarios_and_sweeps case_scenarios_and_sweeps
check hosts case_hosts
check files case_files
check quoted_words case_quoted_words
check no_program case_no_program
if ! type -P zsh >/dev/null; then
	skip zsh "no zsh here"
else
	check zsh case_zsh
fi
finish
