#!/bin/bash
# check_sort_errors.sh - what blinksort refuses, and what it leaves behind
#
# Each refusal must give the documented exit status and one line that says why,
# and leave the folder exactly as it was.

# shellcheck disable=SC2317 # cases are called by check
. "$(dirname "$0")/sort_lib.sh"

# Some cases need more of the machine than an ordinary user has.
am_root=
[ "$(id -u)" != 0 ] || am_root=1

# --- inputs -------------------------------------------------------------------

case_missing_input()
{
	local io

	make_shape uniform 1000 1 >in
	for io in "${IO_MODES[@]}"; do
		expect_refused 3 '^missing: .*No such file' missing -o out \
			--io="$io"
		expect_refused 3 '' in missing -o out --io="$io"
		expect_refused 3 '' in missing in -o out -o out2 --io="$io"
	done
	expect_refused 3 '' missing -o out --json
	expect_refused 2 '' "" -o out
}

# blinkd runs its jobs in the folder /.
case_relative_input()
{
	local out=$PWD/out

	cd /
	expect_status 3 "${BLINKSORT[@]}" no-such -o "$out" 2>"$STDERR"
	expect_match ': no-such: cannot open in the folder /: No such' "$STDERR"
	expect_status 3 "${BLINKSORT[@]}" /no-such -o "$out" 2>"$STDERR"
	expect_match ': /no-such: cannot open: No such' "$STDERR"
}

case_input_is_no_file()
{
	local io

	mkdir folder
	make_shape uniform 1000 1 >in
	for io in "${IO_MODES[@]}"; do
		expect_refused 3 '^folder: is a folder, not a file$' folder -o \
			out --io="$io"
		expect_refused 3 '' in folder -o out --io="$io"
		expect_refused 3 '' /dev/null folder -o out --io="$io"
	done
}

case_partial_record()
{
	local io bytes

	make_shape uniform 1000 1 >whole
	for bytes in 1 99 101 50001 99999; do
		head -c "$bytes" whole >in
		for io in "${IO_MODES[@]}"; do
			expect_refused 3 '^in: .' in -o out --io="$io"
			expect_refused 3 '' whole in -o out --io="$io"
		done
	done
	head -c 1001 whole >in
	expect_refused 3 ' of 100-byte records \(the default\): is there a header' \
		in -o out
	expect_refused 3 \
		' 300-byte records: is there a header \(--header\), or another --record-size\?$' \
		in -o out --record-size=300
}

# The tests below run as root in most containers, and root may read anything.
as_nobody=(setpriv --reuid=65534 --regid=65534 --clear-groups --)

case_unreadable_input()
{
	make_shape uniform 1000 1 >in
	chmod 0 in
	if [ -n "$am_root" ]; then
		chmod 755 "$SCRATCH"
		chmod 777 .
		cp "$BIN/blinksort" "$SCRATCH/blinksort"
		BLINKSORT=("${as_nobody[@]}" "$SCRATCH/blinksort")
	fi
	expect_refused 3 '^in: .*Permission denied' in -o out
}

case_folder_not_writable()
{
	make_shape uniform 1000 1 >in
	mkdir folder
	echo old >folder/old
	chmod 555 folder
	if [ -n "$am_root" ]; then
		chmod 755 "$SCRATCH" .
		cp "$BIN/blinksort" "$SCRATCH/blinksort"
		BLINKSORT=("${as_nobody[@]}" "$SCRATCH/blinksort")
	fi
	expect_refused 3 '^folder/out: .*Permission denied' in -o folder/out
	expect_refused 3 '' in -o folder/old
	chmod 755 folder
}

check missing_input case_missing_input
check relative_input case_relative_input
check input_is_no_file case_input_is_no_file
check partial_record case_partial_record
if [ -n "$am_root" ] && cannot be_nobody; then
	skip unreadable_input "$why"
	skip folder_not_writable "$why"
else
	check unreadable_input case_unreadable_input
	check folder_not_writable case_folder_not_writable
fi

# An input that another process cuts short during the run: either the run came
# first and its output is the whole, or it failed and said so.  The cut never
# leaves whole records, so that one before the start is seen as well.
case_input_cut_short()
{
	local try bytes io pid status
	local count=200000

	make_shape uniform "$count" 1 >whole
	sort_reference whole -o want
	for ((try = 0; try < ${QUICK:+4} + 16; try++)); do
		io=${IO_MODES[try % 4]}
		cp whole in
		case $((try / 4 % 4)) in
		0) bytes=$((count * 100 - 1)) ;; # within the last page
		1) bytes=1 ;;
		*) random_below $((count)) && bytes=$((random * 100 + 1)) ;;
		esac
		"${BLINKSORT[@]}" in -o out --io="$io" \
			>"$STDOUT" 2>"$STDERR" </dev/null &
		pid=$!
		random_below 25
		nap_ms "$random"
		truncate -s "$bytes" in
		status=0
		wait "$pid" || status=$?
		if [ "$status" = 0 ]; then
			expect_same out want
			rm out
		else
			[ "$status" = 3 ] || fail "status $status; $io, $bytes"
			expect_message
		fi
		expect_folder . in want whole
	done
}

if [ -n "$SANITIZED" ]; then
	skip input_cut_short "a race that slow builds never lose"
else
	check input_cut_short case_input_cut_short
fi

# --- outputs ------------------------------------------------------------------

case_output_folder_missing()
{
	make_shape uniform 1000 1 >in
	expect_refused 3 '^missing/out: .*No such file' in -o missing/out
	expect_refused 3 '' in -o out -o missing/out
	expect_refused 3 '' in -o in/out
	expect_refused 2 '' in -o ""
	expect_refused 3 '' in -o out/
	expect_refused 3 '' in -o "$(printf 'x%.0s' {1..300})"
	expect_refused 3 '' in -o out --trace missing/trace
}

case_output_is_no_file()
{
	make_shape uniform 1000 1 >in
	mkdir folder
	mkfifo pipe
	ln -s folder to-folder
	ln -s to-itself to-itself
	BLINKSORT=(timeout 200 "${BLINKSORT[@]}")
	expect_refused 3 '^folder: .' in -o folder
	expect_refused 3 '' in -o .
	expect_refused 3 '' in -o to-folder
	expect_refused 3 '' in -o to-itself
	expect_refused 2 '' in -o pipe -o out
	expect_refused 2 '' in -o out -o pipe
	expect_refused 3 '' in -o /dev/full
	expect_refused 2 '' in -o /dev/null -o out
	# People time a sort in this way.
	expect_sorted in -o /dev/null --json
	expect_match '"records": 1000,' "$STDOUT"
	[ -c /dev/null ] || fail "/dev/null was replaced"
	expect_refused 3 '' in -o out -o folder
}

# expect_kept ARGUMENT...: refused, or sorted as if the names were of different
# files; either way the file that was the input is as it was under its other
# name.
expect_kept()
{
	rm -f in hard soft
	cp whole in
	ln in hard
	ln -s in soft
	run_tested "$@"
	if [ "$status" = 0 ]; then
		expect_same "$target" want
		[ "$target" = hard ] || expect_same hard whole
		[ "$target" = in ] || expect_same in whole
	else
		[[ $status =~ ^(2|3)$ ]] || fail "status $status: $*"
		expect_message
		expect_same in whole
		expect_same hard whole
	fi
	[ "$(readlink soft)" = in ] || fail "the link was replaced: $*"
	expect_folder . hard in soft want whole
}

case_output_is_input()
{
	local io target

	make_shape uniform 1000 1 >whole
	sort_reference whole -o want
	for io in "${IO_MODES[@]}"; do
		target=in
		expect_kept in -o in --io="$io"
		expect_kept in -o ./in --io="$io"
		expect_kept in -o soft --io="$io"
		expect_kept soft -o in --io="$io"
		expect_kept hard -o in --io="$io"
		target=hard
		expect_kept in -o hard --io="$io"
	done
}

# Half of the records would be lost without a word.
case_output_twice()
{
	make_shape uniform 1000 1 >in
	echo old >old
	ln -s old link
	expect_refused "2|3" '' in -o out -o out
	expect_refused "2|3" '' in -o out -o ./out
	expect_refused "2|3" '' in -o old -o old
	expect_refused "2|3" '' in -o old -o link
	expect_refused "2|3" '' in -o out --trace out
}

# The timeline must not be written over what is being sorted.
case_trace_is_input()
{
	make_shape uniform 1000 1 >in
	ln -s in link
	expect_refused "2|3" '' in -o out --trace in
	expect_refused "2|3" '' in -o out --trace link
}

# A run that fails leaves no timeline either, nor spoils an old one.
case_trace_of_failure()
{
	make_shape uniform 1000 1 >in
	echo old >old
	expect_refused 3 '' in missing -o out --trace trace
	expect_refused 3 '' in missing -o out --trace old
	expect_refused 3 '' in -o missing/out --trace trace
	expect_refused 5 '' in -o out --trace trace --memory=4K
}

# on_small_file_system ARGUMENT...: sort to the folder "small", which then is a
# file system of its own with 900 KiB; what was left in it is listed in "left".
on_small_file_system()
{
	status=0
	# shellcheck disable=SC2016 # for the inner shell
	unshare --mount --map-root-user bash -c '
		mount -t tmpfs -o size=900k blinksort small || exit 98
		[ -z "$OLD" ] || echo old >small/out
		status=0
		"$@" || status=$?
		find small -mindepth 1 -type f -printf "%f %s\n" >&3
		exit $status' bash "${BLINKSORT[@]}" "$@" \
		>"$STDOUT" 2>"$STDERR" 3>"$SCRATCH/left" </dev/null || status=$?
}

case_file_system_full()
{
	local io

	mkdir small
	make_shape uniform 10000 1 >in
	for io in "${IO_MODES[@]}"; do
		for options in "" "--threads=3" "-o small/out2" "--sync"; do
			# shellcheck disable=SC2086 # none, one or two words
			OLD='' on_small_file_system in -o small/out \
				--io="$io" $options
			[ "$status" = 3 ] || fail "status $status; $io" \
				"$options: $(head -c 400 "$STDERR")"
			expect_message
			expect_match 'No space left on device' "$STDERR"
			expect_empty "$SCRATCH/left"
		done
		OLD=1 on_small_file_system in -o small/out --io="$io"
		[ "$status" = 3 ] || fail "status $status; $io, old output"
		[ "$(cat "$SCRATCH/left")" = "out 4" ] ||
			fail "left: $(cat "$SCRATCH/left")"
	done
}

# The limit comes with a signal that would end the process without a word.
case_file_size_limit()
{
	local io limit

	make_shape uniform 10000 1 >in
	echo old >old
	for io in "${IO_MODES[@]}"; do
		limit="-f 500"
		expect_refused 3 'File too large' in -o out --io="$io"
		expect_refused 3 '' in -o old --io="$io" --threads=1
		limit="-f 300"
		expect_refused 3 '' in -o out -o out2 --io="$io"
	done
}

check output_folder_missing case_output_folder_missing
check output_is_no_file case_output_is_no_file
check output_is_input case_output_is_input
check output_twice case_output_twice
check trace_is_input case_trace_is_input
check trace_of_failure case_trace_of_failure
check_able mount_apart file_system_full case_file_system_full
check file_size_limit case_file_size_limit

# --- the command line ---------------------------------------------------------

# refuse_value OPTION VALUE...: the message must name the option.
refuse_value()
{
	local option=$1 value
	shift

	for value; do
		expect_refused 2 "$option" in -o out "$option=$value"
		expect_refused 2 '' in -o out "$option" "$value"
	done
}

case_values()
{
	make_shape uniform 100 1 >in
	refuse_value --record-size 0 -1 +100 abc 100x 0x64 " 100" "100 " 1e2 \
		"" 16777217 4294967396 18446744073709551716 \
		99999999999999999999999999
	refuse_value --key 0 0: :10 : 0:0 0:101 91:10 100:1 101:0 -1:10 0:-1 \
		a:b 0:10:1 0,10 " 0:10" "" 4294967296:10 0:4294967306 \
		18446744073709551615:2 18446744073709551616:1
	refuse_value --threads 0 -1 x 1.5 "" 1e3 1000000 4294967297 \
		18446744073709551617
	refuse_value --memory -1 x 1Q "" 1.5G K 18446744073709551616 \
		17592186044416M 99999999999T
	refuse_value --io fast AUTO "" "mmap "
	refuse_value --splitters none STATIC "" 4
	refuse_value --kernel sse AVX2 "" avx1024
	expect_refused 2 "--key|--record-size" in -o out --record-size=8 \
		--key=0:10
}

case_words()
{
	make_shape uniform 100 1 >in
	expect_refused 2 ''
	expect_refused 2 "-o" in
	expect_refused 2 '' -o out
	expect_refused 2 "o" in -o
	expect_refused 2 "trace" in -o out --trace
	expect_refused 2 "frobnicate" in -o out --frobnicate
	expect_refused 2 "Z" in -o out -Z
	expect_refused 2 "sync" in -o out --sync=yes
}

# A kernel that this CPU does not have: the name is right, the machine is not.
case_kernel_not_here()
{
	local kernel

	make_shape uniform 100 1 >in
	for kernel in scalar avx2 avx512; do
		[[ " ${KERNELS[*]} " == *" $kernel "* ]] && continue
		expect_refused "2|5" "$kernel" in -o out --kernel="$kernel"
	done
}

check values case_values
check words case_words
check kernel_not_here case_kernel_not_here

# --- resources ----------------------------------------------------------------

# Both what is needed and what may be used must be said.
case_memory_too_small()
{
	local io

	make_shape uniform 10000 1 >in
	for io in "${IO_MODES[@]}"; do
		expect_refused 5 \
			'^--memory: .* at least, and 4.0 KiB are allowed$' in \
			-o out --memory=4K --io="$io"
	done
	sort_reference in -o want
	expect_sorted in -o out --memory=1G
	expect_same out want
}

# Without -S the limit of the address space is that of the memory: what does not
# fit goes through scratch files, also where no more than a mapping is too large;
# and with addresses for nothing but the program itself the sort is refused.
case_address_space()
{
	local io

	make_shape uniform 500000 1 >in
	sort_reference in -o want
	for io in "${IO_MODES[@]}"; do
		limit="-v 45000" expect_sorted in -o out --io="$io" --json
		expect_same out want
		expect_match '"external": {' "$STDOUT"
		rm out
		limit="-v 9000" expect_refused 5 '' in -o out --io="$io"
	done
	limit="-v 45000" expect_sorted in -o out --record-size=1000 -S 30M
}

case_descriptors()
{
	local names

	make_shape uniform 10 1 >in
	mapfile -t names < <(seq 30)
	for name in "${names[@]}"; do
		cp in "$name"
	done
	limit="-n 20" expect_refused 5 '' "${names[@]}" -o out
	# With sanitizers the program does not even start with so few.
	[ -n "$SANITIZED" ] || limit="-n 4" expect_refused 5 '' in -o out
}

# Where no thread may be started, fewer do, unless their number was asked for.
case_no_threads()
{
	local option strace=(strace -f -o "$SCRATCH/strace"
		-e "trace=clone,clone3" -e "inject=clone,clone3:error=EAGAIN")

	"$BIN/blinkgen" -t 1 200000 want.in
	"$BIN/blinksort" --threads=1 want.in -o want
	"${strace[@]}" "$BIN/blinkgen" 200000 in
	expect_same in want.in
	BLINKSORT=("${strace[@]}" "$BIN/blinksort")
	expect_sorted in -o out
	expect_same out want
	"${strace[@]}" "$BIN/blinkval" out 2>"$STDERR"
	# Beyond memory some threads are needed.
	"$BIN/blinkgen" 600000 in
	"$BIN/blinksort" --threads=1 in -o want
	BLINKSORT=("${strace[@]}" -e "inject=clone,clone3:error=EAGAIN:when=2"
		"$BIN/blinksort")
	expect_sorted in -o out -S 12M
	expect_same out want
	BLINKSORT=("${strace[@]}" "$BIN/blinksort")
	for option in --threads=3 --threads=64; do
		expect_refused 5 \
			"cannot start [0-9]* threads; ask for fewer: " in -o \
			out "$option"
	done
}

# Many inputs and outputs, but not any number.
case_many_files()
{
	local names=() n

	make_shape uniform 3 1 >in
	sort_reference in in in in in -o want
	expect_sorted in in in in in -o out
	expect_same out want
	rm out
	for ((n = 0; n < 100000; n++)); do
		names+=(in)
	done
	expect_refused "2|3|5" '' "${names[@]}" -o out
	expect_refused "2|3|5" '' in "${names[@]/in/-oin}"
}

check memory_too_small case_memory_too_small
if [ -n "$SANITIZED" ]; then
	skip address_space "the sanitizer itself needs more"
else
	check address_space case_address_space
fi
check descriptors case_descriptors
check many_files case_many_files
if [ -n "$SANITIZED" ]; then
	skip no_threads "a sanitizer looks for leaks by ptrace itself"
else
	check_able trace no_threads case_no_threads
fi

# --- names and sizes that are strange, but legal ------------------------------

case_strange_names()
{
	local name

	make_shape uniform 100 1 >in
	sort_reference in -o want
	# shellcheck disable=SC2016 # no expansion is wanted
	for name in $'new\nline' $'escape\e[31m' 'quote"d' "apo'strophe" \
		'back\slash' 'per%cent%s' 'sp ace' 'ümläut' \
		$'bad\xff\xfeutf' '*' '$(x)' '--help'; do
		cp in "./$name"
		expect_sorted -o "out $name" -- "$name"
		expect_same "./out $name" want
		expect_sorted -o out -- in
		expect_sorted --json --trace "t $name" -o "out $name" -- "$name"
		python3 -c 'import json, sys; json.load(sys.stdin)' <"$STDOUT"
		python3 -c 'import json, sys; json.load(sys.stdin)' \
			<"./t $name"
		rm "./$name" "./out $name" "./t $name"
		expect_refused 3 '' -o "out $name" -- "$name"
		expect_refused 3 '' in -o "./$name/out"
	done
	expect_folder . in out want
}

# A name as long as names may be: no room for another made from it.
case_longest_name()
{
	local name

	name=$(printf 'x%.0s' {1..255})
	make_shape uniform 100 1 >in
	sort_reference in -o want
	expect_sorted in -o "$name"
	expect_same "$name" want
	echo old >"$name"
	expect_sorted in -o "$name"
	expect_same "$name" want
	expect_folder . in want "$name"
}

case_few_records()
{
	local io count threads

	for count in 0 1 2; do
		make_shape reversed "$count" 1 >in
		sort_reference in -o want
		for io in "${IO_MODES[@]}"; do
			for threads in 1 4; do
				expect_sorted in -o out --io="$io" \
					--threads="$threads" --sync --checksum
				expect_same out want
				expect_sorted in in -o out -o out2 --io="$io" \
					--threads="$threads"
				[ "$(cat out out2 | wc -c)" = $((count * 200)) ]
			done
		done
	done
	expect_folder . in out out2 want
}

# Without --key, the key of a record of less than 10 bytes is all of it.
case_small_records()
{
	make_shape uniform 1000 1 --record-size=4 --key=0:4 >in
	sort_reference in -o want --record-size=4 --key=0:4
	expect_sorted in -o out --record-size=4
	expect_same out want
}

check strange_names case_strange_names
check longest_name case_longest_name
check few_records case_few_records
check small_records case_small_records

# --- what is printed can't be printed -----------------------------------------

case_stdout_full()
{
	make_shape uniform 1000 1 >in
	sort_reference in -o want
	for option in --json --checksum --help --version; do
		status=0
		"${BLINKSORT[@]}" in -o out "$option" >/dev/full 2>"$STDERR" ||
			status=$?
		[ "$status" = 1 ] || [ "$status" = 3 ] ||
			fail "status $status with $option"
		expect_message
		[ ! -e out ] || expect_same out want
		rm -f out
		expect_folder . in want
	done
}

check stdout_full case_stdout_full

finish
