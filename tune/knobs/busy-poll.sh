# busy-poll.sh - asking the network card instead of waiting for its interrupt

knob_busy_poll_file=/proc/sys/net/core/TARGET
knob_busy_poll_range=0-2147483647
knob_busy_poll_values='microseconds, 0 off'

knob_busy_poll_targets()
{
	TARGETS=(busy_poll busy_read)
}

knob_busy_poll_explain='
How long, in microseconds, poll and select (busy_poll) or a
read that would block (busy_read) ask the network card themselves before they
wait for its interrupt.  It saves the interrupt and the waking, and takes the
CPU for that time.  50 is what the kernel documentation proposes.  Source:
Documentation/admin-guide/sysctl/net.rst.'
