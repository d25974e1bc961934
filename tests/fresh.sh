#!/bin/bash
# fresh.sh - what a newcomer types, on a fresh Debian 12 (make check-fresh)
#
# USAGE: tests/fresh.sh FOLDER [WAY...]      as root
#
# Makes the smallest Debian 12 in FOLDER/root (debootstrap's minbase with make,
# git and ca-certificates), puts a clone of this repository's last commit into
# it, and enters it by chroot(8), so that its / is no mount point.  The ways:
#
#   demo   make demo as root, in a clone below /root, which only root may enter.
#          Packages are downloaded before; the time that is told is of the rest:
#          installing them, compiling, sorting.
#   root   make check, there
#   user   make check as an ordinary user in its home, which only it may enter,
#          without sudo; the packages are there
#   bare   make check as root without CAP_SYS_ADMIN: it may not mount, nor make
#          namespaces
#   deb    install the packages that make deb has built, use them, upgrade from
#          a lower version, and purge them (tests/vm/guest_deb.sh), in a tree of
#          its own, FOLDER/deb-root, which has neither compiler nor repository
#
# Default: the first four, in this order.  demo begins with a new tree, the others
# go on with the one that is there, and make one if there is none.  FOLDER/base
# keeps what debootstrap made, for the next run; FOLDER/WAY.log has what was
# printed.
#
# Packages come from where this machine's apt gets its own, by its sources,
# proxies and keys.  Everything runs in namespaces of mounts and processes: in
# the end nothing is mounted, and no process is left.
#
# The last line is "N ways passed, M failed"; the status is 1 if any failed.
set -eu -o pipefail
export LC_ALL=C

readonly RELEASE=bookworm
REPO=$(cd "$(dirname "$0")/.." && pwd)
readonly REPO
readonly PACKAGES=make,git,ca-certificates
# Of a way: make check takes minutes; this ends what hangs.
readonly LIMIT_S=3600
# Each process down to the first one of a namespace is killed when its parent
# ends, so that nothing goes on when this script is killed.
readonly -a WITH_PARENT=(setpriv --pdeathsig KILL)
# The user of the way "user"
readonly READER=reader

die()
{
	echo "fresh.sh: $*" >&2
	exit 1
}

say()
{
	printf '  %-6s %s\n' "$1" "$2"
}

# mirror: where this machine's apt gets the release from
mirror()
{
	local uri release

	# shellcheck disable=SC2016 # for apt-get
	while read -r release uri; do
		if [ "$release" = "$RELEASE" ]; then
			echo "$uri"
			return
		fi
	done < <(apt-get indextargets \
		--format '$(RELEASE) $(REPO_URI)' 'Created-By: Packages')
	die "no source of $RELEASE in apt's lists: run apt-get update"
}

# proxy_of http|https: of apt's configuration
proxy_of()
{
	apt-config dump --format '%v' "Acquire::$1::Proxy" | tr -d '"'
}

make_base()
{
	local proxy

	[ ! -e "$FOLDER/base" ] || return 0
	rm -rf --one-file-system "$FOLDER/base.new"
	mkdir -p "$FOLDER"
	for proxy in http https; do
		[ -z "$(proxy_of $proxy)" ] ||
			export "${proxy}_proxy=$(proxy_of $proxy)"
	done
	say base "debootstrap, once: see $FOLDER/base.log"
	debootstrap --variant=minbase --include="$PACKAGES" "$RELEASE" \
		"$FOLDER/base.new" "$(mirror)" >"$FOLDER/base.log" 2>&1 ||
		die "debootstrap: $(tail -n 1 "$FOLDER/base.log")"
	configure_apt "$FOLDER/base.new"
	mv "$FOLDER/base.new" "$FOLDER/base"
}

# configure_apt ROOT: sources, keys, proxies and the like of this machine
configure_apt()
{
	local folder

	rm -f "$1/etc/apt/sources.list"
	[ ! -f /etc/apt/sources.list ] || cp /etc/apt/sources.list "$1/etc/apt"
	for folder in /etc/apt/sources.list.d /etc/apt/trusted.gpg.d \
		/etc/apt/keyrings /usr/share/keyrings \
		/usr/local/share/ca-certificates; do
		[ -d "$folder" ] || continue
		mkdir -p "$1$folder"
		cp -rL "$folder/." "$1$folder"
	done
	# A hook of this machine's might run what is not there.
	apt-config dump | grep '^Acquire::' >"$1/etc/apt/apt.conf.d/50host"
	cp -L /etc/resolv.conf /etc/hosts "$1/etc"
	inside "$1" update-ca-certificates >/dev/null 2>&1 || true
}

# inside ROOT COMMAND...: in a plain chroot, as root
inside()
{
	local root=$1
	shift

	# shellcheck disable=SC2016 # for the inner shell
	"${WITH_PARENT[@]}" unshare --mount --pid --fork --kill-child bash -c '
		set -e
		root=$0
		mount -t proc proc "$root/proc"
		mount --rbind /sys "$root/sys"
		mount --rbind /dev "$root/dev"
		mount -t tmpfs -o mode=1777 none "$root/dev/shm"
		mkdir -p "$root/run"
		mount -t tmpfs -o mode=755 none "$root/run"
		# Not by exec: this shell is the first process of the namespace and
		# stays of root.  What becomes another user is no longer killed with
		# its parent; with the first process all of them are.
		chroot "$root" "$@"
		exit' "$root" \
		/usr/bin/env -i HOME=/root TERM=dumb LC_ALL=C.UTF-8 \
		PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
		"$@"
}

# Inside the new Debian, where root's home folder has this name on any machine.
readonly ROOTS_CLONE=/root/blinksort

# clone_to FOLDER: of the tree, this repository's last commit
clone_to()
{
	rm -rf "$ROOT$1/blinksort"
	git -c safe.directory='*' clone -q --no-hardlinks "$REPO" \
		"$ROOT$1/blinksort"
}

new_root()
{
	make_base
	rm -rf --one-file-system "$ROOT"
	cp -a --reflink=auto "$FOLDER/base" "$ROOT"
	cp -L /etc/resolv.conf "$ROOT/etc"
}

make_root()
{
	new_root
	[ "$(stat -c %a "$ROOT/root")" = 700 ] || die "/root is not of mode 700"
	clone_to /root
}

# as_reader COMMAND...: in the tree, by a user of the way "user"
as_reader()
{
	inside "$ROOT" setpriv --reuid="$READER" --regid="$READER" --init-groups \
		env HOME="/home/$READER" USER="$READER" "$@"
}

# --- the ways -----------------------------------------------------------------

way_demo()
{
	local packages TIMEFORMAT

	make_root
	packages=$(make -s -C "$REPO" print-build-packages)
	inside "$ROOT" apt-get -q update
	# shellcheck disable=SC2086 # several words
	inside "$ROOT" apt-get -q -y --no-install-recommends --download-only \
		install $packages
	TIMEFORMAT='make demo: %0R s without the download; %0U + %0S s of CPUs'
	time inside "$ROOT" make --no-print-directory -C "$ROOTS_CLONE" demo
}

way_root()
{
	[ -d "$ROOT" ] || make_root
	inside "$ROOT" make --no-print-directory -C "$ROOTS_CLONE" check
}

# What root has built is not the user's: a clone of its own.
way_user()
{
	[ -d "$ROOT" ] || make_root
	inside "$ROOT" make -s -C "$ROOTS_CLONE" print-check-packages \
		>"$FOLDER/names"
	# shellcheck disable=SC2046 # several words
	inside "$ROOT" apt-get -q -y --no-install-recommends install \
		$(tail -n 1 "$FOLDER/names")
	[ -d "$ROOT/home/$READER" ] ||
		inside "$ROOT" useradd --create-home --shell /bin/bash "$READER"
	clone_to "/home/$READER"
	inside "$ROOT" chown -R "$READER:" "/home/$READER"
	chmod 700 "$ROOT/home/$READER"
	as_reader make --no-print-directory -C "/home/$READER/blinksort" check
}

way_bare()
{
	[ -d "$ROOT" ] || make_root
	inside "$ROOT" setpriv --bounding-set=-sys_admin --inh-caps=-sys_admin \
		make -C "$ROOTS_CLONE" check
}

# depends DEB...: the names of what they depend on, the first of alternatives
depends()
{
	local deb

	for deb; do
		dpkg-deb -f "$deb" Depends | tr ',' '\n' |
			sed -E 's/^ *([^ :|]+).*/\1/'
	done | sort -u
}

# lower DEB FOLDER: the same package of a version before all others
lower()
{
	local unpacked

	unpacked=$(mktemp -d)
	dpkg-deb -R "$1" "$unpacked"
	sed -i 's/^Version: /&0~/' "$unpacked/DEBIAN/control"
	dpkg-deb --root-owner-group -b "$unpacked" "$2"
	rm -r "$unpacked"
}

way_deb()
{
	local debs=$REPO/build/deb deb spawn=build/musl/tests/bench/bench_spawn

	ROOT=$FOLDER/deb-root
	new_root
	mkdir -p "$ROOT/debs/old" "$ROOT/blinksort/${spawn%/*}"
	for deb in "$debs"/*.deb; do
		[[ $deb == *-dbgsym_* ]] || cp "$deb" "$ROOT/debs"
	done
	lower "$debs"/blinksort_*.deb "$ROOT/debs/old"
	cp -r "$REPO/tests" "$ROOT/blinksort"
	cp "$REPO/$spawn" "$ROOT/blinksort/$spawn"
	inside "$ROOT" apt-get -q update
	# shellcheck disable=SC2046 # several words
	inside "$ROOT" apt-get -q -y --no-install-recommends install procps \
		$(depends "$ROOT"/debs/*.deb)
	inside "$ROOT" bash /blinksort/tests/vm/guest_deb.sh
}

# go WAY: prints one line
go()
{
	local way=$1 log=$FOLDER/$1.log status=0 begin_s=$SECONDS

	# In a shell of its own, as set -e is ignored left of ||.
	"${WITH_PARENT[@]}" timeout --foreground --kill-after=10 "$LIMIT_S" \
		"${WITH_PARENT[@]}" "$0" "$FOLDER" --only "$way" >"$log" 2>&1 </dev/null ||
		status=$?
	if [ $status != 0 ]; then
		say FAILED "$way: status $status, see $log"
		grep -a -E '^FAILED|^    \|' "$log" | tail -n 30 ||
			tail -n 5 "$log"
		failed=$((failed + 1))
		return
	fi
	passed=$((passed + 1))
	say ok "$way: $((SECONDS - begin_s)) s: $(tail -n 1 "$log")"
}

[ $# -gt 0 ] || die "usage: tests/fresh.sh FOLDER [WAY...]"
[ "$UID" = 0 ] || die "needs root"
FOLDER=$(realpath -m "$1")
ROOT=$FOLDER/root
shift
if [ "${1:-}" = --only ]; then
	"way_$2"
	exit
fi
[ $# -gt 0 ] || set -- demo root user bare
for way; do
	declare -F "way_$way" >/dev/null || die "$way: no such way"
done
mkdir -p "$FOLDER"
passed=0 failed=0
make_base
for way; do
	go "$way"
done
echo "$passed ways passed, $failed failed"
[ $failed = 0 ]
