# irqbalance.sh - the daemon that moves interrupts from CPU to CPU
# shellcheck shell=bash
# shellcheck disable=SC2034 # results are in variables

# shellcheck source=tune/lib/unit.sh
. "$TUNE/lib/unit.sh"

knob_irqbalance_lifetime=boot
knob_irqbalance_risk=none
# Before irq-affinity, and so started again after that is undone.
knob_irqbalance_order=55

irqbalance_unit=irqbalance.service

knob_irqbalance_targets()
{
	TARGETS=(-)
}

knob_irqbalance_supported()
{
	unit_supported || return 1
	if ! unit_is_installed $irqbalance_unit; then
		SUPPORT=unsupported WHY="no $irqbalance_unit"
		return 1
	fi
}

knob_irqbalance_get()
{
	if unit_is_running $irqbalance_unit; then
		VALUE=running
	else
		VALUE=stopped
	fi
}

knob_irqbalance_set()
{
	case $2 in
	running) unit_switch start $irqbalance_unit ;;
	stopped) unit_switch stop $irqbalance_unit ;;
	*)
		WHY="$2: Invalid argument: neither running nor stopped"
		return 1
		;;
	esac
}

knob_irqbalance_values()
{
	VALUES='running, stopped'
}

knob_irqbalance_act()
{
	ACT="systemctl stop $irqbalance_unit"
	[[ $2 != running ]] || ACT="systemctl start $irqbalance_unit"
}

knob_irqbalance_explain()
{
	EXPLAIN='The daemon that moves interrupts from CPU to CPU every ten seconds,
by load.  While it runs, interrupts stay nowhere for long, and no irq-affinity
that was set either.  Source: irqbalance(1).'
}
