/*
 * run_numbers.h - the order of all ranks' runs, by the parts of the input that
 * they have
 *
 * The inputs of all ranks, one after the other, are the whole input.  Each run
 * has a part of it, its span: the number of its first record and how many there
 * were, before duplicates were dropped.  All ranks know which parts of the
 * whole the runs of each of them must have together: its own input; what it
 * keeps for others; what it was given of an input that all share.  So spans do
 * not overlap, and the order of the runs is that of the input, in which records
 * with equal keys keep theirs.
 *
 * A rank tells the span of each of its runs, in their order: two words of 64
 * bits, little endian.
 */
#ifndef RUN_NUMBERS_H
#define RUN_NUMBERS_H

#include "external/runs/input_range.h"
#include "external/runs/run_index.h"

#define RUN_NUMBERS_RUN_BYTES 16
/* How many parts of the whole a rank's runs may have to make up. */
#define RUN_NUMBERS_PARTS_MAX 128

/* What a rank has told of its runs. */
struct run_spans {
	const uint8_t *bytes; /* of run_count spans */
	uint32_t run_count;
	uint64_t record_count; /* of all its runs */
	/* What the runs must have of the whole, and nothing else, in any order.
	 * Those of all ranks are the whole. */
	unsigned part_count;
	struct input_range parts[RUN_NUMBERS_PARTS_MAX];
};

/* Write our spans, RUN_NUMBERS_RUN_BYTES for each run: in the index, records
 * are numbered in the whole input.  Returns the end. */
uint8_t *run_numbers_write(const struct run_index *index, uint8_t *bytes);

/*
 * Number the runs of all ranks, of which there are fewer than 2^32: the caller
 * bounds what each rank says.  The parts are put in order.  *numbers has the
 * numbers of rank 0's runs first, then those of rank 1's; the caller frees it,
 * also after a failure.  drops: duplicates have been dropped.  0; -ENOMEM with
 * *failure filled; or -EBADMSG: the spans of rank *bad are not its parts of the
 * input.
 */
int run_numbers_make(uint32_t **numbers, struct run_spans *told,
		     unsigned rank_count, bool drops, unsigned *bad,
		     struct failure *failure);

#endif /* RUN_NUMBERS_H */
