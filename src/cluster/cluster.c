#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "cluster/cluster_state.h"

enum action { ACTION_PASS, ACTION_ORDER, ACTION_STOP, ACTIONS };

static struct sorter_result *sort_result(const struct cluster *cluster)
{
	return &cluster->result->sort;
}

void cluster_add_ns(struct cluster *cluster, enum cluster_figure figure,
		    uint64_t since_ns)
{
	cluster->result->reports[cluster->rank.rank].figures[figure] +=
		clock_now_ns() - since_ns;
}

/* ------------------------------------------------------------- the members */

static void command(struct cluster *cluster, enum action action)
{
	uint32_t last =
		atomic_load_explicit(&cluster->command, memory_order_relaxed);

	thread_pool_set(&cluster->sorter.threads, &cluster->command,
			(last / ACTIONS + 1) * ACTIONS + action);
}

/* A member other than 0, until there is nothing left to do. */
static void follow(struct cluster *cluster, unsigned member)
{
	struct sorter *sorter = &cluster->sorter;
	uint32_t last = 0;

	for (;;) {
		thread_pool_wait_while(&sorter->threads, &cluster->command,
				       last);
		last = atomic_load_explicit(&cluster->command,
					    memory_order_acquire);
		if (last % ACTIONS == ACTION_ORDER)
			ordering_run(sorter, member);
		if (last % ACTIONS != ACTION_PASS)
			return;
		bucketing_pass(sorter, member, cluster->pass_resident,
			       cluster->pass_partition);
		thread_pool_barrier(&sorter->threads, &sorter->stop);
	}
}

void cluster_start_ordering(struct cluster *cluster)
{
	command(cluster, ACTION_ORDER);
}

/* In the middle of a pass: others may want to know that we are there. */
static void serve(void *context)
{
	struct cluster *cluster = context;
	struct failure failure;

	if (exchange_serve(cluster->exchange, &failure) < 0)
		sorter_fail(&cluster->sorter, &failure);
}

int cluster_pass(struct cluster *cluster, bool resident, bool partition)
{
	struct sorter *sorter = &cluster->sorter;

	cluster->pass_resident = resident;
	cluster->pass_partition = partition;
	sorter->serve = serve;
	sorter->serve_context = cluster;
	command(cluster, ACTION_PASS);
	bucketing_pass(sorter, 0, resident, partition);
	if (!thread_pool_barrier(&sorter->threads, &sorter->stop))
		return 0;
	*cluster->failure = sorter->failure;
	return -EIO;
}

/* Wherever the others are, they come back. */
static void stop_members(struct cluster *cluster)
{
	struct sorter *sorter = &cluster->sorter;

	sorter_fail(sorter, cluster->failure);
	command(cluster, ACTION_STOP);
	thread_pool_set(&sorter->threads, &sorter->ready_buckets,
			SORTER_ALL_READY);
}

/* ---------------------------------------------------------------- the sort */

static int sort_static(struct cluster *cluster)
{
	struct sorter *sorter = &cluster->sorter;
	uint32_t bucket_count = cluster->agreement.static_buckets;
	uint64_t begin_ns = clock_now_ns();
	int error;

	splitters_init_static(&sorter->splitters, cluster->agreement.kind,
			      bucket_count);
	shares_cut_evenly(cluster->cuts, cluster->rank.node_count,
			  bucket_count);
	error = cluster_lay_out_lists(cluster, bucket_count);
	if (error == 0)
		error = cluster_pass(cluster, false, true);
	cluster_add_ns(cluster, CLUSTER_BUCKET_NS, begin_ns);
	begin_ns = clock_now_ns();
	if (error == 0)
		error = cluster_flatten(cluster);
	if (error == 0)
		error = cluster_address(cluster);
	cluster_add_ns(cluster, CLUSTER_ARRANGE_NS, begin_ns);
	return error ? error : cluster_exchange(cluster);
}

/* resident: the input was brought in before. */
static int sort_sampled(struct cluster *cluster, bool resident)
{
	struct sorter *sorter = &cluster->sorter;
	uint64_t begin_ns = clock_now_ns(), sample_ns;
	int error =
		cluster_plan_lists(cluster, cluster->agreement.static_buckets);

	if (error == 0 && !resident)
		error = cluster_pass(cluster, false, false);
	sample_ns = clock_now_ns();
	if (error == 0)
		error = cluster_sample(cluster);
	cluster_add_ns(cluster, CLUSTER_SAMPLE_NS, sample_ns);
	if (error == 0)
		error = cluster_lay_out_lists(cluster,
					      sorter->splitters.bucket_count);
	if (error == 0)
		error = cluster_pass(cluster, true, true);
	cluster_add_ns(cluster, CLUSTER_BUCKET_NS, begin_ns);
	begin_ns = clock_now_ns();
	if (error == 0)
		error = cluster_flatten(cluster);
	if (error == 0)
		error = cluster_count(cluster);
	if (error == 0)
		error = cluster_address(cluster);
	cluster_add_ns(cluster, CLUSTER_ARRANGE_NS, begin_ns);
	return error ? error : cluster_exchange(cluster);
}

static int sort_share(struct cluster *cluster)
{
	bool is_static = cluster->agreement.kind != SPLITTERS_SAMPLED;
	int error = 0;

	if (is_static)
		error = sort_static(cluster);
	/* All ranks have seen the same sizes, and decided alike. */
	if (error == 0 && (!is_static || cluster->discards)) {
		cluster->discards = false;
		error = sort_sampled(cluster, is_static);
	}
	return error;
}

static void run_member(void *context, unsigned member)
{
	struct cluster *cluster = context;

	if (member > 0) {
		follow(cluster, member);
		return;
	}
	cluster->error = sort_share(cluster);
	if (cluster->error)
		stop_members(cluster);
}

/* ---------------------------------------------------------------- the end */

static void fill_counters(uint64_t *figures,
			  const struct exchange_counters *counters)
{
	figures[CLUSTER_SENT_BYTES] = counters->sent_bytes;
	figures[CLUSTER_SENT_DATAGRAMS] = counters->sent_datagrams;
	figures[CLUSTER_RECEIVED_BYTES] = counters->received_bytes;
	figures[CLUSTER_RECEIVED_DATAGRAMS] = counters->received_datagrams;
	figures[CLUSTER_RESENT_DATAGRAMS] = counters->resent_datagrams;
	figures[CLUSTER_DUPLICATE_DATAGRAMS] = counters->duplicate_datagrams;
	figures[CLUSTER_DAMAGED_DATAGRAMS] = counters->damaged_datagrams;
	figures[CLUSTER_STRAY_DATAGRAMS] = counters->stray_datagrams;
	figures[CLUSTER_STATUS_DATAGRAMS] = counters->status_datagrams;
	figures[CLUSTER_ROUND_WAIT_NS] = counters->barrier_wait_ns;
	figures[CLUSTER_ROUNDS_UNWAITED] = counters->barriers_skipped;
	figures[CLUSTER_POLL_WAIT_NS] = counters->wait_ns;
}

static void fill_result(struct cluster *cluster)
{
	const struct sorter *sorter = &cluster->sorter;
	struct sorter_result *result = sort_result(cluster);
	struct cluster_report *report =
		&cluster->result->reports[cluster->rank.rank];
	uint64_t bound_ns;
	int64_t offset_ns =
		exchange_clock_offset_ns(cluster->exchange, 0, &bound_ns);

	result->record_count =
		sorter->bucket_count
			? sorter->bucket_start[sorter->bucket_count]
			: 0;
	result->size_bytes = result->record_count * sorter->config->shape.size;
	result->io = sorter->input.mode;
	result->output_direct = sorter->output.direct;
	result->splitters = sorter->splitters.kind;
	result->bucket_count = sorter->splitters.bucket_count;
	result->threads = sorter->threads.worker_count;
	result->memory_bytes = sorter->plan.memory_bytes;
	for (unsigned m = 0; m < sorter->threads.worker_count; m++)
		result->checksum += sorter->members[m].checksum;
	cluster->result->payload_bytes =
		exchange_payload_bytes(cluster->exchange);

	report->figures[CLUSTER_RECORDS_IN] = sorter->input.record_count;
	report->figures[CLUSTER_RECORDS_OUT] = result->record_count;
	report->figures[CLUSTER_THREADS] = result->threads;
	report->figures[CLUSTER_MEMORY_BYTES] = result->memory_bytes;
	report->figures[CLUSTER_BEGIN_AT_NS] =
		result->begin_ns + (uint64_t)offset_ns;
	report->figures[CLUSTER_CLOCK_BOUND_NS] = bound_ns;
	report->figures[CLUSTER_CHECKSUM_LOW] = (uint64_t)result->checksum;
	report->figures[CLUSTER_CHECKSUM_HIGH] =
		(uint64_t)(result->checksum >> 64);
	fill_counters(report->figures, exchange_counters(cluster->exchange));
}

/* Everything is written here; then, everywhere; then all give the names. */
static int commit(struct cluster *cluster)
{
	struct sorter *sorter = &cluster->sorter;
	bool traces = cluster->agreement.traces;
	uint64_t begin_ns = clock_now_ns();
	int error = cluster_finish_output(cluster);

	if (error == 0)
		error = input_check(&sorter->input, cluster->failure);
	cluster_add_ns(cluster, CLUSTER_FINISH_NS, begin_ns);
	begin_ns = clock_now_ns();
	if (error == 0)
		error = exchange_barrier(cluster->exchange, CLUSTER_WRITTEN,
					 NULL, 0, cluster->failure);
	cluster_add_ns(cluster, CLUSTER_MEET_NS, begin_ns);
	begin_ns = clock_now_ns();
	sort_result(cluster)->ordered_ns = begin_ns;
	if (error == 0 && traces)
		error = cluster_trace(cluster);
	if (error)
		return error;
	error = cluster_commit_output(cluster, traces && cluster->rank.rank == 0
						       ? &sorter->trace
						       : NULL);
	cluster_add_ns(cluster, CLUSTER_COMMIT_NS, begin_ns);
	return error;
}

/* All have given the names, or ours is taken away again. */
static int agree_on_end(struct cluster *cluster)
{
	uint8_t bytes[CLUSTER_REPORT_BYTES];
	int error;

	fill_result(cluster);
	cluster_report_encode(&cluster->result->reports[cluster->rank.rank],
			      bytes);
	error = exchange_barrier(cluster->exchange, CLUSTER_NAMED, bytes,
				 sizeof(bytes), cluster->failure);
	if (error) {
		output_withdraw(&cluster->sorter.output);
		outfile_withdraw(&cluster->sorter.trace);
		return error;
	}
	sort_result(cluster)->committed_ns = clock_now_ns();
	exchange_leave(cluster->exchange);
	for (unsigned i = 0;
	     cluster->rank.rank == 0 && i < cluster->rank.node_count; i++) {
		size_t byte_count;
		const void *blob =
			exchange_blob(cluster->exchange, i, &byte_count);

		cluster_report_decode(&cluster->result->reports[i], blob,
				      byte_count);
	}
	return 0;
}

static int sort_together(struct cluster *cluster)
{
	struct sorter *sorter = &cluster->sorter;
	uint64_t begin_ns = clock_now_ns();
	int error = cluster_join(cluster);

	cluster_add_ns(cluster, CLUSTER_JOIN_NS, begin_ns);
	if (error) {
		thread_pool_stop(&sorter->threads);
		return error;
	}
	thread_pool_run_last(&sorter->threads, run_member, cluster);
	error = cluster->error;
	if (error == 0)
		error = commit(cluster);
	return error ? error : agree_on_end(cluster);
}

/* From the hello on, what fails here ends the run on all ranks. */
static int run_rank(struct cluster *cluster)
{
	uint64_t begin_ns = clock_now_ns();
	int error = cluster_open(cluster);

	cluster_add_ns(cluster, CLUSTER_OPEN_NS, begin_ns);
	if (error == 0)
		error = sort_together(cluster);
	if (error)
		rank_explain(&cluster->rank, cluster->failure);
	if (error && cluster->exchange)
		exchange_fail(cluster->exchange, cluster->failure);
	return error;
}

/* What it points to ends with the run. */
static void keep_failure(struct failure *failure)
{
	static char what[FAILURE_WHY_BYTES];

	if (!failure->what)
		return;
	snprintf(what, sizeof(what), "%s", failure->what);
	failure->what = what;
}

int cluster_run_in(struct cluster *cluster, const struct sorter_config *config,
		   const struct cluster_config *cluster_config,
		   struct cluster_result *result, struct failure *failure)
{
	struct sorter *sorter = &cluster->sorter;
	int error;

	/* Not the reports of ranks that there are not: most of it. */
	memset(result, 0, offsetof(struct cluster_result, reports));
	result->sort.begin_ns = clock_now_ns();
	sorter->config = config;
	sorter->result = &result->sort;
	sorter->trace = (struct outfile)OUTFILE_NONE;
	cluster->config = cluster_config;
	cluster->result = result;
	cluster->failure = failure;
	error = rank_find(&cluster->rank, &cluster_config->rank, failure);
	if (error)
		return error;
	result->rank = cluster->rank.rank;
	result->node_count = cluster->rank.node_count;
	memset(result->reports, 0,
	       result->node_count * sizeof(*result->reports));
	result->schedule = cluster_config->schedule;
	if (result->schedule == EXCHANGE_AUTO)
		result->schedule = cluster_is_on_one_machine(cluster)
					   ? EXCHANGE_ALL_AT_ONCE
					   : EXCHANGE_ROUNDS;
	error = run_rank(cluster);
	if (error)
		keep_failure(failure);
	for (unsigned m = 0; m < sorter->threads.worker_count; m++)
		trace_lane_fini(&sorter->members[m].lane);
	outfile_close(&sorter->trace);
	output_close(&sorter->output);
	exchange_close(cluster->exchange);
	rank_free(&cluster->rank);
	return error;
}

int cluster_run(const struct sorter_config *config,
		const struct cluster_config *cluster_config,
		struct cluster_result *result, struct failure *failure)
{
	/* As the sorter: too large for a stack, and once in a process. */
	static struct cluster cluster;

	return cluster_run_in(&cluster, config, cluster_config, result,
			      failure);
}
