/*
 * sort_setup.c - workers, outputs, memory and slots for a sort
 */
#include "sort/sort_setup.h"

#include <sys/stat.h>

#include "base/format.h"
#include "system/allowance.h"
#include "system/numa.h"
#include "system/ramdisk.h"

/* Without --memory, a plan of up to this is not compared with what the machine
 * has: where that is missing, more than a sort is in trouble. */
#define UNASKED_BYTES (32 * MIB)

/* So few workers for less data do not ask for a quota of CPU time: to ask takes
 * some tens of microseconds, and so short a sort is hardly slowed down by a
 * quota. */
#define UNASKED_WORKERS 16
#define UNASKED_QUOTA_BYTES (256 * MIB)

struct input_layout sort_setup_layout(const struct sorter_config *config)
{
	return (struct input_layout){
		.record_size = sorter_input_size(config),
		.device_bytes = config->device_bytes,
		.header_bytes = config->header_bytes,
		.keeps_header = !config->drops_header,
		.refuses_npy = !config->header_is_known,
	};
}

int sort_setup_input(struct input *input, const struct sorter_config *config,
		     bool is_read, struct failure *failure)
{
	const struct input_layout layout = sort_setup_layout(config);

	return input_open(input, config->input_paths,
			  is_read ? config->input_count : 0, &layout,
			  config->io, failure);
}

uint64_t sort_setup_header_bytes(const struct sorter_config *config)
{
	return config->drops_header ? 0 : config->header_bytes;
}

unsigned sort_setup_workers(const struct sorter_config *config,
			    uint64_t record_count, unsigned cpu_count,
			    const char **source)
{
	unsigned allowed = MAX(1, MIN(cpu_count, THREAD_POOL_WORKERS_MAX));
	uint64_t bytes = record_count * config->shape.size;
	unsigned useful, workers;

	*source = "--threads";
	if (config->threads > 0)
		return config->threads;
	if (config->threads_max > 0)
		allowed = MIN(allowed, config->threads_max);
	useful = plan_workers(bytes, false, allowed);
	if (plan_workers(bytes, true, allowed) < useful &&
	    sort_setup_output_memory(config, record_count) > 0)
		useful = plan_workers(bytes, true, allowed);
	workers = useful;
	if (useful > UNASKED_WORKERS ||
	    (useful > 1 && bytes >= UNASKED_QUOTA_BYTES))
		workers = MIN(useful, allowance_quota_cpus());
	*source = workers >= allowed  ? "cpus"
		  : workers == useful ? "input"
				      : "quota";
	return workers;
}

int sort_setup_plan(struct plan *plan, const struct plan_request *request,
		    struct failure *failure)
{
	if (plan_make(plan, request) == 0)
		return 0;
	return failure_set(failure, EXIT_RESOURCES, NULL, 0,
			   "%llu records are more than the %llu that one "
			   "process can sort",
			   (unsigned long long)request->record_count,
			   (unsigned long long)PLAN_RECORDS_MAX);
}

/* What each output gets of so many sorted records: nearly equal parts of those
 * that are written. */
static void divide(const struct sorter_config *config, uint64_t record_count,
		   uint64_t sizes_bytes[OUTPUT_FILES_MAX])
{
	record_count = sorter_config_written(config, record_count);
	for (unsigned i = 0; i < config->output_count; i++) {
		uint64_t begin = record_count * i / config->output_count;
		uint64_t end = record_count * (i + 1) / config->output_count;

		sizes_bytes[i] = (end - begin) * sorter_written(config).bytes;
	}
}

int sort_setup_outputs(struct output *output,
		       const struct sorter_config *config,
		       uint64_t record_count, struct failure *failure)
{
	uint64_t sizes_bytes[OUTPUT_FILES_MAX] = { 0 };
	const struct output_inputs inputs = { config->input_paths,
					      config->input_count };
	bool reaches_medium = config->sync || config->outputs_are_devices;
	bool direct;

	if (!config->unique)
		divide(config, record_count, sizes_bytes);
	/* Past the page cache if the user asks for it, or if the output must
	 * reach the medium anyway: else the cache takes it at once, as it does
	 * from cp. */
	direct = config->io == INPUT_DIRECT ||
		 (config->io == INPUT_AUTO && reaches_medium);
	return output_open(
		output, config->output_paths, sizes_bytes, config->output_count,
		sort_setup_header_bytes(config),
		config->outputs_are_devices ? &inputs : NULL, direct, failure);
}

int sort_setup_output_sizes(struct output *output,
			    const struct sorter_config *config,
			    uint64_t record_count, struct failure *failure)
{
	uint64_t sizes_bytes[OUTPUT_FILES_MAX];

	divide(config, record_count, sizes_bytes);
	return output_set_sizes(output, sizes_bytes, failure);
}

uint64_t sort_setup_output_memory(const struct sorter_config *config,
				  uint64_t record_count)
{
	uint64_t sizes_bytes[OUTPUT_FILES_MAX], sum = 0;

	if (config->outputs_are_devices)
		return 0;
	divide(config, record_count, sizes_bytes);
	for (unsigned i = 0; i < config->output_count; i++)
		if (ramdisk_has(config->output_paths[i]))
			sum += sizes_bytes[i];
	return sum;
}

void sort_setup_ask_memory(struct sort_memory *memory,
			   const struct sorter_config *config,
			   uint64_t record_count, unsigned sorts_on_machine)
{
	uint64_t output = sort_setup_output_memory(config, record_count);
	struct allowance allowance;

	allowance_read(&allowance);
	memory->source = allowance_source_names[allowance.memory_source];
	memory->output_bytes =
		less_or_none(output, allowance.swap_bytes / sorts_on_machine);
	memory->file_bytes = less_or_none(
		allowance.file_bytes / sorts_on_machine, memory->output_bytes);
	memory->bytes = MIN(allowance.memory_bytes / sorts_on_machine,
			    memory->file_bytes);
}

/* What the sort may take; UINT64_MAX: it takes too little to ask.  The machine
 * is asked in spite of --memory if an output is memory itself: the user may not
 * know of that. */
static void find_limit(struct sort_memory *limit,
		       const struct sorter_config *config,
		       uint64_t needed_bytes, uint64_t record_count,
		       unsigned sorts_on_machine)
{
	uint64_t given = config->memory_bytes;
	uint64_t size = record_count * config->shape.size;
	bool must_ask = given == 0 && needed_bytes > UNASKED_BYTES;
	const struct sort_memory unasked = {
		.bytes = given > 0 ? given : UINT64_MAX,
		.source = given > 0 ? config->memory_option : NULL,
	};

	*limit = unasked;
	if (must_ask || (needed_bytes + size > UNASKED_BYTES &&
			 sort_setup_output_memory(config, record_count) > 0))
		sort_setup_ask_memory(limit, config, record_count,
				      sorts_on_machine);
	if (limit->bytes > unasked.bytes)
		*limit = unasked;
}

int sort_setup_refuse_memory(const struct sorter_config *config,
			     uint64_t needed_bytes, uint64_t record_count,
			     unsigned sorts_on_machine, struct failure *failure)
{
	char needed[FORMAT_SIZE_BYTES], available[FORMAT_SIZE_BYTES];
	struct sort_memory limit;
	bool is_given;

	find_limit(&limit, config, needed_bytes, record_count,
		   sorts_on_machine);
	if (needed_bytes <= limit.bytes)
		return 0;
	is_given = limit.bytes == config->memory_bytes;
	format_size_up(needed, needed_bytes);
	format_size_down(available, limit.bytes);
	return failure_set(
		failure, EXIT_RESOURCES,
		is_given ? config->memory_option : "memory", 0,
		"sorting this takes up to %s, and %s are %s%s", needed,
		available, is_given ? "allowed" : "available",
		limit.output_bytes > 0 ? " beside the output, which is memory"
				       : "");
}

static int plan_output(struct plan *plan, struct plan_request *request,
		       const struct output *output)
{
	request->chunk_bytes_max = output_chunk_bytes_max(output);
	request->staging_slots =
		output_slots_wanted(output, request->worker_count);
	return plan_make(plan, request);
}

/* Page cache that an input takes which is mapped: records are gathered from all
 * over it, so its pages must stay there.  A tmpfs has them anyway. */
static uint64_t mapped_bytes(const struct plan_request *request,
			     const struct sorter_config *config)
{
	unsigned in_memory = 0;

	if (request->input_memory_bytes > 0)
		return 0;
	while (in_memory < config->input_count &&
	       ramdisk_has(config->input_paths[in_memory]))
		in_memory++;
	if (in_memory == config->input_count)
		return 0;
	return request->record_count * request->shape.size;
}

unsigned sort_setup_fitting_workers(struct plan *plan,
				    const struct plan_request *request,
				    const struct sorter_config *config,
				    const struct output *output,
				    struct sorter_result *result)
{
	struct plan_request tried = *request;
	struct sort_memory limit;
	struct plan fewer;

	if (plan_output(plan, &tried, output) < 0)
		return 0;
	find_limit(&limit, config, plan->memory_bytes, tried.record_count, 1);
	/* The cache counts as free where the machine was asked. */
	if (limit.bytes != config->memory_bytes && limit.source)
		limit.bytes =
			less_or_none(limit.bytes, mapped_bytes(&tried, config));
	result->memory_source = limit.source;
	result->memory_bytes = plan->memory_bytes;
	if (plan->memory_bytes <= limit.bytes)
		return tried.worker_count;
	/* The half of the workers, the quarter or less. */
	while (config->threads == 0 && tried.worker_count > 1) {
		tried.worker_count /= 2;
		if (plan_output(&fewer, &tried, output) == 0 &&
		    fewer.memory_bytes <= limit.bytes)
			return tried.worker_count;
	}
	return 0;
}

/* Tell what has refused the memory: most often a limit of this process. */
static void refuse_mapping(uint64_t bytes, int error, struct failure *failure)
{
	char wanted[FORMAT_SIZE_BYTES], left[FORMAT_SIZE_BYTES];
	struct allowance allowance;

	allowance_read(&allowance);
	if (bytes <= allowance.memory_bytes)
		failure_set(failure, EXIT_RESOURCES, NULL, -error, "memory");
	else
		failure_set(failure, EXIT_RESOURCES, "memory", 0,
			    "%s cannot be mapped: %s leaves %s",
			    format_size_up(wanted, bytes),
			    allowance_source_names[allowance.memory_source],
			    format_size_down(left, allowance.memory_bytes));
}

/* The plan's sizes, and what aligning so many pieces may lose. */
int sort_setup_arena(struct arena *arena, uint64_t bytes, uint64_t pieces,
		     uint64_t nodes, struct failure *failure)
{
	uint64_t all = bytes + pieces * CACHE_PAIR_BYTES + PAGE_BYTES;
	int error = arena_map(arena, all);

	if (error)
		refuse_mapping(all, error, failure);
	else if (nodes & (nodes - 1))
		numa_interleave(arena->base, arena->size_bytes, nodes);
	return error;
}

uint64_t sort_setup_worker_nodes(const struct topology *topology,
				 const struct thread_pool *pool)
{
	uint64_t nodes = 0;

	for (unsigned w = 0; w < pool->worker_count; w++)
		nodes |= (uint64_t)1 << topology->nodes[pool->workers[w].node];
	return nodes;
}

/* The disk reads them from its own node. */
static void place_slots(const struct output *output, uint8_t *memory,
			size_t bytes)
{
	struct stat status;
	int node;

	if (fstat(output->files[0].write_fd, &status) < 0)
		return;
	node = numa_node_of_disk(S_ISBLK(status.st_mode) ? status.st_rdev
							 : status.st_dev);
	if (node >= 0)
		numa_prefer(memory, bytes, (unsigned)node);
}

void sort_setup_slots(struct output *output, const struct plan *plan,
		      const struct thread_pool *pool,
		      const struct topology *topology, struct arena *arena)
{
	size_t bytes = plan->staging_slots * plan->chunk_bytes;
	uint8_t *memory = arena_take(arena, bytes, PAGE_BYTES);

	if (output->direct && pool->node_count > 1)
		place_slots(output, memory, bytes);
	if (pool->node_count > 1)
		output_place_by_node(output, numa_nodes_of(topology));
	output_set_slots(output, memory, plan->staging_slots,
			 plan->chunk_bytes);
}

struct orderer_config sort_setup_orderer(const struct sorter_config *config,
					 const struct plan *plan,
					 const uint8_t *base,
					 struct output *output)
{
	return (struct orderer_config){
		.index_bits = plan->index_bits,
		.base = base,
		.chunk_entries = plan->chunk_entries,
		.sums_up = config->checksum,
		.drops_duplicates = config->unique,
		.keeps_last = config->unique == UNIQUE_LAST,
		.by_node = output->by_node,
		.sink = &output->sink,
		.written = { 0, config->shape.size },
		.record_count = ORDERER_ALL_RECORDS,
	};
}

void sort_setup_fill_nodes(struct sorter_result *result,
			   const struct topology *topology,
			   const struct thread_pool *pool,
			   const struct arena *const *arenas,
			   unsigned arena_count)
{
	struct sorter_node on[TOPOLOGY_NODES_MAX] = { 0 };
	uint64_t bytes_on[TOPOLOGY_NODES_MAX] = { 0 };

	result->knows_node_memory = true;
	for (unsigned i = 0; i < arena_count; i++)
		if (!numa_count(arenas[i]->base, arenas[i]->size_bytes,
				bytes_on))
			result->knows_node_memory = false;
	for (unsigned w = 0; w < pool->worker_count; w++)
		on[topology->nodes[pool->workers[w].node]].workers++;
	result->node_count = 0;
	for (unsigned i = 0; i < TOPOLOGY_NODES_MAX; i++) {
		on[i].node = i;
		on[i].memory_bytes = bytes_on[i];
		if (on[i].workers > 0 || bytes_on[i] > 0)
			result->nodes[result->node_count++] = on[i];
	}
}
