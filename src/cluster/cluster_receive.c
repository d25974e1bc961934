/*
 * cluster_receive.c - what arrives: into buckets, and into order
 */
#include <assert.h>
#include <stdlib.h>

#include "cluster/cluster_state.h"
#include "sort/partition.h"

/* Larger than any datagram, so that each has room in it. */
#define DISCARD_BYTES (64 * KIB)
/* An oversized bucket, sorted by one call, keeps a rank silent: 100 million
 * entries a second, and a margin of ten. */
#define OVERSIZED_ENTRIES_PER_MS 10000
static_assert(1000 + PLAN_RECORDS_MAX / OVERSIZED_ENTRIES_PER_MS <=
		      EXCHANGE_DELAY_MS_MAX,
	      "a rank may say that it is silent for so long");

/* A rank's records, or none of them. */
static struct exchange_length length_of(const void *context, unsigned source,
					unsigned destination)
{
	const struct cluster *cluster = context;

	return (struct exchange_length){
		.head_bytes = cluster->send.targets[destination].head_bytes,
		.unit_bytes = cluster_unit_bytes(cluster),
		.unit_count_max = cluster->hellos[source].record_count,
	};
}

/* --- arriving ------------------------------------------------------------- */

/* Buckets that are complete from all sources may be ordered. */
static void raise_ready(struct cluster *cluster)
{
	uint32_t ready = cluster->receive.bucket_count;

	if (cluster->receive.heads_missing > 0)
		return;
	for (unsigned i = 0; i < cluster->rank.node_count; i++)
		ready = MIN(ready, cluster->receive.sources[i].complete_count);
	if (ready == cluster->receive.bucket_count)
		ready = ORDERER_ALL_READY;
	orderer_set_ready(&cluster->orderer, ready);
}

/* Find in a message's head where its buckets begin.  NULL, or what is wrong
 * with the message. */
static const char *take_head(struct cluster *cluster,
			     struct cluster_source *source)
{
	uint32_t bucket_count = cluster->receive.bucket_count;
	uint64_t start = 0;

	if (load_le64(source->head + 4 * (size_t)bucket_count) !=
	    cluster->send.digest)
		return "divides the keys otherwise than this rank: a rank has "
		       "told other ranks different things";
	for (uint32_t b = 0; b < bucket_count && start <= source->record_count;
	     b++) {
		source->start[b] = (uint32_t)start;
		start += load_le32(source->head + 4 * (size_t)b);
	}
	source->start[bucket_count] = (uint32_t)start;
	source->has_head = true;
	return start == source->record_count
		       ? NULL
		       : "sends other numbers of records than it has announced";
}

/* All sources have told how many records they have in each bucket. */
static void add_up(struct cluster *cluster)
{
	const struct bucket_set set = {
		.first_bucket = cluster->receive.first_bucket,
		.bucket_count = cluster->receive.bucket_count,
		.run_count = cluster->rank.node_count,
		.runs = cluster->receive.runs,
	};

	orderer_add_up(&cluster->orderer, &set);
}

/* Static shares would be too unequal. */
static int begin_discarding(struct cluster *cluster, struct failure *failure)
{
	struct cluster_receive *receive = &cluster->receive;

	receive->discards = true;
	receive->discard_buffer = malloc(DISCARD_BYTES);
	if (receive->discard_buffer)
		return 0;
	return failure_no_memory(failure);
}

static void order(void *context, unsigned worker)
{
	struct cluster *cluster = context;

	orderer_run(&cluster->orderer, worker);
}

static int prepare(void *context, const uint64_t *receive_bytes,
		   struct failure *failure)
{
	struct cluster *cluster = context;
	struct cluster_receive *receive = &cluster->receive;
	struct cluster_source *own = &receive->sources[cluster->rank.rank];
	int error = cluster_check_sums(cluster, failure);

	(void)receive_bytes;
	if (error)
		return error;
	if (cluster_shares_are_skewed(cluster))
		return begin_discarding(cluster, failure);
	error = cluster_make_room(cluster, failure);
	if (error)
		return error;
	if (take_head(cluster, own))
		return failure_set(failure, EXIT_WRONG, NULL, 0,
				   "the counts of our own buckets are wrong");
	own->complete_count = receive->bucket_count;
	receive->heads_missing = cluster->rank.node_count - 1;
	if (receive->heads_missing == 0)
		add_up(cluster);
	raise_ready(cluster);
	receive->orders = true;
	thread_pool_launch_last(&cluster->pool, order, cluster);
	return 0;
}

static void read_message(void *context, unsigned node, uint64_t offset,
			 uint8_t *bytes, size_t byte_count)
{
	const struct cluster *cluster = context;

	cluster_send_read(cluster, node, offset, bytes, byte_count);
}

static uint8_t *place(void *context, unsigned node, uint64_t offset,
		      size_t *room)
{
	struct cluster *cluster = context;
	const struct cluster_source *source = &cluster->receive.sources[node];
	uint32_t record_size = cluster->sort_config->shape.size;

	if (cluster->receive.discards) {
		*room = DISCARD_BYTES;
		return cluster->receive.discard_buffer;
	}
	if (offset < source->head_bytes) {
		*room = source->head_bytes - offset;
		return source->head + offset;
	}
	offset -= source->head_bytes;
	*room = source->record_count * cluster_unit_bytes(cluster) - offset;
	if (cluster_is_by_reference(cluster))
		return (uint8_t *)source->entries + offset;
	return cluster->receive.base + source->first_slot * record_size +
	       offset;
}

/* False: a record has a key of another bucket. */
static bool take_bucket(struct cluster *cluster, unsigned node, uint32_t b)
{
	const struct record_shape *shape = &cluster->sort_config->shape;
	struct cluster_source *source = &cluster->receive.sources[node];
	uint32_t start = source->start[b];
	uint32_t count = source->start[b + 1] - start;
	uint64_t slot = source->first_slot + start;

	if (cluster_is_by_reference(cluster)) {
		cluster_take_entries(cluster, node, source->entries + start,
				     count);
		return true;
	}
	return partition_entries(
		&cluster->splitters, shape, cluster->receive.plan.index_bits,
		cluster->receive.base + slot * shape->size, slot, count,
		cluster->receive.first_bucket + b, source->entries + start);
}

/* Make the entries of the buckets that have become complete since the last
 * time.  NULL, or what is wrong with them. */
static const char *take_buckets(struct cluster *cluster, unsigned node,
				uint64_t prefix_bytes)
{
	struct cluster_source *source = &cluster->receive.sources[node];
	uint64_t records = (prefix_bytes - source->head_bytes) /
			   cluster_unit_bytes(cluster);
	uint32_t b = source->complete_count;

	for (; b < cluster->receive.bucket_count &&
	       source->start[b + 1] <= records;
	     b++)
		if (!take_bucket(cluster, node, b))
			return "sent a record whose key is outside of the "
			       "range that it was sent for";
	source->complete_count = b;
	return NULL;
}

/* Take the part of a message that has come, up to prefix_bytes.  NULL, or what
 * is wrong with it. */
static const char *take_prefix(struct cluster *cluster, unsigned node,
			       uint64_t prefix_bytes)
{
	struct cluster_source *source = &cluster->receive.sources[node];
	const char *lie;

	if (!source->has_head) {
		lie = take_head(cluster, source);
		if (lie)
			return lie;
		if (--cluster->receive.heads_missing == 0)
			add_up(cluster);
	}
	return take_buckets(cluster, node, prefix_bytes);
}

static void arrived(void *context, unsigned node, uint64_t prefix_bytes,
		    bool whole)
{
	struct cluster *cluster = context;
	struct cluster_source *source = &cluster->receive.sources[node];
	struct trace_lane *lane = &cluster->trace.lanes[0];
	const char *lie;
	uint64_t begin_ns;

	(void)whole;
	if (cluster->receive.discards || prefix_bytes < source->head_bytes ||
	    first_failure_stops(&cluster->first_failure))
		return;
	begin_ns = trace_begin(lane);
	lie = take_prefix(cluster, node, prefix_bytes);
	if (lie) {
		struct failure failure;

		exchange_blame(cluster->exchange, node, &failure, "%s", lie);
		first_failure_note(&cluster->first_failure, &failure);
		return;
	}
	raise_ready(cluster);
	trace_end(lane, begin_ns, "bucket");
}

static bool idle(void *context)
{
	struct cluster *cluster = context;

	return cluster->receive.orders &&
	       orderer_try(&cluster->orderer, 0) == ORDERER_MORE;
}

/* --- all of it ------------------------------------------------------------ */

static void announce_oversized(struct cluster *cluster)
{
	uint32_t count = cluster->orderer.oversized_count;

	if (count > 0)
		exchange_announce_delay(
			cluster->exchange,
			1000 + count / OVERSIZED_ENTRIES_PER_MS);
}

/* Order the chunks that are left, and answer other ranks in between. */
static int order_chunks(struct cluster *cluster)
{
	struct orderer *orderer = &cluster->orderer;
	enum orderer_step step = ORDERER_MORE;
	int error = 0;

	while (error == 0 && step == ORDERER_MORE) {
		step = orderer_try(orderer, 0);
		error = exchange_serve(cluster->exchange, cluster->failure);
	}
	if (error == 0)
		sink_help(&cluster->output.output.sink);
	return error;
}

/* All has arrived. */
static int order_rest(struct cluster *cluster)
{
	int error =
		first_failure_get(&cluster->first_failure, cluster->failure);

	if (error)
		return error;
	announce_oversized(cluster);
	if (!orderer_sort_oversized(&cluster->orderer, 0))
		return first_failure_get(&cluster->first_failure,
					 cluster->failure);
	return order_chunks(cluster);
}

/* Do as order_rest(), but drop duplicates.  The exchange has ended, since ranks
 * that write one file tell each other how many records they keep. */
static int order_without_duplicates(struct cluster *cluster)
{
	uint64_t kept_count;
	int error;

	announce_oversized(cluster);
	if (!orderer_drop_duplicates(&cluster->orderer, 0, &kept_count))
		return first_failure_get(&cluster->first_failure,
					 cluster->failure);
	error = cluster_shrink_output(cluster, kept_count, cluster->failure);
	if (error)
		return error;
	orderer_begin_chunks(&cluster->orderer);
	return order_chunks(cluster);
}

int cluster_exchange(struct cluster *cluster)
{
	struct exchange_collective collective = {
		.context = cluster,
		.send_bytes = cluster->send.send_bytes,
		.read = read_message,
		.length = length_of,
		.prepare = prepare,
		.place = place,
		.arrived = arrived,
		.idle = idle,
	};
	bool drops_duplicates = cluster->sort_config->unique;
	uint64_t begin_ns = clock_now_ns();
	int error = cluster_learn_shares(cluster);

	cluster->receive.discards = false;
	cluster->result->sort.bucketed_ns = begin_ns;
	if (error == 0)
		error = exchange_begin(cluster->exchange, &collective,
				       cluster->failure);
	if (error == 0)
		error = exchange_receive(cluster->exchange, cluster->failure);
	cluster_report_add_ns(cluster->report, CLUSTER_EXCHANGE_NS, begin_ns);
	begin_ns = clock_now_ns();
	if (error == 0 && !cluster->receive.discards && !drops_duplicates)
		error = order_rest(cluster);
	cluster_report_add_ns(cluster->report, CLUSTER_ORDER_NS, begin_ns);
	begin_ns = clock_now_ns();
	if (error == 0)
		error = exchange_finish(cluster->exchange, cluster->failure);
	cluster_report_add_ns(cluster->report, CLUSTER_FINISH_NS, begin_ns);
	begin_ns = clock_now_ns();
	if (error == 0 && !cluster->receive.discards && drops_duplicates)
		error = order_without_duplicates(cluster);
	cluster_report_add_ns(cluster->report, CLUSTER_ORDER_NS, begin_ns);
	return error;
}
