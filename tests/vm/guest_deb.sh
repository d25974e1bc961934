#!/bin/bash
# guest_deb.sh - Debian's packages: install, use, upgrade, purge
#
# In the fresh Debian 12 that tests/fresh.sh makes, by its way "deb" in a chroot,
# and in the machine of check.sh deb under systemd.  /debs has the packages, and
# /debs/old the same with a lower version; what they depend on is installed.  All
# programs here are of the packages, but for the one that times the demo's runs.

# shellcheck disable=SC2317 # cases are called by check
export PATH=/usr/sbin:/usr/bin:/sbin:/bin DEBIAN_FRONTEND=noninteractive
cd "$(dirname "$0")" || exit 1
if [ -d /run/systemd/system ]; then
	readonly SYSTEMD=1
	exec </dev/null >/dev/ttyS0 2>&1
	echo
	echo "=== guest: Linux $(uname -r), $(systemctl --version | sed -n 1p)"
else
	readonly SYSTEMD=
fi

# shellcheck source=tests/programs/tool_lib.sh
. ../programs/tool_lib.sh

readonly NODE=127.0.0.1:7300
readonly KEY=/etc/blinkd.key
readonly LISTS=$SCRATCH/lists
export BLINK_KEY=$KEY
mkdir "$LISTS"

# --- what the cases share ----------------------------------------------------

# all_files: one line each, with what it is, and the contents of what configures.
# What dpkg and apt keep of their own, logs, and copies of /etc/passwd are not left
# by a package.
all_files()
{
	find / -xdev \( -path /proc -o -path /sys -o -path /dev -o -path /run \
		-o -path /var/lib/dpkg -o -path /var/lib/apt -o -path /var/cache \
		-o -path /var/log -o -path "$SCRATCH" \) -prune -o \
		! -path '/etc/*-' ! -name .pwd.lock -printf '%p %y %m %u %l\n' |
		sort
	find /etc -type f ! -name '*-' -exec md5sum {} + | sort
}

install_debs()
{
	apt-get -q -y -o Dpkg::Use-Pty=0 --no-install-recommends install "$@" \
		>apt 2>&1 || fail "status $?: $(tail -n 5 apt)"
}

# version_of PACKAGE: prints nothing if it is not installed
version_of()
{
	dpkg-query -W -f '${db:Status-Status} ${Version}' "$1" 2>/dev/null |
		sed -n 's/^installed //p'
}

sh()
{
	blinksh -w "$NODE" --lost-after=100 --lease=600 -N -q "$@"
}

answers()
{
	blinksh -w "$NODE" --lost-after=5 ping >/dev/null
}

runs_a_job()
{
	[[ $(sh status) == *'1 running'* ]]
}

# daemon: the number of its process
daemon()
{
	pgrep -x blinkd
}

# --- cases -------------------------------------------------------------------

case_install()
{
	install_debs /debs/old/blinksort_*.deb
	[ "$(version_of blinksort)" = "$(dpkg-deb -f /debs/old/blinksort_*.deb \
		Version)" ]
	expect_match '^_blinkd:' /etc/passwd
	expect_match 'deb-systemd-helper .*enable .blinkd.service' \
		/var/lib/dpkg/info/blinksort.postinst
	! daemon || fail "blinkd runs, and nobody has said where"
	# All programs run, and none says another version.
	for program in blinksort blinkgen blinkval blinkprobe blinksh blinkd \
		blinktune blinktrial blinkreport; do
		"/usr/bin/$program" --version >said
		expect_match "^$program $(blinksort --version |
			cut -d ' ' -f 2 | sed 's/[+.]/\\&/g')\$" said
	done
}

# As the header of the unit says
case_start()
{
	blinksh keygen "$KEY"
	echo "BLINKD_LISTEN=$NODE" >>/etc/default/blinkd
	if [ "$SYSTEMD" ]; then
		systemctl enable --now blinkd
	else
		blinkd --key-file=fd:0 --listen="$NODE" <"$KEY"
	fi
	wait_until answers
}

# The daemon and its job go on; what was configured stays.
case_upgrade()
{
	local before client

	before=$(daemon)
	sh -- /usr/bin/bash -c 'until [ -e /go ]; do sleep 0.2; done
		echo survived' >said &
	client=$!
	wait_until runs_a_job
	cp /etc/default/blinkd "$KEY" .
	install_debs /debs/blinksort_*.deb
	[ "$(version_of blinksort)" = "$(dpkg-deb -f /debs/blinksort_*.deb \
		Version)" ]
	expect_same blinkd /etc/default/blinkd
	expect_same blinkd.key "$KEY"
	[ "$(daemon)" = "$before" ] || fail "the daemon was $before, is $(daemon)"
	runs_a_job || fail "the job is gone"
	touch /go
	wait "$client" || fail "the job's status: $?"
	rm /go
	expect_match '^survived$' said
	[ -z "$SYSTEMD" ] || [ "$(systemctl is-enabled blinkd)" = enabled ]
}

# The new one runs when it is told to.
case_restart()
{
	local before

	before=$(daemon)
	systemctl restart blinkd
	wait_until answers
	[ "$(daemon)" != "$before" ]
}

# _blinkd may own files, by way of the drop-in of the unit's header.
case_user()
{
	local drop_in=/etc/systemd/system/blinkd.service.d

	install -d -o _blinkd /data "$drop_in"
	printf '[Service]\nReadWritePaths=/data\n' >"$drop_in"/data.conf
	systemctl daemon-reload
	systemctl restart blinkd
	wait_until answers
	sh -- /usr/bin/blinkgen -a 20000 /data/in
	sh -- /usr/bin/blinksort --cluster /data/in -o /data/out
	blinkval -q /data/out
	[ "$(stat -c %U /data/out)" = _blinkd ]
	rm -r "$drop_in" /data
	systemctl daemon-reload
}

case_demo()
{
	env BIN=/usr/bin "$REPO/tests/demo.sh" >said 2>&1 ||
		fail "status $?: $(tail -n 5 said)"
	expect_match 'in order' said
	env BIN=/usr/bin "$REPO/tests/demo_cluster.sh" 4 >said 2>&1 ||
		fail "status $?: $(tail -n 5 said)"
	expect_match 'one sorted whole' said
}

case_completion()
{
	bash --norc -c '
		. /usr/share/bash-completion/completions/blinktune
		COMP_LINE="blinktune apply plat" COMP_POINT=20
		_blink && echo "$COMPREPLY"' >said
	expect_match '^platter$' said
}

# Root runs the Python programs, and could leave compiled modules beside theirs.
case_scripts()
{
	blinktune list >said
	expect_match '^ *read-ahead ' said
	expect_status 2 blinktrial --out=nowhere 2>said
	expect_one_line said
	blinkreport --help >said
	expect_match '^Usage: blinkreport' said
}

# Both MPIs; which one blinksort-mpi is is Debian's choice for mpirun, too.
case_mpi()
{
	local name

	install_debs /debs/blinksort-mpi-*.deb
	blinkgen -a 1000 in.0
	blinkgen -a -b1000 1000 in.1
	for name in mpich openmpi; do
		rm -f out.*
		"mpirun.$name" -n 2 --host localhost:2 "blinksort-mpi.$name" \
			in.%r -o out.%r 2>said </dev/null ||
			fail "$name: status $?: $(tail -n 3 said)"
		blinkval -q out.0 out.1 --against=in.0 --against=in.1
	done
	[ "$(realpath /usr/bin/blinksort-mpi)" = /usr/bin/blinksort-mpi.openmpi ]
	[ "$(readlink /etc/alternatives/mpirun)" = /usr/bin/mpirun.openmpi ]
	apt-get -q -y purge blinksort-mpi-openmpi >apt 2>&1
	[ "$(realpath /usr/bin/blinksort-mpi)" = /usr/bin/blinksort-mpi.mpich ]
	apt-get -q -y purge blinksort-mpi-mpich >apt 2>&1
	expect_gone /usr/bin/blinksort-mpi
}

# What blinktune has set is put back, since nobody could later; the daemon ends.
case_remove()
{
	local before

	if [ "$SYSTEMD" ]; then
		before=$(cat /proc/sys/vm/swappiness)
		blinktune apply swappiness=$((before + 1))
		[ "$(cat /proc/sys/vm/swappiness)" = $((before + 1)) ]
	else
		kill "$(daemon)"
	fi
	apt-get -q -y -o Dpkg::Use-Pty=0 remove blinksort >apt 2>&1 ||
		fail "status $?: $(tail -n 5 apt)"
	[ -z "$(version_of blinksort)" ]
	expect_gone /usr/bin/blinkd
	expect_match "^BLINKD_LISTEN=$NODE\$" /etc/default/blinkd
	[ -z "$SYSTEMD" ] || [ "$(cat /proc/sys/vm/swappiness)" = "$before" ]
	wait_until eval '! daemon'
}

case_purge()
{
	apt-get -q -y -o Dpkg::Use-Pty=0 purge blinksort >apt 2>&1 ||
		fail "status $?: $(tail -n 5 apt)"
	# The package leaves the user, who may own files of jobs.
	userdel _blinkd
	all_files >"$LISTS/after"
	diff "$LISTS/before" "$LISTS/after" >&2 || fail "not as it was"
}

all_files >"$LISTS/before"
check deb_install case_install
check deb_start case_start
check deb_upgrade case_upgrade
if [ "$SYSTEMD" ]; then
	check deb_restart case_restart
	check deb_user case_user
fi
check deb_demo case_demo
check deb_completion case_completion
check deb_scripts case_scripts
if command -v mpirun.mpich >/dev/null; then
	check deb_mpi case_mpi
fi
check deb_remove case_remove
check deb_purge case_purge
[ -z "$SYSTEMD" ] || {
	[ $checks_failed = 0 ] || journalctl --no-pager -u blinkd | tail -n 40
	echo "up for $(cut -d ' ' -f 1 /proc/uptime) s"
}
echo "=== done"
[ "$SYSTEMD" ] || finish
exit
