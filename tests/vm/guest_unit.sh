#!/bin/bash
# guest_unit.sh - blinkd.service under systemd, in the machine of check.sh unit
#
# Makes the key and says where to listen, as the unit's header tells, starts the
# unit, and is its client.  PREFIX is /usr, so that every program of Debian's may
# be run: here they stand for a node's programs that do their worst.  Each case
# marks its processes by an argument of sleep that no other has.
#
# The machine is slow and may stand still at any time: leases and time-outs are
# long, and none is a measure.
# shellcheck disable=SC2016 # $0 and others are for the node's shell

export PATH=/usr/bin:/usr/sbin
exec </dev/null >/dev/ttyS0 2>&1
echo
echo "=== guest: Linux $(uname -r), $(systemctl --version | sed -n 1p)"

# shellcheck source=tests/programs/tool_lib.sh
. /blinksort/tests/programs/tool_lib.sh

readonly NODE=127.0.0.1:7300
readonly CGROUP=/sys/fs/cgroup/system.slice/blinkd.service
export BLINK_KEY=/etc/blinkd.key

# One of each kind: a child, one in a session of its own, one that has forked
# twice besides, one that has also emptied its environment and ignores SIGTERM,
# and the job's own process.
readonly FAMILY='sleep $0 &
setsid sleep $0 &
setsid bash -c "(sleep $0 &) &" &
(setsid env -i /usr/bin/bash -c "trap \"\" TERM; (exec sleep $0) & exit" &) &
exec sleep $0'
readonly FAMILY_COUNT=5
readonly BOMB='bomb() { bomb | bomb & }; bomb; exec sleep $0'

# --- what the cases share ----------------------------------------------------

readonly CLIENT=(blinksh -w "$NODE" --lost-after=100 --lease=600 -N -q)

# sh OPTION... -- COMMAND...: on the node
sh()
{
	"${CLIENT[@]}" "$@"
}

# sh_family MARK: in the background, as $client; which job it is, in ./said
sh_family()
{
	blinksh -w "$NODE" --lost-after=30 --lease=600 -N -q -v -- \
		/usr/bin/bash -c "$FAMILY" "$1" 2>said &
	client=$!
	wait_until has "$FAMILY_COUNT" "$1"
}

expect_none()
{
	has 0 "$1" || fail "there are yet: $(pgrep -a -f "^sleep $1")"
}

# wait_until COMMAND...: at most some minutes
wait_until()
{
	local tries

	for ((tries = 0; tries < 1000; tries++)); do
		! "$@" >/dev/null 2>&1 || return 0
		sleep 0.1
	done
	fail "it has not come about: $*"
}

# of_unit PROPERTY
of_unit()
{
	systemctl show --value --property="$1" blinkd
}

# has COUNT MARK: so many sleep
has()
{
	[ "$(pgrep -c -f "^sleep $2")" = "$1" ]
}

answers()
{
	blinksh -w "$NODE" --lost-after=5 ping
}

restart()
{
	systemctl daemon-reload
	systemctl restart blinkd
	wait_until answers
}

# All of the unit, one line each.
processes()
{
	find "$CGROUP" -name cgroup.procs -exec cat {} +
}

# The names of its processes other than the daemon.
others()
{
	local pid

	processes | while read -r pid; do
		cat "/proc/$pid/comm" 2>/dev/null || true
	done | grep -v -x blinkd || true
}

expect_daemon_alone()
{
	local names

	names=$(others)
	[ -z "$names" ] || fail "of the unit there are: $names"
	[ "$(processes | wc -l)" = 1 ]
}

has_restarted()
{
	[ "$(of_unit NRestarts)" = "$1" ] && systemctl -q is-active blinkd &&
		answers
}

# --- cases -------------------------------------------------------------------

case_active()
{
	blinksh keygen /etc/blinkd.key
	echo "BLINKD_LISTEN=$NODE" >/etc/default/blinkd
	systemctl enable --now blinkd || systemctl status blinkd
	systemctl -q is-active blinkd
	wait_until answers
	[ "$(of_unit NRestarts)" = 0 ]
}

case_ping()
{
	sh ping >out
	expect_match "^${NODE%:*}: [0-9.]+ (us|ms)\$" out
}

case_command()
{
	sh -- /usr/bin/echo %r of %n >out
	[ "$(cat out)" = "0 of 1" ] || fail "$(cat out)"
	expect_status 7 sh -- /usr/bin/bash -c 'exit 7'
	expect_status 125 sh -- /blinksort/tests/vm/guest_unit.sh 2>err
	expect_match 'refused' err
}

# Of lib/blinksort, by way of a link in bin.
case_script()
{
	sh -- /usr/bin/blinktune --help >out
	expect_match '^Usage: blinktune' out
}

case_user()
{
	local user ours

	sh -- /usr/bin/cat /proc/self/status >status
	user=$(awk '/^Uid:/ { print $2 }' status)
	ours=$(awk -F : '$1 == "_blinkd" { print $3 }' /etc/passwd)
	echo "  _blinkd of sysusers.d: ${ours:-none}, of the job: $user"
	if [ "$ours" ]; then
		[ "$user" = "$ours" ] || fail "user $user"
	elif [ "$user" -lt 61184 ] || [ "$user" -gt 65519 ]; then
		fail "user $user"
	fi
	expect_match "^Uid:	$user	$user	$user	$user\$" status
	expect_match "^Gid:	$user	$user	$user	$user\$" status
	expect_match '^NoNewPrivs:	1$' status
	expect_match '^Seccomp:	2$' status
	[ "$(grep -c '^Cap...:	0000000000000000$' status)" = 5 ] ||
		fail "$(grep '^Cap' status)"
	# Nor by way of a namespace, in which any user may have all.
	sh -- /usr/bin/bash -c '! unshare --user --map-root-user true' 2>err
}

# Nothing can be written but what is its own and goes with it: /tmp, and what
# programs share memory by.
case_files()
{
	local folder

	# It says what it may not look into, and fails for it.
	sh -- /usr/bin/find / -path /proc -prune -o -path /sys -prune -o \
		-type d -writable -print >all 2>err || true
	sort all >out
	printf '%s\n' /dev/mqueue /dev/shm /tmp /var/tmp >want
	expect_same want out || fail "$(cat out)"
	sh -- /usr/bin/bash -c '! echo 1 >/proc/sys/vm/swappiness' 2>err
	sh -- /usr/bin/bash -c '! echo 1 >/sys/kernel/mm/ksm/run' 2>err
	for folder in /tmp /var/tmp /dev/shm; do
		sh -- /usr/bin/touch "$folder/mine"
		sh -- /usr/bin/test -f "$folder/mine"
		expect_gone "$folder/mine"
	done
}

# As the header of the unit says; and the sort does its work in there.
case_drop_in()
{
	local drop_in=/etc/systemd/system/blinkd.service.d

	echo 'sorter:x:1000:1000::/:/bin/false' >>/etc/passwd
	echo 'sorter:x:1000:' >>/etc/group
	chown sorter /data
	mkdir "$drop_in"
	printf '[Service]\nUser=sorter\nReadWritePaths=/data\n' \
		>"$drop_in"/data.conf
	restart
	sh -- /usr/bin/blinkgen -a 20000 /data/in
	sh -- /usr/bin/blinksort /data/in -o /data/out
	sh -- /usr/bin/blinksort --cluster /data/in -o /data/out2
	blinkval /data/out
	expect_same /data/out /data/out2
	[ "$(stat -c %U:%a /data/out)" = sorter:600 ]
	rm -r "$drop_in"
	restart
	sh -- /usr/bin/bash -c '! : >/data/new' 2>err
}

case_cgroup()
{
	local first=98701.5 second=98702.5 group

	for group in $first $second; do
		"${CLIENT[@]}" -- /usr/bin/bash -c 'exec sleep $0' "$group" &
		wait_until has 1 "$group"
	done
	for group in $(pgrep -f "^sleep ($first|$second)"); do
		sed -n 's/^0:://p' "/proc/$group/cgroup"
	done | sort -u >groups
	[ "$(grep -c -E "^${CGROUP#/sys/fs/cgroup}/blinkd-$NODE/[0-9]+\$" \
		groups)" = 2 ] || fail "$(cat groups)"
	while read -r group; do
		[ "$(cat "/sys/fs/cgroup$group/pids.max")" = 512 ]
	done <groups
	kill %1 %2
	wait || true
	expect_daemon_alone
}

# A program starts in its cgroup; to move it there takes 10 ms.
case_clone3()
{
	local daemon strace

	daemon=$(of_unit MainPID)
	strace -f -qq -e trace=clone,clone3 -o trace -p "$daemon" &
	strace=$!
	wait_until grep -q '^TracerPid:.*[1-9]' "/proc/$daemon/status"
	sh -- /usr/bin/true
	kill -INT "$strace"
	wait "$strace" || true
	expect_match "^$daemon .*clone3.*CLONE_INTO_CGROUP" trace
	! grep "^$daemon .*clone(" trace >&2 || fail "it fell back to clone()"
}

case_left_behind()
{
	local mark=98703.5

	sh -- /usr/bin/bash -c "${FAMILY%exec*}
		until [ \"\$(pgrep -c -f \"^sleep \$0\")\" = 4 ]; do :; done" \
		"$mark"
	expect_none "$mark"
	expect_daemon_alone
}

case_cancel()
{
	local mark=98704.5 client

	sh_family "$mark"
	sh cancel "$(grep -o -E '[0-9a-f]{32}' said)"
	expect_none "$mark"
	wait "$client" || true
	expect_daemon_alone
}

# bomb_goes_off: it has as many processes as it may have, and no more
bomb_goes_off()
{
	grep -q 'max [1-9]' "$CGROUP"/blinkd-*/*/pids.events
}

case_bomb_timeout()
{
	sh --timeout=60 -- /usr/bin/bash -c "$BOMB" 98705.5 >out 2>err &
	wait_until bomb_goes_off
	[ "$(processes | wc -l)" -le 513 ] || fail "$(processes | wc -l)"
	sh ping >out
	expect_status 124 wait $!
	expect_daemon_alone
}

case_bomb_cancel()
{
	sh -v -- /usr/bin/bash -c "$BOMB" 98706.5 >out 2>said &
	wait_until bomb_goes_off
	sh cancel "$(grep -o -E '[0-9a-f]{32}' said)"
	expect_daemon_alone
	wait $! || true
}

case_daemon_killed()
{
	local mark=98707.5 restarts status=0 client

	restarts=$(of_unit NRestarts)
	sh_family "$mark"
	kill -KILL "$(of_unit MainPID)"
	wait_until has_restarted $((restarts + 1))
	expect_none "$mark"
	expect_daemon_alone
	sh status >out
	expect_match '0 running, 0 started' out
	wait "$client" || status=$?
	[ "$status" = 127 ] || fail "the client's status: $status"
	sh -- /usr/bin/true
}

# Root's, and known to the daemon only: nothing that a command is given has it or
# tells of it, and it cannot look into the daemon.
case_key()
{
	local key

	key=$(head -c 16 /etc/blinkd.key)
	sh -- /usr/bin/bash -c 'cat /proc/self/{environ,cmdline,status}
		ls -l /proc/self/fd' | tr '\0' '\n' >said
	expect_match BLINK_SECRET_FD said
	if grep -i -E "credential|blinkd\.key|$key" said >&2; then
		fail "it can be found"
	fi
	sh -- /usr/bin/bash -c '! cat /etc/blinkd.key' 2>err
	sh -- /usr/bin/bash -c 'for file in mem environ maps fd/0 fd/3; do
			(exec </proc/$PPID/$file) && exit 1
		done; (exec </proc/$$/environ)' 2>err
	sh -- /usr/bin/bash -c '! ls /run/credentials/*' 2>err
	[ "$(readlink "/proc/$(of_unit MainPID)/fd/0")" = /dev/null ]
}

case_security()
{
	systemd-analyze --no-pager security blinkd >out
	sed -n 's/.*Overall/Overall/p' out
	systemd-analyze --no-pager --threshold=21 security blinkd >out
}

case_stop()
{
	local mark=98708.5 status=0 client

	sh_family "$mark"
	systemctl stop blinkd
	expect_none "$mark"
	wait "$client" || status=$?
	# Told, not left to wonder.
	[ "$status" = 143 ] || fail "the client's status: $status"
	[ "$(of_unit ActiveState) $(of_unit Result)" = "inactive success" ]
	expect_gone "$CGROUP"
	expect_gone "$(echo /tmp/systemd-private-*-blinkd.service-*)"
}

end()
{
	[ $checks_failed = 0 ] || journalctl --no-pager -u blinkd | tail -n 40
	echo "up for $(cut -d ' ' -f 1 /proc/uptime) s"
	echo "=== done"
	exit
}

# Open to all but for what the unit does.
mkdir -m 1777 /open /usr/open /etc/open /run/open
mkdir -m 700 /data
check unit_active case_active
# Without it all others would wait in vain.
[ $checks_failed = 0 ] || end
check unit_ping case_ping
check unit_command case_command
check unit_script case_script
check unit_user case_user
check unit_files case_files
check unit_drop_in case_drop_in
check unit_cgroup case_cgroup
check unit_clone3 case_clone3
check unit_left_behind case_left_behind
check unit_cancel case_cancel
check unit_bomb_timeout case_bomb_timeout
check unit_bomb_cancel case_bomb_cancel
check unit_daemon_killed case_daemon_killed
check unit_key case_key
check unit_security case_security
check unit_stop case_stop
end
