# shellcheck shell=bash disable=SC2034 # variables are for the scripts
#
# val_lib.sh - what the checks of blinkval share, on top of pipe_lib.sh

. "$(dirname "${BASH_SOURCE[0]}")/pipe_lib.sh"

GEN=$BIN/blinkgen
VAL=$BIN/blinkval
TESTED=("$VAL") TESTED_AS=blinkval

# expect_report STATUS ARGUMENT...: stdin is the whole of stderr.
expect_report()
{
	local status=$1
	shift
	expect_status "$status" "$VAL" "$@" >"$SCRATCH/out" 2>"$SCRATCH/err"
	expect_empty "$SCRATCH/out"
	diff - "$SCRATCH/err" >&2
}

# sorted COUNT: ascii records in order, on stdout.
sorted()
{
	"$GEN" -a "$1" unsorted
	sort unsorted
	rm unsorted
}

# records FIRST COUNT <FILE: a stretch of records
records()
{
	dd bs=100 skip="$1" count="$2" iflag=fullblock status=none
}

# random BELOW
random()
{
	echo $(((RANDOM << 15 | RANDOM) % $1))
}
