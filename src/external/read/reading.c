/*
 * reading.c - the input's files or streams, and the lanes that read them
 */
#include "external/read/reading.h"

#include <sys/stat.h>

#include "base/clock.h"
#include "external/read/pipeline.h"
#include "sort/key_probe.h"
#include "sort/record_counts.h"
#include "sort/sort_setup.h"

/* The keys of so many records of a stream are probed, as by key_probe(). */
#define PROBE_RECORDS 512

/* --- the input ------------------------------------------------------------ */

int reading_open(struct reading *reading, const struct sorter_config *config,
		 bool is_shared, struct first_failure *run_failure,
		 struct failure *failure)
{
	int error;

	reading->config = config;
	reading->wiring.failure = run_failure;
	if (is_shared)
		reading->kind = READING_SHARED;
	else if (stream_source_suits(config->input_paths, config->input_count))
		reading->kind = READING_STREAMS;
	if (reading->kind == READING_STREAMS) {
		const struct input_layout layout = sort_setup_layout(config);

		reading->input.record_count = EXTERNAL_RECORDS_UNKNOWN;
		reading->input.mode = INPUT_BUFFERED;
		return stream_source_open(
			&reading->streams, config->input_paths,
			config->input_count, &layout, &config->widening,
			run_failure, failure);
	}
	error = sort_setup_input(&reading->input, config, true, failure);
	if (error == 0)
		error = widening_check(&config->widening,
				       reading->first_number +
					       reading->input.record_count,
				       failure);
	if (error)
		return error;
	input_choose(&reading->input);
	if (reading->input.mode == INPUT_DIRECT)
		input_open_directly(&reading->input);
	return 0;
}

const uint8_t *reading_header(const struct reading *reading)
{
	return reading->kind == READING_STREAMS ? reading->streams.header
						: reading->input.header;
}

/* --- how many lanes ------------------------------------------------------- */

/* Different disks have different nodes in one file system of devices. */
static dev_t device_of(const struct input_file *file)
{
	struct stat status;

	if (fstat(file->fd, &status) == 0 && S_ISBLK(status.st_mode))
		return status.st_rdev;
	return file->device;
}

void reading_plan(struct reading *reading, const struct topology *topology,
		  struct external_request *request, struct external_plan *plan)
{
	const struct input *input = &reading->input;
	struct lane_file files[INPUT_FILES_MAX];
	struct external_plan several;
	/* Keys by themselves are read at random, and files that are merged at
	 * the same time anyway; and of records with equal keys the first ones
	 * of the input are to come first. */
	unsigned lane_count = plan->way == EXTERNAL_BY_KEYS ||
					      plan->keeps_head ||
					      request->input_runs > 0 ||
					      reading->kind == READING_SHARED
				      ? 1
				      : LANES_MAX;

	reading->topology = topology;
	reading->plan = plan;
	for (unsigned f = 0; f < input->file_count; f++)
		files[f] = (struct lane_file){
			.device = device_of(&input->files[f]),
			.record_count = input->files[f].record_count,
		};
	for (;; lane_count = reading->lane_plan.lane_count - 1) {
		lane_plan_make(&reading->lane_plan, files, input->file_count,
			       lane_count);
		if (reading->lane_plan.lane_count == 1)
			break;
		request->lanes = &reading->lane_plan;
		if (external_plan_make(&several, request) == 0 &&
		    external_plan_gains(&several, plan, request)) {
			*plan = several;
			break;
		}
		request->lanes = NULL;
	}
	reading->lane_count = reading->lane_plan.lane_count;
	if (reading->kind == READING_SHARED)
		reading_claims_open(&reading->claims, plan->batch.capacity);
}

/* --- threads and memory --------------------------------------------------- */

/* The number of the lane's first reader, counted over all lanes. */
static unsigned first_reader(const struct reading *reading, unsigned lane)
{
	return reading->plan->reader_count * lane / reading->lane_count;
}

static unsigned count_readers(const struct reading *reading, unsigned lane)
{
	return first_reader(reading, lane + 1) - first_reader(reading, lane);
}

/* The threads of a team, and its timeline. */
static int start_team(const struct sort_wiring *wiring, const char *trace_path,
		      unsigned worker_count, const struct topology *topology,
		      struct failure *failure)
{
	int error;

	sort_trace_init(wiring->trace, trace_path);
	error = sort_trace_add_lanes(wiring->trace, worker_count,
				     SORT_TRACE_SPANS_MAX, failure);
	return error ? error
		     : thread_pool_start(wiring->pool, worker_count,
					 THREAD_POOL_BESIDE, topology, failure);
}

/* One of several lanes has a team of its own, on the CPUs behind those of the
 * lanes before. */
static int start_lane(struct reading *reading, unsigned number,
		      struct failure *failure)
{
	struct reading_lane *lane = &reading->lane[number];
	const struct topology *all = reading->topology;
	unsigned first = first_reader(reading, number);
	unsigned worker_count = count_readers(reading, number);
	struct topology own = {
		.cpu_count = MIN(worker_count, all->cpu_count),
		.node_count = 1,
		.unpinned = all->unpinned,
	};

	lane->reading = reading;
	lane->wiring = reading->wiring;
	lane->source = reading->kind == READING_STREAMS
			       ? &reading->streams.source
			       : &lane->files.source;
	if (reading->lane_count == 1)
		return 0;
	lane->wiring.pool = &lane->own_readers;
	lane->wiring.trace = &lane->own_trace;
	for (unsigned i = 0; i < own.cpu_count; i++)
		own.cpus[i] = all->cpus[(first + i) % all->cpu_count];
	return start_team(&lane->wiring, reading->config->trace_path,
			  worker_count, &own, failure);
}

int reading_start(struct reading *reading, unsigned worker_count,
		  struct failure *failure)
{
	int error;

	reading->wiring.shape = reading->plan->batch.shape;
	reading->wiring.kernel = reading->config->kernel;
	reading->wiring.pool = &reading->readers;
	reading->wiring.trace = &reading->trace;
	error = start_team(&reading->wiring, reading->config->trace_path,
			   worker_count, reading->topology, failure);
	for (unsigned l = 0; l < reading->lane_count && error == 0; l++)
		error = start_lane(reading, l, failure);
	return error;
}

void reading_lay_out(struct reading *reading, uint32_t sample_count,
		     struct arena *arena)
{
	const struct key_list *keys = &reading->config->shape.keys;

	for (unsigned l = 0; l < reading->lane_count; l++) {
		struct reading_lane *lane = &reading->lane[l];

		lane->sample =
			arena_take(arena, sample_count * 8, CACHE_PAIR_BYTES);
		lane->sample_prefixes =
			arena_take(arena, sample_count * 8, CACHE_PAIR_BYTES);
		lane->common_key = arena_take(arena, keys->end - keys->begin,
					      CACHE_PAIR_BYTES);
	}
}

/* --- the pass begins ------------------------------------------------------ */

/* What the user wants overrides the answer of key_probe(). */
static void set_keys(struct reading_lane *lane, enum splitters_kind kind,
		     bool is_uniform)
{
	enum splitters_kind wanted = lane->reading->config->splitters;

	lane->static_kind = kind;
	lane->is_uniform = wanted == SPLITTERS_AUTO
				   ? is_uniform
				   : wanted == SPLITTERS_STATIC;
}

/* One look at all files, for all lanes. */
static void probe_keys(struct reading *reading)
{
	bool is_uniform;
	enum splitters_kind kind =
		key_probe(&reading->input, reading->config, &is_uniform);

	for (unsigned l = 0; l < reading->lane_count; l++)
		set_keys(&reading->lane[l], kind, is_uniform);
}

static bool batch_of_lane(void *context, uint64_t number, bool waits,
			  struct input_range *batch)
{
	const struct reading_lane *lane = context;
	const struct reading *reading = lane->reading;

	(void)waits;
	return lane_plan_batch(&reading->lane_plan,
			       (unsigned)(lane - reading->lane),
			       reading->plan->batch.capacity, number, batch);
}

static int open_files(struct reading *reading, unsigned number, uint8_t *memory,
		      struct failure *failure)
{
	const struct external_plan *plan = reading->plan;
	struct reading_lane *lane = &reading->lane[number];
	size_t reader_bytes = (size_t)plan->read_depth * plan->read_slot_bytes;

	lane->files = (struct file_source){
		.input = &reading->input,
		.deal = batch_of_lane,
		.deal_context = lane,
		.worker_count = count_readers(reading, number),
		.span_offset = plan->way == EXTERNAL_BY_KEYS
				       ? reading->config->shape.keys.begin
				       : 0,
		.span_bytes = plan->batch.shape.size -
			      reading->config->widening.bytes,
		.widening = &reading->config->widening,
		.first_number = reading->first_number,
	};
	if (reading->kind == READING_SHARED) {
		lane->files.deal = reading_claims_batch;
		lane->files.deal_context = &reading->claims;
	}
	return file_source_open(
		&lane->files,
		memory + first_reader(reading, number) * reader_bytes,
		plan->read_depth, plan->read_slot_bytes, failure);
}

int reading_begin(struct reading *reading, const struct record_shape *key_shape,
		  uint8_t *memory, struct failure *failure)
{
	int error = 0;

	reading->key_shape = key_shape;
	if (reading->kind == READING_STREAMS)
		return 0;
	probe_keys(reading);
	for (unsigned l = 0; l < reading->lane_count && error == 0; l++)
		error = open_files(reading, l, memory, failure);
	return error;
}

/* --- fill a batch --------------------------------------------------------- */

/* Splitters from the batch's own records, which are in memory. */
static void sample_batch(struct reading_lane *lane, struct batch *batch)
{
	const struct source *source = lane->source;
	uint64_t count = source->record_count;
	uint32_t wanted =
		MIN(plan_splitters(count), batch->plan.splitters_wanted);
	uint32_t sample_count = plan_samples(count, wanted);
	uint64_t random = 1;

	for (uint32_t i = 0; i < sample_count; i++)
		lane->sample[i] = source->ops->record(
			source,
			splitters_draw(count, sample_count, i, &random));
	splitters_init_sampled(&batch->splitters, &lane->wiring.shape,
			       lane->sample, sample_count,
			       lane->sample_prefixes, wanted);
	batch_adopt_key(&batch->splitters, batch->common_key,
			lane->reading->key_shape);
}

/* True: the batch has splitters before it has records. */
static bool find_splitters(struct reading_lane *lane, struct batch *batch)
{
	if (lane->is_uniform) {
		splitters_init_static(&batch->splitters, lane->static_kind,
				      batch->plan.bucket_count);
		return true;
	}
	if (!lane->has_sampled)
		return false;
	batch_copy_splitters(&batch->splitters, batch->common_key,
			     &lane->splitters);
	return true;
}

static bool is_crowded(const struct reading_lane *lane, uint64_t crowded)
{
	return lane->reading->config->splitters != SPLITTERS_STATIC &&
	       crowded > lane->source->record_count / PLAN_CROWDED_PART;
}

/* Partition by splitters that suit this batch, since there were none, or those
 * that there were did not.  They are kept for the next batch: its own may be
 * overwritten, by another lane, before they are used again.  But where sampled
 * ones did not suit, the next batch makes its own before it has entries. */
static void partition_again(struct reading_lane *lane, struct batch *batch,
			    bool had_splitters)
{
	lane->has_sampled = !had_splitters || lane->is_uniform;
	lane->is_uniform = false;
	sample_batch(lane, batch);
	bucket_pool_reset(&batch->bucketing.pool);
	bucketing_pass_all(&batch->bucketing, true, true);
	batch_count_crowded(batch);
	if (lane->has_sampled)
		batch_copy_splitters(&lane->splitters, lane->common_key,
				     &batch->splitters);
}

/* What kind of keys a stream has, from its first records. */
static void probe_stream(struct reading_lane *lane, uint64_t record_count)
{
	bool is_uniform;
	enum splitters_kind kind =
		splitters_probe(&lane->wiring.shape, lane->source->base,
				MIN(record_count, PROBE_RECORDS), &is_uniform);

	set_keys(lane, kind, is_uniform);
}

/* The next records go to the batch.  Returns how many there are, or of a
 * stream, how many are there already; 0: none is left; -1: the run has failed.
 */
static int64_t begin_records(struct reading *reading, struct reading_lane *lane,
			     struct batch *batch)
{
	struct failure failure;
	int64_t count;

	if (reading->kind != READING_STREAMS)
		return (int64_t)file_source_begin(&lane->files, batch);
	count = stream_source_begin(&reading->streams, batch, &failure);
	if (count < 0) {
		first_failure_note(lane->wiring.failure, &failure);
		return -1;
	}
	if (count > 0 && batch->first_record == 0)
		probe_stream(lane, (uint64_t)count);
	return count;
}

/*
 * Bring the records in, and put them into buckets if the batch has splitters.
 * Units of a stream come to the workers in any order: buckets that need their
 * entries in record order, as sampled splitters have some, are filled when all
 * is there.
 */
static void bring_in(struct reading *reading, struct reading_lane *lane,
		     struct batch *batch, bool has_splitters)
{
	bool waits = reading->kind == READING_STREAMS &&
		     batch->splitters.kind == SPLITTERS_SAMPLED;

	bucketing_pass_all(&batch->bucketing, false, has_splitters && !waits);
	if (reading->kind == READING_STREAMS)
		stream_source_end(&reading->streams);
	if (has_splitters && waits &&
	    !first_failure_stops(lane->wiring.failure))
		bucketing_pass_all(&batch->bucketing, true, true);
}

/* The last batch is known as such: else the other team would empty one for the
 * sake of a batch that gets no record. */
int reading_to_come(struct reading *reading, unsigned number)
{
	uint64_t next = reading->lane[number].files.next_batch, left;

	if (reading->kind == READING_STREAMS)
		return reading->streams.has_ended ? 0 : PIPELINE_MORE;
	if (reading->kind == READING_SHARED)
		left = reading_claims_left(&reading->claims, next);
	else
		left = lane_plan_batches(&reading->lane_plan, number,
					 reading->plan->batch.capacity) -
		       next;
	return left == UINT64_MAX ? PIPELINE_MORE
				  : (int)MIN(left, PIPELINE_MORE - 1);
}

int reading_fill(struct reading *reading, unsigned number, struct batch *batch)
{
	struct reading_lane *lane = &reading->lane[number];
	uint64_t begin_ns = clock_now_ns();
	int64_t count = begin_records(reading, lane, batch);
	struct bucketing_config config = {
		.source = lane->source,
		.word_max = reading->word_max,
		.serve = reading->serve,
		.serve_context = reading->serve_context,
	};
	bool has_splitters;

	/* For the first unit of a stream, or for what other ranks leave. */
	if (reading->kind != READING_FILES)
		stage_leader_add(&reading->leaders[number],
				 reading->kind == READING_STREAMS
					 ? STAGE_FOR_READ
					 : STAGE_FOR_WAVE,
				 clock_now_ns() - begin_ns);
	batch->record_count = 0;
	if (count <= 0)
		return (int)count;
	/* The first reader of the lane has the lane's first table. */
	if (reading->counts)
		config.counts =
			reading->counts +
			first_reader(reading, number) *
				record_counts_length(lane->wiring.shape.size);
	batch_begin(batch, &lane->wiring, &config);
	has_splitters = !reading->counts && find_splitters(lane, batch);
	bring_in(reading, lane, batch, has_splitters);
	if (!reading->counts && !first_failure_stops(lane->wiring.failure) &&
	    (!has_splitters || is_crowded(lane, batch_count_crowded(batch))))
		partition_again(lane, batch, has_splitters);
	batch->input_count = lane->source->record_count;
	return first_failure_stops(lane->wiring.failure)
		       ? -1
		       : reading_to_come(reading, number);
}

/* --- the end -------------------------------------------------------------- */

void reading_end(struct reading *reading)
{
	if (reading->kind == READING_STREAMS)
		reading->input.record_count = reading->streams.record_count;
	for (unsigned l = 0; l < reading->lane_count; l++) {
		thread_pool_stop(&reading->lane[l].own_readers);
		file_source_close(&reading->lane[l].files);
	}
}

void reading_close(struct reading *reading)
{
	reading_end(reading);
	thread_pool_stop(&reading->readers);
	for (unsigned l = 0; l < reading->lane_count; l++)
		sort_trace_close(&reading->lane[l].own_trace);
	sort_trace_close(&reading->trace);
	stream_source_close(&reading->streams);
	if (reading->kind == READING_SHARED)
		reading_claims_close(&reading->claims);
	input_close(&reading->input);
}
