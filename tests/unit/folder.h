/*
 * folder.h - count what lies in a folder, so that a test finds what is left
 *
 * Included behind cmocka.h.
 */
#ifndef FOLDER_H
#define FOLDER_H

#include <dirent.h>

static inline unsigned count_entries(const char *path)
{
	DIR *stream = opendir(path);
	unsigned count = 0;

	assert_non_null(stream);
	while (readdir(stream))
		count++;
	closedir(stream);
	return count - 2; /* . and .. */
}

#endif /* FOLDER_H */
