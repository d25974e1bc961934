#!/bin/bash
# deb.sh - build Debian packages of this tree (make deb)
#
# USAGE: packaging/deb.sh FOLDER VERSION COMMIT
#
# Copies the files that git knows, as they are now, to FOLDER/blinksort-VERSION,
# with packaging/debian as its debian/ and a packaging/commit that says COMMIT.  It
# builds the packages there, looks at them by lintian, and leaves them in FOLDER,
# from which all else of an earlier run is removed.  In a source that is in no
# repository, such as that copy, all files are copied but what was built.
#
# The packages name as their maintainer DEBFULLNAME <DEBEMAIL>, variables that
# Debian's own tools read, too.
set -eu -o pipefail
export LC_ALL=C

cd "$(dirname "$0")/.."
# As git names it, without links
REPO=$(pwd -P)
FOLDER=$(realpath -m "$1")
VERSION=$2
COMMIT=$3
SOURCE=$FOLDER/blinksort-$VERSION
MAINTAINER="${DEBFULLNAME:-The blinksort authors} <${DEBEMAIL:-blinksort@example.org}>"

die()
{
	echo "deb.sh: $*" >&2
	exit 1
}

git_here()
{
	git -c safe.directory='*' "$@" 2>/dev/null
}

# Not that of another repository in which this source lies
is_repository()
{
	[ "$(git_here rev-parse --show-toplevel)" = "$REPO" ]
}

check_tag()
{
	local tag

	tag=$(git_here tag --points-at HEAD | grep -x 'v[0-9.]*') || return 0
	[ "$tag" = "v$VERSION" ] ||
		die "this commit is tagged $tag, and NEWS begins with $VERSION"
}

# files: the names of all files of the source, each ended by a zero byte
files()
{
	if is_repository; then
		git_here ls-files -z --cached --others --exclude-standard
	else
		find . -path ./build -prune -o -path ./bin -prune -o \
			-path ./debian -prune -o -name __pycache__ -prune -o \
			! -type d -print0
	fi
}

copy_source()
{
	mkdir -p "$SOURCE"
	# A file that was removed, and not yet from git, is not there.
	files | while IFS= read -r -d '' file; do
		if [ -e "$file" ] || [ -L "$file" ]; then
			printf '%s\0' "$file"
		fi
	done | tar --null -T - -cf - | tar -C "$SOURCE" -xf -
	cp -r "$SOURCE/packaging/debian" "$SOURCE/debian"
	echo "$COMMIT" >"$SOURCE/packaging/commit"
}

fill_in()
{
	local when

	when=$(git_here log -1 --format=%ct) || when=$(stat -c %Y NEWS)
	sed -i "s/@MAINTAINER@/${MAINTAINER//[&\\\/]/\\&}/" "$SOURCE/debian/control"
	cat >"$SOURCE/debian/changelog" <<-END
		blinksort ($VERSION) unstable; urgency=medium

		  * What it changes is in NEWS; it was built from commit $COMMIT.

		 -- $MAINTAINER  $(date -R -d "@$when")
	END
	# The licence's own lines, without its title and the copyright
	sed -e '1,/^Copyright/d' LICENSE | sed -e 1d -e 's/^$/./' -e 's/^/ /' |
		sed -i -e '/@LICENSE@/{r /dev/stdin' -e 'd}' \
			"$SOURCE/debian/copyright"
}

[[ $VERSION =~ ^[0-9]+(\.[0-9]+)*$ ]] ||
	die "'$VERSION' is no version: see NEWS"
if is_repository; then
	check_tag
fi
rm -rf "$FOLDER"
copy_source
fill_in
echo "  DEB     $FOLDER/build.log"
(cd "$SOURCE" && dpkg-buildpackage -b -us -uc -j"$(nproc)") \
	>"$FOLDER/build.log" 2>&1 || {
	tail -n 20 "$FOLDER/build.log" >&2
	die "dpkg-buildpackage failed"
}
echo "  LINTIAN $(echo "$FOLDER"/*.changes)"
lintian --allow-root --fail-on=error,warning,info "$FOLDER"/*.changes
rm -rf "$SOURCE"
(cd "$FOLDER" && ls ./*.deb) | sed "s|^\.|${1%/}|"
