/*
 * splitters.h - cut the key space into buckets of nearly equal numbers
 *
 * static    equal ranges of the key space, known without a look at the data:
 *           of all byte values (the benchmark's binary keys) or of the 95
 *           printable ones (its ascii keys, as in the published result).
 * sampled   ranges between splitters drawn from the data, for any distribution
 *           (sample sort, Blelloch et al. 1991), each splitter with a bucket of
 *           its own for the keys equal to it, so that a value that fills half
 *           of the input fills one bucket that needs no sorting.
 *
 * What is cut is not the key but its window: a 64-bit integer that never
 * decreases when the key increases.  For static splitters it is the key's first
 * 8 bytes; for sampled ones the 8 bytes behind what all sampled keys have in
 * common, less the smallest, shifted so that the top bits tell keys apart; keys
 * outside of what was sampled get the ends, 0 or UINT64_MAX.
 */
#ifndef SPLITTERS_H
#define SPLITTERS_H

#include <stdbool.h>
#include <stdint.h>

#include "record.h"

enum splitters_kind {
	SPLITTERS_AUTO,	  /* as wanted only */
	SPLITTERS_STATIC, /* as wanted only: 256 or 95 by the look of the keys
			   */
	SPLITTERS_STATIC_256,
	SPLITTERS_STATIC_95,
	SPLITTERS_SAMPLED,
};

/* 95 to the 4th: the values of the 4 characters that pick an ascii bucket. */
#define SPLITTERS_ASCII_VALUES 81450625u

#define SPLITTERS_MAX 8191
#define SPLITTERS_BUCKETS_MAX (2 * SPLITTERS_MAX + 1)
/* Steps of the table that narrows the search among sampled splitters. */
#define SPLITTERS_STEP_BITS 12

struct splitters {
	enum splitters_kind kind;
	uint32_t bucket_count;
	uint64_t ascii_factor; /* STATIC_95: bucket = value * factor >> 40 */
	/* SAMPLED only, from here. */
	uint32_t skip; /* key bytes that all sampled keys have in common */
	const uint8_t *prefix; /* these bytes, in a record of the input */
	uint64_t low;	       /* smallest sampled word behind them */
	unsigned shift;	       /* of (word - low) to the window's top */
	/* Equal windows mean equal keys (but at the two ends). */
	bool window_is_key;
	uint32_t splitter_count;
	uint64_t splitters[SPLITTERS_MAX]; /* strictly ascending windows */
	/* step[v] is the first splitter whose window's top bits are >= v. */
	uint16_t step[(1 << SPLITTERS_STEP_BITS) + 2];
};

/* Set up equal ranges.  kind is STATIC_256 or STATIC_95; bucket_count is at
 * least 1.  Ascii needs key_length >= 4. */
void splitters_init_static(struct splitters *splitters,
			   enum splitters_kind kind, uint32_t bucket_count);

/*
 * Which static kind these records' keys look like, and whether they are spread
 * evenly enough for it: looks at records 0, stride, 2 * stride, ... of count.
 * A look only: what it misses makes the sort slower, never wrong.
 */
enum splitters_kind splitters_look(const struct record_shape *shape,
				   const uint8_t *records, uint64_t count,
				   uint64_t stride, bool *even);

/*
 * Splitters from sampled records, given as pointers into memory that stays.
 * windows is scratch for sample_count values.  splitters_wanted is clipped to
 * SPLITTERS_MAX; equal ones are dropped, so there may be fewer, or none.
 */
void splitters_init_sampled(struct splitters *splitters,
			    const struct record_shape *shape,
			    const uint8_t *const *sample, uint32_t sample_count,
			    uint64_t *windows, uint32_t splitters_wanted);

/* True if all keys of this bucket are equal by construction. */
bool splitters_bucket_is_equal(const struct splitters *splitters,
			       uint32_t bucket);

/* "static-256", "static-95", "sampled" */
const char *splitters_kind_name(enum splitters_kind kind);

/* Of the first 4 characters, most significant first, as a base-95 number; what
 * lies below the printable ones counts as the lowest, above as the highest, and
 * so do all characters after it: never decreasing for any bytes. */
uint32_t splitters_ascii_value_any(uint32_t characters);

static inline uint32_t splitters_ascii_value(uint32_t characters)
{
	uint32_t outside = (characters | (characters + 0x01010101u) |
			    ((characters - 0x20202020u) & ~characters)) &
			   0x80808080u;
	uint32_t digits = characters - 0x20202020u;
	uint32_t pairs;

	if (__builtin_expect(outside != 0, 0))
		return splitters_ascii_value_any(characters);
	/* Two digits, then two pairs, at a time. */
	pairs = (digits & 0x00ff00ffu) + 95 * ((digits >> 8) & 0x00ff00ffu);
	return (pairs & 0xffffu) + 95 * 95 * (pairs >> 16);
}

static inline uint32_t splitters_bucket_256(const struct splitters *splitters,
					    uint64_t window)
{
	return (uint32_t)(((window >> 32) * splitters->bucket_count) >> 32);
}

static inline uint32_t splitters_bucket_95(const struct splitters *splitters,
					   uint64_t window)
{
	uint32_t value = splitters_ascii_value((uint32_t)(window >> 32));

	return (uint32_t)((value * splitters->ascii_factor) >> 40);
}

static inline uint64_t splitters_window(const struct splitters *splitters,
					const struct record_shape *shape,
					const uint8_t *record)
{
	uint64_t word, above;

	if (splitters->skip != 0) {
		int order = memcmp(record + shape->key_offset,
				   splitters->prefix, splitters->skip);

		if (order != 0)
			return order < 0 ? 0 : UINT64_MAX;
	}
	word = record_key_word(shape, record, splitters->skip);
	if (word <= splitters->low)
		return 0;
	above = word - splitters->low;
	if (above > UINT64_MAX >> splitters->shift)
		return UINT64_MAX;
	return above << splitters->shift;
}

/* Even buckets lie between splitters, odd ones hold what equals one. */
static inline uint32_t
splitters_bucket_sampled(const struct splitters *splitters, uint64_t window)
{
	uint64_t step = window >> (64 - SPLITTERS_STEP_BITS);
	uint32_t first = splitters->step[step];
	uint32_t left = splitters->step[step + 1] - first;

	while (left > 0) {
		uint32_t half = left / 2;

		if (splitters->splitters[first + half] < window) {
			first += half + 1;
			left -= half + 1;
		} else {
			left = half;
		}
	}
	return 2 * first + (first < splitters->splitter_count &&
			    splitters->splitters[first] == window);
}

#endif /* SPLITTERS_H */
