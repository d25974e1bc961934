/*
 * scratch_file.h - a file without a name, for what does not fit into memory
 */
#ifndef SCRATCH_FILE_H
#define SCRATCH_FILE_H

/*
 * Make a file in the folder that never gets a name or, where the file system
 * has no O_TMPFILE, loses it at once: scratch.h says what may be left of it.
 * Its descriptor, to read and write, or -errno.
 */
int scratch_file_make(const char *folder_path);

#endif /* SCRATCH_FILE_H */
