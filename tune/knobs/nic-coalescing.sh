# nic-coalescing.sh - how long a network card waits before it interrupts

. "$TUNE/lib/fields.sh"
. "$TUNE/lib/nic.sh"

knob_nic_coalescing_targets=(nic_targets)
knob_nic_coalescing_supported=(nic_has knob_nic_coalescing_get)
# Coalescing comes after rings and MTU: a driver that starts its card anew for
# these may reset it.
knob_nic_coalescing_order=60

# Fields that the driver lacks are printed as n/a, or left out.
knob_nic_coalescing_get()
{
	local line name

	nic_ethtool -c "$1" || return 1
	VALUE=
	while IFS= read -r line; do
		if [[ $line =~ ^(Adaptive|CQE\ mode)\ RX:\ *([a-z/]+)\ +TX:\ *([a-z/]+) ]]
		then
			name=${BASH_REMATCH[1],,}
			coalescing_add "${name/ /-}-rx" "${BASH_REMATCH[2]}"
			coalescing_add "${name/ /-}-tx" "${BASH_REMATCH[3]}"
		elif [[ $line =~ ^([a-z][a-z-]*):\ *([0-9]+|n/a)$ ]]; then
			# Printed as rx-frame-low, set as rx-frames-low.
			name=${BASH_REMATCH[1]/-frame-/-frames-}
			coalescing_add "$name" "${BASH_REMATCH[2]}"
		fi
	done <<<"$OUT"
	[ -n "$VALUE" ] || why_not "the driver has none" || return 1
	NIC_SEEN["coalescing $1"]=$VALUE
}

# coalescing_add NAME VALUE: to the VALUE of get
coalescing_add()
{
	[ "$2" = n/a ] || VALUE+="${VALUE:+ }$1 $2"
}

# A card that can't adapt is as wanted where adapting is to be off.
knob_nic_coalescing_goal()
{
	local wanted=" $3" name

	wanted=${wanted// adaptive-rx off/ adaptive-rx? off}
	wanted=${wanted// adaptive-tx off/ adaptive-tx? off}
	fields_overlay "$2" "$wanted" || return 1
	for name in "${FIELD_NAMES[@]}"; do
		[[ ${FIELD[$name]} =~ ^(on|off)$ ]] && continue
		number_is "${FIELD[$name]}" 0 999999999 ||
			why_not "$name: '${FIELD[$name]}' is no number, on or off" ||
			return 1
	done
}

# coalescing_steps NIC NOW WANTED: STEP_EARLY, STEP_MAIN, STEP_LATE=(NAME VALUE
# ...).  As long as it adapts, the card changes or ignores the other fields.
coalescing_steps()
{
	STEP_EARLY=() STEP_MAIN=() STEP_LATE=()
	knob_nic_coalescing_goal "$1" "$2" "$3" || return 1
	fields_differing "$2" "$VALUE" || return 1
	set -- "${DIFFERING[@]}"
	while (($#)); do
		case $1/$2 in
		adaptive-*/off) STEP_EARLY+=("$1" "$2") ;;
		adaptive-*) STEP_LATE+=("$1" "$2") ;;
		*) STEP_MAIN+=("$1" "$2") ;;
		esac
		shift 2
	done
}

knob_nic_coalescing_set()
{
	local before why

	knob_nic_coalescing_get "$1" || return 1
	before=$VALUE
	coalescing_steps "$1" "$before" "$2" || return 1
	coalescing_change "$1" "${STEP_EARLY[@]}" &&
		coalescing_change "$1" "${STEP_MAIN[@]}" &&
		coalescing_change "$1" "${STEP_LATE[@]}" && return 0
	why=$WHY
	coalescing_restore "$1" "$before"
	WHY=$why
	return 1
}

# coalescing_change NIC [NAME VALUE]...: all at once, for some drivers check them
# together; if that is refused one by one, to tell which.
coalescing_change()
{
	local nic=$1
	shift

	(($#)) || return 0
	nic_ethtool -C "$nic" "$@" && return 0
	while (($#)); do
		nic_ethtool -C "$nic" "$1" "$2" ||
			why_not "$1: $WHY" || return 1
		shift 2
	done
}

# coalescing_restore NIC VALUE: what a refused change has done in part
coalescing_restore()
{
	knob_nic_coalescing_get "$1" || return 1
	fields_differing "$VALUE" "$2" || return 1
	((${#DIFFERING[@]} == 0)) || nic_ethtool -C "$1" "${DIFFERING[@]}"
}

knob_nic_coalescing_values()
{
	VALUES="fields: rx-usecs 0 tx-usecs? 0 adaptive-rx off (? = if there)"
	! knob_nic_coalescing_get "$1" || VALUES+="; now: $VALUE"
}

knob_nic_coalescing_act()
{
	local now=${NIC_SEEN["coalescing $1"]-}

	ACT=
	if coalescing_steps "$1" "$now" "$2"; then
		nic_act -C "$1" "${STEP_EARLY[@]}"
		nic_act -C "$1" "${STEP_MAIN[@]}"
		nic_act -C "$1" "${STEP_LATE[@]}"
	fi
	[ -n "$ACT" ] || ACT="ethtool -C $1 ${2//\?/}"
}

knob_nic_coalescing_explain="
For how many microseconds (usecs) or frames a card gathers what it
has received or sent before it interrupts.  0 interrupts at once: the shortest
way from the wire to a program, at the price of more interrupts; \"adaptive\"
lets the driver choose by the load.  Drivers offer some of the fields only: name
those that matter, with a ? after a name that may be missing.
Source: ethtool(8), -C; Documentation/networking/ethtool-netlink.rst."
