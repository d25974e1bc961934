# turbo.sh - frequencies above the one that the CPU can keep up
# shellcheck shell=bash
# shellcheck disable=SC2034 # results are in variables

# shellcheck source=tune/lib/setting.sh
. "$TUNE/lib/setting.sh"

knob_turbo_lifetime=boot
knob_turbo_risk=none
# After the governor, whose change switches turbo on with some drivers; before
# the limits, whose range it moves.
knob_turbo_order=30

turbo_intel=/sys/devices/system/cpu/intel_pstate/no_turbo
turbo_boost=/sys/devices/system/cpu/cpufreq/boost

# turbo_find: sets the caller's file, and off, what is written to it for off.
turbo_find()
{
	file=$turbo_boost off=0
	if file_exists $turbo_intel; then
		file=$turbo_intel off=1
	fi
}

knob_turbo_targets()
{
	TARGETS=(-)
}

knob_turbo_supported()
{
	local file off

	turbo_find
	if ! file_exists "$file"; then
		SUPPORT=unsupported
		WHY="neither intel_pstate/no_turbo nor cpufreq/boost"
		return 1
	fi
	setting_supported "$file"
}

knob_turbo_get()
{
	local file off

	turbo_find
	file_read "$file" || return 1
	if [[ $VALUE == "$off" ]]; then
		VALUE=off
	else
		VALUE=on
	fi
}

knob_turbo_goal()
{
	VALUE=$3
	[[ $3 == on || $3 == off ]] || setting_refuse "$3" 'on or off'
}

knob_turbo_set()
{
	local file off

	turbo_find
	[[ $2 == off ]] || off=$((1 - off))
	file_write "$file" "$off"
}

knob_turbo_values()
{
	VALUES='on, off'
}

knob_turbo_act()
{
	local file off

	turbo_find
	[[ $2 == off ]] || off=$((1 - off))
	ACT="echo $off >$file"
}

knob_turbo_explain()
{
	EXPLAIN='Whether CPUs may go above the frequency that they can keep up, as
long as power and heat allow.  On is faster; off is steadier, since what it adds
depends on how many CPUs work and how warm they are.
Source: Documentation/admin-guide/pm/intel_pstate.rst (no_turbo) and cpufreq.rst
(boost).'
}
