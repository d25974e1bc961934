# hold.sh - a profile for the time of a command, or until standard input ends
#
# hold PROFILE   applies the profile, prints "held", and reverts at the end of
#                standard input: so also when the process at the other end of the
#                pipe is killed
# run PROFILE -- COMMAND
#                applies the profile, runs the command, and reverts
#
# Both keep the lock, and revert however they end.  After SIGKILL the journal is
# left, and the verb revert restores the values.
#
# On a node (cluster_hold) these meet by a FIFO in the state folder, whose name has
# the TOKEN:
#
# held TOKEN     the command of run: begins when all is applied, ends by release
# await TOKEN    returns when held has begun
# release TOKEN  ends held

# hold_revert STATUS: ends the program, with STATUS unless not all is put back.
# Not in a trap for EXIT, where "return" would have another meaning.
hold_revert()
{
	local status=$1 reverted=0

	trap '' HUP INT TERM PIPE
	report_clear
	[[ ! $J_ID ]] || revert_all '' || reverted=$?
	if [[ $reverted != 0 ]]; then
		report_results $reverted >&2 || :
		status=$reverted
	fi
	exit "$status"
}

# hold_apply PROFILE
hold_apply()
{
	local status=0

	APPLY_ONCE=1
	apply_on_signals
	apply_profile "$1" || status=$?
	if [[ $status != 0 ]]; then
		report_results "$status" >&2 || :
		exit "$status"
	fi
}

hold_main()
{
	one_profile hold "$@"
	hold_apply "$1"
	if [[ $JSON_WANTED ]]; then
		report_results 0
	else
		print 'held\n'
	fi
	# A reader that got no "held" would wait for it without end.
	[[ ! $PRINT_WHY ]] || hold_revert "$STATUS_FILE"
	# cat ends at the end of standard input and, unlike read, at a signal.
	run_command cat >/dev/null
	hold_revert "${SIGNALLED:-$RUN_STATUS}"
}

run_main()
{
	local profile=${1:-}

	[[ $profile && ${2:-} == -- && ${3:-} ]] ||
		misuse 'run: takes PROFILE -- COMMAND [ARGUMENT...]'
	shift 2
	type -P -- "$1" >/dev/null || misuse "run: $1: no such command"
	hold_apply "$profile"
	run_command "$@"
	hold_revert "$RUN_STATUS"
}

# run_command COMMAND...: runs the command and sets RUN_STATUS.  The command runs in
# the background, since bash handles signals only between commands.  It gets our
# standard input, and does not ignore the signals that bash makes background
# commands ignore.
run_command()
{
	local child

	# Pass signals that are sent to us on to the command.
	SIGNALS=0
	RUN_STATUS=${SIGNALLED:-0} child=
	trap 'run_pass HUP 129' HUP
	trap 'run_pass INT 130' INT
	trap 'run_pass TERM 143' TERM
	[[ ! $SIGNALLED ]] || return 0
	(
		trap - HUP INT QUIT TERM PIPE EXIT
		run_close
		exec -- "$@"
	) <&0 &
	child=$!
	# Pass on a signal that came before the command had started.
	[[ ! $SIGNALLED ]] || kill -$((SIGNALLED - 128)) "$child" 2>/dev/null ||
		true
	run_wait
}

# The command must not inherit the lock or the held files, which would outlive us.
run_close()
{
	local fd

	locks_close
	for fd in "${held_fds[@]}"; do
		exec {fd}>&-
	done
}

# run_pass SIGNAL STATUS: passes the signal on to the command; the third one kills
# it.  A signal from the terminal has reached the command already; a second one does
# no harm.
run_pass()
{
	SIGNALS=$((SIGNALS + 1)) SIGNALLED=$2
	((SIGNALS < 3)) || set -- KILL
	[[ ! $child ]] || kill -"$1" "$child" 2>/dev/null || true
}

# run_wait: waits for the command and sets RUN_STATUS.  A signal to us ends wait
# before the command has ended.
run_wait()
{
	local before

	while :; do
		before=$SIGNALS
		RUN_STATUS=0
		wait "$child" || RUN_STATUS=$?
		[[ $SIGNALS != "$before" ]] || return 0
	done
}

# --- on a node ---------------------------------------------------------------

readonly AWAIT_TRIES=1200 AWAIT_PAUSE_S=0.05

# hold_meet VERB TOKEN: MEETING, the FIFO
hold_meet()
{
	[[ $# == 2 && $2 =~ ^[0-9-]+$ ]] || misuse "$1: takes the token of a hold"
	MEETING=$STATE/held.$2
}

held_main()
{
	hold_meet held "$@"
	# run has the lock: others are of a run that was killed.
	rm -f "$STATE"/held.*
	mkfifo -m 600 "$MEETING"
	read -r _ <"$MEETING" || true
	rm -f "$MEETING"
}

await_main()
{
	local tries

	hold_meet await "$@"
	for ((tries = 0; tries < AWAIT_TRIES; tries++)); do
		[[ ! -p $MEETING ]] || return 0
		sleep "$AWAIT_PAUSE_S"
	done
	die 'the profile is not applied in time'
}

release_main()
{
	local fd

	hold_meet release "$@"
	[[ -p $MEETING ]] || return 0
	# Opened for both, so that this does not wait for held.
	exec {fd}<>"$MEETING"
	echo >&"$fd"
}
