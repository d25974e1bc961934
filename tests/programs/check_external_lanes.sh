#!/bin/bash
# check_external_lanes.sh - blinksort on files of several devices, which it reads
# side by side
#
# The output equals that of the sort in memory, so equal keys come in the order
# of the files on the command line, whichever device is faster; and if anything
# fails in one lane, the others end as well.

# shellcheck disable=SC2317 # cases are called by check
. "$(dirname "$0")/fault_lib.sh"

# Too little for the input, but not for two lanes.
readonly BYTES=20000000
LITTLE=(--io=direct --threads=2 -S 18M)

# on_two_devices FUNCTION ARGUMENT...: with a folder in /dev/shm in $folder
on_two_devices()
{
	folder=$(mktemp -d /dev/shm/blinksort-lanes.XXXXXX)
	at_end 'rm -rf "$folder"'
	mkdir one
	"$@"
}

# cut_in: "in" into four files on the two devices in turn, in "${files[@]}"
cut_in()
{
	split -n 4 -a 1 -d in part.
	mv part.1 part.3 "$folder"
	files=(part.0 "$folder/part.1" part.2 "$folder/part.3")
}

# make_in [SHAPE]: records of 100 bytes in "in", a multiple of four of them
make_in()
{
	make_shape "${1:-uniform}" $((BYTES / 100)) "$SEED" >in
	cut_in
}

# lanes_of FILE: how many devices the JSON document in it says were read at once
lanes_of()
{
	sed -n 's/.*"lanes": \([0-9]*\),.*/\1/p' "$1"
}

# expect_lanes N [OPTION...]: the files are sorted by so many lanes, as in memory
expect_lanes()
{
	local want=$1 got
	shift

	"$BIN/blinksort" "${files[@]}" -o want "$@"
	expect_sorted "${files[@]}" -o out "${LITTLE[@]}" -T one --json "$@"
	got=$(lanes_of "$STDOUT")
	[[ $got =~ ^($want)$ ]] || fail "$got lanes, not $want: $*"
	expect_same out want
	rm out
	expect_folder one
}

# --- exact ----------------------------------------------------------------------

shapes()
{
	local shape

	for shape in uniform all-equal few-distinct sorted reversed; do
		make_in "$shape"
		expect_lanes 2
		expect_lanes 2 --unique
	done
}

options()
{
	local shape threads

	for shape in all-equal few-distinct; do
		make_in "$shape"
		expect_lanes 2 --reverse
		expect_lanes '1|2' --batch-size=2
		expect_lanes '1|2' --batch-size=2 --unique
		expect_lanes 2 --compress=lz4
		expect_lanes 2 --splitters=sampled
	done
	for threads in 1 3 4; do
		LITTLE=(--io=buffered "--threads=$threads" -S 20M)
		expect_lanes '1|2'
	done
}

# The tiniest memory has no room for a second lane.
# No team binds its threads; each lane has two.
not_pinned()
{
	local LITTLE=(--io=direct --threads=4 -S 19M)

	make_in
	expect_lanes 2 --pin=no
	[ -z "$SANITIZED" ] || return 0
	command -v strace >/dev/null || return 0
	strace -f -qq -o trace -e trace=sched_setaffinity "$BIN/blinksort" \
		"${files[@]}" -o out "${LITTLE[@]}" -T one --pin=no
	expect_empty trace
}

little_memory()
{
	local mib

	make_in few-distinct
	for mib in 10 11 12 13 14 16; do
		LITTLE=(--io=direct --threads=2 -S "${mib}M")
		expect_lanes '1|2'
		expect_lanes '1|2' --batch-size=2
	done
}

# What is told before and after.
told()
{
	make_in
	run_tested "${files[@]}" -o out "${LITTLE[@]}" -T one --explain
	expect_match '^devices   2 are read side by side$' "$STDOUT"
	run_tested "${files[@]}" -o out "${LITTLE[@]}" -T one --explain --json
	[ "$(lanes_of "$STDOUT")" = 2 ] || fail "$(cat "$STDOUT")"
	run_tested in -o out "${LITTLE[@]}" -T one --explain
	! grep -q '^devices' "$STDOUT" || fail "$(cat "$STDOUT")"
	expect_sorted "${files[@]}" -o out "${LITTLE[@]}" -T one --trace trace
	expect_match '"read device 1"' trace
	expect_match '"read device 2"' trace
	expect_sorted in -o out "${LITTLE[@]}" -T one --trace trace
	! grep -q 'read device' trace || fail "one device has a lane of its own"
}

case_shapes() { on_two_devices shapes; }
case_options() { on_two_devices options; }
case_not_pinned() { on_two_devices not_pinned; }
case_little_memory() { on_two_devices little_memory; }
case_told() { on_two_devices told; }

# Six devices share four lanes, or fewer where that is too little memory.
case_many_devices()
{
	local device

	make_shape few-distinct 199998 "$SEED" >in
	split -n 6 -a 1 -d in part.
	mkdir one
	files=()
	at_end 'umount -l device.*'
	for device in 0 1 2 3 4 5; do
		mkdir "device.$device"
		mount -t tmpfs none "device.$device"
		mv "part.$device" "device.$device"
		files+=("device.$device/part.$device")
	done
	LITTLE=(--io=direct --threads=2 -S 20M)
	expect_lanes 4
	expect_lanes '[1-4]' --unique
	LITTLE=(--io=direct --threads=2 -S 16M)
	expect_lanes 3
	LITTLE=(--io=direct --threads=2 -S 12M)
	expect_lanes 1
}

# --- failures -------------------------------------------------------------------

# A file of one lane is cut short at some moment: the run says so, or had read it
# by then.  It always ends.
shrinks()
{
	local rounds=40 early=0 round file pid random

	[ -z "$QUICK" ] || rounds=8
	make_in few-distinct
	"$BIN/blinksort" "${files[@]}" -o want
	for ((round = 0; round < rounds; round++)); do
		file=${files[round % 4]}
		random_below 60
		timeout 300 "${BLINKSORT[@]}" "${files[@]}" -o out \
			"${LITTLE[@]}" -T one >"$STDOUT" 2>"$STDERR" &
		pid=$!
		nap_ms "$random"
		truncate -s 1000 "$file"
		status=0
		wait "$pid" || status=$?
		if [ "$status" = 3 ]; then
			early=$((early + 1))
			expect_message
			grep -q -F "$file" "$STDERR" || fail "$(cat "$STDERR")"
			[ ! -e out ] || fail "there is an output"
		elif [ "$status" = 0 ]; then
			# It may have begun with the short file.
			cmp -s out want ||
				[ "$(stat -c %s out)" -lt "$BYTES" ] ||
				fail "status 0, bad output"
			rm out
		else
			fail "status $status: $(head -c 300 "$STDERR")"
		fi
		expect_folder one
		cut_in
	done
	echo "  $early of $rounds found it" >&2
}

FAILURES=(
	pread:EIO pwrite:EIO pwrite:ENOSPC mmap:ENOMEM malloc:ENOMEM
	calloc:ENOMEM aligned_alloc:ENOMEM pthread_create:EAGAIN
	pthread_setaffinity_np:EINVAL futex_wait:EINTR
	io_uring_queue_init:ENOSYS io_uring_queue_init_params:ENOSYS
	io_uring_submit:EAGAIN uring_read:EBADF
)
SURVIVED='EINTR|setaffinity|io_uring|uring_'

# judge WHAT: exact, or a documented end; nothing is left
judge()
{
	if [ "$status" = 0 ]; then
		cmp -s out want || fail "$1: status 0, bad output"
		rm out
	elif [[ ! $status =~ ^(3|5)$ ]]; then
		fail "$1: status $status: $(head -c 300 "$STDERR")"
	else
		expect_message || fail "$1"
		[ ! -e out ] || fail "$1: there is an output"
	fi
	expect_folder one || fail "$1: status $status"
}

faults()
{
	make_in few-distinct
	expect_lanes 2
	each_failure "${FAILURES[*]}" "${files[@]}" -o out "${LITTLE[@]}" -T one
}

case_shrinks() { on_two_devices shrinks; }
case_faults() { on_two_devices faults; }

if [ ! -w /dev/shm ] ||
	[ "$(stat -c %d /dev/shm)" = "$(stat -c %d "$SCRATCH")" ]; then
	for case in shapes options not_pinned little_memory told shrinks faults; do
		skip "$case" "no /dev/shm beside /tmp here"
	done
else
	check shapes case_shapes
	check options case_options
	check not_pinned case_not_pinned
	check little_memory case_little_memory
	check told case_told
	check shrinks case_shrinks
	if why=$(no_faults_because); then
		skip faults "$why"
	else
		check faults case_faults
	fi
fi
check_able mount many_devices case_many_devices
finish
