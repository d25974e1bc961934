#!/bin/bash
# check_tune_kernel.sh - the real kernel's knobs, killed after every step
#
# On things that this test makes itself: a veth in a network namespace of its
# own, and a loop device.  The profile names them, so that nothing else of the
# machine is touched.

# shellcheck disable=SC2317 # cases are called by check
. "$(dirname "$0")/tune_lib.sh"

readonly CALLS=openat,write,clone,wait4
readonly NAMESPACE=blinktune-$$
LOOP=
TUNE=(ip netns exec "$NAMESPACE" "$BLINKTUNE" --state "$SCRATCH/state")

cleanup()
{
	trap - EXIT
	ip netns del "$NAMESPACE" 2>/dev/null || true
	[ -z "$LOOP" ] || losetup -d "$LOOP" || true
	rm -rf "$SCRATCH"
}

# What the profile is about, as the kernel says it
show()
{
	ip -n "$NAMESPACE" -o link show bt0 |
		sed -E 's/.*mtu ([0-9]*) .*qlen ([0-9]*).*/\1 \2/'
	ip netns exec "$NAMESPACE" ethtool -k bt0 | grep -E '^(tx-|generic)'
	[ -z "$LOOP" ] || cat "/sys/block/${LOOP#/dev/}/queue/"{read_ahead_kb,scheduler}
}

case_killed()
{
	local step killed=0

	show >want
	tune apply --confirm-within 600 "$SCRATCH/kernel.profile"
	show >applied
	! cmp -s want applied || fail 'apply changed nothing'
	tune revert
	show >got
	expect_same want got
	# strace follows exec, not the children.
	strace -qq -o log -e "trace=$CALLS" "${TUNE[@]}" -q \
		apply --confirm-within 600 "$SCRATCH/kernel.profile"
	tune revert
	awk -F'(' -v every="${QUICK:+7}" '
	/^(openat|write|clone|wait4)\(/ {
		number = ++count[$1]
		if ($1 == "openat" && (!/O_CREAT|O_WRONLY|O_RDWR/ ||
				       /"\/dev\/(null|tty|fd\/)/) ||
		    $1 == "write" && !/^write\(1,/ || /WNOHANG/)
			next
		if (!every || ++steps % every == 1)
			print $1, number
	}' log >steps
	while read -r step; do
		# bash would tell the death of a child.
		{
			strace -qq -o log -e "trace=${step% *}" -e \
				"inject=${step% *}:signal=SIGKILL:when=${step#* }" \
				"${TUNE[@]}" -q apply --confirm-within 600 \
				"$SCRATCH/kernel.profile" >out ||
				killed=$((killed + 1))
		} 2>/dev/null
		tune revert >out 2>&1 || fail "$step: $(cat out)"
		show >got
		expect_same want got || fail "apply killed at $step"
	done <steps
	[ "$killed" -ge $(($(wc -l <steps) - 4)) ] || fail "$killed killed"
}

if [ "$UID" != 0 ] || ! strace -qq -o /dev/null true 2>/dev/null ||
	! ip netns add "$NAMESPACE" 2>/dev/null; then
	skip killed "needs root, strace and network namespaces"
	finish
fi
trap cleanup EXIT
ip -n "$NAMESPACE" link add bt0 type veth peer name bt1
truncate -s 1M "$SCRATCH/disk"
LOOP=$(losetup -f --show "$SCRATCH/disk" 2>/dev/null) || LOOP=
cat >"$SCRATCH/kernel.profile" <<END
set mtu:bt0 1400
set tx-queue-length:bt0 500
set nic-offloads:bt0 gro? off
END
[ -z "$LOOP" ] || cat >>"$SCRATCH/kernel.profile" <<END
set read-ahead:${LOOP#/dev/} 512
try io-scheduler:${LOOP#/dev/} mq-deadline
END
check killed case_killed
finish
