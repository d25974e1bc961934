/*
 * descriptors.h - how many files this process may have open at once, and files
 * that it opens once more
 *
 * The kernel has a soft limit, mostly 1024, and a hard one, up to which a
 * process may raise the soft one itself (RLIMIT_NOFILE, getrlimit(2)).  The
 * programs that raise it start no others, which would inherit it.
 */
#ifndef DESCRIPTORS_H
#define DESCRIPTORS_H

#include <stdbool.h>

/* Call it before file_count files are opened: raises the limit if they are
 * many. */
void descriptors_raise(unsigned file_count);

/* True if a file may be opened that is not needed, only faster: the limit,
 * raised if that helps, leaves enough for files that are.  fd is the highest
 * descriptor so far, as far as the caller knows. */
bool descriptors_spare(int fd);

/*
 * Open a descriptor's file once more with flags of open(2), by its name under
 * /proc, so that a file without a name can be opened, too.  O_CLOEXEC is always
 * set.  The new descriptor, or -errno: -ENOENT if there is no /proc, -EINVAL if
 * flags has O_DIRECT and the file system does not take it.
 */
int descriptors_reopen(int fd, int flags);

#endif /* DESCRIPTORS_H */
