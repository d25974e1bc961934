/*
 * arrivals.c - keep a bit for each segment of a message
 */
#include "exchange/udp/arrivals.h"

#include <errno.h>
#include <stdlib.h>

#include "base/base.h"

/* A word of bits is flipped by this, so that the bits to be found become 1. */
#define PRESENT ((uint64_t)0)
#define MISSING (~(uint64_t)0)

int arrivals_init(struct arrivals *arrivals, uint64_t byte_count,
		  uint32_t segment_bytes)
{
	/* DIV_ROUND_UP would wrap: a peer may announce nearly 2^64 bytes. */
	uint64_t segment_count =
		byte_count / segment_bytes + (byte_count % segment_bytes != 0);

	*arrivals = (struct arrivals){
		.byte_count = byte_count,
		.segment_bytes = segment_bytes,
		.segment_count = segment_count,
	};
	if (segment_count == 0)
		return 0;
	arrivals->bits =
		calloc(segment_count / 64 + 1, sizeof(*arrivals->bits));
	return arrivals->bits ? 0 : -ENOMEM;
}

void arrivals_fini(struct arrivals *arrivals)
{
	free(arrivals->bits);
	*arrivals = (struct arrivals){ 0 };
}

/* The first segment from `from` on that is PRESENT or MISSING, or limit. */
static uint64_t find(const struct arrivals *arrivals, uint64_t from,
		     uint64_t limit, uint64_t flip)
{
	while (from < limit) {
		uint64_t word =
			(arrivals->bits[from / 64] ^ flip) >> (from % 64);

		if (word)
			return MIN(from + (uint64_t)__builtin_ctzll(word),
				   limit);
		from = ROUND_DOWN(from, 64) + 64;
	}
	return limit;
}

bool arrivals_add(struct arrivals *arrivals, uint64_t i)
{
	if (arrivals_has(arrivals, i))
		return false;
	arrivals->bits[i / 64] |= (uint64_t)1 << (i % 64);
	arrivals->arrived_count++;
	arrivals->end = MAX(arrivals->end, i + 1);
	if (i == arrivals->prefix)
		arrivals->prefix =
			find(arrivals, i + 1, arrivals->end, MISSING);
	return true;
}

unsigned arrivals_gaps(const struct arrivals *arrivals, uint64_t limit,
		       struct arrivals_gap *gaps, unsigned gaps_max)
{
	uint64_t next = arrivals->prefix;
	unsigned count = 0;

	while (count < gaps_max) {
		uint64_t first = find(arrivals, next, limit, MISSING);

		if (first == limit)
			break;
		next = find(arrivals, first, limit, PRESENT);
		gaps[count++] = (struct arrivals_gap){ first, next - first };
	}
	return count;
}
