# placement.sh - where a data set goes: partitions, arrays, file system

readonly DISK_MIB=1048576
# XFS: a log of 64 MiB, and tables; and nothing smaller than 300 MiB is made.
readonly DISK_XFS_MIB=80
readonly DISK_LEAST_MIB=320

# disks_layout: PARTS_EACH, of PART_MIB, on each disk; DISK_PARTS, all first ones,
# then all second ones, and so on; DISK_VOLUMES, what is made of the first ones, of
# the second ones, and so on; and the steps
disks_layout()
{
	local count=${#DISKS[@]} i unit_mib total_mib

	PARTS_EACH=$((DISK_SCRATCH ? 3 : DISK_RAW ? 2 : 1))
	unit_mib=$(((DISK_STRIPE_KIB + 1023) / 1024))
	total_mib=$((DISK_BYTES / DISK_MIB + 1))
	total_mib=$((total_mib * (100 + DISK_HEADROOM) / 100))
	if [[ ! $DISK_RAW ]]; then
		total_mib=$((total_mib + DISK_XFS_MIB))
		((total_mib >= DISK_LEAST_MIB)) || total_mib=$DISK_LEAST_MIB
	fi
	PART_MIB=$(((total_mib + count - 1) / count))
	PART_MIB=$(((PART_MIB + unit_mib - 1) / unit_mib * unit_mib))
	((count == 1)) || disks_spare "$unit_mib"
	for i in "${!DISKS[@]}"; do
		# A MiB before them, and one for the second copy of the table.
		((DISK_SIZE[i] == 0 || DISK_SIZE[i] >= \
			(PART_MIB * PARTS_EACH + 2) * DISK_MIB)) ||
			disk_remark DISK_REFUSED "$i" "too small:`
				` $((PART_MIB * PARTS_EACH)) MiB are wanted of it"
	done
	disks_parts
	disks_volumes
	disks_steps
}

# disks_spare STRIPE_MIB: adds to PART_MIB what an array does not use of it: a MiB
# for the superblock, and what mdadm leaves free behind that, which is up to a
# thousandth, or 8 stripes if that is more, but no more than 128 MiB.  Stripes that
# do not fill MiBs leave a rest.
disks_spare()
{
	local mib=$((PART_MIB / 1000)) stripes_mib=$((DISK_STRIPE_KIB / 128))

	((mib >= stripes_mib)) || mib=$stripes_mib
	((mib <= 128)) || mib=128
	((1024 % DISK_STRIPE_KIB == 0)) || mib=$((mib + $1))
	PART_MIB=$((PART_MIB + mib + 1))
}

# Names that end in a digit have a p before the number.
disks_parts()
{
	local number name p

	DISK_PARTS=()
	for ((number = 1; number <= PARTS_EACH; number++)); do
		for name in "${DISK_NAME[@]}"; do
			p=
			[[ $name != *[0-9] ]] || p=p
			DISK_PARTS+=("/dev/$name$p$number")
		done
	done
}

disks_volumes()
{
	local array=/dev/md/$DISK_LABEL

	if ((${#DISKS[@]} == 1)); then
		DISK_VOLUMES=("${DISK_PARTS[@]}")
	elif [[ $DISK_SCRATCH ]]; then
		DISK_VOLUMES=("$array-scratch" "$array-out" "$array-in")
	elif [[ $DISK_RAW ]]; then
		DISK_VOLUMES=("$array-in" "$array-out")
	else
		DISK_VOLUMES=("$array")
	fi
}

# disks_steps: STEPS, words with single blanks; STEP_INPUT, what one reads, with
# \n between lines; STEP_THEN, what the user does then
disks_steps()
{
	local count=${#DISKS[@]} i part type=linux

	STEPS=() STEP_INPUT=() STEP_MOUNT='' STEP_SORT='' STEP_THEN=''
	((count == 1)) || type=raid
	for i in "${!DISKS[@]}"; do
		STEP_INPUT[i]="label: gpt\\nstart=1MiB, size=${PART_MIB}MiB, "
		STEP_INPUT[i]+="type=$type\\n"
		for ((part = 1; part < PARTS_EACH; part++)); do
			STEP_INPUT[i]+="size=${PART_MIB}MiB, type=$type\\n"
		done
		STEPS[i]="sfdisk --quiet --wipe always --wipe-partitions always "
		STEPS[i]+="/dev/${DISK_NAME[i]}"
	done
	((count == 1)) || for i in "${!DISK_VOLUMES[@]}"; do
		STEPS+=("mdadm --create ${DISK_VOLUMES[i]} --run --metadata=1.2 \
--level=0 --raid-devices=$count --chunk=$DISK_STRIPE_KIB \
${DISK_PARTS[*]:i * count:count}")
	done
	[[ $DISK_RAW ]] || disks_xfs_steps
	((PARTS_EACH == 1)) || disks_sort
}

# disks_sort: STEP_SORT, and adds it to STEP_THEN
disks_sort()
{
	local in=$((DISK_SCRATCH ? 2 : 0))

	STEP_SORT="blinksort ${DISK_VOLUMES[in]} --device-bytes=$DISK_BYTES \
--output-device=${DISK_VOLUMES[1]}"
	[[ ! $DISK_SCRATCH ]] || STEP_SORT+=" -T ${STEP_MOUNT##* }"
	STEP_THEN+=${STEP_THEN:+ && }$STEP_SORT
}

disks_xfs_steps()
{
	local stripes='' volume=${DISK_VOLUMES[0]}

	((${#DISKS[@]} == 1)) ||
		stripes="-d su=${DISK_STRIPE_KIB}k,sw=${#DISKS[@]} "
	STEPS+=("mkfs.xfs -q -f -L $DISK_LABEL $stripes$volume")
	STEP_MOUNT="mount -o noatime $volume ${DISK_MOUNT:-/mnt/$DISK_LABEL}"
	if [[ $DISK_MOUNT ]]; then
		STEPS+=("$STEP_MOUNT")
	else
		STEP_THEN=$STEP_MOUNT
	fi
}

# disk_step_text I: TEXT, the step as a line for a shell
disk_step_text()
{
	TEXT=${STEPS[$1]}
	[[ ! ${STEP_INPUT[$1]-} ]] || TEXT="printf '${STEP_INPUT[$1]}' | $TEXT"
}
