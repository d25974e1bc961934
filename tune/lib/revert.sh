# revert.sh - restore the originals in the journal, the last change first
#
#   revert_all [force|keep]   reverts the journal that was read or begun; returns
#                             0; STATUS_CONFLICT if it left a value alone that
#                             something else has changed since; or
#                             STATUS_INCOMPLETE.  It puts the journal away only
#                             if it returns 0.
#   revert_some RISK          reverts entries of this risk only; the journal stays
#
# With "force", revert restores foreign values, too (journal.sh); with "keep", it
# leaves them, and what is away, and forgets their originals.
#
# revert reads all values before it sets one: a value shows whether it is ours, and
# restoring one may change another (a driver that resets its device, a service that
# others need).  For the same reason it reads all values again at the end, and sets
# those again that have changed.

# Two settings that change each other would go on for ever.
readonly REVERT_ROUNDS=3

revert_all()
{
	local worst=0

	journal_boot
	journal_mend
	revert_entries "$1" "${!J_KNOB[@]}"
	if [[ $worst != 0 ]]; then
		journal_note complete
		revert_tell_left
		return $worst
	fi
	fd_holder_end
	deadman_end
	journal_end
}

# Says on stderr, also with -q, why the caller's worst is not 0.
revert_tell_left()
{
	if [[ $worst == "$STATUS_CONFLICT" ]]; then
		complain 'something else has changed settings: revert --force' \
			'puts these back, revert --keep leaves them'
	else
		complain 'not all is restored: revert again when it can be;' \
			'revert --keep forgets what is away'
	fi
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
	machine_lock
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
	machine_unlock
	revert_tell
}

# --- decisions ---------------------------------------------------------------

# revert_judge I HOW: TODO, and RESULT, NOW and WHY as far as they are known:
#
#   set        restore the original
#   look       it has its original value: read it again at the end
#   finish     like look, but its file may have been cut short
#   theirs     something else has changed it
#   (nothing)  do not touch it, or it can't be read
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
		TODO=theirs RESULT=kept WHY='set by something else'
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

# revert_claim I: 0 if blinktune may have changed the value
revert_claim()
{
	[[ $J_BOOT == "$BOOT" ]] || return 0
	case ${J_STATE[$1]}:${J_RESULT[$1]} in
	doing:* | done:applied | done:clamped) return 0 ;;
	done:reverted) return 1 ;;
	# The entry was not set by itself, but may have moved with others.
	*) [[ $J_CHANGING && ! $J_COMPLETE ]] ;;
	esac
}

# revert_is_as_left I: 0 if NOW is the value that blinktune left.  If blinktune was
# killed while it set the entry, any value is: the kernel may have changed it.
revert_is_as_left()
{
	if [[ $J_BOOT != "$BOOT" ]]; then
		# Lines without a sync may be lost by a reboot.
		[[ $NOW == "${J_WANTED[$1]}" || $NOW == "${J_VALUE[$1]}" ]]
		return
	fi
	case ${J_STATE[$1]}:${J_RESULT[$1]} in
	done:applied | done:clamped) [[ $NOW == "${J_VALUE[$1]}" ]] ;;
	esac
}

# Writes to the journal what was found and what is about to be done, for the revert
# that has to continue if this one is killed.
revert_announce()
{
	local i

	for i in "${order[@]}"; do
		case ${todo[i]}:${J_RESULT[i]} in
		theirs:*) journal_add 'done' "$i" reverted "${now[i]}" ;;
		# The value is restored, but another setting may still change it.
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

# --- restoring ---------------------------------------------------------------

# revert_set I: its result, now and why; and changed.
revert_set()
{
	local i=$1 knob=${J_KNOB[$1]} target=${J_TARGET[$1]}
	local original=${J_ORIGINAL[$1]}

	changed=1 result[i]=failed
	if [[ ${J_LIFETIME[i]} == holder ]]; then
		fd_holder_end
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

# revert_finish_tree I: if blinktune was killed between a write to a tree's file and
# the truncation, old text follows the value; file_write cuts it off.
revert_finish_tree()
{
	knob_set "${J_KNOB[$1]}" "${J_TARGET[$1]}" "${J_ORIGINAL[$1]}" || true
}

# Reads back the entries that were set, and those that had their original value.
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

# --- the report --------------------------------------------------------------

# An entry that was never changed gets no line.
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

# revert_rank RESULT: raises the caller's worst; how is theirs, too.
revert_rank()
{
	case $1 in
	failed | denied) worst=$STATUS_INCOMPLETE ;;
	# A target that is away for now may come back, with the value that
	# blinktune set.
	unsupported) [[ $how == keep ]] || worst=$STATUS_INCOMPLETE ;;
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
		*) misuse "revert: $1: no such option; see --help" ;;
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
	revert_tell_strays || [[ $status != 0 ]] || status=$STATUS_INCOMPLETE
	report_results "$status"
	[[ ${R_KNOB[*]} || $JSON_WANTED || $QUIET ]] || revert_tell_none
	return "$status"
}

# There was a journal, but nothing in it to restore.
revert_tell_none()
{
	if [[ $J_BOOT != "$BOOT" ]]; then
		print "profile '%s' was applied before the last boot, and %s\n" \
			"$J_PROFILE" 'nothing of it is left: forgotten'
	else
		print "profile '%s': nothing of it is left: forgotten\n" \
			"$J_PROFILE"
	fi
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
		complain "${STRAY_LINES[i]}"
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
		print 'nothing to revert\n'
	fi
}
