/*
 * buckets.h - growing lists of entries, thousands of them, in little memory
 *
 * Each worker has a writer with one list for each bucket.  A list is made of
 * blocks of 256 bytes, taken from a pool that all writers share.  So one pass
 * over the keys fills buckets of any sizes: there is no counting pass before
 * it, no bucket overflows, and hardly more memory is touched than the entries
 * need, which matters because a fresh page must be cleared: 8 bytes a record
 * and half a block for each list, where lists with room for the largest bucket
 * take twice that.
 *
 * While lists grow, all that is noted of a block is for which bucket it was
 * taken, in the order in which blocks are taken: one more word of a stream.
 * When a writer's lists are complete it sorts that log by bucket into a
 * directory, where each list's blocks stand side by side.  (If each block named
 * the next one, a reader of a list would wait for memory at each step, and a
 * writer would touch two more places to make the list grow: with 10 million
 * records 15 ms of 170.)
 *
 * An entry is the top bits of the key's prefix above the record's slot number;
 * a list keeps its entries in the order in which they came.
 */
#ifndef BUCKETS_H
#define BUCKETS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/base.h"

/* Four cache lines.  Twice and four times as long make no difference with 10
 * million records, but leave more of the last blocks empty. */
#define BUCKETS_BLOCK_ENTRIES 32
#define LINE_ENTRIES (CACHE_LINE_BYTES / sizeof(uint64_t))
/* Blocks a writer takes from the pool at once: 64 KiB, a few dozen times a
 * million records. */
#define BUCKETS_GRANT_BLOCKS 256

struct bucket_pool {
	uint64_t *entries;    /* block b is entries[32 b .. 32 b + 31] */
	uint32_t *owners;     /* [block] the bucket that it was taken for */
	uint32_t *directory;  /* [block_count] blocks, list after list */
	uint32_t *next_grant; /* [block_count / BUCKETS_GRANT_BLOCKS] of the
			       * same writer */
	uint32_t block_count;
	/* Any writer raises these. */
	_Alignas(CACHE_PAIR_BYTES) _Atomic uint32_t taken;
	_Atomic uint32_t listed; /* places of the directory that are taken */
};

/* Not touched while lists grow. */
struct bucket_list {
	uint32_t end; /* of its blocks in the directory, once it is made */
	uint32_t block_count;
};

/* Written by one thread, until it is finished.  It lies a pair of cache lines
 * apart from the next one in an array. */
struct bucket_writer {
	_Alignas(CACHE_PAIR_BYTES) struct bucket_pool *pool;
	/* [bucket]: the place of the list's next entry in the pool; at a
	 * block's border a block must be taken first.  Most entries need
	 * nothing else of the writer, so L1 holds as much of it as it can. */
	uint32_t *cursors;
	struct bucket_list *lists; /* [bucket] */
	uint32_t block;		   /* next of the latest grant */
	uint32_t block_end;
	uint32_t first_grant;
	uint32_t grant_count;
};

/* Blocks that suffice for any distribution of record_count entries. */
static inline uint64_t buckets_blocks_needed(uint64_t record_count,
					     uint32_t bucket_count,
					     unsigned writer_count)
{
	return record_count / BUCKETS_BLOCK_ENTRIES +
	       (uint64_t)writer_count * (bucket_count + BUCKETS_GRANT_BLOCKS);
}

/* All blocks are free, as before the records are partitioned once more.  The
 * pool and all its writers are reset together. */
static inline void bucket_pool_reset(struct bucket_pool *pool)
{
	atomic_store_explicit(&pool->taken, 0, memory_order_relaxed);
	atomic_store_explicit(&pool->listed, 0, memory_order_relaxed);
}

/* Make all lists empty. */
void bucket_writer_reset(struct bucket_writer *writer, uint32_t bucket_count);

/* Give the bucket's list one more block. */
void bucket_writer_grow(struct bucket_writer *writer, uint32_t bucket);

/* The lists are complete: make their directory, once. */
void bucket_writer_finish(struct bucket_writer *writer, uint32_t bucket_count);

/* True: its block has no room, or there is none yet. */
static inline bool bucket_cursor_is_full(uint32_t cursor)
{
	return cursor % BUCKETS_BLOCK_ENTRIES == 0;
}

/* Entries of the bucket's list.  This and all below: of a finished writer. */
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

/* The blocks of the bucket's list, in order. */
static inline const uint32_t *
bucket_writer_blocks(const struct bucket_writer *writer, uint32_t bucket)
{
	const struct bucket_list *list = &writer->lists[bucket];

	return writer->pool->directory + list->end - list->block_count;
}

/* Prefetch the list's entries to L2: a copy that follows at once would wait for
 * each block. */
void bucket_writer_prefetch(const struct bucket_writer *writer,
			    uint32_t bucket);

/* Copy the bucket's list to target; returns its count.  The second copies whole
 * lines, so up to LINE_ENTRIES - 1 entries behind are overwritten: faster. */
uint32_t bucket_writer_copy(const struct bucket_writer *writer, uint32_t bucket,
			    uint64_t *target);
uint32_t bucket_writer_copy_lines(const struct bucket_writer *writer,
				  uint32_t bucket, uint64_t *target);

#endif /* BUCKETS_H */
