/*
 * cluster_sample.c - shares of about equal size, whatever the keys are
 *
 * Each rank draws keys of its records, as many as its part of the whole is, and
 * all get all of them: so all have the same splitters.  When the records are in
 * buckets all tell all their counts, and so all cut the same shares.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "cluster/cluster_state.h"

/* Of sampled keys, from each rank; long keys are fewer keys. */
#define KEYS_BYTES_MAX (256 * KIB)

/* --- one message from each to all ------------------------------------------
 */

/* What a rank has to say is as long as all others expect it to be: so a sum of
 * lengths does not wrap, and all find their part. */
struct notice {
	const struct cluster *cluster;
	const uint8_t *own;
	uint64_t bytes[RANK_NODES_MAX]; /* of each rank's */
	uint8_t *all; /* one behind the other, in rank order */
	uint64_t offset[RANK_NODES_MAX + 1];
};

static void read_notice(void *context, unsigned node, uint64_t offset,
			uint8_t *target, size_t byte_count)
{
	const struct notice *notice = context;

	(void)node;
	memcpy(target, notice->own + offset, byte_count);
}

static struct exchange_length
notice_length(const void *context, unsigned source, unsigned destination)
{
	const struct notice *notice = context;

	(void)destination;
	return (struct exchange_length){ notice->bytes[source], 1, 0 };
}

static int prepare_notices(void *context, const uint64_t *receive_bytes,
			   struct failure *failure)
{
	struct notice *notice = context;
	unsigned own = notice->cluster->rank.rank;
	uint64_t bytes = 0;

	(void)receive_bytes;
	for (unsigned i = 0; i < notice->cluster->rank.node_count; i++) {
		notice->offset[i] = bytes;
		bytes += notice->bytes[i];
	}
	notice->offset[notice->cluster->rank.node_count] = bytes;
	notice->all = malloc(bytes + 1);
	if (!notice->all)
		return failure_set(failure, EXIT_RESOURCES, NULL, ENOMEM,
				   "memory");
	if (notice->bytes[own] > 0)
		memcpy(notice->all + notice->offset[own], notice->own,
		       notice->bytes[own]);
	return 0;
}

static uint8_t *place_notice(void *context, unsigned node, uint64_t offset,
			     size_t *room)
{
	const struct notice *notice = context;

	*room = notice->offset[node + 1] - notice->offset[node] - offset;
	return notice->all + notice->offset[node] + offset;
}

static void note_arrival(void *context, unsigned node, uint64_t prefix_bytes,
			 bool whole)
{
	(void)context;
	(void)node;
	(void)prefix_bytes;
	(void)whole;
}

/* The caller frees notice->all, also after an error. */
static int give_notice(struct cluster *cluster, struct notice *notice)
{
	uint64_t send_bytes[RANK_NODES_MAX];
	struct exchange_collective collective = {
		.context = notice,
		.send_bytes = send_bytes,
		.read = read_notice,
		.length = notice_length,
		.prepare = prepare_notices,
		.place = place_notice,
		.arrived = note_arrival,
	};
	int error;

	for (unsigned i = 0; i < cluster->rank.node_count; i++)
		send_bytes[i] = notice->bytes[cluster->rank.rank];
	error = exchange_begin(cluster->exchange, &collective,
			       cluster->failure);
	return error ? error
		     : exchange_finish(cluster->exchange, cluster->failure);
}

static int no_memory(struct cluster *cluster)
{
	return failure_set(cluster->failure, EXIT_RESOURCES, NULL, ENOMEM,
			   "memory");
}

/* --- keys ------------------------------------------------------------------
 */

/* A rank's part of the sample that the whole should have; 0 only if it has no
 * records. */
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
		KEYS_BYTES_MAX / cluster->sorter.config->shape.key_length;

	return (uint32_t)MIN(count, MAX(1, most));
}

static uint8_t *draw_keys(const struct cluster *cluster, uint32_t count)
{
	const struct sorter *sorter = &cluster->sorter;
	const struct record_shape *shape = &sorter->config->shape;
	uint64_t random = 1 + cluster->rank.rank;
	uint8_t *keys = malloc((size_t)count * shape->key_length + 1);

	for (uint32_t i = 0; keys && i < count; i++) {
		uint64_t number = splitters_draw(sorter->input.record_count,
						 count, i, &random);

		memcpy(keys + (size_t)i * shape->key_length,
		       input_record(&sorter->input, number) + shape->key_offset,
		       shape->key_length);
	}
	return keys;
}

/*
 * Splitters look at keys as if they were records by themselves; records are
 * compared with the prefix that keys have in common, so it must lie in one.
 */
static int set_splitters(struct cluster *cluster, const uint8_t *keys,
			 uint32_t count)
{
	const struct record_shape *shape = &cluster->sorter.config->shape;
	const struct record_shape key_shape = {
		.size = shape->key_length,
		.key_length = shape->key_length,
	};
	struct splitters *splitters = &cluster->sorter.splitters;
	const uint8_t **sample = malloc(count * sizeof(*sample));
	uint64_t *windows = malloc(count * sizeof(*windows));

	cluster->prefix_record = calloc(1, shape->size);
	if (!sample || !windows || !cluster->prefix_record) {
		free(sample);
		free(windows);
		return no_memory(cluster);
	}
	for (uint32_t i = 0; i < count; i++)
		sample[i] = keys + (size_t)i * shape->key_length;
	splitters_init_sampled(splitters, &key_shape, sample, count, windows,
			       cluster->agreement.sampled_splitters);
	memcpy(cluster->prefix_record + shape->key_offset, sample[0],
	       shape->key_length);
	splitters->prefix = cluster->prefix_record;
	free(sample);
	free(windows);
	return 0;
}

int cluster_sample(struct cluster *cluster)
{
	uint32_t key_length = cluster->sorter.config->shape.key_length;
	uint8_t *keys =
		draw_keys(cluster, sample_count(cluster, cluster->rank.rank));
	struct notice notice = { .cluster = cluster, .own = keys };
	uint64_t bytes;
	int error;

	if (!keys)
		return no_memory(cluster);
	for (unsigned i = 0; i < cluster->rank.node_count; i++)
		notice.bytes[i] =
			(uint64_t)sample_count(cluster, i) * key_length;
	error = give_notice(cluster, &notice);
	bytes = notice.offset[cluster->rank.node_count];
	if (error == 0)
		error = set_splitters(cluster, notice.all,
				      (uint32_t)(bytes / key_length));
	free(notice.all);
	free(keys);
	return error;
}

/* --- counts ----------------------------------------------------------------
 */

static bool is_equal(const void *context, uint32_t bucket)
{
	return splitters_bucket_is_equal(context, bucket);
}

/* Shares are cut by them: they are of the records that the rank has. */
static int take_counts(struct cluster *cluster, const struct notice *notice,
		       unsigned node)
{
	uint32_t bucket_count = cluster->sorter.splitters.bucket_count;
	const uint8_t *said = notice->all + notice->offset[node];
	uint32_t *counts = cluster->counts + (size_t)node * bucket_count;
	uint64_t sum = 0;

	for (uint32_t b = 0; b < bucket_count; b++) {
		counts[b] = load_le32(said + 4 * (size_t)b);
		sum += counts[b];
	}
	if (sum == cluster->hellos[node].record_count)
		return 0;
	return exchange_blame(cluster->exchange, node, cluster->failure,
			      "has %" PRIu64
			      " records in its buckets, not %" PRIu64,
			      sum, cluster->hellos[node].record_count);
}

static int read_counts(struct cluster *cluster, const struct notice *notice)
{
	unsigned node_count = cluster->rank.node_count;
	int error = 0;

	cluster->counts = malloc(notice->offset[node_count]);
	if (!cluster->counts)
		return no_memory(cluster);
	for (unsigned i = 0; i < node_count && !error; i++)
		error = take_counts(cluster, notice, i);
	return error;
}

int cluster_count(struct cluster *cluster)
{
	const struct splitters *splitters = &cluster->sorter.splitters;
	uint32_t bucket_count = splitters->bucket_count;
	uint8_t *own = malloc(4 * (size_t)bucket_count);
	struct notice notice = { .cluster = cluster, .own = own };
	int error;

	if (!own)
		return no_memory(cluster);
	for (unsigned i = 0; i < cluster->rank.node_count; i++)
		notice.bytes[i] = 4 * (uint64_t)bucket_count;
	for (uint32_t b = 0; b < bucket_count; b++)
		store_le32(own + 4 * (size_t)b,
			   cluster->own_start[b + 1] - cluster->own_start[b]);
	error = give_notice(cluster, &notice);
	if (error == 0)
		error = read_counts(cluster, &notice);
	if (error == 0)
		shares_cut(cluster->cuts, cluster->rank.node_count,
			   cluster->counts, cluster->rank.node_count,
			   bucket_count, is_equal, splitters);
	free(notice.all);
	free(own);
	return error;
}
