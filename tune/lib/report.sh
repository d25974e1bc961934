# report.sh - what the verbs print: lines for people, or one JSON document
#
#   report_add RESULT KNOB TARGET NOW WANTED ORIGINAL WHY
#                           one setting; an original that is not known is empty
#   report_clear            forget them
#   report_results STATUS   print them
#   report_plan             the plan's own form, with reasons
#
# A line for people begins with the knob and all the targets of which it is true:
#
#   applied    cpu-governor:policy[0-15]: schedutil -> performance
#
# The plan's have no such word, but say in parentheses how it stands, and below
# it why the profile wants it.  Those that apply would leave as they are have no
# line, except with -v; those that this machine lacks come last:
#
#   turbo: ? -> on  (unsupported: neither intel_pstate/no_turbo nor cpufreq/boost)
#       because what is measured is speed

report_clear()
{
	R_RESULT=() R_KNOB=() R_TARGET=() R_NOW=() R_WANTED=() R_ORIGINAL=()
	R_WHY=()
}
report_clear

report_add()
{
	R_RESULT+=("$1") R_KNOB+=("$2") R_TARGET+=("$3") R_NOW+=("$4")
	R_WANTED+=("$5") R_ORIGINAL+=("$6") R_WHY+=("$7")
}

# --- lines -------------------------------------------------------------------

# Rows with equal texts but other targets are one row.
declare -gA row_targets=()
row_keys=()

# row_add TAG KNOB TARGET TEXT NOTE [BELOW]: BELOW stands on lines of its own.
row_add()
{
	local key=$1$'\x1f'$2$'\x1f'$4$'\x1f'$5$'\x1f'${6:-}

	[[ ${row_targets[$key]+there} ]] || row_keys+=("$key")
	row_targets[$key]+=" $3"
}

rows_print()
{
	local key parts i width=0 tag_width=0 heads=() tags=() notes=()
	local below=()
	local columns=${COLUMNS:-}

	number_is "$columns" 1 9999 || columns=80

	for key in "${row_keys[@]}"; do
		mapfile -d $'\x1f' -t parts <<<"$key"
		row_name "${parts[1]}" "$key"
		tags+=("${parts[0]}") heads+=("$NAME: ${parts[2]}")
		notes+=("${parts[3]}") below+=("${parts[4]%$'\n'}")
		((${#parts[0]} <= tag_width)) || tag_width=${#parts[0]}
		i=$((${#NAME} + 2 + ${#parts[2]}))
		((i <= width || i > 48)) || width=$i
	done
	for i in "${!heads[@]}"; do
		row_print "${tags[i]}" "${heads[i]}" "${notes[i]}"
		[[ ! ${below[i]} ]] || row_wrap 4 "${below[i]}"
	done
	row_targets=() row_keys=()
}

# row_name KNOB KEY: NAME
row_name()
{
	local targets

	read -r -a targets <<<"${row_targets[$2]}"
	NAME=$1
	[[ ${targets[*]} != - ]] || return 0
	name_ranges "${targets[@]}"
	NAME+=:$NAME_RANGES
}

# row_print TAG HEAD NOTE, with the caller's widths: the note on the same line
# if there is room for it.
row_print()
{
	local line='' note=$3 indent=4 word

	((tag_width == 0)) || printf -v line '%-*s ' "$((tag_width + 1))" "$1"
	indent=$((${#line} + 4))
	printf -v line '%s%-*s' "$line" "$width" "$2"
	if [[ ! $note ]]; then
		print '%s\n' "${line%"${line##*[! ]}"}"
	elif ((${#line} + 3 + ${#note} <= columns)); then
		print '%s  (%s)\n' "$line" "$note"
	else
		print '%s\n' "${line%"${line##*[! ]}"}"
		row_wrap "$indent" "($note)"
	fi
}

# row_wrap INDENT TEXT
row_wrap()
{
	local word words line=''

	read -r -a words <<<"$2"
	for word in "${words[@]}"; do
		if [[ $line ]] && (($1 + ${#line} + 1 + ${#word} > columns)); then
			print '%*s%s\n' "$1" '' "$line"
			line=$word
		else
			line+=${line:+ }$word
		fi
	done
	print '%*s%s\n' "$1" '' "$line"
}

# report_short VALUE: SHORT; lists of fields may be very long.
report_short()
{
	SHORT=$1
	[[ $VERBOSE || ${#SHORT} -le 40 ]] || SHORT=${SHORT:0:37}...
	[[ $SHORT != *[[:cntrl:]]* ]] || SHORT=${SHORT//[[:cntrl:]]/ }
	[[ $SHORT ]] || SHORT='?'
}

report_rows()
{
	local i now text

	for i in "${!R_KNOB[@]}"; do
		report_short "${R_NOW[i]}" && now=$SHORT
		report_text "$i" "$now"
		shorten "${R_WHY[i]}"
		row_add "${R_RESULT[i]}" "${R_KNOB[i]}" "${R_TARGET[i]}" \
			"$TEXT" "$SHORT"
	done
	rows_print
}

# report_text I NOW: TEXT
report_text()
{
	local i=$1 now=$2

	case ${R_RESULT[i]} in
	applied | clamped | reverted)
		report_short "${R_ORIGINAL[i]}"
		TEXT="$SHORT -> $now"
		;;
	already) TEXT=$now ;;
	*)
		report_short "${R_WANTED[i]}"
		TEXT="$now, not $SHORT"
		;;
	esac
}

report_results()
{
	if [[ $JSON_WANTED ]]; then
		report_json "$1"
	elif [[ ! $QUIET ]]; then
		report_rows
	fi
}

# --- JSON --------------------------------------------------------------------

# report_fields [NAME TEXT]...: adds them to the caller's text; null for none.
report_fields()
{
	while (($#)); do
		json_known "$2"
		text+=${text:+, }\"$1\":\ $JSON
		shift 2
	done
}

# report_bool NAME VALUE: adds it to the caller's text; false if VALUE is empty
report_bool()
{
	text+=", \"$1\": ${2:+true}"
	[[ $2 ]] || text+=false
}

# report_item: prints the caller's text, which begins anew, as an object of a list
report_item()
{
	print '%s\n  {%s}' "$comma" "$text"
	comma=, text=
}

# report_json_head SCHEMA STATUS: HEAD, the members that documents begin with
report_json_head()
{
	local text=''

	report_fields schema "blinktune-$1-1" program blinktune verb "$VERB" \
		root "$ROOT" profile "${PROFILE:-}"
	text+=", \"status\": $2"
	HEAD=$text${JSON_EXTRA:-}
}

report_json()
{
	local i text='' comma=''

	report_json_head settings "$1"
	print '{%s, "settings": [' "$HEAD"
	for i in "${!R_KNOB[@]}"; do
		report_fields knob "${R_KNOB[i]}" target "${R_TARGET[i]#-}" \
			result "${R_RESULT[i]}" now "${R_NOW[i]}" \
			wanted "${R_WANTED[i]}" original "${R_ORIGINAL[i]}" \
			why "${R_WHY[i]}"
		report_item
	done
	print '\n]}\n'
}

# --- plan --------------------------------------------------------------------

report_plan()
{
	if [[ $JSON_WANTED ]]; then
		report_plan_json
		return
	fi
	local i note line required=0 here=() missing=()
	local -A counts=()

	for i in "${!E_KNOB[@]}"; do
		if [[ ${E_SUPPORT[i]} == unsupported ]]; then
			missing+=("$i")
		else
			here+=("$i")
		fi
	done
	for i in "${here[@]}" "${missing[@]}"; do
		note='' line=${E_LINE[i]}
		[[ $QUIET ]] || note=${LINE_BECAUSE[line]}
		[[ ! $VERBOSE || ! $note ]] ||
			note+=${LINE_SOURCE[line]:+ (source: ${LINE_SOURCE[line]})}
		report_plan_text "$i"
		counts[$STATE_WORD]=$((${counts[$STATE_WORD]:-0} + 1))
		case $STATE_WORD:${E_NEED[i]} in
		denied:set | unsupported:set) required=$((required + 1)) ;;
		esac
		report_plan_shows "$i" || continue
		row_add '' "${E_KNOB[i]}" "${E_TARGET[i]}" "$TEXT" \
			"$STATE_WORD${STATE_WHY:+: }$STATE_WHY" \
			"${note:+because $note}"
	done
	rows_print
	[[ ! $VERBOSE ]] || report_plan_acts
	report_plan_counts
}

# report_plan_shows I: 0 unless entry I is as wanted, or one that is only tried and
# that this machine does not have
report_plan_shows()
{
	[[ $VERBOSE ]] && return 0
	case $STATE_WORD:${E_NEED[$1]} in
	already:* | unsupported:try) return 1 ;;
	esac
}

# report_plan_counts: the last line, of the caller's counts and required
report_plan_counts()
{
	local word line='nothing to change'

	[[ ! ${counts[supported]:-} ]] || line="${counts[supported]} to change"
	for word in already denied unsupported; do
		[[ ! ${counts[$word]:-} ]] || line+=", ${counts[$word]} $word"
	done
	if ((required == 1)); then
		line+='; apply refuses: 1 of these is required'
	elif ((required > 1)); then
		line+="; apply refuses: $required of these are required"
	elif [[ ${counts[denied]:-}${counts[unsupported]:-} ]]; then
		line+='; apply goes on without these'
	fi
	print '%s\n' "$line"
}

# report_plan_text I: TEXT, STATE_WORD and STATE_WHY
report_plan_text()
{
	local i=$1 now

	STATE_WORD=${E_SUPPORT[i]}
	report_short "${E_NOW[i]}" && now=$SHORT
	shorten "${E_WHY[i]}"
	TEXT=$now STATE_WHY=$SHORT
	# The word is that of apply, which then needs no permission.
	if [[ ${E_KNOWN[i]} && ${E_SUPPORT[i]} != unsupported &&
		${E_NOW[i]} == "${E_GOAL[i]}" ]]; then
		STATE_WORD=already STATE_WHY=
		return 0
	fi
	report_short "${E_GOAL[i]}"
	# The beginning of a long list alone fits; if it is the same, the wanted
	# value says more.
	[[ $SHORT != "$now" ]] || report_short "${E_WANTED[i]}"
	TEXT+=" -> $SHORT"
}

# plan -v: what apply would do, as it would tell it
report_plan_acts()
{
	local i

	for i in "${!E_KNOB[@]}"; do
		[[ ${E_SUPPORT[i]} == supported &&
			${E_NOW[i]} != "${E_GOAL[i]}" ]] || continue
		knob_act "${E_KNOB[i]}" "${E_TARGET[i]}" "${E_GOAL[i]}"
		print '+ %s\n' "$ACT"
	done
}

report_plan_json()
{
	local i text='' comma='' line

	report_json_head plan 0
	print '{%s, "settings": [' "$HEAD"
	for i in "${!E_KNOB[@]}"; do
		line=${E_LINE[i]}
		report_fields knob "${E_KNOB[i]}" target "${E_TARGET[i]#-}" \
			now "${E_NOW[i]}" wanted "${E_WANTED[i]}" \
			goal "${E_GOAL[i]}" support "${E_SUPPORT[i]}" \
			why "${E_WHY[i]}" because "${LINE_BECAUSE[line]}" \
			source "${LINE_SOURCE[line]}"
		report_bool required "${E_NEED[i]/try/}"
		ACT=
		[[ ${E_SUPPORT[i]} == unsupported ]] || knob_act "${E_KNOB[i]}" \
			"${E_TARGET[i]}" "${E_GOAL[i]}"
		report_fields lifetime "${E_LIFETIME[i]}" risk "${E_RISK[i]}" \
			act "$ACT"
		report_item
	done
	print '\n]}\n'
}
