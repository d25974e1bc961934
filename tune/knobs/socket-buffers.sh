# socket-buffers.sh - how much a socket and a CPU's queue may hold
# shellcheck shell=bash
# shellcheck disable=SC2034 # results are in variables

# shellcheck source=tune/lib/setting.sh
. "$TUNE/lib/setting.sh"

knob_socket_buffers_lifetime=boot
knob_socket_buffers_risk=none
knob_socket_buffers_order=50

socket_buffers_folder=/proc/sys/net/core

# Within a network namespace some of them are missing, by the kernel's age.
knob_socket_buffers_targets()
{
	TARGETS=(rmem_max wmem_max rmem_default wmem_default netdev_max_backlog)
}

knob_socket_buffers_supported()
{
	setting_supported "$socket_buffers_folder/$1"
}

knob_socket_buffers_get()
{
	file_read "$socket_buffers_folder/$1"
}

knob_socket_buffers_goal()
{
	setting_goal "$3" 0 2147483647
}

knob_socket_buffers_set()
{
	file_write "$socket_buffers_folder/$1" "$2"
}

knob_socket_buffers_values()
{
	VALUES='bytes'
	[[ $1 != netdev_max_backlog ]] || VALUES='packets'
}

knob_socket_buffers_act()
{
	ACT="echo $2 >$socket_buffers_folder/$1"
}

knob_socket_buffers_explain()
{
	EXPLAIN='The most that a socket may ask for (rmem_max, wmem_max) and
what it gets without asking (rmem_default, wmem_default), in bytes; and how
many packets may wait for a CPU (netdev_max_backlog).  A datagram that finds
its socket full is lost and must be sent again.  Source:
Documentation/admin-guide/sysctl/net.rst.'
}
