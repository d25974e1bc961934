#!/bin/bash
# guest_devices.sh - the first process of the machine of check.sh devices
#
# Seven SATA disks, sda to sdg: sda and sdb become md0, RAID-0; sdc to sde md1,
# RAID-5, which has a stripe cache; sdf and sdg are for "disks make", and for
# blinksort and blinktrial, which read and write arrays over them.  One card, eth0.
# Every case leaves the machine's settings as it found them, and that is looked at
# after each.
# shellcheck disable=SC2317 # cases are called by check

# shellcheck source=tests/vm/guest_lib.sh
. /blinksort/tests/vm/guest_lib.sh

TUNE=/blinksort/bin/blinktune

set_up()
{
	wait_for /dev/sdg
	wait_for /sys/class/net/eth0
	export MDADM_NO_UDEV=1
	mdadm --create /dev/md0 --quiet --run --level=0 --raid-devices=2 \
		--chunk=64 /dev/sda /dev/sdb
	mdadm --create /dev/md1 --quiet --run --level=5 --raid-devices=3 \
		--assume-clean /dev/sdc /dev/sdd /dev/sde
	ip link set lo up
	ip link set eth0 up
}

# All that the profiles may touch, one line each, as the system's own tools and
# files say it.
settings()
{
	local file

	for file in /sys/block/{sd,md}*/queue/{read_ahead_kb,scheduler} \
		/sys/block/md*/md/stripe_cache_size \
		/sys/class/net/eth0/{mtu,tx_queue_len} \
		/sys/class/scsi_disk/*/cache_type \
		/sys/kernel/mm/transparent_hugepage/{enabled,defrag} \
		/proc/irq/*/smp_affinity_list \
		/proc/sys/vm/{swappiness,stat_interval,dirty_*} \
		/proc/sys/kernel/{nmi_watchdog,numa_balancing,timer_migration} \
		/proc/sys/net/core/{r,w}mem_{max,default} \
		/proc/sys/net/core/{busy_read,busy_poll,netdev_max_backlog}; do
		[ ! -r "$file" ] || echo "$file: $(cat "$file" 2>&1)"
	done
	for file in /dev/sd?; do
		hdparm -W -A "$file" 2>/dev/null | tr -s '\n\t ' ' '
		echo
	done
	ethtool -c eth0
	ethtool -g eth0
	ethtool -k eth0
}

# expect_as_before: nothing differs from what set_up left
expect_as_before()
{
	settings >now
	diff "$SCRATCH/before" now >&2
}

expect_write_cache()
{
	local disk

	for disk in /dev/sd[a-e]; do
		[[ $(hdparm -W "$disk") == *"write-caching =  $1 "* ]] ||
			fail "$disk: $(hdparm -W "$disk" | tail -1)"
	done
}

expect_value()
{
	[ "$(cat "$2")" = "$1" ] || fail "$2: $(cat "$2"), not $1"
}

# case_profile PROFILE WRITE_CACHE
case_profile()
{
	"$TUNE" plan "$1" >planned
	"$TUNE" apply "$1" >applied 2>acts || {
		cat applied acts
		fail "apply: $?"
	}
	settings >now
	! diff -q "$SCRATCH/before" now >/dev/null || fail "nothing changed"
	expect_write_cache "$2"
	expect_value "$(sed -n 's/^\(set\|try\) *md-stripe-cache[^ ]* *\([0-9]*\).*/\2/p' \
		/blinksort/tune/profiles/reference.profile)" \
		/sys/block/md1/md/stripe_cache_size
	grep -q '^+ hdparm -W' acts || [ "$2" = 1 ] || fail "no act echoed"
	"$TUNE" verify >verified || {
		cat verified
		fail "verify: $?"
	}
	"$TUNE" revert >reverted 2>&1 || {
		cat reverted
		fail "revert: $?"
	}
	expect_as_before
}

# Another program, between apply and revert.
case_conflict()
{
	local before

	before=$(cat /sys/block/sda/queue/read_ahead_kb)
	"$TUNE" -q apply read-ahead:sda=512,drive-write-cache:sda=off >applied
	blockdev --setra 2048 /dev/sda
	hdparm -q -W1 /dev/sda
	expect_status 1 "$TUNE" verify >verified
	expect_match 'read-ahead:sda' verified
	expect_match 'drive-write-cache:sda' verified
	expect_status 6 "$TUNE" revert >reverted 2>&1
	expect_match 'conflict +read-ahead:sda: 1024' reverted
	expect_value 1024 /sys/block/sda/queue/read_ahead_kb
	"$TUNE" -q revert --force >reverted 2>&1
	expect_value "$before" /sys/block/sda/queue/read_ahead_kb
	expect_as_before
}

# Killed at any moment: what a revert then leaves is what was there.
case_killed()
{
	local round pid

	for round in 1 2 3 4 5 6; do
		"$TUNE" -q apply platter >applied 2>&1 &
		pid=$!
		sleep "0.$((round * 2 % 10))$round"
		kill -9 $pid 2>/dev/null || true
		wait $pid 2>/dev/null || true
		"$TUNE" -q revert >reverted 2>&1 || {
			cat reverted
			fail "revert after kill $round: $?"
		}
		expect_as_before
	done
}

case_run()
{
	"$TUNE" -q run platter -- hdparm -W /dev/sda >said
	expect_match 'write-caching =  0' said
	expect_as_before
}

# A real look: QEMU's disks have no read look-ahead to switch.
case_unsupported()
{
	"$TUNE" plan drive-look-ahead=on >planned || true
	expect_match 'drive-look-ahead.*' planned
	expect_match 'unsupported' planned
}

case_card()
{
	"$TUNE" -q apply "nic-coalescing:eth0=rx-usecs 0,nic-rings:eth0=max" \
		>applied 2>&1 || {
		cat applied
		fail "apply: $?"
	}
	grep -q '^RX:[^0-9]*4096$' <(ethtool -g eth0 | grep -A 5 Current) ||
		fail "rings: $(ethtool -g eth0)"
	grep -q '^rx-usecs: 0$' <(ethtool -c eth0) || fail "$(ethtool -c eth0)"
	"$TUNE" -q verify >verified
	"$TUNE" -q revert >reverted
	expect_as_before
}

# Partitions at the rim, a RAID-0 with the stripe that was asked for, XFS on it.
case_disks()
{
	local array

	"$TUNE" disks plan --data-bytes 1500000000 --stripe 128 \
		/dev/sdf /dev/sdg >planned
	[ ! -e /dev/sdf1 ] || fail "plan has made something"
	"$TUNE" disks make --data-bytes 1500000000 --stripe 128 \
		/dev/sdf /dev/sdg --yes-destroy /dev/sdf /dev/sdg >made 2>&1 || {
		cat planned made
		fail "make: $?"
	}
	array=$(basename "$(ls -d /sys/block/sdf/sdf1/holders/md*)")
	expect_value 131072 "/sys/block/$array/md/chunk_size"
	expect_value raid0 "/sys/block/$array/md/level"
	expect_value 2048 /sys/block/sdf/sdf1/start
	mkdir -p /mnt/data
	mount "/dev/$array" /mnt/data
	xfs_info /mnt/data >info
	expect_match 'sunit=32 +swidth=64 blks' info
	expect_status 3 "$TUNE" disks make --data-bytes 1500000000 --stripe 128 \
		/dev/sdf /dev/sdg --yes-destroy /dev/sdf /dev/sdg 2>refused
	expect_one_line refused
	expect_match "mounted|member" refused
	umount /mnt/data
	mdadm --stop --quiet "/dev/$array"
}

# An array at the rim of the disks for the input and one for the output, as
# "disks plan --raw" says it: sorted from the one to the other.
case_raw()
{
	local sort count=200000 bytes=20000000

	"$TUNE" disks make --raw --data-bytes $bytes --stripe 64 \
		/dev/sdf /dev/sdg --yes-destroy /dev/sdf /dev/sdg \
		>made 2>&1 || {
		cat made
		fail "make: $?"
	}
	sort=$(sed -n 's/.*then: blinksort //p' made)
	blinkgen -a $count input
	dd if=input of=/dev/md/blink-in bs=1M conv=fsync status=none
	sync
	# shellcheck disable=SC2086 # words
	blinksort $sort --sync --json >said
	expect_match '"output_io": "direct"' said
	head -c $bytes /dev/md/blink-out >output
	blinksort input -o want
	cmp output want
	blinkval --against input output >/dev/null
	head -c $bytes /dev/md/blink-in | cmp - input
	# From the rim of both disks: within their first 40 MiB.
	expect_value 2048 /sys/block/sdf/sdf1/start
	(($(cat /sys/block/sdf/sdf2/start) < 40 * 2048)) ||
		fail "sdf2 begins at sector $(cat /sys/block/sdf/sdf2/start)"
	case_raw_refused $bytes
	case_raw_beyond_memory $bytes
	case_raw_trials
	mdadm --stop --quiet /dev/md/blink-in
	mdadm --stop --quiet /dev/md/blink-out
}

# refuse_output DEVICE REASON INPUT OPTION...
refuse_output()
{
	local device=$1 reason=$2
	shift 2

	expect_status 3 blinksort "$@" --output-device="$device" 2>refused
	expect_one_line refused
	expect_match "$device: .*$reason" refused
}

# What is below an array, a part of a disk, or a whole with a part that is in use.
case_raw_refused()
{
	refuse_output /dev/sdf1 'in use' input
	refuse_output /dev/sdf2 'in use' /dev/md/blink-in --device-bytes="$1"
	refuse_output /dev/sdf 'in use' input
	refuse_output /dev/sda 'in use' input
	refuse_output /dev/md/blink-out 'lies on it' /dev/sdf2 \
		--device-bytes=10000000
	mkfs.xfs -q -f /dev/md0
	mkdir -p /mnt/data
	mount /dev/md0 /mnt/data
	refuse_output /dev/md0 'mounted' input
	umount /mnt/data
	wipefs -q -a /dev/md0
	# A table without users; a partition and its disk.
	echo 'size=32MiB' | sfdisk -q /dev/md0
	wait_for /dev/md0p1
	refuse_output /dev/md0 'has partitions' input
	dd if=input of=/dev/md0p1 bs=1M conv=fsync status=none
	blinksort /dev/md0p1 --device-bytes="$1" -o sorted
	cmp sorted want
	refuse_output /dev/md0p1 'lies on it' /dev/md0 --device-bytes="$1"
	blinksort input --output-device=/dev/md0p1
	head -c "$1" /dev/md0p1 | cmp - want
	sfdisk -q --delete /dev/md0
	wipefs -q -a /dev/md0
	head -c "$1" /dev/md/blink-out | cmp - want
	head -c "$1" /dev/md/blink-in | cmp - input
}

# The same where the records do not fit into memory.
case_raw_beyond_memory()
{
	dd if=/dev/zero of=/dev/md/blink-out bs=1M count=10 conv=fsync \
		status=none
	blinksort /dev/md/blink-in --device-bytes="$1" -S 9M -T . --json \
		--output-device=/dev/md/blink-out >said
	expect_match '"external": [{]' said
	head -c "$1" /dev/md/blink-out | cmp - want
}

# Trials from array to array, of fewer records than before, so that other data
# stand behind them.
case_raw_trials()
{
	local trial=(blinktrial --trials=2 --records=100000 --quiet
		--input-device=/dev/md/blink-in
		--output-device=/dev/md/blink-out)

	head -c 20000000 /dev/md/blink-out >before
	# Whose write caches are on, as the kernel and hdparm say.
	"${trial[@]}" --scenario=cache --out=cache
	expect_drives cache
	expect_conditions cache True direct-io input-not-resident \
		input-passed-by output-passed-by write-cache
	# QEMU's disks tell the size of a cache, but their host has one, too.
	expect_status 1 "${trial[@]}" --scenario=platter --out=platter \
		2>refused
	expect_match 'platter: drive cache of sdf sdg: QEMU disk' refused
	"${trial[@]}" --scenario=platter --out=platter --unverified
	expect_conditions platter True caches-dropped direct-io \
		input-not-resident input-passed-by other-data-read \
		output-passed-by synced write-cache
	expect_conditions platter None drive-cache-defeated flush
	"${trial[@]}" --scenario=pagecache --out=pagecache
	expect_conditions pagecache True input-resident output-resident
	blinkgen 100000 input2
	blinksort input2 -o want2
	head -c 10000000 /dev/md/blink-in | cmp - input2
	head -c 10000000 /dev/md/blink-out | cmp - want2
	head -c 20000000 /dev/md/blink-in | tail -c 10000000 |
		cmp - <(tail -c 10000000 input)
	head -c 20000000 /dev/md/blink-out | tail -c 10000000 |
		cmp - <(tail -c 10000000 before)
	# What arrays are made of.
	expect_status 3 "${trial[@]}" --input-device=/dev/sdf1 \
		--scenario=cache --out=refused.1 2>refused
	expect_match '/dev/sdf1: it is .* in use' refused
}

# expect_drives RECORD: those below the arrays, and no file system
expect_drives()
{
	python3 - "$1" <<-'END' || fail "other drives"
		import json, sys
		storage = json.load(open(f"{sys.argv[1]}/environment.json"))[
			"sessions"][0]["before"]["storage"]
		places = storage["paths"].values()
		sys.exit([(p["fs_type"], p["drives"]) for p in places]
			 != [(None, ["sdf", "sdg"])] * 2)
	END
}

# expect_conditions RECORD MET NAME...: these, in order, of each good trial
expect_conditions()
{
	python3 - "$@" <<-'END' || fail "other conditions: $*"
		import json, sys
		record, met, *names = sys.argv[1:]
		trials = [json.loads(line) for line
		          in open(f"{record}/trials.jsonl")]
		found = [sorted(one["name"] for one in trial["conditions"]
		                if str(one["met"]) == met) for trial in trials]
		if [trial["outcome"] for trial in trials] != ["ok", "ok"]:
		    sys.exit(str([trial["message"] for trial in trials]))
		if found != [names, names]:
		    sys.exit(str([trial["conditions"] for trial in trials]))
	END
}

set_up
# shellcheck source=tests/programs/tool_lib.sh
. /blinksort/tests/programs/tool_lib.sh
settings >"$SCRATCH/before"
check vm_reference case_profile reference 1
check vm_platter case_profile platter 0
check vm_card case_card
check vm_conflict case_conflict
check vm_killed case_killed
check vm_run case_run
check vm_unsupported case_unsupported
check vm_disks case_disks
check vm_raw case_raw
end_machine
