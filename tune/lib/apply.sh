# apply.sh - set the values of a profile, with all originals in the journal first
#
#   apply_profile PROFILE   returns 0; or STATUS_REFUSED if a required knob can't
#                           be set; then nothing is changed, or all is restored
#
# While a journal is active, only the profile that it names may be applied.  apply
# then sets again what has changed since, and keeps the first originals.

CONFIRM_WITHIN_S=120
# The longest time has six digits, which is more than a week.
readonly CONFIRM_WITHIN_MAX_S=999999
# run and hold set this: no journal may be active then, and this process itself
# holds open the files that a process must hold.
APPLY_ONCE=
# apply acts on a signal between two knobs only.
SIGNALLED=

apply_on_signals()
{
	trap 'SIGNALLED=129' HUP
	trap 'SIGNALLED=130' INT
	trap 'SIGNALLED=143' TERM
	# apply finishes its work even if the reader of our output is gone.
	trap '' PIPE
}

apply_profile()
{
	local status=0

	profile_load "$1"
	journal_lock
	machine_lock
	apply_in_turn || status=$?
	machine_unlock
	return $status
}

apply_in_turn()
{
	if journal_read && ! apply_forget; then
		strays_refuse
		apply_again
		return
	fi
	strays_refuse
	plan_make
	apply_report_lacking
	if plan_lacks; then
		complain "${E_KNOB[LACKS]}: required, but ${E_SUPPORT[LACKS]}:" \
			"${E_WHY[LACKS]}: nothing is changed"
		return "$STATUS_REFUSED"
	fi
	apply_entries
	[[ ${#J_KNOB[@]} != 0 ]] || return 0
	journal_begin
	apply_all planned
}

# apply_forget: puts the journal away if a boot has undone all that it has; or 1
apply_forget()
{
	apply_is_undone || return 1
	say "profile '$J_PROFILE' was applied before the last boot," \
		'which has undone it: forgotten'
	journal_end
	journal_clear
}

# apply_is_undone: 0 if the machine has booted since the journal that was read, and
# no device keeps a value of it over a boot
apply_is_undone()
{
	journal_boot
	journal_check_root
	[[ $J_BOOT != "$BOOT" && " ${J_LIFETIME[*]} " != *' device '* ]]
}

# apply_again: applies the journal's profile again, if it is the one asked for.
apply_again()
{
	if [[ $J_BOOT != "$BOOT" ]]; then
		die "profile '$J_PROFILE' was applied before the last boot," \
			'and devices may keep its values: blinktune revert first'
	elif [[ $J_HASH != "$PROFILE_HASH" || $APPLY_ONCE ]]; then
		die "profile '$J_PROFILE' is active: blinktune revert first"
	fi
	journal_mend
	plan_make
	apply_report_lacking
	journal_note changing
	[[ ! $J_LOST ]] || return "$STATUS_FILE"
	J_CHANGING=1 J_COMPLETE=
	apply_all
}

# Knobs that can't be set are only reported.
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

# Makes the entries of the journal from those of the plan.
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

# apply_all [planned]: "planned" says that the originals were read just now.
apply_all()
{
	local i planned=${1:-} report_at=() changed=''

	for i in "${!J_KNOB[@]}"; do
		[[ ! $SIGNALLED && ! $J_LOST ]] || break
		apply_known "$i" || apply_entry "$i"
		report_at[i]=${#R_KNOB[@]}
		report_add "$RESULT" "${J_KNOB[i]}" "${J_TARGET[i]}" "$NOW" \
			"${J_WANTED[i]}" "${J_ORIGINAL[i]}" "$WHY"
		! apply_must_end "$i" || break
	done
	[[ $SIGNALLED || $FATAL || $J_LOST || ! $changed ]] || apply_look_again
	if [[ ! $SIGNALLED && ! $FATAL ]]; then
		journal_note complete
		J_COMPLETE=1
	fi
	[[ ! $SIGNALLED && ! $FATAL && ! $J_LOST ]] || apply_roll_back
}

# apply_must_end I: sets FATAL if entry I is required and RESULT is a failure
FATAL=
apply_must_end()
{
	case ${J_NEED[$1]}:$RESULT in
	set:failed | set:denied | set:unsupported) FATAL=$1 ;;
	*) return 1 ;;
	esac
}

# Setting one value may change others.  Those are set again, and the journal gets
# the values that are then read back.  A value that a process holds cannot change.
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

# apply_known I: 0 if the plan has just read the wanted value.  If another setting
# changes it later, the check at the end sees that.
apply_known()
{
	[[ $planned && ${J_ORIGINAL[$1]} == "${J_WANTED[$1]}" &&
		${J_LIFETIME[$1]} != holder ]] || return 1
	RESULT=already NOW=${J_ORIGINAL[$1]} WHY=''
	apply_note "$1"
}

# apply_entry I: sets entry I; the outcome is in RESULT, NOW and WHY
apply_entry()
{
	local i=$1 knob=${J_KNOB[$1]} target=${J_TARGET[$1]}
	local wanted=${J_WANTED[$1]} before

	if ! knob_load "$knob" || ! apply_read "$i"; then
		RESULT=failed NOW=''
		return 0
	fi
	before=$VALUE
	if apply_is_set "$i" "$before"; then
		RESULT=already NOW=$before WHY=''
		[[ ${J_STATE[i]} != 'done' ]] || return 0
		# Setting another entry has changed this one, too.
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
	if [[ $J_LOST ]]; then
		RESULT=failed NOW=$before WHY="the journal can't be written"
		return 0
	fi
	J_STATE[i]=doing J_CHANGING=1 changed=1
	if apply_set "$i"; then
		apply_read_back "$i" "$before"
	else
		apply_failed "$i"
	fi
}

# apply_read I: sets VALUE.  In a tree, a value that a process holds is never
# written to the file, so the value is what the holder holds.
apply_read()
{
	if [[ $ROOT && ${J_LIFETIME[$1]} == holder ]] && fd_holder_has "$1"; then
		VALUE=${J_WANTED[$1]} WHY=''
	else
		knob_get "${J_KNOB[$1]}" "${J_TARGET[$1]}"
	fi
}

# apply_is_set I VALUE: 0 if the entry has this value and, where a process must
# hold it, our holder does.
apply_is_set()
{
	[[ ${J_LIFETIME[$1]} != holder ]] || fd_holder_has "$1" || return 1
	[[ $2 == "${J_WANTED[$1]}" ]] ||
		[[ ${J_STATE[$1]} == 'done' && ${J_RESULT[$1]} == clamped &&
			$2 == "${J_VALUE[$1]}" ]]
}

# apply_guard I: starts the holder or the deadman if entry I needs it; or returns 1
# and sets WHY
apply_guard()
{
	WHY=''
	[[ ! $APPLY_ONCE ]] || return 0
	if [[ ${J_RISK[$1]} == cutoff ]]; then
		deadman_start
	elif [[ ${J_LIFETIME[$1]} == holder ]]; then
		fd_holder_start
	fi
}

apply_set()
{
	if [[ ${J_LIFETIME[$1]} == holder ]]; then
		fd_holder_take "$1"
	else
		knob_set "${J_KNOB[$1]}" "${J_TARGET[$1]}" "${J_WANTED[$1]}"
	fi
}

# apply_failed I: reads the entry after a failure to set it.  A value that has not
# changed is not restored later.
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

# apply_note I: writes the RESULT and NOW of entry I to the journal
apply_note()
{
	journal_note 'done' "$1" "$RESULT" "$NOW"
	J_STATE[$1]='done' J_RESULT[$1]=$RESULT J_VALUE[$1]=$NOW
}

apply_roll_back()
{
	local status=0

	trap '' HUP INT TERM
	if [[ $J_LOST ]]; then
		complain 'all is set back'
	elif [[ ! $SIGNALLED ]]; then
		complain "${J_KNOB[FATAL]}: required, but $RESULT: $WHY:" \
			'all is set back'
	fi
	revert_all '' || status=$?
	[[ $status == 0 ]] || return $status
	[[ ! $SIGNALLED ]] || return "$SIGNALLED"
	[[ ! $J_LOST ]] || return "$STATUS_FILE"
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
		-*) misuse "apply: $1: no such option; see --help" ;;
		*) profiles+=("$1") ;;
		esac
		shift
	done
	one_profile apply "${profiles[@]}"
	number_is "$CONFIRM_WITHIN_S" 1 "$CONFIRM_WITHIN_MAX_S" ||
		misuse "apply: --confirm-within: not a count of seconds:" \
			"$CONFIRM_WITHIN_S"
	apply_on_signals
	apply_profile "${profiles[0]}" || status=$?
	report_results "$status"
	return "$status"
}
