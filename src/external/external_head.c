/*
 * external_head.c - the first records of the order, of all that has been read
 *
 * The records of each batch that may be wanted are brought into order, and so
 * many of them as are wanted are appended to those of the batches before.  When
 * these fill their own batch, they are brought into order together, and what is
 * not wanted any more makes room.  The last record that is wanted of either is
 * a bound: what lies behind it gets no entry when it is read.  Of records in
 * random order the n-th is wanted with the chance head / n, so that few are
 * ever ordered.
 *
 * Where memory has no room for so many records twice, the batches become runs,
 * none of which is longer; and their index has a bound.
 *
 * DuckDB's and DataFusion's top-N operators bound what they read so, too.
 */
#include <errno.h>
#include <stdlib.h>

#include "external/external_state.h"

void external_begin_head(struct external *external)
{
	struct external_head *head = &external->head;

	atomic_init(&head->word_max, UINT64_MAX);
	if (external->plan.keeps_head)
		head->batch = pipeline_take(&external->pipeline.free);
}

/* --- bounds --------------------------------------------------------------- */

static void lower_bound(struct external *external, uint64_t word)
{
	_Atomic uint64_t *word_max = &external->head.word_max;

	if (word < atomic_load_explicit(word_max, memory_order_relaxed))
		atomic_store_explicit(word_max, word, memory_order_relaxed);
}

/* A batch that is sorted in place bounds what is wanted, if it has as many
 * records as are: none is wanted any more whose key is greater than the last
 * one's.  One with the same key comes later in the input, so it is not wanted
 * either, if the first word is the whole key; unless those that are equal
 * become one. */
static void bound_by_batch(struct external *external, const struct batch *batch)
{
	const struct record_shape *shape = &external->request.shape;
	uint64_t wanted = external->request.head_records;
	uint64_t slot, word;

	if (batch->record_count < wanted)
		return;
	slot = batch_slot(batch, wanted - 1);
	word = record_key_word(shape, batch->records + slot * shape->size, 0);
	if (shape->keys.length <= sizeof(word) && word > 0 &&
	    !external->config->sort->unique)
		word--;
	lower_bound(external, word);
}

/* The records of a block are not greater than the first key of the next block
 * of the run: the least such key that as many records as are wanted are not
 * greater than is a bound. */
bool external_bound_by_runs(struct external *external)
{
	const struct run_index *index = &external->runs.index;
	uint64_t left = external->request.head_records;
	struct failure failure;
	uint32_t *order;

	/* Equal records of several runs will become one. */
	if (left == 0 || external->config->sort->unique)
		return true;
	order = run_index_order_keys(&index->key_shape, index->keys,
				     index->block_count,
				     external->config->sort->kernel, &failure);
	if (!order)
		return external_good(external, -ENOMEM, &failure);
	for (uint32_t i = 0; i < index->block_count; i++) {
		uint32_t block = order[i];
		uint32_t count;

		if (index->blocks[block].first_record == 0)
			continue;
		count = index->blocks[block - 1].record_count;
		left -= MIN(left, count);
		if (left > 0)
			continue;
		lower_bound(external,
			    record_key_word(&index->key_shape,
					    run_index_key(index, block), 0));
		break;
	}
	free(order);
	return true;
}

/* --- records that are kept ------------------------------------------------ */

/* Put the entries of all records that are kept into buckets. */
static bool partition(struct external *external)
{
	struct external_head *head = &external->head;
	struct batch *batch = head->batch;
	const struct bucketing_config config = { .source = &head->source };
	static const struct source_ops operations = {
		.open = source_walk_open,
		.next = source_walk_next,
		.share = source_walk_share,
		.record = source_walk_record,
	};

	head->source = (struct source){
		.ops = &operations,
		.record_count = batch->record_count,
		.slot_count = batch->record_count,
		.record_size = external->request.shape.size,
		.base = batch->records,
	};
	batch_begin(batch, &external->ordering.wiring, &config);
	splitters_init_static(&batch->splitters,
			      external->reading.lane[0].static_kind,
			      batch->plan.bucket_count);
	bucketing_pass_all(&batch->bucketing, true, true);
	batch_count_crowded(batch);
	return !first_failure_stops(&external->failure);
}

/* Keep of the records that are kept those that are still wanted. */
static bool tidy(struct external *external)
{
	struct batch *batch = external->head.batch;

	if (!partition(external) || !external_sort_in_place(external, batch))
		return false;
	bound_by_batch(external, batch);
	batch_compact(batch, external->request.shape.size,
		      local_sort_kernel(external->config->sort->kernel));
	return true;
}

bool external_empty_into_head(struct external *external, struct batch *batch)
{
	struct batch *kept = external->head.batch;
	uint32_t size = external->request.shape.size;

	if (!external_sort_in_place(external, batch))
		return false;
	bound_by_batch(external, batch);
	if (kept->record_count + batch->record_count > kept->capacity &&
	    !tidy(external))
		return false;
	batch_gather(batch, gather_kernel(external->config->sort->kernel, size),
		     size, 0, (uint32_t)batch->record_count,
		     kept->records + kept->record_count * size);
	kept->record_count += batch->record_count;
	return true;
}

bool external_end_head(struct external *external)
{
	struct external_head *head = &external->head;
	struct pipeline *pipeline = &external->pipeline;
	struct batch *batch;

	if (!head->batch)
		return true;
	while ((batch = pipeline_take(&pipeline->full))) {
		if (!external_empty_into_head(external, batch))
			return false;
		pipeline_put(&pipeline->free, batch);
	}
	/* The keys of an empty stream are of no kind that splitters have. */
	if (head->batch->record_count == 0) {
		pipeline_put(&pipeline->free, head->batch);
		return true;
	}
	if (!partition(external))
		return false;
	pipeline_put(&pipeline->full, head->batch);
	return true;
}
