/*
 * spindle.h - which rotating disks a device lies on
 *
 * A partition lies on its disk, a volume or an array on the devices that it is
 * made of, as /sys tells.  A disk of KVM, Xen or Hyper-V is none that rotates,
 * whatever it says.
 */
#ifndef SPINDLE_H
#define SPINDLE_H

#include <stdbool.h>
#include <stdint.h>

/* True if there is a rotating disk that both devices lie on, which are device
 * numbers (st_rdev), or those of file systems (st_dev).  False if /sys does not
 * tell, as of the numbers that Btrfs gives. */
bool spindle_is_shared(uint64_t one, uint64_t other);

#endif /* SPINDLE_H */
