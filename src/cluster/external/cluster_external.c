/*
 * cluster_external.c - the ranks' collectives of a sort beyond memory, in their
 * order
 */
#include "cluster/external/cluster_external.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <time.h>

#include "base/clock.h"
#include "cluster/collective/cluster_allgather.h"
#include "cluster/external/cluster_division.h"
#include "cluster/external/cluster_keep.h"
#include "cluster/external/cluster_runs.h"
#include "exchange/exchange_buffers.h"
#include "external/external_rank.h"

/* Sleep so long between two looks at threads that are ending. */
#define PAUSE_NS 500000

struct joint_sort {
	const struct cluster_external *external;
	struct exchange *exchange;
	struct external_rank *rank;
	unsigned own, count;
	struct cluster_runs runs;
	struct cluster_division division; /* of a shared input */
	/* What the wave at hand moves. */
	struct exchange_buffers buffers;
	uint8_t no_area[1]; /* to this rank, if it gets no part */
	uint64_t expected_bytes[RANK_NODES_MAX];
	/* What even and odd waves have brought: [run_count of the part], owned.
	 */
	const uint8_t **received[2];
	/* So far: of the last pass, and of the first one. */
	struct cluster_wave_result waves, kept_waves;
	uint64_t share; /* records that we shall write */
};

/* Do we get a part of the merge? */
static bool sorts(const struct joint_sort *joint)
{
	return joint->runs.sorts[joint->own];
}

/* --- waiting -------------------------------------------------------------- */

/* A failure of our threads is told to the other ranks at once. */
static int check_and_pause(const struct joint_sort *joint,
			   struct failure *failure)
{
	int error = external_rank_check(joint->rank, failure);

	return error ? error
		     : cluster_pause(joint->external->progress, failure);
}

static int wait_until_done(const struct joint_sort *joint,
			   struct failure *failure)
{
	int error = 0;

	while (error == 0 && external_rank_is_busy(joint->rank))
		error = check_and_pause(joint, failure);
	return error ? error : external_rank_finish(joint->rank, failure);
}

/* Wait until so many waves have been read, and so many taken. */
static int wait_for_wave(const struct joint_sort *joint, uint32_t read,
			 uint32_t taken, struct failure *failure)
{
	int error = 0;

	while (error == 0 && (external_rank_read_waves(joint->rank) < read ||
			      external_rank_taken(joint->rank) < taken))
		error = check_and_pause(joint, failure);
	return error ? error : external_rank_check(joint->rank, failure);
}

/* --- before the waves ----------------------------------------------------- */

/* The plan has memory for what others tell of their runs; keys that are spread
 * over the ranks in an uncommon way make more pieces than it expects. */
static uint64_t told_bytes_max(const struct joint_sort *joint)
{
	return 2 * joint->rank->index_bytes + 4 * MIB;
}

/* Divide the input while the reading teams go on, until all of it has been
 * given out. */
static int divide_input(struct joint_sort *joint, struct failure *failure)
{
	struct cluster_division *division = &joint->division;
	unsigned given_max[RANK_NODES_MAX];
	int error = 0;

	for (unsigned i = 0; i < joint->count; i++)
		given_max[i] = cluster_runs_max(&joint->runs, i) / 2;
	division->exchange = joint->exchange;
	division->rank = joint->external->rank;
	division->external_rank = joint->rank;
	division->claims = joint->rank->claims;
	cluster_division_begin(division, joint->runs.input_begin[joint->count],
			       given_max);
	while (error == 0 && !cluster_division_is_final(division)) {
		error = cluster_division_step(division, failure);
		if (error == 0)
			error = check_and_pause(joint, failure);
	}
	return error;
}

static int make_runs(struct joint_sort *joint, struct failure *failure)
{
	struct cluster_keep keep = {
		.exchange = joint->exchange,
		.rank = joint->external->rank,
		.hellos = joint->external->hellos,
		.runs = &joint->runs,
		.own = joint->rank,
		.progress = joint->external->progress,
	};
	struct external_rank_limits own;
	unsigned runs_max;
	int error;

	external_rank_limits(joint->rank, &own);
	error = cluster_runs_tell_limits(&joint->runs, &own, &runs_max,
					 failure);
	if (error == 0)
		error = cluster_keep_check(&keep, failure);
	if (error)
		return error;
	external_rank_start_runs(joint->rank, runs_max);
	if (joint->external->config->shares_input)
		error = divide_input(joint, failure);
	else
		error = cluster_keep_run(&keep, failure);
	joint->kept_waves = keep.result;
	return error ? error : wait_until_done(joint, failure);
}

/* Which parts of the input the runs of each rank must have. */
static int set_parts(struct joint_sort *joint, struct failure *failure)
{
	const uint64_t *begin = joint->runs.input_begin;
	uint16_t keeper[RANK_NODES_MAX];
	struct run_spans *spans;

	joint->runs.spans = spans = calloc(joint->count, sizeof(*spans));
	if (!spans)
		return failure_no_memory(failure);
	cluster_keepers_choose(joint->external->hellos, joint->count, keeper);
	for (unsigned i = 0; i < joint->count; i++)
		if (joint->external->config->shares_input) {
			spans[i].part_count = input_division_parts(
				&joint->division.division.parts[i],
				spans[i].parts);
		} else {
			struct run_spans *of = &spans[keeper[i]];

			of->parts[of->part_count++] = (struct input_range){
				.first_record = begin[i],
				.record_count = begin[i + 1] - begin[i],
			};
		}
	return 0;
}

/* Our merge, in pieces that no rank has more than its part of. */
static int plan_merge(struct joint_sort *joint, struct failure *failure)
{
	uint64_t wanted_bytes[RANK_NODES_MAX];
	const struct external_rank_part part = {
		.index = &joint->runs.part,
		.begin = run_cuts_begin(&joint->runs.cuts, joint->own),
		.end = run_cuts_end(&joint->runs.cuts, joint->own),
		.wanted_bytes = wanted_bytes,
	};

	for (unsigned i = 0; i < joint->count; i++)
		wanted_bytes[i] = i == joint->own
					  ? UINT64_MAX
					  : joint->runs.limits[i].wanted_bytes;
	for (unsigned i = 0; i < 2; i++) {
		joint->received[i] = calloc(joint->runs.part.run_count + 1,
					    sizeof(*joint->received[i]));
		if (!joint->received[i])
			return failure_no_memory(failure);
	}
	return external_rank_plan_part(joint->rank, sorts(joint) ? &part : NULL,
				       failure);
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
	uint8_t *area = external_rank_area(joint->rank, wave);
	uint64_t at = 0;

	for (unsigned i = 0; i < joint->count; i++) {
		uint64_t begin = at;

		for (uint32_t r = 0; r < joint->runs.run_count[i]; r++) {
			uint32_t number =
				cluster_runs_number(&joint->runs, i, r);

			joint->received[wave % 2][number] = area + at;
			if (i != joint->own && wave < merge->piece_count)
				at += wave_bytes_of(joint, wave, number);
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
		joint->waves.sent_bytes += joint->buffers.own_bytes[i];
		joint->waves.received_bytes += joint->expected_bytes[i];
	}
}

static int exchange_wave(struct joint_sort *joint, uint32_t wave,
			 struct failure *failure)
{
	uint64_t begin_ns = clock_now_ns();
	int error;

	expect_wave(joint, wave);
	fill_wave(joint, wave);
	joint->buffers.length = wave_length;
	joint->buffers.context = joint;
	joint->buffers.accept = accept_wave;
	error = exchange_begin_buffers(joint->exchange, &joint->buffers,
				       failure);
	if (error == 0)
		error = exchange_receive(joint->exchange, failure);
	if (error == 0 && wave < joint->rank->merge->piece_count)
		external_rank_give(joint->rank, wave,
				   joint->received[wave % 2]);
	if (error == 0)
		error = exchange_finish(joint->exchange, failure);
	joint->waves.ns += clock_now_ns() - begin_ns;
	cluster_progress_tell(joint->external->progress, clock_now_ns());
	return error;
}

/* --- shares --------------------------------------------------------------- */

/* Records of all blocks of our part but the lead's. */
static uint64_t part_records(const struct joint_sort *joint)
{
	const struct merge_plan *merge = joint->rank->merge;
	uint32_t piece = merge->has_lead ? 1 : 0;
	uint64_t records = 0;

	for (uint32_t r = 0; sorts(joint) && r < joint->runs.part.run_count;
	     r++)
		for (uint32_t b = merge_plan_block(merge, piece, r);
		     b < merge_plan_block(merge, merge->piece_count, r); b++)
			records += joint->runs.part.blocks[b].record_count;
	return records;
}

static int shares_are_wrong(struct failure *failure)
{
	return failure_set(failure, EXIT_PEER, NULL, 0,
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
 * other blocks, but for what the next rank has of these.  *first is the number
 * of our first record. */
static int read_shares(struct joint_sort *joint, const uint64_t *told,
		       uint64_t *first, struct failure *failure)
{
	uint64_t whole = cluster_runs_whole(&joint->runs), sum = 0;

	for (unsigned i = 0; i < joint->count; i++) {
		uint64_t lead = told[2 * i], others = told[2 * i + 1];
		uint64_t next =
			joint->runs.sorts[i] ? next_lead(joint, told, i) : 0;
		uint64_t most = joint->runs.sorts[i] ? whole : 0;

		if (lead > most || others > most)
			return exchange_blame(joint->exchange, i, failure,
					      "has more records than there "
					      "are");
		/* Who of them is wrong, no rank can know. */
		if (next > lead + others || lead + others - next > whole - sum)
			return shares_are_wrong(failure);
		if (i == joint->own) {
			*first = sum;
			joint->share = lead + others - next;
		}
		sum += lead + others - next;
	}
	return sum == whole ? 0 : shares_are_wrong(failure);
}

static int open_output(struct joint_sort *joint, struct failure *failure)
{
	struct cluster_output *output = joint->external->output;
	const uint64_t own[] = { external_rank_lead_records(joint->rank),
				 part_records(joint) };
	uint64_t first = 0, *told;
	int error = cluster_allgather_words(
		joint->external->rank, joint->exchange, own, 2, &told, failure);

	if (error == 0)
		error = read_shares(joint, told, &first, failure);
	free(told);
	if (error == 0 && sorts(joint))
		error = cluster_output_open(output, first, joint->share,
					    failure);
	if (error == 0 && sorts(joint))
		external_rank_give_output(joint->rank, &output->output,
					  joint->share);
	return error;
}

static int exchange_waves(struct joint_sort *joint, struct failure *failure)
{
	uint32_t pieces = joint->rank->merge->piece_count;
	int error =
		external_rank_start_sending(joint->rank, joint->runs.wants,
					    joint->runs.wave_count, failure);

	if (error)
		return error;
	external_rank_start_merge(joint->rank);
	for (uint32_t w = 0; w < joint->runs.wave_count && error == 0; w++) {
		/* The area that this wave is read into is free again when so
		 * many pieces are taken. */
		uint32_t taken = w > 0 ? MIN(w - 1, pieces) : 0;

		error = wait_for_wave(joint, w + 1, taken, failure);
		if (error == 0)
			error = exchange_wave(joint, w, failure);
		if (error == 0 && w == 0)
			error = wait_for_wave(joint, 1, MIN(1, pieces),
					      failure);
		if (error == 0 && w == 0)
			error = open_output(joint, failure);
	}
	if (error == 0 && !sorts(joint))
		external_rank_give_output(joint->rank, NULL, 0);
	return error ? error : wait_until_done(joint, failure);
}

/* --- all of it ------------------------------------------------------------ */

static void add_ns(const struct joint_sort *joint, enum cluster_figure figure,
		   uint64_t *since_ns)
{
	cluster_report_add_ns(joint->external->report, figure, *since_ns);
	*since_ns = clock_now_ns();
}

static int sort(struct joint_sort *joint, struct failure *failure)
{
	const struct run_index *index = joint->rank->index;
	uint64_t since_ns = clock_now_ns();
	int error = make_runs(joint, failure);

	add_ns(joint, CLUSTER_BUCKET_NS, &since_ns);
	if (error == 0)
		error = set_parts(joint, failure);
	if (error == 0)
		error = cluster_runs_cut(&joint->runs, index, failure);
	add_ns(joint, CLUSTER_SAMPLE_NS, &since_ns);
	if (error == 0)
		error = cluster_runs_tell_parts(&joint->runs, index, failure);
	if (error == 0)
		error = plan_merge(joint, failure);
	if (error == 0)
		error = cluster_runs_tell_wants(&joint->runs, index,
						joint->rank->merge, failure);
	add_ns(joint, CLUSTER_ARRANGE_NS, &since_ns);
	joint->external->result->bucketed_ns = since_ns;
	if (error == 0)
		error = exchange_waves(joint, failure);
	add_ns(joint, CLUSTER_EXCHANGE_NS, &since_ns);
	return error;
}

/* Duplicates have been dropped on the way: the output is smaller than it was
 * opened. */
static int end_output(struct joint_sort *joint, uint64_t written,
		      struct failure *failure)
{
	if (written == joint->share)
		return 0;
	if (joint->external->config->sort->unique)
		return cluster_output_shrink(joint->external->output, 0,
					     written, written, failure);
	return failure_set(failure, EXIT_PEER, NULL, 0,
			   "%" PRIu64 " records have come, not %" PRIu64,
			   written, joint->share);
}

/* The others are told at once: our threads may take a while to end. */
static void stop(struct joint_sort *joint, const struct failure *failure)
{
	const struct timespec pause = { .tv_nsec = PAUSE_NS };

	exchange_fail(joint->exchange, failure);
	external_rank_stop(joint->rank, failure);
	while (external_rank_is_busy(joint->rank))
		nanosleep(&pause, NULL);
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
	struct sorter_result *result = joint->external->result;
	uint64_t written = external_rank_fill_result(
		joint->rank, result, joint->external->external_result);

	result->record_count = written + result->dropped_count;
	result->size_bytes = result->record_count * joint->runs.shape->size;
	return written;
}

static int end(struct joint_sort *joint, struct failure *failure)
{
	const struct cluster_external *external = joint->external;
	int error = end_output(joint, fill_result(joint), failure);
	uint64_t since_ns = clock_now_ns();

	if (error)
		return error;
	cluster_stages_fill(external->stages->stages[joint->own],
			    external->external_result, &joint->kept_waves,
			    &joint->waves, external->result->threads);
	/* It ends when the slowest rank has come to it. */
	error = cluster_stages_tell(external->stages, external->rank,
				    joint->exchange, failure);
	add_ns(joint, CLUSTER_MEET_NS, &since_ns);
	return error;
}

int cluster_external_run(const struct cluster_external *external,
			 struct failure *failure)
{
	const struct sorter_config *config = external->config->sort;
	struct joint_sort *joint = calloc(1, sizeof(*joint));
	int error;

	if (!joint)
		return failure_no_memory(failure);
	exchange_share_cpu(external->exchange);
	joint->external = external;
	joint->exchange = external->exchange;
	joint->own = external->rank->rank;
	joint->count = external->rank->node_count;
	joint->runs = (struct cluster_runs){
		.exchange = external->exchange,
		.rank = external->rank,
		.shape = &config->shape,
		.key_shape = run_index_key_shape(&config->shape),
		.unique = config->unique,
		.kernel = config->kernel,
	};
	for (unsigned i = 0; i < joint->count; i++) {
		unsigned roles = external->hellos[i].roles;

		joint->runs.input_begin[i + 1] =
			joint->runs.input_begin[i] +
			external->hellos[i].record_count;
		joint->runs.sorts[i] =
			cluster_roles_have(roles, CLUSTER_ROLE_SORT);
		joint->runs.keeps[i] =
			cluster_roles_have(roles, CLUSTER_ROLE_KEEP);
		joint->runs.keeper_count += joint->runs.keeps[i];
	}
	error = external_rank_open(&joint->rank, external->config, failure);
	if (error == 0) {
		joint->runs.bytes_max = told_bytes_max(joint);
		error = sort(joint, failure);
		if (error)
			stop(joint, failure);
	}
	if (error == 0)
		error = end(joint, failure);
	close_all(joint);
	return error;
}
