#!/bin/bash
# check_sort_fault.sh - every call of the C library that blinksort makes, made
# to fail once, by build/fault.so
#
# For each kind of call the first fails, then the second, and so on until a run
# has fewer.  Each run must either end well, with the exact output, or give a
# documented exit status and one line and leave nothing.

# shellcheck disable=SC2317 # cases are called by check
. "$(dirname "$0")/fault_lib.sh"

# What a run may end with when something failed that is not its fault.
DOCUMENTED='1|3|5'

# CALL:ERRNO...: what to try
FAILURES=(
	open:EMFILE openat:EMFILE openat:ENOSPC
	tmpfile:EOPNOTSUPP readlinkat:EIO getxattr:EIO
	fopen:EMFILE fdopen:ENOMEM fstat:EIO fstatat:EIO realpath:EIO
	read:EIO read:EINTR readv:EIO readv:EINTR pread:EIO pread:EINTR
	write:ENOSPC write:EINTR writev:ENOSPC writev:EINTR
	pwrite:ENOSPC pwrite:EINTR pwrite:EIO
	mmap:ENOMEM mmap:ENODEV mprotect:ENOMEM madvise:EINVAL mincore:ENOSYS
	ftruncate:EFBIG fallocate:EOPNOTSUPP fallocate:ENOSPC
	posix_fallocate:EOPNOTSUPP posix_fallocate:ENOSPC
	posix_fadvise:EINVAL sync_file_range:EINVAL ioctl:ENOTTY fchmod:EPERM
	fsync:EIO fdatasync:EIO close:EIO
	link:EPERM linkat:EPERM linkat:ENOENT linkat:EEXIST linkat:ENOSPC
	linkat_trial:EPERM
	rename:EIO renameat:EIO renameat:ENOSPC
	malloc:ENOMEM calloc:ENOMEM realloc:ENOMEM
	posix_memalign:ENOMEM aligned_alloc:ENOMEM
	pthread_create:EAGAIN sched_getaffinity:EINVAL sched_setaffinity:EINVAL
	pthread_setaffinity_np:EINVAL
	syscall:ENOSYS futex_wait:EINTR
	io_uring_setup:ENOSYS io_uring_setup:EPERM
	io_uring_enter:EINTR io_uring_enter:EAGAIN
	io_uring_queue_init:ENOSYS io_uring_queue_init:EPERM
	io_uring_queue_init_params:ENOSYS io_uring_register_buffers:ENOMEM
	io_uring_register_files:ENOMEM io_uring_submit:EAGAIN
	io_uring_submit:EINTR io_uring_submit_and_wait:EINTR
	io_uring_submit_and_wait:EAGAIN uring_read:EBADF uring_write:EBADF
)
# Those of them that are no reason to fail: a call that is made again, or one
# that only asked for something faster.
SURVIVED='EINTR|ENOSYS|EOPNOTSUPP|madvise:|sched_|setaffinity|fadvise'
SURVIVED+='|io_uring|uring_|linkat:ENOENT|linkat_trial|xattr:'
TRANSFERS=(read pread write pwrite uring_read uring_write)
# At these the input is cut short, or a signal comes.
MOMENTS=(openat fstat mmap madvise mincore pthread_create read pread pwrite
	ftruncate uring_read uring_write io_uring_submit fchmod linkat renameat)

tries_max=40
[ -z "$QUICK" ] || tries_max=6

# Enough for a huge page on tmpfs.
COUNT=16000
make_shape ascii $COUNT 1 >"$SCRATCH/in"
sort_reference "$SCRATCH/in" -o "$SCRATCH/want"
echo old >"$SCRATCH/old"

# judge WHAT: after a run to "out" in this folder.  If there is a file "old" in
# it, that was in the place of the output before; when it has been replaced, but
# the folder can't be synced, it can't be brought back.
judge()
{
	local old=
	[ ! -e old ] || old=old

	if [ "$status" = 0 ]; then
		cmp -s out "$SCRATCH/want" || fail "$1: status 0, bad output"
		rm -f out trace
	else
		[[ $status =~ ^($DOCUMENTED)$ ]] ||
			fail "$1: status $status: $(head -c 300 "$STDERR")"
		expect_one_line "$STDERR" || fail "$1"
		expect_match '^blinksort: .' "$STDERR" || fail "$1"
		if [ -n "$old" ]; then
			cmp -s old out || cmp -s out "$SCRATCH/want" ||
				fail "$1: neither old nor new output"
			rm out
		fi
	fi
	# shellcheck disable=SC2086 # none or one
	expect_folder . $old || fail "$1: status $status"
}

# case_fails OUTPUT ARGUMENT...: by two threads unless the arguments say so
case_fails()
{
	[ "$1" != old ] || cp "$SCRATCH/old" old
	shift
	[[ " $* " == *" --threads="* ]] || set -- --threads=2 "$@"
	each_failure "${FAILURES[*]}" "$SCRATCH/in" -o out "$@"
}

# What --sync asked for and did not get must be said.
case_sync_fails()
{
	local nth

	for ((nth = 1; ; nth++)); do
		run_fault "$nth" FAULT_CALL=fsync FAULT_ERRNO=EIO \
			-- "$SCRATCH/in" -o out --sync
		[ "$calls" -ge "$nth" ] || break
		[ "$status" = 3 ] || fail "fsync $nth: status $status"
		judge "fsync $nth"
	done
	[ "$nth" -gt 2 ] || fail "file and folder: $((nth - 1)) calls of fsync"
}

# Every transfer moves half of what was asked, once or each time.
case_short()
{
	local call hits=0

	for call in "${TRANSFERS[@]}"; do
		run_fault 0 FAULT_CALL="$call" FAULT_DO=short \
			-- "$SCRATCH/in" -o out "$@"
		[ "$status" = 0 ] || fail "all $call short: status $status:" \
			"$(head -c 300 "$STDERR")"
		judge "all $call short, $*"
		each_call "$call short, $*" FAULT_CALL="$call" FAULT_DO=short \
			-- "$SCRATCH/in" -o out "$@"
	done
	echo "  $hits short transfers: $*" >&2
}

# The input shrinks at a chosen moment.  Before it was opened the run can't
# know, but then it is no longer a whole number of records.
case_cut_short()
{
	local call nth size hits=0

	for call in "${MOMENTS[@]}"; do
		for size in $((COUNT * 100 - 1)) 4097 0; do
			for ((nth = 1; nth <= tries_max; nth++)); do
				cp "$SCRATCH/in" "$SCRATCH/cut"
				run_fault "$nth" FAULT_CALL="$call" \
					FAULT_DO=truncate FAULT_SIZE="$size" \
					FAULT_PATH="$SCRATCH/cut" \
					-- "$SCRATCH/cut" -o out "$@"
				# Nothing is a whole number of records, too.
				if [ "$size" = 0 ] && [ -f out ] && [ ! -s out ]
				then
					rm out
					continue
				fi
				judge "cut to $size at $call $nth, $*"
				[ "$calls" -ge "$nth" ] || break
				hits=$((hits + 1))
			done
		done
	done
	echo "  $hits cuts: $*" >&2
}

# A signal at a chosen moment: the output is absent or complete.
case_signals()
{
	local call signal nth hits=0

	for signal in 2 9 15; do
		for call in "${MOMENTS[@]}"; do
			for ((nth = 1; nth <= tries_max; nth++)); do
				[ ! -e old ] || cp old out
				run_fault "$nth" FAULT_CALL="$call" \
					FAULT_DO=signal FAULT_SIGNAL="$signal" \
					-- "$SCRATCH/in" -o out "$@"
				judge_signal "signal $signal at $call $nth, $*"
				[ "$calls" -ge "$nth" ] || break
				hits=$((hits + 1))
			done
		done
	done
	echo "  $hits signals: $*" >&2
}

# judge_signal WHAT
judge_signal()
{
	local left

	if [ -e old ] && [ "$status" != 0 ] && cmp -s old out; then
		rm out
	elif [ -e out ] || [ "$status" = 0 ]; then
		cmp -s out "$SCRATCH/want" || fail "$1: bad output"
		rm out
	fi
	# Killed after the new file got a name, before it took the old one's
	# place: no process was left to remove it.
	for left in .[!.]*; do
		if [ ! -e old ] || [ "$signal" != 9 ] || [ ! -e "$left" ]; then
			continue
		fi
		cmp -s "$left" "$SCRATCH/want" || fail "$1: bad $left"
		rm "$left"
	done
	# shellcheck disable=SC2046 # none or one
	expect_folder . $([ ! -e old ] || echo old) ||
		fail "$1: status $status"
}

# case_on_tmpfs CASE ARGUMENT...: in a folder there
case_on_tmpfs()
{
	local folder

	folder=$(mktemp -d /dev/shm/blinksort-fault.XXXXXX)
	(
		at_end 'rm -rf "$folder"'
		cd "$folder" || exit
		"$@"
	)
}

case_signals_old()
{
	cp "$SCRATCH/old" old
	case_signals "$@"
}

if why=$(no_faults_because); then
	skip fault "$why"
	finish
fi
for io in "${IO_MODES[@]}"; do
	check "fails_$io" case_fails new --io="$io"
	check "short_$io" case_short --io="$io" --threads=2
done
check fails_one_thread case_fails new --io=buffered --threads=1
check fails_on_tmpfs case_on_tmpfs case_fails new
check fails_unique case_fails new --unique
check fails_unique_on_tmpfs case_on_tmpfs case_fails new --unique
check short_on_tmpfs case_on_tmpfs case_short --threads=2
check signals_on_tmpfs case_on_tmpfs case_signals
check sync_fails case_sync_fails
check fails_old_output case_fails old --sync
check fails_report case_fails new --json --checksum --trace=trace --sync
for io in buffered mmap direct; do
	check "cut_short_$io" case_cut_short --io=$io --threads=2
done
check signals case_signals
check signals_old_output case_signals_old
finish
