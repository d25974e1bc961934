/*
 * cluster_receive.c - every record to the rank whose share it belongs to
 *
 * Records are received where they stay until they are gathered: below our own
 * those of lower ranks, behind them those of higher ones, so that slots ascend
 * with ranks, and equal keys keep their order.
 */
#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "cluster/cluster_state.h"
#include "sort/partition.h"

/* Larger than any datagram, so that each finds a place in it. */
#define TRASH_BYTES (64 * KIB)
/* A big bucket, sorted by one call, keeps a rank silent: 100 million entries
 * a second, and a margin of ten. */
#define BIG_ENTRIES_PER_MS 10000
static_assert(1000 + PLAN_RECORDS_MAX / BIG_ENTRIES_PER_MS <=
		      EXCHANGE_BUSY_MS_MAX,
	      "others are patient for as long");

/* --- making room -----------------------------------------------------------
 */

/* A rank's records, or none of them. */
static struct exchange_length length_of(const void *context, unsigned source,
					unsigned destination)
{
	const struct cluster *cluster = context;

	return (struct exchange_length){
		.head_bytes = cluster->targets[destination].head_bytes,
		.unit_bytes = cluster_unit_bytes(cluster),
		.unit_count_max = cluster->hellos[source].record_count,
	};
}

static uint64_t announced_records(const struct cluster *cluster,
				  unsigned source, unsigned destination)
{
	return (exchange_bytes(cluster->exchange, source, destination) -
		cluster->targets[destination].head_bytes) /
	       cluster_unit_bytes(cluster);
}

/* Each rank gives away no more records than it has said that it has. */
static int check_sums(struct cluster *cluster, struct failure *failure)
{
	unsigned count = cluster->rank.node_count;

	for (unsigned from = 0; from < count; from++) {
		uint64_t left = cluster->hellos[from].record_count;

		for (unsigned to = 0; to < count; to++) {
			uint64_t sent =
				to == from
					? 0
					: announced_records(cluster, from, to);

			if (sent > left)
				return exchange_blame(
					cluster->exchange, from, failure,
					"announces more than its %" PRIu64
					" records",
					cluster->hellos[from].record_count);
			left -= sent;
		}
	}
	return 0;
}

/* What each node would get in all, from what all have announced to the others:
 * what a rank keeps is what is left of what it has. */
void cluster_count_shares(const struct cluster *cluster,
			  uint64_t records[RANK_NODES_MAX])
{
	unsigned count = cluster->rank.node_count;

	memset(records, 0, count * sizeof(*records));
	for (unsigned from = 0; from < count; from++) {
		uint64_t kept = cluster->hellos[from].record_count;

		for (unsigned to = 0; to < count; to++) {
			uint64_t sent;

			if (to == from)
				continue;
			sent = announced_records(cluster, from, to);
			records[to] += sent;
			kept -= sent;
		}
		records[from] += kept;
	}
}

static bool shares_are_skewed(const struct cluster *cluster)
{
	uint64_t records[RANK_NODES_MAX];

	cluster_count_shares(cluster, records);
	return cluster_is_skewed(records, cluster->rank.node_count);
}

/* Of a share's slots. */
struct numbering {
	uint64_t received;    /* records of others */
	uint64_t lower_slots; /* before our own input's */
	uint64_t slots;
};

static uint64_t slots_of(const struct cluster *cluster, unsigned node)
{
	if (cluster_is_shared(cluster))
		return cluster_input_slots(cluster, node);
	return node == cluster->rank.rank
		       ? input_after_slot(&cluster->sorter.input)
		       : cluster->sources[node].record_count;
}

/* Where each source's records will lie; records of lower ranks, then our own
 * with the holes between files, then those of higher ranks. */
static void number_slots(struct cluster *cluster, struct numbering *numbering)
{
	uint64_t head_bytes = cluster->targets[cluster->rank.rank].head_bytes;

	*numbering = (struct numbering){ 0 };
	for (unsigned i = 0; i < cluster->rank.node_count; i++) {
		struct cluster_source *source = &cluster->sources[i];

		*source = (struct cluster_source){
			.head_bytes = head_bytes,
			.first_slot = numbering->slots,
		};
		if (i == cluster->rank.rank) {
			numbering->lower_slots = numbering->slots;
			numbering->slots += slots_of(cluster, i);
			continue;
		}
		source->record_count =
			announced_records(cluster, i, cluster->rank.rank);
		numbering->received += source->record_count;
		numbering->slots += slots_of(cluster, i);
	}
	cluster->heads_missing = cluster->rank.node_count - 1;
}

/* Memory of the lists, which are done with: it has been touched already. */
static struct arena left_of_lists(const struct cluster *cluster)
{
	const struct bucket_pool *pool = &cluster->sorter.pool;

	return (struct arena){
		.base = (uint8_t *)pool->entries,
		.size_bytes = (size_t)pool->block_count *
			      BUCKETS_BLOCK_ENTRIES * sizeof(*pool->entries),
	};
}

/* There, if it finds room; what lies there is not zero. */
static void *take_used(struct arena *left, struct arena *arena, uint64_t count,
		       size_t each_bytes)
{
	uint64_t room = left->size_bytes -
			MIN(ROUND_UP(left->used_bytes, CACHE_PAIR_BYTES),
			    left->size_bytes);

	return cluster_take(count * each_bytes <= room ? left : arena, count,
			    each_bytes);
}

static void take_share(struct cluster *cluster, uint64_t share_count)
{
	struct sorter *sorter = &cluster->sorter;
	struct arena *arena = &sorter->arena, left = left_of_lists(cluster);
	const struct plan *plan = &sorter->plan;
	unsigned slots = output_slots_wanted(&sorter->output,
					     sorter->threads.worker_count);

	/* First, so that they touch no more huge pages than they must. */
	output_set_slots(
		&sorter->output,
		arena_take(arena, slots * plan->chunk_bytes, PAGE_BYTES), slots,
		plan->chunk_bytes);
	for (unsigned i = 0; i < cluster->rank.node_count; i++) {
		struct cluster_source *source = &cluster->sources[i];

		source->start =
			take_used(&left, arena, sorter->bucket_count + 1, 4);
		if (i == cluster->rank.rank)
			continue;
		source->head = take_used(&left, arena, source->head_bytes, 1);
		source->entries =
			take_used(&left, arena, source->record_count, 8);
	}
	sorter->bucket_start =
		take_used(&left, arena, sorter->bucket_count + 1, 4);
	for (unsigned m = 0; m < sorter->threads.worker_count; m++)
		sorter->members[m].entries =
			take_used(&left, arena, plan->chunk_entries, 8);
	/* Touched only when keys are not uniform. */
	sorter->big_start = cluster_take(arena, sorter->bucket_count, 4);
	sorter->big_entries = cluster_take(arena, share_count, 8);
}

/* What take_share() takes of memory, without what the plan has already. */
static uint64_t share_bytes(const struct cluster *cluster, uint64_t received)
{
	return received * 8 +
	       (uint64_t)cluster->rank.node_count *
		       (8 * (uint64_t)cluster->sorter.bucket_count + 4);
}

static int plan_share(struct cluster *cluster, uint64_t received,
		      uint64_t slot_count, struct failure *failure)
{
	struct sorter *sorter = &cluster->sorter;
	uint64_t own_bytes = sorter->plan.memory_bytes, needed;
	const struct cluster_target *own =
		&cluster->targets[cluster->rank.rank];
	struct plan_request request = {
		.shape = sorter->config->shape,
		.record_count = received + own->count,
		.slot_count = slot_count,
		.members = sorter->threads.worker_count,
		.chunk_bytes_max = output_chunk_bytes_max(&sorter->output),
		.staging_slots = output_slots_wanted(
			&sorter->output, sorter->threads.worker_count),
		.bucket_count = MAX(1, sorter->bucket_count),
	};
	int error;

	if (plan_make(&sorter->plan, &request) < 0)
		return failure_set(failure, EXIT_RESOURCES, NULL, 0,
				   "%llu records are too many for one node",
				   (unsigned long long)request.record_count);
	needed = sorter->plan.memory_bytes + share_bytes(cluster, received);
	error = cluster_map_arena(&sorter->arena, needed,
				  8 + 3 * (uint64_t)cluster->rank.node_count +
					  request.members,
				  failure);
	if (error)
		return error;
	sorter->plan.memory_bytes =
		needed + own_bytes +
		(cluster_is_shared(cluster)
			 ? 0
			 : received * sorter->config->shape.size);
	return sorter_refuse_memory(sorter, sorter->plan.memory_bytes,
				    cluster->rank.machine_count, failure);
}

/* Our own share of our own records, with their slots in the share. */
static void keep_own(struct cluster *cluster)
{
	const struct cluster_target *target =
		&cluster->targets[cluster->rank.rank];
	struct cluster_source *source = &cluster->sources[cluster->rank.rank];
	const struct sorter *sorter = &cluster->sorter;
	uint64_t *entries = cluster->own_entries + target->first;

	for (uint32_t i = 0; i < target->count; i++)
		entries[i] =
			(entries[i] & ~sorter->index_mask) |
			((entries[i] & cluster->own_mask) + source->first_slot);
	source->entries = entries;
	source->record_count = target->count;
	source->head = target->head;
}

static void point_at_share(struct cluster *cluster, uint64_t lower_slots)
{
	struct sorter *sorter = &cluster->sorter;

	sorter->base =
		sorter->input.base - lower_slots * sorter->config->shape.size;
	sorter->index_mask = ~(UINT64_MAX << sorter->plan.index_bits);
	sorter->ties = (struct ties){
		.shape = &sorter->config->shape,
		.records = sorter->base,
		.index_bits = sorter->plan.index_bits,
		.sort = sorter->sort,
		.any = tied_kernel(sorter->config->kernel),
	};
	keep_own(cluster);
	for (unsigned i = 0; i < cluster->rank.node_count; i++)
		cluster->runs[i] =
			(struct bucket_run){ cluster->sources[i].entries,
					     cluster->sources[i].start };
	sorter->runs = cluster->runs;
	sorter->run_count = cluster->rank.node_count;
}

/* For records that come, or to where they are. */
static int open_records(struct cluster *cluster,
			const struct numbering *numbering,
			struct failure *failure)
{
	struct input *input = &cluster->sorter.input;
	uint64_t higher;
	int error;

	if (cluster_is_shared(cluster))
		return cluster_map_inputs(cluster, failure);
	higher = numbering->received - numbering->lower_slots;
	error = input_open_before(input, numbering->lower_slots, failure);
	return error ? error : input_open_after(input, higher, failure);
}

static int make_room(struct cluster *cluster, struct failure *failure)
{
	struct sorter *sorter = &cluster->sorter;
	const struct share_cut *cut = &cluster->cuts[cluster->rank.rank];
	uint64_t own_count = cluster->targets[cluster->rank.rank].count;
	struct numbering numbering;
	int error;

	sorter->first_bucket = share_first_bucket(cut);
	sorter->bucket_count = share_end_bucket(cut) - sorter->first_bucket;
	number_slots(cluster, &numbering);
	error = cluster_open_output(cluster, own_count + numbering.received,
				    failure);
	/* All timelines go into rank 0's. */
	if (error == 0 && cluster->rank.rank == 0)
		error = sorter_open_trace(sorter, failure);
	if (error == 0)
		error = plan_share(cluster, numbering.received, numbering.slots,
				   failure);
	if (error)
		return error;
	take_share(cluster, own_count + numbering.received);
	point_at_share(cluster, numbering.lower_slots);
	sorter_count_chunks(sorter);
	return open_records(cluster, &numbering, failure);
}

/* --- arriving --------------------------------------------------------------
 */

/* Buckets that are complete from all sources may be ordered. */
static void raise_ready(struct cluster *cluster)
{
	struct sorter *sorter = &cluster->sorter;
	uint32_t ready = sorter->bucket_count;

	if (cluster->heads_missing > 0)
		return;
	for (unsigned i = 0; i < cluster->rank.node_count; i++)
		ready = MIN(ready, cluster->sources[i].complete_count);
	if (ready == sorter->bucket_count)
		ready = SORTER_ALL_READY;
	if (ready >
	    atomic_load_explicit(&sorter->ready_buckets, memory_order_relaxed))
		thread_pool_set(&sorter->threads, &sorter->ready_buckets,
				ready);
}

/* From a message's head to where its buckets begin.  False: they do not make
 * what has been announced. */
static bool take_head(struct cluster *cluster, struct cluster_source *source)
{
	uint32_t bucket_count = cluster->sorter.bucket_count;
	uint64_t start = 0;

	for (uint32_t b = 0; b < bucket_count; b++) {
		source->start[b] = (uint32_t)start;
		start += load_le32(source->head + 4 * (size_t)b);
		if (start > source->record_count)
			return false;
	}
	source->start[bucket_count] = (uint32_t)start;
	source->has_head = true;
	return start == source->record_count;
}

static void count_head(struct cluster *cluster)
{
	if (--cluster->heads_missing == 0)
		ordering_add_up(&cluster->sorter);
}

static int prepare(void *context, const uint64_t *receive_bytes,
		   struct failure *failure)
{
	struct cluster *cluster = context;
	struct cluster_source *own = &cluster->sources[cluster->rank.rank];
	bool is_static = cluster->sorter.splitters.kind != SPLITTERS_SAMPLED;
	int error = check_sums(cluster, failure);

	(void)receive_bytes;
	if (error)
		return error;
	if (is_static && cluster->agreement.may_sample &&
	    shares_are_skewed(cluster)) {
		cluster->discards = true;
		cluster->trash = malloc(TRASH_BYTES);
		if (cluster->trash)
			return 0;
		return failure_set(failure, EXIT_RESOURCES, NULL, ENOMEM,
				   "memory");
	}
	error = make_room(cluster, failure);
	if (error)
		return error;
	if (!take_head(cluster, own))
		return failure_set(failure, EXIT_WRONG, NULL, 0,
				   "the counts of our own buckets are wrong");
	own->complete_count = cluster->sorter.bucket_count;
	if (cluster->heads_missing == 0)
		ordering_add_up(&cluster->sorter);
	raise_ready(cluster);
	cluster_start_ordering(cluster);
	return 0;
}

static uint8_t *place(void *context, unsigned node, uint64_t offset,
		      size_t *room)
{
	struct cluster *cluster = context;
	const struct cluster_source *source = &cluster->sources[node];
	const struct sorter *sorter = &cluster->sorter;
	uint32_t record_size = sorter->config->shape.size;

	if (cluster->discards) {
		*room = TRASH_BYTES;
		return cluster->trash;
	}
	if (offset < source->head_bytes) {
		*room = source->head_bytes - offset;
		return source->head + offset;
	}
	offset -= source->head_bytes;
	*room = source->record_count * cluster_unit_bytes(cluster) - offset;
	if (cluster_is_shared(cluster))
		return (uint8_t *)source->entries + offset;
	return sorter->base + source->first_slot * record_size + offset;
}

static void take_bucket(struct cluster *cluster, unsigned node, uint32_t b)
{
	const struct sorter *sorter = &cluster->sorter;
	struct cluster_source *source = &cluster->sources[node];
	uint32_t start = source->start[b];
	uint32_t count = source->start[b + 1] - start;
	uint64_t slot = source->first_slot + start;

	if (cluster_is_shared(cluster))
		cluster_take_entries(cluster, node, source->entries + start,
				     count);
	else
		partition_entries(&sorter->splitters, &sorter->config->shape,
				  sorter->plan.index_bits,
				  sorter->base +
					  slot * sorter->config->shape.size,
				  slot, count, sorter->first_bucket + b,
				  source->entries + start);
}

/* Entries of the buckets that have come as a whole since the last time. */
static void take_buckets(struct cluster *cluster, unsigned node,
			 uint64_t prefix_bytes)
{
	struct cluster_source *source = &cluster->sources[node];
	uint64_t records = (prefix_bytes - source->head_bytes) /
			   cluster_unit_bytes(cluster);
	uint32_t b = source->complete_count;

	for (; b < cluster->sorter.bucket_count &&
	       source->start[b + 1] <= records;
	     b++)
		take_bucket(cluster, node, b);
	source->complete_count = b;
}

static void arrived(void *context, unsigned node, uint64_t prefix_bytes,
		    bool whole)
{
	struct cluster *cluster = context;
	struct cluster_source *source = &cluster->sources[node];
	struct sorter_member *self = &cluster->sorter.members[0];
	uint64_t begin_ns;

	(void)whole;
	if (cluster->discards || prefix_bytes < source->head_bytes ||
	    atomic_load_explicit(&cluster->sorter.stop, memory_order_relaxed))
		return;
	begin_ns = trace_begin(&self->lane);
	if (!source->has_head) {
		if (!take_head(cluster, source)) {
			struct failure failure;

			exchange_blame(cluster->exchange, node, &failure,
				       "sends other numbers of records than "
				       "it has announced");
			sorter_fail(&cluster->sorter, &failure);
			return;
		}
		count_head(cluster);
	}
	take_buckets(cluster, node, prefix_bytes);
	raise_ready(cluster);
	trace_end(&self->lane, begin_ns, "bucket");
}

static bool idle(void *context)
{
	struct cluster *cluster = context;

	return !cluster->discards &&
	       ordering_try(&cluster->sorter, 0) == ORDERING_MORE;
}

/* --- all of it -------------------------------------------------------------
 */

static int give_failure(struct cluster *cluster)
{
	*cluster->failure = cluster->sorter.failure;
	return -EPIPE;
}

/* All has arrived: order what is left, answering others in between. */
static int order_rest(struct cluster *cluster)
{
	struct sorter *sorter = &cluster->sorter;
	enum ordering_step step = ORDERING_MORE;
	int error = 0;

	if (atomic_load_explicit(&sorter->stop, memory_order_acquire))
		return give_failure(cluster);
	if (sorter->big_count > 0)
		exchange_say_busy(cluster->exchange,
				  1000 + sorter->big_count /
						  BIG_ENTRIES_PER_MS);
	if (!ordering_pass_big(sorter, 0))
		return give_failure(cluster);
	while (error == 0 && step == ORDERING_MORE) {
		step = ordering_try(sorter, 0);
		error = exchange_serve(cluster->exchange, cluster->failure);
	}
	if (error == 0)
		output_help(&sorter->output);
	return error;
}

int cluster_exchange(struct cluster *cluster)
{
	struct exchange_collective collective = {
		.context = cluster,
		.send_bytes = cluster->send_bytes,
		.read = cluster_read_message,
		.length = length_of,
		.prepare = prepare,
		.place = place,
		.arrived = arrived,
		.idle = idle,
	};
	uint64_t begin_ns = clock_now_ns();
	int error = exchange_begin(cluster->exchange, &collective,
				   cluster->failure);

	cluster->result->sort.bucketed_ns = begin_ns;
	if (error == 0)
		error = exchange_receive(cluster->exchange, cluster->failure);
	cluster_add_ns(cluster, CLUSTER_EXCHANGE_NS, begin_ns);
	begin_ns = clock_now_ns();
	if (error == 0 && !cluster->discards)
		error = order_rest(cluster);
	cluster_add_ns(cluster, CLUSTER_ORDER_NS, begin_ns);
	begin_ns = clock_now_ns();
	if (error == 0)
		error = exchange_finish(cluster->exchange, cluster->failure);
	cluster_add_ns(cluster, CLUSTER_FINISH_NS, begin_ns);
	return error;
}
