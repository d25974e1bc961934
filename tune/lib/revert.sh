# revert.sh - puts back what the journal says was changed, the last one first
# shellcheck shell=bash
# shellcheck disable=SC2034,SC2153,SC2154 # results are in variables
#
#   revert_all [force|keep]   of the journal read or begun: 0, STATUS_CONFLICT:
#                             something that somebody else has changed since
#                             was left alone, or STATUS_INCOMPLETE.  Only with
#                             0 is the journal put away.
#   revert_some RISK          entries of this risk only; the journal stays
#
# With force what others have changed is put back, too; with keep it is theirs
# from now on.
#
# Everything is read before anything is set: what is ours is told by its value,
# and one setting put back may move another (a driver that starts anew, a
# service that others need).  For the same reason everything is read once more
# at the end, and what has moved is set again.

# Two that move each other would go on for ever.
readonly REVERT_ROUNDS=3

revert_all()
{
	local worst=0

	journal_boot
	journal_mend
	revert_entries "$1" "${!J_KNOB[@]}"
	if [[ $worst != 0 ]]; then
		journal_note complete
		return $worst
	fi
	holder_end
	deadman_end
	journal_end
}

revert_some()
{
	local i worst=0 chosen=()

	journal_boot
	journal_mend
	for i in "${!J_KNOB[@]}"; do
		[[ ${J_RISK[i]} != "$1" ]] || chosen+=("$i")
	done
	revert_entries '' "${chosen[@]}"
	[[ ! $J_COMPLETE ]] || journal_note complete
	return $worst
}

# revert_entries HOW I...: raises the caller's worst.
revert_entries()
{
	local i at how=$1 order=()
	local todo=() now=() result=() why=() changed=''

	shift
	for ((at = $#; at > 0; at--)); do
		order+=("${!at}")
	done
	for i in "${order[@]}"; do
		revert_judge "$i" "$how"
		todo[i]=$TODO result[i]=$RESULT now[i]=$NOW why[i]=$WHY
	done
	revert_announce
	for i in "${order[@]}"; do
		case ${todo[i]} in
		set) revert_set "$i" ;;
		finish) revert_finish_tree "$i" ;;
		esac
	done
	[[ ! $changed ]] || revert_look_again
	revert_tell
}

# --- what is to be done ------------------------------------------------------

# revert_judge I HOW: TODO, and RESULT, NOW and WHY as far as they are known:
#
#   set      put it back        look   it is as it was: look again at the end
#   finish   the same, but its file may have been cut short
#   theirs   somebody else's    (nothing)  not to be touched, or it can't be
revert_judge()
{
	local i=$1

	TODO='' RESULT=already NOW='' WHY=''
	# Gone with the boot
	[[ $J_BOOT == "$BOOT" || ${J_LIFETIME[i]} == device ]] || return 0
	if [[ ${J_LIFETIME[i]} == holder ]]; then
		case ${J_STATE[i]}:${J_RESULT[i]} in
		doing:* | done:applied | done:clamped) TODO='set' ;;
		esac
		return 0
	fi
	if ! revert_read "$i"; then
		revert_claim "$i" || RESULT=already
		return 0
	fi
	if [[ $NOW == "${J_ORIGINAL[i]}" ]]; then
		TODO=look
		[[ ! $ROOT || ${J_STATE[i]} != doing ]] || TODO=finish
	elif ! revert_claim "$i"; then
		TODO=theirs
	elif [[ $2 == force ]] || revert_is_as_left "$i"; then
		TODO='set'
	elif [[ $2 == keep ]]; then
		TODO=theirs
	else
		RESULT=conflict
		WHY="changed since: it was ${J_VALUE[i]:-${J_WANTED[i]}}"
	fi
}

# revert_read I: NOW; or 1, RESULT and WHY
revert_read()
{
	local knob=${J_KNOB[$1]} target=${J_TARGET[$1]} why

	RESULT=failed
	knob_load "$knob" || return 1
	if knob_get "$knob" "$target"; then
		RESULT=already NOW=$VALUE
		return 0
	fi
	why=$WHY
	if ! knob_supported "$knob" "$target"; then
		RESULT=$SUPPORT
	else
		WHY=$why
	fi
	return 1
}

# revert_claim I: may we have changed it?
revert_claim()
{
	[[ $J_BOOT == "$BOOT" ]] || return 0
	case ${J_STATE[$1]}:${J_RESULT[$1]} in
	doing:* | done:applied | done:clamped) return 0 ;;
	done:reverted) return 1 ;;
	# It was not set by itself, but may have moved with others.
	*) [[ $J_CHANGING && ! $J_COMPLETE ]] ;;
	esac
}

# revert_is_as_left I: is NOW what we have made of it?  If somebody was killed
# while it was being set, whatever it is: the kernel may have changed it.
revert_is_as_left()
{
	if [[ $J_BOOT != "$BOOT" ]]; then
		# Lines without a sync may be lost by then.
		[[ $NOW == "${J_WANTED[$1]}" || $NOW == "${J_VALUE[$1]}" ]]
		return
	fi
	case ${J_STATE[$1]}:${J_RESULT[$1]} in
	done:applied | done:clamped) [[ $NOW == "${J_VALUE[$1]}" ]] ;;
	esac
}

# What was found out, and what is about to be done, for whoever has to go on
# after us.
revert_announce()
{
	local i

	for i in "${order[@]}"; do
		case ${todo[i]}:${J_RESULT[i]} in
		theirs:*) journal_add 'done' "$i" reverted "${now[i]}" ;;
		# It is back, but may move yet.
		look:applied | look:clamped)
			journal_add 'done' "$i" already "${now[i]}"
			;;
		esac
	done
	journal_add changing
	J_CHANGING=1
	for i in "${order[@]}"; do
		[[ ${todo[i]} != set ]] || journal_add doing "$i"
	done
	journal_write
}

# --- doing it ----------------------------------------------------------------

# revert_set I: its result, now and why; and changed.
revert_set()
{
	local i=$1 knob=${J_KNOB[$1]} target=${J_TARGET[$1]}
	local original=${J_ORIGINAL[$1]}

	changed=1 result[i]=failed
	if [[ ${J_LIFETIME[i]} == holder ]]; then
		holder_end
		result[i]=reverted now[i]=$original
		return 0
	fi
	knob_act "$knob" "$target" "$original"
	act "$ACT"
	if ! knob_set "$knob" "$target" "$original"; then
		why[i]=$WHY
		[[ $WHY != *'Permission denied'* ]] || result[i]=denied
		knob_supported "$knob" "$target" ||
			result[i]=$SUPPORT why[i]=$WHY
		return 0
	fi
	result[i]=reverted why[i]=''
}

# revert_finish_tree I: whoever was killed between a write to a tree's file and
# its being cut left something behind the value; file_write cuts it off.
revert_finish_tree()
{
	knob_set "${J_KNOB[$1]}" "${J_TARGET[$1]}" "${J_ORIGINAL[$1]}" || true
}

# Reads back what was set, and what was as it should be.
revert_look_again()
{
	local i round moved

	for ((round = 1; round <= REVERT_ROUNDS; round++)); do
		moved=
		for i in "${order[@]}"; do
			revert_is_back "$i" || moved+=" $i"
		done
		[[ $moved && $round != "$REVERT_ROUNDS" ]] || return 0
		for i in $moved; do
			journal_add doing "$i"
		done
		journal_write
		for i in $moved; do
			revert_set "$i"
		done
	done
}

# revert_is_back I: if not, its result is failed.
revert_is_back()
{
	local i=$1

	[[ ${todo[i]} && ${todo[i]} != theirs &&
		${J_LIFETIME[i]} != holder ]] || return 0
	case ${result[i]} in
	already | reverted | failed) ;;
	*) return 0 ;;
	esac
	if ! knob_get "${J_KNOB[i]}" "${J_TARGET[i]}"; then
		result[i]=failed why[i]=$WHY
		return 0
	fi
	now[i]=$VALUE
	if [[ $VALUE == "${J_ORIGINAL[i]}" ]]; then
		[[ ${result[i]} == already ]] || result[i]=reverted why[i]=''
		return 0
	fi
	[[ ${result[i]} == failed && ${why[i]} ]] ||
		why[i]="${J_ORIGINAL[i]} was set, but it reads so"
	result[i]=failed
	return 1
}

# --- and telling it ----------------------------------------------------------

# What was never changed is not worth a line.
revert_tell()
{
	local i

	for i in "${order[@]}"; do
		[[ ${result[i]} != reverted ]] ||
			journal_add 'done' "$i" reverted "${now[i]}"
		revert_rank "${result[i]}"
		[[ ${result[i]} == already ]] || report_add "${result[i]}" \
			"${J_KNOB[i]}" "${J_TARGET[i]}" "${now[i]}" \
			"${J_ORIGINAL[i]}" "${J_VALUE[i]}" "${why[i]}"
	done
	journal_write
}

# revert_rank RESULT: raises the caller's worst.
revert_rank()
{
	case $1 in
	failed | denied) worst=$STATUS_INCOMPLETE ;;
	conflict) [[ $worst != 0 ]] || worst=$STATUS_CONFLICT ;;
	esac
}

revert_main()
{
	local how='' stray='' status=0

	while [[ $# -gt 0 ]]; do
		TAKEN=1
		case $1 in
		--force) how=force ;;
		--keep) how=keep ;;
		--holder | --holder=*)
			option_value "$@"
			stray=$OPTION_VALUE
			;;
		*) misuse "revert: $1: no such option" ;;
		esac
		shift $TAKEN
	done
	if [[ $stray ]]; then
		revert_stray "$stray"
		return
	fi
	[[ ! -e $STATE && ! -L $STATE ]] || journal_lock
	if ! journal_read; then
		revert_tell_strays || status=$?
		revert_nothing $status
		return $status
	fi
	journal_check_root
	trap '' HUP INT TERM PIPE
	revert_all "$how" || status=$?
	[[ $status != "$STATUS_CONFLICT" ]] || say \
		'revert --force puts these back, revert --keep leaves them'
	revert_tell_strays || [[ $status != 0 ]] || status=$STATUS_INCOMPLETE
	report_results "$status"
	return "$status"
}

# revert_tell_strays: 0, or STATUS_INCOMPLETE: a stray is left, and what to do is
# said, also with -q.
revert_tell_strays()
{
	local i status=0

	strays_find
	strays_describe
	for i in "${!STRAY_PID[@]}"; do
		[[ ! ${STRAY_KNOWN[i]} ]] || continue
		printf 'blinktune: %s\n' "${STRAY_LINES[i]}" >&2
		status=$STATUS_INCOMPLETE
	done
	return "$status"
}

# revert_stray PID
revert_stray()
{
	number_is "$1" 2 "$PROCESS_MAX" ||
		misuse "revert: --holder: not the number of a process: $1"
	journal_clear
	stray_end "$1"
	[[ ! $JSON_WANTED ]] || report_results 0
}

# revert_nothing STATUS
revert_nothing()
{
	PROFILE=
	if [[ $JSON_WANTED ]]; then
		report_results "$1"
	else
		echo 'nothing to revert'
	fi
}
