/*
 * run_numbers.c - the order of all ranks' runs, by the parts of the input
 * that they have
 */
#include "cluster/external/run_numbers.h"

#include <errno.h>
#include <stdlib.h>

#include "base/base.h"
#include "base/failure.h"

struct span {
	uint64_t begin, count;
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

/* The spans are the parts, from the first record to the last.  False: they are
 * not. */
static bool read_spans(struct span *spans, const struct run_spans *told,
		       uint32_t place, bool drops)
{
	const struct input_range *part = told->parts;
	const struct input_range *end = part + told->part_count;
	uint64_t done = 0, sum = 0; /* records: of the part, of all spans */

	for (uint32_t r = 0; r < told->run_count; r++) {
		const uint8_t *bytes =
			told->bytes + (size_t)r * RUN_NUMBERS_RUN_BYTES;
		uint64_t begin = load_le64(bytes), count = load_le64(bytes + 8);

		if (part == end || begin != part->first_record + done ||
		    count == 0 || count > part->record_count - done)
			return false;
		spans[r] = (struct span){ begin, count, place + r };
		sum += count;
		done += count;
		if (done == part->record_count) {
			part++;
			done = 0;
		}
	}
	return part == end && told->record_count <= sum &&
	       (drops || told->record_count == sum);
}

static int compare_spans(const void *a, const void *b)
{
	const struct span *first = a, *second = b;

	return (first->begin > second->begin) - (first->begin < second->begin);
}

int run_numbers_make(uint32_t **numbers, struct run_spans *told,
		     unsigned rank_count, bool drops, unsigned *bad,
		     struct failure *failure)
{
	struct span *spans;
	uint32_t count = 0;

	for (unsigned i = 0; i < rank_count; i++)
		count += told[i].run_count;
	*numbers = malloc(((size_t)count + 1) * sizeof(**numbers));
	spans = malloc(((size_t)count + 1) * sizeof(*spans));
	if (!*numbers || !spans) {
		free(spans);
		return failure_no_memory(failure);
	}
	count = 0;
	for (unsigned i = 0; i < rank_count; i++) {
		/* Those that touch are one: a run may have been merged of runs
		 * of both. */
		told[i].part_count =
			input_range_order(told[i].parts, told[i].part_count);
		*bad = i;
		if (!read_spans(spans + count, &told[i], count, drops)) {
			free(spans);
			return -EBADMSG;
		}
		count += told[i].run_count;
	}
	qsort(spans, count, sizeof(*spans), compare_spans);
	for (uint32_t i = 0; i < count; i++)
		(*numbers)[spans[i].place] = i;
	free(spans);
	return 0;
}
