/*
 * cluster_external.c - the sort beyond memory, by many ranks: their messages
 *
 * What a rank does by itself is in external_rank.h.  The ranks tell each other:
 *
 *      links      before all this, how fast each is (cluster_link.h)
 *      limits     how much memory each has for pieces, and for what others want
 *      batches    runs that other ranks keep (cluster_keep.h); or claims, which
 *                 part of a shared input each has taken (cluster_division.h)
 *      samples    of the runs that each has made, and which parts of the
 *                 input these have; all find the same cuts
 *      parts      the blocks of our runs that belong to another's part
 *      wants      which of these blocks another wants in which wave
 *      waves      the blocks
 *      shares     after the first wave: how many records each will write
 *      passes     in the end: what each pass has taken
 *
 * All but the batches and the waves is small, and in memory at once.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "base/clock.h"
#include "cluster/agreement/cluster_link.h"
#include "cluster/cluster_state.h"
#include "cluster/collective/cluster_allgather.h"
#include "cluster/external/cluster_division.h"
#include "cluster/external/cluster_keep.h"
#include "cluster/external/cluster_runs.h"
#include "exchange/exchange_buffers.h"
#include "external/external_rank.h"
#include "system/numa.h"

struct joint_sort {
	struct cluster *cluster;
	struct exchange *exchange;
	struct failure *failure; /* the run's */
	unsigned own, count;
	/* What this rank does by itself. */
	struct sorter_config sort;
	struct external_config config;
	struct external_rank *rank;
	struct cluster_progress progress;
	struct cluster_runs runs;
	/* What the wave at hand moves. */
	struct exchange_buffers buffers;
	uint8_t no_area[1]; /* to this rank, if it gets no part */
	uint64_t expected_bytes[RANK_NODES_MAX];
	/* What even and odd waves have brought: [run_count of the part], owned.
	 */
	const uint8_t **received[2];
	struct cluster_pass *passes; /* of this rank, in the result */
	/* [rank]: records that each will write. */
	uint64_t shares[RANK_NODES_MAX];
};

/* Do we get a part of the merge? */
static bool sorts(const struct joint_sort *joint)
{
	return joint->runs.sorts[joint->own];
}

/* --- waiting -------------------------------------------------------------- */

static int wait_until_done(struct joint_sort *joint)
{
	int error = 0;

	while (error == 0 && external_rank_is_busy(joint->rank))
		error = cluster_runs_pause(&joint->runs);
	return error ? error
		     : external_rank_finish(joint->rank, joint->failure);
}

/* Wait until so many waves have been read, and so many taken. */
static int wait_for_wave(struct joint_sort *joint, uint32_t read,
			 uint32_t taken)
{
	int error = 0;

	while (error == 0 && !external_rank_has_come(joint->rank, read, taken))
		error = cluster_runs_pause(&joint->runs);
	return error ? error : external_rank_check(joint->rank, joint->failure);
}

/* --- before the waves ----------------------------------------------------- */

static int make_runs(struct joint_sort *joint)
{
	int error =
		cluster_runs_tell_limits(&joint->runs, &joint->rank->limits);

	if (error == 0)
		error = cluster_keep_check(&joint->runs);
	if (error)
		return error;
	external_rank_start_runs(joint->rank,
				 cluster_runs_max(&joint->runs, joint->own));
	if (joint->config.ranks.shares_input)
		error = cluster_divide(&joint->runs);
	else
		error = cluster_keep_run(&joint->runs,
					 &joint->passes[EXTERNAL_RUNS]);
	return error ? error : wait_until_done(joint);
}

/* Our merge, in pieces that no rank has more than its part of. */
static int plan_merge(struct joint_sort *joint)
{
	uint64_t wanted_bytes[RANK_NODES_MAX];
	struct merge_request part = {
		.index = &joint->runs.part,
		.run_count = joint->runs.part.run_count,
		.begin = run_cuts_begin(&joint->runs.cuts, joint->own),
		.end = run_cuts_end(&joint->runs.cuts, joint->own),
		.rank_bytes_max = wanted_bytes,
	};

	for (unsigned i = 0; i < joint->count; i++)
		wanted_bytes[i] = i == joint->own
					  ? UINT64_MAX
					  : joint->runs.limits[i].wanted_bytes;
	for (unsigned i = 0; i < 2; i++) {
		joint->received[i] = calloc(joint->runs.part.run_count + 1,
					    sizeof(*joint->received[i]));
		if (!joint->received[i])
			return failure_no_memory(joint->failure);
	}
	return external_rank_plan_part(joint->rank, sorts(joint) ? &part : NULL,
				       joint->failure);
}

/* --- a wave --------------------------------------------------------------- */

static struct exchange_length wave_length(const void *context, unsigned source,
					  unsigned destination)
{
	const struct joint_sort *joint = context;

	(void)destination;
	return (struct exchange_length){
		.unit_bytes = 1,
		.unit_count_max = joint->runs.limits[source].wanted_bytes,
	};
}

static int accept_wave(void *context, const uint64_t *receive_bytes,
		       struct failure *failure)
{
	const struct joint_sort *joint = context;

	for (unsigned i = 0; i < joint->count; i++)
		if (i != joint->own &&
		    receive_bytes[i] != joint->expected_bytes[i])
			return exchange_blame(
				joint->exchange, i, failure,
				"sends %" PRIu64
				" bytes of blocks, not the %" PRIu64
				" that it has told of",
				receive_bytes[i], joint->expected_bytes[i]);
	return 0;
}

static uint64_t wave_bytes_of(const struct joint_sort *joint, uint32_t wave,
			      uint32_t run)
{
	const struct merge_plan *merge = joint->rank->merge;
	uint64_t bytes = 0;

	for (uint32_t b = merge_plan_block(merge, wave, run);
	     b < merge_plan_block(merge, wave + 1, run); b++)
		bytes += joint->runs.part.blocks[b].stored_bytes;
	return bytes;
}

/* Where each run's blocks of our piece will lie: run after run, as each rank
 * sends them. */
static void expect_wave(struct joint_sort *joint, uint32_t wave)
{
	const struct merge_plan *merge = joint->rank->merge;
	uint8_t *area = joint->rank->received[wave % 2];
	uint64_t at = 0;

	for (unsigned i = 0; i < joint->count; i++) {
		const uint32_t *numbers = cluster_runs_numbers(&joint->runs, i);
		uint64_t begin = at;

		for (uint32_t r = 0; r < joint->runs.spans[i].run_count; r++) {
			joint->received[wave % 2][numbers[r]] = area + at;
			if (i != joint->own && wave < merge->piece_count)
				at += wave_bytes_of(joint, wave, numbers[r]);
		}
		joint->expected_bytes[i] = at - begin;
	}
	/* A rank that gets no part has no area. */
	joint->buffers.all = at > 0 ? area : joint->no_area;
}

/* What this rank sends. */
static void fill_wave(struct joint_sort *joint, uint32_t wave)
{
	const struct outgoing_message *messages =
		external_rank_send(joint->rank, wave);

	for (unsigned i = 0; i < joint->count; i++) {
		joint->buffers.own[i] = messages[i].bytes;
		joint->buffers.own_bytes[i] =
			i == joint->own ? 0 : messages[i].byte_count;
		joint->passes[EXTERNAL_OUTPUT].sent_bytes +=
			joint->buffers.own_bytes[i];
		joint->passes[EXTERNAL_OUTPUT].received_bytes +=
			joint->expected_bytes[i];
	}
}

static int exchange_wave(struct joint_sort *joint, uint32_t wave)
{
	const struct cluster_pass *pass = &joint->passes[EXTERNAL_OUTPUT];
	uint64_t before = pass->sent_bytes + pass->received_bytes;
	int error;

	stage_wait(&joint->rank->clock, STAGE_FOR_WAVE);
	expect_wave(joint, wave);
	fill_wave(joint, wave);
	joint->buffers.length = wave_length;
	joint->buffers.context = joint;
	joint->buffers.accept = accept_wave;
	error = exchange_begin_buffers(joint->exchange, &joint->buffers,
				       joint->failure);
	if (error == 0)
		error = exchange_receive(joint->exchange, joint->failure);
	if (error == 0 && wave < joint->rank->merge->piece_count)
		external_rank_give(joint->rank, wave,
				   joint->received[wave % 2]);
	if (error == 0)
		error = exchange_finish(joint->exchange, joint->failure);
	stage_unit(&joint->rank->clock, STAGE_EXCHANGE,
		   pass->sent_bytes + pass->received_bytes - before);
	cluster_progress_tell(&joint->progress, clock_now_ns());
	return error;
}

/* --- shares --------------------------------------------------------------- */

/* Records of all blocks of our part but the lead's. */
static uint64_t part_records(const struct joint_sort *joint)
{
	const struct merge_plan *merge = joint->rank->merge;
	uint32_t piece = merge->begin ? 1 : 0;
	uint64_t records = 0;

	for (uint32_t r = 0; sorts(joint) && r < joint->runs.part.run_count;
	     r++)
		for (uint32_t b = merge_plan_block(merge, piece, r);
		     b < merge_plan_block(merge, merge->piece_count, r); b++)
			records += joint->runs.part.blocks[b].record_count;
	return records;
}

static int shares_are_wrong(struct joint_sort *joint)
{
	return failure_set(joint->failure, EXIT_PEER, NULL, 0,
			   "what the ranks announce does not add up");
}

/* What the next rank that gets a part has of the blocks before it. */
static uint64_t next_lead(const struct joint_sort *joint, const uint64_t *told,
			  unsigned node)
{
	for (unsigned i = node + 1; i < joint->count; i++)
		if (joint->runs.sorts[i])
			return told[2 * i];
	return 0;
}

/* A rank writes what the cut where its part begins leaves of the lead, and its
 * other blocks, but for what the next rank has of these. */
static int read_shares(struct joint_sort *joint, const uint64_t *told)
{
	uint64_t whole = 0, sum = 0;

	for (unsigned i = 0; i < joint->count; i++)
		whole += joint->runs.spans[i].record_count;
	for (unsigned i = 0; i < joint->count; i++) {
		uint64_t lead = told[2 * i], others = told[2 * i + 1];
		uint64_t next =
			joint->runs.sorts[i] ? next_lead(joint, told, i) : 0;
		uint64_t most = joint->runs.sorts[i] ? whole : 0;

		if (lead > most || others > most)
			return exchange_blame(joint->exchange, i,
					      joint->failure,
					      "has more records than there "
					      "are");
		/* The sum is wrong, but it does not show which rank lied, so
		 * none is named. */
		if (next > lead + others || lead + others - next > whole - sum)
			return shares_are_wrong(joint);
		joint->shares[i] = lead + others - next;
		sum += joint->shares[i];
	}
	return sum == whole ? 0 : shares_are_wrong(joint);
}

static int open_output(struct joint_sort *joint)
{
	const uint64_t own[] = { joint->rank->lead_records,
				 part_records(joint) };
	uint64_t told[2 * RANK_NODES_MAX], share, written;
	int error =
		cluster_allgather_words(&joint->cluster->rank, joint->exchange,
					own, 2, told, joint->failure);

	if (error == 0)
		error = read_shares(joint, told);
	share = joint->shares[joint->own];
	written = joint->sort.head_records > 0
			  ? cluster_output_head(joint->cluster, joint->shares)
			  : share;
	if (error == 0 && sorts(joint))
		error = cluster_output_open(joint->cluster, joint->shares,
					    written, joint->failure);
	if (error == 0 && sorts(joint))
		external_rank_give_output(
			joint->rank, &joint->cluster->output.output, share);
	return error;
}

static int exchange_waves(struct joint_sort *joint)
{
	uint32_t pieces = joint->rank->merge->piece_count;
	int error = external_rank_start_sending(joint->rank, joint->runs.wants,
						joint->runs.wave_count,
						joint->failure);

	if (error)
		return error;
	external_rank_start_merge(joint->rank);
	for (uint32_t w = 0; w < joint->runs.wave_count && error == 0; w++) {
		/* The area that this wave is read into is free again when so
		 * many pieces are taken. */
		uint32_t taken = w > 0 ? MIN(w - 1, pieces) : 0;

		error = wait_for_wave(joint, w + 1, taken);
		if (error == 0)
			error = exchange_wave(joint, w);
		if (error == 0 && w == 0)
			error = wait_for_wave(joint, 1, MIN(1, pieces));
		if (error == 0 && w == 0)
			error = open_output(joint);
	}
	if (error == 0 && !sorts(joint))
		external_rank_give_output(joint->rank, NULL, 0);
	return error ? error : wait_until_done(joint);
}

/* --- all of it ------------------------------------------------------------ */

static int sort(struct joint_sort *joint)
{
	uint64_t since_ns = clock_now_ns();
	int error = make_runs(joint);

	cluster_add_ns(joint->cluster, CLUSTER_BUCKET_NS, &since_ns);
	if (error == 0)
		error = cluster_runs_cut(&joint->runs);
	cluster_add_ns(joint->cluster, CLUSTER_SAMPLE_NS, &since_ns);
	if (error == 0)
		error = cluster_runs_tell_parts(&joint->runs);
	if (error == 0)
		error = plan_merge(joint);
	if (error == 0)
		error = cluster_runs_tell_wants(&joint->runs);
	cluster_add_ns(joint->cluster, CLUSTER_ARRANGE_NS, &since_ns);
	joint->cluster->result->sort.bucketed_ns = since_ns;
	if (error == 0)
		error = exchange_waves(joint);
	cluster_add_ns(joint->cluster, CLUSTER_EXCHANGE_NS, &since_ns);
	return error;
}

/* Duplicates have been dropped on the way: the output is smaller than it was
 * opened. */
static int end_output(struct joint_sort *joint, uint64_t written)
{
	uint64_t share = joint->shares[joint->own];

	if (written == share)
		return 0;
	if (joint->sort.unique)
		return cluster_output_shrink(joint->cluster, joint->shares,
					     written, joint->failure);
	return failure_set(joint->failure, EXIT_PEER, NULL, 0,
			   "%" PRIu64 " records have come, not %" PRIu64,
			   written, share);
}

static void close_all(struct joint_sort *joint)
{
	external_rank_close(joint->rank);
	cluster_runs_free(&joint->runs);
	free(joint->received[0]);
	free(joint->received[1]);
	free(joint);
}

/* Fill in the result of our share.  Returns how many records were written. */
static uint64_t fill_result(struct joint_sort *joint)
{
	struct sorter_result *result = &joint->cluster->result->sort;
	uint64_t written = external_rank_fill_result(
		joint->rank, result, &joint->cluster->result->external);

	result->record_count = written + result->dropped_count;
	result->size_bytes =
		result->record_count * sorter_input_size(&joint->sort);
	return written;
}

static int end(struct joint_sort *joint)
{
	struct cluster_result *result = joint->cluster->result;
	int error = end_output(joint, fill_result(joint));
	uint64_t since_ns = clock_now_ns();

	if (error)
		return error;
	cluster_passes_fill(joint->passes, &result->external,
			    result->sort.threads);
	/* It ends when the slowest rank has come to it. */
	error = cluster_passes_tell(&result->passes, &joint->cluster->rank,
				    joint->exchange, joint->failure);
	cluster_add_ns(joint->cluster, CLUSTER_MEET_NS, &since_ns);
	return error;
}

static int run(struct joint_sort *joint)
{
	int error = external_rank_open(&joint->rank, &joint->config,
				       joint->failure);

	if (error)
		return error;
	joint->runs.self = joint->rank;
	/* The plan has memory for what others tell of their runs; keys that are
	 * spread over the ranks in an uncommon way make more pieces than it
	 * expects. */
	joint->runs.bytes_max = 2 * joint->rank->index_bytes + 4 * MIB;
	error = sort(joint);
	if (error == 0)
		return end(joint);
	/* The others are told at once: our threads may take a while to end. */
	exchange_fail(joint->exchange, joint->failure);
	external_rank_stop(joint->rank, joint->failure);
	return error;
}

/* The ranks of one machine share its CPUs. */
static void configure(struct joint_sort *joint)
{
	const struct cluster *cluster = joint->cluster;
	struct sorter_config *sort = &joint->sort;

	*sort = *cluster->sort_config;
	if (!cluster_own_has(cluster, CLUSTER_ROLE_READ))
		sort->input_count = 0;
	sort->memory_bytes = cluster_memory_bytes(cluster);
	sort->threads_max =
		MAX(1, cluster->machine_cpus / cluster->rank.machine_count);
	sort->trace_path = NULL;
	joint->config = *cluster->config->external;
	joint->config.sort = sort;
	joint->config.has_nodes = cluster->has_nodes;
	joint->config.ranks =
		cluster_work_of(cluster->hellos, joint->count, joint->own,
				cluster->config->shares_input);
	joint->config.progress = cluster_progress_note;
	joint->config.progress_context = &joint->progress;
	joint->progress = (struct cluster_progress){
		.exchange = cluster->exchange,
		.rank = &cluster->rank,
		.show = cluster->config->progress,
	};
}

/* What the ranks tell each other of their runs. */
static int begin_runs(struct joint_sort *joint)
{
	const struct cluster *cluster = joint->cluster;
	const struct record_shape *shape = &joint->sort.shape;
	struct cluster_runs *runs = &joint->runs;
	struct input_range range = { 0 };

	*runs = (struct cluster_runs){
		.exchange = cluster->exchange,
		.failure = cluster->failure,
		.rank = &cluster->rank,
		.hellos = cluster->hellos,
		.progress = &joint->progress,
		.shape = shape,
		.key_shape = run_index_key_shape(shape),
		.drops = joint->sort.unique || joint->sort.head_records > 0,
		.kernel = joint->sort.kernel,
		.keeper_count = joint->config.ranks.keeper_count,
		.spans = calloc(joint->count, sizeof(*runs->spans)),
	};
	if (!runs->spans)
		return failure_no_memory(joint->failure);
	cluster_keepers_choose(runs->hellos, joint->count, runs->keeper);
	for (unsigned i = 0; i < joint->count; i++) {
		const struct cluster_hello *hello = &runs->hellos[i];
		struct run_spans *kept = &runs->spans[runs->keeper[i]];

		range.first_record += range.record_count;
		range.record_count = hello->record_count;
		kept->part_count = input_range_append(kept->parts,
						      kept->part_count, range);
		runs->sorts[i] =
			cluster_roles_have(hello->roles, CLUSTER_ROLE_SORT);
		runs->keeps[i] =
			cluster_roles_have(hello->roles, CLUSTER_ROLE_KEEP);
	}
	return 0;
}

static int learn_link(struct joint_sort *joint)
{
	struct cluster_link link = { .own = joint->config.rates.link };
	uint64_t since_ns = clock_now_ns();
	int error = cluster_link_learn(&link, joint->cluster->hellos,
				       &joint->cluster->rank, joint->exchange,
				       UINT64_MAX, joint->failure);

	joint->config.rates.link = link.own;
	joint->config.least_link = link.least;
	cluster_add_ns(joint->cluster, CLUSTER_ARRANGE_NS, &since_ns);
	return error;
}

/* Where several ranks share a machine with several nodes: the threads that are
 * started from now on run on our own CPUs, by whose nodes they were chosen. */
static void keep_to_cpus(const struct cluster *cluster)
{
	struct failure ignored;

	if (cluster->has_nodes && cluster->rank.machine_count > 1)
		(void)numa_confine(numa_nodes_of(&cluster->topology),
				   &cluster->topology, &ignored);
}

int cluster_sort_externally(struct cluster *cluster)
{
	struct joint_sort *joint;
	int error;

	if (!cluster->config->external)
		return failure_set(cluster->failure, EXIT_RESOURCES, "memory",
				   0, "this sort is beyond it");
	thread_pool_stop(&cluster->pool);
	keep_to_cpus(cluster);
	joint = calloc(1, sizeof(*joint));
	if (!joint)
		return failure_no_memory(cluster->failure);
	joint->cluster = cluster;
	joint->exchange = cluster->exchange;
	joint->failure = cluster->failure;
	joint->own = cluster->rank.rank;
	joint->count = cluster->rank.node_count;
	joint->passes = cluster->result->passes.of[joint->own];
	memset(joint->passes, 0, EXTERNAL_PASSES * sizeof(*joint->passes));
	configure(joint);
	error = begin_runs(joint);
	if (error == 0)
		error = learn_link(joint);
	exchange_share_cpu(joint->exchange);
	if (error == 0)
		error = run(joint);
	close_all(joint);
	return error;
}
