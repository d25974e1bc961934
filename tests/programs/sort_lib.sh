# shellcheck shell=bash disable=SC2034 # variables are for the scripts
#
# sort_lib.sh - what the checks of blinksort share, on top of tool_lib.sh
#
#   BLINKSORT  the command, an array      KERNELS  those that this CPU can run
#   STDOUT, STDERR   where sort_run leaves what was printed
#   SEED       of everything random; printed; set it to repeat a run

. "$(dirname "${BASH_SOURCE[0]}")/tool_lib.sh"

STDOUT=$SCRATCH/stdout
STDERR=$SCRATCH/stderr
IO_MODES=(auto buffered mmap direct)
SPLITTERS=(auto static sampled)

# gcc 12's ThreadSanitizer needs the plain layout of addresses.
BLINKSORT=("$BIN/blinksort")
if [ "$SANITIZED" = tsan ] && setarch -R true 2>/dev/null; then
	BLINKSORT=(setarch -R "$BIN/blinksort")
fi

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
readonly STDOUT STDERR IO_MODES SPLITTERS SEED KERNELS

# random_below N: 0 .. N - 1 in $random, for N to 2^30
random_below()
{
	random=$(((RANDOM << 15 | RANDOM) % $1))
}

# sort_run ARGUMENT...: its exit status becomes $status.  If $limit is set, as
# in "-n 20", that is ulimit's for this run.
sort_run()
{
	status=0
	(
		# shellcheck disable=SC2086 # two words
		[ -z "${limit:-}" ] || ulimit $limit
		exec "${BLINKSORT[@]}" "$@"
	) >"$STDOUT" 2>"$STDERR" </dev/null || status=$?
}

# expect_sorted ARGUMENT...: it must end well and print nothing on stderr.
expect_sorted()
{
	sort_run "$@"
	[ $status = 0 ] ||
		fail "exit status $status: $(head -c 400 "$STDERR"): $*"
	expect_empty "$STDERR"
}

# expect_message: what was printed is one line in the form of all messages, and
# no byte of it can drive a terminal.
expect_message()
{
	expect_one_line "$STDERR"
	expect_match '^blinksort: .' "$STDERR"
	! grep -q '[[:cntrl:]]' "$STDERR" || fail "a control character: $(
		od -c -N 80 "$STDERR"
	)"
}

# folder_state FOLDER: everything in it, by name, kind and content
folder_state()
{
	(
		cd "$1"
		find . -printf '%p %y %m %s %l\n' | sort
		find . -type f -readable -exec sha256sum {} + | sort
	)
}

# expect_refused STATUS ARGUMENT...: it ends with this exit status (or one of
# several: "2|3"), says why in one line, and nothing in or below the current
# folder has changed.
expect_refused()
{
	local want=$1 before
	shift
	before=$(folder_state .)
	sort_run "$@"
	[[ $status =~ ^($want)$ ]] ||
		fail "exit status $status, not $want: $*: $(
			head -c 400 "$STDERR"
		)"
	expect_message
	expect_empty "$STDOUT"
	[ "$before" = "$(folder_state .)" ] ||
		fail "changed: $(diff <(echo "$before") <(folder_state .))"
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
