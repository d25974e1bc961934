/*
 * grid_bundle.c - read a bundle that lies in parts
 */
#include "exchange/grid_bundle.h"

#include <string.h>

#include "exchange/exchange.h"

uint64_t grid_bundle_bytes(const struct grid_bundle *bundle)
{
	uint64_t bytes = bundle->part_count * (uint64_t)GRID_LENGTH_BYTES;

	for (unsigned k = 0; k < bundle->part_count; k++)
		bytes += bundle->parts[k].byte_count;
	return bytes;
}

static void read_lengths(const struct grid_bundle *bundle, uint64_t offset,
			 uint8_t *target, size_t byte_count)
{
	for (size_t i = 0; i < byte_count; i++, offset++) {
		uint8_t length[GRID_LENGTH_BYTES];

		store_le64(
			length,
			bundle->parts[offset / GRID_LENGTH_BYTES].byte_count);
		target[i] = length[offset % GRID_LENGTH_BYTES];
	}
}

static void read_part(const struct grid_part *part,
		      const struct exchange_collective *collective,
		      uint64_t offset, uint8_t *target, size_t byte_count)
{
	if (part->bytes)
		memcpy(target, part->bytes + offset, byte_count);
	else
		collective->read(collective->context, part->node, offset,
				 target, byte_count);
}

void grid_bundle_read(const struct grid_bundle *bundle,
		      const struct exchange_collective *collective,
		      uint64_t offset, uint8_t *target, size_t byte_count)
{
	uint64_t begin = bundle->part_count * (uint64_t)GRID_LENGTH_BYTES;
	size_t bytes = offset < begin ? MIN(byte_count, begin - offset) : 0;

	read_lengths(bundle, offset, target, bytes);
	for (unsigned k = 0; bytes < byte_count; k++) {
		const struct grid_part *part = &bundle->parts[k];
		uint64_t at = offset + bytes - begin;

		if (at < part->byte_count) {
			size_t more =
				MIN(byte_count - bytes, part->byte_count - at);

			read_part(part, collective, at, target + bytes, more);
			bytes += more;
		}
		begin += part->byte_count;
	}
}
