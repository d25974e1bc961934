# drive-look-ahead.sh - whether a drive reads on into its own cache

. "$TUNE/lib/drive.sh"

knob_drive_look_ahead_targets=(drive_targets 'sd*|nvme*|vd*')
knob_drive_look_ahead_values="on off"
knob_drive_look_ahead_lifetime=device

knob_drive_look_ahead_supported()
{
	drive_kind "$1"
	case $KIND in
	ata | scsi) drive_has knob_drive_look_ahead_get "$1" ;;
	*)
		# These drives are not asked whether they support it.
		SUPPORT=unsupported
		knob_drive_look_ahead_get "$1"
		;;
	esac
}

knob_drive_look_ahead_get()
{
	drive_kind "$1"
	case $KIND in
	ata) drive_hdparm "$1" -A look-ahead ;;
	scsi) look_ahead_read_scsi "$1" ;;
	nvme) why_not "NVMe has no look-ahead to switch" ;;
	*) why_not "not a SATA or SCSI drive" ;;
	esac
}

# The mode page has the bit the other way round: DRA, disable read ahead.
look_ahead_read_scsi()
{
	drive_tool sdparm --get=DRA "/dev/$1" || return 1
	[[ $OUT =~ (^|$'\n')DRA[[:space:]]+([01]) ]] ||
		why_not "the drive has none" || return 1
	VALUE=on
	((BASH_REMATCH[2] == 0)) || VALUE=off
}

knob_drive_look_ahead_goal()
{
	on_or_off "$3"
}

knob_drive_look_ahead_set()
{
	local flag=-A0 dra=1

	[ "$2" = off ] || flag=-A1 dra=0
	drive_kind "$1"
	if [ "$KIND" = scsi ]; then
		drive_tool sdparm "--set=DRA=$dra" "/dev/$1" || return 1
		look_ahead_read_scsi "$1" || return 1
	else
		drive_hdparm "$1" "$flag" look-ahead || return 1
	fi
	drive_took "$2"
}

knob_drive_look_ahead_act()
{
	local flag=-A0 dra=1

	[ "$2" = off ] || flag=-A1 dra=0
	drive_kind "$1"
	ACT="hdparm $flag /dev/$1"
	[ "$KIND" != scsi ] || ACT="sdparm --set=DRA=$dra /dev/$1"
}

knob_drive_look_ahead_explain="
A SATA or SCSI drive goes on reading the track after a request,
into its own cache, so that a stream is not a turn of the disk late.  Off, only
the requested blocks are read.  The drive itself keeps it, some across a reboot.
SATA drives are asked with hdparm -A, SCSI ones with sdparm (the bit DRA of the
caching mode page); NVMe has nothing like it.
Source: hdparm(8), -A; ATA/ATAPI command set, SET FEATURES AAh and 55h."
