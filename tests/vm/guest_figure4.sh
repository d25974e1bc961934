#!/bin/bash
# guest_figure4.sh - trials in the machine of check.sh figure4
#
# Node 1 has sda to sdf, eth0 and eth2; node 2 has sdg to sdl, eth1 and eth3.  eth0
# and eth1 are one network and have MSI-X, eth2 and eth3 are the other and have
# none.  Each disk has seven partitions, six at the rim and one at the other end,
# and each set of them is an array of its own, where the node has mounted it:
# /mnt/NAME.  The record goes to sdm.
# shellcheck disable=SC2317 # cases are called by check

export PATH=/blinksort/bin:/usr/bin:/usr/sbin BIN=/blinksort/bin
exec </dev/null >/dev/ttyS0 2>&1
set -u -o pipefail
echo
echo "=== guest: Linux $(uname -r), $(systemctl --version | sed -n 1p)"

ROOT=/blinksort
# shellcheck source=tests/bench/figure4_lib.sh
. $ROOT/tests/bench/figure4_lib.sh
for word in $(</proc/cmdline); do
	[[ $word != figure4.* ]] || declare -x "${word#figure4.}"
done

# NAME KIB: the partition is the line's number, the disks are all of a node
readonly ARRAYS='outer 128
stripe-32 32
stripe-512 512
stripe-1024 1024
stripe-2048 2048
five 128
inner 128'
readonly PART_MIB=96 INNER_MIB=1900

make_partitions()
{
	local disk

	for disk in /dev/sd[a-l]; do
		{
			echo 'label: gpt'
			printf "size=${PART_MIB}MiB\n%.0s" {1..6}
			echo "start=${INNER_MIB}MiB, size=${PART_MIB}MiB"
		} | sfdisk -q "$disk" || return 1
	done
}

# make_array NODE NAME KIB PART DISK...: /dev/mdNODEPART with a file system
make_array()
{
	local device=/dev/md$1$4 disks=("${@:5}")

	mdadm --create "$device" --quiet --run --level=0 --chunk="$3" \
		--raid-devices=${#disks[@]} "${disks[@]/%/$4}" &&
		mkfs.xfs -q -f "$device" && mkdir -p "/mnt/$2"
}

# slowest NODE: the disk of the node that blinktrial names, whole as /dev/sdX
slowest()
{
	local said

	mount "/dev/md${1}1" /mnt/outer
	blinktrial characterise --quick --quiet --out="/tmp/node-$1" --work=/mnt/outer >&2
	umount /mnt/outer
	said=$(grep '"what": "drive"' "/tmp/node-$1/characterisation.jsonl" |
		sed 's/.*"device": "\([^"]*\)".*"samples": \[\([0-9]*\).*/\2 \1/' |
		sort -n | sed -n '1s/.* //p')
	echo "node $1: slowest disk: $said" >&2
	echo "$said"
}

make_arrays()
{
	local node part name chunk disks slow

	export MDADM_NO_UDEV=1
	for node in 1 2; do
		part=0 slow=
		while read -r name chunk; do
			part=$((part + 1))
			disks=(/dev/sd[a-f])
			[ $node = 1 ] || disks=(/dev/sd[g-l])
			if [ "$name" = five ]; then
				slow=$(slowest $node) && [ "$slow" ] || return 1
				disks=("${disks[@]/$slow/}")
				# shellcheck disable=SC2206 # the empty one goes
				disks=(${disks[*]})
			fi
			make_array $node "$name" "$chunk" $part "${disks[@]}" ||
				return 1
		done <<<"$ARRAYS"
	done
}

# The nodes with their mounts; then the cards, which only the first system can give
# away.
make_nodes()
{
	local exports node card part=0 mounts='' name

	while read -r name _; do
		part=$((part + 1))
		mounts+="mount /dev/md\$1$part /mnt/$name && "
	done <<<"$ARRAYS"
	export BLINK_CLUSTER=/tmp/cluster
	exports=$($ROOT/tests/cluster up 2 --netns --setup="${mounts}true") ||
		return 1
	eval "$exports"
	for card in 0 1 2 3; do
		node=$((card % 2 + 1))
		name=$(nodes | sed -n ${node}p)
		# eth0 is the way to its daemon there.
		ip link set "eth$card" netns "$name" name "card$((card / 2))" &&
			ip -n "$name" addr add "10.0.$((card / 2)).$node/24" \
				dev "card$((card / 2))" &&
			ip -n "$name" link set "card$((card / 2))" up || return 1
	done
}

place_sweep()
{
	local value

	set -- "$(at machine.msi 'nodes enabled 10.0.0.[1-2]')" \
		"$(at machine.msi 'nodes disabled 10.0.1.[1-2]')" \
		"$(at machine.raid-disks 'work 5 /mnt/five')" \
		"$(at machine.disk-placement 'work inner /mnt/inner')"
	for value in 32 512 1024 2048; do
		set -- "$@" "$(at machine.raid-chunk "work $value /mnt/stripe-$value")"
	done
	# Queues, packets and MPI are compared in network namespaces, where there are
	# sixteen nodes.
	# shellcheck disable=SC2016 # a line's number
	set -- "$@" '/^tune.mtu /,/^$/d' '/^tune.tx-queue-length /,/^$/d' \
		'/^ranks.exchange /,$d'
	# To set a knob on all of these disks takes ten times as long as to sort.
	case ${PART:-} in
	arrays) sweep "$@" | sed '/^tune\./,/^$/d' ;;
	knobs) sweep "$@" | sed '/^machine\.[^m]/,/^$/d' ;;
	*) sweep "$@" ;;
	esac
}

case_figure4()
{
	while read -r module; do
		modprobe "$module" || return 1
	done </etc/modules
	wait_for /dev/sdm
	make_partitions && make_arrays && make_nodes || return 1
	place_sweep >/tmp/figure4.sweep
	figure4 /root/record /tmp/figure4.sweep --work=/mnt/outer \
		--records="${RECORDS:-125000}" || return 1
	[ "${KILLS:-}" ] || tar -c -C /root/record . >/dev/sdm
}

wait_for()
{
	local tries

	for ((tries = 0; tries < 200; tries++)); do
		[ ! -e "$1" ] || return 0
		sleep 0.1
	done
}

if case_figure4; then
	echo "ok figure4"
else
	echo "FAIL figure4"
fi
echo "=== done"
sync
