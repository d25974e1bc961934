# tool_lib.sh - what the check scripts share
# shellcheck shell=bash
#
# A script begins with
#
#     . "$(dirname "$0")/tool_lib.sh"
#
# and has from then on: set -eu -o pipefail, LC_ALL=C, and
#
#   REPO      the repository        BIN    the programs (default: REPO/bin)
#   BUILD     REPO/build            DYN    the programs that LD_PRELOAD reaches
#   HELPERS   what was built from tests/programs/*.c
#   SCRATCH   a folder in /tmp, the current one; removed at exit
#   STDOUT, STDERR   files there for what a program prints
#   QUICK     1: fewer rounds, for slow builds; else empty
#   CASES     an extended expression: only cases of such names are run
#   SANITIZED the sanitizer that the programs were built with, or empty
#
# Each case is a shell function, run by check:
#
#     case_empty_input() { ... }
#     check empty_input case_empty_input
#     finish
#
# What some machines or users cannot do, such as mounting, is tried first: the case
# is run if it can be done, else skipped with the reason that cannot has for it:
#
#     check_able mount full_disk case_full_disk
#
# A case that depends on time, such as giving up a silent peer, is
#
#     check silent patiently case_silent
#
# A case fails at the first command that fails; say why on stderr with fail.
# Each prints one line, "ok NAME" or "FAIL NAME", that tests/run counts.  A case
# runs in a subshell and in a folder of its own: it leaves nothing to the next.

set -eu -o pipefail
export LC_ALL=C

REPO=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
BIN=${BIN:-$REPO/bin}
BUILD=${BUILD:-$REPO/build}
DYN=$BUILD/dyn/bin
HELPERS=${HELPERS:-$BUILD/dyn/tests/programs}
QUICK=${QUICK:-}
CASES=${CASES:-}
SANITIZED=
case ${VARIANT:-} in
*asan) SANITIZED=asan ;;
*tsan) SANITIZED=tsan ;;
esac
# shellcheck disable=SC2034 # for the scripts
readonly REPO BIN BUILD DYN HELPERS QUICK CASES SANITIZED

SCRATCH=$(mktemp -d /tmp/blinksort-check.XXXXXX)
STDOUT=$SCRATCH/.stdout STDERR=$SCRATCH/.stderr
readonly SCRATCH STDOUT STDERR

# at_end COMMANDS: the last ones of this shell; they replace earlier ones.  Bash
# would run them also in a child that a signal ends before it has become another
# program; a test command by [ says nothing there.
at_end()
{
	# shellcheck disable=SC2064 # the number of this shell, now
	trap "case \$BASHPID in $BASHPID) $1 ;; esac" EXIT
}

at_end 'rm -rf "$SCRATCH"'
trap 'exit 129' HUP
trap 'exit 130' INT
trap 'exit 143' TERM
cd "$SCRATCH"
exec </dev/null

checks_failed=0

# check NAME COMMAND...: run a case.
check()
{
	local name=$1 status=0
	shift
	[[ $name =~ $CASES ]] || return 0
	mkdir -p "$SCRATCH/$name"
	# Not "( ... ) || ...": bash ignores set -e within that.
	set +e
	(
		set -e
		cd "$SCRATCH/$name"
		"$@"
	)
	status=$?
	set -e
	rm -rf "${SCRATCH:?}/$name"
	if [ $status = 0 ]; then
		echo "ok $name"
	else
		echo "FAIL $name"
		checks_failed=$((checks_failed + 1))
	fi
}

# patiently COMMAND...: with times that suit most machines.  On one that is too
# slow for them, or was stopped, it gets another try with eight times as much,
# and then 64 times; each in a folder of its own.
patiently()
{
	local patience status

	for patience in 1 8 64; do
		mkdir "patience.$patience"
		# As in check.
		set +e
		(
			set -e
			cd "patience.$patience"
			"$@"
		)
		status=$?
		set -e
		[ $status != 0 ] || return 0
		echo "  failed with patience $patience"
	done
	return 1
}

# seconds_of MS: as many, or of a case that is run patiently the multiple of it,
# as an option takes them
seconds_of()
{
	local time_ms=$(($1 * ${patience:-1}))

	printf '%d.%03d\n' $((time_ms / 1000)) $((time_ms % 1000))
}

# cannot ABILITY: 0 if this user may not do that on this machine, and $why says so
# in one line, the same in all tests; else 1.  It is found by doing it.
#
#   mount            a tmpfs, here
#   mount_apart      a tmpfs in a namespace of mounts, which needs no root
#   mount_huge       the same with huge pages
#   netns            network namespaces, and programs in them
#   pidns            a process namespace
#   nftables         rules of the packet filter
#   trace            trace system calls, by strace
#   loop             loop devices
#   root             is root
#   be_refused       by a file's mode, which root is not
#   be_nobody        become another user
#   be_nobody_here   that user may read the repository, too
#   mpich, openmpi   processes of that MPI, and its blinksort-mpi was built
#   slurm            run its daemons in namespaces of their own
#   PROGRAM.here     has that program
declare -A why_not=()
cannot()
{
	[ "${why_not[$1]+known}" ] || why_not[$1]=$(find_why_not "$1")
	why=${why_not[$1]}
	[ -n "$why" ]
}

# Another user than root, and than the one that runs the tests
readonly AS_NOBODY=(setpriv --reuid=65534 --regid=65534 --clear-groups)

# try COMMAND...: quietly, in a folder that is there to be mounted upon
try()
{
	(
		mkdir -p "$SCRATCH/.try"
		cd "$SCRATCH/.try"
		"$@"
	) >/dev/null 2>&1 </dev/null
}

try_mount()
{
	mount -t tmpfs none "$PWD" && umount "$PWD"
}

try_netns()
{
	local name=blinktry$$ status=0

	ip netns add "$name" || return 1
	# This mounts, too.
	ip netns exec "$name" true || status=1
	ip netns del "$name"
	return $status
}

try_loop()
{
	local loop

	truncate -s 1M disk
	loop=$(losetup -f --show "$PWD/disk") && losetup -d "$loop"
}

# mpi_program NAME: prints the path of blinksort-mpi for this MPI
mpi_program()
{
	local folder=mpi-$1

	[ -z "$SANITIZED" ] || folder=$SANITIZED-$folder
	echo "$BUILD/$folder/bin/blinksort-mpi.$1"
}

# As root, Open MPI runs only if it is told twice that it may.
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1

# find_no_slurm: prints the reason, or nothing
find_no_slurm()
{
	local program

	for program in munged slurmctld slurmd srun; do
		if ! command -v "$program" >/dev/null; then
			echo "no $program here"
			return
		fi
	done
	if cannot root; then
		echo "$why"
	elif ! try unshare --mount --net --pid --fork --mount-proc \
		ip link add name one type veth peer name two; then
		echo "can't make namespaces and a network here"
	fi
}

# find_why_not ABILITY: prints the reason, or nothing
find_why_not()
{
	local apart=(unshare --mount --map-root-user mount -t tmpfs)

	case $1 in
	mount)
		try try_mount || echo "can't mount a file system here" ;;
	mount_apart)
		try "${apart[@]}" none "$SCRATCH" ||
			echo "can't mount a file system here" ;;
	mount_huge)
		if cannot mount_apart; then
			echo "$why"
		elif ! try "${apart[@]}" -o huge=always none "$SCRATCH"; then
			echo "no huge pages in a tmpfs here"
		fi ;;
	netns)
		try try_netns || echo "can't make a network namespace here" ;;
	pidns)
		try unshare --fork --pid --mount-proc true ||
			echo "can't make a process namespace here" ;;
	nftables)
		try nft list tables || echo "no nftables here" ;;
	trace)
		try strace -qq -o /dev/null true || echo "strace can't trace here" ;;
	loop)
		try try_loop || echo "can't make a loop device here" ;;
	root)
		[ "$UID" = 0 ] || echo "needs root" ;;
	be_refused)
		[ "$UID" != 0 ] || echo "root may write everywhere" ;;
	be_nobody)
		try "${AS_NOBODY[@]}" true || echo "can't become another user here" ;;
	be_nobody_here)
		if cannot be_nobody; then
			echo "$why"
		elif ! try "${AS_NOBODY[@]}" test -r "$REPO/Makefile"; then
			echo "nobody may not enter this folder"
		fi ;;
	mpich | openmpi)
		if ! try "mpirun.$1" -n 1 true; then
			echo "no processes of $1 here"
		elif [ ! -x "$(mpi_program "$1")" ]; then
			echo "no blinksort-mpi for $1 was built"
		fi ;;
	slurm)
		find_no_slurm ;;
	*.here)
		command -v "${1%.here}" >/dev/null || echo "no ${1%.here} here" ;;
	*)
		echo "cannot: $1: no such ability" >&2
		exit 1 ;;
	esac
}

# check_able ABILITY[,ABILITY]... NAME COMMAND...: run a case, or skip it
check_able()
{
	local abilities=$1 ability
	shift

	for ability in ${abilities//,/ }; do
		if cannot "$ability"; then
			skip "$1" "$why"
			return
		fi
	done
	check "$@"
}

# skip NAME WHY...: a case that can't run here.
skip()
{
	local name=$1
	shift
	echo "skip $name: $*"
}

# finish: the last line of a script.
finish()
{
	[ $checks_failed = 0 ] || exit 1
	exit 0
}

# fail WHY...: end the case.
fail()
{
	echo "  $*" >&2
	return 1
}

# wait_until COMMAND...: at most 100 s, a generous bound and not a measure; and
# 50 tries, should the machine have been stopped.
wait_until()
{
	local tries end_s=$((SECONDS + 100))

	for ((tries = 0; tries < 50 || SECONDS < end_s; tries++)); do
		! "$@" 2>/dev/null || return 0
		sleep 0.02
	done
	fail "after 100 s this is not so yet: $*"
}

# expect_status N COMMAND...: it must end with exactly this exit status.
expect_status()
{
	local want=$1 got=0
	shift
	"$@" || got=$?
	[ $got = "$want" ] || fail "exit status $got, not $want: $*"
}

# with_terminal COMMAND...: all three streams are a terminal, and what it shows goes
# to standard output
with_terminal()
{
	python3 -c 'import os, pty, sys
sys.exit(os.waitstatus_to_exitcode(pty.spawn(sys.argv[1:])))' "$@"
}

# What follows is called after each of some ten thousand runs: it starts no program
# where bash can do it, since that takes longer than many a run.

# expect_one_line FILE: one line, ended, with something in it.
expect_one_line()
{
	local said_lines

	mapfile said_lines <"$1"
	[[ ${#said_lines[@]} = 1 && ${said_lines[0]} = ?*$'\n' ]] ||
		fail "not one line: $(head -c 400 "$1")"
}

# expect_empty FILE
expect_empty()
{
	[ ! -s "$1" ] || fail "not empty: $(head -c 400 "$1")"
}

# expect_same FILE FILE: byte for byte.
expect_same()
{
	cmp "$1" "$2" >&2
}

# expect_match PATTERN FILE: a line of it matches the extended expression.
expect_match()
{
	has_match "$1" "$2" ||
		fail "nothing matches '$1' in: $(head -c 400 "$2")"
}

# has_match PATTERN FILE
has_match()
{
	local said_lines line verdict=0

	mapfile -t -n 21 said_lines <"$2"
	# A lone { is an expression for grep only.
	# shellcheck disable=SC2319 # the condition's status is what is wanted
	[[ '' =~ $1 ]] || verdict=$?
	if [ $verdict = 2 ] || [ ${#said_lines[@]} -gt 20 ]; then
		grep -q -E -e "$1" "$2"
		return
	fi
	for line in "${said_lines[@]}"; do
		[[ ! $line =~ $1 ]] || return 0
	done
	return 1
}

# folder_state FOLDER: everything in it, by name, kind, size and the time of its
# last change; a folder's own time also tells of a hidden name that is gone again
folder_state()
{
	find "$1" -type d -printf '%p %i %y %m\n' \
		-o -printf '%p %i %y %m %s %C@ %l\n'
}

# run_tested ARGUMENT...: of the command that TESTED has, or its beginning; its
# exit status becomes $status.  If $limit is set, as in "-n 20", that is ulimit's
# for this run.
run_tested()
{
	status=0
	(
		# shellcheck disable=SC2086 # two words
		[ -z "${limit:-}" ] || ulimit $limit
		"${TESTED[@]}" "$@"
	) >"$STDOUT" 2>"$STDERR" || status=$?
}

# expect_message: what stands in $STDERR is one line in the form of all messages
# of the program TESTED_AS, and no byte of it can drive a terminal.
expect_message()
{
	expect_one_line "$STDERR"
	expect_match "^$TESTED_AS: ." "$STDERR"
	! has_match '[[:cntrl:]]' "$STDERR" || fail "a control character: $(
		od -c -N 80 "$STDERR"
	)"
}

# expect_refused STATUS WORDS ARGUMENT...: TESTED ends with this exit status (or
# one of several: "2|3"), prints nothing to stdout, says why in one line, and
# changes nothing in or below the current folder.  WORDS are an extended
# expression; if they begin with ^, the line is the program's name and these.
expect_refused()
{
	local want=$1 words=$2 before status
	shift 2

	before=$(folder_state .)
	run_tested "$@"
	[[ $status =~ ^($want)$ ]] || fail "exit status $status, not $want: $*: $(
		head -c 400 "$STDERR"
	)"
	expect_empty "$STDOUT"
	expect_message
	[[ $words = ^* ]] || words="^.*$words"
	expect_match "^$TESTED_AS: ${words#^}" "$STDERR"
	[ "$before" = "$(folder_state .)" ] ||
		fail "changed: $(diff <(echo "$before") <(folder_state .))"
}

# expect_gone PATH: there is nothing of that name.
expect_gone()
{
	if [ -e "$1" ] || [ -L "$1" ]; then
		fail "still there: $1"
	fi
}

# expect_folder FOLDER NAME...: these names are in it and no other, hidden or
# not; in sorted order.
expect_folder()
{
	local folder=$1 want present
	shift
	want=$*
	shopt -s dotglob nullglob
	present=("$folder"/*)
	shopt -u dotglob nullglob
	present=("${present[@]#"$folder"/}")
	[ "${present[*]}" = "$want" ] ||
		fail "$folder has '${present[*]}', not '$want'"
}
