# transparent-huge-pages.sh - pages of 2 MiB without being asked

knob_transparent_huge_pages_file=/sys/kernel/mm/transparent_hugepage/TARGET

huge_pages_folder=/sys/kernel/mm/transparent_hugepage

knob_transparent_huge_pages_targets()
{
	local name

	TARGETS=()
	for name in enabled defrag shmem_enabled; do
		! file_exists $huge_pages_folder/$name || TARGETS+=("$name")
	done
}

knob_transparent_huge_pages_get()
{
	file_selected "$FILE"
}

knob_transparent_huge_pages_goal()
{
	if file_read "$FILE" &&
		[[ $3 == *[[:space:]]* || " ${VALUE//[][]/} " != *" $3 "* ]]; then
		setting_refuse "$3" "${VALUE//[][]/}"
		return
	fi
	VALUE=$3
}

knob_transparent_huge_pages_values()
{
	VALUES=
	! file_read "$FILE" || VALUES=${VALUE//[][]/}
}

knob_transparent_huge_pages_explain='
Whether memory gets pages of 2 MiB rather than 4 KiB:
"enabled" for all programs, those that ask (madvise), or none; "defrag":
whether a page fault may wait until 2 MiB in one piece are found;
"shmem_enabled": of shared memory.  Fewer faults and TLB misses for large
buffers; a fault that clears or finds 2 MiB takes long.  Source:
Documentation/admin-guide/mm/transhuge.rst.'
