#!/bin/bash
# check.sh - what wants a machine of its own (make check-vm, check-vm-unit,
# check-vm-numa, check-deb)
#
# USAGE: tests/vm/check.sh devices|fat|unit|numa|cpus|deb|figure4 [FOLDER]
#                                                         default: build/vm
#
# Boots Debian's kernel in QEMU, by software emulation:
#
#   devices   with seven AHCI disks and an e1000 card, and runs
#             tests/vm/guest_devices.sh in it as the first process: it makes MD
#             arrays, applies, verifies and reverts profiles, compares the
#             machine's settings with those before, and lets blinksort read and
#             write arrays
#   fat       with one disk, on which it makes a FAT file system, and runs
#             tests/vm/guest_fat.sh as the first process: blinksort has its
#             scratch files there
#   unit      with systemd as the first process, which starts
#             tests/vm/guest_unit.sh: it starts blinkd as an administrator
#             would, and looks at what its unit allows and leaves
#   deb       the tree that tests/fresh.sh has left, of a whole Debian 12 with
#             systemd as the first process, which starts
#             tests/vm/guest_deb.sh: it installs, upgrades and purges packages
#   numa      with two NUMA nodes of two CPUs each, and an e1000e card of the
#             second, and runs tests/vm/guest_numa.sh: it counts where
#             blinksort's pages lie, and measures memory from node to node
#   figure4   is no test: tests/bench/figure4.sh has it run trials, for hours,
#             and puts their record into FIGURE4_OUT; ACCELERATOR=kvm: by KVM,
#             which works here and not there
#   cpus      with CPUS CPUs, 16 if that is not set, and runs
#             tests/vm/guest_cpus.sh: blinksort has many threads
#
# What the guest says comes through the serial port; the lines "ok NAME" and
# "FAIL NAME" are counted, as tests/run does.

set -eu -o pipefail
export LC_ALL=C

REPO=$(cd "$(dirname "$0")/../.." && pwd)
MACHINE=${1:-}
KERNELS=$(realpath -m "${2:-$REPO/build/vm}")
FOLDER=$KERNELS/$MACHINE
TIMEOUT_S=1200
LOG=$FOLDER/console

# What is in the machine, for QEMU; and what the kernel is told besides.
accelerator=tcg
cpu=max
smp=2
memory_mib=1024
devices=()
kernel_options=

# add_disks COUNT BYTES [OPTIONS]: sparse files, on controllers that take six each
add_disks()
{
	local i

	for ((i = 0; i < $1; i++)); do
		[ $((i % 6)) != 0 ] || devices+=(-device "ahci,id=ahci$((i / 6))")
		rm -f "$FOLDER/disk$i"
		truncate -s "$2" "$FOLDER/disk$i"
		devices+=(-drive
			"id=disk$i,if=none,format=raw,file=$FOLDER/disk$i${3:-}"
			-device "ide-hd,drive=disk$i,bus=ahci$((i / 6)).$((i % 6))")
	done
}

# Larger than XFS wants.
prepare_devices()
{
	kernel_options=net.ifnames=0
	add_disks 7 2G
	devices+=(-netdev "user,id=net,restrict=on"
		-device "e1000-82545em,netdev=net")
}

# The disk is larger than a file can be on FAT.  QEMU 7.2 reads what a masked
# load of AVX2 leaves out, which may not be mapped.
prepare_fat()
{
	cpu=max,avx2=off
	add_disks 1 6G
}

# Each node's CPUs are not neighbours by their numbers.  The network card and the
# disk are node 1's.
prepare_numa()
{
	local node

	smp=4
	memory_mib=2048
	for node in 0 1; do
		devices+=(-object "memory-backend-ram,id=memory$node,size=1024M"
			-numa "node,nodeid=$node,memdev=memory$node,cpus=$node,cpus=$((node + 2))")
	done
	devices+=(-numa "dist,src=0,dst=1,val=21")
	kernel_options=net.ifnames=0
	rm -f "$FOLDER/disk0"
	truncate -s 512M "$FOLDER/disk0"
	devices+=(-device "pxb-pcie,id=bridge,bus=pcie.0,bus_nr=64,numa_node=1"
		-device "pcie-root-port,id=slot1,bus=bridge,chassis=1"
		-netdev "user,id=net,restrict=on"
		-device "e1000e,netdev=net,bus=slot1"
		-device "pcie-root-port,id=slot2,bus=bridge,chassis=2"
		-device "ahci,id=ahci,bus=slot2"
		-drive "id=disk0,if=none,format=raw,file=$FOLDER/disk0"
		-device "ide-hd,drive=disk0,bus=ahci.0")
}

prepare_cpus()
{
	smp=${CPUS:-16}
	memory_mib=2048
}

prepare_unit()
{
	kernel_options="systemd.unit=guest_unit.service systemd.show_status=no"
}

# Two nodes with six disks each, one of which is slow, and a disk for the record.
# Each has a card in each of two networks.
prepare_figure4()
{
	local i

	TIMEOUT_S=$((48 * 3600))
	accelerator=${ACCELERATOR:-tcg}
	memory_mib=4096
	add_disks 13 2G ,cache=none
	for i in 3 9; do
		devices+=(-set "drive.disk$i.throttling.bps-total=60000000")
	done
	for i in 0 1 2 3; do
		devices+=(-netdev "hubport,id=net$i,hubid=$((i / 2))"
			-device "e1000e,netdev=net$i")
	done
	kernel_options="net.ifnames=0 systemd.unit=guest_figure4.service"
	kernel_options+=" systemd.show_status=no"
	for i in TRIALS RECORDS KILLS SEED PART; do
		[ -z "${!i:-}" ] || kernel_options+=" figure4.$i=${!i}"
	done
}

# What the guest has written to its last disk, a tar archive.
collect_figure4()
{
	mkdir "$FIGURE4_OUT"
	tar -x -f "$FOLDER/disk12" -C "$FIGURE4_OUT"
}

# The tree is in memory, and so are the files of the demo.  There is no udev,
# whose device a getty on the console would wait for.
prepare_deb()
{
	kernel_options="systemd.unit=guest_deb.service systemd.show_status=no"
	kernel_options+=" systemd.mask=serial-getty@ttyS0.service"
	memory_mib=4096
}

# In the background, so that a signal to us ends it, too.
boot()
{
	timeout --kill-after=10 $TIMEOUT_S qemu-system-x86_64 \
		-machine "q35,accel=$accelerator" -cpu $cpu -smp "$smp" -m "$memory_mib" \
		-nodefaults -no-reboot -display none -serial "file:$LOG" \
		-kernel "$FOLDER/kernel" -initrd "$FOLDER/initramfs" \
		-append "console=ttyS0 quiet panic=-1 $kernel_options" \
		"${devices[@]}" </dev/null &
	machine=$!
	trap 'kill "$machine" 2>/dev/null || true' EXIT
	trap 'exit 130' INT
	trap 'exit 143' TERM
	wait "$machine"
}

count()
{
	tr -d '\r' <"$LOG" | grep -c -E "$1" || true
}

echo "  IMAGE   $FOLDER"
"$REPO/tests/vm/image.sh" "$MACHINE" "$KERNELS"
"prepare_$MACHINE"
echo "  BOOT    $FOLDER/console"
boot || echo "the machine ended with status $?"
[ "$MACHINE" != figure4 ] || [ "${KILLS:-}" ] || collect_figure4
rm -f "$FOLDER"/disk*

tr -d '\r' <"$LOG" | sed -n '/^=== guest/,$p'
passed=$(count '^ok ') failed=$(count '^FAIL ') skipped=$(count '^skip ')
if [ "$(count '^=== done$')" = 0 ]; then
	echo "it did not come to its end"
	failed=$((failed + 1))
fi
echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" = 0 ] && [ "$passed" -gt 0 ]
