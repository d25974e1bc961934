/*
 * test_buckets.c - lists of entries against plain counters
 *
 * An entry here says where it belongs: list above, position below; so a list
 * that lost, mixed or moved one shows it without a second copy.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "sort/buckets.h"
#include "random.h"

#define WRITERS_MAX 3
#define GRANT_ENTRIES (BUCKETS_GRANT_BLOCKS * BUCKETS_BLOCK_ENTRIES)

static struct bucket_pool pool;
static struct bucket_writer writers[WRITERS_MAX];
static uint32_t *stored[WRITERS_MAX]; /* [bucket] entries so far */

static void *allocate(size_t count, size_t each_bytes)
{
	/* Not cleared: what is used without being written shows. */
	void *memory = malloc(MAX(count * each_bytes, 1));

	assert_non_null(memory);
	memset(memory, 0xa5, count * each_bytes);
	return memory;
}

/* All allocated as tight as the contract allows, for the sanitizer to see. */
static void set_up(uint32_t bucket_count, unsigned writer_count,
		   uint64_t block_count)
{
	pool.block_count = (uint32_t)block_count;
	pool.entries = allocate(block_count * BUCKETS_BLOCK_ENTRIES, 8);
	pool.owners = allocate(block_count, sizeof(*pool.owners));
	pool.directory = allocate(block_count, sizeof(*pool.directory));
	pool.next_grant = allocate(block_count / BUCKETS_GRANT_BLOCKS,
				   sizeof(*pool.next_grant));
	bucket_pool_reset(&pool);
	for (unsigned w = 0; w < writer_count; w++) {
		writers[w].pool = &pool;
		writers[w].lists =
			allocate(bucket_count, sizeof(*writers[w].lists));
		writers[w].cursors =
			allocate(bucket_count, sizeof(*writers[w].cursors));
		stored[w] = calloc(bucket_count, sizeof(*stored[w]));
		assert_non_null(stored[w]);
		bucket_writer_reset(&writers[w], bucket_count);
	}
}

static void tear_down(unsigned writer_count)
{
	for (unsigned w = 0; w < writer_count; w++) {
		free(writers[w].lists);
		free(writers[w].cursors);
		free(stored[w]);
	}
	free(pool.entries);
	free(pool.owners);
	free(pool.directory);
	free(pool.next_grant);
}

static uint64_t entry_of(unsigned w, uint32_t bucket, uint32_t position)
{
	return (uint64_t)w << 60 | (uint64_t)bucket << 32 | position;
}

static void store(unsigned w, uint32_t bucket)
{
	uint32_t *cursor = &writers[w].cursors[bucket];

	if (bucket_cursor_is_full(*cursor))
		bucket_writer_grow(&writers[w], bucket);
	pool.entries[(*cursor)++] = entry_of(w, bucket, stored[w][bucket]);
	stored[w][bucket]++;
}

static void store_many(unsigned w, uint32_t bucket, uint64_t count)
{
	for (uint64_t i = 0; i < count; i++)
		store(w, bucket);
}

static void check_list(unsigned w, uint32_t bucket)
{
	uint32_t count = stored[w][bucket];
	uint32_t block_count = DIV_ROUND_UP(count, BUCKETS_BLOCK_ENTRIES);
	uint64_t *copy = allocate(count, sizeof(*copy));
	uint64_t *lines = allocate(count + LINE_ENTRIES - 1, sizeof(*lines));
	const uint32_t *blocks = bucket_writer_blocks(&writers[w], bucket);

	bucket_writer_prefetch(&writers[w], bucket);
	assert_int_equal(bucket_writer_count(&writers[w], bucket), count);
	assert_int_equal(bucket_writer_copy(&writers[w], bucket, copy), count);
	assert_int_equal(bucket_writer_copy_lines(&writers[w], bucket, lines),
			 count);
	assert_memory_equal(lines, copy, count * sizeof(*copy));
	assert_int_equal(writers[w].lists[bucket].block_count, block_count);
	for (uint32_t i = 0; i < count; i++) {
		const uint64_t *block =
			pool.entries +
			(size_t)blocks[i / BUCKETS_BLOCK_ENTRIES] *
				BUCKETS_BLOCK_ENTRIES;

		if (copy[i] != entry_of(w, bucket, i) ||
		    block[i % BUCKETS_BLOCK_ENTRIES] != copy[i])
			fail_msg("writer %u, bucket %u: entry %u of %u is "
				 "%016llx (SEED=%llu)",
				 w, bucket, i, count,
				 (unsigned long long)copy[i],
				 (unsigned long long)seed);
	}
	free(copy);
	free(lines);
}

/* The writers finish in any order. */
static void check_all(uint32_t bucket_count, unsigned writer_count)
{
	unsigned first = (unsigned)(random_next() % writer_count);

	for (unsigned w = 0; w < writer_count; w++)
		bucket_writer_finish(&writers[(first + w) % writer_count],
				     bucket_count);
	for (unsigned w = 0; w < writer_count; w++)
		for (uint32_t bucket = 0; bucket < bucket_count; bucket++)
			check_list(w, bucket);
	assert_true(atomic_load(&pool.taken) <= pool.block_count);
	assert_true(atomic_load(&pool.listed) <= atomic_load(&pool.taken));
}

/* Around every border of a block, of one list among others. */
static void bucket_writer_grow__every_length(void **state)
{
	const uint32_t lengths = 5 * BUCKETS_BLOCK_ENTRIES;

	(void)state;
	set_up(lengths, 1,
	       buckets_blocks_needed(lengths * lengths, lengths, 1));
	for (uint32_t bucket = 0; bucket < lengths; bucket++)
		store_many(0, bucket, bucket);
	check_all(lengths, 1);
	tear_down(1);
	/* The same lists, growing in turns. */
	set_up(lengths, 1,
	       buckets_blocks_needed(lengths * lengths, lengths, 1));
	for (uint32_t turn = 0; turn < lengths; turn++)
		for (uint32_t bucket = turn + 1; bucket < lengths; bucket++)
			store(0, bucket);
	check_all(lengths, 1);
	tear_down(1);
}

static void bucket_writer_grow__random_lists_of_several_writers(void **state)
{
	const uint32_t bucket_count = 300;
	const uint64_t entry_count = 60000;

	(void)state;
	set_up(bucket_count, WRITERS_MAX,
	       buckets_blocks_needed(entry_count, bucket_count, WRITERS_MAX));
	for (uint64_t i = 0; i < entry_count; i++) {
		/* The low buckets get most. */
		uint32_t range = 1 + (uint32_t)(random_next() % bucket_count);

		store((unsigned)(random_next() % WRITERS_MAX),
		      (uint32_t)(random_next() % range));
	}
	check_all(bucket_count, WRITERS_MAX);
	tear_down(WRITERS_MAX);
}

static void bucket_writer_grow__takes_a_grant_at_a_time(void **state)
{
	(void)state;
	set_up(2, 2, 4 * BUCKETS_GRANT_BLOCKS);
	assert_int_equal(atomic_load(&pool.taken), 0);
	store(0, 0);
	assert_int_equal(atomic_load(&pool.taken), BUCKETS_GRANT_BLOCKS);
	store(1, 1);
	assert_int_equal(atomic_load(&pool.taken), 2 * BUCKETS_GRANT_BLOCKS);
	/* Exactly what the grant holds, then one more. */
	store_many(0, 0, GRANT_ENTRIES - 1);
	assert_int_equal(atomic_load(&pool.taken), 2 * BUCKETS_GRANT_BLOCKS);
	store(0, 0);
	assert_int_equal(atomic_load(&pool.taken), 3 * BUCKETS_GRANT_BLOCKS);
	store_many(1, 0, GRANT_ENTRIES);
	assert_int_equal(atomic_load(&pool.taken), 4 * BUCKETS_GRANT_BLOCKS);
	check_all(2, 2);
	tear_down(2);
}

static void empty_lists(uint32_t bucket_count, uint32_t bucket_count_max,
			unsigned writer_count)
{
	bucket_pool_reset(&pool);
	for (unsigned w = 0; w < writer_count; w++) {
		bucket_writer_reset(&writers[w], bucket_count);
		memset(stored[w], 0, bucket_count_max * sizeof(*stored[w]));
	}
}

/* As for a second pass with other splitters: fewer buckets, then more. */
static void bucket_writer_reset__lists_are_empty_again(void **state)
{
	static const uint32_t bucket_counts[] = { 50, 3, 100, 1 };
	const uint32_t bucket_count_max = 100;
	const uint64_t entry_count = 20000;

	(void)state;
	set_up(bucket_count_max, 2,
	       buckets_blocks_needed(entry_count, bucket_count_max, 2));
	for (size_t pass = 0; pass < ARRAY_LEN(bucket_counts); pass++) {
		empty_lists(bucket_counts[pass], bucket_count_max, 2);
		check_all(bucket_counts[pass], 2);
		empty_lists(bucket_counts[pass], bucket_count_max, 2);
		for (uint64_t i = 0; i < entry_count; i++)
			store(i % 2,
			      (uint32_t)(random_next() % bucket_counts[pass]));
		check_all(bucket_counts[pass], 2);
	}
	tear_down(2);
}

/* How the worst cases share out entry_count entries. */
enum spread { ONE_EACH, ALL_IN_ONE, ONE_MORE_THAN_BLOCKS, ONE_WRITER, RANDOM };
#define SPREADS (RANDOM + 1)

static void spread_entries(enum spread spread, uint64_t entry_count,
			   uint32_t bucket_count, unsigned writer_count)
{
	uint64_t list_count = (uint64_t)bucket_count * writer_count;

	for (uint64_t i = 0; i < entry_count; i++) {
		uint64_t list = 0;

		switch (spread) {
		case ONE_EACH:
			list = i % list_count;
			break;
		case ALL_IN_ONE:
			break;
		case ONE_MORE_THAN_BLOCKS:
			/* What one entry less in each would save is most. */
			list = i < list_count ? i
					      : (i - list_count) /
							BUCKETS_BLOCK_ENTRIES %
							list_count;
			break;
		case ONE_WRITER:
			list = i % bucket_count * writer_count;
			break;
		case RANDOM:
			list = random_next() % list_count;
			break;
		}
		store((unsigned)(list % writer_count),
		      (uint32_t)(list / writer_count));
	}
}

static void buckets_blocks_needed__suffices(void **state)
{
	static const uint64_t entry_counts[] = { 0,    1,     15,   16,
						 17,   300,   511,  512,
						 4801, 16384, 60000 };
	static const uint32_t bucket_counts[] = { 1, 2, 299, 511, 512, 513 };

	(void)state;
	for (size_t n = 0; n < ARRAY_LEN(entry_counts); n++)
		for (size_t b = 0; b < ARRAY_LEN(bucket_counts); b++)
			for (unsigned w = 1; w <= WRITERS_MAX; w++)
				for (int s = 0; s < SPREADS; s++) {
					uint64_t needed = buckets_blocks_needed(
						entry_counts[n],
						bucket_counts[b], w);

					set_up(bucket_counts[b], w, needed);
					spread_entries((enum spread)s,
						       entry_counts[n],
						       bucket_counts[b], w);
					check_all(bucket_counts[b], w);
					tear_down(w);
				}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(bucket_writer_grow__every_length),
		cmocka_unit_test(
			bucket_writer_grow__random_lists_of_several_writers),
		cmocka_unit_test(bucket_writer_grow__takes_a_grant_at_a_time),
		cmocka_unit_test(bucket_writer_reset__lists_are_empty_again),
		cmocka_unit_test(buckets_blocks_needed__suffices),
	};

	random_begin();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
