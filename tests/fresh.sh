#!/bin/bash
# fresh.sh - what a newcomer types, on a fresh Debian (make check-fresh)
#
# USAGE: tests/fresh.sh FOLDER [WAY...]      as root
#
# Makes the smallest Debian in FOLDER/root (debootstrap's minbase with make, git
# and ca-certificates), puts a clone of this repository's last commit into it,
# and enters it by chroot(8), so that its / is no mount point.  Environment:
#
#   RELEASE  bookworm, which is Debian 12 and the default, or trixie, Debian 13
#   CHECKS, RETRY    for make check
#
# The ways:
#
#   demo   make demo as root, in a clone below /root, which only root may enter.
#          Packages are downloaded before; the time that is told is of the rest:
#          installing them, compiling, sorting.
#   root   make check, there, of the last commit
#   user   make check as an ordinary user in its home, which only it may enter,
#          without sudo; the packages are there
#   bare   make check as root without CAP_SYS_ADMIN: it may not mount, nor make
#          namespaces
#   deb    make deb in a new tree; then install what it has built in another,
#          FOLDER/deb-root, which has neither compiler nor repository, use it,
#          upgrade from a lower version, and purge it (tests/vm/guest_deb.sh)
#
# Default: the first four, in this order.  demo and deb begin with a new tree, the
# others go on with the one that is there, and make one if there is none.
# FOLDER/base keeps what debootstrap made, for the next run; FOLDER/WAY.log has
# what was printed.
#
# Packages come from the mirror from which this machine's apt gets Debian, by its
# proxies and keys.  Everything runs in namespaces of mounts and processes: in
# the end nothing is mounted, and no process is left.
#
# The last line is "N ways passed, M failed"; the status is 1 if any failed.
set -eu -o pipefail
export LC_ALL=C

export RELEASE=${RELEASE:-bookworm}
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

# sources: the release's lines for apt's sources.list, from the mirrors of this
# machine's own release
sources()
{
	local codename uri component here

	here=$(sed -n 's/^VERSION_CODENAME=//p' /etc/os-release)
	# shellcheck disable=SC2016 # for apt-get
	while read -r codename uri component; do
		case $codename in
		"$here" | "$here-updates" | "$here-security")
			echo "deb $uri $RELEASE${codename#"$here"} $component" ;;
		esac
	done < <(apt-get indextargets --format \
		'$(CODENAME) $(REPO_URI) $(COMPONENT)' \
		'Created-By: Packages' 'Origin: Debian')
}

# mirror: where the release itself is
mirror()
{
	sources | awk -v release="$RELEASE" '
	$3 == release && !uri { uri = $2 }
	END { print uri }'
}

# proxy_of http|https: of apt's configuration
proxy_of()
{
	apt-config dump --format '%v' "Acquire::$1::Proxy" | tr -d '"'
}

make_base()
{
	local proxy uri

	if [ -e "$FOLDER/base" ]; then
		grep -q -x "VERSION_CODENAME=$RELEASE" \
			"$FOLDER/base/etc/os-release" ||
			die "$FOLDER/base is not of $RELEASE: choose another folder"
		return
	fi
	uri=$(mirror)
	[ "$uri" ] || die "no source of Debian in apt's lists: run apt-get update"
	rm -rf --one-file-system "$FOLDER/base.new"
	mkdir -p "$FOLDER"
	for proxy in http https; do
		[ -z "$(proxy_of $proxy)" ] ||
			export "${proxy}_proxy=$(proxy_of $proxy)"
	done
	say base "debootstrap, once: see $FOLDER/base.log"
	debootstrap --variant=minbase --include="$PACKAGES" "$RELEASE" \
		"$FOLDER/base.new" "$uri" >"$FOLDER/base.log" 2>&1 ||
		die "debootstrap of $RELEASE from $uri:" \
			"$(tail -n 1 "$FOLDER/base.log")"
	configure_apt "$FOLDER/base.new"
	mv "$FOLDER/base.new" "$FOLDER/base"
}

# configure_apt ROOT: sources, and the keys, proxies and the like of this machine
configure_apt()
{
	local folder

	sources >"$1/etc/apt/sources.list"
	# All keys of this machine, whichever source each of them is for here
	for folder in /etc/apt/trusted.gpg.d /etc/apt/keyrings; do
		[ ! -d "$folder" ] ||
			cp -rL "$folder/." "$1/etc/apt/trusted.gpg.d"
	done
	folder=/usr/local/share/ca-certificates
	[ ! -d $folder ] || cp -rLT $folder "$1$folder"
	# A hook of this machine's might run what is not there.
	apt-config dump | grep '^Acquire::' >"$1/etc/apt/apt.conf.d/50host"
	cp -L /etc/resolv.conf /etc/hosts "$1/etc"
	inside "$1" update-ca-certificates >/dev/null 2>&1 || true
	inside "$1" apt-get -q update >>"$FOLDER/base.log" 2>&1 ||
		die "apt-get update: $(tail -n 1 "$FOLDER/base.log")"
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

# head_of REPOSITORY: its last commit
head_of()
{
	git -c safe.directory='*' -C "$1" rev-parse HEAD
}

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

# check COMMAND...: make check, there
check()
{
	"$@" check CHECKS="${CHECKS:-}" RETRY="${RETRY:-}"
}

# The packages that an earlier run has installed are kept, not its commit.
way_root()
{
	local here

	here=$(head_of "$REPO")
	if [ ! -d "$ROOT" ]; then
		make_root
	elif [ "$(head_of "$ROOT$ROOTS_CLONE")" != "$here" ]; then
		clone_to /root
	fi
	check inside "$ROOT" make --no-print-directory -C "$ROOTS_CLONE"
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
	check as_reader make --no-print-directory -C "/home/$READER/blinksort"
}

way_bare()
{
	[ -d "$ROOT" ] || make_root
	check inside "$ROOT" setpriv --bounding-set=-sys_admin \
		--inh-caps=-sys_admin make -C "$ROOTS_CLONE"
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
	local clone=$ROOT$ROOTS_CLONE deb spawn=build/musl/tests/bench/bench_spawn
	local debs=$clone/build/deb

	make_root
	inside "$ROOT" make --no-print-directory -C "$ROOTS_CLONE" deb
	inside "$ROOT" make --no-print-directory -C "$ROOTS_CLONE" $spawn
	ROOT=$FOLDER/deb-root
	new_root
	mkdir -p "$ROOT/debs/old" "$ROOT/blinksort/${spawn%/*}"
	for deb in "$debs"/*.deb; do
		[[ $deb == *-dbgsym_* ]] || cp "$deb" "$ROOT/debs"
	done
	lower "$debs"/blinksort_*.deb "$ROOT/debs/old"
	cp -r "$clone/tests" "$ROOT/blinksort"
	cp "$clone/$spawn" "$ROOT/blinksort/$spawn"
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
		grep -a -E '^(FAILED|FLAKY )|^    \||^[0-9]+ passed, ' "$log" |
			tail -n 30 ||
			tail -n 5 "$log"
		failed=$((failed + 1))
		return
	fi
	passed=$((passed + 1))
	grep -a -E '^FLAKY |^    \|' "$log" || true
	say ok "$way: $((SECONDS - begin_s)) s, and it ends with:"
	tail -n 1 "$log"
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
