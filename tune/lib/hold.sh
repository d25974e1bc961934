# hold.sh - a profile for the time of a command, or until standard input ends
# shellcheck shell=bash
# shellcheck disable=SC2034,SC2153,SC2154 # results are in variables
#
# hold PROFILE   prints "held" when it is applied, and reverts at the end of file
#                on standard input: so also when whoever has the other end of
#                the pipe is killed
# run PROFILE -- COMMAND
#
# Both keep the lock, and revert however they end; killed by SIGKILL, they leave
# the journal to revert.

# hold_revert STATUS: ends the program, with STATUS unless not all is put back.
# Not in a trap for EXIT, where "return" would have another meaning.
hold_revert()
{
	local status=$1 reverted=0

	trap '' HUP INT TERM PIPE
	report_clear
	[[ ! $J_ID ]] || revert_all '' || reverted=$?
	if [[ $reverted != 0 ]]; then
		report_results $reverted >&2
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
		report_results "$status" >&2
		exit "$status"
	fi
}

hold_main()
{
	[[ $# == 1 ]] || misuse 'hold: one PROFILE, please'
	hold_apply "$1"
	# Whoever was to read it may be gone; so is the other pipe then.
	if [[ $JSON_WANTED ]]; then
		report_results 0
	else
		echo held
	fi 2>/dev/null || true
	# It ends with standard input; and, unlike read, at a signal.
	run_command cat >/dev/null
	hold_revert "${SIGNALLED:-$RUN_STATUS}"
}

run_main()
{
	local profile=${1:-}

	[[ $profile && ${2:-} == -- && ${3:-} ]] ||
		misuse 'run: PROFILE -- COMMAND [ARGUMENT...], please'
	shift 2
	type -P -- "$1" >/dev/null || misuse "run: $1: no such command"
	hold_apply "$profile"
	run_command "$@"
	hold_revert "$RUN_STATUS"
}

# run_command COMMAND...: RUN_STATUS, how it ended.  It is in the background, as
# signals are looked at only between commands; but with our standard input and
# the signals that background commands would ignore.
run_command()
{
	local child

	# What is sent to us is meant for it, too.
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
	# One that came before there was anybody to pass it to
	[[ ! $SIGNALLED ]] || kill -$((SIGNALLED - 128)) "$child" 2>/dev/null ||
		true
	run_wait
}

# Neither the lock nor what is held may outlive us in it.
run_close()
{
	local fd

	exec {LOCK_FD}>&-
	for fd in "${held_fds[@]}"; do
		exec {fd}>&-
	done
}

# run_pass SIGNAL STATUS: on; at the third the command is not asked any more.
# From the terminal it has it already, and does not mind.
run_pass()
{
	SIGNALS=$((SIGNALS + 1)) SIGNALLED=$2
	((SIGNALS < 3)) || set -- KILL
	[[ ! $child ]] || kill -"$1" "$child" 2>/dev/null || true
}

# run_wait: RUN_STATUS.  A signal to us ends the wait, and not yet
# the command.
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
