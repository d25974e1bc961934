/*
 * sorter.h - one machine's sort: files in, sorted files out
 *
 * Read and bucket: each worker of the thread pool runs over its share of the
 * input and puts 8 bytes for each record into the list of its bucket
 * (bucketing.h).  Order and write: the workers take chunks of the output in
 * turn, sort the chunk's buckets, gather the records into a staging slot, and
 * hand it to the output (orderer.h).
 */
#ifndef SORTER_H
#define SORTER_H

#include "base/failure.h"
#include "sort/sort_config.h"

/*
 * A sort is opened, run if that is wanted, and then closed or left.  Several
 * threads may have one each at the same time.  Functions that fail fill
 * *failure; then no output exists.
 */
struct sorter;

/* Open the inputs and outputs, plan, and map the memory.  Fewer threads are
 * taken where all would need too much memory, unless their number is given.
 * The result is filled from now on, and must stay, as must what the config
 * points to.  Its place says whether this sorter can sort, or is to be closed
 * since the sort goes beyond memory.  Returns NULL if it fails; nothing is left
 * then. */
struct sorter *sorter_open(const struct sorter_config *config,
			   struct sorter_result *result,
			   struct failure *failure);

/* Read, sort and write; the outputs get their names.  Returns 0 or -errno. */
int sorter_sort(struct sorter *sorter, struct failure *failure);

/* Give everything back.  Outputs that have no names yet are gone. */
void sorter_close(struct sorter *sorter);

/* The same, for a process that ends now: mappings and inputs are left to its
 * end, which saves 0.2 to 3 ms. */
void sorter_leave(struct sorter *sorter);

#endif /* SORTER_H */
