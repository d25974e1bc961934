/*
 * run_cut.c - samples blocks, and finds the cuts between ranks
 */
#include "external/runs/run_cut.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#include "base/failure.h"

/* Numbers of a block in a sample, behind its key: of the run among those of
 * the rank, its place, and the records from it up to the next block. */
#define RUN_AT 0
#define PLACE_AT 4
#define RECORDS_AT 8
#define NUMBERS_BYTES 16

uint32_t run_cut_sample_bytes(const struct record_shape *key_shape)
{
	return key_shape->size + NUMBERS_BYTES;
}

/* --- our sample ----------------------------------------------------------- */

static void write_block(const struct run_index *index, uint32_t block,
			uint8_t *target)
{
	unsigned run = run_index_find(index->runs, index->run_count, block);
	uint32_t key_bytes = index->key_shape.size;

	memcpy(target, run_index_key(index, block), key_bytes);
	store_le32(target + key_bytes + RUN_AT, run);
	store_le32(target + key_bytes + PLACE_AT,
		   block - index->runs[run].first_block);
}

int run_cut_sample(const struct run_index *index, uint32_t block_count_max,
		   enum cpu_level kernel, uint8_t **bytes, uint64_t *byte_count,
		   struct failure *failure)
{
	uint32_t count = index->block_count;
	uint64_t step =
		MAX(1, DIV_ROUND_UP((uint64_t)count, MAX(1, block_count_max)));
	uint64_t each = run_cut_sample_bytes(&index->key_shape);
	uint32_t *order = run_index_order_keys(&index->key_shape, index->keys,
					       count, kernel, failure);
	uint64_t records = 0;

	*byte_count = DIV_ROUND_UP(count, step) * each;
	*bytes = order ? malloc(*byte_count + 1) : NULL;
	if (order && !*bytes)
		failure_no_memory(failure);
	for (uint32_t i = 0; *bytes && i < count; i++) {
		uint8_t *target = *bytes + i / step * each;

		if (i % step == 0) {
			write_block(index, order[i], target);
			records = 0;
		}
		records += index->blocks[order[i]].record_count;
		store_le64(target + index->key_shape.size + RECORDS_AT,
			   records);
	}
	free(order);
	return *bytes ? 0 : -ENOMEM;
}

/* --- all ranks' samples --------------------------------------------------- */

struct sampled_block {
	const uint8_t *key; /* in the sample */
	uint32_t run, place;
	uint64_t record_count;
};

/* The order that cuts are places in. */
static int compare(const void *a, const void *b, void *key_shape)
{
	const struct sampled_block *first = a, *second = b;
	int order = record_compare(key_shape, first->key, second->key);

	if (order == 0)
		order = (first->run > second->run) - (first->run < second->run);
	if (order == 0)
		order = (first->place > second->place) -
			(first->place < second->place);
	return order;
}

/* Its keys ascend.  False: the rank says what cannot be. */
static bool read_sample(struct sampled_block *blocks,
			const struct record_shape *key_shape,
			const struct run_sample *sample)
{
	uint32_t each = run_cut_sample_bytes(key_shape);
	uint64_t left = sample->record_count;
	const uint8_t *before = sample->bytes;

	for (uint64_t i = 0; i < sample->byte_count / each; i++) {
		const uint8_t *key = sample->bytes + i * each;
		const uint8_t *words = key + key_shape->size;
		uint32_t run = load_le32(words + RUN_AT);
		uint64_t records = load_le64(words + RECORDS_AT);

		if (run >= sample->run_count || records > left ||
		    record_compare(key_shape, before, key) > 0)
			return false;
		blocks[i] = (struct sampled_block){
			.key = key,
			.run = sample->numbers[run],
			.place = load_le32(words + PLACE_AT),
			.record_count = records,
		};
		before = key;
		left -= records;
	}
	return left == 0;
}

/* Cut r lies where the parts of the ranks before r end. */
static void find_cuts(struct run_cuts *cuts, const struct sampled_block *blocks,
		      uint64_t block_count, uint64_t record_count,
		      uint32_t key_bytes)
{
	uint64_t before = 0, i = 0;
	unsigned parts = 0, parts_before = 0;

	for (unsigned r = 0; r < cuts->rank_count; r++)
		parts += cuts->has_part[r];
	assert(parts > 0);

	for (unsigned r = 1; r < cuts->rank_count; r++) {
		uint64_t wanted;
		uint8_t *key = cuts->keys + (size_t)r * key_bytes;
		const struct sampled_block *block;

		parts_before += cuts->has_part[r - 1];
		wanted = (uint64_t)((unsigned __int128)record_count *
				    parts_before / parts);
		while (i < block_count && before < wanted)
			before += blocks[i++].record_count;
		cuts->cuts[r] = (struct run_cut){ .key = key };
		if (block_count == 0)
			continue;
		block = &blocks[MIN(i, block_count - 1)];
		memcpy(key, block->key, key_bytes);
		cuts->cuts[r].run = block->run;
		cuts->cuts[r].place = block->place;
	}
}

static void note_parts(struct run_cuts *cuts, const bool *has_part)
{
	cuts->has_part = has_part;
	while (!has_part[cuts->first_part])
		cuts->first_part++;
	for (unsigned r = 0; r < cuts->rank_count; r++)
		if (has_part[r])
			cuts->last_part = r;
}

int run_cuts_make(struct run_cuts *cuts, const struct record_shape *key_shape,
		  const struct run_sample *samples, const bool *has_part,
		  unsigned rank_count, unsigned *bad, struct failure *failure)
{
	uint32_t each = run_cut_sample_bytes(key_shape);
	uint64_t block_count = 0, record_count = 0;
	struct sampled_block *blocks, *next;
	int error = 0;

	*cuts = (struct run_cuts){ .rank_count = rank_count };
	for (*bad = 0; *bad < rank_count; ++*bad) {
		if (samples[*bad].byte_count % each != 0)
			return -EBADMSG;
		block_count += samples[*bad].byte_count / each;
		record_count += samples[*bad].record_count;
	}
	note_parts(cuts, has_part);
	cuts->cuts = calloc(rank_count + 1, sizeof(*cuts->cuts));
	cuts->keys = calloc(rank_count + 1, key_shape->size);
	blocks = next = calloc(block_count + 1, sizeof(*blocks));
	if (!cuts->cuts || !cuts->keys || !blocks)
		error = failure_no_memory(failure);
	for (unsigned i = 0; i < rank_count && error == 0; i++) {
		*bad = i;
		if (!read_sample(next, key_shape, &samples[i]))
			error = -EBADMSG;
		next += samples[i].byte_count / each;
	}
	if (error == 0) {
		qsort_r(blocks, block_count, sizeof(*blocks), compare,
			(void *)key_shape);
		find_cuts(cuts, blocks, block_count, record_count,
			  key_shape->size);
	}
	free(blocks);
	return error;
}

void run_cuts_free(struct run_cuts *cuts)
{
	free(cuts->cuts);
	free(cuts->keys);
	memset(cuts, 0, sizeof(*cuts));
}

/* --- blocks and cuts ------------------------------------------------------ */

int run_cut_compare(const struct run_cut *cut,
		    const struct record_shape *key_shape, const uint8_t *key,
		    uint32_t number)
{
	int order = record_compare(key_shape, key, cut->key);

	if (order != 0)
		return order;
	return (number > cut->run) - (number < cut->run);
}

uint32_t run_cut_block(const struct run_cut *cut, const struct run_index *index,
		       unsigned run, uint32_t number)
{
	uint32_t first = index->runs[run].first_block;
	uint32_t low = first, high = first + index->runs[run].block_count;

	if (number == cut->run)
		return (uint32_t)MIN((uint64_t)first + cut->place, high);
	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (run_cut_compare(cut, &index->key_shape,
				    run_index_key(index, middle), number) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}
