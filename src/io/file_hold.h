/*
 * file_hold.h - let a process that is killed end before its files' room is free
 *
 * When the last reference to a file without a name goes, the kernel gives its
 * room back, and a process that ends waits for that: 0.1 to 0.2 s for each GB.
 * An io_uring with which files are registered holds a reference of its own.
 * When the process ends the kernel drops that one in a thread of its own, and
 * neither the process nor its parent waits for that thread.
 */
#ifndef FILE_HOLD_H
#define FILE_HOLD_H

struct file_hold {
	struct io_uring *ring; /* owned; NULL: nothing is held */
};

/* Hold these files, besides what the descriptors do.  Without io_uring nothing
 * is held, and a killed process takes longer. */
void file_hold_open(struct file_hold *hold, const int *fds, unsigned count);

/* The files are held by their descriptors alone.  Safe on a zeroed struct. */
void file_hold_close(struct file_hold *hold);

#endif /* FILE_HOLD_H */
