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
uint64_t machine_host_id(void);

/*
 * Open the file that another process of this user has open as the descriptor
 * number.  The process itself has told both numbers and may lie: only a regular
 * file is opened, since merely opening another kind may have an effect.  flags
 * are those of open(2), and O_CLOEXEC is added.  Returns a descriptor with
 * *status filled, or -errno: -EPERM for a process of another user, -EBADF for
 * what is no regular file.
 */
int machine_open(uint64_t process, uint64_t number, int flags,
		 struct stat *status);

#endif /* MACHINE_H */
