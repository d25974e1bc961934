/*
 * cluster_sample.c - output ranges of about equal size, whatever the keys
 * are
 */
#include "cluster/memory/cluster_sample.h"

#include <inttypes.h>
#include <stdlib.h>

#include "base/base.h"
#include "cluster/collective/cluster_allgather.h"
#include "sort/plan.h"

/* How many bytes of sampled keys each rank sends: long keys are fewer. */
#define KEYS_BYTES_MAX (256 * KIB)

/* --- keys ----------------------------------------------------------------- */

/* The rank's part of the sample of all records; 0 only if it has no records. */
static uint32_t sample_count(const struct cluster_sample *sample, unsigned node)
{
	uint64_t whole = sample->agreement->whole_count;
	uint64_t own = sample->hellos[node].record_count;
	uint64_t count = DIV_ROUND_UP(
		(unsigned __int128)plan_samples(
			whole, sample->agreement->sampled_splitters) *
			own,
		whole);
	uint64_t most = KEYS_BYTES_MAX / sample->shape->keys.length;

	return (uint32_t)MIN(count, MAX(1, most));
}

static uint8_t *draw_keys(const struct cluster_sample *sample, uint32_t count)
{
	const struct key_list *list = &sample->shape->keys;
	const struct source *source = sample->source;
	uint64_t random = 1 + sample->rank->rank;
	uint8_t *keys = malloc((size_t)count * list->length + 1);

	for (uint32_t i = 0; keys && i < count; i++) {
		uint64_t number =
			splitters_draw(source->record_count, count, i, &random);

		key_list_encode(list, source->ops->record(source, number),
				keys + (size_t)i * list->length);
	}
	return keys;
}

/* Splitters read keys as if they were records by themselves. */
static int set_splitters(struct cluster_sample *sample,
			 struct splitters *splitters, const uint8_t *keys,
			 uint32_t count, struct failure *failure)
{
	uint32_t length = sample->shape->keys.length;
	const uint8_t **each = malloc(count * sizeof(*each));
	uint64_t *prefixes = malloc(count * sizeof(*prefixes));

	sample->key_shape =
		(struct record_shape)RECORD_SHAPE_OF_SLICE(length, 0, length);
	sample->common_key = malloc(length);
	if (!each || !prefixes || !sample->common_key) {
		free(each);
		free(prefixes);
		return failure_no_memory(failure);
	}
	for (uint32_t i = 0; i < count; i++)
		each[i] = keys + (size_t)i * length;
	splitters_init_sampled(splitters, &sample->key_shape, each, count,
			       prefixes, sample->agreement->sampled_splitters);
	memcpy(sample->common_key, each[0], length);
	splitters->common_record = sample->common_key;
	splitters_set_shape(splitters, sample->shape);
	free(each);
	free(prefixes);
	return 0;
}

int cluster_sample_splitters(struct cluster_sample *sample,
			     struct splitters *splitters,
			     struct failure *failure)
{
	uint32_t key_length = sample->shape->keys.length;
	uint32_t own_count = sample_count(sample, sample->rank->rank);
	uint8_t *keys = draw_keys(sample, own_count);
	struct cluster_allgather gather = {
		.rank = sample->rank,
		.own = keys,
		.own_bytes = (uint64_t)own_count * key_length,
	};
	uint64_t bytes;
	int error;

	if (!keys)
		return failure_no_memory(failure);
	for (unsigned i = 0; i < sample->rank->node_count; i++)
		gather.bytes[i] =
			(uint64_t)sample_count(sample, i) * key_length;
	error = cluster_allgather(&gather, sample->exchange, failure);
	bytes = gather.offset[sample->rank->node_count];
	if (error == 0)
		error = set_splitters(sample, splitters, gather.all,
				      (uint32_t)(bytes / key_length), failure);
	free(gather.all);
	free(keys);
	return error;
}

/* --- counts --------------------------------------------------------------- */

static bool is_equal(const void *context, uint32_t bucket)
{
	return splitters_bucket_is_equal(context, bucket);
}

static bool is_never_cut(const void *context, uint32_t bucket)
{
	(void)context, (void)bucket;
	return false;
}

/* The cuts depend on the counts: their sum must be the records that the rank
 * has. */
static int read_counts_of(struct cluster_sample *sample,
			  const struct cluster_allgather *gather, unsigned node,
			  uint32_t bucket_count, struct failure *failure)
{
	const uint8_t *told = gather->all + gather->offset[node];
	uint32_t *counts = sample->counts + (size_t)node * bucket_count;
	uint64_t sum = 0;

	for (uint32_t b = 0; b < bucket_count; b++) {
		counts[b] = load_le32(told + 4 * (size_t)b);
		sum += counts[b];
	}
	if (sum == sample->hellos[node].record_count)
		return 0;
	return exchange_blame(sample->exchange, node, failure,
			      "has %" PRIu64
			      " records in its buckets, not %" PRIu64,
			      sum, sample->hellos[node].record_count);
}

static int read_counts(struct cluster_sample *sample,
		       const struct cluster_allgather *gather,
		       uint32_t bucket_count, struct failure *failure)
{
	unsigned node_count = sample->rank->node_count;
	int error = 0;

	sample->counts = malloc(gather->offset[node_count]);
	if (!sample->counts)
		return failure_no_memory(failure);
	for (unsigned i = 0; i < node_count && !error; i++)
		error = read_counts_of(sample, gather, i, bucket_count,
				       failure);
	return error;
}

int cluster_sample_cuts(struct cluster_sample *sample,
			const struct splitters *splitters,
			const uint32_t *own_start, struct share_cut *cuts,
			struct failure *failure)
{
	unsigned node_count = sample->rank->node_count;
	uint32_t bucket_count = splitters->bucket_count;
	uint8_t *own = malloc(4 * (size_t)bucket_count);
	struct cluster_allgather gather = {
		.rank = sample->rank,
		.own = own,
		.own_bytes = 4 * (uint64_t)bucket_count,
	};
	int error;

	if (!own)
		return failure_no_memory(failure);
	for (unsigned i = 0; i < node_count; i++)
		gather.bytes[i] = gather.own_bytes;
	for (uint32_t b = 0; b < bucket_count; b++)
		store_le32(own + 4 * (size_t)b,
			   own_start[b + 1] - own_start[b]);
	error = cluster_allgather(&gather, sample->exchange, failure);
	if (error == 0)
		error = read_counts(sample, &gather, bucket_count, failure);
	if (error == 0)
		shares_cut(cuts, node_count, sample->counts, node_count,
			   bucket_count,
			   sample->keeps_equal_together ? is_never_cut
							: is_equal,
			   splitters);
	free(gather.all);
	free(own);
	return error;
}

void cluster_sample_free(struct cluster_sample *sample)
{
	free(sample->common_key);
	free(sample->counts);
	sample->common_key = NULL;
	sample->counts = NULL;
}
