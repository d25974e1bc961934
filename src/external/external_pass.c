/*
 * external_pass.c - what each pass takes, and how far it has come
 */
#include "base/clock.h"
#include "external/external_state.h"

#include <string.h>

#define PROGRESS_NS 1000000000u
/* How long the run's own reads and writes are measured: two seconds predict the
 * rest within 0.8 to 1.25 of it (results/NOTES.md). */
#define RATES_NS 2000000000u

void external_begin_pass(struct external *external, enum external_pass pass)
{
	external->pass = pass;
	external->pass_begin_ns = clock_now_ns();
	external->written_before = external->scratch.written_bytes;
	memset(external->pipeline.reading_wait_ns, 0,
	       sizeof(external->pipeline.reading_wait_ns));
	external->pipeline.ordering_wait_ns = 0;
	external->runs.wait_ns = 0;
	destination_take_wait_ns(&external->destination);
	external->meter.last_read_wait_ns = 0;
	external->meter.last_fill_wait_ns = 0;
}

/* While the leader of a reading team waits, its workers do. */
static uint64_t add_up_fill_waits(const struct external *external)
{
	const uint64_t *waits_ns = external->pipeline.reading_wait_ns;
	uint64_t ns = 0;

	if (external->pass != EXTERNAL_RUNS)
		return waits_ns[0] * external->request.worker_count;
	for (unsigned l = 0; l < external->lanes.count; l++)
		ns += waits_ns[l] *
		      external->lanes.lane[l].readers->worker_count;
	return ns;
}

void external_end_pass(struct external *external)
{
	struct external_pass_result *result =
		&external->details->passes[external->pass];
	uint64_t workers = external->request.worker_count;

	result->ns += clock_now_ns() - external->pass_begin_ns;
	if (external->pass == EXTERNAL_RUNS && external->reads_streams)
		stream_source_add_up(&external->streams, &result->read_bytes,
				     &result->read_wait_ns);
	else if (external->pass == EXTERNAL_RUNS)
		reading_lanes_add_up(&external->lanes, &result->read_bytes,
				     &result->read_wait_ns);
	else
		piece_source_add_up(&external->pieces, &result->read_bytes,
				    &result->read_wait_ns);
	if (external->pass == EXTERNAL_OUTPUT)
		result->written_bytes +=
			external->next_record * external->request.shape.size;
	else if (external->pass == EXTERNAL_MERGES)
		result->written_bytes += external->scratch.written_bytes -
					 external->written_before;
	result->fill_wait_ns += add_up_fill_waits(external);
	result->empty_wait_ns += external->pipeline.ordering_wait_ns * workers;
	result->write_wait_ns +=
		external->runs.wait_ns +
		destination_take_wait_ns(&external->destination);
}

/* --- timelines ------------------------------------------------------------ */

/* Each team has lanes of its own, and one of them the file. */
int external_open_traces(struct external *external, struct failure *failure)
{
	struct sort_trace *reading = &external->reading_trace;
	struct sort_trace *ordering = &external->ordering_trace;
	unsigned workers = external->request.worker_count;
	int error = sort_trace_open(ordering, &external->destination.files,
				    &external->input, failure);

	if (error == 0)
		error = sort_trace_add_lanes(reading, workers,
					     SORT_TRACE_SPANS_MAX, failure);
	if (error == 0)
		error = sort_trace_add_lanes(ordering, workers,
					     SORT_TRACE_SPANS_MAX, failure);
	return error;
}

int external_write_trace(struct external *external, struct failure *failure)
{
	struct trace_lane reading[THREAD_POOL_WORKERS_MAX];
	struct trace_lane ordering[THREAD_POOL_WORKERS_MAX];
	struct trace_lane lanes[THREAD_POOL_WORKERS_MAX];
	struct trace_process teams[2 + LANES_MAX] = {
		{ .name = "read",
		  .origin_ns = external->result->begin_ns,
		  .lanes = reading,
		  .lane_count = external->reading_trace.lane_count },
		{ .name = "order and write",
		  .origin_ns = external->result->begin_ns,
		  .lanes = ordering,
		  .lane_count = external->ordering_trace.lane_count },
	};
	unsigned count;

	sort_trace_copy_lanes(&external->reading_trace, reading);
	sort_trace_copy_lanes(&external->ordering_trace, ordering);
	count = reading_lanes_copy_traces(
		&external->lanes, external->result->begin_ns, teams + 2, lanes);
	return sort_trace_write(&external->ordering_trace, teams, 2 + count,
				failure);
}

/* --- progress ------------------------------------------------------------- */

/* How far the pass has come; waits are those of one worker. */
struct reading {
	uint64_t read_bytes;
	uint64_t read_wait_ns, fill_wait_ns;
};

static uint64_t load(const _Atomic uint64_t *number)
{
	return atomic_load_explicit(number, memory_order_relaxed);
}

/* Shares of workers are equal: what worker 0 knows of itself holds for all. */
static struct reading look_at_lanes(const struct external *external)
{
	unsigned lane_count = external->lanes.count;
	struct reading reading = { 0 };

	for (unsigned l = 0; l < lane_count; l++) {
		const struct reading_lane *lane = &external->lanes.lane[l];

		reading.read_bytes +=
			load(&lane->read_bytes) * lane->readers->worker_count;
		reading.read_wait_ns += load(&lane->read_wait_ns) / lane_count;
		reading.fill_wait_ns += load(&lane->fill_wait_ns) / lane_count;
	}
	return reading;
}

static struct reading look_at_streams(const struct external *external)
{
	return (struct reading){
		.read_bytes = load(&external->streams.read_bytes),
		.read_wait_ns = load(&external->streams.read_ns),
		.fill_wait_ns = external->pipeline.reading_wait_ns[0],
	};
}

static struct reading look_at_pieces(const struct external *external)
{
	const struct read_ahead *reads = &external->pieces.readers[0].reads;

	return (struct reading){
		.read_bytes =
			reads->read_bytes * external->request.worker_count,
		.read_wait_ns = reads->wait_ns,
		.fill_wait_ns = external->pipeline.reading_wait_ns[0],
	};
}

/* Of many ranks' runs we read those that are ours, and some of them for others:
 * pieces tell how far we are. */
static struct reading look_at_part(const struct external *external)
{
	struct reading reading = look_at_pieces(external);
	uint64_t read = atomic_load_explicit(&external->read_pieces,
					     memory_order_relaxed);
	double part = (double)read / MAX(1, external->merge.piece_count);

	reading.read_bytes =
		(uint64_t)(part * (double)external->details->forecast
					  .passes[EXTERNAL_OUTPUT]
					  .read_bytes);
	return reading;
}

/* A last pass that merges no runs: as much is written as is read, if anything
 * is. */
static struct reading look_at_output(const struct external *external)
{
	return (struct reading){
		.read_bytes = load(&external->output_bytes),
	};
}

static struct reading look_at_reading(const struct external *external)
{
	if (external->pass == EXTERNAL_OUTPUT &&
	    external->plan.way != EXTERNAL_BY_RUNS)
		return look_at_output(external);
	if (external->pass == EXTERNAL_OUTPUT &&
	    external->config->rank_count > 1)
		return look_at_part(external);
	if (external->pass != EXTERNAL_RUNS)
		return look_at_pieces(external);
	if (external->reads_streams)
		return look_at_streams(external);
	return look_at_lanes(external);
}

static unsigned percent(uint64_t part, uint64_t whole)
{
	return (unsigned)MIN(100, part * 100 / MAX(1, whole));
}

void external_predict(struct external *external)
{
	struct external_result *result = external->details;

	if (!external_request_is_stream(&external->request))
		external_model_forecast(&result->forecast, &external->plan,
					&external->request, &result->rates);
}

/* What measures how far a pass has come, by what it has read, or written. */
static uint64_t whole_reading(const struct external_forecast *forecast,
			      enum external_pass pass)
{
	uint64_t read = forecast->passes[pass].read_bytes;

	return read > 0 ? read : forecast->passes[pass].written_bytes;
}

/* By the plan: of a pass, as much is written as is read. */
static void estimate(const struct external *external, uint64_t read,
		     struct external_progress *progress)
{
	const struct external_forecast *forecast = &external->details->forecast;

	for (unsigned p = 0; p < EXTERNAL_PASSES; p++) {
		uint64_t whole = forecast->passes[p].read_bytes +
				 forecast->passes[p].written_bytes;

		progress->total_bytes += whole;
		if (p < external->pass)
			progress->moved_bytes += whole;
		if (p == external->pass && whole > 0)
			progress->moved_bytes +=
				(uint64_t)((double)whole *
					   MIN(1.0,
					       (double)read /
						       (double)whole_reading(
							       forecast, p)));
	}
}

/* A disk reads alone at such a part of what it moves both ways at once, and
 * writes alone as fast as that, if nothing else is known: so does a virtual
 * disk. */
#define READ_ALONE(both) ((both) / 5 * 3)

static uint64_t spilled_bytes(const struct external *external)
{
	return atomic_load_explicit(&external->spilled_records,
				    memory_order_relaxed) *
	       external->request.shape.size;
}

/* How long a stream is, is known when it has ended; how much merging is left,
 * in the last pass. */
static void estimate_stream(const struct external *external, uint64_t read,
			    struct external_progress *progress)
{
	uint64_t input = load(&external->streams.read_bytes);
	uint64_t spilled = spilled_bytes(external);
	/* What the last pass reads, and by how much more it moves. */
	uint64_t last = MAX(1, MIN(input, spilled));
	double factor = (double)(last + input) / (double)last;

	progress->moved_bytes = input + spilled;
	if (external->pass == EXTERNAL_MERGES)
		progress->moved_bytes += read;
	if (external->pass != EXTERNAL_OUTPUT)
		return;
	if (external->plan.way == EXTERNAL_BY_COUNTS) {
		progress->total_bytes = 2 * input;
		progress->moved_bytes += read;
		return;
	}
	progress->total_bytes = progress->moved_bytes + last + input;
	progress->moved_bytes += (uint64_t)(factor * (double)MIN(read, last));
}

/* What has been moved so far has taken as long as it has: at first memory is
 * touched, and nothing can be written. */
static void count_elapsed(struct external *external, uint64_t moved,
			  uint64_t now_ns)
{
	struct external_forecast *forecast = &external->details->forecast;
	uint64_t elapsed_ns = now_ns - external->pass_begin_ns;
	double whole = (double)forecast->passes[EXTERNAL_RUNS].read_bytes +
		       (double)forecast->passes[EXTERNAL_RUNS].written_bytes;
	double left = MAX(0, 1 - (double)moved / MAX(1, whole));
	uint64_t ns = forecast->passes[EXTERNAL_RUNS].ns;

	external->details->forecast_after_ns = elapsed_ns;
	forecast->passes[EXTERNAL_RUNS].ns =
		elapsed_ns + (uint64_t)(left * (double)ns);
	forecast->ns += forecast->passes[EXTERNAL_RUNS].ns - ns;
}

/* Every batch has been filled once, if the lanes have read so much. */
static bool has_touched_memory(const struct external *external, uint64_t read)
{
	const struct external_plan *plan = &external->plan;

	return read >= (uint64_t)plan->batch_count * plan->batch.capacity *
			       external->request.shape.size;
}

/*
 * Two seconds in which the run reads and writes tell the disk's rates.  While
 * it touches memory for the first time these are too low, since a virtual
 * machine may get the memory from its host only then; so they are measured anew
 * when all of it has been touched.
 */
static void set_rates(struct external *external, uint64_t now_ns)
{
	struct external_meter *meter = &external->meter;
	struct external_rates *rates = &external->details->rates;
	uint64_t read = look_at_lanes(external).read_bytes;
	uint64_t moved = read + spilled_bytes(external);
	uint64_t since_ns = meter->rates_begin_ns;
	uint64_t bytes = moved - meter->rates_begin_bytes;
	bool is_measured = since_ns != 0 && now_ns - since_ns >= RATES_NS;
	bool is_touched = has_touched_memory(external, read);

	if (since_ns == 0 || is_measured || is_touched != meter->has_touched) {
		meter->rates_begin_ns = now_ns;
		meter->rates_begin_bytes = moved;
	}
	meter->has_rates = is_measured && meter->has_touched;
	meter->has_touched = is_touched;
	if (!is_measured)
		return;
	/* At least 5, of which READ_ALONE() is above 0. */
	rates->both = MAX(5, (uint64_t)((double)bytes * 1e9 /
					(double)(now_ns - since_ns)));
	rates->write = rates->both;
	rates->read = READ_ALONE(rates->both);
	external_predict(external);
	count_elapsed(external, moved, now_ns);
}

static void tell_progress(struct external *external, uint64_t now_ns)
{
	const struct external_config *config = external->config;
	struct external_meter *meter = &external->meter;
	const struct reading reading = look_at_reading(external);
	uint64_t passed_ns = now_ns - meter->last_ns;
	struct external_progress progress = {
		.pass = external->pass,
		.wait_disk_percent =
			percent(reading.read_wait_ns - meter->last_read_wait_ns,
				passed_ns),
		.wait_memory_percent =
			percent(reading.fill_wait_ns - meter->last_fill_wait_ns,
				passed_ns),
	};

	meter->last_ns = now_ns;
	meter->last_read_wait_ns = reading.read_wait_ns;
	meter->last_fill_wait_ns = reading.fill_wait_ns;
	if (external->reads_streams)
		estimate_stream(external, reading.read_bytes, &progress);
	else
		estimate(external, reading.read_bytes, &progress);
	config->progress(config->progress_context, &progress);
}

/* The caller has the meter. */
static void serve(struct external *external)
{
	uint64_t now_ns = clock_now_ns();

	if (external->meter.next_ns == 0) {
		external->meter.next_ns = now_ns + PROGRESS_NS;
		external->meter.last_ns = now_ns;
	}
	if (now_ns < external->meter.next_ns)
		return;
	external->meter.next_ns = now_ns + PROGRESS_NS;
	if (external->config->rates.read == 0 && !external->meter.has_rates &&
	    !external->reads_streams && external->pass == EXTERNAL_RUNS &&
	    spilled_bytes(external) > 0)
		set_rates(external, now_ns);
	if (external->config->progress)
		tell_progress(external, now_ns);
}

void external_serve(void *context)
{
	struct external *external = context;
	struct external_meter *meter = &external->meter;

	if (atomic_flag_test_and_set_explicit(&meter->is_busy,
					      memory_order_acquire))
		return;
	serve(external);
	atomic_flag_clear_explicit(&meter->is_busy, memory_order_release);
}

void external_serve_lane(void *context)
{
	struct reading_lane *lane = context;
	struct external *external = lane->external;
	const struct read_ahead *reads;

	if (external->reads_streams) {
		external_serve(external);
		return;
	}
	reads = &lane->files.readers[0].reads;
	atomic_store_explicit(&lane->read_bytes, reads->read_bytes,
			      memory_order_relaxed);
	atomic_store_explicit(&lane->read_wait_ns, reads->wait_ns,
			      memory_order_relaxed);
	atomic_store_explicit(
		&lane->fill_wait_ns,
		external->pipeline.reading_wait_ns[lane - external->lanes.lane],
		memory_order_relaxed);
	external_serve(external);
}
