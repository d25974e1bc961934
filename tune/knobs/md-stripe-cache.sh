# md-stripe-cache.sh - how many stripes a RAID 4, 5 or 6 keeps in memory

. "$TUNE/lib/drive.sh"

knob_md_stripe_cache_targets=(drive_targets 'md*')
knob_md_stripe_cache_file=/sys/block/TARGET/md/stripe_cache_size
knob_md_stripe_cache_range=17-32768
knob_md_stripe_cache_values="entries, 17 to 32768; each takes a page for each drive"

knob_md_stripe_cache_supported()
{
	if ! file_exists "$FILE"; then
		SUPPORT=unsupported
		stripe_cache_absent "$1"
		return 1
	fi
	setting_may "$FILE" 'needs root'
}

# stripe_cache_absent DEVICE: WHY.  Only levels that compute parity read a stripe
# to write a part of it.
stripe_cache_absent()
{
	local level=none chunk=''

	! file_read "/sys/block/$1/md/level" || level=$VALUE
	if file_read "/sys/block/$1/md/chunk_size" &&
		number_is "$VALUE" 1 "$NUMBER_MAX"; then
		chunk=" (chunk $((VALUE / 1024)) KiB)"
	fi
	WHY="$level has no stripe cache$chunk"
	[ "$level" != none ] || WHY="not an md array"
}

knob_md_stripe_cache_get()
{
	if ! file_read "$FILE"; then
		stripe_cache_absent "$1"
		return 1
	fi
}

knob_md_stripe_cache_explain="
How many stripes, a page of each drive wide, RAID 4, 5 and 6 keep
to gather whole stripes from partial writes; 256 by default.  It takes a page of
memory for each drive and entry: 4096 entries on 4 drives are 64 MiB.  RAID 0, 1
and 10 have none: what matters there is the chunk size, chosen when the array is
made.
Source: Documentation/admin-guide/md.rst, stripe_cache_size."
