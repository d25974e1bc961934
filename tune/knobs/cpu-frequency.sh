# cpu-frequency.sh - the limits within which a CPU's frequency moves

. "$TUNE/lib/policy.sh"

knob_cpu_frequency_targets=(file_by_number "$POLICIES" policy scaling_min_freq)
# The limits come after the governor and turbo, both of which move them.
knob_cpu_frequency_order=40

knob_cpu_frequency_supported()
{
	setting_supported "$POLICIES/$1/scaling_min_freq" &&
		setting_supported "$POLICIES/$1/scaling_max_freq"
}

# Both limits are one value: restoring one without the other restores nothing.
knob_cpu_frequency_get()
{
	local low

	file_read "$POLICIES/$1/scaling_min_freq" || return 1
	low=$VALUE
	file_read "$POLICIES/$1/scaling_max_freq" || return 1
	VALUE=$low-$VALUE
}

knob_cpu_frequency_goal()
{
	local low high

	case $3 in
	max | all)
		file_read "$POLICIES/$1/cpuinfo_max_freq" || return 1
		low=$VALUE high=$VALUE
		if [[ $3 == all ]]; then
			file_read "$POLICIES/$1/cpuinfo_min_freq" || return 1
			low=$VALUE
		fi
		VALUE=$low-$high
		;;
	*-*) ;;
	*) VALUE=$3-$3 ;;
	esac
	cpu_frequency_valid "$VALUE"
}

cpu_frequency_valid()
{
	local low=${1%-*} high=${1#*-}

	if [[ $1 != *-* ]] || ! number_is "$low" 1 999999999 ||
		! number_is "$high" "$low" 999999999; then
		setting_refuse "$1" 'MIN-MAX in kHz'
	fi
}

# cpu_frequency_orders TARGET VALUE: sets the caller's steps, "FILE KHZ" each,
# in an order in which the minimum is never above the maximum.
cpu_frequency_orders()
{
	local low=${2%-*} high=${2#*-}

	cpu_frequency_valid "$2" || return 1
	file_read "$POLICIES/$1/scaling_min_freq" || return 1
	number_is "$VALUE" 0 999999999 ||
		why_not "scaling_min_freq is '$VALUE', not a number of kHz" ||
		return 1
	if ((high >= VALUE)); then
		steps=("max $high" "min $low")
	else
		steps=("min $low" "max $high")
	fi
}

knob_cpu_frequency_set()
{
	local step steps

	cpu_frequency_orders "$1" "$2" || return 1
	for step in "${steps[@]}"; do
		file_write "$POLICIES/$1/scaling_${step% *}_freq" \
			"${step#* }" || return 1
	done
}

knob_cpu_frequency_values()
{
	VALUES='MIN-MAX or one number in kHz, max, all'
	if file_read "$POLICIES/$1/scaling_available_frequencies"; then
		VALUES+="; of $VALUE"
	elif knob_cpu_frequency_goal "$1" "" all; then
		VALUES+="; within $VALUE"
	fi
}

knob_cpu_frequency_act()
{
	local step steps=()

	cpu_frequency_orders "$1" "$2" || return 0
	for step in "${steps[@]}"; do
		ACT+="${ACT:+; }echo ${step#* }"
		ACT+=" >$POLICIES/$1/scaling_${step% *}_freq"
	done
}

knob_cpu_frequency_explain='
The limits, in kHz, within which the frequency of a policy
moves; "max" makes both the highest there is, so that neither the kernel nor
the CPU itself has anything to choose, and "all" gives them back the whole
range.  What turbo adds counts in them with some drivers only.  The kernel
rounds to steps of the CPU.  Source: Documentation/admin-guide/pm/cpufreq.rst.'
