/*
 * record.h - the shape of a record: its size and its keys
 *
 * The benchmark's shape is 100 bytes, the key in the first 10, compared as
 * unsigned bytes.
 */
#ifndef RECORD_H
#define RECORD_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "base/base.h"
#include "record/key_list.h"

#define RECORD_SIZE_DEFAULT 100
#define RECORD_KEY_LENGTH_DEFAULT 10
/* Chosen, not measured: each of a few staging buffers must hold a record. */
#define RECORD_SIZE_MAX (16 * MIB)

/* Follows "N-byte records" in messages: a user who has given no size must learn
 * that there is one. */
static inline const char *record_size_note(uint32_t size)
{
	return size == RECORD_SIZE_DEFAULT ? " (the default)" : "";
}

struct record_shape {
	uint32_t size;	      /* 1 .. RECORD_SIZE_MAX */
	struct key_list keys; /* complete */
};

/* The initializer of a shape whose key is one slice of bytes: complete. */
#define RECORD_SHAPE_OF_SLICE(record_size, key_offset, key_length)             \
	{                                                                      \
		.size = (record_size), .keys = {                               \
			.field_count = 1,                                      \
			.fields = { { .offset = (key_offset),                  \
				      .length = (key_length) } },              \
			.length = (key_length),                                \
			.is_plain = true,                                      \
			.begin = (key_offset),                                 \
			.end = (key_offset) + (key_length),                    \
		}                                                              \
	}

static inline bool record_shape_is_benchmark(const struct record_shape *shape)
{
	return shape->size == RECORD_SIZE_DEFAULT && shape->keys.is_plain &&
	       shape->keys.begin == 0 &&
	       shape->keys.length == RECORD_KEY_LENGTH_DEFAULT;
}

/* The word at skip, as key_list_word() defines it; fast where the key is plain,
 * or skip is 0. */
static inline __attribute__((always_inline)) uint64_t
record_key_word(const struct record_shape *shape, const uint8_t *record,
		uint32_t skip)
{
	const uint8_t *key = record + shape->keys.begin + skip;
	uint32_t left = shape->keys.length - skip;
	uint64_t word;

	if (!shape->keys.is_plain && skip == 0 &&
	    shape->keys.head.part_count > 0)
		return key_word_read(&shape->keys.head, record);
	if (!shape->keys.is_plain)
		return skip == 0 && shape->keys.head.folded_count > 0
			       ? key_word_read_folded(&shape->keys.head, record)
			       : key_list_word(&shape->keys, record, skip);
	if (left >= 8)
		return load_be64(key);
	if (shape->keys.begin + skip + 8 <= shape->size) {
		word = load_be64(key);
	} else {
		uint8_t bytes[8] = { 0 };

		memcpy(bytes, key, left);
		word = load_be64(bytes);
	}
	return left == 0 ? 0 : word & (UINT64_MAX << (64 - 8 * left));
}

/* Returns what record_key_word() does, by a word that was prepared for this
 * shape and skip. */
static inline uint64_t record_prepared_word(const struct record_shape *shape,
					    const struct key_word *word,
					    const uint8_t *record,
					    uint32_t skip)
{
	if (shape->keys.is_plain || word->part_count == 0)
		return word->folded_count > 0
			       ? key_word_read_folded(word, record)
			       : record_key_word(shape, record, skip);
	return key_word_read(word, record);
}

/* Returns <0, 0 or >0, as memcmp() of the encoded keys does.  Compares words,
 * since the memcmp() of a C library made for size compares byte by byte. */
static inline int record_compare(const struct record_shape *shape,
				 const uint8_t *a, const uint8_t *b)
{
	for (uint32_t skip = 0; skip < shape->keys.length; skip += 8) {
		uint64_t a_word = record_key_word(shape, a, skip);
		uint64_t b_word = record_key_word(shape, b, skip);

		if (a_word != b_word)
			return a_word < b_word ? -1 : 1;
	}
	return 0;
}

/* Returns how many bytes the encoded keys have in common at their beginning, up
 * to most. */
static inline uint32_t record_common_bytes(const struct record_shape *shape,
					   const uint8_t *a, const uint8_t *b,
					   uint32_t most)
{
	const uint8_t *x = a + shape->keys.begin, *y = b + shape->keys.begin;
	uint32_t same = 0;

	if (shape->keys.is_plain) {
		while (same + 8 <= most && memcmp(x + same, y + same, 8) == 0)
			same += 8;
		while (same < most && x[same] == y[same])
			same++;
		return same;
	}
	for (; same < most; same += 8) {
		uint64_t differ = record_key_word(shape, a, same) ^
				  record_key_word(shape, b, same);

		if (differ != 0)
			return MIN(most,
				   same + (uint32_t)__builtin_clzll(differ) /
						   8);
	}
	return most;
}

#endif /* RECORD_H */
