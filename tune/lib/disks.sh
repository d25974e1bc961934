# disks.sh - a data set on the outer rim of each disk: partitions, RAID-0, and XFS
# or raw devices
#
#   blinktune disks plan|make --data-bytes N [--stripe KIB] [--label NAME]
#             [--headroom PERCENT] [--mount FOLDER] [--raw | --scratch] DEVICE...
#             [--yes-destroy DEVICE...]
#
# plan prints the commands, a line each, and after # the reasons against them.  If a
# device is refused, the commands stand after #, too.  plan opens no device for
# writing.  make runs the commands if the list after --yes-destroy is the list of
# devices, word for word, and no device is in use.  It always refuses a device that
# is in use.
#
# A rotating disk numbers its blocks from the outer rim inwards, and a turn passes
# the most blocks at the rim, so the partition lies at the start.
#
# With --raw there is no file system, but a device for the input of a sort and,
# right behind it on each disk, one of the same size for its output.
#
# With --scratch there are these devices, too, but the rim has a file system for
# scratch files, which a sort beyond memory writes and reads; the output comes next,
# and the input last.
#
# Status: 0; 1 a command failed, and what was made is removed again; 2 usage;
# 3 a device can't be used; 7 removing failed, too.

disks_main()
{
	local verb=${1-}

	case $verb in
	plan | make) ;;
	*) misuse "disks: takes plan or make, not '$verb'" ;;
	esac
	shift
	disks_options "$@"
	need survey
	need placement
	disks_survey
	disks_layout
	if [[ $verb == make ]]; then
		need make_volume
		make_volume
	elif [[ ${JSON_WANTED:-} ]]; then
		disks_report_json
	else
		disks_report
	fi
}

# --- options ------------------------------------------------------------------

# disks_options WORD...: DISK_BYTES DISK_STRIPE_KIB DISK_LABEL DISK_HEADROOM
# DISK_MOUNT DISK_RAW DISK_SCRATCH DISKS DISKS_YES
disks_options()
{
	local list=DISKS

	DISK_BYTES='' DISK_STRIPE_KIB=64 DISK_LABEL=blink DISK_HEADROOM=10
	DISK_MOUNT='' DISK_RAW='' DISK_SCRATCH='' DISKS=() DISKS_YES=()
	while (($#)); do
		case $1 in
		--yes-destroy) list=DISKS_YES ;;
		--raw) DISK_RAW=1 list=DISKS ;;
		--scratch) DISK_SCRATCH=1 list=DISKS ;;
		--*=*)
			disks_option "${1%%=*}" "${1#*=}"
			list=DISKS
			;;
		-*)
			(($# > 1)) || misuse "disks: $1 needs a value"
			disks_option "$1" "$2"
			list=DISKS
			shift
			;;
		*)
			local -n words=$list
			words+=("$1")
			;;
		esac
		shift
	done
	disks_check_options
}

disks_option()
{
	case $1 in
	--data-bytes) DISK_BYTES=$2 ;;
	--stripe) DISK_STRIPE_KIB=$2 ;;
	--label) DISK_LABEL=$2 ;;
	--headroom) DISK_HEADROOM=$2 ;;
	--mount) DISK_MOUNT=$2 ;;
	*) misuse "disks: no option $1" ;;
	esac
}

disks_check_options()
{
	number_is "$DISK_BYTES" 1 99999999999999999 ||
		misuse "disks: --data-bytes: a number of bytes, not '$DISK_BYTES'"
	{ number_is "$DISK_STRIPE_KIB" 4 99996 && ((DISK_STRIPE_KIB % 4 == 0)); } ||
		misuse "disks: --stripe: a multiple of 4 KiB up to 99996, not" \
			"'$DISK_STRIPE_KIB'"
	# A label of XFS has at most 12 bytes.
	[[ $DISK_LABEL =~ ^[A-Za-z0-9][A-Za-z0-9_-]{0,11}$ ]] ||
		misuse "disks: --label: up to 12 letters, digits, - and _, not" \
			"'$DISK_LABEL'"
	number_is "$DISK_HEADROOM" 0 999 ||
		misuse "disks: --headroom: a percentage, not '$DISK_HEADROOM'"
	[[ ! $DISK_MOUNT || $DISK_MOUNT =~ ^(/[A-Za-z0-9_.-]+)+$ ]] ||
		misuse "disks: --mount: no absolute path of plain characters:" \
			"'$DISK_MOUNT'"
	[[ ! $DISK_RAW || ! $DISK_MOUNT ]] ||
		misuse 'disks: --mount: not with --raw, which makes no file system'
	[[ ! $DISK_RAW || ! $DISK_SCRATCH ]] ||
		misuse 'disks: --scratch: not with --raw, which makes no file system'
	((${#DISKS[@]})) || misuse 'disks: no device named'
}

# --- the report ---------------------------------------------------------------

# disks_tell_refused: on stderr; returns STATUS_FILE if there is such a device
disks_tell_refused()
{
	local i status=0

	for i in "${!DISKS[@]}"; do
		[[ ${DISK_REFUSED[i]} ]] || continue
		complain "disks plan: ${DISKS[i]}: ${DISK_REFUSED[i]}"
		status=$STATUS_FILE
	done
	return "$status"
}

disks_report()
{
	local i off=''

	for i in "${!DISKS[@]}"; do
		print '# %s: %d MiB of %d MiB\n' "${DISKS[i]}" \
			$((PART_MIB * PARTS_EACH)) $((DISK_SIZE[i] / DISK_MIB))
		# Commands that must not be run are comments, so that they are
		# not pasted.
		[[ ! ${DISK_REFUSED[i]} ]] || off='# '
		disks_line 'refused' "${DISK_REFUSED[i]}"
		disks_line 'destroyed' "${DISK_HOLDS[i]}"
		disks_line 'note' "${DISK_NOTE[i]}"
	done
	for i in "${!STEPS[@]}"; do
		disk_step_text "$i"
		print '%s%s\n' "$off" "$TEXT"
	done
	[[ ! $STEP_THEN ]] || print '# then: %s\n' "$STEP_THEN"
	disks_tell_refused
}

disks_line()
{
	[[ ! $2 ]] || print '#   %s: %s\n' "$1" "$2"
}

disks_report_json()
{
	local i text comma=''

	print '{"schema": "blinktune-disks-1", "partition_bytes": %d, '\
'"stripe_kib": %d, "devices": [' $((PART_MIB * DISK_MIB)) "$DISK_STRIPE_KIB"
	for i in "${!DISKS[@]}"; do
		text=
		report_fields device "${DISKS[i]}"
		text+=", \"size_bytes\": ${DISK_SIZE[i]}"
		report_fields refused "${DISK_REFUSED[i]}" \
			destroyed "${DISK_HOLDS[i]}" note "${DISK_NOTE[i]}"
		print '%s{%s}' "$comma" "$text"
		comma=', '
	done
	print '], "commands": ['
	comma=
	for i in "${!STEPS[@]}"; do
		disk_step_text "$i"
		json_string "$TEXT"
		print '%s%s' "$comma" "$JSON"
		comma=', '
	done
	text=
	report_fields mount "$STEP_MOUNT" sort "$STEP_SORT"
	print '], %s}\n' "$text"
	disks_tell_refused
}
