#!/bin/bash
# check_trial_devices.sh - trials from a block device to another
#
# The devices are loop devices, each over a file here.  Whatever happens, what
# stands behind the records stays; and a run that is refused has written nothing
# at all.

# shellcheck disable=SC2317 # cases are called by check
. "$(dirname "$0")/tool_lib.sh"

TRIAL=$BIN/blinktrial REPORT=$BIN/blinkreport
TESTED=(run_trial) TESTED_AS=blinktrial
RECORDS=20000
BYTES=$((RECORDS * 100))
# Sectors, but no whole number of pages, and 2 MiB to be read behind the records.
DEVICE_BYTES=$(((BYTES / 4096 + 1025) * 4096 + 512))

head -c $DEVICE_BYTES /dev/urandom >"$SCRATCH/before"
"$BIN/blinkgen" $RECORDS "$SCRATCH/in"
"$BIN/blinksort" "$SCRATCH/in" -o "$SCRATCH/want"

# with_devices COMMAND...: $devices over device.0 and device.1, which hold
# $SCRATCH/before, and $input and $output; let go at the end
with_devices()
{
	local i
	devices=()

	# A case that fails may have left a run behind.
	at_end 'kill -KILL $(jobs -p) 2>/dev/null || true
		umount mounted 2>/dev/null || true
		partx -d "${devices[1]}" 2>/dev/null || true
		blockdev --setrw "${devices[@]}" 2>/dev/null || true
		losetup -d "${devices[@]}" 2>/dev/null || true'
	for i in 0 1; do
		cp "$SCRATCH/before" "device.$i"
		devices+=("$(losetup -P -f --show "device.$i")")
	done
	input=${devices[0]} output=${devices[1]}
	"$@"
}

# let_go_last: the last one of $devices, which at the end may be another test's
let_go_last()
{
	losetup -d "${devices[-1]}"
	unset 'devices[-1]'
}

run_trial()
{
	timeout 300 "$TRIAL" --out=record "$@"
}

# expect_trial STATUS ARGUMENT...: in ./out and ./err
expect_trial()
{
	local want=$1 status=0
	shift

	run_trial "$@" >out 2>err </dev/null || status=$?
	[ "$status" = "$want" ] ||
		fail "status $status, not $want: $*: $(head -c 400 err)"
}

# sort_on_devices STATUS ARGUMENT...: from $input to $output
sort_on_devices()
{
	local want=$1
	shift

	expect_trial "$want" --trials=2 --records="$RECORDS" \
		--input-device="$input" --output-device="$output" "$@"
}

# ask EXPRESSION: true of the record's design, trials, and the conditions that
# were met in all of them, not met or not known in any
ask()
{
	/usr/bin/python3 - "$1" "$input" "$output" <<-'END' || fail "not so: $1"
		import json, sys
		design = json.load(open("record/design.json"))
		storage = json.load(open("record/environment.json"))[
			"sessions"][0]["before"]["storage"]
		trials = [json.loads(line) for line in open("record/trials.jsonl")]
		outcomes = [trial["outcome"] for trial in trials]
		every = [c for t in trials for c in t["conditions"]]
		not_met = {c["name"] for c in every if c["met"] is not True}
		met = {c["name"] for c in every} - not_met
		input, output = sys.argv[2:]
		sys.exit(not eval(f"({sys.argv[1]})"))
	END
}

# expect_on DEVICE.FILE WANT: it holds this file, and behind it what was there
expect_on()
{
	local bytes

	bytes=$(stat -c %s "$2")
	cmp <(head -c "$bytes" "$1") "$2" || fail "$1 is not $2"
	cmp <(tail -c +$((bytes + 1)) "$1") \
		<(tail -c +$((bytes + 1)) "$SCRATCH/before") ||
		fail "$1 has changed behind the records"
}

expect_sorted()
{
	expect_status 0 "$TRIAL" validate record
	expect_on device.0 "$SCRATCH/in"
	expect_on device.1 "$SCRATCH/want"
}

# Nobody has the devices, nor is there a file beside them.
expect_let_go()
{
	! pgrep -f -- "=$output( |$)" >pids || fail "processes: $(cat pids)"
	"$BIN/blinksort" - --output-device="$input" \
		--output-device="$output" </dev/null
	! ls "$input".* "$output".* 2>/dev/null || fail "files in /dev"
}

# --- what it does ---------------------------------------------------------------

# case_scenario NAME MET UNKNOWN
case_scenario()
{
	sort_on_devices 0 --scenario="$1" --unverified --cache-bytes=2M
	expect_empty err
	expect_sorted
	expect_let_go
	expect_folder record design.json environment.json trials.jsonl
	ask 'outcomes == ["ok", "ok"]'
	ask "met == set('''$2'''.split())"
	# A loop device does not say what becomes of a flush.
	ask "not_met == set('''$3'''.split())"
	ask 'design["devices"] == {"input": input, "output": output}'
	ask 'list(storage["drives"]) == sorted(d[5:] for d in (input, output))'
	ask '[storage["paths"][n]["fs_type"] for n in "01"] == [None, None]'
	"$REPORT" record >told
	expect_match "$RECORDS|20,000 records .*$input to $output" told
	"$REPORT" --format=html record >page
	expect_match "records of 100 bytes, $input to $output, on one" page
}

case_pagecache()
{
	case_scenario pagecache "input-resident output-resident" ""
	ask 'all(t["ranks"][0]["io"] == "mmap" for t in trials)'
	# The counters are those of the devices: what is below them has not been
	# written to yet.
	ask 'all(2000000 <= t["counters"]["disk_written_bytes"] < 2100000
		 for t in trials)'
	rm -r record
	# All of it could be verified.
	sort_on_devices 0 --scenario=pagecache
	ask 'all(t["scenario_met"] is True for t in trials)'
}

case_cache()
{
	case_scenario cache "input-not-resident input-passed-by
		output-passed-by direct-io" write-cache
}

case_platter()
{
	case_scenario platter "input-not-resident caches-dropped
		other-data-read input-passed-by output-passed-by direct-io
		synced" "drive-cache-defeated write-cache flush"
}

# More than lies behind the records.
case_no_other_data()
{
	sort_on_devices 0 --scenario=platter --unverified --cache-bytes=64M
	expect_sorted
	ask '"other-data-read" in not_met'
	ask 'all("less than 64 MiB behind the records on " + input == c["found"]
		 for c in every if c["name"] == "drive-cache-defeated")'
}

case_beyond_memory()
{
	local device here

	"$BIN/blinkgen" 200000 in
	"$BIN/blinksort" in -o want
	for device in 0 1; do
		truncate -s 22M "device.$device"
		losetup -c "${devices[device]}"
	done
	# No scratch files can be made where it is run.
	here=$PWD
	cd /proc
	timeout 300 "$TRIAL" --scenario=beyond-memory --trials=1 \
		--records=200000 --memory=10M --unverified --cache-bytes=1M \
		--input-device="$input" --output-device="$output" \
		--out="$here/record" --quiet
	cd "$here"
	expect_status 0 "$TRIAL" validate record
	cmp <(head -c 20000000 device.0) in
	cmp <(head -c 20000000 device.1) want
	ask '{"memory-limited", "input-beyond-memory"} <= met'
	ask 'trials[0]["ranks"][0]["external"]["spilled_bytes"] > 5000000'
	expect_folder record design.json environment.json trials.jsonl
	expect_let_go
}

# By turns, so that each finds what the other has left in the page cache.
case_sweep()
{
	printf '%s\n' 'sort.threads default | 1' 'sort.io auto | direct' >sweep
	printf '%s\n' 'part,count,price,currency' 'all,1,900,USD' >prices
	sort_on_devices 0 --scenario=pagecache,cache --sweep=sweep --unverified \
		--order=sequence --price=prices --work=work
	expect_sorted
	ask 'outcomes == ["ok"] * 12 and not_met == {"write-cache"}'
	ask '"the devices" in design["price"]["penny_sort"]["why_not"]'
	expect_folder . device.0 device.1 err out prices record sweep
	rm -r record
	sort_on_devices 0 --scenario=pagecache --sweep=sweep
	expect_match '^skipped: io=direct: .* itself for devices$' out
	ask 'outcomes == ["ok"] * 6 and not_met == set()'
}

# --- what it refuses ------------------------------------------------------------

# refused PATTERN INPUT OUTPUT [ARGUMENT...]: with status 3
refused()
{
	local pattern=$1 from=$2 to=$3
	shift 3

	expect_refused 3 "^$pattern" --scenario=pagecache --trials=2 \
		--records="$RECORDS" --unverified --input-device="$from" \
		--output-device="$to" "$@"
}

case_usage()
{
	local both=(--scenario=pagecache --trials=2 --input-device="$input"
		--output-device="$output")

	expect_refused 2 '^--input-device: needs --output-device$' \
		--scenario=pagecache --trials=2 --input-device="$input"
	expect_refused 2 '^--output-device: needs --input-device$' \
		--scenario=pagecache --trials=2 --output-device="$output"
	expect_refused 2 '^--output-device: is the device of the input' \
		"${both[@]}" --output-device="$input"
	ln -s "$input" link
	expect_refused 2 '^--output-device: is the device of the input' \
		"${both[@]}" --output-device=link
	expect_refused 2 '^--input-device: is for one machine' "${both[@]}" -w \
		localhost
	echo 'ranks.count 2 | 3' >sweep
	expect_refused 2 '^--input-device: is for one process' "${both[@]}" \
		--sweep=sweep
}

case_no_device()
{
	for thing in device.0 "$PWD" /dev/null; do
		refused '.*: not a block device' "$thing" "$output"
		refused '.*: not a block device' "$input" "$thing"
	done
	refused '/dev/there-is-none: .*No such file' /dev/there-is-none "$output"
	refused '/dev/there-is-none: .*No such file' "$input" /dev/there-is-none
}

# The folder of the small files may have files of others.
case_work_folder()
{
	local name

	mkdir work
	for name in in.first in.summary; do
		echo theirs >"work/$name"
		refused ".*work/$name: is there already" "$input" "$output" \
			--work=work
		echo theirs | cmp - "work/$name"
		rm "work/$name"
	done
	for name in in out rehearsal; do
		echo theirs >"work/$name"
	done
	sort_on_devices 0 --scenario=pagecache --work=work
	expect_sorted
	expect_folder work in out rehearsal
	cat work/* | sort -u | cmp - <(echo theirs)
}

case_too_small()
{
	truncate -s $((BYTES - BYTES % 512)) device.1
	losetup -c "$output"
	for pair in "$input $output" "$output $input"; do
		# shellcheck disable=SC2086 # two words
		expect_trial 3 --scenario=pagecache --trials=2 \
			--records=$((RECORDS + 1)) --input-device=${pair% *} \
			--output-device=${pair#* }
		expect_one_line err
		expect_match "^blinktrial: $output: has [0-9]* bytes, and" err
		expect_gone record
		cmp device.0 "$SCRATCH/before"
		cmp -n $((BYTES - BYTES % 512)) device.1 "$SCRATCH/before"
	done
}

case_in_use()
{
	local twin held here

	blockdev --setro "$output"
	refused "$output: it is read-only" "$input" "$output"
	refused "$output: it is read-only" "$output" "$input"
	# blinksort says first that its scratch files would be in memory here.
	here=$PWD
	cd /dev/shm
	! "$TRIAL" --scenario=pagecache --trials=2 --records="$RECORDS" \
		--input-device="$output" --output-device="$input" \
		--out="$here/record" 2>"$here/err" || fail "not refused"
	cd "$here"
	expect_one_line err
	expect_match "^blinktrial: $output: it is read-only" err
	blockdev --setrw "$output"
	exec {held}<"$output"
	flock -s "$held"
	refused "$output: .*locked it" "$input" "$output"
	refused "$output: .*locked it" "$output" "$input"
	exec {held}<&-
	twin=$(losetup -f --show device.1)
	devices+=("$twin")
	refused "$output: .*$twin shows the same" "$input" "$output"
	refused "$output: .*$twin shows the same" "$output" "$input"
	refused ".* shows the same" "$twin" "$output"
	let_go_last
	twin=$(losetup -f --show "$output")
	devices+=("$twin")
	refused "$output: .*$twin shows the same" "$input" "$output"
	refused "$twin: .*shows a device" "$twin" "$input"
	let_go_last
	echo "8,$((BYTES / 512))" | sfdisk -q "$output"
	partx -u "$output"
	# The kernel keeps the partition without the table.
	dd if="$SCRATCH/before" of="$output" bs=1M conv=notrunc,fsync status=none
	refused "$output: it has partitions" "$input" "$output"
	refused "$output: it has partitions" "$output" "$input"
	partx -d "$output"
}

case_mounted()
{
	truncate -s 8M device.1
	losetup -c "$output"
	mkfs.ext4 -q "$output"
	mkdir mounted
	mount "$output" mounted
	for pair in "$input $output" "$output $input"; do
		# shellcheck disable=SC2086 # two words
		expect_trial 3 --scenario=pagecache --trials=2 \
			--input-device=${pair% *} --output-device=${pair#* } \
			--records=$RECORDS
		expect_one_line err
		expect_match "^blinktrial: $output: it is mounted" err
	done
	cmp device.0 "$SCRATCH/before"
	umount mounted
	fsck.ext4 -f -n "$output" >/dev/null 2>&1
}

# What can't be verified, without --unverified.
case_unverified()
{
	local both=(--trials=2 --records="$RECORDS" --input-device="$input"
		--output-device="$output")

	expect_refused 1 "^cache: write-cache: unknown .${output#/dev/}. " \
		"${both[@]}" --scenario=pagecache,cache
	expect_refused 1 \
		"^platter: drive cache of ${input#/dev/}: a file, not" \
		"${both[@]}" --scenario=platter --cache-bytes=2M
	expect_refused 1 \
		"^platter: drive cache of .*: less than 64 MiB behind" \
		"${both[@]}" --scenario=platter --cache-bytes=64M
}

# --- ended ----------------------------------------------------------------------

# A blinksort that hangs at its fifth call: the first ones are the refusal of
# devices and the rehearsal.
start_hung()
{
	local name

	mkdir programs
	for name in blinkgen blinkval blinkprobe blinktrial; do
		ln -s "$BIN/$name" "programs/$name"
	done
	seconds=$((50000 + RANDOM)).$$
	{
		printf '#!/bin/bash\nHERE=%q BIN=%q\n' "$PWD" "$BIN"
		cat <<-END
			case \$1 in
			--version) ;;
			*) echo >>"\$HERE/calls" ;;
			esac
			[ "\$(wc -l <"\$HERE/calls")" != 5 ] ||
				exec sleep $seconds
			exec "\$BIN/blinksort" "\$@"
		END
	} >programs/blinksort
	chmod +x programs/blinksort
	: >calls
	programs/blinktrial --scenario=pagecache --trials=5 --records="$RECORDS" \
		--input-device="$input" --output-device="$output" \
		--out=record >out 2>err &
	pid=$!
	wait_until hung
}

hung()
{
	pgrep -f -- "^sleep $seconds\$" >/dev/null
}

nobody_hung()
{
	! hung
}

case_killed()
{
	local edit pid seconds

	start_hung
	# Another blinksort may not write to the input meanwhile.
	! "$BIN/blinksort" - --output-device="$input" </dev/null 2>err.input ||
		fail "the input is not locked"
	expect_match "$input: .*locked it" err.input
	# A second run says so without blinksort, which would claim the output.
	cp calls calls.before
	expect_status 3 programs/blinktrial --scenario=pagecache --trials=1 \
		--input-device="$output" --output-device="$input" \
		--out=second 2>err.input
	expect_match "$input: .*locked it" err.input
	expect_same calls calls.before
	kill -KILL "$pid"
	wait "$pid" 2>/dev/null || true
	wait_until nobody_hung
	expect_let_go
	ask 'outcomes == ["ok", "ok"]'
	expect_trial 2 --resume --input-device="$output"
	expect_match "--input-device: is $output, but $input" err
	expect_trial 2 --resume --records=7
	# A record that was edited.
	cp record/design.json .
	for edit in 's|"--output-device=[^"]*",||' 's|"--[a-z]*put-device=[^"]*",||g' \
		"s|\"$output\"|\"/dev/other\"|"; do
		sed "$edit" design.json >record/design.json
		! cmp -s design.json record/design.json || fail "$edit: the same"
		expect_trial 3 --resume
		expect_one_line err
		expect_match "design.json: devices: are not those of its" err
	done
	mv design.json record
	# It goes on with the devices of the record, and what is on them.
	expect_trial 0 --resume --input-device="$input"
	ask 'outcomes == ["ok"] * 5'
	expect_sorted
	expect_let_go
}

# The names may lead to other devices by now.
case_input_gone()
{
	local pid seconds

	start_hung
	kill -TERM "$pid"
	expect_status 143 wait "$pid"
	expect_match '^blinktrial: interrupted: 2 trials.*--resume' err
	expect_let_go
	for device in 0 1; do
		dd if="$SCRATCH/before" of="${devices[device]}" bs=1M \
			conv=notrunc,fsync status=none
	done
	expect_trial 3 --resume
	expect_one_line err
	expect_match "^blinktrial: $input: does not have the records" err
	ask 'outcomes == ["ok", "ok"]'
	cmp device.0 "$SCRATCH/before"
	cmp device.1 "$SCRATCH/before"
	# The same records in their sorted order are others.
	dd if="$SCRATCH/want" of="$input" bs=1M conv=notrunc,fsync status=none
	expect_trial 3 --resume
	expect_match "^blinktrial: $input: does not have the records" err
	dd if="$SCRATCH/in" of="$input" bs=1M conv=notrunc,fsync status=none
	expect_trial 0 --resume
	expect_sorted
}

if cannot loop; then
	skip trial_devices "$why"
	finish
fi
check pagecache with_devices case_pagecache
check cache with_devices case_cache
check platter with_devices case_platter
check no_other_data with_devices case_no_other_data
check beyond_memory with_devices case_beyond_memory
check sweep with_devices case_sweep
check usage with_devices case_usage
check no_device with_devices case_no_device
check work_folder with_devices case_work_folder
check too_small with_devices case_too_small
check_able sfdisk.here in_use with_devices case_in_use
check_able mount,mkfs.ext4.here mounted with_devices case_mounted
check unverified with_devices case_unverified
check killed with_devices case_killed
check input_gone with_devices case_input_gone
finish
