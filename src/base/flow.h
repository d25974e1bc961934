/*
 * flow.h - how many bytes this process reads, writes, sends and receives, when
 *
 * Nothing is counted until flow_begin(): a call then costs a comparison.  After
 * it each one costs a lock, so calls are for pieces of many KB.
 *
 * Bytes are counted in bins of time.  There is a fixed number of these: when
 * the last one is behind, pairs become one, and the others are free again.  So
 * the sum of the bins is what was moved, however long that takes.
 */
#ifndef FLOW_H
#define FLOW_H

#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"

enum flow { FLOW_READ, FLOW_WRITE, FLOW_SEND, FLOW_RECEIVE, FLOWS };

#define FLOW_BINS 512

struct flow_bins {
	uint64_t width_ns; /* a bin's; 0: nothing was counted */
	uint64_t first;	   /* bin i begins at (first + i) * width_ns */
	uint64_t bytes[FLOWS][FLOW_BINS];
};

/* [enum flow]: "read" and so on. */
extern const char *const flow_names[FLOWS];

/* --- of this process ------------------------------------------------------ */

extern bool flow_counts;

/* Count from this moment on.  Called while there is one thread. */
void flow_begin(uint64_t now_ns);

/* What was counted; the caller sees that nothing is added meanwhile. */
const struct flow_bins *flow_counted(void);

/* The time to tell flow_add(), or 0. */
static inline uint64_t flow_clock(void)
{
	return flow_counts ? clock_now_ns() : 0;
}

/* For flow_add(). */
void flow_note(enum flow flow, uint64_t begin_ns, uint64_t bytes);

/* Add bytes that were moved evenly from then until now; 0: just now. */
static inline void flow_add(enum flow flow, uint64_t begin_ns, uint64_t bytes)
{
	if (flow_counts && bytes > 0)
		flow_note(flow, begin_ns, bytes);
}

/* --- of any bins ---------------------------------------------------------- */

/* Add to bins whose width and first are set, one thread at a time.  What lies
 * before the first counts as moved when that begins. */
void flow_bins_add(struct flow_bins *bins, enum flow flow, uint64_t begin_ns,
		   uint64_t end_ns, uint64_t bytes);

#endif /* FLOW_H */
