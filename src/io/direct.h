/*
 * direct.h - reads and writes past the page cache: descriptors and rings
 */
#ifndef DIRECT_H
#define DIRECT_H

struct io_uring;

/*
 * Open a descriptor's file once more with flags of open(2), by its name under
 * /proc, so that a file without a name can be opened, too.  O_CLOEXEC is always
 * set.  The new descriptor, or -errno: -ENOENT if there is no /proc, -EINVAL if
 * flags has O_DIRECT and the file system does not take it.
 */
int direct_reopen(int fd, int flags);

/*
 * Make a ring for depth reads at once by one thread, whose completions wait for
 * the thread's next call instead of interrupting it, where the kernel can do
 * that (Linux 5.19); io_uring_peek_cqe() sees them all the same.  0 or -errno.
 */
int direct_open_ring(struct io_uring *ring, unsigned depth);

#endif /* DIRECT_H */
