#include "external/run_numbers.h"

#include <errno.h>
#include <stdlib.h>

#include "base/base.h"
#include "base/failure.h"

struct span {
	uint64_t begin, count;
	unsigned rank;
	uint32_t place; /* of the run, counted over all ranks */
};

uint8_t *run_numbers_write(const struct run_index *index, uint8_t *bytes)
{
	for (unsigned r = 0; r < index->run_count; r++) {
		store_le64(bytes, index->runs[r].input_record);
		store_le64(bytes + 8, index->runs[r].input_count);
		bytes += RUN_NUMBERS_RUN_BYTES;
	}
	return bytes;
}

/* The spans ascend, and have as many records as they must, or as they may.
 * False: they cannot be. */
static bool read_spans(struct span *spans, const struct run_spans *told,
		       unsigned rank, uint32_t place, bool drops)
{
	uint64_t left = told->input_count, had;

	for (uint32_t r = 0; r < told->run_count; r++) {
		const uint8_t *bytes =
			told->bytes + (size_t)r * RUN_NUMBERS_RUN_BYTES;

		spans[r] = (struct span){
			.begin = load_le64(bytes),
			.count = load_le64(bytes + 8),
			.rank = rank,
			.place = place + r,
		};
		if (spans[r].count > left ||
		    spans[r].begin < told->input_begin ||
		    spans[r].begin - told->input_begin >
			    told->input_count - spans[r].count ||
		    (r > 0 && spans[r].begin <= spans[r - 1].begin))
			return false;
		left -= spans[r].count;
	}
	had = told->input_count - left;
	return (left == 0 || told->may_be_any) && told->record_count <= had &&
	       (drops || told->record_count == had);
}

static int compare_spans(const void *a, const void *b)
{
	const struct span *first = a, *second = b;

	if (first->begin != second->begin)
		return first->begin < second->begin ? -1 : 1;
	return (first->rank > second->rank) - (first->rank < second->rank);
}

/* Each span begins where the one before ends, and the last one ends where the
 * input does. */
static bool number_spans(uint32_t *numbers, struct span *spans, uint32_t count,
			 uint64_t whole_count, unsigned *bad)
{
	uint64_t end = 0;

	qsort(spans, count, sizeof(*spans), compare_spans);
	for (uint32_t i = 0; i < count; i++) {
		*bad = spans[i].rank;
		if (spans[i].begin != end || spans[i].count > whole_count - end)
			return false;
		end += spans[i].count;
		numbers[spans[i].place] = i;
	}
	return end == whole_count;
}

int run_numbers_make(uint32_t **numbers, const struct run_spans *told,
		     unsigned rank_count, uint64_t whole_count, bool drops,
		     unsigned *bad, struct failure *failure)
{
	struct span *spans;
	uint32_t count = 0;
	bool is_good = true;

	for (unsigned i = 0; i < rank_count; i++)
		count += told[i].run_count;
	*numbers = malloc(((size_t)count + 1) * sizeof(**numbers));
	spans = malloc(((size_t)count + 1) * sizeof(*spans));
	if (!*numbers || !spans) {
		free(spans);
		return failure_no_memory(failure);
	}
	count = 0;
	for (unsigned i = 0; i < rank_count && is_good; i++) {
		*bad = i;
		is_good = read_spans(spans + count, &told[i], i, count, drops);
		count += told[i].run_count;
	}
	is_good = is_good &&
		  number_spans(*numbers, spans, count, whole_count, bad);
	free(spans);
	return is_good ? 0 : -EBADMSG;
}
