/*
 * descriptors.h - count the open descriptors, so that a test finds one that is
 * left behind; and refuse new ones, so that a test sees what fails then
 *
 * Included behind cmocka.h.
 */
#ifndef DESCRIPTORS_H
#define DESCRIPTORS_H

#include <dirent.h>
#include <sys/resource.h>

static inline unsigned open_descriptors(void)
{
	DIR *folder = opendir("/proc/self/fd");
	unsigned count = 0;

	assert_non_null(folder);
	while (readdir(folder))
		count++;
	closedir(folder);
	return count;
}

/* From now on, and until release_descriptors(), nothing can be opened. */
static inline struct rlimit refuse_descriptors(void)
{
	struct rlimit before, none;

	assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
	none = before;
	none.rlim_cur = 0;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
	return before;
}

static inline void release_descriptors(struct rlimit before)
{
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
}

#endif /* DESCRIPTORS_H */
