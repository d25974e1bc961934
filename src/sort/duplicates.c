#include "sort/duplicates.h"

static bool keys_are_equal(const struct tie_break *tie_break, uint64_t a,
			   uint64_t b)
{
	return record_compare(tie_break->shape, tie_break_record(tie_break, a),
			      tie_break_record(tie_break, b)) == 0;
}

/* Entries that agree in their key bits, in the order of their records: the
 * first of each key goes to kept[], which may begin before them.  Returns how
 * many. */
static size_t keep_of_run(const struct tie_break *tie_break, uint64_t *entries,
			  size_t count, bool is_decided, uint64_t *kept)
{
	size_t kept_count = 1;

	if (count > 1 && !is_decided)
		tie_break_settle(tie_break, entries, count);
	kept[0] = entries[0];
	for (size_t i = 1; i < count && !is_decided; i++)
		if (!keys_are_equal(tie_break, kept[kept_count - 1],
				    entries[i]))
			kept[kept_count++] = entries[i];
	return kept_count;
}

size_t duplicates_drop(const struct tie_break *tie_break, uint64_t *entries,
		       size_t count, bool is_decided)
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
