# nic-offloads.sh - what a network card and its driver do for the protocols

. "$TUNE/lib/fields.sh"
. "$TUNE/lib/nic.sh"

knob_nic_offloads_targets=(nic_targets)
knob_nic_offloads_supported=(nic_has knob_nic_offloads_get)
# Names that people use, and those that ethtool lists.
declare -gA OFFLOAD_ALIAS=(
	[rx]=rx-checksumming [tx]=tx-checksumming [sg]=scatter-gather
	[tso]=tcp-segmentation-offload [gso]=generic-segmentation-offload
	[gro]=generic-receive-offload [lro]=large-receive-offload
	[rxvlan]=rx-vlan-offload [txvlan]=tx-vlan-offload
	[ntuple]=ntuple-filters [rxhash]=receive-hashing
)

# VALUE: every feature that may be changed.  A group (tcp-segmentation-offload)
# counts by its members, for "tso off" and "tso on" would switch on those of them
# that were off.  OFFLOAD_GROUP[name]=members, OFFLOAD_FIXED[name]=on or off.
knob_nic_offloads_get()
{
	local line name group='' state fixed

	nic_ethtool -k "$1" || return 1
	declare -gA OFFLOAD_GROUP=() OFFLOAD_FIXED=() FIELD=()
	declare -ga FIELD_NAMES=()
	while IFS= read -r line; do
		[[ $line =~ ^($'\t'?)([a-z0-9_-]+):\ (on|off)(\ .*)?$ ]] || continue
		name=${BASH_REMATCH[2]} state=${BASH_REMATCH[3]}
		fixed=${BASH_REMATCH[4]}
		if [ -z "${BASH_REMATCH[1]}" ]; then
			group=$name
		else
			offload_make_group "$group"
			OFFLOAD_GROUP["$group"]+=" $name"
		fi
		if [[ $fixed == *fixed* ]]; then
			OFFLOAD_FIXED["$name"]=$state
		else
			FIELD_NAMES+=("$name")
			FIELD["$name"]=$state
		fi
	done <<<"$OUT"
	((${#FIELD_NAMES[@]})) ||
		why_not "the driver lets none be changed" || return 1
	fields_join
	NIC_SEEN["offloads $1"]=$VALUE OFFLOAD_NIC=$1
}

# offload_make_group NAME: it has members, and is no feature itself.
offload_make_group()
{
	local last=$((${#FIELD_NAMES[@]} - 1))

	[ -z "${OFFLOAD_GROUP[$1]-}" ] || return 0
	unset "OFFLOAD_FIXED[$1]"
	if ((last >= 0)) && [ "${FIELD_NAMES[last]}" = "$1" ]; then
		unset "FIELD_NAMES[last]" "FIELD[$1]"
	fi
}

knob_nic_offloads_goal()
{
	local now=$2 expanded='' name
	local -a words

	[ "${OFFLOAD_NIC-}" = "$1" ] || knob_nic_offloads_get "$1" || return 1
	read -r -a words <<<"$3"
	((${#words[@]} && ${#words[@]} % 2 == 0)) ||
		why_not "'$3' is not pairs of a name and a value" || return 1
	fields_split "$now" || return 1
	set -- "${words[@]}"
	while (($#)); do
		on_off_state "$1" "$2" || return 1
		name=${1%\?}
		offload_expand "${OFFLOAD_ALIAS[$name]-$name}" "$2" "${1#"$name"}" ||
			return 1
		shift 2
	done
	VALUE=$now
	[ -z "$expanded" ] || fields_overlay "$now" "$expanded"
}

# on_off_state NAME STATE: 1 with WHY
on_off_state()
{
	[[ $2 == on || $2 == off ]] ||
		why_not "$1: '$2' is neither on nor off"
}

# offload_expand NAME STATE [?]: adds to the caller's expanded the features that
# NAME stands for, as far as they can be changed.
offload_expand()
{
	local feature changeable='' have=''

	for feature in ${OFFLOAD_GROUP[$1]-$1}; do
		if [ -n "${FIELD[$feature]+there}" ]; then
			changeable+=" $feature $2"
			have+=" ${FIELD[$feature]}"
		else
			have+=" ${OFFLOAD_FIXED[$feature]-}"
		fi
	done
	# A group is on, as ethtool sees it, when any of it is.
	if [[ $2 == on && $have == *on* ]]; then
		return 0
	elif [ -n "$changeable" ]; then
		expanded+=$changeable
	elif [[ $have == *on* || ($have == *off* && $2 == on && ! $3) ]]; then
		why_not "$1 is fixed by the driver"
	elif [[ $have != *off* && ! $3 ]]; then
		why_not "there is no $1"
	fi
}

# Some features need others (no segmentation without checksums), and the kernel
# grants them once these are there: what is missing is asked for again.  What goes
# with a feature that is switched off is no failure: reading back will show it.
knob_nic_offloads_set()
{
	local before why try

	knob_nic_offloads_get "$1" || return 1
	before=$VALUE
	knob_nic_offloads_goal "$1" "$before" "$2" || return 1
	fields_differing "$before" "$VALUE" || return 1
	((${#DIFFERING[@]})) || return 0
	for try in first second third; do
		offload_ask "$1" "${DIFFERING[@]}" && return 0
	done
	why=$WHY
	if fields_differing "$VALUE" "$before"; then
		nic_ethtool -K "$1" "${DIFFERING[@]}" || true
	fi
	WHY=$why
	return 1
}

# offload_ask NIC FEATURE STATE...: 0 when all of these are so
offload_ask()
{
	local nic=$1 why=
	shift

	nic_ethtool -K "$nic" "$@" || why=$WHY
	knob_nic_offloads_get "$nic" || return 1
	while (($#)); do
		[ "${FIELD[$1]-}" = "$2" ] ||
			why_not "$1 stays ${FIELD[$1]-fixed}${why:+: $why}" ||
			return 1
		shift 2
	done
}

knob_nic_offloads_values()
{
	VALUES="features: tso off gso off lro? off (? = if there)"
	! knob_nic_offloads_get "$1" || VALUES+="; now: $VALUE"
}

knob_nic_offloads_act()
{
	nic_act_fields -K offloads "$1" "$2"
}

knob_nic_offloads_explain="
What is done for the protocols below the stack: checksums (rx, tx),
cutting large sends into packets (tso, gso), joining received packets (gro, lro).
They save processor time for streams.  For small datagrams gro and lro may hold
a packet back to see whether another follows, and rx-udp-gro-forwarding joins
datagrams.  Features that a driver has fixed can't be changed; a feature may take
others with it (no tso without tx), which revert puts back, too.
Source: ethtool(8), -K; Documentation/networking/segmentation-offloads.rst."
