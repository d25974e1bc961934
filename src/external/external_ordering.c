/*
 * external_ordering.c - the ordering team: a batch into order, and to a sink
 */
#include "external/external_state.h"

/* --- threads and memory --------------------------------------------------- */

int external_start_ordering(struct external *external, struct failure *failure)
{
	struct external_ordering *ordering = &external->ordering;

	ordering->wiring = external->reading.wiring;
	ordering->wiring.pool = &ordering->pool;
	ordering->wiring.trace = &ordering->trace;
	return thread_pool_start_beside(&ordering->pool,
					external->request.worker_count,
					&external->topology, failure);
}

void external_lay_out_ordering(struct external *external)
{
	const struct external_plan *plan = &external->plan;
	struct orderer *orderer = &external->ordering.orderer;
	struct plan tables = external->batches[0].plan;

	tables.chunk_entries = plan_chunk_entries(
		MAX(plan->run_chunk_bytes, plan->output_chunk_bytes),
		external->request.shape.size);
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
static void drop_duplicates(struct orderer *orderer, struct run_sink *run)
{
	uint64_t kept_count;

	if (orderer_drop_duplicates(orderer, 0, &kept_count) && run)
		run_sink_begin(run, kept_count);
	orderer_begin_chunks(orderer);
}

static void run_ordering(void *context, unsigned worker)
{
	struct order_pass *pass = context;
	struct orderer *orderer = &pass->external->ordering.orderer;
	bool good;

	if (worker == 0 && pass->external->config->sort->unique)
		drop_duplicates(orderer, pass->run);
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

/* A worker that finds the sink failed stops alone; the reason is the sink's. */
bool external_check_sink(struct external *external, struct sink *sink)
{
	struct failure failure;

	if (sink_finish(sink, &failure) < 0)
		external_fail(external, &failure);
	return !first_failure_stops(&external->failure);
}

bool external_order(struct external *external, struct batch *batch,
		    struct run_sink *run)
{
	struct external_ordering *ordering = &external->ordering;
	const struct sorter_config *sort = external->config->sort;
	struct sink *sink = run ? &run->sink : ordering->destination.sink;
	struct order_pass pass = { .external = external, .run = run };
	const struct orderer_config config = {
		.index_bits = batch->plan.index_bits,
		.base = batch->records,
		.chunk_entries = plan_chunk_entries(
			sink->chunk_bytes, external->request.shape.size),
		.sums_up = !run && sort->checksum,
		.drops_duplicates = sort->unique,
		.is_ready = true,
		.first_record = run ? 0 : ordering->next_record,
		.record_count = batch->record_count,
		.sink = sink,
	};

	if (run && !sort->unique)
		run_sink_begin(run, batch->record_count);
	begin_ordering(ordering, batch, &config);
	thread_pool_run(&ordering->pool, run_ordering, &pass);
	if (!pass.good)
		return external_check_sink(external, sink) && false;
	if (!run)
		ordering->next_record +=
			orderer_record_count(&ordering->orderer);
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
	batch->record_count = orderer_record_count(orderer);
	batch_keep_order(batch, entries);
	ordering->dropped_count += orderer_dropped_count(orderer);
	return true;
}

/* --- last passes that merge nothing --------------------------------------- */

bool external_order_keys(struct external *external, struct batch *batch)
{
	struct external_ordering *ordering = &external->ordering;
	bool good;

	if (!external_sort_in_place(external, batch))
		return false;
	external_begin_pass(external, EXTERNAL_OUTPUT);
	ordering->next_record = batch->record_count;
	good = external_fetch(external, batch);
	external_end_pass(external);
	return good &&
	       external_check_sink(external, ordering->destination.sink);
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
	};

	external_begin_pass(external, EXTERNAL_OUTPUT);
	add_up(external);
	counted_output_begin(&output);
	thread_pool_run(&ordering->pool, run_counted, &output);
	external_end_pass(external);
	return external_check_sink(external, ordering->destination.sink);
}
