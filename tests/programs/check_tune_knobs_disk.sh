#!/bin/bash
# check_tune_knobs_disk.sh - the knobs of disks, on recorded trees and loop devices
#
# The trees' tools are stand-ins that print what those of Debian 12 do; their state
# is in the tree, so that one comparison tells whether all is as it was.

# shellcheck disable=SC2317 # cases are called by check
# shellcheck disable=SC2153 # the knobs' results
# shellcheck source=tests/programs/knob_lib.sh
. "$(dirname "$0")/knob_lib.sh"

disk_knobs=(read-ahead io-scheduler drive-look-ahead drive-write-cache
	md-stripe-cache)

case_documented()
{
	local knob

	machine sata-raid
	for knob in "${disk_knobs[@]}"; do
		expect_documented "$knob" md1
	done
}

case_targets()
{
	machine sata-raid
	expect_targets read-ahead "dm-0 md0 md1 sda sdb sdc sdd"
	expect_targets io-scheduler "sda sdb sdc sdd"
	expect_targets io-scheduler "loop0 sda sdb sdc sdd" loop0
	expect_targets drive-look-ahead "sda sdb sdc sdd"
	expect_targets md-stripe-cache "md0 md1"
	rm -r tree/sys
	expect_targets read-ahead ""
}

case_read_ahead()
{
	machine sata-raid
	expect_value read-ahead md0 1024
	round_trip read-ahead sda 4096 \
		"echo 4096 >/sys/block/sda/queue/read_ahead_kb"
	round_trip read-ahead dm-0 0
	expect_unwanted read-ahead sda 6 "multiple of 4"
	expect_unwanted read-ahead sda -4 "multiple of 4"
	expect_unwanted read-ahead sda "" "multiple of 4"
	expect_unwanted read-ahead sda 08 "multiple of 4"
	expect_not read-ahead sdz unsupported read_ahead_kb
	read_only tree/sys/block/sda/queue/read_ahead_kb
	expect_not read-ahead sda denied root
}

case_scheduler()
{
	machine sata-raid
	expect_value io-scheduler sda mq-deadline
	expect_value io-scheduler sdd bfq
	round_trip io-scheduler sda none \
		"echo none >/sys/block/sda/queue/scheduler"
	round_trip io-scheduler sdc kyber
	knob_values io-scheduler sdc
	[ "$VALUES" = "none mq-deadline kyber bfq" ] || fail "$VALUES"
	expect_set_refused io-scheduler sda bfq "module bfq-iosched"
	# Whole words: "deadline" is none of them.
	expect_set_refused io-scheduler sda deadline "no scheduler deadline"
	expect_not io-scheduler md0 unsupported "devices below"
	expect_not io-scheduler dm-0 unsupported "no queue/scheduler"
	read_only tree/sys/block/sda/queue/scheduler
	expect_not io-scheduler sda denied root
}

case_look_ahead()
{
	machine sata-raid
	expect_value drive-look-ahead sda on
	round_trip drive-look-ahead sda off "hdparm -A0 /dev/sda"
	round_trip drive-look-ahead sdd off "sdparm --set=DRA=1 /dev/sdd"
	expect_unwanted drive-look-ahead sda 0 "neither on nor off"
	machine_of_others
	expect_not drive-look-ahead nvme0n1 unsupported "NVMe has no"
	read_only tree/sys/block/vda/queue/read_ahead_kb
	expect_not drive-look-ahead vda unsupported "not a SATA or SCSI"
}

machine_of_others()
{
	rm -rf tree
	machine nvme
}

case_write_cache()
{
	machine sata-raid
	expect_value drive-write-cache sda on
	round_trip drive-write-cache sda off "hdparm -W0 /dev/sda"
	round_trip drive-write-cache sdd off \
		"echo 'write through' >/sys/block/sdd/device/scsi_disk/6:0:0:0/cache_type"
	expect_unwanted drive-write-cache sdd maybe "neither on nor off"
	machine_of_others
	round_trip drive-write-cache nvme0n1 off \
		"nvme set-feature /dev/nvme0 --feature-id=6 --value=0"
	expect_not drive-write-cache nvme1n1 unsupported "controller has none"
	round_trip drive-write-cache vda off
	read_only tree/sys/block/vda/cache_type
	expect_not drive-write-cache vda denied cache_type
}

# The kernel's word is the drive's bit only where the drive is asked: hdparm's
# drives are asked themselves, and never by "temporary".
case_write_cache_is_the_drives()
{
	local file

	machine sata-raid
	change drive-write-cache sda off
	[ "$(<tree/tools/state/sda/write-caching)" = 0 ] || fail "drive not told"
	file=tree/sys/block/sda/device/scsi_disk/0:0:0:0/cache_type
	[ "$(<"$file")" = "write back" ] || fail "the kernel's belief is touched"
	expect_value drive-write-cache sda off
}

# A cache for writes, but none for reads: the bit for reads is left as it is.
case_write_cache_daft()
{
	local file=tree/sys/block/sdd/device/scsi_disk/6:0:0:0/cache_type

	machine sata-raid
	echo "write back, no read (daft)" >"$file"
	expect_value drive-write-cache sdd "on no-read"
	change drive-write-cache sdd off
	[ "$(<"$file")" = none ] || fail "$(<"$file")"
	change drive-write-cache sdd "on no-read"
	[ "$(<"$file")" = "write back, no read (daft)" ] || fail "$(<"$file")"
}

# hdparm ends with 0 after a -W0 that the drive has refused.
case_refusing_drive()
{
	machine sata-raid
	touch tree/tools/state/sdb/write-caching.stuck \
		tree/tools/state/sdb/look-ahead.stuck
	knob_load drive-write-cache
	knob_load drive-look-ahead
	! knob_set drive-write-cache sdb off || fail "believed"
	expect_why write-cache "keeps it on"
	! knob_set drive-look-ahead sdb off || fail "believed"
	expect_why look-ahead "Input/output error"
}

case_drive_without()
{
	machine sata-raid
	rm tree/tools/state/sda/write-caching
	expect_not drive-write-cache sda unsupported "the drive has none"
	expect_value drive-look-ahead sda on
	# A USB bridge that says nothing
	rm tree/tools/state/sdb/*
	expect_not drive-look-ahead sdb unsupported "reads nothing"
	rm tree/tools/state/sdd/DRA
	expect_not drive-look-ahead sdd unsupported "not supported"
	rm -r tree/sys/block/sdd/device/scsi_disk
	expect_not drive-write-cache sdd unsupported "no cache_type"
}

case_tools_missing()
{
	machine sata-raid
	rm tree/tools/hdparm tree/tools/sdparm
	expect_not drive-look-ahead sda unsupported "hdparm is not installed"
	expect_not drive-look-ahead sdd unsupported "sdparm is not installed"
	expect_not drive-write-cache sda unsupported "hdparm is not installed"
	expect_value drive-write-cache sdd on
	machine_of_others
	rm tree/tools/nvme
	expect_not drive-write-cache nvme0n1 unsupported "nvme is not installed"
}

case_denied()
{
	machine sata-raid
	touch tree/tools/state/sda/denied
	expect_not drive-look-ahead sda denied "Permission denied"
	expect_not drive-write-cache sda denied "Permission denied"
	read_only tree/sys/block/sdb/queue/read_ahead_kb
	expect_not drive-write-cache sdb denied root
	read_only tree/sys/block/md1/md/stripe_cache_size
	expect_not md-stripe-cache md1 denied root
}

case_stripe_cache()
{
	machine sata-raid
	expect_value md-stripe-cache md1 256
	round_trip md-stripe-cache md1 4096 \
		"echo 4096 >/sys/block/md1/md/stripe_cache_size"
	expect_unwanted md-stripe-cache md1 16 "17 to 32768"
	expect_unwanted md-stripe-cache md1 32769 "17 to 32768"
	expect_not md-stripe-cache md0 unsupported \
		"raid0 has no stripe cache (chunk 64 KiB)"
	rm -r tree/sys/block/md1/md
	expect_not md-stripe-cache md1 unsupported "not an md array"
}

# --- the kernel itself ----------------------------------------------------------

case_loop()
{
	local loop name original

	truncate -s 16M backing
	loop=$(losetup -f --show backing)
	# shellcheck disable=SC2064 # now, not then
	at_end "losetup -d $loop"
	name=${loop##*/}
	knob_load read-ahead
	knob_targets read-ahead "$name"
	[[ " ${TARGETS[*]} " == *" $name "* ]] || fail "no $name"
	knob_targets read-ahead
	[[ " ${TARGETS[*]} " != *" $name "* ]] || fail "$name unasked"
	knob_get read-ahead "$name"
	original=$VALUE
	change read-ahead "$name" $((original == 512 ? 256 : 512))
	change read-ahead "$name" "$original"
	knob_load io-scheduler
	knob_get io-scheduler "$name"
	original=$VALUE
	change io-scheduler "$name" none
	change io-scheduler "$name" "$original"
	! knob_set io-scheduler "$name" nosuch || fail "took nosuch"
	expect_why io-scheduler "module nosuch-iosched"
	! tool_have hdparm || case_hdparm "$name"
}

# The real hdparm says nothing of what is no drive, and ends with 0.
case_hdparm()
{
	knob_load drive-write-cache
	knob_load drive-look-ahead
	! drive_hdparm "$1" -W write-caching || fail "a loop has a cache"
	expect_why hdparm "reads nothing"
	expect_not drive-look-ahead "$1" unsupported "not a SATA"
}

check documented case_documented
check targets case_targets
check read_ahead case_read_ahead
check scheduler case_scheduler
check look_ahead case_look_ahead
check write_cache case_write_cache
check write_cache_is_the_drives case_write_cache_is_the_drives
check write_cache_daft case_write_cache_daft
check refusing_drive case_refusing_drive
check drive_without case_drive_without
check tools_missing case_tools_missing
check denied case_denied
check stripe_cache case_stripe_cache
check_able loop loop case_loop
finish
