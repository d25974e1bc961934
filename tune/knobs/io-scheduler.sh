# io-scheduler.sh - what orders the requests that wait for a block device

. "$TUNE/lib/drive.sh"

knob_io_scheduler_targets=(drive_targets 'sd*|nvme*|vd*|xvd*|mmcblk*')
knob_io_scheduler_file=/sys/block/TARGET/queue/scheduler
knob_io_scheduler_order=40

# md and most of dm pass on whole bios: their file says "none" and swallows
# whatever is written.
knob_io_scheduler_supported()
{
	file_read "$FILE" || setting_lacks "no queue/scheduler" || return 1
	[[ $VALUE == *'['*']'* ]] ||
		setting_lacks "its requests go to the devices below" || return 1
	setting_may "$FILE" 'needs root'
}

knob_io_scheduler_get()
{
	file_selected "$FILE"
}

# A name that is not in the list makes the kernel look for a module.
knob_io_scheduler_set()
{
	local listed

	file_read "$FILE" || return 1
	listed=" $VALUE "
	listed=${listed//[\[\]]/}
	file_write "$FILE" "$2" && return 0
	[[ $listed == *" $2 "* ]] ||
		WHY="this kernel has no scheduler $2, nor a module $2-iosched"
	return 1
}

knob_io_scheduler_values()
{
	VALUES="none mq-deadline bfq kyber"
	file_read "$FILE" || return 0
	VALUES=${VALUE//[\[\]]/}
}

knob_io_scheduler_explain="
The order in which a device's waiting requests are served.  \"none\"
adds no work and fits NVMe and single streams; mq-deadline merges and sorts, for
rotating disks with more than one reader; bfq is fair and dear.  Some schedulers
are modules that the kernel loads when they are named.  With every change the
kernel sets nr_requests, and the scheduler's own settings in queue/iosched, to
their defaults: other values must be set again after going back.
Source: Documentation/block/switching-sched.rst."
