/*
 * external_runs.c - pass 1: the input into sorted runs
 */
#include "base/format.h"
#include "external/external_state.h"
#include "sort/sort_setup.h"
#include "system/allowance.h"

/* --- scratch files -------------------------------------------------------- */

static void hold_files(struct external_runs *runs, const struct output *output)
{
	int fds[SCRATCH_DIRECTORIES_MAX + OUTPUT_FILES_MAX];
	unsigned count = 0;

	for (unsigned d = 0; d < runs->scratch.directory_count; d++) {
		fds[count] = scratch_plain_fd(&runs->scratch, d);
		count += fds[count] >= 0;
	}
	for (unsigned i = 0; i < output->file_count; i++)
		fds[count++] = output->files[i].fd;
	file_hold_open(&runs->hold, fds, count);
}

bool external_open_scratch(struct external *external)
{
	const struct external_config *config = external->config;
	struct scratch *scratch = &external->runs.scratch;
	struct failure failure;

	if (scratch->directory_count > 0 ||
	    scratch_open(scratch, config->scratch_paths, config->scratch_count,
			 &failure) == 0)
		return true;
	external_fail(external, &failure);
	return false;
}

/* The scratch files get what the sort, which is yet to take some of its memory,
 * and the output leave. */
void external_bound_scratch(struct external *external)
{
	const struct external_request *request = &external->request;
	uint64_t own = allowance_taken_bytes(), bytes;
	struct allowance allowance;

	if (request->ranks.rank_count > 1 ||
	    !scratch_has_memory(&external->runs.scratch))
		return;
	own = request->memory_bytes - MIN(request->memory_bytes, own);
	own += request->output_bytes;
	allowance_read(&allowance);
	bytes = allowance.file_bytes;
	bytes -= MIN(bytes, own);
	if (external->reading.is_stream &&
	    sort_setup_output_memory(external->config->sort, 1) > 0)
		bytes /= 2;
	scratch_bound_memory(&external->runs.scratch,
			     bytes - bytes / RAMDISK_KERNEL_PART);
}

bool external_begin_scratch(struct external *external)
{
	struct external_runs *runs = &external->runs;
	uint64_t bytes = external->plan.scratch_bytes;
	struct failure failure;

	if (runs->has_begun)
		return true;
	if (!external_open_scratch(external))
		return false;
	external_bound_scratch(external);
	if (bytes > 0 && scratch_reserve(&runs->scratch, bytes, &failure) < 0) {
		external_fail(external, &failure);
		return false;
	}
	hold_files(runs, &external->ordering.destination.files);
	runs->has_begun = true;
	return true;
}

/* --- runs ----------------------------------------------------------------- */

/* The stream's length was not known: its index is full before its end. */
static int refuse_stream(const struct external *external,
			 const struct batch *batch, struct failure *failure)
{
	uint64_t records = batch->first_record + batch->record_count;
	bool is_given = external->config->sort->memory_bytes > 0;
	char read[FORMAT_SIZE_BYTES], memory[FORMAT_SIZE_BYTES];

	format_size_down(read, records * external->request.shape.size);
	format_size_up(memory, external->request.memory_bytes);
	return failure_set(failure, EXIT_RESOURCES,
			   is_given ? "--memory" : "memory", 0,
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
	struct failure failure;
	int error;

	if (external->reading.is_stream &&
	    index->block_count + blocks > external->plan.index_blocks)
		error = refuse_stream(external, batch, &failure);
	else
		error = run_index_begin(index,
					external->config->ranks.input_begin +
						batch->first_record,
					batch->record_count, (uint32_t)blocks,
					&failure);
	if (error)
		external_fail(external, &failure);
	return error == 0;
}

bool external_order_to_run(struct external *external, struct batch *batch)
{
	struct external_runs *runs = &external->runs;

	if (!external_order(external, batch, &runs->sink))
		return false;
	atomic_fetch_add_explicit(
		&runs->spilled_records,
		orderer_record_count(&external->ordering.orderer),
		memory_order_relaxed);
	return true;
}

bool external_spill(struct external *external, struct batch *batch)
{
	return external_begin_scratch(external) && begin_run(external, batch) &&
	       external_order_to_run(external, batch);
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

bool external_keep(struct external *external, struct batch *batch)
{
	if (!begin_run(external, batch) ||
	    !external_sort_in_place(external, batch))
		return false;
	index_resident(&external->runs.index, batch);
	return true;
}

/* run_index_replace() sets its range of the input. */
bool external_begin_merged(struct external *external, uint32_t block_count)
{
	struct failure failure;

	if (run_index_begin(&external->runs.index, 0, 0, block_count,
			    &failure) == 0)
		return true;
	external_fail(external, &failure);
	return false;
}

bool external_replace_runs(struct external *external, unsigned first,
			   unsigned count)
{
	struct failure failure;

	if (run_index_replace(&external->runs.index, first, count, &failure) ==
	    0)
		return true;
	external_fail(external, &failure);
	return false;
}

bool external_finish_runs(struct external *external)
{
	return external_check_sink(external, &external->runs.sink.sink);
}

void external_count_runs(struct external *external)
{
	struct external_runs *runs = &external->runs;

	runs->made_count =
		runs->index.run_count + external->pipeline.full.count;
	if (external->given)
		runs->made_count += atomic_load_explicit(
			&external->given->offered, memory_order_relaxed);
}

/* --- the pass ------------------------------------------------------------- */

static bool begin_reading(struct external *external)
{
	struct reading *reading = &external->reading;
	struct failure failure;

	if (reading_begin(reading, &external->runs.index.key_shape,
			  external->read_memory, &failure) == 0)
		return true;
	external_fail(external, &failure);
	return false;
}

static int fill(void *context, unsigned lane, struct batch *batch)
{
	struct external *external = context;

	return reading_fill(&external->reading, lane, batch);
}

/* The last batch of a lane may be empty. */
static bool give_away(struct external *external, struct batch *batch)
{
	uint64_t input_count = batch->record_count;

	if (!external_sort_in_place(external, batch))
		return false;
	return batch->record_count == 0 ||
	       given_runs_offer(external->given, batch,
				external->config->ranks.input_begin +
					batch->first_record,
				input_count);
}

static bool empty(void *context, struct batch *batch)
{
	struct external *external = context;

	return external->given ? give_away(external, batch)
			       : external_spill(external, batch);
}

bool external_make_runs(struct external *external)
{
	const struct external_plan *plan = &external->plan;
	unsigned lane_count = plan->lane_count;
	struct pipeline_run run = {
		.fill = fill,
		.empty = empty,
		.context = external,
		.lane_count = lane_count,
		.free_wanted =
			lane_count + (plan->batch_count > lane_count + 2),
		.free_at_end = plan->way == EXTERNAL_BY_KEYS ? 0 : 1,
	};
	bool good;

	if (external->given)
		run.free_at_end = plan->batch_count;
	external_begin_pass(external, EXTERNAL_RUNS);
	good = begin_reading(external);
	for (unsigned l = 0; good && l < lane_count; l++)
		run.to_come[l] = reading_to_come(&external->reading, l);
	good = good && pipeline_run(&external->pipeline, &run) &&
	       external_finish_runs(external);
	external_end_pass(external);
	reading_end(&external->reading);
	return good;
}
