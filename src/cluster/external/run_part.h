/*
 * run_part.h - a rank's part of all ranks' runs, as an index
 *
 * Each rank tells each other one of the blocks of its runs that belong to the
 * other's part (run_cut.h), and of each run the block before these, if that may
 * hold records of the part: the border block.  From these messages a rank makes
 * an index of all ranks' runs, of which it has no block but those of its part.
 * There the number of a run is the place in the input that it has: when all
 * have been added, run_index_order() puts run r at place r.  So it plans its
 * merge as a rank alone does (merge_plan.h).
 *
 * A message has two words for each run of the sender: the number of blocks, and
 * 1 if they have CRCs.  Then come the blocks of all these runs, of each the
 * number of records, the stored bytes and their CRC-32C, a word each, and the
 * key of the first record.  Words have 32 bits, little endian.
 */
#ifndef RUN_PART_H
#define RUN_PART_H

#include <stdbool.h>

#include "external/runs/run_cut.h"
#include "external/runs/run_index.h"

#define RUN_PART_RUN_BYTES 8

/* How much of a message is for each block. */
static inline uint32_t
run_part_block_bytes(const struct record_shape *key_shape)
{
	return 12 + key_shape->size;
}

/* Find the blocks of our own run, whose number over all ranks is `number`, that
 * belong to the rank's part, the border block included; none if the rank gets
 * no part. */
void run_part_range(const struct run_cuts *cuts, unsigned rank,
		    const struct run_index *index, unsigned run,
		    uint32_t number, uint32_t *first, uint32_t *end);

/* What we tell that rank.  numbers[r] is that of our run r over all ranks.  The
 * caller frees *bytes.  0 or -errno with *failure filled. */
int run_part_write(const struct run_index *index, const struct run_cuts *cuts,
		   unsigned rank, const uint32_t *numbers, uint8_t **bytes,
		   uint64_t *byte_count, struct failure *failure);

/* What a rank has told us. */
struct run_part_message {
	const uint8_t *bytes;
	uint64_t byte_count;
	unsigned source;
	/* The rank's runs, as it has said before, and their numbers over all
	 * ranks. */
	uint32_t run_count;
	const uint32_t *numbers;
	uint64_t record_count;	/* of all its runs */
	uint32_t block_records; /* no block of it has more */
};

/* Add that rank's runs to the index of our part, which begins with `begin` and
 * ends with `end` (NULL: open).  0; -ENOMEM with *failure; or -EBADMSG: it
 * cannot be. */
int run_part_read(struct run_index *part,
		  const struct run_part_message *message,
		  const struct run_cut *begin, const struct run_cut *end,
		  struct failure *failure);

/* Add our own runs, which are in scratch files or in memory.  0 or -errno with
 * *failure filled. */
int run_part_add_own(struct run_index *part, const struct run_index *index,
		     const struct run_cuts *cuts, unsigned rank,
		     const uint32_t *numbers, struct failure *failure);

#endif /* RUN_PART_H */
