#include "partition.h"

/* Records between the look-up of a place and the store to it: enough to cover
 * the way to memory, few enough for the lines to stay in L1. */
#define AHEAD_RECORDS 32

/*
 * One body for all kinds and shapes: called with constants, so that each
 * caller's copy has no choice left in its loop.
 */
static inline __attribute__((always_inline)) void
partition_body(struct bucket_writer *writer, const struct splitters *splitters,
	       const struct record_shape *shape, enum splitters_kind kind,
	       unsigned index_bits, const uint8_t *records, uint64_t slot,
	       uint64_t record_count)
{
	const uint64_t key_mask = UINT64_MAX << index_bits;
	uint64_t *places[AHEAD_RECORDS];
	uint64_t entries[AHEAD_RECORDS];

	while (record_count > 0) {
		unsigned here = (unsigned)MIN(record_count, AHEAD_RECORDS);

		for (unsigned i = 0; i < here; i++) {
			uint64_t window, next;
			uint32_t bucket;

			if (kind == SPLITTERS_SAMPLED) {
				window = splitters_window(splitters, shape,
							  records, &next);
				bucket = splitters_bucket_sampled(splitters,
								  window);
				window = splitters_key_in_bucket(
					splitters, window, next, bucket);
			} else {
				window = record_key_word(shape, records, 0);
				bucket = kind == SPLITTERS_STATIC_95
						 ? splitters_bucket_95(
							   splitters, window)
						 : splitters_bucket_256(
							   splitters, window);
			}
			places[i] = bucket_writer_place(writer, bucket);
			__builtin_prefetch(places[i], 1);
			entries[i] = (window & key_mask) | (slot + i);
			records += shape->size;
		}
		for (unsigned i = 0; i < here; i++)
			*places[i] = entries[i];
		slot += here;
		record_count -= here;
	}
}

static const struct record_shape benchmark_shape = {
	.size = RECORD_SIZE_DEFAULT,
	.key_offset = 0,
	.key_length = RECORD_KEY_LENGTH_DEFAULT,
};

void partition_records(struct bucket_writer *writer,
		       const struct splitters *splitters,
		       const struct record_shape *shape, unsigned index_bits,
		       const uint8_t *records, uint64_t first_slot,
		       uint64_t record_count)
{
	bool benchmark = record_shape_is_benchmark(shape);

	if (splitters->kind == SPLITTERS_SAMPLED)
		partition_body(writer, splitters, shape, SPLITTERS_SAMPLED,
			       index_bits, records, first_slot, record_count);
	else if (benchmark && splitters->kind == SPLITTERS_STATIC_95)
		partition_body(writer, splitters, &benchmark_shape,
			       SPLITTERS_STATIC_95, index_bits, records,
			       first_slot, record_count);
	else if (benchmark)
		partition_body(writer, splitters, &benchmark_shape,
			       SPLITTERS_STATIC_256, index_bits, records,
			       first_slot, record_count);
	else
		partition_body(writer, splitters, shape, splitters->kind,
			       index_bits, records, first_slot, record_count);
}

void partition_entries(const struct splitters *splitters,
		       const struct record_shape *shape, unsigned index_bits,
		       const uint8_t *records, uint64_t first_slot,
		       uint64_t record_count, uint32_t bucket,
		       uint64_t *entries)
{
	const uint64_t key_mask = UINT64_MAX << index_bits;
	bool sampled = splitters->kind == SPLITTERS_SAMPLED;

	for (uint64_t i = 0; i < record_count; i++) {
		uint64_t window, next;

		if (sampled) {
			window = splitters_window(splitters, shape, records,
						  &next);
			window = splitters_key_in_bucket(splitters, window,
							 next, bucket);
		} else {
			window = record_key_word(shape, records, 0);
		}
		entries[i] = (window & key_mask) | (first_slot + i);
		records += shape->size;
	}
}
