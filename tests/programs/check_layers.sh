#!/bin/bash
# check_layers.sh - src/ and shell/ are layered: an include and a call may only
# point to the same folder or to one on a lower layer.  The folders of a layer,
# its rooms, form no circle, nor do the files of a folder.  What a file gives to
# others is taken by one.

# shellcheck disable=SC2317 # cases are called by check
# shellcheck source=tests/programs/tool_lib.sh
. "$(dirname "$0")/tool_lib.sh"

# From the lowest layer up.  Each folder is a layer of its own, so no two of
# them can need each other.
readonly LAYERS="src/base src/record src/kernels src/system src/io src/sort
	src/external src/net src/exchange src/cluster src/simulate src/probe
	src/programs"
# Beside the upper ones: the remote shell knows nothing of sorting.
readonly SHELL_LAYERS="src/base src/system src/net shell"

# What tests alone take from a file, since the programs cannot be brought to it.
readonly TEST_SEAMS="
	cpu_level_of                  other CPUs than this one
	permissions_decode            access lists that no kernel here gives
	permissions_lose_group        a group that root could have
	permissions_mode              access lists on a file system without them
	flow_bins_add                 times of any kind
	noise_probe_watch             a clock with known gaps
	codec_pays                    disks and CPUs of any speed
	external_request_memory_min   sorts in the least memory
	record_counts_copy            more records than a test can have
	roles_options_read            the text of a file, for the fuzzer
	cluster_run_in                ranks whose exchange is memory
	cluster_free                  the same
	virtual_network_clear         one world for many jobs, of the fuzzer"

# A module is a .c file with its header, named without the suffix.

# layers: of "MODULE OTHER" lines, "LAYER LAYER MODULE OTHER"
layers()
{
	awk '
		function layer(path, part) {
			split(path, part, "/")
			return part[1] == "src" ? "src/" part[2] : part[1]
		}
		{ print layer($1), layer($2), $1, $2 }'
}

# upward < "MODULE OTHER" lines: prints those that the layers do not allow
upward()
{
	layers | awk -v layers="$LAYERS" -v of_shell="$SHELL_LAYERS" '
		BEGIN {
			n = split(layers, name)
			for (i = 1; i <= n; i++)
				level[name[i]] = i
			n = split(of_shell, name)
			for (i = 1; i <= n; i++)
				shell[name[i]] = i
		}
		$1 == "shell" && $2 in shell { next }
		$2 in level && level[$2] <= level[$1] { next }
		{ print $3, $4 }'
}

# rooms: of "MODULE OTHER" lines, "ROOM ROOM" for two rooms of one layer
rooms()
{
	layers | awk '
		{ sub("/[^/]*$", "", $3); sub("/[^/]*$", "", $4) }
		$1 == $2 && $3 != $4 { print $3, $4 }' | sort -u
}

# roommates: of "MODULE OTHER" lines, those within one folder
roommates()
{
	awk '
		{ from = $1; to = $2 }
		{ sub("/[^/]*$", "", from); sub("/[^/]*$", "", to) }
		from == to'
}

# circles < "FROM TO" lines: prints what stands in a circle
circles()
{
	tsort 2>&1 >/dev/null | sed 's/^tsort: //' | grep -v '^-: ' || true
}

# includes ROOT: "MODULE OTHER" for each include of ours
includes()
{
	(cd "$1" && find src shell -name '*.[ch]' -print0 |
		xargs -0 grep -Ho '^ *# *include "[^"]*"') |
		sed -E 's/\.[ch]:.*"(.*)\.h"/ \1/' | awk '
		{ print $1, $2 ~ /^shell\// ? $2 : "src/" $2 }'
}

# objects ROOT BUILD: those in BUILD whose source is still in ROOT
objects()
{
	local object

	(cd "$2" && find src shell -name '*.o') | while read -r object; do
		[ ! -f "$1/${object%.o}.c" ] || echo "$object"
	done
}

# calls ROOT BUILD: "MODULE OTHER" for each name that an object takes from
# another one's
calls()
{
	objects "$1" "$2" | (cd "$2" && xargs nm -A -g -P) |
		sed -E 's,\.o: , ,' | awk '
		$3 == "U" { wants[$1 " " $2] = 1; next }
		$3 != "w" { where[$2] = $1 }
		END {
			for (want in wants) {
				split(want, part, " ")
				if (part[2] in where && part[1] != where[part[2]])
					print part[1], where[part[2]]
			}
		}'
}

# unbuilt ROOT BUILD: sources without an object in BUILD, such as those that
# mpicc compiles
unbuilt()
{
	(cd "$1" && find src shell -name '*.c') | while read -r source; do
		[ -f "$2/${source%.c}.o" ] || echo "$1/$source"
	done
}

# unshared ROOT BUILD: "MODULE NAME" for each name that an object gives and no
# other one takes
unshared()
{
	objects "$1" "$2" | (cd "$2" && xargs nm -A -g -P) |
		sed -E 's,\.o: , ,' | awk '
		$3 == "U" { taken[$2] = 1; next }
		$3 != "w" && $2 !~ /^(main$|_)/ { gives[$2] = $1 }
		END {
			for (name in gives)
				if (!(name in taken))
					print gives[name], name
		}' | while read -r module name; do
		unbuilt "$1" "$2" | xargs -r grep -qw "$name" ||
			echo "$module $name"
	done
}

# expect_none WHAT < lines: there are none
expect_none()
{
	cat >wrong.txt
	[ ! -s wrong.txt ] || fail "$1: $(cat wrong.txt)"
}

# expect_edges FILE: includes or calls were found at all
expect_edges()
{
	[ "$(wc -l <"$1")" -gt 100 ] || fail "too few in $1"
}

case_includes()
{
	includes "$REPO" >includes.txt
	expect_edges includes.txt
	upward <includes.txt | expect_none upward
}

case_calls()
{
	calls "$REPO" "$BUILD/${VARIANT:-dyn}" >calls.txt
	expect_edges calls.txt
	upward <calls.txt | expect_none upward
}

# A reader can begin at the lowest room of a layer.
case_circles()
{
	includes "$REPO" >edges.txt
	calls "$REPO" "$BUILD/${VARIANT:-dyn}" >>edges.txt
	expect_edges edges.txt
	rooms <edges.txt | circles | expect_none "a circle of rooms"
}

# Nor does a file call one that calls it.
case_calls_go_down()
{
	calls "$REPO" "$BUILD/${VARIANT:-dyn}" >calls.txt
	expect_edges calls.txt
	roommates <calls.txt | circles | expect_none "a circle of files"
}

# What only its own file needs is static, what only tests need goes, or they take
# another entry.
case_all_is_taken()
{
	awk 'NF { print $1 }' <<<"$TEST_SEAMS" >seams.txt
	unshared "$REPO" "$BUILD/${VARIANT:-dyn}" | sort >unshared.txt
	cut -d ' ' -f 2 unshared.txt | sort | comm -3 - <(sort seams.txt) |
		tr -d '\t' >odd.txt
	{ grep -hwFf odd.txt unshared.txt seams.txt || true; } |
		expect_none "taken by no other file, or no seam any more"
}

# Objects and tests are found by their file's name alone.
case_names()
{
	(cd "$REPO" && find src shell -name '*.[ch]') |
		sed 's,.*/,,' | sort | uniq -d | expect_none "in two folders"
}

# drawn_layers PAGE: the folders of its drawing, from the lowest up, in one line
drawn_layers()
{
	sed -n 's,^ *\(src/[a-z]*\)/ .*,\1,p' "$1" | tac | paste -s -d ' '
}

# What src/README.md draws is what is enforced here.
case_drawing()
{
	[ "$(drawn_layers "$REPO/src/README.md")" = \
		"$(tr -s '\n\t ' ' ' <<<"$LAYERS" | sed 's/ $//')" ] ||
		fail "drawn: $(drawn_layers "$REPO/src/README.md")"
}

# The checks themselves, on a small tree with one thing wrong at a time.
case_wrong_ones_are_found()
{
	mkdir -p src/base src/io/input src/io/output src/cluster shell
	echo '#include "base/log.h"' >src/io/file.c
	echo '#include "io/file.h"' >src/io/input/input.c
	echo '#include "shell/job.h"' >shell/job.c
	includes . | upward | expect_none "not wrong"
	includes . | rooms | circles | expect_none "no circle"
	echo '#include "io/file.h"' >src/base/log.c
	echo '#include "shell/job.h"' >src/cluster/send.c
	echo '#include "cluster/send.h"' >>shell/job.c
	echo '#include "file.h"' >>src/io/file.c
	includes . | upward | sort >wrong.txt
	diff - wrong.txt <<-END || fail "see above"
		shell/job src/cluster/send
		src/base/log src/io/file
		src/cluster/send shell/job
		src/io/file src/file
	END
	echo '#include "io/output/output.h"' >>src/io/input/input.c
	echo '#include "io/input/input.h"' >src/io/output/output.h
	includes . | rooms | circles | sort >wrong.txt
	diff - wrong.txt <<-END || fail "see above"
		src/io/input
		src/io/output
	END
	echo 'void low(void), high(void); void low(void) { high(); }' >low.c
	echo 'void high(void); void high(void) {}' >high.c
	"${CC:-cc}" -c low.c -o src/base/low.o
	"${CC:-cc}" -c high.c -o src/io/input/high.o
	touch src/base/low.c src/io/input/high.c shell/other.c
	cp src/io/input/high.o shell/other.o
	objcopy --redefine-sym high=other shell/other.o
	calls . . | upward >wrong.txt
	[ "$(cat wrong.txt)" = "src/base/low src/io/input/high" ] ||
		fail "found $(cat wrong.txt)"
	unshared . . | sort >wrong.txt
	diff - wrong.txt <<-END || fail "see above"
		shell/other other
		src/base/low low
	END
	echo 'void mpi(void) { low(); }' >src/base/mpi.c
	[ "$(unshared . .)" = "shell/other other" ] ||
		fail "found $(unshared . .)"
	calls . . | roommates | circles | expect_none "no circle"
	cp high.c src/base/high.c
	echo 'void low(void); void high(void) { low(); }' >high.c
	"${CC:-cc}" -c high.c -o src/base/high.o
	rm src/io/input/high.o
	calls . . | roommates | circles | sort >wrong.txt
	diff - wrong.txt <<-END || fail "see above"
		src/base/high
		src/base/low
	END
}

check layers_includes case_includes
check layers_calls case_calls
check layers_circles case_circles
check layers_all_is_taken case_all_is_taken
check layers_calls_go_down case_calls_go_down
check layers_names case_names
check layers_drawing case_drawing
check layers_wrong_ones_are_found case_wrong_ones_are_found
finish
