# energy-performance.sh - the hint by which the CPU chooses its frequency itself

. "$TUNE/lib/policy.sh"

knob_energy_performance_targets=(file_by_number "$POLICIES" policy energy_performance_preference)
knob_energy_performance_file=$POLICIES/TARGET/energy_performance_preference
# The hint comes before the governor, and so is undone after it: while the
# governor is performance, any hint but performance is refused (EBUSY).
knob_energy_performance_order=15

energy_performance_list=energy_performance_available_preferences

knob_energy_performance_goal()
{
	number_is "$3" 0 255 ||
		policy_offers "$1" $energy_performance_list "$3" ||
		setting_refuse "$3" 'a hint of this CPU' || return 1
	VALUE=$3
}

knob_energy_performance_values()
{
	VALUES='0 (fast) to 255 (thrifty)'
	if file_read "$POLICIES/$1/$energy_performance_list"; then
		VALUES+=", $VALUE"
	fi
}

knob_energy_performance_explain='
The hint by which a CPU that chooses its own frequency (HWP, CPPC)
weighs speed against power.  The governor performance implies performance.
Source: Documentation/admin-guide/pm/intel_pstate.rst and amd-pstate.rst.'
