/*
 * machine.h - whether another process runs where we do
 */
#ifndef MACHINE_H
#define MACHINE_H

#include <stdint.h>
#include <sys/stat.h>

/*
 * A hash of what has to be alike for /proc/PID/fd to lead to another process's
 * files: the boot, the namespace of PIDs, the user.  0 if it cannot be told.
 * Read once.
 */
uint64_t machine_number(void);

/*
 * Open what another process of this user has as descriptor number, which it
 * tells: a regular file, and nothing that opening does something to.  flags as
 * of open(2), O_CLOEXEC is among them.  The descriptor with *status filled, or
 * -errno: -EPERM, a process of another user, -EBADF, no regular file.
 */
int machine_open(uint64_t process, uint64_t number, int flags,
		 struct stat *status);

#endif /* MACHINE_H */
