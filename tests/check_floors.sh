#!/bin/bash
# check_floors.sh - includes in src/ and shell/ never go up; see floors.txt
. "$(dirname "$0")/tool_lib.sh"

# floor_of TABLE FILE: prints the file's floor; fails if it has none.
floor_of()
{
	local table=$1 name=${2##*/} floor stem

	name=${name%.[ch]}
	case $name in
	*_main)
		echo 5
		return
		;;
	esac
	stem=$(sed -E 's/_(scalar|avx2|avx512|pclmul|vpclmul|impl)$//' <<<"$name")
	for name in "$name" "$stem"; do
		floor=$(awk -v name="$name" '$2 == name { print $1 }' "$table")
		if [ -n "$floor" ]; then
			echo "$floor"
			return
		fi
	done
	return 1
}

# includes_of FILE: the names between quotes.
includes_of()
{
	sed -n 's/^[[:space:]]*#[[:space:]]*include[[:space:]]*"\([^"]*\)".*/\1/p' "$1"
}

# may_include FILE OTHER: is there such a file where FILE may look for it?  In
# its own folder, and from shell/ in src/ too.
may_include()
{
	local folder=${1%/*}

	[[ $2 != */* ]] || return 1
	[ -f "$folder/$2" ] && return
	[ "${folder##*/}" = shell ] && [ -f "${folder%shell}src/$2" ]
}

# include_complaints TABLE FILE...
include_complaints()
{
	local table=$1 file name floor other other_floor
	shift

	for file; do
		name=${file##*/}
		if ! floor=$(floor_of "$table" "$name"); then
			echo "$name: has no floor"
			continue
		fi
		for other in $(includes_of "$file"); do
			if ! may_include "$file" "$other"; then
				echo "$name: includes $other, which it must not"
			elif ! other_floor=$(floor_of "$table" "$other"); then
				echo "$name: includes $other, that has no floor"
			elif [ "$other_floor" -gt "$floor" ]; then
				echo "$name, floor $floor: includes $other," \
					"floor $other_floor"
			fi
		done
	done
}

# complaints ROOT TABLE: one line for each thing that is wrong.
complaints()
{
	local root=$1 table=$2 folder name

	for folder in "$root/src" "$root/shell"; do
		compgen -G "$folder/*.[ch]" >/dev/null || continue
		include_complaints "$table" "$folder"/*.[ch]
	done
	# An include would take the one or the other, by the order of -I.
	for name in "$root"/shell/*.[ch]; do
		name=${name##*/}
		[ ! -f "$root/src/$name" ] || echo "$name: in both folders"
	done
	awk '!/^#/ && NF { print $2 }' "$table" | while read -r name; do
		compgen -G "$root/s*/$name.[ch]" >/dev/null ||
			compgen -G "$root/s*/${name}_*.[ch]" >/dev/null ||
			echo "$name: listed, but there is no such file"
	done
	awk '!/^#/ && NF { print $2 }' "$table" | sort | uniq -d |
		sed 's/$/: listed twice/'
	awk '!/^#/ && NF && !/^[0-4] [a-z0-9_]+$/' "$table" |
		sed 's/$/: not a floor and a name/'
}

case_the_tree_keeps_to_its_floors()
{
	local wrong

	wrong=$(complaints "$REPO" "$REPO/tests/floors.txt")
	[ -z "$wrong" ] || fail "$wrong"
}

# The check itself, on a small tree with one thing wrong at a time.

# a_tree: one that has nothing wrong
a_tree()
{
	mkdir src
	touch src/base.h src/log.h
	printf '#include "base.h"\n#include <stdio.h>\n' >src/kernel.h
	printf '#include "kernel.h"\n' >src/kernel_avx2.c
	printf '#include "kernel.h"\n' >src/sort_main.c
	printf '# comment\n\n0 base\n0 log\n1 kernel\n' >floors.txt
}

# expect_complaint TEXT: exactly this
expect_complaint()
{
	complaints . floors.txt >complaints.txt
	[ "$(cat complaints.txt)" = "$1" ] ||
		fail "want '$1', got: $(cat complaints.txt)"
}

case_nothing_wrong()
{
	a_tree
	expect_complaint ""
}

case_sideways()
{
	a_tree
	echo '#include "log.h"' >src/base.h
	expect_complaint ""
}

case_upward()
{
	a_tree
	echo '  #  include "kernel.h"' >src/log.h
	expect_complaint "log.h, floor 0: includes kernel.h, floor 1"
}

case_a_program_included()
{
	a_tree
	echo '#include "sort_main.c"' >src/kernel_avx2.c
	expect_complaint \
		"kernel_avx2.c, floor 1: includes sort_main.c, floor 5"
}

case_unlisted()
{
	a_tree
	touch src/stray.c
	expect_complaint "stray.c: has no floor"
}

case_another_folder()
{
	a_tree
	mkdir shell
	touch shell/remote.h
	echo '1 remote' >>floors.txt
	echo '#include "../shell/remote.h"' >src/kernel_avx2.c
	expect_complaint \
		"kernel_avx2.c: includes ../shell/remote.h, which it must not"
	echo '#include "remote.h"' >src/kernel_avx2.c
	expect_complaint "kernel_avx2.c: includes remote.h, which it must not"
}

case_shell_stands_on_src()
{
	a_tree
	mkdir shell
	touch shell/remote.h
	printf '#include "remote.h"\n#include "kernel.h"\n' >shell/remote.c
	echo '1 remote' >>floors.txt
	expect_complaint ""
	sed -i 's/1 remote/0 remote/' floors.txt
	expect_complaint "remote.c, floor 0: includes kernel.h, floor 1"
}

case_both_folders()
{
	a_tree
	mkdir shell
	touch shell/log.h
	expect_complaint "log.h: in both folders"
}

case_stale()
{
	a_tree
	rm src/log.h
	expect_complaint "log: listed, but there is no such file"
}

case_twice()
{
	a_tree
	echo '0 log' >>floors.txt
	complaints . floors.txt | grep -q 'log: listed twice' ||
		fail "no complaint"
}

check the_tree_keeps_to_its_floors case_the_tree_keeps_to_its_floors
check floors_nothing_wrong case_nothing_wrong
check floors_sideways case_sideways
check floors_upward case_upward
check floors_a_program_included case_a_program_included
check floors_unlisted case_unlisted
check floors_another_folder case_another_folder
check floors_shell_stands_on_src case_shell_stands_on_src
check floors_both_folders case_both_folders
check floors_stale case_stale
check floors_twice case_twice
finish
