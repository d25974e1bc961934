/* splitters.c - cut the key space into buckets of nearly equal numbers */
#include "kernels/splitters.h"

#include <assert.h>

#include "kernels/local_sort.h"

void splitters_init_static(struct splitters *splitters,
			   enum splitters_kind kind, uint32_t bucket_count)
{
	assert(kind == SPLITTERS_STATIC_256 || kind == SPLITTERS_STATIC_95);
	splitters->kind = kind;
	splitters->bucket_count = bucket_count;
	/* Rounded down, so that the largest value stays below bucket_count. */
	splitters->ascii_factor =
		((uint64_t)bucket_count << 40) / SPLITTERS_ASCII_VALUES;
}

uint32_t splitters_ascii_value_any(uint32_t characters)
{
	uint32_t value = 0;

	for (int i = 0; i < 4; i++) {
		uint8_t character = (uint8_t)(characters >> (24 - 8 * i));
		uint32_t digit;

		if (character < ' ' || character > '~') {
			digit = character < ' ' ? 0 : 94;
			for (; i < 4; i++)
				value = value * 95 + digit;
			return value;
		}
		digit = character - ' ';
		value = value * 95 + digit;
	}
	return value;
}

bool splitters_may_be_ascii(const struct record_shape *shape)
{
	const struct key_field *field = &shape->keys.fields[0];

	return field->type == KEY_BYTES && !field->is_descending &&
	       field->length >= 4;
}

static bool keys_are_ascii(const struct record_shape *shape,
			   const uint8_t *records, uint64_t count)
{
	const struct key_field *field = &shape->keys.fields[0];
	uint32_t length = MIN(field->length, 8);

	if (!splitters_may_be_ascii(shape))
		return false;
	for (uint64_t i = 0; i < count; i++) {
		const uint8_t *key = records + i * shape->size + field->offset;

		for (uint32_t j = 0; j < length; j++)
			if (key[j] < ' ' || key[j] > '~')
				return false;
	}
	return true;
}

/*
 * Bins of the probe.  If n keys fall into 16 even bins, a bin holds n/16 on
 * average with a standard deviation of at most the root of that; 6 of them are
 * exceeded once in a billion bins.
 */
#define LOOK_BINS 16
/* Values count as frequent if more than this part of the first LOOK_WORDS words
 * repeats an earlier one: a value that makes a thirtieth of the input is worth
 * a bucket of its own. */
#define LOOK_WORDS 512
#define LOOK_REPEATED_PART 32

static bool bins_are_even(const uint64_t *in_bin, uint64_t count)
{
	uint64_t mean = count / LOOK_BINS + 1;

	for (int i = 0; i < LOOK_BINS; i++) {
		uint64_t excess = in_bin[i] > mean ? in_bin[i] - mean : 0;

		if (excess * excess > 36 * mean)
			return false;
	}
	return true;
}

/* Frequent values would make oversized buckets, however uniform the others are.
 */
static bool words_repeat(uint64_t *words, uint32_t count)
{
	uint32_t repeated = 0;

	local_sort_scalar(words, count);
	for (uint32_t i = 1; i < count; i++)
		repeated += words[i] == words[i - 1];
	/* A few repetitions among few keys prove nothing. */
	return repeated > 4 + count / LOOK_REPEATED_PART;
}

enum splitters_kind splitters_probe(const struct record_shape *shape,
				    const uint8_t *records, uint64_t count,
				    bool *is_uniform)
{
	struct splitters bins;
	uint64_t in_bin[LOOK_BINS] = { 0 };
	uint64_t words[LOOK_WORDS];
	bool ascii = keys_are_ascii(shape, records, count);

	splitters_init_static(
		&bins, ascii ? SPLITTERS_STATIC_95 : SPLITTERS_STATIC_256,
		LOOK_BINS);
	for (uint64_t i = 0; i < count; i++) {
		uint64_t word =
			record_key_word(shape, records + i * shape->size, 0);

		in_bin[ascii ? splitters_bucket_95(&bins, word)
			     : splitters_bucket_256(&bins, word)]++;
		if (i < LOOK_WORDS)
			words[i] = word;
	}
	*is_uniform = bins_are_even(in_bin, count) &&
		      !words_repeat(words, (uint32_t)MIN(count, LOOK_WORDS));
	return bins.kind;
}

static uint32_t common_bytes(const struct record_shape *shape,
			     const uint8_t *const *sample,
			     uint32_t sample_count)
{
	uint32_t length = shape->keys.length;

	for (uint32_t i = 1; i < sample_count && length > 0; i++)
		length = record_common_bytes(shape, sample[0], sample[i],
					     length);
	return length;
}

int splitters_compare_rest(const struct splitters *splitters,
			   const struct record_shape *shape,
			   const uint8_t *record)
{
	for (uint32_t at = 8; at < splitters->skip; at += 8) {
		uint64_t word = record_key_word(shape, record, at);
		uint64_t common = record_key_word(splitters->common_shape,
						  splitters->common_record, at);
		unsigned unused =
			8 * (8 - MIN(8, splitters->skip - at)); /* bits */

		if ((word ^ common) >> unused != 0)
			return word < common ? -1 : 1;
	}
	return 0;
}

void splitters_set_shape(struct splitters *splitters,
			 const struct record_shape *shape)
{
	uint32_t skip = splitters->skip;

	key_word_prepare(&splitters->word, &shape->keys, shape->size, skip);
	key_word_prepare(&splitters->next_word, &shape->keys, shape->size,
			 skip + 8);
}

static void set_key_prefix(struct splitters *splitters,
			   const struct record_shape *shape,
			   const uint8_t *const *sample, uint32_t sample_count)
{
	uint64_t low = UINT64_MAX, high = 0;

	splitters->skip = common_bytes(shape, sample, sample_count);
	/* Keep at least the last byte of the key, so that there is a word to
	 * read. */
	if (splitters->skip == shape->keys.length)
		splitters->skip--;
	splitters->common_record = sample[0];
	splitters->common_shape = shape;
	splitters->common_mask = splitters->skip < 8
					 ? ~(UINT64_MAX >> 8 * splitters->skip)
					 : UINT64_MAX;
	splitters->common_first =
		record_key_word(shape, sample[0], 0) & splitters->common_mask;
	splitters_set_shape(splitters, shape);
	for (uint32_t i = 0; i < sample_count; i++) {
		uint64_t word =
			record_key_word(shape, sample[i], splitters->skip);

		low = MIN(low, word);
		high = MAX(high, word);
	}
	/* low is one below the smallest word, so that the smallest is told
	 * apart from what lies below all. */
	if (low > 0)
		low--;
	splitters->low = low;
	splitters->shift = (unsigned)__builtin_clzll((high - low) | 1);
	splitters->rest_bits = 8 * (shape->keys.length - splitters->skip);
}

void splitters_init_sampled(struct splitters *splitters,
			    const struct record_shape *shape,
			    const uint8_t *const *sample, uint32_t sample_count,
			    uint64_t *prefixes, uint32_t splitters_wanted)
{
	uint32_t wanted = MIN(splitters_wanted, SPLITTERS_MAX);
	uint64_t next;

	assert(sample_count > 0);
	splitters->kind = SPLITTERS_SAMPLED;
	set_key_prefix(splitters, shape, sample, sample_count);
	for (uint32_t i = 0; i < sample_count; i++)
		prefixes[i] = splitters_key_prefix(splitters, shape, sample[i],
						   &next);
	local_sort_scalar(prefixes, sample_count);
	splitters->splitter_count = 0;
	for (uint32_t i = 1; i <= wanted; i++) {
		uint64_t prefix =
			prefixes[(uint64_t)i * sample_count / (wanted + 1)];
		uint32_t have = splitters->splitter_count;

		if (have > 0 && splitters->splitters[have - 1] == prefix)
			continue;
		splitters->splitters[splitters->splitter_count++] = prefix;
	}
	splitters->bucket_count = 2 * splitters->splitter_count + 1;
	search_build(&splitters->tree, splitters->splitters,
		     splitters->splitter_count);
}

/* Keys that were not sampled may lie in it, whatever their prefixes say. */
static bool bucket_is_clamped(const struct splitters *splitters,
			      uint32_t bucket)
{
	/* Keys below all sampled keys may have the prefix 0, and those above
	 * all the prefix UINT64_MAX. */
	bool clamps_low = splitters->skip > 0 || splitters->low > 0;
	bool clamps_high = splitters->skip > 0 || splitters->shift > 0;
	uint64_t prefix;

	if (bucket % 2 == 0)
		return (bucket == 0 && clamps_low) ||
		       (bucket + 1 == splitters->bucket_count && clamps_high);
	prefix = splitters->splitters[bucket / 2];
	return (prefix == 0 && clamps_low) ||
	       (prefix == UINT64_MAX && clamps_high);
}

bool splitters_bucket_is_equal(const struct splitters *splitters,
			       uint32_t bucket)
{
	return splitters->kind == SPLITTERS_SAMPLED && bucket % 2 == 1 &&
	       splitters->rest_bits <= 64 + splitters->shift &&
	       !bucket_is_clamped(splitters, bucket);
}

bool splitters_bucket_is_decided(const struct splitters *splitters,
				 uint32_t bucket, uint32_t key_bytes,
				 unsigned index_bits)
{
	unsigned bits = 128 + splitters->shift - index_bits;

	if (splitters->kind != SPLITTERS_SAMPLED)
		return 8 * (uint64_t)key_bytes + index_bits <= 64;
	if (bucket_is_clamped(splitters, bucket))
		return false;
	if (bucket % 2 == 0)
		bits -= 64 - splitters_bucket_shift(splitters, bucket / 2);
	/* Entries are compared by two words only, the first less its shift. */
	return splitters->rest_bits <= MIN(bits, 128);
}

const char *const splitters_kind_names[] = {
	[SPLITTERS_AUTO] = "auto",
	[SPLITTERS_STATIC] = "static",
	[SPLITTERS_STATIC_256] = "static-256",
	[SPLITTERS_STATIC_95] = "static-95",
	[SPLITTERS_SAMPLED] = "sampled",
};
