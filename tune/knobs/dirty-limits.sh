# dirty-limits.sh - how much written data may wait in memory
#
# Each of the two limits is a ratio or a number of bytes: the kernel makes the
# one 0 when the other is written, and takes no 0 for bytes.  So a value says
# of both which is in force, and "ratio 0" is a value like any other.

knob_dirty_limits_values='ratio PERCENT background-ratio PERCENT, or bytes for ratio'

dirty_limits_folder=/proc/sys/vm

knob_dirty_limits_supported()
{
	local name

	for name in dirty_{,background_}{ratio,bytes}; do
		setting_supported "$dirty_limits_folder/$name" || return 1
	done
}

# dirty_limit_get PREFIX: VALUE is "bytes N" or "ratio N".
dirty_limit_get()
{
	file_read "$dirty_limits_folder/$1_bytes" || return 1
	if [[ $VALUE != 0 ]]; then
		VALUE="bytes $VALUE"
		return 0
	fi
	file_read "$dirty_limits_folder/$1_ratio" || return 1
	VALUE="ratio $VALUE"
}

# dirty_limit_set PREFIX ratio|bytes N
dirty_limit_set()
{
	local file=$dirty_limits_folder/$1 now

	dirty_limit_get "$1" || return 1
	now=$VALUE
	if [[ $2 == bytes ]]; then
		file_write "${file}_bytes" "$3" || return 1
		dirty_limit_tree "${file}_ratio"
		return
	fi
	# The ratio reads 0 while bytes are in force; the kernel would take a 0
	# for no change, and leave them so.
	if [[ $now == bytes* && $3 == 0 ]]; then
		file_write "${file}_ratio" 1 || return 1
	fi
	file_write "${file}_ratio" "$3" || return 1
	dirty_limit_tree "${file}_bytes"
}

# dirty_limit_tree FILE: the kernel does this itself.
dirty_limit_tree()
{
	[[ ! $ROOT ]] || file_write "$1" 0
}

knob_dirty_limits_get()
{
	local foreground

	dirty_limit_get dirty || return 1
	foreground=$VALUE
	dirty_limit_get dirty_background || return 1
	VALUE="$foreground background-$VALUE"
}

knob_dirty_limits_goal()
{
	local unit number background_unit background_number pattern

	pattern='^(ratio|bytes) [0-9]+ background-(ratio|bytes) [0-9]+$'
	read -r unit number background_unit background_number <<<"$3"
	if [[ ! $3 =~ $pattern ]] ||
		! dirty_limit_valid "$unit" "$number" 8192 ||
		! dirty_limit_valid "${background_unit#*-}" \
			"$background_number" 1; then
		setting_refuse "$3" 'two limits in range'
	fi
}

knob_dirty_limits_set()
{
	local unit number background_unit background_number

	read -r unit number background_unit background_number <<<"$2"
	dirty_limit_set dirty "$unit" "$number" &&
		dirty_limit_set dirty_background "${background_unit#*-}" \
			"$background_number"
}

# dirty_limit_valid UNIT N LEAST_BYTES: the kernel wants two pages at least in
# front, and one byte in the background.
dirty_limit_valid()
{
	if [[ $1 == ratio ]]; then
		number_is "$2" 0 100
	else
		number_is "$2" "$3" 999999999999999999
	fi
}

knob_dirty_limits_act()
{
	local unit number background_unit background_number

	read -r unit number background_unit background_number <<<"$2"
	ACT="echo $number >$dirty_limits_folder/dirty_$unit; "
	ACT+="echo $background_number >"
	ACT+="$dirty_limits_folder/dirty_${background_unit/-/_}"
}

knob_dirty_limits_explain='
How much written data may wait in memory: above the background
limit the kernel begins to write it out, above the other the writer itself is
held up.  Each is a percentage of the memory that is free or page cache, or
bytes.  Source: Documentation/admin-guide/sysctl/vm.rst.'
