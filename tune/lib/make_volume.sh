# make_volume.sh - make the volumes that placement.sh has laid out, or remove them
# again after a failure

make_volume()
{
	local i

	disks_agreed
	disks_tools
	trap 'disks_fail "ended by a signal" 129' HUP
	trap 'disks_fail "ended by a signal" 130' INT
	trap 'disks_fail "ended by a signal" 143' TERM
	for STEP in "${!STEPS[@]}"; do
		((STEP != ${#DISKS[@]})) || disks_wait || disks_fail "$WHY"
		# Mounting is the last step.  Once begun, it is not undone.
		[[ ${STEPS[STEP]} != mount* ]] || trap '' HUP INT TERM
		disk_step_text "$STEP"
		act "$TEXT"
		disk_run "${STEPS[STEP]}" "${STEP_INPUT[STEP]-}" ||
			disks_fail "${STEPS[STEP]%% *}: $WHY"
	done
	# Raw partitions of one disk are used as they are.
	((${#STEPS[@]} > ${#DISKS[@]})) || disks_wait || disks_fail "$WHY"
	trap - HUP INT TERM
	[[ ! $STEP_THEN ]] || say "made; then: $STEP_THEN"
}

# Checks that the operator has named the devices twice and none is in use.
disks_agreed()
{
	local i

	[[ ${#DISKS_YES[@]} -gt 0 && "${DISKS[*]}" == "${DISKS_YES[*]}" ]] ||
		misuse 'disks make: --yes-destroy must name the same devices in' \
			"the same order: ${DISKS[*]}"
	for i in "${!DISKS[@]}"; do
		[[ ! ${DISK_REFUSED[i]} ]] ||
			die "disks make: ${DISKS[i]}: ${DISK_REFUSED[i]}"
	done
}

# Checks that all tools are installed, before anything is destroyed.
disks_tools()
{
	local name names=(sfdisk wipefs partx)

	[[ $DISK_RAW ]] || names+=(mkfs.xfs)
	((${#DISKS[@]} == 1)) || names+=(mdadm)
	[[ ! $DISK_MOUNT ]] || names+=(mount umount)
	for name in "${names[@]}"; do
		tool_have "$name" || die "disks make: $name is not installed"
	done
	[[ ! $DISK_MOUNT || -d $ROOT$DISK_MOUNT ]] ||
		die "disks make: --mount: no folder $DISK_MOUNT"
	((${#DISKS[@]} == 1)) || for name in "${DISK_VOLUMES[@]}"; do
		! file_exists "$name" ||
			die "disks make: there is a $name already: another --label?"
	done
}

# disk_run COMMAND [INPUT]: returns 0, or 1 with WHY
disk_run()
{
	local -a words

	read -r -a words <<<"$1"
	TOOL_INPUT=<(printf '%b' "${2-}") tool_run "${words[@]}" &&
		return 0
	# The tool's first line is the reason; a usage text may follow.
	WHY=${OUT%%$'\n'*}
	[[ $WHY ]] || WHY="exit status $STATUS"
	return 1
}

# Waits until /dev has the partitions.  The kernel reads a new table by itself, but
# not for every device, and reads GPT only if it was built with it.
disks_wait()
{
	local i part disk try

	[[ ! $ROOT ]] || return 0
	for i in "${!DISK_PARTS[@]}"; do
		part=${DISK_PARTS[i]}
		disk=${DISK_NAME[i % ${#DISKS[@]}]}
		file_exists "/sys/block/$disk/${part#/dev/}" ||
			disks_do "partx --update /dev/$disk" || return 1
		for ((try = 0; try < 50; try++)); do
			[[ ! -b $part ]] || continue 2
			sleep 0.1
		done
		WHY="no $part after 5 s"
		return 1
	done
}

# disks_do COMMAND: echoes and runs the command; returns 0, or 1 with WHY
disks_do()
{
	act "$1"
	disk_run "$1" || why_not "$1: $WHY"
}

# disks_fail WHY [STATUS]: removes what was made, reports what is lost, and ends
# the program.
disks_fail()
{
	local why=$1 status=${2:-$STATUS_FAILED} count=${#DISKS[@]} i part

	trap '' HUP INT TERM
	complain "disks make: $why"
	((STEP < count)) || disks_undo_arrays
	# Step STEP may have begun.
	for ((i = STEP < count ? STEP : count - 1; i >= 0; i--)); do
		if ((i != STEP)); then
			for ((part = i; part < ${#DISK_PARTS[@]}; part += count))
			do
				# The kernel may not have read the table yet.
				[[ ! $ROOT && ! -b ${DISK_PARTS[part]} ]] ||
					disks_undo "wipefs --quiet --all`
						` ${DISK_PARTS[part]}"
			done
			disks_undo "wipefs --quiet --all /dev/${DISK_NAME[i]}"
		fi
		complain "disks make: ${DISKS[i]}:" \
			"$( ((i == STEP)) && echo may be lost || echo lost):" \
			"${DISK_HOLDS[i]:-nothing that was known}"
	done
	exit "$status"
}

# A mount is never undone, since mounting is the last step.
disks_undo_arrays()
{
	local i

	((${#DISKS[@]} > 1)) || return 0
	for ((i = ${#DISK_VOLUMES[@]} - 1; i >= 0; i--)); do
		! file_exists "${DISK_VOLUMES[i]}" ||
			disks_undo "mdadm --stop ${DISK_VOLUMES[i]}"
	done
}

# disks_undo COMMAND: sets the caller's status if it fails.
disks_undo()
{
	disks_do "$1" && return 0
	status=$STATUS_INCOMPLETE
	complain "disks make: $WHY"
}
