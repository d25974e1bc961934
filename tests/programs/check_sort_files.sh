#!/bin/bash
# check_sort_files.sh - what becomes of the rights, links and limits of files
#
# An output takes the place of a file with owner, group and access control list
# and never gives a right that was not there; symbolic links of other users are
# not followed in folders that all may write; a file whose size is not known, a
# folder where nothing can be linked and a process without descriptors are found
# early and named.

# shellcheck disable=SC2317 # cases are called by check
. "$(dirname "$0")/sort_lib.sh"

# Users that no machine has: alice and mallory; groups: alice's own, a project
# that she is a member of, and one that she is not.
readonly ALICE=30001 MALLORY=30002
readonly OWN=30001 PROJECT=30003 OTHERS=30004
AS_ALICE=(setpriv "--reuid=$ALICE" "--regid=$OWN" "--groups=$PROJECT" --)
AS_MALLORY=(setpriv "--reuid=$MALLORY" "--regid=$MALLORY" --clear-groups --)

# as_alice: from here on she runs blinksort.  The programs of the build may lie
# in a folder that she cannot enter.
as_alice()
{
	chmod 755 "$SCRATCH"
	cp "$BIN/blinksort" "$SCRATCH/blinksort"
	BLINKSORT=("${AS_ALICE[@]}" "$SCRATCH/blinksort")
}

# make_old OWNER GROUP MODE: the file "out", to be replaced; and "in", "want"
make_old()
{
	rm -f out
	echo old >out
	chown "$1:$2" out
	chmod "$3" out
	[ -e in ] || make_shape uniform 100 1 >in
	chmod 644 in
	sort_reference in -o want
}

# expect_rights OWNER GROUP MODE
expect_rights()
{
	expect_same out want
	[ "$(stat -c '%u %g %a' out)" = "$*" ] ||
		fail "out is $(stat -c '%u %g %a' out), not $*"
}

# acl set FILE ENTRY...   entries such as u::6, u:30002:6, g::0, m::6, o::0
# acl get FILE            prints them in this form, "none" if there is none
acl()
{
	python3 - "$@" <<-'END'
		import errno, os, struct, sys
		NAME = 'system.posix_acl_access'
		TAGS = {('u', False): 1, ('u', True): 2, ('g', False): 4,
		        ('g', True): 8, ('m', False): 16, ('o', False): 32}
		if sys.argv[1] == 'set':
		    raw = struct.pack('<I', 2)
		    for entry in sys.argv[3:]:
		        tag, name, bits = entry.split(':')
		        raw += struct.pack('<HHI', TAGS[tag, name != ''],
		                           int(bits), int(name or 0xffffffff))
		    os.setxattr(sys.argv[2], NAME, raw)
		    sys.exit()
		try:
		    raw = os.getxattr(sys.argv[2], NAME)
		except OSError as error:
		    if error.errno not in (errno.ENODATA, errno.EOPNOTSUPP):
		        raise
		    sys.exit(print('none'))
		texts = {code: tag for tag, code in TAGS.items()}
		words = []
		for tag, bits, name in struct.iter_unpack('<HHI', raw[4:]):
		    letter, named = texts[tag]
		    words.append(f'{letter}:{name if named else ""}:{bits}')
		print(*words)
	END
}

# --- owner, group and access control list -------------------------------------

case_root_keeps_owner()
{
	for mode in 640 600 660 664 604 444; do
		make_old "$ALICE" "$PROJECT" "$mode"
		expect_sorted in -o out
		expect_rights "$ALICE" "$PROJECT" "$mode"
	done
}

case_group_is_kept()
{
	as_alice
	chmod 777 .
	make_old "$ALICE" "$PROJECT" 660
	expect_sorted in -o out
	expect_rights "$ALICE" "$PROJECT" 660
	# In place.
	chown "$ALICE:$PROJECT" in
	chmod 660 in
	expect_sorted in -o in
	[ "$(stat -c '%u %g %a' in)" = "$ALICE $PROJECT 660" ] ||
		fail "in is $(stat -c '%u %g %a' in)"
	# The owner becomes another, the group need not.
	make_old "$MALLORY" "$PROJECT" 664
	expect_sorted in -o out
	expect_rights "$ALICE" "$PROJECT" 664
}

# Alice's own group gets the file: its members may do what others might, and
# no other may do more than the old group.
case_group_is_lost()
{
	local modes=(660 600 664 644 640 600 604 600 646 644 666 666)
	local i

	as_alice
	chmod 777 .
	for ((i = 0; i < ${#modes[@]}; i += 2)); do
		make_old "$ALICE" "$OTHERS" "${modes[i]}"
		expect_sorted in -o out
		expect_rights "$ALICE" "$OWN" "${modes[i + 1]}"
	done
}

case_acl_is_kept()
{
	local entries="u::6 u:$MALLORY:6 g::0 m::6 o::0"

	as_alice
	chmod 777 .
	make_old "$ALICE" "$PROJECT" 600
	# shellcheck disable=SC2086 # words
	acl set out $entries
	expect_sorted in -o out
	expect_rights "$ALICE" "$PROJECT" 660
	[ "$(acl get out)" = "$entries" ] || fail "now $(acl get out)"
	BLINKSORT=("$BIN/blinksort")
	expect_sorted in -o out
	[ "$(acl get out)" = "$entries" ] || fail "of root $(acl get out)"
}

# The group is lost: mallory's entry stays, and the group's own says nothing
# that alice's group would gain from.
case_acl_without_its_group()
{
	as_alice
	chmod 777 .
	make_old "$ALICE" "$OTHERS" 600
	acl set out u::6 "u:$MALLORY:6" g::6 m::6 o::4
	expect_sorted in -o out
	expect_rights "$ALICE" "$OWN" 664
	[ "$(acl get out)" = "u::6 u:$MALLORY:6 g::4 m::6 o::4" ] ||
		fail "now $(acl get out)"
}

# gather: two ranks of this machine write one file; each has all records, under a
# name of its own
gather()
{
	local rank pids=()

	for rank in 0 1; do
		ln -f in "in.$rank"
		"$BIN/blinksort" --nodes=127.0.0.2,127.0.0.3 --rank="$rank" \
			--deadline=30 "in.$rank" --gather=out \
			>"said.$rank" 2>&1 </dev/null &
		pids+=($!)
	done
	wait "${pids[0]}" || fail "rank 0: $(cat said.0)"
	wait "${pids[1]}" || fail "rank 1: $(cat said.1)"
}

# What a new file inherits from its folder is not what the old one had.
case_acl_of_the_folder()
{
	make_old 0 0 640
	python3 - <<-'END'
		import os, struct
		raw = struct.pack('<I', 2)
		for entry in ((1, 7, -1), (2, 7, 30002), (4, 7, -1),
		              (16, 7, -1), (32, 0, -1)):
		    raw += struct.pack('<HHi', *entry)
		os.setxattr('.', 'system.posix_acl_default', raw)
	END
	expect_sorted in -o out
	expect_rights 0 0 640
	[ "$(acl get out)" = none ] || fail "old has $(acl get out)"
	expect_sorted in -o new
	echo >made
	[ "$(acl get new)" = "$(acl get made)" ] || fail "new: $(acl get new)"
	# A file that had a hidden name first: the same.
	rm out
	gather
	[ "$(acl get out)" = "$(acl get made)" ] ||
		fail "gathered: $(acl get out)"
	[ "$(stat -c %a out)" = "$(stat -c %a made)" ] ||
		fail "gathered: $(stat -c %a out)"
}

case_gathered()
{
	make_old "$ALICE" "$PROJECT" 640
	acl set out u::6 "u:$MALLORY:4" g::0 m::4 o::0
	sort_reference in in -o want
	gather
	expect_rights "$ALICE" "$PROJECT" 640
	[ "$(acl get out)" = "u::6 u:$MALLORY:4 g::0 m::4 o::0" ] ||
		fail "now $(acl get out)"
	rm out
	umask 027
	gather
	expect_rights 0 0 640
}

# check_acl NAME COMMAND...
check_acl()
{
	: >"$SCRATCH/acl"
	if acl set "$SCRATCH/acl" u::6 u:1:6 g::0 m::6 o::0 2>/dev/null; then
		check_able root,be_nobody "$@"
	else
		skip "$1" "no access control lists in /tmp"
	fi
	rm "$SCRATCH/acl"
}

check_able root,be_nobody root_keeps_owner case_root_keeps_owner
check_able root,be_nobody group_is_kept case_group_is_kept
check_able root,be_nobody group_is_lost case_group_is_lost
check_acl acl_is_kept case_acl_is_kept
check_acl acl_without_its_group case_acl_without_its_group
check_acl acl_of_the_folder case_acl_of_the_folder
check_acl gathered case_gathered

# --- what cannot be replaced -------------------------------------------------

# expect_refused_early PATTERN OUT: all programs that write OUT refuse it before
# they have the first byte of their input, and leave all as it was.
expect_refused_early()
{
	local before command status

	# Opened for writing, too, so that its end never comes.
	[ -p never ] || mkfifo never
	before=$(folder_state .)
	for command in "blinksort - -o $2" "blinksort in - -o $2" \
		"blinksort --nodes=127.0.0.2 --rank=0 in --gather=$2" \
		"blinkgen 10 $2" "blinkval -o $2 in"; do
		status=0
		# shellcheck disable=SC2086 # words
		timeout 100 "${AS[@]}" "$SCRATCH/"$command <>never >"$STDOUT" \
			2>"$STDERR" || status=$?
		[ "$status" = 3 ] || fail "status $status: $command"
		expect_one_line "$STDERR"
		expect_match ": $2: .*$1" "$STDERR"
	done
	[ "$before" = "$(folder_state .)" ] ||
		fail "changed: $(diff <(echo "$before") <(folder_state .))"
}

# make_programs: copies that any user may run, $AS runs them
make_programs()
{
	AS=(env)
	chmod 755 "$SCRATCH" .
	cp "$BIN/blinksort" "$BIN/blinkgen" "$BIN/blinkval" "$SCRATCH"
	make_shape uniform 100 1 >in
	chmod 644 in
}

case_mount_point()
{
	make_programs
	: >from
	: >out
	# shellcheck disable=SC2016 # of the inner shell
	AS=(unshare --mount --map-root-user bash -c
		'mount --bind from out && exec "$@"' bash)
	expect_refused_early "a mount point: name a file" out
}

case_append_only()
{
	make_programs
	mkdir folder
	: >folder/out
	: >out
	at_end 'chattr -ai out folder'
	chattr +a out folder
	expect_refused_early "append-only" out
	expect_refused_early "folder is append-only" folder/out
	# A new name is no change there.
	expect_sorted in -o folder/new
	# But a hidden one would be.
	if ! cannot_trace; then
		BLINKSORT=(strace -f -o "$SCRATCH/strace" -e trace=linkat
			-e inject=linkat:error=EPERM "$BIN/blinksort")
		expect_refused 3 "folder is append-only" in -o folder/newer
	fi
	chattr -a out folder
	chattr +i out folder
	expect_refused_early "immutable" out
	expect_refused_early "immutable" folder/out
}

# Neither of them is alice's.
case_sticky_folder()
{
	make_programs
	mkdir folder
	: >folder/out
	chmod 666 folder/out
	chown "$MALLORY" folder/out
	chgrp "$OWN" folder
	chmod 1775 folder
	# Root's right is enough.
	BLINKSORT=("$SCRATCH/blinksort")
	expect_sorted in -o folder/out
	# blinkval replaces summaries and empty files only.
	: >folder/out
	AS=("${AS_ALICE[@]}")
	expect_refused_early "another user, in a sticky folder" folder/out
	BLINKSORT=("${AS_ALICE[@]}" "$SCRATCH/blinksort")
	chown "$ALICE" folder
	expect_sorted in -o folder/out
	chown 0 folder
	expect_sorted in -o folder/out
}

# What mallory makes in a folder such as /tmp, before or while root sorts, gets
# nothing of it, and neither does she.
case_shared_folder()
{
	make_programs
	umask 077
	mkdir folder
	chmod 1777 folder
	"${AS_MALLORY[@]}" sh -c 'umask 0; : >folder/out'
	expect_refused_early "another user, in a folder" folder/out
	[ "$(stat -c '%u %a' folder/out)" = "$MALLORY 666" ] ||
		fail "$(stat -c '%u %a' folder/out)"
	rm folder/out
	take_the_name
	expect_match "another user, in a folder that all may write" "$STDERR"
	# Mallory would choose whose mode root's output gets.
	(umask 0 && : >open)
	"${AS_MALLORY[@]}" ln open folder/out
	expect_refused_early "it has several names" folder/out
	rm folder/out open
	# Others may write this one, and mallory owns what she puts there.
	chmod 777 folder
	take_the_name
	expect_match "another user has made a file there meanwhile" "$STDERR"
	# The owner of what stood there at the beginning may do so.
	"${AS_MALLORY[@]}" sh -c 'umask 0; : >folder/out'
	take_the_name
	[ "$status" = 0 ] || fail "status $status: $(cat "$STDERR")"
}

# take_the_name: root sorts what comes by a pipe; when that is half read, mallory
# puts a file under the output's name.
take_the_name()
{
	make_shape uniform 200000 1 >large
	status=0
	{
		# It does not fit into the pipe.
		cat large
		"${AS_MALLORY[@]}" sh -c 'umask 0
			: >folder/new && mv -f folder/new folder/out' \
			2>"$SCRATCH/mallory"
	} | "$SCRATCH/blinksort" - -o folder/out 2>"$STDERR" || status=$?
	expect_empty "$SCRATCH/mallory"
	if [ "$status" != 0 ]; then
		[ "$status" = 3 ] || fail "status $status: $(cat "$STDERR")"
		expect_message
		expect_folder folder out
		expect_empty folder/out
		rm folder/out
	fi
}

# A folder in which names can be made but not taken away: that is found only at
# the end, and what stays is named.
case_name_stays()
{
	local hidden

	make_shape uniform 100 1 >in
	sort_reference in -o want
	echo old >out
	for hidden in "" ",linkat"; do
		BLINKSORT=(strace -f -o "$SCRATCH/strace"
			-e "trace=renameat,unlinkat$hidden"
			-e "inject=renameat,unlinkat$hidden:error=EPERM"
			"$BIN/blinksort")
		run_tested in -o out
		[ "$status" = 3 ] || fail "status $status"
		expect_message
		expect_match "cannot remove \.out\.blinksort-[0-9]* " "$STDERR"
		expect_same .out.blinksort-* want
		rm .out.blinksort-*
		expect_folder . in out want
	done
}

# has_attributes: files can be append-only here
has_attributes()
{
	local status=0

	: >"$SCRATCH/attributes"
	try chattr +a "$SCRATCH/attributes" || status=1
	try chattr -a "$SCRATCH/attributes" || true
	rm -f "$SCRATCH/attributes"
	return $status
}

# cannot_trace: why in $why, if so
cannot_trace()
{
	why="a sanitizer looks for leaks by ptrace itself"
	[ -n "$SANITIZED" ] || cannot trace
}

check_able mount_apart mount_point case_mount_point
if has_attributes; then
	check append_only case_append_only
else
	skip append_only "no file can be append-only here"
fi
check_able root,be_nobody sticky_folder case_sticky_folder
check_able root,be_nobody shared_folder case_shared_folder
if cannot_trace; then
	skip name_stays "$why"
else
	check name_stays case_name_stays
fi

# --- symbolic links -----------------------------------------------------------

# expect_not_followed: alice's sort to shared/out is refused.
expect_not_followed()
{
	expect_refused 3 'shared/out: .*Permission denied' in -o shared/out
}

# Mallory's links are not followed by alice in a sticky folder that all may
# write, whether there is something at their end or not; the same link is
# followed where mallory alone could have put it, or in her own folder.
case_link_of_another_user()
{
	as_alice
	chmod 755 .
	make_old "$ALICE" "$OWN" 644
	mkdir folder shared
	chown "$ALICE" folder
	mv out folder/out
	chmod 1777 shared
	"${AS_MALLORY[@]}" ln -s "$PWD/folder/out" shared/out
	expect_not_followed
	"${AS_MALLORY[@]}" ln -sfn ../folder/new shared/out
	expect_not_followed
	# By way of a link of her own.
	"${AS_ALICE[@]}" ln -s ../shared/out folder/link
	expect_refused 3 'folder/link: .*Permission denied' in -o folder/link
	chown "$MALLORY" shared
	if [ "$(cat /proc/sys/fs/protected_symlinks)" != 1 ]; then
		expect_sorted in -o folder/link
		expect_same folder/new want
		rm folder/new
	fi
	expect_sorted in -o shared/out
	expect_same folder/new want
	chown 0 shared
	expect_not_followed
	chmod 0777 shared
	expect_sorted in -o shared/out
	chmod 1777 shared
	chown -h "$ALICE" shared/out
	expect_sorted in -o shared/out
	expect_folder folder link new out
}

# What the kernel refuses, as it does where fs.protected_symlinks is 1.
case_link_refused_by_the_kernel()
{
	make_shape uniform 100 1 >in
	echo old >target
	ln -s target out
	BLINKSORT=(strace -f -o "$SCRATCH/strace" \
		-e "inject=stat:error=EACCES:when=1+" "${BLINKSORT[@]}")
	expect_refused 3 'out: .*Permission denied' in -o out
}

# calls_stat: the program asks for a file's state by stat(2), as musl does on
# x86-64, and not by one of the newer calls
calls_stat()
{
	ln -s sorted "$SCRATCH/link"
	strace -f -o "$SCRATCH/strace" -e trace=stat "$BIN/blinksort" \
		--record-size=1 "$REPO/README.md" -o "$SCRATCH/link"
	rm "$SCRATCH/link" "$SCRATCH/sorted"
	grep -q 'stat(.*link' "$SCRATCH/strace"
}

check_able root,be_nobody link_of_another_user case_link_of_another_user
if cannot_trace; then
	skip link_refused_by_the_kernel "$why"
elif ! calls_stat; then
	skip link_refused_by_the_kernel "the program has another call for it"
else
	check link_refused_by_the_kernel case_link_refused_by_the_kernel
fi

# --- files of unknown size ----------------------------------------------------

case_size_unknown()
{
	local io

	make_shape uniform 100 1 >in
	for io in "${IO_MODES[@]}"; do
		expect_refused 3 '/proc/self/maps: its size is unknown' \
			/proc/self/maps -o out --io="$io"
		expect_refused 3 '' in /proc/self/maps in -o out --io="$io"
		expect_refused 3 'its size is unknown' \
			--nodes=127.0.0.2,127.0.0.3 --rank=0 --deadline=1 \
			/proc/self/maps -o out --io="$io"
	done
	expect_status 3 "$BIN/blinkval" /proc/self/maps 2>"$STDERR"
	expect_one_line "$STDERR"
	expect_match '/proc/self/maps: its size is unknown' "$STDERR"
	# An empty file has a size.
	: >empty
	expect_sorted empty -o out
	expect_empty out
}

check size_unknown case_size_unknown

# --- folders in which nothing can be linked ------------------------------------

# Neither way to link a file without a name is there: its name is a hidden one
# from the beginning.
case_no_links()
{
	local error strace=$SCRATCH/strace

	umask 027
	make_shape uniform 1000 1 >in
	sort_reference in -o want
	for error in EPERM ENOSYS EOPNOTSUPP; do
		rm -f out
		BLINKSORT=(strace -f -o "$strace" -e "trace=linkat,renameat" \
			-e "inject=linkat:error=$error" "$BIN/blinksort")
		expect_sorted in -o out
		expect_same out want
		[ "$(stat -c %a out)" = 640 ] || fail "$(stat -c %a out)"
		expect_match 'renameat\(.*"\.out\.blinksort-' "$strace"
		echo old >out
		chmod 600 out
		expect_sorted in -o out --sync
		expect_same out want
		[ "$(stat -c %a out)" = 600 ] || fail "$(stat -c %a out)"
		# Found before anything was sorted.
		expect_refused 3 '' in -o out --trace missing/trace
		expect_folder . in out want
	done
}

if cannot_trace; then
	skip no_links "$why"
elif ! has_tmpfile "$SCRATCH"; then
	skip no_links "no files without a name in /tmp"
else
	check no_links case_no_links
fi

# --- descriptors --------------------------------------------------------------

# With any number of descriptors it either works, or says what is missing; and
# leaves nothing.
case_descriptors()
{
	local limit n worked=

	make_shape uniform 1000 1 >in
	sort_reference in -o want
	for ((n = 3; n < 20; n++)); do
		limit="-n $n"
		run_tested in -o out --trace trace --sync
		if [ "$status" = 0 ]; then
			expect_same out want
			rm out trace
			worked=1
		else
			[ "$status" = 5 ] || fail "$n: status $status: $(
				cat "$STDERR")"
			expect_message
		fi
		expect_folder . in want
	done
	[ -n "$worked" ] || fail "19 descriptors are not enough"
}

# expect_few PROGRAM ARGUMENT...: the same of another program
expect_few()
{
	local n status worked=

	for ((n = 3; n < 12; n++)); do
		status=0
		(
			ulimit -n "$n"
			exec "$BIN/$1" "${@:2}"
		) >"$STDOUT" 2>"$STDERR" </dev/null || status=$?
		case $status in
		0) worked=1 ;;
		5) expect_one_line "$STDERR" ;;
		*) fail "$1, $n: status $status: $(cat "$STDERR")" ;;
		esac
	done
	[ -n "$worked" ] || fail "11 descriptors are not enough for $1"
}

case_descriptors_of_others()
{
	expect_few blinkgen -a 1000 records
	"$BIN/blinksort" records -o sorted
	expect_few blinkval sorted
	expect_few blinkval -o summary sorted
	expect_few blinkval -s summary
	"$BIN/blinksh" keygen key
	expect_few blinksort --nodes=127.0.0.2 --rank=0 --key-file=key \
		--job=few --deadline=1 records -o out
}

# More inputs than the soft limit of descriptors, and more than half of the hard
# one: it is the same whether they are in the page cache, and so read directly
# or not.
case_many_inputs()
{
	local i io inputs=()

	for ((i = 0; i < 300; i++)); do
		make_shape uniform 50 "$i" >"in.$i"
		inputs+=("in.$i")
	done
	sort_reference "${inputs[@]}" -o want
	for io in "${IO_MODES[@]}"; do
		BLINKSORT=(prlimit --nofile=64:400 "$BIN/blinksort")
		expect_sorted "${inputs[@]}" -o out --io="$io"
		expect_same out want
		rm out
		expect_sorted "${inputs[@]}" -o out --io="$io" -S 8M
		expect_same out want
		rm out
		BLINKSORT=("$BIN/blinksort")
		limit="-n 200"
		expect_refused 5 "cannot open: .*\(ulimit -n\)$" \
			"${inputs[@]}" -o out --io="$io"
		# No output is at fault if they are just enough.
		limit="-n 304"
		expect_refused 5 "\(ulimit -n\)$" "${inputs[@]}" -o out \
			--io="$io"
		limit=
	done
	expect_refused 2 "more than 1024 input files: use 'cat " \
		"${inputs[@]}" "${inputs[@]}" "${inputs[@]}" "${inputs[@]}" -o \
		out
	"$BIN/blinkgen" -a 1000 part
	for ((i = 0; i < 300; i++)); do
		inputs[i]=part
	done
	(
		ulimit -Sn 64
		expect_status 1 "$BIN/blinkval" "${inputs[@]}" 2>"$STDERR"
	)
	expect_match "^.* records? " "$STDERR"
}

if [ -n "$SANITIZED" ]; then
	skip many_inputs "with a sanitizer the program does not even start"
	skip descriptors "with a sanitizer the program does not even start"
	skip descriptors_of_others "with a sanitizer none even starts"
else
	check many_inputs case_many_inputs
	check descriptors case_descriptors
	check descriptors_of_others case_descriptors_of_others
fi

finish
