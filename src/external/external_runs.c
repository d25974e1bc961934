/*
 * external_runs.c - pass 1: the input into sorted runs
 */
#include <stdlib.h>
#include <sys/stat.h>

#include "external/external_state.h"
#include "sort/key_probe.h"

/* --- the ordering team: empty a batch ---------------------------------------
 */

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
	struct sink *sink = is_output ? external->sink : &external->runs.sink;
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

/* --- runs ------------------------------------------------------------------
 */

static int begin_run(struct external *external, const struct batch *batch)
{
	struct failure failure;
	int error = run_index_begin(
		&external->index, batch->first_record,
		(uint32_t)DIV_ROUND_UP(batch->record_count,
				       external->plan.block_records),
		&failure);

	if (error)
		external_fail(external, &failure);
	return error;
}

bool external_spill(struct external *external, struct batch *batch)
{
	if (external_open_scratch(external) < 0)
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
		uint64_t slot =
			batch_slot(batch, index->blocks[block].first_record);

		run_index_set_key(index, block,
				  batch->records +
					  slot * external->request.shape.size);
	}
}

void external_sort_in_place(struct external *external, struct batch *batch)
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
	entries = orderer_sorted_entries(&external->orderer);
	batch->record_count = orderer_record_count(&external->orderer);
	batch_keep_order(batch, entries);
	external->result->dropped_count +=
		orderer_dropped_count(&external->orderer);
}

bool external_keep(struct external *external, struct batch *batch)
{
	if (begin_run(external, batch) < 0)
		return false;
	external_sort_in_place(external, batch);
	index_resident(external, batch);
	return true;
}

/* --- how many lanes --------------------------------------------------------
 */

/* Different disks have different nodes in one file system of devices. */
static dev_t device_of(const struct input_file *file)
{
	struct stat status;

	if (fstat(file->fd, &status) == 0 && S_ISBLK(status.st_mode))
		return status.st_rdev;
	return file->device;
}

/* True: the plan is one with so many lanes. */
static bool try_lanes(struct external *external, const struct lane_file *files,
		      unsigned lane_count)
{
	struct external_request *request = &external->request;
	struct external_plan plan;

	lane_plan_make(&external->lane_plan, files, external->input.file_count,
		       lane_count);
	if (lane_count == 1)
		return true;
	request->lanes = &external->lane_plan;
	if (external_plan_make(&plan, request) == 0 &&
	    external_plan_gains(&plan, &external->plan, request)) {
		external->plan = plan;
		return true;
	}
	request->lanes = NULL;
	return false;
}

void external_plan_lanes(struct external *external)
{
	const struct input *input = &external->input;
	struct lane_file files[INPUT_FILES_MAX];
	unsigned count;

	for (unsigned f = 0; f < input->file_count; f++)
		files[f] = (struct lane_file){
			.device = device_of(&input->files[f]),
			.record_count = input->files[f].record_count,
		};
	count = lane_plan_devices(files, input->file_count);
	/* Keys by themselves are read at random. */
	if (external->plan.by_keys)
		count = 1;
	while (!try_lanes(external, files, count))
		count--;
}

/* --- threads and memory ----------------------------------------------------
 */

/* The workers of this lane, and those of the lanes before it. */
static unsigned share_of_readers(const struct external *external, unsigned lane,
				 unsigned *before)
{
	unsigned readers = external->plan.reader_count;
	unsigned lanes = external->plan.lane_count;

	*before = readers * lane / lanes;
	return readers * (lane + 1) / lanes - *before;
}

/* On the CPUs behind those of the lanes before. */
static int start_readers(struct reading_lane *lane, unsigned worker_count,
			 unsigned before, struct failure *failure)
{
	const struct topology *all = &lane->external->topology;
	struct topology own = { .cpu_count =
					MIN(worker_count, all->cpu_count) };

	for (unsigned i = 0; i < own.cpu_count; i++)
		own.cpus[i] = all->cpus[(before + i) % all->cpu_count];
	return thread_pool_start_beside(&lane->own_readers, worker_count, &own,
					failure);
}

int external_start_lanes(struct external *external, struct failure *failure)
{
	unsigned lane_count = external->plan.lane_count;
	int error = 0;

	for (unsigned l = 0; l < lane_count && error == 0; l++) {
		struct reading_lane *lane = &external->lanes[l];
		unsigned before;
		unsigned workers = share_of_readers(external, l, &before);

		lane->external = external;
		lane->readers = &external->readers;
		if (lane_count == 1)
			break;
		lane->readers = &lane->own_readers;
		sort_trace_init(&lane->own_trace,
				external->config->sort->trace_path);
		error = sort_trace_add_lanes(&lane->own_trace, workers,
					     SORT_TRACE_SPANS_MAX, failure);
		if (error == 0)
			error = start_readers(lane, workers, before, failure);
	}
	return error;
}

void external_lay_out_lanes(struct external *external, uint32_t sample_count)
{
	const struct key_list *keys = &external->request.shape.keys;
	struct arena *arena = &external->arena;

	for (unsigned l = 0; l < external->plan.lane_count; l++) {
		struct reading_lane *lane = &external->lanes[l];

		lane->sample =
			arena_take(arena, sample_count * 8, CACHE_PAIR_BYTES);
		lane->sample_prefixes =
			arena_take(arena, sample_count * 8, CACHE_PAIR_BYTES);
		lane->common_key = arena_take(arena, keys->end - keys->begin,
					      CACHE_PAIR_BYTES);
	}
	external->sample = external->lanes[0].sample;
	external->sample_prefixes = external->lanes[0].sample_prefixes;
}

unsigned external_copy_traces(struct external *external,
			      struct trace_process *processes,
			      struct trace_lane *lanes)
{
	static const char *const names[LANES_MAX] = { "read device 1",
						      "read device 2",
						      "read device 3",
						      "read device 4" };

	if (external->plan.lane_count == 1)
		return 0;
	for (unsigned l = 0; l < external->plan.lane_count; l++) {
		const struct sort_trace *trace = &external->lanes[l].own_trace;

		processes[l] = (struct trace_process){
			.name = names[l],
			.origin_ns = external->result->begin_ns,
			.lanes = lanes,
			.lane_count = trace->lane_count,
		};
		sort_trace_copy_lanes(trace, lanes);
		lanes += trace->lane_count;
	}
	return external->plan.lane_count;
}

/* --- the pass --------------------------------------------------------------
 */

/* 0 or -errno with *failure filled. */
static int open_files(struct reading_lane *lane, unsigned number,
		      struct failure *failure)
{
	const struct external *external = lane->external;
	const struct external_plan *plan = &external->plan;
	unsigned before;
	struct file_source_request request = {
		.input = &external->input,
		.batch_count = lane_plan_batches_of(
			&external->lane_plan, number, plan->batch.capacity),
		.worker_count = share_of_readers(external, number, &before),
		.slot_bytes = plan->read_slot_bytes,
		.depth = plan->read_depth,
		.part_offset =
			plan->by_keys ? external->request.shape.keys.begin : 0,
		.part_bytes = plan->batch.shape.size,
	};

	lane->batches =
		malloc((request.batch_count + 1) * sizeof(*lane->batches));
	if (!lane->batches)
		return failure_no_memory(failure);
	lane_plan_deal(&external->lane_plan, number, plan->batch.capacity,
		       lane->batches);
	request.batches = lane->batches;
	request.memory = external->read_memory + (size_t)before *
							 plan->read_depth *
							 plan->read_slot_bytes;
	lane->source = &lane->files.source;
	return file_source_open(&lane->files, &request, failure);
}

static void wire(struct reading_lane *lane)
{
	struct external *external = lane->external;

	lane->wiring = external->reading;
	lane->key_shape = &external->index.key_shape;
	lane->wanted = external->config->sort->splitters;
	lane->serve = external_serve_lane;
	if (external->reads_streams)
		lane->streams = &external->streams;
	lane->wiring.pool = lane->readers;
	if (lane->readers == &lane->own_readers)
		lane->wiring.trace = &lane->own_trace;
}

static bool open_lanes(struct external *external)
{
	struct reading_lane *first = &external->lanes[0];
	struct failure failure;
	int error = 0;

	first->source = &external->streams.source;
	first->wanted = external->config->sort->splitters;
	if (!external->reads_streams)
		first->static_kind =
			key_probe(&external->input, &external->request.shape,
				  &first->is_uniform);
	reading_lane_override(first);
	for (unsigned l = 0; l < external->plan.lane_count && error == 0; l++) {
		struct reading_lane *lane = &external->lanes[l];

		lane->static_kind = first->static_kind;
		lane->is_uniform = first->is_uniform;
		wire(lane);
		if (!external->reads_streams)
			error = open_files(lane, l, &failure);
	}
	if (error)
		external_fail(external, &failure);
	return error == 0;
}

static void end_lanes(struct external *external)
{
	for (unsigned l = 0; l < external->plan.lane_count; l++) {
		struct reading_lane *lane = &external->lanes[l];

		thread_pool_stop(&lane->own_readers);
		file_source_close(&lane->files);
		free(lane->batches);
		lane->batches = NULL;
	}
}

void external_close_lanes(struct external *external)
{
	end_lanes(external);
	for (unsigned l = 0; l < external->plan.lane_count; l++)
		sort_trace_close(&external->lanes[l].own_trace);
}

static int fill(void *context, unsigned lane, struct batch *batch)
{
	struct external *external = context;

	return reading_lane_fill(&external->lanes[lane], batch);
}

static bool empty(void *context, struct batch *batch)
{
	return external_spill(context, batch);
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
		.free_at_end = external->plan.by_keys ? 0 : 1,
	};
	bool good;

	external_begin_pass(external, EXTERNAL_RUNS);
	good = open_lanes(external);
	for (unsigned l = 0; l < lane_count; l++)
		run.to_come[l] = reading_lane_to_come(&external->lanes[l]);
	good = good && pipeline_run(&external->pipeline, &run) &&
	       external_finish_runs(external);
	external_end_pass(external);
	end_lanes(external);
	return good;
}
