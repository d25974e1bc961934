# policy.sh - the CPUs that share one frequency: cpufreq's policies
#
#   POLICIES                     the folder that they are in
#   policy_targets FILE          TARGETS: those that have FILE, by number
#   policy_offers TARGET LIST WORD
#                                is WORD in the file LIST of the policy?

POLICIES=/sys/devices/system/cpu/cpufreq

policy_targets()
{
	local file name by_number=()

	file_list "$POLICIES/policy*/$1"
	for file in "${FILES[@]}"; do
		name=${file#"$POLICIES/"}
		name=${name%%/*}
		! number_is "${name#policy}" 0 99999 ||
			by_number[${name#policy}]=$name
	done
	TARGETS=("${by_number[@]}")
}

policy_offers()
{
	[[ $3 && $3 != *[[:space:]]* ]] && file_read "$POLICIES/$1/$2" &&
		[[ " $VALUE " == *" $3 "* ]]
}
