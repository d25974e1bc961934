/*
 * small_file.h - the files of /proc and /sys
 */
#ifndef SMALL_FILE_H
#define SMALL_FILE_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>

/* Stands before each path that is made here: "", but in a test a folder with
 * the /proc and the /sys of another machine. */
extern const char *small_file_root;

/* Write the path of this format to path, of PATH_MAX bytes.  False: it is
 * longer. */
__attribute__((format(printf, 2, 3))) bool
small_file_path(char *path, const char *format, ...);

/* The first text_bytes - 1 bytes of the file of such a path, as a string; false
 * if it cannot be read.  It does not wait, whatever the path leads to. */
__attribute__((format(printf, 3, 4))) bool
small_file_read(char *text, size_t text_bytes, const char *format, ...);

#endif /* SMALL_FILE_H */
