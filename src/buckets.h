/*
 * buckets.h - growing lists of entries, thousands of them, in little memory
 *
 * Each member of the team has a writer with one list for each bucket.  A list
 * is a chain of blocks of 256 bytes, taken from a pool that all share.  So one
 * pass over the keys fills buckets of any sizes: no counting pass before it, no
 * bucket that overflows, and hardly more memory touched than the entries need,
 * which matters because a fresh page must be cleared: 8 bytes a record and half
 * a block for each list, where lists with room for the unlucky take twice that.
 *
 * An entry is the top bits of the key's window above the record's slot number;
 * a list keeps its entries in the order in which they came.
 */
#ifndef BUCKETS_H
#define BUCKETS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base.h"

/* Four cache lines.  Half as long, whoever follows a chain waits for memory
 * twice as often: 2 % of a million records' sort. */
#define BUCKETS_BLOCK_ENTRIES 32
/* Blocks a writer takes from the pool at once: 64 KiB, a few dozen times a
 * million records. */
#define BUCKETS_GRANT_BLOCKS 256

struct bucket_pool {
	uint64_t *entries; /* block b is entries[32 b .. 32 b + 31] */
	uint32_t *next;	   /* of each block that is full and not the last */
	uint32_t block_count;
	_Alignas(CACHE_PAIR_BYTES) _Atomic uint32_t taken;
};

/* Touched for each block, not for each entry. */
struct bucket_list {
	uint32_t head; /* first block, if there is one */
	uint32_t block_count;
};

struct bucket_writer {
	struct bucket_pool *pool;
	/* [bucket] of the next entry in the pool; at a block's border: a block
	 * must be taken first.  All that the way of most entries reads or
	 * writes, so that L1 holds what it can of it. */
	uint32_t *cursors;
	struct bucket_list *lists; /* [bucket] */
	uint32_t block;		   /* next of the grant */
	uint32_t block_end;
};

/* Blocks that suffice for any distribution of record_count entries. */
static inline uint64_t buckets_blocks_needed(uint64_t record_count,
					     uint32_t bucket_count,
					     unsigned writer_count)
{
	return record_count / BUCKETS_BLOCK_ENTRIES +
	       (uint64_t)writer_count * (bucket_count + BUCKETS_GRANT_BLOCKS);
}

/* Make all lists empty.  Forgets the grant: reset the pool's taken as well. */
void bucket_writer_reset(struct bucket_writer *writer, uint32_t bucket_count);

/* Chain one more block to the bucket's list. */
void bucket_writer_grow(struct bucket_writer *writer, uint32_t bucket);

/* True: its block has no room, or there is none yet. */
static inline bool bucket_cursor_is_full(uint32_t cursor)
{
	return cursor % BUCKETS_BLOCK_ENTRIES == 0;
}

/* Where the bucket's next entry is to be stored, which counts as stored. */
static inline uint64_t *bucket_writer_place(struct bucket_writer *writer,
					    uint32_t bucket)
{
	uint32_t *cursor = &writer->cursors[bucket];

	if (bucket_cursor_is_full(*cursor))
		bucket_writer_grow(writer, bucket);
	return &writer->pool->entries[(*cursor)++];
}

/* Entries of the bucket's list. */
static inline uint32_t bucket_writer_count(const struct bucket_writer *writer,
					   uint32_t bucket)
{
	uint32_t in_last =
		(writer->cursors[bucket] - 1) % BUCKETS_BLOCK_ENTRIES + 1;

	/* A list without a block is reckoned to end with one as full. */
	return writer->lists[bucket].block_count * BUCKETS_BLOCK_ENTRIES -
	       (BUCKETS_BLOCK_ENTRIES - in_last);
}

static inline const uint64_t *bucket_block(const struct bucket_pool *pool,
					   uint32_t block)
{
	return pool->entries + (size_t)block * BUCKETS_BLOCK_ENTRIES;
}

/* The list's blocks in order into blocks[]; returns how many it has. */
static inline uint32_t bucket_writer_blocks(const struct bucket_writer *writer,
					    uint32_t bucket, uint32_t *blocks)
{
	const struct bucket_list *list = &writer->lists[bucket];
	uint32_t block_count = list->block_count;
	uint32_t block;

	if (block_count == 0)
		return 0;
	block = list->head;
	blocks[0] = block;
	for (uint32_t i = 1; i < block_count; i++) {
		block = writer->pool->next[block];
		blocks[i] = block;
	}
	return block_count;
}

/* Copy the bucket's list to target; returns its count. */
uint32_t bucket_writer_copy(const struct bucket_writer *writer, uint32_t bucket,
			    uint64_t *target);

#endif /* BUCKETS_H */
