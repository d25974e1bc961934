/*
 * plan.h - every size of a run, decided before it starts
 *
 * From the numbers of records, threads and slots: how many buckets, how large
 * the chunks, and how much memory all of it takes.  Pure arithmetic: what does
 * not fit is refused before anything is written.
 */
#ifndef PLAN_H
#define PLAN_H

#include <stddef.h>
#include <stdint.h>

#include "record/record.h"

/* Entries are found by 32-bit places in the pool. */
#define PLAN_RECORDS_MAX ((uint64_t)3 << 30)

/* A bucket of more entries is oversized: it is sorted by itself, before the
 * chunks. */
#define PLAN_OVERSIZED_ENTRIES 8192

/* Splitters have failed when more than this part of a sort, or of a batch, lies
 * in buckets that are oversized.  A single worker sorts such a bucket: if it is
 * an eighth of the whole, eight workers still end at about the same time. */
#define PLAN_CROWDED_PART 8

struct plan_request {
	struct record_shape shape;
	uint64_t record_count;
	uint64_t slot_count;	     /* of the input: see input.h */
	uint64_t input_memory_bytes; /* of the input, beyond mapped files */
	unsigned worker_count;
	unsigned staging_slots;
	/* The records are counted (record_counts.h), and have no entries. */
	bool is_counted;
	size_t chunk_bytes_max; /* a power of two */
	/* 0: as many buckets as suit record_count.  Else the records are a part
	 * of something larger, which has so many buckets. */
	uint32_t bucket_count;
};

struct plan {
	unsigned index_bits;	   /* slots are below 2 to this */
	uint32_t bucket_count;	   /* with static splitters */
	uint32_t splitters_wanted; /* with sampled splitters */
	uint32_t list_count;	   /* buckets at most, either way */
	uint32_t sample_count;
	uint32_t block_count;	/* of the pool */
	uint64_t piece_records; /* of mapped input, taken at once */
	unsigned staging_slots; /* of output */
	size_t chunk_bytes;	/* of such a slot */
	size_t chunk_entries;	/* what a chunk's buckets can hold at most */
	/* All that may be touched, input memory included.  Uniform keys touch
	 * less: no sample and, unless duplicates are dropped, no oversized
	 * buckets. */
	uint64_t memory_bytes;
	uint64_t arena_bytes; /* of these, without input memory */
};

/* How many static buckets and sampled splitters suit record_count records, each
 * at least 1, and how many samples those splitters want. */
uint32_t plan_buckets(uint64_t record_count);
uint32_t plan_splitters(uint64_t record_count);
uint32_t plan_samples(uint64_t record_count, uint32_t splitters);

/* Returns 0, or -EOVERFLOW: more than PLAN_RECORDS_MAX records or slots. */
int plan_make(struct plan *plan, const struct plan_request *request);

/* Entries that a chunk's buckets can hold at most. */
size_t plan_chunk_entries(size_t chunk_bytes, uint32_t record_size);

/* The fewest bits that hold every slot below slot_count; at least 1. */
unsigned plan_index_bits(uint64_t slot_count);

/* How many workers pay for their start on size_bytes of data, which go to a
 * tmpfs or not: 1 to allowed. */
unsigned plan_workers(uint64_t size_bytes, bool is_to_tmpfs, unsigned allowed);

#endif /* PLAN_H */
