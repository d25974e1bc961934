#!/bin/bash
# check_shell_main.sh - blinksh as its user meets it: statuses, output, hosts
# shellcheck source=tests/programs/shell_lib.sh
. "$(dirname "$0")/shell_lib.sh"

cluster_up 4
readonly PORT=${nodes[0]##*:}

# expect_node RANK KEY VALUE: in the JSON document ./out
expect_node()
{
	local got

	got=$(python3 -c 'import json, sys
print(json.load(open("out"))["nodes"][int(sys.argv[1])][sys.argv[2]])' \
		"$1" "$2")
	[ "$got" = "$3" ] || fail "node $1: $2 is $got, not $3"
}

case_zero()
{
	sh_run -- /bin/true
	[ "$status" = 0 ]
	expect_empty out
	expect_one_line err
	expect_match '^blinksh: 4 nodes: 4 ok, 0 failed, 0 cancelled, 0 lost' err
}

case_application_status()
{
	sh_run -- /bin/sh -c 'exit 7'
	[ "$status" = 7 ]
	expect_match 'exit status 7$' err
}

# On one node each: the highest of the commands' own.
case_worst_of_applications()
{
	# shellcheck disable=SC2016 # for the node's shell
	sh_run --keep-going --json -- /bin/sh -c 'exit $((%r * 50))'
	[ "$status" = 150 ]
	expect_node 0 status 0
	expect_node 1 status 50
	expect_node 3 status 150
	expect_node 3 state exited
}

case_signal()
{
	sh_run --json -- /bin/sh -c 'kill -KILL $$'
	[ "$status" = 137 ]
	expect_match '"state": "killed"' out
}

case_timeout()
{
	sh_run --timeout=0.3 --json -- /bin/sleep 60
	[ "$status" = 124 ]
	expect_match '"state": "timed out", "status": 124' out
}

case_refused_folder()
{
	cp /bin/true ./not_allowed
	sh_run -- "$PWD/not_allowed"
	[ "$status" = 125 ]
	expect_match "refused: $PWD/not_allowed: not below a folder .*--allow" err
}

case_refused_missing()
{
	sh_run -- /usr/bin/no-such-program
	[ "$status" = 125 ]
	expect_match 'refused: /usr/bin/no-such-program: No such file' err
	sh_run -- '/bin/echo one | wc'
	[ "$status" = 125 ]
	expect_match 'No such file .*: there is no shell: write the program' err
}

# What blinksh.1 runs, a daemon that was started as in blinkd.1 allows.
case_man_examples()
{
	local daemon command address=127.0.0.99:$PORT words

	daemon=$("$REPO/tests/programs/page_examples.py" "$REPO/shell/blinkd.1" |
		sed -n 's/^# not run: nohup blinkd \(.*\) & daemon=.*/\1/p')
	daemon=${daemon/--key-file=\$HOME\/.blink.key/--key-file=$BLINK_KEY}
	read -r -a words <<<"${daemon/--listen=10.0.0.1:7300/--listen=$address}"
	"$BIN/blinkd" "${words[@]}" >daemon.out 2>daemon.err &
	# shellcheck disable=SC2064 # now
	at_end "kill $!"
	wait_until grep -q listening daemon.out
	sed -n "s/^\.Dl \\$ blinksh -w 'node.* -- \\(.bin\|.usr.bin\)/\\1/p" \
		"$REPO/shell/blinksh.1" >commands
	[ "$(wc -l <commands)" = 2 ]
	while read -r command; do
		# shellcheck disable=SC2086 # words are meant
		sh_run -w "$address" -b -- $command
		[ "$status" = 0 ] || fail "$command: $(cat err)"
	done <commands
}

case_lost()
{
	sh_run --lost-after="$(seconds_of 400)" -w "${nodes[0]},127.0.0.250:1" --json \
		--keep-going -- /bin/true
	[ "$status" = 127 ]
	expect_node 0 status 0
	expect_node 1 status 127
	expect_node 1 state lost
	expect_node 1 elapsed_ns None
	sh_run --lost-after=0.4 -w 127.0.0.250:1 -- /bin/true
	[ "$status" = 127 ]
	expect_match '^blinksh: 127.0.0.250:1: lost: no reply for 400 ms .no daemon' err
}

# Each kind of failure on a node of its own: lost before refused before
# time-out before failure, whatever the numbers.
# Each of four ranks sorts alone without --cluster: rank 0 alone says so.
case_forgotten_cluster()
{
	local rank options

	for rank in 0 1 2 3; do
		"$BIN/blinkgen" 1000 "in.$rank"
	done
	sh_run -q -- "$BIN/blinksort" "$PWD/in.%r" -o "$PWD/out.%r"
	[ "$status" = 0 ]
	expect_one_line err
	expect_match "^${nodes[0]}: blinksort: .* 4 nodes.*: --cluster " err
	for options in "$PWD/out.%r --cluster" "$PWD/out.%r --explain" '- --json'; do
		# shellcheck disable=SC2086 # words are meant
		sh_run -q -- "$BIN/blinksort" "$PWD/in.%r" -o $options
		[ "$status" = 0 ] || fail "$options: $(cat err)"
		if grep -q -e ': --cluster ' err; then
			fail "$options: $(cat err)"
		fi
	done
	sh_run -q -w "${nodes[0]}" -- "$BIN/blinksort" "$PWD/in.0" -o out
	expect_empty err
}

case_worst_wins()
{
	local all='case %r in 0) exit 200;; 1) exec /bin/sleep 60;; esac'

	sh_run --keep-going -w "${nodes[0]},${nodes[1]}" --timeout=0.3 \
		-- /bin/sh -c "$all"
	[ "$status" = 124 ]
	sh_run --keep-going --lost-after=0.4 --timeout=0.3 \
		-w "${nodes[0]},${nodes[1]},127.0.0.250:1" -- /bin/sh -c "$all"
	[ "$status" = 127 ]
	# 127 of a shell that finds no command is the application's.
	sh_run --keep-going -w "${nodes[0]},${nodes[1]}" --timeout=0.3 \
		-- /bin/sh -c 'case %r in 0) exit 127;; *) exec /bin/sleep 60; esac'
	[ "$status" = 124 ]
}

# The first failure ends all; those ended are not failures of their own.
case_kill_on_fail()
{
	local mark

	mark 98761
	sh_run --json -- /bin/sh -c \
		"[ %r != 2 ] || exit 9; exec /bin/sleep $mark"
	[ "$status" = 9 ]
	expect_node 2 state exited
	expect_node 0 state cancelled
	expect_node 0 status 143
	nobody_has "^/bin/sleep $mark\$"
}

case_substitution()
{
	sh_run -N -w "${nodes[2]},${nodes[0]}" -- \
		/usr/bin/printf '%s %s %s %%%%\n' %r %n %h
	expect_out "0 2 ${nodes[2]} %" "1 2 ${nodes[0]} %"
}

case_environment()
{
	sh_run -N -w "${nodes[1]}" -- /usr/bin/env
	expect_match '^BLINK_RANK=0$' out
	expect_match '^BLINK_NODES=1$' out
	expect_match "^BLINK_HOST=${nodes[1]}\$" out
	expect_match '^LANG=C$' out
	! grep -q BLINK_KEY out
}

case_hosts_in_environment()
{
	local port=${nodes[0]##*:}

	sh_run -N -- /usr/bin/env
	[ "$(grep -c -x "BLINK_HOSTS=127\.0\.0\.\[2-5\]:$port" out)" = 4 ]
	sh_run -N -w "${nodes[2]},${nodes[0]},${nodes[1]}" -- /usr/bin/env
	[ "$(grep -c -x "BLINK_HOSTS=${nodes[2]},127.0.0.\[2-3\]:$port" \
		out)" = 3 ]
}

# The list goes along as long as all fits into 1200 bytes, of which 80 and 44
# are headers; without it the command is started all the same.
case_hosts_that_do_not_fit()
{
	local host=${nodes[0]} room

	room=$((1200 - 80 - 44 - 13 - 3 - ${#host} - ${#host}))
	sh_run -N -w "$host" -- /usr/bin/env "X=$(printf "%0${room}d" 0)"
	[ "$status" = 0 ]
	expect_match "^BLINK_HOSTS=$host\$" out
	room=$((room + 1))
	sh_run -N -w "$host" -- /usr/bin/env "X=$(printf "%0${room}d" 0)"
	[ "$status" = 0 ]
	expect_match "^BLINK_HOST=$host\$" out
	! grep -q '^BLINK_HOSTS=' out
}

case_labelled()
{
	sh_run -w "${nodes[0]},${nodes[1]}" -- /bin/sh -c \
		'echo one; printf two; echo bad >&2'
	expect_out "${nodes[0]}: one" "${nodes[0]}: two" \
		"${nodes[1]}: one" "${nodes[1]}: two"
	expect_match "^${nodes[0]}: bad\$" err
}

# On a terminal, rank 0's lines that end with a carriage return are shown while
# the job runs, and no line of theirs is left; elsewhere all is as it was written.
# shellcheck disable=SC2016 # the job's shell expands it
case_progress()
{
	local job='echo first >&2
		for i in 1 2 3 4; do printf "%r at $i\033[2J\r" >&2; sleep 0.5; done
		echo last >&2'

	"$REPO/tests/programs/pipe_ends.py" error-terminal "$BIN/blinksh" \
		"${PATIENT[@]}" -q -w "${nodes[0]},${nodes[1]}" -- \
		/bin/sh -c "$job" | tr '\r' '\n' >shown
	expect_match '^0 at [2-4]\?\[2J *$' shown
	! grep -q '^1 at' shown || fail "$(cat shown)"
	for host in "${nodes[0]}" "${nodes[1]}"; do
		expect_match "^$host: first" shown
		expect_match "^$host: last" shown
		! grep -q "^$host: .* at " shown || fail "$(cat shown)"
	done
	sh_run -q -N -w "${nodes[0]}" -- /bin/sh -c "$job"
	expect_match '^0 at 1' err
}

case_plain_is_binary_safe()
{
	sh_run -q -N -w "${nodes[0]}" -- /usr/bin/printf '\377\000\r\nend'
	printf '\377\000\r\nend' >want
	cmp want out
	expect_empty err
}

case_gathered()
{
	sh_run -b -- /bin/sh -c '[ %r = 1 ] && echo odd || echo same'
	[ "$status" = 0 ]
	expect_out --------------- "${nodes[0]},127.0.0.[4-5]:$PORT (3)" \
		--------------- same --------------- "${nodes[1]}" \
		--------------- odd
}

# Lines for all nodes of which the same is to be said, the failure last.
case_equal_ends()
{
	sh_run -- /bin/sh -c "[ %r != 1 ] || exit 3; exec /bin/sleep 60"
	[ "$status" = 3 ]
	[ "$(wc -l <err)" = 3 ]
	sed -n 1p err >line
	expect_match "^blinksh: ${nodes[0]},127.0.0.\[4-5\]:$PORT: cancelled" line
	sed -n 2p err >line
	expect_match "^blinksh: ${nodes[1]}: exit status 3\$" line
	sed -n 3p err >line
	expect_match '^blinksh: 4 nodes: 0 ok, 1 failed, 3 cancelled' line
	sh_run -w "${nodes[0]}" -- /bin/true
	expect_match '^blinksh: 1 node: 1 ok' err
	# Not more than fits into a line, but all
	sh_run --lost-after=0.2 -w '127.0.[1-9].[10-60/2]:1,127.0.0.[10-250/3]:1' ping
	[ "$(grep -c 'lost: no reply for 200 ms (no daemon, another key' err)" = 2 ]
	sed 's/^blinksh: //; s/: lost: .*//' err | paste -s -d , >list
	"$BIN/blinksh" --lost-after=0.2 --json -w "$(cat list)" ping >out || true
	[ "$(grep -c '"answered": false' out)" = $((9 * 26 + 81)) ]
}

# Users leave the default port out, and so do lines.
case_labels()
{
	sh_run --lost-after=0.2 -w '127.0.0.200:7300,[::1]:7300,127.0.0.201:7301' ping
	expect_match '^blinksh: 127.0.0.200,\[::1\],127.0.0.201:7301: lost' err
}

# Two runs: the median is the mean, and p90 the longer one.
case_quantiles()
{
	sh_run -w "${nodes[0]}" --repeat=2 --json -- /bin/true
	sh_run --repeat=2 -w "${nodes[0]}" -- /bin/true
	sed -n 's/.* whole \([^,]*\) min, .* median, \(.*\) p90, .* p99, \(.*\) max$/\2\n\3/p' \
		err | uniq >longest
	[ "$(wc -l <longest)" = 1 ]
	# They take 90 and 190 ms at least, of which the mean is 140.
	# shellcheck disable=SC2016 # for the node's shell
	sh_run -w "${nodes[0]},${nodes[1]}" -- /bin/sh -c 'exec /bin/sleep 0.%r9'
	expect_match ' min, ((1[4-9]|[2-9][0-9])[0-9] ms|[0-9.]+ s) median, ' err
}

case_status_lines()
{
	sh_run status
	[ "$(wc -l <out)" = 4 ]
	expect_match "^${nodes[0]}: +up .*, +[0-9]+ running, +[0-9]+ started, `
		`refused +[0-9]+ for length, +[0-9]+ for tag, +[0-9]+ for fields, `
		`+[0-9]+ for replay, " out
	# Aligned
	[ "$(sed 's/running.*//' out | awk '{ print length }' | uniq | wc -l)" = 1 ]
}

case_json_is_json()
{
	sh_run --json -- /usr/bin/printf '"\\\001\377\000\xc3\xa9\n'
	[ "$status" = 0 ]
	python3 - <<'PYTHON'
import json
document = json.load(open("out", encoding="utf-8"))
node = document["nodes"][3]
assert node["stdout"] == '"\\\x01\ufffd\0\u00e9\n', node["stdout"]
assert node["rank"] == 3 and node["stdout_total_bytes"] == 8
assert 0 < node["elapsed_ns"] <= node["round_trip_ns"]
assert node["round_trip_ns"] <= document["whole_ns"]
assert node["max_rss_bytes"] > 0 and node["user_ns"] >= 0
assert document["status"] == 0 and len(document["job"]) == 32
PYTHON
}

# More than comes along with the end, and more than is kept.
case_long_output()
{
	sh_run -N -q -- /usr/bin/seq 1 8000
	for _ in "${nodes[@]}"; do seq 1 8000; done >want
	cmp want out
	sh_run -N -w "${nodes[0]}" -- /usr/bin/seq 1 100000
	seq 1 100000 | tail -c 65536 >want
	cmp want out
	expect_match 'only the last 65536 of 588895 bytes' err
}

case_hosts()
{
	local port=${nodes[0]##*:}

	sh_run -w "127.0.0.[2-5]:$port" -x "127.0.0.3:$port" -N -- /bin/echo %h
	expect_out "127.0.0.2:$port" "127.0.0.4:$port" "127.0.0.5:$port"
	WCOLL=$SCRATCH/no/such/file sh_run -- /bin/true
	[ "$status" -gt 0 ]
	expect_match WCOLL err
	expect_status 2 env -u WCOLL "$BIN/blinksh" -- /bin/true 2>err
	sh_run -w a,b -x b,a -- /bin/true
	[ "$status" = 2 ]
	expect_match '^blinksh: -x: leaves no host of -w$' err
	# Two names of one daemon.
	sh_run -w "127.0.0.2:$port,[::ffff:127.0.0.2]:$port" -- /bin/true
	[ "$status" = 2 ]
	expect_match 'the same daemon as' err
}

case_key_file()
{
	"$BIN/blinksh" keygen mine
	[ "$(stat -c %a mine)" = 400 ]
	expect_status 3 "$BIN/blinksh" keygen mine 2>err
	chmod 0440 mine
	sh_run --key-file mine -- /bin/true
	[ "$status" = 3 ]
	expect_one_line err
	# shellcheck disable=SC2016
	expect_status 2 env -u BLINK_KEY "$BIN/blinksh" -- /bin/true 2>err
}

# daemon_refused ADDRESS WHY: status 4, and this line
daemon_refused()
{
	expect_status 4 timeout 120 "$BIN/blinkd" --listen="$1" --foreground \
		2>err
	echo "blinkd: --listen: $1: $2" | expect_same - err || fail "$(cat err)"
}

case_listen()
{
	daemon_refused "127.0.0.2:$PORT" \
		'another program, maybe blinkd, listens there'
	daemon_refused 192.0.2.1:7300 'not an address of this machine'
}

case_default_port()
{
	local port

	port=$(sed -n 's/^#define ADDRESS_PORT_DEFAULT //p' \
		"$REPO/src/net/address.h")
	"$BIN/blinkd" --help >out
	expect_match "port ${port}[;)]" out
	"$BIN/blinksh" --help >out
	expect_match "port ${port}[;)]" out
}

case_background()
{
	local address=127.0.0.98:$PORT pid

	timeout 120 "$BIN/blinkd" --listen="$address" >said 2>err </dev/null
	expect_empty err
	pid=$(sed -n "s/^blinkd: listening on $address, process //p" said)
	[[ $pid =~ ^[0-9]+$ && $(wc -l <said) = 1 ]] || fail "$(cat said)"
	# shellcheck disable=SC2064 # now
	at_end "kill $pid"
	[ "$(cat "/proc/$pid/comm")" = blinkd ]
	sh_run -w "$address" ping
	[ "$status" = 0 ]
}

# It serves though nobody is left to read its line.
case_line_unread()
{
	local address=127.0.0.98:$PORT pid reader writer

	mkfifo line
	exec {reader}<>line
	exec {writer}>line {reader}<&-
	"$BIN/blinkd" --foreground --listen="$address" >&"$writer" 2>err \
		</dev/null {writer}>&- &
	pid=$!
	# shellcheck disable=SC2064 # now
	at_end "kill $pid"
	exec {writer}>&-
	until grep -q . err; do
		kill -0 "$pid" || fail "it has ended"
		sleep 0.01
	done
	expect_match '^blinkd: standard output: Broken pipe$' err
	sh_run -w "$address" ping
	[ "$status" = 0 ]
}

case_usage()
{
	local line

	while read -r line; do
		# shellcheck disable=SC2086
		sh_run $line
		[ "$status" = 2 ] || fail "$line: exit status $status"
		expect_one_line err
	done <<'LINES'
--
-- true
nonsense
ping pong
cancel
cancel 12
--timeout=0 -- /bin/true
--timeout=1.2345 -- /bin/true
--lease=-1 -- /bin/true
--repeat=0 -- /bin/true
LINES
	sh_run -- /bin/echo "$(printf '%01200d' 0)"
	[ "$status" = 2 ]
	sh_run -- true
	echo 'blinksh: true: not an absolute path, such as /bin/true: no PATH is searched' |
		expect_same - err
	sh_run --help
	[ "$status" = 0 ]
	expect_match '^Usage: blinksh' out
	sh_run --version
	expect_match '^blinksh ' out
	expect_one_line out
}

case_ping_and_status()
{
	sh_run ping
	[ "$status" = 0 ] && [ "$(wc -l <out)" = 4 ]
	sh_run --lost-after=0.4 -w "${nodes[0]},127.0.0.250:1" ping
	[ "$status" = 127 ]
	expect_match '127.0.0.250:1: lost' err
	sh_run --json status
	python3 -c 'import json
for node in json.load(open("out"))["nodes"]:
    assert node["answered"] and node["jobs_started"] > 0, node'
}

case_cancel()
{
	local job mark

	mark 98763
	"$BIN/blinksh" "${PATIENT[@]}" -v -- /bin/sleep "$mark" 2>launch &
	wait_until is_running "^/bin/sleep $mark\$"
	wait_until grep -q 'blinksh: job' launch
	job=$(sed -n 's/^blinksh: job //p' launch)
	sh_run cancel "$job"
	[ "$status" = 0 ]
	nobody_has "^/bin/sleep $mark\$"
	await $!
	[ "$status" = 143 ]
	sh_run cancel 00000000000000000000000000000000
	[ "$(grep -c unknown out)" = 4 ]
	sh_run -v -w "${nodes[0]}" -- /bin/true
	job=$(sed -n 's/^blinksh: job //p' err)
	sh_run -w "${nodes[0]}" --repeat=130 -- /bin/true
	sh_run -w "${nodes[0]}" cancel "$job"
	[ "$status" = 0 ]
	expect_match ': forgotten$' out
}

case_interrupt()
{
	local mark

	mark 98764
	(trap - INT && exec "$BIN/blinksh" "${PATIENT[@]}" -- \
		/bin/sleep "$mark") 2>err &
	wait_until is_running "^/bin/sleep $mark\$"
	kill -TERM $!
	await $!
	[ "$status" = 143 ]
	nobody_has "^/bin/sleep $mark\$"
	expect_match ', 4 cancelled, 0 lost' err
}

# A terminal that is closed, or ^\; but nohup(1) goes on.
case_hangup()
{
	local mark signal

	for signal in HUP QUIT; do
		mark 9876$((4 + ${#signal}))
		(trap - QUIT && exec "$BIN/blinksh" "${PATIENT[@]}" -- \
			/bin/sleep "$mark") 2>err &
		wait_until is_running "^/bin/sleep $mark\$"
		kill -$signal $!
		await $!
		[ "$status" = $((128 + $(kill -l $signal))) ]
		nobody_has "^/bin/sleep $mark\$"
		expect_match ', 4 cancelled, 0 lost' err
	done
	(trap '' HUP && exec "$BIN/blinksh" "${PATIENT[@]}" -w "${nodes[0]}" -- \
		/bin/sh -c "cd '$PWD'; : >begun
			until [ -e end ]; do sleep 0.02; done; exit 7") 2>err &
	wait_until test -e begun
	kill -HUP $!
	: >end
	await $!
	[ "$status" = 7 ]
}

# run_on_all COMMAND: each of the four daemons has begun it
run_on_all()
{
	[ "$(pgrep -c -f -- "^$1\$")" = 4 ]
}

# Daemons that are stopped do not answer between the two signals.  A command that
# was not yet sent to one of them would be cancelled at once.
case_interrupt_twice()
{
	local mark pid i

	mark 98770
	"$BIN/blinksh" --lost-after=60 --lease=20 -- /bin/sleep "$mark" 2>err &
	pid=$!
	wait_until run_on_all "/bin/sleep $mark"
	for i in 1 2 3 4; do
		kill -STOP "$(daemon_pid $i)"
	done
	kill -TERM $pid
	kill -HUP $pid
	await $pid
	for i in 1 2 3 4; do
		kill -CONT "$(daemon_pid $i)"
	done
	expect_match "^blinksh: 127.0.0.\[2-5\]:$PORT: left to the daemon, `
		`which ends it within 20.0 s" err
	! grep 'whole 0 ns' err >&2 || fail 'there is a time'
}

case_repeat()
{
	sh_run --repeat=50 --json -- /bin/true
	[ "$status" = 0 ]
	python3 -c 'import json
assert len(json.load(open("out"))["samples_whole_ns"]) == 50'
	sh_run --repeat=50 -- /bin/true
	expect_match '^blinksh: 50 runs: whole .* median' err
}

# No name of DNS, for which no server is asked: a label has 63 characters at most
LONG=$(printf "x%070d" 0)x
readonly LONG

# without_dns files|dead ARGUMENT...: blinksh in namespaces where names are in files
# only, or at a name server that does not answer
without_dns()
{
	local kind=$1 apart=(--mount --map-root-user)
	shift

	echo 'hosts: files' >nsswitch
	if [ "$kind" = dead ]; then
		echo 'hosts: files dns' >nsswitch
		apart+=(--net)
	fi
	printf '%s\n' 'nameserver 127.0.0.1' 'options timeout:1 attempts:1' \
		>resolv
	status=0
	# shellcheck disable=SC2016 # for the other shell
	unshare "${apart[@]}" bash -c '
		for name in nsswitch resolv; do
			[ ! -e /etc/$name.conf ] ||
				mount --bind $name /etc/$name.conf || exit 9
		done
		exec "$@"' - "$BIN/blinksh" "$@" >out 2>err || status=$?
}

case_hosts_unknown()
{
	local hosts=${LONG}1,${nodes[0]},${LONG}2,${LONG}3,${nodes[1]}

	# All of them are named, and nothing is begun.
	without_dns files "${PATIENT[@]}" -w "$hosts" -- /bin/echo begun
	[ "$status" = 4 ]
	expect_empty out
	echo "blinksh: ${LONG}[1-3]: no such host (3 of 5)" | expect_same - err
	without_dns files "${PATIENT[@]}" -w "$LONG" -- /bin/echo begun
	echo "blinksh: ${LONG}: no such host" | expect_same - err
	# Where the others go on, these are lost.
	without_dns files "${PATIENT[@]}" -w "$hosts" --keep-going -q -N -- \
		/bin/echo 'done'
	[ "$status" = 127 ]
	expect_out 'done' 'done'
	[ "$(grep -c ': lost: no such host$' err)" -ge 1 ]
	for word in ping status; do
		without_dns files "${PATIENT[@]}" -w "$hosts" $word
		[ "$status" = 127 ]
		[ "$(wc -l <out)" = 2 ]
		expect_match "${LONG}.*: lost: no such host" err
	done
	without_dns files "${PATIENT[@]}" -w "$hosts" --json --keep-going -- \
		/bin/true
	expect_node 0 state lost
	expect_node 1 state exited
}

case_name_server_dead()
{
	without_dns dead "${PATIENT[@]}" -w nosuch1,nosuch2 -- /bin/true
	[ "$status" = 4 ]
	echo 'blinksh: nosuch1: the name server does not answer' |
		expect_same - err
	without_dns dead "${PATIENT[@]}" -w nosuch1,nosuch2 ping
	[ "$status" = 127 ]
	expect_match '^blinksh: nosuch\[1-2\]: lost: the name server does not answer' err
}

# A user calls tests/cluster by hand, where each daemon is reaped at once.
case_cluster_down()
{
	unset BLINK_KEY WCOLL
	# shellcheck disable=SC2016 # for the other shell
	BLINK_CLUSTER=$PWD/cluster unshare --pid --mount-proc --fork bash -c \
		'"$0" up 2 >out 2>err && "$0" down >out 2>err' "$TESTS/cluster"
	expect_empty out
	expect_empty err
}

# A machine of few packages has no ss.
case_cluster_port_taken()
{
	local taken

	mkdir bin
	ln -sf /bin/* /usr/bin/* bin
	rm -f bin/ss
	taken=${nodes[0]##*:}
	BLINK_CLUSTER=$PWD/cluster BLINK_PORT=$taken PATH=$PWD/bin \
		"$TESTS/cluster" up 1 >/dev/null 2>err || fail "$(cat err)"
	grep -v -q ":$taken\$" cluster/hosts
	BLINK_CLUSTER=$PWD/cluster "$TESTS/cluster" down
}

for name in $(declare -F | sed -n 's/^declare -f case_//p'); do
	case $name in
	lost) check "$name" patiently "case_$name" ;;
	hosts_unknown | name_server_dead)
		check_able mount_apart "$name" "case_$name"
		;;
	cluster_down) check_able pidns "$name" "case_$name" ;;
	*) check "$name" "case_$name" ;;
	esac
done
finish
