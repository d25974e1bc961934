/*
 * partition.h - put an entry for each record into the list of its bucket
 *
 * The pass over the input: reads each record's key where it lies, and stores 8
 * bytes for it.  The lists are thousands of places in memory, so places are
 * computed and prefetched (for writing) a batch of records ahead of the stores.
 */
#ifndef PARTITION_H
#define PARTITION_H

#include <stdbool.h>
#include <stdint.h>

#include "kernels/lookup.h"
#include "sort/buckets.h"

/*
 * Append entries for records[0 .. record_count), the first of which has number
 * first_slot.  index_bits: slots are below 2 to the index_bits; 1..63.
 * The records are looked up by the kernel of this level.
 */
void partition_records(struct bucket_writer *writer, enum cpu_level level,
		       const struct splitters *splitters,
		       const struct record_shape *shape, unsigned index_bits,
		       const uint8_t *records, uint64_t first_slot,
		       uint64_t record_count);

/*
 * Make the entries of records that lie in one bucket, because the rank that
 * sent them has looked them up: entries[0 .. record_count) in the records'
 * order.  False: a record does not lie there.
 */
bool partition_entries(const struct splitters *splitters,
		       const struct record_shape *shape, unsigned index_bits,
		       const uint8_t *records, uint64_t first_slot,
		       uint64_t record_count, uint32_t bucket,
		       uint64_t *entries);

#endif /* PARTITION_H */
