# guest_lib.sh - what the first processes of check.sh's machines begin and end by
# shellcheck shell=bash
#
# It is read first: it mounts what every system has, loads the modules that
# image.sh has chosen, and lets all that is printed go to the serial port.

export PATH=/usr/bin:/usr/sbin
mount -t proc proc /proc
mount -t sysfs sysfs /sys
mount -t devtmpfs devtmpfs /dev
mount -t tmpfs tmpfs /run
# As every system has it; bash opens what is in <( ) by it.
ln -s /proc/self/fd /dev/fd
exec </dev/null >/dev/ttyS0 2>&1
echo
echo "=== guest: Linux $(uname -r)"

while read -r module; do
	modprobe "$module" || echo "no module $module"
done </etc/modules

# wait_for PATH: at most 20 s
wait_for()
{
	local tries

	for ((tries = 0; tries < 200; tries++)); do
		[ ! -e "$1" ] || return 0
		sleep 0.1
	done
	echo "$1 does not come"
}

end_machine()
{
	echo "up for $(cut -d ' ' -f 1 /proc/uptime) s"
	echo "=== done"
	sync
	echo o >/proc/sysrq-trigger
	sleep 10
}
