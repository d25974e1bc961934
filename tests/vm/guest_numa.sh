#!/bin/bash
# guest_numa.sh - the first process of the machine of check.sh numa
#
# It has two NUMA nodes, each of two CPUs: 0 and 2 of node 0, 1 and 3 of node 1,
# which also has the network card and the disk.
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
	head -n 20 /sys/devices/system/node/node*/{cpulist,distance} \
		/proc/sys/kernel/numa_balancing
	ip link set lo up
	ip address add 10.0.0.1/24 dev eth0
	ip address add 10.0.0.2/24 dev eth0
	ip link set eth0 up
	head -n 20 /sys/class/net/eth0/device/numa_node
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
	expect_both
	expect_pages 0 0 8
	expect_pages 1 4 8
}

# Node 0 has the first third or the first two thirds of the output.  If its one
# thread comes late, as on a busy host, those of the other node do its part, too:
# so what counts is a run in which it did not.
case_uneven()
{
	wait_until on_own_node
}

on_own_node()
{
	rm -f "$OUT"
	expect_numa '\[\{"node": 0, "workers": [12], .*\}\]' --threads=3
	expect_pages 0 0 12
}

# Two threads that are on the two CPUs of one node take memory of that one.  They
# are on two nodes if the first one is on the last CPU of a node.
case_few_threads()
{
	wait_until on_one_node
	expect_match '"numa": \[[^]]*"workers": 2, "memory_bytes": [1-9][0-9]{6,}}\]' \
		"$STDOUT"
	! grep -q '"workers".*"workers"' "$STDOUT" || fail "memory of both nodes"
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
	run_tested "$SCRATCH/in" -o "$OUT" --numa=0,5
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
	expect_both -S 24M -T /mnt
	rm "$OUT"
	expect_numa null -S 10M -T /mnt --numa=1
	rm "$OUT"
	expect_numa null -S 10M -T /mnt --numa=off
}

# expect_both ARGUMENT...: two threads on each node, and memory of both in turn
expect_both()
{
	local bytes

	expect_numa '\[\{"node": 0, "workers": 2, "memory_bytes": [0-9]+\}, \{"node": 1, "workers": 2, "memory_bytes": [0-9]+\}\]' "$@"
	mapfile -t bytes < <(grep -o '"memory_bytes": [0-9]*}' "$STDOUT" |
		grep -o '[0-9]*')
	echo "  memory: ${bytes[*]} bytes" >&2
	[ "${bytes[0]}" -gt 1000000 ] || fail "memory: ${bytes[*]}"
	[ "${bytes[0]}" -lt $((2 * bytes[1])) ] || fail "memory: ${bytes[*]}"
	[ "${bytes[1]}" -lt $((2 * bytes[0])) ] || fail "memory: ${bytes[*]}"
}

# anonymous PID: pages of its own memory on nodes 0 and 1
anonymous()
{
	awk '/ anon=/ {
		for (i = 1; i <= NF; i++)
			if (sub("^N0=", "", $i))
				on0 += $i
			else if (sub("^N1=", "", $i))
				on1 += $i
	}
	END { print on0 + 0, on1 + 0 }' "/proc/$1/numa_maps"
}

# A stream's sort beyond memory waits for more: what it has read by then lies
# where it is confined to.
case_beyond_memory_confined()
{
	local fifo on pid

	mkfifo fifo
	blinksort - -o "$OUT" -S 20M -T /mnt --numa=1 <fifo &
	pid=$!
	exec {fifo}>fifo
	head -c 8000000 "$SCRATCH/in" >&"$fifo"
	wait_until has_pages "$pid" 1500 || fail "$(anonymous "$pid")"
	read -r -a on <<<"$(anonymous "$pid")"
	echo "  anonymous pages on nodes 0 and 1: ${on[*]}" >&2
	[ "${on[1]}" -gt $((20 * on[0])) ] || fail "pages: ${on[*]}"
	exec {fifo}>&-
	wait "$pid"
}

# has_pages PID COUNT: of its own memory
has_pages()
{
	local on

	read -r -a on <<<"$(anonymous "$1")"
	[ $((on[0] + on[1])) -ge "$2" ]
}

# --- two ranks on this machine ------------------------------------------------

# start_rank RANK HOSTS ARGUMENT...: its document goes to said.RANK
start_rank()
{
	local rank=$1 hosts=$2
	shift 2

	# A name of its own for what both have
	ln -f "$SCRATCH/in" "$SCRATCH/in.$rank"
	blinksort --cluster --nodes="$hosts" --rank="$rank" \
		--deadline=60 --json "$SCRATCH/in.$rank" -o "/mnt/part.$rank" "$@" \
		>"said.$rank" 2>"err.$rank" </dev/null &
	pids[rank]=$!
}

# run_ranks HOSTS ARGUMENT...: both have the whole input
run_ranks()
{
	local rank

	for rank in 0 1; do
		start_rank "$rank" "$@"
	done
	end_ranks
}

# Both were started: each record of the input is there twice, in order.
end_ranks()
{
	local rank

	for rank in 0 1; do
		wait "${pids[rank]}" || fail "$(cat "err.$rank")"
	done
	cat /mnt/part.0 /mnt/part.1 >/mnt/both
	[ -n "${want_sum:=$(doubled | md5sum)}" ]
	[ "$(md5sum </mnt/both)" = "$want_sum" ] || fail "not sorted"
	rm /mnt/part.? /mnt/both
}

# As many as it has, each one twice: the records of a sorted input
doubled()
{
	blinksort "$SCRATCH/in" "$SCRATCH/in" -o doubled --threads=1
	cat doubled
	rm doubled
}

# expect_said RANK PATTERN
expect_said()
{
	grep -o '"numa": .*"minor' "said.$1" >&2 || true
	expect_match "$2" "said.$1"
}

readonly LOOPBACK=127.0.0.1:7001,127.0.0.1:7002
# Without loopback: addresses that the card has.
readonly CARD=10.0.0.1:7001,10.0.0.1:7002

# on_node NODE: the pattern of a rank that is all there
on_node()
{
	echo "\"numa\": \[\{\"node\": $1, \"workers\": 2, \"memory_bytes\": [0-9]{7,}\}\], "
}

# Each rank has a node of its own, threads and memory.
case_ranks()
{
	run_ranks "$LOOPBACK"
	expect_said 0 "$(on_node 0)"
	expect_said 1 "$(on_node 1)"
	expect_match '"network_node": null' said.0
	run_ranks "$LOOPBACK" --schedule=grid
	expect_said 1 "$(on_node 1)"
}

case_ranks_confined()
{
	local rank

	run_ranks "$LOOPBACK" --numa=1
	for rank in 0 1; do
		expect_said $rank '"numa": null'
	done
	run_ranks "$LOOPBACK" --numa=off
	expect_said 0 '"numa": null'
}

case_ranks_beyond_memory()
{
	local rank

	# Unless it is told how many, a rank takes one thread in so little memory.
	run_ranks "$LOOPBACK" -S 10M -T /mnt --threads=2
	for rank in 0 1; do
		expect_said $rank "$(on_node $rank)"
		expect_match '"external": \{' said.$rank
	done
}

# Rank 0 waits for rank 1, and can be looked at: the mapping of its buffers prefers
# the card's node.
case_network()
{
	local rank key=(--key-file=key --job=card)

	blinksh keygen key
	start_rank 0 "$CARD" "${key[@]}"
	wait_until prefers "${pids[0]}" ||
		fail "no buffer of node 1: $(cat "/proc/${pids[0]}/numa_maps" err.0)"
	grep 'prefer:1' "/proc/${pids[0]}/numa_maps" >&2
	start_rank 1 "$CARD" "${key[@]}"
	end_ranks
	for rank in 0 1; do
		expect_match '"network_node": 1, ' said.$rank
	done
}

# prefers PID: a mapping takes its pages from node 1; nothing has been sent yet
prefers()
{
	grep -E '^[0-9a-f]+ prefer:1' "/proc/$1/numa_maps" >maps &&
		! grep -q ' N0=' maps
}

# What is written to the disk, and read from it again, lies on its node: 1.  The
# sort waits for its input, and has touched nothing of that yet.
case_staging()
{
	local pid

	mkfifo pipe
	blinksort pipe -o "$OUT" -S 24M -T /mnt 2>"$STDERR" &
	pid=$!
	wait_until prefers_disk "$pid" ||
		fail "no staging of node 1: $(cat "/proc/$pid/numa_maps" "$STDERR")"
	cat "$SCRATCH/in" >pipe
	wait "$pid" || fail "status $?: $(cat "$STDERR")"
	expect_same "$OUT" "$SCRATCH/want"
}

prefers_disk()
{
	grep -q -E '^[0-9a-f]+ prefer:1' "/proc/$1/numa_maps"
}

# --- memory from node to node -------------------------------------------------

case_probe()
{
	local from to

	for from in 0 1; do
		for to in 0 1; do
			blinkprobe memory --area=4M --bytes=4M --rounds=1 \
				--threads=2 --cpu-node=$from \
				--memory-node=$to >"$STDOUT"
			expect_match "\"cpu_node\": $from, \"memory_node\": $to, \"numa\": \[\{\"node\": $to, \"memory_bytes\": 8388608\}\], " \
				"$STDOUT"
		done
	done
	blinkprobe memory --area=4M --bytes=4M --rounds=1 --cpu-node=2 \
		2>"$STDERR" && fail "of node 2"
	expect_match 'node 2 has no CPU' "$STDERR"
}

# The figures are those of an emulator.
case_characterise()
{
	blinktrial characterise --quick --quiet --out=machine >&2
	python3 - machine/characterisation.jsonl <<-'END' >&2
		import json, sys

		pairs = {}
		for line in map(json.loads, open(sys.argv[1])):
		    setting = line["setting"]
		    if "cpu_node" not in setting:
		        continue
		    assert line["why"] is None, line
		    assert setting["placed_bytes"] == \
		        setting["area_bytes"] * setting["threads"], line
		    pair = setting["cpu_node"], setting["memory_node"]
		    assert setting["distance"] == (10 if pair[0] == pair[1]
		                                   else 21), line
		    pairs.setdefault(pair, {})[line["what"]] = (
		        sorted(line["samples"])[0], setting["threads"])
		print("  CPUs of  memory of  read, copy, chase: least, threads")
		for pair, found in pairs.items():
		    print(" ", *pair, found)
		    assert found.keys() == {"read", "copy", "chase"}
		    assert [found[what][1] for what in ("read", "copy", "chase")] \
		        == [2, 2, 1], found
		assert sorted(pairs) == [(0, 0), (0, 1), (1, 0), (1, 1)], pairs
		threads = {line["setting"]["threads"]
		           for line in map(json.loads, open(sys.argv[1]))
		           if line["part"] == "memory"
		           and "cpu_node" not in line["setting"]}
		assert threads == {1, 2, 4}, threads
	END
}

# Huge pages are made in their order, from both nodes in turn.  Where the guest
# has none left, what is written lies where its writer runs: so the first two are
# looked at.
case_tmpfs()
{
	mkdir tmpfs
	mount -t tmpfs tmpfs tmpfs
	OUT=tmpfs/out
	expect_numa '\[.*\]'
	page_nodes "$OUT" 19 >pages
	tr '\n' ',' <pages >&2
	rm "$OUT"
	expect_numa null --numa=1
	page_nodes "$OUT" 1 >confined
	umount tmpfs
	expect_match '^0 (9[0-9]|100) ' confined
	sed -n 1p pages >first
	sed -n 2p pages >second
	expect_match '^(9[0-9]|100) ' first
	expect_match '^[0-9] (9[0-9]|100) ' second
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
check numa_beyond_memory_confined on_ext4 case_beyond_memory_confined
check numa_ranks case_ranks
check numa_ranks_confined case_ranks_confined
check numa_ranks_beyond_memory case_ranks_beyond_memory
check numa_network case_network
check numa_staging on_ext4 case_staging
check numa_probe case_probe
check numa_characterise case_characterise
check numa_shapes on_ext4 case_shapes
check numa_tmpfs case_tmpfs
check numa_hidden on_ext4 case_hidden
end_machine
