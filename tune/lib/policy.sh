# policy.sh - the CPUs that share one frequency: cpufreq's policies
#
#   POLICIES                     the folder that they are in
#   policy_offers TARGET LIST WORD
#                                is WORD in the file LIST of the policy?

POLICIES=/sys/devices/system/cpu/cpufreq

policy_offers()
{
	[[ $3 && $3 != *[[:space:]]* ]] && file_read "$POLICIES/$1/$2" &&
		[[ " $VALUE " == *" $3 "* ]]
}
