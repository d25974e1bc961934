#!/bin/bash
# check_layers.sh - src/ and shell/ are layered: an include and a call may only
# point to the same folder or to one on a lower layer.  Few files share a
# private state, and no file is long.

# shellcheck disable=SC2317 # cases are called by check
# shellcheck source=tests/programs/tool_lib.sh
. "$(dirname "$0")/tool_lib.sh"

# From the lowest layer up.  Each folder is a layer of its own, so no two of
# them can need each other.
readonly LAYERS="src/base src/record src/kernels src/system src/io src/sort
	src/external src/net src/exchange src/cluster src/probe src/programs"
# Beside the upper ones: the remote shell knows nothing of sorting.
readonly SHELL_LAYERS="src/base src/system src/net shell"

# upward < "FOLDER OTHER WHAT" lines: prints those that the layers do not allow
upward()
{
	awk -v layers="$LAYERS" -v of_shell="$SHELL_LAYERS" '
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
		{ print }'
}

# include_lines ROOT: "FILE HEADER" for each include of ours
include_lines()
{
	(cd "$1" && grep -o '^ *# *include "[^"]*"' src/*/*.[ch] shell/*.[ch]) |
		sed -E 's/:.*"(.*)"/ \1/'
}

# includes ROOT: "FOLDER OTHER FILE" for each include of ours
includes()
{
	include_lines "$1" | awk '{
		file = $1; sub("/[^/]*$", "", $1)
		sub("/?[^/]*$", "", $2)
		if ($2 != "shell")
			$2 = "src/" $2
		print $1, $2, file
	}'
}

# sharers ROOT: "COUNT HEADER" for each header NAME_state.h: the .c files that
# include it, also by way of other headers.  A header's name is in one folder
# only (case_names), so the folder is not looked at.
sharers()
{
	include_lines "$1" | awk '
		function reach(header, files, n, i) {
			n = split(by[header], files)
			for (i = 1; i <= n; i++) {
				if (files[i] in seen)
					continue
				seen[files[i]] = 1
				if (files[i] ~ /\.c$/)
					count++
				else
					reach(files[i])
			}
		}
		{
			sub(".*/", "", $1); sub(".*/", "", $2)
			by[$2] = by[$2] " " $1
		}
		END {
			for (header in by) {
				if (header !~ /_state\.h$/)
					continue
				split("", seen); count = 0
				reach(header)
				print count, header
			}
		}'
}

# lengths ROOT: "LINES FILE" for each .c file
lengths()
{
	(cd "$1" && wc -l src/*/*.c shell/*.c) |
		awk '$2 != "total" { print $1, $2 }'
}

# objects ROOT BUILD: those in BUILD whose source is still in ROOT
objects()
{
	local object

	for object in "$2"/src/*/*.o "$2"/shell/*.o; do
		object=${object#"$2"/}
		[ ! -f "$1/${object%.o}.c" ] || echo "$object"
	done
}

# calls ROOT BUILD: "FOLDER OTHER SYMBOL" for each name that an object of src/
# or shell/ in FOLDER takes from another folder's
calls()
{
	objects "$1" "$2" | (cd "$2" && xargs nm -A -g -P) |
		sed -E 's,/[^/]*\.o: , ,' | awk '
		$3 == "U" { wants[$1 " " $2] = 1; next }
		$3 != "w" { where[$2] = $1 }
		END {
			for (want in wants) {
				split(want, part, " ")
				if (part[2] in where && part[1] != where[part[2]])
					print part[1], where[part[2]], part[2]
			}
		}'
}

case_includes()
{
	includes "$REPO" >includes.txt
	[ "$(wc -l <includes.txt)" -gt 100 ] || fail "no includes were found"
	upward <includes.txt >wrong.txt
	[ ! -s wrong.txt ] || fail "upward: $(cat wrong.txt)"
}

case_calls()
{
	calls "$REPO" "$BUILD/${VARIANT:-dyn}" >calls.txt
	[ "$(wc -l <calls.txt)" -gt 100 ] || fail "no calls were found"
	upward <calls.txt >wrong.txt
	[ ! -s wrong.txt ] || fail "upward: $(cat wrong.txt)"
}

# Objects and tests are found by their file's name alone.
case_names()
{
	(cd "$REPO" && printf '%s\n' src/*/*.[ch] shell/*.[ch]) |
		sed 's,.*/,,' | sort | uniq -d >wrong.txt
	[ ! -s wrong.txt ] || fail "in two folders: $(cat wrong.txt)"
}

# When many files share a private state, a reader cannot tell which of them
# writes a field, and when.  Five files are enough for the largest part.
case_private_state()
{
	sharers "$REPO" >sharers.txt
	[ -s sharers.txt ] || fail "no private state was found"
	awk '$1 > 5' sharers.txt >wrong.txt
	[ ! -s wrong.txt ] || fail "shared by more than 5: $(cat wrong.txt)"
}

# A file is about one thing, and can be read in one sitting.
case_lengths()
{
	lengths "$REPO" >lengths.txt
	[ "$(wc -l <lengths.txt)" -gt 100 ] || fail "no files were found"
	awk '$1 > 600' lengths.txt >wrong.txt
	[ ! -s wrong.txt ] || fail "above 600 lines: $(cat wrong.txt)"
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
	mkdir -p src/base src/io src/cluster shell
	echo '#include "base/log.h"' >src/io/file.c
	echo '#include "shell/job.h"' >shell/job.c
	includes . | upward >wrong.txt
	[ ! -s wrong.txt ] || fail "complains of $(cat wrong.txt)"
	echo '#include "io/file.h"' >src/base/log.c
	echo '#include "shell/job.h"' >src/cluster/send.c
	echo '#include "cluster/send.h"' >>shell/job.c
	echo '#include "file.h"' >>src/io/file.c
	includes . | upward | sort >wrong.txt
	diff - wrong.txt <<-END || fail "see above"
		shell src/cluster shell/job.c
		src/base src/io src/base/log.c
		src/cluster shell src/cluster/send.c
		src/io src/ src/io/file.c
	END
	echo '#include "base/log_state.h"' >src/base/log.c
	echo '#include "log_state.h"' >src/base/log.h
	echo '#include "base/log.h"' >src/io/other.c
	[ "$(sharers .)" = "3 log_state.h" ] || fail "found $(sharers .)"
	[ "$(lengths . | sort -n | tail -n 1)" = "2 src/io/file.c" ] ||
		fail "found $(lengths .)"
	echo 'void low(void), high(void); void low(void) { high(); }' >low.c
	echo 'void high(void); void high(void) {}' >high.c
	"${CC:-cc}" -c low.c -o src/base/low.o
	"${CC:-cc}" -c high.c -o src/io/high.o
	touch src/base/low.c src/io/high.c shell/other.c
	cp src/io/high.o shell/other.o
	objcopy --redefine-sym high=other shell/other.o
	calls . . | upward >wrong.txt
	[ "$(cat wrong.txt)" = "src/base src/io high" ] ||
		fail "found $(cat wrong.txt)"
}

check layers_includes case_includes
check layers_calls case_calls
check layers_names case_names
check layers_private_state case_private_state
check layers_lengths case_lengths
check layers_drawing case_drawing
check layers_wrong_ones_are_found case_wrong_ones_are_found
finish
