#!/bin/bash
# check_limits.sh - blinksort within what it may take of a machine
#
# Memory, CPUs and room may be little, whoever has limited them: a run then takes
# less, or says what is missing before it begins; it is never killed, and never
# refused where one thread could do it.

# shellcheck disable=SC2317 # cases are called by check
. "$(dirname "$0")/sort_lib.sh"

unset TMPDIR

# with_cpus COUNT COMMAND...: the command sees that many CPUs, a multiple of 8
with_cpus()
{
	local bytes=$(($1 / 8))
	shift

	strace -f -qq -o /dev/null -e trace=sched_getaffinity \
		-e "inject=sched_getaffinity:retval=$bytes:poke_exit=@arg3=$(
			printf 'ff%.0s' $(seq "$bytes"))" "$@"
}

can_set_cpus()
{
	with_cpus 8 true 2>/dev/null
}

# memory_group: makes a group of processes in $group, below the one that this
# shell is in, whose memory can be limited; 1 if that cannot be done
memory_group()
{
	local here

	here=$(sed -n 's/^[0-9]*:memory://p' /proc/self/cgroup)
	group=/sys/fs/cgroup/memory$here/blinksort-limits.$$
	limit_file=memory.limit_in_bytes
	mkdir "$group" 2>/dev/null && [ -e "$group/$limit_file" ] && return 0
	here=$(sed -n 's/^0:://p' /proc/self/cgroup)
	group=/sys/fs/cgroup$here/blinksort-limits.$$
	limit_file=memory.max
	mkdir "$group" 2>/dev/null || return 1
	[ -e "$group/$limit_file" ] || { rmdir "$group"; return 1; }
}

# in_group LIMIT COMMAND...: the command in the group, which may take so much
in_group()
{
	echo "$1" >"$group/$limit_file"
	# shellcheck disable=SC2016 # of the inner shell
	sh -c 'echo $$ >"$0/cgroup.procs" && exec "$@"' "$group" "${@:2}"
}

# uncache FILE...: no page of them is cached, so that the group that reads them
# pays for the pages
uncache()
{
	python3 - "$@" <<-'EOF'
		import os, sys

		for name in sys.argv[1:]:
		    file = os.open(name, os.O_RDONLY)
		    os.fsync(file)
		    os.posix_fadvise(file, 0, 0, os.POSIX_FADV_DONTNEED)
	EOF
}

# --- keys ----------------------------------------------------------------------

# However long a key is and however far apart two of them are, a stream is sorted
# as a file is.
case_long_keys_of_streams()
{
	local size key

	while read -r size key; do
		# shellcheck disable=SC2086 # some keys
		set -- --record-size="$size" $key
		head -c $((size * 10)) /dev/urandom >in
		"$BIN/blinksort" in -o want "$@"
		for memory in "" --memory=64M --memory=1G; do
			# shellcheck disable=SC2086 # an option or none
			"${BLINKSORT[@]}" - -o out $memory "$@" < <(cat in) ||
				fail "$size $key $memory: status $?"
			expect_same out want || fail "$size $key $memory"
			rm out
		done
	done <<-EOF
		4000 --key=0:1595
		4000 --key=0:1596
		4000 --key=0:4000
		4000 --key=0:4 --key=3996:4
		70000 --key=0:70000
		1000000 --key=0:1 --key=999999:1
	EOF
}

# What the index of a stream has no room for ends the sort in words; the same
# records in a file are sorted.
case_index_is_full()
{
	local options=(--record-size=1048576 --key=0:1048576)

	"$BIN/blinkgen" -a 1000000 small
	head -c $((80 << 20)) small >in
	status=0
	"${BLINKSORT[@]}" - -o out -S 56M "${options[@]}" \
		< <(cat in) >"$STDOUT" 2>"$STDERR" || status=$?
	[ "$status" = 5 ] || fail "status $status"
	expect_message
	expect_match '^blinksort: --memory: 56.0 MiB are too little for a stream' \
		"$STDERR"
	expect_match 'their index is full after [0-9]+\.[0-9] MiB' "$STDERR"
	expect_folder . in small
	expect_sorted in -o out -S 400M --io=direct "${options[@]}"
}

# --- threads --------------------------------------------------------------------

# The default of threads is never in the way of a sort that one thread can do.
case_many_cpus()
{
	local cpus memory source

	"$BIN/blinkgen" -a 300000 in
	sort_reference in -o want
	for cpus in 64 128 256; do
		for memory in 14M 24M 64M; do
			for source in in -; do
				status=0
				with_cpus "$cpus" "${BLINKSORT[@]}" "$source" \
					-o out -S "$memory" < <(cat in) \
					>"$STDOUT" 2>"$STDERR" || status=$?
				[ "$status" = 0 ] || fail "$cpus CPUs, $memory," \
					"$source: $(head -c 400 "$STDERR")"
				expect_same out want ||
					fail "$cpus CPUs, $memory, $source"
				rm out
			done
		done
	done
}

# Threads that are asked for are refused with their name.
case_threads_are_named()
{
	"$BIN/blinkgen" -a 300000 in
	expect_refused 5 '' in -o out -S 16M --threads=128
	expect_message
	expect_match 'at least, and 16.0 MiB are allowed: with --threads=1 it takes [0-9.]+ MiB$' \
		"$STDERR"
}

# What is needed and what is allowed are never the same text.
case_sizes_differ()
{
	local needed

	"$BIN/blinkgen" -a 10000 in
	"$BIN/blinksort" in -o out --threads=1 --io=direct --explain --json >plan
	needed=$(sed 's/.*"memory_bytes": \([0-9]*\).*/\1/' plan)
	expect_refused 5 '' in -o out --threads=1 --io=direct -S \
		$((needed - 1))
	[[ $(cat "$STDERR") =~ takes\ (.*)\ at\ least,\ and\ (.*)\ are ]] ||
		fail "$(cat "$STDERR")"
	[ "${BASH_REMATCH[1]}" != "${BASH_REMATCH[2]}" ] ||
		fail "$(cat "$STDERR")"
}

# --- memory ---------------------------------------------------------------------

# Limits of a process are seen before memory is missing, and named if they are
# met nevertheless.
case_resource_limits()
{
	local limit

	"$BIN/blinkgen" -a 300000 in
	sort_reference in -o want
	for limit in "-d 40000" "-v 40000" "-d 100000" "-v 100000"; do
		expect_sorted in -o out --io=direct --threads=2
		expect_same out want || fail "$limit"
	done
	limit="-d 20000"
	run_tested in -o out2 -S 30M --threads=2 --io=direct
	[ "$status" = 5 ] || fail "status $status"
	expect_message
	expect_match 'memory: [0-9.]+ MiB cannot be mapped: RLIMIT_DATA leaves [0-9.]+ MiB$' \
		"$STDERR"
}

# Where /proc is hidden the kernel is asked in another way.
case_without_proc()
{
	"$BIN/blinkgen" -a 300000 in
	sort_reference in -o want
	# shellcheck disable=SC2016 # of the inner shell
	unshare --mount sh -c 'umount -l /proc && exec "$@"' sh \
		"${BLINKSORT[@]}" - -o out < <(cat in)
	expect_same out want
}

# plan_memory OPTION...: $bytes that blinksort would take beyond memory
plan_memory()
{
	expect_sorted in -o out --io=direct --threads=1 --explain --json \
		--disk-rates=1G:1G:1G "$@"
	bytes=$(sed 's/.*"memory_bytes": \([0-9]*\).*/\1/' "$STDOUT")
}

# expect_near BYTES WANTED: by some percent
expect_near()
{
	if [ "$1" -lt $(($2 * 97 / 100)) ] || [ "$1" -gt $(($2 * 103 / 100)) ]
	then
		fail "$1 instead of about $2"
	fi
}

# A limit in percent is a part of what is there without it.
case_memory_part()
{
	local part bytes half limit="-v 500000"

	truncate -s 1000M in
	plan_memory -S 50%
	half=$bytes
	expect_match '"memory_source": "--memory=50%"' "$STDOUT"
	# The program itself has taken some of the 500 MB by then.
	expect_near "$half" $((240 << 20))
	for part in 10 25 100; do
		plan_memory -S "$part%"
		expect_near "$bytes" $((half * part / 50))
	done
	plan_memory
	expect_near "$bytes" $((half * 75 / 50))
	run_tested in -o out --io=direct --threads=1 -S 1% \
		--record-size=8388608 --key=0:1
	[ "$status" = 5 ] || fail "status $status"
	expect_match '^blinksort: --memory=1%: sorting this takes .* are allowed' \
		"$STDERR"
}

# What has been read several times is in the way of nobody.
case_cache_is_free()
{
	at_end 'rmdir "$group"'
	"$BIN/blinkgen" -a 1000000 in
	head -c 80000000 /dev/zero >other
	uncache in other
	for _ in 1 2 3; do
		in_group 200M cat other in >/dev/null
	done
	in_group 200M "${BLINKSORT[@]}" in -o out --io=direct --json \
		>"$STDOUT" || fail "status $?"
	expect_match '"external": null' "$STDOUT"
	# What the group has cached goes before it does.
	rm in other out
}

# in_ramdisk COMMAND...: a folder on a tmpfs is $ramdisk meanwhile
in_ramdisk()
{
	ramdisk=$(mktemp -d /dev/shm/blinksort-limits.XXXXXX)
	at_end 'rm -rf "$ramdisk"; [ -z "${group-}" ] || rmdir "$group"'
	"$@"
}

# An output on a tmpfs is memory: the sort takes less, and ends in words if that
# does not suffice.
case_output_is_memory()
{
	"$BIN/blinkgen" -a 600000 in
	sort_reference in -o want
	uncache in want
	in_group 100M "${BLINKSORT[@]}" in -o "$ramdisk/out" -T . --io=direct \
		2>"$STDERR" || fail "status $?: $(cat "$STDERR")"
	expect_same "$ramdisk/out" want
	rm "$ramdisk/out"
	# The output would push a mapped input out of the cache, of which
	# records are gathered at random.
	in_group 100M cat in in >/dev/null
	in_group 100M "${BLINKSORT[@]}" in -o "$ramdisk/out" -T . --json \
		>"$STDOUT" || fail "status $?"
	expect_same "$ramdisk/out" want
	! grep '"external": null' "$STDOUT" || fail "it was sorted at once"
	rm "$ramdisk/out"
	# What is no regular file holds nothing, wherever its name is.
	in_group 50M "${BLINKSORT[@]}" in -o /dev/null -T . 2>"$STDERR" ||
		fail "device: status $?: $(cat "$STDERR")"
	mkfifo "$ramdisk/pipe"
	cmp "$ramdisk/pipe" want &
	in_group 50M "${BLINKSORT[@]}" in -o "$ramdisk/pipe" -T . 2>"$STDERR" ||
		fail "FIFO: status $?: $(cat "$STDERR")"
	wait $!
	rm "$ramdisk/pipe"
	BLINKSORT=(in_group 50M "${BLINKSORT[@]}")
	for source in in -; do
		run_tested_of in "$source" -o "$ramdisk/out" -T .
		[ "$status" = 5 ] || fail "$source: status $status"
		expect_message
		expect_match '^blinksort: memory: .* available' "$STDERR"
	done
	expect_folder "$ramdisk"
	expect_folder . in want
}

# run_tested_of FILE ARGUMENT...: as run_tested, with the file by a pipe
run_tested_of()
{
	local file=$1
	shift

	status=0
	"${BLINKSORT[@]}" "$@" < <(cat "$file") >"$STDOUT" 2>"$STDERR" ||
		status=$?
}

# Scratch files on a tmpfs are memory, too; on a disk they are not.
case_scratch_is_memory()
{
	local source

	"$BIN/blinkgen" -a 800000 in
	sort_reference in -o want
	uncache in want
	BLINKSORT=(in_group 64M "${BLINKSORT[@]}")
	run_tested_of in in -o out -T "$ramdisk" --explain --disk-rates=1G:1G:1G
	[ "$status" = 5 ] || fail "--explain: status $status: $(cat "$STDOUT")"
	for source in in -; do
		run_tested_of in "$source" -o out -T "$ramdisk"
		[[ $status =~ ^[35]$ ]] ||
			fail "$source: status $status: $(cat "$STDERR")"
		expect_message
		run_tested_of in "$source" -o out -T "$ramdisk" -T .
		[ "$status" = 0 ] ||
			fail "$source, two folders: status $status"
		expect_same out want
		rm out
	done
	expect_folder "$ramdisk"
	expect_folder . in want
}

# No limit of a process counts files, also where these are memory.
case_ramdisk_beside_limits()
{
	local limit

	"$BIN/blinkgen" -a 1000000 in
	sort_reference in -o want
	for limit in "-d 60000" "-v 60000"; do
		expect_sorted in -o "$ramdisk/out" -T "$ramdisk" --io=direct \
			--threads=2
		expect_same "$ramdisk/out" want || fail "$limit"
		rm "$ramdisk/out"
	done
	expect_folder "$ramdisk"
}

# --- what --explain says --------------------------------------------------------

# The sources of all limits; and what is missing ends it as it ends the sort.
case_explain()
{
	"$BIN/blinkgen" -a 600000 in
	expect_sorted in -o out --io=direct --explain
	expect_match '^limits  *threads by .*, memory by what ' "$STDOUT"
	expect_sorted in -o out --io=direct -S 20M --threads=2 --explain \
		--disk-rates=1G:1G:1G
	expect_match '^limits  *threads by --threads, memory by --memory$' \
		"$STDOUT"
	expect_sorted in -o out --io=direct -S 20M --threads=2 --explain --json \
		--disk-rates=1G:1G:1G
	expect_match '"memory_source": "--memory", "threads_source": "--threads"' \
		"$STDOUT"
	expect_match '"refused": null' "$STDOUT"
	mkdir -p few
	mount -t tmpfs -o size=30M none few
	at_end 'umount few'
	run_tested in -o out --io=direct -S 20M --threads=2 -T few
	[ "$status" = 3 ] || fail "status $status"
	run_tested in -o out --io=direct -S 20M --threads=2 -T few --explain \
		--disk-rates=1G:1G:1G
	[ "$status" = 3 ] || fail "--explain: status $status"
	expect_match '^refused  *few .* are missing$' "$STDOUT"
	run_tested in -o out --io=direct -S 20M --threads=2 -T few --explain \
		--json --disk-rates=1G:1G:1G
	[ "$status" = 3 ] || fail "--explain --json: status $status"
	expect_match '"refused": "few .* are missing"' "$STDOUT"
}

# A quota of CPU time bounds the default of threads where it matters.
case_cpu_quota()
{
	at_end 'rmdir "$cpu_group"'
	truncate -s 300M in
	# shellcheck disable=SC2016 # of the inner shell
	with_cpus 64 sh -c 'echo $$ >"$0/cgroup.procs" && exec "$@"' "$cpu_group" \
		"${BLINKSORT[@]}" in -o out --explain --json >"$STDOUT"
	expect_match '"threads": 1, .*"threads_source": "quota"' "$STDOUT"
}

# quota_group: makes $cpu_group, whose processes have half a CPU's time: one thread,
# whatever the groups above it leave; 1 if that cannot be done
quota_group()
{
	local here

	here=$(sed -n 's/^[0-9]*:.*\<cpu\>[^:]*://p' /proc/self/cgroup)
	cpu_group=/sys/fs/cgroup/cpu$here/blinksort-limits.$$
	if mkdir "$cpu_group" 2>/dev/null &&
		echo 50000 >"$cpu_group/cpu.cfs_quota_us"; then
		return 0
	fi
	here=$(sed -n 's/^0:://p' /proc/self/cgroup)
	cpu_group=/sys/fs/cgroup$here/blinksort-limits.$$
	mkdir "$cpu_group" 2>/dev/null || return 1
	echo "50000 100000" 2>/dev/null >"$cpu_group/cpu.max" ||
		{ rmdir "$cpu_group"; return 1; }
}

check long_keys_of_streams case_long_keys_of_streams
check index_is_full case_index_is_full
check sizes_differ case_sizes_differ
check threads_are_named case_threads_are_named
if [ -n "$SANITIZED" ]; then
	skip many_cpus "sanitizers take memory of their own for each thread"
elif ! can_set_cpus; then
	skip many_cpus "strace can't change what sched_getaffinity answers"
else
	check many_cpus case_many_cpus
fi
if [ -n "$SANITIZED" ]; then
	skip resource_limits "sanitizers map far more"
	skip cache_is_free "sanitizers take memory of their own"
else
	check resource_limits case_resource_limits
	check memory_part case_memory_part
	check ramdisk_beside_limits in_ramdisk case_ramdisk_beside_limits
	for name in cache_is_free output_is_memory scratch_is_memory; do
		if ! memory_group; then
			skip "$name" "no memory group can be made"
		elif [ "$name" = cache_is_free ]; then
			check "$name" "case_$name"
		else
			check "$name" in_ramdisk "case_$name"
		fi
		# A case that was not run has left it.
		rmdir "$group" 2>/dev/null || true
	done
fi
if [ -n "$SANITIZED" ] || ! can_set_cpus || ! quota_group; then
	skip cpu_quota "no group with a CPU quota can be made, or no strace"
else
	check cpu_quota case_cpu_quota
fi
check_able mount explain case_explain
if [ -n "$SANITIZED" ]; then
	skip without_proc "sanitizers read /proc"
else
	# unshare makes mounts private, and can only where / is a mount point.
	check_able mount,mount_apart without_proc case_without_proc
fi
finish
