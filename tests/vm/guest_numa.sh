#!/bin/bash
# guest_numa.sh - the first process of the machine of check.sh numa
#
# It has two NUMA nodes, each of two CPUs: 0 and 2 of node 0, 1 and 3 of node 1.
# blinksort is to spread its threads and memory over them, and each half of its
# output is to lie on the node whose threads have ordered it.
# shellcheck disable=SC2317 # cases are called by check

# shellcheck source=tests/vm/guest_lib.sh
. /blinksort/tests/vm/guest_lib.sh

BIN=/usr/bin
# shellcheck source=tests/programs/sort_lib.sh
. /blinksort/tests/programs/sort_lib.sh

readonly RECORDS=400000
# So many pages of a part must lie on its node.  Threads that are through help
# those of the other node, so that parts are looked at with which these begin.
readonly LEAST=60

set_up()
{
	wait_for /dev/sda
	mkfs.ext4 -q /dev/sda
	mount -t ext4 /dev/sda /mnt
	blinkgen $RECORDS "$SCRATCH/in"
	blinksort "$SCRATCH/in" -o "$SCRATCH/want" --threads=1 --numa=off
	head -n 20 /sys/devices/system/node/node*/{cpulist,distance}
}

# on_ext4 COMMAND...: with no output yet, which goes to the page cache
on_ext4()
{
	OUT=/mnt/out
	rm -f "$OUT"
	"$@"
	rm -f "$OUT"
}

# expect_numa JSON'S_VALUE ARGUMENT...: sorted, and the document has that
expect_numa()
{
	local want=$1

	shift
	expect_sorted "$SCRATCH/in" -o "$OUT" --json "$@"
	expect_same "$OUT" "$SCRATCH/want"
	expect_match "\"numa\": $want, " "$STDOUT"
}

# expect_pages NODE PART PARTS: of this part of the output
expect_pages()
{
	local on

	read -r -a on <<<"$(page_nodes "$OUT" "$3" | sed -n "$(($2 + 1))p")"
	echo "  part $2 of $3: on nodes 0 and 1 ${on[0]} and ${on[1]} %" >&2
	[ "${on[$1]}" -ge $LEAST ] || fail "part $2: ${on[*]} %"
}

# The memory that all threads read comes from both nodes in turn.
case_auto()
{
	local bytes

	expect_numa '\[\{"node": 0, "workers": 2, "memory_bytes": [0-9]+\}, \{"node": 1, "workers": 2, "memory_bytes": [0-9]+\}\]'
	mapfile -t bytes < <(grep -o '"memory_bytes": [0-9]*}' "$STDOUT" |
		grep -o '[0-9]*')
	echo "  memory: ${bytes[*]} bytes" >&2
	[ "${bytes[0]}" -gt 1000000 ] || fail "memory: ${bytes[*]}"
	[ "${bytes[0]}" -lt $((2 * bytes[1])) ] || fail "memory: ${bytes[*]}"
	[ "${bytes[1]}" -lt $((2 * bytes[0])) ] || fail "memory: ${bytes[*]}"
	expect_pages 0 0 8
	expect_pages 1 4 8
}

# Node 0 has the first third or the first two thirds of the output.
case_uneven()
{
	expect_numa '\[\{"node": 0, "workers": [12], .*\}\]' --threads=3
	expect_pages 0 0 12
}

# Two threads that are on the two CPUs of one node take memory of that one.  They
# are on two nodes if the first one is on the last CPU of a node.
case_few_threads()
{
	wait_until on_one_node
	expect_match '"workers": 0, "memory_bytes": 0}' "$STDOUT"
	expect_match '"workers": 2, "memory_bytes": [1-9][0-9]{6}' "$STDOUT"
}

on_one_node()
{
	rm -f "$OUT"
	expect_numa '\[.*\]' --threads=2
	grep -q '"workers": 2' "$STDOUT"
}

case_one_node()
{
	local node

	for node in 0 1; do
		expect_numa null --numa=$node
		expect_pages $node 0 1
		rm "$OUT"
	done
	expect_numa null '--numa=!0'
	expect_pages 1 0 1
}

# While it waits for a stream it can be looked at.  Its first thread may be bound
# to one of the CPUs.
case_confined()
{
	local fifo

	mkfifo fifo
	blinksort - -o "$OUT" --numa=1 --threads=2 <fifo &
	exec {fifo}>fifo
	head -c 1000 "$SCRATCH/in" >&"$fifo"
	wait_until is_confined $! || fail "$(grep allowed_list "/proc/$!/status")"
	exec {fifo}>&-
	wait $!
}

is_confined()
{
	grep -q -E '^Cpus_allowed_list:[[:blank:]](1|3|1,3)$' "/proc/$1/status"
}

case_off()
{
	expect_numa null --numa=off
	expect_numa null --threads=1
}

case_all()
{
	expect_numa '\[.*\]' --numa=all
	expect_numa '\[.*\]' --numa=0-1
	expect_numa '\[.*\]' --numa=+0-1
}

case_bad()
{
	sort_run "$SCRATCH/in" -o "$OUT" --numa=0,5
	[ "$status" = 2 ] || fail "status $status"
	expect_message
	expect_match '^blinksort: --numa: node 5 has no CPU' "$STDERR"
	expect_gone "$OUT"
}

# Two nodes, but CPUs of one only: as on a machine with one.
case_affinity()
{
	status=0
	taskset -c 1,3 blinksort "$SCRATCH/in" -o "$OUT" --numa=0 \
		2>"$STDERR" >"$STDOUT" || status=$?
	[ "$status" = 2 ] || fail "status $status"
	expect_match 'node 0 has no CPU' "$STDERR"
	taskset -c 1,3 blinksort "$SCRATCH/in" -o "$OUT" --json >"$STDOUT"
	expect_match '"numa": null' "$STDOUT"
	expect_pages 1 0 1
}

case_beyond_memory()
{
	expect_numa null -S 10M -T /mnt
	rm "$OUT"
	expect_numa null -S 10M -T /mnt --numa=1
}

# Huge pages are made in their order.
case_tmpfs()
{
	mkdir tmpfs
	mount -t tmpfs tmpfs tmpfs
	OUT=tmpfs/out
	expect_numa '\[.*\]'
	umount tmpfs
}

case_shapes()
{
	local option

	for option in --unique --checksum --splitters=sampled --io=buffered; do
		expect_sorted "$SCRATCH/in" -o "$OUT" "$option"
		[ "$option" = --unique ] || expect_same "$OUT" "$SCRATCH/want"
		rm "$OUT"
	done
}

case_hidden()
{
	umount /sys
	expect_numa null
	expect_numa null --numa=0
	mount -t sysfs sysfs /sys
}

set_up
check numa_auto on_ext4 case_auto
check numa_uneven on_ext4 case_uneven
check numa_few_threads on_ext4 case_few_threads
check numa_one_node on_ext4 case_one_node
check numa_confined on_ext4 case_confined
check numa_off on_ext4 case_off
check numa_all on_ext4 case_all
check numa_bad on_ext4 case_bad
check numa_affinity on_ext4 case_affinity
check numa_beyond_memory on_ext4 case_beyond_memory
check numa_shapes on_ext4 case_shapes
check numa_tmpfs case_tmpfs
check numa_hidden on_ext4 case_hidden
end_machine
