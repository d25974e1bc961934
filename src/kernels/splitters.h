/*
 * splitters.h - cut the key space into buckets of nearly equal numbers
 *
 * static    equal ranges of the key space, known without reading the data:
 *           of all byte values (the benchmark's binary keys) or of the 95
 *           printable ones (its ascii keys, as in the published result).
 * sampled   ranges between splitters drawn from the data, for any distribution
 *           (sample sort, Blelloch et al. 1991), each splitter with a bucket of
 *           its own for the keys equal to it, so that a value that fills half
 *           of the input fills one bucket that needs no sorting.
 *
 * The splitters divide not the key but its normalised prefix, the key prefix:
 * a 64-bit integer that never decreases when the key increases.  For
 * static splitters it is the key's first 8 bytes.  For sampled ones it is
 * computed in three steps: take the 64 bits of the key after the bytes that all
 * sampled keys have in common, subtract the smallest sampled value, and shift
 * left until the top bit differs between sampled keys.  A key below or above
 * all sampled keys may get the prefix 0 or UINT64_MAX.
 */
#ifndef SPLITTERS_H
#define SPLITTERS_H

#include <stdbool.h>
#include <stdint.h>

#include "kernels/search.h"
#include "record/record.h"

enum splitters_kind {
	/* The first two are requests only; STATIC is either of the next two. */
	SPLITTERS_AUTO,
	SPLITTERS_STATIC,
	SPLITTERS_STATIC_256,
	SPLITTERS_STATIC_95,
	SPLITTERS_SAMPLED,
};

/* 95 to the 4th: the values of the 4 characters that pick an ascii bucket. */
#define SPLITTERS_ASCII_VALUES 81450625u

#define SPLITTERS_MAX SEARCH_COUNT_MAX

struct splitters {
	enum splitters_kind kind;
	uint32_t bucket_count;
	uint64_t ascii_factor; /* STATIC_95: bucket = value * factor >> 40 */
	/* The following fields are for SAMPLED only. */
	uint32_t skip; /* key bytes that all sampled keys have in common */
	/* The first of these bytes, up to 8, as a word; their bits are 1 in the
	 * mask. */
	uint64_t common_first, common_mask;
	/* A record whose key begins with these bytes, and its shape: that of
	 * the sample, not of the records.  Both are borrowed. */
	const uint8_t *common_record;
	const struct record_shape *common_shape;
	/* The words after these bytes, prepared for the records. */
	struct key_word word, next_word;
	uint64_t low;	    /* smallest sampled word after these bytes */
	unsigned shift;	    /* bits by which (word - low) is shifted left */
	uint32_t rest_bits; /* bits of the key after skip */
	uint32_t splitter_count;
	uint64_t splitters[SPLITTERS_MAX]; /* strictly ascending prefixes */
	struct search_tree tree;	   /* of these */
};

/* True if static ranges of printable characters may suit the keys: they begin
 * with 4 ascending bytes. */
bool splitters_may_be_ascii(const struct record_shape *shape);

/* Set up equal ranges.  kind is STATIC_256 or STATIC_95; bucket_count is at
 * least 1.  For the latter see splitters_may_be_ascii(). */
void splitters_init_static(struct splitters *splitters,
			   enum splitters_kind kind, uint32_t bucket_count);

/*
 * Probe count records: returns the static kind that suits their keys, and sets
 * *is_uniform if the keys are uniform enough for it.  A wrong guess makes the
 * sort slower, never wrong.
 */
enum splitters_kind splitters_probe(const struct record_shape *shape,
				    const uint8_t *records, uint64_t count,
				    bool *is_uniform);

/*
 * Choose splitters from sampled records.  sample has pointers to the records;
 * shape and the first record must outlive the splitters.  prefixes is scratch
 * memory for sample_count values. At most SPLITTERS_MAX splitters are made;
 * equal ones are dropped, so there may be fewer than splitters_wanted, or none.
 */
void splitters_init_sampled(struct splitters *splitters,
			    const struct record_shape *shape,
			    const uint8_t *const *sample, uint32_t sample_count,
			    uint64_t *prefixes, uint32_t splitters_wanted);

/* The splitters were made from a sample of another shape with the same encoded
 * keys: prepare them for records of this one. */
void splitters_set_shape(struct splitters *splitters,
			 const struct record_shape *shape);

/*
 * Number of the i-th of sample_count records to sample out of record_count:
 * one of each stride, drawn by a step of a linear congruential generator, so
 * that periodic input is not sampled in step.  *random is 1 at first.
 */
static inline uint64_t splitters_draw(uint64_t record_count,
				      uint32_t sample_count, uint32_t i,
				      uint64_t *random)
{
	uint64_t begin = record_count * i / sample_count;
	uint64_t end = record_count * (i + 1) / sample_count;

	*random = *random * 6364136223846793005u + 1442695040888963407u;
	return begin + (*random >> 32) % (end - begin);
}

/* True if all keys of this bucket are equal by construction: its entries are
 * then in order already. */
bool splitters_bucket_is_equal(const struct splitters *splitters,
			       uint32_t bucket);

/* True if entries of this bucket with equal key bits have equal keys, which are
 * of key_bytes: sorting them as integers is then enough. */
bool splitters_bucket_is_decided(const struct splitters *splitters,
				 uint32_t bucket, uint32_t key_bytes,
				 unsigned index_bits);

/* [enum splitters_kind]: "static-256", "static-95", "sampled" */
extern const char *const splitters_kind_names[];

/* The first 4 characters, most significant first, as a base-95 number.  A byte
 * below the printable characters counts as the lowest of them, and one above as
 * the highest; so do all bytes after it.  So the number never decreases when
 * the bytes increase. */
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
					    uint64_t prefix)
{
	return (uint32_t)(((prefix >> 32) * splitters->bucket_count) >> 32);
}

static inline uint32_t splitters_bucket_95(const struct splitters *splitters,
					   uint64_t prefix)
{
	uint32_t value = splitters_ascii_value((uint32_t)(prefix >> 32));

	return (uint32_t)((value * splitters->ascii_factor) >> 40);
}

/* Compares a key whose first 8 bytes are those of the sample: <0, 0 or >0, for
 * the record's key bytes 8 to skip - 1 against those that all sampled keys
 * have. */
int splitters_compare_rest(const struct splitters *splitters,
			   const struct record_shape *shape,
			   const uint8_t *record);

/* Returns <0, 0 or >0: compares the first skip bytes of the record's key with
 * those that all sampled keys have in common. */
static inline int splitters_compare_common(const struct splitters *splitters,
					   const struct record_shape *shape,
					   const uint8_t *record)
{
	uint64_t first =
		record_key_word(shape, record, 0) & splitters->common_mask;

	if (first != splitters->common_first)
		return first < splitters->common_first ? -1 : 1;
	return splitters->skip <= 8
		       ? 0
		       : splitters_compare_rest(splitters, shape, record);
}

/* The top 64 bits of two words shifted left; shift is 0..63. */
static inline uint64_t splitters_shift(uint64_t word, uint64_t next,
				       unsigned shift)
{
	return word << shift | next >> 1 >> (63 - shift);
}

/* Returns the prefix of a key, and in *next the bits of the key that follow the
 * prefix in significance.  A key that is clamped gets equal bits in both.
 * Inlined by force: as a call it took 5 % of a sort of small records. */
static inline __attribute__((always_inline)) uint64_t
splitters_key_prefix(const struct splitters *splitters,
		     const struct record_shape *shape, const uint8_t *record,
		     uint64_t *next)
{
	uint64_t word;

	if (splitters->skip != 0) {
		int order = splitters_compare_common(splitters, shape, record);

		if (order != 0)
			return *next = order < 0 ? 0 : UINT64_MAX;
	}
	word = record_prepared_word(shape, &splitters->word, record,
				    splitters->skip);
	if (word < splitters->low)
		return *next = 0;
	word -= splitters->low;
	if (word > UINT64_MAX >> splitters->shift)
		return *next = UINT64_MAX;
	if (splitters->rest_bits <= 64) {
		*next = 0;
		return word << splitters->shift;
	}
	*next = record_prepared_word(shape, &splitters->next_word, record,
				     splitters->skip + 8);
	word = splitters_shift(word, *next, splitters->shift);
	*next <<= splitters->shift;
	return word;
}

/* Buckets with an even number lie between splitters; one with an odd number
 * holds the keys equal to a splitter.  below is the number of splitters that
 * are less than the prefix. */
static inline uint32_t splitters_bucket_above(const struct splitters *splitters,
					      uint64_t prefix, uint32_t below)
{
	return 2 * below + (below < splitters->splitter_count &&
			    splitters->splitters[below] == prefix);
}

/* The bucket of a single key; search.h does it for a batch.  The loop has no
 * branch that depends on the key, so it takes the same time for all
 * distributions. */
static inline uint32_t
splitters_bucket_sampled(const struct splitters *splitters, uint64_t prefix)
{
	const uint64_t *first = splitters->splitters;
	uint32_t left = splitters->splitter_count;
	uint32_t below;

	if (left == 0)
		return 0;
	while (left > 1) {
		uint32_t half = left / 2;

		first += half & -(uint32_t)(first[half - 1] < prefix);
		left -= half;
	}
	below = (uint32_t)(first - splitters->splitters) + (*first < prefix);
	return splitters_bucket_above(splitters, prefix, below);
}

/* The number of top bits that all prefixes of the bucket between splitters
 * below
 * - 1 and below have in common. */
static inline unsigned splitters_bucket_shift(const struct splitters *splitters,
					      uint32_t below)
{
	uint64_t low = below > 0 ? splitters->splitters[below - 1] : 0;
	uint64_t high = below < splitters->splitter_count
				? splitters->splitters[below]
				: UINT64_MAX;

	return (unsigned)__builtin_clzll((high - low) | 1);
}

/*
 * The bits that order records within their bucket, as an integer: the part of
 * the prefix that the bucket does not determine, then the bits of the key after
 * the prefix.
 */
static inline uint64_t
splitters_key_in_bucket(const struct splitters *splitters, uint64_t prefix,
			uint64_t next, uint32_t bucket)
{
	uint32_t below = bucket / 2;

	if (bucket % 2 == 1)
		return next;
	if (below > 0)
		prefix -= splitters->splitters[below - 1];
	return splitters_shift(prefix, next,
			       splitters_bucket_shift(splitters, below));
}

#endif /* SPLITTERS_H */
