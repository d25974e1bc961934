/*
 * external_runs.c - pass 1: the input into sorted runs
 */
#include <sys/stat.h>

#include "base/format.h"
#include "external/external_state.h"
#include "sort/sort_setup.h"
#include "system/allowance.h"
#include "system/numa.h"

/* --- the ordering team: empty a batch ------------------------------------- */

struct ordering {
	struct external *external;
	bool is_output; /* else it is a run */
	bool good;
};

/* Worker 0; the others come to wait for the chunks. */
static void drop_duplicates(const struct ordering *ordering)
{
	struct external *external = ordering->external;
	uint64_t kept_count;

	if (orderer_drop_duplicates(&external->orderer, 0, &kept_count) &&
	    !ordering->is_output)
		run_sink_begin(&external->runs, kept_count);
	orderer_begin_chunks(&external->orderer);
}

static void run_ordering(void *context, unsigned worker)
{
	struct ordering *ordering = context;
	struct external *external = ordering->external;
	bool good;

	if (worker == 0 && external->config->sort->unique)
		drop_duplicates(ordering);
	good = orderer_run(&external->orderer, worker);
	if (worker == 0)
		ordering->good = good;
}

static void begin_ordering(struct external *external, const struct batch *batch,
			   const struct orderer_config *config)
{
	struct sort_wiring wiring = external->ordering;
	struct bucket_set set = bucketing_set(&batch->bucketing);

	wiring.splitters = &batch->splitters;
	orderer_begin(&external->orderer, &wiring, config);
	orderer_add_up(&external->orderer, &set);
}

/* A worker that finds the sink failed stops alone; the reason is the sink's. */
bool external_check_sink(struct external *external, struct sink *sink)
{
	struct failure failure;

	if (sink_finish(sink, &failure) < 0)
		external_fail(external, &failure);
	return !first_failure_stops(&external->failure);
}

bool external_finish_runs(struct external *external)
{
	return external_check_sink(external, &external->runs.sink);
}

bool external_order(struct external *external, struct batch *batch,
		    bool is_output)
{
	struct sink *sink =
		is_output ? external->destination.sink : &external->runs.sink;
	struct ordering ordering = {
		.external = external,
		.is_output = is_output,
	};
	const struct orderer_config config = {
		.index_bits = batch->plan.index_bits,
		.base = batch->records,
		.chunk_entries = plan_chunk_entries(
			sink->chunk_bytes, external->request.shape.size),
		.sums_up = is_output && external->config->sort->checksum,
		.drops_duplicates = external->config->sort->unique,
		.is_ready = true,
		.first_record = is_output ? external->next_record : 0,
		.record_count = batch->record_count,
		.sink = sink,
	};

	if (!is_output && !external->config->sort->unique)
		run_sink_begin(&external->runs, batch->record_count);
	begin_ordering(external, batch, &config);
	thread_pool_run(&external->orderers, run_ordering, &ordering);
	if (!ordering.good)
		return external_check_sink(external, sink) && false;
	if (is_output)
		external->next_record +=
			orderer_record_count(&external->orderer);
	else
		atomic_fetch_add_explicit(
			&external->spilled_records,
			orderer_record_count(&external->orderer),
			memory_order_relaxed);
	external->checksum += orderer_checksum(&external->orderer);
	external->result->dropped_count +=
		orderer_dropped_count(&external->orderer);
	return true;
}

/* --- scratch files -------------------------------------------------------- */

/* Staging memory, which no thread has touched yet, comes from the node of the
 * disk that the first scratch folder lies on. */
void external_place_staging(const struct external *external)
{
	const struct external_plan *plan = &external->plan;
	struct stat status;
	int node;

	if (external->topology.node_count == 1 ||
	    stat(external->config->scratch_paths[0], &status) < 0)
		return;
	node = numa_node_of_disk(status.st_dev);
	if (node < 0)
		return;
	numa_prefer(external->read_memory, external_read_bytes(plan),
		    (unsigned)node);
	numa_prefer(external->slot_memory, plan->slot_count * plan->slot_bytes,
		    (unsigned)node);
}

static void hold_files(struct external *external)
{
	int fds[SCRATCH_DIRECTORIES_MAX + OUTPUT_FILES_MAX];
	unsigned count = 0;

	for (unsigned d = 0; d < external->scratch.directory_count; d++) {
		fds[count] = scratch_plain_fd(&external->scratch, d);
		count += fds[count] >= 0;
	}
	for (unsigned i = 0; i < external->destination.files.file_count; i++)
		fds[count++] = external->destination.files.files[i].fd;
	file_hold_open(&external->hold, fds, count);
}

int external_open_scratch(struct external *external)
{
	const struct external_config *config = external->config;
	struct failure failure;
	int error;

	if (external->scratch.directory_count > 0)
		return 0;
	error = scratch_open(&external->scratch, config->scratch_paths,
			     config->scratch_count, &failure);
	if (error)
		external_fail(external, &failure);
	return error;
}

/* The kernel takes up to this part of the size of files that are memory, beside
 * it: as much as external_plan.c counts for the sort's own memory. */
#define RAMDISK_KERNEL_PART 32

/* The scratch files get what the sort, which is yet to take some of its memory,
 * and the output leave. */
void external_bound_scratch(struct external *external)
{
	const struct external_request *request = &external->request;
	uint64_t own = allowance_taken_bytes(), bytes;
	struct allowance allowance;

	if (request->rank_count > 1 || !scratch_has_memory(&external->scratch))
		return;
	own = request->memory_bytes - MIN(request->memory_bytes, own);
	own += request->output_bytes;
	allowance_read(&allowance);
	bytes = allowance.file_bytes;
	bytes -= MIN(bytes, own);
	if (external->reads_streams &&
	    sort_setup_output_memory(external->config->sort, 1) > 0)
		bytes /= 2;
	scratch_bound_memory(&external->scratch,
			     bytes - bytes / RAMDISK_KERNEL_PART);
}

/* The size of the output of a stream is known at its end only; those of other
 * outputs were known when the memory was planned. */
int external_refuse_output(const struct external *external,
			   struct failure *failure)
{
	uint64_t bytes = sort_setup_output_memory(external->config->sort,
						  external->input.record_count);
	char needed[FORMAT_SIZE_BYTES], available[FORMAT_SIZE_BYTES];
	struct allowance allowance;

	if (bytes == 0)
		return 0;
	allowance_read(&allowance);
	if (bytes + bytes / RAMDISK_KERNEL_PART <=
	    allowance.file_bytes + allowance.swap_bytes)
		return 0;
	return failure_set(failure, EXIT_RESOURCES, "memory", 0,
			   "the output takes %s of it where it is to lie, and "
			   "%s are available",
			   format_size_up(needed, bytes),
			   format_size_down(available, allowance.file_bytes));
}

static int reserve_scratch(struct external *external)
{
	struct failure failure;
	int error = 0;

	external_bound_scratch(external);
	if (external->plan.scratch_bytes > 0)
		error = scratch_reserve(&external->scratch,
					external->plan.scratch_bytes, &failure);
	if (error)
		external_fail(external, &failure);
	return error;
}

int external_begin_scratch(struct external *external)
{
	int error;

	if (external->scratch_has_begun)
		return 0;
	error = external_open_scratch(external);
	if (error == 0)
		error = reserve_scratch(external);
	if (error)
		return error;
	hold_files(external);
	external->scratch_has_begun = true;
	return 0;
}

/* --- runs ----------------------------------------------------------------- */

/* Nobody knew how long the stream is: its index is full before its end. */
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

static int begin_run(struct external *external, const struct batch *batch)
{
	uint64_t blocks =
		DIV_ROUND_UP(batch->record_count, external->plan.block_records);
	struct failure failure;
	int error;

	if (external->reads_streams &&
	    external->index.block_count + blocks > external->plan.index_blocks)
		error = refuse_stream(external, batch, &failure);
	else
		error = run_index_begin(
			&external->index,
			external->config->input_begin + batch->first_record,
			batch->record_count, (uint32_t)blocks, &failure);
	if (error)
		external_fail(external, &failure);
	return error;
}

bool external_spill(struct external *external, struct batch *batch)
{
	if (external_begin_scratch(external) < 0)
		return false;
	if (begin_run(external, batch) < 0)
		return false;
	return external_order(external, batch, false);
}

static void sort_in_place(void *context, unsigned worker)
{
	struct external *external = context;

	orderer_sort_oversized(&external->orderer, worker);
}

/* The keys of the blocks that the run is counted in. */
static void index_resident(struct external *external, struct batch *batch)
{
	struct run_index *index = &external->index;
	struct run *run = &index->runs[index->run_count - 1];
	uint32_t block = run_index_extend(index, batch->record_count);

	run->resident = batch;
	for (; block < index->block_count; block++) {
		struct run_block *own = &index->blocks[block];
		uint64_t slot = batch_slot(batch, own->first_record);

		/* As if it were stored: to another rank it is sent so. */
		own->stored_bytes =
			own->record_count * external->request.shape.size;
		run_index_set_key(index, block,
				  batch->records +
					  slot * external->request.shape.size);
	}
}

bool external_sort_in_place(struct external *external, struct batch *batch)
{
	const struct orderer_config config = {
		.index_bits = batch->plan.index_bits,
		.base = batch->records,
		.drops_duplicates = external->config->sort->unique,
		.sorts_only = true,
		.is_ready = true,
	};
	const uint64_t *entries;

	begin_ordering(external, batch, &config);
	thread_pool_run(&external->orderers, sort_in_place, external);
	/* A worker that has seen a failure has left its buckets. */
	if (first_failure_stops(&external->failure))
		return false;
	entries = orderer_sorted_entries(&external->orderer);
	batch->record_count = orderer_record_count(&external->orderer);
	batch_keep_order(batch, entries);
	external->result->dropped_count +=
		orderer_dropped_count(&external->orderer);
	return true;
}

bool external_keep(struct external *external, struct batch *batch)
{
	if (begin_run(external, batch) < 0 ||
	    !external_sort_in_place(external, batch))
		return false;
	index_resident(external, batch);
	return true;
}

/* --- the pass ------------------------------------------------------------- */

static bool open_lanes(struct external *external)
{
	struct failure failure;
	int error;

	external->lanes.counts = external->counts.tables;
	error = reading_lanes_open(&external->lanes, &external->reading,
				   &external->index.key_shape,
				   external->read_memory, &failure);
	if (error)
		external_fail(external, &failure);
	return error == 0;
}

static int fill(void *context, unsigned lane, struct batch *batch)
{
	struct external *external = context;

	return reading_lane_fill(&external->lanes.lane[lane], batch);
}

/* The last batch of a lane may be empty. */
static bool give_away(struct external *external, struct batch *batch)
{
	uint64_t input_count = batch->record_count;

	if (!external_sort_in_place(external, batch))
		return false;
	return batch->record_count == 0 ||
	       given_runs_offer(external->given, batch,
				external->config->input_begin +
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
	unsigned lane_count = external->plan.lane_count;
	struct pipeline_run run = {
		.fill = fill,
		.empty = empty,
		.context = external,
		.lane_count = lane_count,
		.free_wanted = lane_count +
			       (external->plan.batch_count > lane_count + 2),
		.free_at_end = external->plan.way == EXTERNAL_BY_KEYS ? 0 : 1,
	};
	bool good;

	if (external->given)
		run.free_at_end = external->plan.batch_count;
	external_begin_pass(external, EXTERNAL_RUNS);
	good = open_lanes(external);
	for (unsigned l = 0; good && l < lane_count; l++)
		run.to_come[l] = reading_lane_to_come(&external->lanes.lane[l]);
	good = good && pipeline_run(&external->pipeline, &run) &&
	       external_finish_runs(external);
	external_end_pass(external);
	reading_lanes_end(&external->lanes);
	return good;
}
