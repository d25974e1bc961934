/*
 * external_runs.c - pass 1: the input into sorted runs
 */
#include "external/external_state.h"
#include "sort/key_probe.h"

/* Splitters have failed when more than this part of a batch lies in crowded
 * buckets, which single workers sort one by one. */
#define CROWDED_PART 8

/* Of a stream, whose keys are probed; as many as key_probe() takes. */
#define PROBE_RECORDS 512

/* --- the reading team: fill a batch ----------------------------------------
 */

struct pass {
	struct batch *batch;
	bool resident;
	bool partition;
};

static void run_pass(void *context, unsigned worker)
{
	const struct pass *pass = context;

	bucketing_pass(&pass->batch->bucketing, worker, pass->resident,
		       pass->partition);
}

/* Splitters from the batch's own records, which are in memory. */
static void sample_batch(struct external *external, struct batch *batch)
{
	const struct source *source = external->source;
	uint64_t count = source->record_count;
	uint32_t wanted =
		MIN(plan_splitters(count), batch->plan.splitters_wanted);
	uint32_t sample_count = plan_samples(count, wanted);
	uint64_t random = 1;

	for (uint32_t i = 0; i < sample_count; i++)
		external->sample[i] = source->ops->record(
			source,
			splitters_draw(count, sample_count, i, &random));
	splitters_init_sampled(&batch->splitters, &external->plan.batch.shape,
			       external->sample, sample_count,
			       external->sample_prefixes, wanted);
	batch_adopt_key(batch, &external->index.key_shape);
}

static void override_splitters(struct external *external)
{
	enum splitters_kind wanted = external->config->sort->splitters;

	if (wanted != SPLITTERS_AUTO)
		external->is_uniform = wanted == SPLITTERS_STATIC;
}

/* True: the batch has splitters before it has records. */
static bool find_splitters(struct external *external, struct batch *batch)
{
	if (external->is_uniform) {
		splitters_init_static(&batch->splitters, external->static_kind,
				      batch->plan.bucket_count);
		return true;
	}
	if (!external->splitters || external->samples_each)
		return false;
	if (external->splitters != batch)
		batch_copy_splitters(batch, external->splitters);
	return true;
}

static bool is_crowded(const struct external *external, uint64_t crowded)
{
	return external->config->sort->splitters != SPLITTERS_STATIC &&
	       crowded > external->source->record_count / CROWDED_PART;
}

/* Partition by splitters that suit this batch, since there were none, or those
 * that there were did not. */
static void partition_again(struct external *external, struct batch *batch,
			    bool had_splitters)
{
	external->samples_each = had_splitters && !external->is_uniform;
	external->is_uniform = false;
	sample_batch(external, batch);
	bucketing_reset(&batch->bucketing);
	thread_pool_run(&external->readers, run_pass,
			&(struct pass){ batch, true, true });
	batch_count_crowded(batch);
}

/* What kind of keys a stream has, from its first records. */
static void probe_stream(struct external *external, uint64_t record_count)
{
	const struct record_shape *shape = &external->request.shape;

	external->static_kind = splitters_probe(
		shape, external->source->base, MIN(record_count, PROBE_RECORDS),
		1, &external->is_uniform);
	override_splitters(external);
	external->is_probed = true;
}

/* The next records go to the batch.  Returns how many there are, or of a
 * stream, how many are there already; 0: none is left; -1: the run has failed.
 */
static int64_t begin_records(struct external *external, struct batch *batch)
{
	struct failure failure;
	int64_t count;

	if (!external->reads_streams)
		return (int64_t)file_source_begin(&external->files, batch);
	stream_source_begin(&external->streams, batch);
	count = stream_source_peek(&external->streams, &failure);
	if (count < 0) {
		external_fail(external, &failure);
		return -1;
	}
	if (count > 0 && !external->is_probed)
		probe_stream(external, (uint64_t)count);
	return count;
}

/*
 * Bring the records in, and put them into buckets if the batch has splitters.
 * Units of a stream come to the workers in any order: buckets that need their
 * entries in record order, as sampled splitters have some, are filled when all
 * is there.
 */
static void bring_in(struct external *external, struct batch *batch,
		     bool has_splitters)
{
	bool waits = external->reads_streams &&
		     batch->splitters.kind == SPLITTERS_SAMPLED;

	thread_pool_run(
		&external->readers, run_pass,
		&(struct pass){ batch, false, has_splitters && !waits });
	if (external->reads_streams)
		stream_source_end(&external->streams);
	if (has_splitters && waits && !first_failure_stops(&external->failure))
		thread_pool_run(&external->readers, run_pass,
				&(struct pass){ batch, true, true });
}

/* The last batch is known as such: else the other team would empty one for the
 * sake of a batch that gets no record. */
static int count_to_come(const struct external *external)
{
	uint64_t left;

	if (external->reads_streams)
		return external->streams.has_ended ? 0 : PIPELINE_MORE;
	left = external->input.record_count - external->files.next_record;
	return (int)MIN(DIV_ROUND_UP(left, external->plan.batch.capacity),
			PIPELINE_MORE - 1);
}

static int fill(void *context, struct batch *batch)
{
	struct external *external = context;
	int64_t count = begin_records(external, batch);
	bool has_splitters;

	batch->record_count = count > 0;
	if (count <= 0)
		return (int)count;
	external_begin_batch(external, batch, external->source);
	has_splitters = find_splitters(external, batch);
	bring_in(external, batch, has_splitters);
	if (first_failure_stops(&external->failure))
		return -1;
	if (!has_splitters || is_crowded(external, batch_count_crowded(batch)))
		partition_again(external, batch, has_splitters);
	external->splitters = batch;
	if (first_failure_stops(&external->failure))
		return -1;
	return count_to_come(external);
}

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
	external->orderer.oversized_entries = batch->sorted;
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

static int begin_run(struct external *external, uint64_t record_count)
{
	struct failure failure;
	int error = run_index_begin(
		&external->index,
		(uint32_t)DIV_ROUND_UP(record_count,
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
	if (begin_run(external, batch->record_count) < 0)
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

	begin_ordering(external, batch, &config);
	thread_pool_run(&external->orderers, sort_in_place, external);
	orderer_sorted_entries(&external->orderer);
	batch->record_count = orderer_record_count(&external->orderer);
	external->result->dropped_count +=
		orderer_dropped_count(&external->orderer);
}

bool external_keep(struct external *external, struct batch *batch)
{
	if (begin_run(external, batch->record_count) < 0)
		return false;
	external_sort_in_place(external, batch);
	index_resident(external, batch);
	return true;
}

/* --- the pass --------------------------------------------------------------
 */

static bool empty(void *context, struct batch *batch)
{
	return external_spill(context, batch);
}

static bool open_files(struct external *external)
{
	const struct external_plan *plan = &external->plan;
	const struct key_list *keys = &external->request.shape.keys;
	const struct file_source_request request = {
		.input = &external->input,
		.batch_records = plan->batch.capacity,
		.worker_count = external->request.worker_count,
		.slot_bytes = plan->read_slot_bytes,
		.depth = plan->read_depth,
		.memory = external->read_memory,
		.part_offset = plan->by_keys ? keys->begin : 0,
		.part_bytes = plan->batch.shape.size,
	};
	struct failure failure;

	if (external->reads_streams)
		return true;
	external->source = &external->files.source;
	external->static_kind =
		key_probe(&external->input, &external->request.shape,
			  &external->is_uniform);
	override_splitters(external);
	if (file_source_open(&external->files, &request, &failure) == 0)
		return true;
	external_fail(external, &failure);
	return false;
}

bool external_make_runs(struct external *external)
{
	const struct pipeline_run run = {
		.fill = fill,
		.empty = empty,
		.context = external,
		.free_wanted = external->plan.batch_count > 3 ? 2 : 1,
		.free_at_end = external->plan.by_keys ? 0 : 1,
	};
	bool good;

	external_begin_pass(external, EXTERNAL_RUNS);
	good = open_files(external) &&
	       pipeline_run(&external->pipeline, &run) &&
	       external_finish_runs(external);
	external_end_pass(external);
	file_source_close(&external->files);
	return good;
}
