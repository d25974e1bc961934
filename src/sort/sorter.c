#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/format.h"
#include "sort/sorter_state.h"

/* Keys looked at before the run to tell their kind: from so many places of a
 * mapped file, or from its beginning. */
#define LOOK_RECORDS 512
#define LOOK_PLACES 32
#define LOOK_BYTES (64 * KIB)
#define LOOK_KEY_BYTES 8
/* Without --memory, a plan of up to this is not held against what the machine
 * has: where that is missing, more than a sort is in trouble. */
#define UNASKED_BYTES (32 * MIB)

void sorter_fail(struct sorter *sorter, const struct failure *failure)
{
	if (atomic_exchange_explicit(&sorter->failing, true,
				     memory_order_relaxed))
		return;
	sorter->failure = *failure;
	atomic_store_explicit(&sorter->stop, true, memory_order_release);
}

/* ------------------------------------------------------------- preparing */

void sorter_choose_kernels(struct sorter *sorter)
{
	const struct sorter_config *config = sorter->config;

	sorter->sort = local_sort_kernel(config->kernel);
	sorter->gather = gather_kernel(config->kernel, config->shape.size);
	sorter->sum = checksum_kernel(config->kernel, config->shape.size);
}

static int make_plan(struct sorter *sorter, struct failure *failure)
{
	const struct input *input = &sorter->input;
	struct plan_request request = {
		.shape = sorter->config->shape,
		.record_count = input->record_count,
		.slot_count = input->slot_count,
		.input_memory_bytes = input_memory_bytes(input),
		.members = sorter->threads.worker_count,
		.chunk_bytes_max = output_chunk_bytes_max(&sorter->output),
		.staging_slots = output_slots_wanted(
			&sorter->output, sorter->threads.worker_count),
	};

	if (plan_make(&sorter->plan, &request) < 0)
		return failure_set(failure, EXIT_RESOURCES, NULL, 0,
				   "%llu records are more than the %llu that "
				   "one run can sort",
				   (unsigned long long)input->record_count,
				   (unsigned long long)PLAN_RECORDS_MAX);
	return 0;
}

int sorter_refuse_memory(const struct sorter *sorter, uint64_t needed_bytes,
			 unsigned runs, struct failure *failure)
{
	uint64_t limit = sorter->config->memory_bytes;
	char needed[FORMAT_SIZE_BYTES], available[FORMAT_SIZE_BYTES];
	bool is_given = limit != 0;

	/* Asking takes 0.2 ms, a tenth of a small sort. */
	if (limit == 0 && needed_bytes <= UNASKED_BYTES)
		return 0;
	if (limit == 0)
		limit = topology_available_bytes() / runs;
	if (needed_bytes <= limit)
		return 0;
	format_size(needed, needed_bytes);
	format_size(available, limit);
	return failure_set(failure, EXIT_RESOURCES,
			   is_given ? "--memory" : "memory", 0,
			   "sorting this takes up to %s, and %s are %s", needed,
			   available, is_given ? "allowed" : "available");
}

/* Before anything is written; input that was to be read past the page cache is
 * mapped instead if only so it fits. */
static int check_memory(struct sorter *sorter, struct failure *failure)
{
	int error = sorter_refuse_memory(sorter, sorter->plan.memory_bytes, 1,
					 failure);

	if (error == 0 || sorter->config->io != INPUT_AUTO ||
	    sorter->input.mode == INPUT_MMAP)
		return error;
	sorter->input.mode = INPUT_MMAP;
	error = make_plan(sorter, failure);
	if (error)
		return error;
	return sorter_refuse_memory(sorter, sorter->plan.memory_bytes, 1,
				    failure);
}

static uint8_t *take(struct sorter *sorter, uint64_t count, size_t each_bytes)
{
	return arena_take(&sorter->arena, count * each_bytes, CACHE_PAIR_BYTES);
}

/* For all that the plan takes, but for the input. */
static int map_arena(struct sorter *sorter, const struct plan *plan)
{
	uint64_t taken = 16 + 4 * (uint64_t)sorter->threads.worker_count;

	return arena_map(&sorter->arena,
			 plan->memory_bytes -
				 input_memory_bytes(&sorter->input) +
				 taken * PAGE_BYTES);
}

/* Cut up in the order of use, so that what is touched lies together. */
static int lay_out_memory(struct sorter *sorter, struct failure *failure)
{
	const struct plan *plan = &sorter->plan;
	unsigned slots = output_slots_wanted(&sorter->output,
					     sorter->threads.worker_count);
	int error = sorter->arena.base ? 0 : map_arena(sorter, plan);

	if (error)
		return failure_set(failure, EXIT_RESOURCES, NULL, -error,
				   "memory");
	for (unsigned m = 0; m < sorter->threads.worker_count; m++) {
		struct sorter_member *member = &sorter->members[m];

		member->writer.pool = &sorter->pool;
		member->writer.lists =
			(void *)take(sorter, plan->list_count,
				     sizeof(*member->writer.lists));
		member->writer.cursors =
			(void *)take(sorter, plan->list_count,
				     sizeof(*member->writer.cursors));
		member->entries = (void *)take(sorter, plan->chunk_entries,
					       sizeof(*member->entries));
	}
	sorter->bucket_start = (void *)take(sorter, plan->list_count + 1, 4);
	sorter->pool.block_count = plan->block_count;
	sorter->pool.owners = (void *)take(sorter, plan->block_count, 4);
	sorter->pool.directory = (void *)take(sorter, plan->block_count, 4);
	sorter->pool.next_grant = (void *)take(
		sorter, plan->block_count / BUCKETS_GRANT_BLOCKS, 4);
	sorter->pool.entries = (void *)take(
		sorter, (uint64_t)plan->block_count * BUCKETS_BLOCK_ENTRIES, 8);
	output_set_slots(&sorter->output,
			 arena_take(&sorter->arena, slots * plan->chunk_bytes,
				    PAGE_BYTES),
			 slots, plan->chunk_bytes);
	/* Touched only when keys are not uniform. */
	sorter->big_start = (void *)take(sorter, plan->list_count, 4);
	sorter->sample = (void *)take(sorter, plan->sample_count, 8);
	sorter->sample_windows = (void *)take(sorter, plan->sample_count, 8);
	sorter->big_entries =
		(void *)take(sorter, sorter->input.record_count, 8);
	return 0;
}

/* Read from many places of a file in the page cache. */
static enum splitters_kind look_around(const struct sorter *sorter, bool *even,
				       struct failure *failure)
{
	uint8_t keys[LOOK_RECORDS * LOOK_KEY_BYTES];
	const struct record_shape *shape = &sorter->config->shape;
	uint32_t length = MIN(shape->key_length, LOOK_KEY_BYTES);
	const struct record_shape key = { .size = length,
					  .key_offset = 0,
					  .key_length = length };
	int error = input_peek_places(&sorter->input, shape->key_offset, length,
				      LOOK_RECORDS, LOOK_PLACES, keys, failure);

	if (error)
		return SPLITTERS_STATIC_256;
	return splitters_look(&key, keys, LOOK_RECORDS, 1, even);
}

enum splitters_kind sorter_look(const struct sorter *sorter, bool *even,
				struct failure *failure)
{
	const struct record_shape *shape = &sorter->config->shape;
	const struct input *input = &sorter->input;
	enum splitters_kind kind = SPLITTERS_STATIC_256;
	uint64_t wanted = MIN(LOOK_RECORDS, LOOK_BYTES / shape->size);
	uint8_t *buffer;
	int64_t count;

	*even = true;
	/* What is not cached is read from one place: each place is a seek.  In
	 * a short file places would lie upon each other, and keys seem to
	 * repeat.
	 */
	if (input->mode == INPUT_MMAP &&
	    input->files[0].record_count > LOOK_RECORDS)
		return look_around(sorter, even, failure);
	buffer = wanted > 0 ? malloc(LOOK_BYTES) : NULL;
	if (!buffer)
		return kind;
	count = input_peek(input, buffer, wanted, failure);
	if (count > 0)
		kind = splitters_look(shape, buffer, (uint64_t)count, 1, even);
	free(buffer);
	return kind;
}

static void choose_splitters(struct sorter *sorter, struct failure *failure)
{
	enum splitters_kind wanted = sorter->config->splitters;
	enum splitters_kind kind;
	bool even;

	kind = sorter_look(sorter, &even, failure);
	sorter->partition_while_reading = true;
	sorter->partitioned = true;
	if (wanted == SPLITTERS_STATIC || (wanted == SPLITTERS_AUTO && even) ||
	    sorter->input.record_count == 0) {
		splitters_init_static(&sorter->splitters, kind,
				      sorter->plan.bucket_count);
	} else {
		/* Sampled when all is in memory, or its pages are mapped. */
		sorter->partition_while_reading = false;
		sorter->partitioned = false;
	}
}

int sorter_open_outputs(struct sorter *sorter, uint64_t record_count,
			struct failure *failure)
{
	const struct sorter_config *config = sorter->config;
	uint64_t *sizes_bytes =
		calloc(config->output_count, sizeof(*sizes_bytes));
	bool direct;
	int error;

	if (!sizes_bytes)
		return failure_set(failure, EXIT_RESOURCES, NULL, ENOMEM,
				   "memory");
	for (unsigned i = 0; i < config->output_count; i++) {
		uint64_t begin = record_count * i / config->output_count;
		uint64_t end = record_count * (i + 1) / config->output_count;

		sizes_bytes[i] = (end - begin) * config->shape.size;
	}
	/* Past the page cache if asked for, or if it must reach the medium
	 * anyway: else the cache takes it at once, as it does from cp. */
	direct = config->io == INPUT_DIRECT ||
		 (config->io == INPUT_AUTO && config->sync);
	error = output_open(&sorter->output, config->output_paths, sizes_bytes,
			    config->output_count, direct, failure);
	free(sizes_bytes);
	return error;
}

/* The timeline must not take the place of what is being sorted. */
int sorter_open_trace(struct sorter *sorter, struct failure *failure)
{
	const char *path = sorter->config->trace_path;
	int error;

	if (!path)
		return 0;
	error = outfile_open(&sorter->trace, path, failure);
	if (error)
		return error;
	for (unsigned i = 0; i < sorter->output.file_count; i++)
		if (outfile_same_target(&sorter->trace,
					&sorter->output.files[i].outfile))
			return failure_set(failure, EXIT_USAGE, path, 0,
					   "is an output file, too");
	for (unsigned i = 0; i < sorter->input.file_count; i++)
		if (outfile_replaces(&sorter->trace,
				     sorter->input.files[i].device,
				     sorter->input.files[i].inode))
			return failure_set(failure, EXIT_USAGE, path, 0,
					   "is an input file, too");
	return 0;
}

int sorter_start_team(struct sorter *sorter, unsigned members,
		      struct failure *failure)
{
	int error =
		thread_pool_start(&sorter->threads, members, &sorter->topology);

	if (error)
		return failure_set(failure, EXIT_RESOURCES, NULL, -error,
				   "threads");
	return 0;
}

static unsigned members_wanted(const struct sorter *sorter)
{
	const struct sorter_config *config = sorter->config;

	if (config->threads > 0)
		return config->threads;
	return plan_members(
		sorter->input.record_count * config->shape.size,
		MIN(sorter->topology.cpu_count, THREAD_POOL_WORKERS_MAX));
}

void sorter_count_chunks(struct sorter *sorter)
{
	sorter->chunk_count = 0;
	for (unsigned i = 0; i < sorter->output.file_count; i++)
		sorter->chunk_count +=
			DIV_ROUND_UP(sorter->output.files[i].size_bytes,
				     sorter->plan.chunk_bytes);
}

int sorter_trace_lanes(struct sorter *sorter, struct failure *failure)
{
	int error = 0;

	for (unsigned m = 0; sorter->config->trace_path &&
			     m < sorter->threads.worker_count && error == 0;
	     m++)
		error = trace_lane_init(&sorter->members[m].lane,
					SORTER_TRACE_SPANS);
	if (error)
		return failure_set(failure, EXIT_RESOURCES, NULL, -error,
				   "memory");
	return 0;
}

static int prepare(struct sorter *sorter, struct failure *failure)
{
	int error = sorter_open_outputs(sorter, sorter->input.record_count,
					failure);

	if (error == 0)
		error = sorter_open_trace(sorter, failure);
	if (error == 0)
		error = make_plan(sorter, failure);
	if (error == 0)
		error = check_memory(sorter, failure);
	if (error == 0)
		error = lay_out_memory(sorter, failure);
	if (error)
		return error;
	error = input_map(&sorter->input, failure);
	if (error)
		return error;
	sorter_choose_kernels(sorter);
	choose_splitters(sorter, failure);
	sorter->index_mask = ~(UINT64_MAX << sorter->plan.index_bits);
	sorter->base = sorter->input.base;
	/* Ordering begins when all have met after bucketing. */
	atomic_store_explicit(&sorter->ready_buckets, SORTER_ALL_READY,
			      memory_order_relaxed);
	sorter->ties = (struct ties){
		.shape = &sorter->config->shape,
		.records = sorter->base,
		.index_bits = sorter->plan.index_bits,
		.sort = sorter->sort,
		.any = tied_kernel(sorter->config->kernel),
	};
	sorter_count_chunks(sorter);
	return sorter_trace_lanes(sorter, failure);
}

/* --------------------------------------------------------------- running */

/* Parts of a mapped input that are forgotten one by one: small enough to be
 * shared out, and to look for something to write in between. */
#define FORGET_BYTES_MIN (2 * MIB)
#define FORGET_PARTS_MAX 16
/* Others' last chunks are waited for as long as this may be worth it: they may
 * wait for a slow disk, or never come, if the output has failed. */
#define FORGET_WAIT_NS 3000000

static bool all_is_gathered(const struct sorter *sorter)
{
	return atomic_load_explicit(&sorter->gathered_chunks,
				    memory_order_acquire) ==
	       sorter->chunk_count;
}

/*
 * Who has nothing left to sort clears the page tables of the input, which the
 * kernel would do at the exit, with one CPU: a fifth of a millisecond for 6 MB
 * of small pages, 3 for 100 MB, while another member is writing.
 */
static void forget_input(struct sorter *sorter)
{
	uint64_t until_ns = clock_now_ns() + FORGET_WAIT_NS;
	uint64_t bytes =
		sorter->input.record_count * sorter->config->shape.size;
	uint32_t parts = (uint32_t)MIN(MAX(1, bytes / FORGET_BYTES_MIN),
				       FORGET_PARTS_MAX);

	while (!all_is_gathered(sorter)) {
		if (!sorter->threads.spins || clock_now_ns() > until_ns)
			return;
		sched_yield();
	}
	for (;;) {
		uint32_t part = atomic_fetch_add_explicit(&sorter->next_part, 1,
							  memory_order_relaxed);

		if (part >= parts)
			break;
		input_forget(&sorter->input, part, parts);
		output_help(&sorter->output);
	}
}

static void run_member(void *context, unsigned member)
{
	struct sorter *sorter = context;

	if (!bucketing_run(sorter, member))
		return;
	if (member == 0)
		sorter->result->bucketed_ns = clock_now_ns();
	if (ordering_run(sorter, member))
		forget_input(sorter);
}

static int run_team(struct sorter *sorter, struct failure *failure)
{
	thread_pool_run_last(&sorter->threads, run_member, sorter);
	sorter->result->ordered_ns = clock_now_ns();
	if (!atomic_load_explicit(&sorter->stop, memory_order_acquire))
		return 0;
	*failure = sorter->failure;
	return -EIO;
}

static void fill_result(struct sorter *sorter)
{
	struct sorter_result *result = sorter->result;

	result->record_count = sorter->input.record_count;
	result->size_bytes = result->record_count * sorter->config->shape.size;
	result->io = sorter->input.mode;
	result->output_direct = sorter->output.direct;
	result->splitters = sorter->splitters.kind;
	result->bucket_count = sorter->splitters.bucket_count;
	result->threads = sorter->threads.worker_count;
	result->memory_bytes = sorter->plan.memory_bytes;
	for (unsigned m = 0; m < sorter->threads.worker_count; m++)
		result->checksum += sorter->members[m].checksum;
}

/* Before the output gets its name: what can fail here fails the run. */
int sorter_write_trace(struct sorter *sorter, struct failure *failure)
{
	struct trace_lane lanes[THREAD_POOL_WORKERS_MAX];
	unsigned members = sorter->threads.worker_count;
	int fd = dup(sorter->trace.fd);
	FILE *stream = fd < 0 ? NULL : fdopen(fd, "w");
	int error;

	if (!stream) {
		error = errno;
		if (fd >= 0)
			close(fd);
		return failure_set(failure, EXIT_FILE, sorter->trace.path,
				   error, "cannot write");
	}
	for (unsigned m = 0; m < members; m++)
		lanes[m] = sorter->members[m].lane;
	error = trace_write(stream, "blinksort", sorter->result->begin_ns,
			    lanes, members);
	if (fclose(stream) == EOF || error)
		return failure_set(failure, EXIT_FILE, sorter->trace.path,
				   error ? -error : errno, "cannot write");
	return 0;
}

/* What member 1 does while member 0 prepares: touch the memory's first huge
 * page, in a byte that nobody else uses.  Not by madvise(2), which keeps member
 * 0 from mapping its input meanwhile. */
static void touch_memory(void *context, unsigned member)
{
	struct sorter *sorter = context;

	if (member == 1)
		atomic_store_explicit(sorter->touched, true,
				      memory_order_relaxed);
}

/*
 * Before it is known what the outputs want, room for as much as they may, so
 * that its first huge page is ready when it is needed: that takes 0.15 to 0.3
 * ms, a fifth of a small sort.  Without that room there will be just enough
 * later.
 */
static void reserve_memory(struct sorter *sorter)
{
	unsigned members = sorter->threads.worker_count;
	struct plan_request request = {
		.shape = sorter->config->shape,
		.record_count = sorter->input.record_count,
		.slot_count = sorter->input.slot_count,
		.input_memory_bytes = input_memory_bytes(&sorter->input),
		.members = members,
		.chunk_bytes_max = OUTPUT_CHUNK_BYTES_MAX,
		.staging_slots = output_slots_max(members),
	};
	struct plan plan;

	if (members == 1 || plan_make(&plan, &request) < 0 ||
	    map_arena(sorter, &plan) < 0)
		return;
	sorter->touched = (void *)take(sorter, 1, sizeof(*sorter->touched));
	thread_pool_launch(&sorter->threads, touch_memory, sorter);
}

static int sort_files(struct sorter *sorter, struct failure *failure)
{
	const struct sorter_config *config = sorter->config;
	int error = input_open(&sorter->input, config->input_paths,
			       config->input_count, config->shape.size,
			       config->io, failure);

	if (error)
		return error;
	/* As early as there is something to tell how many: a CPU that has been
	 * idle takes its time, and the rest is prepared meanwhile. */
	topology_read(&sorter->topology);
	error = sorter_start_team(sorter, members_wanted(sorter), failure);
	if (error)
		return error;
	input_choose(&sorter->input);
	reserve_memory(sorter);
	error = prepare(sorter, failure);
	if (error) {
		thread_pool_stop(&sorter->threads);
		return error;
	}
	sorter->result->prepared_ns = clock_now_ns();
	if (sorter->input.record_count > 0) {
		error = run_team(sorter, failure);
	} else {
		thread_pool_stop(&sorter->threads);
		sorter->result->bucketed_ns = sorter->result->prepared_ns;
		sorter->result->ordered_ns = sorter->result->prepared_ns;
	}
	if (error == 0)
		error = input_check(&sorter->input, failure);
	if (error == 0 && sorter->config->trace_path)
		error = sorter_write_trace(sorter, failure);
	if (error == 0)
		error = output_commit(
			&sorter->output, sorter->config->sync,
			sorter->config->trace_path ? &sorter->trace : NULL,
			failure);
	sorter->result->committed_ns = clock_now_ns();
	if (error)
		return error;
	fill_result(sorter);
	return 0;
}

int sorter_run(const struct sorter_config *config, struct sorter_result *result,
	       struct failure *failure)
{
	/* Too large for a stack, and zeroed by the system only where touched;
	 * a process sorts once. */
	static struct sorter sorter;
	int error;

	memset(result, 0, sizeof(*result));
	result->begin_ns = clock_now_ns();
	sorter.config = config;
	sorter.result = result;
	sorter.trace = (struct outfile)OUTFILE_NONE;
	error = sort_files(&sorter, failure);
	for (unsigned m = 0; m < sorter.threads.worker_count; m++)
		trace_lane_fini(&sorter.members[m].lane);
	outfile_close(&sorter.trace);
	output_close(&sorter.output);
	return error;
}
