#!/bin/bash
# slow_disk.sh - a file system on a loop device that is as slow as one likes
#
# usage: slow_disk.sh up NAME BYTES BYTES-PER-S [REQUESTS-PER-S]
#        slow_disk.sh run NAME... -- COMMAND...
#        slow_disk.sh down NAME...
#
# It runs as root, and mounts NAME in the current folder.  The kernel holds the
# processes of run back (blkio of cgroups of version 1, io of version 2): so many
# bytes, and so many requests, are read and written in a second.

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

up()
{
	local name=$1 bytes=$2 rate=$3 requests=${4:-} device number way folder
	folder=$(cgroup)
	truncate -s "$bytes" "$name.image"
	# Direct: the page cache of the image would be our memory.
	device=$(losetup --direct-io=on --find --show "$name.image")
	mkfs.ext4 -q "$device"
	mkdir -p "$name" "$folder"
	mount "$device" "$name"
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
	local name device

	for name; do
		device=$(findmnt -n -o SOURCE "$name") || true
		umount "$name" 2>/dev/null || umount --lazy "$name" || true
		[ -z "$device" ] || losetup --detach "$device"
		rm -f "$name.image"
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
