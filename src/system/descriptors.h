/*
 * descriptors.h - how many files this process may have open at once
 *
 * The kernel has a soft limit, mostly 1024, and a hard one, up to which a
 * process may raise the soft one itself (RLIMIT_NOFILE, getrlimit(2)).  The
 * programs that use this module start no others, which would inherit it.
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

#endif /* DESCRIPTORS_H */
