/*
 * file_attributes.h - what statx(2) says of a file and stat(2) does not
 */
#ifndef FILE_ATTRIBUTES_H
#define FILE_ATTRIBUTES_H

#include <stdbool.h>

/* Each is false where kernel or file system cannot tell. */
struct file_attributes {
	bool is_mount_point; /* at this path */
	bool is_append_only; /* chattr +a */
	bool is_immutable;   /* chattr +i */
};

/* Read those of an open file or folder, also of one opened by O_PATH. */
struct file_attributes file_attributes_read(int fd);

#endif /* FILE_ATTRIBUTES_H */
