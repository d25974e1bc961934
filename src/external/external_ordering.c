/*
 * external_ordering.c - the ordering team: a batch into order, and to a sink
 */
#include <assert.h>

#include "external/external_state.h"
#include "sort/chunk_range.h"

/* --- threads and memory --------------------------------------------------- */

int external_start_ordering(struct external *external, struct failure *failure)
{
	struct external_ordering *ordering = &external->ordering;
	unsigned workers = external->request.worker_count;
	int error = sort_trace_add_lanes(&ordering->trace, workers,
					 SORT_TRACE_SPANS_MAX, failure);

	ordering->wiring = external->reading.wiring;
	ordering->wiring.pool = &ordering->pool;
	ordering->wiring.trace = &ordering->trace;
	return error ? error
		     : thread_pool_start(&ordering->pool, workers,
					 THREAD_POOL_BESIDE,
					 &external->topology, failure);
}

void external_lay_out_ordering(struct external *external)
{
	const struct external_plan *plan = &external->plan;
	struct orderer *orderer = &external->ordering.orderer;
	struct plan tables = external->batches[0].plan;

	tables.chunk_entries =
		external_plan_chunk_entries(plan, &external->request);
	orderer_take_memory(orderer, &tables, external->request.worker_count,
			    &external->arena, NULL);
	orderer_take_oversized(orderer, &tables, plan->batch.capacity,
			       &external->arena);
}

/* --- one batch ------------------------------------------------------------ */

struct order_pass {
	struct external *external;
	struct run_sink *run; /* NULL: to the output */
	bool good;
};

/* Worker 0; the others come to wait for the chunks. */
static void drop_duplicates(struct external *external, struct run_sink *run)
{
	struct orderer *orderer = &external->ordering.orderer;
	uint64_t kept_count;

	if (orderer_drop_duplicates(orderer, 0, &kept_count) && run)
		run_sink_begin(run,
			       sorter_config_written(external->config->sort,
						     kept_count));
	orderer_begin_chunks(orderer);
}

static void run_ordering(void *context, unsigned worker)
{
	struct order_pass *pass = context;
	struct orderer *orderer = &pass->external->ordering.orderer;
	bool good;

	if (worker == 0 && pass->external->config->sort->unique)
		drop_duplicates(pass->external, pass->run);
	good = orderer_run(orderer, worker);
	if (worker == 0)
		pass->good = good;
}

static void begin_ordering(struct external_ordering *ordering,
			   const struct batch *batch,
			   const struct orderer_config *config)
{
	struct sort_wiring wiring = ordering->wiring;
	struct bucket_set set = bucketing_set(&batch->bucketing);

	wiring.splitters = &batch->splitters;
	orderer_begin(&ordering->orderer, &wiring, config);
	orderer_add_up(&ordering->orderer, &set);
}

static struct sink *sink_of(const struct external *external,
			    struct run_sink *run)
{
	return run ? &run->sink : external->ordering.destination.sink;
}

/* A worker that finds the sink failed stops alone; the reason is the sink's. */
bool external_finish_sink(struct external *external, struct run_sink *run)
{
	struct failure failure;

	int error = sink_finish(sink_of(external, run), &failure);

	return external_good(external, error, &failure) &&
	       !first_failure_stops(&external->failure);
}

void external_begin_pieces(struct external *external)
{
	external->ordering.last_key = NULL;
}

/* The piece is in order, and still in its batch. */
static void keep_last_key(struct external *external)
{
	struct external_ordering *ordering = &external->ordering;
	const uint8_t *record = orderer_last_record(&ordering->orderer);
	uint8_t *last_key = external->reading.lane[0].common_key;

	if (!record)
		return;
	memcpy(last_key, record + external->request.shape.keys.begin,
	       external->runs.index.key_shape.size);
	ordering->last_key = last_key;
}

/* The records of a batch are in the run, or in the output: as many as these
 * have room for, if only the first of the order are wanted. */
static void count_written(struct external *external, const struct run_sink *run)
{
	struct external_ordering *ordering = &external->ordering;
	uint64_t count = orderer_record_count(&ordering->orderer);

	if (run)
		atomic_fetch_add_explicit(
			&ordering->spilled_records,
			MIN(count, run->run_bytes / run->index->shape.size),
			memory_order_relaxed);
	else
		ordering->next_record +=
			MIN(count, destination_records(&ordering->destination) -
					   ordering->next_record);
}

bool external_order(struct external *external, struct batch *batch,
		    struct run_sink *run)
{
	struct external_ordering *ordering = &external->ordering;
	const struct sorter_config *sort = external->config->sort;
	struct sink *sink = sink_of(external, run);
	struct order_pass pass = { .external = external, .run = run };
	const struct record_slice whole = { 0, external->request.shape.size };
	const struct record_slice written = run ? whole : sorter_written(sort);
	const struct orderer_config config = {
		.index_bits = batch->plan.index_bits,
		.base = batch->records,
		.sums_up = !run && sort->checksum,
		.drops_duplicates = sort->unique,
		.keeps_last = sort->unique == UNIQUE_LAST,
		.last_key = ordering->last_key,
		.key_shape = &external->runs.index.key_shape,
		.is_ready = true,
		.first_record = run ? 0 : ordering->next_record,
		.record_count = batch->record_count,
		.sink = sink,
		.written = written,
		.chunk_entries =
			plan_chunk_entries(sink->chunk_bytes, written.bytes),
	};

	if (run && !sort->unique)
		run_sink_begin(
			run, sorter_config_written(sort, batch->record_count));
	begin_ordering(ordering, batch, &config);
	stage_queue_resume(&sink->writes, sink->writes.sum);
	thread_pool_run(&ordering->pool, run_ordering, &pass);
	if (!pass.good)
		return external_finish_sink(external, run) && false;
	count_written(external, run);
	if (sort->unique && external->config->merges_inputs)
		keep_last_key(external);
	ordering->checksum += orderer_checksum(&ordering->orderer);
	ordering->dropped_count += orderer_dropped_count(&ordering->orderer);
	return true;
}

static void sort_in_place(void *context, unsigned worker)
{
	orderer_sort_oversized(context, worker);
}

bool external_sort_in_place(struct external *external, struct batch *batch)
{
	struct external_ordering *ordering = &external->ordering;
	struct orderer *orderer = &ordering->orderer;
	const struct orderer_config config = {
		.index_bits = batch->plan.index_bits,
		.base = batch->records,
		.drops_duplicates = external->config->sort->unique,
		.keeps_last = external->config->sort->unique == UNIQUE_LAST,
		.sorts_only = true,
		.is_ready = true,
	};
	const uint64_t *entries;

	begin_ordering(ordering, batch, &config);
	thread_pool_run(&ordering->pool, sort_in_place, orderer);
	/* A worker that has seen a failure has left its buckets. */
	if (first_failure_stops(&external->failure))
		return false;
	entries = orderer_sorted_entries(orderer);
	batch->record_count = sorter_config_written(
		external->config->sort, orderer_record_count(orderer));
	batch_keep_order(batch, entries);
	ordering->dropped_count += orderer_dropped_count(orderer);
	return true;
}

/* --- large records, whose keys are in order ---------------------------------
 *
 * In the last pass each worker takes every worker_count-th chunk of the output,
 * reads the records of its chunks past the page cache, many at a time, and
 * hands the chunks over.  (WiscSort, Banakar et al. 2023, sorts so on memory
 * that is read at random as fast as in order.)
 */

struct fetching {
	struct external *external;
	const struct batch *batch; /* of all records' keys, sorted in place */
	struct chunk_range range;
};

/* One worker's. */
struct fetcher {
	struct read_ahead reads;
	const struct fetching *fetching;
	/* What is to be read next: behind so many bytes of that chunk. */
	uint64_t chunk;
	uint64_t done_bytes;
};

/* A record, as far as it lies in a chunk. */
static bool next_extent(void *context, struct read_extent *extent)
{
	struct fetcher *fetcher = context;
	const struct fetching *fetching = fetcher->fetching;
	const struct external *external = fetching->external;
	const struct input *input = &external->reading.input;
	uint64_t size = fetching->range.record_size;
	uint64_t at_byte, record, slot;
	const struct input_file *file;
	struct chunk chunk;

	if (fetcher->chunk >= fetching->range.chunk_count)
		return false;
	chunk = chunk_range_at(&fetching->range, fetcher->chunk);
	at_byte = chunk.begin_byte + fetcher->done_bytes;
	record = chunk.first_record + at_byte / size - chunk.begin_byte / size;
	slot = batch_slot(fetching->batch, record);
	file = &input->files[input_find_file(input, slot)];
	*extent = (struct read_extent){
		.direct_fd = file->direct_fd,
		.plain_fd = file->fd,
		.offset_bytes =
			input_offset(input, file, slot) + at_byte % size,
		.length_bytes = (uint32_t)MIN(size - at_byte % size,
					      chunk.end_byte - at_byte),
		.path = file->path,
	};
	fetcher->done_bytes += extent->length_bytes;
	if (at_byte + extent->length_bytes == chunk.end_byte) {
		fetcher->chunk += external->ordering.pool.worker_count;
		fetcher->done_bytes = 0;
	}
	return true;
}

/* The chunk's records follow each other, as next_extent() names them.  0 or
 * -errno with *failure filled. */
static int fill_chunk(struct read_ahead *reads, uint8_t *target, size_t length,
		      struct failure *failure)
{
	struct read_extent extent = { 0 };

	for (size_t done = 0; done < length; done += extent.length_bytes) {
		const uint8_t *bytes;
		int taken = read_ahead_take(reads, &extent, &bytes, failure);

		if (taken < 0)
			return taken;
		assert(taken == 1 && extent.length_bytes <= length - done);
		memcpy(target + done, bytes, extent.length_bytes);
	}
	return 0;
}

/* False: the run has failed, or its sink. */
static bool fetch_chunk(struct fetcher *fetcher, unsigned worker,
			uint64_t number)
{
	const struct fetching *fetching = fetcher->fetching;
	struct chunk chunk = chunk_range_at(&fetching->range, number);
	size_t length = chunk.end_byte - chunk.begin_byte;
	struct sink *sink = fetching->external->ordering.destination.sink;
	struct sink_slot *slot = sink_take(sink);
	struct failure failure;
	int error;

	stage_wait(fetcher->reads.clock, STAGE_FOR_WRITE);
	if (!slot)
		return false;
	error = fill_chunk(&fetcher->reads, slot->data, length, &failure);
	if (!external_good(fetching->external, error, &failure))
		return false;
	stage_unit(fetcher->reads.clock, STAGE_GATHER, length);
	slot->clock = fetcher->reads.clock;
	slot->part = chunk.part;
	slot->offset_bytes = chunk.begin_byte;
	slot->length_bytes = length;
	sink_put(sink, slot);
	stage_unit(fetcher->reads.clock, STAGE_PUT, length);
	external_serve_output(fetching->external, worker, length);
	return true;
}

static void fetch(void *context, unsigned worker)
{
	struct fetching *fetching = context;
	struct external *external = fetching->external;
	const struct external_plan *plan = &external->plan;
	size_t each = (size_t)plan->read_depth * plan->read_slot_bytes;
	struct stage_clock *clock =
		&external->ordering.trace.lanes[worker].clock;
	struct fetcher fetcher = {
		.fetching = fetching,
		.chunk = worker,
	};
	uint64_t chunk = worker;
	bool good = true;

	stage_resume(clock, STAGE_FOR_TEAM);
	read_ahead_init(&fetcher.reads, plan->read_depth,
			external->read_memory + worker * each,
			plan->read_slot_bytes, next_extent, &fetcher);
	read_ahead_resume(&fetcher.reads, clock);
	while (good && chunk < fetching->range.chunk_count &&
	       !first_failure_stops(&external->failure)) {
		good = fetch_chunk(&fetcher, worker, chunk);
		chunk += external->ordering.pool.worker_count;
	}
	if (good)
		sink_help(external->ordering.destination.sink);
	stage_wait(clock, STAGE_FOR_WRITE);
	read_ahead_close(&fetcher.reads);
}

/* --- last passes that merge nothing --------------------------------------- */

bool external_order_keys(struct external *external, struct batch *batch)
{
	struct external_ordering *ordering = &external->ordering;
	struct fetching fetching = { .external = external, .batch = batch };

	external_begin_pass(external, EXTERNAL_RUNS);
	if (!external_sort_in_place(external, batch))
		return false;
	external_begin_pass(external, EXTERNAL_OUTPUT);
	ordering->next_record = batch->record_count;
	fetching.range = chunk_range_of(ordering->destination.sink,
					external->request.shape.size, 0,
					batch->record_count);
	thread_pool_run(&ordering->pool, fetch, &fetching);
	return external_finish_sink(external, NULL);
}

static void run_counted(void *context, unsigned worker)
{
	counted_output_run(context, worker);
}

static void add_up(struct external *external)
{
	const struct sorter_config *config = external->config->sort;
	struct external_ordering *ordering = &external->ordering;
	struct record_counts *counts = &ordering->counts;

	record_counts_add_up(counts, config->unique, config->kernel);
	ordering->next_record = record_counts_whole(counts);
	ordering->dropped_count =
		external->reading.input.record_count - ordering->next_record;
	if (config->checksum)
		ordering->checksum = record_counts_checksum(counts);
}

bool external_write_counted(struct external *external)
{
	struct external_ordering *ordering = &external->ordering;
	struct counted_output output = {
		.counts = &ordering->counts,
		.sink = ordering->destination.sink,
		.failure = &external->failure,
		.serve = external_serve_output,
		.serve_context = external,
		.trace = &ordering->trace,
	};

	external_begin_pass(external, EXTERNAL_OUTPUT);
	add_up(external);
	counted_output_begin(&output);
	thread_pool_run(&ordering->pool, run_counted, &output);
	return external_finish_sink(external, NULL);
}
