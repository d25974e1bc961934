/*
 * sorter.c - the life of one machine's sort in memory: open, plan, map, run,
 * commit
 */
#include "sort/sorter.h"

#include <errno.h>
#include <sched.h>

#include "base/answer.h"
#include "base/clock.h"
#include "base/progress.h"
#include "io/input/input_reader.h"
#include "sort/bucketing.h"
#include "sort/key_probe.h"
#include "sort/orderer.h"
#include "sort/record_counts.h"
#include "sort/sort_setup.h"
#include "system/topology.h"

struct sorter {
	struct arena own; /* of this struct */
	/* The caller's thread, worker 0, writes these before the others run. */
	struct sorter_config config;
	struct sorter_result *result; /* worker 0 alone */
	struct input input;
	struct source source;
	struct output output;
	struct sort_trace trace;
	struct topology topology;
	struct thread_pool pool;
	struct plan plan;
	struct arena arena;
	_Atomic bool *touched; /* the arena's first byte, or NULL */
	struct bucketing bucketing;
	struct orderer orderer;
	/* Records of one or two bytes may be counted: then these two are taken
	 * instead of the orderer. */
	bool is_counted;
	struct record_counts counts;
	struct counted_output counted_output;
	/* Sampled records and scratch for their key prefixes. */
	const uint8_t **sample;
	uint64_t *sample_prefixes;

	/* Worker 0 writes these, before the others run or between barriers.
	 * The splitters are zeroed until there are some. */
	struct splitters splitters;
	bool partition_again;

	/* Any worker. */
	struct first_failure failure;
	/* The next part of the input to be forgotten. */
	_Alignas(CACHE_PAIR_BYTES) _Atomic uint32_t next_part;
};

/* --- plan and memory -------------------------------------------------------
 */

static struct plan_request request_plan(const struct sorter *sorter)
{
	const struct input *input = &sorter->input;

	return (struct plan_request){
		.shape = sorter->config.shape,
		.record_count = input->record_count,
		.slot_count = input->slot_count,
		.input_memory_bytes = input_memory_bytes(input),
		.worker_count = sorter->pool.worker_count,
		.is_counted = sorter->is_counted,
	};
}

/* Memory for all that the plan takes, without the input.  Besides the parts'
 * pieces there are the touched byte, the sample and its prefixes. */
static int map_arena(struct sorter *sorter, const struct plan *plan,
		     struct failure *failure)
{
	unsigned workers = sorter->pool.worker_count;

	return sort_setup_arena(
		&sorter->arena, plan->arena_bytes,
		BUCKETING_PIECES(workers) + ORDERER_PIECES(workers) + 3,
		sort_setup_worker_nodes(&sorter->topology, &sorter->pool),
		failure);
}

static void *take(struct sorter *sorter, uint64_t count, size_t each_bytes)
{
	return arena_take(&sorter->arena, count * each_bytes, CACHE_PAIR_BYTES);
}

/* What worker 1 does while worker 0 prepares: touch the memory's first huge
 * page, in a byte that nothing else uses.  Not by madvise(2), which keeps
 * worker 0 from mapping its input meanwhile. */
static void touch_memory(void *context, unsigned worker)
{
	struct sorter *sorter = context;

	if (worker == 1)
		atomic_store_explicit(sorter->touched, true,
				      memory_order_relaxed);
}

/*
 * Reserve memory for the largest output before the outputs are known, so that
 * another worker can touch the first huge page meanwhile: that takes 0.15 to
 * 0.3 ms, a fifth of a small sort.  If there is no room for that much, just
 * enough is mapped later.
 */
static void reserve_memory(struct sorter *sorter)
{
	struct plan_request request = request_plan(sorter);
	struct failure ignored;
	struct plan plan;

	request.chunk_bytes_max = OUTPUT_CHUNK_BYTES_MAX;
	request.staging_slots = output_slots_max(request.worker_count);
	if (request.worker_count == 1 || plan_make(&plan, &request) < 0 ||
	    map_arena(sorter, &plan, &ignored) < 0)
		return;
	sorter->touched = take(sorter, 1, sizeof(*sorter->touched));
	thread_pool_launch(&sorter->pool, touch_memory, sorter);
}

/* Memory that there is may be refused nevertheless, and so may addresses for
 * the input: by RLIMIT_AS, or where the kernel does not overcommit. */
static int map_memory(struct sorter *sorter, struct failure *failure)
{
	int error = 0;

	if (!sorter->arena.base)
		error = map_arena(sorter, &sorter->plan, failure);
	if (error == 0)
		error = input_map(&sorter->input, failure);
	if (error != -ENOMEM)
		return error;
	sorter->result->place = SORT_BEYOND_MEMORY;
	sorter->result->memory_bytes = 0;
	return 0;
}

static int start_threads(struct sorter *sorter, struct failure *failure)
{
	const struct sorter_config *config = &sorter->config;
	struct sorter_result *result = sorter->result;
	unsigned workers;
	int error;

	topology_read(&sorter->topology);
	sorter->topology.unpinned = config->unpinned;
	workers = sort_setup_workers(config, sorter->input.record_count,
				     sorter->topology.cpu_count,
				     &result->threads_source);
	if (workers > 1 && !config->ignores_nodes)
		topology_read_nodes(&sorter->topology);
	error = thread_pool_start(&sorter->pool, workers,
				  config->threads > 0 ? THREAD_POOL_ALL
						      : THREAD_POOL_SOME,
				  &sorter->topology, failure);
	result->threads = sorter->pool.worker_count;
	return error;
}

static int take_fewer_threads(struct sorter *sorter, unsigned count,
			      struct failure *failure)
{
	int error;

	thread_pool_stop(&sorter->pool);
	arena_unmap(&sorter->arena);
	sorter->config.threads_max = count;
	error = start_threads(sorter, failure);
	sorter->result->threads_source = "memory";
	return error;
}

/* Plan for the outputs that are open: does the sort fit into the memory that it
 * may take, if need be with fewer threads? */
static int find_place(struct sorter *sorter, struct failure *failure)
{
	for (;;) {
		struct plan_request request = request_plan(sorter);
		unsigned fitting = sort_setup_fitting_workers(
			&sorter->plan, &request, &sorter->config,
			&sorter->output, sorter->result);
		int error;

		if (fitting == request.worker_count)
			return map_memory(sorter, failure);
		if (fitting == 0) {
			sorter->result->place = SORT_BEYOND_MEMORY;
			return 0;
		}
		error = take_fewer_threads(sorter, fitting, failure);
		if (error)
			return error;
	}
}

/* --- by entries: bucketing -------------------------------------------------
 */

static void choose_splitters(struct sorter *sorter)
{
	enum splitters_kind wanted = sorter->config.splitters;
	bool is_uniform;
	enum splitters_kind kind =
		key_probe(&sorter->input, &sorter->config, &is_uniform);

	/* Otherwise the keys are sampled when all records are in memory, or
	 * their pages are mapped. */
	if (wanted == SPLITTERS_STATIC ||
	    (wanted == SPLITTERS_AUTO && is_uniform) ||
	    sorter->input.record_count == 0)
		splitters_init_static(&sorter->splitters, kind,
				      sorter->plan.bucket_count);
}

static bool has_splitters(const struct sorter *sorter)
{
	return sorter->splitters.kind != SPLITTERS_AUTO;
}

static void draw_sample(struct sorter *sorter)
{
	const struct source *source = &sorter->source;
	uint32_t sample_count = sorter->plan.sample_count;
	uint64_t random = 1;

	for (uint32_t i = 0; i < sample_count; i++)
		sorter->sample[i] = source->ops->record(
			source, splitters_draw(source->record_count,
					       sample_count, i, &random));
	splitters_init_sampled(&sorter->splitters, &sorter->config.shape,
			       sorter->sample, sample_count,
			       sorter->sample_prefixes,
			       sorter->plan.splitters_wanted);
}

/* Worker 0, between two passes: whether the records must be partitioned, or
 * partitioned once more. */
static void decide(struct sorter *sorter)
{
	bool is_sampled = sorter->splitters.kind == SPLITTERS_SAMPLED;

	sorter->partition_again = false;
	if (has_splitters(sorter)) {
		struct bucket_set set = bucketing_set(&sorter->bucketing);

		orderer_add_up(&sorter->orderer, &set);
		if (is_sampled ||
		    sorter->config.splitters == SPLITTERS_STATIC ||
		    sorter->orderer.crowded_count <=
			    sorter->source.record_count / PLAN_CROWDED_PART)
			return;
	}
	draw_sample(sorter);
	bucket_pool_reset(&sorter->bucketing.pool);
	sorter->partition_again = true;
}

/* False: the run has failed. */
static bool run_bucketing(struct sorter *sorter, unsigned worker)
{
	const _Atomic bool *stop = &sorter->failure.stop;
	bool resident = false, partition = has_splitters(sorter);

	do {
		bucketing_pass(&sorter->bucketing, worker, resident, partition);
		if (thread_pool_barrier(&sorter->pool, stop))
			return false;
		if (worker == 0)
			decide(sorter);
		if (thread_pool_barrier(&sorter->pool, stop))
			return false;
		resident = partition = true;
	} while (sorter->partition_again);
	return true;
}

/* --- by entries: ordering --------------------------------------------------
 */

/* Worker 0, when duplicates have been dropped. */
static void set_output_sizes(struct sorter *sorter, uint64_t kept_count)
{
	struct failure failure;

	if (sort_setup_output_sizes(&sorter->output, &sorter->config,
				    kept_count, &failure) < 0)
		first_failure_note(&sorter->failure, &failure);
}

/* Worker 0; the others come to wait for the chunks. */
static void drop_duplicates(struct sorter *sorter)
{
	struct orderer *orderer = &sorter->orderer;
	uint64_t kept_count;

	/* Also after a failure the chunks begin: the other workers then see the
	 * failure. */
	if (orderer_drop_duplicates(orderer, 0, &kept_count))
		set_output_sizes(sorter, kept_count);
	orderer_begin_chunks(orderer);
}

/* Parts of a mapped input that are forgotten one by one: small enough for all
 * workers to have some, and to help the sink in between. */
#define FORGET_BYTES_MIN (2 * MIB)
#define FORGET_PARTS_MAX 16
/* A worker waits for other workers' last chunks as long as this may pay: they
 * may wait for a slow disk, or never come, if the output has failed. */
#define FORGET_WAIT_NS 3000000

/*
 * A worker that has nothing left to sort clears the page tables of the input,
 * which the kernel would do at the exit, with one CPU: a fifth of a millisecond
 * for 6 MB of small pages, 3 for 100 MB, while another worker is writing.
 */
static void forget_input(struct sorter *sorter)
{
	uint64_t until_ns = clock_now_ns() + FORGET_WAIT_NS;
	uint64_t bytes = sorter->input.record_count * sorter->config.shape.size;
	uint32_t parts = (uint32_t)MIN(MAX(1, bytes / FORGET_BYTES_MIN),
				       FORGET_PARTS_MAX);

	while (!orderer_has_gathered_all(&sorter->orderer)) {
		if (!sorter->pool.spins || clock_now_ns() > until_ns)
			return;
		sched_yield();
	}
	for (;;) {
		uint32_t part = atomic_fetch_add_explicit(&sorter->next_part, 1,
							  memory_order_relaxed);

		if (part >= parts)
			break;
		input_forget(&sorter->input, part, parts);
		sink_help(&sorter->output.sink);
	}
}

/* Cut up the arena, in the order of use, so that what is touched lies together;
 * and begin what comes after the bucketing. */
static void lay_out_entries(struct sorter *sorter,
			    const struct sort_wiring *wiring)
{
	const struct plan *plan = &sorter->plan;
	struct arena *arena = &sorter->arena;
	unsigned workers = sorter->pool.worker_count;
	struct orderer_config config;

	bucketing_take_lists(&sorter->bucketing, plan, workers, arena);
	orderer_take_memory(&sorter->orderer, plan, workers, arena, NULL);
	bucketing_take_blocks(&sorter->bucketing, plan, arena);
	sort_setup_slots(&sorter->output, plan, &sorter->pool,
			 &sorter->topology, arena);
	/* Touched only when keys are not uniform. */
	sorter->sample = take(sorter, plan->sample_count, 8);
	sorter->sample_prefixes = take(sorter, plan->sample_count, 8);
	orderer_take_oversized(&sorter->orderer, plan,
			       sorter->input.record_count, arena);

	choose_splitters(sorter);
	config = sort_setup_orderer(&sorter->config, plan, sorter->input.base,
				    &sorter->output);
	/* All workers meet between bucketing and ordering. */
	config.is_ready = true;
	orderer_begin(&sorter->orderer, wiring, &config);
}

static void run_by_entries(struct sorter *sorter, unsigned worker)
{
	if (!run_bucketing(sorter, worker))
		return;
	if (worker == 0)
		sorter->result->bucketed_ns = clock_now_ns();
	if (worker == 0 && sorter->config.unique)
		drop_duplicates(sorter);
	if (orderer_run(&sorter->orderer, worker))
		forget_input(sorter);
}

/* --- by counts -------------------------------------------------------------
 */

static void lay_out_counts(struct sorter *sorter)
{
	record_counts_take_memory(&sorter->counts, &sorter->config.shape,
				  sorter->pool.worker_count, &sorter->arena);
	sort_setup_slots(&sorter->output, &sorter->plan, &sorter->pool,
			 &sorter->topology, &sorter->arena);
}

/* Worker 0, when all have counted. */
static void begin_counted_output(struct sorter *sorter)
{
	const struct sorter_config *config = &sorter->config;

	record_counts_add_up(&sorter->counts, config->unique, config->kernel);
	if (config->unique)
		set_output_sizes(sorter, record_counts_whole(&sorter->counts));
	sorter->counted_output = (struct counted_output){
		.counts = &sorter->counts,
		.sink = &sorter->output.sink,
		.failure = &sorter->failure,
	};
	counted_output_begin(&sorter->counted_output);
}

static void run_by_counts(struct sorter *sorter, unsigned worker)
{
	const _Atomic bool *stop = &sorter->failure.stop;

	bucketing_pass(&sorter->bucketing, worker, false, false);
	if (thread_pool_barrier(&sorter->pool, stop))
		return;
	if (worker == 0) {
		sorter->result->bucketed_ns = clock_now_ns();
		begin_counted_output(sorter);
	}
	if (!thread_pool_barrier(&sorter->pool, stop))
		counted_output_run(&sorter->counted_output, worker);
}

/* --- opening ---------------------------------------------------------------
 */

/* Counting is no faster where records are fewer than their possible values, and
 * what has been counted is written as a whole. */
static bool choose_counting(const struct sorter_config *config,
			    uint64_t record_count)
{
	return record_counts_suit(&config->shape) &&
	       config->head_records == 0 &&
	       record_count >= record_counts_items_max(config->shape.size);
}

/* Wire the parts, and give them their memory. */
static int wire(struct sorter *sorter, struct failure *failure)
{
	const struct sort_wiring wiring = {
		.shape = sorter->config.shape,
		.kernel = sorter->config.kernel,
		.plan = &sorter->plan,
		.splitters = &sorter->splitters,
		.pool = &sorter->pool,
		.trace = &sorter->trace,
		.failure = &sorter->failure,
	};
	struct bucketing_config config = { .source = &sorter->source };

	sorter->source = input_source(&sorter->input);
	if (sorter->is_counted)
		lay_out_counts(sorter);
	else
		lay_out_entries(sorter, &wiring);
	config.counts = sorter->counts.tables;
	bucketing_begin(&sorter->bucketing, &wiring, &config);
	return sort_trace_add_lanes(&sorter->trace, sorter->pool.worker_count,
				    SORT_TRACE_SPANS, failure);
}

static int open_sort(struct sorter *sorter, struct failure *failure)
{
	const struct sorter_config *config = &sorter->config;
	struct sorter_result *result = sorter->result;
	int error = sort_setup_input(&sorter->input, config, true, failure);

	if (error)
		return error;
	result->record_count = sorter->input.record_count;
	result->size_bytes = result->record_count * config->shape.size;
	/* As early as the number of workers is known: a CPU that has been idle
	 * takes its time, and the rest is prepared meanwhile. */
	error = start_threads(sorter, failure);
	if (error)
		return error;
	input_choose(&sorter->input);
	result->io = sorter->input.mode;
	sorter->is_counted = choose_counting(config, result->record_count);
	reserve_memory(sorter);
	error = sort_setup_outputs(&sorter->output, config,
				   result->record_count, failure);
	if (error == 0)
		error = sort_trace_open(&sorter->trace, &sorter->output,
					&sorter->input, failure);
	if (error == 0)
		error = find_place(sorter, failure);
	if (error || result->place == SORT_BEYOND_MEMORY)
		return error;
	return wire(sorter, failure);
}

struct sorter *sorter_open(const struct sorter_config *config,
			   struct sorter_result *result,
			   struct failure *failure)
{
	struct arena own = { 0 };
	struct sorter *sorter;

	memset(result, 0, sizeof(*result));
	result->begin_ns = clock_now_ns();
	/* Too large for a stack.  Fresh memory is zeroed, and costs only where
	 * it is touched. */
	if (sort_setup_arena(&own, sizeof(*sorter), 1, 0, failure) < 0)
		return NULL;
	sorter = arena_take(&own, sizeof(*sorter), CACHE_PAIR_BYTES);
	sorter->own = own;
	sorter->config = *config;
	sorter->result = result;
	sort_trace_init(&sorter->trace, config->trace_path);
	if (open_sort(sorter, failure) == 0)
		return sorter;
	sorter_close(sorter);
	return NULL;
}

/* --- running ---------------------------------------------------------------
 */

static void run_worker(void *context, unsigned worker)
{
	struct sorter *sorter = context;

	if (sorter->is_counted)
		run_by_counts(sorter, worker);
	else
		run_by_entries(sorter, worker);
}

/* An answer_fn: the main thread is worker 0, which writes bucketed_ns. */
static bool tell(void *context, struct format_line *line)
{
	const struct sorter *sorter = context;
	const struct sorter_result *result = sorter->result;
	const struct counted_output *counted = &sorter->counted_output;
	const struct orderer *orderer = &sorter->orderer;

	if (result->bucketed_ns == result->prepared_ns)
		progress_add_part(line, "input",
				  atomic_load(&sorter->bucketing.next_record),
				  result->record_count, result->size_bytes);
	else if (sorter->is_counted)
		progress_add_part(
			line, "output", atomic_load(&counted->next_chunk),
			counted->range.chunk_count, result->size_bytes);
	else
		progress_add_part(
			line, "output", atomic_load(&orderer->gathered_chunks),
			orderer->range.chunk_count, result->size_bytes);
	return true;
}

static int run_pool(struct sorter *sorter, struct failure *failure)
{
	const struct answer answer = { tell, sorter };
	struct sorter_result *result = sorter->result;

	result->prepared_ns = clock_now_ns();
	result->bucketed_ns = result->prepared_ns;
	answer_by(&answer);
	if (sorter->input.record_count > 0)
		thread_pool_run_last(&sorter->pool, run_worker, sorter);
	else
		thread_pool_stop(&sorter->pool);
	result->ordered_ns = sorter->input.record_count > 0
				     ? clock_now_ns()
				     : result->bucketed_ns;
	answer_phase("finishing");
	return first_failure_get(&sorter->failure, failure);
}

static int commit(struct sorter *sorter, struct failure *failure)
{
	struct sort_trace *trace = &sorter->trace;
	const struct trace_process own = {
		.name = "blinksort",
		.origin_ns = sorter->result->begin_ns,
		.lanes = trace->lanes,
		.lane_count = trace->lane_count,
		.flows = flow_counted(),
	};
	int error = input_check(&sorter->input, failure);

	sorter->output.header = sorter->input.header;
	/* The trace has all writes. */
	if (error == 0 && trace->path)
		error = sink_finish(&sorter->output.sink, failure);
	if (error == 0 && trace->path)
		error = sort_trace_write(trace, &own, 1, failure);
	if (error == 0)
		error = output_commit(&sorter->output, sorter->config.sync,
				      trace->path ? &trace->file : NULL,
				      failure);
	sorter->result->committed_ns = clock_now_ns();
	return error;
}

static void fill_result(const struct sorter *sorter)
{
	const struct record_counts *counts = &sorter->counts;
	const struct orderer *orderer = &sorter->orderer;
	const struct arena *arena = &sorter->arena;
	struct sorter_result *result = sorter->result;

	result->output_direct = sorter->output.direct;
	result->splitters = sorter->splitters.kind;
	result->bucket_count = sorter->splitters.bucket_count;
	if (sorter->config.counts_nodes && sorter->topology.node_count > 1)
		sort_setup_fill_nodes(result, &sorter->topology, &sorter->pool,
				      &arena, 1);
	result->dropped_count =
		sorter->is_counted
			? result->record_count - record_counts_whole(counts)
			: orderer_dropped_count(orderer);
	if (sorter->config.checksum)
		result->checksum = sorter->is_counted
					   ? record_counts_checksum(counts)
					   : orderer_checksum(orderer);
	result->written_count =
		sink_bytes(&sorter->output.sink) / sorter->config.shape.size;
}

int sorter_sort(struct sorter *sorter, struct failure *failure)
{
	int error = run_pool(sorter, failure);

	if (error == 0)
		error = commit(sorter, failure);
	if (error == 0)
		fill_result(sorter);
	return error;
}

/* --- the end ---------------------------------------------------------------
 */

/* The pool still runs if nothing was sorted. */
static void end(struct sorter *sorter)
{
	thread_pool_stop(&sorter->pool);
	sort_trace_close(&sorter->trace);
	output_close(&sorter->output);
}

void sorter_close(struct sorter *sorter)
{
	struct arena own = sorter->own;

	end(sorter);
	input_close(&sorter->input);
	arena_unmap(&sorter->arena);
	arena_unmap(&own);
}

void sorter_leave(struct sorter *sorter)
{
	end(sorter);
	input_leave(&sorter->input);
}
