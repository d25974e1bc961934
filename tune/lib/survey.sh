# survey.sh - the contents and the users of block devices

# disks_survey: of each of DISKS, by its place: DISK_NAME, DISK_SIZE (bytes),
# DISK_REFUSED (why it can't be had), DISK_HOLDS (what would be destroyed) and
# DISK_NOTE
disks_survey()
{
	local i

	DISK_NAME=() DISK_SIZE=() DISK_REFUSED=() DISK_HOLDS=() DISK_NOTE=()
	for i in "${!DISKS[@]}"; do
		DISK_SIZE[i]=0 DISK_REFUSED[i]='' DISK_HOLDS[i]='' DISK_NOTE[i]=''
		disk_name "$i"
		disk_is_whole "$i" || continue
		disk_look "$i"
		disk_contents "$i"
		disk_use "$i"
	done
}

# disk_remark LIST I TEXT: adds TEXT to that of the device
disk_remark()
{
	local -n remarks=$1

	remarks[$2]+="${remarks[$2]:+; }$3"
}

# disk_name I: DISK_NAME, as the kernel says; /dev/disk/by-id/... are links.
disk_name()
{
	local path=${DISKS[$1]}

	if [[ ! $ROOT && -e $path ]]; then
		path=$(readlink -f "$path")
	fi
	DISK_NAME[$1]=${path#/dev/}
}

# disk_is_whole I: is it a disk that we can partition?
disk_is_whole()
{
	local name=${DISK_NAME[$1]} other why=''

	for ((other = 0; other < $1; other++)); do
		[[ ${DISK_NAME[other]} != "$name" ]] || why='named twice'
	done
	file_list "/sys/block/*/$name/partition"
	if ((${#FILES[@]})); then
		why='a partition: name the disk'
	elif [[ ! $name || $name == */* ]] || ! file_exists "/sys/block/$name"
	then
		why='no block device'
	elif [[ ! $ROOT && ! -b /dev/$name ]]; then
		why="no /dev/$name"
	fi
	[[ ! $why ]] || disk_remark DISK_REFUSED "$1" "$why"
	[[ ! $why ]]
}

disk_look()
{
	local name=${DISK_NAME[$1]}

	if file_read "/sys/block/$name/size" &&
		number_is "$VALUE" 1 $((NUMBER_MAX / 512)); then
		DISK_SIZE[$1]=$((VALUE * 512))
	else
		disk_remark DISK_REFUSED "$1" 'no medium'
	fi
	if file_read "/sys/block/$name/ro" && [[ $VALUE == 1 ]]; then
		disk_remark DISK_REFUSED "$1" 'read-only'
	fi
	if file_read "/sys/block/$name/queue/rotational" &&
		[[ $VALUE == 0 ]]; then
		disk_remark DISK_NOTE "$1" \
			'does not rotate: its start is no faster than its end'
	fi
	case $name in
	loop* | vd* | xvd* | md* | dm-*)
		disk_remark DISK_NOTE "$1" \
			'not a drive itself: where its start lies is unknown'
		;;
	esac
}

# disk_parts NAME: PARTS=its partitions
disk_parts()
{
	local path

	PARTS=()
	file_list "/sys/block/$1/$1*/partition"
	for path in "${FILES[@]}"; do
		path=${path%/partition}
		PARTS+=("${path##*/}")
	done
}

# disk_contents I: tables, file systems, members of arrays, by their signatures
disk_contents()
{
	local name=${DISK_NAME[$1]} node type seen=' '

	disk_parts "$name"
	((${#PARTS[@]} == 0)) ||
		disk_remark DISK_HOLDS "$1" "partitions ${PARTS[*]}"
	for node in "$name" "${PARTS[@]}"; do
		if ! tool_run wipefs --noheadings --output TYPE "/dev/$node"
		then
			disk_remark DISK_NOTE "$1" \
				"what $node holds is unknown: ${OUT##*: }"
			continue
		fi
		while read -r type; do
			[[ $type && $seen != *" $node:$type "* ]] || continue
			seen+="$node:$type "
			disk_remark DISK_HOLDS "$1" "$type on $node"
		done <<<"$OUT"
	done
}

# disk_use I: mounted, swapped to, or below something else
disk_use()
{
	local name=${DISK_NAME[$1]} node path number

	disk_parts "$name"
	for node in "$name" "${PARTS[@]}"; do
		path=/sys/block/$name
		[[ $node == "$name" ]] || path+=/$node
		number=
		! file_read "$path/dev" || number=$VALUE
		disk_use_mounts "$1" "$node" "$number"
		disk_use_swaps "$1" "$node"
		file_list "$path/holders/*"
		((${#FILES[@]} == 0)) || disk_remark DISK_REFUSED "$1" \
			"$node is a member of ${FILES[*]##*/}"
	done
}

# Lines of mountinfo: number, parent, major:minor, root, mount point, options...
# - type, source.  btrfs has numbers of its own, but names its source.
disk_use_mounts()
{
	local id parent number root point rest

	[[ -r $ROOT/proc/self/mountinfo ]] || return 0
	while read -r id parent number root point rest; do
		[[ ($3 && $number == "$3") || "$rest " == *" /dev/$2 "* ]] ||
			continue
		disk_remark DISK_REFUSED "$1" "$2 is mounted at $point"
	done <"$ROOT/proc/self/mountinfo"
}

disk_use_swaps()
{
	local path rest

	[[ -r $ROOT/proc/swaps ]] || return 0
	while read -r path rest; do
		[[ $path != "/dev/$2" ]] ||
			disk_remark DISK_REFUSED "$1" "$2 is swapped to"
	done <"$ROOT/proc/swaps"
}
