/* buckets.c - grows lists of blocks, and sorts the log of their blocks */
#include "sort/buckets.h"

#include <assert.h>

void bucket_writer_reset(struct bucket_writer *writer, uint32_t bucket_count)
{
	memset(writer->cursors, 0, bucket_count * sizeof(*writer->cursors));
	memset(writer->lists, 0, bucket_count * sizeof(*writer->lists));
	writer->block = 0;
	writer->block_end = 0;
	writer->grant_count = 0;
}

static void take_grant(struct bucket_writer *writer)
{
	struct bucket_pool *pool = writer->pool;
	uint32_t before = writer->block_end / BUCKETS_GRANT_BLOCKS - 1;
	uint32_t grant;

	writer->block = atomic_fetch_add_explicit(
		&pool->taken, BUCKETS_GRANT_BLOCKS, memory_order_relaxed);
	writer->block_end = writer->block + BUCKETS_GRANT_BLOCKS;
	assert(writer->block_end <= pool->block_count);
	grant = writer->block / BUCKETS_GRANT_BLOCKS;
	if (writer->grant_count++ == 0)
		writer->first_grant = grant;
	else
		pool->next_grant[before] = grant;
}

void bucket_writer_grow(struct bucket_writer *writer, uint32_t bucket)
{
	uint32_t block;

	if (writer->block == writer->block_end)
		take_grant(writer);
	block = writer->block++;
	writer->pool->owners[block] = bucket;
	writer->cursors[bucket] = block * BUCKETS_BLOCK_ENTRIES;
}

/* Over a writer's blocks in the order in which they were taken. */
struct log_walk {
	uint32_t grant; /* the next one */
	uint32_t left;	/* blocks, from there on */
};

/* The next grant's blocks: [*block, *end).  False: there is none. */
static bool walk_log(const struct bucket_writer *writer, struct log_walk *walk,
		     uint32_t *block, uint32_t *end)
{
	if (walk->left == 0)
		return false;
	*block = walk->grant * BUCKETS_GRANT_BLOCKS;
	*end = *block + MIN(walk->left, BUCKETS_GRANT_BLOCKS);
	walk->left -= *end - *block;
	if (walk->left > 0)
		walk->grant = writer->pool->next_grant[walk->grant];
	return true;
}

void bucket_writer_finish(struct bucket_writer *writer, uint32_t bucket_count)
{
	struct bucket_pool *pool = writer->pool;
	struct bucket_list *lists = writer->lists;
	struct log_walk counting = { .grant = writer->first_grant };
	struct log_walk placing;
	uint32_t block, end;

	if (writer->grant_count > 0)
		counting.left = writer->grant_count * BUCKETS_GRANT_BLOCKS -
				(writer->block_end - writer->block);
	placing = counting;
	while (walk_log(writer, &counting, &block, &end))
		for (; block < end; block++)
			lists[pool->owners[block]].block_count++;
	end = atomic_fetch_add_explicit(&pool->listed, placing.left,
					memory_order_relaxed);
	for (uint32_t b = 0; b < bucket_count; b++) {
		lists[b].end = end;
		end += lists[b].block_count;
	}
	while (walk_log(writer, &placing, &block, &end))
		for (; block < end; block++)
			pool->directory[lists[pool->owners[block]].end++] =
				block;
}

void bucket_writer_prefetch(const struct bucket_writer *writer, uint32_t bucket)
{
	const uint32_t *blocks = bucket_writer_blocks(writer, bucket);
	uint32_t left = bucket_writer_count(writer, bucket), here;

	for (; left > 0; left -= here) {
		const uint64_t *block = bucket_block(writer->pool, *blocks++);

		here = MIN(left, BUCKETS_BLOCK_ENTRIES);
		for (uint32_t e = 0; e < here; e += LINE_ENTRIES)
			__builtin_prefetch(block + e, 0, 2);
	}
}

/* Blocks and lines are copied by code for their length: a memcpy() of any
 * length takes longer than what it copies here. */
uint32_t bucket_writer_copy_lines(const struct bucket_writer *writer,
				  uint32_t bucket, uint64_t *target)
{
	const uint32_t *blocks = bucket_writer_blocks(writer, bucket);
	uint32_t count = bucket_writer_count(writer, bucket);
	uint32_t left = count;
	const uint64_t *block;

	for (; left >= BUCKETS_BLOCK_ENTRIES; left -= BUCKETS_BLOCK_ENTRIES) {
		block = bucket_block(writer->pool, *blocks++);
		memcpy(target, block, BUCKETS_BLOCK_ENTRIES * sizeof(*target));
		target += BUCKETS_BLOCK_ENTRIES;
	}
	if (left == 0)
		return count;
	block = bucket_block(writer->pool, *blocks);
	for (uint32_t e = 0; e < left; e += LINE_ENTRIES)
		memcpy(target + e, block + e, CACHE_LINE_BYTES);
	return count;
}

uint32_t bucket_writer_copy(const struct bucket_writer *writer, uint32_t bucket,
			    uint64_t *target)
{
	const uint32_t *blocks = bucket_writer_blocks(writer, bucket);
	uint32_t count = bucket_writer_count(writer, bucket);
	uint32_t left = count, here;

	for (; left > 0; left -= here) {
		here = MIN(left, BUCKETS_BLOCK_ENTRIES);
		memcpy(target, bucket_block(writer->pool, *blocks++),
		       here * sizeof(*target));
		target += here;
	}
	return count;
}
