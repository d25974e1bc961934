#!/bin/bash
# check.sh - blinktune on real devices, in a machine of its own (make check-vm)
#
# USAGE: tests/vm/check.sh [FOLDER]      default: build/vm
#
# Boots Debian's kernel in QEMU, by software emulation, with seven AHCI disks and
# an e1000 card, and runs tests/vm/guest.sh in it as the first process: it makes
# MD arrays, applies, verifies and reverts profiles, and compares the machine's
# settings with those before.  What it says comes through the serial port; the
# lines "ok NAME" and "FAIL NAME" are counted, as tests/run does.

set -eu -o pipefail
export LC_ALL=C

REPO=$(cd "$(dirname "$0")/../.." && pwd)
FOLDER=$(realpath -m "${1:-$REPO/build/vm}")
TIMEOUT_S=570
LOG=$FOLDER/console
# Of controllers that take six each; sparse files, larger than XFS wants.
DISKS=7
DISK_BYTES=2G

make_disks()
{
	local i

	disks=()
	for ((i = 0; i < DISKS; i++)); do
		rm -f "$FOLDER/disk$i"
		truncate -s $DISK_BYTES "$FOLDER/disk$i"
		disks+=(-drive "id=disk$i,if=none,format=raw,file=$FOLDER/disk$i"
			-device "ide-hd,drive=disk$i,bus=ahci$((i / 6)).$((i % 6))")
	done
}

boot()
{
	timeout --kill-after=10 $TIMEOUT_S qemu-system-x86_64 \
		-machine q35,accel=tcg -cpu max -smp 2 -m 1024 \
		-nodefaults -no-reboot -display none -serial "file:$LOG" \
		-kernel "$FOLDER/kernel" -initrd "$FOLDER/initramfs" \
		-append "console=ttyS0 quiet panic=-1 net.ifnames=0" \
		-device ahci,id=ahci0 -device ahci,id=ahci1 "${disks[@]}" \
		-netdev user,id=net,restrict=on \
		-device e1000-82545em,netdev=net </dev/null
}

count()
{
	tr -d '\r' <"$LOG" | grep -c -E "$1" || true
}

echo "  IMAGE   $FOLDER"
"$REPO/tests/vm/image.sh" "$FOLDER"
make_disks
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
