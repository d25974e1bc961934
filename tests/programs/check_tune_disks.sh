#!/bin/bash
# check_tune_disks.sh - blinktune disks: what it prints, refuses, does and undoes
#
# On a tree with tools that write down how they were called, and on loop devices.

# shellcheck disable=SC2317 # cases are called by check
. "$(dirname "$0")/tune_lib.sh"

readonly TOOLS="wipefs sfdisk partx mdadm mkfs.xfs mount umount"

# disks ARGUMENT...: on the tree
disks()
{
	"$REPO/tune/blinktune" --root tree --state state disks "$@"
}

# machine: a tree of three rotating disks that are empty and not in use.  A
# tool writes its call to tree/log; one named in tree/fails fails, and sends
# tree/signal to tree/pid if there is one; wipefs prints tree/holds.DEVICE.
machine()
{
	local name

	cp -R "$REPO/tests/data/machines/sata-raid" tree
	rm -r tree/tools
	mkdir -p tree/tools tree/proc/self
	touch tree/log tree/fails
	cat >tree/tools/wipefs <<-'END'
		#!/bin/bash
		cd "$BLINKTUNE_ROOT"
		call="${0##*/} $*"
		[ "${0##*/}" != sfdisk ] || call+=" <<< $(tr '\n' ' ')"
		if [[ $call == *--noheadings* ]]; then
			cat "holds.${!###*/}" 2>/dev/null
			exit 0
		fi
		echo "$call" >>log
		[[ $call != "mdadm --create "* ]] || { mkdir -p dev/md; >"${2#/}"; }
		if [ -s fails ] && [[ $call == $(<fails)* ]]; then
			echo "${0##*/}: as told"
			[ ! -s pid ] || kill -s "$(<signal)" "$(<pid)"
			exit 1
		fi
	END
	chmod +x tree/tools/wipefs
	for name in $TOOLS; do
		[ "$name" = wipefs ] || ln -s wipefs "tree/tools/$name"
	done
	echo "22 1 254:0 / / rw shared:1 - ext4 /dev/vda1 rw" \
		>tree/proc/self/mountinfo
	echo "Filename Type Size Used Priority" >tree/proc/swaps
	cp -R tree before
}

expect_untouched()
{
	diff -r before tree >&2 || fail "the tree has changed"
}

sfdisk_command()
{
	printf '%s' "printf 'label: gpt\\nstart=1MiB, size=$2MiB, type=$3\\n' |" \
		" sfdisk --quiet --wipe always --wipe-partitions always $1"
}

case_plan()
{
	machine
	disks plan --data-bytes 10000000000 --stripe 128 --label fast \
		/dev/sda /dev/sdb /dev/sdc >out
	# 10^10 bytes are 9537 MiB; a tenth more, and 80; a third, 3 and 1
	cat >want <<-END
		# /dev/sda: 3528 MiB of 1907729 MiB
		# /dev/sdb: 3528 MiB of 1907729 MiB
		# /dev/sdc: 3528 MiB of 1907729 MiB
		$(sfdisk_command /dev/sda 3528 raid)
		$(sfdisk_command /dev/sdb 3528 raid)
		$(sfdisk_command /dev/sdc 3528 raid)
		mdadm --create /dev/md/fast --run --metadata=1.2 --level=0 --raid-devices=3 --chunk=128 /dev/sda1 /dev/sdb1 /dev/sdc1
		mkfs.xfs -q -f -L fast -d su=128k,sw=3 /dev/md/fast
		# then: mount -o noatime /dev/md/fast /mnt/fast
	END
	diff want out >&2
	expect_untouched
	expect_gone state
}

# One disk has no stripes, and its partition another type.
case_plan_single()
{
	machine
	disks plan --data-bytes=1 --mount /srv/data /dev/sdb >out
	cat >want <<-END
		# /dev/sdb: 320 MiB of 1907729 MiB
		$(sfdisk_command /dev/sdb 320 linux)
		mkfs.xfs -q -f -L blink /dev/sdb1
		mount -o noatime /dev/sdb1 /srv/data
	END
	diff want out >&2
}

case_plan_json()
{
	machine
	echo 'xfs' >tree/holds.sdb
	disks --json plan --data-bytes 5000000 /dev/sda /dev/sdb >out
	/usr/bin/python3 - <<-'END'
		import json
		plan = json.load(open("out"))
		assert plan["stripe_kib"] == 64
		assert plan["partition_bytes"] == 161 << 20
		assert [d["device"] for d in plan["devices"]] == \
			["/dev/sda", "/dev/sdb"]
		assert [d["destroyed"] for d in plan["devices"]] == \
			[None, "xfs on sdb"]
		assert plan["devices"][0]["size_bytes"] == 3907029168 * 512
		assert plan["devices"][0]["refused"] is None
		assert len(plan["commands"]) == 4
		assert plan["commands"][0].endswith(" /dev/sda")
		assert plan["mount"].startswith("mount ")
		assert plan["sort"] is None
	END
	# Wide stripes: mdadm leaves 128 MiB; and these are no whole MiBs.
	disks --json plan --data-bytes 5000000 --stripe 99996 --headroom 0 \
		/dev/sda /dev/sdb >out
	expect_match "\"partition_bytes\": $(((196 + 128 + 98 + 1) << 20))" out
}

# Two arrays, the one for the input nearest to the rim; no room for a file system.
case_plan_raw()
{
	local size='size=9547MiB, type=raid\n' sfdisk

	machine
	disks plan --raw --data-bytes 20000000000 --headroom 0 --stripe 128 \
		/dev/sda /dev/sdb >out
	sfdisk="printf 'label: gpt\nstart=1MiB, $size$size' | sfdisk --quiet`
		` --wipe always --wipe-partitions always"
	cat >want <<-END
		# /dev/sda: 19094 MiB of 1907729 MiB
		# /dev/sdb: 19094 MiB of 1907729 MiB
		$sfdisk /dev/sda
		$sfdisk /dev/sdb
		mdadm --create /dev/md/blink-in --run --metadata=1.2 --level=0 --raid-devices=2 --chunk=128 /dev/sda1 /dev/sdb1
		mdadm --create /dev/md/blink-out --run --metadata=1.2 --level=0 --raid-devices=2 --chunk=128 /dev/sda2 /dev/sdb2
		# then: blinksort /dev/md/blink-in --device-bytes=20000000000 --output-device=/dev/md/blink-out
	END
	diff want out >&2
	expect_untouched
}

case_plan_raw_single()
{
	local size='size=2MiB, type=linux\n'

	machine
	disks plan --data-bytes 1048576 --headroom 0 /dev/sdb --raw >out
	cat >want <<-END
		# /dev/sdb: 4 MiB of 1907729 MiB
		printf 'label: gpt\nstart=1MiB, $size$size' | sfdisk --quiet --wipe always --wipe-partitions always /dev/sdb
		# then: blinksort /dev/sdb1 --device-bytes=1048576 --output-device=/dev/sdb2
	END
	diff want out >&2
	disks --json plan --data-bytes 1048576 --headroom 0 /dev/sdb --raw >out
	/usr/bin/python3 - <<-'END'
		import json
		plan = json.load(open("out"))
		assert plan["partition_bytes"] == 2 << 20
		assert plan["mount"] is None
		assert plan["sort"].startswith("blinksort /dev/sdb1 ")
		assert len(plan["commands"]) == 1
	END
}

# A file system for scratch files nearest to the rim, then the output, then the input.
case_plan_scratch()
{
	local size='size=9587MiB, type=raid\n' sfdisk sort

	machine
	sfdisk="printf 'label: gpt\nstart=1MiB, $size$size$size' | sfdisk --quiet`
		` --wipe always --wipe-partitions always"
	sort="blinksort /dev/md/blink-in --device-bytes=20000000000`
		` --output-device=/dev/md/blink-out -T"
	cat >want <<-END
		# /dev/sda: 28761 MiB of 1907729 MiB
		# /dev/sdb: 28761 MiB of 1907729 MiB
		$sfdisk /dev/sda
		$sfdisk /dev/sdb
		mdadm --create /dev/md/blink-scratch --run --metadata=1.2 --level=0 --raid-devices=2 --chunk=128 /dev/sda1 /dev/sdb1
		mdadm --create /dev/md/blink-out --run --metadata=1.2 --level=0 --raid-devices=2 --chunk=128 /dev/sda2 /dev/sdb2
		mdadm --create /dev/md/blink-in --run --metadata=1.2 --level=0 --raid-devices=2 --chunk=128 /dev/sda3 /dev/sdb3
		mkfs.xfs -q -f -L blink -d su=128k,sw=2 /dev/md/blink-scratch
		# then: mount -o noatime /dev/md/blink-scratch /mnt/blink && $sort /mnt/blink
	END
	set -- plan --data-bytes 20000000000 --headroom 0 --stripe 128 --scratch \
		/dev/sda /dev/sdb
	disks "$@" >out
	diff want out >&2
	disks "$@" --mount=/srv/data >out
	sed -i -e "s|^# then: .*|# then: $sort /srv/data|; /^# then/i\\
mount -o noatime /dev/md/blink-scratch /srv/data" want
	diff want out >&2
	expect_untouched
}

# On one disk the volumes are its partitions.
case_plan_scratch_single()
{
	machine
	disks --json plan --data-bytes 1 /dev/sdb --scratch >out
	/usr/bin/python3 - <<-'END'
		import json
		plan = json.load(open("out"))
		assert plan["partition_bytes"] == 320 << 20
		assert plan["commands"][0].count("size=320MiB") == 3
		assert plan["commands"][1:] == ["mkfs.xfs -q -f -L blink /dev/sdb1"]
		assert plan["mount"] == "mount -o noatime /dev/sdb1 /mnt/blink"
		assert plan["sort"] == "blinksort /dev/sdb3 --device-bytes=1" \
			" --output-device=/dev/sdb2 -T /mnt/blink"
	END
}

# expect_plan STATUS LINE DEVICE...: a line of the plan
expect_plan()
{
	local status=$1 line=$2
	shift 2

	expect_status "$status" disks plan --data-bytes 1000000000 "$@" >out
	grep -q -F -e "$line" out || fail "no '$line' in: $(cat out)"
}

# add_part DISK NUMBER MAJOR:MINOR
add_part()
{
	mkdir -p "tree/sys/block/$1/$1$2/holders"
	echo "$2" >"tree/sys/block/$1/$1$2/partition"
	echo "$3" >"tree/sys/block/$1/$1$2/dev"
}

case_warnings()
{
	machine
	add_part sda 1 8:1
	printf 'gpt\ngpt\nPMBR\n' >tree/holds.sda
	echo LVM2_member >tree/holds.sda1
	expect_plan 0 "#   destroyed: partitions sda1; gpt on sda; PMBR on sda;`
		` LVM2_member on sda1" /dev/sda
	echo linux_raid_member >tree/holds.sdb
	expect_plan 0 "#   destroyed: linux_raid_member on sdb" /dev/sdb
	echo 0 >tree/sys/block/sdc/queue/rotational
	expect_plan 0 "#   note: does not rotate" /dev/sdc
	expect_plan 0 "#   note: not a drive itself" /dev/md1
	rm tree/tools/wipefs
	expect_plan 0 "what sdc holds is unknown" /dev/sdc
}

# What make refuses, whatever it is told; and plan says so.
expect_no_plan()
{
	local why=$1
	shift

	expect_plan 3 "#   refused: $why" "$@" 2>err
	expect_match '^blinktune: disks plan: ' err
	# Nothing that would destroy something if it were pasted
	! grep -v '^#' out >&2 || fail 'a command'
	expect_status 3 disks make --data-bytes 1000000000 "$@" \
		--yes-destroy "$@" 2>err
	expect_one_line err
	grep -q -F -e "$why" err || fail "no '$why' in: $(cat err)"
	expect_empty tree/log
}

case_refused()
{
	machine
	add_part sda 1 8:1
	add_part sda 2 8:2
	add_part sdb 1 8:17
	echo "30 22 8:1 / /boot rw - ext4 /dev/disk/by-uuid/x rw" \
		>>tree/proc/self/mountinfo
	expect_no_plan "sda1 is mounted at /boot" /dev/sda
	# btrfs: numbers of its own
	echo "31 22 0:33 / /data rw - btrfs /dev/sdb1 rw" \
		>>tree/proc/self/mountinfo
	expect_no_plan "sdb1 is mounted at /data" /dev/sdb
	expect_no_plan "sdb1 is mounted at /data" /dev/sdc /dev/sdb
	echo "/dev/sdd partition 8 0 -2" >>tree/proc/swaps
	expect_no_plan "sdd is swapped to" /dev/sdd
	mkdir -p tree/sys/block/sdc/holders/md0
	expect_no_plan "sdc is a member of md0" /dev/sdc
	expect_no_plan "a partition: name the disk" /dev/sda1
	expect_no_plan "no block device" /dev/nosuch
	expect_no_plan "no block device" /etc/passwd
	expect_no_plan "no medium" /dev/loop0
}

case_refused_more()
{
	machine
	expect_no_plan "named twice" /dev/sda /dev/sda
	echo 1 >tree/sys/block/sda/ro
	expect_no_plan "read-only" /dev/sda
	echo 2000000 >tree/sys/block/sdb/size
	expect_no_plan "too small: 1129 MiB are wanted of it" /dev/sdb
	expect_plan 3 "#   refused: too small: 2098 MiB are wanted of it" \
		--raw /dev/sdb
}

# expect_usage WORD... : one line, status 2, nothing done
expect_usage()
{
	local word=$1
	shift

	expect_status 2 disks "$@" >out 2>err
	expect_empty out
	expect_one_line err
	grep -q -F -e "$word" err || fail "no '$word' in: $(cat err)"
	expect_untouched
}

case_usage()
{
	machine
	expect_usage "plan or make"
	expect_usage "plan or make" draw
	expect_usage "--data-bytes" plan /dev/sda
	expect_usage "--data-bytes" plan --data-bytes 1G /dev/sda
	expect_usage "--data-bytes" plan --data-bytes 0 /dev/sda
	expect_usage "no device" plan --data-bytes 9
	expect_usage "--stripe" plan --data-bytes 9 --stripe 6 /dev/sda
	# shellcheck disable=SC2016 # not to be expanded by us either
	expect_usage "--stripe" plan --data-bytes 9 --stripe 'a[$(touch x)]' \
		/dev/sda
	expect_usage "--label" plan --data-bytes 9 --label 'a b' /dev/sda
	expect_usage "--headroom" plan --data-bytes 9 --headroom -1 /dev/sda
	expect_usage "--mount" plan --data-bytes 9 --mount mnt /dev/sda
	expect_usage "--mount" plan --data-bytes 9 --raw --mount /mnt /dev/sda
	expect_usage "--scratch" plan --data-bytes 9 --raw --scratch /dev/sda
	expect_usage "--nosuch" plan --nosuch 9 /dev/sda
	expect_usage "needs a value" plan /dev/sda --stripe
	expect_gone x
}

# The devices are named twice, or nothing happens.
case_agreed()
{
	local words

	machine
	for words in "" "--yes-destroy" "--yes-destroy /dev/sda" \
		"--yes-destroy /dev/sdb /dev/sda" "--yes-destroy sda sdb" \
		"--yes-destroy /dev/sda /dev/sdb /dev/sdc"; do
		# shellcheck disable=SC2086 # words
		expect_usage "must name the same devices" make \
			--data-bytes 9 /dev/sda /dev/sdb $words
	done
}

# make_two OPTION...: on sda and sdb
make_two()
{
	disks make --data-bytes 1000000000 "$@" /dev/sda /dev/sdb \
		--yes-destroy /dev/sda /dev/sdb
}

case_make()
{
	machine
	mkdir -p tree/srv/data
	make_two --mount /srv/data 2>err
	cat >want <<-'END'
		sfdisk --quiet --wipe always --wipe-partitions always /dev/sda <<< label: gpt start=1MiB, size=566MiB, type=raid 
		sfdisk --quiet --wipe always --wipe-partitions always /dev/sdb <<< label: gpt start=1MiB, size=566MiB, type=raid 
		mdadm --create /dev/md/blink --run --metadata=1.2 --level=0 --raid-devices=2 --chunk=64 /dev/sda1 /dev/sdb1
		mkfs.xfs -q -f -L blink -d su=64k,sw=2 /dev/md/blink
		mount -o noatime /dev/md/blink /srv/data
	END
	diff want tree/log >&2
	# Each act was echoed as plan prints it.
	disks plan --data-bytes 1000000000 --mount /srv/data /dev/sda /dev/sdb |
		grep -v '^#' | sed 's/^/+ /' >echoed
	diff echoed err >&2
}

# Whatever fails, what was made is taken down, and what is lost is said.
case_make_fails()
{
	local step done_undo

	while IFS='|' read -r step done_undo; do
		rm -rf tree before
		machine
		mkdir -p tree/srv/data
		echo xfs >tree/holds.sda
		echo "$step" >tree/fails
		expect_status 1 make_two --mount /srv/data 2>err
		awk -v step="$step" 'found; index($0, step) == 1 { found = 1 }' \
			tree/log | paste -s -d , >undone
		[ "$(<undone)" = "$done_undo" ] ||
			fail "$step: '$(<undone)', not '$done_undo'"
		expect_match "disks make: ${step%% *}: .*as told" err
		expect_match '/dev/sda: (lost|may be lost): xfs on sda' err
	done <<-END
		sfdisk --quiet --wipe always --wipe-partitions always /dev/sda|
		sfdisk --quiet --wipe always --wipe-partitions always /dev/sdb|$(undo_of sda)
		mdadm --create|mdadm --stop /dev/md/blink,$(undo_of sdb),$(undo_of sda)
		mkfs.xfs|mdadm --stop /dev/md/blink,$(undo_of sdb),$(undo_of sda)
		mount|mdadm --stop /dev/md/blink,$(undo_of sdb),$(undo_of sda)
	END
	expect_match 'lost: nothing that was known' err
}

# Of each disk both partitions, and both arrays.
case_make_raw_fails()
{
	machine
	make_two --raw >out 2>err
	grep -c '^mdadm --create' tree/log >created
	[ "$(<created)" = 2 ] || fail "$(cat tree/log)"
	! grep -q mkfs tree/log || fail "a file system"
	expect_match 'then: blinksort /dev/md/blink-in ' err
	rm -rf tree before
	machine
	echo "mdadm --create /dev/md/blink-out" >tree/fails
	expect_status 1 make_two --raw 2>err
	sed '1,/blink-out/d' tree/log >undone
	cat >want <<-'END'
		mdadm --stop /dev/md/blink-out
		mdadm --stop /dev/md/blink-in
		wipefs --quiet --all /dev/sdb1
		wipefs --quiet --all /dev/sdb2
		wipefs --quiet --all /dev/sdb
		wipefs --quiet --all /dev/sda1
		wipefs --quiet --all /dev/sda2
		wipefs --quiet --all /dev/sda
	END
	diff want undone >&2
}

# Of each disk all three partitions, and all arrays that are there.
case_make_scratch()
{
	machine
	mkdir -p tree/srv/data
	make_two --scratch --mount /srv/data 2>err
	[ "$(tail -n 1 tree/log)" = \
		"mount -o noatime /dev/md/blink-scratch /srv/data" ] ||
		fail "$(cat tree/log)"
	expect_match 'then: blinksort /dev/md/blink-in .* -T /srv/data$' err
	rm -rf tree before
	machine
	echo mkfs.xfs >tree/fails
	expect_status 1 make_two --scratch 2>err
	sed '1,/^mkfs/d' tree/log >undone
	cat >want <<-'END'
		mdadm --stop /dev/md/blink-in
		mdadm --stop /dev/md/blink-out
		mdadm --stop /dev/md/blink-scratch
		wipefs --quiet --all /dev/sdb1
		wipefs --quiet --all /dev/sdb2
		wipefs --quiet --all /dev/sdb3
		wipefs --quiet --all /dev/sdb
		wipefs --quiet --all /dev/sda1
		wipefs --quiet --all /dev/sda2
		wipefs --quiet --all /dev/sda3
		wipefs --quiet --all /dev/sda
	END
	diff want undone >&2
}

# The tool that runs is ended first.
case_make_ended()
{
	local signal number

	while read -r signal number; do
		rm -rf tree before
		machine
		echo "mdadm --create" >tree/fails
		echo "$signal" >tree/signal
		# shellcheck disable=SC2016 # that shell's
		expect_status "$number" env --default-signal="$signal" \
			bash -c 'echo $$ >tree/pid; exec "$@"' bash \
			"$REPO/tune/blinktune" --root tree --state state \
			disks make --data-bytes 1000000000 /dev/sda /dev/sdb \
			--yes-destroy /dev/sda /dev/sdb 2>err
		expect_match 'disks make: ended by a signal' err
		expect_match '/dev/sda: lost' err
		[ "$(tail -n 1 tree/log)" = "wipefs --quiet --all /dev/sda" ] ||
			fail "$(cat tree/log)"
	done <<-END
		HUP 129
		INT 130
		TERM 143
	END
}

undo_of()
{
	printf '%s' "wipefs --quiet --all /dev/${1}1,wipefs --quiet --all /dev/$1"
}

# Nothing is destroyed when a tool, a folder or a name for the array is missing.
case_make_unable()
{
	local name

	machine
	for name in sfdisk mkfs.xfs mdadm; do
		mv "tree/tools/$name" .
		expect_status 3 make_two 2>err
		expect_match "$name is not installed" err
		mv "$name" tree/tools/
	done
	expect_status 3 make_two --mount /srv/data 2>err
	expect_match 'no folder /srv/data' err
	mkdir -p tree/dev/md
	touch tree/dev/md/blink
	expect_status 3 make_two 2>err
	expect_match 'there is a /dev/md/blink already' err
	expect_empty tree/log
}

case_undo_fails()
{
	machine
	printf 'm[dk]*' >tree/fails
	expect_status 7 make_two 2>err
	expect_match 'mdadm --stop /dev/md/blink: mdadm: as told' err
}

# --- loop devices ---------------------------------------------------------------

# with_loops COUNT COMMAND...: $loops; let go at the end
with_loops()
{
	local i
	loops=()

	# Before the folder is removed
	at_end 'umount mounted 2>/dev/null || true; losetup -d "${loops[@]}"'
	for ((i = 0; i < $1; i++)); do
		truncate -s 1000M "backing.$i"
		loops+=("$(losetup -f -P --show "backing.$i")")
	done
	shift
	"$@"
}

real()
{
	"$REPO/tune/blinktune" --state "$PWD/state" disks "$@"
}

# What a write anywhere would change; the beginning, where tables are, word for word
backing_state()
{
	local file

	for file in backing.*; do
		head -c 8M "$file" | sha256sum
		stat -c '%y %b' "$file"
	done
}

loop_plan()
{
	local words=(plan --data-bytes 1000000 "${loops[@]}")

	mkfs.xfs -q "${loops[0]}"
	backing_state >before
	real "${words[@]}" >out
	expect_match "destroyed: xfs on ${loops[0]#/dev/}" out
	expect_match '^mdadm --create /dev/md/blink ' out
	expect_match 'not a drive itself' out
	backing_state >after
	expect_same before after
	# The same by a user that may not read the disks
	open_program
	setpriv --reuid=65534 --clear-groups "$PROGRAM" disks "${words[@]}" \
		>out 2>err
	expect_empty err
	expect_match 'holds is unknown: Permission denied' out
	expect_gone state
}

loop_plan_opens_nothing()
{
	strace -f -qq -e trace=open,openat,creat -o trace \
		"$REPO/tune/blinktune" --state "$PWD/state" \
		disks plan --data-bytes 1000000 "${loops[@]}" >out
	grep -E 'O_WRONLY|O_RDWR|O_CREAT|creat\(' trace |
		grep -v -E '"/dev/(null|tty)"' >writing || true
	expect_empty writing
}

# As it will be used: of one disk, whose table the kernel has read.
loop_raw()
{
	real make --raw --data-bytes 100000000 "${loops[0]}" \
		--yes-destroy "${loops[0]}" 2>err || fail "$(cat err)"
	expect_match "then: blinksort ${loops[0]}p1 .*device=${loops[0]}p2" err
	partx --show --noheadings --output START,SECTORS "${loops[0]}" |
		sed 's/^ *//' >parts
	printf '%d %d\n' 2048 $((105 * 2048)) $((106 * 2048)) $((105 * 2048)) \
		>want
	diff -b want parts >&2
	sed -n 's/.*then: blinksort //p' err >words
	# shellcheck disable=SC2046 # words
	"$BIN/blinksort" $(<words)
}

# A sort beyond memory by way of the file system that was made.
loop_scratch()
{
	mkdir mounted
	real make --scratch --mount "$PWD/mounted" --data-bytes 100000000 \
		"${loops[0]}" --yes-destroy "${loops[0]}" 2>err ||
		fail "$(cat err)"
	"$BIN/blinkgen" -a 1000000 records
	dd if=records of="${loops[0]}p3" bs=1M conv=fsync status=none
	sed -n 's/.*then: blinksort //p' err >words
	expect_match " -T $PWD/mounted\$" words
	# shellcheck disable=SC2046 # words
	"$BIN/blinksort" $(<words) -S 20M --json >said
	expect_match '"spilled_bytes": [1-9]' said
	"$BIN/blinkval" "${loops[0]}p2" --device-bytes=100000000 \
		--against records
}

# Of the first disk only the table was made, which the kernel may not have read:
# it is removed again.
loop_raw_fails()
{
	local holder

	python3 -c 'import os, sys, time
os.open(sys.argv[1], os.O_RDONLY | os.O_EXCL)
print(flush=True)
time.sleep(300)' "${loops[1]}" >held &
	holder=$!
	wait_until test -s held
	status=0
	real make --raw --data-bytes 100000000 "${loops[@]}" \
		--yes-destroy "${loops[@]}" 2>err || status=$?
	kill "$holder"
	wait "$holder" 2>/dev/null || true
	[ "$status" = 1 ] || fail "status $status: $(cat err)"
	expect_match "disks make: sfdisk: .*in use" err
	expect_match "${loops[0]}: lost" err
	wipefs "${loops[0]}" >left
	expect_empty left
}

loop_mounted()
{
	mkfs.xfs -q "${loops[0]}"
	mkdir mounted
	mount "${loops[0]}" mounted
	expect_status 3 real make --data-bytes 1000 "${loops[0]}" \
		--yes-destroy "${loops[0]}" 2>err
	touch mounted/alive
	expect_match 'is mounted at' err
}

loop_make()
{
	mkfs.xfs -q "${loops[0]}"
	mkdir mounted
	real make --data-bytes 300000000 --mount "$PWD/mounted" "${loops[0]}" \
		--yes-destroy "${loops[0]}" 2>err || fail "$(cat err)"
	# All of the data set finds room.
	fallocate -l 300000000 mounted/data
	partx --show --noheadings --output START,SECTORS "${loops[0]}" >parts
	expect_match '^ *2048 +808960 *$' parts
}

check_loops()
{
	if cannot loop || cannot mount; then
		skip loop "$why"
		return
	elif ! type -P mkfs.xfs >/dev/null; then
		skip loop "no mkfs.xfs"
		return
	fi
	check loop_plan with_loops 2 loop_plan
	check_able trace loop_plan_opens_nothing \
		with_loops 1 loop_plan_opens_nothing
	check loop_mounted with_loops 1 loop_mounted
	if type -P sfdisk >/dev/null; then
		check loop_make with_loops 1 loop_make
		check loop_raw with_loops 1 loop_raw
		check loop_scratch with_loops 1 loop_scratch
	else
		skip loop_make "no sfdisk (Debian's package fdisk)"
	fi
	if type -P sfdisk >/dev/null && type -P mdadm >/dev/null; then
		check loop_raw_fails with_loops 2 loop_raw_fails
	else
		skip loop_raw_fails "no sfdisk or no mdadm"
	fi
}

check plan case_plan
check plan_single case_plan_single
check plan_raw case_plan_raw
check plan_raw_single case_plan_raw_single
check plan_scratch case_plan_scratch
check plan_scratch_single case_plan_scratch_single
check plan_json case_plan_json
check warnings case_warnings
check refused case_refused
check refused_more case_refused_more
check usage case_usage
check agreed case_agreed
check make case_make
check make_fails case_make_fails
check make_raw_fails case_make_raw_fails
check make_scratch case_make_scratch
check make_ended case_make_ended
check make_unable case_make_unable
check undo_fails case_undo_fails
check_loops
finish
