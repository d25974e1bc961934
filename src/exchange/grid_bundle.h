/*
 * grid_bundle.h - messages of several ranks as one, for a rank that passes them
 * on or takes them apart
 *
 * First a u64, little endian, for each part: its bytes.  Then the parts.
 */
#ifndef GRID_BUNDLE_H
#define GRID_BUNDLE_H

#include <stddef.h>
#include <stdint.h>

#include "base/base.h"

struct exchange_collective;

/* This many bytes tell the length of each part, in front of all parts. */
#define GRID_LENGTH_BYTES 8

/* A part of what is sent. */
struct grid_part {
	uint64_t byte_count;
	const uint8_t *bytes; /* NULL: the collective has it, for node */
	unsigned node;
};

struct grid_bundle {
	const struct grid_part *parts;
	unsigned part_count;
};

uint64_t grid_bundle_bytes(const struct grid_bundle *bundle);

/* Copy bytes of the bundle, as the function of a collective does. */
void grid_bundle_read(const struct grid_bundle *bundle,
		      const struct exchange_collective *collective,
		      uint64_t offset, uint8_t *target, size_t byte_count);

/* How long part k of a bundle that has come is, by the lengths in front of its
 * parts. */
static inline uint64_t grid_bundle_part_bytes(const uint8_t *lengths,
					      unsigned k)
{
	return load_le64(lengths + k * (size_t)GRID_LENGTH_BYTES);
}

#endif /* GRID_BUNDLE_H */
