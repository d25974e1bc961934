/*
 * cluster_sample.c - output ranges of about equal size, whatever the keys are
 *
 * Each rank draws keys of its records, in proportion to its part of all
 * records, and all ranks get all of these keys: so all have the same splitters.
 * When the records are in buckets all ranks tell each other their counts, and
 * so all make the same cuts.
 */
#include <inttypes.h>
#include <stdlib.h>

#include "cluster/cluster_state.h"
#include "cluster/collective/cluster_allgather.h"
#include "sort/plan.h"

/* How many bytes of sampled keys each rank sends: long keys are fewer. */
#define KEYS_BYTES_MAX (256 * KIB)

/* --- keys ----------------------------------------------------------------- */

/* The rank's part of the sample of all records; 0 only if it has no records. */
static uint32_t sample_count(const struct cluster *cluster, unsigned node)
{
	uint64_t whole = cluster->agreement.whole_count;
	uint64_t own = cluster->hellos[node].record_count;
	uint64_t count = DIV_ROUND_UP(
		(unsigned __int128)plan_samples(
			whole, cluster->agreement.sampled_splitters) *
			own,
		whole);
	uint64_t most =
		KEYS_BYTES_MAX / cluster->sort_config->shape.keys.length;

	return (uint32_t)MIN(count, MAX(1, most));
}

static uint8_t *draw_keys(const struct cluster *cluster, uint32_t count)
{
	const struct key_list *list = &cluster->sort_config->shape.keys;
	const struct source *source = &cluster->source;
	uint64_t random = 1 + cluster->rank.rank;
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
static int set_splitters(struct cluster *cluster, const uint8_t *keys,
			 uint32_t count)
{
	struct cluster_sample *sample = &cluster->sample;
	struct splitters *splitters = &cluster->splitters;
	uint32_t length = cluster->sort_config->shape.keys.length;
	const uint8_t **each = malloc(count * sizeof(*each));
	uint64_t *prefixes = malloc(count * sizeof(*prefixes));

	sample->key_shape =
		(struct record_shape)RECORD_SHAPE_OF_SLICE(length, 0, length);
	sample->common_key = malloc(length);
	if (!each || !prefixes || !sample->common_key) {
		free(each);
		free(prefixes);
		return failure_no_memory(cluster->failure);
	}
	for (uint32_t i = 0; i < count; i++)
		each[i] = keys + (size_t)i * length;
	splitters_init_sampled(splitters, &sample->key_shape, each, count,
			       prefixes, cluster->agreement.sampled_splitters);
	memcpy(sample->common_key, each[0], length);
	splitters->common_record = sample->common_key;
	splitters_set_shape(splitters, &cluster->sort_config->shape);
	free(each);
	free(prefixes);
	return 0;
}

int cluster_sample_splitters(struct cluster *cluster)
{
	uint64_t begin_ns = clock_now_ns(), bytes;
	uint32_t key_length = cluster->sort_config->shape.keys.length;
	uint32_t own_count = sample_count(cluster, cluster->rank.rank);
	uint8_t *keys = draw_keys(cluster, own_count);
	struct cluster_allgather gather = {
		.rank = &cluster->rank,
		.own = keys,
		.own_bytes = (uint64_t)own_count * key_length,
	};
	int error;

	if (!keys)
		return failure_no_memory(cluster->failure);
	for (unsigned i = 0; i < cluster->rank.node_count; i++)
		gather.bytes[i] =
			(uint64_t)sample_count(cluster, i) * key_length;
	error = cluster_allgather(&gather, cluster->exchange, cluster->failure);
	bytes = gather.offset[cluster->rank.node_count];
	if (error == 0)
		error = set_splitters(cluster, gather.all,
				      (uint32_t)(bytes / key_length));
	free(gather.all);
	free(keys);
	cluster_add_ns(cluster, CLUSTER_SAMPLE_NS, &begin_ns);
	return error;
}

/* --- counts --------------------------------------------------------------- */

static bool is_equal(const void *context, uint32_t bucket)
{
	return splitters_bucket_is_equal(context, bucket);
}

/* Turn the rank's counts, as they have come, into numbers.  The cuts depend on
 * them: their sum must be the records that the rank has. */
static int read_counts(struct cluster *cluster, unsigned node,
		       uint32_t bucket_count)
{
	uint32_t *counts = cluster->sample.counts + (size_t)node * bucket_count;
	uint64_t sum = 0;

	for (uint32_t b = 0; b < bucket_count; b++) {
		counts[b] = load_le32((const uint8_t *)&counts[b]);
		sum += counts[b];
	}
	if (sum == cluster->hellos[node].record_count)
		return 0;
	return exchange_blame(cluster->exchange, node, cluster->failure,
			      "has %" PRIu64
			      " records in its buckets, not %" PRIu64,
			      sum, cluster->hellos[node].record_count);
}

int cluster_sample_cuts(struct cluster *cluster)
{
	const struct splitters *splitters = &cluster->splitters;
	const uint32_t *own_start = cluster->send.start;
	unsigned node_count = cluster->rank.node_count;
	uint32_t bucket_count = splitters->bucket_count;
	uint8_t *own = malloc(4 * (size_t)bucket_count);
	struct cluster_allgather gather = {
		.rank = &cluster->rank,
		.own = own,
		.own_bytes = 4 * (uint64_t)bucket_count,
	};
	int error;

	if (!own)
		return failure_no_memory(cluster->failure);
	for (unsigned i = 0; i < node_count; i++)
		gather.bytes[i] = gather.own_bytes;
	for (uint32_t b = 0; b < bucket_count; b++)
		store_le32(own + 4 * (size_t)b,
			   own_start[b + 1] - own_start[b]);
	error = cluster_allgather(&gather, cluster->exchange, cluster->failure);
	cluster->sample.counts = (uint32_t *)gather.all;
	for (unsigned i = 0; i < node_count && error == 0; i++)
		error = read_counts(cluster, i, bucket_count);
	if (error == 0)
		shares_cut(cluster->send.cuts, node_count,
			   cluster->sample.counts, node_count, bucket_count,
			   cluster->sort_config->unique ? NULL : is_equal,
			   splitters);
	free(own);
	return error;
}
