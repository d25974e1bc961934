#!/bin/bash
# check_cluster_netns.sh - the cluster sort over networks that lose and end
#
# Four network namespaces, joined by a bridge.  nftables drops some of what goes
# through it: the output must be exact nevertheless.  Then, while links with a
# rate make the exchange last, one rank is killed, stopped, or cut off: all
# others must end by themselves, with status 4 and its name, and leave nothing.
#
# test_cluster_paths does the same to many more jobs, in simulated time, and has
# paths that end in one direction, or between two ranks.

# shellcheck disable=SC2317 # cases are called by check
# shellcheck source=tests/programs/cluster_lib.sh
. "$(dirname "$0")/cluster_lib.sh"

RANKS=4
# Others' silence for so long is an end; a disk may keep a rank silent for
# seconds, too.
readonly FAULT_DEADLINE_S=4
# When all must have ended: a generous bound and not a measure.
readonly END_WITHIN_S=40
# So many datagrams, also large ones, that some of a hundred are lost.
COUNT=40000 FAULT_COUNT=200000 rounds=4 many_rounds=2
if [ -n "$QUICK$SANITIZED" ]; then
	FAULT_COUNT=100000 rounds=2 many_rounds=1
fi
# More than fits into the memory that the ranks are given.
readonly BEYOND_COUNT=600000
table=blinkcluster$$
net=
job_options=()

netns_cleanup()
{
	nft delete table bridge "$table" 2>/dev/null || true
	shell_cleanup
}

# up_netns OPTION...: a cluster; the number of its bridge in $net
up_netns()
{
	cluster_up "$RANKS" --netns "$@" || return 1
	net=$(cut -d . -f 3 <<<"${nodes[0]}")
	hosts=$(first_nodes "$RANKS")
}

# make_rules "RULE"...: of what goes through the bridge
make_rules()
{
	local rules

	rules=$(printf '%s\n' "$@")
	nft -f - <<-NFT
		table bridge $table {
			chain through {
				type filter hook forward priority 0;
				$rules
			}
		}
	NFT
}

drop_rules()
{
	nft delete table bridge "$table"
}

# --- loss ---------------------------------------------------------------------

# make_exact HOW: inputs, cut like that, and what is to come of them
make_exact()
{
	"$BIN/blinkgen" -a "$COUNT" whole
	expect_sorted whole -o want
	cut_input whole 100 "$RANKS" "$1"
}

case_exact()
{
	local schedule

	make_exact random
	for schedule in rounds all-at-once; do
		expect_cluster "$RANKS" want --schedule="$schedule" "$@"
	done
}

# By way of scratch files.
case_beyond_memory()
{
	local COUNT=$BEYOND_COUNT

	make_exact even
	expect_cluster "$RANKS" want -S 12M -T "$PWD" --json "$@"
	expect_match '"external\\": {' report
}

# case_lost PERCENT CASE OPTION...
case_lost()
{
	local percent=$1 rank
	shift

	# A packet is lost, not all that was sent with one call.
	for ((rank = 1; rank <= RANKS; rank++)); do
		ip -n "blink$net-$rank" link set eth0 gso_max_segs 1
	done
	make_rules "iifname \"bl$net-*\" ip protocol udp \
		numgen random mod 100 < $percent counter drop"
	"$@"
	nft list table bridge "$table" >counters
	expect_match 'counter packets [1-9]' counters
	drop_rules
}

# A byte of the payload is changed on the way, and the UDP checksum with it: only
# the CRC-32C can tell.
case_damaged()
{
	make_rules "iifname \"bl$net-*\" udp length > 600 \
		numgen random mod 100 < 5 counter @th,4000,8 set 90"
	case_exact "$@"
	nft list table bridge "$table" >counters
	expect_match 'counter packets [1-9]' counters
	python3 - <<-'END' || fail "no rank has noticed"
		import json
		node = json.load(open("report"))["nodes"][0]
		ranks = json.loads(node["stdout"])["ranks"]
		assert sum(rank["damaged_datagrams"] for rank in ranks) > 0
	END
	drop_rules
}

# read_compressed: what the ranks have compressed their records with, as $codec; how
# many bytes these were, as $plain, how many all ranks have sent, as $sent, and the
# rate of their slowest link, as $rate
read_compressed()
{
	read -r codec plain sent rate < <(python3 - <<-'END'
		import json
		node = json.load(open("report"))["nodes"][0]
		sort = json.loads(node["stdout"])
		print(sort["compress"],
		      sum(rank["plain_bytes"] for rank in sort["ranks"]),
		      sum(rank["sent_bytes"] for rank in sort["ranks"]),
		      sort["compress_choice"]["link_rate"])
	END
	)
}

# By the rate of the link and what lz4 makes of the records: ascii ones shrink, and
# binary ones do not.
case_compressed()
{
	local codec plain sent rate kind

	for kind in -a ""; do
		"$BIN/blinkgen" ${kind:+"$kind"} 480000 whole
		expect_sorted whole -o want
		cut_input whole 100 "$RANKS" even
		expect_cluster "$RANKS" want --json --compress=auto
		read_compressed
		if [ "$kind" = -a ]; then
			[ "$codec $((sent < plain * 6 / 10))" = "lz4 1" ] ||
				fail "$codec: $sent of $plain bytes"
		else
			[ "$codec $plain $rate" = "none 0 None" ] ||
				fail "$codec: $plain, $rate"
		fi
	done
}

# The link is told to be so fast that lz4 would only take time.
case_not_compressed()
{
	local codec plain sent rate

	"$BIN/blinkgen" -a 480000 whole
	expect_sorted whole -o want
	cut_input whole 100 "$RANKS" even
	expect_cluster "$RANKS" want --json --compress=auto --link-rate=1000Gbit
	read_compressed
	[ "$codec $plain" = "none 0" ] || fail "$codec: $plain"
}

check_losses()
{
	local mtu

	for mtu in 1500 9000; do
		if ! up_netns --mtu="$mtu"; then
			skip "mtu_$mtu" "$(tail -n 1 "$SCRATCH/cluster.log")"
			continue
		fi
		check "exact_$mtu" case_exact
		check "exact_plain_$mtu" case_exact --plain
		check "beyond_memory_$mtu" case_beyond_memory
		if cannot nftables; then
			skip "lost_$mtu" "$why"
		else
			check "lost_$mtu" case_lost 5 case_exact
			drop_rules 2>/dev/null || true
			check "lost_compressed_$mtu" \
				case_lost 5 case_exact --compress=lz4
			drop_rules 2>/dev/null || true
			check "lost_beyond_memory_$mtu" \
				case_lost 1 case_beyond_memory
			drop_rules 2>/dev/null || true
			check "damaged_$mtu" case_damaged --json
			drop_rules 2>/dev/null || true
		fi
		"$TESTS/cluster" down 2>/dev/null
	done
}

# --- many ranks ---------------------------------------------------------------

# set_mtu BYTES: of all links, whose bridge follows them
set_mtu()
{
	local rank

	for ((rank = 1; rank <= RANKS; rank++)); do
		ip link set "bl$net-$rank" mtu "$1"
		ip -n "blink$net-$rank" link set eth0 mtu "$1"
	done
}

# Each has something for each of the others, more than once.
case_many()
{
	local round

	make_exact even
	for ((round = 0; round < many_rounds; round++)); do
		expect_cluster "$RANKS" want --threads=1
	done
}

check_many()
{
	local RANKS=32 COUNT=200000 mtu

	if ! up_netns --mtu=9000; then
		skip many "$(tail -n 1 "$SCRATCH/cluster.log")"
		return
	fi
	for mtu in 9000 1500; do
		set_mtu "$mtu"
		check "many_$mtu" case_many
	done
	"$TESTS/cluster" down 2>/dev/null
}

# --- one that goes ------------------------------------------------------------

# start_job [RANK]: all ranks, but not this one; each in its namespace
start_job()
{
	local rank

	job=check.$$.$RANDOM
	for ((rank = 0; rank < RANKS; rank++)); do
		[ "$rank" != "${1:-}" ] || continue
		start_rank "$rank" ip netns exec "blink$net-$((rank + 1))" \
			"${BLINKSORT[@]}" --cluster --nodes="$hosts" \
			--rank="$rank" --job="$job" \
			--deadline="${deadline_s:-$FAULT_DEADLINE_S}" \
			"$INPUTS/in.$rank" -o "out.$rank" \
			"${job_options[@]}"
	done
}

# has_ended RANK...
has_ended()
{
	local rank

	for rank; do
		! kill -0 "${pids[rank]}" 2>/dev/null || return 1
	done
}

# others RANK: all ranks but this one
others()
{
	seq 0 $((RANKS - 1)) | grep -v -x "$1"
}

# wait_others RANK: they end by themselves, in time
wait_others()
{
	local begin_s=$SECONDS ranks

	mapfile -t ranks < <(others "$1")
	until has_ended "${ranks[@]}"; do
		[ $((SECONDS - begin_s)) -le "$END_WITHIN_S" ] ||
			fail "not ended after $((SECONDS - begin_s)) s"
		nap 0.02
	done
	wait_ranks "${ranks[@]}"
}

# expect_blamed RANK: all others have ended for its sake and said so
expect_blamed()
{
	local rank host=${nodes[$1]%:*}

	for rank in $(others "$1"); do
		[ "${statuses[rank]}" = 4 ] ||
			fail "rank $rank: status ${statuses[rank]}: $(
				head -c 300 "err.$rank"
			)"
		expect_one_line "err.$rank"
		expect_match "^blinksort: .*rank $1 \(${host//./\\.}" \
			"err.$rank"
	done
}

# All ranks end with status 4; either end of the link may be named.
expect_peer_failure()
{
	local rank

	for ((rank = 0; rank < RANKS; rank++)); do
		[ "${statuses[rank]}" = 4 ] ||
			fail "rank $rank: status ${statuses[rank]}"
		expect_match '^blinksort: .*rank [0-9]' "err.$rank"
	done
}

# Neither output nor anything hidden.
expect_nothing_left()
{
	expect_none
}

# moment: before the middle of the job, drawn
moment()
{
	random_below $((job_ms / 2))
	printf '%d.%03d' $((random / 1000)) $((random % 1000))
}

# act RANK HOW: what happens to it
act()
{
	local port="bl$net-$(($1 + 1))"

	case $2 in
	killed) kill -KILL "${pids[$1]}" ;;
	stopped) kill -STOP "${pids[$1]}" ;;
	cut_off)
		make_rules "iifname \"$port\" counter drop" \
			"oifname \"$port\" counter drop"
		;;
	esac
}

# wait_victim RANK HOW: it must end, too
wait_victim()
{
	[ "$2" != stopped ] || kill -CONT "${pids[$1]}"
	wait_ranks "$1"
}

# expect_failed RANK HOW: and not by success
expect_failed()
{
	[ "${statuses[$1]}" != 0 ] || fail "rank $1 has succeeded"
	[ "$2" = killed ] || [ "${statuses[$1]}" = 4 ] ||
		fail "rank $1: status ${statuses[$1]}: $(cat "err.$1")"
}

# The job was done before the rules for its links were there.
has_succeeded()
{
	local rank

	for ((rank = 0; rank < RANKS; rank++)); do
		[ "${statuses[rank]}" = 0 ] || return 1
	done
}

# expect_too_late: all ranks have succeeded, so their outputs are whole; and nothing
# is left then
expect_too_late()
{
	cat "$INPUTS"/out.? >want
	expect_whole "$RANKS" want
	rm out.* want
	echo "  that was too late"
}

# gone_once HOW RANK MOMENT: if that was too late, once more and sooner
gone_once()
{
	local pids=() statuses=() job

	start_job
	nap "$3"
	act "$2" "$1"
	wait_others "$2"
	wait_victim "$2" "$1"
	if [ "$3" != 0 ] && has_succeeded; then
		expect_too_late
		drop_rules 2>/dev/null || true
		gone_once "$1" "$2" 0
		return
	fi
	expect_blamed "$2"
	expect_failed "$2" "$1"
	drop_rules 2>/dev/null || true
	expect_nothing_left
}

# case_process_gone HOW: to a rank of each of several jobs at once, on the same
# links
case_process_gone()
{
	at_once "$rounds" process_gone "$1"
}

# process_gone HOW NUMBER: before the middle of the job
process_gone()
{
	local victim=$((($2 + SEED) % RANKS)) random after

	RANDOM=$((SEED + $2 + 1))
	after=$(moment)
	echo "  rank $victim $1 after $after s"
	gone_once "$1" "$victim" "$after"
}

# At any moment: it may be too late, but there is no output that is not whole.
case_any_moment()
{
	at_once "$rounds" any_moment
}

any_moment()
{
	local victim=$((($1 + SEED) % RANKS)) rank random pids statuses job
	pids=() statuses=()

	# Jobs at once take longer than one.
	random_below $((job_ms * rounds))
	start_job
	nap_ms "$random"
	kill -KILL "${pids[victim]}" 2>/dev/null || true
	wait_others "$victim"
	wait_ranks "$victim"
	for ((rank = 0; rank < RANKS; rank++)); do
		[[ ${statuses[rank]} =~ ^(0|4|137)$ ]] ||
			fail "rank $rank: status ${statuses[rank]}"
		[ ! -e "out.$rank" ] ||
			expect_same "out.$rank" "$INPUTS/out.$rank"
	done
	[ "$(find . -name '.?*')" = "" ] || fail "hidden files left"
}

# One that never comes.
case_absent()
{
	local pids=() statuses=() job

	start_job 0
	wait_others 0
	expect_blamed 0
	expect_nothing_left
}

# A way that drops long datagrams only, as one with a wrong MTU does: the ranks answer
# each other, and get no record.
case_black_hole()
{
	local pids=() statuses=() job

	make_rules "oifname \"bl$net-3\" ip protocol udp udp length > 1300 \
		counter drop"
	start_job
	wait_others none
	drop_rules
	expect_peer_failure
	cat err.? >told
	expect_match 'for [0-9.]+ s, though it answers: ' told
	expect_nothing_left
}

# halt RANK SHARE: it stands still for so many thousandths of the deadline, and goes
# on for a few, again and again, as one does whose CPUs others use
halt()
{
	while kill -STOP "${pids[$1]}" 2>/dev/null; do
		nap_ms $((deadline_s * $2))
		kill -CONT "${pids[$1]}" 2>/dev/null || true
		nap_ms $((deadline_s * 20))
	done
}

# One that is slow gets on, however long that takes, though it stands still for
# longer than the part of the deadline after which it counts as away.
case_slow()
{
	local pids=() statuses=() job halting deadline_s

	deadline_s=$((2 * ${patience:-1}))
	start_job
	halt 2 400 &
	halting=$!
	wait_others 2
	kill "$halting" 2>/dev/null || true
	wait "$halting" 2>/dev/null || true
	kill -CONT "${pids[2]}" 2>/dev/null || true
	wait_ranks 2
	has_succeeded || fail "${statuses[*]}: $(cat err.?)"
	rm out.?
}

# The switch's queues drop what senders do not keep apart: whole runs of packets,
# and the last ones of a message, too.
case_overrun()
{
	local round

	cat "$INPUTS"/out.? >want
	cp "$INPUTS"/in.? .
	for ((round = 0; round < rounds; round++)); do
		expect_cluster "$RANKS" want --schedule=all-at-once
	done
	tc -s qdisc show >queues
	grep -A 1 "dev bl$net-" queues >switch
	expect_match 'dropped [1-9]' switch
}

# measure_job COUNT: a whole job, to know how long one takes and what comes of it
measure_job()
{
	local pids=() statuses=() job begin_ns rank

	"$BIN/blinkgen" -a "$1" whole
	expect_sorted whole -o want
	cut_input whole 100 "$RANKS" even
	rm whole
	begin_ns=$(date +%s%N)
	start_job
	wait_others none
	job_ms=$((($(date +%s%N) - begin_ns) / 1000000))
	for ((rank = 0; rank < RANKS; rank++)); do
		[ "${statuses[rank]}" = 0 ] || fail "$(cat "err.$rank")"
	done
	expect_whole "$RANKS" want
	echo "a job takes $job_ms ms"
	rm -rf "$SCRATCH/inputs"
	mkdir "$SCRATCH/inputs"
	mv in.* out.* "$SCRATCH/inputs"
	echo "$job_ms" >"$SCRATCH/job_ms"
}

# check_job NAME COUNT: what the checks of faults need to know of the job
check_job()
{
	rm -f "$SCRATCH/job_ms"
	INPUTS=.
	check "$1" measure_job "$2"
	[ -f "$SCRATCH/job_ms" ] || return 1
	INPUTS=$SCRATCH/inputs job_ms=$(<"$SCRATCH/job_ms")
}

# check_cut_off SUFFIX
check_cut_off()
{
	if cannot nftables; then
		skip "cut_off$1" "$why"
		return
	fi
	check "cut_off$1" process_gone cut_off 0
	drop_rules 2>/dev/null || true
}

check_faults()
{
	local how

	# So slow that the exchange is most of the job; a queue that overflows
	# even when two send to one.
	if ! up_netns --rate=100 --queue=32; then
		skip faults "$(tail -n 1 "$SCRATCH/cluster.log")"
		return
	fi
	check_job rate "$FAULT_COUNT" || return 0
	check overrun case_overrun
	check compressed case_compressed
	check not_compressed case_not_compressed
	check absent case_absent
	for how in killed stopped; do
		check "$how" case_process_gone "$how"
	done
	check slow patiently case_slow
	check any_moment case_any_moment
	check_cut_off ""
	if cannot nftables; then
		skip black_hole "$why"
	else
		check black_hole case_black_hole
		drop_rules 2>/dev/null || true
	fi
	# The same where the records go by way of scratch files.
	job_options=(-S 12M -T .)
	check_job rate_beyond_memory "$BEYOND_COUNT" || return 0
	for how in killed stopped; do
		check "${how}_beyond_memory" case_process_gone "$how"
	done
	check any_moment_beyond_memory case_any_moment
	check_cut_off _beyond_memory
}

if cannot netns; then
	skip netns "$why"
	finish
fi
at_end netns_cleanup

check_losses
check_many
check_faults
finish
