# drive.sh - block devices, and which of them are drives of which kind

# drive_targets PATTERN [NAME...]: TARGETS=the block devices that match PATTERN
# ("sd*|md*").  Loop devices, RAM disks and the like only by NAME.
drive_targets()
{
	local pattern=$1 path name
	shift

	TARGETS=()
	file_list '/sys/block/*'
	for path in "${FILES[@]}"; do
		name=${path##*/}
		if drive_matches "$name" "$pattern" ||
			[[ " $* " == *" $name "* ]]; then
			TARGETS+=("$name")
		fi
	done
}

# drive_matches NAME PATTERN|PATTERN...
drive_matches()
{
	local pattern
	local -a patterns

	IFS='|' read -r -a patterns <<<"$2"
	for pattern in "${patterns[@]}"; do
		# shellcheck disable=SC2053 # a pattern, on purpose
		[[ $1 == $pattern ]] && return 0
	done
	return 1
}

# drive_kind DEVICE: KIND=ata, scsi, nvme, virtio, stacked or other.  A SATA
# drive is a SCSI one to the kernel, of the vendor "ATA".
drive_kind()
{
	local VALUE WHY

	KIND=other
	case $1 in
	nvme*) KIND=nvme ;;
	vd*) KIND=virtio ;;
	md* | dm-*) KIND=stacked ;;
	sd*)
		KIND=scsi
		if file_read "/sys/block/$1/device/vendor" &&
			[ "${VALUE%% *}" = ATA ]; then
			KIND=ata
		fi
		;;
	esac
}

# drive_allowed DEVICE: 0 if this user may change it; else 1, SUPPORT and WHY.  A
# file of the same owner stands for the commands that a drive is given.
drive_allowed()
{
	setting_needs "/sys/block/$1" "no block device $1" &&
		setting_may "/sys/block/$1/queue/read_ahead_kb" 'needs root'
}

# drive_tool NAME ARGUMENT...: OUT; 1 with WHY if the tool is missing or fails
drive_tool()
{
	local text

	OUT=
	tool_have "$1" || why_not "$1 is not installed" || return 1
	! tool_run "$@" || return 0
	# hdparm goes on after "HDIO_DRIVE_CMD(...) failed: ..."; others end there.
	text=${OUT#*failed: }
	[ "$text" != "$OUT" ] || text=${OUT##*$'\n'}
	text=${text%%$'\n'*}
	WHY="$1: ${text##*: }"
	[ -n "$OUT" ] || WHY="$1: exit status $STATUS"
	return 1
}

# drive_hdparm DEVICE FLAG LABEL: VALUE=on or off, of the line "LABEL = 1 (on)"
# that hdparm FLAG prints; also after it has set something.  Status 0 alone says
# nothing: hdparm loses the error of -W0, and is silent about what is no drive.
drive_hdparm()
{
	local pattern="$3[[:space:]]*=[[:space:]]*([01]|not supported)"

	drive_tool hdparm "$2" "/dev/$1" || return 1
	[[ $OUT =~ $pattern ]] || why_not "hdparm reads nothing from it" || return 1
	case ${BASH_REMATCH[1]} in
	0) VALUE=off ;;
	1) VALUE=on ;;
	*) why_not "the drive has none" ;;
	esac
}

# drive_has GETTER DEVICE: SUPPORT of a knob whose GETTER DEVICE reads it
drive_has()
{
	drive_allowed "$2" || return 1
	if ! "$1" "$2"; then
		SUPPORT=unsupported
		[[ $WHY != *ermi* ]] || SUPPORT=denied
		return 1
	fi
}

# drive_took VALUE: 0 if VALUE, as read back, is that; 1 with WHY
drive_took()
{
	[[ $VALUE == "$1" ]] || why_not "the drive keeps it $VALUE"
}

# on_or_off VALUE: 1 with WHY if it is neither
on_or_off()
{
	[[ $1 == on || $1 == off ]] || why_not "'$1' is neither on nor off"
}
