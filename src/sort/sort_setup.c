#include "sort/sort_setup.h"

#include <stdlib.h>
#include <sys/stat.h>

#include "base/format.h"
#include "kernels/splitters.h"
#include "system/allowance.h"
#include "system/numa.h"

/* Without --memory, a plan of up to this is not compared with what the machine
 * has: where that is missing, more than a sort is in trouble. */
#define UNASKED_BYTES (32 * MIB)

/* Fewer workers for less data do not ask for a quota of CPU time: that takes
 * some tens of microseconds, while they would share a little of it. */
#define UNASKED_WORKERS 16
#define UNASKED_QUOTA_BYTES (256 * MIB)

unsigned sort_setup_workers(const struct sorter_config *config,
			    uint64_t record_count, unsigned cpu_count)
{
	unsigned allowed = MAX(1, MIN(cpu_count, THREAD_POOL_WORKERS_MAX));
	uint64_t bytes = record_count * config->shape.size;
	unsigned workers;

	if (config->threads > 0)
		return config->threads;
	workers = plan_workers(bytes, allowed);
	if (workers == 1 ||
	    (workers <= UNASKED_WORKERS && bytes < UNASKED_QUOTA_BYTES))
		return workers;
	return MIN(workers, allowance_quota_cpus());
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

/* What each output gets of so many records: nearly equal parts. */
static void divide(const struct sorter_config *config, uint64_t record_count,
		   uint64_t sizes_bytes[OUTPUT_FILES_MAX])
{
	for (unsigned i = 0; i < config->output_count; i++) {
		uint64_t begin = record_count * i / config->output_count;
		uint64_t end = record_count * (i + 1) / config->output_count;

		sizes_bytes[i] = (end - begin) * config->shape.size;
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
	if (config->outputs_are_devices)
		return output_open_devices(output, config->output_paths,
					   sizes_bytes, config->output_count,
					   &inputs, direct, failure);
	return output_open(output, config->output_paths, sizes_bytes,
			   config->output_count, direct, failure);
}

int sort_setup_output_sizes(struct output *output,
			    const struct sorter_config *config,
			    uint64_t record_count, struct failure *failure)
{
	uint64_t sizes_bytes[OUTPUT_FILES_MAX];

	divide(config, record_count, sizes_bytes);
	return output_set_sizes(output, sizes_bytes, failure);
}

int sort_setup_refuse_memory(const struct sorter_config *config,
			     uint64_t needed_bytes, unsigned sorts_on_machine,
			     struct failure *failure)
{
	uint64_t limit = config->memory_bytes;
	char needed[FORMAT_SIZE_BYTES], available[FORMAT_SIZE_BYTES];
	bool is_given = limit != 0;

	/* Asking takes 0.2 ms, a tenth of a small sort. */
	if (limit == 0 && needed_bytes <= UNASKED_BYTES)
		return 0;
	if (limit == 0)
		limit = allowance_memory_bytes() / sorts_on_machine;
	if (needed_bytes <= limit)
		return 0;
	format_size_up(needed, needed_bytes);
	format_size_down(available, limit);
	return failure_set(failure, EXIT_RESOURCES,
			   is_given ? "--memory" : "memory", 0,
			   "sorting this takes up to %s, and %s are %s", needed,
			   available, is_given ? "allowed" : "available");
}

/* Who refuses it: most often a limit that was set for this process. */
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
			    allowance_source_name(allowance.memory_source),
			    format_size_down(left, allowance.memory_bytes));
}

/* The plan's sizes, and what aligning so many pieces may lose. */
int sort_setup_arena(struct arena *arena, uint64_t bytes, uint64_t pieces,
		     struct failure *failure)
{
	uint64_t all = bytes + pieces * CACHE_PAIR_BYTES + PAGE_BYTES;
	int error = arena_map(arena, all);

	if (error)
		refuse_mapping(all, error, failure);
	return error;
}

void sort_setup_nodes(struct topology *topology,
		      const struct sorter_config *config, unsigned worker_count)
{
	if (worker_count > 1 && !config->ignores_nodes)
		topology_read_nodes(topology);
}

uint64_t sort_setup_worker_nodes(const struct topology *topology,
				 const struct thread_pool *pool)
{
	uint64_t nodes = 0;

	for (unsigned w = 0; w < pool->worker_count; w++)
		nodes |= (uint64_t)1 << topology->nodes[pool->workers[w].node];
	return nodes;
}

void sort_setup_spread(const struct arena *arena, uint64_t nodes)
{
	if (nodes & (nodes - 1))
		numa_interleave(arena->base, arena->size_bytes, nodes);
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
	unsigned slots = output_slots_wanted(output, pool->worker_count);
	size_t bytes = slots * plan->chunk_bytes;
	uint8_t *memory = arena_take(arena, bytes, PAGE_BYTES);

	if (output->direct && pool->node_count > 1)
		place_slots(output, memory, bytes);
	if (pool->node_count > 1)
		output_place_by_node(output, numa_nodes_of(topology));
	output_set_slots(output, memory, slots, plan->chunk_bytes);
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
		.by_node = output->by_node,
		.sink = &output->sink,
		.record_count = ORDERER_ALL_RECORDS,
	};
}

void sort_setup_fill_result(struct sorter_result *result,
			    const struct input *input,
			    const struct output *output,
			    const struct splitters *splitters,
			    unsigned worker_count, uint64_t memory_bytes)
{
	result->io = input->mode;
	result->output_direct = output->direct;
	result->splitters = splitters->kind;
	result->bucket_count = splitters->bucket_count;
	result->threads = worker_count;
	result->memory_bytes = memory_bytes;
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
