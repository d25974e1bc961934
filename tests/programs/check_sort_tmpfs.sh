#!/bin/bash
# check_sort_tmpfs.sh - output on tmpfs, whatever its pages are
#
# Each run has a file system of its own, in a name space of its own.

# shellcheck disable=SC2317 # cases are called by check
. "$(dirname "$0")/sort_lib.sh"

COUNT=250000
[ -z "$QUICK" ] || COUNT=130000
INPUT=$SCRATCH/input SORTED=$SCRATCH/sorted LEFT=$SCRATCH/left

# on_tmpfs OPTIONS COMMAND...: with a tmpfs at "there"; its status becomes
# $status, what was in its files in the end "out", and their names are $LEFT.
on_tmpfs()
{
	local options=$1
	shift

	mkdir -p there
	status=0
	# shellcheck disable=SC2016 # for the inner shell
	unshare --mount --map-root-user bash -c '
		mount -t tmpfs -o "$0" blinksort there || exit 98
		status=0
		"$@" || status=$?
		find there -mindepth 1 -type f -printf "%f\n" | sort >&3
		find there -mindepth 1 -type f | sort | xargs -r cat >out
		exit $status' "$options" "$@" \
		>"$STDOUT" 2>"$STDERR" 3>"$LEFT" </dev/null || status=$?
}

# case_sorted OPTIONS
case_sorted()
{
	local options

	for options in "" "--threads=1" "--threads=3" "--checksum" \
		"--io=direct" "--io=buffered" "--kernel=scalar" \
		"-o there/out2 -o there/out3"; do
		# shellcheck disable=SC2086 # none, or several words
		on_tmpfs "$1" "${BLINKSORT[@]}" "$INPUT" -o there/out $options
		[ "$status" = 0 ] || fail "status $status; $options:" \
			"$(head -c 400 "$STDERR")"
		expect_same out "$SORTED"
	done
}

case_generated()
{
	on_tmpfs "$1" "$BIN/blinkgen" -a "$COUNT" there/out
	[ "$status" = 0 ] || fail "status $status"
	expect_same out "$INPUT"
}

# Records that begin in one chunk and end in the next one.
case_long_records()
{
	on_tmpfs "$1" "${BLINKSORT[@]}" "$INPUT" -o there/out \
		--record-size=5000 --key=7:20
	[ "$status" = 0 ] || fail "status $status"
	sort_reference "$INPUT" -o want --record-size=5000 --key=7:20
	expect_same out want
}

# case_full OPTIONS KIBIBYTES: not enough
case_full()
{
	local options

	for options in "" "--threads=1" "--io=direct" "-o there/out2"; do
		# shellcheck disable=SC2086 # none, or several words
		on_tmpfs "$1,size=$2k" "${BLINKSORT[@]}" "$INPUT" -o there/out \
			$options
		[ "$status" = 3 ] || fail "status $status; $options:" \
			"$(head -c 400 "$STDERR")"
		expect_message
		expect_match 'No space left on device' "$STDERR"
		expect_empty "$LEFT"
	done
}

# Just as much as the file takes by small pages.
case_just_enough()
{
	local pages=$(((COUNT * 100 + 4095) / 4096))

	on_tmpfs "huge=never,size=$((pages * 4))k" \
		"${BLINKSORT[@]}" "$INPUT" -o there/out
	[ "$status" = 0 ] || fail "status $status: $(head -c 400 "$STDERR")"
	expect_same out "$SORTED"
}

if cannot mount_huge; then
	skip tmpfs "$why"
	finish
fi
"$BIN/blinkgen" -a $COUNT "$INPUT"
sort_reference "$INPUT" -o "$SORTED"
for huge in never always within_size advise; do
	check "sorted_huge_$huge" case_sorted huge=$huge
	check "generated_huge_$huge" case_generated huge=$huge
	check "long_records_huge_$huge" case_long_records huge=$huge
	for size in 900 5120 $((COUNT / 11)); do
		check "full_${size}k_huge_$huge" case_full huge=$huge "$size"
	done
done
check just_enough case_just_enough
finish
