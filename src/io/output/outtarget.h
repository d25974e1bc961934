/*
 * outtarget.h - what stands under the name that an output will have
 *
 * An output replaces a file by rename(2).  Whatever would make that call fail
 * is looked for here, so that a run ends before its work and not after it:
 *
 * - A mount point cannot be renamed over, nor can a file that is immutable or
 *   may only be appended to, nor any file in a folder of that kind.
 * - In a sticky folder only the owner of the file, the owner of the folder or a
 *   process with CAP_FOWNER can rename over a file.
 *
 * What could be replaced, but should not be, is refused as well:
 *
 * - A file that this user may not write: who took that right away means the
 *   file to stay.
 * - In a sticky folder that all users may write, a file that belongs neither to
 *   this user nor to the folder's owner.  The output gets the owner and the
 *   mode of the file that it replaces, so that anyone could make a file in /tmp
 *   in order to read what root writes there.  open(2) has the same rule where
 *   fs.protected_regular (proc(5)) is set.
 * - In such a folder, a file of several names: another user may have made this
 *   one by link(2), and so have chosen the mode of the output.
 */
#ifndef OUTTARGET_H
#define OUTTARGET_H

struct failure;
struct stat;

/* Open what stands under the name in the folder by O_PATH, and fill *status:
 * a descriptor; -ENOENT if there is nothing; or another -errno with *failure
 * filled: it may not be replaced.  path is the user's, for messages. */
int outtarget_open(int folder_fd, const char *name, const char *path,
		   struct stat *status, struct failure *failure);

/* Check that a file of this folder may be renamed and removed.  0, or -errno
 * with *failure filled. */
int outtarget_check_folder(int folder_fd, const char *path,
			   struct failure *failure);

#endif /* OUTTARGET_H */
