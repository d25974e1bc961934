/*
 * batch.h - an area of the memory, with the records that are sorted in it
 *
 * An external sort divides its memory into batches.  A batch is filled with
 * records from a source, whose entries are put into buckets on the way; then
 * the orderer brings its records to a sink in order, or it is sorted in place
 * and stays, as a resident run.
 */
#ifndef BATCH_H
#define BATCH_H

#include "sort/bucketing.h"
#include "sort/orderer.h"

struct batch {
	struct arena memory; /* its own area of the sort's */
	struct plan plan;    /* of its tables, for `capacity` records */
	uint64_t capacity;   /* records that it has memory for */
	uint8_t *records;    /* slot 0 */
	/* [record_count], of a batch that is sorted in place: all entries in
	 * order.  See batch_keep_order(). */
	uint64_t *sorted;
	uint8_t *common_key;   /* for the splitters: see batch_adopt_key() */
	uint64_t first_record; /* its number in the input, in the first pass */
	uint64_t input_count;  /* records of the input that it was read from */
	uint64_t record_count; /* that have entries */
	struct splitters splitters;
	struct bucketing bucketing;
	struct batch *next; /* in a queue of pipeline.h */
};

/* What a batch is made for. */
struct batch_request {
	struct record_shape shape;
	unsigned worker_count;
	uint64_t capacity;
};

/* The plan of its tables; bytes of memory that such a batch takes, at most; and
 * the largest capacity that so many bytes suffice for, or 0. */
struct plan batch_plan(const struct batch_request *request);
uint64_t batch_bytes(const struct batch_request *request);
uint64_t batch_capacity(const struct batch_request *request, uint64_t bytes);

/* Lay out a batch in batch->memory, which the caller has set.  The batch is a
 * zeroed one, or one that is not used any more. */
void batch_lay_out(struct batch *batch, const struct batch_request *request);

/* The same for a batch whose records are counted: nothing but these is in it.
 */
void batch_lay_out_bare(struct batch *batch, uint64_t capacity);

/* The reading team begins to fill the batch.  wiring says all but the
 * splitters, which are the batch's own. */
void batch_begin(struct batch *batch, const struct sort_wiring *wiring,
		 const struct bucketing_config *config);

/* The reading team has filled the batch: count the records that have entries,
 * and those in buckets that are crowded though their keys differ. */
uint64_t batch_count_crowded(struct batch *batch);

/* The batch is sorted in place, and nothing is put into buckets any more: its
 * buckets' memory takes the sorted entries, record_count of them. */
void batch_keep_order(struct batch *batch, const uint64_t *entries);

/* Of a batch that is sorted in place, move the records that have entries to the
 * first slots, one behind the other as they lay before: only these are left,
 * and they have no order any more. */
void batch_compact(struct batch *batch, uint32_t record_size,
		   local_sort_fn *sort);

/* The bits of a sorted entry that are its record's slot. */
static inline uint64_t batch_slot_mask(const struct batch *batch)
{
	return ~(UINT64_MAX << batch->plan.index_bits);
}

/* The slot of record number `record`, of a batch that is sorted in place. */
static inline uint64_t batch_slot(const struct batch *batch, uint64_t record)
{
	return batch->sorted[record] & batch_slot_mask(batch);
}

/* Copy `count` records of a batch that is sorted in place, from record number
 * `first` on. */
static inline void batch_gather(const struct batch *batch, gather_fn *gather,
				uint32_t record_size, uint32_t first,
				uint32_t count, uint8_t *target)
{
	gather(target, batch->records, record_size, batch->sorted + first,
	       count, batch_slot_mask(batch));
}

/* The splitters were made from a sample: keep the key that all sampled keys
 * begin with, since the sample's records go.  common_key has room for the bytes
 * from the first key to the last. */
void batch_adopt_key(struct splitters *splitters, uint8_t *common_key,
		     const struct record_shape *key_shape);

/* Copy a batch's splitters, which will be overwritten, or such a copy to a
 * batch, with the key. */
void batch_copy_splitters(struct splitters *splitters, uint8_t *common_key,
			  const struct splitters *from);

#endif /* BATCH_H */
