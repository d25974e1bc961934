# blinksort.bash - completion of all programs of blinksort, for bash
# shellcheck shell=bash

_blink()
{
	local cur=${COMP_LINE:0:COMP_POINT} value kept='' line found words char

	# Not by COMP_WORDS, which is cut at each = and :.
	read -r -a words <<<"$cur"
	[[ $cur != *[[:blank:]] ]] || words+=('')
	cur=${words[-1]}
	value=$cur
	[[ $cur != --*=* ]] || value=${cur#*=}
	# bash keeps what is before the last of these in the word.
	for char in = :; do
		if [[ $COMP_WORDBREAKS == *"$char"* && $cur == *"$char"* ]]; then
			line=${cur%"$char"*}$char
			[ ${#line} -le ${#kept} ] || kept=$line
		fi
	done
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
