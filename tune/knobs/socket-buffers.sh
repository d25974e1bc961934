# socket-buffers.sh - how much a socket and a CPU's queue may hold

knob_socket_buffers_range=0-2147483647

knob_socket_buffers_find()
{
	case $1 in
	udp_*) FILE=/proc/sys/net/ipv4/$1 ;;
	*) FILE=/proc/sys/net/core/$1 ;;
	esac
}

# Each network namespace has UDP's settings for itself; within one, some of the
# others are missing, by the kernel's age.
knob_socket_buffers_targets()
{
	TARGETS=(rmem_max wmem_max rmem_default wmem_default netdev_max_backlog
		udp_rmem_min udp_wmem_min)
}

knob_socket_buffers_values()
{
	VALUES='bytes'
	[[ $1 != netdev_max_backlog ]] || VALUES='packets'
}

knob_socket_buffers_explain='
The most that a socket may ask for (rmem_max, wmem_max) and
what it gets without asking (rmem_default, wmem_default), in bytes; what a
socket of UDP has even when memory is short (udp_rmem_min, udp_wmem_min); and
how many packets may wait for a CPU (netdev_max_backlog).  A datagram that
finds its socket full is lost and must be sent again.  Source:
Documentation/admin-guide/sysctl/net.rst, networking/ip-sysctl.rst.'
