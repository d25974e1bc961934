#!/bin/bash
# sysroot.sh - what compiling for arm64 needs besides the cross compiler
#
# USAGE: tests/arm64/sysroot.sh FOLDER
#
# Makes FOLDER/sysroot, the C libraries and ours for arm64, anew if this script
# has changed, and the compilers FOLDER/cc and FOLDER/musl-cc that look in there.
# The packages are those of the system's own sources, fetched and unpacked, not
# installed: apt-get gets lists of its own, so that no foreign architecture is
# added to the system.  Needs no root.

set -eu -o pipefail
export LC_ALL=C

FOLDER=$(realpath -m "$1")
SYSROOT=$FOLDER/sysroot
APT=$FOLDER/apt
MUSL=usr/lib/aarch64-linux-musl/musl-gcc.specs
PACKAGES=(libc6 libc6-dev linux-libc-dev libgcc-s1 musl musl-dev
	liburing2 liburing-dev libsodium23 libsodium-dev liblz4-1 liblz4-dev
	libzstd1 libzstd-dev libcmocka0 libcmocka-dev)

apt_get()
{
	apt-get -q -o APT::Architecture=arm64 -o APT::Architectures=arm64 \
		-o Dir::State="$APT" -o Dir::State::status="$APT/status" \
		-o Dir::Cache="$APT" "$@" >>"$APT/log" 2>&1 || {
		tail -n 20 "$APT/log" >&2
		echo "sysroot.sh: apt-get $*: see $APT/log" >&2
		exit 1
	}
}

make_sysroot()
{
	local package

	rm -rf "$APT" "$SYSROOT" "$SYSROOT.new"
	mkdir -p "$APT/lists/partial" "$APT/archives/partial" "$SYSROOT.new"
	: >"$APT/status"
	apt_get update
	(cd "$APT" && apt_get download "${PACKAGES[@]}")
	for package in "$APT"/*.deb; do
		dpkg-deb -x "$package" "$SYSROOT.new"
	done
	cp "$0" "$SYSROOT.new/made-by"
	mv "$SYSROOT.new" "$SYSROOT"
	rm -rf "$APT"
}

# make_compiler NAME OPTION: OPTION comes last
make_compiler()
{
	printf '#!/bin/sh\nexec aarch64-linux-gnu-gcc "$@" "%s"\n' "$2" \
		>"$FOLDER/$1"
	chmod +x "$FOLDER/$1"
}

mkdir -p "$FOLDER"
if ! cmp -s "$0" "$SYSROOT/made-by"; then
	echo "  SYSROOT $SYSROOT"
	make_sysroot
fi
sed "s|/usr/|$SYSROOT/usr/|g" "$SYSROOT/$MUSL" >"$FOLDER/musl.specs"
make_compiler cc "--sysroot=$SYSROOT"
make_compiler musl-cc "-specs=$FOLDER/musl.specs"
