/*
 * disk_probe.h - how fast the disk is that an external sort would use
 */
#ifndef DISK_PROBE_H
#define DISK_PROBE_H

#include "external/plan/external_model.h"
#include "io/input/input.h"
#include "io/scratch.h"

/*
 * Read some of the input, and write to the first scratch directory, for a
 * second together: reads alone, writes alone, and both at once.  What was
 * written is gone when the scratch files are closed.  0 with all *rates above
 * 0; or -errno with *failure filled, the reason why they cannot be measured,
 * and *rates unchanged.
 *
 * request_bytes: of each read and write, whole pages; the memory for 16 of
 * these is taken.
 */
int disk_probe(const struct input *input, struct scratch *scratch,
	       size_t request_bytes, struct external_rates *rates,
	       struct failure *failure);

/* How many small reads from anywhere in the largest file of the input its disk
 * serves in a second, 8 under way: 64 of them, or as many as it serves in 0.3
 * s.  0: they cannot be measured, or the input is not read past the page cache.
 */
uint64_t disk_probe_requests(const struct input *input);

#endif /* DISK_PROBE_H */
