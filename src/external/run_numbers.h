/*
 * run_numbers.h - the order of all ranks' runs, by the parts of the input that
 * they have
 *
 * The inputs of all ranks, one after the other, are the whole input.  Each run
 * has a part of it, its span: the number of its first record and how many there
 * were, before duplicates were dropped.  Spans do not overlap, and all of them
 * together are the whole input; so the order of the runs is that of the input,
 * and records with equal keys keep theirs.
 *
 * A rank tells the span of each of its runs, in their order: two words of 64
 * bits, little endian.
 */
#ifndef RUN_NUMBERS_H
#define RUN_NUMBERS_H

#include "external/run_index.h"

#define RUN_NUMBERS_RUN_BYTES 16

/* What a rank has told of its runs. */
struct run_spans {
	const uint8_t *bytes; /* of run_count spans */
	uint32_t run_count;
	uint64_t record_count; /* of all its runs */
	/* Its runs must have this part of the whole; or, if they may have any
	 * records, none of others than these. */
	uint64_t input_begin, input_count;
	bool may_be_any;
};

/* Write our spans, RUN_NUMBERS_RUN_BYTES for each run: in the index, records
 * are numbered in the whole input.  Returns the end. */
uint8_t *run_numbers_write(const struct run_index *index, uint8_t *bytes);

/*
 * Number the runs of all ranks, of which there are less than 2^32: the caller
 * bounds what each rank says; the input has whole_count records.  *numbers has
 * the numbers of rank 0's runs first, then those of rank 1's; the caller frees
 * it, also after a failure.  drops: duplicates have been dropped.  0; -ENOMEM
 * with *failure filled; or -EBADMSG: the spans of rank *bad are not its part of
 * the input, or, if they may be any, do not go with those of other ranks.
 */
int run_numbers_make(uint32_t **numbers, const struct run_spans *told,
		     unsigned rank_count, uint64_t whole_count, bool drops,
		     unsigned *bad, struct failure *failure);

#endif /* RUN_NUMBERS_H */
