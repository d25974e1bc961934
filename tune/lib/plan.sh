# plan.sh - what a profile means here: for each knob and target now and wanted
#
# plan_make, after profile_load, sets an element of each for every knob and
# target that a line is about, in the order in which apply comes to them:
#
#   E_KNOB E_TARGET E_NEED (set, try) E_LINE (of the profile)
#   E_WANTED    as the profile says it
#   E_GOAL      what the knob will read when it has been set
#   E_NOW       the value it has, or nothing if E_KNOWN is empty
#   E_SUPPORT   supported, unsupported or denied; and E_WHY
#   E_LIFETIME E_RISK
#
# Nothing is changed by it, and no file opened for writing.

plan_make()
{
	local knob

	E_KNOB=() E_TARGET=() E_WANTED=() E_GOAL=() E_NEED=() E_LINE=() E_NOW=()
	E_KNOWN=() E_SUPPORT=() E_WHY=() E_LIFETIME=() E_RISK=()
	plan_order
	for knob in "${ORDERED[@]}"; do
		knob_traits "$knob"
		plan_names "$knob"
		knob_targets "$knob" "${NAMES[@]}"
		plan_knob "$knob"
	done
}

# ORDERED: the profile's knobs, each once.
plan_order()
{
	local -A seen=()
	local knob at ordered=()

	for knob in "${LINE_KNOB[@]}"; do
		[[ ! ${seen[$knob]:-} ]] || continue
		seen[$knob]=1
		knob_traits "$knob"
		# An array's indices come out in order; "10#" as 08 is octal.
		at=$((10#$ORDER))
		ordered[at]=${ordered[at]:-}${ordered[at]:+ }$knob
	done
	# shellcheck disable=SC2206 # names without blanks
	ORDERED=(${ordered[*]})
}

# plan_names KNOB: NAMES, the targets that the profile names letter by letter
plan_names()
{
	local line

	NAMES=()
	for line in "${!LINE_KNOB[@]}"; do
		[[ ${LINE_KNOB[line]} != "$1" ||
			${LINE_GLOB[line]} == *[*?[]* ]] ||
			NAMES+=("${LINE_GLOB[line]}")
	done
}

# plan_knob KNOB: its TARGETS, and then the lines that are about none of them.
plan_knob()
{
	local knob=$1 target line targets=("${TARGETS[@]}")
	local -A used=()

	for target in "${targets[@]}"; do
		plan_last_line "$knob" "$target" || continue
		used[$LAST]=1
		[[ ${LINE_VALUE[LAST]} != keep ]] || continue
		plan_add "$knob" "$target" "$LAST"
		plan_probe
	done
	for line in "${!LINE_KNOB[@]}"; do
		[[ ${LINE_KNOB[line]} == "$knob" && ! ${used[$line]:-} &&
			${LINE_VALUE[line]} != keep ]] || continue
		plan_is_overridden "$line" || plan_missing "$knob" "$line"
	done
}

# plan_last_line KNOB TARGET: LAST, the line that counts; or 1.
plan_last_line()
{
	for ((LAST = ${#LINE_KNOB[@]} - 1; LAST >= 0; LAST--)); do
		# shellcheck disable=SC2053 # a pattern is meant
		if [[ ${LINE_KNOB[LAST]} == "$1" &&
			$2 == ${LINE_GLOB[LAST]} ]]; then
			return 0
		fi
	done
	return 1
}

# plan_is_overridden LINE: 0 if a later line has the same knob, and the same
# targets or all.
plan_is_overridden()
{
	local later

	for ((later = $1 + 1; later < ${#LINE_KNOB[@]}; later++)); do
		if [[ ${LINE_KNOB[later]} == "${LINE_KNOB[$1]}" &&
			(${LINE_GLOB[later]} == "${LINE_GLOB[$1]}" ||
				${LINE_GLOB[later]} == '*') ]]; then
			return 0
		fi
	done
	# Each target may have a later line of its own.
	plan_matches_target "$1"
}

plan_matches_target()
{
	local target

	for target in "${targets[@]}"; do
		# shellcheck disable=SC2053 # a pattern is meant
		[[ $target != ${LINE_GLOB[$1]} ]] || return 0
	done
	return 1
}

# plan_add KNOB TARGET LINE
plan_add()
{
	E_KNOB+=("$1") E_TARGET+=("$2") E_LINE+=("$3")
	E_WANTED+=("${LINE_VALUE[$3]}") E_NEED+=("${LINE_NEED[$3]}")
	E_LIFETIME+=("$LIFETIME") E_RISK+=("$RISK")
}

# Probes the entry that was added last.
plan_probe()
{
	local last=$((${#E_KNOB[@]} - 1))
	local knob=${E_KNOB[last]} target=${E_TARGET[last]} known='' why

	knob_supported "$knob" "$target" || true
	why=$WHY
	[[ $READ ]] || VALUE=''
	if [[ $SUPPORT != unsupported ]] &&
		{ [[ $READ ]] || knob_get "$knob" "$target"; }; then
		known=1
	elif [[ $SUPPORT == supported ]]; then
		# A value that can't be read can't be put back.
		SUPPORT=unsupported why=$WHY VALUE=''
	fi
	E_NOW+=("$VALUE") E_KNOWN+=("$known")
	if [[ $known ]] && ! knob_goal "$knob" "$target" "$VALUE" \
		"${E_WANTED[last]}"; then
		SUPPORT=unsupported why=$WHY VALUE=${E_WANTED[last]}
	elif [[ ! $known ]]; then
		VALUE=${E_WANTED[last]}
	fi
	E_GOAL+=("$VALUE") E_SUPPORT+=("$SUPPORT") E_WHY+=("$why")
}

# plan_missing KNOB LINE: it is about a target that is not there.
plan_missing()
{
	local why='nothing here has it'

	plan_add "$1" "${LINE_GLOB[$2]}" "$2"
	[[ ${#targets[@]} == 0 ]] || why='no such target'
	E_NOW+=('') E_KNOWN+=('') E_GOAL+=("${LINE_VALUE[$2]}")
	E_SUPPORT+=(unsupported) E_WHY+=("$why")
}

# plan_lacks: LACKS, the first required entry that can't be had; or 1.
plan_lacks()
{
	local i

	for i in "${!E_KNOB[@]}"; do
		[[ ${E_NEED[i]} == set && ${E_SUPPORT[i]} != supported ]] ||
			continue
		# An entry that is as wanted already needs no permission.
		[[ ! ${E_KNOWN[i]} || ${E_NOW[i]} != "${E_GOAL[i]}" ]] ||
			continue
		LACKS=$i
		return 0
	done
	return 1
}

plan_main()
{
	one_profile plan "$@"
	FILE_EXACT=1
	profile_load "$1"
	plan_make
	report_plan
}
