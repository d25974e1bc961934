/* partition.c - makes entries, and stores each in the list of its bucket */
#include "sort/partition.h"

/* How many records ahead a key is prefetched: the CPU's own prefetching follows
 * one stream of reads, but not while the CPU is busy with places.  64 to 320
 * are as good. */
#define PREFETCH_RECORDS 128

/* A batch of records: the entries' places are computed and prefetched first,
 * then the entries are stored. */
struct batch {
	_Alignas(CACHE_LINE_BYTES) uint64_t prefixes[LOOKUP_KEYS];
	_Alignas(CACHE_LINE_BYTES) uint64_t entries[LOOKUP_KEYS];
	_Alignas(CACHE_LINE_BYTES) uint32_t buckets[LOOKUP_KEYS];
	uint64_t *places[LOOKUP_KEYS];
};

/* The writer's arrays are arguments of their own: otherwise the compiler would
 * read their addresses from the writer again after each store. */
static inline void prefetch_place(struct batch *batch,
				  struct bucket_writer *writer,
				  uint32_t *cursors, uint64_t *entries,
				  unsigned i)
{
	uint32_t *cursor = &cursors[batch->buckets[i]];

	if (bucket_cursor_is_full(*cursor))
		bucket_writer_grow(writer, batch->buckets[i]);
	batch->places[i] = &entries[(*cursor)++];
	__builtin_prefetch(batch->places[i], 1);
}

static inline void put(const struct batch *batch, unsigned count)
{
	for (unsigned i = 0; i < count; i++)
		*batch->places[i] = batch->entries[i];
}

/*
 * Static splitters.  While places are looked up, one for each record, the
 * keys of the batch that follows are read, one for each record: a steady
 * stream, by one instruction, is what the CPU knows how to fetch ahead of. Read
 * in one go they are waited for.
 *
 * Called with constants, so that each caller's copy has no choice left in its
 * loop.
 */
static inline __attribute__((always_inline)) void
static_body(struct bucket_writer *writer, lookup_fn *look_up,
	    const struct splitters *splitters, const struct record_shape *shape,
	    unsigned index_bits, const uint8_t *records, uint64_t slot,
	    uint64_t record_count)
{
	struct batch batch;
	unsigned here = (unsigned)MIN(record_count, LOOKUP_KEYS);
	uint32_t *cursors = writer->cursors;
	uint64_t *pool_entries = writer->pool->entries;
	const uint8_t *next = records;

	memset(batch.prefixes, 0, sizeof(batch.prefixes));
	for (unsigned i = 0; i < here; i++) {
		batch.prefixes[i] = record_key_word(shape, next, 0);
		next += shape->size;
	}
	for (; record_count >= 2 * LOOKUP_KEYS; record_count -= LOOKUP_KEYS) {
		look_up(splitters, index_bits, slot, batch.prefixes,
			batch.entries, batch.buckets);
		for (unsigned i = 0; i < LOOKUP_KEYS; i++) {
			prefetch_place(&batch, writer, cursors, pool_entries,
				       i);
			batch.prefixes[i] = record_key_word(shape, next, 0);
			__builtin_prefetch(next + shape->keys.begin +
						   (size_t)PREFETCH_RECORDS *
							   shape->size,
					   0, 2);
			next += shape->size;
		}
		put(&batch, LOOKUP_KEYS);
		slot += LOOKUP_KEYS;
	}
	while (record_count > 0) {
		look_up(splitters, index_bits, slot, batch.prefixes,
			batch.entries, batch.buckets);
		for (unsigned i = 0; i < here; i++)
			prefetch_place(&batch, writer, cursors, pool_entries,
				       i);
		put(&batch, here);
		slot += here;
		record_count -= here;
		here = (unsigned)MIN(record_count, LOOKUP_KEYS);
		for (unsigned i = 0; i < here; i++) {
			batch.prefixes[i] = record_key_word(shape, next, 0);
			next += shape->size;
		}
	}
}

/* Sampled splitters.  Windows take more than a load, so they are made a batch
 * at a time, with what follows of each key. */
static void sampled(struct bucket_writer *writer, search_fn *search,
		    const struct splitters *splitters,
		    const struct record_shape *shape, unsigned index_bits,
		    const uint8_t *records, uint64_t slot,
		    uint64_t record_count)
{
	const uint64_t key_mask = UINT64_MAX << index_bits;
	uint32_t *cursors = writer->cursors;
	uint64_t *pool_entries = writer->pool->entries;
	uint64_t behind[LOOKUP_KEYS];
	struct batch batch;

	memset(batch.prefixes, 0, sizeof(batch.prefixes));
	while (record_count > 0) {
		unsigned here = (unsigned)MIN(record_count, LOOKUP_KEYS);

		for (unsigned i = 0; i < here; i++) {
			batch.prefixes[i] = splitters_key_prefix(
				splitters, shape, records, &behind[i]);
			__builtin_prefetch(records + shape->keys.begin +
						   (size_t)PREFETCH_RECORDS *
							   shape->size,
					   0, 2);
			records += shape->size;
		}
		search(&splitters->tree, batch.prefixes, batch.buckets);
		for (unsigned i = 0; i < here; i++) {
			uint64_t prefix = batch.prefixes[i];
			uint32_t bucket = splitters_bucket_above(
				splitters, prefix, batch.buckets[i]);

			prefix = splitters_key_in_bucket(splitters, prefix,
							 behind[i], bucket);
			batch.entries[i] = (prefix & key_mask) | (slot + i);
			batch.buckets[i] = bucket;
			prefetch_place(&batch, writer, cursors, pool_entries,
				       i);
		}
		put(&batch, here);
		slot += here;
		record_count -= here;
	}
}

static const struct record_shape benchmark_shape = RECORD_SHAPE_OF_SLICE(
	RECORD_SIZE_DEFAULT, 0, RECORD_KEY_LENGTH_DEFAULT);

void partition_records(struct bucket_writer *writer, enum cpu_level level,
		       const struct splitters *splitters,
		       const struct record_shape *shape, unsigned index_bits,
		       const uint8_t *records, uint64_t first_slot,
		       uint64_t record_count)
{
	if (splitters->kind == SPLITTERS_SAMPLED)
		sampled(writer, search_kernel(level), splitters, shape,
			index_bits, records, first_slot, record_count);
	else if (record_shape_is_benchmark(shape))
		static_body(writer, lookup_kernel(level, splitters), splitters,
			    &benchmark_shape, index_bits, records, first_slot,
			    record_count);
	else
		static_body(writer, lookup_kernel(level, splitters), splitters,
			    shape, index_bits, records, first_slot,
			    record_count);
}

/* --- records of one bucket -------------------------------------------------
 */

/* The lowest and the highest prefix of some records.  The bucket never descends
 * when the prefix ascends: if these two lie in a bucket, all others do. */
struct prefix_range {
	uint64_t low, high;
};

static inline void widen(struct prefix_range *range, uint64_t prefix)
{
	range->low = MIN(range->low, prefix);
	range->high = MAX(range->high, prefix);
}

static uint32_t bucket_of(const struct splitters *splitters, uint64_t prefix)
{
	switch (splitters->kind) {
	case SPLITTERS_SAMPLED:
		return splitters_bucket_sampled(splitters, prefix);
	case SPLITTERS_STATIC_95:
		return splitters_bucket_95(splitters, prefix);
	default:
		return splitters_bucket_256(splitters, prefix);
	}
}

static inline __attribute__((always_inline)) struct prefix_range
static_entries(const struct record_shape *shape, uint64_t key_mask,
	       const uint8_t *records, uint64_t slot, uint64_t record_count,
	       uint64_t *entries)
{
	struct prefix_range range = { UINT64_MAX, 0 };

	for (uint64_t i = 0; i < record_count; i++) {
		uint64_t prefix = record_key_word(shape, records, 0);

		widen(&range, prefix);
		entries[i] = (prefix & key_mask) | (slot + i);
		records += shape->size;
	}
	return range;
}

static struct prefix_range sampled_entries(const struct splitters *splitters,
					   const struct record_shape *shape,
					   uint64_t key_mask,
					   const uint8_t *records,
					   uint64_t slot, uint64_t record_count,
					   uint32_t bucket, uint64_t *entries)
{
	struct prefix_range range = { UINT64_MAX, 0 };

	for (uint64_t i = 0; i < record_count; i++) {
		uint64_t next;
		uint64_t prefix =
			splitters_key_prefix(splitters, shape, records, &next);

		widen(&range, prefix);
		prefix = splitters_key_in_bucket(splitters, prefix, next,
						 bucket);
		entries[i] = (prefix & key_mask) | (slot + i);
		records += shape->size;
	}
	return range;
}

bool partition_entries(const struct splitters *splitters,
		       const struct record_shape *shape, unsigned index_bits,
		       const uint8_t *records, uint64_t first_slot,
		       uint64_t record_count, uint32_t bucket,
		       uint64_t *entries)
{
	const uint64_t key_mask = UINT64_MAX << index_bits;
	struct prefix_range range;

	if (splitters->kind == SPLITTERS_SAMPLED)
		range = sampled_entries(splitters, shape, key_mask, records,
					first_slot, record_count, bucket,
					entries);
	else if (record_shape_is_benchmark(shape))
		range = static_entries(&benchmark_shape, key_mask, records,
				       first_slot, record_count, entries);
	else
		range = static_entries(shape, key_mask, records, first_slot,
				       record_count, entries);
	return record_count == 0 ||
	       (bucket_of(splitters, range.low) == bucket &&
		bucket_of(splitters, range.high) == bucket);
}
