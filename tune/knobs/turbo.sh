# turbo.sh - frequencies above the one that the CPU can keep up

knob_turbo_values='on, off'
# Turbo comes after the governor, whose change switches turbo on with some
# drivers; and before the limits, whose range it moves.
knob_turbo_order=30

turbo_intel=/sys/devices/system/cpu/intel_pstate/no_turbo
turbo_boost=/sys/devices/system/cpu/cpufreq/boost

# Sets FILE, and TURBO_OFF to what is written to FILE for off.
knob_turbo_find()
{
	FILE=$turbo_boost TURBO_OFF=0
	if file_exists $turbo_intel; then
		FILE=$turbo_intel TURBO_OFF=1
	fi
}

knob_turbo_supported()
{
	setting_needs "$FILE" 'neither intel_pstate/no_turbo nor cpufreq/boost' &&
		setting_supported "$FILE"
}

knob_turbo_get()
{
	local word=on

	file_read "$FILE" || return 1
	[[ $VALUE != "$TURBO_OFF" ]] || word=off
	VALUE=$word
}

knob_turbo_goal()
{
	[[ $3 == on || $3 == off ]] || setting_refuse "$3" 'on or off'
}

knob_turbo_set()
{
	local off=$TURBO_OFF

	[[ $2 == off ]] || off=$((1 - off))
	file_write "$FILE" "$off"
}

knob_turbo_act()
{
	local off=$TURBO_OFF

	[[ $2 == off ]] || off=$((1 - off))
	ACT="echo $off >$FILE"
}

knob_turbo_explain='
Whether CPUs may go above the frequency that they can keep up, as
long as power and heat allow.  On is faster; off is steadier, since what it adds
depends on how many CPUs work and how warm they are.
Source: Documentation/admin-guide/pm/intel_pstate.rst (no_turbo) and cpufreq.rst
(boost).'
