/*
 * small_file.h - read a file of /proc or /sys
 */
#ifndef SMALL_FILE_H
#define SMALL_FILE_H

#include <stdbool.h>
#include <stddef.h>

/* The file's first text_bytes - 1 bytes, as a string; false if it cannot be
 * read.  It does not wait, whatever the path leads to. */
bool small_file_read(const char *path, char *text, size_t text_bytes);

#endif /* SMALL_FILE_H */
