#!/bin/bash
# check_sort_compress.sh - blinksort's scratch files, compressed by each codec:
# the output is that of a sort within memory

# shellcheck disable=SC2317 # cases are called by check
# shellcheck source=tests/programs/sort_lib.sh
. "$(dirname "$0")/sort_lib.sh"

CODECS=(none lz4 zstd auto)
# About half of what the records take, which are read past the page cache.
EXTERNAL=(--io=direct -T . -S 14M)
readonly BYTES=24000000
readonly COUNT=$((BYTES / 100))

# expect_same_sort [OPTION...]: of the file in
expect_same_sort()
{
	local codec

	expect_sorted in -o want "$@"
	# So it is by way of scratch files.
	expect_refused 3 '' in -o out "${EXTERNAL[@]}" -T missing "$@"
	for codec in "${CODECS[@]}" "${more_codecs[@]}"; do
		expect_sorted in -o out "${EXTERNAL[@]}" --compress="$codec" "$@"
		cmp -s out want || fail "$codec $*: the output differs"
		expect_same <(ls) <(printf '%s\n' in out want)
	done
	rm out
}
more_codecs=()

# The generator's text shrinks to less than half.
case_ascii()
{
	more_codecs=(zstd:3)
	"$BIN/blinkgen" -a "$COUNT" in
	expect_same_sort
	more_codecs=()
	expect_same_sort --threads=1 --batch-size=2
	expect_same_sort --threads=3 --unique --reverse
}

# The generator's binary records do not shrink.
case_binary()
{
	"$BIN/blinkgen" "$COUNT" in
	expect_same_sort
}

# Some blocks shrink to almost nothing, others do not shrink.
case_mixed()
{
	"$BIN/blinkgen" "$COUNT" binary
	"$BIN/blinkgen" -a "$COUNT" text
	{
		head -c $((BYTES / 3)) binary
		head -c $((BYTES / 3)) /dev/zero
		head -c $((BYTES / 3)) text
	} >in
	rm binary text
	expect_same_sort
	expect_same_sort --unique
	expect_same_sort --batch-size=3 --key=90:10
}

# case_shape SHAPE
case_shape()
{
	make_shape "$1" "$COUNT" "$SEED" >in
	CODECS=(lz4 zstd)
	expect_same_sort
	[ -n "$QUICK$SANITIZED" ] || expect_same_sort --batch-size=2 --unique
}

# Blocks of one record, and of many
case_sizes()
{
	local size

	CODECS=(lz4 zstd)
	"$BIN/blinkgen" -a "$COUNT" text
	for size in 20 250 30000; do
		head -c $((BYTES - BYTES % size)) text >in
		mv text ..
		expect_same_sort --record-size="$size"
		mv ../text .
	done
}

# A level that takes more memory than there is: nothing is written.
case_too_little_memory()
{
	"$BIN/blinkgen" -a "$COUNT" in
	expect_refused 5 'at least, and 14.0 MiB are allowed$' in -o out \
		"${EXTERNAL[@]}" --record-size=1000000 --compress=zstd:19
}

case_wrong_codec()
{
	local codec

	: >in
	for codec in gzip lz4:1 zstd: zstd:0 zstd:20 zstd:1x; do
		expect_refused 2 \
			"^--compress=$codec: not auto, none, lz4, zstd or zstd:LEVEL, with a LEVEL from 1 to 19$" \
			in -o out --compress="$codec"
	done
}

check ascii case_ascii
check binary case_binary
check mixed case_mixed
for shape in all-equal two-values zipf sorted reversed; do
	check "shape_$shape" case_shape "$shape"
done
check sizes case_sizes
check too_little_memory case_too_little_memory
check wrong_codec case_wrong_codec
finish
