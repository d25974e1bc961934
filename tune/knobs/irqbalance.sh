# irqbalance.sh - the daemon that moves interrupts from CPU to CPU

. "$TUNE/lib/unit.sh"

knob_irqbalance_values='running, stopped'
# irqbalance comes before irq-affinity, and so is started again after that is
# undone.
knob_irqbalance_order=55

irqbalance_unit=irqbalance.service

knob_irqbalance_supported()
{
	unit_supported || return 1
	unit_is_installed $irqbalance_unit ||
		setting_lacks "no $irqbalance_unit"
}

knob_irqbalance_get()
{
	if unit_is_running $irqbalance_unit; then
		VALUE=running
	else
		VALUE=stopped
	fi
}

knob_irqbalance_goal()
{
	[[ $3 == running || $3 == stopped ]] ||
		setting_refuse "$3" 'running or stopped'
}

knob_irqbalance_set()
{
	local verb=stop

	[[ $2 != running ]] || verb=start
	unit_switch $verb $irqbalance_unit
}

knob_irqbalance_act()
{
	ACT="systemctl stop $irqbalance_unit"
	[[ $2 != running ]] || ACT="systemctl start $irqbalance_unit"
}

knob_irqbalance_explain='
The daemon that moves interrupts from CPU to CPU every ten seconds,
by load.  While it runs, interrupts stay nowhere for long, and no irq-affinity
that was set either.  Source: irqbalance(1).'
