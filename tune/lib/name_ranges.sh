# name_ranges.sh - write many names as ranges: policy0 policy1 policy3 become
# policy[0-1,3]
#
#   name_ranges NAME...    sets NAME_RANGES, where names that differ only in their
#                          last number are one range
#   ranges_join N...       sets RANGES, "0-2,8", of numbers in rising order

name_ranges()
{
	local name key order=()
	local -A numbers=()

	for name in "$@"; do
		if [[ $name =~ ^(.*[^0-9]|)(0|[1-9][0-9]{0,8})([^0-9]*)$ ]]; then
			key=${BASH_REMATCH[1]}$'\t'${BASH_REMATCH[3]}
			[[ ${numbers[$key]:-} ]] || order+=("$key")
			numbers[$key]+=" ${BASH_REMATCH[2]}"
		else
			order+=("$name")
		fi
	done
	NAME_RANGES=
	for key in "${order[@]}"; do
		if [[ $key == *$'\t'* ]]; then
			name_ranges_of_numbers "${numbers[$key]}"
			key=${key%%$'\t'*}$RANGES${key#*$'\t'}
		fi
		NAME_RANGES+=${NAME_RANGES:+,}$key
	done
}

# name_ranges_of_numbers "N N ...": sets RANGES, in brackets unless there is only
# one number.
name_ranges_of_numbers()
{
	local number sorted=()

	# An array's indices come out in order.
	for number in $1; do
		sorted[number]=1
	done
	ranges_join "${!sorted[@]}"
	[[ ${#sorted[@]} == 1 ]] || RANGES="[$RANGES]"
}

ranges_join()
{
	local number first=-1 last=-2

	RANGES=
	for number in "$@" end; do
		if [[ $number == $((last + 1)) ]]; then
			last=$number
			continue
		fi
		if ((first >= 0)); then
			RANGES+=${RANGES:+,}$first
			((first == last)) || RANGES+=-$last
		fi
		[[ $number == end ]] || first=$number last=$number
	done
}
