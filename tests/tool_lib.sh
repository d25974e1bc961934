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
#   HELPERS   what was built from tests/*.c
#   SCRATCH   a folder in /tmp, the current one; removed at exit
#   QUICK     1: fewer rounds, for slow builds; else empty
#   SANITIZED the sanitizer that the programs were built with, or empty
#
# Each case is a shell function, run by check:
#
#     case_empty_input() { ... }
#     check empty_input case_empty_input
#     finish
#
# What is a matter of time, such as that somebody is given up who is silent, is
#
#     check silent patiently case_silent
#
# A case fails at the first command that fails; say why on stderr with fail.
# Each prints one line, "ok NAME" or "FAIL NAME", that tests/run counts.  A case
# runs in a subshell and in a folder of its own: it leaves nothing to the next.

set -eu -o pipefail
export LC_ALL=C

REPO=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
BIN=${BIN:-$REPO/bin}
BUILD=${BUILD:-$REPO/build}
DYN=$BUILD/dyn/bin
HELPERS=${HELPERS:-$BUILD/dyn/tests}
QUICK=${QUICK:-}
SANITIZED=
case ${VARIANT:-} in
*asan) SANITIZED=asan ;;
*tsan) SANITIZED=tsan ;;
esac
# shellcheck disable=SC2034 # for the scripts
readonly REPO BIN BUILD DYN HELPERS QUICK SANITIZED

SCRATCH=$(mktemp -d /tmp/blinksort-check.XXXXXX)
readonly SCRATCH
trap 'rm -rf "$SCRATCH"' EXIT
trap 'exit 129' HUP
trap 'exit 130' INT
trap 'exit 143' TERM
cd "$SCRATCH"

checks_failed=0

# check NAME COMMAND...: run a case.
check()
{
	local name=$1 status=0
	shift
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

# expect_status N COMMAND...: it must end with exactly this exit status.
expect_status()
{
	local want=$1 got=0
	shift
	"$@" || got=$?
	[ $got = "$want" ] || fail "exit status $got, not $want: $*"
}

# expect_one_line FILE: one line, ended, with something in it.
expect_one_line()
{
	if [ "$(wc -l <"$1")" != 1 ] || ! grep -q . "$1" ||
		[ -n "$(tail -c 1 "$1")" ]; then
		fail "not one line: $(head -c 400 "$1")"
	fi
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
	grep -q -E -e "$1" "$2" ||
		fail "nothing matches '$1' in: $(head -c 400 "$2")"
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
	local folder=$1 want got
	shift
	want=$*
	got=$(find "$folder" -mindepth 1 -maxdepth 1 -printf '%f\n' | sort |
		paste -s -d ' ')
	[ "$got" = "$want" ] || fail "$folder has '$got', not '$want'"
}
