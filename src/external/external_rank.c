/*
 * external_rank.c - a rank's own part of a sort beyond memory, in its threads
 */
#include "external/external_rank.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#include "base/clock.h"
#include "external/external_state.h"

/* This part of the outgoing area is staging for reads. */
#define SLOTS_PART 8
/* Reads that are under way, at most. */
#define SLOTS_MAX 16
/* A read is at least as long, if blocks are smaller. */
#define SLOT_BYTES (128 * KIB)

/* --- pass 1 --------------------------------------------------------------- */

/* Runs of other ranks are there as soon as the last wave of the pass is. */
static bool append_kept(struct external_rank *rank)
{
	struct external *external = rank->external;
	struct failure failure;
	int error;

	if (!rank->kept)
		return true;
	external_begin_pass(external, EXTERNAL_RUNS);
	if (!external_wait_for_wave(external, NULL, &rank->kept_is_over, 0))
		return false;
	error = kept_runs_append(rank->kept, &external->runs.index, &failure);
	return external_good(external, error, &failure);
}

static void drive_runs(void *context, unsigned worker)
{
	struct external_rank *rank = context;
	struct external *external = rank->external;

	(void)worker;
	if (external_make_runs(external) && append_kept(rank)) {
		external_count_runs(external);
		external_settle_runs(external, external->plan.free_batches,
				     rank->runs_max);
	}
	external_end_pass(external);
	atomic_store_explicit(&rank->is_driving, false, memory_order_release);
}

static void start_pass(struct external_rank *rank, enum external_pass pass,
		       thread_pool_fn *drive)
{
	stage_begin(&rank->clock, &rank->stages[pass], STAGE_EXCHANGE, NULL,
		    clock_now_ns());
	atomic_store_explicit(&rank->is_driving, true, memory_order_relaxed);
	thread_pool_launch(&rank->driver, drive, rank);
}

void external_rank_start_runs(struct external_rank *rank, unsigned runs_max)
{
	rank->runs_max = runs_max;
	start_pass(rank, EXTERNAL_RUNS, drive_runs);
}

uint64_t external_rank_read_records(const struct external_rank *rank)
{
	return external_read_bytes(rank->external, EXTERNAL_RUNS) /
	       rank->external->request.shape.size;
}

bool external_rank_is_busy(const struct external_rank *rank)
{
	return atomic_load_explicit(&rank->is_driving, memory_order_acquire);
}

int external_rank_check(const struct external_rank *rank,
			struct failure *failure)
{
	return first_failure_get(&rank->external->failure, failure);
}

int external_rank_finish(struct external_rank *rank, struct failure *failure)
{
	thread_pool_wait(&rank->driver);
	stage_end(&rank->clock, clock_now_ns());
	stage_end(&rank->sender_clock, clock_now_ns());
	return first_failure_get(&rank->external->failure, failure);
}

/* --- the areas of pass 2 -------------------------------------------------- */

/* What the free batches had is divided anew. */
static void lay_out_areas(struct external_rank *rank)
{
	struct external *external = rank->external;
	const struct external_plan *plan = &external->plan;
	unsigned of_batch = external_plan_areas(plan, plan->free_batches);
	uint8_t *areas[EXTERNAL_RANK_AREAS] = { NULL };
	unsigned count = 0;
	struct batch *batch;

	while ((batch = pipeline_take(&external->pipeline.free)))
		for (unsigned i = 0;
		     i < of_batch && count < EXTERNAL_RANK_AREAS; i++)
			areas[count++] =
				batch->memory.base + i * rank->area_bytes;
	assert(count == EXTERNAL_RANK_AREAS);
	external_add_pieces(external, areas, plan->free_batches);
	for (unsigned i = 0; i < 2; i++) {
		rank->received[i] = areas[2 + i];
		rank->areas[i] = areas[4 + i];
	}
}

/* --- our part ------------------------------------------------------------- */

int external_rank_plan_part(struct external_rank *rank,
			    struct merge_request *part, struct failure *failure)
{
	struct external *external = rank->external;

	rank->has_part = part != NULL;
	if (part) {
		part->unique = external->config->sort->unique;
		part->piece_records = rank->limits.piece_records;
		part->kernel = external->config->sort->kernel;
		part->rank_count = external->config->ranks.rank_count;
		part->piece_count_max = EXTERNAL_RANK_PIECES_MAX;
		if (!external_open_pieces(external, part))
			return first_failure_get(&external->failure, failure);
	}
	lay_out_areas(rank);
	return 0;
}

/* --- what goes out -------------------------------------------------------- */

static uint32_t slot_bytes(const struct external_rank *rank)
{
	const struct external *external = rank->external;
	uint64_t block_bytes = (uint64_t)external->plan.block_records *
			       external->request.shape.size;
	uint64_t least = MIN(SLOT_BYTES, rank->area_bytes / SLOTS_PART / 4);

	return (uint32_t)READ_AHEAD_SLOT_BYTES(MAX(block_bytes, least));
}

static unsigned slot_count(const struct external_rank *rank)
{
	uint64_t count = rank->area_bytes / SLOTS_PART / slot_bytes(rank);

	return (unsigned)MAX(2, MIN(count, SLOTS_MAX));
}

static void read_wave(void *context, unsigned worker)
{
	struct external_rank *rank = context;
	struct failure failure;
	int error;

	(void)worker;
	stage_resume(&rank->sender_clock, STAGE_FOR_WAVE);
	error = outgoing_read(&rank->outgoing, &failure);
	external_good(rank->external, error, &failure);
	atomic_fetch_add_explicit(&rank->read_waves, 1, memory_order_release);
}

int external_rank_start_sending(struct external_rank *rank,
				const struct outgoing_wants *wants,
				uint32_t wave_count, struct failure *failure)
{
	struct external *external = rank->external;
	const struct outgoing_request request = {
		.index = &external->runs.index,
		.scratch = &external->runs.scratch,
		.wants = wants,
		.rank_count = external->config->ranks.rank_count,
		.wave_count = wave_count,
		.areas = { rank->areas[0] + rank->slots_bytes, rank->areas[1] },
		.area_bytes = rank->area_bytes - rank->slots_bytes,
		.memory = rank->areas[0],
		.slot_bytes = slot_bytes(rank),
		.depth = slot_count(rank),
		.kernel = external->config->sort->kernel,
		.clock = &rank->sender_clock,
	};
	int error = outgoing_open(&rank->outgoing, &request, failure);

	stage_begin(&rank->sender_clock, &rank->stages[EXTERNAL_OUTPUT],
		    STAGE_SEND, NULL, clock_now_ns());
	if (error == 0 && wave_count > 0)
		thread_pool_launch(&rank->sender, read_wave, rank);
	return error;
}

const struct outgoing_message *external_rank_send(struct external_rank *rank,
						  uint32_t wave)
{
	if (wave + 1 < rank->outgoing.request.wave_count)
		thread_pool_launch(&rank->sender, read_wave, rank);
	return rank->outgoing.messages[wave % 2];
}

/* --- pass 2 --------------------------------------------------------------- */

static int fill(void *context, unsigned lane, struct batch *batch)
{
	struct external_rank *rank = context;
	struct external *external = rank->external;
	struct external_merge *merge = &external->merge;
	uint32_t piece = merge->pieces.next_piece;
	int more;

	if (!external_wait_for_wave(external, &external->pipeline.reading[0],
				    &rank->given_waves, piece))
		return -1;
	piece_source_set_received(&merge->pieces,
				  rank->received_runs[piece % 2]);
	more = external_fill_piece(external, lane, batch);
	if (more < 0)
		return -1;
	if (merge_plan_is_lead(&merge->plan, piece))
		rank->lead_records = piece_source_rest_records(&merge->pieces);
	atomic_fetch_add_explicit(&rank->taken_waves, 1, memory_order_release);
	return more;
}

/* A peer may lie about its blocks: the output has room for no more. */
static bool fits(const struct external_rank *rank, const struct batch *batch)
{
	struct external *external = rank->external;
	struct failure failure;
	int error = 0;

	if (batch->record_count >
	    rank->records_max - external->ordering.next_record)
		error = failure_set(
			&failure, EXIT_PEER, NULL, 0,
			"more records have come than the ranks have told of");
	return external_good(external, error, &failure);
}

static bool empty(void *context, struct batch *batch)
{
	struct external_rank *rank = context;
	struct external *external = rank->external;

	return external_wait_for_wave(external, &external->pipeline.ordering,
				      &rank->output_is_open, 0) &&
	       fits(rank, batch) && external_order(external, batch, NULL);
}

static void drive_merge(void *context, unsigned worker)
{
	struct external_rank *rank = context;
	struct external *external = rank->external;

	(void)worker;
	if (rank->has_part)
		external_run_merge(external, fill, empty, NULL, rank);
	/* The sink's slots go with us.  Pieces without records have not waited
	 * for it. */
	external_wait_for_wave(external, NULL, &rank->output_is_open, 0);
	if (rank->has_part && atomic_load_explicit(&rank->output_is_open,
						   memory_order_acquire) == 1)
		external_finish_sink(external, NULL);
	external_end_pass(external);
	atomic_store_explicit(&rank->is_driving, false, memory_order_release);
}

void external_rank_start_merge(struct external_rank *rank)
{
	external_begin_pass(rank->external, EXTERNAL_OUTPUT);
	start_pass(rank, EXTERNAL_OUTPUT, drive_merge);
}

void external_rank_give(struct external_rank *rank, uint32_t wave,
			const uint8_t *const *received)
{
	rank->received_runs[wave % 2] = received;
	thread_pool_set(&rank->driver, &rank->given_waves, wave + 1);
}

bool external_rank_has_come(const struct external_rank *rank, uint32_t read,
			    uint32_t taken)
{
	return atomic_load_explicit(&rank->read_waves, memory_order_acquire) >=
		       read &&
	       atomic_load_explicit(&rank->taken_waves, memory_order_acquire) >=
		       taken;
}

void external_rank_give_output(struct external_rank *rank,
			       struct output *output, uint64_t record_count)
{
	struct external *external = rank->external;
	const struct external_plan *plan = &external->plan;

	if (output) {
		destination_lend(&external->ordering.destination, output);
		destination_set_slots(&external->ordering.destination,
				      external->slot_memory, plan->slot_count,
				      plan->output_chunk_bytes);
		stage_queue_resume(
			&output->sink.writes,
			&rank->stages[EXTERNAL_OUTPUT].sums[STAGE_WRITE]);
	}
	rank->records_max = record_count;
	thread_pool_set(&rank->driver, &rank->output_is_open, 1);
}

/* --- runs that go to other ranks ------------------------------------------ */

void external_rank_end_kept(struct external_rank *rank)
{
	thread_pool_set(&rank->driver, &rank->kept_is_over, 1);
}

static int open_kept(struct external_rank *rank, struct failure *failure)
{
	struct external *external = rank->external;
	const struct external_config *config = external->config;
	const struct kept_runs_request request = {
		.plan = &external->plan,
		.shape = &external->request.shape,
		.giver_count = config->ranks.giver_count,
		.drops = config->sort->unique || config->sort->head_records > 0,
		.sink = external_run_sink(external),
		.memory = external->kept_memory,
		.topology = &external->topology,
		.writes = &rank->stages[EXTERNAL_RUNS].sums[STAGE_WRITE],
		.failure = &external->failure,
	};

	if (config->ranks.giver_count == 0)
		return 0;
	return kept_runs_open(&rank->kept, &request, failure);
}

/* --- its life ------------------------------------------------------------- */

static int prepare(struct external_rank *rank, struct failure *failure)
{
	struct external *external = rank->external;
	const struct external_config *config = external->config;
	const struct external_plan *plan = &external->plan;
	int error = external_prepare(external, failure);

	rank->index_bytes = plan->index_bytes;
	if (config->ranks.shares_input)
		rank->claims = &external->reading.claims;
	if (error == 0)
		error = thread_pool_start(&rank->driver, 2, THREAD_POOL_BESIDE,
					  &external->topology, failure);
	if (error == 0)
		error = thread_pool_start(&rank->sender, 2, THREAD_POOL_BESIDE,
					  &external->topology, failure);
	if (error == 0)
		error = open_kept(rank, failure);
	if (error)
		return error;
	rank->area_bytes = external_plan_area_bytes(plan, plan->free_batches);
	rank->slots_bytes = (size_t)slot_count(rank) * slot_bytes(rank);
	assert(rank->slots_bytes < rank->area_bytes);
	rank->limits = (struct external_rank_limits){
		.piece_records =
			external_plan_piece_records(plan, plan->free_batches),
		.block_records = plan->block_records,
		.wanted_bytes = (rank->area_bytes - rank->slots_bytes) /
				MAX(1, config->ranks.taker_count),
		.kept_records = plan->kept_slice_records,
	};
	return 0;
}

int external_rank_open(struct external_rank **opened,
		       const struct external_config *config,
		       struct failure *failure)
{
	struct external_rank *rank = alloc_apart(1, sizeof(*rank));

	*opened = NULL;
	if (!rank)
		return failure_no_memory(failure);
	rank->external = external_new(config, failure);
	if (!rank->external) {
		free(rank);
		return -ENOMEM;
	}
	if (config->ranks.gives_runs)
		rank->given = &rank->external->given;
	rank->index = &rank->external->runs.index;
	rank->merge = &rank->external->merge.plan;
	rank->stages = rank->external->meter.tables;
	*opened = rank;
	return prepare(rank, failure);
}

void external_rank_stop(struct external_rank *rank,
			const struct failure *failure)
{
	first_failure_note(&rank->external->failure, failure);
	if (rank->claims)
		reading_claims_stop(rank->claims);
	/* A thread that waits for a word sees that it has changed, and the
	 * failure. */
	thread_pool_set(&rank->driver, &rank->given_waves, UINT32_MAX);
	thread_pool_set(&rank->driver, &rank->kept_is_over, UINT32_MAX);
	given_runs_sent(&rank->external->given);
	if (atomic_load_explicit(&rank->output_is_open, memory_order_relaxed) ==
	    0)
		thread_pool_set(&rank->driver, &rank->output_is_open,
				UINT32_MAX);
}

uint64_t external_rank_fill_result(const struct external_rank *rank,
				   struct sorter_result *result,
				   struct external_result *details)
{
	struct stage_result *stages;

	external_fill_result(rank->external, result, details);
	stages = details->passes[EXTERNAL_OUTPUT].stages;
	stages[STAGE_SEND].workers = 1;
	stages[STAGE_READ].workers++;
	details->passes[EXTERNAL_RUNS].stages[STAGE_WRITE].workers +=
		rank->external->config->ranks.giver_count;
	for (unsigned p = 0; p < EXTERNAL_PASSES; p++)
		details->passes[p].stages[STAGE_EXCHANGE].workers = 1;
	if (rank->kept)
		kept_runs_add_up(rank->kept, &details->plain_bytes,
				 &details->stored_bytes, &details->codec);
	return rank->external->ordering.next_record;
}

void external_rank_close(struct external_rank *rank)
{
	if (!rank)
		return;
	thread_pool_stop(&rank->driver);
	thread_pool_stop(&rank->sender);
	outgoing_close(&rank->outgoing);
	kept_runs_close(rank->kept);
	external_close_pieces(&rank->external->merge);
	external_close(rank->external);
	free(rank);
}
