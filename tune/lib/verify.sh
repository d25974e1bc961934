# verify.sh - compare the machine with a profile (verify), and show the active one
# (status)
#
# verify without a PROFILE takes the profile of the journal, and the results there: a
# value that was clamped when it was applied does not differ.

verify_main()
{
	local status=0

	if [[ $# == 1 ]]; then
		one_profile verify "$1"
		profile_load "$1"
		plan_make
		journal_clear
		verify_plan || status=$?
	elif [[ $# == 0 ]] && journal_read; then
		journal_check_root
		PROFILE=$J_PROFILE
		verify_journal || status=$?
	else
		[[ $# == 0 ]] || one_profile verify "$@"
		misuse 'verify: no profile is active, and none is named'
	fi
	verify_strays || status=$?
	if [[ $JSON_WANTED ]]; then
		strays_json
		JSON_EXTRA=", \"holders\": $JSON"
		report_json $status
	else
		verify_print
	fi
	return "$status"
}

# verify_strays: sets STRAY_LINES; STATUS_DIFFERS if no journal names one of them
verify_strays()
{
	local known

	strays_find
	strays_describe
	for known in "${STRAY_KNOWN[@]}"; do
		[[ $known ]] || return "$STATUS_DIFFERS"
	done
}

verify_plan()
{
	local i result status=0

	for i in "${!E_KNOB[@]}"; do
		result=differs
		if [[ ! ${E_KNOWN[i]} ]]; then
			# A setting that isn't there can't differ, unless it
			# must be there.
			result=${E_SUPPORT[i]}
			[[ ${E_NEED[i]} == try ]] || status=$STATUS_DIFFERS
		elif [[ ${E_NOW[i]} == "${E_GOAL[i]}" ]]; then
			result=already
		elif [[ ${E_SUPPORT[i]} == unsupported ]]; then
			result=unsupported
		else
			status=$STATUS_DIFFERS
		fi
		report_add "$result" "${E_KNOB[i]}" "${E_TARGET[i]}" \
			"${E_NOW[i]}" "${E_WANTED[i]}" '' "${E_WHY[i]}"
	done
	return "$status"
}

verify_journal()
{
	local i status=0

	journal_boot
	for i in "${!J_KNOB[@]}"; do
		verify_entry "$i"
		report_add "$RESULT" "${J_KNOB[i]}" "${J_TARGET[i]}" "$VALUE" \
			"${J_WANTED[i]}" "${J_ORIGINAL[i]}" "$WHY"
		case $RESULT in
		differs | unsupported | denied) status=$STATUS_DIFFERS ;;
		esac
	done
	return "$status"
}

# verify_entry I: RESULT, VALUE and WHY
verify_entry()
{
	local i=$1 why

	RESULT=differs VALUE=''
	knob_load "${J_KNOB[i]}" || return 0
	if ! knob_supported "${J_KNOB[i]}" "${J_TARGET[i]}" &&
		[[ $SUPPORT == unsupported ]]; then
		RESULT=unsupported
		return 0
	fi
	why=$WHY
	if ! apply_read "$i"; then
		RESULT=denied
		return 0
	fi
	WHY=''
	if apply_is_set "$i" "$VALUE"; then
		RESULT=already
		[[ $VALUE == "${J_WANTED[i]}" ]] || RESULT=clamped
	elif [[ ${J_RESULT[i]} == reverted && ${J_RISK[i]} == cutoff &&
		$J_DEADMAN_PID && ! $J_CONFIRMED ]]; then
		WHY='undone, as it was not confirmed'
	elif [[ ${J_RESULT[i]} == reverted ]]; then
		WHY='restored by a revert that had to leave others'
	elif [[ ${J_LIFETIME[i]} == holder ]]; then
		WHY='no process holds it'
	fi
}

# Prints what differs, and how many settings do not; all of them with -v.
verify_print()
{
	local i good=0 results=("${R_RESULT[@]}")

	for i in "${!results[@]}"; do
		case ${results[i]} in
		already | clamped)
			good=$((good + 1))
			[[ $VERBOSE ]] || unset "R_KNOB[$i]"
			;;
		esac
	done
	report_rows
	strays_print
	print '%s\n' "as wanted: $good of ${#results[@]}"
}

# --- status ------------------------------------------------------------------

status_main()
{
	[[ $# == 0 ]] || misuse "status: $1: no argument is expected"
	PROFILE=
	if journal_read; then
		PROFILE=$J_PROFILE
		verify_journal || true
	fi
	verify_strays || true
	if [[ $JSON_WANTED ]]; then
		status_json
	elif [[ $J_ID ]]; then
		status_print
	else
		print 'nothing is applied\n'
		strays_print
	fi
}

status_print()
{
	local when

	printf -v when '%(%F %T %Z)T' "${J_ID%%.*}"
	print '%s\n' "profile   $J_PROFILE${J_ROOT:+ on $J_ROOT}"
	print '%s\n' "since     $when"
	status_describe
	print '%s\n' "state     $DESCRIBED"
	strays_print
	report_rows
}

# status_describe: DESCRIBED
status_describe()
{
	if [[ $J_BOOT != "$BOOT" ]]; then
		DESCRIBED='of another boot: blinktune revert'
	elif [[ ! $J_COMPLETE ]]; then
		DESCRIBED='not complete: blinktune revert'
	elif [[ $J_DEADMAN_PID && ! $J_CONFIRMED ]] &&
		process_is "$J_DEADMAN_PID" "$J_DEADMAN_START"; then
		DESCRIBED='to be undone in part: blinktune confirm'
	else
		DESCRIBED=complete
	fi
}

status_json()
{
	local sum='' same=1
	local text=', "active": false, "complete": null, "same_boot": null'

	DESCRIBED=
	if [[ $J_ID ]]; then
		# A measuring program records these values.
		sum=$(sha256sum "$STATE/journal" 2>/dev/null) || sum=
		[[ $J_BOOT == "$BOOT" ]] || same=
		status_describe
		text=', "active": true'
		report_bool complete "$J_COMPLETE"
		report_bool same_boot "$same"
	fi
	report_fields state "$DESCRIBED" journal_sha256 "${sum%% *}"
	strays_json
	JSON_EXTRA="$text, \"holders\": $JSON"
	report_json 0
}
