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

revert_all()
{
	local i how=$1 worst=0

	journal_boot
	journal_mend
	for ((i = ${#J_KNOB[@]} - 1; i >= 0; i--)); do
		revert_entry "$i" "$how"
		revert_tell "$i"
		revert_rank "$RESULT"
	done
	[[ $worst == 0 ]] || return $worst
	holder_end
	deadman_end
	journal_end
}

revert_some()
{
	local i worst=0

	journal_boot
	journal_mend
	for ((i = ${#J_KNOB[@]} - 1; i >= 0; i--)); do
		[[ ${J_RISK[i]} == "$1" ]] || continue
		revert_entry "$i" ''
		revert_tell "$i"
		revert_rank "$RESULT"
	done
	return $worst
}

# revert_rank RESULT: raises the caller's worst.
revert_rank()
{
	case $1 in
	failed | denied) worst=$STATUS_INCOMPLETE ;;
	conflict) [[ $worst != 0 ]] || worst=$STATUS_CONFLICT ;;
	esac
}

# What was never changed is not worth a line.
revert_tell()
{
	[[ $RESULT != already ]] || return 0
	report_add "$RESULT" "${J_KNOB[$1]}" "${J_TARGET[$1]}" "$NOW" \
		"${J_ORIGINAL[$1]}" "${J_VALUE[$1]}" "$WHY"
}

# revert_entry I HOW: RESULT, NOW and WHY
revert_entry()
{
	local i=$1 how=$2 knob=${J_KNOB[$1]} target=${J_TARGET[$1]}
	local original=${J_ORIGINAL[$1]}

	RESULT=already NOW='' WHY=''
	revert_is_ours "$i" || return 0
	if [[ ${J_LIFETIME[i]} == holder ]]; then
		holder_end
		RESULT=reverted NOW=$original
		return 0
	fi
	if ! knob_load "$knob"; then
		RESULT=failed
		return 0
	fi
	knob_supported "$knob" "$target" || {
		RESULT=$SUPPORT
		return 0
	}
	knob_get "$knob" "$target" || {
		RESULT=failed
		return 0
	}
	NOW=$VALUE
	if [[ $NOW == "$original" ]]; then
		revert_finish_tree "$i"
		return 0
	fi
	if ! revert_may_set "$i" "$how"; then
		[[ $how != keep ]] || RESULT=already
		return 0
	fi
	revert_set "$i"
}

# revert_is_ours I: may we have changed it?
revert_is_ours()
{
	# Gone with the boot
	if [[ $J_BOOT != "$BOOT" ]]; then
		[[ ${J_LIFETIME[$1]} == device ]]
		return
	fi
	case ${J_STATE[$1]}:${J_RESULT[$1]} in
	doing:*) return 0 ;;
	done:already | done:reverted | done:failed | done:denied) return 1 ;;
	done:*) return 0 ;;
	*) return 1 ;;
	esac
}

# revert_may_set I HOW: is NOW what we have made of it?  If somebody was killed
# while it was being set, whatever it is: the kernel may have changed it.
revert_may_set()
{
	local i=$1

	if [[ $2 == force ]]; then
		return 0
	elif [[ $J_BOOT != "$BOOT" ]]; then
		# Lines without a sync may be lost by then.
		[[ $NOW != "${J_WANTED[i]}" && $NOW != "${J_VALUE[i]}" ]] ||
			return 0
	elif [[ ${J_STATE[i]} == doing || $NOW == "${J_VALUE[i]}" ]]; then
		return 0
	fi
	RESULT=conflict WHY="changed since: it was ${J_VALUE[i]:-${J_WANTED[i]}}"
	return 1
}

# revert_finish_tree I: whoever was killed between a write to a tree's file and
# its being cut left something behind the value; file_write cuts it off.
revert_finish_tree()
{
	[[ ! $ROOT || ${J_STATE[$1]} != doing ]] ||
		knob_set "${J_KNOB[$1]}" "${J_TARGET[$1]}" "${J_ORIGINAL[$1]}" ||
		true
}

revert_set()
{
	local i=$1 knob=${J_KNOB[$1]} target=${J_TARGET[$1]}
	local original=${J_ORIGINAL[$1]}

	knob_act "$knob" "$target" "$original"
	act "$ACT"
	journal_note doing "$i"
	if ! knob_set "$knob" "$target" "$original"; then
		RESULT=failed
		[[ $WHY != *'Permission denied'* ]] || RESULT=denied
		return 0
	fi
	if ! knob_get "$knob" "$target"; then
		RESULT=failed
		return 0
	fi
	NOW=$VALUE
	if [[ $VALUE != "$original" ]]; then
		RESULT=failed WHY="$original was set, but it reads so"
		return 0
	fi
	RESULT=reverted
	journal_note 'done' "$i" reverted "$VALUE"
}

revert_main()
{
	local how='' status=0

	while [[ $# -gt 0 ]]; do
		case $1 in
		--force) how=force ;;
		--keep) how=keep ;;
		*) die "revert: $1: no such option" ;;
		esac
		shift
	done
	if [[ ! -d $STATE ]]; then
		revert_nothing
		return 0
	fi
	journal_lock
	if ! journal_read; then
		revert_nothing
		return 0
	fi
	journal_check_root
	trap '' HUP INT TERM
	revert_all "$how" || status=$?
	[[ $status != "$STATUS_CONFLICT" ]] || say \
		'revert --force puts these back, revert --keep leaves them'
	report_results $status
	return "$status"
}

revert_nothing()
{
	PROFILE=
	if [[ $JSON_WANTED ]]; then
		report_results 0
	else
		echo 'nothing to revert'
	fi
}
