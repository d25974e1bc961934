#include <assert.h>

#include "buckets.h"

void bucket_writer_reset(struct bucket_writer *writer, uint32_t bucket_count)
{
	memset(writer->cursors, 0, bucket_count * sizeof(*writer->cursors));
	memset(writer->lists, 0, bucket_count * sizeof(*writer->lists));
	writer->block = 0;
	writer->block_end = 0;
}

void bucket_writer_grow(struct bucket_writer *writer, uint32_t bucket)
{
	struct bucket_pool *pool = writer->pool;
	struct bucket_list *list = &writer->lists[bucket];
	uint32_t *cursor = &writer->cursors[bucket];
	uint32_t block;

	if (writer->block == writer->block_end) {
		writer->block = atomic_fetch_add_explicit(&pool->taken,
							  BUCKETS_GRANT_BLOCKS,
							  memory_order_relaxed);
		writer->block_end = writer->block + BUCKETS_GRANT_BLOCKS;
		assert(writer->block_end <= pool->block_count);
	}
	block = writer->block++;
	if (list->block_count++ == 0)
		list->head = block;
	else
		pool->next[*cursor / BUCKETS_BLOCK_ENTRIES - 1] = block;
	*cursor = block * BUCKETS_BLOCK_ENTRIES;
}

uint32_t bucket_writer_copy(const struct bucket_writer *writer, uint32_t bucket,
			    uint64_t *target)
{
	uint32_t count = bucket_writer_count(writer, bucket);
	uint32_t block = writer->lists[bucket].head;

	for (uint32_t done = 0; done < count; done += BUCKETS_BLOCK_ENTRIES) {
		const uint64_t *entries = writer->pool->entries +
					  (size_t)block * BUCKETS_BLOCK_ENTRIES;
		uint32_t here = MIN(count - done, BUCKETS_BLOCK_ENTRIES);

		memcpy(target + done, entries, here * sizeof(*target));
		if (done + here < count)
			block = writer->pool->next[block];
	}
	return count;
}
