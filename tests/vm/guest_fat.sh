#!/bin/bash
# guest_fat.sh - the first process of the machine of check.sh fat
#
# blinksort has its scratch files on FAT, which has no files without a name
# (O_TMPFILE), no holes, no room that is allocated but not written, and no file
# of 4 GiB or more.  The disk sda is such a file system; every case has a folder
# of its own on it, and leaves neither names nor a change in its free room.
# shellcheck disable=SC2317 # cases are called by check

# shellcheck source=tests/vm/guest_lib.sh
. /blinksort/tests/vm/guest_lib.sh

BIN=/usr/bin
# shellcheck source=tests/programs/sort_lib.sh
. /blinksort/tests/programs/sort_lib.sh

# Less than the input, so that it has to be sorted in runs.
readonly RECORDS=200000
LITTLE=(--io=direct --threads=2 -S 10M)
readonly HIDDEN_NAME='\.blinksort-scratch-[0-9a-f]{16}'

# quietly COMMAND...: its output is shown if it fails
quietly()
{
	"$@" >said 2>&1 || fail "$(cat said)"
}

set_up()
{
	wait_for /dev/sda
	quietly mkfs.vfat -F 32 /dev/sda
	mount -t vfat /dev/sda /mnt
	blinkgen $RECORDS "$SCRATCH/in"
	blinksort "$SCRATCH/in" -o "$SCRATCH/want"
}

# free_blocks: of the file system
free_blocks()
{
	stat -f -c %f /mnt
}

# on_fat COMMAND...: with the empty folder $FAT on FAT
on_fat()
{
	local before

	FAT=/mnt/folder
	rm -rf $FAT
	before=$(free_blocks)
	mkdir $FAT
	"$@"
	expect_folder $FAT
	rmdir $FAT
	# A file's room is free a moment after its process has ended.
	wait_until are_free "$before" || fail "$(free_blocks) blocks are free"
}

are_free()
{
	[ "$(free_blocks)" = "$1" ]
}

# expect_exact ARGUMENT...: the records sorted by way of FAT equal those that
# were sorted in memory
expect_exact()
{
	expect_sorted "$SCRATCH/in" -o out "${LITTLE[@]}" -T "$FAT" "$@"
	expect_same out "$SCRATCH/want"
	rm out
}

case_exact()
{
	expect_exact
	expect_exact -T "$FAT"
	expect_exact --batch-size=2
	expect_exact --compress=lz4
	LITTLE=(--io=buffered --threads=1 -S 10M)
	expect_exact
}

# Nothing of it is on another file system: scratch files are beside the output.
case_all_on_fat()
{
	unset TMPDIR
	cp "$SCRATCH/in" "$FAT/in"
	expect_sorted "$FAT/in" -o "$FAT/out" "${LITTLE[@]}"
	expect_same "$FAT/out" "$SCRATCH/want"
	expect_folder "$FAT" in out
	rm "$FAT"/*
}

# What is written is what is spilled: nothing is filled with zeros before.
case_written_once()
{
	local stat=/sys/class/block/sda/stat begin end spilled written

	sync
	read -r -a begin <$stat
	expect_exact --json
	sync
	read -r -a end <$stat
	spilled=$(sed -n 's/.*"spilled_bytes": \([0-9]*\).*/\1/p' "$STDOUT")
	written=$(((end[6] - begin[6]) * 512))
	[ "$spilled" -gt 5000000 ] || fail "only '$spilled' bytes are spilled"
	[ "$written" -le $((spilled * 5 / 4)) ] ||
		fail "$written bytes are written for $spilled"
}

# --- room --------------------------------------------------------------------

# A file ends before 4 GiB: more is refused before anything is written, but
# there may be two files.
case_file_size()
{
	# An output in this machine's root folder would take its memory.
	local huge=(huge -o /dev/null --threads=2 -S 100M -T "$FAT")

	truncate -s 5000000000 huge
	run_tested "${huge[@]}"
	[ "$status" = 3 ] || fail "status $status"
	expect_message
	expect_match "$FAT .4\.0 GiB in files of 4 GiB.*: too little room" \
		"$STDERR"
	expect_started "${huge[@]}" -T "$FAT"
}

# expect_started ARGUMENT...: its scratch files have room, and it sorts until it
# is ended
expect_started()
{
	blinksort "$@" 2>"$STDERR" &
	wait_until has_scratch $!
	# It would be refused right after it has opened them.
	sleep 1
	kill -s TERM $!
	wait_for_end $!
	[ "$status" = 143 ] || fail "status $status: $(cat "$STDERR")"
}

# in_small BYTES COMMAND...: with the folder small, a FAT file system of that
# size
in_small()
{
	truncate -s "$1" image
	quietly mkfs.vfat image
	mkdir small
	mount -o loop image small
	trap 'umount -l small' EXIT
	shift
	"$@"
	expect_folder small
}

case_full_at_start()
{
	in_small 8M full_at_start
}

full_at_start()
{
	run_tested "$SCRATCH/in" -o out "${LITTLE[@]}" -T small
	[ "$status" = 3 ] || fail "status $status"
	expect_message
	expect_match 'small \(.* free\): too little room .* missing' "$STDERR"
	expect_gone out
	# The other folder has what is missing.
	expect_exact -T small
}

# No holes: the output gets no room from scratch files that have been read.
case_no_holes()
{
	in_small 37M no_holes
}

no_holes()
{
	run_tested "$SCRATCH/in" -o small/out "${LITTLE[@]}" -T small
	[ "$status" = 3 ] || fail "status $status"
	expect_message
	expect_match 'No space left' "$STDERR"
}

# --- names and signals ---------------------------------------------------------

# scratch_files PID: what /proc says of its open files on FAT
scratch_files()
{
	find "/proc/$1/fd" -lname "$FAT/*" -printf '%l\n'
}

has_scratch()
{
	# Not from <(...), which changes $!.
	grep -q -E "^$FAT/$HIDDEN_NAME \(deleted\)\$" <<<"$(scratch_files "$1")"
}

# wait_for_end PID
wait_for_end()
{
	status=0
	wait "$1" 2>/dev/null || status=$?
}

# It has spilled some records, and waits for more.  The file has had a name,
# since FAT has no other way, and has none any more.
case_ended_in_the_middle()
{
	local signal fifo

	mkfifo fifo
	for signal in KILL TERM INT; do
		env --default-signal=INT blinksort - -o out "${LITTLE[@]}" \
			-T "$FAT" <fifo &
		exec {fifo}>fifo
		head -c 19000000 "$SCRATCH/in" >&"$fifo"
		wait_until has_scratch $!
		expect_folder "$FAT"
		kill -s $signal $!
		wait_for_end $!
		exec {fifo}>&-
		[ "$status" -gt 128 ] || fail "$signal: status $status"
		expect_folder "$FAT"
		expect_gone out
	done
}

# The file has its name from the end of openat() until unlinkat(): only SIGKILL
# may end the process there, and leaves it empty.
case_ended_with_a_name()
{
	local left nth

	sort_traced openat
	nth=$(grep -o 'openat(.*' trace | grep -n -m 1 -E "\"$HIDDEN_NAME\"")
	sort_traced "openat:signal=TERM:when=${nth%%:*}"
	grep -q -E "\"$HIDDEN_NAME\".* = [0-9]" trace || fail "no file is made"
	[ "$status" = 143 ] || fail "SIGTERM: status $status"
	expect_folder "$FAT"
	sort_traced unlinkat:signal=KILL:when=1
	[ "$status" = 137 ] || fail "SIGKILL: status $status"
	left=$(ls -A "$FAT")
	[[ $left =~ ^$HIDDEN_NAME$ ]] || fail "left: '$left'"
	[ ! -s "$FAT/$left" ] || fail "$left is not empty"
	rm "$FAT/$left"
}

# sort_traced CALL[:INJECTION]: what the first thread calls, in the file trace
sort_traced()
{
	local inject=()

	[ "$1" = "${1%%:*}" ] || inject=(-e "inject=$1")
	status=0
	strace -qq -o trace -e "trace=${1%%:*}" "${inject[@]}" \
		blinksort "$SCRATCH/in" -o out "${LITTLE[@]}" -T "$FAT" \
		2>"$STDERR" || status=$?
	rm -f out
}

# At any moment of a whole run.  As above, SIGKILL may leave an empty file.
case_killed()
{
	local signals=(KILL TERM INT) rounds=30 early=0
	local round random begin_ns whole_ms

	begin_ns=$(date +%s%N)
	expect_exact --batch-size=4
	whole_ms=$((($(date +%s%N) - begin_ns) / 1000000))
	for ((round = 0; round < rounds; round++)); do
		random_below $((whole_ms * 5 / 4 + 1))
		env --default-signal=INT blinksort "$SCRATCH/in" -o out \
			"${LITTLE[@]}" --batch-size=4 -T "$FAT" &
		nap_ms "$random"
		kill -s "${signals[round % 3]}" $! 2>/dev/null || true
		wait_for_end $!
		if [ "$status" = 0 ] || [ -e out ]; then
			expect_same out "$SCRATCH/want"
			rm out
		else
			early=$((early + 1))
		fi
		if [ "${signals[round % 3]}" = KILL ]; then
			find "$FAT" -type f -empty -regextype posix-extended \
				-regex ".*/$HIDDEN_NAME" -print -delete >&2
		fi
		expect_folder "$FAT"
	done
	echo "  $early of $rounds did not finish" >&2
	[ "$early" -gt 0 ]
}

case_sound()
{
	umount /mnt
	quietly fsck.vfat -n /dev/sda
}

set_up
check fat_exact on_fat case_exact
check fat_all on_fat case_all_on_fat
check fat_written_once on_fat case_written_once
check fat_file_size on_fat case_file_size
check fat_full_at_start on_fat case_full_at_start
check fat_no_holes on_fat case_no_holes
check fat_ended_in_the_middle on_fat case_ended_in_the_middle
check fat_ended_with_a_name on_fat case_ended_with_a_name
check fat_killed on_fat case_killed
check fat_sound case_sound
end_machine
