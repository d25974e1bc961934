/*
 * cluster.c - one sort by many machines: each has a part of the input, and
 * gets a part of the output
 */
#include "cluster/cluster.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/answer.h"
#include "base/clock.h"
#include "base/progress.h"
#include "cluster/cluster_state.h"
#include "cluster/collective/cluster_trace.h"
#include "sort/sort_setup.h"

/* --- a pass over the input ------------------------------------------------ */

/* An answer_fn, of a sort in memory: the main thread drives it. */
static bool tell(void *context, struct format_line *line)
{
	const struct cluster *cluster = context;
	const struct orderer *orderer = &cluster->orderer;
	/* Not the range's, which may be half set when the signal comes. */
	const struct sink *sink = &cluster->output.output.sink;
	uint64_t chunk_count = orderer->range.chunk_count;
	uint64_t size = cluster->sort_config->shape.size;

	if (cluster->is_passing)
		progress_add_part(line, "input",
				  atomic_load(&cluster->bucketing.next_record),
				  cluster->input.record_count,
				  cluster->input.record_count * size);
	else if (cluster->receive.orders)
		progress_add_part(line, "exchange and output",
				  atomic_load(&orderer->gathered_chunks),
				  chunk_count, chunk_count * sink->chunk_bytes);
	else
		format_add(line, "exchange");
	return true;
}

static void begin_bucketing(struct cluster *cluster)
{
	const struct sort_wiring wiring = {
		.shape = cluster->sort_config->shape,
		.kernel = cluster->sort_config->kernel,
		.plan = &cluster->plan,
		.splitters = &cluster->splitters,
		.pool = &cluster->pool,
		.trace = &cluster->trace,
		.failure = &cluster->first_failure,
	};
	const struct bucketing_config config = {
		.source = &cluster->source,
		.keeps_order = true,
		.serve = cluster_serve,
		.serve_context = cluster,
	};

	bucketing_begin(&cluster->bucketing, &wiring, &config);
}

/* All workers: bring the records in, put them into buckets. */
static int pass(struct cluster *cluster, bool resident, bool partition)
{
	cluster->is_passing = true;
	bucketing_pass_all(&cluster->bucketing, resident, partition);
	cluster->is_passing = false;
	return first_failure_get(&cluster->first_failure, cluster->failure);
}

/* --- the lists of our own records ----------------------------------------- */

static int plan_lists(struct cluster *cluster, uint32_t bucket_count)
{
	const struct input *input = &cluster->input;
	struct plan_request request = {
		.shape = cluster->sort_config->shape,
		.record_count = input->record_count,
		.slot_count = input->slot_count,
		.input_memory_bytes = input_memory_bytes(input),
		.worker_count = cluster->pool.worker_count,
		.chunk_bytes_max = PAGE_BYTES,
		.bucket_count = bucket_count,
	};

	int error = sort_setup_plan(&cluster->plan, &request, cluster->failure);

	if (error)
		return error;
	return sort_setup_refuse_memory(
		cluster->sort_config, cluster->plan.memory_bytes,
		input->record_count, cluster->rank.machine_count,
		cluster->failure);
}

/* The plan, and the memory. */
static int lay_out_lists(struct cluster *cluster)
{
	const struct plan *plan = &cluster->plan;
	struct arena *arena = &cluster->send.arena;
	int error = plan_lists(cluster, cluster->splitters.bucket_count);

	if (error)
		return error;
	arena_unmap(arena);
	error = sort_setup_arena(
		arena, plan->arena_bytes,
		BUCKETING_PIECES(cluster->pool.worker_count) +
			CLUSTER_SEND_PIECES,
		sort_setup_worker_nodes(&cluster->topology, &cluster->pool),
		cluster->failure);
	if (error)
		return error;
	bucketing_take_lists(&cluster->bucketing, plan,
			     cluster->pool.worker_count, arena);
	cluster_send_take_memory(cluster);
	/* Last, since the most of it may never be touched. */
	bucketing_take_blocks(&cluster->bucketing, plan, arena);
	return 0;
}

/* Make one array of the lists, and messages of that, and exchange these.  Ranks
 * cut sampled splitters by what all ranks have in each bucket. */
static int arrange_and_exchange(struct cluster *cluster)
{
	bool is_sampled = cluster->splitters.kind == SPLITTERS_SAMPLED;
	uint64_t begin_ns = clock_now_ns();
	int error = cluster_send_compact(cluster);

	if (error == 0 && is_sampled)
		error = cluster_sample_cuts(cluster);
	if (error == 0)
		error = cluster_send_build_messages(cluster);
	cluster_add_ns(cluster, CLUSTER_ARRANGE_NS, &begin_ns);
	return error ? error : cluster_exchange(cluster);
}

/* --- the sort ------------------------------------------------------------- */

static int bucket_statically(struct cluster *cluster)
{
	uint32_t bucket_count = cluster->agreement.static_buckets;
	uint64_t begin_ns = clock_now_ns();
	int error;

	splitters_init_static(&cluster->splitters, cluster->agreement.kind,
			      bucket_count);
	shares_cut_evenly(cluster->send.cuts, cluster->rank.node_count,
			  bucket_count);
	error = lay_out_lists(cluster);
	if (error == 0)
		error = pass(cluster, false, true);
	cluster_add_ns(cluster, CLUSTER_BUCKET_NS, &begin_ns);
	return error;
}

/* resident: the input was brought in before. */
static int bucket_by_sample(struct cluster *cluster, bool resident)
{
	uint64_t begin_ns = clock_now_ns();
	int error = plan_lists(cluster, cluster->agreement.static_buckets);

	if (error == 0 && !resident)
		error = pass(cluster, false, false);
	if (error == 0)
		error = cluster_sample_splitters(cluster);
	if (error == 0)
		error = lay_out_lists(cluster);
	if (error == 0)
		error = pass(cluster, true, true);
	cluster_add_ns(cluster, CLUSTER_BUCKET_NS, &begin_ns);
	return error;
}

static int sort_share(struct cluster *cluster)
{
	bool is_static = cluster->agreement.kind != SPLITTERS_SAMPLED;
	int error = is_static ? bucket_statically(cluster)
			      : bucket_by_sample(cluster, false);

	if (error == 0)
		error = arrange_and_exchange(cluster);
	if (error || !cluster->receive.discards)
		return error;
	/* All ranks have seen the same sizes, and decided alike. */
	error = bucket_by_sample(cluster, true);
	return error ? error : arrange_and_exchange(cluster);
}

static int sort_externally(struct cluster *cluster)
{
	int error = cluster_sort_externally(cluster);

	cluster->result->sort.output_direct = cluster->output.output.direct;
	if (error == 0 && cluster->rank.rank == 0)
		error = sort_trace_open(&cluster->trace,
					&cluster->output.output,
					&cluster->input, cluster->failure);
	return error;
}

/* The other workers end: all chunks are in order, or the run has failed. */
static void stop_workers(struct cluster *cluster, int error)
{
	if (error)
		first_failure_note(&cluster->first_failure, cluster->failure);
	if (error && cluster->receive.orders)
		orderer_stop(&cluster->orderer);
	thread_pool_stop(&cluster->pool);
}

/* --- the end -------------------------------------------------------------- */

static void fill_nodes(struct cluster *cluster)
{
	const struct arena *arenas[] = { &cluster->send.arena,
					 &cluster->receive.arena };

	if (cluster->sort_config->counts_nodes && cluster->has_nodes)
		sort_setup_fill_nodes(&cluster->result->sort,
				      &cluster->topology, &cluster->pool,
				      arenas, ARRAY_LEN(arenas));
}

static void fill_sort_result(struct cluster *cluster)
{
	struct sorter_result *result = &cluster->result->sort;

	result->io = cluster->input.mode;
	result->output_direct = cluster->output.output.direct;
	result->splitters = cluster->splitters.kind;
	result->bucket_count = cluster->splitters.bucket_count;
	result->threads = cluster->pool.worker_count;
	result->memory_bytes = cluster->receive.plan.memory_bytes;
	result->dropped_count = orderer_dropped_count(&cluster->orderer);
	result->record_count =
		orderer_record_count(&cluster->orderer) + result->dropped_count;
	result->size_bytes =
		result->record_count * cluster->sort_config->shape.size;
	result->written_count = sink_bytes(&cluster->output.output.sink) /
				cluster->sort_config->shape.size;
	result->checksum = orderer_checksum(&cluster->orderer);
	fill_nodes(cluster);
}

_Static_assert(sizeof(struct exchange_counters) ==
		       8 * (CLUSTER_POLL_WAIT_NS + 1 - CLUSTER_SENT_BYTES),
	       "the report has all of them, in their order");

static void fill_result(struct cluster *cluster)
{
	struct sorter_result *result = &cluster->result->sort;
	uint64_t *figures = cluster->report->figures;
	uint64_t bound_ns;
	int64_t offset_ns =
		exchange_clock_offset_ns(cluster->exchange, 0, &bound_ns);

	if (!cluster->agreement.is_external)
		fill_sort_result(cluster);
	cluster->result->payload_bytes =
		exchange_payload_bytes(cluster->exchange);
	cluster->result->transport = exchange_transport(cluster->exchange);

	figures[CLUSTER_RECORDS_IN] = cluster->input.record_count;
	figures[CLUSTER_RECORDS_OUT] = result->written_count;
	figures[CLUSTER_THREADS] = result->threads;
	figures[CLUSTER_MEMORY_BYTES] = result->memory_bytes;
	figures[CLUSTER_BEGIN_AT_NS] = result->begin_ns + (uint64_t)offset_ns;
	figures[CLUSTER_CLOCK_BOUND_NS] = bound_ns;
	figures[CLUSTER_CHECKSUM_LOW] = (uint64_t)result->checksum;
	figures[CLUSTER_CHECKSUM_HIGH] = (uint64_t)(result->checksum >> 64);
	memcpy(figures + CLUSTER_SENT_BYTES,
	       exchange_counters(cluster->exchange),
	       sizeof(struct exchange_counters));
}

static int check_gathered(struct cluster *cluster)
{
	int error = cluster_output_check(cluster, cluster->failure);

	return error ? error
		     : exchange_barrier(cluster->exchange, CLUSTER_CHECKED,
					NULL, 0, cluster->failure);
}

/* Everything is written here; then, everywhere; then all ranks give the names.
 */
static int commit(struct cluster *cluster)
{
	struct sort_trace *trace = &cluster->trace;
	bool traces = cluster->sort_config->trace_path != NULL;
	struct failure *failure = cluster->failure;
	uint64_t begin_ns = clock_now_ns();
	int error = cluster_output_finish(cluster, failure);

	if (error == 0)
		error = input_check(&cluster->input, failure);
	cluster_add_ns(cluster, CLUSTER_FINISH_NS, &begin_ns);
	if (error == 0)
		error = exchange_barrier(cluster->exchange, CLUSTER_WRITTEN,
					 NULL, 0, failure);
	if (error == 0 && cluster->config->gathers)
		error = check_gathered(cluster);
	cluster_add_ns(cluster, CLUSTER_MEET_NS, &begin_ns);
	cluster->result->sort.ordered_ns = begin_ns;
	if (error == 0 && traces)
		error = cluster_trace_write(
			trace, &cluster->rank, cluster->exchange,
			cluster->result->sort.begin_ns, failure);
	if (error)
		return error;
	error = cluster_output_commit(
		cluster,
		traces && cluster->rank.rank == 0 ? &trace->file : NULL,
		failure);
	cluster_add_ns(cluster, CLUSTER_COMMIT_NS, &begin_ns);
	return error;
}

static void read_reports(struct cluster *cluster)
{
	for (unsigned i = 0; i < cluster->rank.node_count; i++) {
		size_t byte_count;
		const void *payload = exchange_application_payload(
			cluster->exchange, i, &byte_count);

		cluster_report_decode(&cluster->result->reports[i], payload,
				      byte_count);
	}
}

/* All ranks have given the names, or ours is taken away again. */
static int agree_on_end(struct cluster *cluster)
{
	uint8_t bytes[CLUSTER_REPORT_BYTES];
	int error;

	fill_result(cluster);
	cluster_report_encode(cluster->report, bytes);
	error = exchange_barrier(cluster->exchange, CLUSTER_NAMED, bytes,
				 sizeof(bytes), cluster->failure);
	if (error) {
		output_roll_back(&cluster->output.output);
		outfile_roll_back(&cluster->trace.file);
		return error;
	}
	cluster->result->sort.committed_ns = clock_now_ns();
	exchange_leave(cluster->exchange);
	if (cluster->rank.rank == 0)
		read_reports(cluster);
	return 0;
}

static int sort_together(struct cluster *cluster)
{
	const struct answer answer = { tell, cluster };
	uint64_t begin_ns = clock_now_ns();
	int error = cluster_join(cluster);

	cluster_add_ns(cluster, CLUSTER_JOIN_NS, &begin_ns);
	if (error == 0) {
		begin_bucketing(cluster);
		answer_by(&answer);
		error = cluster->agreement.is_external
				? sort_externally(cluster)
				: sort_share(cluster);
	}
	stop_workers(cluster, error);
	answer_phase("finishing");
	if (error == 0)
		error = commit(cluster);
	return error ? error : agree_on_end(cluster);
}

/* What fails here, from the hello on, ends the run on all ranks. */
static int run_rank(struct cluster *cluster)
{
	uint64_t begin_ns = clock_now_ns();
	int error = cluster_open(cluster);

	cluster_add_ns(cluster, CLUSTER_OPEN_NS, &begin_ns);
	if (error == 0)
		error = sort_together(cluster);
	if (error)
		rank_explain(&cluster->rank, cluster->failure);
	if (error && cluster->exchange)
		exchange_fail(cluster->exchange, cluster->failure);
	return error;
}

/* What the failure names ends with the run: keep it in the result. */
static void keep_failure(struct cluster_result *result, struct failure *failure)
{
	if (!failure->what)
		return;
	snprintf(result->failed, sizeof(result->failed), "%s", failure->what);
	failure->what = result->failed;
}

static void begin_result(struct cluster *cluster)
{
	struct cluster_result *result = cluster->result;

	result->rank = cluster->rank.rank;
	result->node_count = cluster->rank.node_count;
	memset(result->reports, 0,
	       result->node_count * sizeof(*result->reports));
	cluster->report = &result->reports[result->rank];
	/* Other ranks may say something else in their hellos. */
	for (unsigned i = 0; i < result->node_count; i++)
		result->roles[i] =
			(uint8_t)cluster_roles_of(&cluster->config->roles, i);
	result->schedule.kind = cluster_schedule_first(
		&cluster->config->schedule, cluster_shares_no_link(cluster));
}

int cluster_run_in(struct cluster *cluster, const struct sorter_config *config,
		   const struct cluster_config *cluster_config,
		   struct cluster_result *result, struct failure *failure)
{
	int error;

	/* Not the reports of ranks that there are not: most of it. */
	memset(result, 0, offsetof(struct cluster_result, reports));
	result->sort.begin_ns = clock_now_ns();
	cluster->sort_config = config;
	cluster->config = cluster_config;
	cluster->result = result;
	cluster->failure = failure;
	error = rank_find(&cluster->rank, &cluster_config->rank, failure);
	if (error)
		return error;
	if (cluster_config->take_rank)
		error = cluster_config->take_rank(cluster_config->rank_context,
						  &cluster->rank, failure);
	sort_trace_init(&cluster->trace, config->trace_path);
	begin_result(cluster);
	if (error == 0)
		error = cluster_lay_out_ranks(cluster);
	if (error == 0)
		error = cluster_roles_check(&cluster_config->roles,
					    cluster->rank.node_count, failure);
	if (error == 0)
		error = run_rank(cluster);
	if (error)
		keep_failure(result, failure);
	thread_pool_stop(&cluster->pool);
	sort_trace_close(&cluster->trace);
	cluster_output_close(cluster, error != 0);
	exchange_close(cluster->exchange);
	rank_free(&cluster->rank);
	return error;
}

/* What malloc() gave. */
static void free_small(struct cluster *cluster)
{
	free(cluster->sample.common_key);
	free(cluster->sample.counts);
	if (cluster->send.targets)
		free(cluster->send.targets[0].head);
}

void cluster_free(struct cluster *cluster)
{
	struct cluster_receive *receive = &cluster->receive;

	free_small(cluster);
	/* This unmaps the other ranks' inputs, too. */
	input_close(&cluster->input);
	for (unsigned i = 0; receive->sources && i < cluster->node_count; i++)
		if (receive->sources[i].input_fd > 0)
			close(receive->sources[i].input_fd);
	arena_unmap(&cluster->send.arena);
	arena_unmap(&receive->arena);
	arena_unmap(&cluster->compress.coders_arena);
	arena_unmap(&cluster->compress.messages_arena);
	arena_unmap(&cluster->memory);
}

int cluster_run(const struct sorter_config *config,
		const struct cluster_config *cluster_config,
		struct cluster_result *result, struct failure *failure)
{
	struct arena own = { 0 };
	struct cluster *cluster;
	int error;

	/* It is too large for a stack, as a sorter is. */
	error = sort_setup_arena(&own, sizeof(*cluster), 1, 0, failure);
	if (error)
		return error;
	cluster = arena_take(&own, sizeof(*cluster), CACHE_PAIR_BYTES);
	error = cluster_run_in(cluster, config, cluster_config, result,
			       failure);
	free_small(cluster);
	input_leave(&cluster->input);
	return error;
}
