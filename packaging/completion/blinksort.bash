# blinksort.bash - completion of all programs of blinksort, for bash
# shellcheck shell=bash

# _blink_cut TEXT: its words, without their quotes, in words; in kept, how much of
# the last one readline leaves as it is: what is before an open quote, or before
# the last = and : where these break words
_blink_cut()
{
	local text=$1 char quote='' word='' has_word=''

	words=() kept=''
	while [ -n "$text" ]; do
		char=${text:0:1} text=${text:1}
		if [ "$char" = \\ ] && [ "$quote" != "'" ]; then
			word+=${text:0:1} text=${text:1} has_word=1
		elif [ "$char" = "$quote" ]; then
			quote=
		elif [ -n "$quote" ]; then
			word+=$char
		elif [[ $char == [\'\"] ]]; then
			quote=$char kept=$word has_word=1
		elif [[ $char == [[:blank:]] ]]; then
			[ -z "$has_word" ] || words+=("$word")
			word='' kept='' has_word=''
		else
			word+=$char has_word=1
			[[ $char != [=:] || $COMP_WORDBREAKS != *"$char"* ]] ||
				kept=$word
		fi
	done
	words+=("$word")
}

_blink()
{
	local cur value kept line found words

	# Not by COMP_WORDS, which is cut at each = and :.
	_blink_cut "${COMP_LINE:0:COMP_POINT}"
	cur=${words[-1]}
	value=$cur
	[[ $cur != --*=* ]] || value=${cur#*=}
	COMPREPLY=()
	while IFS= read -r line; do
		case $line in
		/files) found=$(compgen -f -- "$value") ;;
		/folders) found=$(compgen -d -- "$value") ;;
		/commands) found=$(compgen -c -- "$value" | sort -u) ;;
		*)
			line=${line%%$'\t'*}
			[[ $line != *[=:,] ]] || compopt -o nospace 2>/dev/null
			COMPREPLY+=("${line#"$kept"}")
			continue ;;
		esac
		# A folder is one word that goes on, and a blank is quoted.
		compopt -o filenames 2>/dev/null
		while IFS= read -r line; do
			line=${cur%"$value"}$line
			[ -z "$found" ] || COMPREPLY+=("${line#"$kept"}")
		done <<<"$found"
	done < <(@OURS@/completion/candidates "${words[@]}")
}

complete -F _blink @PROGRAMS@
