# apply.sh - sets what a profile wants, all of it journalled before
# shellcheck shell=bash
# shellcheck disable=SC2034,SC2153,SC2154 # results are in variables
#
#   apply_profile PROFILE   0; or STATUS_REFUSED: a required knob can't be had,
#                           and nothing is changed, or nothing any more
#
# On top of an active journal only the profile that it is of may be applied: what
# has changed since is set again, and the first originals stay.

CONFIRM_WITHIN_S=120
# Set by run and hold: nobody may have been here before, and what a process must
# hold is held by this one.
APPLY_ONCE=
# A signal during apply is looked at between two knobs.
SIGNALLED=

apply_on_signals()
{
	trap 'SIGNALLED=129' HUP
	trap 'SIGNALLED=130' INT
	trap 'SIGNALLED=143' TERM
	# Nobody reads what we say: no reason to stop halfway.
	trap '' PIPE
}

apply_profile()
{
	profile_load "$1"
	journal_lock
	if journal_read; then
		strays_refuse
		apply_again
		return
	fi
	strays_refuse
	plan_make
	apply_report_lacking
	if plan_lacks; then
		say "${E_KNOB[LACKS]}: required, but ${E_SUPPORT[LACKS]}:" \
			"${E_WHY[LACKS]}: nothing is changed"
		return "$STATUS_REFUSED"
	fi
	apply_entries
	[[ ${#J_KNOB[@]} != 0 ]] || return 0
	journal_begin
	apply_all planned
}

# apply_again: the journal's profile, if it is this one.
apply_again()
{
	journal_boot
	journal_check_root
	if [[ $J_BOOT != "$BOOT" ]]; then
		die "profile '$J_PROFILE' was applied before the last boot:" \
			'blinktune revert first'
	elif [[ $J_HASH != "$PROFILE_HASH" || $APPLY_ONCE ]]; then
		die "profile '$J_PROFILE' is active: blinktune revert first"
	fi
	journal_mend
	plan_make
	apply_report_lacking
	journal_note changing
	J_CHANGING=1 J_COMPLETE=
	apply_all
}

# What can't be had is only told.
apply_report_lacking()
{
	local i

	for i in "${!E_KNOB[@]}"; do
		apply_is_possible "$i" || report_add "${E_SUPPORT[i]}" \
			"${E_KNOB[i]}" "${E_TARGET[i]}" "${E_NOW[i]}" \
			"${E_WANTED[i]}" '' "${E_WHY[i]}"
	done
}

apply_is_possible()
{
	[[ ${E_SUPPORT[$1]} == supported ]] ||
		[[ ${E_SUPPORT[$1]} == denied && ${E_KNOWN[$1]} &&
			${E_NOW[$1]} == "${E_GOAL[$1]}" ]]
}

# From the plan's entries those of the journal
apply_entries()
{
	local i

	journal_clear
	for i in "${!E_KNOB[@]}"; do
		apply_is_possible "$i" || continue
		J_KNOB+=("${E_KNOB[i]}") J_TARGET+=("${E_TARGET[i]}")
		J_LIFETIME+=("${E_LIFETIME[i]}") J_RISK+=("${E_RISK[i]}")
		J_NEED+=("${E_NEED[i]}") J_WANTED+=("${E_GOAL[i]}")
		J_ORIGINAL+=("${E_NOW[i]}")
		J_STATE+=('') J_RESULT+=('') J_VALUE+=('')
	done
}

# apply_all [planned]: the originals are what was read just now.
apply_all()
{
	local i planned=${1:-} report_at=() changed=''

	for i in "${!J_KNOB[@]}"; do
		[[ ! $SIGNALLED ]] || break
		apply_known "$i" || apply_entry "$i"
		report_at[i]=${#R_KNOB[@]}
		report_add "$RESULT" "${J_KNOB[i]}" "${J_TARGET[i]}" "$NOW" \
			"${J_WANTED[i]}" "${J_ORIGINAL[i]}" "$WHY"
		! apply_must_end "$i" || break
	done
	[[ $SIGNALLED || $FATAL || ! $changed ]] || apply_look_again
	if [[ $SIGNALLED || $FATAL ]]; then
		apply_roll_back
		return
	fi
	journal_note complete
	J_COMPLETE=1
}

# apply_must_end I: FATAL, if it is required and RESULT is no good
FATAL=
apply_must_end()
{
	case ${J_NEED[$1]}:$RESULT in
	set:failed | set:denied | set:unsupported) FATAL=$1 ;;
	*) return 1 ;;
	esac
}

# A setting may move others: what has moved is set again, and the journal told
# what it reads then.  What a process holds does not move.
apply_look_again()
{
	local i at

	for i in "${!J_KNOB[@]}"; do
		[[ ${J_STATE[i]} == 'done' && ${J_LIFETIME[i]} != holder ]] ||
			continue
		! apply_read "$i" || [[ $VALUE != "${J_VALUE[i]}" ]] || continue
		J_STATE[i]=''
		apply_entry "$i"
		at=${report_at[i]}
		R_RESULT[at]=$RESULT R_NOW[at]=$NOW R_WHY[at]=$WHY
		! apply_must_end "$i" || return 0
	done
}

# apply_known I: has the plan just read it as it is wanted?  If something moves
# it, the look at the end will see it.
apply_known()
{
	[[ $planned && ${J_ORIGINAL[$1]} == "${J_WANTED[$1]}" &&
		${J_LIFETIME[$1]} != holder ]] || return 1
	RESULT=already NOW=${J_ORIGINAL[$1]} WHY=''
	apply_note "$1"
}

# apply_entry I: RESULT, NOW and WHY
apply_entry()
{
	local i=$1 knob=${J_KNOB[$1]} target=${J_TARGET[$1]}
	local wanted=${J_WANTED[$1]} before

	knob_load "$knob" || {
		RESULT=failed NOW=''
		return 0
	}
	apply_read "$i" || {
		RESULT=failed NOW=''
		return 0
	}
	before=$VALUE
	if apply_is_set "$i" "$before"; then
		RESULT=already NOW=$before WHY=''
		[[ ${J_STATE[i]} != 'done' ]] || return 0
		# It came along with another one.
		[[ $before == "${J_ORIGINAL[i]}" ]] || RESULT=applied
		apply_note "$i"
		return 0
	fi
	apply_guard "$i" || {
		RESULT=denied NOW=$before
		return 0
	}
	knob_act "$knob" "$target" "$wanted"
	act "$ACT"
	journal_note doing "$i"
	J_STATE[i]=doing J_CHANGING=1 changed=1
	if apply_set "$i"; then
		apply_read_back "$i" "$before"
	else
		apply_failed "$i"
	fi
}

# apply_read I: VALUE; nobody writes what is held to a tree.
apply_read()
{
	if [[ $ROOT && ${J_LIFETIME[$1]} == holder ]] && holder_has "$1"; then
		VALUE=${J_WANTED[$1]} WHY=''
	else
		knob_get "${J_KNOB[$1]}" "${J_TARGET[$1]}"
	fi
}

# apply_is_set I VALUE: is it so, and if it must be held, by us?
apply_is_set()
{
	[[ ${J_LIFETIME[$1]} != holder ]] || holder_has "$1" || return 1
	[[ $2 == "${J_WANTED[$1]}" ]] ||
		[[ ${J_STATE[$1]} == 'done' && ${J_RESULT[$1]} == clamped &&
			$2 == "${J_VALUE[$1]}" ]]
}

# apply_guard I: what must be there before that one is set; or 1 and WHY
apply_guard()
{
	WHY=''
	[[ ! $APPLY_ONCE ]] || return 0
	if [[ ${J_RISK[$1]} == cutoff ]]; then
		deadman_start
	elif [[ ${J_LIFETIME[$1]} == holder ]]; then
		holder_start
	fi
}

apply_set()
{
	if [[ ${J_LIFETIME[$1]} == holder ]]; then
		holder_take "$1"
	else
		knob_set "${J_KNOB[$1]}" "${J_TARGET[$1]}" "${J_WANTED[$1]}"
	fi
}

# apply_failed I: WHY; if nothing has changed it is not ours to put back.
apply_failed()
{
	local i=$1 why=$WHY

	RESULT=failed NOW=
	if [[ $why == *'Permission denied'* ]]; then
		RESULT=denied
	elif [[ $SUPPORT == unsupported ]]; then
		RESULT=unsupported
	fi
	if apply_read "$i"; then
		NOW=$VALUE
		[[ $VALUE != "${J_ORIGINAL[i]}" ]] || apply_note "$i"
	fi
	WHY=$why
}

# apply_read_back I BEFORE
apply_read_back()
{
	local i=$1

	WHY='' NOW=
	if ! apply_read "$i"; then
		RESULT=failed
		return
	fi
	NOW=$VALUE
	if [[ $VALUE == "${J_WANTED[i]}" ]]; then
		RESULT=applied
	elif [[ $VALUE == "$2" && ${J_LIFETIME[i]} != holder ]]; then
		RESULT=failed WHY='taken, but without effect'
	else
		RESULT=clamped WHY="${J_WANTED[i]} was taken as this"
	fi
	apply_note "$i"
}

# apply_note I: its RESULT and NOW, to the journal
apply_note()
{
	journal_note 'done' "$1" "$RESULT" "$NOW"
	J_STATE[$1]='done' J_RESULT[$1]=$RESULT J_VALUE[$1]=$NOW
}

apply_roll_back()
{
	local status=0

	trap '' HUP INT TERM
	[[ $SIGNALLED ]] || say "${J_KNOB[FATAL]}: required, but $RESULT: $WHY:" \
		'all is set back'
	revert_all '' || status=$?
	[[ $status == 0 ]] || return $status
	[[ ! $SIGNALLED ]] || return "$SIGNALLED"
	return "$STATUS_REFUSED"
}

apply_main()
{
	local status=0 profiles=()

	while [[ $# -gt 0 ]]; do
		case $1 in
		--confirm-within=*) CONFIRM_WITHIN_S=${1#*=} ;;
		--confirm-within)
			[[ $# -gt 1 ]] || misuse "apply: $1 needs seconds"
			CONFIRM_WITHIN_S=$2
			shift
			;;
		-*) misuse "apply: no option $1" ;;
		*) profiles+=("$1") ;;
		esac
		shift
	done
	[[ ${#profiles[@]} == 1 ]] || misuse 'apply: one PROFILE, please'
	[[ $CONFIRM_WITHIN_S =~ ^[1-9][0-9]{0,5}$ ]] ||
		misuse "apply: --confirm-within: not a count of seconds:" \
			"$CONFIRM_WITHIN_S"
	apply_on_signals
	apply_profile "${profiles[0]}" || status=$?
	report_results "$status"
	return "$status"
}
