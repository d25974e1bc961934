#include "sort/ties.h"

/* Up to here comparing keys in place beats reading them out and sorting. */
#define INSERTION_MAX 8
/* Entries whose keys are asked for before they are looked at. */
#define ASK_AHEAD 48
/* Turns of 5 or more key bytes each; only keys made to be alike need more, and
 * they must not use up the stack. */
#define DEPTH_MAX 32

static const uint8_t *record_of(const struct ties *ties, uint64_t entry)
{
	uint64_t slot = entry & ~(UINT64_MAX << ties->index_bits);

	return ties->records + slot * ties->shape->size;
}

/* Stable: an entry moves only past keys that are greater. */
static void insertion(const struct ties *ties, uint64_t *entries, size_t count)
{
	for (size_t i = 1; i < count; i++) {
		uint64_t moving = entries[i];
		const uint8_t *record = record_of(ties, moving);
		size_t j = i;

		for (; j > 0; j--) {
			if (record_compare(ties->shape,
					   record_of(ties, entries[j - 1]),
					   record) <= 0)
				break;
			entries[j] = entries[j - 1];
		}
		entries[j] = moving;
	}
}

/* By key, then by record: a total order, so that any sort is stable. */
static bool before(const struct ties *ties, uint64_t a, uint64_t b)
{
	int order = record_compare(ties->shape, record_of(ties, a),
				   record_of(ties, b));
	uint64_t index_mask = ~(UINT64_MAX << ties->index_bits);

	return order != 0 ? order < 0 : (a & index_mask) < (b & index_mask);
}

static void sift_down(const struct ties *ties, uint64_t *entries, size_t count,
		      size_t parent)
{
	uint64_t moving = entries[parent];

	for (;;) {
		size_t child = 2 * parent + 1;

		if (child >= count)
			break;
		if (child + 1 < count &&
		    before(ties, entries[child], entries[child + 1]))
			child++;
		if (!before(ties, moving, entries[child]))
			break;
		entries[parent] = entries[child];
		parent = child;
	}
	entries[parent] = moving;
}

static void heap_sort(const struct ties *ties, uint64_t *entries, size_t count)
{
	for (size_t i = count / 2; i-- > 0;)
		sift_down(ties, entries, count, i);
	for (size_t i = count; i-- > 1;) {
		uint64_t last = entries[i];

		entries[i] = entries[0];
		entries[0] = last;
		sift_down(ties, entries, i, 0);
	}
}

static void settle(const struct ties *ties, uint64_t *entries, size_t count,
		   unsigned depth);

static uint32_t common_prefix(const struct ties *ties, const uint64_t *entries,
			      size_t count)
{
	const struct record_shape *shape = ties->shape;
	const uint8_t *first = record_of(ties, entries[0]) + shape->key_offset;
	uint32_t length = shape->key_length;

	for (size_t i = 1; i < count && length > 0; i++) {
		const uint8_t *key =
			record_of(ties, entries[i]) + shape->key_offset;
		uint32_t same = 0;

		while (same < length && key[same] == first[same])
			same++;
		length = same;
	}
	return length;
}

/*
 * Entries in record order whose keys agree so far.  Past what all of them have
 * in common the next key bytes become the entries' top bits, and they are
 * sorted again: each turn decides at least one more byte.
 */
static void settle_run(const struct ties *ties, uint64_t *entries, size_t count,
		       unsigned depth)
{
	uint64_t key_mask = UINT64_MAX << ties->index_bits;
	uint32_t skip;

	if (count <= INSERTION_MAX) {
		insertion(ties, entries, count);
		return;
	}
	if (depth == DEPTH_MAX) {
		heap_sort(ties, entries, count);
		return;
	}
	skip = common_prefix(ties, entries, count);
	if (skip == ties->shape->key_length)
		return;
	for (size_t i = 0; i < count; i++) {
		uint64_t word = record_key_word(
			ties->shape, record_of(ties, entries[i]), skip);

		entries[i] = (word & key_mask) | (entries[i] & ~key_mask);
	}
	ties->sort(entries, count);
	settle(ties, entries, count, depth + 1);
}

/*
 * Ask for the keys of the entries that tie with the one before, and for that
 * one's: from asked on, as far as limit.  Inlined by force: GCC takes a
 * function that only prefetches for one without effects and drops its call.
 */
static inline __attribute__((always_inline)) size_t ask(const struct ties *ties,
							const uint64_t *entries,
							size_t asked,
							size_t limit)
{
	uint32_t first_byte = ties->shape->key_offset;
	uint32_t last_byte = first_byte + ties->shape->key_length - 1;

	for (; asked < limit; asked++) {
		uint64_t before = entries[asked - 1];

		if ((entries[asked] ^ before) >> ties->index_bits != 0)
			continue;
		__builtin_prefetch(record_of(ties, before) + first_byte);
		__builtin_prefetch(record_of(ties, entries[asked]) +
				   first_byte);
		__builtin_prefetch(record_of(ties, entries[asked]) + last_byte);
	}
	return asked;
}

static void settle(const struct ties *ties, uint64_t *entries, size_t count,
		   unsigned depth)
{
	unsigned index_bits = ties->index_bits;
	size_t asked = 1;
	size_t i = 1;

	while (i < count) {
		size_t begin;

		asked = ask(ties, entries, asked, MIN(count, i + ASK_AHEAD));
		if ((entries[i] ^ entries[i - 1]) >> index_bits != 0) {
			i++;
			continue;
		}
		begin = i - 1;
		while (i < count &&
		       (entries[i] ^ entries[begin]) >> index_bits == 0)
			i++;
		settle_run(ties, entries + begin, i - begin, depth);
		i++;
	}
}

void ties_settle(const struct ties *ties, uint64_t *entries, size_t count)
{
	if (ties->any(entries, count, ties->index_bits))
		settle(ties, entries, count, 0);
}
