/*
 * generator.h - the benchmark's records, byte for byte as gensort makes them
 *
 * Record n depends on n alone (a 128-bit linear congruential generator with
 * skip-ahead, Jim Gray's), so any thread can make any range at any time, and
 * parts made separately are, one after the other, the same as one range.
 */
#ifndef GENERATOR_H
#define GENERATOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define GENERATOR_RECORD_BYTES 100

struct generator_kind {
	bool ascii;  /* printable keys, lines of text; else all bytes */
	bool skewed; /* many keys share a prefix, some are equal */
};

/* Make the records first .. first + count - 1 (modulo 2^128).  A call costs
 * about 1 us in addition to its records. */
void generator_fill(const struct generator_kind *kind, unsigned __int128 first,
		    uint8_t *records, size_t count);

#endif /* GENERATOR_H */
