/*
 * machine.h - whether another process runs where we do
 */
#ifndef MACHINE_H
#define MACHINE_H

#include <stdint.h>

/*
 * A hash of what has to be alike for /proc/PID/fd to lead to another process's
 * files: the boot, the namespace of PIDs, the user.  0 if it cannot be told.
 * Read once.
 */
uint64_t machine_number(void);

#endif /* MACHINE_H */
