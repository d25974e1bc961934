/*
 * external_sort.c - the life of a sort beyond memory, and what it would do
 */
#include "external/external_sort.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "base/format.h"
#include "external/external_state.h"
#include "external/read/disk_probe.h"
#include "sort/sort_setup.h"
#include "system/allowance.h"
#include "system/numa.h"

/* --- plan and memory ------------------------------------------------------ */

/* A rank with a small input needs less than the plan for the largest.  What it
 * keeps for others is all written, also if memory would have room for it. */
static void bound_scratch(struct external *external)
{
	const struct external_config *config = external->config;
	struct external_plan *plan = &external->plan;
	uint32_t size = external->request.shape.size;
	uint64_t kept = config->ranks.kept_records * size;

	if (plan->rank_count == 1)
		return;
	plan->scratch_bytes =
		MIN(plan->scratch_bytes,
		    2 * external->reading.input.record_count * size);
	plan->scratch_bytes += plan->merge_count > 0 ? 2 * kept : kept;
	if (config->ranks.gives_runs)
		plan->scratch_bytes = 0;
}

static int make_plan(struct external *external, struct failure *failure)
{
	const struct external_config *config = external->config;
	struct external_request *request = &external->request;
	struct external_rates rates = config->rates;
	int error;

	/* A rank reads some of a shared input, and plans for more of it. */
	external_request_make(request, config,
			      config->ranks.shares_input
				      ? config->ranks.planned_records
				      : external->reading.input.record_count,
			      external->topology.cpu_count);
	/* Ranks must plan alike. */
	if (config->rates.read == 0 && config->ranks.rank_count <= 1 &&
	    external->reading.kind == READING_FILES)
		rates.requests = disk_probe_requests(&external->reading.input);
	request->seek_bytes = external_rates_seek_bytes(&rates);
	request->in_order = external->ordering.destination.is_stream;
	error = external_request_plan(request, config, &external->plan,
				      failure);
	if (error)
		return error;
	reading_plan(&external->reading, &external->topology, request,
		     &external->plan);
	bound_scratch(external);
	external->may_reread = external_may_reread(external);
	external_predict(external, &rates);
	return 0;
}

static int lay_out_batches(struct external *external, struct failure *failure)
{
	const struct external_plan *plan = &external->plan;

	external->batches =
		alloc_apart(plan->batch_count + 2, sizeof(*external->batches));
	if (!external->batches)
		return failure_no_memory(failure);
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
		pipeline_put(&external->pipeline.free, batch);
	}
	return 0;
}

static int lay_out_memory(struct external *external, struct failure *failure)
{
	const struct external_plan *plan = &external->plan;
	struct arena *arena = &external->arena;
	unsigned workers = external->request.worker_count;
	int error = sort_setup_arena(
		arena, plan->memory_bytes,
		plan->batch_count + workers + 3 * plan->lane_count + 11,
		numa_nodes_of(&external->topology), failure);

	if (error)
		return error;
	external->read_memory = arena_take(
		arena, external_plan_reading_bytes(plan), PAGE_BYTES);
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
	if (plan->way == EXTERNAL_BY_COUNTS) {
		record_counts_take_memory(&external->ordering.counts,
					  &external->request.shape,
					  plan->reader_count, arena);
	} else {
		external_lay_out_ordering(external);
		reading_lay_out(&external->reading,
				external->batches[0].plan.sample_count, arena);
	}
	external->reading.counts = external->ordering.counts.tables;
	run_index_init(&external->runs.index, &external->request.shape,
		       plan->block_records);
	return run_index_reserve(&external->runs.index,
				 MIN(plan->index_blocks, UINT32_MAX), failure);
}

/* --- sinks ---------------------------------------------------------------- */

/* The ranks of a machine share its CPUs, as their workers do. */
static unsigned codec_cpus(const struct external *external)
{
	unsigned cpus = external->topology.cpu_count;

	return external->plan.rank_count > 1
		       ? MIN(cpus, external->request.worker_count)
		       : cpus;
}

/* Staging memory, which no thread has touched yet, comes from the node of the
 * disk that the first scratch folder lies on. */
static void place_staging(const struct external *external)
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
	numa_prefer(external->read_memory, external_plan_reading_bytes(plan),
		    (unsigned)node);
	numa_prefer(external->slot_memory, plan->slot_count * plan->slot_bytes,
		    (unsigned)node);
}

/* What the choice of a codec needs to know of the plan. */
static struct codec_work codec_work(const struct external *external)
{
	const struct external_plan *plan = &external->plan;
	uint64_t size = external->request.shape.size;

	if (external_request_is_stream(&external->request))
		return (struct codec_work){ 0 };
	return (struct codec_work){
		.whole_bytes = external->request.record_count * size,
		.spilled_bytes = plan->spilled_records * size,
		.merged_bytes = plan->merged_records * size,
		.rank_count = plan->rank_count,
		.link = external->config->least_link,
	};
}

struct run_sink_request external_run_sink(struct external *external)
{
	const struct external_plan *plan = &external->plan;

	return (struct run_sink_request){
		.index = &external->runs.index,
		.scratch = &external->runs.scratch,
		.kernel = external->config->sort->kernel,
		.memory = external->slot_memory,
		.slot_count = plan->slot_count,
		.slot_bytes = plan->slot_bytes,
		.chunk_bytes = plan->run_chunk_bytes,
		.depth = plan->write_depth,
		.codec = external->config->codec,
		.cpu_count = codec_cpus(external),
		.work = codec_work(external),
		.encoder_memory = external->encoder_memory,
		.encoder_bytes = plan->encoder_bytes,
		.encoder_count = external->request.worker_count,
	};
}

static void open_sinks(struct external *external)
{
	const struct external_plan *plan = &external->plan;
	const struct run_sink_request runs = external_run_sink(external);

	place_staging(external);
	run_sink_open(&external->runs.sink, &runs);
	/* The same memory: runs are written before the output is. */
	destination_set_slots(&external->ordering.destination,
			      external->slot_memory, plan->slot_count,
			      plan->output_chunk_bytes);
}

/* The size of the output of a stream is known at its end only; those of other
 * outputs were known when the memory was planned. */
static int refuse_output(const struct external *external,
			 struct failure *failure)
{
	uint64_t bytes = sort_setup_output_memory(
		external->config->sort, external->reading.input.record_count);
	char needed[FORMAT_SIZE_BYTES], available[FORMAT_SIZE_BYTES];
	struct allowance allowance;

	if (bytes == 0)
		return 0;
	allowance_read(&allowance);
	if (bytes + bytes / EXTERNAL_KERNEL_PART <=
	    allowance.file_bytes + allowance.swap_bytes)
		return 0;
	return failure_set(failure, EXIT_RESOURCES, "memory", 0,
			   "the output takes %s of it where it is to lie, and "
			   "%s are available",
			   format_size_up(needed, bytes),
			   format_size_down(available, allowance.file_bytes));
}

static int begin_output(struct external *external, struct failure *failure)
{
	int error = 0;

	/* The output may lie on the same disk. */
	if (external->reading.kind == READING_STREAMS &&
	    external->runs.scratch.directory_count > 0)
		scratch_trim(&external->runs.scratch);
	if (external->reading.kind == READING_STREAMS)
		error = refuse_output(external, failure);
	return error ? error
		     : destination_begin(&external->ordering.destination,
					 external->reading.input.record_count,
					 reading_header(&external->reading),
					 failure);
}

/* --- timelines ------------------------------------------------------------ */

static struct trace_process process_of(const char *name, uint64_t origin_ns,
				       const struct sort_trace *trace)
{
	return (struct trace_process){
		.name = name,
		.origin_ns = origin_ns,
		.lanes = trace->lanes,
		.lane_count = trace->lane_count,
	};
}

/* Each team has lanes of its own, and the ordering team has the file. */
static int write_trace(const struct external *external, uint64_t origin_ns,
		       struct failure *failure)
{
	static const char *const names[] = { "read device 1", "read device 2",
					     "read device 3", "read device 4" };
	const struct reading *reading = &external->reading;
	const struct sort_trace *ordering = &external->ordering.trace;
	struct trace_process teams[3 + LANES_MAX] = {
		{ .name = "blinksort",
		  .origin_ns = origin_ns,
		  .flows = flow_counted() },
		process_of("read", origin_ns, &reading->trace),
		process_of("order and write", origin_ns, ordering),
	};
	unsigned count = 3;

	_Static_assert(ARRAY_LEN(names) == LANES_MAX, "each lane has a name");
	for (unsigned l = 0; reading->lane_count > 1 && l < reading->lane_count;
	     l++)
		teams[count++] = process_of(names[l], origin_ns,
					    &reading->lane[l].own_trace);
	return sort_trace_write(ordering, teams, count, failure);
}

/* --- running -------------------------------------------------------------- */

static int start_threads(struct external *external, struct failure *failure)
{
	int error = thread_pool_start(
		&external->leaders, external->plan.lane_count + 2,
		THREAD_POOL_BESIDE, &external->topology, failure);

	if (error == 0)
		error = reading_start(&external->reading,
				      external->request.worker_count, failure);
	return error ? error : external_start_ordering(external, failure);
}

static int begin_input(struct external *external, struct failure *failure)
{
	const struct sorter_config *config = external->config->sort;
	struct destination *destination = &external->ordering.destination;
	int error;

	destination_init(destination, config,
			 external->config->ranks.rank_count > 0);
	external->reading.first_number = external->config->ranks.input_begin;
	error = reading_open(&external->reading, config,
			     external->config->ranks.shares_input,
			     &external->failure, failure);
	if (error)
		return error;
	topology_read(&external->topology);
	external->topology.unpinned = config->unpinned;
	if (!config->ignores_nodes)
		topology_read_nodes(&external->topology);
	return make_plan(external, failure);
}

/* Whether a stream needs scratch files is not known before it ends.  A wrong
 * name is told at once nevertheless: later it would cost all that the stream
 * has brought until then. */
static int prepare_scratch(struct external *external, struct failure *failure)
{
	const struct external_plan *plan = &external->plan;

	if (plan->scratch_bytes > 0)
		return external_begin_scratch(external, failure);
	if (external->reading.kind == READING_STREAMS &&
	    plan->way == EXTERNAL_BY_RUNS && external->config->scratch_is_named)
		return external_open_scratch(external, failure);
	return 0;
}

int external_prepare(struct external *external, struct failure *failure)
{
	int error = begin_input(external, failure);

	if (error == 0)
		error = destination_open(&external->ordering.destination,
					 external->reading.input.record_count,
					 failure);
	if (error == 0)
		error = sort_trace_open(&external->ordering.trace,
					&external->ordering.destination.files,
					&external->reading.input, failure);
	if (error == 0)
		error = start_threads(external, failure);
	if (error == 0)
		error = lay_out_memory(external, failure);
	if (error)
		return error;
	open_sinks(external);
	return prepare_scratch(external, failure);
}

static int run(struct external *external, struct sorter_result *result,
	       struct failure *failure)
{
	int error;

	result->prepared_ns = clock_now_ns();
	if (!external_make_runs(external))
		return first_failure_get(&external->failure, failure);
	error = begin_output(external, failure);
	if (error)
		return error;
	result->bucketed_ns = clock_now_ns();
	external_count_runs(external);
	if (!external_merge_all(external))
		return first_failure_get(&external->failure, failure);
	external_end_pass(external);
	result->ordered_ns = clock_now_ns();
	return 0;
}

static int commit(struct external *external, struct sorter_result *result,
		  struct failure *failure)
{
	struct destination *destination = &external->ordering.destination;
	struct sort_trace *trace = &external->ordering.trace;
	int error;

	destination->files.header = reading_header(&external->reading);
	error = destination_finish(destination, external->ordering.next_record,
				   failure);

	/* The trace has all writes. */
	if (error == 0 && trace->path)
		error = sink_finish(destination->sink, failure);
	if (error == 0 && trace->path)
		error = write_trace(external, result->begin_ns, failure);
	if (error == 0)
		error = destination_commit(destination,
					   trace->path ? &trace->file : NULL,
					   failure);
	result->committed_ns = clock_now_ns();
	return error;
}

static void fill_details(const struct external *external,
			 struct external_result *details)
{
	const struct external_plan *plan = &external->plan;
	const struct external_meter *meter = &external->meter;
	const struct external_runs *runs = &external->runs;
	const struct scratch *scratch = &runs->scratch;
	uint32_t record_size = external->request.shape.size;

	*details = (struct external_result){
		.way = plan->way,
		.merges_inputs = external->config->merges_inputs,
		.lane_count = plan->lane_count,
		.batch_count = plan->batch_count,
		.batch_bytes = plan->batch.capacity * record_size,
		.run_count = runs->made_count,
		.resident_count = external->merge.resident_count,
		.merge_count = external->merge.merge_count,
		.piece_count = external->merge.piece_count,
		.block_bytes = plan->block_records * record_size,
		.spilled_bytes = scratch->written_bytes,
		.reread_bytes = runs->reread_records * record_size,
		.directory_count = scratch->directory_count,
		.directory_paths = external->config->scratch_paths,
		.scratch_peak_bytes = scratch->peak_bytes,
		.codec = runs->sink.choice.codec,
		.verdict = runs->sink.choice.verdict,
		.plain_bytes = runs->sink.plain_bytes,
		.stored_bytes = runs->sink.stored_bytes,
		.rates = meter->rates,
		.forecast = meter->forecast,
		.forecast_after_ns = meter->forecast_after_ns,
	};
	external_fill_passes(external, details->passes);
	for (unsigned d = 0; d < scratch->directory_count; d++)
		details->directory_bytes[d] =
			scratch->directories[d].written_bytes;
}

void external_fill_result(const struct external *external,
			  struct sorter_result *result,
			  struct external_result *details)
{
	const struct external_config *config = external->config;
	const struct external_ordering *ordering = &external->ordering;
	const struct arena *arena = &external->arena;

	result->io = external->reading.input.mode;
	result->output_direct = ordering->destination.files.direct;
	result->splitters = external->batches[0].splitters.kind;
	result->bucket_count = external->batches[0].splitters.bucket_count;
	result->threads = external->request.worker_count;
	result->memory_bytes = external->request.memory_bytes;
	result->record_count = external->reading.input.record_count;
	result->size_bytes =
		result->record_count * sorter_input_size(config->sort);
	result->checksum = ordering->checksum;
	result->dropped_count = ordering->dropped_count;
	result->written_count = ordering->next_record;
	fill_details(external, details);
	if (config->sort->counts_nodes &&
	    (config->has_nodes || external->topology.node_count > 1))
		sort_setup_fill_nodes(result, &external->topology,
				      &ordering->pool, &arena, 1);
}

void external_close(struct external *external)
{
	struct arena own = external->own;

	answer_phase("finishing");
	thread_pool_stop(&external->ordering.pool);
	thread_pool_stop(&external->leaders);
	reading_close(&external->reading);
	sort_trace_close(&external->ordering.trace);
	file_hold_close(&external->runs.hold);
	run_sink_close(&external->runs.sink);
	destination_close(&external->ordering.destination);
	scratch_close(&external->runs.scratch);
	run_index_free(&external->runs.index);
	pipeline_fini(&external->pipeline);
	free(external->batches);
	arena_unmap(&external->arena);
	arena_unmap(&own);
}

struct external *external_new(const struct external_config *config,
			      struct failure *failure)
{
	struct external *external;
	struct arena own;

	/* Too large for a stack. */
	if (sort_setup_arena(&own, sizeof(*external), 1, 0, failure) < 0)
		return NULL;
	external = arena_take(&own, sizeof(*external), CACHE_PAIR_BYTES);
	external->own = own;
	external->config = config;
	external->given = (struct given_runs){
		.record_size = config->sort->shape.size,
		.pool = &external->leaders,
	};
	external->reading.serve = external_serve;
	external->reading.serve_context = external;
	external->reading.leaders = external->pipeline.reading;
	if (config->sort->head_records > 0)
		external->reading.word_max = &external->head.word_max;
	sort_trace_init(&external->ordering.trace, config->sort->trace_path);
	pipeline_init(&external->pipeline, &external->leaders,
		      &external->failure);
	return external;
}

static int sort_once(const struct external_config *config,
		     struct sorter_result *result,
		     struct external_result *details, struct failure *failure)
{
	struct external *external;
	int error;

	*result = (struct sorter_result){
		.place = SORT_BEYOND_MEMORY,
		.begin_ns = clock_now_ns(),
	};
	memset(details, 0, sizeof(*details));
	external = external_new(config, failure);
	if (!external)
		return -ENOMEM;
	error = external_prepare(external, failure);
	if (error == 0)
		error = run(external, result, failure);
	if (error == 0)
		error = commit(external, result, failure);
	if (error == 0)
		external_fill_result(external, result, details);
	external_close(external);
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

/* All is told but times, if the disk cannot be measured. */
static void measure(struct external *external,
		    struct external_explanation *explanation)
{
	/* Scratch files are not in the page cache, even if the input is. */
	if (external->reading.input.mode != INPUT_DIRECT)
		input_open_directly(&external->reading.input);
	(void)disk_probe(&external->reading.input, &external->runs.scratch,
			 external->plan.output_chunk_bytes, &explanation->rates,
			 &explanation->unmeasured);
}

/* The output takes its room first, as in the sort itself.  Too little room for
 * files is told with the plan; a file or folder that can't be used ends it. */
static int explain(struct external *external,
		   struct external_explanation *explanation,
		   struct failure *failure)
{
	const struct external_config *config = external->config;
	int error = begin_input(external, failure);

	if (error)
		return error;
	error = destination_open(&external->ordering.destination,
				 external->reading.input.record_count,
				 &explanation->refusal);
	if (error == 0)
		error = external_begin_scratch(external, &explanation->refusal);
	if (error && error != -ENOSPC) {
		*failure = explanation->refusal;
		return error;
	}
	if (error == 0)
		explanation->refusal.status = EXIT_DONE;
	explanation->whole_records = external->reading.input.record_count;
	explanation->request = external->request;
	explanation->request.lanes = NULL; /* which goes with the state */
	explanation->plan = external->plan;
	explanation->may_reread = external->may_reread;
	explanation->rates = external->meter.rates;
	explanation->directory_count = external->runs.scratch.directory_count;
	for (unsigned d = 0; d < explanation->directory_count; d++)
		explanation->room_bytes[d] =
			scratch_room(&external->runs.scratch, d);
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
	struct external *external = external_new(config, failure);
	int error;

	memset(explanation, 0, sizeof(*explanation));
	if (!external)
		return -ENOMEM;
	error = explain(external, explanation, failure);
	external_close(external);
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
