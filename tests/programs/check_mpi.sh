#!/bin/bash
# check_mpi.sh - blinksort-mpi, from end to end, with each MPI that is here
#
# mpirun starts the ranks on this machine.  What comes out must be, byte for
# byte, what one process makes of the same input in rank order; or, where that
# shares too much code, what the reference makes of it.
#
# MPI_RANKS=N   sort with all numbers of ranks up to N, instead of up to 8

# shellcheck disable=SC2317 # cases are called by check
# shellcheck source=tests/programs/cluster_lib.sh
. "$(dirname "$0")/cluster_lib.sh"

if [ "$SANITIZED" = tsan ]; then
	skip mpi "ThreadSanitizer does not know what MPI does"
	finish
fi

readonly MPIS=(mpich openmpi)
COUNT=20000
RANKS_MAX=${MPI_RANKS:-8}
if [ -n "$QUICK$SANITIZED" ]; then
	COUNT=4000
	RANKS_MAX=${MPI_RANKS:-4}
fi
# Open MPI wants to be told that there may be more ranks than CPUs.
declare -A MANY=([mpich]="" [openmpi]=--oversubscribe)

# mpi MPI RANKS COMMAND...: in the background if the caller says so; the job's
# status in $status, and what it prints in ./said and ./err
mpi()
{
	local mpi=$1 ranks=$2
	shift 2

	status=0
	# shellcheck disable=SC2086 # none, or one word
	timeout 300 "mpirun.$mpi" ${MANY[$mpi]} -n "$ranks" "$@" \
		>said 2>err </dev/null || status=$?
}

# mpi_sort MPI RANKS OPTION...
mpi_sort()
{
	local mpi=$1 ranks=$2
	shift 2

	mpi "$mpi" "$ranks" "$(mpi_program "$mpi")" in.%r -o out.%r \
		--deadline="$DEADLINE_S" "$@"
}

expect_sorted_by_all()
{
	[ "$status" = 0 ] || fail "status $status: $*: $(head -c 2000 err)"
}

# expect_mpi MPI RANKS OPTION...: ./want is what comes out
expect_mpi()
{
	mpi_sort "$@"
	expect_sorted_by_all "$@"
	expect_whole "$2" want || fail "$*"
	rm -f out.*
}

# --- what comes out -----------------------------------------------------------

# case_ranks MPI: all numbers of ranks
case_ranks()
{
	local ranks

	"$BIN/blinkgen" -a "$COUNT" whole
	expect_sorted whole -o want
	for ((ranks = 1; ranks <= RANKS_MAX; ranks++)); do
		cut_input whole 100 "$ranks" even
		expect_mpi "$1" "$ranks"
	done
}

for mpi in "${MPIS[@]}"; do
	check_able "$mpi" "${mpi}_ranks" case_ranks "$mpi"
done

finish
