#include "sort/key_probe.h"

#include <stdlib.h>

#include "base/base.h"

/* Keys that are probed: from this many places of a mapped file, or from the
 * input's beginning. */
#define PROBE_RECORDS 512
#define PROBE_PLACES 32
#define PROBE_BYTES (64 * KIB)
#define PROBE_KEY_BYTES 8

/* Read keys from many places of a file in the page cache. */
static enum splitters_kind probe_places(const struct input *input,
					const struct record_shape *shape,
					bool *is_uniform)
{
	uint8_t keys[PROBE_RECORDS * PROBE_KEY_BYTES];
	uint32_t length = MIN(shape->key_length, PROBE_KEY_BYTES);
	const struct record_shape key = { .size = length,
					  .key_offset = 0,
					  .key_length = length };
	struct failure failure;

	if (input_peek_places(input, shape->key_offset, length, PROBE_RECORDS,
			      PROBE_PLACES, keys, &failure))
		return SPLITTERS_STATIC_256;
	return splitters_probe(&key, keys, PROBE_RECORDS, 1, is_uniform);
}

enum splitters_kind key_probe(const struct input *input,
			      const struct record_shape *shape,
			      bool *is_uniform)
{
	enum splitters_kind kind = SPLITTERS_STATIC_256;
	uint64_t wanted = MIN(PROBE_RECORDS, PROBE_BYTES / shape->size);
	struct failure failure;
	uint8_t *buffer;
	int64_t count;

	*is_uniform = true;
	/* A file that is not cached is read from one place: each place is a
	 * seek.  In a short file places would lie upon each other, and keys
	 * would seem to repeat. */
	if (input->mode == INPUT_MMAP &&
	    input->files[0].record_count > PROBE_RECORDS)
		return probe_places(input, shape, is_uniform);
	buffer = wanted > 0 ? malloc(PROBE_BYTES) : NULL;
	if (!buffer)
		return kind;
	count = input_peek(input, buffer, wanted, &failure);
	if (count > 0)
		kind = splitters_probe(shape, buffer, (uint64_t)count, 1,
				       is_uniform);
	free(buffer);
	return kind;
}
