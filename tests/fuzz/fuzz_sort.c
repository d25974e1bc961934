/*
 * Any records of any shape and any list of keys through the steps of a sort,
 * one after the other: splitters, partition, collect, sort, settle ties,
 * gather. What comes out is what a plain stable sort makes of them, which
 * compares the numbers themselves.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/gather.h"
#include "kernels/local_sort.h"
#include "sort/partition.h"
#include "sort/tie_break.h"
#include "tests/unit/field_order.h"

#define RECORDS_MAX 2000
#define WRITERS_MAX 3
#define SAMPLE_MAX 64
#define INDEX_BITS_MIN 11 /* for RECORDS_MAX */

/* What the first bytes say; the others are the records. */
enum {
	AT_SIZE,
	AT_KIND,
	AT_BUCKETS,
	AT_WRITERS,
	AT_INDEX_BITS,
	AT_LEVEL,
	AT_REPEAT, /* the records again and again, for long runs */
	AT_SAMPLE,
	AT_FIELD_COUNT,
	AT_FIELDS,
	HEADER_BYTES = AT_FIELDS + 3 * KEY_FIELDS_MAX
};

struct sort {
	struct record_shape shape;
	struct key_field
		fields[KEY_FIELDS_MAX]; /* as they were before joining */
	unsigned field_count;
	const uint8_t *records;
	uint32_t count;
	unsigned index_bits;
	enum cpu_level level;
	struct splitters splitters;
	const uint8_t *sample[SAMPLE_MAX]; /* splitters keep one */
	struct bucket_pool pool;
	struct bucket_writer writers[WRITERS_MAX];
	unsigned writer_count;
};

static void require(int condition)
{
	if (!condition)
		abort();
}

/* As tight as it must suffice, so that the sanitizer sees a byte too far. */
static void *allocate(size_t bytes)
{
	void *memory = calloc(bytes > 0 ? bytes : 1, 1);

	require(memory != NULL);
	return memory;
}

/* From three bytes: the type with its flags, the offset, the length.  A number
 * that does not fit becomes a slice. */
static struct key_field choose_field(const uint8_t *bytes, uint32_t record_size)
{
	uint32_t offset = bytes[1] % record_size, room = record_size - offset;
	struct key_field field = {
		.offset = offset,
		.type = (enum key_type)(bytes[0] % 4),
		.is_big_endian = bytes[0] >> 2 & 1,
		.is_descending = bytes[0] >> 3 & 1,
	};

	field.length = field.type == KEY_FLOAT ? 2u << bytes[2] % 3
					       : 1u << bytes[2] % 5;
	if (field.type == KEY_BYTES || field.length > room) {
		field.type = KEY_BYTES;
		field.is_big_endian = false;
		field.length = bytes[2] % room + 1;
	} else if (field.type == KEY_FLOAT) {
		field.is_bfloat = field.length == 2 && (bytes[0] >> 4 & 1);
		field.nans =
			(enum key_nans)((bytes[0] >> 5) % (KEY_NANS_FIRST + 1));
	}
	return field;
}

static void choose_keys(struct sort *sort, const uint8_t *header)
{
	struct key_list *keys = &sort->shape.keys;

	sort->field_count = header[AT_FIELD_COUNT] % KEY_FIELDS_MAX + 1;
	for (unsigned i = 0; i < sort->field_count; i++) {
		sort->fields[i] = choose_field(header + AT_FIELDS + 3 * i,
					       sort->shape.size);
		require(key_field_is_good(&sort->fields[i]));
	}
	keys->field_count = sort->field_count;
	memcpy(keys->fields, sort->fields, sizeof(keys->fields));
	key_list_complete(keys, sort->shape.size);
}

static uint8_t *make_records(struct sort *sort, const uint8_t *data,
			     size_t size, unsigned repeat)
{
	size_t have = size / sort->shape.size;
	size_t bytes = have * sort->shape.size;
	uint8_t *records;

	sort->count = (uint32_t)MIN(have * repeat, RECORDS_MAX);
	records = allocate((size_t)sort->count * sort->shape.size);
	for (size_t i = 0; i < (size_t)sort->count * sort->shape.size; i++)
		records[i] = data[i % bytes];
	sort->records = records;
	return records;
}

static void choose_splitters(struct sort *sort, const uint8_t *header)
{
	uint64_t prefixes[SAMPLE_MAX];
	enum splitters_kind kind;
	uint32_t sample_count = header[AT_SAMPLE] % SAMPLE_MAX + 1;
	bool is_uniform;

	kind = splitters_probe(&sort->shape, sort->records, sort->count,
			       &is_uniform);
	require(kind == SPLITTERS_STATIC_256 || kind == SPLITTERS_STATIC_95);
	if (header[AT_KIND] % 4 == 1)
		kind = SPLITTERS_STATIC_256;
	if (header[AT_KIND] % 4 == 2 && splitters_may_be_ascii(&sort->shape))
		kind = SPLITTERS_STATIC_95;
	if (header[AT_KIND] % 4 != 3 || sort->count == 0) {
		splitters_init_static(&sort->splitters, kind,
				      header[AT_BUCKETS] + 1u);
		return;
	}
	for (uint32_t i = 0; i < sample_count; i++)
		sort->sample[i] =
			sort->records + (size_t)i * header[AT_SAMPLE] %
						sort->count * sort->shape.size;
	splitters_init_sampled(&sort->splitters, &sort->shape, sort->sample,
			       sample_count, prefixes, header[AT_BUCKETS]);
}

/* Each writer a share, in order. */
static void partition(struct sort *sort)
{
	uint32_t bucket_count = sort->splitters.bucket_count;

	sort->pool.block_count = (uint32_t)buckets_blocks_needed(
		sort->count, bucket_count, sort->writer_count);
	sort->pool.entries = allocate((size_t)sort->pool.block_count *
				      BUCKETS_BLOCK_ENTRIES * 8);
	sort->pool.owners = allocate((size_t)sort->pool.block_count * 4);
	sort->pool.directory = allocate((size_t)sort->pool.block_count * 4);
	sort->pool.next_grant = allocate((size_t)sort->pool.block_count /
					 BUCKETS_GRANT_BLOCKS * 4);
	for (unsigned w = 0; w < sort->writer_count; w++) {
		struct bucket_writer *writer = &sort->writers[w];
		uint32_t begin = sort->count * w / sort->writer_count;
		uint32_t end = sort->count * (w + 1) / sort->writer_count;

		writer->pool = &sort->pool;
		writer->lists = allocate(bucket_count * sizeof(*writer->lists));
		writer->cursors =
			allocate(bucket_count * sizeof(*writer->cursors));
		bucket_writer_reset(writer, bucket_count);
		partition_records(writer, sort->level, &sort->splitters,
				  &sort->shape, sort->index_bits,
				  sort->records +
					  (size_t)begin * sort->shape.size,
				  begin, end - begin);
		bucket_writer_finish(writer, bucket_count);
	}
}

static uint32_t order_bucket(const struct sort *sort, uint32_t bucket,
			     uint64_t *entries)
{
	const struct tie_break ties = {
		.shape = &sort->shape,
		.records = sort->records,
		.index_bits = sort->index_bits,
		.sort = local_sort_kernel(sort->level),
		.any = equal_keys_kernel(sort->level),
	};
	uint32_t count = 0;

	for (unsigned w = 0; w < sort->writer_count; w++)
		count += bucket_writer_copy(&sort->writers[w], bucket,
					    entries + count);
	if (splitters_bucket_is_equal(&sort->splitters, bucket))
		return count;
	ties.sort(entries, count);
	tie_break_settle(&ties, entries, count);
	return count;
}

static uint8_t *sorted_records(struct sort *sort)
{
	uint64_t *entries = allocate(sort->count * sizeof(*entries));
	uint8_t *target = allocate((size_t)sort->count * sort->shape.size);
	uint32_t count = 0;

	for (uint32_t b = 0; b < sort->splitters.bucket_count; b++)
		count += order_bucket(sort, b, entries + count);
	require(count == sort->count);
	gather_kernel(sort->level, sort->shape.size)(
		target, sort->records, sort->shape.size, entries, count,
		~(UINT64_MAX << sort->index_bits));
	free(entries);
	return target;
}

static int compare_slots(const struct sort *sort, uint32_t a, uint32_t b)
{
	const uint8_t *x = sort->records + (size_t)a * sort->shape.size;
	const uint8_t *y = sort->records + (size_t)b * sort->shape.size;
	int order = 0;

	for (unsigned i = 0; i < sort->field_count && order == 0; i++)
		order = field_compare(&sort->fields[i], x, y);
	return order;
}

/* Merge sort: equal keys stay in the order of their slots. */
static void stable_sort(const struct sort *sort, uint32_t *slots, size_t count,
			uint32_t *scratch)
{
	size_t half = count / 2, left = 0, right = half;

	if (count < 2)
		return;
	stable_sort(sort, slots, half, scratch);
	stable_sort(sort, slots + half, count - half, scratch);
	for (size_t i = 0; i < count; i++) {
		bool take_left =
			right == count ||
			(left < half &&
			 compare_slots(sort, slots[left], slots[right]) <= 0);

		scratch[i] = take_left ? slots[left++] : slots[right++];
	}
	memcpy(slots, scratch, count * sizeof(*slots));
}

static void check_sorted(const struct sort *sort, const uint8_t *target)
{
	uint32_t *slots = allocate(sort->count * sizeof(*slots));
	uint32_t *scratch = allocate(sort->count * sizeof(*scratch));
	uint32_t size = sort->shape.size;

	for (uint32_t i = 0; i < sort->count; i++)
		slots[i] = i;
	stable_sort(sort, slots, sort->count, scratch);
	for (uint32_t i = 0; i < sort->count; i++)
		require(memcmp(target + (size_t)i * size,
			       sort->records + (size_t)slots[i] * size,
			       size) == 0);
	free(slots);
	free(scratch);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct sort sort;
	uint8_t *records, *target;

	if (size < HEADER_BYTES)
		return 0;
	memset(&sort, 0, sizeof(sort));
	sort.shape.size = data[AT_SIZE] % 128 + 1;
	choose_keys(&sort, data);
	sort.index_bits = INDEX_BITS_MIN + data[AT_INDEX_BITS] % 50;
	sort.writer_count = data[AT_WRITERS] % WRITERS_MAX + 1;
	sort.level = (enum cpu_level)(data[AT_LEVEL] %
				      ((unsigned)cpu_level_detect() + 1));
	records = make_records(&sort, data + HEADER_BYTES, size - HEADER_BYTES,
			       data[AT_REPEAT] % 32 + 1u);
	choose_splitters(&sort, data);
	partition(&sort);
	target = sorted_records(&sort);
	check_sorted(&sort, target);
	for (unsigned w = 0; w < sort.writer_count; w++) {
		free(sort.writers[w].lists);
		free(sort.writers[w].cursors);
	}
	free(sort.pool.entries);
	free(sort.pool.owners);
	free(sort.pool.directory);
	free(sort.pool.next_grant);
	free(records);
	free(target);
	return 0;
}
