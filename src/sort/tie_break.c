/*
 * tie_break.c - sorts entries that tie by more of their keys, or drops them
 */
#include "sort/tie_break.h"

/* Up to this count, comparing keys in place beats reading them out and sorting.
 */
#define INSERTION_MAX 8
/* How many entries ahead the keys are prefetched before they are compared. */
#define PREFETCH_AHEAD 48
/* Rounds of 5 or more key bytes each.  Only keys made to be alike need more,
 * and they must not use up the stack. */
#define DEPTH_MAX 32

/* Stable: an entry moves only past keys that are greater. */
static void insertion(const struct tie_break *tie_break, uint64_t *entries,
		      size_t count)
{
	for (size_t i = 1; i < count; i++) {
		uint64_t moving = entries[i];
		const uint8_t *record = tie_break_record(tie_break, moving);
		size_t j = i;

		for (; j > 0; j--) {
			if (record_compare(
				    tie_break->shape,
				    tie_break_record(tie_break, entries[j - 1]),
				    record) <= 0)
				break;
			entries[j] = entries[j - 1];
		}
		entries[j] = moving;
	}
}

/* The order by key, then by record, is total, so that any sort is stable. */
static bool before(const struct tie_break *tie_break, uint64_t a, uint64_t b)
{
	int order =
		record_compare(tie_break->shape, tie_break_record(tie_break, a),
			       tie_break_record(tie_break, b));
	uint64_t index_mask = ~(UINT64_MAX << tie_break->index_bits);

	return order != 0 ? order < 0 : (a & index_mask) < (b & index_mask);
}

static void sift_down(const struct tie_break *tie_break, uint64_t *entries,
		      size_t count, size_t parent)
{
	uint64_t moving = entries[parent];

	for (;;) {
		size_t child = 2 * parent + 1;

		if (child >= count)
			break;
		if (child + 1 < count &&
		    before(tie_break, entries[child], entries[child + 1]))
			child++;
		if (!before(tie_break, moving, entries[child]))
			break;
		entries[parent] = entries[child];
		parent = child;
	}
	entries[parent] = moving;
}

static void heap_sort(const struct tie_break *tie_break, uint64_t *entries,
		      size_t count)
{
	for (size_t i = count / 2; i-- > 0;)
		sift_down(tie_break, entries, count, i);
	for (size_t i = count; i-- > 1;) {
		uint64_t last = entries[i];

		entries[i] = entries[0];
		entries[0] = last;
		sift_down(tie_break, entries, i, 0);
	}
}

static void settle(const struct tie_break *tie_break, uint64_t *entries,
		   size_t count, unsigned depth);

static uint32_t common_prefix(const struct tie_break *tie_break,
			      const uint64_t *entries, size_t count)
{
	const struct record_shape *shape = tie_break->shape;
	const uint8_t *first = tie_break_record(tie_break, entries[0]);
	uint32_t length = shape->keys.length;

	for (size_t i = 1; i < count && length > 0; i++)
		length = record_common_bytes(
			shape, first, tie_break_record(tie_break, entries[i]),
			length);
	return length;
}

/*
 * Entries in record order whose keys agree so far.  Past what all of them have
 * in common the next key bytes become the entries' top bits, and they are
 * sorted again: each turn decides at least one more byte.
 */
static void settle_run(const struct tie_break *tie_break, uint64_t *entries,
		       size_t count, unsigned depth)
{
	uint64_t key_mask = UINT64_MAX << tie_break->index_bits;
	uint32_t skip;

	if (count <= INSERTION_MAX) {
		insertion(tie_break, entries, count);
		return;
	}
	if (depth == DEPTH_MAX) {
		heap_sort(tie_break, entries, count);
		return;
	}
	skip = common_prefix(tie_break, entries, count);
	if (skip == tie_break->shape->keys.length)
		return;
	for (size_t i = 0; i < count; i++) {
		uint64_t word = record_key_word(
			tie_break->shape,
			tie_break_record(tie_break, entries[i]), skip);

		entries[i] = (word & key_mask) | (entries[i] & ~key_mask);
	}
	tie_break->sort(entries, count);
	settle(tie_break, entries, count, depth + 1);
}

/*
 * Prefetch the keys of the entries that tie with the entry before, and that
 * entry's key: from prefetched on, as far as limit.  Inlined by force: GCC
 * takes a function that only prefetches for one without effects and drops its
 * call.
 */
static inline __attribute__((always_inline)) size_t
prefetch_keys(const struct tie_break *tie_break, const uint64_t *entries,
	      size_t prefetched, size_t limit)
{
	uint32_t first_byte = tie_break->shape->keys.begin;
	uint32_t last_byte = tie_break->shape->keys.end - 1;

	for (; prefetched < limit; prefetched++) {
		uint64_t before = entries[prefetched - 1];

		if ((entries[prefetched] ^ before) >> tie_break->index_bits !=
		    0)
			continue;
		__builtin_prefetch(tie_break_record(tie_break, before) +
				   first_byte);
		__builtin_prefetch(
			tie_break_record(tie_break, entries[prefetched]) +
			first_byte);
		__builtin_prefetch(
			tie_break_record(tie_break, entries[prefetched]) +
			last_byte);
	}
	return prefetched;
}

static void settle(const struct tie_break *tie_break, uint64_t *entries,
		   size_t count, unsigned depth)
{
	unsigned index_bits = tie_break->index_bits;
	size_t prefetched = 1;
	size_t i = 1;

	while (i < count) {
		size_t begin;

		prefetched = prefetch_keys(tie_break, entries, prefetched,
					   MIN(count, i + PREFETCH_AHEAD));
		if ((entries[i] ^ entries[i - 1]) >> index_bits != 0) {
			i++;
			continue;
		}
		begin = i - 1;
		while (i < count &&
		       (entries[i] ^ entries[begin]) >> index_bits == 0)
			i++;
		settle_run(tie_break, entries + begin, i - begin, depth);
		i++;
	}
}

void tie_break_settle(const struct tie_break *tie_break, uint64_t *entries,
		      size_t count)
{
	if (tie_break->any(entries, count, tie_break->index_bits))
		settle(tie_break, entries, count, 0);
}

/* --- duplicates ----------------------------------------------------------- */

static bool keys_are_equal(const struct tie_break *tie_break, uint64_t a,
			   uint64_t b)
{
	return record_compare(tie_break->shape, tie_break_record(tie_break, a),
			      tie_break_record(tie_break, b)) == 0;
}

/* Entries that agree in their key bits, in the order of their records: the
 * first or the last of each key goes to kept[], which may begin before them.
 * Returns how many. */
static size_t keep_of_run(const struct tie_break *tie_break, uint64_t *entries,
			  size_t count, bool is_decided, uint64_t *kept)
{
	size_t kept_count = 1;

	if (count > 1 && !is_decided)
		tie_break_settle(tie_break, entries, count);
	kept[0] = entries[is_decided && tie_break->keeps_last ? count - 1 : 0];
	for (size_t i = 1; i < count && !is_decided; i++)
		if (!keys_are_equal(tie_break, kept[kept_count - 1],
				    entries[i]))
			kept[kept_count++] = entries[i];
		else if (tie_break->keeps_last)
			kept[kept_count - 1] = entries[i];
	return kept_count;
}

size_t tie_break_drop_duplicates(const struct tie_break *tie_break,
				 uint64_t *entries, size_t count,
				 bool is_decided)
{
	size_t kept_count = 0, end;

	for (size_t i = 0; i < count; i = end) {
		end = i + 1;
		while (end < count &&
		       (entries[end] ^ entries[i]) >> tie_break->index_bits ==
			       0)
			end++;
		kept_count += keep_of_run(tie_break, entries + i, end - i,
					  is_decided, entries + kept_count);
	}
	return kept_count;
}
