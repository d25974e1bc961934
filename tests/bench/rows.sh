# shellcheck shell=bash
#
# rows.sh - what the scripts of benchmarks share: a row is one call of blinktrial
#
# A script that sources this file defines rows(), a function that calls row for
# each, and ends by "run_places PLACE..."; at_end(), if it has one, is called
# behind them, however they end.  rows() runs in a new folder in each place, whose
# name is $PLACE, with our programs before all others in PATH.
#
#   row NAME OPTION... -- COMMAND...
#                      time these commands by turns, if the row is wanted, and
#                      keep the record in $RECORD/PLACE.NAME; the first command
#                      is what the others are compared with
#   is_wanted NAME     is it?
#   input KIND COUNT [OPTION...]
#                      ./in: so many records, as blinkgen (ascii, binary, skew) or
#                      make_shape (its shapes, with these options) makes them
#   make_file KIND COUNT FILE [OPTION...]
#                      another one
#   checked COMMAND... what checks their outputs, as options of blinktrial
#   is_there NAME PROGRAM WHAT
#                      is this program, that the row needs, there?
#
# Variables of all benchmarks: ROWS, words: only rows whose PLACE.NAME has one of
# them; TRIALS, of each command (21); RECORD, a folder (build/bench/DATE-TIME);
# FULL=1: the largest sizes, too; DISK, the folder in which the place disk is (the
# build folder).  To compare with an older build there is "blinktrial gate".

set -eu -o pipefail
export LC_ALL=C

ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
BUILD=$(realpath -m "${BUILD:-$ROOT/build}")
BIN=$(realpath -m "${BIN:-$ROOT/bin}")
TRIALS=${TRIALS:-21}
RECORD=$(realpath -m "${RECORD:-$BUILD/bench/$(date +%Y-%m-%d-%H%M%S)}")
FULL=${FULL:-}
DISK=$(realpath -m "${DISK:-$BUILD}")
SEED=1 # of make_shape
# On a virtual machine free memory may have gone back to the host, and takes
# 2 ms a MB to come again: wait until it has gone, and touch some.
# shellcheck disable=SC2034 # for the scripts
SETTLE='sleep 3; dd if=/dev/zero of=/dev/null bs=1G count=1'
# The options of a record's keys, for blinksort and blinkval.
KEYS=()

# A Python that has numpy, polars, duckdb and pyarrow: make bench-deps makes it.
export PATH=$BIN:$BUILD/peers/bin:/usr/bin:$PATH:/usr/sbin:/sbin
PATH+=:$ROOT/tests/bench:$BUILD/bench:$BUILD/musl/tests/bench:$BUILD/dyn/tests/bench
failed=0 folder='' mounted='' listing='' trial=''

help()
{
	sed -n '2,/^$/s/^# \{0,1\}//p' "$0"
	sed -n '/^# Variables/,/^$/s/^# //p' "${BASH_SOURCE[0]}"
}

say()
{
	echo "$PLACE.$1:${2:+ ${*:2}}"
}

is_wanted()
{
	local word

	[ "${ROWS:-}" ] || return 0
	for word in ${ROWS//,/ }; do
		[[ $PLACE.$1 != *$word* ]] || return 0
	done
	return 1
}

# in_place PLACE...: is one of them the place?
in_place()
{
	[[ " $* " = *" $PLACE "* ]]
}

# is_there NAME PROGRAM WHAT: is it?  Else it is said that this is left out.
is_there()
{
	command -v "$2" >/dev/null || {
		[ "$listing" ] || say "$1" "skipped: there is no $2${3:+ ($3)}"
		return 1
	}
}

make_shape()
{
	"$BUILD/dyn/tests/programs/make_shape" "$@"
}

# Written as any program would, by cp, and on the medium when done: blinkgen gives
# a file huge pages on a tmpfs of small ones.
make_file()
{
	local kind=$1 count=$2 file=$3
	shift 3

	case $kind in
	ascii) blinkgen -a "$count" made ;;
	binary) blinkgen "$count" made ;;
	skew) blinkgen -s "$count" made ;;
	skew-ascii) blinkgen -a -s "$count" made ;;
	numbers-*) /usr/bin/python3 "$ROOT/tests/bench/make_numbers.py" \
		"${kind#*-}" "$count" made ;;
	*) make_shape "$kind" "$count" "$SEED" "$@" >made ;;
	esac
	rm -f "$file"
	cp --reflink=never --sparse=never made "$file"
	rm made
	sync "$file"
}

input()
{
	[ "${made_input:-}" = "$*" ] || make_file "$1" "$2" in "${@:3}"
	made_input=$*
}

# A copy is the input; what has sorted is judged by blinkval.
checked()
{
	local command input

	for command; do
		case $command in
		cp\ * | bench_copy\ * | *'| cat | '*) echo '--conclude=cmp in out' ;;
		*head=* | *' head'*) echo '--conclude=cmp wanted out' ;;
		# DuckDB drops the CR of each line.
		*duckdb_lines*) echo "--conclude=test \$((\$(stat -c %s out) / 99)) =" \
			"\$((\$(stat -c %s in) / 100))" ;;
		*sort* | *stxxl*)
			input=in
			[[ $command != 'blinksort '* ]] || read -r _ input _ <<<"$command"
			echo "--conclude=blinkval -q${KEYS[*]:+ ${KEYS[*]}} out --against $input"
			;;
		*) echo '--conclude=true' ;;
		esac
	done
}

row()
{
	local name=$1 options=() commands
	shift

	while [ "$1" != -- ]; do
		options+=("$1")
		shift
	done
	commands=("${@:2}")
	is_wanted "$name" || return 0
	[ -z "$listing" ] || {
		echo "$PLACE.$name"
		return 0
	}
	say "$name"
	# bash obeys a signal while it waits for what runs in the background.
	blinktrial --quiet --trials="$TRIALS" --out="$RECORD/$PLACE.$name" \
		"${options[@]}" -- "${commands[@]}" &
	trial=$!
	if wait $trial; then
		/usr/bin/python3 "$ROOT/tests/bench/table.py" "$RECORD/$PLACE.$name"
	else
		failed=1
	fi
	trial=''
	rm -f out*
}

# --- places ------------------------------------------------------------------

leave()
{
	cd "$ROOT"
	if [ "$trial" ]; then
		kill "$trial" 2>/dev/null || true
		wait "$trial" || true
		trial=''
	fi
	[ "$(type -t at_end)" != function ] || at_end
	# What had a file open a moment ago keeps it busy.
	[ -z "$mounted" ] || umount "$mounted" 2>/dev/null || umount --lazy "$mounted"
	mounted=''
	[ -z "$folder" ] || rm -rf "$folder"
	folder='' made_input=''
}

# mount_it WORD...: a file system for the place
mount_it()
{
	[ "$UID" = 0 ] || return 1
	mkdir "$folder/mounted"
	echo "# mount $*" >&2
	mount "$@" "$folder/mounted" || return 1
	mounted=$folder/mounted
	enter_folder "$mounted"
}

# Scripts are beside the files, so that no record names a folder of the clone.
enter_folder()
{
	cd "$1"
	ln -s "$ROOT"/tests/bench/{sort_peer,duckdb_lines}.py .
}

enter()
{
	local bytes=$(((FULL ? 6 : 1) << 30))

	PLACE=$1
	case $PLACE in
	shm | huge) folder=$(mktemp -d /dev/shm/bench.XXXXXX) ;;
	*)
		mkdir -p "$DISK"
		folder=$(mktemp -d "$DISK/bench.XXXXXX")
		;;
	esac
	enter_folder "$folder"
	case $PLACE in
	xfs)
		truncate -s $bytes image
		mkfs.xfs -q image && mount_it -t xfs -o loop "$folder/image"
		;;
	huge) mount_it -t tmpfs -o "huge=always,size=$bytes" tmpfs ;;
	esac
}

# run_places PLACE...
run_places()
{
	local place

	trap leave EXIT
	trap 'exit 130' INT
	trap 'exit 143' TERM HUP
	for place; do
		PLACE=$place
		if [ "$listing" ]; then
			rows
		elif [ "$(listing=1 rows)" ]; then
			if enter "$place"; then
				rows
			else
				echo "$place: skipped: it can't be made (root may)"
			fi
			leave
		fi
	done
	[ -z "$listing" ] || return 0
	echo "The records are in $RECORD."
	return $failed
}

case ${1:-} in
--list) listing=1 ;;
'') ;;
--help)
	help
	exit
	;;
*)
	help | sed -n '/^usage: /p' >&2
	exit 2
	;;
esac
[[ $TRIALS =~ ^[1-9][0-9]*$ ]] || {
	echo "$(basename "$0"): TRIALS: $TRIALS: not a number above 0" >&2
	exit 2
}
