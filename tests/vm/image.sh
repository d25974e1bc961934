#!/bin/bash
# image.sh - a machine to boot: Debian's kernel and a root made of this system
#
# USAGE: tests/vm/image.sh devices|fat|unit|numa|cpus|deb|figure4 FOLDER
#
# Makes FOLDER/MACHINE/kernel and FOLDER/MACHINE/initramfs.  The kernel is fetched
# as Debian's package (apt-get download) and unpacked, not installed, once for
# all machines; programs and libraries are those of the system that this runs
# on.  Needs no root.
#
#   devices   the first process is tests/vm/guest_devices.sh
#   fat       it is tests/vm/guest_fat.sh, which runs programs of BIN
#   numa      the same, tests/vm/guest_numa.sh
#   cpus      the same, tests/vm/guest_cpus.sh
#   unit      it is systemd, and what it starts is tests/vm/guest_unit.sh; our
#             own programs are installed (make install PREFIX=/usr)
#   figure4   it is systemd, with DAEMONS, and what it starts is
#             tests/vm/guest_figure4.sh
#   deb       it is systemd, in the tree that tests/fresh.sh deb has left in FRESH,
#             which only root can copy; nothing of this system is in it

set -eu -o pipefail
export LC_ALL=C

REPO=$(cd "$(dirname "$0")/../.." && pwd)
MACHINE=$1
KERNELS=$(realpath -m "$2")
BIN=${BIN:-$REPO/bin}
HELPERS=${HELPERS:-$REPO/build/dyn/tests/programs}
FOLDER=$KERNELS/$MACHINE
ROOT=$FOLDER/root
FRESH=${FRESH:-$REPO/build/fresh}
# Whose programs the machine has.
PACKAGES=(bash coreutils util-linux mount grep sed mawk findutils procps
	diffutils kmod)
# What runs beside trials.
DAEMONS=()
# What its devices want; modprobe finds what those want.
MODULES=()
case $MACHINE in
devices)
	PACKAGES+=(hdparm ethtool mdadm iproute2 xfsprogs fdisk)
	MODULES+=(ahci sd_mod e1000 md_mod raid0 raid456 xfs loop sch_fq)
	;;
fat)
	PACKAGES+=(dosfstools strace)
	# FAT wants a table for names of either length.
	MODULES+=(ahci sd_mod vfat nls_cp437 nls_ascii loop)
	;;
unit)
	PACKAGES+=(systemd strace)
	;;
numa)
	PACKAGES+=(e2fsprogs iproute2)
	MODULES+=(ahci sd_mod ext4 e1000e)
	;;
cpus)
	PACKAGES+=(iproute2)
	;;
figure4)
	PACKAGES+=(systemd hdparm ethtool mdadm iproute2 xfsprogs fdisk tar hostname
		fio)
	MODULES+=(ahci sd_mod e1000e md_mod raid0 xfs veth bridge)
	# Those of Debian that the study names, as far as this system has them.
	for name in cron rsyslog at acpid; do
		! dpkg -s $name >/dev/null 2>&1 || DAEMONS+=("$name")
	done
	PACKAGES+=("${DAEMONS[@]}")
	;;
deb)
	PACKAGES=()
	;;
*)
	echo "image.sh: $MACHINE: no such machine" >&2
	exit 2
	;;
esac

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

# copy_systemd [PACKAGE...]: units, generators and helpers of systemd, and all of
# these packages that a daemon needs.  A link between units is an alias, not a copy.
copy_systemd()
{
	local path to

	{
		dpkg -L systemd | grep -E '^(/usr)?/lib/'
		[ $# = 0 ] || dpkg -L "$@" | grep -E '^((/usr)?/lib|/etc|/var)/'
	} | while read -r path; do
		to=$ROOT/usr/${path#/}
		to=${to/usr\/usr/usr}
		case $path in /etc/* | /var/*) to=$ROOT$path ;; esac
		if [ -d "$path" ] && [ ! -L "$path" ]; then
			mkdir -p "$to"
		else
			mkdir -p "$(dirname "$to")"
			cp -P "$path" "$to"
		fi
	done
}

# Of all programs that were copied.
copy_libraries()
{
	local path

	# Scripts have none, of which ldd complains.
	find "$ROOT"/usr/{bin,sbin,lib} -type f -perm /111 -print0 |
		{ xargs -0 -n 50 ldd 2>/dev/null || true; } | grep -v ':$' |
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
		sed -n 1p)
	[ -n "$name" ] || {
		echo "image.sh: linux-image-amd64: not in the package lists" >&2
		exit 1
	}
	if [ ! -d "$KERNELS/$name" ]; then
		rm -rf "$KERNELS"/*.deb "$KERNELS"/linux-image-*
		(cd "$KERNELS" && apt-get -q download "$name" 2>&1)
		dpkg-deb -x "$KERNELS"/"$name"_*.deb "$KERNELS/$name.new"
		mv "$KERNELS/$name.new" "$KERNELS/$name"
		rm -f "$KERNELS"/*.deb
	fi
	cp "$KERNELS/$name"/boot/vmlinuz-* "$FOLDER/kernel"
	copy_modules "$KERNELS/$name"
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
	printf '%s\n' "${MODULES[@]}" | sed '/^$/d' >"$ROOT/etc/modules"
}

# The test and what it stands on.
copy_tests()
{
	mkdir -p "$ROOT/blinksort/tests/programs"
	cp -r "$REPO/tests/vm" "$ROOT/blinksort/tests/"
	cp "$REPO"/tests/programs/{tool,sort}_lib.sh \
		"$ROOT/blinksort/tests/programs/"
}

make_devices()
{
	cp -r "$REPO/tune" "$ROOT/blinksort/"
	mkdir -p "$ROOT/blinksort/bin"
	ln -s ../tune/blinktune "$ROOT/blinksort/bin/blinktune"
	install "$BIN"/{blinksort,blinkgen,blinkval,blinkprobe} "$ROOT/usr/bin/"
	copy_python
	ln -s blinksort/tests/vm/guest_devices.sh "$ROOT/init"
}

make_fat()
{
	install "$BIN"/{blinksort,blinkgen} "$ROOT/usr/bin/"
	ln -s blinksort/tests/vm/guest_fat.sh "$ROOT/init"
}

# What blinktrial takes, but to validate a record: Python without what it has from
# elsewhere.
copy_python()
{
	local library path

	library=$(/usr/bin/python3 -c \
		'import sysconfig; print(sysconfig.get_path("stdlib"))')
	mkdir -p "$ROOT/usr/lib/python3" "$ROOT/blinksort/results" \
		"$ROOT$library"
	copy /usr/bin/python3
	tar -C "$library" -c --exclude=__pycache__ --exclude='config-*' \
		--exclude=idlelib --exclude=test . | tar -C "$ROOT$library" -x
	ldd "$library"/lib-dynload/*.so | sed -n 's/.* => \(\/[^ ]*\).*/\1/p' |
		sort -u | while read -r path; do
		copy "$path"
	done
	cp -r "$REPO"/results/{blinktrial,trials,schema} \
		"$ROOT/blinksort/results/"
	ln -s /blinksort/results/blinktrial "$ROOT/usr/bin/blinktrial"
}

make_numa()
{
	install "$BIN"/{blinksort,blinkgen,blinkprobe,blinksh} \
		"$HELPERS/page_nodes" "$ROOT/usr/bin/"
	copy_python
	ln -s blinksort/tests/vm/guest_numa.sh "$ROOT/init"
}

make_cpus()
{
	install "$BIN"/{blinksort,blinkgen,blinkval} "$ROOT/usr/bin/"
	ln -s blinksort/tests/vm/guest_cpus.sh "$ROOT/init"
}

# With an identity, so that systemd does not take this for the first boot of a
# new machine, of which it would ask things.
make_unit()
{
	make -C "$REPO" --no-print-directory install "DESTDIR=$ROOT" PREFIX=/usr \
		>"$FOLDER/install.log"
	copy_systemd
	echo 626c696e6b736f7274626c696e6b736f >"$ROOT/etc/machine-id"
	mkdir -p "$ROOT/etc/default" "$ROOT/etc/systemd/system"
	cp "$REPO/tests/vm/guest_unit.service" "$ROOT/etc/systemd/system/"
	ln -s usr/lib/systemd/systemd "$ROOT/init"
}

make_figure4()
{
	local name

	cp -r "$REPO/tune" "$ROOT/blinksort/"
	mkdir -p "$ROOT/blinksort/bin" "$ROOT/blinksort/tests/bench"
	install "$BIN"/{blinksort,blinkgen,blinkval,blinkprobe,blinksh,blinkd} \
		"$ROOT/blinksort/bin/"
	copy_python
	cp "$REPO"/results/*.sweep "$ROOT/blinksort/results/"
	ln -s ../tune/blinktune ../results/blinktrial "$ROOT/blinksort/bin/"
	cp "$REPO/tests/cluster" "$ROOT/blinksort/tests/"
	cp "$REPO/tests/bench/figure4_lib.sh" "$ROOT/blinksort/tests/bench/"
	copy_systemd "${DAEMONS[@]}"
	echo 626c696e6b736f7274626c696e6b736f >"$ROOT/etc/machine-id"
	cp /etc/passwd /etc/group "$ROOT/etc/"
	mkdir -p "$ROOT/etc/modprobe.d" "$ROOT/etc/systemd/system/multi-user.target.wants"
	# Of the cards of each node the first has MSI-X, the second none.
	echo 'options e1000e IntMode=2,2,0,0' >"$ROOT/etc/modprobe.d/e1000e.conf"
	for name in "${DAEMONS[@]/%at/atd}"; do
		ln -s "/lib/systemd/system/$name.service" \
			"$ROOT/etc/systemd/system/multi-user.target.wants/"
	done
	sed 's/guest_unit/guest_figure4/' "$REPO/tests/vm/guest_unit.service" \
		>"$ROOT/etc/systemd/system/guest_figure4.service"
	ln -s usr/lib/systemd/systemd "$ROOT/init"
}

# Without what apt has fetched, which would take memory.
make_deb()
{
	rm -rf "$ROOT"
	cp -a --reflink=auto "$FRESH/deb-root" "$ROOT"
	rm -rf "$ROOT/blinksort/tests"
	cp -r "$REPO/tests" "$ROOT/blinksort/"
	rm -rf "$ROOT"/var/cache/apt/*.bin "$ROOT"/var/cache/apt/archives/*.deb \
		"$ROOT"/var/lib/apt/lists/*
	echo 626c696e6b736f7274626c696e6b736f >"$ROOT/etc/machine-id"
	sed 's/guest_unit/guest_deb/' "$REPO/tests/vm/guest_unit.service" \
		>"$ROOT/etc/systemd/system/guest_deb.service"
	ln -sf usr/lib/systemd/systemd "$ROOT/init"
}

mkdir -p "$FOLDER"
if [ "$MACHINE" = deb ]; then
	make_deb
else
	make_root
	copy_programs
	copy_tests
	"make_$MACHINE"
	copy_libraries
fi
fetch_kernel
(cd "$ROOT" && find . -print0 | cpio --null --create --format=newc --quiet \
	--owner=0:0 >"$FOLDER/initramfs")
