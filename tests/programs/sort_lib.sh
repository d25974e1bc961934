# shellcheck shell=bash disable=SC2034 # variables are for the scripts
#
# sort_lib.sh - what the checks of blinksort share, on top of tool_lib.sh
#
#   BLINKSORT  the command, an array      KERNELS  those that this CPU can run
#   SEED       of everything random; printed; set it to repeat a run

. "$(dirname "${BASH_SOURCE[0]}")/tool_lib.sh"

IO_MODES=(auto buffered mmap direct)
SPLITTERS=(auto static sampled)

# gcc 12's ThreadSanitizer needs the plain layout of addresses.
BLINKSORT=("$BIN/blinksort")
if [ "$SANITIZED" = tsan ] && setarch -R true 2>/dev/null; then
	BLINKSORT=(setarch -R "$BIN/blinksort")
fi

declare -n TESTED=BLINKSORT
TESTED_AS=blinksort

SEED=${SEED:-$(od -An -N3 -tu4 /dev/urandom | tr -d ' ')}
echo "seed $SEED"
RANDOM=$SEED

# cpu_has FLAG...: every flag, by the kernel's names
cpu_has()
{
	local flag

	for flag; do
		grep -q -m 1 -w "$flag" /proc/cpuinfo || return 1
	done
}

KERNELS=(scalar)
if cpu_has avx2 bmi2 pclmulqdq; then
	KERNELS+=(avx2)
	if cpu_has avx512f avx512bw avx512dq avx512vl vpclmulqdq; then
		KERNELS+=(avx512)
	fi
fi
readonly IO_MODES SPLITTERS SEED KERNELS

# random_below N: 0 .. N - 1 in $random, for N to 2^30
random_below()
{
	random=$(((RANDOM << 15 | RANDOM) % $1))
}

# expect_sorted ARGUMENT...: it must end well and print nothing on stderr.
expect_sorted()
{
	run_tested "$@"
	[ "$status" = 0 ] ||
		fail "exit status $status: $(head -c 400 "$STDERR"): $*"
	expect_empty "$STDERR"
}

# sort_reference IN... -o OUT [OPTION...]
sort_reference()
{
	"$HELPERS/reference_sort" "$@"
}

# make_shape SHAPE COUNT SEED [OPTION...] >FILE
make_shape()
{
	"$HELPERS/make_shape" "$@"
}

# has_tmpfile FOLDER: its file system has files without a name
has_tmpfile()
{
	python3 - "$1" <<-'END' 2>/dev/null
		import os, sys
		os.close(os.open(sys.argv[1], os.O_TMPFILE | os.O_RDWR))
	END
}

# nap SECONDS: without starting a process
nap()
{
	read -r -t "$1" -u "$nap_fd" || true
}
mkfifo "$SCRATCH/nap"
exec {nap_fd}<>"$SCRATCH/nap"

nap_ms()
{
	nap "$(($1 / 1000)).$(printf '%03d' $(($1 % 1000)))"
}
