/*
 * test_partition.c - every record's entry, in its bucket's list and in order
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "sort/partition.h"
#include "random.h"

#define COUNT_MAX 200
#define SIZE_MAX_TESTED 120
#define BUCKETS 37
#define SPLITTERS_WANTED 18 /* so BUCKETS at most */

static struct bucket_pool pool;
static struct bucket_writer writer;
static struct splitters splitters;
static uint8_t *records;
static enum cpu_level level;

/* Mostly printable, some not, some equal. */
static void fill_records(const struct record_shape *shape, uint32_t count)
{
	for (uint32_t r = 0; r < count; r++) {
		uint8_t *record = records + (size_t)r * shape->size;

		for (uint32_t i = 0; i < shape->size; i++)
			record[i] = (uint8_t)(32 + random_next() % 95);
		if (random_next() % 4 == 0)
			record[random_next() % shape->size] =
				(uint8_t)random_next();
		if (r > 0 && random_next() % 4 == 0)
			memcpy(record, record - shape->size, shape->size);
	}
}

static void choose_splitters(const struct record_shape *shape,
			     enum splitters_kind kind)
{
	const uint8_t *sample[60];
	uint64_t prefixes[ARRAY_LEN(sample)];

	if (kind != SPLITTERS_SAMPLED) {
		splitters_init_static(&splitters, kind, BUCKETS);
		return;
	}
	for (size_t i = 0; i < ARRAY_LEN(sample); i++)
		sample[i] = records + random_next() % COUNT_MAX * shape->size;
	splitters_init_sampled(&splitters, shape, sample, ARRAY_LEN(sample),
			       prefixes, SPLITTERS_WANTED);
}

/* The key's first 8 bytes, zeros behind its end. */
static uint64_t first_word(const struct record_shape *shape,
			   const uint8_t *record)
{
	uint8_t bytes[8] = { 0 };

	memcpy(bytes, record + shape->keys.begin, MIN(shape->keys.length, 8));
	return load_be64(bytes);
}

static uint32_t expected_bucket(const struct record_shape *shape,
				const uint8_t *record, uint64_t *prefix)
{
	uint64_t next;
	uint32_t bucket;

	*prefix = first_word(shape, record);
	switch (splitters.kind) {
	case SPLITTERS_STATIC_95:
		return splitters_bucket_95(&splitters, *prefix);
	case SPLITTERS_SAMPLED:
		*prefix =
			splitters_key_prefix(&splitters, shape, record, &next);
		bucket = splitters_bucket_sampled(&splitters, *prefix);
		*prefix = splitters_key_in_bucket(&splitters, *prefix, next,
						  bucket);
		return bucket;
	default:
		return splitters_bucket_256(&splitters, *prefix);
	}
}

static void check_lists(const struct record_shape *shape, unsigned index_bits,
			uint64_t first_slot, uint32_t count)
{
	static uint64_t lists[BUCKETS][COUNT_MAX];
	uint32_t seen[BUCKETS] = { 0 };

	for (uint32_t b = 0; b < splitters.bucket_count; b++)
		bucket_writer_copy(&writer, b, lists[b]);
	for (uint32_t r = 0; r < count; r++) {
		uint64_t prefix;
		uint32_t bucket = expected_bucket(
			shape, records + (size_t)r * shape->size, &prefix);
		uint64_t entry =
			(prefix >> index_bits << index_bits) | (first_slot + r);

		assert_true(seen[bucket] <
			    bucket_writer_count(&writer, bucket));
		if (lists[bucket][seen[bucket]] != entry)
			fail_msg(
				"%s, %s, size %u, %u bits: record %u of %u is "
				"%016llx, not %016llx (SEED=%llu)",
				splitters_kind_names[splitters.kind],
				cpu_level_names[level], shape->size, index_bits,
				r, count,
				(unsigned long long)lists[bucket][seen[bucket]],
				(unsigned long long)entry,
				(unsigned long long)seed);
		seen[bucket]++;
	}
	for (uint32_t b = 0; b < splitters.bucket_count; b++)
		assert_int_equal(bucket_writer_count(&writer, b), seen[b]);
}

/* A record of another bucket among those of this one is found, wherever it
 * stands: it takes the place of one of them. */
static void check_stranger(const struct record_shape *shape,
			   unsigned index_bits, uint8_t *moved, uint32_t count,
			   uint32_t bucket)
{
	const uint8_t *stranger =
		records + random_next() % COUNT_MAX * shape->size;
	uint64_t entries[COUNT_MAX], prefix;
	bool belongs = expected_bucket(shape, stranger, &prefix) == bucket;

	if (count == 0)
		return;
	memcpy(moved + random_next() % count * shape->size, stranger,
	       shape->size);
	assert_int_equal(partition_entries(&splitters, shape, index_bits, moved,
					   0, count, bucket, entries),
			 belongs);
}

/* Each list's records once more, moved together, as they come from other
 * machines. */
static void check_entries(const struct record_shape *shape, unsigned index_bits,
			  uint64_t first_slot)
{
	static uint8_t moved[COUNT_MAX * SIZE_MAX_TESTED];
	const uint64_t slot_mask = ~(UINT64_MAX << index_bits);

	for (uint32_t b = 0; b < splitters.bucket_count; b++) {
		uint64_t list[COUNT_MAX], entries[COUNT_MAX];
		uint64_t slot = random_next() & slot_mask & ~(uint64_t)0xff;
		uint32_t count = bucket_writer_copy(&writer, b, list);

		for (uint32_t i = 0; i < count; i++) {
			uint64_t record = (list[i] & slot_mask) - first_slot;

			memcpy(moved + (size_t)i * shape->size,
			       records + record * shape->size, shape->size);
		}
		assert_true(partition_entries(&splitters, shape, index_bits,
					      moved, slot, count, b, entries));
		for (uint32_t i = 0; i < count; i++)
			assert_int_equal(entries[i],
					 (list[i] & ~slot_mask) | (slot + i));
		check_stranger(shape, index_bits, moved, count, b);
	}
}

/* In two calls, as a reader's runs come. */
static void check_partition(const struct record_shape *shape,
			    enum splitters_kind kind, uint32_t count)
{
	static const unsigned bits[] = { 9, 20, 32, 40, 63 };
	unsigned index_bits = bits[random_next() % ARRAY_LEN(bits)];
	uint64_t slots = ((uint64_t)1 << index_bits) - count;
	uint64_t first_slot = random_next() % 2 ? slots : random_next() % slots;
	uint32_t first_part = (uint32_t)(random_next() % (count + 1));

	level = (enum cpu_level)(random_next() % (cpu_level_detect() + 1u));
	choose_splitters(shape, kind);
	assert_true(splitters.bucket_count <= BUCKETS);
	bucket_pool_reset(&pool);
	bucket_writer_reset(&writer, splitters.bucket_count);
	partition_records(&writer, level, &splitters, shape, index_bits,
			  records, first_slot, first_part);
	partition_records(&writer, level, &splitters, shape, index_bits,
			  records + (size_t)first_part * shape->size,
			  first_slot + first_part, count - first_part);
	bucket_writer_finish(&writer, splitters.bucket_count);
	check_lists(shape, index_bits, first_slot, count);
	check_entries(shape, index_bits, first_slot);
}

static void check_kind(enum splitters_kind kind)
{
	static const struct record_shape shapes[] = {
		RECORD_SHAPE_OF_SLICE(100, 0, 10),
		RECORD_SHAPE_OF_SLICE(100, 5, 10),
		RECORD_SHAPE_OF_SLICE(100, 90, 10),
		RECORD_SHAPE_OF_SLICE(100, 0, 4),
		RECORD_SHAPE_OF_SLICE(4, 0, 4),
		RECORD_SHAPE_OF_SLICE(7, 2, 5),
		RECORD_SHAPE_OF_SLICE(16, 0, 16),
		RECORD_SHAPE_OF_SLICE(16, 8, 8),
		RECORD_SHAPE_OF_SLICE(120, 17, 90)
	};

	for (size_t s = 0; s < ARRAY_LEN(shapes); s++) {
		fill_records(&shapes[s], COUNT_MAX);
		for (uint32_t count = 0; count <= COUNT_MAX; count++)
			check_partition(&shapes[s], kind, count);
	}
}

static void partition_records__static_256(void **state)
{
	static const struct record_shape shapes[] = {
		RECORD_SHAPE_OF_SLICE(1, 0, 1), RECORD_SHAPE_OF_SLICE(3, 1, 2),
		RECORD_SHAPE_OF_SLICE(20, 19, 1)
	};

	(void)state;
	check_kind(SPLITTERS_STATIC_256);
	/* Keys too short for ascii. */
	for (size_t s = 0; s < ARRAY_LEN(shapes); s++) {
		fill_records(&shapes[s], COUNT_MAX);
		check_partition(&shapes[s], SPLITTERS_STATIC_256, COUNT_MAX);
		check_partition(&shapes[s], SPLITTERS_SAMPLED, COUNT_MAX);
	}
}

static void partition_records__static_95(void **state)
{
	(void)state;
	check_kind(SPLITTERS_STATIC_95);
}

static void partition_records__sampled(void **state)
{
	(void)state;
	check_kind(SPLITTERS_SAMPLED);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(partition_records__static_256),
		cmocka_unit_test(partition_records__static_95),
		cmocka_unit_test(partition_records__sampled),
	};

	random_begin();
	pool.block_count =
		(uint32_t)buckets_blocks_needed(COUNT_MAX, BUCKETS, 1);
	pool.entries = calloc((size_t)pool.block_count * BUCKETS_BLOCK_ENTRIES,
			      sizeof(*pool.entries));
	pool.owners = calloc(pool.block_count, sizeof(*pool.owners));
	pool.directory = calloc(pool.block_count, sizeof(*pool.directory));
	pool.next_grant = calloc(pool.block_count / BUCKETS_GRANT_BLOCKS,
				 sizeof(*pool.next_grant));
	writer.pool = &pool;
	writer.lists = calloc(BUCKETS, sizeof(*writer.lists));
	writer.cursors = calloc(BUCKETS, sizeof(*writer.cursors));
	records = malloc(COUNT_MAX * SIZE_MAX_TESTED);
	if (!pool.entries || !pool.owners || !pool.directory ||
	    !pool.next_grant || !writer.lists || !writer.cursors || !records)
		return EXIT_FAILURE;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
