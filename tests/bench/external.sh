#!/bin/bash
# external.sh - sorts of files that are larger than the memory
#
# usage: tests/bench/external.sh [--list]         (make bench-external ROWS=...)
#
# It runs as root.  Each run is in a memory cgroup of its own (see beyond-memory
# of blinktrial(1)), which counts what the page cache holds for it, too; a time
# ends when the output is on the medium.  "copy" is bench_copy, which reads and writes
# past the page cache, both at once: the least that one pass can take.
#
#   memory      beside GNU sort, DuckDB, STXXL, cp and a copy
#   memory-*    other limits; memory-edge: enough to sort at once, and 1 % less;
#               memory-curve: ten of them
#   compress-*  what is spilled compressed if that pays, and never
#   pipes*      between two cat(1), also with a slow writer or reader
#   scratch-two scratch on a fast and on a slow disk, beside the fast one alone
#   arm-*       all on a disk that turns: 150 requests and 150 MB a second, beside
#               GNU sort and STXXL; and planned as for one without an arm
#   arm-one-*   the same, where reads and writes wait for each other
#   arm-none    a disk without an arm, and planned as for one that has one
#   shape-*     keys that are not uniform, beside uniform ones
#   head        the first 1,000 records, within HEAD of memory (100M), beside DuckDB
#               and one reading of the file past the page cache
#   merge       eight sorted parts, within MERGE of memory (256M), beside GNU sort -m
#               and a copy
#   size-*      records of other sizes; size-key-last: the key ends the record
#
# TRIALS is 5.  Variables of its own: SIZE: bytes of each input (8000000000);
# MEMORY: of a sort (1G), SMALL: of memory-small (80M), LEAST: of memory-curve, in
# MiB (40); PIPE, DRIVE: bytes a second of a slow pipe and of the fast disk of two
# (200000000); ARM_SIZE: bytes on the disk that turns (2000000000).

TRIALS=${TRIALS:-5}

# shellcheck source=tests/bench/rows.sh
. "$(dirname "$0")/rows.sh"

SIZE=${SIZE:-8000000000}
MEMORY=${MEMORY:-1G}
SMALL=${SMALL:-80M}
LEAST=${LEAST:-40}
PIPE=${PIPE:-200000000}
DRIVE=${DRIVE:-200000000}
ARM_SIZE=${ARM_SIZE:-2000000000}
HEAD=${HEAD:-100M}
MERGE=${MERGE:-256M}
COPY='bench_copy in out'

# sort_within MEMORY OPTION...: blinksort's command
sort_within()
{
	echo "blinksort in -o out --sync -S $1 -T .${KEYS[*]:+ ${KEYS[*]}}${2:+ ${*:2}}"
}

bytes_of()
{
	numfmt --from=iec "$1"
}

# beyond NAME MEMORY KIND OPTION... -- COMMAND...
beyond()
{
	local name=$1 memory=$2 kind=$3 size=100 options=() checks
	shift 3

	is_wanted "$name" || return 0
	[ "${#KEYS[@]}" = 0 ] || size=${KEYS[0]#*=}
	[ "$listing" ] || input "$kind" $((SIZE / size)) "${KEYS[@]}"
	while [ "$1" != -- ]; do
		options+=("$1")
		shift
	done
	mapfile -t checks < <(checked "${@:2}")
	row "$name" --scenario=beyond-memory --unverified --memory="$memory" \
		--input=in --output=out "${options[@]}" "${checks[@]}" "$@"
}

has_stxxl()
{
	export STXXLLOGFILE=/dev/null STXXLERRLOGFILE=/dev/null
	mkdir -p "$BUILD/bench"
	[ "$listing" ] || g++ -w -O2 -fopenmp -o "$BUILD/bench/bench_stxxl" \
		"$ROOT/tests/bench/bench_stxxl.cc" -lstxxl -pthread
}

# Others take a little more memory than they are told, and DuckDB a seventh.
rows_peers()
{
	local bytes names=(copy blinksort cp 'GNU sort') name commands befores=()

	is_wanted memory || return 0
	bytes=$(bytes_of "$MEMORY")
	commands=("$COPY" "$(sort_within "$MEMORY")" 'cp --reflink=never in out'
		"sort -S $((bytes * 9 / 10))b --parallel=2 -T . -o out in")
	if [ "$listing" ] || python3 -c 'import duckdb' 2>/dev/null; then
		names+=(DuckDB)
		commands+=("python3 duckdb_lines.py in out . $((bytes * 8 / 10)) 2")
	fi
	if has_stxxl; then
		# It sorts a file in its place: a copy of the input, made off the clock.
		names+=(STXXL)
		commands+=("bench_stxxl data scratch $((bytes * 9 / 10)) out")
	fi
	for name in "${names[@]}"; do
		befores+=("--prepare=$([ "$name" = STXXL ] && echo bench_copy in data || echo true)")
	done
	beyond memory "$MEMORY" ascii "${names[@]/#/--command-name=}" \
		"${befores[@]}" -- "${commands[@]}"
}

rows_memory()
{
	local memory number enough names=(-n copy) commands=("$COPY")

	beyond memory-small "$SMALL" ascii -- "$COPY" "$(sort_within "$SMALL")"
	memory=$((SIZE / 2 >> 20))M
	beyond memory-half $memory ascii -- "$COPY" "$(sort_within $memory)"
	if is_wanted memory-edge; then
		if [ -z "$listing" ]; then
			input ascii $((SIZE / 100))
			# A cached input would be mapped, and take no memory.
			enough=$(blinksort --io=direct --json in -o out | python3 -c \
				'import json, sys; print(json.load(sys.stdin)["memory_bytes"])')
			rm out
		fi
		beyond memory-edge "${enough:-0}" ascii \
			-n enough -n '1 % less' -- \
			"$(sort_within "${enough:-0}" --io=direct)" \
			"$(sort_within $((${enough:-0} * 99 / 100)) --io=direct)"
	fi
	# From the least to a tenth more than the input: equal ratios.
	for number in 0 1 2 3 4 5 6 7 8 9; do
		memory=$(awk "BEGIN { print int($LEAST * \
			($SIZE * 1.1 / 2 ^ 20 / $LEAST) ^ ($number / 9)) }")M
		names+=(-n "$memory")
		commands+=("$(sort_within "$memory")")
	done
	beyond memory-curve "$memory" ascii "${names[@]}" -- "${commands[@]}"
}

rows_compress()
{
	local kind

	for kind in ascii binary; do
		beyond compress-$kind "$MEMORY" $kind -- \
			"$(sort_within "$MEMORY" --compress=none)" \
			"$(sort_within "$MEMORY" --compress=auto)" "$COPY"
	done
}

# The pipe's other programs are within the limit, too; they take a few MiB.
rows_pipes()
{
	local slow piped="blinksort - -o - -S $MEMORY -T ." limit="pv -q -L $PIPE"

	for slow in '' writer reader; do
		local before='cat in | ' after=' | cat >out'
		[ "$slow" != writer ] || before+="$limit | "
		[ "$slow" != reader ] || after=" | $limit$after"
		beyond "pipes${slow:+-slow-$slow}" "$MEMORY" ascii --shell=/bin/bash \
			-n cat -n blinksort -- "set -o pipefail; ${before}cat$after" \
			"set -o pipefail; $before$piped$after"
	done
}

# However the rows end.
at_end()
{
	local name

	for name in fast slow arm; do
		[ ! -e "$folder/$name.image" ] ||
			(cd "$folder" && slow_disk.sh down $name)
	done
}

rows_disks()
{
	local bytes=$(((SIZE * 3 / 2 >> 20) + 64 << 20))

	is_wanted scratch-two || return 0
	if [ -z "$listing" ]; then
		slow_disk.sh up fast $bytes "$DRIVE"
		slow_disk.sh up slow $bytes $((DRIVE / 4))
	fi
	beyond scratch-two "$MEMORY" ascii -n 'fast alone' -n 'fast and slow' -- \
		"slow_disk.sh run fast slow -- blinksort in -o out --sync -S $MEMORY -T fast" \
		"slow_disk.sh run fast slow -- blinksort in -o out --sync -S $MEMORY -T fast -T slow"
	at_end
}

# rows_on_arm NAME [one-arm]: input, output and scratch files are on the disk
rows_on_arm()
{
	local SIZE=$ARM_SIZE kind=$1 memory bytes run="slow_disk.sh run arm --" sort
	local names commands

	is_wanted "$kind-100M" || is_wanted "$kind-1G" || return 0
	if [ -z "$listing" ]; then
		input ascii $((SIZE / 100))
		slow_disk.sh up arm $((SIZE * 4)) 150000000 150 ${2:+"$2"}
	fi
	for memory in 100M 1G; do
		bytes=$(($(bytes_of $memory) * 9 / 10))
		sort="$run blinksort arm/in -o arm/out --sync -S $memory -T arm"
		names=(-n blinksort -n 'without an arm' -n 'GNU sort')
		commands=("$sort" "$sort --disk-rates=150M:150M:150M"
			"$run sort -S ${bytes}b --parallel=2 -T arm -o arm/out arm/in")
		if has_stxxl; then
			names+=(-n STXXL)
			commands+=("$run bench_stxxl arm/in arm/scratch $bytes arm/out")
		fi
		row "$kind-$memory" --scenario=beyond-memory --unverified \
			--memory=$memory --input=in --output=arm/out "${names[@]}" \
			--prepare='bench_copy in arm/in' \
			--conclude='blinkval -q arm/out --against in' -- \
			"${commands[@]}"
	done
	at_end
}

rows_arm()
{
	rows_on_arm arm
	! is_there arm-one qemu-storage-daemon || rows_on_arm arm-one one-arm
	beyond arm-none 100M ascii -n 'as it is' -n 'in turns' -- \
		"$(sort_within 100M)" "$(sort_within 100M --disk-rates=150M:150M:150M:150)"
}

rows_kinds()
{
	local kind size

	for kind in skew all-equal two-values sorted reversed zipf first-two-random; do
		is_wanted "shape-$kind" || continue
		[ "$listing" ] || make_file binary $((SIZE / 100)) uniform
		beyond "shape-$kind" "$MEMORY" "$kind" --input=uniform -- \
			"blinksort uniform -o out --sync -S $MEMORY -T ." \
			"$(sort_within "$MEMORY")"
		rm -f uniform
	done
	for size in 1:0:1 16:0:10 100:0:10 4096:0:10 1048576:0:10 100:90:10; do
		KEYS=("--record-size=${size%%:*}" "--key=${size#*:}")
		kind=size-${size%%:*}
		[ "$size" != 100:90:10 ] || kind='size-key-last'
		beyond "$kind" "$MEMORY" uniform -- "$COPY" "$(sort_within "$MEMORY")"
		KEYS=()
	done
}

rows_head()
{
	local names=(-n read -n blinksort) bytes
	local commands=('bench_copy in; : >out'
		"$(sort_within "$HEAD" --head=1000)")

	is_wanted head || return 0
	bytes=$(bytes_of "$HEAD")
	if [ "$listing" ] || python3 -c 'import duckdb' 2>/dev/null; then
		names+=(-n DuckDB)
		commands+=("python3 duckdb_lines.py in out . $((bytes * 8 / 10)) 2 1000")
	fi
	if [ -z "$listing" ]; then
		input ascii $((SIZE / 100))
		sort -S 4G --parallel=2 -T . in | head -c 100000 >wanted || [ $? = 141 ]
	fi
	row head --scenario=beyond-memory --unverified --memory="$HEAD" --input=in \
		--output=out --shell=/bin/sh "${names[@]}" --conclude=true \
		--conclude='cmp wanted out' --conclude="test \$(wc -l <out) = 1000" -- \
		"${commands[@]}"
}

rows_merge()
{
	local parts=(part.{0..7}) part bytes
	bytes=$(($(bytes_of "$MERGE") * 9 / 10))

	is_wanted merge || return 0
	if [ -z "$listing" ]; then
		for part in "${parts[@]}"; do
			blinkgen -a -b"$((${part#*.} * SIZE / 800))" $((SIZE / 800)) made
			blinksort made -o "$part"
		done
		rm made
		cat "${parts[@]}" >in
		made_input=parts
	fi
	row merge --scenario=beyond-memory --unverified --memory="$MERGE" --input=in \
		--output=out -n copy -n blinksort -n 'GNU sort' --conclude='cmp in out' \
		--conclude='blinkval -q out --against in' \
		--conclude='blinkval -q out --against in' -- "$COPY" \
		"blinksort -m ${parts[*]} -o out --sync -S $MERGE -T ." \
		"sort -m -S ${bytes}b --parallel=2 -T . -o out ${parts[*]}"
	rm -f "${parts[@]}"
}

rows()
{
	rows_peers
	rows_head
	rows_merge
	rows_memory
	rows_compress
	rows_pipes
	rows_disks
	rows_arm
	rows_kinds
}

run_places disk
