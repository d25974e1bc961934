/*
 * arrivals.h - which segments of a message have arrived, and which are missing
 *
 * A message of byte_count bytes comes in segments of segment_bytes; the last
 * one may be shorter.  Segment i holds the bytes from i * segment_bytes on.
 * There is a bit for each segment, the number of segments that have arrived
 * without a gap (prefix), and the end of the farthest segment that has arrived.
 */
#ifndef ARRIVALS_H
#define ARRIVALS_H

#include <stdbool.h>
#include <stdint.h>

struct arrivals {
	uint64_t *bits; /* owned; NULL: a message of 0 bytes */
	uint64_t byte_count;
	uint32_t segment_bytes;
	uint64_t segment_count;
	uint64_t prefix; /* all segments before it have arrived */
	uint64_t end;	 /* no segment at or behind it has arrived */
	uint64_t arrived_count;
};

struct arrivals_gap {
	uint64_t first;
	uint64_t count;
};

/* Returns 0 or -ENOMEM; segment_bytes >= 1. */
int arrivals_init(struct arrivals *arrivals, uint64_t byte_count,
		  uint32_t segment_bytes);
void arrivals_fini(struct arrivals *arrivals);

static inline bool arrivals_has(const struct arrivals *arrivals, uint64_t i)
{
	return arrivals->bits[i / 64] >> (i % 64) & 1;
}

/* Note that segment i (< segment_count) has arrived.  True if it was missing.
 */
bool arrivals_add(struct arrivals *arrivals, uint64_t i);

static inline bool arrivals_complete(const struct arrivals *arrivals)
{
	return arrivals->prefix == arrivals->segment_count;
}

static inline uint32_t arrivals_length(const struct arrivals *arrivals,
				       uint64_t i)
{
	uint64_t left = arrivals->byte_count - i * arrivals->segment_bytes;

	return left < arrivals->segment_bytes ? (uint32_t)left
					      : arrivals->segment_bytes;
}

/* Bytes that have arrived without a gap from the beginning. */
static inline uint64_t arrivals_prefix_bytes(const struct arrivals *arrivals)
{
	uint64_t bytes = arrivals->prefix * arrivals->segment_bytes;

	return bytes < arrivals->byte_count ? bytes : arrivals->byte_count;
}

/* Fill gaps with the first runs of missing segments below segment `limit` (at
 * most segment_count), in order; returns how many there are, gaps_max at most.
 */
unsigned arrivals_gaps(const struct arrivals *arrivals, uint64_t limit,
		       struct arrivals_gap *gaps, unsigned gaps_max);

#endif /* ARRIVALS_H */
