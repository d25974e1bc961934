# busy-poll.sh - asking the network card instead of waiting for its interrupt
# shellcheck shell=bash
# shellcheck disable=SC2034 # results are in variables

# shellcheck source=tune/lib/setting.sh
. "$TUNE/lib/setting.sh"

knob_busy_poll_lifetime=boot
knob_busy_poll_risk=none
knob_busy_poll_order=50

busy_poll_folder=/proc/sys/net/core

knob_busy_poll_targets()
{
	TARGETS=(busy_poll busy_read)
}

knob_busy_poll_supported()
{
	setting_supported "$busy_poll_folder/$1"
}

knob_busy_poll_get()
{
	file_read "$busy_poll_folder/$1"
}

knob_busy_poll_goal()
{
	setting_goal "$3" 0 2147483647
}

knob_busy_poll_set()
{
	file_write "$busy_poll_folder/$1" "$2"
}

knob_busy_poll_values()
{
	VALUES='microseconds, 0 off'
}

knob_busy_poll_act()
{
	ACT="echo $2 >$busy_poll_folder/$1"
}

knob_busy_poll_explain()
{
	EXPLAIN='How long, in microseconds, poll and select (busy_poll) or a
read that would block (busy_read) ask the network card themselves before they
wait for its interrupt.  It saves the interrupt and the waking, and takes the
CPU for that time.  50 is what the kernel documentation proposes.  Source:
Documentation/admin-guide/sysctl/net.rst.'
}
