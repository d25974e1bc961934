# shellcheck shell=bash disable=SC2034 # variables are for the scripts
#
# fault_lib.sh - calls of the C library that go wrong in blinksort, by
# build/fault.so; on top of sort_lib.sh
#
# A script has its own judge WHAT, which is called after each run, and sets
#   SURVIVED   a pattern of failures that are no reason to fail
#   hits       0, before each_call counts how many calls went wrong

. "$(dirname "${BASH_SOURCE[0]}")/sort_lib.sh"

PROGRAM=$DYN/blinksort
FAULT=$BUILD/fault.so

# More calls of a kind than this are not tried one by one.
tries_max=12
[ -z "$QUICK" ] || tries_max=3

# no_faults_because: why no call can go wrong here, if so; else 1
no_faults_because()
{
	if [ -n "$SANITIZED" ]; then
		echo "sanitizers bring allocators and wrappers of their own"
	elif [ ! -x "$PROGRAM" ] || [ ! -e "$FAULT" ]; then
		echo "no $PROGRAM or no $FAULT"
	else
		return 1
	fi
}

# run_fault NTH [NAME=VALUE...] -- ARGUMENT...: the nth call of the kind that
# the environment names goes wrong, or all if it is 0: $status; $calls is how
# many calls of that kind there were.
run_fault()
{
	local setting=(FAULT_NTH="$1")
	shift

	while [ "$1" != -- ]; do
		setting+=("$1")
		shift
	done
	shift
	status=0
	# In a group, so that the shell does not say which signal ended it.
	{
		timeout 300 env LD_PRELOAD="$FAULT" "${setting[@]}" \
			FAULT_COUNT_FILE="$SCRATCH/calls" "$PROGRAM" "$@" \
			>"$STDOUT" 2>"$STDERR" </dev/null || status=$?
	} 2>/dev/null
	calls=$(od -An -tu8 "$SCRATCH/calls")
}

# expect_survived FAILURE: what the run just had must not have ended it.
expect_survived()
{
	if [[ $1 =~ $SURVIVED ]] && [ "$status" != 0 ]; then
		fail "$1: status $status: $(head -c 300 "$STDERR")"
	fi
}

# each_call WHAT SETTING... -- ARGUMENT...: all the calls of a kind, one a run.
# If there is a file "old", each run is to replace a copy of it.
each_call()
{
	local what=$1 nth step=1
	shift

	for ((nth = 1; ; nth += step)); do
		[ ! -e old ] || cp old out
		run_fault "$nth" "$@"
		expect_survived "$what $nth"
		judge "$what $nth"
		[ "$calls" -ge "$nth" ] || break
		hits=$((hits + 1))
		# The first ones all, then about as many over the rest.
		if [ "$nth" = "$tries_max" ]; then
			step=$((calls / tries_max + 1))
		fi
	done
}

# each_failure "CALL:ERRNO..." ARGUMENT...: all the calls of all these kinds
each_failure()
{
	local failures=$1 failure hits=0
	shift

	for failure in $failures; do
		each_call "$failure $*" FAULT_CALL="${failure%:*}" \
			FAULT_ERRNO="${failure#*:}" -- "$@"
	done
	echo "  $hits faults: $*" >&2
	[ "$hits" -gt 10 ] || fail "hardly anything was hit"
}
