#!/bin/bash
# check_sort_headers.sh - inputs that begin with a header, which is no record

# shellcheck disable=SC2317 # cases are called by check
. "$(dirname "$0")/cluster_lib.sh"

HEADERS=(1 10 128 4096 5000 1048577)
SIZES=(1 2 3 8 100 4096)
# Of an input; those beyond memory are larger.
BYTES=3000000
[ -z "$QUICK" ] || BYTES=700000

# make_inputs HEADER SIZE BYTES: in.0 to in.3, of which one has no record, with
# headers of their own; what outputs must have, in head and want
make_inputs()
{
	local i counts=($(($3 / $2)) 0 7 $(($3 / 3 / $2)))
	local shape=(--record-size="$2" --key="0:$(($2 < 10 ? $2 : 10))")

	for i in 0 1 2 3; do
		head -c "$1" /dev/urandom >"head.$i"
		make_shape uniform "${counts[i]}" $((SEED + i)) "${shape[@]}" \
			>"body.$i"
		cat "head.$i" "body.$i" >"in.$i"
	done
	sort_reference body.? -o want "${shape[@]}"
	mv head.0 head
	rm body.? head.?
}

# expect_files HEADER OUT...: each begins with the header, and behind that they
# have what is wanted
expect_files()
{
	local bytes=$1 out

	shift
	for out; do
		cmp <(head -c "$bytes" "$out") head ||
			fail "$out has another header"
	done
	cmp <(for out; do tail -c +$((bytes + 1)) "$out"; done) want ||
		fail "$* are not what is wanted"
}

case_size()
{
	local size=$1 header io options

	for header in "${HEADERS[@]}"; do
		make_inputs "$header" "$size" "$BYTES"
		for io in "${IO_MODES[@]}"; do
			for options in "" --threads=1 --threads=5; do
				# shellcheck disable=SC2086 # none, or one
				expect_sorted in.? -o out -o out.2 -o out.3 \
					--record-size="$size" --io="$io" \
					--header="$header" $options
				expect_files "$header" out out.2 out.3
			done
			expect_sorted in.? -o out --record-size="$size" \
				--io="$io" --header="$header:drop"
			cmp out want
		done
	done
}

case_beyond_memory()
{
	local size header io

	for size in 8 100 4096; do
		for header in 128 5000; do
			make_inputs "$header" "$size" 16000000
			for io in "${IO_MODES[@]}"; do
				expect_sorted in.? -o out -o out.2 \
					--record-size="$size" --io="$io" \
					--header="$header" -S 10M --json
				# Mapped inputs take no memory.
				[[ $io =~ auto|mmap ]] ||
					expect_match '"external": \{' "$STDOUT"
				expect_files "$header" out out.2
			done
		done
	done
}

# Where outputs are made of huge pages and filled through a mapping.
case_memory_files()
{
	local folder header io

	folder=$(mktemp -d -p /dev/shm)
	# shellcheck disable=SC2064 # as it is now
	at_end "rm -rf '$folder'"
	for header in 128 5000 3000000; do
		make_inputs "$header" 100 20000000
		cp in.? "$folder"
		for io in "${IO_MODES[@]}"; do
			expect_sorted "$folder"/in.? --header="$header" \
				--io="$io" -o "$folder/out" -o "$folder/out.2"
			expect_files "$header" "$folder/out" "$folder/out.2"
		done
	done
}

case_pipes()
{
	local header

	for header in 1 128 5000 1M; do
		make_inputs $((${header/M/ * 1048576})) 100 "$BYTES"
		expect_sorted - -o - --header="$header" <in.0 >out
		sort_reference <(tail -c +$((${header/M/ * 1048576} + 1)) in.0) \
			-o one
		cmp "$STDOUT" <(cat head one)
		expect_sorted <(cat in.0) in.1 <(cat in.2) in.3 -o out \
			--header="$header"
		expect_files $((${header/M/ * 1048576})) out
		expect_sorted in.? -o - --header="$header:drop"
		cmp "$STDOUT" want
	done
}

case_replaced()
{
	local io

	for io in "${IO_MODES[@]}"; do
		make_inputs 128 100 "$BYTES"
		chmod 640 in.0
		expect_sorted in.? -o in.0 --header=128 --io="$io"
		expect_files 128 in.0
		[ "$(stat -c %a in.0)" = 640 ]
		expect_sorted in.0 -o in.0 --header=128 --io="$io" --sync
		expect_files 128 in.0
	done
}

case_unique()
{
	local options

	make_inputs 128 1 100000
	for options in "" --io=direct; do
		# shellcheck disable=SC2086 # none, or one
		expect_sorted in.? -o out -u --record-size=1 --header=128 $options
		cmp out <(cat head; for i in {0..255}; do
			# shellcheck disable=SC2059 # an escape
			printf "\\x$(printf %x "$i")"; done)
	done
	expect_sorted in.1 -o out --header=128
	[ "$(stat -c %s out)" = 128 ]
}

# Inputs that are in order, and one that is not.
case_merged()
{
	local i

	make_inputs 5000 100 "$BYTES"
	for i in 0 1 2 3; do
		expect_sorted "in.$i" -o "in.$i" --header=5000
	done
	expect_sorted in.? -o out -m --header=5000
	expect_files 5000 out
	rm out
	tail -c 100 in.0 | dd of=in.3 bs=1 seek=$((5000 + 700)) conv=notrunc \
		status=none
	expect_refused 1 'in.3: record 8 \(from 0\) belongs before' in.? -o out \
		-m --header=5000
}

case_devices()
{
	local header io bytes devices

	for header in 128 5000; do
		make_inputs "$header" 100 "$BYTES"
		head -c 9M /dev/urandom >before
		cp before device.0
		dd if=in.0 of=device.0 conv=notrunc bs=1M status=none
		cp before device.1
		at_end 'losetup -d "${devices[@]}" 2>/dev/null || true'
		devices=("$(losetup -f --show device.0)"
			"$(losetup -f --show device.1)")
		for io in "${IO_MODES[@]}"; do
			expect_sorted "${devices[0]}" in.[123] --io="$io" \
				--device-bytes="$(stat -c %s in.0)" \
				--output-device="${devices[1]}" \
				--header="$header"
			bytes=$(($(stat -c %s want) + header))
			head -c "$bytes" "${devices[1]}" >out
			expect_files "$header" out
			cmp <(tail -c +$((bytes + 1)) "${devices[1]}") \
				<(tail -c +$((bytes + 1)) before)
		done
		losetup -d "${devices[@]}"
		# At the end they may be another test's.
		devices=()
	done
}

# run_ranks OPTION...: four of them, whose names of files may have the rank
run_ranks()
{
	local rank

	job=headers.$$.$RANDOM pids=() statuses=()
	for rank in 0 1 2 3; do
		start_rank "$rank" "${BLINKSORT[@]}" --nodes='127.0.0.[2-5]' \
			--rank="$rank" --job="$job" --deadline="$DEADLINE_S" \
			"${@//@/$rank}"
	done
	wait_ranks 0 1 2 3
}

expect_success()
{
	[ "${statuses[*]}" = "0 0 0 0" ] ||
		fail "${statuses[*]}: $(head -c 400 err.*): $*"
}

# expect_own_headers HEADER: each rank's output has that of the rank's input
expect_own_headers()
{
	local rank

	for rank in 0 1 2 3; do
		cmp <(head -c "$1" "out.$rank") <(head -c "$1" "in.$rank")
		tail -c +$(($1 + 1)) "out.$rank"
	done >out
	cmp out want
}

case_ranks()
{
	local header options

	for header in 1 128 5000; do
		make_inputs "$header" 100 "$BYTES"
		for options in --io=mmap --io=direct "-S 12M" \
			"--by-reference=yes --io=mmap"; do
			# shellcheck disable=SC2086 # several words
			run_ranks in.%r --header="$header" -o out.%r $options
			expect_success "$options"
			expect_own_headers "$header"
			# shellcheck disable=SC2086 # several words
			run_ranks in.%r --header="$header" --gather=out $options
			expect_success "$options"
			expect_files "$header" out
		done
		run_ranks in.0 in.1 in.2 in.3 --shared-input -o out.%r \
			--header="$header"
		expect_success --shared-input
		expect_files "$header" out.?
		rm out*
	done
}

case_ranks_refuse()
{
	make_inputs 200 100 10000
	run_ranks in.%r -o out.%r --header=200 --roles=sort:0-3,read:1-3
	[ "${statuses[0]}" = 2 ] || fail "${statuses[*]}"
	expect_match '--header: rank 0 has no input whose header' err.0
	run_ranks in.%r -o out.%r --header=200:drop --roles=sort:0-3,read:1-3
	expect_success --roles
	rm out.?
	run_ranks in.%r -o out.%r --header=@00
	[[ "${statuses[*]}" =~ ^[24]( [24]){3}$ ]] || fail "${statuses[*]}"
	expect_match 'has another --header than rank' <(cat err.?)
	[ ! -e out.0 ] || fail "an output is left"
}

# write_npy VERSION FILE: four numbers, behind a header that says so
write_npy()
{
	python3 -P - "$1" >"$2" <<-'END'
		import struct, sys
		text = b"{'descr': '<f8', 'fortran_order': False, 'shape': (4,), }"
		major = int(sys.argv[1])
		length = 128 - (10 if major == 1 else 12)
		sys.stdout.buffer.write(
		    b"\x93NUMPY" + bytes((major, 0))
		    + struct.pack("<H" if major == 1 else "<I", length)
		    + text.ljust(length - 1) + b"\n"
		    + struct.pack("<4d", 3, 1, 2, 0))
	END
}

case_numpy()
{
	local version options=(--record-size=8 --key=0:f64)

	for version in 1 2 3; do
		write_npy "$version" a.npy
		expect_refused 3 'a.npy: is a NumPy file.*--header=128' \
			a.npy -o b.npy "${options[@]}"
		expect_sorted a.npy -o b.npy --header=128 "${options[@]}"
		cmp <(head -c 128 b.npy) <(head -c 128 a.npy)
		[ "$(od -An -tf8 -v -w32 -j128 b.npy | tr -s ' ')" = " 0 1 2 3" ]
		expect_sorted a.npy -o raw --header=0 "${options[@]}"
	done
}

case_told()
{
	make_inputs 128 100 10000
	expect_sorted in.? -o out --header=128 --json
	expect_match '"record_size": 100,.*"header_bytes": 128,' "$STDOUT"
	expect_sorted in.? -o out --header=128 --explain
	expect_match 'of 100 bytes, in each file behind a header of 128$' \
		"$STDOUT"
}

case_mistakes()
{
	head -c 100 /dev/zero >in
	: >empty
	expect_refused 3 'in: 100 bytes are fewer than the 101 of --header' \
		in -o out --header=101
	expect_refused 3 'empty: 0 bytes are fewer' in empty -o out --header=10 \
		--record-size=9
	expect_refused 3 'standard input: 100 bytes are fewer' - -o out \
		--header=1K <in
	expect_refused 3 'in: 90 bytes behind the header are not a whole' \
		in -o out --header=10
	expect_refused 3 'standard input: 90 bytes behind the header' \
		- -o out --header=10 <in
	expect_refused 3 'is there a header \(--header\)' in -o out \
		--record-size=33
	for value in x 1:x :drop 1:drop:drop -1 99999999999999999999 17M; do
		expect_refused 2 '--header' in -o out --header="$value"
	done
	expect_refused 3 'fewer' in -o out --header=17M:drop
}

case_blinkval()
{
	local val=("$BIN/blinkval" --record-size=100)

	make_inputs 128 100 "$BYTES"
	expect_sorted in.? -o out -o out.2 --header=128
	"${val[@]}" -q out out.2 --header=128 --against=in.{0,1,2,3}
	"${val[@]}" -q <(cat out) - --header=128 --against=in.0 \
		--against=<(cat in.1) --against=in.2 --against=in.3 <out.2
	expect_sorted in.? -o out.3 --header=128:drop
	"${val[@]}" -q out.3 --header=128:drop --against=in.{0,1,2,3}
	# Nothing but its header is wrong.
	printf x | dd of=out.2 bs=1 seek=127 conv=notrunc status=none
	! "${val[@]}" out out.2 --header=128 --against=in.{0,1,2,3} 2>said ||
		fail "another header is not told"
	expect_match 'ERROR - the header of out.2 is not that of the first' said
	"${val[@]}" -q out out.2 --header=128
	status=0
	"${val[@]}" in.0 --header=1T:drop --against=in.1 2>said || status=$?
	[ "$status" = 3 ] || fail "a header longer than the file: $status"
	expect_match 'in.1: 128 bytes are fewer than the' said
}

for size in "${SIZES[@]}"; do
	check "size_$size" case_size "$size"
done
check beyond_memory case_beyond_memory
check memory_files case_memory_files
check pipes case_pipes
check replaced case_replaced
check unique case_unique
check merged case_merged
if losetup -f >/dev/null 2>&1; then
	check devices case_devices
else
	skip devices "there are no loop devices"
fi
check ranks case_ranks
check ranks_refuse case_ranks_refuse
check numpy case_numpy
check told case_told
check mistakes case_mistakes
check blinkval case_blinkval
finish
