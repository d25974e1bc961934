#include "external/read/reading_lanes.h"

#include <stdlib.h>
#include <sys/stat.h>

#include "sort/key_probe.h"
#include "sort/record_counts.h"

/* --- how many ------------------------------------------------------------- */

/* Different disks have different nodes in one file system of devices. */
static dev_t device_of(const struct input_file *file)
{
	struct stat status;

	if (fstat(file->fd, &status) == 0 && S_ISBLK(status.st_mode))
		return status.st_rdev;
	return file->device;
}

/* Plan so many lanes.  False: that is no gain over the plan for one. */
static bool try_count(struct reading_lanes *lanes,
		      const struct lane_file *files, unsigned lane_count,
		      struct external_request *request,
		      struct external_plan *plan)
{
	struct external_plan several;

	lane_plan_make(&lanes->lane_plan, files,
		       lanes->config.input->file_count, lane_count);
	if (lane_count == 1)
		return true;
	request->lanes = &lanes->lane_plan;
	if (external_plan_make(&several, request) == 0 &&
	    external_plan_gains(&several, plan, request)) {
		*plan = several;
		return true;
	}
	request->lanes = NULL;
	return false;
}

void reading_lanes_plan(struct reading_lanes *lanes,
			const struct reading_lanes_config *config,
			struct external_request *request,
			struct external_plan *plan)
{
	const struct input *input = config->input;
	struct lane_file files[INPUT_FILES_MAX];

	lanes->config = *config;
	lanes->plan = plan;
	for (unsigned f = 0; f < input->file_count; f++)
		files[f] = (struct lane_file){
			.device = device_of(&input->files[f]),
			.record_count = input->files[f].record_count,
		};
	/* Keys by themselves are read at random. */
	lanes->count = plan->way == EXTERNAL_BY_KEYS || config->deal
			       ? 1
			       : lane_plan_devices(files, input->file_count);
	while (!try_count(lanes, files, lanes->count, request, plan))
		lanes->count--;
}

/* --- threads -------------------------------------------------------------- */

/* The number of the lane's first reader, counted over all lanes. */
static unsigned first_reader(const struct reading_lanes *lanes, unsigned lane)
{
	return lanes->plan->reader_count * lane / lanes->count;
}

static unsigned count_readers(const struct reading_lanes *lanes, unsigned lane)
{
	return first_reader(lanes, lane + 1) - first_reader(lanes, lane);
}

/* On the CPUs behind those of the lanes before. */
static int start_readers(struct reading_lanes *lanes, unsigned number,
			 struct failure *failure)
{
	const struct topology *all = lanes->config.topology;
	unsigned first = first_reader(lanes, number);
	unsigned worker_count = count_readers(lanes, number);
	struct topology own = {
		.cpu_count = MIN(worker_count, all->cpu_count),
		.node_count = 1,
	};

	for (unsigned i = 0; i < own.cpu_count; i++)
		own.cpus[i] = all->cpus[(first + i) % all->cpu_count];
	return thread_pool_start_beside(&lanes->lane[number].own_readers,
					worker_count, &own, failure);
}

/* One of several lanes has readers and a timeline of its own. */
static int start_one(struct reading_lanes *lanes, unsigned number,
		     struct failure *failure)
{
	struct reading_lane *lane = &lanes->lane[number];
	int error;

	lane->readers = &lane->own_readers;
	sort_trace_init(&lane->own_trace, lanes->config.trace_path);
	error = sort_trace_add_lanes(&lane->own_trace,
				     count_readers(lanes, number),
				     SORT_TRACE_SPANS_MAX, failure);
	if (error)
		return error;
	return start_readers(lanes, number, failure);
}

int reading_lanes_start(struct reading_lanes *lanes, struct failure *failure)
{
	int error = 0;

	lanes->lane[0].readers = lanes->config.readers;
	if (lanes->count == 1)
		return 0;
	for (unsigned l = 0; l < lanes->count && error == 0; l++)
		error = start_one(lanes, l, failure);
	return error;
}

/* --- memory --------------------------------------------------------------- */

void reading_lanes_lay_out(struct reading_lanes *lanes, uint32_t sample_count,
			   struct arena *arena)
{
	const struct key_list *keys = &lanes->config.shape->keys;

	for (unsigned l = 0; l < lanes->count; l++) {
		struct reading_lane *lane = &lanes->lane[l];

		lane->sample =
			arena_take(arena, sample_count * 8, CACHE_PAIR_BYTES);
		lane->sample_prefixes =
			arena_take(arena, sample_count * 8, CACHE_PAIR_BYTES);
		lane->common_key = arena_take(arena, keys->end - keys->begin,
					      CACHE_PAIR_BYTES);
	}
}

/* --- the pass ------------------------------------------------------------- */

static void wire(struct reading_lane *lane,
		 const struct reading_lanes_config *config,
		 const struct sort_wiring *wiring,
		 const struct record_shape *key_shape)
{
	lane->external = config->external;
	lane->serve = config->serve;
	lane->wanted = config->splitters;
	lane->key_shape = key_shape;
	lane->wiring = *wiring;
	lane->wiring.pool = lane->readers;
	if (lane->readers == &lane->own_readers)
		lane->wiring.trace = &lane->own_trace;
	lane->streams = config->streams;
	lane->source = config->streams ? &config->streams->source
				       : &lane->files.source;
}

/* One look at all files, for all lanes. */
static void probe_keys(struct reading_lanes *lanes)
{
	bool is_uniform;
	enum splitters_kind kind = key_probe(lanes->config.input,
					     lanes->config.shape, &is_uniform);

	for (unsigned l = 0; l < lanes->count; l++)
		reading_lane_set_keys(&lanes->lane[l], kind, is_uniform);
}

static bool batch_of_lane(void *context, uint64_t number, bool waits,
			  struct input_range *batch)
{
	const struct reading_lane *lane = context;

	(void)waits;
	if (number >= lane->batch_count)
		return false;
	*batch = lane->batches[number];
	return true;
}

static uint64_t left_of_lane(void *context, uint64_t number)
{
	const struct reading_lane *lane = context;

	return lane->batch_count - number;
}

/* The lane's files tell which batches it has.  0 or -errno with *failure
 * filled. */
static int deal_files(struct reading_lanes *lanes, unsigned number,
		      struct batch_deal *deal, struct failure *failure)
{
	const struct lane_plan *plan = &lanes->lane_plan;
	struct reading_lane *lane = &lanes->lane[number];
	uint64_t capacity = lanes->plan->batch.capacity;

	lane->batch_count = lane_plan_batches_of(plan, number, capacity);
	/* One more: malloc(0) may return NULL. */
	lane->batches =
		malloc((lane->batch_count + 1) * sizeof(*lane->batches));
	if (!lane->batches)
		return failure_no_memory(failure);
	lane_plan_deal(plan, number, capacity, lane->batches);
	*deal = (struct batch_deal){
		.context = lane,
		.batch = batch_of_lane,
		.left = left_of_lane,
	};
	return 0;
}

/* 0 or -errno with *failure filled. */
static int open_files(struct reading_lanes *lanes, unsigned number,
		      uint8_t *memory, struct failure *failure)
{
	const struct external_plan *plan = lanes->plan;
	struct reading_lane *lane = &lanes->lane[number];
	size_t reader_bytes = (size_t)plan->read_depth * plan->read_slot_bytes;
	struct file_source_request request = {
		.input = lanes->config.input,
		.worker_count = count_readers(lanes, number),
		.slot_bytes = plan->read_slot_bytes,
		.depth = plan->read_depth,
		.memory = memory + first_reader(lanes, number) * reader_bytes,
		.part_offset = plan->way == EXTERNAL_BY_KEYS
				       ? lanes->config.shape->keys.begin
				       : 0,
		.part_bytes = plan->batch.shape.size,
	};
	int error = 0;

	if (lanes->config.deal)
		request.deal = *lanes->config.deal;
	else
		error = deal_files(lanes, number, &request.deal, failure);
	return error ? error
		     : file_source_open(&lane->files, &request, failure);
}

int reading_lanes_open(struct reading_lanes *lanes,
		       const struct sort_wiring *wiring,
		       const struct record_shape *key_shape, uint8_t *memory,
		       struct failure *failure)
{
	int error = 0;

	for (unsigned l = 0; l < lanes->count; l++) {
		wire(&lanes->lane[l], &lanes->config, wiring, key_shape);
		if (lanes->counts)
			lanes->lane[l].counts =
				lanes->counts +
				first_reader(lanes, l) *
					record_counts_length(
						lanes->config.shape->size);
	}
	if (lanes->config.streams)
		return 0;
	probe_keys(lanes);
	for (unsigned l = 0; l < lanes->count && error == 0; l++)
		error = open_files(lanes, l, memory, failure);
	return error;
}

void reading_lanes_add_up(const struct reading_lanes *lanes,
			  uint64_t *read_bytes, uint64_t *wait_ns)
{
	for (unsigned l = 0; l < lanes->count; l++)
		file_source_add_up(&lanes->lane[l].files, read_bytes, wait_ns);
}

/* --- the end -------------------------------------------------------------- */

unsigned reading_lanes_copy_traces(const struct reading_lanes *lanes,
				   uint64_t origin_ns,
				   struct trace_process *processes,
				   struct trace_lane *trace_lanes)
{
	static const char *const names[] = { "read device 1", "read device 2",
					     "read device 3", "read device 4" };

	_Static_assert(ARRAY_LEN(names) == LANES_MAX, "each lane has a name");
	if (lanes->count == 1)
		return 0;
	for (unsigned l = 0; l < lanes->count; l++) {
		const struct sort_trace *trace = &lanes->lane[l].own_trace;

		processes[l] = (struct trace_process){
			.name = names[l],
			.origin_ns = origin_ns,
			.lanes = trace_lanes,
			.lane_count = trace->lane_count,
		};
		sort_trace_copy_lanes(trace, trace_lanes);
		trace_lanes += trace->lane_count;
	}
	return lanes->count;
}

void reading_lanes_end(struct reading_lanes *lanes)
{
	for (unsigned l = 0; l < lanes->count; l++) {
		struct reading_lane *lane = &lanes->lane[l];

		thread_pool_stop(&lane->own_readers);
		file_source_close(&lane->files);
		free(lane->batches);
		lane->batches = NULL;
	}
}

void reading_lanes_close(struct reading_lanes *lanes)
{
	reading_lanes_end(lanes);
	for (unsigned l = 0; l < lanes->count; l++)
		sort_trace_close(&lanes->lane[l].own_trace);
}
