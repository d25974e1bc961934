#!/bin/bash
# image.sh - a machine to boot: Debian's kernel and a root made of this system
#
# USAGE: tests/vm/image.sh FOLDER
#
# Makes FOLDER/kernel and FOLDER/initramfs, anew if this script, the list of
# programs or the repository's own files have changed.  The kernel is fetched as
# Debian's package (apt-get download) and unpacked, not installed; programs and
# libraries are those of the system that this runs on.  Needs no root.

set -eu -o pipefail
export LC_ALL=C

REPO=$(cd "$(dirname "$0")/../.." && pwd)
FOLDER=$(realpath -m "$1")
ROOT=$FOLDER/root
# Whose programs the machine has.
PACKAGES=(bash coreutils util-linux mount grep sed mawk findutils procps hdparm
	ethtool mdadm iproute2 kmod xfsprogs fdisk diffutils)
# What the machine's devices want; others come with them.
MODULES=(ahci sd_mod e1000 md_mod raid0 raid456 xfs loop sch_fq)
# modprobe finds what those want.

# The folders of a merged /usr.
make_root()
{
	local name

	rm -rf "$ROOT"
	mkdir -p "$ROOT"/usr/{bin,sbin,lib,lib64} \
		"$ROOT"/{proc,sys,dev,run,tmp,etc,var/lib,root,mnt}
	for name in bin sbin lib lib64; do
		ln -s usr/$name "$ROOT/$name"
	done
	echo 'root:x:0:0::/root:/bin/bash' >"$ROOT/etc/passwd"
	echo 'nobody:x:65534:65534::/:/bin/false' >>"$ROOT/etc/passwd"
	echo 'root:x:0:' >"$ROOT/etc/group"
}

# copy FILE: to its place below the root, once; a link's end under its name
copy()
{
	local to=$ROOT/usr/${1#/}

	to=${to/usr\/usr/usr}
	[ -e "$to" ] || install -D -m "$(stat -L -c %a "$1")" "$1" "$to"
}

copy_programs()
{
	local path

	dpkg -L "${PACKAGES[@]}" | grep -E '^(/usr)?/s?bin/[^/]+$' |
		sort -u >"$FOLDER/programs"
	while read -r path; do
		if [ -f "$path" ]; then
			copy "$path"
		fi
	done <"$FOLDER/programs"
	ln -sf bash "$ROOT/bin/sh"
	ln -sf mawk "$ROOT/bin/awk"
}

# Of all programs that were copied.
copy_libraries()
{
	local path

	# Scripts have none, of which ldd complains.
	find "$ROOT/usr/bin" "$ROOT/usr/sbin" -type f -print0 |
		{ xargs -0 -n 50 ldd 2>/dev/null || true; } |
		grep -o '/[^ ]*\.so[^ ]*' | sort -u >"$FOLDER/libraries"
	while read -r path; do
		copy "$path"
	done <"$FOLDER/libraries"
}

fetch_kernel()
{
	local name

	name=$(apt-cache depends linux-image-amd64 |
		sed -n 's/.*Depends: \(linux-image-[0-9].*-amd64\)$/\1/p' |
		head -n 1)
	[ -n "$name" ] || {
		echo "image.sh: linux-image-amd64: not in the package lists" >&2
		exit 1
	}
	if [ ! -d "$FOLDER/$name" ]; then
		rm -rf "$FOLDER"/*.deb "$FOLDER"/linux-image-*
		(cd "$FOLDER" && apt-get -q download "$name" 2>&1)
		dpkg-deb -x "$FOLDER"/"$name"_*.deb "$FOLDER/$name.new"
		mv "$FOLDER/$name.new" "$FOLDER/$name"
		rm -f "$FOLDER"/*.deb
	fi
	cp "$FOLDER/$name"/boot/vmlinuz-* "$FOLDER/kernel"
	copy_modules "$FOLDER/$name"
}

# copy_modules FROM: MODULES and what they depend on
copy_modules()
{
	local from=$1 version module path

	version=$(basename "$from"/lib/modules/*)
	[ -f "$from/lib/modules/$version/modules.dep" ] ||
		/sbin/depmod -b "$from" "$version"
	mkdir -p "$ROOT/usr/lib/modules/$version"
	cp "$from/lib/modules/$version"/modules.* \
		"$ROOT/usr/lib/modules/$version/"
	for module in "${MODULES[@]}"; do
		/sbin/modprobe -d "$from" -S "$version" --show-depends \
			--ignore-install "$module" | sed -n 's/^insmod //p'
	done | sort -u | while read -r path; do
		path=${path%% *}
		install -D -m 644 "$path" "$ROOT/usr/${path#"$from"/}"
	done
	/sbin/depmod -b "$ROOT" "$version"
	printf '%s\n' "${MODULES[@]}" >"$ROOT/etc/modules"
}

# The repository's own: what is tested, and the test.
copy_ours()
{
	mkdir -p "$ROOT/blinksort/tests"
	cp -r "$REPO/tune" "$ROOT/blinksort/"
	cp -r "$REPO/tests/vm" "$REPO/tests/tool_lib.sh" "$ROOT/blinksort/tests/"
	mkdir -p "$ROOT/blinksort/bin"
	ln -s ../tune/blinktune "$ROOT/blinksort/bin/blinktune"
	ln -s blinksort/tests/vm/guest.sh "$ROOT/init"
}

mkdir -p "$FOLDER"
make_root
copy_programs
copy_libraries
fetch_kernel
copy_ours
(cd "$ROOT" && find . -print0 | cpio --null --create --format=newc --quiet \
	--owner=0:0 >"$FOLDER/initramfs")
