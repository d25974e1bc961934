#!/bin/bash
# check_bench.sh - the benchmarks, on small files: their copy copies, their rows
# run and what they make is checked, and a run that is ended leaves nothing

# shellcheck source=tests/programs/tool_lib.sh
. "$(dirname "$0")/tool_lib.sh"

COPY=$BUILD/dyn/tests/bench/bench_copy
[ ! -x "$BUILD/musl/tests/bench/bench_copy" ] ||
	COPY=$BUILD/musl/tests/bench/bench_copy

if [ ! -x "$COPY" ]; then
	skip bench "the benchmarks are not built in this variant"
	finish
fi

# case_copy: sizes around a sector, a block and all blocks at once
case_copy()
{
	local size

	for size in 0 1 4096 4097 2097152 2097153 40000001; do
		head -c "$size" /dev/urandom >in
		echo "longer than some" >out
		"$COPY" in out
		expect_same in out
	done
}

case_copy_fails()
{
	expect_status 3 "$COPY" missing out 2>err
	expect_match '^bench_copy: missing: No such file' err
	expect_status 2 "$COPY" 2>err
	expect_match '^usage: ' err
	# It only reads.
	head -c 5000001 /dev/urandom >in
	"$COPY" in
	expect_folder . err in
}

# copy_with ERRNO NTH: of the calls of the kernel that wait, this one fails
copy_with()
{
	timeout 60 strace -o trace -e trace=io_uring_enter \
		-e inject=io_uring_enter:error="$1":when="$2" "$COPY" in out
}

case_copy_waits_fail()
{
	local nth

	head -c 40000001 /dev/urandom >in
	for nth in 1 2 3; do
		expect_status 3 copy_with EBADF "$nth" 2>err
		expect_match '^bench_copy: io_uring: Bad file descriptor' err
		copy_with EINTR "$nth"
		expect_same in out
	done
}

# bench SCRIPT ROWS VARIABLE=VALUE...: its rows, each command once
bench()
{
	mkdir -p files
	env ROWS="$2" TRIALS=1 RECORD="$PWD/record" DISK="$PWD/files" BIN="$BIN" \
		BUILD="$BUILD" BLINK_PORT=27400 "${@:3}" \
		timeout 600 "$REPO/tests/bench/$1" >said 2>&1 || fail "$(cat said)"
	expect_folder files
}

# names RECORD: its commands, which have all succeeded
names()
{
	"$BIN/blinkreport" --format=csv-summary "record/$1" >summary
	python3 - <<-'END'
		import csv
		rows = list(csv.DictReader(open("summary")))
		assert all(row["n"] == "1" for row in rows), rows
		print(",".join(row["configuration"] for row in rows
		               if row["role"] != "control"))
	END
}

# expect_names RECORD NAMES
expect_names()
{
	[ "$(names "$1")" = "$2" ] || fail "$1: $(cat said summary)"
}

case_list()
{
	local script

	for script in files external cluster; do
		"$REPO/tests/bench/$script.sh" --list >list
		[ "$(wc -l <list)" -gt 20 ] || fail "$(cat list)"
		[ -z "$(sort list | uniq -d)" ] || fail "twice: $(sort list | uniq -d)"
	done
	expect_status 2 env TRIALS=none "$REPO/tests/bench/files.sh" 2>err
	expect_match '^files.sh: TRIALS: none: ' err
}

case_files()
{
	bench files.sh 'shm.cached-ascii-62500 disk.shapes-ascii shm.blinkval'
	expect_names shm.cached-ascii-62500 'cp --reflink=never in out,blinksort in -o out'
	expect_names disk.shapes-ascii ascii,skew-ascii
	expect_match '^shm.blinkval:$' said
	[ "$(find record -mindepth 1 -maxdepth 1 | wc -l)" = 3 ] || fail "$(ls record)"
}

# What a sort has made is checked: here one that drops a record.
case_wrong_output()
{
	mkdir -p liar files
	ln -sf "$BIN"/blink{gen,val,probe} liar
	ln -sf "$REPO/results/blinktrial" liar
	printf '%s\n' '#!/bin/sh' "[ \$1 != --version ] || exec $BIN/blinksort \$1" \
		'head -c 9999900 in >out' >liar/blinksort
	chmod +x liar/blinksort
	expect_status 1 env ROWS=shm.cached-ascii-1000000 TRIALS=1 BIN="$PWD/liar" \
		BUILD="$BUILD" DISK="$PWD/files" RECORD="$PWD/wrong" \
		"$REPO/tests/bench/files.sh" >said 2>&1
	expect_match "^blinktrial: --conclude: .*out" said
}

case_external()
{
	bench external.sh 'memory-half pipes-slow-reader scratch-two' SIZE=60000000 \
		MEMORY=24M PIPE=100000000 DRIVE=100000000
	expect_names disk.memory-half \
		'bench_copy in out,blinksort in -o out --sync -S 28M -T .'
	expect_names disk.pipes-slow-reader cat,blinksort
	expect_names disk.scratch-two 'fast alone,fast and slow'
}

# The kernel holds the disk back, and then QEMU does.
case_disk_that_turns()
{
	local row

	bench external.sh 'arm-100M arm-one-100M' ARM_SIZE=4000000
	for row in disk.arm-100M disk.arm-one-100M; do
		[[ $(names "$row") = 'blinksort,without an arm,GNU sort'* ]] ||
			fail "$row: $(cat said summary)"
	done
}

case_cluster()
{
	bench cluster.sh 'shm.ranks-4 shm.launch-1 disk.wave'
	expect_names shm.ranks-4 '4 ranks,one process'
	expect_names disk.wave '4 ranks,with -S 1G'
	names shm.launch-1 >found
}

case_cluster_external()
{
	bench cluster.sh external-empty SIZE=40000000 MEMORY=12M
	expect_names disk.external-empty 'one process,4 ranks'
}

case_links()
{
	bench cluster.sh 'links-4 loss-4' RECORDS=100000
	[[ "$(names shm.links-4)" = 'rounds,all-at-once,UDP in the same order,cubic'* ]] ||
		fail "$(cat said summary)"
	expect_names shm.loss-4 '0 %,0.1 %,1 %,5 %,20 %'
}

# Ended in the midst of a run: no file, no file system, no daemon is left.
case_terminated()
{
	local pid status=0

	mkdir -p files
	env ROWS=xfs.ranks-16 TRIALS=1000 RECORD="$PWD/ended" DISK="$PWD/files" BIN="$BIN" \
		BUILD="$BUILD" BLINK_PORT=27400 "$REPO/tests/bench/cluster.sh" >said \
		2>&1 &
	pid=$!
	until [ -s ended/xfs.ranks-16/trials.jsonl ]; do
		kill -0 "$pid" || fail "ended: $(cat said)"
		sleep 0.1
	done
	kill -TERM "$pid"
	wait "$pid" || status=$?
	[ "$status" = 143 ] || fail "status $status: $(cat said)"
	expect_folder files
	! grep -q "$PWD/files" /proc/mounts || fail "$(grep "$PWD" /proc/mounts)"
	[ ! -e "$BUILD/bench/cluster" ] || fail "the cluster is left"
}

find_why_no_cgroup()
{
	PYTHONPATH=$REPO/results python3 -B - 2>&1 <<-'END' || true
		from trials.machine.memory_cgroup import MemoryCgroup, Unavailable
		try:
		    MemoryCgroup(100 << 20).close()
		except Unavailable as reason:
		    print(reason)
	END
}

check copy case_copy
check copy_fails case_copy_fails
check_able trace copy_waits_fail case_copy_waits_fail
check list case_list
check files case_files
check wrong_output case_wrong_output
check cluster case_cluster
check_able root,netns links case_links
check_able root terminated case_terminated
why_no_cgroup=$(find_why_no_cgroup)
for name in external disk_that_turns cluster_external; do
	if [ $name = disk_that_turns ] && ! command -v qemu-storage-daemon >where; then
		skip $name "there is no qemu-storage-daemon"
	elif [ "$why_no_cgroup" ]; then
		skip $name "no memory cgroup: $why_no_cgroup"
	elif [ "$(stat -f -c %T "$SCRATCH")" = tmpfs ]; then
		skip $name "$SCRATCH has no disk"
	else
		check $name case_$name
	fi
done
finish
