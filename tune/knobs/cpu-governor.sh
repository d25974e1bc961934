# cpu-governor.sh - what chooses the frequency of a CPU

. "$TUNE/lib/policy.sh"

knob_cpu_governor_targets=(file_by_number "$POLICIES" policy scaling_governor)
knob_cpu_governor_file=$POLICIES/TARGET/scaling_governor
# The governor comes before turbo and the limits, which some drivers reset with
# it; and after energy-performance, which can't be written while the governor is
# performance.
knob_cpu_governor_order=20

# The kernel loads a governor that is a module when it is asked for by name; so
# only a tree has nothing but what its list says.
knob_cpu_governor_set()
{
	[[ ! $ROOT ]] ||
		policy_offers "$1" scaling_available_governors "$2" ||
		why_not "$POLICIES/$1/scaling_governor: Invalid argument" || return 1
	file_write "$FILE" "$2"
}

# "a/b/c": the first of them that is there, since drivers differ in names: where
# others have ondemand or schedutil, intel_pstate has only powersave.
knob_cpu_governor_goal()
{
	local names word

	IFS=/ read -r -a names <<<"$3"
	for word in "${names[@]}"; do
		if policy_offers "$1" scaling_available_governors "$word"; then
			VALUE=$word
			return 0
		fi
	done
	VALUE=${names[0]}
}

knob_cpu_governor_values()
{
	VALUES=
	if file_read "$POLICIES/$1/scaling_available_governors"; then
		VALUES="$VALUE, "
	fi
	VALUES+='or A/B: the first of them that is there'
}

knob_cpu_governor_explain='
What chooses the frequency of the CPUs of a policy.  performance
keeps the highest one allowed, at the cost of power and heat; ondemand and
schedutil follow the load and are late at the begin of every burst of work.
With the driver intel_pstate powersave is the name of what follows the load.
Source: Documentation/admin-guide/pm/cpufreq.rst and intel_pstate.rst.'
