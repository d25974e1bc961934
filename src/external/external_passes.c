/*
 * external_passes.c - the input into sorted runs, and these into the output,
 * piece by piece
 */
#include <errno.h>

#include "base/clock.h"
#include "base/format.h"
#include "external/external_state.h"
#include "external/runs/input_runs.h"
#include "sort/sort_setup.h"
#include "system/allowance.h"

/* --- scratch files -------------------------------------------------------- */

static void hold_files(struct external_runs *runs, const struct output *output)
{
	int fds[SCRATCH_DIRECTORIES_MAX + OUTPUT_FILES_MAX];
	unsigned count = 0;

	for (unsigned d = 0; d < runs->scratch.directory_count; d++) {
		fds[count] = runs->scratch.directories[d].fd;
		count += fds[count] >= 0;
	}
	for (unsigned i = 0; i < output->file_count; i++)
		fds[count++] = output->files[i].fd;
	file_hold_open(&runs->hold, fds, count);
}

int external_open_scratch(struct external *external, struct failure *failure)
{
	const struct external_config *config = external->config;
	struct scratch *scratch = &external->runs.scratch;

	if (scratch->directory_count > 0)
		return 0;
	return scratch_open(scratch, config->scratch_paths,
			    config->scratch_count, failure);
}

/* The scratch files get what the sort, which is yet to take some of its memory,
 * and the output leave. */
static void bound_scratch(struct external *external)
{
	const struct external_request *request = &external->request;
	uint64_t own = allowance_taken_bytes(), bytes;
	struct allowance allowance;

	if (request->ranks.rank_count > 1 ||
	    external->runs.scratch.memory_count == 0)
		return;
	own = request->memory_bytes - MIN(request->memory_bytes, own);
	own += request->output_bytes;
	allowance_read(&allowance);
	bytes = allowance.file_bytes;
	bytes -= MIN(bytes, own);
	if (external->reading.kind == READING_STREAMS &&
	    sort_setup_output_memory(external->config->sort, 1) > 0)
		bytes /= 2;
	scratch_bound_memory(&external->runs.scratch,
			     bytes - bytes / EXTERNAL_KERNEL_PART);
}

int external_begin_scratch(struct external *external, struct failure *failure)
{
	struct external_runs *runs = &external->runs;
	uint64_t bytes = external->plan.scratch_bytes;
	int error;

	if (runs->has_begun)
		return 0;
	error = external_open_scratch(external, failure);
	if (error)
		return error;
	bound_scratch(external);
	if (bytes > 0)
		error = scratch_reserve(&runs->scratch, bytes, failure);
	if (error)
		return error;
	hold_files(runs, &external->ordering.destination.files);
	runs->has_begun = true;
	return 0;
}

/* --- runs ----------------------------------------------------------------- */

/* The stream's length was not known: its index is full before its end. */
static int refuse_stream(const struct external *external,
			 const struct batch *batch, struct failure *failure)
{
	uint64_t records = batch->first_record + batch->record_count;
	const struct sorter_config *sort = external->config->sort;
	const char *what =
		sort->memory_bytes > 0 ? sort->memory_option : "memory";
	char read[FORMAT_SIZE_BYTES], memory[FORMAT_SIZE_BYTES];

	format_size_down(read, records * external->request.shape.size);
	format_size_up(memory, external->request.memory_bytes);
	return failure_set(failure, EXIT_RESOURCES, what, 0,
			   "%s are too little for a stream with these keys: "
			   "their index is full after %s; sort a file, or with "
			   "more memory",
			   memory, read);
}

static bool begin_run(struct external *external, const struct batch *batch)
{
	struct run_index *index = &external->runs.index;
	uint64_t blocks =
		DIV_ROUND_UP(batch->record_count, external->plan.block_records);
	/* What is kept of all batches stands for the whole input. */
	uint64_t input_count = batch == external->head.batch
				       ? external->reading.input.record_count
				       : batch->input_count;
	struct failure failure;
	int error;

	if (external->reading.kind == READING_STREAMS &&
	    index->block_count + blocks > external->plan.index_blocks)
		error = refuse_stream(external, batch, &failure);
	else
		error = run_index_begin(index,
					external->config->ranks.input_begin +
						batch->first_record,
					input_count, (uint32_t)blocks,
					&failure);
	return external_good(external, error, &failure);
}

/* The batch's records are read from the input again, where they are runs. */
static bool reread(struct external *external, const struct batch *batch)
{
	struct failure failure;
	int error =
		input_runs_add(&external->runs.index, &external->reading.input,
			       batch->first_record, batch->record_count,
			       batch->records, &failure);

	external->runs.reread_records += batch->record_count;
	return external_good(external, error, &failure);
}

static bool spill(struct external *external, struct batch *batch)
{
	struct failure failure;
	int error;

	if (external->may_reread &&
	    input_runs_ascend(&external->request.shape,
			      &external->reading.input, batch->first_record,
			      batch->record_count, batch->records))
		return reread(external, batch);
	error = external_begin_scratch(external, &failure);
	return external_good(external, error, &failure) &&
	       begin_run(external, batch) &&
	       external_order(external, batch, &external->runs.sink) &&
	       external_bound_by_runs(external);
}

/* The keys of the blocks that the run is counted in. */
static void index_resident(struct run_index *index, struct batch *batch)
{
	struct run *run = &index->runs[index->run_count - 1];
	uint32_t block = run_index_extend(index, batch->record_count);
	uint32_t size = index->shape.size;

	run->resident = batch;
	for (; block < index->block_count; block++) {
		struct run_block *own = &index->blocks[block];

		/* Another rank gets it as if it were stored. */
		own->stored_bytes = own->record_count * size;
		run_index_set_key(index, block,
				  batch->records +
					  batch_slot(batch, own->first_record) *
						  size);
	}
}

void external_count_runs(struct external *external)
{
	struct external_runs *runs = &external->runs;

	runs->made_count = runs->index.run_count +
			   external->pipeline.full.count +
			   atomic_load_explicit(&external->given.offered,
						memory_order_relaxed);
}

/* --- pass 1 ------------------------------------------------------------- */

static int fill_batch(void *context, unsigned lane, struct batch *batch)
{
	struct external *external = context;

	return reading_fill(&external->reading, lane, batch);
}

bool external_wait_for_wave(struct external *external,
			    struct stage_leader *leader, _Atomic uint32_t *word,
			    uint32_t value)
{
	uint32_t now = atomic_load_explicit(word, memory_order_acquire);
	uint64_t begin_ns = clock_now_ns();

	while (now <= value && !first_failure_stops(&external->failure)) {
		thread_pool_wait_while(&external->leaders, word, now);
		now = atomic_load_explicit(word, memory_order_acquire);
	}
	if (leader)
		stage_leader_add(leader, STAGE_FOR_WAVE,
				 clock_now_ns() - begin_ns);
	return !first_failure_stops(&external->failure);
}

/* The last batch of a lane may be empty. */
static bool give_away(struct external *external, struct batch *batch)
{
	struct given_runs *given = &external->given;
	uint64_t input_count = batch->record_count;
	uint32_t before;

	if (!external_sort_in_place(external, batch))
		return false;
	if (batch->record_count == 0)
		return true;
	before = given_runs_offer(given, batch,
				  external->config->ranks.input_begin +
					  batch->first_record,
				  input_count);
	return external_wait_for_wave(external, &external->pipeline.ordering,
				      &given->sent, before);
}

static bool empty_batch(void *context, struct batch *batch)
{
	struct external *external = context;

	if (external->head.batch)
		return external_empty_into_head(external, batch);
	return external->config->ranks.gives_runs ? give_away(external, batch)
						  : spill(external, batch);
}

bool external_make_runs(struct external *external)
{
	const struct external_plan *plan = &external->plan;
	unsigned lane_count = plan->lane_count;
	struct pipeline_run run = {
		.fill = fill_batch,
		.empty = empty_batch,
		.context = external,
		.lane_count = lane_count,
		.free_wanted =
			lane_count + (plan->batch_count > lane_count + 2),
		.free_at_end = plan->way == EXTERNAL_BY_KEYS ? 0 : 1,
	};
	struct failure failure;
	bool good;
	int error;

	if (external->config->merges_inputs)
		return external_index_inputs(external);
	if (external->config->ranks.gives_runs)
		run.free_at_end = plan->batch_count;
	external_begin_head(external);
	external_begin_pass(external, EXTERNAL_RUNS);
	error = reading_begin(&external->reading,
			      &external->runs.index.key_shape,
			      external->read_memory, &failure);
	good = external_good(external, error, &failure);
	for (unsigned l = 0; good && l < lane_count; l++)
		run.to_come[l] = reading_to_come(&external->reading, l);
	good = good && pipeline_run(&external->pipeline, &run) &&
	       external_end_head(external) &&
	       external_finish_sink(external, &external->runs.sink);
	external_end_pass(external);
	reading_end(&external->reading);
	return good;
}

/* --- the reading team: fill a batch with a piece -------------------------- */

/* The first keys of the piece's blocks are its sample: one of some hundred
 * records, from all parts of the piece.  Lane 0 lends its memory for it. */
static void sample_piece(const struct external *external, struct batch *batch)
{
	const struct merge_plan *plan = &external->merge.plan;
	const struct reading_lane *lane = &external->reading.lane[0];
	uint32_t piece = external->merge.pieces.piece;
	uint32_t begin = plan->piece_start[piece];
	uint32_t count = plan->piece_start[piece + 1] - begin;
	uint32_t wanted = MIN(count, batch->plan.splitters_wanted);
	uint32_t sample_count =
		MIN(count, MAX(wanted, batch->plan.sample_count));

	/* A rank's last piece may have leftovers of earlier pieces only. */
	if (count == 0) {
		splitters_init_static(&batch->splitters, SPLITTERS_STATIC_256,
				      batch->plan.bucket_count);
		return;
	}
	for (uint32_t i = 0; i < sample_count; i++) {
		uint32_t at = (uint32_t)((uint64_t)count * i / sample_count);

		lane->sample[i] =
			run_index_key(plan->index, plan->order[begin + at]);
	}
	splitters_init_sampled(&batch->splitters, &plan->index->key_shape,
			       lane->sample, sample_count,
			       lane->sample_prefixes, wanted);
	splitters_set_shape(&batch->splitters, &external->request.shape);
}

/* All records that are wanted of the merge have been read: what is left comes
 * behind them.  Ranks go on, as others wait for their blocks. */
static bool has_come_to_head(const struct external *external)
{
	return external->request.head_records > 0 &&
	       external->plan.rank_count == 1 &&
	       !external->config->sort->unique &&
	       external->merge.read_records >= external->request.head_records;
}

int external_fill_piece(void *context, unsigned lane, struct batch *batch)
{
	struct external *external = context;
	struct external_merge *merge = &external->merge;
	struct piece_source *pieces = &merge->pieces;
	const struct bucketing_config config = {
		.source = &pieces->source,
		.serve = external_serve,
		.serve_context = external,
	};

	(void)lane;
	if (!piece_source_begin(pieces, batch)) {
		batch->record_count = 0;
		return 0;
	}
	batch_begin(batch, &external->reading.wiring, &config);
	sample_piece(external, batch);
	bucketing_pass_all(&batch->bucketing, false, true);
	if (first_failure_stops(&external->failure))
		return -1;
	batch_count_crowded(batch);
	atomic_store_explicit(&merge->read_pieces, pieces->next_piece,
			      memory_order_release);
	merge->read_records += batch->record_count;
	if (has_come_to_head(external))
		return 0;
	return (int)(merge->plan.piece_count - pieces->next_piece);
}

/* --- giving room back ----------------------------------------------------- */

/* Room is given back in so many steps of a merge: few, since each step makes a
 * hole in each run. */
#define RELEASE_STEPS 16

/* Where the bytes that begin with the block end, as far as nothing else lies
 * between: blocks that were written at once, and padding to whole pages. */
static uint64_t end_of_extent(const struct run_block *blocks, uint32_t *block,
			      uint32_t end)
{
	unsigned directory = blocks[*block].directory;
	uint64_t end_bytes = blocks[*block].offset_bytes;

	while (*block < end && blocks[*block].directory == directory &&
	       blocks[*block].offset_bytes - end_bytes < PAGE_BYTES) {
		end_bytes = blocks[*block].offset_bytes +
			    blocks[*block].stored_bytes;
		++*block;
	}
	return end_bytes;
}

/* The whole pages of blocks [block, end), which have been read. */
static void release_blocks(struct external_runs *runs, uint32_t block,
			   uint32_t end)
{
	const struct run_block *blocks = runs->index.blocks;

	while (block < end) {
		struct scratch_place place = {
			.directory = blocks[block].directory,
			.offset_bytes = ROUND_UP(blocks[block].offset_bytes,
						 PAGE_BYTES),
		};
		uint64_t end_bytes = ROUND_DOWN(
			end_of_extent(blocks, &block, end), PAGE_BYTES);

		if (place.offset_bytes < end_bytes)
			scratch_release(&runs->scratch, &place,
					end_bytes - place.offset_bytes);
	}
}

/* What pieces before this one had, since the last time. */
static void release_pieces(struct external *external, uint32_t piece)
{
	struct external_merge *merge = &external->merge;
	const struct merge_plan *plan = &merge->plan;

	for (unsigned r = 0; r < plan->run_count; r++) {
		const struct run *run = &plan->index->runs[plan->first_run + r];

		if (!run->resident && !run->file)
			release_blocks(&external->runs,
				       merge_plan_block(
					       plan, merge->released_piece, r),
				       merge_plan_block(plan, piece, r));
	}
	merge->released_piece = piece;
}

/* The last leader: what is left in the end goes when the files are closed, and
 * that takes a second for 8 GB on a disk that is told of it (discard). */
static void tidy(void *context)
{
	struct external *external = context;
	const struct external_merge *merge = &external->merge;
	uint32_t piece =
		atomic_load_explicit(&merge->read_pieces, memory_order_acquire);

	if (piece - merge->released_piece >
	    merge->plan.piece_count / RELEASE_STEPS)
		release_pieces(external, piece);
}

/* --- one merge ------------------------------------------------------------ */

static bool empty_piece(void *context, struct batch *batch)
{
	struct external *external = context;

	return external_order(external, batch, external->merge.run);
}

/* Where a piece has little of each run, reads are small, and more of them take
 * the same memory. */
static uint32_t piece_slot_bytes(const struct external *external)
{
	const struct external_plan *plan = &external->plan;
	uint64_t block_bytes =
		(uint64_t)plan->block_records * external->request.shape.size;
	uint64_t bytes =
		READ_AHEAD_SLOT_BYTES(MAX(plan->read_bytes, block_bytes));

	return (uint32_t)MIN(bytes, plan->read_slot_bytes);
}

bool external_open_pieces(struct external *external,
			  const struct merge_request *request)
{
	const struct external_plan *plan = &external->plan;
	uint32_t slot_bytes = piece_slot_bytes(external);
	struct external_merge *merge = &external->merge;
	struct failure failure = { .status = EXIT_DONE };
	int error = merge_plan_make(&merge->plan, request, &failure);

	merge->pieces = (struct piece_source){
		.plan = &merge->plan,
		.scratch = &external->runs.scratch,
		.input = external->config->merges_inputs
				 ? &external->reading.input
				 : NULL,
		.worker_count = external->request.worker_count,
		.slot_bytes = slot_bytes,
		.depth = MIN(READ_AHEAD_DEPTH_MAX,
			     plan->read_depth * plan->read_slot_bytes /
				     slot_bytes),
		.memory = external->read_memory,
		.kernel = request->kernel,
		.codec = external->config->codec,
		.decoder_memory = external->decoder_memory,
		.decoder_bytes = plan->decoder_bytes,
	};
	if (error == -E2BIG)
		failure_set(&failure, EXIT_RESOURCES, NULL, 0,
			    "%u runs are too many for one merge",
			    request->run_count);
	if (error == 0)
		error = piece_source_open(&merge->pieces, &failure);
	merge->piece_count = merge->plan.piece_count;
	return external_good(external, error, &failure);
}

void external_close_pieces(struct external_merge *merge)
{
	piece_source_close(&merge->pieces);
	merge_plan_free(&merge->plan);
}

/* Room is given back on the way only if it is needed: it takes as long as
 * closing the files in the end. */
static bool is_room_short(const struct external *external)
{
	const struct scratch *scratch = &external->runs.scratch;
	uint64_t needed = (external->reading.input.record_count +
			   external->config->ranks.kept_records) *
			  external->request.shape.size;

	/* The files of a direct output have had their room from the beginning.
	 */
	if (!external->merge.run)
		needed -= MIN(needed,
			      output_room_bytes(
				      &external->ordering.destination.files));
	for (unsigned d = 0; d < scratch->directory_count; d++)
		if (scratch_room(scratch, d) < needed)
			return true;
	return false;
}

bool external_run_merge(struct external *external, pipeline_fill_fn *fill_one,
			pipeline_empty_fn *empty, pipeline_tidy_fn *tidy_up,
			void *context)
{
	unsigned free_count = external->pipeline.free.count;
	const struct pipeline_run run = {
		.fill = fill_one,
		.empty = empty,
		.tidy = tidy_up,
		.context = context,
		.lane_count = 1,
		.free_wanted = free_count,
		.free_at_end = free_count,
	};

	external->merge.released_piece = 0;
	external->merge.read_records = 0;
	atomic_store_explicit(&external->merge.read_pieces, 0,
			      memory_order_relaxed);
	return pipeline_run(&external->pipeline, &run);
}

/* Merge runs [first, first + count) through the free batches: into a run, or,
 * if that is NULL, into the output. */
static bool merge_runs(struct external *external, unsigned first,
		       unsigned count, struct run_sink *into)
{
	bool merges_inputs = external->config->merges_inputs;
	const struct merge_request request = {
		.index = &external->runs.index,
		.first_run = first,
		.run_count = count,
		.unique = external->config->sort->unique && !merges_inputs,
		.piece_records = external->pipeline.free.first->capacity,
		.kernel = external->config->sort->kernel,
	};
	bool good;

	external->merge.run = into;
	external_begin_pieces(external);
	external_begin_pass(external, into ? EXTERNAL_MERGES : EXTERNAL_OUTPUT);
	/* What is still being written belongs to this pass. */
	good = external_open_pieces(external, &request) &&
	       external_run_merge(external, external_fill_piece, empty_piece,
				  is_room_short(external) ? tidy : NULL,
				  external) &&
	       external_finish_sink(external, into);
	if (good && into)
		release_pieces(external, external->merge.piece_count);
	external_close_pieces(&external->merge);
	return good;
}

/* --- merges of runs into runs --------------------------------------------- */

/* Every piece may end with a block that is not full: no more pieces than blocks
 * are made. */
static bool merge_into_run(struct external *external, unsigned first,
			   unsigned count)
{
	struct run_index *index = &external->runs.index;
	uint32_t blocks = 0;
	struct failure failure;
	int error;

	for (unsigned r = first; r < first + count; r++)
		blocks += index->runs[r].block_count;
	/* run_index_replace() sets its range of the input. */
	error = external_begin_scratch(external, &failure);
	if (error == 0)
		error = run_index_begin(index, 0, 0, 2 * blocks, &failure);
	if (!external_good(external, error, &failure) ||
	    !merge_runs(external, first, count, &external->runs.sink))
		return false;
	external->merge.merge_count++;
	error = run_index_replace(index, first, count, &failure);
	return external_good(external, error, &failure);
}

static bool refuse_parts(struct external *external, unsigned runs_max)
{
	struct failure failure;
	int error = failure_set(&failure, EXIT_RESOURCES, "memory", 0,
				"too little to merge %u runs, of which no two "
				"are neighbours, at once: %u may be",
				external->runs.index.run_count, runs_max);

	return external_good(external, error, &failure);
}

/* Merge neighbours until one merge suffices for the rest, and no more of them
 * than that takes: of runs of the same length, round after round. */
static bool merge_until(struct external *external, unsigned runs_max)
{
	const struct run_index *index = &external->runs.index;

	while (index->run_count > runs_max) {
		unsigned count = index->run_count - runs_max + 1, first;

		count = run_index_cheapest(index, MIN(count, runs_max), &first);
		if (count == 0)
			return refuse_parts(external, runs_max);
		if (!merge_into_run(external, first, count))
			return false;
	}
	return true;
}

/* --- pass 2 ------------------------------------------------------------- */

static bool keep_rest(struct external *external)
{
	struct batch *batch;

	while ((batch = pipeline_take(&external->pipeline.full))) {
		if (!begin_run(external, batch) ||
		    !external_sort_in_place(external, batch))
			return false;
		index_resident(&external->runs.index, batch);
		external->merge.resident_count++;
	}
	return true;
}

/* How many runs one merge may have, unless the ranks have agreed on that. */
static unsigned find_runs_max(const struct external *external, unsigned agreed)
{
	return agreed > 0
		       ? agreed
		       : external_plan_runs_max(&external->plan,
						&external->request,
						external->pipeline.free.count);
}

/* Batches are spilled until the free ones are large enough to merge all runs,
 * and if that is not enough, all are.  So what stays in memory, which may lie
 * anywhere in the input, is never a part of a merge before the last. */
bool external_settle_runs(struct external *external, unsigned free_count,
			  unsigned agreed)
{
	struct pipeline *pipeline = &external->pipeline;
	struct failure failure;
	int error;

	external_begin_pass(external, EXTERNAL_RUNS);
	while (pipeline->full.count > 0 &&
	       (pipeline->free.count < free_count ||
		external->runs.index.run_count + pipeline->full.count >
			find_runs_max(external, agreed))) {
		struct batch *oldest = pipeline_take(&pipeline->full);

		if (!spill(external, oldest))
			return false;
		pipeline_put(&pipeline->free, oldest);
	}
	if (!external_finish_sink(external, &external->runs.sink) ||
	    !keep_rest(external))
		return false;
	error = run_index_order(&external->runs.index, &failure);
	return external_good(external, error, &failure) &&
	       merge_until(external, find_runs_max(external, agreed));
}

void external_add_pieces(struct external *external, uint8_t *const areas[2],
			 unsigned free_batches)
{
	const struct external_plan *plan = &external->plan;
	struct batch *batches = external->batches + plan->batch_count;
	struct batch_request request = plan->batch;

	request.capacity = external_plan_piece_records(plan, free_batches);
	for (unsigned i = 0; i < 2; i++) {
		batches[i].memory = (struct arena){
			.base = areas[i],
			.size_bytes =
				external_plan_area_bytes(plan, free_batches),
		};
		batch_lay_out(&batches[i], &request);
		pipeline_put(&external->pipeline.free, &batches[i]);
	}
}

/* Two pieces at a time need two batches, unless they take turns in one. */
static void split_lone_batch(struct external *external)
{
	struct pipeline *pipeline = &external->pipeline;
	size_t half_bytes = external_plan_area_bytes(&external->plan, 1);
	uint8_t *halves[2];

	if (pipeline->free.count != 1 || external->plan.merge_areas == 1)
		return;
	halves[0] = pipeline_take(&pipeline->free)->memory.base;
	halves[1] = halves[0] + half_bytes;
	external_add_pieces(external, halves, 1);
}

/* All fitted into one batch, as a short pipe does. */
static bool order_lone(struct external *external)
{
	struct batch *batch = pipeline_take(&external->pipeline.full);

	external->merge.resident_count = 1;
	external_begin_pass(external, EXTERNAL_OUTPUT);
	return external_order(external, batch, NULL) &&
	       external_finish_sink(external, NULL);
}

/* --- all ways ------------------------------------------------------------- */

bool external_merge_all(struct external *external)
{
	struct pipeline *pipeline = &external->pipeline;
	const struct run_index *index = &external->runs.index;

	if (external->plan.way == EXTERNAL_BY_COUNTS)
		return external_write_counted(external);
	if (index->run_count == 0 && pipeline->full.count == 0)
		return true;
	if (external->plan.way == EXTERNAL_BY_KEYS)
		return external_order_keys(external,
					   pipeline_take(&pipeline->full));
	if (index->run_count == 0 && pipeline->full.count == 1)
		return order_lone(external);
	if (!external_settle_runs(external, 1, 0))
		return false;
	split_lone_batch(external);
	return merge_runs(external, 0, index->run_count, NULL);
}
