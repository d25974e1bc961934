/*
 * fake_root.h - a folder that stands for /, with a proc/ and a sys/ as another
 * machine may have them (small_file_root)
 *
 * Included behind cmocka.h.
 */
#ifndef FAKE_ROOT_H
#define FAKE_ROOT_H

#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "system/small_file.h"

static char root[] = "/tmp/fake_root.XXXXXX";

static inline void put(const char *path, const char *text)
{
	char full[512];
	char *slash;
	FILE *file;

	snprintf(full, sizeof(full), "%s/%s", root, path);
	for (slash = strchr(full + strlen(root) + 1, '/'); slash;
	     slash = strchr(slash + 1, '/')) {
		*slash = '\0';
		mkdir(full, 0700);
		*slash = '/';
	}
	file = fopen(full, "w");
	assert_non_null(file);
	fputs(text, file);
	assert_int_equal(fclose(file), 0);
}

static inline int remove_one(const char *path, const struct stat *status,
			     int type, struct FTW *where)
{
	(void)status;
	(void)type;
	(void)where;
	return remove(path);
}

static inline int make_root(void **state)
{
	(void)state;
	strcpy(root + sizeof(root) - 7, "XXXXXX");
	small_file_root = root;
	return mkdtemp(root) ? 0 : -1;
}

static inline int remove_root(void **state)
{
	(void)state;
	small_file_root = "";
	return nftw(root, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

/* A test that has the root to itself. */
#define UNDER_ROOT(function)                                                   \
	cmocka_unit_test_setup_teardown(function, make_root, remove_root)

#endif /* FAKE_ROOT_H */
