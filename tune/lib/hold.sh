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

# hold_revert: at exit, whatever the reason
hold_revert()
{
	local status=$? reverted=0

	trap - EXIT
	trap '' HUP INT TERM
	report_clear
	revert_all '' || reverted=$?
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
	# From here on the end of the program is the undoing.
	if [[ $J_ID ]]; then
		trap hold_revert EXIT
	fi
	trap 'exit 129' HUP
	trap 'exit 130' INT
	trap 'exit 143' TERM
	[[ ! $SIGNALLED ]] || exit "$SIGNALLED"
}

hold_main()
{
	local line

	[[ $# == 1 ]] || die 'hold: one PROFILE, please'
	hold_apply "$1"
	if [[ $JSON_WANTED ]]; then
		report_results 0
	else
		echo held
	fi
	while IFS= read -r line; do
		:
	done
}

run_main()
{
	local profile=${1:-}

	[[ $profile && ${2:-} == -- && ${3:-} ]] ||
		die 'run: PROFILE -- COMMAND [ARGUMENT...], please'
	shift 2
	type -P -- "$1" >/dev/null || die "run: $1: no such command"
	hold_apply "$profile"
	run_command "$@"
}

# run_command COMMAND...: exits with its status.  It is in the background, as
# signals are looked at only between commands; but with our standard input and
# the signals that background commands would ignore.
run_command()
{
	local child status=0

	# What is sent to us is meant for it, too.
	SIGNALS=0
	trap 'run_pass HUP' HUP
	trap 'run_pass TERM' TERM
	# The terminal sends it to both.
	trap 'SIGNALS=$((SIGNALS + 1))' INT
	(
		trap - HUP INT QUIT TERM EXIT
		run_close
		exec -- "$@"
	) <&0 &
	child=$!
	run_wait
	exit "$status"
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

# run_pass SIGNAL: on; after a third one the command is not asked any more.
run_pass()
{
	SIGNALS=$((SIGNALS + 1))
	((SIGNALS < 3)) || set -- KILL
	kill -"$1" "$child" 2>/dev/null || true
}

# run_wait: sets the caller's status.  A signal to us ends the wait, and not yet
# the command.
run_wait()
{
	local before

	while :; do
		before=$SIGNALS
		status=0
		wait "$child" || status=$?
		[[ $SIGNALS != "$before" ]] || return 0
	done
}
