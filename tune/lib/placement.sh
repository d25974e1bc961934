# placement.sh - where a data set goes: partitions, array, file system
# shellcheck shell=bash
# shellcheck disable=SC2034,SC2153 # arguments and results in variables

readonly DISK_MIB=1048576
# XFS: a log of 64 MiB, and tables; and nothing smaller than 300 MiB is made.
readonly DISK_XFS_MIB=80
readonly DISK_LEAST_MIB=320

# disks_layout: PART_MIB, DISK_PARTS, and the steps
disks_layout()
{
	local count=${#DISKS[@]} i unit_mib total_mib

	unit_mib=$(((DISK_STRIPE_KIB + 1023) / 1024))
	total_mib=$((DISK_BYTES / DISK_MIB + 1))
	total_mib=$((total_mib * (100 + DISK_HEADROOM) / 100 + DISK_XFS_MIB))
	((total_mib >= DISK_LEAST_MIB)) || total_mib=$DISK_LEAST_MIB
	# A MiB for the superblock of md, and whole stripes
	PART_MIB=$(((total_mib + count - 1) / count + (count > 1)))
	PART_MIB=$(((PART_MIB + unit_mib - 1) / unit_mib * unit_mib))
	DISK_PARTS=()
	for i in "${!DISKS[@]}"; do
		disk_first_part "${DISK_NAME[i]}"
		# A MiB before it, and one for the second copy of the table.
		((DISK_SIZE[i] == 0 ||
			DISK_SIZE[i] >= (PART_MIB + 2) * DISK_MIB)) ||
			disk_remark DISK_REFUSED "$i" \
				"too small: $PART_MIB MiB are wanted of it"
	done
	disks_steps
}

# Names that end in a digit have a p before the number.
disk_first_part()
{
	local p=

	[[ $1 != *[0-9] ]] || p=p
	DISK_PARTS+=("/dev/$1${p}1")
}

# disks_steps: STEPS, words with single blanks; STEP_INPUT, what one reads, with
# \n between lines
disks_steps()
{
	local i type=linux stripes=''

	STEPS=() STEP_INPUT=() DISK_ARRAY=${DISK_PARTS[0]}
	if ((${#DISKS[@]} > 1)); then
		type=raid DISK_ARRAY=/dev/md/$DISK_LABEL
		stripes="-d su=${DISK_STRIPE_KIB}k,sw=${#DISKS[@]} "
	fi
	for i in "${!DISKS[@]}"; do
		STEP_INPUT[i]="label: gpt\\nstart=1MiB, size=${PART_MIB}MiB, "
		STEP_INPUT[i]+="type=$type\\n"
		STEPS[i]="sfdisk --quiet --wipe always --wipe-partitions always "
		STEPS[i]+="/dev/${DISK_NAME[i]}"
	done
	((${#DISKS[@]} == 1)) ||
		STEPS+=("mdadm --create $DISK_ARRAY --run --metadata=1.2 --level=0 \
--raid-devices=${#DISKS[@]} --chunk=$DISK_STRIPE_KIB ${DISK_PARTS[*]}")
	STEPS+=("mkfs.xfs -q -f -L $DISK_LABEL $stripes$DISK_ARRAY")
	STEP_MOUNT="mount -o noatime $DISK_ARRAY ${DISK_MOUNT:-/mnt/$DISK_LABEL}"
	[[ ! $DISK_MOUNT ]] || STEPS+=("$STEP_MOUNT")
}

# disk_step_text I: TEXT, the step as a line for a shell
disk_step_text()
{
	TEXT=${STEPS[$1]}
	[[ ! ${STEP_INPUT[$1]-} ]] || TEXT="printf '${STEP_INPUT[$1]}' | $TEXT"
}
