#include "cluster/cluster_external.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <time.h>

#include "base/clock.h"
#include "cluster/cluster_allgather.h"
#include "cluster/cluster_runs.h"
#include "external/external_rank.h"

/* While threads work, other ranks are answered so often. */
#define SERVE_NS 500000
/* Of a message: see read_shares(). */
#define SHARE_BYTES 16

struct run_of_ranks {
	const struct cluster_external *external;
	struct exchange *exchange;
	struct external_rank *rank;
	unsigned own, count;
	struct cluster_runs runs;
	/* Of the wave at hand. */
	const struct outgoing_message *messages;
	uint64_t send_bytes[RANK_NODES_MAX];
	uint64_t expected_bytes[RANK_NODES_MAX];
	uint64_t arrived_at[RANK_NODES_MAX]; /* in the area */
	const uint8_t **received; /* [run_count of the part], owned */
	uint64_t share;		  /* records that we shall write */
};

/* --- waiting ---------------------------------------------------------------
 */

/* Answer other ranks, and pause.  0 or -errno with *failure filled. */
static int serve(const struct run_of_ranks *run, struct failure *failure)
{
	const struct timespec pause = { .tv_nsec = SERVE_NS };
	int error = exchange_serve(run->exchange, failure);

	if (error == 0)
		nanosleep(&pause, NULL);
	return error;
}

/* Until what was started has ended. */
static int wait_until_done(const struct run_of_ranks *run,
			   struct failure *failure)
{
	int error = 0;

	while (error == 0 && external_rank_is_busy(run->rank))
		error = serve(run, failure);
	return error ? error : external_rank_finish(run->rank, failure);
}

/* Until so many waves have been read, and so many taken. */
static int wait_for_wave(const struct run_of_ranks *run, uint32_t read,
			 uint32_t taken, struct failure *failure)
{
	int error = 0;

	while (error == 0 && (external_rank_read_waves(run->rank) < read ||
			      external_rank_taken(run->rank) < taken)) {
		error = external_rank_check(run->rank, failure);
		if (error == 0)
			error = serve(run, failure);
	}
	return error ? error : external_rank_check(run->rank, failure);
}

/* --- before the waves ------------------------------------------------------
 */

/* For what others tell of their runs the plan has memory; keys that are spread
 * over the ranks in an uncommon way make more pieces than it expects. */
static uint64_t told_bytes_max(const struct run_of_ranks *run)
{
	return 2 * external_rank_index_bytes(run->rank) + 4 * MIB;
}

static int make_runs(struct run_of_ranks *run, struct failure *failure)
{
	struct external_rank_limits own;
	unsigned runs_max;
	int error;

	external_rank_limits(run->rank, &own);
	error = cluster_runs_tell_limits(&run->runs, &own, &runs_max, failure);
	if (error)
		return error;
	external_rank_start_runs(run->rank, runs_max);
	return wait_until_done(run, failure);
}

/* Our merge, in pieces that no rank has more than its part of. */
static int plan_merge(struct run_of_ranks *run, struct failure *failure)
{
	uint64_t wanted_bytes[RANK_NODES_MAX];
	const struct external_rank_part part = {
		.index = &run->runs.part,
		.begin = run_cuts_begin(&run->runs.cuts, run->own),
		.end = run_cuts_end(&run->runs.cuts, run->own),
		.wanted_bytes = wanted_bytes,
	};

	for (unsigned i = 0; i < run->count; i++)
		wanted_bytes[i] = i == run->own
					  ? UINT64_MAX
					  : run->runs.limits[i].wanted_bytes;
	run->received =
		calloc(run->runs.part.run_count + 1, sizeof(*run->received));
	if (!run->received)
		return failure_no_memory(failure);
	return external_rank_plan_part(run->rank, &part, failure);
}

/* --- a wave ----------------------------------------------------------------
 */

static struct exchange_length wave_length(const void *context, unsigned source,
					  unsigned destination)
{
	const struct run_of_ranks *run = context;

	(void)destination;
	return (struct exchange_length){
		.unit_bytes = 1,
		.unit_count_max = run->runs.limits[source].wanted_bytes,
	};
}

static void read_message(void *context, unsigned node, uint64_t offset,
			 uint8_t *bytes, size_t byte_count)
{
	const struct run_of_ranks *run = context;

	memcpy(bytes, run->messages[node].bytes + offset, byte_count);
}

static int prepare_wave(void *context, const uint64_t *receive_bytes,
			struct failure *failure)
{
	const struct run_of_ranks *run = context;

	for (unsigned i = 0; i < run->count; i++)
		if (i != run->own && receive_bytes[i] != run->expected_bytes[i])
			return exchange_blame(
				run->exchange, i, failure,
				"sends %" PRIu64
				" bytes of blocks, not the %" PRIu64
				" that it has told of",
				receive_bytes[i], run->expected_bytes[i]);
	return 0;
}

static uint8_t *place(void *context, unsigned node, uint64_t offset,
		      size_t *room)
{
	const struct run_of_ranks *run = context;

	*room = run->expected_bytes[node] - offset;
	return external_rank_area(run->rank) + run->arrived_at[node] + offset;
}

static void arrived(void *context, unsigned node, uint64_t prefix_bytes,
		    bool whole)
{
	(void)context, (void)node, (void)prefix_bytes, (void)whole;
}

/* Where each run's blocks of our piece will lie: run after run, as each rank
 * sends them. */
static void expect_wave(struct run_of_ranks *run, uint32_t wave)
{
	const struct merge_plan *merge = external_rank_merge(run->rank);
	uint64_t at = 0;

	memset(run->expected_bytes, 0, sizeof(run->expected_bytes));
	for (uint32_t r = 0; r < run->runs.part.run_count; r++) {
		const struct run *own = &run->runs.part.runs[r];
		uint64_t begin = at;

		run->received[r] = external_rank_area(run->rank) + at;
		if (run->expected_bytes[own->source] == 0)
			run->arrived_at[own->source] = at;
		if (!own->is_received || wave >= merge->piece_count)
			continue;
		for (uint32_t b = merge_plan_block(merge, wave, r);
		     b < merge_plan_block(merge, wave + 1, r); b++)
			at += run->runs.part.blocks[b].stored_bytes;
		run->expected_bytes[own->source] += at - begin;
	}
}

static int exchange_wave(struct run_of_ranks *run, uint32_t wave,
			 struct failure *failure)
{
	const struct exchange_collective collective = {
		.context = run,
		.send_bytes = run->send_bytes,
		.read = read_message,
		.length = wave_length,
		.prepare = prepare_wave,
		.place = place,
		.arrived = arrived,
	};
	int error;

	expect_wave(run, wave);
	run->messages = external_rank_send(run->rank, wave);
	for (unsigned i = 0; i < run->count; i++)
		run->send_bytes[i] =
			i == run->own ? 0 : run->messages[i].byte_count;
	error = exchange_begin(run->exchange, &collective, failure);
	if (error == 0)
		error = exchange_receive(run->exchange, failure);
	if (error == 0 && wave < external_rank_merge(run->rank)->piece_count)
		external_rank_give(run->rank, wave, run->received);
	return error ? error : exchange_finish(run->exchange, failure);
}

/* --- shares ----------------------------------------------------------------
 */

/* Records of all blocks of our part but the lead's. */
static uint64_t part_records(const struct run_of_ranks *run)
{
	const struct merge_plan *merge = external_rank_merge(run->rank);
	uint32_t piece = merge->has_lead ? 1 : 0;
	uint64_t records = 0;

	for (uint32_t r = 0; r < run->runs.part.run_count; r++)
		for (uint32_t b = merge_plan_block(merge, piece, r);
		     b < merge_plan_block(merge, merge->piece_count, r); b++)
			records += run->runs.part.blocks[b].record_count;
	return records;
}

/* A rank writes what the cut where its part begins leaves of the lead, and its
 * other blocks, but for what the next rank has of these.  *first is the number
 * of our first record. */
static int read_shares(struct run_of_ranks *run,
		       const struct cluster_allgather *all, uint64_t *first,
		       struct failure *failure)
{
	uint64_t whole = cluster_runs_whole(&run->runs), sum = 0;

	for (unsigned i = 0; i < run->count; i++) {
		const uint8_t *told = all->all + all->offset[i];
		uint64_t lead = load_le64(told), others = load_le64(told + 8);
		uint64_t next =
			i + 1 < run->count
				? load_le64(all->all + all->offset[i + 1])
				: 0;

		if (lead > whole || others > whole || next > lead + others ||
		    lead + others - next > whole - sum)
			return exchange_blame(run->exchange, i, failure,
					      "has another share than its part "
					      "of all runs");
		if (i == run->own) {
			*first = sum;
			run->share = lead + others - next;
		}
		sum += lead + others - next;
	}
	if (sum == whole)
		return 0;
	return failure_set(failure, EXIT_PEER, NULL, 0,
			   "what the ranks announce does not add up");
}

static int open_output(struct run_of_ranks *run, struct failure *failure)
{
	struct cluster_output *output = run->external->output;
	uint8_t own[SHARE_BYTES];
	struct cluster_allgather all = {
		.rank = run->external->rank,
		.own = own,
		.own_bytes = sizeof(own),
	};
	uint64_t first = 0;
	int error;

	store_le64(own, external_rank_lead_records(run->rank));
	store_le64(own + 8, part_records(run));
	for (unsigned i = 0; i < run->count; i++)
		all.bytes[i] = sizeof(own);
	error = cluster_allgather(&all, run->exchange, failure);
	if (error == 0)
		error = read_shares(run, &all, &first, failure);
	free(all.all);
	if (error == 0)
		error = cluster_output_open(output, first, run->share, failure);
	if (error == 0)
		external_rank_give_output(run->rank, &output->output,
					  run->share);
	return error;
}

static int exchange_waves(struct run_of_ranks *run, struct failure *failure)
{
	uint32_t pieces = external_rank_merge(run->rank)->piece_count;
	int error = external_rank_start_sending(run->rank, run->runs.wants,
						run->runs.wave_count, failure);

	if (error)
		return error;
	external_rank_start_merge(run->rank);
	for (uint32_t w = 0; w < run->runs.wave_count && error == 0; w++) {
		error = wait_for_wave(run, w + 1, MIN(w, pieces), failure);
		if (error == 0)
			error = exchange_wave(run, w, failure);
		if (error == 0 && w == 0)
			error = wait_for_wave(run, 1, 1, failure);
		if (error == 0 && w == 0)
			error = open_output(run, failure);
	}
	return error ? error : wait_until_done(run, failure);
}

/* --- all of it -------------------------------------------------------------
 */

static void add_ns(const struct run_of_ranks *run, enum cluster_figure figure,
		   uint64_t *since_ns)
{
	cluster_report_add_ns(run->external->report, figure, *since_ns);
	*since_ns = clock_now_ns();
}

static int sort(struct run_of_ranks *run, struct failure *failure)
{
	const struct run_index *index = external_rank_index(run->rank);
	uint64_t since_ns = clock_now_ns();
	int error = make_runs(run, failure);

	add_ns(run, CLUSTER_BUCKET_NS, &since_ns);
	if (error == 0)
		error = cluster_runs_cut(&run->runs, index, failure);
	add_ns(run, CLUSTER_SAMPLE_NS, &since_ns);
	if (error == 0)
		error = cluster_runs_tell_parts(&run->runs, index, failure);
	if (error == 0)
		error = plan_merge(run, failure);
	if (error == 0)
		error = cluster_runs_tell_wants(&run->runs, index,
						external_rank_merge(run->rank),
						failure);
	add_ns(run, CLUSTER_ARRANGE_NS, &since_ns);
	run->external->result->bucketed_ns = since_ns;
	if (error == 0)
		error = exchange_waves(run, failure);
	add_ns(run, CLUSTER_EXCHANGE_NS, &since_ns);
	return error;
}

/* Duplicates have been dropped on the way: the output is smaller than it was
 * opened. */
static int end_output(struct run_of_ranks *run, uint64_t written,
		      struct failure *failure)
{
	if (written == run->share)
		return 0;
	if (run->external->config->sort->unique)
		return cluster_output_shrink(run->external->output, 0, written,
					     written, failure);
	return failure_set(failure, EXIT_PEER, NULL, 0,
			   "%" PRIu64 " records have come, not %" PRIu64,
			   written, run->share);
}

/* The others are told at once: our threads may take a while to end. */
static void stop(struct run_of_ranks *run, const struct failure *failure)
{
	const struct timespec pause = { .tv_nsec = SERVE_NS };

	exchange_fail(run->exchange, failure);
	external_rank_stop(run->rank, failure);
	while (external_rank_is_busy(run->rank))
		nanosleep(&pause, NULL);
}

static void close_all(struct run_of_ranks *run)
{
	external_rank_close(run->rank);
	cluster_runs_free(&run->runs);
	free(run->received);
	free(run);
}

/* Of our share.  Returns how many records were written. */
static uint64_t fill_result(struct run_of_ranks *run)
{
	struct sorter_result *result = run->external->result;
	uint64_t written = external_rank_fill_result(run->rank);

	result->record_count = written + result->dropped_count;
	result->size_bytes = result->record_count * run->runs.shape->size;
	return written;
}

int cluster_external_run(const struct cluster_external *external,
			 struct failure *failure)
{
	const struct sorter_config *config = external->config->sort;
	struct run_of_ranks *run = calloc(1, sizeof(*run));
	int error;

	if (!run)
		return failure_no_memory(failure);
	run->external = external;
	run->exchange = external->exchange;
	run->own = external->rank->rank;
	run->count = external->rank->node_count;
	run->runs = (struct cluster_runs){
		.exchange = external->exchange,
		.rank = external->rank,
		.hellos = external->hellos,
		.shape = &config->shape,
		.key_shape = run_index_key_shape(&config->shape),
		.unique = config->unique,
		.kernel = config->kernel,
	};
	error = external_rank_open(&run->rank, external->config,
				   external->result, external->external_result,
				   failure);
	if (error == 0) {
		run->runs.bytes_max = told_bytes_max(run);
		error = sort(run, failure);
		if (error)
			stop(run, failure);
	}
	if (error == 0)
		error = end_output(run, fill_result(run), failure);
	close_all(run);
	return error;
}
