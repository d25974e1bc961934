#!/bin/bash
# check_shell_auth.sh - strangers do not get in: silence, a count, no effect
#
# shell_attack.py knows the protocol and the key, and sends what must be
# refused.  That nothing was started shows in a file to which the command under
# attack appends a line.
# shellcheck source=tests/programs/shell_lib.sh
. "$(dirname "$0")/shell_lib.sh"

cluster_up 2

attack()
{
	timeout 300 python3 "$TESTS/programs/shell_attack.py" "$BLINK_KEY" "${nodes[0]}" \
		"$PWD/mark" "$@"
}

for name in wrong_key flipped_bit truncated noise sent_again reflected future \
	unknown_session bad_fields forgotten_job; do
	check "$name" attack "$name"
done
check another_node attack another_node "${nodes[1]}"

case_after_restart()
{
	attack record "$PWD/recorded"
	restart_daemon 1 KILL
	attack after_restart "$PWD/recorded"
}
check after_restart case_after_restart

case_key_others_can_read()
{
	local mode

	"$BIN/blinksh" keygen key
	for mode in 0440 0404 0420 0600 0400; do
		chmod "$mode" key
		sh_run --key-file key --lost-after=0.05 ping
		case $mode in
		0600 | 0400) [ "$status" = 127 ] ;;
		*) [ "$status" = 3 ] ;;
		esac || fail "blinksh: mode $mode: exit status $status"
	done
	chmod 0440 key
	expect_status 3 timeout 120 "$BIN/blinkd" --key-file key \
		--listen "127.0.0.99:$BLINK_PORT" --foreground 2>err
	expect_one_line err
}
check key_others_can_read case_key_others_can_read

# A client with another key meets silence as well.
case_client_with_other_key()
{
	local before

	before=$(count_of refused_tag)
	"$BIN/blinksh" keygen other
	sh_run --key-file other --lost-after=0.3 -- /bin/true
	[ "$status" = 127 ]
	[ "$(count_of refused_tag)" -gt "$before" ]
}
check client_with_other_key case_client_with_other_key

# The daemon is given the key as a descriptor.  If this runs as root, the daemon's
# user may not read the file itself.
case_key_by_descriptor()
{
	local pid

	start_unprivileged_daemon --key-file=fd:9 9<"$BLINK_KEY"
	pid=$!
	# shellcheck disable=SC2064 # now
	at_end "kill $pid; wait $pid"
	sh_run -w "$unprivileged_node" -- /bin/true
	[ "$status" = 0 ]
	! readlink "/proc/$pid/fd/"* | grep -F -x "$BLINK_KEY" ||
		fail "the file is open yet"
}
check key_by_descriptor case_key_by_descriptor

# Its key, above all; though a command is of the daemon's user, and may do so
# with processes of its own.
case_memory_of_daemon()
{
	local pid

	start_unprivileged_daemon --processes=100
	pid=$!
	# shellcheck disable=SC2064 # now
	at_end "kill $pid; wait $pid"
	# shellcheck disable=SC2016 # for the node's shell
	sh_run --key-file "$unprivileged_key" -w "$unprivileged_node" -q -N -- \
		/bin/sh -c 'for pid in $$ $PPID; do
			for file in mem maps environ auxv; do
				(exec </proc/$pid/$file) 2>/dev/null &&
					echo "$((pid == $$))" "$file"
			done
		done; :'
	[ "$status" = 0 ]
	expect_out "1 mem" "1 maps" "1 environ" "1 auxv"
}
check memory_of_daemon case_memory_of_daemon

# A job may pass its descriptors to a process that is none: what that keeps past
# the end of the job is of no use against the next one.
case_kept_descriptors()
{
	timeout 300 python3 "$TESTS/programs/shell_keeper.py" "$BIN/blinksh" \
		"${nodes[1]}" 4
}
check kept_descriptors case_kept_descriptors

finish
