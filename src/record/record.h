/*
 * record.h - the shape of a record and its key
 *
 * A record is S bytes, its key a slice of them, compared as unsigned bytes.
 * The benchmark's shape is 100 bytes with the key in the first 10.
 */
#ifndef RECORD_H
#define RECORD_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "base/base.h"

#define RECORD_SIZE_DEFAULT 100
#define RECORD_KEY_LENGTH_DEFAULT 10
/* Chosen, not measured: each of a few staging buffers must hold a record. */
#define RECORD_SIZE_MAX (16 * MIB)

struct record_shape {
	uint32_t size;	     /* 1 .. RECORD_SIZE_MAX */
	uint32_t key_offset; /* key_offset + key_length <= size */
	uint32_t key_length; /* >= 1 */
};

static inline bool record_shape_is_benchmark(const struct record_shape *shape)
{
	return shape->size == RECORD_SIZE_DEFAULT && shape->key_offset == 0 &&
	       shape->key_length == RECORD_KEY_LENGTH_DEFAULT;
}

/*
 * Returns bytes skip .. skip+7 of the key as an integer, most significant byte
 * first, with zeros for bytes after the key's end: integers compare as memcmp()
 * compares the bytes.  Never reads outside the record.
 */
static inline uint64_t record_key_word(const struct record_shape *shape,
				       const uint8_t *record, uint32_t skip)
{
	const uint8_t *key = record + shape->key_offset + skip;
	uint32_t left = shape->key_length - skip;
	uint64_t word;

	if (left >= 8)
		return load_be64(key);
	if (shape->key_offset + skip + 8 <= shape->size) {
		word = load_be64(key);
	} else {
		uint8_t bytes[8] = { 0 };

		memcpy(bytes, key, left);
		word = load_be64(bytes);
	}
	return left == 0 ? 0 : word & (UINT64_MAX << (64 - 8 * left));
}

/* Returns <0, 0 or >0, as memcmp() of the keys does.  Compares words, since the
 * memcmp() of a C library made for size compares byte by byte. */
static inline int record_compare(const struct record_shape *shape,
				 const uint8_t *a, const uint8_t *b)
{
	for (uint32_t skip = 0; skip < shape->key_length; skip += 8) {
		uint64_t a_word = record_key_word(shape, a, skip);
		uint64_t b_word = record_key_word(shape, b, skip);

		if (a_word != b_word)
			return a_word < b_word ? -1 : 1;
	}
	return 0;
}

#endif /* RECORD_H */
