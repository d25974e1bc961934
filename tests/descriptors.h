/*
 * descriptors.h - how many a test has open, so that it sees one left behind
 *
 * Included behind cmocka.h.
 */
#ifndef DESCRIPTORS_H
#define DESCRIPTORS_H

#include <dirent.h>

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

#endif /* DESCRIPTORS_H */
