# unit.sh - systemd's units
#
#   unit_supported          0; or 1 with SUPPORT and WHY
#   unit_list               UNITS=(...): what runs: services first, then what
#                           would start one: sockets, timers, paths
#   unit_is_running UNIT
#   unit_is_installed UNIT
#   unit_triggers UNIT      TRIGGERS=(...): what would start it again, running
#                           or not
#   unit_switch start|stop UNIT...
#                           0; or 1 with WHY

# -g: a knob is read within a function.
declare -gA unit_running=() unit_triggered_by=()
unit_known=

unit_supported()
{
	setting_needs /run/systemd/system 'systemd does not run here' || return 1
	tool_have systemctl || setting_lacks 'no systemctl' || return 1
	setting_may /run/systemd/system 'systemd does not obey this user'
}

# The list of running units is read once, and again after a change.
unit_list()
{
	local unit rest others=()

	[[ ! $unit_known ]] || return 0
	UNITS=() unit_running=()
	tool_run systemctl list-units --plain --no-legend --no-pager --full \
		--type=service,socket,timer,path \
		--state=running,listening,waiting || return 1
	while read -r unit rest; do
		case $unit in
		*.service) UNITS+=("$unit") ;;
		*.socket | *.timer | *.path) others+=("$unit") ;;
		*) continue ;;
		esac
		unit_running[$unit]=1
	done <<<"$OUT"
	UNITS+=("${others[@]}")
	unit_known=1
}

unit_is_running()
{
	unit_list && [[ ${unit_running[$1]:-} ]]
}

unit_is_installed()
{
	tool_run systemctl show --property=LoadState "$1" &&
		[[ $OUT == LoadState=loaded ]]
}

# All units that run are asked by one call, any other by its own.
unit_triggers()
{
	local names=("$1")

	if [[ ! ${unit_triggered_by[$1]+known} ]]; then
		unit_list || true
		[[ ! ${unit_running[$1]:-} ]] || names=("${UNITS[@]}")
		unit_read_triggers "${names[@]}"
	fi
	read -r -a TRIGGERS <<<"${unit_triggered_by[$1]:-}"
}

unit_read_triggers()
{
	local key value id='' triggers=''

	tool_run systemctl show --property=Id,TriggeredBy "$@" || return 0
	# The two lines come in either order, a blank one after each unit.
	while IFS='=' read -r key value; do
		case $key in
		Id) id=$value ;;
		TriggeredBy) triggers=$value ;;
		'') id='' triggers='' ;;
		esac
		[[ ! $id ]] || unit_triggered_by[$id]=$triggers
	done <<<"$OUT"
}

unit_switch()
{
	unit_known=
	if ! tool_run systemctl --no-ask-password "$@"; then
		WHY="systemctl: ${OUT%%$'\n'*}"
		[[ $OUT ]] || WHY="systemctl: exit status $STATUS"
		return 1
	fi
}
