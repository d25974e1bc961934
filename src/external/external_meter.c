/*
 * external_meter.c - what each pass takes, and how far it has come
 */
#include "base/clock.h"
#include "external/external_state.h"

#define PROGRESS_NS 1000000000u
/* How long the run's own reads and writes are measured: two seconds predict the
 * rest within 0.8 to 1.25 of it (results/NOTES.md). */
#define RATES_NS 2000000000u

void external_begin_pass(struct external *external, enum external_pass pass)
{
	struct external_meter *meter = &external->meter;

	meter->pass = pass;
	meter->pass_begin_ns = clock_now_ns();
	meter->written_before = external->runs.scratch.written_bytes;
	meter->last_read_wait_ns = 0;
	meter->last_fill_wait_ns = 0;
	pipeline_forget_waits(&external->pipeline);
	run_sink_take_wait_ns(&external->runs.sink);
	destination_take_wait_ns(&external->ordering.destination);
}

/* All workers of a reading team wait with their leader. */
static uint64_t add_up_fill_waits(const struct external *external)
{
	const struct reading *reading = &external->reading;
	uint64_t ns = 0;

	if (external->meter.pass != EXTERNAL_RUNS)
		return external->pipeline.reading_wait_ns[0] *
		       external->request.worker_count;
	for (unsigned l = 0; l < reading->lane_count; l++)
		ns += external->pipeline.reading_wait_ns[l] *
		      reading->lane[l].readers->worker_count;
	return ns;
}

void external_end_pass(struct external *external)
{
	const struct external_meter *meter = &external->meter;
	struct external_pass_result *result =
		&external->meter.passes[meter->pass];
	uint64_t workers = external->request.worker_count;

	result->ns += clock_now_ns() - meter->pass_begin_ns;
	if (meter->pass == EXTERNAL_RUNS)
		reading_add_up(&external->reading, &result->read_bytes,
			       &result->read_wait_ns);
	else
		piece_source_add_up(&external->merge.pieces,
				    &result->read_bytes, &result->read_wait_ns);
	if (meter->pass == EXTERNAL_OUTPUT)
		result->written_bytes += external->ordering.next_record *
					 external->request.shape.size;
	else if (meter->pass == EXTERNAL_MERGES)
		result->written_bytes += external->runs.scratch.written_bytes -
					 meter->written_before;
	result->fill_wait_ns += add_up_fill_waits(external);
	result->empty_wait_ns += external->pipeline.ordering_wait_ns * workers;
	result->write_wait_ns +=
		run_sink_take_wait_ns(&external->runs.sink) +
		destination_take_wait_ns(&external->ordering.destination);
}

void external_add_reads(struct external_meter *meter, uint64_t read_bytes,
			uint64_t wait_ns)
{
	meter->passes[meter->pass].read_bytes += read_bytes;
	meter->passes[meter->pass].read_wait_ns += wait_ns;
}

/* --- progress ------------------------------------------------------------- */

/* How far the pass has come; waits are those of one worker. */
struct pace {
	uint64_t read_bytes;
	uint64_t read_wait_ns, fill_wait_ns;
};

/* Each lane's leader waits by itself. */
static uint64_t fill_wait_ns(const struct external *external)
{
	unsigned lane_count = external->meter.pass == EXTERNAL_RUNS
				      ? external->reading.lane_count
				      : 1;
	uint64_t ns = 0;

	for (unsigned l = 0; l < lane_count; l++)
		ns += external->pipeline.reading_wait_ns[l] / lane_count;
	return ns;
}

/* Shares of workers are equal: what worker 0 knows of itself holds for all.  Of
 * many ranks' runs we read those that are ours, and some of them for others:
 * pieces tell how far we are. */
static void look_at_pieces(const struct external *external, struct pace *pace)
{
	const struct external_merge *merge = &external->merge;
	const struct read_ahead *reads = &merge->pieces.readers[0].reads;
	uint32_t read =
		atomic_load_explicit(&merge->read_pieces, memory_order_relaxed);
	double part = (double)read / MAX(1, merge->plan.piece_count);
	uint64_t whole =
		external->meter.forecast.passes[EXTERNAL_OUTPUT].read_bytes;

	pace->read_wait_ns = reads->wait_ns;
	pace->read_bytes =
		external->meter.pass == EXTERNAL_OUTPUT &&
				external->config->ranks.rank_count > 1
			? (uint64_t)(part * (double)whole)
			: reads->read_bytes * external->request.worker_count;
}

/* A last pass that merges no runs writes as much as it reads, if it reads
 * anything. */
static struct pace look(const struct external *external)
{
	const struct external_meter *meter = &external->meter;
	struct pace pace = { .fill_wait_ns = fill_wait_ns(external) };

	if (meter->pass == EXTERNAL_RUNS)
		reading_look(&external->reading, &pace.read_bytes,
			     &pace.read_wait_ns);
	else if (meter->pass == EXTERNAL_OUTPUT &&
		 external->plan.way != EXTERNAL_BY_RUNS)
		pace.read_bytes = atomic_load_explicit(&meter->output_bytes,
						       memory_order_relaxed);
	else
		look_at_pieces(external, &pace);
	return pace;
}

static unsigned percent(uint64_t part, uint64_t whole)
{
	return (unsigned)MIN(100, part * 100 / MAX(1, whole));
}

void external_predict(struct external *external,
		      const struct external_rates *rates)
{
	struct external_meter *meter = &external->meter;

	meter->rates = *rates;
	if (!external_request_is_stream(&external->request))
		external_model_forecast(&meter->forecast, &external->plan,
					&external->request, rates);
}

/* What measures how far a pass has come, by what it has read, or written. */
static uint64_t whole_reading(const struct external_forecast *forecast,
			      enum external_pass pass)
{
	uint64_t read = forecast->passes[pass].read_bytes;

	return read > 0 ? read : forecast->passes[pass].written_bytes;
}

/* The plan says it all: a pass has written the same part as it has read. */
static void estimate(const struct external_meter *meter, uint64_t read,
		     struct external_progress *progress)
{
	const struct external_forecast *forecast = &meter->forecast;

	for (unsigned p = 0; p < EXTERNAL_PASSES; p++) {
		uint64_t whole = forecast->passes[p].read_bytes +
				 forecast->passes[p].written_bytes;

		progress->total_bytes += whole;
		if (p < meter->pass)
			progress->moved_bytes += whole;
		if (p == meter->pass && whole > 0)
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
	return atomic_load_explicit(&external->runs.spilled_records,
				    memory_order_relaxed) *
	       external->request.shape.size;
}

/* How long a stream is, is known when it has ended; how much merging is left,
 * in the last pass. */
static void estimate_stream(const struct external *external, uint64_t read,
			    struct external_progress *progress)
{
	enum external_pass pass = external->meter.pass;
	uint64_t input = atomic_load_explicit(
		&external->reading.streams.read_bytes, memory_order_relaxed);
	uint64_t spilled = spilled_bytes(external);
	/* What the last pass reads, and by how much more it moves. */
	uint64_t last = MAX(1, MIN(input, spilled));
	double factor = (double)(last + input) / (double)last;

	progress->moved_bytes = input + spilled;
	if (pass == EXTERNAL_MERGES)
		progress->moved_bytes += read;
	if (pass != EXTERNAL_OUTPUT)
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
static void count_elapsed(struct external_meter *meter, uint64_t moved,
			  uint64_t now_ns)
{
	struct external_forecast *forecast = &meter->forecast;
	uint64_t elapsed_ns = now_ns - meter->pass_begin_ns;
	double whole = (double)forecast->passes[EXTERNAL_RUNS].read_bytes +
		       (double)forecast->passes[EXTERNAL_RUNS].written_bytes;
	double left = MAX(0, 1 - (double)moved / MAX(1, whole));
	uint64_t ns = forecast->passes[EXTERNAL_RUNS].ns;

	meter->forecast_after_ns = elapsed_ns;
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
	uint64_t read = look(external).read_bytes;
	uint64_t moved = read + spilled_bytes(external);
	uint64_t since_ns = meter->rates_begin_ns;
	uint64_t bytes = moved - meter->rates_begin_bytes;
	bool is_measured = since_ns != 0 && now_ns - since_ns >= RATES_NS;
	bool is_touched = has_touched_memory(external, read);
	struct external_rates rates = meter->rates;

	if (since_ns == 0 || is_measured || is_touched != meter->has_touched) {
		meter->rates_begin_ns = now_ns;
		meter->rates_begin_bytes = moved;
	}
	meter->has_rates = is_measured && meter->has_touched;
	meter->has_touched = is_touched;
	if (!is_measured)
		return;
	/* 5 is the least of which READ_ALONE() is above 0. */
	rates.both = MAX(5, (uint64_t)((double)bytes * 1e9 /
				       (double)(now_ns - since_ns)));
	rates.write = rates.both;
	rates.read = READ_ALONE(rates.both);
	external_predict(external, &rates);
	count_elapsed(meter, moved, now_ns);
}

static void tell_progress(struct external *external, uint64_t now_ns)
{
	const struct external_config *config = external->config;
	struct external_meter *meter = &external->meter;
	const struct pace pace = look(external);
	uint64_t passed_ns = now_ns - meter->last_ns;
	struct external_progress progress = {
		.pass = meter->pass,
		.wait_disk_percent =
			percent(pace.read_wait_ns - meter->last_read_wait_ns,
				passed_ns),
		.wait_memory_percent =
			percent(pace.fill_wait_ns - meter->last_fill_wait_ns,
				passed_ns),
	};

	meter->last_ns = now_ns;
	meter->last_read_wait_ns = pace.read_wait_ns;
	meter->last_fill_wait_ns = pace.fill_wait_ns;
	if (external->reading.kind == READING_STREAMS)
		estimate_stream(external, pace.read_bytes, &progress);
	else
		estimate(meter, pace.read_bytes, &progress);
	config->progress(config->progress_context, &progress);
}

/* The caller has the meter. */
static void serve(struct external *external)
{
	struct external_meter *meter = &external->meter;
	uint64_t now_ns = clock_now_ns();

	if (meter->next_ns == 0) {
		meter->next_ns = now_ns + PROGRESS_NS;
		meter->last_ns = now_ns;
	}
	if (now_ns < meter->next_ns)
		return;
	meter->next_ns = now_ns + PROGRESS_NS;
	if (external->config->rates.read == 0 && !meter->has_rates &&
	    external->reading.kind != READING_STREAMS &&
	    meter->pass == EXTERNAL_RUNS && spilled_bytes(external) > 0)
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

void external_serve_output(void *context, unsigned worker, uint64_t bytes)
{
	struct external *external = context;

	atomic_fetch_add_explicit(&external->meter.output_bytes, bytes,
				  memory_order_relaxed);
	if (worker == 0)
		external_serve(external);
}
