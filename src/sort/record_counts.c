/*
 * record_counts.c - counts small records, and writes as many of each as there
 * were
 */
#include "sort/record_counts.h"

#include <string.h>

#include "kernels/local_sort.h"
#include "record/checksum.h"

#define BYTE_VALUES 256
#define PAIR_VALUES 65536
/* Bytes that follow each other are counted in different tables: if they are
 * equal, one addition does not wait for the store of the one before. */
#define BYTE_TABLES 4

/* --- which records ----------------------------------------------------------
 */

/* The bytes of the record that it covers, a bit for each. */
static uint32_t bytes_of(const struct key_field *field)
{
	return ((1u << field->length) - 1) << field->offset;
}

bool record_counts_suit(const struct record_shape *shape)
{
	uint32_t covered = 0;

	if (shape->size > RECORD_COUNTS_SIZE_MAX)
		return false;
	for (unsigned f = 0; f < shape->keys.field_count; f++) {
		if (key_field_folds(&shape->keys.fields[f]))
			return false;
		covered |= bytes_of(&shape->keys.fields[f]);
	}
	return covered == (1u << shape->size) - 1;
}

/*
 * Of the keys, those that can decide: where all bytes of a field are in the
 * fields before it, and these are equal, so is it.  At most two fields are
 * left, of three bytes together.
 */
static struct key_list deciding_keys(const struct record_shape *shape)
{
	struct key_list keys = { 0 };
	uint32_t covered = 0;

	for (unsigned f = 0; f < shape->keys.field_count; f++) {
		const struct key_field *field = &shape->keys.fields[f];

		if ((bytes_of(field) & ~covered) == 0)
			continue;
		covered |= bytes_of(field);
		keys.fields[keys.field_count++] = *field;
	}
	key_list_complete(&keys, shape->size);
	return keys;
}

/* --- memory -----------------------------------------------------------------
 */

uint32_t record_counts_items_max(uint32_t record_size)
{
	return record_size == 1 ? BYTE_VALUES : PAIR_VALUES;
}

uint32_t record_counts_length(uint32_t record_size)
{
	return record_size == 1 ? BYTE_TABLES * BYTE_VALUES : PAIR_VALUES;
}

static uint64_t tables_length(uint32_t record_size, unsigned worker_count)
{
	return (uint64_t)worker_count * record_counts_length(record_size);
}

uint64_t record_counts_bytes(uint32_t record_size, unsigned worker_count)
{
	return tables_length(record_size, worker_count) * sizeof(uint64_t) +
	       record_counts_items_max(record_size) *
		       sizeof(struct counted_record);
}

void record_counts_take_memory(struct record_counts *counts,
			       const struct record_shape *shape,
			       unsigned worker_count, struct arena *arena)
{
	size_t tables_bytes =
		tables_length(shape->size, worker_count) * sizeof(uint64_t);
	size_t items_bytes = record_counts_items_max(shape->size) *
			     sizeof(struct counted_record);

	*counts = (struct record_counts){
		.shape = *shape,
		.worker_count = worker_count,
		.tables = arena_take(arena, tables_bytes, CACHE_PAIR_BYTES),
		.items = arena_take(arena, items_bytes, CACHE_PAIR_BYTES),
	};
}

/* --- counting --------------------------------------------------------------
 */

static void add_bytes(uint64_t *table, const uint8_t *bytes, uint64_t count)
{
	uint64_t i = 0;

	for (; i + BYTE_TABLES <= count; i += BYTE_TABLES)
		for (unsigned t = 0; t < BYTE_TABLES; t++)
			table[t * BYTE_VALUES + bytes[i + t]]++;
	for (; i < count; i++)
		table[bytes[i]]++;
}

static void add_pairs(uint64_t *table, const uint8_t *pairs, uint64_t count)
{
	for (uint64_t i = 0; i < count; i++) {
		uint16_t value;

		memcpy(&value, pairs + 2 * i, sizeof(value));
		table[value]++;
	}
}

void record_counts_add(uint64_t *table, uint32_t record_size,
		       const uint8_t *records, uint64_t record_count)
{
	if (record_size == 1)
		add_bytes(table, records, record_count);
	else
		add_pairs(table, records, record_count);
}

/* --- bringing into order ----------------------------------------------------
 */

/* The value is the record as the machine loads it. */
static void store_value(uint32_t value, uint32_t record_size, uint8_t *bytes)
{
	uint16_t pair = (uint16_t)value;

	if (record_size == 1)
		bytes[0] = (uint8_t)value;
	else
		memcpy(bytes, &pair, sizeof(pair));
}

/* The key above, the value below: the key has four bytes at most. */
static uint64_t make_entry(const struct key_list *keys, uint32_t record_size,
			   uint32_t value)
{
	uint8_t bytes[RECORD_COUNTS_SIZE_MAX];

	store_value(value, record_size, bytes);
	return key_list_word(keys, bytes, 0) | value;
}

static uint64_t add_up(const struct record_counts *counts, uint32_t value)
{
	uint32_t step = record_counts_items_max(counts->shape.size);
	uint64_t length =
		tables_length(counts->shape.size, counts->worker_count);
	uint64_t sum = 0;

	for (uint64_t at = value; at < length; at += step)
		sum += counts->tables[at];
	return sum;
}

/* The entries of all values that were counted, in order.  They lie at the end
 * of the items' memory, so that the items can be made from its beginning on:
 * an item has 24 bytes, an entry 8. */
static const uint64_t *sort_values(struct record_counts *counts,
				   enum cpu_level kernel)
{
	const struct key_list keys = deciding_keys(&counts->shape);
	uint32_t items_max = record_counts_items_max(counts->shape.size);
	uint64_t *end = (uint64_t *)(counts->items + items_max);
	uint64_t *entries = end;

	for (uint32_t value = 0; value < items_max; value++)
		if (add_up(counts, value) > 0)
			*--entries =
				make_entry(&keys, counts->shape.size, value);
	counts->item_count = (uint32_t)(end - entries);
	local_sort_kernel(kernel)(entries, counts->item_count);
	return entries;
}

void record_counts_add_up(struct record_counts *counts, bool unique,
			  enum cpu_level kernel)
{
	const uint64_t *entries = sort_values(counts, kernel);
	uint64_t end_record = 0;

	for (uint32_t i = 0; i < counts->item_count; i++) {
		uint32_t value = entries[i] & (PAIR_VALUES - 1);
		uint64_t count = unique ? 1 : add_up(counts, value);

		end_record += count;
		counts->items[i] = (struct counted_record){
			.count = count,
			.end_record = end_record,
		};
		store_value(value, counts->shape.size, counts->items[i].bytes);
	}
}

/* --- the sorted whole -------------------------------------------------------
 */

uint64_t record_counts_whole(const struct record_counts *counts)
{
	return counts->item_count == 0
		       ? 0
		       : counts->items[counts->item_count - 1].end_record;
}

unsigned __int128 record_counts_checksum(const struct record_counts *counts)
{
	unsigned __int128 sum = 0;

	for (uint32_t i = 0; i < counts->item_count; i++)
		sum += (unsigned __int128)counts->items[i].count *
		       checksum_scalar(counts->items[i].bytes,
				       counts->shape.size, 1);
	return sum;
}

/* The item that has this record of the sorted whole. */
static const struct counted_record *
find_item(const struct record_counts *counts, uint64_t record)
{
	uint32_t low = 0, high = counts->item_count - 1;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (counts->items[middle].end_record > record)
			high = middle;
		else
			low = middle + 1;
	}
	return &counts->items[low];
}

static void repeat(const struct counted_record *item, uint32_t record_size,
		   uint64_t count, uint8_t *target)
{
	if (record_size == 1) {
		memset(target, item->bytes[0], count);
		return;
	}
	for (uint64_t i = 0; i < count; i++)
		memcpy(target + 2 * i, item->bytes, 2);
}

void record_counts_copy(const struct record_counts *counts, uint64_t first,
			uint64_t count, uint8_t *target)
{
	const struct counted_record *item;
	uint32_t record_size = counts->shape.size;
	uint64_t end = first + count;

	if (count == 0)
		return;
	for (item = find_item(counts, first); first < end; item++) {
		uint64_t times = MIN(end, item->end_record) - first;

		repeat(item, record_size, times, target);
		target += times * record_size;
		first += times;
	}
}

/* --- to a sink -------------------------------------------------------------
 */

void counted_output_begin(struct counted_output *output)
{
	const struct record_counts *counts = output->counts;

	output->range = chunk_range_of(output->sink, counts->shape.size, 0,
				       record_counts_whole(counts));
}

/* A header of odd length before records of two bytes lets chunks, which are
 * whole pages of a file, begin and end within a record. */
static void copy_chunk(const struct record_counts *counts,
		       const struct chunk *chunk, uint8_t *target)
{
	uint32_t record_size = counts->shape.size;
	uint64_t first = chunk->first_record, end = chunk->end_record;
	uint8_t cut[2] = { 0 };

	if (chunk->begin_byte % record_size != 0) {
		record_counts_copy(counts, first++, 1, cut);
		*target++ = cut[1];
	}
	if (chunk->end_byte % record_size != 0) {
		record_counts_copy(counts, --end, 1, cut);
		target[(end - first) * record_size] = cut[0];
	}
	record_counts_copy(counts, first, end - first, target);
}

/* False: the sink has failed, and keeps the reason. */
static bool write_chunk(const struct counted_output *output,
			const struct chunk *chunk, struct stage_clock *clock)
{
	struct sink *sink = output->sink;
	size_t length = chunk->end_byte - chunk->begin_byte;
	uint8_t *place =
		sink_place(sink, chunk->part, chunk->begin_byte, length);
	struct sink_slot *slot = place ? NULL : sink_take(sink);

	stage_wait(clock, STAGE_FOR_WRITE);
	if (!place && !slot)
		return false;
	copy_chunk(output->counts, chunk, place ? place : slot->data);
	stage_unit(clock, STAGE_GATHER, length);
	if (place)
		return true;
	slot->clock = clock;
	slot->part = chunk->part;
	slot->offset_bytes = chunk->begin_byte;
	slot->length_bytes = length;
	sink_put(sink, slot);
	stage_unit(clock, STAGE_PUT, length);
	return true;
}

void counted_output_run(struct counted_output *output, unsigned worker)
{
	struct stage_clock *clock =
		output->trace ? &output->trace->lanes[worker].clock : NULL;

	stage_resume(clock, STAGE_FOR_TEAM);
	while (!first_failure_stops(output->failure)) {
		uint64_t number = atomic_fetch_add_explicit(
			&output->next_chunk, 1, memory_order_relaxed);
		struct chunk chunk;

		if (number >= output->range.chunk_count)
			break;
		chunk = chunk_range_at(&output->range, number);
		if (!write_chunk(output, &chunk, clock))
			return;
		if (output->serve)
			output->serve(output->serve_context, worker,
				      chunk.end_byte - chunk.begin_byte);
	}
	sink_help(output->sink);
	stage_wait(clock, STAGE_FOR_WRITE);
}
