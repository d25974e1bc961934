#!/bin/bash
# check_shell_loss.sh - commands over networks that lose, repeat and reorder
#
# Once with nftables on a bridge of namespaces, which drops; once through
# shell_relay.py, which also repeats, holds back and flips bits.  Whatever
# happens: no command runs twice, one whose status has come has run, and a node
# without a status is named as lost.
# shellcheck source=tests/programs/shell_lib.sh
. "$(dirname "$0")/shell_lib.sh"

readonly COUNT=8
# With 40 % loss either way an attempt fails with 64 %; these are 40 attempts.
readonly LOST_AFTER_S=10
runs=${QUICK:+2}
runs=${runs:-4}
namespace=blinkloss$$
relay=

loss_cleanup()
{
	[ -z "$relay" ] || kill "$relay" 2>/dev/null || true
	nft delete table bridge "$namespace" 2>/dev/null || true
	shell_cleanup
	ip netns del "$namespace" 2>/dev/null || true
}

# run_all RUNS: each appends its rank to a file, and says what it has done.
run_all()
{
	local run

	for ((run = 0; run < $1; run++)); do
		rm -f ran
		sh_run --json --keep-going --lost-after="$LOST_AFTER_S" -- \
			/bin/sh -c "echo %r >>'$PWD/ran'; seq 1 ${2:-1}"
		[ "$status" = 0 ] || [ "$status" = 127 ] ||
			fail "exit status $status: $(head -c 300 err)"
		python3 - "${2:-1}" <<'PYTHON'
import collections, json, os, sys
ran = collections.Counter()
if os.path.exists("ran"):
    ran.update(int(line) for line in open("ran"))
whole = "".join("%d\n" % i for i in range(1, int(sys.argv[1]) + 1))
for node in json.load(open("out"))["nodes"]:
    times = ran[node["rank"]]
    assert times <= 1, "rank %d ran %d times" % (node["rank"], times)
    assert node["state"] in ("exited", "lost"), node
    if node["state"] == "exited":
        assert times == 1, "rank %d did not run" % node["rank"]
        assert node["stdout"] == whole[-65536:], "output of %d" % node["rank"]
PYTHON
	done
}

has_dropped()
{
	[ "$(nft list table bridge "$namespace" |
		grep -c 'counter packets [1-9]')" = 2 ]
}

# case_dropped PERCENT
case_dropped()
{
	local ports run

	# As tests/cluster names the ends of the bridge's number: 10.177.B.2
	ports=$(cut -d . -f 3 <<<"${nodes[0]}")
	ports="bl$ports-*"
	nft -f - <<NFT
table bridge $namespace {
	chain in {
		type filter hook input priority 0;
		iifname "$ports" ip protocol udp \
			numgen random mod 100 < $1 counter drop
	}
	chain out {
		type filter hook output priority 0;
		oifname "$ports" ip protocol udp \
			numgen random mod 100 < $1 counter drop
	}
}
NFT
	run_all "$runs" 2000
	# Until the rules were at work, both ways.
	for ((run = 0; run < 20; run++)); do
		! has_dropped || break
		run_all 1 2000
	done
	has_dropped || fail "the rules have dropped nothing one way: $(
		nft list table bridge "$namespace")"
	nft delete table bridge "$namespace"
}

# case_relayed LOSS DUPLICATE REORDER FLIP
case_relayed()
{
	timeout 600 python3 "$TESTS/programs/shell_relay.py" "$namespace" "$BLINK_PORT" \
		"$COUNT" "$@" >relay &
	relay=$!
	wait_until grep -q seed relay
	cat relay
	run_all "$runs" 2000
	kill "$relay"
	wait "$relay" 2>/dev/null || true
}

# Daemons in one namespace, where only the relay can reach them.
start_behind_relay()
{
	local i

	mkdir -m 700 "$BLINK_CLUSTER"
	ip netns add "$namespace"
	ip -n "$namespace" link set lo up
	"$BIN/blinksh" keygen "$BLINK_CLUSTER/key"
	for ((i = 1; i <= COUNT; i++)); do
		ip netns exec "$namespace" "$BIN/blinkd" \
			--key-file "$BLINK_CLUSTER/key" --foreground \
			--listen "127.0.0.$((i + 1)):$BLINK_PORT" \
			--allow /usr/bin --allow /bin \
			>"$BLINK_CLUSTER/$i.log" 2>&1 </dev/null &
		echo $! >"$BLINK_CLUSTER/$i.pid"
		echo "127.0.0.$((i + 1)):$BLINK_PORT" >>"$BLINK_CLUSTER/hosts"
	done
	eval "$("$TESTS/cluster" env)"
}

if cannot netns; then
	skip loss "$why"
	exit 77
fi
at_end loss_cleanup

if cannot nftables; then
	skip dropped "$why"
elif cluster_up $COUNT --netns; then
	for percent in 5 20 40; do
		check "dropped_$percent" case_dropped "$percent"
		nft delete table bridge "$namespace" 2>/dev/null || true
	done
	"$TESTS/cluster" down 2>/dev/null
else
	skip dropped "no bridge of namespaces: $(tail -n 1 "$SCRATCH/cluster.log")"
fi

start_behind_relay
check relayed_as_is case_relayed 0 0 0 0
check duplicated case_relayed 0 50 0 0
check reordered case_relayed 0 20 50 0
check flipped case_relayed 0 0 0 20
check all_at_once case_relayed 20 20 20 5
check mostly_lost case_relayed 40 20 20 0
finish
