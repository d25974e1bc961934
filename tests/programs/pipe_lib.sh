# shellcheck shell=bash disable=SC2034 # variables are for the scripts
#
# pipe_lib.sh - unusual ends of a program, and memory that is scarce, on top of
# tool_lib.sh

. "$(dirname "${BASH_SOURCE[0]}")/tool_lib.sh"

ENDS=$REPO/tests/programs/pipe_ends.py

# scarce_memory COMMAND...: on a machine that has 100 MB left, as it is told.  A
# file of 256 MiB does not go through the page cache there.
scarce_memory()
{
	printf '%s: 100000 kB\n' MemTotal MemFree MemAvailable >meminfo
	# shellcheck disable=SC2016 # of the inner shell
	unshare --mount --map-root-user bash -c \
		'mount --bind meminfo /proc/meminfo && exec "$@"' bash "$@"
}

# expect_uncached FILE: less than half of it is in the page cache
expect_uncached()
{
	local cached

	cached=$(fincore -b -n -r -o RES "$1")
	[ "$cached" -lt $(($(stat -c %s "$1") / 2)) ] ||
		fail "$cached bytes of $1 are in the page cache"
}

# takes_direct: 0 if a file here can be written past the page cache
takes_direct()
{
	[ "$(stat -f -c %T .)" != tmpfs ] &&
		try dd if=/dev/zero of=direct bs=4096 count=1 oflag=direct
}

# check_large NAME COMMAND...: run a case that needs all that, or skip it
check_large()
{
	if takes_direct; then
		check_able mount_apart,fincore.here "$@"
	else
		skip "$1" "no O_DIRECT here"
	fi
}
