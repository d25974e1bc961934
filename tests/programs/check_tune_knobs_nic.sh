#!/bin/bash
# check_tune_knobs_nic.sh - the knobs of network cards, on recorded trees and veth
#
# eno1 is an e1000e, that has rx-usecs only; enp3s0 an ixgbe, that shows tx-usecs
# and refuses it; enp4s0 an i40e, that adapts.

# shellcheck disable=SC2317 # cases are called by check
# shellcheck disable=SC2153 # the knobs' results
# shellcheck source=tests/programs/knob_lib.sh
. "$(dirname "$0")/knob_lib.sh"

nic_knobs=(nic-coalescing nic-rings nic-offloads mtu tx-queue-length msi)

case_documented()
{
	local knob

	machine sata-raid
	for knob in "${nic_knobs[@]}"; do
		expect_documented "$knob" eno1
	done
}

# An interface without hardware is a target only if it is named.
case_targets()
{
	local knob

	machine sata-raid
	for knob in "${nic_knobs[@]}"; do
		expect_targets "$knob" "eno1 enp3s0 enp4s0"
		expect_targets "$knob" "docker0 eno1 enp3s0 enp4s0" docker0
		expect_targets "$knob" "eno1 enp3s0 enp4s0 lo" lo eno1
	done
}

case_files()
{
	machine sata-raid
	expect_value mtu eno1 1500
	round_trip mtu eno1 9000 "echo 9000 >/sys/class/net/eno1/mtu"
	expect_unwanted mtu eno1 jumbo "not 10 to 999999"
	round_trip tx-queue-length eno1 10000 \
		"echo 10000 >/sys/class/net/eno1/tx_queue_len"
	expect_value tx-queue-length docker0 0
	expect_unwanted tx-queue-length eno1 -1 "not 0 to 999999999"
	expect_not mtu eth9 unsupported "no interface eth9"
	read_only tree/sys/class/net/eno1/mtu
	expect_not mtu eno1 denied root
	expect_not tx-queue-length eno1 denied root
	expect_not nic-offloads eno1 denied root
	expect_not nic-rings eno1 denied root
	expect_not nic-coalescing eno1 denied root
}

case_msi()
{
	machine sata-raid
	expect_value msi eno1 "msi 1"
	expect_value msi enp3s0 "msix 5"
	expect_not msi lo unsupported "no hardware"
	expect_satisfied msi enp3s0 msix
	expect_satisfied msi eno1 "msi 1"
	expect_unwanted msi eno1 msix "reported only"
	expect_set_refused msi eno1 "msix 5" "reported only"
	rm -r tree/sys/class/net/eno1/device/msi_irqs
	expect_value msi eno1 none
}

case_tool_missing()
{
	local knob

	machine sata-raid
	rm tree/tools/ethtool
	for knob in nic-coalescing nic-rings nic-offloads; do
		expect_not "$knob" eno1 unsupported "ethtool is not installed"
	done
	expect_value mtu eno1 1500
}

case_driver_without()
{
	machine sata-raid
	rm tree/tools/state/eno1/*
	expect_not nic-coalescing eno1 unsupported "the driver has none"
	expect_not nic-rings eno1 unsupported "the driver has none"
	expect_not nic-offloads eno1 unsupported "lets none be changed"
	expect_not nic-offloads docker9 unsupported "no interface docker9"
}

# --- coalescing -----------------------------------------------------------------

case_coalescing()
{
	machine sata-raid
	expect_value nic-coalescing eno1 "rx-usecs 3"
	expect_value nic-coalescing enp3s0 "rx-usecs 1 tx-usecs 0"
	round_trip nic-coalescing eno1 "rx-usecs 0" \
		"ethtool -C eno1 rx-usecs 0"
	round_trip nic-coalescing eno1 "rx-usecs 0 tx-usecs? 0"
	expect_satisfied nic-coalescing eno1 "adaptive-rx off rx-usecs 3"
	expect_satisfied nic-coalescing eno1 "rx-frames? 1"
	expect_unwanted nic-coalescing eno1 "rx-usecs 0 tx-usecs 0" \
		"no tx-usecs"
	expect_unwanted nic-coalescing eno1 "adaptive-rx on" "no adaptive-rx"
	expect_unwanted nic-coalescing eno1 "rx-usecs" "not pairs"
	expect_unwanted nic-coalescing eno1 "rx-usecs few" "is no number"
	expect_unwanted nic-coalescing eno1 "rx-usecs 010" "is no number"
	expect_unwanted nic-coalescing eno1 "" "not pairs"
}

# Adapting ends before the fields are set, and begins after it.
case_coalescing_adaptive()
{
	machine sata-raid
	expect_value nic-coalescing enp4s0 "adaptive-rx on adaptive-tx on"`
		`" rx-usecs 50 rx-frames-irq 256 tx-usecs 50 tx-frames-irq 256"`
		`" rx-usecs-high 0 tx-usecs-high 0"
	round_trip nic-coalescing enp4s0 "rx-usecs 0 adaptive-rx off" \
		"ethtool -C enp4s0 adaptive-rx off && "`
		`"ethtool -C enp4s0 rx-usecs 0"
	expect_set_refused nic-coalescing enp4s0 "rx-usecs 0" "rx-usecs: Invalid"
}

# Named is what was refused, and nothing of the rest is left behind.
case_coalescing_refused()
{
	machine sata-raid
	expect_set_refused nic-coalescing enp3s0 "rx-usecs 0 tx-usecs 5" \
		"tx-usecs: Invalid argument"
	# What is as wanted is not asked for: tx-usecs is refused even as it is.
	round_trip nic-coalescing enp3s0 "rx-usecs 0 tx-usecs 0" \
		"ethtool -C enp3s0 rx-usecs 0"
}

# --- rings ----------------------------------------------------------------------

case_rings()
{
	machine sata-raid
	expect_value nic-rings eno1 "rx 256 tx 256"
	round_trip nic-rings eno1 max "ethtool -G eno1 rx 4096 tx 4096"
	round_trip nic-rings enp4s0 "rx max"
	change nic-rings enp4s0 "tx 64 rx-jumbo? 9"
	[ "$VALUE" = "rx 512 tx 64" ] || fail "$VALUE"
	change nic-rings enp4s0 "tx 512"
	expect_unwanted nic-rings eno1 "rx 8192" "rx: at most 4096"
	expect_unwanted nic-rings eno1 "rx much" "is no number"
	expect_unwanted nic-rings eno1 "rx 010" "is no number"
	expect_unwanted nic-rings eno1 "rx 08" "is no number"
	expect_unwanted nic-rings eno1 "rx-mini 4" "no rx-mini"
	knob_values nic-rings enp4s0
	[[ $VALUES == *'rx 8160 tx 8160' ]] || fail "$VALUES"
	expect_restored
}

# Maxima are of the interface that is asked about.
case_rings_of_each()
{
	machine sata-raid
	knob_load nic-rings
	knob_get nic-rings eno1
	change nic-rings enp4s0 max
	[ "$VALUE" = "rx 8160 tx 8160" ] || fail "$VALUE"
	knob_goal nic-rings eno1 "rx 256 tx 256" max
	[ "$VALUE" = "rx 4096 tx 4096" ] || fail "$VALUE"
}

# --- offloads -------------------------------------------------------------------

# tso is three features here, of which one was off: "tso on" would switch it on.
case_offloads()
{
	machine sata-raid
	round_trip nic-offloads eno1 "tso off" "ethtool -K eno1"`
		`" tx-tcp-segmentation off tx-tcp6-segmentation off"
}

case_offload_names()
{
	machine sata-raid
	knob_load nic-offloads
	knob_get nic-offloads eno1
	knob_act nic-offloads eno1 "tso off gro off"
	[ "$ACT" = "ethtool -K eno1 tx-tcp-segmentation off"`
		`" tx-tcp6-segmentation off generic-receive-offload off" ] ||
		fail "$ACT"
	round_trip nic-offloads eno1 "gro off gso off"
	round_trip nic-offloads eno1 "rx-udp-gro-forwarding on"
	round_trip nic-offloads enp3s0 "lro on"
	round_trip nic-offloads enp3s0 "ntuple on rx off"
	expect_satisfied nic-offloads eno1 "tso on"
	expect_satisfied nic-offloads eno1 "lro off nosuch? on lro? on"
	expect_unwanted nic-offloads eno1 "lro on" "fixed by the driver"
	expect_unwanted nic-offloads eno1 "nosuch off" "no nosuch"
	expect_unwanted nic-offloads eno1 "tso maybe" "neither on nor off"
	expect_unwanted nic-offloads eno1 "tso" "not pairs"
	expect_unwanted nic-offloads enp4s0 "rx-vlan-filter off" "fixed by"
}

# What is fixed is so for one interface.
case_offloads_of_each()
{
	local now

	machine sata-raid
	knob_load nic-offloads
	knob_get nic-offloads enp3s0
	now=$VALUE
	knob_get nic-offloads eno1
	knob_goal nic-offloads enp3s0 "$now" "lro on" || fail "$WHY"
}

# Without checksums tso goes off, too, unasked; revert brings it back.
case_offload_dependants()
{
	local original

	machine sata-raid
	knob_load nic-offloads
	knob_get nic-offloads enp4s0
	original=$VALUE
	knob_goal nic-offloads enp4s0 "$original" "tx off"
	knob_set nic-offloads enp4s0 "$VALUE" || fail "$WHY"
	knob_get nic-offloads enp4s0
	[[ $VALUE == *"tx-tcp-segmentation off"* ]] || fail "$VALUE"
	expect_satisfied nic-offloads enp4s0 "tx off"
	knob_set nic-offloads enp4s0 "$original" || fail "$WHY"
	expect_restored
}

# --- what ethtool prints --------------------------------------------------------

# says OUTPUT [STATUS]: a tool that prints that, whatever it is asked
says()
{
	rm -rf tree
	machine sata-raid
	{
		printf '#!/bin/bash\ncat <<"END"\n%s\nEND\n' "$1"
		echo "exit ${2:-0}"
	} >tree/tools/ethtool
}

case_printed()
{
	# By ioctl, from a kernel without netlink; and what is cut short
	says "Coalesce parameters for eno1:
Adaptive RX: off  TX: off
stats-block-usecs: 0
rx-frame-low: 7
surprise of a later version: yes"
	expect_value nic-coalescing eno1 "adaptive-rx off adaptive-tx off"`
		`" stats-block-usecs 0 rx-frames-low 7"
	says ""
	expect_not nic-coalescing eno1 unsupported "the driver has none"
	expect_not nic-rings eno1 unsupported "the driver has none"
	expect_not nic-offloads eno1 unsupported "lets none be changed"
	says "Cannot get device coalesce settings: Operation not supported" 82
	expect_not nic-coalescing eno1 unsupported "the driver has none"
	says "Cannot get device ring settings: Operation not supported" 76
	expect_not nic-rings eno1 unsupported "the driver has none"
	says "netlink error: Operation not permitted" 1
	expect_not nic-rings eno1 denied root
	says "" 92
	expect_not nic-rings eno1 unsupported "exit status 92"
	says "Ring parameters for eno1:
Pre-set maximums:
RX:		4096
RX Mini:	0
RX Jumbo:	0
TX:		4096
Current hardware settings:
RX:		256
RX Mini:	0
RX Jumbo:	0
TX:		256"
	expect_value nic-rings eno1 "rx 256 tx 256"
}

case_printed_features()
{
	says "Features for eno1:
tx-checksumming: on
	tx-checksum-ip-generic: off [requested on]
	tx-checksum-ipv4: off [fixed]
rx-checksumming: on [not requested]
highdma: on [fixed]"
	expect_value nic-offloads eno1 \
		"tx-checksum-ip-generic off rx-checksumming on"
}

# As old ethtools say that there was nothing to do
case_nothing_changed()
{
	says "rx-usecs: 3
rx-usecs unmodified, ignoring
no coalesce parameters changed, aborting" 80
	knob_load nic-coalescing
	nic_ethtool -C eno1 rx-usecs 3 || fail "$WHY"
	says "no ring parameters changed, aborting" 81
	! nic_ethtool -G eno1 rx 3 || fail "81 is no success"
}

# --- the kernel itself ----------------------------------------------------------

# Run in a namespace that has a sysfs of its own
case_veth()
{
	local net=blinknic$$

	ip netns add "$net"
	# shellcheck disable=SC2064 # now, not then
	at_end "ip netns del $net"
	ip -n "$net" link add v0 type veth peer name v1
	ip netns exec "$net" bash "$REPO/tests/programs/check_tune_knobs_nic.sh" inside
}

there_and_back()
{
	local original

	knob_load "$1"
	knob_supported "$1" v0 || fail "$1: $WHY"
	knob_get "$1" v0
	original=$VALUE
	change "$1" v0 "$2"
	[ "$VALUE" != "$original" ] || fail "$1: nothing has changed"
	change "$1" v0 "$original"
}

inside()
{
	# No hardware here: what leads out is what there is, and lo is not.
	expect_targets mtu "v0 v1"
	expect_targets mtu "lo v0 v1" lo
	there_and_back mtu 1400
	there_and_back mtu 9000
	knob_load mtu
	! knob_set mtu v0 999999 || fail "took 999999"
	expect_why mtu "the driver does not take 999999"
	there_and_back tx-queue-length 50
	expect_not msi v0 unsupported "no hardware"
	tool_have ethtool || return 0
	there_and_back nic-offloads "tso off"
	there_and_back nic-offloads "tso off gso off gro on"
	there_and_back nic-offloads "tx-tcp-mangleid-segmentation off"
	inside_dependants
	expect_not nic-coalescing v0 unsupported "the driver has none"
	expect_not nic-rings v0 unsupported "the driver has none"
	expect_unwanted nic-offloads v0 "lro on" "fixed by the driver"
}

# The kernel takes segmentation with the checksums, and gives back both.
inside_dependants()
{
	local original

	knob_get nic-offloads v0
	original=$VALUE
	knob_goal nic-offloads v0 "$original" "tx off"
	knob_set nic-offloads v0 "$VALUE" || fail "$WHY"
	knob_get nic-offloads v0
	[[ $VALUE == *"tx-tcp-segmentation off"* ]] || fail "$VALUE"
	knob_set nic-offloads v0 "$original" || fail "$WHY"
	expect_value nic-offloads v0 "$original"
}

if [ "${1-}" = inside ]; then
	inside
	exit
fi

check documented case_documented
check targets case_targets
check files case_files
check msi case_msi
check tool_missing case_tool_missing
check driver_without case_driver_without
check coalescing case_coalescing
check coalescing_adaptive case_coalescing_adaptive
check coalescing_refused case_coalescing_refused
check rings case_rings
check rings_of_each case_rings_of_each
check offloads case_offloads
check offload_names case_offload_names
check offloads_of_each case_offloads_of_each
check offload_dependants case_offload_dependants
check printed case_printed
check printed_features case_printed_features
check nothing_changed case_nothing_changed
check_able netns veth case_veth
finish
