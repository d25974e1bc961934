#!/bin/bash
# check_shell_kill.sh - whatever dies, nothing is left; whatever runs wild is
# held
#
# Each case marks its processes by an argument of sleep that no other has, and no
# other run of this either.
# shellcheck source=tests/programs/shell_lib.sh
. "$(dirname "$0")/shell_lib.sh"

# No cgroups are asked for: so of all processes of the user, whatever else it
# runs, and of those of all cases here.
processes=$(($(tasks_of "$UID") + 1000))
cluster_up 3 -- --processes=$processes --memory=256M

# Leaves a process of each kind behind: a child, one in a session of its own,
# and one of those that also has forked twice, so that its parent has ended.
# shellcheck disable=SC2016 # for the node's shell
readonly FAMILY='/bin/sleep $0 &
setsid /bin/sleep $0 &
setsid /bin/sh -c "(/bin/sleep $0 &) &" &
(setsid env -i /bin/sh -c "(exec /bin/sleep $0) & exit" &) &
exec /bin/sleep $0'

# A process that has lost its daemon, its parent, its session and the mark in its
# environment can be found by its cgroup only, where the daemon may make any.
readonly TAME_FAMILY=${FAMILY//env -i /}

# has_family MARK COUNT: on all nodes together
has_family()
{
	[ "$(pgrep -c -f "^/bin/sleep $1\$")" = "$2" ]
}

no_jobs()
{
	[ "$(count_of jobs_running)" = 0 ]
}

# has_family_or_ended MARK COUNT CLIENT
has_family_or_ended()
{
	has_family "$1" "$2" || ! kill -0 "$3"
}

case_client_killed()
{
	local mark client

	mark 98701
	"$BIN/blinksh" --lost-after=60 --lease="$(seconds_of 500)" -- \
		/bin/sh -c "$FAMILY" "$mark" 2>err &
	client=$!
	# shellcheck disable=SC2064 # now
	at_end "kill -KILL $client 2>/dev/null || true"
	wait_until has_family_or_ended "$mark" 15 "$client"
	# While the client lives the lease is renewed.
	sleep "$(seconds_of 1200)"
	has_family "$mark" 15
	kill -KILL "$client"
	wait "$client" 2>/dev/null || true
	wait_until nobody_has "^/bin/sleep $mark\$"
	wait_until no_jobs
}

# The main process ends; its family must go before the job counts as ended.
case_left_behind()
{
	local mark

	mark 98702
	sh_run -- /bin/sh -c "${FAMILY%exec*}" "$mark"
	[ "$status" = 0 ]
	nobody_has "^/bin/sleep $mark\$"
}

case_interrupted()
{
	local mark

	mark 98703
	(exec "$BIN/blinksh" "${PATIENT[@]}" -- \
		/bin/sh -c "$FAMILY" "$mark") 2>err &
	wait_until has_family "$mark" 15
	kill -TERM $!
	await $!
	[ "$status" = 143 ]
	nobody_has "^/bin/sleep $mark\$"
}

case_term_ignored()
{
	local mark

	mark 98704
	# shellcheck disable=SC2016 # for the node's shell
	sh_run --json --timeout=0.2 -- /bin/sh -c \
		'trap "" TERM; /bin/sleep $0; exec /bin/sleep $0' "$mark"
	[ "$status" = 124 ]
	nobody_has "^/bin/sleep $mark\$"
}

case_daemon_killed()
{
	local mark family=$TAME_FAMILY client i

	mark 98705
	sh_run -w "${nodes[0]}" -- /bin/cat /proc/self/cgroup
	! grep -q blinkd- out || family=$FAMILY
	"$BIN/blinksh" --lease=60 --lost-after="$(seconds_of 1000)" -- \
		/bin/sh -c "$family" "$mark" 2>err &
	client=$!
	wait_until has_family_or_ended "$mark" 15 "$client"
	has_family "$mark" 15
	for i in 1 2 3; do
		restart_daemon "$i" KILL
	done
	nobody_has "^/bin/sleep $mark\$"
	await "$client"
	[ "$status" = 127 ]
	expect_match ': lost: ' err
	sh_run -- /bin/true
	[ "$status" = 0 ]
}

case_daemon_stopped()
{
	local mark i

	mark 98706
	"$BIN/blinksh" "${PATIENT[@]}" -- /bin/sh -c "$FAMILY" "$mark" 2>err &
	wait_until has_family "$mark" 15
	for i in 1 2 3; do
		kill -TERM "$(daemon_pid "$i")"
	done
	wait_until nobody_has "^/bin/sleep $mark\$"
	await $!
	[ "$status" -gt 0 ]
	for i in 1 2 3; do
		wait_until process_ended "$(daemon_pid "$i")"
	done
	"$TESTS/cluster" down
	cluster_up 3 -- --processes=$processes --memory=256M
}

# Bounded by itself as well, should the daemon's limit fail.
readonly BOMB='import os, sys
sleep = ["/bin/sleep", sys.argv[1]]
for _ in range(int(sys.argv[2])):
    try:
        if os.fork() == 0:
            os.execv(sleep[0], sleep)
    except OSError:
        pass
os.execv(sleep[0], sleep)'

case_fork_bomb()
{
	local mark most=0 now=0 pid client user=$UID limit

	mark 98707
	# As root no limit on processes holds without a cgroup that counts them.
	[ "$UID" != 0 ] || user=nobody
	limit=$(($(tasks_of $user) + 40))
	start_unprivileged_daemon --processes=$limit
	pid=$!
	# shellcheck disable=SC2064 # now
	at_end "kill $pid; wait $pid"
	"$BIN/blinksh" "${PATIENT[@]}" --key-file "$unprivileged_key" \
		--timeout="$(seconds_of 1500)" \
		-w "$unprivileged_node" -- /usr/bin/python3 -c "$BOMB" \
		"$mark" $((limit + 100)) >out 2>err &
	client=$!
	until process_ended "$client" || [ "$now" -gt "$limit" ]; do
		now=$(pgrep -c -f "^/bin/sleep $mark\$" || true)
		[ "$now" -le "$most" ] || most=$now
		sleep 0.05
	done
	await "$client"
	cat err
	echo "at most $most processes of $limit"
	[ "$most" -gt 0 ] && [ "$most" -le $limit ]
	[ "$status" = 124 ]
	nobody_has "^/bin/sleep $mark\$"
}

# The daemon inherits signals that its parent ignores: the children of a process
# that ignores SIGCHLD leave nothing to wait for.
case_signals_ignored()
{
	local pid

	trap '' CHLD TERM
	start_unprivileged_daemon
	pid=$!
	trap - CHLD TERM
	# shellcheck disable=SC2064 # now
	at_end "kill -KILL $pid"
	sh_run --key-file "$unprivileged_key" -w "$unprivileged_node" -- /bin/true
	[ "$status" = 0 ]
	sh_run --key-file "$unprivileged_key" -w "$unprivileged_node" -- /bin/false
	[ "$status" = 1 ]
	kill "$pid"
	wait "$pid"
	trap - EXIT
}

case_no_namespaces()
{
	local pid node

	start_unprivileged_daemon --no-namespaces
	pid=$!
	# shellcheck disable=SC2064 # now
	at_end "kill $pid; wait $pid"
	node=(--key-file "$unprivileged_key" -w "$unprivileged_node")
	sh_run "${node[@]}" -N -- /bin/cat /proc/self/status
	[ "$status" = 0 ]
	expect_match '^NoNewPrivs:	1$' out
	expect_match '^Seccomp:	2$' out
	sh_run "${node[@]}" -- /usr/bin/unshare --user /bin/true
	[ "$status" = 1 ]
	expect_match 'Operation not permitted' err
}

case_memory()
{
	sh_run -w "${nodes[0]}" -- /usr/bin/python3 -c 'bytearray(1 << 30)'
	[ "$status" = 1 ]
	expect_match MemoryError err
}

resident_kib()
{
	awk '/^VmRSS/ { print $2 }' "/proc/$(daemon_pid 1)/status"
}

case_endless_output()
{
	local bytes=$((10 << 30)) before

	[ -z "$QUICK" ] || bytes=$((1 << 28))
	before=$(resident_kib)
	sh_run --json -w "${nodes[0]}" --timeout=20 -- \
		/usr/bin/head -c "$bytes" /dev/zero
	[ "$status" = 0 ] || [ "$status" = 124 ]
	[ "$(wc -c <out)" -lt 1000000 ]
	echo "resident: $before KiB before, $(resident_kib) KiB after"
	[ $(($(resident_kib) - before)) -lt 4096 ] || [ "$SANITIZED" ]
	python3 -c 'import json, sys
node = json.load(open("out"))["nodes"][0]
assert node["stdout"] == 65536 * "\0"
assert node["stdout_total_bytes"] == int(sys.argv[1]) or \
    node["state"] == "timed out", node["stdout_total_bytes"]' "$bytes"
}

flood_has_begun()
{
	[ "$(count_of refused_tag)" -gt 1000 ]
}

case_flood()
{
	local before flood

	before=$(resident_kib)
	timeout 600 python3 - "${nodes[0]}" <<'PYTHON' &
import os, socket, sys
host, port = sys.argv[1].split(":")
one = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
one.connect((host, int(port)))
junk = [os.urandom(size) for size in (256, 1200, 1, 500)]
while True:
    for datagram in junk:
        one.send(datagram)
PYTHON
	flood=$!
	wait_until flood_has_begun
	sh_run --repeat=500 -w "${nodes[0]}" -- /bin/true
	cat err
	[ "$status" = 0 ]
	# Its end is by the clock, and by nothing else that comes.
	sh_run --timeout=0.2 -w "${nodes[0]}" -- \
		/bin/sh -c 'trap "" TERM; while :; do sleep 1000; done'
	kill "$flood" || true
	[ "$status" = 124 ]
	echo "resident: $before KiB before, $(resident_kib) KiB after"
	[ $(($(resident_kib) - before)) -lt 2048 ] || [ "$SANITIZED" ]
}

# Many at once, from many clients.
case_crowd()
{
	local i clients=()

	for i in {1..12}; do
		"$BIN/blinksh" "${PATIENT[@]}" -q -- \
			/bin/sh -c "sleep 0.2; echo $i" >"out.$i" 2>"err.$i" &
		clients+=($!)
	done
	for i in "${clients[@]}"; do
		await "$i"
		[ "$status" = 0 ] || fail "exit status $status"
	done
	for i in {1..12}; do
		[ "$(grep -c ": $i\$" "out.$i")" = 3 ]
	done
}

# A client and its daemons are stopped for longer than --lost-after.  The client
# goes on first: it is to ask again, since it was itself that heard nothing.
case_all_stopped()
{
	local pid client

	pid=$(daemon_pid 1)
	kill -STOP "$pid"
	"$BIN/blinksh" --lost-after="$(seconds_of 1000)" -w "${nodes[0]}" \
		ping >out 2>err &
	client=$!
	# shellcheck disable=SC2064 # now
	at_end "kill -CONT $pid $client 2>/dev/null || true"
	sleep 0.2
	kill -STOP "$client"
	sleep "$(seconds_of 1500)"
	kill -CONT "$client"
	sleep 0.2
	kill -CONT "$pid"
	await "$client"
	[ "$status" = 0 ]
}

for name in left_behind interrupted term_ignored signals_ignored \
	daemon_stopped no_namespaces memory endless_output flood crowd; do
	check $name case_$name
done
for name in client_killed daemon_killed fork_bomb all_stopped; do
	check $name patiently case_$name
done
finish
