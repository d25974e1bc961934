# nic-rings.sh - how many packets a network card's queues hold

. "$TUNE/lib/fields.sh"
. "$TUNE/lib/nic.sh"

knob_nic_rings_targets=(nic_targets)
knob_nic_rings_supported=(nic_has knob_nic_rings_get)
# Most drivers take the link down for it.
knob_nic_rings_risk=cutoff
knob_nic_rings_order=40

# VALUE, and RING_MAX[name].  A ring whose maximum is 0 or unknown is not there.
knob_nic_rings_get()
{
	local line name part=

	nic_ethtool -g "$1" || return 1
	declare -gA RING_MAX=()
	VALUE=
	while IFS= read -r line; do
		case $line in
		'Pre-set maximums:'*) part=max ;;
		'Current hardware settings:'*) part=now ;;
		esac
		[[ $line =~ ^(RX|RX\ Mini|RX\ Jumbo|TX):[[:space:]]*([0-9]+)$ ]] ||
			continue
		number_is "${BASH_REMATCH[2]}" 0 999999999 || continue
		name=${BASH_REMATCH[1],,}
		name=${name/ /-}
		if [ "$part" = max ]; then
			RING_MAX["$name"]=${BASH_REMATCH[2]}
		elif ((${RING_MAX[$name]-0} > 0)); then
			VALUE+="${VALUE:+ }$name ${BASH_REMATCH[2]}"
		fi
	done <<<"$OUT"
	[ -n "$VALUE" ] || why_not "the driver has none" || return 1
	NIC_SEEN["rings $1"]=$VALUE RING_NIC=$1
}

# "max" is each ring's maximum: of all, or of a field.
knob_nic_rings_goal()
{
	local name wanted=$3

	[ "${RING_NIC-}" = "$1" ] || knob_nic_rings_get "$1" || return 1
	if [ "$wanted" = max ]; then
		wanted=
		for name in "${!RING_MAX[@]}"; do
			((RING_MAX[$name] == 0)) || wanted+="$name max "
		done
	fi
	fields_overlay "$2" "$wanted" || return 1
	for name in "${FIELD_NAMES[@]}"; do
		[ "${FIELD[$name]}" != max ] ||
			FIELD["$name"]=${RING_MAX[$name]-0}
		number_is "${FIELD[$name]}" 0 999999999 ||
			why_not "$name: '${FIELD[$name]}' is no number" ||
			return 1
		((FIELD[$name] <= ${RING_MAX[$name]-0})) ||
			why_not "$name: at most ${RING_MAX[$name]-0}" || return 1
	done
	fields_join
}

knob_nic_rings_set()
{
	local before

	knob_nic_rings_get "$1" || return 1
	before=$VALUE
	knob_nic_rings_goal "$1" "$before" "$2" || return 1
	fields_differing "$before" "$VALUE" || return 1
	((${#DIFFERING[@]} == 0)) || nic_ethtool -G "$1" "${DIFFERING[@]}"
}

knob_nic_rings_values()
{
	local name

	VALUES="max, or rx N tx N with N a number or max"
	knob_nic_rings_get "$1" || return 0
	VALUES="max, or rx N tx N; at most:"
	for name in rx rx-mini rx-jumbo tx; do
		((${RING_MAX[$name]-0} == 0)) ||
			VALUES+=" $name ${RING_MAX[$name]}"
	done
}

knob_nic_rings_act()
{
	nic_act_fields -G rings "$1" "$2"
}

knob_nic_rings_explain="
How many packets a card's receive and transmit queues hold.  Long
ones outlast a burst that the program is slow to take (a datagram that finds no
place is lost); short ones stay in the processor's cache.  Most drivers take the
link down and up for it, so that it is undone unless confirmed.
Source: ethtool(8), -G."
