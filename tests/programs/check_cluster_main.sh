#!/bin/bash
# check_cluster_main.sh - the cluster sort on this machine, from end to end
#
# Daemons on loopback start the ranks.  What comes out must be, byte for byte,
# what one process makes of the same input in rank order; or, where that shares
# too much code, what the reference makes of it.

# shellcheck disable=SC2317 # cases are called by check
# shellcheck source=tests/programs/cluster_lib.sh
. "$(dirname "$0")/cluster_lib.sh"

COUNT=30000 SMALL=4000
RANKS=(1 2 3 4 7 8 16 32)
if [ -n "$QUICK$SANITIZED" ]; then
	COUNT=5000 SMALL=1000
	RANKS=(1 2 3 4 7 8 16)
fi
SCHEDULES=(rounds all-at-once)
# Where one is gone, others' silence for so long is an end.  A disk may keep a
# rank silent for seconds, which would be taken for the one that is gone.
readonly GONE_DEADLINE_S=10

mapfile -t SHAPES < <(make_shape --list)
[ ${#SHAPES[@]} -gt 0 ]
cluster_up "${RANKS[-1]}"

# --- all numbers of ranks -----------------------------------------------------

# case_ranks RANKS: the benchmark's input of both kinds
case_ranks()
{
	local kind outs

	for kind in "-a" "" "-s"; do
		# shellcheck disable=SC2086 # none, or one word
		"$BIN/blinkgen" $kind $COUNT whole
		expect_sorted whole -o want
		cut_input whole 100 "$1" even
		cluster_run "$1"
		expect_done "$1 ranks, blinkgen $kind"
		expect_whole "$1" want
		mapfile -t outs < <(outputs_of "$1")
		"$BIN/blinkval" "${outs[@]}" 2>printed || cat printed
		expect_match '^SUCCESS - all records are in order$' printed
		rm "${outs[@]}"
	done
}

for ranks in "${RANKS[@]}"; do
	check "ranks_$ranks" case_ranks "$ranks"
done

# The inputs are as they were, and so is the mode of the outputs.
case_files()
{
	local rank before

	"$BIN/blinkgen" -a "$SMALL" whole
	expect_sorted whole -o want
	cut_input whole 100 4 even
	chmod 400 in.*
	before=$(stat -c '%n %i %s %a %y %z' in.*)
	cluster_run 4
	expect_done
	expect_whole 4 want
	[ "$before" = "$(stat -c '%n %i %s %a %y %z' in.*)" ] ||
		fail "an input has changed"
	for rank in 0 1 2 3; do
		[ "$(stat -c %a "out.$rank")" = "$(stat -c %a want)" ] ||
			fail "mode $(stat -c %a "out.$rank")"
	done
}

# Those that are there are replaced, not written to.
case_replaced()
{
	"$BIN/blinkgen" -a "$SMALL" whole
	expect_sorted whole -o want
	cut_input whole 100 3 even
	echo old >out.1
	ln out.1 other
	cluster_run 3
	expect_done
	expect_whole 3 want
	[ "$(cat other)" = old ] || fail "the old file was written to"
}

check files case_files
check replaced case_replaced

# --- few records, and all in one place ----------------------------------------

case_few()
{
	local ranks count how

	for ranks in 2 5 16; do
		for count in 0 1 2 $((ranks - 1)) "$ranks" $((ranks + 1)); do
			"$BIN/blinkgen" -a "$count" whole
			sort_reference whole -o want
			for how in random first last; do
				cut_input whole 100 "$ranks" "$how"
				expect_cluster "$ranks" want
			done
		done
	done
}

# All input is with one rank.
case_one_has_all()
{
	local how

	"$BIN/blinkgen" "$SMALL" whole
	sort_reference whole -o want
	for how in first last random; do
		cut_input whole 100 7 "$how"
		expect_cluster 7 want
	done
}

# set_first_byte VALUE: of all records of the file whole
set_first_byte()
{
	python3 - "$1" <<-'END'
		import sys
		data = bytearray(open("whole", "rb").read())
		data[::100] = bytes([int(sys.argv[1])]) * (len(data) // 100)
		open("whole", "wb").write(data)
	END
}

# All output is one rank's: static splitters take the first byte as it comes.
case_one_gets_all()
{
	local byte splitters

	for byte in 0 100 255; do
		"$BIN/blinkgen" "$SMALL" whole
		set_first_byte "$byte"
		sort_reference whole -o want
		cut_input whole 100 4 random
		for splitters in "${SPLITTERS[@]}"; do
			expect_cluster 4 want --splitters="$splitters"
		done
		# The last one left a word on how it was done.
		cluster_run 4 --splitters=static
		[ "$(find . -name 'out.*' -size 0 | wc -l)" = 3 ] ||
			fail "not all at one rank: $(stat -c %s out.*)"
		rm out.*
	done
}

check few case_few
check one_has_all case_one_has_all
check one_gets_all case_one_gets_all

# --- shapes of keys and records -----------------------------------------------

# walk NUMBER: some ways to do it, in $options; all are met in turn
walk()
{
	options=(--splitters="${SPLITTERS[$1 % 3]}"
		--schedule="${SCHEDULES[$1 / 3 % 2]}"
		--threads=$(($1 % 4 + 1)))
}

# case_shape SHAPE NUMBER: many equal keys show whether ranks keep their order
case_shape()
{
	local ranks options how number=$2

	make_shape "$1" "$SMALL" "$SEED" >whole
	sort_reference whole -o want
	for ranks in 2 5 16; do
		number=$((number + 1))
		walk "$number"
		how=$([ $((number % 2)) = 0 ] && echo even || echo random)
		cut_input whole 100 "$ranks" "$how"
		expect_cluster "$ranks" want "${options[@]}"
	done
}

# case_records SIZE KEY COUNT
case_records()
{
	local shape options number=$1 described=(--record-size="$1" --key="$2")

	for shape in uniform zipf all-equal reversed; do
		number=$((number + 1))
		walk "$number"
		make_shape "$shape" "$3" "$SEED" "${described[@]}" >whole
		sort_reference whole -o want "${described[@]}"
		cut_input whole "$1" 5 random
		expect_cluster 5 want "${described[@]}" "${options[@]}"
		cut_input whole "$1" 3 even
		expect_cluster 3 want "${described[@]}" "${options[@]}"
	done
}

# So much that each thread of a rank has several pieces of the input, which come
# to their buckets in any order unless it is seen to.
case_equal_keys()
{
	local shape

	for shape in two-values few-distinct; do
		make_shape "$shape" 200000 "$SEED" >whole
		sort_reference whole -o want
		cut_input whole 100 2 even
		expect_cluster 2 want --threads=4
		expect_cluster 2 want --threads=2 --io=mmap
	done
}

for i in "${!SHAPES[@]}"; do
	check "shape_${SHAPES[i]}" case_shape "${SHAPES[i]}" "$i"
done
check equal_keys case_equal_keys
check records_1 case_records 1 0:1 $SMALL
check records_8 case_records 8 0:8 $SMALL
check records_37 case_records 37 5:3 $SMALL
check records_1000 case_records 1000 900:100 $((SMALL / 4))
check records_100_whole_key case_records 100 0:100 $SMALL
check records_5000 case_records 5000 4990:7 200
check records_200000 case_records 200000 0:10 40

# --- how it is done -----------------------------------------------------------

# case_way OPTION...: for some numbers of ranks
case_way()
{
	local ranks

	"$BIN/blinkgen" -a "$COUNT" whole
	expect_sorted whole -o want
	for ranks in 2 5 8; do
		cut_input whole 100 "$ranks" even
		expect_cluster "$ranks" want "$@"
	done
}

for schedule in "${SCHEDULES[@]}"; do
	check "schedule_$schedule" case_way --schedule="$schedule"
	check "small_$schedule" case_way --schedule="$schedule" --payload=1472
	check "plain_$schedule" case_way --schedule="$schedule" --plain
	check "small_plain_$schedule" case_way --schedule="$schedule" \
		--payload=1472 --plain
	check "threads_$schedule" case_way --schedule="$schedule" \
		--exchange-threads=3
done
check payload_odd case_way --payload=777
for when in no yes auto; do
	check "by_reference_$when" case_way --by-reference="$when"
done
check transport_udp case_way --transport=udp --by-reference=yes

# Records are read from the inputs of others, whatever their sizes: of ranks
# that have none, of one that has all, with equal keys, of any record size.
case_shared()
{
	local shape size

	for shape in few-distinct zipf all-equal; do
		make_shape "$shape" "$COUNT" "$SEED" >whole
		sort_reference whole -o want
		for how in random first; do
			cut_input whole 100 4 "$how"
			expect_cluster 4 want --by-reference=yes
		done
	done
	for size in 1 37 1000; do
		head -c $((size * 3001)) /dev/urandom >whole
		sort_reference whole -o want --record-size="$size" \
			--key="0:$((size < 10 ? size : 10))"
		cut_input whole "$size" 3 random
		expect_cluster 3 want --by-reference=yes --record-size="$size"
	done
}

# Inputs on a tmpfs that are longer than a huge page: ending within one, near the
# end of one, and with one.
case_shared_pages()
{
	local here=$PWD records

	cd "$(mktemp -d -p /dev/shm check_cluster.XXXXXX)"
	at_end 'rm -rf "$PWD"'
	for records in 94000 120000 83888; do
		"$BIN/blinkgen" -a "$records" whole
		expect_sorted whole -o want
		cut_input whole 100 4 even
		expect_cluster 4 want --by-reference=yes
		expect_cluster 4 want --by-reference=yes --threads=2
		cut_input whole 100 3 random
		expect_cluster 3 want --by-reference=yes
		rm in.*
	done
	rm -rf "$PWD"
	cd "$here"
}

# Where nothing is to be shared: refused, or done without.
case_not_shared()
{
	"$BIN/blinkgen" -a "$SMALL" whole
	expect_sorted whole -o want
	cut_input whole 100 3 even
	expect_cluster 3 want --by-reference=auto --io=buffered
	rm -f out.*
	cluster_run 3 --by-reference=yes --io=buffered
	[ "$status" = 4 ] || [ "$status" = 2 ] || fail "$status: $(cat said)"
	grep -q 'by-reference=yes: rank 0' report said ||
		fail "$(what_they_said)"
	expect_none
}

check shared case_shared
check not_shared case_not_shared
if [ "$(stat -f -c %T /dev/shm 2>/dev/null)" = tmpfs ]; then
	check shared_pages case_shared_pages
else
	skip shared_pages "/dev/shm is no tmpfs"
fi
for threads in 1 2 3; do
	check "threads_$threads" case_way --threads=$threads
done
for kernel in "${KERNELS[@]}"; do
	check "kernel_$kernel" case_way --kernel="$kernel"
done
check sync case_way --sync

# one_of_several NUMBER
one_of_several()
{
	"$BIN/blinkgen" -a -b$((1000000 * ($1 + 1))) "$SMALL" whole
	expect_sorted whole -o want 2>/dev/null
	cut_input whole 100 4 even
	expect_cluster 4 want
}

# Several of them at the same time, on the same nodes.
case_side_by_side()
{
	at_once 3 one_of_several
}

# The same port for both: one has to find another.
case_port()
{
	"$BIN/blinkgen" -a "$SMALL" whole
	expect_sorted whole -o want
	cut_input whole 100 4 even
	expect_cluster 4 want --port=$((BLINK_PORT + 4321))
}

# by_hand COUNT OPTION...: without daemons; @ in options stands for the rank
by_hand()
{
	local count=$1 rank ranks pids=() statuses=()
	shift

	"$BIN/blinkgen" -a "$SMALL" whole
	expect_sorted whole -o want
	cut_input whole 100 "$count" even
	mapfile -t ranks < <(seq 0 $((count - 1)))
	for rank in "${ranks[@]}"; do
		start_rank "$rank" env "${@//@/$rank}" \
			--job="check.$$" --deadline="$DEADLINE_S" \
			"in.$rank" -o "out.$rank"
	done
	wait_ranks "${ranks[@]}"
	[[ ${statuses[*]} =~ ^[0\ ]*$ ]] || fail "${statuses[*]}: $(cat err.*)"
	expect_whole "$count" want
}

# Hosts and ranks as options.
case_by_options()
{
	by_hand 3 "${BLINKSORT[@]}" --cluster --nodes='127.0.0.[2-4]' --rank=@
}

# Commands go by the daemons' addresses, records by others, which are of another
# network, and are none here.
case_two_networks()
{
	"$BIN/blinkgen" -a "$SMALL" whole
	expect_sorted whole -o want
	cut_input whole 100 3 even
	cluster_run 3 --nodes='127.9.9.[1-3]' --rank=%r
	expect_done "by other addresses"
	expect_whole 3 want
	rm out.*
	cluster_run 3 --nodes='192.0.2.[1-3]' --rank=%r
	[ "$status" != 0 ] || fail "addresses of no network here"
	expect_none
}

# As MPI's launchers tell; all ranks have one address.
case_by_environment()
{
	by_hand 3 PMI_RANK=@ PMI_SIZE=3 MPI_LOCALNRANKS=3 \
		"${BLINKSORT[@]}" --cluster
	rm out.*
	by_hand 4 OMPI_COMM_WORLD_RANK=@ OMPI_COMM_WORLD_SIZE=4 \
		OMPI_COMM_WORLD_LOCAL_SIZE=4 "${BLINKSORT[@]}" --cluster
}

# A rank that would use a port beyond the last one says so at once.
case_port_beyond()
{
	"$BIN/blinkgen" -a "$SMALL" in
	expect_status 2 env PMI_RANK=0 PMI_SIZE=2 MPI_LOCALNRANKS=2 \
		"${BLINKSORT[@]}" --cluster --job="check.$$" --port=64767 \
		in -o out 2>err
	echo "blinksort: --port=64767: ranks need ports up to 65536, and 65535 is\
 the last one" | cmp - err || fail "$(cat err)"
	[ ! -e out ] || fail "there is an output"
}

# named RANK OPTION...: a rank of two, whose command line is that of the other
named()
{
	local rank=$1
	shift

	start_rank "$rank" env PMI_RANK="$rank" PMI_SIZE=2 MPI_LOCALNRANKS=2 \
		"${BLINKSORT[@]}" --cluster --job="check.$$" \
		--deadline="$DEADLINE_S" "$@"
}

# run_named OPTION...: both ranks
run_named()
{
	local pids=() statuses=()

	named 0 "$@"
	named 1 "$@"
	wait_ranks 0 1
	[ "${statuses[*]}" = "0 0" ] || fail "${statuses[*]}: $(cat err.*)"
}

# The ranks put their numbers into the names, also of the folder that scratch
# files go to: one that is not there ends the sort.
case_rank_in_names()
{
	local host

	host=$(uname -n)
	"$BIN/blinkgen" -a 300000 whole
	expect_sorted whole -o want
	cut_input whole 100 2 even
	mkdir tmp.0 tmp.1
	run_named in.%r -o "a.%r.%n.%%.%h" --trace=trace.%r
	cat "a.0.2.%.$host" "a.1.2.%.$host" | expect_same - want
	[ -s trace.0 ] || fail "there is no timeline: $(ls)"
	run_named in.%r --gather=whole.%n -T tmp.%r -S 10M
	expect_same whole.2 want
	mkdir out.0 out.1
	run_named in.%r -o out.%r/sorted -S 10M
	cat out.?/sorted | expect_same - want
}

check rank_in_names case_rank_in_names
check side_by_side case_side_by_side
check port case_port
check port_beyond case_port_beyond
check by_options case_by_options
check two_networks case_two_networks
check by_environment case_by_environment

# Rank 0 knows of all; what it tells agrees with the files.
# statuses_of OPTION...: STATUS datagrams of a job of 8 ranks
statuses_of()
{
	cluster_run 8 --json "$@"
	expect_done "$*"
	rm -f out.*
	python3 -c 'import json
root = json.loads(json.load(open("report"))["nodes"][0]["stdout"])
print(sum(rank["status_datagrams"] for rank in root["ranks"]))'
}

# Where ranks stand goes by memory that they share, unless UDP is asked for by
# name.  A machine that is busy makes ranks ask each other more often: one of a
# few tries must be undisturbed.
case_statuses_by_memory()
{
	local shared datagrams plain try

	"$BIN/blinkgen" -a "$SMALL" whole
	cut_input whole 100 8 even
	for try in 1 2 3 4 5; do
		shared=$(statuses_of)
		datagrams=$(statuses_of --transport=udp)
		plain=$(statuses_of --plain)
		if [ "$((2 * shared))" -lt "$datagrams" ] &&
			[ "$((2 * shared))" -lt "$plain" ]; then
			return 0
		fi
		echo "try $try: $shared, $datagrams by UDP, $plain plain"
	done
	fail "no try with less than half of the datagrams"
}

case_json()
{
	local whole

	whole=$("$BIN/blinkgen" -a -c "$SMALL" whole 2>&1)
	cut_input whole 100 4 random
	cluster_run 4 --json --checksum
	expect_done
	python3 - "${whole##* }" <<-'END'
		import json, os, sys
		nodes = json.load(open("report"))["nodes"]
		said = [json.loads(node["stdout"]) for node in nodes]
		for rank in said:
		    assert 0 < rank["minor_faults"] < 10 ** 9, rank
		    assert rank["major_faults"] >= 0, rank
		    # A rank may spin until it is taken off the CPU, and never sleep.
		    assert rank["voluntary_switches"] >= 0, rank
		    assert rank["involuntary_switches"] >= 0, rank
		for rank, one in enumerate(said):
		    assert (one["rank"], one["nodes"]) == (rank, 4)
		    # Of itself, on one machine.
		    assert one["schedule"] == "all-at-once", one
		    assert (one["transport"], one["by_reference"]) == ("udp", False)
		    # Nor would more threads help.
		    assert one["exchange_threads"] == 1, one
		    size = os.path.getsize("out.%d" % rank)
		    assert one["bytes"] == size == 100 * one["records"]
		ranks = said[0]["ranks"]
		assert [one["rank"] for one in ranks] == [0, 1, 2, 3]
		for rank, one in enumerate(ranks):
		    assert one["records_in"] * 100 == os.path.getsize("in.%d" % rank)
		    assert one["records_out"] == said[rank]["records"]
		    assert one["checksum"] == said[rank]["checksum"]
		    for key, value in one.items():
		        # Ranks have not begun in their order; a sort in memory has
		        # no passes.
		        assert key in ("checksum", "begin_ns", "passes",
		                       "roles") or value >= 0, key
		    assert one["roles"] == ["read", "sort", "keep"], one
		    assert one["passes"] is None, one
		sent, received = (sum(one[key] for one in ranks)
		                  for key in ("sent_bytes", "received_bytes"))
		# Nothing arrives that was not sent; resent bytes may count twice.
		assert sent >= received > 0, (sent, received)
		assert said[0]["whole_records"] == sum(
		    one["records_out"] for one in ranks)
		assert said[0]["whole_checksum"] == sys.argv[1], sys.argv[1]
	END
}

# On one machine there is no link that --compress=auto would look at.
case_not_compressed()
{
	"$BIN/blinkgen" -a 400000 whole
	cut_input whole 100 2 even
	cluster_run 2 --json --compress=auto
	expect_done
	expect_match '"compress\\": \\"none\\", \\"compress_choice\\": null' report
}

check json case_json
check not_compressed case_not_compressed
check statuses_by_memory case_statuses_by_memory

# --- files of all -------------------------------------------------------------

files=(out.all)

# gather_run COUNT OPTION...: into $files
gather_run()
{
	local count=$1
	shift

	on_nodes "$count" "${BLINKSORT[@]}" --cluster "$PWD/in.%r" \
		"${files[@]/#/--gather=$PWD/}" --deadline="$DEADLINE_S" "$@"
}

# expect_gathered COUNT FILE OPTION...: run, and FILE is what comes out
expect_gathered()
{
	local count=$1 want=$2
	shift 2

	gather_run "$count" "$@"
	expect_done "$count ranks, $*"
	printf '%s\n' "${files[@]}" | expect_outputs
	cat "${files[@]}" | expect_same - "$want" || fail "$count ranks, $*"
	rm "${files[@]}"
}

# case_gather RANKS: of inputs of all sizes
case_gather()
{
	local kind how

	for kind in "-a" "" "-s"; do
		# shellcheck disable=SC2086 # none, or one word
		"$BIN/blinkgen" $kind "$SMALL" whole
		expect_sorted whole -o want
		for how in even random first last; do
			cut_input whole 100 "$1" "$how"
			expect_gathered "$1" want
		done
	done
}

# Ranks that get nothing, in the middle and at the ends.
case_gather_few()
{
	local ranks count

	for ranks in 2 5 16; do
		for count in 0 1 2 $((ranks - 1)) $((ranks + 1)); do
			"$BIN/blinkgen" -a "$count" whole
			sort_reference whole -o want
			cut_input whole 100 "$ranks" random
			expect_gathered "$ranks" want
		done
	done
	"$BIN/blinkgen" "$SMALL" whole
	for count in 0 100 255; do
		set_first_byte "$count"
		sort_reference whole -o want
		cut_input whole 100 4 random
		expect_gathered 4 want --splitters=static
	done
}

# Records that pages end within, and keys of which some are frequent.
case_gather_shapes()
{
	local shape options number=0 described=(--record-size=37 --key=5:3)

	for shape in zipf all-equal reversed; do
		number=$((number + 1))
		walk "$number"
		make_shape "$shape" "$SMALL" "$SEED" "${described[@]}" >whole
		sort_reference whole -o want "${described[@]}"
		cut_input whole 37 5 random
		expect_gathered 5 want "${described[@]}" "${options[@]}"
	done
}

# Several files, one behind the other, have what one file has.
case_gather_several()
{
	local files count ranks

	for ranks in 3 5 16; do
		files=(out.a out.b out.c)
		"$BIN/blinkgen" -a "$SMALL" whole
		expect_sorted whole -o want
		cut_input whole 100 "$ranks" random
		gather_run "$ranks"
		expect_done
		# Keys are uniform, and so each file has its part.
		for file in "${files[@]}"; do
			[ "$(stat -c %s "$file")" -gt $((SMALL * 100 / 8)) ] ||
				fail "$ranks ranks: $(ls -l)"
		done
		expect_gathered "$ranks" want --sync
		for count in 0 1 $((ranks + 1)); do
			"$BIN/blinkgen" -a "$count" whole
			sort_reference whole -o want
			cut_input whole 100 "$ranks" random
			expect_gathered "$ranks" want
		done
	done
	files=(out.1 out.2)
	make_shape zipf "$SMALL" "$SEED" >whole
	expect_sorted whole -o want --unique
	cut_input whole 100 5 random
	expect_gathered 5 want --unique
	expect_gathered 5 want --unique --trace="$PWD/trace"
}

case_gather_ways()
{
	"$BIN/blinkgen" -a "$COUNT" whole
	expect_sorted whole -o want
	cut_input whole 100 4 random
	expect_gathered 4 want --sync
	expect_gathered 4 want --sync --io=direct
	expect_gathered 4 want --io=buffered --threads=3
	gather_run 4 --trace="$PWD/trace"
	expect_done
	expect_same out.all want
	python3 -m json.tool trace >/dev/null
}

# An old one is replaced through a link, and its mode stays.
case_gather_replaced()
{
	"$BIN/blinkgen" -a "$SMALL" whole
	expect_sorted whole -o want
	cut_input whole 100 3 even
	mkdir to
	echo old >to/file
	chmod 640 to/file
	ln to/file other
	ln -s to/file out.all
	gather_run 3
	expect_done
	expect_same to/file want
	[ -L out.all ] || fail "the link is gone"
	[ "$(stat -c %a to/file)" = 640 ] || fail "mode $(stat -c %a to/file)"
	[ "$(cat other)" = old ] || fail "the old file was written to"
	[ "$(ls -A to)" = file ] || fail "left: $(ls -A to)"
}

# One rank's input is where all is to go.
case_gather_into_input()
{
	"$BIN/blinkgen" -a "$SMALL" whole
	expect_sorted whole -o want
	cut_input whole 100 3 even
	on_nodes 3 "${BLINKSORT[@]}" --cluster "$PWD/in.%r" \
		--gather="$PWD/in.1" --deadline="$DEADLINE_S"
	expect_done
	expect_same in.1 want
	expect_none
}

for ranks in 1 3 16; do
	check "gather_$ranks" case_gather "$ranks"
done
check gather_few case_gather_few
check gather_shapes case_gather_shapes
check gather_several case_gather_several
check gather_ways case_gather_ways
check gather_replaced case_gather_replaced
check gather_into_input case_gather_into_input

# --- what goes wrong ----------------------------------------------------------

# expect_all_fail STATUS RANK WHY: rank RANK was at fault and says so; all others
# end with status 4, tell the same and name it
expect_all_fail()
{
	python3 - "$@" <<-'END' || fail "$(what_they_said)"
		import json, re, sys
		status, culprit, why = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
		for node in json.load(open("report"))["nodes"]:
		    rank, said = node["rank"], node["stderr"]
		    assert node["state"] == "exited", node["state"]
		    wanted = status if rank == culprit else 4
		    assert node["status"] == wanted, (rank, node["status"])
		    assert said.count("\n") == 1 and said.startswith("blinksort: ")
		    assert re.search(why, said), (rank, said)
		    assert rank == culprit or "rank %d" % culprit in said, said
	END
}

# start_wrong RANKS: inputs for as many
start_wrong()
{
	"$BIN/blinkgen" -a "$SMALL" whole
	cut_input whole 100 "$1" even
}

case_input_missing()
{
	local rank

	start_wrong 4
	for rank in 0 1 3; do
		mv "in.$rank" away
		cluster_run 4
		expect_all_fail 3 "$rank" 'No such file'
		expect_none
		mv away "in.$rank"
	done
}

case_input_odd()
{
	local rank

	start_wrong 4
	for rank in 0 2; do
		echo >>"in.$rank"
		cluster_run 4
		expect_all_fail 3 "$rank" "in\.$rank"
		expect_none
		truncate -s -1 "in.$rank"
	done
}

# Ranks that do not agree on what a record is: one rank finds out, all end.
case_records_differ()
{
	local option

	start_wrong 4
	# shellcheck disable=SC2016 # the shell there expands it
	for option in '--record-size=$((100 + 100 * (%r == 1)))' \
		'--key=0:$((10 - (%r == 2)))' '--key=0:u$((16 << (%r == 3)))'; do
		on_nodes 4 /bin/sh -c "cd '$PWD' && exec ${BLINKSORT[*]} \
			--cluster in.%r -o out.%r \
			--deadline=$DEADLINE_S $option"
		python3 - <<-'END' || fail "$(what_they_said)"
			import json
			for node in json.load(open("report"))["nodes"]:
			    assert node["state"] == "exited"
			    # This rank found out, or another rank told it.
			    assert node["status"] in (2, 4), node["status"]
			    assert " a record size of " in node["stderr"] or \
			        " another --key than " in node["stderr"]
		END
		expect_none
	done
}

# All ranks would give one name: the last one's part would be all that is left.
# And the records of an input that two ranks read would all be there twice.  The
# folder may have two names.
case_same_file()
{
	local words verb

	start_wrong 4
	echo old >out.0
	ln -s . again
	# shellcheck disable=SC2016 # the shell there expands it
	for words in 'in.%r -o out.0' \
		'in.%r -o $([ %r = 2 ] && echo again/out.3 || echo out.%r)' \
		'in.1 -o out.%r' \
		'$([ %r = 2 ] && echo again/in.3 || echo in.%r) -o out.%r'; do
		on_nodes 4 /bin/sh -c "cd '$PWD' && exec ${BLINKSORT[*]} \
			--cluster $words --deadline=$DEADLINE_S"
		verb=reads
		[ "${words%% *}" != in.%r ] || verb=writes
		python3 - "$verb" <<-'END' || fail "$(what_they_said)"
			import json, sys
			nodes = json.load(open("report"))["nodes"]
			assert all(node["status"] in (2, 4) for node in nodes)
			assert f" {sys.argv[1]} the same " in str(nodes)
		END
		[ "$(cat out.0)" = old ]
		[ ! -e out.3 ]
	done
	rm again
}

# The old output stays when there is no new one.
case_old_stays()
{
	start_wrong 3
	echo old >out.0
	rm in.2
	cluster_run 3
	expect_all_fail 3 2 'No such file'
	[ "$(cat out.0)" = old ]
	echo out.0 | expect_outputs
}

# case_no_folder RANK: its output cannot be created
case_no_folder()
{
	local i

	start_wrong 4
	for i in 0 1 2 3; do
		[ "$i" = "$1" ] || mkdir "to.$i"
	done
	on_nodes 4 "${BLINKSORT[@]}" --cluster "$PWD/in.%r" \
		-o "$PWD/to.%r/out" --deadline="$DEADLINE_S"
	expect_all_fail 3 "$1" "to\.$1"
	[ "$(find . -path './to.*/*')" = "" ]
}

# A folder that may not be written to; root may.
case_read_only()
{
	start_wrong 4
	mkdir to.0 to.1 to.2 to.3
	chmod 500 to.2
	on_nodes 4 "${BLINKSORT[@]}" --cluster "$PWD/in.%r" \
		-o "$PWD/to.%r/out" --deadline="$DEADLINE_S"
	chmod 700 to.2
	expect_all_fail 3 2 'Permission denied'
	[ "$(find . -path './to.*/*')" = "" ]
}

# It is full, when all the others have room: found out late.
case_full()
{
	local i

	start_wrong 4
	mkdir to.0 to.1 to.2 to.3
	mount -t tmpfs -o size=16k tmpfs to.1
	# shellcheck disable=SC2064 # now
	at_end "umount '$PWD/to.1'"
	on_nodes 4 "${BLINKSORT[@]}" --cluster "$PWD/in.%r" \
		-o "$PWD/to.%r/out" --deadline="$DEADLINE_S"
	expect_all_fail 3 1 "to\.1|No space"
	[ "$(find . -path './to.*/*')" = "" ]
}

# One that cannot give the name, when all have written and the others may have
# given theirs: they take them away again.
case_no_name()
{
	start_wrong 3
	on_nodes 3 /bin/sh -c "cd '$PWD' && if [ %r = 1 ]; then
			export LD_PRELOAD='$BUILD/fault.so' FAULT_NTH=0 \
				FAULT_CALL=linkat FAULT_ERRNO=ENOSPC
		fi
		exec '$DYN/blinksort' --cluster in.%r -o out.%r \
			--deadline=$DEADLINE_S"
	expect_all_fail 3 1 'No space left'
	expect_none
}

# A folder in the place of an output cannot be replaced.
case_output_is_folder()
{
	start_wrong 3
	mkdir out.1
	cluster_run 3
	expect_all_fail 3 1 'out\.1'
	rmdir out.1
	expect_none
}

# One that has another key does not belong to them.
case_other_key()
{
	local pids=() statuses=() rank key

	start_wrong 3
	"$BIN/blinksh" keygen key
	"$BIN/blinksh" keygen other
	for rank in 0 1 2; do
		key=$([ "$rank" = 2 ] && echo other || echo key)
		start_rank "$rank" env BLINK_KEY="$key" "${BLINKSORT[@]}" \
			--cluster --rank="$rank" --job="check.$$" \
			--nodes=127.0.0.2,127.0.0.3,127.0.0.4 \
			--port=$((BLINK_PORT + 4400)) --deadline=1 \
			"in.$rank" -o "out.$rank"
	done
	wait_ranks 0 1 2
	[ "${statuses[*]}" = "4 4 4" ] || fail "${statuses[*]}: $(cat err.*)"
	expect_none
}

# keyless JOB RANK: one of two, without a key
keyless()
{
	start_rank "$2" env -u BLINK_KEY "${BLINKSORT[@]}" --rank="$2" \
		--nodes=127.0.0.2,127.0.0.3 --job="keyless.$$.$1" \
		--deadline="$DEADLINE_S" "in.$2" -o "out.$2"
}

# Jobs of one name, one after the other.
case_keyless()
{
	local pids=() statuses=() run

	start_wrong 2
	expect_sorted whole -o want
	for run in 1 2 3; do
		keyless one $((run % 2))
		keyless one $(((run + 1) % 2))
		wait_ranks 0 1
		[ "${statuses[*]}" = "0 0" ] || fail "${statuses[*]}: $(cat err.*)"
		expect_whole 2 want
		rm out.*
	done
}

# Two jobs of one name at once: none of them sorts what is the other's.
case_keyless_twice()
{
	local pids=() statuses=() rank DEADLINE_S=3

	start_wrong 2
	keyless two 0
	wait_until job_name 0 >name
	expect_status 4 env -u BLINK_KEY "${BLINKSORT[@]}" --rank=0 \
		--job="keyless.$$.two" --nodes=127.0.0.2,127.0.0.3 in.0 -o out.2 \
		2>err.2
	keyless two 1
	wait_ranks 0 1
	[ "${statuses[*]}" = "4 4" ] || fail "${statuses[*]}: $(cat err.*)"
	for rank in 0 1 2; do
		expect_one_line "err.$rank"
		expect_match "^blinksort: --job: two jobs of user $UID have" \
			"err.$rank"
	done
	expect_none
}

# keyless_alone RANK MISSING: the other one never comes, and is named
keyless_alone()
{
	local pids=() statuses=() DEADLINE_S=1

	keyless "alone$1" "$1"
	wait_ranks "$1"
	[ "${statuses[$1]}" = 4 ] || fail "${statuses[$1]}: $(cat "err.$1")"
	expect_one_line "err.$1"
	expect_match "^blinksort: rank $2 \\(127.*has not come within 1.0 s" \
		"err.$1"
}

case_keyless_alone()
{
	start_wrong 2
	keyless_alone 0 1
	keyless_alone 1 0
	expect_none
}

# Without the file of all there is nothing, and an old one stays.
case_gather_fails()
{
	start_wrong 4
	mv in.2 away
	gather_run 4
	expect_all_fail 3 2 'No such file'
	expect_none
	mv away in.2
	echo old >out.all
	# When the others may have made it already.
	on_nodes 4 /bin/sh -c "cd '$PWD' && if [ %r = 1 ]; then ulimit -f 1; fi
		exec ${BLINKSORT[*]} --cluster in.%r --gather=out.all \
		--deadline=$DEADLINE_S"
	expect_all_fail 3 1 'File too large'
	echo out.all | expect_outputs
	[ "$(cat out.all)" = old ]
}

# case_gather_full FILE...: there is room for a part of to/out: found out by some,
# late.
case_gather_full()
{
	local files=("$@")

	start_wrong 4
	mkdir to
	mount -t tmpfs -o size=32k tmpfs to
	# shellcheck disable=SC2064 # now
	at_end "umount '$PWD/to'"
	echo old >to/out
	gather_run 4
	python3 - <<-'END' || fail "$(what_they_said)"
		import json
		for node in json.load(open("report"))["nodes"]:
		    assert node["status"] in (3, 4), node["status"]
		    assert "No space left" in node["stderr"]
	END
	[ "$(ls -A to)" = out ] || fail "left: $(ls -A to)"
	[ "$(cat to/out)" = old ]
	expect_none
}

# The name is the same on all, but not the disk: each has a part only.
case_gather_apart()
{
	start_wrong 4
	mkdir to.0 to.1 to.2 to.3
	rmdir to.2
	ln -s to.0 to.2
	on_nodes 4 "${BLINKSORT[@]}" --cluster "$PWD/in.%r" \
		--gather="$PWD/to.%r/out" --deadline="$DEADLINE_S"
	expect_all_fail 3 0 'rank 1 .* has another file there'
	[ "$(find . -path './to.*/*')" = "" ]
	# Nor has a file before it got its name.
	echo old >out.all
	on_nodes 4 "${BLINKSORT[@]}" --cluster "$PWD/in.%r" \
		--gather="$PWD/out.all" --gather="$PWD/to.%r/out" \
		--deadline="$DEADLINE_S"
	expect_all_fail 3 2 'rank 3 .* has another file there'
	echo out.all | expect_outputs
	[ "$(cat out.all)" = old ]
	[ "$(find . -path './to.*/*')" = "" ]
}

# All of them gather, or none.
case_gather_by_some()
{
	start_wrong 3
	on_nodes 3 /bin/sh -c "cd '$PWD' && case %r in
		1) set -- -o out.1 ;; *) set -- --gather=out.all ;; esac
		exec ${BLINKSORT[*]} --cluster in.%r \"\$@\" \
		--deadline=$DEADLINE_S"
	expect_all_refuse ' has another --gather than '
}

# expect_all_refuse TEXT: a mistake of all
expect_all_refuse()
{
	python3 - "$1" <<-'END' || fail "$(what_they_said)"
		import json, sys
		for node in json.load(open("report"))["nodes"]:
		    assert node["status"] in (2, 4), node["status"]
		    assert sys.argv[1] in node["stderr"], node["stderr"]
	END
	expect_none
}

# gather_differently RANK OPTION...: one of three ranks has these options
gather_differently()
{
	local rank=$1
	shift

	on_nodes 3 /bin/sh -c "cd '$PWD' && case %r in
		$rank) set -- $* ;; *) set -- --gather=out.1 --gather=out.2 ;;
		esac; exec ${BLINKSORT[*]} --cluster in.%r \"\$@\" \
		--deadline=$DEADLINE_S"
}

# Each file has a rank, and each rank a file.
case_gather_more_files()
{
	local files

	start_wrong 3
	files=(out.{1..4})
	gather_run 3
	expect_all_refuse '4 files are more than the ranks that sort, 3'
	files=(out.1 ./out.1)
	gather_run 3
	expect_all_refuse 'is the same file as the output'
	files=(out.1 out.2)
	gather_run 3 --trace="$PWD/out.2"
	expect_all_refuse 'is the same file as the output'
	gather_differently 1 --gather=out.1
	expect_all_refuse ' has another --gather than '
	# Rank 2 alone writes the second file.
	gather_differently 2 --gather=out.2 --gather=out.1
	expect_all_refuse 'writes the same output file as rank'
}

# measure_job START RANK...: how long a job takes that nothing happens to, in
# $job_ms
measure_job()
{
	local start=$1 begin_ns rank
	shift

	begin_ns=$(date +%s%N)
	for rank; do
		"$start" alone "$rank"
	done
	wait_ranks "$@"
	job_ms=$((($(date +%s%N) - begin_ns) / 1000000))
	[[ "${statuses[*]}" =~ ^[0\ ]+$ ]] || fail "$(cat err.*)"
}

# act_amid TRY SIGNAL VICTIM START RANK...: the victim gets the signal at a
# moment drawn, $random ms after the job's begin.  Jobs of tries at once begin
# one after the other, so that each takes about as long as one alone.
act_amid()
{
	local try=$1 signal=$2 victim=$3 start=$4 rank
	shift 4

	RANDOM=$((SEED + try + 1))
	ln ../in.? .
	nap_ms $((try * 2 * job_ms))
	for rank; do
		"$start" "$try" "$rank"
	done
	random_below "$job_ms"
	nap_ms "$random"
	kill "-$signal" "${pids[victim]}" 2>/dev/null || true
}

# gather_here JOB RANK
gather_here()
{
	start_rank "$2" "${BLINKSORT[@]}" --cluster --rank="$2" \
		--nodes='127.0.0.[2-4]' --job="gather.$$.$1" \
		--deadline="$GONE_DEADLINE_S" "in.$2" "${files[@]/#/--gather=}"
}

# gather_killed TRY
gather_killed()
{
	local pids=() statuses=() random victim=$(($1 % 3)) file there=()

	act_amid "$1" KILL "$victim" gather_here 0 1 2
	wait_ranks 0 1 2
	[[ "${statuses[*]}" =~ ^((0|4|137)\ ?){3}$ ]] ||
		fail "${statuses[*]}: $(cat err.*)"
	for file in "${files[@]}"; do
		[ -e "$file" ] || continue
		there+=("$file")
		expect_same "$file" "../want.${file#out.}"
	done
	# The victim alone may have given a name, and not heard of the end.
	[[ ${#there[@]} -le 1 || ${statuses[*]} != *4* ]] ||
		fail "${statuses[*]}: there are ${there[*]}"
	[ ${#there[@]} = 0 ] || printf '%s\n' "${there[@]}" | expect_outputs
	[ ${#there[@]} != 0 ] || expect_none
}

# case_gather_killed FILE...: one is killed at any time: what is there then is
# complete.
case_gather_killed()
{
	local pids=() statuses=() job_ms file files=("$@")

	start_wrong 3
	expect_sorted whole -o want
	measure_job gather_here 0 1 2
	cat "${files[@]}" | expect_same - want
	for file in "${files[@]}"; do
		mv "$file" "want.${file#out.}"
	done
	at_once 6 gather_killed
}

# start_here JOB RANK COMMAND...: of four
start_here()
{
	local job=$1 rank=$2
	shift 2

	start_rank "$rank" "$@" "${BLINKSORT[@]}" --cluster --rank="$rank" \
		--nodes='127.0.0.[2-5]' --job="check.$$.$job" \
		--deadline="$GONE_DEADLINE_S" "in.$rank" -o "out.$rank"
}

# expect_ended VICTIM: it was too late, or all others name it
expect_ended()
{
	local rank

	for rank in 0 1 2 3; do
		[ "$rank" != "$1" ] || continue
		[ "${statuses[rank]}" != 0 ] || continue
		expect_blamed "$1" "$rank"
		[ ! -e "out.$rank" ] ||
			fail "rank $rank has failed and has an output"
	done
}

# gone_here TRY: each rank in turn is killed, then each is stopped
gone_here()
{
	local pids=() statuses=() random rank victim=$(($1 % 4))
	local signal=KILL

	[ $(($1 / 4 % 2)) = 0 ] || signal=STOP
	act_amid "$1" "$signal" "$victim" start_here 0 1 2 3
	for rank in 0 1 2 3; do
		[ "$rank" = "$victim" ] || wait_ranks "$rank"
	done
	kill -CONT "${pids[victim]}" 2>/dev/null || true
	wait_ranks "$victim"
	echo "  rank $victim $signal after $random ms: ${statuses[*]}"
	expect_ended "$victim"
	rm -f out.*
	expect_none
}

# One is killed or stopped at any time, where ranks tell each other where they
# stand through shared memory.
case_gone_here()
{
	local pids=() statuses=() job_ms

	start_wrong 4
	measure_job start_here 0 1 2 3
	rm out.*
	at_once 24 gone_here
}

# A rank that cannot see rank 0's files, and one that cannot see any other's:
# they do with datagrams.
case_hidden()
{
	local pids=() statuses=() hidden rank

	start_wrong 4
	expect_sorted whole -o want
	for hidden in 0 2; do
		for rank in 0 1 2 3; do
			if [ "$rank" = "$hidden" ]; then
				start_here "$hidden" "$rank" unshare --fork \
					--pid --mount-proc
			else
				start_here "$hidden" "$rank"
			fi
		done
		wait_ranks 0 1 2 3
		[ "${statuses[*]}" = "0 0 0 0" ] ||
			fail "${statuses[*]}: $(cat err.*)"
		expect_whole 4 want
		rm out.*
	done
}

# expect_usage WHY OPTION...
expect_usage()
{
	local why=$1 failed=0
	shift

	"${BLINKSORT[@]}" in.0 "$@" 2>err || failed=$?
	[ "$failed" = 2 ] || fail "status $failed: $*"
	expect_match "$why" err
}

case_gather_usage()
{
	start_wrong 1
	expect_usage 'only with --cluster' --gather=out.all
	expect_usage '-o: not together with --gather' --cluster \
		--gather=out.all -o out.0
	expect_usage '--gather: not together with -o' --cluster -o out.0 \
		--gather=out.all
	expect_usage '--gather: FILE is empty' --cluster --gather=
	expect_none
}

# One host is one rank.
case_nodes_twice()
{
	start_wrong 1
	expect_usage '--nodes: 127.0.0.2 is listed twice' \
		--nodes=127.0.0.2,127.0.0.2 --rank=0 -o out.0
	expect_usage '--nodes: 127.0.0.2 and 127.0.0.2:7300 are one address' \
		--nodes=127.0.0.2,127.0.0.2:7300 --rank=1 -o out.1
	expect_none
}

check input_missing case_input_missing
check input_odd case_input_odd
check records_differ case_records_differ
check same_file case_same_file
check old_stays case_old_stays
check no_folder_0 case_no_folder 0
check no_folder_2 case_no_folder 2
check_able be_refused read_only case_read_only
check_able mount full case_full
check_able mount gather_full case_gather_full to/out
check_able mount gather_several_full case_gather_full out.1 to/out
if [ "$SANITIZED" ]; then
	skip no_name "LD_PRELOAD does not go with a sanitizer"
elif ! has_tmpfile "$SCRATCH"; then
	skip no_name "no files without a name in $SCRATCH"
else
	check no_name case_no_name
fi
check output_is_folder case_output_is_folder
check other_key case_other_key
check keyless case_keyless
check keyless_twice case_keyless_twice
check keyless_alone case_keyless_alone
check gather_fails case_gather_fails
check gather_apart case_gather_apart
check gather_by_some case_gather_by_some
check gather_killed case_gather_killed out.all
# The last rank writes a file alone.
check gather_several_killed case_gather_killed out.1 out.2
check gather_more_files case_gather_more_files
check gather_usage case_gather_usage
check nodes_twice case_nodes_twice
check gone_here case_gone_here
check_able pidns hidden case_hidden

finish
