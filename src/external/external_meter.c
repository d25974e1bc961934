/*
 * external_meter.c - what each pass takes, and how far it has come
 */
#include "base/clock.h"
#include "base/progress.h"
#include "external/external_state.h"

#define PROGRESS_NS 1000000000u
/* How long the run's own reads and writes are measured: two seconds predict the
 * rest within 0.8 to 1.25 of it (results/NOTES.md). */
#define RATES_NS 2000000000u

static answer_fn tell;

/* --- how far a pass has come ---------------------------------------------- */

/* Threads, or queues of the kernel's, with which the work of a stage is done at
 * a time. */
static unsigned count_workers(const struct external *external,
			      enum external_pass pass, enum stage stage)
{
	if (stage == STAGE_WRITE ||
	    (stage == STAGE_READ && pass == EXTERNAL_RUNS &&
	     external->reading.kind == READING_STREAMS))
		return 1;
	if ((stage == STAGE_READ || stage == STAGE_BUCKET) &&
	    pass == EXTERNAL_RUNS)
		return external->plan.reader_count;
	return external->request.worker_count;
}

/* That the pass reads. */
static unsigned count_lanes(const struct external *external)
{
	return external->meter.pass == EXTERNAL_RUNS
		       ? external->reading.lane_count
		       : 1;
}

/* Each lane's leader waits by itself. */
static uint64_t fill_wait_ns(const struct external *external)
{
	unsigned lane_count = count_lanes(external);
	uint64_t ns = 0;

	for (unsigned l = 0; l < lane_count; l++)
		ns += external->pipeline.reading[l].wait_ns[STAGE_FOR_FILL] /
		      lane_count;
	return ns;
}

uint64_t external_read_bytes(const struct external *external,
			     enum external_pass pass)
{
	const struct stage_sum *reads =
		&external->meter.tables[pass].sums[STAGE_READ];

	return atomic_load_explicit(&reads->bytes, memory_order_relaxed);
}

/* Of many ranks' runs we read those that are ours, and some of them for others:
 * pieces tell how far we are. */
static uint64_t part_bytes(const struct external *external)
{
	const struct external_merge *merge = &external->merge;
	uint32_t read =
		atomic_load_explicit(&merge->read_pieces, memory_order_relaxed);
	double part = (double)read / MAX(1, merge->plan.piece_count);

	return (uint64_t)(part * (double)external->meter.forecast
					 .passes[EXTERNAL_OUTPUT]
					 .read_bytes);
}

/* A last pass that merges no runs writes as much as it reads, if it reads
 * anything. */
static struct external_pace look(const struct external *external)
{
	const struct external_meter *meter = &external->meter;
	const struct stage_sum *bucket =
		&meter->tables[meter->pass].sums[STAGE_BUCKET];
	struct external_pace pace = {
		.read_bytes = external_read_bytes(external, meter->pass),
		.read_wait_ns =
			bucket->waits[STAGE_FOR_READ].ns /
			count_workers(external, meter->pass, STAGE_BUCKET),
		.fill_wait_ns = fill_wait_ns(external),
	};

	if (meter->pass != EXTERNAL_OUTPUT)
		return pace;
	if (external->plan.way != EXTERNAL_BY_RUNS)
		pace.read_bytes = atomic_load_explicit(&meter->output_bytes,
						       memory_order_relaxed);
	else if (external->config->ranks.rank_count > 1)
		pace.read_bytes = part_bytes(external);
	return pace;
}

/* --- passes --------------------------------------------------------------- */

/* What the team does from now on counts there; NULL: it does not. */
static void set_team(const struct sort_wiring *wiring, enum stage home,
		     const struct stage_leader *leader,
		     struct stage_table *table, uint64_t now_ns)
{
	for (unsigned w = 0; w < wiring->pool->worker_count; w++) {
		struct stage_clock *clock = &wiring->trace->lanes[w].clock;

		if (table)
			stage_begin(clock, table, home, leader, now_ns);
		else
			stage_end(clock, now_ns);
	}
}

/* The same for the ordering team, and for those that read in this pass. */
static void set_teams(const struct external *external,
		      struct stage_table *table, uint64_t now_ns)
{
	const struct reading *reading = &external->reading;
	const struct pipeline *pipeline = &external->pipeline;
	bool is_first = external->meter.pass == EXTERNAL_RUNS;
	enum stage home = is_first || external->plan.way == EXTERNAL_BY_RUNS
				  ? STAGE_ORDER
				  : STAGE_GATHER;

	set_team(&external->ordering.wiring, home, &pipeline->ordering, table,
		 now_ns);
	for (unsigned l = 0; l < count_lanes(external); l++)
		set_team(is_first ? &reading->lane[l].wiring : &reading->wiring,
			 STAGE_BUCKET, &pipeline->reading[l], table, now_ns);
}

/* The same for what is read and written. */
static void set_queues(struct external *external, struct stage_table *table)
{
	struct stage_sum *writes = table ? &table->sums[STAGE_WRITE] : NULL;
	struct sink *output = external->ordering.destination.sink;

	stage_queue_resume(&external->runs.sink.sink.writes, writes);
	if (output)
		stage_queue_resume(&output->writes, writes);
	stage_queue_resume(&external->reading.streams.reads,
			   table ? &table->sums[STAGE_READ] : NULL);
}

void external_begin_pass(struct external *external, enum external_pass pass)
{
	struct external_meter *meter = &external->meter;

	external_end_pass(external);
	meter->pass = pass;
	meter->pass_begin_ns = clock_now_ns();
	meter->last = look(external);
	meter->last_ns = meter->pass_begin_ns;
	meter->answer = (struct answer){ tell, external };
	answer_by(&meter->answer);
	set_queues(external, &meter->tables[pass]);
	set_teams(external, &meter->tables[pass], meter->pass_begin_ns);
}

void external_end_pass(struct external *external)
{
	struct external_meter *meter = &external->meter;
	uint64_t now_ns = clock_now_ns();

	if (meter->pass_begin_ns == 0)
		return;
	set_teams(external, NULL, now_ns);
	set_queues(external, NULL);
	meter->pass_ns[meter->pass] += now_ns - meter->pass_begin_ns;
	meter->pass_begin_ns = 0;
}

/* An output that is memory is filled where it lies: nothing is written. */
void external_fill_passes(const struct external *external,
			  struct external_pass_result passes[EXTERNAL_PASSES])
{
	for (unsigned p = 0; p < EXTERNAL_PASSES; p++) {
		passes[p].ns = external->meter.pass_ns[p];
		for (unsigned s = 0; s < STAGES; s++)
			stage_fill_result(&passes[p].stages[s],
					  &external->meter.tables[p].sums[s],
					  count_workers(external, p, s));
		passes[p].read_bytes = passes[p].stages[STAGE_READ].bytes;
		passes[p].written_bytes = passes[p].stages[STAGE_WRITE].bytes;
	}
	passes[EXTERNAL_OUTPUT].written_bytes =
		external->ordering.next_record *
		external_request_written_size(&external->request);
}

/* --- progress ------------------------------------------------------------- */

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
	return atomic_load_explicit(&external->ordering.spilled_records,
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

/* In turns the disk reads alone as fast as it moves anything.  Another disk
 * with an arm is known by what it brought before anything was written: it is
 * slower than memory that is touched for the first time. */
static uint64_t read_alone(const struct external *external, uint64_t both)
{
	const struct external_meter *meter = &external->meter;
	double alone = (double)meter->alone_bytes * 1e9 /
		       (double)MAX(1, meter->alone_ns);

	if (external->plan.batch_count == 1)
		return both;
	if (!external_request_has_arm(&external->request) || alone < 1)
		return READ_ALONE(both);
	return MIN(both, (uint64_t)alone);
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
	rates.read = read_alone(external, rates.both);
	external_predict(external, &rates);
	count_elapsed(meter, moved, now_ns);
}

static struct external_progress find_progress(struct external *external,
					      uint64_t now_ns)
{
	struct external_meter *meter = &external->meter;
	const struct external_pace pace = look(external);
	uint64_t passed_ns = now_ns - meter->last_ns;
	struct external_progress progress = {
		.pass = meter->pass,
		.wait_disk_percent =
			percent(pace.read_wait_ns - meter->last.read_wait_ns,
				passed_ns),
		.wait_memory_percent =
			percent(pace.fill_wait_ns - meter->last.fill_wait_ns,
				passed_ns),
	};

	meter->last_ns = now_ns;
	meter->last = pace;
	if (external->reading.kind == READING_STREAMS)
		estimate_stream(external, pace.read_bytes, &progress);
	else
		estimate(meter, pace.read_bytes, &progress);
	return progress;
}

/* "45%", or "430.2 MiB" of an unknown total: with both, the line would be wider
 * than a terminal. */
static void add_moved(struct format_line *line,
		      const struct external_progress *progress)
{
	if (progress->total_bytes == 0)
		progress_add_done(line, progress->moved_bytes, 0);
	else
		format_add_percent(line, (double)progress->moved_bytes /
						 (double)progress->total_bytes);
}

void external_progress_tell(const struct external_progress *progress,
			    struct format_line *line)
{
	static struct progress_rate state;
	bool is_stream =
		progress->pass == EXTERNAL_RUNS && progress->total_bytes == 0;

	format_add(line, external_pass_names[progress->pass]);
	format_add(line, ": ");
	add_moved(line, progress);
	format_add(line, ", ");
	progress_add_rate(line, &state, progress->moved_bytes,
			  progress->total_bytes, clock_now_ns());
	format_add(line, is_stream ? "; waits: input " : "; waits: disk ");
	format_add_number(line, progress->wait_disk_percent);
	format_add(line, "%, memory ");
	format_add_number(line, progress->wait_memory_percent);
	format_add(line, "%");
}

/* An answer_fn. */
static bool tell(void *context, struct format_line *line)
{
	struct external *external = context;
	struct external_meter *meter = &external->meter;
	struct external_progress progress;

	atomic_store(&meter->is_asked, true);
	if (atomic_flag_test_and_set(&meter->is_busy))
		return false;
	atomic_store(&meter->is_asked, false);
	progress = find_progress(external, clock_now_ns());
	external_progress_tell(&progress, line);
	atomic_flag_clear(&meter->is_busy);
	return true;
}

/* The caller has the meter. */
static void serve(struct external *external)
{
	const struct external_config *config = external->config;
	struct external_meter *meter = &external->meter;
	struct external_progress progress;
	uint64_t now_ns = clock_now_ns();

	if (meter->next_ns == 0)
		meter->next_ns = now_ns + PROGRESS_NS;
	if (now_ns < meter->next_ns)
		return;
	meter->next_ns = now_ns + PROGRESS_NS;
	if (spilled_bytes(external) == 0) {
		meter->alone_bytes = look(external).read_bytes;
		meter->alone_ns = now_ns - meter->pass_begin_ns;
	}
	if (external->config->rates.read == 0 && !meter->has_rates &&
	    external->reading.kind != READING_STREAMS &&
	    meter->pass == EXTERNAL_RUNS && spilled_bytes(external) > 0)
		set_rates(external, now_ns);
	if (!config->progress)
		return;
	progress = find_progress(external, now_ns);
	config->progress(config->progress_context, &progress);
}

void external_serve(void *context)
{
	struct external *external = context;
	struct external_meter *meter = &external->meter;

	if (atomic_flag_test_and_set_explicit(&meter->is_busy,
					      memory_order_acquire))
		return;
	serve(external);
	atomic_flag_clear(&meter->is_busy);
	if (atomic_load(&meter->is_asked))
		answer_now();
}

void external_serve_output(void *context, unsigned worker, uint64_t bytes)
{
	struct external *external = context;

	atomic_fetch_add_explicit(&external->meter.output_bytes, bytes,
				  memory_order_relaxed);
	if (worker == 0)
		external_serve(external);
}
