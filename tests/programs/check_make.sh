#!/bin/bash
# check_make.sh - the Makefile: what its targets build and install
#
# A small tree with the repository's Makefile; of the commands that ask for
# packages or install them, stand-ins come first in PATH.  Nothing is installed.

# shellcheck disable=SC2317 # cases are called by check
# shellcheck source=tests/programs/tool_lib.sh
. "$(dirname "$0")/tool_lib.sh"

if [ "${VARIANT:-dyn}" != dyn ]; then
	skip make "the plain build is enough"
	finish
fi

# What make check was told, and what tests/run says to its tests
readonly INHERITED=(MAKEFLAGS MFLAGS MAKEOVERRIDES MAKELEVEL CC CFLAGS LDFLAGS
	LIBC WERROR SAN V BUILD BIN VARIANT CHECKS NODES PREFIX DESTDIR)

readonly LIMIT_S=120
# As the Makefile lists them
readonly LIBRARY_PACKAGES="liburing-dev libsodium-dev liblz4-dev libzstd-dev"
readonly DEMO_PACKAGES="gcc libc6-dev liblz4-dev libsodium-dev liburing-dev\
 libzstd-dev make musl-tools"

# make_tree: two programs; the only test of it cannot be compiled
make_tree()
{
	mkdir -p tree/src/{base,programs} tree/shell tree/packaging/completion \
		tree/tests/{bench,unit/musl}
	cp "$REPO/Makefile" tree
	cp "$REPO/tests/unit/musl/tests.txt" tree/tests/unit/musl
	echo 'int one(void);
	int one(void) { return 0; }' >tree/src/base/one.c
	echo 'const char *version(void);
	const char *version(void) { return BLINKSORT_VERSION; }' \
		>tree/src/base/version.c
	echo 'int main(void) { return 0; }' | tee tree/src/programs/left_main.c \
		tree/shell/right_main.c >tree/tests/bench/bench_spawn.c
	echo '#error not for a demo' >tree/tests/unit/test_one.c
	printf '#!/bin/bash\necho "the demo"\n' | tee tree/tests/demo.sh \
		>tree/tests/demo_cluster.sh
	printf '[Service]\nExecStart=@PREFIX@/bin/blinkd\n' \
		>tree/shell/blinkd.service
	echo 'u _blinkd' >tree/shell/blinkd.sysusers
	printf 'News\n\nVersion 7.8 (today)\n\nVersion 7.7\n' >tree/NEWS
	printf '![a picture](a/b.svg)\nIt takes [1 s](a/c.json), [2 s](a/d).\n' \
		>tree/README.md
	touch tree/LICENSE \
		tree/packaging/completion/{candidates,blinksort.{bash,zsh}}
	chmod +x tree/tests/*.sh
}

# make_path UID INSTALLED [WITHOUT]: PATH has all programs but WITHOUT; the user
# is UID, and packages are installed that the expression INSTALLED matches
make_path()
{
	local folder

	mkdir path stand-ins
	for folder in /usr/bin /usr/sbin /bin /sbin; do
		[ -L "$folder" ] ||
			find "$folder" ! -type d -exec ln -sf -t path {} +
	done
	rm -f path/sudo "path/${3:-sudo}"
	cat >stand-ins/id <<-END
		#!/bin/bash
		echo $1
	END
	cat >stand-ins/dpkg-query <<-END
		#!/bin/bash
		for word; do
			[[ \$word =~ ^($2)$ ]] && printf 'installed=%s ' "\$word"
		done
		exit 1
	END
	cat >stand-ins/apt-get <<-END
		#!/bin/bash
		echo "\$*" >>$PWD/apt-get.log
	END
	chmod +x stand-ins/*
	PATH=$PWD/stand-ins:$PWD/path
}

# run_make WORD...: in the tree, its words in ./out and ./err
run_make()
{
	status=0
	timeout "$LIMIT_S" env "${INHERITED[@]/#/-u}" \
		make -C tree --no-print-directory "$@" \
		>out 2>err </dev/null || status=$?
}

expect_made()
{
	[ "$status" = 0 ] || fail "status $status: $(tail -n 5 out err)"
}

case_demo_needs_little()
{
	make_tree
	make_path 0 nothing
	run_make demo
	expect_made
	expect_match '^the demo$' out
	sed -n 's/.*--no-install-recommends //p' apt-get.log |
		tr ' ' '\n' | sort | paste -s -d ' ' >packages
	echo "$DEMO_PACKAGES" >want
	expect_same packages want
	expect_gone tree/build/dyn/tests/unit/test_one.o
}

# Neither root nor sudo, and no word of apt-get
case_demo_of_user()
{
	make_tree
	make_path 1000 "${DEMO_PACKAGES// /|}"
	run_make demo
	expect_made
	expect_match '^the demo$' out
	expect_gone apt-get.log
	run_make NODES=3 demo
	expect_made
	expect_gone apt-get.log
}

# One line to pass on, and nothing is tried.
case_user_without_sudo()
{
	make_tree
	make_path 1000 'gcc|make|libc6-dev'
	run_make demo
	[ "$status" = 2 ] || fail "status $status"
	grep -v '^make: \*\*\*' err >said
	expect_one_line said
	expect_match \
		"apt-get install .* musl-tools $LIBRARY_PACKAGES\$" said
	expect_gone apt-get.log
	expect_gone tree/build
}

case_user_with_sudo()
{
	make_tree
	make_path 1000 'gcc|make|libc6-dev'
	printf '#!/bin/bash\nexec "$@"\n' >stand-ins/sudo
	chmod +x stand-ins/sudo
	run_make demo
	expect_made
	expect_match '^-q update$' apt-get.log
	expect_match \
		"^-q -y install .* musl-tools $LIBRARY_PACKAGES\$" \
		apt-get.log
}

# No Debian: the compiler says what it misses, if anything.
case_without_dpkg()
{
	make_tree
	make_path 1000 nothing dpkg-query
	rm stand-ins/dpkg-query
	run_make demo
	expect_made
	expect_match '^the demo$' out
}

# A browser is of "make deps", not of the tests.
case_check_needs_no_browser()
{
	make_tree
	make_path 0 nothing
	run_make check || true
	expect_match 'libcmocka-dev' apt-get.log
	! grep -q chromium apt-get.log || fail "chromium is wanted"
	rm apt-get.log
	run_make deps
	expect_match 'chromium' apt-get.log
}

# What is missing is told with the command that installs it, and no more.
case_missing()
{
	make_tree
	make_path 1000 nothing gcc
	run_make
	[ "$status" = 2 ] || fail "status $status"
	expect_match "\*\*\* missing: gcc; as root: apt-get install\
 --no-install-recommends $DEMO_PACKAGES\.  Stop\.\$" err
	expect_gone apt-get.log
}

# Tests of modules alone: no other test is compiled.
case_check_of_units()
{
	make_tree
	make_path 1000 '.*'
	printf '#!/bin/bash\necho "the tests: $*"\n' >tree/tests/run
	chmod +x tree/tests/run
	echo 'int main(void) { return 0; }' >tree/tests/unit/test_two.c
	run_make check CHECKS='tests/unit/test_two.c test_page'
	expect_made
	expect_match '^the tests: tests/unit/test_two.c test_page$' out
	[ -x tree/build/dyn/tests/unit/test_two ] || fail "it is not built"
	run_make check CHECKS='test_two check_all'
	[ "$status" = 2 ] || fail "status $status"
	expect_match 'not for a demo' err
}

# The source may be read-only.
case_build_elsewhere()
{
	make_tree
	make_path 1000 '.*'
	run_make BUILD="$PWD/elsewhere"
	expect_made
	elsewhere/bin/left || fail "it does not run"
	expect_match "^The programs are in $PWD/elsewhere/bin/\.\$" out
	expect_gone tree/bin
	expect_gone tree/build
	run_make
	expect_made
	run_make clean BUILD="$PWD/elsewhere"
	expect_made
	expect_gone elsewhere
	tree/bin/left || fail "it is gone"
}

# What nobody asked for is told.
case_no_musl()
{
	make_tree
	make_path 1000 '.*'
	run_make MUSL_CC=no-musl
	expect_made
	expect_match '^The programs are linked dynamically, .* no no-musl: ' out
	run_make MUSL_CC=no-musl LIBC=glibc
	expect_made
	! grep -q dynamically out || fail "it was asked for"
}

# clangd reads them.
case_compile_flags()
{
	local file

	cd "$REPO"
	for file in shell/job.c src/kernels/*_{avx2,avx512,pclmul,vpclmul}.c; do
		gcc @compile_flags.txt -fsyntax-only "$file"
	done
}

# meet_others: a compiler that compiles only when it runs twice at the same time,
# and waits for that for MEET_S seconds
meet_others()
{
	cat >stand-ins/gcc <<-END
		#!/bin/bash
		[[ " \$* " != *_main.c* ]] || {
			touch "$PWD/met.\$\$"
			while met=($PWD/met.*); [ \${#met[@]} -lt 2 ] &&
				((SECONDS < MEET_S)); do
				sleep 0.02
			done
			[ \${#met[@]} -ge 2 ] || exit 1
		}
		exec $(command -v gcc) "\$@"
	END
	chmod +x stand-ins/gcc
}

# case_parallel GOAL: without -j; with -j1 it is as the user says
case_parallel()
{
	make_tree
	make_path 1000 '.*'
	meet_others
	export MEET_S=$((LIMIT_S / 2))
	run_make LIBC=glibc "$1"
	expect_made
	rm -rf tree/build tree/bin met.*
	export MEET_S=2
	run_make -j1 LIBC=glibc "$1"
	[ "$status" = 2 ] || fail "-j1 compiles two files at a time"
}

# expect_version TEXT: the program says it, and nothing else
expect_version()
{
	run_make LIBC=glibc
	expect_made
	[ "$(tree/bin/left)" = "$1" ] || fail "$(tree/bin/left), not $1"
}

# Of the repository, of root in another user's, of a source without one; and a
# tag is no commit.
case_version()
{
	local git=(git -C tree -c user.name=n -c user.email=n@example.org) commit

	make_tree
	printf '%s\n' '#include <stdio.h>' 'const char *version(void);' \
		'int main(void) { return puts(version()) < 0; }' \
		>tree/src/programs/left_main.c
	make_path "$UID" '.*'
	export GIT_CEILING_DIRECTORIES=$PWD
	expect_version 7.8+unknown
	"${git[@]}" init -q
	printf '%s\n' build/ bin/ >tree/.gitignore
	"${git[@]}" add .
	"${git[@]}" commit -q -m one
	"${git[@]}" tag -a -m seven v7.8
	commit=$("${git[@]}" rev-parse --short HEAD)
	expect_version "7.8+$commit"
	[ "$UID" != 0 ] || chown -R 65534 tree
	expect_version "7.8+$commit"
	sed -i 's/^Version 7.8/Version 7.10/' tree/NEWS
	expect_version "7.10+$commit-dirty"
	echo 0123abc >tree/packaging/commit
	expect_version 7.10+0123abc
}

# What make deb gives to Debian's tools: the files of the repository, also where a
# link leads to it, and a maintainer of any name.
case_deb()
{
	local git=(git -C tree -c user.name=n -c user.email=n@example.org)
	local source=tree/build/deb/blinksort-7.8

	make_tree
	make_path 0 '.*'
	cp "$REPO/packaging/deb.sh" tree/packaging
	cp -r "$REPO/packaging/debian" tree/packaging
	cp "$REPO/LICENSE" tree
	printf '%s\n' build/ bin/ '*.o' >tree/.gitignore
	"${git[@]}" init -q
	"${git[@]}" add .
	"${git[@]}" commit -q -m one
	touch tree/left.o tree/new
	ln -s tree linked
	# It stops where the packages would be built.
	printf '#!/bin/bash\necho "no compiler today"\nexit 1\n' \
		>stand-ins/dpkg-buildpackage
	chmod +x stand-ins/dpkg-buildpackage
	expect_status 1 env PATH="$PWD/stand-ins:$PWD/path" \
		DEBFULLNAME='A & B/C' DEBEMAIL=ab@example.org \
		linked/packaging/deb.sh build/deb 7.8 0123abc >out 2>err
	expect_match '^deb.sh: dpkg-buildpackage failed$' err
	[ -e "$source/new" ] || fail "new is not there"
	expect_gone "$source/left.o"
	expect_gone "$source/.git"
	expect_match '^0123abc$' "$source/packaging/commit"
	expect_match '^Maintainer: A & B/C <ab@example.org>$' \
		"$source/debian/control"
	expect_match '^ -- A & B/C <ab@example.org>  ' "$source/debian/changelog"
	expect_match '^ Permission is hereby granted' "$source/debian/copyright"
	"${git[@]}" tag v7.7
	expect_status 1 env PATH="$PWD/stand-ins:$PWD/path" \
		linked/packaging/deb.sh build/deb 7.8 0123abc 2>err
	expect_match 'tagged v7.7, and NEWS begins with 7.8' err
}

# expect_stripped PROGRAM: but for the names of its functions
expect_stripped()
{
	readelf -S "$1" >sections
	! grep -q '\.debug_' sections || fail "debugging information is there"
	readelf -s -W "$1" >symbols
	expect_match ' FUNC .* main$' symbols
}

case_install()
{
	make_tree
	make_path 1000 '.*'
	run_make
	cp tree/bin/left tree/bin/blinksort-mpi
	run_make install DESTDIR="$PWD/root" PREFIX=/usr
	expect_made
	expect_folder root/usr bin lib share
	expect_folder root/usr/bin blinksort-mpi left right
	root/usr/bin/left || fail "it does not run"
	readelf -S tree/bin/left >sections
	expect_match '\.debug_info' sections
	expect_stripped root/usr/bin/left
	expect_stripped root/usr/bin/blinksort-mpi
	expect_match '^ExecStart=/usr/bin/blinkd$' \
		root/usr/lib/systemd/system/blinkd.service
	expect_match '^u _blinkd' root/usr/lib/sysusers.d/blinkd.conf
	expect_folder root/usr/share/doc/blinksort LICENSE NEWS README.md
	printf '%s\n' '(A picture, in the repository: a picture.)' \
		'It takes 1 s, 2 s.' |
		expect_same - root/usr/share/doc/blinksort/README.md
	expect_folder root/usr/share/bash-completion/completions blinksort \
		blinksort-mpi left right
	expect_folder root/usr/share/zsh/site-functions _blinksort
	run_make uninstall DESTDIR="$PWD/root" PREFIX=/usr
	expect_made
	find root ! -type d >left
	expect_empty left
}

# expect_path_refused PATTERN ARGUMENT...: neither by install nor by uninstall
expect_path_refused()
{
	local pattern=$1 goal
	shift

	for goal in install uninstall; do
		run_make "$goal" "$@"
		[ "$status" = 2 ] || fail "status $status: $*"
		expect_match "\*\*\* $pattern\.  Stop\.\$" err
		expect_gone tree/build
	done
}

# The recipes would write elsewhere, and remove what is there.
case_install_paths_refused()
{
	local sign

	make_tree
	make_path 1000 '.*'
	mkdir my
	touch my/file
	for sign in ';' '&' '|' "'" '"' '#' '(' '*' '$$'; do
		expect_path_refused 'PREFIX=.*: has . in it, .*' \
			PREFIX="$PWD/my${sign}prog"
	done
	expect_path_refused 'PREFIX=.*: has a blank in it, .*' PREFIX="$PWD/my prog"
	expect_path_refused 'DESTDIR=.*: has a blank in it, .*' PREFIX=/usr \
		DESTDIR="$PWD/my prog"
	expect_path_refused 'PREFIX=my: does not begin with /' PREFIX=my
	expect_folder my file
}

# One column of names, one of what they do; no line is wider than a terminal.
case_help()
{
	local name

	make -s -C "$REPO" help >out
	grep -v -E -e '^[^ ]{1,22} +[^ ]' -e '^(What may be set.*)?$' out >odd ||
		true
	expect_empty odd
	grep -v -E -e '^.{22} [^ ]' -e '^(What may be set.*)?$' out >odd || true
	expect_empty odd
	! grep -E '.{81}' out || fail "too wide"
	for name in demo check SAN= ROWS= BUILD= V= PREFIX= NODES= FUZZ_SECONDS=; do
		expect_match "^$name" out
	done
}

case_no_python()
{
	make_tree
	make_path 1000 '.*'
	sed -i 's|/usr/bin/python3|no-python3|' tree/Makefile
	run_make
	expect_made
	tail -n 1 out >last
	expect_match 'blinktrial.*python3-numpy.*python3-jsonschema' last
}

check demo_needs_little case_demo_needs_little
check demo_of_user case_demo_of_user
check user_without_sudo case_user_without_sudo
check user_with_sudo case_user_with_sudo
check without_dpkg case_without_dpkg
check check_needs_no_browser case_check_needs_no_browser
check missing case_missing
check check_of_units case_check_of_units
check build_elsewhere case_build_elsewhere
check no_musl case_no_musl
if [ "$(uname -m)" = x86_64 ]; then
	check compile_flags case_compile_flags
else
	skip compile_flags "they are of x86-64"
fi
if [ "$(nproc)" = 1 ]; then
	skip parallel "one CPU"
else
	check parallel case_parallel all
	check parallel_demo case_parallel demo
fi
check version case_version
check deb case_deb
check install case_install
check install_paths_refused case_install_paths_refused
check help case_help
check no_python case_no_python
finish
