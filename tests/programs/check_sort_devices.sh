#!/bin/bash
# check_sort_devices.sh - block devices as inputs and as outputs
#
# They are loop devices, each over a file here.  Whatever happens, an input is as
# it was, and so are the bytes of a device behind the output.  What needs disks
# with partitions and arrays is tested in a machine of its own (tests/vm).

# shellcheck disable=SC2317 # cases are called by check
. "$(dirname "$0")/fault_lib.sh"

COUNT=60000
[ -z "$QUICK" ] || COUNT=20000
BYTES=$((COUNT * 100))
# More than the output: sectors, but no whole number of pages.
DEVICE_BYTES=$(((BYTES / 4096 + 2) * 4096 + 512))
ROUNDS=20
[ -z "$QUICK" ] || ROUNDS=5

make_shape zipf $COUNT "$SEED" >"$SCRATCH/in"
sort_reference "$SCRATCH/in" -o "$SCRATCH/want"
head -c $DEVICE_BYTES /dev/urandom >"$SCRATCH/before"

# with_devices COUNT COMMAND...: $devices over device.0 and so on, which hold
# $SCRATCH/before; let go at the end
with_devices()
{
	local i
	devices=()

	# Before the folder is removed.  A loop device stays read-only when it
	# is let go.
	at_end 'umount mounted 2>/dev/null || true
		partx -d "${devices[0]}" 2>/dev/null || true
		blockdev --setrw "${devices[@]}" 2>/dev/null || true
		losetup -d "${devices[@]}" 2>/dev/null || true'
	for ((i = 0; i < $1; i++)); do
		cp "$SCRATCH/before" "device.$i"
		devices+=("$(losetup -P -f --show "device.$i")")
	done
	shift
	"$@"
}

# let_go_last: the last one of $devices, which at the end may be another test's
let_go_last()
{
	losetup -d "${devices[-1]}"
	unset 'devices[-1]'
}

# put FILE DEVICE: from its first byte on
put()
{
	dd if="$1" of="$2" bs=1M conv=notrunc,fsync status=none
}

# expect_on DEVICE WANT: it holds this file, and behind it what it held before
expect_on()
{
	local bytes

	bytes=$(stat -c %s "$2")
	cmp <(head -c "$bytes" "$1") "$2" || fail "$1 is not $2"
	expect_same_behind "$1" "$bytes"
}

# expect_same_behind DEVICE BYTES
expect_same_behind()
{
	# Another program may have detached it, which leaves an empty one.
	[ "$(blockdev --getsize64 "$1")" != 0 ] || fail "$1 is detached"
	cmp <(tail -c +$(($2 + 1)) "$1") \
		<(tail -c +$(($2 + 1)) "$SCRATCH/before") ||
		fail "$1 has changed behind byte $2"
}

# --- what it does ---------------------------------------------------------------

case_read()
{
	local io

	put "$SCRATCH/in" "${devices[0]}"
	for io in "${IO_MODES[@]}"; do
		expect_sorted "${devices[0]}" --device-bytes="$BYTES" \
			-o out --io="$io"
		expect_same out "$SCRATCH/want"
		rm out
	done
	cmp <(head -c "$BYTES" device.0) "$SCRATCH/in"
	# A whole device, and one beside a file.
	expect_sorted "${devices[0]}" --record-size=512 -o out
	sort_reference device.0 -o want --record-size=512
	expect_same out want
	expect_sorted "${devices[0]}" "$SCRATCH/want" -o out2 \
		--device-bytes="$BYTES"
	sort_reference "$SCRATCH/in" "$SCRATCH/want" -o want2
	expect_same out2 want2
}

case_written()
{
	local options

	for options in "" "--io=buffered" "--io=mmap" "--io=direct --threads=1" \
		"--threads=3" "--sync" "--kernel=scalar" "--json"; do
		put "$SCRATCH/before" "${devices[0]}"
		# shellcheck disable=SC2086 # none, or several words
		expect_sorted "$SCRATCH/in" --output-device="${devices[0]}" \
			$options
		expect_on "${devices[0]}" "$SCRATCH/want"
		expect_on device.0 "$SCRATCH/want"
	done
	expect_match '"output_io": "direct"' "$STDOUT"
}

# Parts end at any byte.
case_several()
{
	put "$SCRATCH/in" "${devices[2]}"
	expect_sorted "${devices[2]}" --device-bytes="$BYTES" --trace=trace \
		--output-device="${devices[0]}" \
		--output-device "${devices[1]}" --json
	head -c $((BYTES / 2)) "$SCRATCH/want" >want.0
	tail -c $((BYTES / 2)) "$SCRATCH/want" >want.1
	expect_on "${devices[0]}" want.0
	expect_on "${devices[1]}" want.1
	expect_on "${devices[2]}" "$SCRATCH/in"
}

case_small()
{
	local bytes

	for bytes in 0 100 4000 4100 1048600; do
		head -c "$bytes" "$SCRATCH/in" >in
		sort_reference in -o want
		put "$SCRATCH/before" "${devices[0]}"
		expect_sorted in --output-device="${devices[0]}"
		expect_on "${devices[0]}" want
	done
}

case_unique()
{
	local options

	expect_sorted "$SCRATCH/in" -o want --unique
	for options in "" "-S 10M -T ."; do
		put "$SCRATCH/before" "${devices[0]}"
		# shellcheck disable=SC2086 # none, or several words
		expect_sorted "$SCRATCH/in" --unique $options \
			--output-device="${devices[0]}"
		expect_on "${devices[0]}" want
	done
}

# Scratch files go where the user is: not beside the device.
case_beyond_memory()
{
	make_shape uniform 200000 "$SEED" >in
	sort_reference in -o want
	truncate -s 21M device.0
	losetup -c "${devices[0]}"
	put in "${devices[0]}"
	truncate -s 21M device.1
	losetup -c "${devices[1]}"
	expect_sorted "${devices[0]}" --device-bytes=20000000 -S 10M --json \
		--output-device="${devices[1]}"
	expect_match '"external": [{]' "$STDOUT"
	cmp <(head -c 20000000 "${devices[1]}") want
	cmp <(head -c 20000000 "${devices[0]}") in
	expect_folder . device.0 device.1 in want
}

case_pipe()
{
	"${BLINKSORT[@]}" - --output-device="${devices[0]}" <"$SCRATCH/in"
	expect_on "${devices[0]}" "$SCRATCH/want"
}

# --- what it refuses ------------------------------------------------------------

refused()
{
	expect_refused "$@"
	expect_on "${devices[0]}" "$SCRATCH/before"
}

# expect_valid STATUS FILE ARGUMENT...: blinkval says of the arguments what it
# says of the file alone
expect_valid()
{
	local status=$1 file=$2
	shift 2

	expect_status "$status" "$BIN/blinkval" "$file" 2>want.report
	expect_status "$status" "$BIN/blinkval" "$@" 2>report
	expect_same report want.report
}

# expect_invalid STATUS MESSAGE ARGUMENT...
expect_invalid()
{
	expect_status "$1" "$BIN/blinkval" "${@:3}" 2>err
	expect_one_line err
	expect_match "$2" err
}

case_validated()
{
	local bytes=--device-bytes=$BYTES threads

	put "$SCRATCH/in" "${devices[0]}"
	expect_sorted "${devices[0]}" "$bytes" --output-device="${devices[1]}"
	for threads in 1 2 5; do
		expect_valid 0 "$SCRATCH/want" "${devices[1]}" "$bytes" \
			-t "$threads"
		expect_valid 1 "$SCRATCH/in" "${devices[0]}" "$bytes" \
			-t "$threads"
	done
	"$BIN/blinkval" "${devices[1]}" --against="${devices[0]}" "$bytes" \
		2>report
	expect_match 'SUCCESS' report
	expect_status 1 "$BIN/blinkval" "${devices[1]}" "$SCRATCH/want" "$bytes" \
		--against="$SCRATCH/in" 2>report
	expect_match "there are $((2 * COUNT)) records" report
	expect_status 1 "$BIN/blinkval" "${devices[0]}" --record-size=512 2>report
	expect_match "^Records: $((DEVICE_BYTES / 512))$" report
	expect_invalid 1 'partial record' "${devices[1]}" --device-bytes=150
	expect_invalid 3 "it has $DEVICE_BYTES bytes" "${devices[1]}" \
		--device-bytes=1T
	expect_invalid 2 'no file is a block device' "$SCRATCH/want" "$bytes"
	expect_invalid 2 'a block device as standard input' "${devices[0]}" - \
		"$bytes" <"${devices[1]}"
	"$BIN/blinkval" "${devices[1]}" "$bytes" <&- 2>report
	expect_match 'SUCCESS' report
	expect_invalid 2 'not together with' -s "$SCRATCH/want" "$bytes"
}

case_usage()
{
	local device=${devices[0]}

	refused 2 '' "$SCRATCH/in" -o out --output-device="$device"
	refused 2 '' "$SCRATCH/in" --output-device="$device" -o out
	refused 2 '' "$SCRATCH/in" --output-device=
	refused 2 'no input is a block device' "$SCRATCH/in" -o out \
		--device-bytes=100
	refused 2 '' "$device" -o out --device-bytes=0
	refused 2 '' "$device" -o out --device-bytes=-100
	refused 2 '' - -o out --device-bytes=100
	refused 2 '' "$SCRATCH/in" --cluster --gather=out \
		--output-device="$device"
	refused 2 'output-device: not with --suppose' --explain \
		--suppose=2:1000 --output-device="$device"
	refused 3 '' "$SCRATCH/in" -o "$device"
	refused 3 '' "$SCRATCH/in" --output-device="$PWD"
	refused 3 'not a block device' "$SCRATCH/in" --output-device=device.0
	refused 3 '' "$SCRATCH/in" --output-device=/dev/null
	refused 3 '' "$SCRATCH/in" --output-device=/dev/there-is-none
	refused 3 '' "$SCRATCH/in" --output-device=-
	mkfifo pipe
	refused 3 '' "$SCRATCH/in" --output-device=pipe
}

case_sizes()
{
	refused 3 'device-bytes' "${devices[0]}" -o out
	refused 3 '' "${devices[0]}" -o out --device-bytes=99
	refused 3 "it has $DEVICE_BYTES bytes" "${devices[0]}" -o out \
		--device-bytes=1T
	cat "$SCRATCH/in" "$SCRATCH/in" >twice
	refused 3 "it has $DEVICE_BYTES bytes" twice \
		--output-device="${devices[0]}"
	refused 3 '' twice --output-device="${devices[0]}" -S 10M -T .
	# As a drive without a medium.
	truncate -s 0 device.1
	losetup -c "${devices[1]}"
	refused 3 '' "$SCRATCH/in" --output-device="${devices[1]}"
	refused 3 'no medium' "${devices[1]}" -o out
}

case_read_only()
{
	blockdev --setro "${devices[0]}"
	expect_refused 3 'read-only' "$SCRATCH/in" \
		--output-device="${devices[0]}"
	blockdev --setrw "${devices[0]}"
	expect_on "${devices[0]}" "$SCRATCH/before"
}

# Also where another loop device, or the file below one, is the same bytes.
case_input_on_it()
{
	local device=${devices[0]} other

	refused 3 'lies on it' "$device" --record-size=512 \
		--output-device="$device"
	refused 3 '' device.0 --record-size=512 --output-device="$device"
	refused 3 '[.]{3}.*device.0 lies on it' \
		"$(printf './%.0s' {1..150})device.0" --record-size=512 \
		--output-device="$device"
	ln device.0 link
	refused 3 '' link --record-size=512 --output-device="$device"
	other=$(losetup -f --show link)
	devices+=("$other")
	refused 3 '' "$other" --record-size=512 --output-device="$device"
	status=0
	"${BLINKSORT[@]}" - --record-size=512 --output-device="$device" \
		<"$device" 2>err || status=$?
	[ "$status" = 3 ] || fail "status $status"
	expect_match 'standard input' err
	refused 3 'in use' "$SCRATCH/in" --output-device="$device" \
		--output-device="$device"
}

# What O_EXCL does not tell: other loop devices over the device, or over its file.
case_shown_twice()
{
	local device=${devices[0]} over beside

	over=$(losetup -f --show "$device")
	devices+=("$over")
	refused 3 'lies on it' "$over" --record-size=512 \
		--output-device="$device"
	refused 3 "in use: $over shows the same" "$SCRATCH/in" \
		--output-device="$device"
	refused 3 'shows a device' "$device" --record-size=512 \
		--output-device="$over"
	refused 3 '' device.0 --record-size=512 --output-device="$over"
	let_go_last
	beside=$(losetup -f --show --offset 1M device.0)
	devices+=("$beside")
	refused 3 "in use: $beside shows the same" "$SCRATCH/in" \
		--output-device="$device"
	let_go_last
	expect_sorted "$SCRATCH/in" --output-device="$device"
	expect_on "$device" "$SCRATCH/want"
}

# Two partitions of one disk.
case_partitions()
{
	local device=${devices[0]} over
	local half=$((BYTES / 2 - BYTES / 2 % 4096)) count=1000

	printf '%s\n' "8,$((half / 512))" "$((8 + half / 512)),$((half / 512))" |
		sfdisk -q "$device"
	partx -u "$device"
	# The kernel keeps the partitions without the table.
	put "$SCRATCH/before" "$device"
	refused 3 'has partitions' "$SCRATCH/in" --output-device="$device"
	head -c $((count * 100)) "$SCRATCH/in" >in
	sort_reference in -o want
	refused 3 '' "$device" --record-size=512 --output-device="${device}p1"
	refused 3 '' device.0 --record-size=512 --output-device="${device}p1"
	over=$(losetup -f --show "$device")
	devices+=("$over")
	refused 3 "$over shows the same" in --output-device="${device}p1"
	let_go_last
	put in "${device}p1"
	expect_sorted "${device}p1" --device-bytes=$((count * 100)) \
		--output-device="${device}p2"
	cmp <(head -c $((count * 100)) "${device}p2") want
	expect_sorted in --output-device="${device}p1"
	cmp <(head -c $((count * 100)) "${device}p1") want
	cmp <(tail -c +$((1 + 4096 + half + count * 100)) device.0) \
		<(tail -c +$((1 + 4096 + half + count * 100)) "$SCRATCH/before")
	partx -d "$device"
}

case_mounted()
{
	truncate -s 4M device.1
	losetup -c "${devices[1]}"
	mkfs.ext4 -q "${devices[1]}"
	mkdir mounted
	mount -o ro "${devices[1]}" mounted
	expect_refused 3 'mounted' "$SCRATCH/in" \
		--output-device="${devices[1]}"
	umount mounted
	rmdir mounted
}

case_locked()
{
	local held

	exec {held}<"${devices[0]}"
	flock -s "$held"
	refused 3 'locked' "$SCRATCH/in" --output-device="${devices[0]}"
	flock -u "$held"
	flock -x "$held"
	refused 3 'locked' "${devices[0]}" -o out --device-bytes="$BYTES"
	exec {held}<&-
}

case_other_user()
{
	local mode

	chmod 644 "$SCRATCH/in"
	chmod 755 "$SCRATCH"
	status=0
	"${AS_NOBODY[@]}" "${BLINKSORT[@]}" "$SCRATCH/in" \
		--output-device="${devices[0]}" 2>err || status=$?
	[ "$status" = 3 ] || fail "status $status"
	expect_match 'Permission denied' err
	expect_on "${devices[0]}" "$SCRATCH/before"
	# Standard input is the same bytes, and only its opener may open it.
	devices+=("$(losetup -f --show device.0)")
	mode=$(stat -c %a "${devices[0]}")
	chmod 666 "${devices[0]}"
	status=0
	"${AS_NOBODY[@]}" "${BLINKSORT[@]}" - --record-size=512 \
		--output-device="${devices[0]}" <"${devices[1]}" 2>err ||
		status=$?
	chmod "$mode" "${devices[0]}"
	[ "$status" = 3 ] || fail "status $status"
	expect_match 'standard input' err
	expect_on "${devices[0]}" "$SCRATCH/before"
}

# --- what goes wrong ------------------------------------------------------------

judge()
{
	if [ "$status" = 0 ]; then
		expect_on "${devices[0]}" "$SCRATCH/want"
	else
		[[ $status =~ ^(1|3|5)$ ]] ||
			fail "$1: status $status: $(head -c 300 "$STDERR")"
		expect_one_line "$STDERR" || fail "$1"
		expect_match '^blinksort: .' "$STDERR" || fail "$1"
		expect_same_behind "${devices[0]}" "$BYTES"
	fi
	cmp <(head -c "$BYTES" device.1) "$SCRATCH/in" || fail "$1: the input"
	expect_folder . device.0 device.1 || fail "$1: status $status"
}

# shellcheck disable=SC2034 # of each_failure
SURVIVED='EINTR|ENOSYS|EOPNOTSUPP|io_uring|uring_'

case_fails()
{
	put "$SCRATCH/in" "${devices[1]}"
	each_failure "open:EMFILE fstat:EIO flock:EAGAIN flock:EIO
		pread:EIO pwrite:ENOSPC pwrite:EIO pwrite:EINTR
		sync_file_range:EIO fsync:EIO calloc:ENOMEM malloc:ENOMEM
		mmap:ENOMEM ioctl:ENOTTY io_uring_queue_init_params:ENOSYS
		uring_write:EBADF uring_read:EBADF" \
		"${devices[1]}" --device-bytes="$BYTES" \
		--output-device="${devices[0]}" --threads=2 "$@"
}

# What --sync asked for and did not get must be said.
case_sync_fails()
{
	run_fault 1 FAULT_CALL=fsync FAULT_ERRNO=EIO -- "$SCRATCH/in" \
		--output-device="${devices[0]}" --sync
	[ "$status" = 3 ] || fail "status $status"
	expect_match "${devices[0]}: cannot sync" "$STDERR"
}

case_short()
{
	local call

	put "$SCRATCH/in" "${devices[1]}"
	for call in pwrite uring_write pread uring_read; do
		put "$SCRATCH/before" "${devices[0]}"
		run_fault 0 FAULT_CALL="$call" FAULT_DO=short \
			-- "${devices[1]}" --device-bytes="$BYTES" \
			--output-device="${devices[0]}"
		[ "$status" = 0 ] || fail "$call short: status $status:" \
			"$(head -c 300 "$STDERR")"
		judge "$call short"
	done
}

# The io_uring of a program that was killed lets go of a device only after the
# program has ended.
case_held()
{
	BLINKSORT=(strace -f -o "$SCRATCH/strace" -P "${devices[0]}"
		-e "trace=open,openat" -e "inject=open,openat:error=EBUSY:when=1..3"
		"$BIN/blinksort")
	expect_sorted "$SCRATCH/in" --output-device="${devices[0]}"
	expect_on "${devices[0]}" "$SCRATCH/want"
	[ "$(grep -c INJECTED "$SCRATCH/strace")" = 3 ] ||
		fail "$(cat "$SCRATCH/strace")"
}

case_killed()
{
	local signal round=0

	put "$SCRATCH/in" "${devices[1]}"
	for signal in KILL TERM INT; do
		for ((round = 0; round < ROUNDS; round++)); do
			env --default-signal=INT,TERM "${BLINKSORT[@]}" \
				"${devices[1]}" --device-bytes="$BYTES" \
				--output-device="${devices[0]}" \
				>"$STDOUT" 2>"$STDERR" </dev/null &
			nap "0.$(printf %04d $((RANDOM % 300)))"
			kill -s "$signal" $! 2>/dev/null || true
			status=0
			wait $! 2>/dev/null || status=$?
			[ "$status" != 0 ] ||
				expect_on "${devices[0]}" "$SCRATCH/want"
			expect_same_behind "${devices[0]}" "$BYTES"
			cmp <(head -c "$BYTES" device.1) "$SCRATCH/in"
		done
	done
	# Nothing holds the device any more.
	expect_sorted "$SCRATCH/in" --output-device="${devices[0]}"
	expect_on "${devices[0]}" "$SCRATCH/want"
}

# --- ranks ----------------------------------------------------------------------

# run_pair INPUT.0 INPUT.1 OUTPUT.0 OUTPUT.1 OPTION...: two ranks; $statuses
run_pair()
{
	local inputs=("$1" "$2") outputs=("$3" "$4") rank pids=()
	shift 4

	statuses=()
	for rank in 0 1; do
		"${BLINKSORT[@]}" --cluster --nodes='127.0.1.[1-2]' \
			--rank="$rank" --job="devices.$$" --deadline=20 \
			"${inputs[rank]}" --output-device="${outputs[rank]}" \
			"$@" >"said.$rank" 2>"err.$rank" </dev/null &
		pids+=($!)
	done
	for rank in 0 1; do
		statuses[rank]=0
		wait "${pids[rank]}" || statuses[rank]=$?
	done
}

# One input of both, which each makes sure of for itself at the same moment.
expect_shared_input()
{
	local options=(--shared-input --device-bytes="$BYTES" --json) round

	sort_reference "$SCRATCH/in" -o want
	for ((round = 0; round < ROUNDS; round++)); do
		put "$SCRATCH/in" "${devices[0]}"
		run_pair "${devices[0]}" "${devices[0]}" "${devices[2]}" \
			"${devices[3]}" "${options[@]}"
		expect_pair want
	done
	# Which ranks can't map by way of each other.
	run_pair "${devices[0]}" "${devices[1]}" "${devices[2]}" \
		"${devices[3]}" --device-bytes="$1" --by-reference=yes --io=mmap
	[[ " ${statuses[*]} " != *" 0 "* ]] || fail "${statuses[*]}"
	expect_match 'no mapped file' err.0
	put in.0 "${devices[0]}"
	run_pair "${devices[0]}" "${devices[1]}" "${devices[2]}" \
		"${devices[3]}" --device-bytes="$1" --by-reference=auto \
		--io=mmap --json
	expect_pair "$SCRATCH/want"
}

# expect_pair WANT: two ranks have succeeded, with this on devices 2 and 3
expect_pair()
{
	local share

	[ "${statuses[*]}" = "0 0" ] ||
		fail "${statuses[*]}: $(cat err.0 err.1)"
	share=$(python3 -c 'import json
print(json.load(open("said.0"))["records"] * 100)')
	cmp <({
		head -c "$share" "${devices[2]}"
		head -c $((BYTES - share)) "${devices[3]}"
	}) "$1"
}

case_ranks()
{
	local half=$((BYTES / 2))

	head -c "$half" "$SCRATCH/in" >in.0
	tail -c "$half" "$SCRATCH/in" >in.1
	put in.0 "${devices[0]}"
	put in.1 "${devices[1]}"
	run_pair "${devices[0]}" "${devices[1]}" "${devices[2]}" \
		"${devices[3]}" --device-bytes="$half" --json
	expect_pair "$SCRATCH/want"
	expect_shared_input "$half"
	# Another rank's input.
	put in.1 "${devices[1]}"
	put "$SCRATCH/before" "${devices[2]}"
	run_pair "${devices[0]}" "${devices[1]}" "${devices[1]}" \
		"${devices[2]}" --device-bytes="$half"
	[[ " ${statuses[*]} " != *" 0 "* ]] || fail "${statuses[*]}"
	expect_match "${devices[1]}.* in use" err.0
	expect_on "${devices[1]}" in.1
	# One's own input, though by its role the rank does not read it.
	put "$SCRATCH/before" "${devices[1]}"
	put "$SCRATCH/before" "${devices[3]}"
	run_pair "${devices[0]}" "${devices[1]}" "${devices[2]}" \
		"${devices[1]}" --device-bytes="$half" --roles=read:0
	[ "${statuses[*]}" = "4 3" ] || fail "${statuses[*]}"
	expect_match "${devices[1]} lies on it" err.1
	expect_on "${devices[1]}" "$SCRATCH/before"
}

# said_if FLAG: of a sort whose input and scratch files are on one disk, which the
# kernel says to rotate, or not
said_if()
{
	local flag=/sys/block/${devices[0]#/dev/}/queue/rotational
	local sort=("${BLINKSORT[@]}" mounted/in -o /dev/null -S 12M -T mounted)

	echo "$1" >"$flag" || return 0
	"${sort[@]}" --explain >plan || true
	"${sort[@]}" --explain --json >plan.json || true
	with_terminal "${sort[@]}" >shown || true
	"${sort[@]}" 2>file || true
	echo 0 >"$flag"
}

case_rotating()
{
	mkfs.ext4 -q "${devices[0]}"
	mkdir mounted
	mount "${devices[0]}" mounted
	truncate -s 40000000 mounted/in
	said_if 0
	[ -e file ] || return 0 # It can't be set.
	! grep 'rotating disk' plan shown file || fail 'none rotates'
	expect_match '"rotating_disk_of": null' plan.json
	said_if 1
	expect_match '^ +and is on the rotating disk of mounted/in: ' plan
	expect_match '"rotating_disk_of": "mounted/in"' plan.json
	expect_match '^blinksort: mounted: .* rotating disk of an input' shown
	! grep 'rotating disk' file || fail 'said where there is no terminal'
}

if cannot loop; then
	skip devices "$why"
	finish
fi
check read with_devices 1 case_read
check written with_devices 1 case_written
check several with_devices 3 case_several
check small with_devices 1 case_small
check unique with_devices 1 case_unique
check beyond_memory with_devices 2 case_beyond_memory
check pipe with_devices 1 case_pipe
check validated with_devices 2 case_validated
check usage with_devices 1 case_usage
check sizes with_devices 2 case_sizes
check read_only with_devices 1 case_read_only
check input_on_it with_devices 1 case_input_on_it
check shown_twice with_devices 1 case_shown_twice
check_able sfdisk.here partitions with_devices 1 case_partitions
check_able mount,mkfs.ext4.here mounted with_devices 2 case_mounted
check_able mount,mkfs.ext4.here rotating with_devices 1 case_rotating
check locked with_devices 1 case_locked
check_able be_nobody_here other_user with_devices 1 case_other_user
if [ -n "$SANITIZED" ]; then
	skip held "a sanitizer looks for leaks by ptrace itself"
else
	check_able trace held with_devices 1 case_held
fi
check killed with_devices 2 case_killed
check ranks with_devices 4 case_ranks
if why=$(no_faults_because); then
	skip fails "$why"
else
	check fails with_devices 2 case_fails
	check fails_buffered with_devices 2 case_fails --io=buffered --sync
	check short with_devices 2 case_short
	check sync_fails with_devices 1 case_sync_fails
fi
finish
