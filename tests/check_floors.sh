#!/bin/bash
# check_floors.sh - includes in src/ never go up; see floors.txt
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

# complaints FOLDER TABLE: one line for each thing that is wrong.
complaints()
{
	local folder=$1 table=$2 file name floor other other_floor

	for file in "$folder"/*.[ch]; do
		name=${file##*/}
		if ! floor=$(floor_of "$table" "$name"); then
			echo "$name: has no floor"
			continue
		fi
		for other in $(includes_of "$file"); do
			if [[ $other = */* ]] || ! [ -f "$folder/$other" ]; then
				echo "$name: includes $other, not of this folder"
			elif ! other_floor=$(floor_of "$table" "$other"); then
				echo "$name: includes $other, that has no floor"
			elif [ "$other_floor" -gt "$floor" ]; then
				echo "$name, floor $floor: includes $other," \
					"floor $other_floor"
			fi
		done
	done
	awk '!/^#/ && NF { print $2 }' "$table" | while read -r name; do
		compgen -G "$folder/$name.[ch]" >/dev/null ||
			compgen -G "$folder/${name}_*.[ch]" >/dev/null ||
			echo "$name: listed, but there is no such file"
	done
	awk '!/^#/ && NF { print $2 }' "$table" | sort | uniq -d |
		sed 's/$/: listed twice/'
	awk '!/^#/ && NF && !/^[0-4] [a-z0-9_]+$/' "$table" |
		sed 's/$/: not a floor and a name/'
}

case_src_keeps_to_its_floors()
{
	local wrong

	wrong=$(complaints "$REPO/src" "$REPO/tests/floors.txt")
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
	complaints src floors.txt >complaints.txt
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
	touch shell/base.h
	echo '#include "../shell/base.h"' >src/log.h
	expect_complaint "log.h: includes ../shell/base.h, not of this folder"
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
	complaints src floors.txt | grep -q 'log: listed twice' ||
		fail "no complaint"
}

check src_keeps_to_its_floors case_src_keeps_to_its_floors
check floors_nothing_wrong case_nothing_wrong
check floors_sideways case_sideways
check floors_upward case_upward
check floors_a_program_included case_a_program_included
check floors_unlisted case_unlisted
check floors_another_folder case_another_folder
check floors_stale case_stale
check floors_twice case_twice
finish
