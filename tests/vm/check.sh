#!/bin/bash
# check.sh - what wants a machine of its own (make check-vm, check-vm-unit)
#
# USAGE: tests/vm/check.sh devices|unit [FOLDER]      default: build/vm
#
# Boots Debian's kernel in QEMU, by software emulation:
#
#   devices   with seven AHCI disks and an e1000 card, and runs
#             tests/vm/guest_devices.sh in it as the first process: it makes MD
#             arrays, applies, verifies and reverts profiles, and compares the
#             machine's settings with those before
#   unit      with systemd as the first process, which starts
#             tests/vm/guest_unit.sh: it starts blinkd as an administrator
#             would, and looks at what its unit allows and leaves
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
# Of controllers that take six each; sparse files, larger than XFS wants.
DISKS=7
DISK_BYTES=2G

# What is in the machine, for QEMU; and what the kernel is told besides.
devices=()
kernel_options=

prepare_devices()
{
	local i

	kernel_options=net.ifnames=0
	devices=(-device "ahci,id=ahci0" -device "ahci,id=ahci1"
		-netdev "user,id=net,restrict=on"
		-device "e1000-82545em,netdev=net")
	for ((i = 0; i < DISKS; i++)); do
		rm -f "$FOLDER/disk$i"
		truncate -s $DISK_BYTES "$FOLDER/disk$i"
		devices+=(-drive
			"id=disk$i,if=none,format=raw,file=$FOLDER/disk$i"
			-device "ide-hd,drive=disk$i,bus=ahci$((i / 6)).$((i % 6))")
	done
}

prepare_unit()
{
	kernel_options="systemd.unit=guest_unit.service systemd.show_status=no"
}

boot()
{
	timeout --kill-after=10 $TIMEOUT_S qemu-system-x86_64 \
		-machine q35,accel=tcg -cpu max -smp 2 -m 1024 \
		-nodefaults -no-reboot -display none -serial "file:$LOG" \
		-kernel "$FOLDER/kernel" -initrd "$FOLDER/initramfs" \
		-append "console=ttyS0 quiet panic=-1 $kernel_options" \
		"${devices[@]}" </dev/null
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
rm -f "$FOLDER"/disk*

tr -d '\r' <"$LOG" | sed -n '/^=== guest/,$p'
passed=$(count '^ok ') failed=$(count '^FAIL ') skipped=$(count '^skip ')
if ! tr -d '\r' <"$LOG" | grep -q '^=== done$'; then
	echo "it did not come to its end"
	failed=$((failed + 1))
fi
echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" = 0 ] && [ "$passed" -gt 0 ]
