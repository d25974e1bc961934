/*
 * cluster_receive.c - our share: room for it, what arrives, and its order
 *
 * Records are received where they stay until they are gathered: records of
 * lower ranks below our own, records of higher ranks behind our own.  So slots
 * ascend with ranks, and equal keys keep their order.
 */
#include <assert.h>
#include <errno.h>
#include <inttypes.h>

#include "cluster/cluster_state.h"
#include "cluster/collective/cluster_allgather.h"
#include "exchange/exchange_buffers.h"
#include "sort/partition.h"
#include "sort/sort_setup.h"

/* An oversized bucket, sorted by one call, keeps a rank silent: 100 million
 * entries a second, and a margin of ten. */
#define OVERSIZED_ENTRIES_PER_MS 10000
static_assert(1000 + PLAN_RECORDS_MAX / OVERSIZED_ENTRIES_PER_MS <=
		      EXCHANGE_DELAY_MS_MAX,
	      "a rank may say that it is silent for so long");

/* --- what all ranks get ----------------------------------------------------
 */

/* Do the lengths of messages tell each rank how many records all ranks have for
 * each other?  Not if the records are compressed. */
static bool knows_all(const struct cluster *cluster)
{
	return exchange_knows_all(cluster->exchange) &&
	       !cluster_compresses(cluster);
}

static uint64_t announced_records(const struct cluster *cluster,
				  unsigned source, unsigned destination)
{
	return (exchange_bytes(cluster->exchange, source, destination) -
		cluster->send.targets[destination].head_bytes) /
	       cluster_unit_bytes(cluster);
}

/* What each rank would get in all, when all ranks have announced to each other
 * what they send: a rank keeps what is left of its records, and gives away no
 * more than it has said that it has. */
static int count_shares(struct cluster *cluster, struct failure *failure)
{
	unsigned count = cluster->rank.node_count;
	uint64_t *shares = cluster->receive.shares;

	memset(shares, 0, count * sizeof(*shares));
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
			shares[to] += sent;
			left -= sent;
		}
		shares[from] += left;
	}
	return 0;
}

/* --- shares that ranks tell each other -------------------------------------
 *
 * Where lengths do not tell it there are two collectives of 8 bytes for each
 * pair of ranks: each rank tells each other what it has for it, and adds up
 * what it hears; then each tells all its sum.  So no rank gets the n * n
 * numbers of which these are the sums (knows_all()).
 */

#define NUMBER_BYTES 8

static struct exchange_length
number_length(const void *context, unsigned source, unsigned destination)
{
	(void)context, (void)source, (void)destination;
	return (struct exchange_length){ NUMBER_BYTES, 1, 0 };
}

/* Each rank tells each other what it has for it, which is no more than it has
 * in all. */
static int learn_own(struct cluster *cluster, uint64_t *share)
{
	unsigned own = cluster->rank.rank;
	uint8_t numbers[RANK_NODES_MAX][NUMBER_BYTES];
	uint8_t told[RANK_NODES_MAX][NUMBER_BYTES];
	struct exchange_buffers messages = {
		.length = number_length,
		.all = told[0],
	};
	int error;

	for (unsigned i = 0; i < cluster->rank.node_count; i++) {
		messages.own[i] = numbers[i];
		messages.own_bytes[i] = NUMBER_BYTES;
		store_le64(numbers[i], cluster->send.targets[i].count);
	}
	error = exchange_send_buffers(cluster->exchange, &messages,
				      cluster->failure);
	*share = cluster->send.targets[own].count;
	for (unsigned i = 0; i < cluster->rank.node_count && error == 0; i++) {
		uint64_t records = i == own ? 0 : load_le64(told[i]);

		if (records > cluster->hellos[i].record_count)
			return exchange_blame(
				cluster->exchange, i, cluster->failure,
				"has %" PRIu64 " records for rank %u, of its "
				"%" PRIu64,
				records, own, cluster->hellos[i].record_count);
		cluster->receive.sources[i].record_count = records;
		*share += records;
	}
	return error;
}

/* Each rank tells all others what it gets.  The sums are those of all records.
 */
static int learn_shares(struct cluster *cluster, uint64_t share)
{
	uint64_t left = cluster->agreement.whole_count;
	const uint64_t *shares = cluster->receive.shares;
	int error = cluster_allgather_words(&cluster->rank, cluster->exchange,
					    &share, 1, cluster->receive.shares,
					    cluster->failure);

	for (unsigned i = 0; i < cluster->rank.node_count && error == 0; i++) {
		if (shares[i] > left)
			return exchange_blame(
				cluster->exchange, i, cluster->failure,
				"gets %" PRIu64 " records, and %" PRIu64
				" are left",
				shares[i], left);
		left -= shares[i];
	}
	if (error || left == 0)
		return error;
	return failure_set(cluster->failure, EXIT_PEER, NULL, 0,
			   "no rank gets %" PRIu64 " of %" PRIu64 " records",
			   left, cluster->agreement.whole_count);
}

/* --- whether shares are equal enough -------------------------------------- */

/* Would the ranks sample, if their shares were too unequal? */
static bool may_sample(const struct cluster *cluster)
{
	return cluster->splitters.kind != SPLITTERS_SAMPLED &&
	       cluster->agreement.may_sample;
}

/* Are other ranks' shares needed: for whether they are too unequal, or for
 * where ours begins in the one file, or how much of it is wanted? */
static bool needs_shares(const struct cluster *cluster)
{
	return cluster->config->gathers ||
	       cluster->sort_config->head_records > 0 || may_sample(cluster);
}

/* Learn what comes to us, and what all ranks get, before the ranks announce
 * what they send, if that is needed and will not be announced. */
static int learn_needed_shares(struct cluster *cluster)
{
	uint64_t share = 0;
	int error = 0;

	if (knows_all(cluster))
		return 0;
	if (needs_shares(cluster) || cluster_compresses(cluster))
		error = learn_own(cluster, &share);
	if (error == 0 && needs_shares(cluster))
		error = learn_shares(cluster, share);
	return error;
}

/* All ranks know all shares: some rank would get too much more than its part.
 */
static bool shares_are_skewed(const struct cluster *cluster)
{
	return may_sample(cluster) &&
	       cluster_is_skewed(cluster->receive.shares,
				 cluster->rank.node_count);
}

/* How the slots of a share are divided. */
struct numbering {
	uint64_t received;	 /* records of other ranks */
	uint64_t higher_records; /* of these, of higher ranks */
	uint64_t table_bytes;	 /* in the messages that bring them */
	uint64_t slots;
};

static uint64_t slots_of(const struct cluster *cluster, unsigned node)
{
	if (cluster_is_by_reference(cluster))
		return cluster_input_slots(cluster, node);
	return node == cluster->rank.rank
		       ? input_after_slot(&cluster->input)
		       : cluster->receive.sources[node].record_count;
}

/* Where each source's records will lie; records of lower ranks, then our own
 * with the holes between files, then those of higher ranks. */
static void number_slots(struct cluster *cluster, struct numbering *numbering)
{
	uint64_t head_bytes =
		cluster->send.targets[cluster->rank.rank].head_bytes;

	*numbering = (struct numbering){ 0 };
	for (unsigned i = 0; i < cluster->rank.node_count; i++) {
		struct cluster_source *source = &cluster->receive.sources[i];
		uint64_t told = source->record_count;

		*source = (struct cluster_source){
			.head_bytes = head_bytes,
			.first_slot = numbering->slots,
		};
		if (i == cluster->rank.rank) {
			if (numbering->slots > 0 &&
			    !cluster_is_by_reference(cluster))
				numbering->slots +=
					input_lead_slots(&cluster->input);
			source->first_slot = numbering->slots;
			numbering->slots += slots_of(cluster, i);
			continue;
		}
		source->record_count =
			cluster_compresses(cluster)
				? told
				: announced_records(cluster, i,
						    cluster->rank.rank);
		source->table_bytes =
			cluster_table_bytes(cluster, source->record_count);
		source->stored_bytes = exchange_bytes(cluster->exchange, i,
						      cluster->rank.rank) -
				       head_bytes - source->table_bytes;
		numbering->received += source->record_count;
		if (i > cluster->rank.rank)
			numbering->higher_records += source->record_count;
		numbering->table_bytes += source->table_bytes;
		numbering->slots += slots_of(cluster, i);
	}
}

/* Cut up the share's memory; from that of the lists, which are not needed any
 * more, as far as it has room. */
static void take_share(struct cluster *cluster, uint64_t record_count)
{
	struct cluster_receive *receive = &cluster->receive;
	struct arena *arena = &receive->arena;
	struct arena left = bucketing_left_memory(&cluster->bucketing);
	const struct plan *plan = &receive->plan;
	unsigned workers = cluster->pool.worker_count;

	/* First, so that they touch no more huge pages than they must. */
	sort_setup_slots(&cluster->output.output, plan, &cluster->pool,
			 &cluster->topology, arena);
	for (unsigned i = 0; i < cluster->rank.node_count; i++) {
		struct cluster_source *source = &receive->sources[i];

		source->start = arena_take_used(
			arena, &left,
			((size_t)receive->set.bucket_count + 1) * 4,
			CACHE_PAIR_BYTES);
		if (i == cluster->rank.rank)
			continue;
		source->head = arena_take_used(
			arena, &left, source->head_bytes + source->table_bytes,
			CACHE_PAIR_BYTES);
		source->entries =
			arena_take_used(arena, &left, source->record_count * 8,
					CACHE_PAIR_BYTES);
	}
	orderer_take_memory(&cluster->orderer, plan, workers, arena, &left);
	orderer_take_oversized(&cluster->orderer, plan, record_count, arena);
}

/* What take_share() takes of memory, without what the plan has already. */
static uint64_t share_bytes(const struct cluster *cluster,
			    const struct numbering *numbering)
{
	return numbering->received * 8 + numbering->table_bytes +
	       (uint64_t)cluster->rank.node_count *
		       (8 * (uint64_t)cluster->receive.set.bucket_count + 4);
}

static int plan_share(struct cluster *cluster,
		      const struct numbering *numbering,
		      struct failure *failure)
{
	uint64_t received = numbering->received;
	const struct output *output = &cluster->output.output;
	struct plan *plan = &cluster->receive.plan;
	uint64_t needed;
	const struct cluster_target *own =
		&cluster->send.targets[cluster->rank.rank];
	unsigned workers = cluster->pool.worker_count;
	struct plan_request request = {
		.shape = cluster->sort_config->shape,
		.record_count = received + own->count,
		.slot_count = numbering->slots,
		.worker_count = workers,
		.chunk_bytes_max = output_chunk_bytes_max(output),
		.staging_slots = output_slots_wanted(output, workers),
		.bucket_count = MAX(1, cluster->receive.set.bucket_count),
	};
	int error = sort_setup_plan(plan, &request, failure);

	if (error)
		return error;
	needed = plan->memory_bytes + share_bytes(cluster, numbering);
	error = sort_setup_arena(
		&cluster->receive.arena, needed,
		3 * (uint64_t)cluster->rank.node_count +
			ORDERER_PIECES(workers),
		sort_setup_worker_nodes(&cluster->topology, &cluster->pool),
		failure);
	if (error)
		return error;
	plan->memory_bytes =
		needed + cluster->plan.memory_bytes +
		cluster->compress.coders_arena.size_bytes +
		cluster->compress.messages_arena.size_bytes +
		(cluster_is_by_reference(cluster)
			 ? 0
			 : received * cluster->sort_config->shape.size);
	return sort_setup_refuse_memory(
		cluster->sort_config, plan->memory_bytes, request.record_count,
		cluster->rank.machine_count, failure);
}

/* Our own share of our own records, with their slots in the share. */
static void keep_own(struct cluster *cluster)
{
	const struct cluster_target *target =
		&cluster->send.targets[cluster->rank.rank];
	struct cluster_source *source =
		&cluster->receive.sources[cluster->rank.rank];
	uint64_t index_mask = cluster->receive.index_mask;
	uint64_t own_mask = cluster->send.index_mask;
	uint64_t *entries = cluster->send.entries + target->first;

	for (uint32_t i = 0; i < target->count; i++)
		entries[i] = (entries[i] & ~index_mask) |
			     ((entries[i] & own_mask) + source->first_slot);
	source->entries = entries;
	source->record_count = target->count;
	source->head = target->head;
}

static void begin_ordering(struct cluster *cluster)
{
	struct cluster_receive *receive = &cluster->receive;
	uint8_t *base = cluster->input.base -
			receive->sources[cluster->rank.rank].first_slot *
				cluster->sort_config->shape.size;
	const struct orderer_config config =
		sort_setup_orderer(cluster->sort_config, &receive->plan, base,
				   &cluster->output.output);

	receive->base = base;
	receive->index_mask = ~(UINT64_MAX << config.index_bits);
	orderer_begin(&cluster->orderer, &cluster->bucketing.wiring, &config);
	keep_own(cluster);
	for (unsigned i = 0; i < cluster->rank.node_count; i++)
		receive->runs[i] =
			(struct bucket_run){ receive->sources[i].entries,
					     receive->sources[i].start };
}

/* Memory for the records that arrive; or map the inputs that they lie in. */
static int open_records(struct cluster *cluster,
			const struct numbering *numbering,
			struct failure *failure)
{
	const struct cluster_source *own =
		&cluster->receive.sources[cluster->rank.rank];
	int error;

	if (cluster_is_by_reference(cluster))
		return cluster_map_inputs(cluster, failure);
	error = input_open_before(&cluster->input, own->first_slot, failure);
	return error ? error
		     : input_open_after(&cluster->input,
					numbering->higher_records, failure);
}

/* How many records each rank keeps, which is no more than its share. */
static int gather_kept(struct cluster *cluster, uint64_t own_count,
		       uint64_t kept[RANK_NODES_MAX], struct failure *failure)
{
	const uint64_t *shares = cluster->receive.shares;
	int error = cluster_allgather_words(&cluster->rank, cluster->exchange,
					    &own_count, 1, kept, failure);

	for (unsigned i = 0; i < cluster->rank.node_count && error == 0; i++)
		if (kept[i] > shares[i])
			error = exchange_blame(cluster->exchange, i, failure,
					       "keeps %" PRIu64 " of %" PRIu64
					       " records",
					       kept[i], shares[i]);
	return error;
}

/* Duplicates have been dropped, and this rank keeps kept_count records: tell
 * the output, and if other ranks write it, too, these. */
static int shrink_output(struct cluster *cluster, uint64_t kept_count,
			 struct failure *failure)
{
	uint64_t kept[RANK_NODES_MAX];
	bool has_head = cluster->sort_config->head_records > 0;
	int error = 0;

	if (cluster->config->gathers || has_head)
		error = gather_kept(cluster, kept_count, kept, failure);
	if (error)
		return error;
	if (has_head)
		kept_count = cluster_output_head(cluster, kept);
	return cluster_output_shrink(cluster, kept, kept_count, failure);
}

static int open_output(struct cluster *cluster, uint64_t record_count,
		       struct failure *failure)
{
	const struct sorter_config *config = cluster->sort_config;
	int error;

	if (config->head_records > 0 && !config->unique)
		record_count =
			cluster_output_head(cluster, cluster->receive.shares);
	error = cluster_output_open(cluster, cluster->receive.shares,
				    record_count, failure);

	/* All timelines go into rank 0's. */
	if (error == 0 && cluster->rank.rank == 0)
		error = sort_trace_open(&cluster->trace,
					&cluster->output.output,
					&cluster->input, failure);
	return error;
}

/* Open the output, and make memory for the share and for its order. */
static int make_room(struct cluster *cluster, struct failure *failure)
{
	struct cluster_receive *receive = &cluster->receive;
	const struct share_cut *cut = &cluster->send.cuts[cluster->rank.rank];
	uint64_t record_count = cluster->send.targets[cluster->rank.rank].count;
	struct numbering numbering;
	int error;

	receive->set = (struct bucket_set){
		.first_bucket = share_first_bucket(cut),
		.bucket_count = share_end_bucket(cut) - share_first_bucket(cut),
		.run_count = cluster->rank.node_count,
		.runs = receive->runs,
	};
	receive->heads_missing = cluster->rank.node_count;
	number_slots(cluster, &numbering);
	record_count += numbering.received;
	error = cluster_compresses(cluster)
			? cluster_compress_check(cluster, failure)
			: 0;
	if (error == 0)
		error = open_output(cluster, record_count, failure);
	if (error == 0)
		error = plan_share(cluster, &numbering, failure);
	if (error)
		return error;
	take_share(cluster, record_count);
	begin_ordering(cluster);
	return open_records(cluster, &numbering, failure);
}

/* --- messages --------------------------------------------------------------
 */

/* A rank's records, or none of them.  All ranks know no more of compressed ones
 * than that they are not longer; cluster_compress_check() does. */
static struct exchange_length length_of(const void *context, unsigned source,
					unsigned destination)
{
	const struct cluster *cluster = context;
	uint64_t records = cluster->hellos[source].record_count;
	struct exchange_length length = {
		.head_bytes = cluster->send.targets[destination].head_bytes,
		.unit_bytes = cluster_unit_bytes(cluster),
		.unit_count_max = records,
	};

	if (cluster_compresses(cluster)) {
		length.unit_count_max *= length.unit_bytes;
		length.unit_count_max += cluster_table_bytes(cluster, records);
		length.unit_bytes = 1;
	}
	return length;
}

/* --- arriving ------------------------------------------------------------- */

/* Buckets that are complete from all sources may be ordered. */
static void raise_ready(struct cluster *cluster)
{
	uint32_t ready = cluster->receive.set.bucket_count;

	if (cluster->receive.heads_missing > 0)
		return;
	for (unsigned i = 0; i < cluster->rank.node_count; i++)
		ready = MIN(ready, cluster->receive.sources[i].complete_count);
	if (ready == cluster->receive.set.bucket_count)
		ready = ORDERER_ALL_READY;
	orderer_set_ready(&cluster->orderer, ready);
}

/* Find in a message's head where its buckets begin.  When all sources have told
 * how many records they have in each, these are added up.  NULL, or what is
 * wrong with the message. */
static const char *take_head(struct cluster *cluster,
			     struct cluster_source *source)
{
	uint32_t bucket_count = cluster->receive.set.bucket_count;
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
	if (start != source->record_count)
		return "sends other numbers of records than it has announced";
	source->has_head = true;
	if (--cluster->receive.heads_missing == 0)
		orderer_add_up(&cluster->orderer, &cluster->receive.set);
	return NULL;
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
	int error = 0;

	(void)receive_bytes;
	/* Else, what a rank announces to us alone is no more than its records.
	 */
	if (knows_all(cluster)) {
		error = count_shares(cluster, failure);
		receive->discards = error == 0 && shares_are_skewed(cluster);
	}
	if (error == 0 && !receive->discards)
		error = make_room(cluster, failure);
	if (error || receive->discards)
		return error;
	if (take_head(cluster, own))
		return failure_set(failure, EXIT_WRONG, NULL, 0,
				   "the counts of our own buckets are wrong");
	own->complete_count = receive->set.bucket_count;
	raise_ready(cluster);
	receive->orders = true;
	thread_pool_launch_last(&cluster->pool, order, cluster);
	return 0;
}

static uint8_t *place(void *context, unsigned node, uint64_t offset,
		      size_t *room)
{
	struct cluster *cluster = context;
	const struct cluster_source *source = &cluster->receive.sources[node];
	uint32_t record_size = cluster->sort_config->shape.size;
	uint64_t end_slot = source->first_slot + source->record_count;
	uint64_t before = source->head_bytes + source->table_bytes;

	if (cluster->receive.discards) {
		*room = SIZE_MAX;
		return NULL;
	}
	if (offset < before) {
		*room = before - offset;
		return source->head + offset;
	}
	*room = source->stored_bytes - (offset - before);
	if (cluster_is_by_reference(cluster))
		return (uint8_t *)source->entries + (offset - before);
	return cluster->receive.base + end_slot * record_size - *room;
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
		cluster->receive.set.first_bucket + b, source->entries + start);
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

	for (; b < cluster->receive.set.bucket_count &&
	       source->start[b + 1] <= records;
	     b++)
		if (!take_bucket(cluster, node, b))
			return "sent a record whose key is outside of the "
			       "range that it was sent for";
	source->complete_count = b;
	return NULL;
}

/* What arrives has a lane of its own if other threads receive it: they may do
 * so while this one orders. */
static struct trace_lane *arrival_lane(struct cluster *cluster)
{
	return &cluster->trace.lanes[cluster->result->thread_count > 1
					     ? cluster->pool.worker_count
					     : 0];
}

static void arrived(void *context, unsigned node, uint64_t prefix_bytes,
		    bool whole)
{
	struct cluster *cluster = context;
	struct cluster_source *source = &cluster->receive.sources[node];
	struct trace_lane *lane = arrival_lane(cluster);
	const char *lie;
	uint64_t begin_ns;

	(void)whole;
	if (cluster->receive.discards || prefix_bytes < source->head_bytes ||
	    first_failure_stops(&cluster->first_failure))
		return;
	begin_ns = trace_begin(lane);
	lie = cluster_compresses(cluster)
		      ? cluster_decompress(cluster, node, &prefix_bytes)
		      : NULL;
	if (!lie && !source->has_head)
		lie = take_head(cluster, source);
	if (!lie)
		lie = take_buckets(cluster, node, prefix_bytes);
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
	error = shrink_output(cluster, kept_count, cluster->failure);
	if (error)
		return error;
	orderer_begin_chunks(&cluster->orderer);
	return order_chunks(cluster);
}

/* Before the exchange: choose a codec, and learn what will not be announced. If
 * that shows that the shares are too unequal, there is no exchange. */
static int make_ready(struct cluster *cluster)
{
	int error = cluster_compress_choose(cluster);

	if (error == 0)
		error = learn_needed_shares(cluster);
	cluster->receive.discards =
		error == 0 && !knows_all(cluster) && shares_are_skewed(cluster);
	return error || cluster->receive.discards
		       ? error
		       : cluster_compress_messages(cluster);
}

int cluster_exchange(struct cluster *cluster)
{
	struct exchange_collective collective = {
		.context = cluster,
		.send_bytes = cluster->send.send_bytes,
		.read = cluster_send_read,
		.length = length_of,
		.prepare = prepare,
		.place = place,
		.arrived = arrived,
		.idle = idle,
	};
	bool drops_duplicates = cluster->sort_config->unique;
	uint64_t begin_ns = clock_now_ns();
	int error = make_ready(cluster);

	cluster->result->sort.bucketed_ns = begin_ns;
	if (error || cluster->receive.discards)
		return error;
	error = exchange_begin(cluster->exchange, &collective,
			       cluster->failure);
	if (error == 0)
		error = exchange_receive(cluster->exchange, cluster->failure);
	cluster_add_ns(cluster, CLUSTER_EXCHANGE_NS, &begin_ns);
	if (error == 0 && !cluster->receive.discards && !drops_duplicates)
		error = order_rest(cluster);
	cluster_add_ns(cluster, CLUSTER_ORDER_NS, &begin_ns);
	if (error == 0)
		error = exchange_finish(cluster->exchange, cluster->failure);
	cluster_add_ns(cluster, CLUSTER_FINISH_NS, &begin_ns);
	if (error == 0 && !cluster->receive.discards && drops_duplicates)
		error = order_without_duplicates(cluster);
	cluster_add_ns(cluster, CLUSTER_ORDER_NS, &begin_ns);
	if (error)
		exchange_settle(cluster->exchange);
	return error;
}
