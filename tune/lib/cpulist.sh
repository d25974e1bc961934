# cpulist.sh - sets of CPUs, as the kernel writes them
#
#   cpulist_of LIST              VALUE: the list as the kernel would show it,
#                                "0,1,2,8" as "0-2,8"; or 1 if it is none
#   cpulist_of_mask MASK         VALUE: the list of a mask, "ff,00000003"
#   cpulist_mask LIST LIKE       MASK: with as many digits as LIKE, a mask; or 1
#                                if a CPU has no place in it

. "$TUNE/lib/name_ranges.sh"

# No kernel of Debian is built for more CPUs.
CPULIST_LIMIT=8192

# cpulist_parse LIST: sets the caller's cpus, an array with each CPU as an
# index.
cpulist_parse()
{
	local part first last parts
	local number='[0-9]{1,4}'

	[[ $1 =~ ^$number(-$number)?(,$number(-$number)?)*$ ]] || return 1
	IFS=, read -r -a parts <<<"$1"
	for part in "${parts[@]}"; do
		first=$((10#${part%-*})) last=$((10#${part#*-}))
		((first <= last && last < CPULIST_LIMIT)) || return 1
		for ((; first <= last; first++)); do
			cpus[first]=1
		done
	done
}

cpulist_of()
{
	local cpus=()

	cpulist_parse "$1" && ranges_join "${!cpus[@]}" && VALUE=$RANGES
}

cpulist_of_mask()
{
	local digits=${1//,/} cpus=() cpu digit i

	[[ $digits =~ ^[0-9a-f]+$ ]] || return 1
	for ((i = 0; i < ${#digits}; i++)); do
		digit=$((16#${digits:i:1}))
		for cpu in 0 1 2 3; do
			((!(digit >> cpu & 1))) ||
				cpus[(${#digits} - 1 - i) * 4 + cpu]=1
		done
	done
	ranges_join "${!cpus[@]}" && VALUE=$RANGES
}

cpulist_mask()
{
	local cpus=() cpu digit left digits=${2//,/}

	cpulist_parse "$1" || return 1
	MASK=
	left=${#digits}
	for ((digit = 0; digit < left; digit++)); do
		((digit == 0 || digit % 8)) || MASK=,$MASK
		printf -v cpu %x $((${cpus[digit * 4]:-0} |
			${cpus[digit * 4 + 1]:-0} << 1 |
			${cpus[digit * 4 + 2]:-0} << 2 |
			${cpus[digit * 4 + 3]:-0} << 3))
		MASK=$cpu$MASK
	done
	cpus=("${!cpus[@]}")
	((cpus[-1] < left * 4))
}
