#!/bin/bash
# check_probe.sh - blinkprobe as a whole: what it prints, and what it refuses

# shellcheck disable=SC2317 # cases are called by check
# shellcheck source=tests/programs/shell_lib.sh
. "$(dirname "$0")/shell_lib.sh"

PROBE=$BIN/blinkprobe
TESTED=("$PROBE") TESTED_AS=blinkprobe
cluster_up 3

# json EXPRESSION FILE: of the document d; prints it
json()
{
	/usr/bin/python3 -c "import json, os, sys
d = json.load(open(sys.argv[1]))
print($1)" "$2"
}

# expect_json VALUE EXPRESSION FILE
expect_json()
{
	local got

	got=$(json "$2" "$3")
	[ "$got" = "$1" ] || fail "$2 is '$got', not '$1'"
}

case_memory()
{
	local pattern

	for pattern in read write copy random random-write chase; do
		"$PROBE" memory --pattern=$pattern --area=64K --bytes=1M \
			--rounds=3 --threads=2 >out
		expect_json "memory $pattern 65536 2 1048576 3 True" \
			"d['probe'], d['pattern'], d['area_bytes'],
			d['threads'], d['thread_bytes'],
			len(d['samples_ns']), min(d['samples_ns']) > 0" out
	done
}

case_memory_smallest()
{
	"$PROBE" memory --pattern=chase --area=128 --rounds=1 --bytes=64 >out
	expect_json "1" "d['thread_accesses']" out
	"$PROBE" memory --pattern=copy --area=128 --block=64 --bytes=64 \
		--rounds=1 >out
	expect_json "64" "d['thread_bytes']" out
}

# Node 0 is there on all machines; where its pages lie, some do not tell.
case_memory_node()
{
	"$PROBE" memory --area=64K --bytes=1M --rounds=1 >out
	expect_json "None None None" \
		"d['cpu_node'], d['memory_node'], d['numa']" out
	"$PROBE" memory --area=64K --bytes=1M --rounds=1 --threads=2 \
		--cpu-node=0 --memory-node=0 >out
	expect_json "0 0 True" "d['cpu_node'], d['memory_node'],
		d['numa'] in (None, [{'node': 0, 'memory_bytes': 2 << 16}])" out
	expect_json True "sum(n['cpus'] for n in d['nodes']) ==
		len(os.sched_getaffinity(0)) and d['nodes'][0]['has_memory'] and
		all(len(n['distances']) == len(d['nodes']) for n in d['nodes'])" out
	expect_refused 2 '^--cpu-node: node 63 has no CPU' memory \
		--cpu-node=63 --area=64K
	expect_refused 2 "^--memory-node=64: not a number" memory \
		--memory-node=64
}

# The figures that any machine has.
case_codec()
{
	"$PROBE" codec --bytes=1M --block=64K --rounds=3 >out
	expect_json "codec lz4 None ascii 65500 1048000 3 3 True" \
		"d['probe'], d['codec'], d['level'], d['records'],
		d['block_bytes'], d['plain_bytes'], len(d['compress_ns']),
		len(d['decompress_ns']),
		min(d['compress_ns'] + d['decompress_ns']) > 0" out
	expect_json True "d['plain_bytes'] / 4 < d['stored_bytes'] <
		d['plain_bytes']" out
	"$PROBE" codec --bytes=1M --codec=zstd:3 --binary --rounds=1 >out
	expect_json "zstd 3 binary True" "d['codec'], d['level'], d['records'],
		d['stored_bytes'] == d['plain_bytes']" out
	# One record
	"$PROBE" codec --bytes=0 --block=128 --rounds=1 >out
	expect_json "100 100" "d['block_bytes'], d['plain_bytes']" out
}

case_spawn()
{
	local marks

	"$PROBE" spawn --rounds=5 >out
	expect_json "5" "len(d['samples_ns'])" out
	# shellcheck disable=SC2016 # for the other shell
	"$PROBE" spawn --rounds=4 -- /bin/sh -c 'echo mark >>marks; echo no' \
		>out
	marks=$(wc -l <marks)
	[ "$marks" = 4 ] || fail "started $marks times"
	expect_json "sh" "d['command'][0][-2:]" out
}

# run_json VALUE EXPRESSION WORD...: blinkprobe run prints it
run_json()
{
	local value=$1 expression=$2

	shift 2
	"$PROBE" run "$@" >out 2>err
	expect_json "$value" "$expression" out
}

case_run()
{
	run_json "run 7 None None False 0" "d['probe'], d['exit_status'],
		d['signal'], d['stopped_by'], d['timed_out'],
		d['left_processes']" --stdout=said --directory=/ -- \
		/bin/sh -c 'pwd; echo complained >&2; exit 7'
	[ "$(cat said)" = / ] || fail "said '$(cat said)'"
	[ "$(cat err)" = complained ] || fail "complained '$(cat err)'"
	expect_json "True" "d['elapsed_ns'] > 0 and d['begin_unix_ns'] > 0 and
		d['minor_faults'] > 0 and d['max_rss_bytes'] > 100000" out
	# Its name is what it was called by.
	run_json 0 "d['exit_status']" --stdout=said --argv0=head -- /bin/cat \
		/proc/self/cmdline
	expect_match '^head' said
	run_json "139 11" "d['exit_status'], d['signal']" -- \
		/bin/sh -c 'kill -SEGV $$'
}

# What descendants take counts, and a device's bytes do.
case_run_descendants()
{
	run_json "True" "d['user_ns'] + d['system_ns'] > 10000000 and
		d['max_rss_bytes'] > 60 << 20" -- /bin/sh -c \
		'(head -c 90M /dev/zero | tail -c 80M | wc -c); exit 0'
	dd if=/dev/zero of=device bs=64K count=16 2>/dev/null
	sync device
	dd if=device of=/dev/null iflag=direct bs=64K 2>/dev/null || return 0
	run_json "0 1048576" "d['exit_status'], d['read_bytes']" -- /bin/sh -c \
		'(dd if=device of=/dev/null iflag=direct bs=64K; :) 2>/dev/null'
}

case_run_left()
{
	# shellcheck disable=SC2016 # for the other shell
	run_json "0 3" "d['exit_status'], d['left_processes']" -- /bin/bash -c '
		exec 3> >(exec tail -f /dev/null)
		mkfifo first second
		(echo $BASHPID >first; exec sleep 1000) &
		setsid /bin/sh -c "echo \$\$ >second; exec sleep 1000" &
		cat first second >pids'
	[ "$(wc -l <pids)" = 2 ] || fail "did not start two"
	# shellcheck disable=SC2046 # each is a word
	kill -0 $(cat pids) 2>/dev/null && fail "they are left"
	return 0
}

case_run_stopped()
{
	run_json "137 $(kill -l TSTP)" "d['exit_status'], d['stopped_by']" -- \
		/bin/sh -c 'kill -TSTP $$'
}

case_run_timeout()
{
	run_json "143 True" "d['exit_status'], d['timed_out']" \
		--timeout-ms=50 -- /bin/sleep 1000
	run_json "137 True" "d['exit_status'], d['timed_out']" \
		--timeout-ms=500 -- /bin/bash -c "trap '' TERM
			while :; do sleep 1000; done"
}

# Which signal the process gets; the program ends by SIGTERM.
case_run_signals()
{
	local number

	for number in INT HUP TERM; do
		mkfifo begun.$number
		(
			trap - INT
			exec "$PROBE" run -- /bin/sh -c \
				"echo >begun.$number; exec sleep 1000" >out
		) &
		cat begun.$number >/dev/null
		kill -$number $!
		wait $!
		expect_json "143 False" "d['exit_status'], d['timed_out']" out
	done
}

# The shell between has ended before the program that it has started.
case_run_parent()
{
	local pid

	mkfifo begun
	"$BASH" -c "'$PROBE' run --parent=\$\$ -- /bin/sh -c \
		'echo \$\$ >begun; exec sleep 1000' >out & wait" &
	read -r pid <begun
	kill -KILL $!
	wait_until process_ended "$pid"
	expect_refused 1 "--parent: has ended" run --parent=1 -- /bin/true
}

# These are counted on any machine.
case_run_counters()
{
	local events=page_faults,task_clock_ns

	run_json "True True" "abs(d['counters']['page_faults'] -
		d['minor_faults'] - d['major_faults']) < 50,
		0 < d['counters']['task_clock_ns'] < 2 * d['user_ns'] +
		2 * d['system_ns'] + 1e8" --count=$events -- /bin/bash -c \
		'for i in {1..20}; do /bin/true; done'
	expect_json "None" "d['not_counted']" out
	run_json "True" "(d['counters']['cycles'] is None) ==
		(d['not_counted'] is not None)" --count=cycles -- /bin/true
	expect_refused 2 "--count=cycle: not each once of instructions, cycles" \
		run --count=cycle -- /bin/true
}

case_network()
{
	sh_run -- "$PROBE" network --rounds=10 --bytes=1M
	[ "$status" = 0 ] || fail "status $status: $(cat err)"
	grep -F "${nodes[0]}: " out | sed "s/^[^ ]* //" >first
	expect_json "[1, 2]" "[p['rank'] for p in d['peers']]" first
	expect_json "True" "all(len(p['round_trip_ns']) == 10 and
		min(p['round_trip_ns']) > 0 for p in d['peers'])" first
	expect_json "True" "all(0 < p['arrived_bytes'] <= (1 << 20) + 65507 and
		p['arrived_ns'] > 0 for p in d['peers'])" first
	expect_json "[(1048576, True, None), (1048576, True, None)]" \
		"[(p['tcp_arrived_bytes'], p['tcp_arrived_ns'] > 0, p['tcp_why'])
		for p in d['peers']]" first
}

# on_loopback RANK: one of two
on_loopback()
{
	"$PROBE" network --nodes=127.0.0.1,127.0.0.2 --key-file=key \
		--rounds=1 --bytes=1M --rank="$1"
}

# Rank 1 has no listener, since something else has its port: rank 0 has the
# figures of UDP.
case_network_without_tcp()
{
	local holder

	"$BIN/blinksh" keygen key
	mkfifo bound
	python3 -c 'import signal, socket
taken = socket.socket()
taken.bind(("127.0.0.2", 32001))
print(flush=True)
signal.pause()' >bound &
	holder=$!
	read -r <bound
	on_loopback 1 >out.1 &
	on_loopback 0 >out
	wait $!
	kill "$holder"
	expect_json "[(True, None, None, 'Connection refused')]" \
		"[(p['arrived_bytes'] > 0, p['tcp_arrived_bytes'],
		p['tcp_arrived_ns'], p['tcp_why']) for p in d['peers']]" out
}

# A connection that does not begin as rank 0's is closed.
case_network_tcp_stranger()
{
	"$BIN/blinksh" keygen key
	on_loopback 1 >out.1 &
	wait_until is_turned_away
	on_loopback 0 >out
	wait $!
	expect_json "[(1048576, None)]" \
		"[(p['tcp_arrived_bytes'], p['tcp_why']) for p in d['peers']]" out
}

is_turned_away()
{
	(
		exec {stranger}<>/dev/tcp/127.0.0.2/32001
		printf '%0100d' 0 >&"$stranger"
		! read -r <&"$stranger"
	) 2>/dev/null
}

case_network_silent()
{
	sh_run -w "${nodes[0]}" -- "$PROBE" network --rounds=2 --deadline=1 \
		"--nodes=${nodes[0]},${nodes[1]}"
	[ "$status" != 0 ] || fail "one rank alone of two"
	sh_run --keep-going -- "$PROBE" network --rounds=2 --deadline=1 \
		"--port=1%r000"
	[ "$status" = 4 ] || fail "status $status"
	expect_match "rank 1 does not answer" err
}

# A rank of another job, that has another secret, is a stranger.
case_network_stranger()
{
	"$PROBE" network --nodes=127.0.0.1,127.0.0.2 --rank=1 --job=a \
		--deadline=1 >out.1 2>err.1 &
	expect_status 4 "$PROBE" network --nodes=127.0.0.1,127.0.0.2 --rank=0 \
		--job=b --deadline=1 >out 2>err
	expect_match "does not answer" err
	expect_status 4 wait $!
	expect_match "is silent" err.1
}

# No figure but those that any machine has: they add up, CPU by CPU.
case_noise()
{
	local cpus last

	cpus=$(python3 -c 'import os; print(sorted(os.sched_getaffinity(0)))')
	last=$(python3 -c "print(${cpus}[-1])")
	"$PROBE" noise --time-ms=5 --threshold-ns=1000 >out
	expect_json "noise 5000000 1000 [10000, 100000, 1000000, 10000000, None]" \
		"d['probe'], d['time_ns'], d['threshold_ns'],
		d['histogram_below_ns']" out
	expect_json "$cpus" "[c['cpu'] for c in d['cpus']]" out
	expect_json "True" "all(c['watched_ns'] >= 5000000 and
		c['readings'] > 0 and sum(c['histogram']) == c['count'] and
		0 <= c['longest_ns'] <= c['lost_ns'] <= c['watched_ns'] and
		abs(c['lost_percent'] - 100 * c['lost_ns'] / c['watched_ns'])
		< 1e-4 for c in d['cpus'])" out
	expect_json "True" "all(c[k] is None or c[k] >= 0 for c in d['cpus']
		for k in ('steal_ns', 'frequency_khz'))" out
	expect_json "True" "{'balloon_inflated_pages', 'memory_change_bytes',
		'balloon_deflated_pages'} < set(d)" out
	# Each reading of a clock is apart from the one before.
	"$PROBE" noise --time-ms=2 --threshold-ns=0 >out
	expect_json "True" "all(c['count'] > 0 and c['lost_percent'] == 100
		for c in d['cpus'])" out
	taskset -c "$last" "$PROBE" noise --time-ms=1 >out
	expect_json "[$last]" "[c['cpu'] for c in d['cpus']]" out
	expect_refused 2 "--time-ms=0: not a number from 1" noise --time-ms=0
	expect_refused 2 "--time-ms=60001: not a number from" noise \
		--time-ms=60001
	expect_refused 2 "x: one word too many for noise" noise x
}

# Where threads may not be bound, no CPU gets the noise of another.
case_noise_not_bound()
{
	local tries status

	# Each thread may be on its CPU by chance, but not each time.
	for ((tries = 0; tries < 100; tries++)); do
		status=0
		strace -f -qq -o trace -e trace=sched_setaffinity \
			-e inject=sched_setaffinity:error=EPERM \
			"$PROBE" noise --time-ms=2 >out 2>err || status=$?
		[ $status = 0 ] || break
	done
	[ $status = 5 ] || fail "status $status: $(cat err)"
	expect_empty out
	expect_one_line err
	expect_match '^blinkprobe: noise: the thread that was to watch CPU ' err
}

case_refusals()
{
	expect_refused 2 "PROBE: is missing"
	expect_refused 2 "disk: not memory, codec, spawn, run, network, noise, simulate or" \
		disk
	expect_refused 2 "not lz4, zstd or zstd:LEVEL" codec --codec=auto
	expect_refused 2 "not lz4, zstd or zstd:LEVEL" codec --codec=zstd:20
	expect_refused 2 "^--block: not from 128 to 64M" codec --block=64
	expect_refused 2 "^--block: not from 128 to 64M" codec --block=128M
	expect_refused 5 "records of" codec --bytes=1T
	expect_refused 2 "not a power of two" memory --area=100K
	expect_refused 2 "not read, write" memory --pattern=sideways
	expect_refused 2 "smaller than two blocks" memory --area=64
	expect_refused 2 "by lines of 64" memory --pattern=chase --block=128
	expect_refused 2 "not a number from 1" memory --threads=0
	expect_refused 2 "x: one word too many for memory" memory x
	expect_refused 3 "/nowhere: cannot start" spawn -- /nowhere
	expect_refused 1 "ended with status 1" spawn -- /bin/false
	expect_refused 2 "PROGRAM: is missing" run
	expect_refused 3 "/nowhere: cannot start: No such file" run /nowhere
	expect_refused 3 "/nowhere: No such file" run --directory=/nowhere true
	expect_refused 3 "/nowhere/x: No such file" run --stdout=/nowhere/x true
	expect_refused 3 "cannot start: Permission denied" run /etc/passwd
	: >empty
	chmod +x empty
	expect_refused 3 "cannot start: Exec format error" run ./empty
	expect_refused 2 "." network
	expect_refused 5 "areas of" memory --area=1T --threads=256
	"$PROBE" nothing >out
	expect_empty out
}

check probe_memory case_memory
check probe_memory_smallest case_memory_smallest
check probe_memory_node case_memory_node
check probe_codec case_codec
check probe_spawn case_spawn
check probe_run case_run
check probe_run_descendants case_run_descendants
check probe_run_left case_run_left
check probe_run_stopped case_run_stopped
check probe_run_timeout case_run_timeout
check probe_run_signals case_run_signals
check probe_run_parent case_run_parent
if [ "$(id -u)" = 0 ] ||
	[ "$(cat /proc/sys/kernel/perf_event_paranoid)" -le 2 ]; then
	check probe_run_counters case_run_counters
else
	skip probe_run_counters "perf_event_paranoid is above 2"
fi
check probe_network case_network
check probe_network_without_tcp case_network_without_tcp
check probe_network_tcp_stranger case_network_tcp_stranger
check probe_network_silent case_network_silent
check probe_network_stranger case_network_stranger
check probe_noise case_noise
if [ "$(nproc)" = 1 ]; then
	skip probe_noise_not_bound "one CPU"
elif [ "$SANITIZED" ]; then
	skip probe_noise_not_bound "strace and sanitizers"
else
	check probe_noise_not_bound case_noise_not_bound
fi
check probe_refusals case_refusals
finish
