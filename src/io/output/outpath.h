/*
 * outpath.h - the folder and the name where an output file will stand
 *
 * A symbolic link at the end of a path is followed, so that the file that it
 * points to is made or replaced and the link stays.  outpath_open() follows
 * such links itself, one by one, since the kernel follows none for a file that
 * is to be renamed.  It follows none that the kernel would refuse to follow:
 *
 * - stat(2) of the path has to succeed, or to find nothing there.
 * - In a folder that is sticky and that all may write, such as /tmp, a link is
 *   followed only if it belongs to this user or to the folder's owner.  That is
 *   the rule of fs.protected_symlinks (proc(5)); it holds here whatever that
 *   setting is, as no output should go where another user of /tmp wants it.
 *
 * Links further up in the path are the kernel's to follow.
 */
#ifndef OUTPATH_H
#define OUTPATH_H

#include <stdbool.h>
#include <stdint.h>

struct failure;
struct stat;

/*
 * Open the folder where a file of this path stands or would stand, for reading
 * or, if it may not be read, by O_PATH; *name is the file's name in it, owned
 * by the caller.  0, or -errno with *failure filled; then *folder_fd is -1 and
 * *name is NULL.
 */
int outpath_open(const char *path, int *folder_fd, char **name,
		 struct failure *failure);

/* False: this entry of the folder belongs neither to this user nor to the
 * folder's owner, and the folder is sticky and all users may write it. */
bool outpath_is_trusted(const struct stat *folder, const struct stat *entry);

/*
 * A number for the place where the file would stand: paths to one place have
 * one number, and others, as good as always, another one.  machine is
 * machine_host_id(); a place in a network file system has the same number on
 * all machines.  0: the place cannot be told, is not one for a regular file, or
 * is on this machine alone while machine is 0, so that another machine may have
 * a place with the same device and inode.
 */
uint64_t outpath_place(const char *path, uint64_t machine);

#endif /* OUTPATH_H */
