#!/bin/bash
# check_shell_sessions.sh - more clients than a daemon keeps sessions for
#
# A daemon keeps 256 sessions.  shell_crowd.py opens more than that and uses them.
# A client that is stopped meanwhile can't use its own, which becomes the one
# that was used least recently.
# shellcheck source=tests/programs/shell_lib.sh
. "$(dirname "$0")/shell_lib.sh"

readonly CROWD=400
cluster_up 1

crowd()
{
	timeout 300 python3 "$TESTS/programs/shell_crowd.py" "$BLINK_KEY" "${nodes[0]}" \
		"$CROWD"
}

# lines_of FILE: how many it has, nothing if it is not there
lines_of()
{
	[ ! -e "$1" ] || wc -l <"$1"
}

# begin_client OPTION... -- COMMAND...: in the background, its process in $client
begin_client()
{
	local lost_after=(--lost-after="$(seconds_of 1000)")

	# An option with a value is given once.
	[[ " $* " != *" --lost-after="* ]] || lost_after=()
	"$BIN/blinksh" --lease=60 "${lost_after[@]}" "$@" >out 2>err &
	client=$!
	# shellcheck disable=SC2064 # now
	at_end "kill -KILL $client 2>/dev/null || true"
}

# crowd_past_client: while it is stopped
crowd_past_client()
{
	kill -STOP "$client"
	crowd
	kill -CONT "$client"
}

# expect_client N: its exit status
expect_client()
{
	await "$client"
	[ "$status" = "$1" ] || fail "exit status $status, not $1: $(<err)"
}

# The daemon tells of the end of a running job in the session of its client.
case_running_job()
{
	local client

	begin_client -- /bin/sh -c \
		"echo >'$PWD/ran'; until [ -e '$PWD/go' ]; do sleep 0.1; done"
	wait_until test -s ran
	crowd_past_client
	# Time to ask how the job is, and to take the daemon for lost.
	sleep "$(seconds_of 2500)"
	touch go
	expect_client 0
}

# A session that no job needs is forgotten; the client has the word, and gets
# another.
case_forgotten_session()
{
	local client before

	before=$(count_of refused_replay)
	begin_client --repeat=2 --interval="$(seconds_of 1500)" -- \
		/bin/sh -c "echo >>'$PWD/ran'"
	wait_until test -s ran
	crowd_past_client
	expect_client 0
	[ "$(lines_of ran)" = 2 ]
	[ "$(count_of refused_replay)" -gt "$before" ] ||
		fail "the session was not forgotten"
}

# All ask for a session before the daemon answers any, though few sessions can be
# fresh at the same time.
case_all_at_once()
{
	local pid clients=() client

	crowd
	pid=$(daemon_pid 1)
	kill -STOP "$pid"
	# shellcheck disable=SC2064 # now
	at_end "kill -CONT $pid"
	for _ in {1..100}; do
		"$BIN/blinksh" --lost-after="$(seconds_of 3000)" ping \
			>>out 2>>err &
		clients+=($!)
	done
	sleep "$(seconds_of 500)"
	kill -CONT "$pid"
	for client in "${clients[@]}"; do
		await "$client"
		[ "$status" = 0 ] || fail "$(tail -n 1 err)"
	done
	[ "$(lines_of out)" = 100 ]
}

# The job kills its daemon before that has answered the START, and dies with it.
# The next daemon does not know the job, and must not be asked to start it.
case_daemon_restarted()
{
	local client

	remember_daemon 1
	# shellcheck disable=SC2016 # for the node's shell
	begin_client --lost-after=60 -- /bin/sh -c \
		'echo >>"$0"; kill -KILL $PPID; sleep 1000' "$PWD/ran"
	start_daemon_again 1
	wait_until process_ended "$client"
	[ "$(lines_of ran)" = 1 ] || fail "it ran $(lines_of ran) times"
	expect_client 127
	expect_match 'lost: its daemon was restarted' err
}

# begin_stub BEHAVIOUR: at $stub; ./said has a line for each of its answers
begin_stub()
{
	stub=127.0.0.88:$BLINK_PORT
	timeout 300 python3 "$TESTS/programs/shell_stub.py" "$BLINK_KEY" "$stub" "$1" \
		>said &
	# shellcheck disable=SC2064 # now
	at_end "kill $! 2>/dev/null || true"
	wait_until grep -q ready said
}

# A daemon that forgets each session at once is lost as a silent one is.
case_each_is_forgotten()
{
	local stub

	begin_stub forgetful
	sh_run --lost-after=1 -w "$stub" -- /bin/true
	[ "$status" = 127 ]
	expect_match 'lost: no reply for 1.00 s' err
	[ "$(grep -c told said)" -gt 1 ] ||
		fail "the client has asked in no second session"
}

case_forgotten_end()
{
	local stub

	begin_stub forgotten
	sh_run --json -w "$stub" -- /bin/true
	[ "$status" = 127 ]
	expect_match '"state": "forgotten", "status": 127' out
	sh_run -w "$stub" -- /bin/true
	[ "$status" = 127 ]
	expect_match 'forgotten: the job has ended' err
}

for name in running_job forgotten_session all_at_once; do
	check $name patiently case_$name
done
for name in daemon_restarted each_is_forgotten forgotten_end; do
	check $name case_$name
done
finish
