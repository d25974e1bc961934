#!/bin/bash
# check_tune_kernel.sh - the real kernel's knobs, killed after each third step
#
# Each run takes others of the steps.  check_tune_kill.sh kills at all of them, over
# a tree of files, which is much faster.
#
# On things that this test makes itself: a veth and the sysctls of a network
# namespace of its own, and a loop device.  The profile names them, so that nothing else of the
# machine is touched.

# shellcheck disable=SC2317 # cases are called by check
. "$(dirname "$0")/tune_lib.sh"

NAMESPACE='' LOOP=''

cleanup()
{
	local name

	trap - EXIT
	for name in apply revert away other; do
		ip netns del "blinktune-$$-$name" 2>/dev/null || true
	done
	for name in "$SCRATCH"/*.loop; do
		[ ! -s "$name" ] || losetup -d "$(cat "$name")" || true
	done
	rm -rf "$SCRATCH"
}

# make_devices NAME: a namespace with a veth, a loop device, and ./profile
make_devices()
{
	NAMESPACE=blinktune-$$-$1
	TUNE=(ip netns exec "$NAMESPACE" "$BLINKTUNE" --state "$PWD/state")
	ip netns add "$NAMESPACE"
	ip -n "$NAMESPACE" link add bt0 type veth peer name bt1
	truncate -s 1M "$SCRATCH/$1.disk"
	losetup -f --show "$SCRATCH/$1.disk" >"$SCRATCH/$1.loop" 2>/dev/null ||
		true
	LOOP=$(cat "$SCRATCH/$1.loop")
	cat >profile <<-END
		set mtu:bt0 1400
		set tx-queue-length:bt0 500
		set nic-offloads:bt0 gro? off
		set socket-buffers:udp_rmem_min 8192
	END
	[ -z "$LOOP" ] || cat >>profile <<-END
		set read-ahead:${LOOP#/dev/} 512
		try io-scheduler:${LOOP#/dev/} mq-deadline
	END
}

# What the profile is about, as the kernel says it
show()
{
	ip -n "$NAMESPACE" -o link show bt0 |
		sed -E 's/.*mtu ([0-9]*) .*qlen ([0-9]*).*/\1 \2/'
	ip netns exec "$NAMESPACE" cat /proc/sys/net/ipv4/udp_rmem_min
	ip netns exec "$NAMESPACE" ethtool -k bt0 | grep -E '^(tx-|generic)'
	[ -z "$LOOP" ] || cat "/sys/block/${LOOP#/dev/}/queue/"{read_ahead_kb,scheduler}
}

apply()
{
	tune apply --confirm-within 600 ./profile
}

# attempt "CALL N" VERB...: 0 if it was killed there; else all is reverted.
attempt()
{
	[ "$2" != revert ] || apply
	! killed_at "$@" || return 0
	tune revert >out 2>&1
	return 1
}

# killed_at_steps VERB...: a revert after each restores what ./want has.
killed_at_steps()
{
	local step killed=0

	while read -r step; do
		if in_three_runs attempt "$step" "$@"; then
			killed=$((killed + 1))
		else
			echo "  not killed at $step: $(tail -n 1 out)"
		fi
		tune revert >out 2>&1 || fail "$step: $(cat out)"
		show >got
		expect_same want got || fail "$1 killed at $step"
	done <steps
	expect_most_killed "$killed" steps
}

case_apply_killed()
{
	make_devices apply
	show >want
	apply
	show >applied
	! cmp -s want applied || fail 'apply changed nothing'
	tune revert
	show >got
	expect_same want got
	print_steps apply --confirm-within 600 ./profile | every_nth 3 >steps
	tune revert
	killed_at_steps apply --confirm-within 600 ./profile
}

case_revert_killed()
{
	make_devices revert
	show >want
	apply
	print_steps revert | every_nth 3 >steps
	killed_at_steps revert
}

# An interface that is in another namespace while revert runs comes back as it
# was left.
case_away()
{
	local ours=blinktune-$$-away other=blinktune-$$-other

	ip netns add "$ours"
	ip netns add "$other"
	ip -n "$ours" link add bt0 type veth peer name bt1
	TUNE=(ip netns exec "$ours" "$BLINKTUNE" --state "$PWD/state")
	ip -n "$ours" -o link show bt0 | sed 's/.* qlen //' >want
	tune apply tx-queue-length:bt0=500
	ip -n "$ours" link set bt0 netns "$other"
	expect_status 7 tune revert 2>err
	expect_match '^blinktune: not all is restored' err
	ip -n "$other" link set bt0 netns "$ours"
	[[ $(ip -n "$ours" -o link show bt0) == *' qlen 500'* ]] ||
		fail 'it has not kept what was set'
	tune revert
	ip -n "$ours" -o link show bt0 | sed 's/.* qlen //' >got
	expect_same want got
}

at_end cleanup
check_able netns away case_away
if cannot netns || cannot trace; then
	skip killed "$why"
	finish
fi
# Side by side, as they mostly wait for the kernel.
check apply_killed case_apply_killed >"$SCRATCH/beside" 2>&1 &
beside=$!
check revert_killed case_revert_killed
wait $beside
cat "$SCRATCH/beside"
! grep -q '^FAIL' "$SCRATCH/beside" || checks_failed=1
finish
