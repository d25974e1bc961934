# deadman.sh - undo settings that could cut the operator off, unless confirmed
#
# The deadman is a process that apply starts before the first change of that kind.
# It has a session of its own, so that it survives the end of the operator's session
# and of apply.  When its time is over, it reads the journal, and reverts if the
# same apply is still active and not confirmed.
#
#   deadman_start    returns 0; or 1 and WHY where no process may stay behind
#   deadman_end      ends the deadman, which is not needed any more

readonly DEADMAN_TRIES=5

deadman_start()
{
	local go

	if [[ $J_DEADMAN_PID && ! $J_CONFIRMED ]] &&
		process_is "$J_DEADMAN_PID" "$J_DEADMAN_START"; then
		return 0
	fi
	process_may_stay || return 1
	exec {go}> >(locks_close && exec setsid "$TUNE/blinktune" -q \
		--state "$STATE" ${ROOT:+--root "$ROOT"} \
		deadman "$J_ID" "$CONFIRM_WITHIN_S" >/dev/null 2>&1)
	J_DEADMAN_PID=$! J_CONFIRMED=
	process_start "$J_DEADMAN_PID" || true
	J_DEADMAN_START=$START
	journal_note deadman "$J_DEADMAN_PID" "$J_DEADMAN_START"
	# The deadman waits for this line.  If apply is killed before, the deadman ends.
	echo go >&"$go"
	exec {go}>&-
	say "blinktune confirm within $CONFIRM_WITHIN_S s, or it is undone:" \
		"what could cut you off"
}

deadman_end()
{
	[[ $J_DEADMAN_PID && $J_DEADMAN_PID != "$$" && $J_BOOT == "$BOOT" ]] ||
		return 0
	process_kill "$J_DEADMAN_PID" "$J_DEADMAN_START"
}

# deadman_main ID SECONDS: for deadman_start only
deadman_main()
{
	local id=${1:-} seconds=${2:-} never tries line

	{ [[ $# == 2 ]] && number_is "$seconds" 1 "$CONFIRM_WITHIN_MAX_S"; } ||
		misuse 'deadman: only apply starts it'
	trap '' HUP
	cd /
	read -r line || return 0
	exec </dev/null
	# Wait by reading a pipe without a writer; sleep would be one more process to
	# end.
	exec {never}<> <(:)
	read -r -t "$seconds" -u "$never" || true
	# The folder may have been removed meanwhile: do not make it again.
	[[ -e $STATE ]] || return 0
	LOCK_WAIT_S=86400
	journal_lock
	journal_read || return 0
	[[ $J_ID == "$id" && ! $J_CONFIRMED ]] || return 0
	# A later apply of the same profile has started another deadman.
	[[ ! $J_DEADMAN_PID || $J_DEADMAN_PID == "$$" ]] || return 0
	for ((tries = 0; tries < DEADMAN_TRIES; tries++)); do
		! revert_some cutoff || return 0
		read -r -t 1 -u "$never" || true
	done
}

confirm_main()
{
	local i left='' undone=''

	[[ $# == 0 ]] || misuse "confirm: $1: no argument is expected"
	[[ ! -e $STATE && ! -L $STATE ]] || journal_lock
	if ! journal_read; then
		report_confirmed 'nothing to confirm'
		return 0
	fi
	journal_check_root
	journal_boot
	for i in "${!J_KNOB[@]}"; do
		[[ ${J_RISK[i]} == cutoff && ${J_STATE[i]} ]] || continue
		case ${J_RESULT[i]} in
		reverted) undone=1 ;;
		already) ;;
		*) left=1 ;;
		esac
	done
	if [[ $left ]]; then
		journal_mend
		journal_note confirmed
		[[ ! $J_LOST ]] || exit "$STATUS_FILE"
		deadman_end
		report_confirmed confirmed
	elif [[ $undone ]]; then
		die 'confirm: too late: it has been undone'
	else
		report_confirmed 'nothing to confirm'
	fi
}

report_confirmed()
{
	if [[ $JSON_WANTED ]]; then
		report_results 0
	else
		print '%s\n' "$1"
	fi
}
