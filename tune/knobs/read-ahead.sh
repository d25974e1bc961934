# read-ahead.sh - how far the kernel reads ahead of sequential reading, KiB

. "$TUNE/lib/drive.sh"

knob_read_ahead_targets=(drive_targets 'sd*|nvme*|vd*|xvd*|mmcblk*|md*|dm-*')
knob_read_ahead_file=/sys/block/TARGET/queue/read_ahead_kb
knob_read_ahead_values="KiB, a multiple of 4; 0 reads nothing ahead"

knob_read_ahead_supported()
{
	setting_needs "$FILE" 'no queue/read_ahead_kb' && drive_allowed "$1"
}

# The kernel keeps whole pages: it would make 4 of 6 and say nothing.
knob_read_ahead_goal()
{
	{ number_is "$3" 0 999999999 && (($3 % 4 == 0)); } ||
		why_not "'$3' is not a multiple of 4 KiB"
}

knob_read_ahead_explain="
How many KiB the kernel reads ahead of a program that reads a
file from its beginning on.  Much of it keeps a rotating disk or a RAID-0
streaming; for random reads it fetches unwanted pages.  A file system has
the read-ahead of the device that it was mounted from: of md or dm above, not of
the drives below.  The kernel keeps whole pages of 4 KiB.
Source: Documentation/ABI/stable/sysfs-block, queue/read_ahead_kb."
