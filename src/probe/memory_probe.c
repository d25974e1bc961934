/*
 * memory_probe.c - measures how fast memory is, by pattern, area and block
 */
#include "probe/memory_probe.h"

#include <errno.h>
#include <stdbool.h>

#include "base/base.h"
#include "base/clock.h"
#include "system/allowance.h"
#include "system/arena.h"
#include "system/numa.h"
#include "system/thread_pool.h"

/* A vector for which every x86-64 and arm64 CPU has registers. */
typedef uint64_t vector __attribute__((vector_size(16)));

#define LINE_VECTORS (MEMORY_PROBE_LINE_BYTES / sizeof(vector))

struct worker {
	const struct memory_probe *probe;
	struct arena arena;
	uint64_t begin_ns, end_ns; /* of the last round */
	uint64_t random;
	uint64_t sum; /* so that no reading is left out */
	int error;
};

/* xorshift64: the next block must not cost more than the access. */
static uint64_t next_random(uint64_t *state)
{
	uint64_t x = *state;

	x ^= x << 13;
	x ^= x >> 7;
	x ^= x << 17;
	return *state = x;
}

static uint64_t read_block(const uint8_t *block, uint64_t bytes)
{
	const vector *at = (const vector *)(const void *)block;
	vector a = { 0 }, b = { 0 }, c = { 0 }, d = { 0 };

	for (uint64_t i = 0; i < bytes / sizeof(vector); i += LINE_VECTORS) {
		a += at[i];
		b += at[i + 1];
		c += at[i + 2];
		d += at[i + 3];
	}
	a += b + c + d;
	return a[0] + a[1];
}

static void write_block(uint8_t *block, uint64_t bytes, uint64_t value)
{
	vector *at = (vector *)(void *)block;
	vector fill = { value, value };

	for (uint64_t i = 0; i < bytes / sizeof(vector); i++)
		at[i] = fill;
}

static void copy_block(uint8_t *to, const uint8_t *from, uint64_t bytes)
{
	vector *out = (vector *)(void *)to;
	const vector *in = (const vector *)(const void *)from;

	for (uint64_t i = 0; i < bytes / sizeof(vector); i++)
		out[i] = in[i];
}

/* Every line's first word becomes the number of the line to go to next: one
 * cycle through all of them in random order (Sattolo, 1986). */
static void link_lines(struct worker *worker)
{
	uint64_t lines = worker->probe->area_bytes / MEMORY_PROBE_LINE_BYTES;
	uint8_t *base = worker->arena.base;
	uint64_t step = MEMORY_PROBE_LINE_BYTES;

	for (uint64_t i = 0; i < lines; i++)
		memcpy(base + i * step, &i, sizeof(i));
	for (uint64_t i = lines - 1; i > 0; i--) {
		uint64_t j = next_random(&worker->random) % i;
		uint64_t mine, other;

		memcpy(&mine, base + i * step, sizeof(mine));
		memcpy(&other, base + j * step, sizeof(other));
		memcpy(base + i * step, &other, sizeof(other));
		memcpy(base + j * step, &mine, sizeof(mine));
	}
}

static void chase(struct worker *worker)
{
	const uint8_t *base = worker->arena.base;
	uint64_t count = memory_probe_accesses(worker->probe);
	uint64_t line = 0;

	for (uint64_t i = 0; i < count; i++)
		memcpy(&line, base + line * MEMORY_PROBE_LINE_BYTES,
		       sizeof(line));
	worker->sum += line;
}

static void move_blocks(struct worker *worker)
{
	const struct memory_probe *probe = worker->probe;
	uint64_t bytes = probe->block_bytes;
	uint64_t half = probe->area_bytes / 2;
	uint64_t span =
		probe->pattern == MEMORY_COPY ? half : probe->area_bytes;
	uint64_t blocks = span / bytes;
	uint64_t count = memory_probe_accesses(probe);
	bool is_random = probe->pattern == MEMORY_RANDOM ||
			 probe->pattern == MEMORY_RANDOM_WRITE;
	uint8_t *base = worker->arena.base;
	uint64_t sum = 0;

	for (uint64_t i = 0, next = 0; i < count; i++) {
		uint64_t at =
			is_random ? next_random(&worker->random) & (blocks - 1)
				  : next;
		uint8_t *block = base + at * bytes;

		next = next + 1 == blocks ? 0 : next + 1;
		switch (probe->pattern) {
		case MEMORY_READ:
		case MEMORY_RANDOM:
			sum += read_block(block, bytes);
			break;
		case MEMORY_WRITE:
		case MEMORY_RANDOM_WRITE:
			write_block(block, bytes, i);
			break;
		default:
			copy_block(block + half, block, bytes);
		}
	}
	worker->sum += sum;
	/* No other code reads the stored bytes: keep the compiler from dropping
	 * the stores. */
	__asm__ volatile("" : : "r"(base) : "memory");
}

static void prepare(void *context, unsigned number)
{
	struct worker *worker = (struct worker *)context + number;

	worker->random = 0x9e3779b97f4a7c15 * (number + 1);
	worker->error = arena_map(&worker->arena, worker->probe->area_bytes);
	if (worker->error)
		return;
	if (worker->probe->memory_node >= 0)
		numa_prefer(worker->arena.base, worker->arena.size_bytes,
			    (unsigned)worker->probe->memory_node);
	write_block(worker->arena.base, worker->probe->area_bytes, 1);
	if (worker->probe->pattern == MEMORY_CHASE)
		link_lines(worker);
}

static void go_over(void *context, unsigned number)
{
	struct worker *worker = (struct worker *)context + number;

	worker->begin_ns = clock_now_ns();
	if (worker->probe->pattern == MEMORY_CHASE)
		chase(worker);
	else
		move_blocks(worker);
	worker->end_ns = clock_now_ns();
}

uint64_t memory_probe_accesses(const struct memory_probe *probe)
{
	return MAX(1, probe->round_bytes / probe->block_bytes);
}

/* From the first worker's begin to the last one's end. */
static uint64_t round_ns(const struct worker *workers, unsigned count)
{
	uint64_t begin_ns = workers[0].begin_ns, end_ns = workers[0].end_ns;

	for (unsigned i = 1; i < count; i++) {
		begin_ns = MIN(begin_ns, workers[i].begin_ns);
		end_ns = MAX(end_ns, workers[i].end_ns);
	}
	return end_ns - begin_ns;
}

/* The CPUs that threads may run on. */
static int choose_cpus(struct topology *topology, int node,
		       struct failure *failure)
{
	unsigned count = 0;

	topology_read(topology);
	if (node < 0)
		return 0;
	topology_read_nodes(topology);
	for (unsigned i = 0; i < topology->cpu_count; i++)
		if (topology->nodes[topology->node_of[i]] == node)
			topology->cpus[count++] = topology->cpus[i];
	topology->cpu_count = count;
	if (count > 0)
		return 0;
	return failure_set(failure, EXIT_USAGE, "--cpu-node", 0,
			   "node %d has no CPU that this process may use",
			   node);
}

static int areas_failed(const struct memory_probe *probe, int error,
			struct failure *failure)
{
	return failure_set(failure, EXIT_RESOURCES, NULL, error,
			   "%u areas of %llu bytes", probe->threads,
			   (unsigned long long)probe->area_bytes);
}

int memory_probe_run(const struct memory_probe *probe,
		     struct memory_figures *figures, struct failure *failure)
{
	static struct worker workers[THREAD_POOL_WORKERS_MAX];
	static struct thread_pool pool;
	static struct topology topology;
	bool asks_node = probe->cpu_node >= 0 || probe->memory_node >= 0;
	int error = choose_cpus(&topology, probe->cpu_node, failure);

	if (error)
		return error;
	/* The threads will access all of it. */
	if (probe->area_bytes > allowance_memory_bytes() / probe->threads)
		return areas_failed(probe, ENOMEM, failure);
	for (unsigned i = 0; i < probe->threads; i++)
		workers[i] = (struct worker){ .probe = probe };
	error = thread_pool_start(&pool, probe->threads, THREAD_POOL_ALL,
				  &topology, failure);
	if (error)
		return error;
	/* The pool leaves a lone worker where it is. */
	topology_pin_self(pool.workers[0].cpu);
	thread_pool_run(&pool, prepare, workers);
	/* The areas have been written, and no round has begun. */
	for (unsigned i = 0; i < probe->threads && error == 0; i++) {
		error = workers[i].error;
		if (error == 0 && asks_node)
			(void)numa_count(workers[i].arena.base,
					 probe->area_bytes, figures->bytes_on);
	}
	for (unsigned i = 0; i < probe->rounds && error == 0; i++) {
		thread_pool_run(&pool, go_over, workers);
		figures->samples_ns[i] = round_ns(workers, probe->threads);
	}
	thread_pool_stop(&pool);
	for (unsigned i = 0; i < probe->threads; i++)
		arena_unmap(&workers[i].arena);
	return error ? areas_failed(probe, -error, failure) : 0;
}
