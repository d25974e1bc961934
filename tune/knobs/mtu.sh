# mtu.sh - the largest packet that an interface sends, bytes

. "$TUNE/lib/nic.sh"

knob_mtu_targets=(nic_targets)
knob_mtu_supported=(nic_allowed)
knob_mtu_file=/sys/class/net/TARGET/mtu
knob_mtu_range=10-999999
knob_mtu_values="bytes; Ethernet: 1500, jumbo frames: up to 9000 mostly"
# A switch or a peer that has a smaller one drops what is larger, silently.
knob_mtu_risk=cutoff
knob_mtu_order=30

knob_mtu_set()
{
	file_write "$FILE" "$2" && return 0
	[[ $WHY != *'Invalid argument'* ]] || WHY="the driver does not take $2"
	return 1
}

knob_mtu_explain="
The largest packet, in bytes without the Ethernet header.  Jumbo
frames carry more records for each packet and interrupt.  All machines and the
switch between them must have the same: a larger packet that one of them can't
take is dropped without a message.  Most drivers take the link down and up for
it, so that it is undone unless confirmed.
Source: Documentation/ABI/testing/sysfs-class-net, mtu."
