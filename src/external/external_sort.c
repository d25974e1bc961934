/*
 * external_sort.c - the life of a sort beyond memory: plan, open, make runs,
 * merge, commit
 */
#include "external/external_sort.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "external/read/disk_probe.h"
#include "external/external_request.h"
#include "external/external_state.h"
#include "sort/sort_setup.h"
#include "system/numa.h"

/* --- plan and memory ------------------------------------------------------ */

/* Records that are planned for; of a shared input we read some. */
static uint64_t input_records(const struct external *external)
{
	const struct external_config *config = external->config;

	return config->shares_input ? config->planned_records
				    : external->input.record_count;
}

static void open_claims(struct external *external)
{
	reading_claims_open(&external->claims, external->plan.batch.capacity);
	external->claims_deal = reading_claims_deal(&external->claims);
}

static void plan_lanes(struct external *external)
{
	const struct sorter_config *config = external->config->sort;
	const struct reading_lanes_config lanes = {
		.external = external,
		.serve = external_serve_lane,
		.input = &external->input,
		.streams = external->reads_streams ? &external->streams : NULL,
		.shape = &external->request.shape,
		.splitters = config->splitters,
		.topology = &external->topology,
		.readers = &external->readers,
		.deal = external->config->shares_input ? &external->claims_deal
						       : NULL,
		.trace_path = config->trace_path,
	};

	reading_lanes_plan(&external->lanes, &lanes, &external->request,
			   &external->plan);
}

/* A rank with a small input needs less than the plan for the largest.  What it
 * keeps for others is all written, also if memory would have room for it. */
static void bound_scratch(struct external *external)
{
	const struct external_config *config = external->config;
	struct external_plan *plan = &external->plan;
	uint32_t size = external->request.shape.size;
	uint64_t kept = config->kept_records * size;

	if (plan->rank_count == 1)
		return;
	plan->scratch_bytes = MIN(plan->scratch_bytes,
				  2 * external->input.record_count * size);
	plan->scratch_bytes += plan->merge_count > 0 ? 2 * kept : kept;
	if (config->gives_runs)
		plan->scratch_bytes = 0;
}

static int make_plan(struct external *external, struct failure *failure)
{
	struct external_request *request = &external->request;
	int error;

	external_request_make(request, external->config,
			      input_records(external),
			      external->topology.cpu_count);
	request->in_order = external->destination.is_stream;
	error = external_request_plan(request, external->config,
				      &external->plan, failure);
	if (error)
		return error;
	plan_lanes(external);
	bound_scratch(external);
	if (external->config->shares_input)
		open_claims(external);
	return 0;
}

uint64_t external_read_bytes(const struct external_plan *plan)
{
	return (uint64_t)plan->reader_count * plan->read_depth *
	       plan->read_slot_bytes;
}

/* The orderer's tables, for sinks with chunks of any size. */
static void lay_out_orderer(struct external *external)
{
	const struct external_plan *plan = &external->plan;
	struct plan tables = external->batches[0].plan;

	tables.chunk_entries = plan_chunk_entries(
		MAX(plan->run_chunk_bytes, plan->output_chunk_bytes),
		external->request.shape.size);
	orderer_take_memory(&external->orderer, &tables,
			    external->request.worker_count, &external->arena,
			    NULL);
	orderer_take_oversized(&external->orderer, &tables,
			       plan->batch.capacity, &external->arena);
	reading_lanes_lay_out(&external->lanes, tables.sample_count,
			      &external->arena);
	external->sample = external->lanes.lane[0].sample;
	external->sample_prefixes = external->lanes.lane[0].sample_prefixes;
}

static int lay_out_batches(struct external *external, struct failure *failure)
{
	const struct external_plan *plan = &external->plan;
	unsigned count = plan->batch_count + 2;

	external->batches = aligned_alloc(CACHE_PAIR_BYTES,
					  count * sizeof(*external->batches));
	if (!external->batches)
		return failure_no_memory(failure);
	memset(external->batches, 0, count * sizeof(*external->batches));
	for (unsigned b = 0; b < plan->batch_count; b++) {
		struct batch *batch = &external->batches[b];
		size_t bytes = ROUND_DOWN(plan->batch_bytes, PAGE_BYTES);

		batch->memory = (struct arena){
			.base = arena_take(&external->arena, bytes, PAGE_BYTES),
			.size_bytes = bytes,
		};
		if (plan->way == EXTERNAL_BY_COUNTS)
			batch_lay_out_bare(batch, plan->batch.capacity);
		else
			batch_lay_out(batch, &plan->batch);
		pipeline_add(&external->pipeline, batch);
	}
	return 0;
}

static int lay_out_memory(struct external *external, struct failure *failure)
{
	const struct external_plan *plan = &external->plan;
	struct arena *arena = &external->arena;
	unsigned workers = external->request.worker_count;
	int error = sort_setup_arena(arena, plan->memory_bytes,
				     plan->batch_count + workers +
					     3 * plan->lane_count + 11,
				     failure);

	if (error)
		return error;
	sort_setup_spread(arena, numa_nodes_of(&external->topology));
	external->read_memory =
		arena_take(arena, external_read_bytes(plan), PAGE_BYTES);
	external->slot_memory = arena_take(
		arena, plan->slot_count * plan->slot_bytes, PAGE_BYTES);
	external->encoder_memory =
		arena_take(arena, workers * plan->encoder_bytes, PAGE_BYTES);
	external->decoder_memory =
		arena_take(arena, workers * plan->decoder_bytes, PAGE_BYTES);
	external->kept_memory = arena_take(arena, plan->kept_bytes, PAGE_BYTES);
	error = lay_out_batches(external, failure);
	if (error)
		return error;
	if (plan->way == EXTERNAL_BY_COUNTS)
		record_counts_take_memory(&external->counts,
					  &external->request.shape,
					  plan->reader_count, arena);
	else
		lay_out_orderer(external);
	run_index_init(&external->index, &external->request.shape,
		       plan->block_records);
	return run_index_reserve(&external->index,
				 MIN(plan->index_blocks, UINT32_MAX), failure);
}

/* --- files ---------------------------------------------------------------- */

/* The ranks of a machine share its CPUs, as their workers do. */
unsigned external_codec_cpus(const struct external *external)
{
	unsigned cpus = external->topology.cpu_count;

	return external->plan.rank_count > 1
		       ? MIN(cpus, external->request.worker_count)
		       : cpus;
}

static void open_sinks(struct external *external)
{
	const struct external_plan *plan = &external->plan;
	const struct run_sink_request runs = {
		.index = &external->index,
		.scratch = &external->scratch,
		.kernel = external->config->sort->kernel,
		.memory = external->slot_memory,
		.slot_count = plan->slot_count,
		.slot_bytes = plan->slot_bytes,
		.chunk_bytes = plan->run_chunk_bytes,
		.depth = plan->write_depth,
		.codec = external->config->codec,
		.cpu_count = external_codec_cpus(external),
		.work = external_request_work(&external->request, plan,
					      external->config->least_link),
		.encoder_memory = external->encoder_memory,
		.encoder_bytes = plan->encoder_bytes,
		.encoder_count = external->request.worker_count,
	};

	external_place_staging(external);
	run_sink_open(&external->runs, &runs);
	/* The same memory: runs are written before the output is. */
	destination_set_slots(&external->destination, external->slot_memory,
			      plan->slot_count, plan->output_chunk_bytes);
}

/* Pass 1 has counted the records: the output can begin. */
static bool begin_output(struct external *external)
{
	struct failure failure;
	int error = 0;

	if (external->reads_streams)
		external->input.record_count = external->streams.record_count;
	/* The output may lie on the same disk. */
	if (external->reads_streams && external->scratch.directory_count > 0)
		scratch_trim(&external->scratch);
	if (external->reads_streams)
		error = external_refuse_output(external, &failure);
	if (error == 0)
		error = destination_begin(&external->destination,
					  external->input.record_count,
					  &failure);
	if (error)
		external_fail(external, &failure);
	return error == 0;
}

/* --- threads -------------------------------------------------------------- */

static int start_threads(struct external *external, struct failure *failure)
{
	unsigned workers = external->request.worker_count;
	int error = thread_pool_start_beside(&external->leaders,
					     external->plan.lane_count + 2,
					     &external->topology, failure);

	if (error == 0)
		error = thread_pool_start_beside(&external->readers, workers,
						 &external->topology, failure);
	if (error == 0)
		error = thread_pool_start_beside(&external->orderers, workers,
						 &external->topology, failure);
	if (error == 0)
		error = reading_lanes_start(&external->lanes, failure);
	return error;
}

static void wire(struct external *external)
{
	external->reading = (struct sort_wiring){
		.shape = external->plan.batch.shape,
		.kernel = external->config->sort->kernel,
		.pool = &external->readers,
		.trace = &external->reading_trace,
		.failure = &external->failure,
	};
	external->ordering = external->reading;
	external->ordering.pool = &external->orderers;
	external->ordering.trace = &external->ordering_trace;
}

/* --- running -------------------------------------------------------------- */

static int open_input(struct external *external, struct failure *failure)
{
	const struct sorter_config *config = external->config->sort;
	int error;

	destination_init(&external->destination, config);
	external->destination.is_lent = external->config->rank_count > 0;
	external->reads_streams =
		stream_source_suits(config->input_paths, config->input_count);
	if (external->reads_streams) {
		external->input.record_count = EXTERNAL_RECORDS_UNKNOWN;
		external->input.mode = INPUT_BUFFERED;
		return stream_source_open(
			&external->streams, config->input_paths,
			config->input_count, config->shape.size,
			&external->failure, failure);
	}
	error = input_open(&external->input, config->input_paths,
			   config->input_count, config->shape.size,
			   config->device_bytes, config->io, failure);
	if (error)
		return error;
	input_choose(&external->input);
	if (external->input.mode == INPUT_DIRECT)
		input_open_directly(&external->input);
	return 0;
}

static int begin_input(struct external *external, struct failure *failure)
{
	int error = open_input(external, failure);

	if (error)
		return error;
	topology_read(&external->topology);
	if (!external->config->sort->ignores_nodes)
		topology_read_nodes(&external->topology);
	return make_plan(external, failure);
}

/* Whether a stream needs scratch files is not known before it ends.  A wrong
 * name is told at once nevertheless: later it would cost all that the stream
 * has brought until then. */
static int prepare_scratch(struct external *external, struct failure *failure)
{
	const struct external_plan *plan = &external->plan;
	int error = 0;

	if (plan->scratch_bytes > 0)
		error = external_begin_scratch(external);
	else if (external->reads_streams && plan->way == EXTERNAL_BY_RUNS &&
		 external->config->scratch_is_named)
		error = external_open_scratch(external);
	return error ? first_failure_get(&external->failure, failure) : 0;
}

int external_prepare(struct external *external, struct failure *failure)
{
	int error = begin_input(external, failure);

	if (error == 0)
		error = destination_open(&external->destination,
					 external->input.record_count, failure);
	if (error == 0)
		error = external_open_traces(external, failure);
	if (error == 0)
		error = start_threads(external, failure);
	if (error == 0)
		error = lay_out_memory(external, failure);
	if (error)
		return error;
	external->details->rates = external->config->rates;
	external_predict(external);
	wire(external);
	open_sinks(external);
	return prepare_scratch(external, failure);
}

static int run(struct external *external, struct failure *failure)
{
	external->result->prepared_ns = clock_now_ns();
	if (!external_make_runs(external) || !begin_output(external))
		return first_failure_get(&external->failure, failure);
	external->result->bucketed_ns = clock_now_ns();
	external->details->run_count =
		external->index.run_count + external->pipeline.full.count;
	if (!external_merge_all(external))
		return first_failure_get(&external->failure, failure);
	external->result->ordered_ns = clock_now_ns();
	return 0;
}

static int commit(struct external *external, struct failure *failure)
{
	struct destination *destination = &external->destination;
	struct sort_trace *trace = &external->ordering_trace;
	int error =
		destination_finish(destination, external->next_record, failure);

	if (error == 0 && trace->path)
		error = external_write_trace(external, failure);
	if (error == 0)
		error = destination_commit(destination,
					   trace->path ? &trace->file : NULL,
					   failure);
	external->result->committed_ns = clock_now_ns();
	return error;
}

void external_fill_result(struct external *external)
{
	struct sorter_result *result = external->result;
	struct external_result *own = external->details;
	const struct external_plan *plan = &external->plan;
	uint32_t record_size = external->request.shape.size;
	const struct arena *arena = &external->arena;

	result->io = external->input.mode;
	result->output_direct = external->destination.files.direct;
	result->splitters = external->batches[0].splitters.kind;
	result->bucket_count = external->batches[0].splitters.bucket_count;
	result->threads = external->request.worker_count;
	result->memory_bytes = external->request.memory_bytes;
	result->record_count = external->input.record_count;
	result->size_bytes = result->record_count * record_size;
	result->checksum = external->checksum;
	own->way = plan->way;
	own->lane_count = plan->lane_count;
	own->batch_count = plan->batch_count;
	own->batch_bytes = plan->batch.capacity * record_size;
	own->block_bytes = plan->block_records * record_size;
	own->spilled_bytes = external->scratch.written_bytes;
	/* Also what was spilled after the pass, to make room. */
	own->passes[EXTERNAL_RUNS].written_bytes =
		own->spilled_bytes - own->passes[EXTERNAL_MERGES].written_bytes;
	own->directory_count = external->scratch.directory_count;
	own->directory_paths = external->config->scratch_paths;
	for (unsigned d = 0; d < own->directory_count; d++)
		own->directory_bytes[d] =
			external->scratch.directories[d].written_bytes;
	own->scratch_peak_bytes = external->scratch.peak_bytes;
	own->codec = external->runs.choice.codec;
	own->has_verdict = external->runs.choice.has_verdict;
	own->verdict = external->runs.choice.verdict;
	own->plain_bytes = external->runs.plain_bytes;
	own->stored_bytes = external->runs.stored_bytes;
	if (external->config->sort->counts_nodes &&
	    (external->config->has_nodes || external->topology.node_count > 1))
		sort_setup_fill_nodes(result, &external->topology,
				      &external->orderers, &arena, 1);
}

/* What is still open; each is safe if it was not opened. */
void external_close(struct external *external)
{
	thread_pool_stop(&external->orderers);
	thread_pool_stop(&external->readers);
	thread_pool_stop(&external->leaders);
	reading_lanes_close(&external->lanes);
	sort_trace_close(&external->reading_trace);
	sort_trace_close(&external->ordering_trace);
	file_hold_close(&external->hold);
	run_sink_close(&external->runs);
	destination_close(&external->destination);
	stream_source_close(&external->streams);
	if (external->claims_deal.context)
		reading_claims_close(&external->claims);
	scratch_close(&external->scratch);
	run_index_free(&external->index);
	pipeline_fini(&external->pipeline);
	input_close(&external->input);
	free(external->batches);
	arena_unmap(&external->arena);
}

struct external *external_new(const struct external_config *config,
			      struct arena *own, struct failure *failure)
{
	struct external *external;

	/* Too large for a stack. */
	if (sort_setup_arena(own, sizeof(*external), 1, failure) < 0)
		return NULL;
	external = arena_take(own, sizeof(*external), CACHE_PAIR_BYTES);
	external->config = config;
	sort_trace_init(&external->reading_trace, config->sort->trace_path);
	sort_trace_init(&external->ordering_trace, config->sort->trace_path);
	pipeline_init(&external->pipeline, &external->leaders,
		      &external->failure);
	return external;
}

static int sort_once(const struct external_config *config,
		     struct sorter_result *result,
		     struct external_result *external_result,
		     struct failure *failure)
{
	struct external *external;
	struct arena own = { 0 };
	int error;

	memset(result, 0, sizeof(*result));
	memset(external_result, 0, sizeof(*external_result));
	result->begin_ns = clock_now_ns();
	external = external_new(config, &own, failure);
	if (!external)
		return -ENOMEM;
	external->result = result;
	external->details = external_result;
	error = external_prepare(external, failure);
	if (error == 0)
		error = run(external, failure);
	if (error == 0)
		error = commit(external, failure);
	if (error == 0)
		external_fill_result(external);
	external_close(external);
	arena_unmap(&own);
	return error;
}

/* Fewer threads may be allowed than there are CPUs.  A pipe has brought nothing
 * by then, but it has been closed. */
int external_sort_run(const struct external_config *config,
		      struct sorter_result *result,
		      struct external_result *external_result,
		      struct failure *failure)
{
	struct sorter_config lone = *config->sort;
	struct external_config again = *config;
	int error = sort_once(config, result, external_result, failure);

	if (error != -EAGAIN || result->prepared_ns != 0 || lone.threads > 0 ||
	    stream_source_suits(lone.input_paths, lone.input_count))
		return error;
	lone.threads_max = 1;
	again.sort = &lone;
	return sort_once(&again, result, external_result, failure);
}

/* --- explaining ----------------------------------------------------------- */

/* Without the disk's rates, all is told but times. */
static void measure(struct external *external,
		    struct external_explanation *explanation)
{
	/* Scratch files are not in the page cache, even if the input is. */
	if (external->input.mode != INPUT_DIRECT)
		input_open_directly(&external->input);
	(void)disk_probe(&external->input, &external->scratch,
			 external->plan.output_chunk_bytes, &explanation->rates,
			 &explanation->unmeasured);
}

/* The output takes its room first, as in the sort itself. */
static int find_refusal(struct external *external, struct failure *refusal)
{
	const struct external_config *config = external->config;
	int error = destination_open(&external->destination,
				     external->input.record_count, refusal);

	if (error == 0)
		error = scratch_open(&external->scratch, config->scratch_paths,
				     config->scratch_count, refusal);
	if (error)
		return error;
	external_bound_scratch(external);
	if (external->plan.scratch_bytes == 0)
		return 0;
	return scratch_reserve(&external->scratch, external->plan.scratch_bytes,
			       refusal);
}

/* Too little room for files is told with the plan; a file or folder that can't
 * be used ends it. */
static int explain(struct external *external,
		   struct external_explanation *explanation,
		   struct failure *failure)
{
	const struct external_config *config = external->config;
	int error = begin_input(external, failure);

	if (error)
		return error;
	error = find_refusal(external, &explanation->refusal);
	if (error && error != -ENOSPC) {
		*failure = explanation->refusal;
		return error;
	}
	if (error == 0)
		explanation->refusal.status = EXIT_DONE;
	explanation->whole_records = external->input.record_count;
	explanation->request = external->request;
	explanation->request.lanes = NULL; /* which goes with the state */
	explanation->plan = external->plan;
	explanation->rates = config->rates;
	explanation->directory_count = external->scratch.directory_count;
	for (unsigned d = 0; d < explanation->directory_count; d++)
		explanation->room_bytes[d] =
			scratch_room(&external->scratch, d);
	if (config->rates.read == 0)
		measure(external, explanation);
	external_model_forecast(&explanation->forecast, &explanation->plan,
				&explanation->request, &explanation->rates);
	return 0;
}

int external_sort_explain(const struct external_config *config,
			  struct external_explanation *explanation,
			  struct failure *failure)
{
	struct arena own = { 0 };
	struct external *external = external_new(config, &own, failure);
	int error;

	memset(explanation, 0, sizeof(*explanation));
	if (!external)
		return -ENOMEM;
	error = explain(external, explanation, failure);
	external_close(external);
	arena_unmap(&own);
	return error;
}

int external_sort_suppose(const struct external_config *config,
			  uint64_t record_count,
			  struct external_explanation *explanation,
			  struct failure *failure)
{
	struct topology topology;
	int error;

	topology_read(&topology);
	*explanation = (struct external_explanation){
		.whole_records = record_count,
		.rates = config->rates,
	};
	external_request_make(&explanation->request, config, record_count,
			      topology.cpu_count);
	failure_set(&explanation->unmeasured, EXIT_USAGE, NULL, 0,
		    "no file is read for that");
	error = external_request_plan(&explanation->request, config,
				      &explanation->plan, failure);
	if (error == 0)
		external_model_forecast(
			&explanation->forecast, &explanation->plan,
			&explanation->request, &explanation->rates);
	return error;
}
