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

/* All sampled blocks, in the order of their runs' numbers; those of a run in
 * the order of their places.  So a stable sort by keys gives the order that
 * cuts are places in. */
struct sampled {
	uint32_t count;
	uint8_t *keys;
	struct sampled_block {
		uint32_t run, place;
		uint64_t record_count;
	} * blocks;
	uint64_t record_count;
	/* [run_count + 1]: where the next block of the run with this number
	 * goes. */
	uint32_t *next;
};

static void free_sampled(struct sampled *sampled)
{
	free(sampled->keys);
	free(sampled->blocks);
	free(sampled->next);
}

/* False: the rank says what cannot be. */
static bool count_blocks(struct sampled *sampled,
			 const struct record_shape *key_shape,
			 const struct run_sample *sample)
{
	uint32_t each = run_cut_sample_bytes(key_shape);

	for (uint64_t i = 0; i < sample->byte_count / each; i++) {
		uint32_t run = load_le32(sample->bytes + i * each +
					 key_shape->size + RUN_AT);

		if (run >= sample->run_count)
			return false;
		sampled->next[sample->numbers[run] + 1]++;
	}
	return true;
}

/* The same; its keys ascend. */
static bool read_sample(struct sampled *sampled,
			const struct record_shape *key_shape,
			const struct run_sample *sample)
{
	uint32_t each = run_cut_sample_bytes(key_shape);
	uint64_t left = sample->record_count;
	const uint8_t *before = sample->bytes;

	for (uint64_t i = 0; i < sample->byte_count / each; i++) {
		const uint8_t *key = sample->bytes + i * each;
		const uint8_t *words = key + key_shape->size;
		uint32_t number = sample->numbers[load_le32(words + RUN_AT)];
		uint64_t records = load_le64(words + RECORDS_AT);
		uint32_t at;

		if (records > left ||
		    record_compare(key_shape, before, key) > 0)
			return false;
		before = key;
		left -= records;
		at = sampled->next[number]++;
		memcpy(sampled->keys + (size_t)at * key_shape->size, key,
		       key_shape->size);
		sampled->blocks[at] = (struct sampled_block){
			.run = number,
			.place = load_le32(words + PLACE_AT),
			.record_count = records,
		};
	}
	sampled->record_count += sample->record_count;
	return left == 0;
}

/* 0; -ENOMEM with *failure; or -EBADMSG. */
static int read_samples(struct sampled *sampled,
			const struct record_shape *key_shape,
			const struct run_sample *samples, unsigned rank_count,
			unsigned *bad, struct failure *failure)
{
	uint32_t run_count = 0;

	for (unsigned i = 0; i < rank_count; i++)
		run_count += samples[i].run_count;
	sampled->keys = malloc((size_t)sampled->count * key_shape->size + 1);
	sampled->blocks = malloc(sampled->count * sizeof(*sampled->blocks) + 1);
	sampled->next = calloc((size_t)run_count + 1, sizeof(*sampled->next));
	if (!sampled->keys || !sampled->blocks || !sampled->next)
		return failure_no_memory(failure);
	for (unsigned i = 0; i < rank_count; i++) {
		*bad = i;
		if (!count_blocks(sampled, key_shape, &samples[i]))
			return -EBADMSG;
	}
	for (uint32_t r = 0; r < run_count; r++)
		sampled->next[r + 1] += sampled->next[r];
	for (unsigned i = 0; i < rank_count; i++) {
		*bad = i;
		if (!read_sample(sampled, key_shape, &samples[i]))
			return -EBADMSG;
	}
	return 0;
}

/* How many blocks there are in all samples; UINT32_MAX: too many, or a sample
 * is no whole number of them. */
static uint32_t count_sampled(const struct run_sample *samples,
			      unsigned rank_count, uint32_t each, unsigned *bad)
{
	uint64_t count = 0;

	for (unsigned i = 0; i < rank_count; i++) {
		*bad = i;
		if (samples[i].byte_count % each != 0 ||
		    samples[i].byte_count / each >= UINT32_MAX - count)
			return UINT32_MAX;
		count += samples[i].byte_count / each;
	}
	return (uint32_t)count;
}

/* Cut r lies where the parts of the ranks before r end. */
static void find_cuts(struct run_cuts *cuts, const struct sampled *sampled,
		      const uint32_t *order, uint32_t key_bytes)
{
	uint64_t before = 0;
	unsigned parts = 0, parts_before = 0;
	uint32_t i = 0;

	for (unsigned r = 0; r < cuts->rank_count; r++)
		parts += cuts->has_part[r];
	assert(parts > 0);

	for (unsigned r = 1; r < cuts->rank_count; r++) {
		uint64_t wanted;
		uint8_t *key = cuts->keys + (size_t)r * key_bytes;
		const struct sampled_block *block;

		parts_before += cuts->has_part[r - 1];
		wanted = (uint64_t)((unsigned __int128)sampled->record_count *
				    parts_before / parts);
		while (i < sampled->count && before < wanted)
			before += sampled->blocks[order[i++]].record_count;
		cuts->cuts[r] = (struct run_cut){ .key = key };
		if (sampled->count == 0)
			continue;
		block = &sampled->blocks[order[MIN(i, sampled->count - 1)]];
		memcpy(key,
		       sampled->keys +
			       (size_t)order[MIN(i, sampled->count - 1)] *
				       key_bytes,
		       key_bytes);
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
		  unsigned rank_count, enum cpu_level kernel, unsigned *bad,
		  struct failure *failure)
{
	struct sampled sampled = {
		.count = count_sampled(samples, rank_count,
				       run_cut_sample_bytes(key_shape), bad),
	};
	uint32_t *order = NULL;
	int error;

	*cuts = (struct run_cuts){ .rank_count = rank_count };
	if (sampled.count == UINT32_MAX)
		return -EBADMSG;
	note_parts(cuts, has_part);
	cuts->cuts = calloc(rank_count + 1, sizeof(*cuts->cuts));
	cuts->keys = calloc(rank_count + 1, key_shape->size);
	error = cuts->cuts && cuts->keys
			? read_samples(&sampled, key_shape, samples, rank_count,
				       bad, failure)
			: failure_no_memory(failure);
	if (error == 0) {
		order = run_index_order_keys(key_shape, sampled.keys,
					     sampled.count, kernel, failure);
		if (!order)
			error = -ENOMEM;
	}
	if (error == 0)
		find_cuts(cuts, &sampled, order, key_shape->size);
	free(order);
	free_sampled(&sampled);
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
