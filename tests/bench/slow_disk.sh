#!/bin/bash
# slow_disk.sh - a file system on a loop device that is as slow as one likes
#
# usage: slow_disk.sh up NAME BYTES BYTES-PER-S [REQUESTS-PER-S [one-arm]]
#        slow_disk.sh run NAME... -- COMMAND...
#        slow_disk.sh down NAME...
#
# It runs as root, and mounts NAME in the current folder.  The kernel holds the
# processes of run back (blkio of cgroups of version 1, io of version 2): so many
# bytes, and so many requests, are read and written in a second.  one-arm: QEMU's
# storage daemon holds all back, reads and writes together, in run or not.

set -eu

readonly V1=/sys/fs/cgroup/blkio V2=/sys/fs/cgroup

# A cgroup for all commands that use these disks; io.max needs its parent's leave.
cgroup()
{
	if [ -d $V1 ]; then
		echo "$V1/blink-disk-$(stat -c %i .)"
	else
		echo "$V2/blink-disk-$(stat -c %i .)"
	fi
}

# one_arm NAME RATE REQUESTS: NAME.arm is NAME.image, as slow as that
one_arm()
{
	local connections=/sys/fs/fuse/connections

	: >"$1.arm"
	qemu-storage-daemon --daemonize --pidfile "$PWD/$1.pid" \
		--object "throttle-group,id=arm,x-iops-total=$3,x-bps-total=$2" \
		--blockdev "driver=file,node-name=image,filename=$1.image,cache.direct=on" \
		--blockdev driver=throttle,node-name=disk,throttle-group=arm,file=image \
		--export "type=fuse,id=disk,node-name=disk,mountpoint=$PWD/$1.arm,writable=on"
	# QEMU 7.2 mixes up writes that come while one is held back.
	mountpoint -q $connections || mount -t fusectl none $connections
	echo 1 >"$connections/$(stat -c %d "$1.arm")/max_background"
}

up()
{
	local name=$1 bytes=$2 rate=$3 requests=${4:-} device number way folder
	local backing=$name.image
	folder=$(cgroup)
	truncate -s "$bytes" "$name.image"
	truncate -s %1M "$name.image" # QEMU wants whole sectors
	if [ "${5:-}" = one-arm ]; then
		one_arm "$name" "$rate" "$requests"
		backing=$name.arm
	fi
	# Direct: the page cache of the image would be our memory.
	device=$(losetup --direct-io=on --find --show "$backing")
	# What is longer would be two requests of QEMU's.
	[ "$backing" = "$name.image" ] ||
		echo 1024 >"/sys/block/${device#/dev/}/queue/max_sectors_kb"
	mkfs.ext4 -q "$device"
	mkdir -p "$name" "$folder"
	mount "$device" "$name"
	[ "$backing" = "$name.image" ] || return 0
	number=$(stat -c '%Hr:%Lr' "$device")
	for way in read write; do
		if [ -d $V1 ]; then
			echo "$number $rate" >"$folder/blkio.throttle.${way}_bps_device"
			[ -z "$requests" ] || echo "$number $requests" \
				>"$folder/blkio.throttle.${way}_iops_device"
		else
			echo +io >$V2/cgroup.subtree_control
			echo "$number ${way:0:1}bps=$rate" >"$folder/io.max"
			[ -z "$requests" ] ||
				echo "$number ${way:0:1}iops=$requests" >"$folder/io.max"
		fi
	done
}

run()
{
	while [ "$1" != -- ]; do
		shift
	done
	echo $$ >"$(cgroup)/cgroup.procs"
	exec "${@:2}"
}

down()
{
	local name device pid

	for name; do
		device=$(findmnt -n -o SOURCE "$name") || true
		umount "$name" 2>/dev/null || umount --lazy "$name" || true
		[ -z "$device" ] || losetup --detach "$device"
		if [ -e "$name.pid" ]; then
			pid=$(cat "$name.pid")
			kill "$pid"
			# NAME.arm is mounted until it has ended.
			tail --pid="$pid" -f /dev/null
		fi
		rm -f "$name.image" "$name.arm"
		rmdir "$name"
	done
	rmdir "$(cgroup)" 2>/dev/null || true
}

case ${1:-} in
up | run | down) "$@" ;;
*)
	sed -n '/^# usage: /,/^#$/s/^# \{0,1\}//p' "$0" >&2
	exit 2
	;;
esac
