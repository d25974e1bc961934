# nic.sh - network interfaces, and what ethtool says of them
#
# ethtool's messages and exit statuses differ with how it reaches the kernel
# (netlink: status 1 and "netlink error: ..."; ioctl: 70 to 92 and "Cannot ...:
# ..."), so that the words are what counts.

# The settings in force when they were last read, by "KNOB NIC".  They serve to
# show an act without reading once more, and never to decide.
declare -gA NIC_SEEN

# nic_targets [NAME...]: sets TARGETS to the interfaces with hardware behind them;
# in a network namespace without any, such as a container's, to those that lead out
# of it.  Another virtual one (loopback, bridge, veth) is included only if NAME
# names it.
nic_targets()
{
	local path name hardware=()

	TARGETS=()
	file_list '/sys/class/net/*'
	for path in "${FILES[@]}"; do
		! file_exists "$path/device" || hardware+=("$path")
	done
	for path in "${FILES[@]}"; do
		name=${path##*/}
		if [[ " ${hardware[*]} " == *" $path "* || " $* " == *" $name "* ]] ||
			{ ((${#hardware[@]} == 0)) && nic_leads_out "$path"; }; then
			TARGETS+=("$name")
		fi
	done
}

# nic_leads_out PATH: 0 if it is one end of a veth pair, or stands on an interface
# of another namespace
nic_leads_out()
{
	local VALUE WHY index

	file_read "$1/ifindex" || return 1
	index=$VALUE
	file_read "$1/iflink" && [[ $VALUE != "$index" ]]
}

# nic_allowed NIC: 0 if this user may change it; else 1, SUPPORT and WHY.  A file
# that needs the same right stands for those settings that are no files.
nic_allowed()
{
	setting_needs "/sys/class/net/$1" "no interface $1" &&
		setting_may "/sys/class/net/$1/mtu" 'needs root (CAP_NET_ADMIN)'
}

# nic_why: WHY=what ethtool's OUT says of the failure, in short
nic_why()
{
	local line last=

	while IFS= read -r line; do
		[[ $line =~ [^[:space:]] ]] && last=$line
	done <<<"$OUT"
	case $OUT in
	*'Operation not supported'*) WHY="the driver has none" ;;
	*'not permitted'*) WHY="needs root (CAP_NET_ADMIN)" ;;
	*'netlink error: '*'Invalid argument'*)
		# The line before it says what is invalid.
		WHY=${OUT%%$'\n'netlink error: Invalid argument*}
		WHY=${WHY##*netlink error: }
		WHY=${WHY% (offset *}
		;;
	*) WHY=${last##*: } ;;
	esac
	[ -n "$WHY" ] || WHY="ethtool: exit status $STATUS"
}

# nic_ethtool OPTION NIC [NAME VALUE]...: OUT; 1 with WHY.  What is as wanted
# already is no failure.
nic_ethtool()
{
	tool_have ethtool || why_not "ethtool is not installed" || return 1
	! tool_run ethtool "$@" || return 0
	# Status 80: "no coalesce parameters changed, aborting", and the like.
	[[ $STATUS == 80 && $OUT == *' parameters changed'* ]] && return 0
	nic_why
	return 1
}

# nic_act OPTION NIC [NAME VALUE]...: adds that command to ACT
nic_act()
{
	(($# < 3)) || ACT+="${ACT:+ && }ethtool $*"
}

# nic_act_fields OPTION KNOB NIC WANTED: ACT, of a knob nic-KNOB whose goal sets
# the fields that differ with ethtool OPTION
nic_act_fields()
{
	local now=${NIC_SEEN["$2 $3"]-}

	ACT=
	if "knob_nic_$2_goal" "$3" "$now" "$4" &&
		fields_differing "$now" "$VALUE"; then
		nic_act "$1" "$3" "${DIFFERING[@]}"
	fi
	[ -n "$ACT" ] || ACT="ethtool $1 $3 ${4//\?/}"
}

# nic_has GETTER NIC: SUPPORT of a knob whose GETTER NIC reads it with ethtool
nic_has()
{
	nic_allowed "$2" || return 1
	if ! "$1" "$2"; then
		SUPPORT=unsupported
		[[ $WHY != 'needs root'* ]] || SUPPORT=denied
		return 1
	fi
	READ=1
}
