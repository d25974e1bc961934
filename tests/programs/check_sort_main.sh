#!/bin/bash
# check_sort_main.sh - blinksort on the benchmark's input, from end to end
#
# The digests are of files that the original gensort made, sorted by a program
# that shares nothing with ours.

# shellcheck disable=SC2317 # cases are called by check
. "$(dirname "$0")/sort_lib.sh"

# The slow builds get a tenth of the records where a million add nothing.
COUNT=1000000 CHECKSUM=7a19cff467438
if [ -n "$QUICK$SANITIZED" ]; then
	COUNT=100000 CHECKSUM=c34e19c81885
fi

expect_md5()
{
	local digest

	digest=$(md5sum <"$2")
	[ "${digest%% *}" = "$1" ] || fail "md5 of $2: ${digest%% *}, not $1"
}

# case_published "OPTION..." CHECKSUM INPUT-MD5 OUTPUT-MD5 DUPLICATES
case_published()
{
	local options
	read -r -a options <<<"$1"

	"$BIN/blinkgen" -c "${options[@]}" 1000000 in 2>printed
	expect_match "(^|[^0-9a-f])$2\$" printed
	expect_md5 "$3" in
	expect_sorted in -o out --checksum --json
	expect_match "\"$2\"" "$STDOUT"
	expect_md5 "$3" in
	expect_md5 "$4" out
	"$BIN/blinkval" out 2>printed
	expect_match "^Checksum: $2\$" printed
	expect_match "^Duplicate keys: $5\$" printed
	expect_match "^SUCCESS - all records are in order\$" printed
}

check published_ascii case_published -a 7a19cff467438 \
	dcddf6e1545f0c81bf9e37d24963be70 1b5f932e9376bb9d8d8c1b949f22a9d7 0
check published_binary case_published "" 7a0e0d4868cd4 \
	11b7c8fb09c3721676093b5739e2d7b5 3734caf6fdbdf7657a36a6efa2e8e9eb 0
check published_skewed case_published -s 79f9a7e6de673 \
	a4cd19c6bf517eba86b16888beaa670a 67275a1f049371d9add98186bdb6fd2f 0
check published_ascii_skewed case_published "-a -s" 7a135fbce6df2 \
	d23ad9e3c4b9500692bc70907ccfb6e4 8a696f5ac08afd1410766ac6254a2925 35

# From here on one input for all.
INPUT=$SCRATCH/input SORTED=$SCRATCH/sorted
"$BIN/blinkgen" -a $COUNT "$INPUT"
sort_reference "$INPUT" -o "$SORTED"

case_mode()
{
	local kernel

	for kernel in "${KERNELS[@]}"; do
		expect_sorted "$INPUT" -o out --io="$1" --kernel="$kernel"
		expect_empty "$STDOUT"
		expect_same out "$SORTED"
	done
}

case_splitters()
{
	expect_sorted "$INPUT" -o out --splitters="$1" --json
	expect_match '"splitters": ?"(static|sampled)' "$STDOUT"
	expect_same out "$SORTED"
}

case_threads()
{
	local io

	for io in buffered mmap direct; do
		expect_sorted "$INPUT" -o out --io="$io" --threads="$1"
		expect_same out "$SORTED"
	done
}

# binds EXPECTED OPTION...: does such a sort bind threads, true or false?
binds()
{
	local expected=$1
	shift

	expect_sorted "$INPUT" -o out --threads=3 --json "$@"
	expect_match "\"threads\": 3, \"pin\": $expected" "$STDOUT"
	expect_same out "$SORTED"
	[ -z "$SANITIZED" ] || return 0
	command -v strace >/dev/null || return 0
	strace -f -qq -o trace -e trace=sched_setaffinity \
		"$BIN/blinksort" "$INPUT" -o out --threads=3 "$@"
	case $expected$(grep -c setaffinity trace) in
	true0 | false[1-9]*) fail "$*: $(cat trace)" ;;
	esac
}

case_pin()
{
	binds true
	binds true --pin=yes
	binds false --pin=no
	binds true -S 12M --io=direct
	binds false -S 12M --io=direct --pin=no
}

# An input that is not in the page cache: auto decides otherwise then.
case_cold_input()
{
	cp "$INPUT" in
	sync in
	dd of=in oflag=nocache conv=notrunc,fdatasync count=0 2>/dev/null
	expect_sorted in -o out
	expect_same out "$SORTED"
}

case_sync()
{
	expect_sorted "$INPUT" -o out --sync
	expect_same out "$SORTED"
}

for io in "${IO_MODES[@]}"; do
	check "io_$io" case_mode "$io"
done
for splitters in "${SPLITTERS[@]}"; do
	check "splitters_$splitters" case_splitters "$splitters"
done
for threads in 1 2 3 4 5; do
	check "threads_$threads" case_threads $threads
done
check pin case_pin
check cold_input case_cold_input
check sync case_sync

# --- several files ------------------------------------------------------------

case_several_inputs()
{
	local io

	head -c $((COUNT * 25)) "$INPUT" >first
	tail -c +$((COUNT * 25 + 1)) "$INPUT" >rest
	head -c $((COUNT * 33)) rest >second
	tail -c +$((COUNT * 33 + 1)) rest >third
	: >empty
	for io in "${IO_MODES[@]}"; do
		expect_sorted empty first second empty third -o out --io="$io"
		expect_same out "$SORTED"
	done
	expect_sorted -o out --threads=3 third first second
	sort_reference third first second -o want
	expect_same out want
}

# Parts are in order, whole records, and differ in size by little: the cut may
# lie where a page begins, not exactly where the division says.
case_several_outputs()
{
	local io part bytes share=$((COUNT * 100 / $1)) parts=() options=()

	for part in $(seq "$1"); do
		parts+=("part-$part")
		options+=(-o "part-$part")
	done
	for io in "${IO_MODES[@]}"; do
		expect_sorted "$INPUT" "${options[@]}" --io="$io"
		for part in "${parts[@]}"; do
			bytes=$(stat -c %s "$part")
			[ $((bytes % 100)) = 0 ] || fail "$part: $bytes bytes"
			[[ $bytes -gt $((share * 9 / 10)) &&
				$bytes -lt $((share * 11 / 10)) ]] ||
				fail "$part: $bytes bytes, not about $share"
		done
		cat "${parts[@]}" | expect_same - "$SORTED"
		rm "${parts[@]}"
	done
}

# More outputs than records: the last ones are empty, but there.
case_outputs_for_few_records()
{
	head -c 200 "$INPUT" >in
	sort_reference in -o want
	expect_sorted in -o a -o b -o c -o d -o e
	cat a b c d e | expect_same - want
}

check several_inputs case_several_inputs
check two_outputs case_several_outputs 2
check three_outputs case_several_outputs 3
check seven_outputs case_several_outputs 7
check outputs_for_few_records case_outputs_for_few_records

# --- what is printed ----------------------------------------------------------

case_checksum()
{
	local io

	for io in "${IO_MODES[@]}"; do
		expect_sorted "$INPUT" -o out --checksum --io="$io"
		expect_match "(^|[^0-9a-f])$CHECKSUM\$" "$STDOUT"
	done
}

case_json()
{
	expect_sorted "$INPUT" -o out --json --checksum --threads=2 \
		--kernel="$2" --io="$1"
	python3 - "$STDOUT" "$COUNT" "$CHECKSUM" "$1" "$2" <<-'END'
		import json, sys
		path, count, checksum, io, kernel = sys.argv[1:]
		text = open(path).read()
		result = json.loads(text)
		def has(key, kind):
		    assert isinstance(result[key], kind), (key, result[key])
		    return result[key]
		assert has("records", int) == int(count)
		assert has("record_size", int) == 100
		assert 0 < has("elapsed_ns", int) < 10 ** 12
		assert has("threads", int) == 2
		assert has("splitters", str).startswith(("static", "sampled"))
		assert has("checksum", str) == checksum
		assert has("io", str) in ("buffered", "mmap", "direct")
		assert io in ("auto", result["io"]), result["io"]
		assert has("kernel", str) in ("scalar", "avx2", "avx512")
		assert kernel in ("auto", result["kernel"]), result["kernel"]
		assert 0 < has("minor_faults", int) < 10 ** 9
		assert 0 <= has("major_faults", int) < 10 ** 9
		assert has("voluntary_switches", int) >= 0
		assert has("involuntary_switches", int) >= 0
		phases = has("phases_ns", dict).values()
		assert phases and all(isinstance(ns, int) for ns in phases)
		assert min(phases) >= 0 and sum(phases) <= result["elapsed_ns"]
	END
}

# Past the page cache when asked for, also without --sync, where the file system
# can do it.
case_output_io()
{
	local options want io

	: >probe
	for options in --io=auto --io=direct --io=buffered --io=mmap \
		"--io=direct --sync" "--io=auto --sync" "--io=mmap --sync"; do
		want=buffered
		case $options in
		*direct* | *auto\ --sync)
			dd if="$INPUT" of=probe bs=4096 count=1 oflag=direct \
				2>/dev/null && want=direct
			;;
		esac
		# shellcheck disable=SC2086 # several options
		expect_sorted "$INPUT" -o out --json $options
		expect_same out "$SORTED"
		io=$(sed 's/.*"output_io": "\([a-z]*\)".*/\1/' "$STDOUT")
		[ "$io" = "$want" ] || fail "$options: $io, not $want"
	done
}

# The keys are the same whatever was asked for.
case_json_keys()
{
	local keys='import json, sys; print(sorted(json.load(sys.stdin)))'

	expect_sorted "$INPUT" -o out --json
	# shellcheck disable=SC2094 # two files
	python3 -c "$keys" <"$STDOUT" >keys
	python3 -c 'import json, sys
assert json.load(sys.stdin)["checksum"] is None' <"$STDOUT"
	: >empty
	expect_sorted empty -o out --json --io=direct
	python3 -c "$keys" <"$STDOUT" | expect_same - keys
	expect_sorted "$INPUT" -o out --json --checksum --sync --io=mmap \
		--trace trace
	python3 -c "$keys" <"$STDOUT" | expect_same - keys
}

# Spans of one thread either follow or contain each other.
case_trace()
{
	expect_sorted "$INPUT" -o out --trace trace --io="$1" --threads="$2"
	expect_same out "$SORTED"
	python3 - trace "$2" <<-'END'
		import json, sys
		document = json.load(open(sys.argv[1]))
		if isinstance(document, dict):
		    document = document["traceEvents"]
		lanes = {}
		for event in document:
		    assert event["ph"] in ("X", "M", "I", "i", "C"), event
		    if event["ph"] == "X":
		        assert event["name"], event
		        assert event["ts"] >= 0 and event["dur"] >= 0, event
		        lane = lanes.setdefault(event["tid"], [])
		        lane.append((event["ts"], event["ts"] + event["dur"]))
		# A thread that comes late may find nothing left to do.
		assert 1 <= len(lanes) <= int(sys.argv[2]), sorted(lanes)
		rounding = 0.002
		for lane in lanes.values():
		    open_ends = []
		    for begin, end in sorted(lane, key=lambda s: (s[0], -s[1])):
		        while open_ends and open_ends[-1] <= begin + rounding:
		            open_ends.pop()
		        assert not open_ends or end <= open_ends[-1] + rounding
		        open_ends.append(end)
	END
}

# A user who gives a key has records of another size, more often than not.  A script
# gets no line more.
case_default_size_is_told()
{
	local by='blinksort: taken by default: --record-size=100'

	"$BIN/blinkgen" 100 in
	with_terminal "$BIN/blinksort" in -o out --key=8:u32 >shown
	tr -d '\r' <shown | expect_same - <(echo "$by")
	with_terminal "$BIN/blinksort" in -o out >shown
	with_terminal "$BIN/blinksort" in -o out --key=8:u32 \
		--record-size=100 >>shown
	"$BIN/blinksort" in -o out --key=8:u32 >>shown 2>&1
	expect_empty shown
}

case_help()
{
	local option

	expect_sorted --help=all
	for option in -o --record-size --key -r --reverse --unique \
		--threads --memory --io --splitters --sync --checksum --json \
		--trace --kernel --help --version; do
		expect_match "(^|[^a-z-])$option([^a-z-]|\$)" "$STDOUT"
	done
	[ "$(wc -L <"$STDOUT")" -le 80 ] || fail "wider than 80 columns"
}

case_version()
{
	expect_sorted --version
	expect_one_line "$STDOUT"
	expect_match '^blinksort .' "$STDOUT"
}

check checksum case_checksum
for io in "${IO_MODES[@]}"; do
	check "json_$io" case_json "$io" auto
	check "trace_$io" case_trace "$io" 2
done
for kernel in "${KERNELS[@]}"; do
	check "json_$kernel" case_json auto "$kernel"
done
check json_keys case_json_keys
check output_io case_output_io
check trace_one_thread case_trace auto 1
check trace_five_threads case_trace auto 5
check default_size_is_told case_default_size_is_told
check help case_help
check version case_version

# --- the output as a file -----------------------------------------------------

case_output_mode()
{
	umask 027
	expect_sorted "$INPUT" -o out
	[ "$(stat -c %a out)" = 640 ] || fail "mode $(stat -c %a out), not 640"
}

case_output_replaced()
{
	echo old >out
	ln out other
	expect_sorted "$INPUT" -o out
	expect_same out "$SORTED"
	[ "$(cat other)" = old ] || fail "the old file was written to"
	expect_folder . other out
}

case_output_by_link()
{
	mkdir there
	echo old >there/target
	ln -s there/target out
	expect_sorted "$INPUT" -o out
	[ -L out ] || fail "the link is gone"
	expect_same there/target "$SORTED"
	expect_folder . out there
	expect_folder there target
}

# Whoever reads an input has a right to find it as it was, times included.
case_input_untouched()
{
	local before

	cp "$INPUT" in
	chmod 400 in
	before=$(stat -c '%i %s %a %y %z' in)
	expect_sorted in -o out
	[ "$before" = "$(stat -c '%i %s %a %y %z' in)" ] || fail "in: changed"
	expect_same in "$INPUT"
}

# Files that were opened must not take the place of the standard streams.
case_closed_streams()
{
	# The report can't be printed, but by then the output is there.
	"${BLINKSORT[@]}" "$INPUT" -o out --json <&- >&- 2>&- || true
	expect_same out "$SORTED"
	"${BLINKSORT[@]}" "$INPUT" -o out <&- >&- 2>&-
	expect_same out "$SORTED"
	expect_status 3 "${BLINKSORT[@]}" missing -o other <&- >&- 2>&-
	expect_folder . out
}

check output_mode case_output_mode
check output_replaced case_output_replaced
check output_by_link case_output_by_link
check input_untouched case_input_untouched
check closed_streams case_closed_streams

finish
