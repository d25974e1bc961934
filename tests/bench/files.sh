#!/bin/bash
# files.sh - blinksort, blinkgen and blinkval beside other programs, from file to file
#
# usage: tests/bench/files.sh [--list]            (make bench ROWS=... RECORD=...)
#
# Rows, each in some of the places shm (/dev/shm), disk (where the build is) and,
# for root, xfs (on a loop device) and huge (tmpfs with huge pages):
#
#   cached-*   the input is in the page cache, and the output stays there: cp
#   sort-*     the same beside GNU sort
#   peers      beside a C++ library, polars, DuckDB, GNU sort and cp
#   head-1000  the first 1,000 of a million records, beside polars, DuckDB and cp
#   cold*      the input is not in the page cache: cp; with sync, until the output
#              is on the medium
#   shapes*    keys that are not uniform, beside uniform ones
#   keys-*     10,000,000 records with typed keys: cp, numpy, polars, DuckDB;
#              numbers that are not uniform, beside uniform ones
#   modes      the three ways of reading and writing, whose memory the records have
#   blinkgen, blinkval, tune
#   kernels    what bench_kernels prints
#

# shellcheck source=tests/bench/rows.sh
. "$(dirname "$0")/rows.sh"

readonly SORT='blinksort in -o out' COPY='cp --reflink=never in out'
readonly GNU_SORT='sort --parallel=2 -S 2G -o out in'
# These shapes of make_shape show something of their own about the time.
readonly SHAPES='all-equal two-values zipf sorted reversed first-two-random
	last-two-random common-prefix extremes'

# against NAME KIND COUNT COMMAND...: the output removed before each run
against()
{
	local name=$1 checks

	is_wanted "$name" || return 0
	[ "$listing" ] || input "$2" "$3"
	mapfile -t checks < <(checked "${@:4}")
	row "$name" --prepare='rm -f out' "${checks[@]}" -- "${@:4}"
}

rows_cached()
{
	local kind count

	for kind in ascii binary; do
		for count in 62500 1000000 ${FULL:+10000000}; do
			against "cached-$kind-$count" $kind "$count" "$COPY" "$SORT"
		done
	done
	! in_place shm || against cached-ascii-1 ascii 1 "$COPY" "$SORT"
	against sort-ascii-1000000 ascii 1000000 "$GNU_SORT" "$SORT"
}

peer()
{
	python3 -c "import ${*:2}; print('$1', ${2%,}.__version__)" 2>/dev/null
}

rows_peers()
{
	local names=(cp blinksort) commands=("$COPY" "$SORT") checks name

	in_place shm disk && is_wanted peers || return 0
	if [ -z "$listing" ]; then
		mkdir -p "$BUILD/bench"
		! g++ -w -O3 -fopenmp -o "$BUILD/bench/bench_vqsort" \
			"$ROOT/tests/bench/bench_vqsort.cc" -lhwy_contrib -lhwy || {
			names+=("VQSort $(bench_vqsort --version)")
			commands+=('bench_vqsort in out')
		}
		for name in 'polars polars' 'DuckDB duckdb, pyarrow'; do
			# shellcheck disable=SC2086 # several words
			names+=("$(peer $name)") || {
				say peers "skipped: $name (make bench-deps)"
				unset 'names[-1]'
				continue
			}
			name=${name%% *}
			commands+=("python3 sort_peer.py ${name,,} ascii in out")
		done
		names+=("GNU sort $(sort --version | sed -n '1s/.* //p')")
		commands+=("$GNU_SORT")
		input ascii 1000000
	fi
	mapfile -t checks < <(checked "${commands[@]}")
	row peers --prepare="rm -f out; $SETTLE" "${names[@]/#/--command-name=}" \
		"${checks[@]}" -- "${commands[@]}"
}

rows_head()
{
	local names=(cp blinksort) checks name
	local commands=("$COPY" "$SORT --head=1000")

	in_place shm disk && is_wanted head-1000 || return 0
	if [ -z "$listing" ]; then
		for name in 'polars polars' 'DuckDB duckdb, pyarrow'; do
			# shellcheck disable=SC2086 # several words
			names+=("$(peer $name)") || {
				say head-1000 "skipped: $name (make bench-deps)"
				unset 'names[-1]'
				continue
			}
			name=${name%% *}
			commands+=("python3 sort_peer.py ${name,,} ascii in out head")
		done
		input ascii 1000000
		sort -S 1G in | head -c 100000 >wanted || [ $? = 141 ]
	fi
	mapfile -t checks < <(checked "${commands[@]}")
	row head-1000 --prepare="rm -f out; $SETTLE" "${names[@]/#/--command-name=}" \
		"${checks[@]}" -- "${commands[@]}"
}

rows_cold()
{
	local scenario mode

	in_place disk || return 0
	for mode in cache: cache:--io=direct platter:'--io=direct --sync'; do
		scenario=${mode%%:*} mode=${mode#*:}
		name=cold${mode:+-direct}
		[ "$scenario" = cache ] || name=cold-sync
		is_wanted "$name" || continue
		[ "$listing" ] || input ascii 1000000
		row "$name" --scenario="$scenario" --unverified --input=in --output=out \
			-- "$COPY" "$SORT${mode:+ $mode}"
	done
}

# shapes NAME COUNT UNIFORM SHAPE... [-- OPTION...]: keys that are not uniform,
# beside those that are
shapes()
{
	local name=$1 count=$2 kinds=("$3") commands=() checks kind
	shift 3

	is_wanted "$name" || return 0
	while [ $# -gt 0 ] && [ "$1" != -- ]; do
		kinds+=("$1")
		shift
	done
	for kind in "${kinds[@]}"; do
		[ "$listing" ] || make_file "$kind" "$count" "$kind"
		commands+=("blinksort $kind -o out${2:+ ${*:2}}")
	done
	mapfile -t checks < <(checked "${commands[@]}")
	row "$name" --prepare='rm -f out' "${kinds[@]/#/--command-name=}" \
		"${checks[@]}" -- "${commands[@]}"
	rm -f "${kinds[@]}"
}

rows_shapes()
{
	in_place disk || return 0
	# shellcheck disable=SC2086 # several words
	shapes shapes 1000000 binary skew $SHAPES
	shapes shapes-ascii 1000000 ascii skew-ascii
}

rows_keys()
{
	local kind made library commands

	in_place shm || return 0
	for kind in u64 f64; do
		KEYS=(--record-size=16 --key=0:u64) made=uniform
		[ $kind = u64 ] || KEYS=(--record-size=8 --key=0:f64) made=floats
		commands=("$COPY" "$SORT ${KEYS[*]}")
		for library in numpy polars duckdb; do
			if [ "$listing" ] || python3 -c "import $library" 2>/dev/null; then
				commands+=("python3 sort_peer.py $library $kind in out")
			fi
		done
		against "keys-$kind" "numbers-$made" 10000000 "${commands[@]}"
	done
	KEYS=(--record-size=16 --key=0:u64)
	shapes keys-shapes 10000000 numbers-uniform numbers-{small,million,zipf} \
		numbers-{bursts,sorted} -- "${KEYS[@]}"
	is_wanted keys-unique && { [ "$listing" ] || input numbers-million 10000000; }
	row keys-unique --prepare='rm -f out' -- \
		"$SORT ${KEYS[*]}" "$SORT ${KEYS[*]} --unique"
	KEYS=()
}

rows_others()
{
	in_place shm || return 0
	is_wanted modes && { [ "$listing" ] || input ascii 1000000; }
	row modes --prepare='rm -f out' -- "$SORT --io=mmap" "$SORT --io=direct" \
		"$SORT --io=buffered"
	row blinkgen --prepare='rm -f out' -- 'blinkgen -a 1000000 out' \
		'blinkgen -a -c 1000000 /dev/null'
	is_wanted blinkval && { [ "$listing" ] ||
		{ input ascii 1000000 && blinksort in -o sorted; }; }
	row blinkval -- 'blinkval -q sorted'
	[ "$UID" != 0 ] || row tune -- 'blinktune run reference -- true'
	is_wanted kernels || return 0
	if [ "$listing" ]; then
		echo shm.kernels
	else
		mkdir -p "$RECORD"
		bench_kernels --json >"$RECORD/kernels.json"
	fi
}

rows()
{
	rows_cached
	rows_peers
	rows_head
	rows_cold
	rows_shapes
	rows_keys
	rows_others
}

run_places shm disk xfs huge
