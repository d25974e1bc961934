/* key_probe.c - reads a few keys of an input, to learn what kind they are */
#include "sort/key_probe.h"

#include <stdlib.h>

#include "base/base.h"

/* Keys that are probed: from this many places of a mapped file, or from the
 * input's beginning. */
#define PROBE_RECORDS 512
#define PROBE_PLACES 32
#define PROBE_BYTES (64 * KIB)
/* What makes the key's first word lies closer together in a record than this,
 * or only the first field is probed. */
#define PROBE_SPAN_BYTES 64

/* The first fields of the key, as many as its first word needs. */
static struct key_list first_fields(const struct key_list *keys)
{
	struct key_list first = { 0 };
	uint32_t length = 0;

	while (first.field_count < keys->field_count && length < 8) {
		struct key_field field = keys->fields[first.field_count];

		if (field.type == KEY_BYTES)
			field.length = MIN(field.length, 8 - length);
		length += field.length;
		first.fields[first.field_count++] = field;
	}
	return first;
}

/* The shape of the bytes of a record that are probed, from *offset on. */
static struct record_shape probed_shape(const struct record_shape *shape,
					uint32_t *offset)
{
	struct key_list keys = first_fields(&shape->keys);

	key_list_complete(&keys, shape->size);
	if (keys.end - keys.begin > PROBE_SPAN_BYTES) {
		keys.field_count = 1;
		key_list_complete(&keys, shape->size);
	}
	*offset = keys.begin;
	for (unsigned i = 0; i < keys.field_count; i++)
		keys.fields[i].offset -= *offset;
	key_list_complete(&keys, keys.end - *offset);
	return (struct record_shape){ .size = keys.end, .keys = keys };
}

/* Read keys from many places of a file in the page cache. */
static enum splitters_kind probe_places(const struct input *input,
					const struct record_shape *shape,
					bool *is_uniform)
{
	uint8_t keys[PROBE_RECORDS * PROBE_SPAN_BYTES];
	uint32_t offset;
	const struct record_shape key = probed_shape(shape, &offset);
	struct failure failure;

	if (input_peek_places(input, offset, key.size, PROBE_RECORDS,
			      PROBE_PLACES, keys, &failure))
		return SPLITTERS_STATIC_256;
	return splitters_probe(&key, keys, PROBE_RECORDS, is_uniform);
}

enum splitters_kind key_probe(const struct input *input,
			      const struct sorter_config *config,
			      bool *is_uniform)
{
	const struct record_shape *shape = &config->shape;
	enum splitters_kind kind = SPLITTERS_STATIC_256;
	uint64_t wanted = MIN(PROBE_RECORDS, PROBE_BYTES / shape->size);
	struct failure failure;
	uint8_t *buffer;
	int64_t count;

	*is_uniform = true;
	if (config->widening.bytes > 0) {
		*is_uniform = shape->keys.begin >= sorter_input_size(config);
		return kind;
	}
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
		kind = splitters_probe(shape, buffer, (uint64_t)count,
				       is_uniform);
	free(buffer);
	return kind;
}
