# drive-write-cache.sh - whether a drive says "written" before it is

. "$TUNE/lib/drive.sh"

knob_drive_write_cache_targets=(drive_targets 'sd*|nvme*|vd*')
knob_drive_write_cache_values="on off"
knob_drive_write_cache_lifetime=device
knob_drive_write_cache_risk=data
knob_drive_write_cache_order=60

knob_drive_write_cache_supported()
{
	drive_has knob_drive_write_cache_get "$1" || return 1
	write_cache_file "$1"
	[ -z "$CACHE_FILE" ] ||
		setting_may "$CACHE_FILE" "$CACHE_FILE can't be written"
}

# write_cache_file DEVICE: CACHE_FILE=the kernel's file that commands the cache,
# or nothing if a tool does it; and KIND.
write_cache_file()
{
	CACHE_FILE=
	drive_kind "$1"
	case $KIND in
	virtio) CACHE_FILE=/sys/block/$1/cache_type ;;
	scsi)
		file_list "/sys/block/$1/device/scsi_disk/*/cache_type"
		CACHE_FILE=${FILES[0]-}
		;;
	esac
}

knob_drive_write_cache_get()
{
	write_cache_file "$1"
	case $KIND in
	ata) drive_hdparm "$1" -W write-caching ;;
	nvme) write_cache_read_nvme "$1" ;;
	scsi | virtio) write_cache_read_file "$CACHE_FILE" ;;
	*) why_not "not a drive" ;;
	esac
}

# The kernel's four words are two bits: writes cached or not, and a cache for
# reads or, rarely, none.
write_cache_read_file()
{
	{ [ -n "$1" ] && file_read "$1"; } || why_not "no cache_type" || return 1
	case $VALUE in
	'write back') VALUE=on ;;
	'write through') VALUE=off ;;
	'write back, no read (daft)') VALUE='on no-read' ;;
	none) VALUE='off no-read' ;;
	*) why_not "unknown cache type '$VALUE'" ;;
	esac
}

# write_cache_word VALUE: WORD=what the kernel's file calls it
write_cache_word()
{
	case $1 in
	on) WORD='write back' ;;
	off) WORD='write through' ;;
	'on no-read') WORD='write back, no read (daft)' ;;
	'off no-read') WORD=none ;;
	esac
}

# Feature 6, volatile write cache, is the controller's: of all its namespaces.
write_cache_read_nvme()
{
	if ! drive_tool nvme get-feature "/dev/${1%n[0-9]*}" --feature-id=6; then
		[[ $OUT != *'Invalid Field'* ]] || WHY="the controller has none"
		return 1
	fi
	[[ $OUT =~ [Vv]alue:\ ?0x0*([01])($|[^0-9a-f]) ]] ||
		why_not "the controller has none" || return 1
	VALUE=off
	((BASH_REMATCH[1] == 0)) || VALUE=on
}

knob_drive_write_cache_goal()
{
	on_or_off "${3% no-read}" || return 1
	if [[ $2 == *' no-read' && $3 != *' no-read' ]]; then
		VALUE="$3 no-read"
	fi
}

knob_drive_write_cache_set()
{
	local bit=0

	write_cache_file "$1"
	if [ -n "$CACHE_FILE" ]; then
		write_cache_word "$2"
		file_write "$CACHE_FILE" "$WORD"
		return
	fi
	[ "$2" = off ] || bit=1
	if [ "$KIND" = nvme ]; then
		drive_tool nvme set-feature "/dev/${1%n[0-9]*}" \
			--feature-id=6 "--value=$bit" || return 1
		write_cache_read_nvme "$1" || return 1
	else
		drive_hdparm "$1" "-W$bit" write-caching || return 1
	fi
	drive_took "$2"
}

knob_drive_write_cache_act()
{
	local bit=0

	[ "$2" = off ] || bit=1
	write_cache_file "$1"
	if [ "$KIND" = nvme ]; then
		ACT="nvme set-feature /dev/${1%n[0-9]*} --feature-id=6 --value=$bit"
	elif [ -n "$CACHE_FILE" ]; then
		write_cache_word "$2"
		ACT="echo '$WORD' >$CACHE_FILE"
	else
		ACT="hdparm -W$bit /dev/$1"
	fi
}

knob_drive_write_cache_explain="
On, a drive calls a block written when it is in the drive's memory:
fast, but what was not flushed is lost when the power goes.  Off, a write that
has returned from fsync is on the platter, and a time to write means just that.
SATA: hdparm -W commands the drive.  The kernel is not told: a drive switched on
while scsi_disk/*/cache_type says \"write through\" gets no flushes.  SCSI: the
file cache_type commands the drive by MODE SELECT; the word \"temporary\" before
the value would change only what the kernel believes, and is not used.  NVMe:
feature 6 by nvme-cli, not saved.  virtio: cache_type, if the host permits it.
Source: Documentation/scsi/sd-parameters.rst;
Documentation/ABI/testing/sysfs-block-device; hdparm(8), -W."
