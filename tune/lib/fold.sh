# fold.sh - many names as one: policy0 policy1 policy3 as policy[0-1,3]
# shellcheck shell=bash
# shellcheck disable=SC2034,SC2153,SC2154 # results are in variables
#
#   fold_names NAME...    FOLDED; names that differ only in their last number
#                         are put together

fold_names()
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
	FOLDED=
	for key in "${order[@]}"; do
		if [[ $key == *$'\t'* ]]; then
			fold_numbers "${numbers[$key]}"
			key=${key%%$'\t'*}$RANGES${key#*$'\t'}
		fi
		FOLDED+=${FOLDED:+,}$key
	done
}

# fold_numbers "N N ...": RANGES, in brackets unless it is one number.
fold_numbers()
{
	local number sorted=() first='' last='' ranges=''

	# An array's indices come out in order.
	for number in $1; do
		sorted[number]=1
	done
	for number in "${!sorted[@]}"; do
		if [[ $first ]] && ((number == last + 1)); then
			last=$number
			continue
		fi
		[[ ! $first ]] || fold_range
		first=$number last=$number
	done
	fold_range
	RANGES=$ranges
	[[ ${#sorted[@]} == 1 ]] || RANGES="[$ranges]"
}

# Adds the caller's first and last to its ranges.
fold_range()
{
	ranges+=${ranges:+,}$first
	[[ $first == "$last" ]] || ranges+=-$last
}
