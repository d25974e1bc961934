/*
 * cluster_share.c - room for our share, when all ranks have announced what they
 * send
 *
 * Records are received where they stay until they are gathered: records of
 * lower ranks below our own, records of higher ranks behind our own.  So slots
 * ascend with ranks, and equal keys keep their order.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "cluster/collective/cluster_allgather.h"
#include "cluster/cluster_state.h"
#include "exchange/exchange_buffers.h"
#include "sort/sort_setup.h"

static uint64_t announced_records(const struct cluster *cluster,
				  unsigned source, unsigned destination)
{
	return (exchange_bytes(cluster->exchange, source, destination) -
		cluster->send.targets[destination].head_bytes) /
	       cluster_unit_bytes(cluster);
}

int cluster_check_sums(struct cluster *cluster, struct failure *failure)
{
	unsigned count = cluster->rank.node_count;

	/* What a rank announces to us alone is no more than its records. */
	if (!exchange_knows_all(cluster->exchange))
		return 0;
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

/* What each rank would get in all, from what all ranks have announced to each
 * other: a rank keeps what is left of its records. */
static void count_shares(struct cluster *cluster)
{
	unsigned count = cluster->rank.node_count;
	uint64_t *records = cluster->receive.shares;

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

/* --- shares that ranks tell each other -------------------------------------
 *
 * Where ranks know only what comes to themselves there are two collectives of 8
 * bytes for each pair of ranks: each rank tells each other what it has for it,
 * and adds up what it hears; then each tells all its sum.  So no rank gets the
 * n * n numbers of which these are the sums (exchange_knows_all()).
 */

#define NUMBER_BYTES 8

static struct exchange_length
number_length(const void *context, unsigned source, unsigned destination)
{
	(void)context, (void)source, (void)destination;
	return (struct exchange_length){ NUMBER_BYTES, 1, 0 };
}

/* No sum of good numbers is more than the whole: one that is ends the run. */
static int add_up(struct cluster *cluster,
		  const struct exchange_buffers *messages, uint64_t *share)
{
	uint64_t whole = cluster->agreement.whole_count;
	unsigned own = cluster->rank.rank;

	*share = cluster->send.targets[own].count;
	for (unsigned i = 0; i < cluster->rank.node_count; i++) {
		uint64_t records = i == own ? 0
					    : load_le64(messages->all +
							messages->offset[i]);

		if (records > whole - *share)
			return exchange_blame(
				cluster->exchange, i, cluster->failure,
				"has %" PRIu64 " records for rank %u, of the "
				"%" PRIu64 " that there are",
				records, own, whole);
		*share += records;
	}
	return 0;
}

/* Each rank tells each other what it has for it. */
static int learn_own(struct cluster *cluster, uint64_t *share)
{
	unsigned count = cluster->rank.node_count;
	struct exchange_buffers *messages = calloc(1, sizeof(*messages));
	uint8_t *numbers = malloc(count * (size_t)NUMBER_BYTES);
	int error = -ENOMEM;

	if (!messages || !numbers) {
		failure_no_memory(cluster->failure);
		goto end;
	}
	messages->length = number_length;
	for (unsigned i = 0; i < count; i++) {
		messages->own[i] = numbers + i * (size_t)NUMBER_BYTES;
		messages->own_bytes[i] = NUMBER_BYTES;
		store_le64(numbers + i * (size_t)NUMBER_BYTES,
			   cluster->send.targets[i].count);
	}
	error = exchange_send_buffers(cluster->exchange, messages,
				      cluster->failure);
	if (error == 0)
		error = add_up(cluster, messages, share);
	free(messages->all);
end:
	free(messages);
	free(numbers);
	return error;
}

/* The sums are those of all records. */
static int read_shares(struct cluster *cluster, const uint64_t *told)
{
	uint64_t left = cluster->agreement.whole_count;

	for (unsigned i = 0; i < cluster->rank.node_count; i++) {
		if (told[i] > left)
			return exchange_blame(
				cluster->exchange, i, cluster->failure,
				"gets %" PRIu64 " records, and %" PRIu64
				" are left",
				told[i], left);
		cluster->receive.shares[i] = told[i];
		left -= told[i];
	}
	if (left == 0)
		return 0;
	return failure_set(cluster->failure, EXIT_PEER, NULL, 0,
			   "no rank gets %" PRIu64 " of %" PRIu64 " records",
			   left, cluster->agreement.whole_count);
}

/* Each rank tells all others what it gets. */
static int learn_shares(struct cluster *cluster)
{
	uint64_t share, *told;
	int error = learn_own(cluster, &share);

	if (error)
		return error;
	error = cluster_allgather_words(&cluster->rank, cluster->exchange,
					&share, 1, &told, cluster->failure);
	if (error == 0)
		error = read_shares(cluster, told);
	free(told);
	return error;
}

/* --- whether shares are equal enough -------------------------------------- */

/* Are other ranks' shares needed: for whether they are too unequal, or for
 * where ours begins in the one file? */
static bool needs_shares(const struct cluster *cluster)
{
	return cluster->config->gathers ||
	       (cluster->splitters.kind != SPLITTERS_SAMPLED &&
		cluster->agreement.may_sample);
}

int cluster_learn_shares(struct cluster *cluster)
{
	return needs_shares(cluster) && !exchange_knows_all(cluster->exchange)
		       ? learn_shares(cluster)
		       : 0;
}

bool cluster_shares_are_skewed(struct cluster *cluster)
{
	if (needs_shares(cluster) && exchange_knows_all(cluster->exchange))
		count_shares(cluster);
	return cluster->splitters.kind != SPLITTERS_SAMPLED &&
	       cluster->agreement.may_sample &&
	       cluster_is_skewed(cluster->receive.shares,
				 cluster->rank.node_count);
}

/* How the slots of a share are divided. */
struct numbering {
	uint64_t received;    /* records of other ranks */
	uint64_t lower_slots; /* of lower ranks, before our own input's */
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
			arena, &left, ((size_t)receive->bucket_count + 1) * 4,
			CACHE_PAIR_BYTES);
		if (i == cluster->rank.rank)
			continue;
		source->head = arena_take_used(arena, &left, source->head_bytes,
					       CACHE_PAIR_BYTES);
		source->entries =
			arena_take_used(arena, &left, source->record_count * 8,
					CACHE_PAIR_BYTES);
	}
	orderer_take_memory(&cluster->orderer, plan, workers, arena, &left);
	orderer_take_oversized(&cluster->orderer, plan, record_count, arena);
}

/* What take_share() takes of memory, without what the plan has already. */
static uint64_t share_bytes(const struct cluster *cluster, uint64_t received)
{
	return received * 8 +
	       (uint64_t)cluster->rank.node_count *
		       (8 * (uint64_t)cluster->receive.bucket_count + 4);
}

static int plan_share(struct cluster *cluster, uint64_t received,
		      uint64_t slot_count, struct failure *failure)
{
	const struct output *output = &cluster->output.output;
	struct plan *plan = &cluster->receive.plan;
	uint64_t needed;
	const struct cluster_target *own =
		&cluster->send.targets[cluster->rank.rank];
	unsigned workers = cluster->pool.worker_count;
	struct plan_request request = {
		.shape = cluster->sort_config->shape,
		.record_count = received + own->count,
		.slot_count = slot_count,
		.worker_count = workers,
		.chunk_bytes_max = output_chunk_bytes_max(output),
		.staging_slots = output_slots_wanted(output, workers),
		.bucket_count = MAX(1, cluster->receive.bucket_count),
	};
	int error = sort_setup_plan(plan, &request, failure);

	if (error)
		return error;
	needed = plan->memory_bytes + share_bytes(cluster, received);
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

static void begin_ordering(struct cluster *cluster, uint64_t lower_slots)
{
	struct cluster_receive *receive = &cluster->receive;
	uint8_t *base = cluster->input.base -
			lower_slots * cluster->sort_config->shape.size;
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
	struct input *input = &cluster->input;
	uint64_t higher;
	int error;

	if (cluster_is_by_reference(cluster))
		return cluster_map_inputs(cluster, failure);
	higher = numbering->received - numbering->lower_slots;
	error = input_open_before(input, numbering->lower_slots, failure);
	return error ? error : input_open_after(input, higher, failure);
}

/* The number of our first record among those of all ranks: in the one file,
 * shares of lower ranks come first. */
static uint64_t first_record(const struct cluster *cluster)
{
	uint64_t first = 0;

	for (unsigned i = 0; cluster->config->gathers && i < cluster->rank.rank;
	     i++)
		first += cluster->receive.shares[i];
	return first;
}

/* How many records each rank keeps, which is no more than its share. */
static int gather_kept(struct cluster *cluster, uint64_t own_count,
		       uint64_t kept[RANK_NODES_MAX], struct failure *failure)
{
	unsigned count = cluster->rank.node_count;
	const uint64_t *shares = cluster->receive.shares;
	uint64_t *told;
	int error = cluster_allgather_words(&cluster->rank, cluster->exchange,
					    &own_count, 1, &told, failure);

	for (unsigned i = 0; i < count && error == 0; i++) {
		kept[i] = told[i];
		if (kept[i] > shares[i])
			error = exchange_blame(cluster->exchange, i, failure,
					       "keeps %" PRIu64 " of %" PRIu64
					       " records",
					       kept[i], shares[i]);
	}
	free(told);
	return error;
}

int cluster_shrink_output(struct cluster *cluster, uint64_t kept_count,
			  struct failure *failure)
{
	uint64_t kept[RANK_NODES_MAX] = { 0 }, first = 0, whole = 0;
	int error = 0;

	if (cluster->config->gathers)
		error = gather_kept(cluster, kept_count, kept, failure);
	if (error)
		return error;
	for (unsigned i = 0; i < cluster->rank.node_count; i++) {
		if (i < cluster->rank.rank)
			first += kept[i];
		whole += kept[i];
	}
	return cluster_output_shrink(cluster, first, kept_count, whole,
				     failure);
}

static int open_output(struct cluster *cluster, uint64_t record_count,
		       struct failure *failure)
{
	int error = cluster_output_open(cluster, first_record(cluster),
					record_count, failure);

	/* All timelines go into rank 0's. */
	if (error == 0 && cluster->rank.rank == 0)
		error = sort_trace_open(&cluster->trace,
					&cluster->output.output,
					&cluster->input, failure);
	return error;
}

int cluster_make_room(struct cluster *cluster, struct failure *failure)
{
	struct cluster_receive *receive = &cluster->receive;
	const struct share_cut *cut = &cluster->send.cuts[cluster->rank.rank];
	uint64_t record_count = cluster->send.targets[cluster->rank.rank].count;
	struct numbering numbering;
	int error;

	receive->first_bucket = share_first_bucket(cut);
	receive->bucket_count = share_end_bucket(cut) - receive->first_bucket;
	number_slots(cluster, &numbering);
	record_count += numbering.received;
	error = open_output(cluster, record_count, failure);
	if (error == 0)
		error = plan_share(cluster, numbering.received, numbering.slots,
				   failure);
	if (error)
		return error;
	take_share(cluster, record_count);
	begin_ordering(cluster, numbering.lower_slots);
	return open_records(cluster, &numbering, failure);
}
