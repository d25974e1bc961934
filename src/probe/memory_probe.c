/*
 * memory_probe.c - measures how fast memory is, by pattern, area and block
 */
#include "probe/memory_probe.h"

#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>

#include "base/base.h"
#include "base/clock.h"
#include "system/allowance.h"
#include "system/arena.h"
#include "system/numa.h"

/* A vector for which every x86-64 and arm64 CPU has registers. */
typedef uint64_t vector __attribute__((vector_size(16)));

#define LINE_VECTORS (MEMORY_PROBE_LINE_BYTES / sizeof(vector))

struct worker {
	const struct memory_probe *probe;
	pthread_barrier_t *barrier;
	pthread_t thread;
	unsigned number;
	uint16_t cpu;
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

static void worker_prepare(struct worker *worker)
{
	worker->random = 0x9e3779b97f4a7c15 * (worker->number + 1);
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

static void go_over(struct worker *worker)
{
	worker->begin_ns = clock_now_ns();
	if (worker->probe->pattern == MEMORY_CHASE)
		chase(worker);
	else
		move_blocks(worker);
	worker->end_ns = clock_now_ns();
}

static void *worker_main(void *argument)
{
	struct worker *worker = argument;

	topology_pin_self(worker->cpu);
	worker_prepare(worker);
	pthread_barrier_wait(worker->barrier);
	for (unsigned i = 0; i < worker->probe->rounds; i++) {
		pthread_barrier_wait(worker->barrier);
		if (worker->error == 0)
			go_over(worker);
		pthread_barrier_wait(worker->barrier);
	}
	arena_unmap(&worker->arena);
	return NULL;
}

uint64_t memory_probe_accesses(const struct memory_probe *probe)
{
	return MAX(1, probe->round_bytes / probe->block_bytes);
}

uint64_t memory_probe_moved_bytes(const struct memory_probe *probe)
{
	return memory_probe_accesses(probe) * probe->block_bytes;
}

/* The threads that were started wait at the barrier for those that were not, so
 * the caller has to end the process. */
static int start_workers(struct worker *workers, unsigned count)
{
	for (unsigned i = 0; i < count; i++) {
		int error = pthread_create(&workers[i].thread, NULL,
					   worker_main, &workers[i]);

		if (error)
			return -error;
	}
	return 0;
}

static int first_error(const struct worker *workers, unsigned count)
{
	for (unsigned i = 0; i < count; i++)
		if (workers[i].error)
			return workers[i].error;
	return 0;
}

/* The time of the round by the workers' clocks: this thread may be woken long
 * after them. */
static uint64_t round_ns(const struct worker *workers, unsigned count)
{
	uint64_t begin_ns = workers[0].begin_ns, end_ns = workers[0].end_ns;

	for (unsigned i = 1; i < count; i++) {
		begin_ns = MIN(begin_ns, workers[i].begin_ns);
		end_ns = MAX(end_ns, workers[i].end_ns);
	}
	return end_ns - begin_ns;
}

static void count_nodes(const struct worker *workers, unsigned count,
			uint64_t *bytes_on)
{
	for (unsigned i = 0; i < count; i++)
		(void)numa_count(workers[i].arena.base,
				 workers[i].probe->area_bytes, bytes_on);
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
	static struct worker workers[MEMORY_PROBE_THREADS_MAX];
	static pthread_barrier_t barrier;
	static struct topology topology;
	int error = choose_cpus(&topology, probe->cpu_node, failure);

	if (error)
		return error;
	assert(topology.cpu_count > 0);
	/* The threads will access all of it. */
	if (probe->area_bytes > allowance_memory_bytes() / probe->threads)
		return areas_failed(probe, ENOMEM, failure);
	for (unsigned i = 0; i < probe->threads; i++)
		workers[i] = (struct worker){
			.probe = probe,
			.barrier = &barrier,
			.number = i,
			.cpu = topology.cpus[i % topology.cpu_count],
		};
	pthread_barrier_init(&barrier, NULL, probe->threads + 1);
	error = start_workers(workers, probe->threads);
	if (error)
		return failure_set(failure, EXIT_RESOURCES, NULL, -error,
				   "%u threads", probe->threads);
	pthread_barrier_wait(&barrier);
	/* The areas have been written, and no round has begun. */
	if (probe->cpu_node >= 0 || probe->memory_node >= 0)
		count_nodes(workers, probe->threads, figures->bytes_on);
	for (unsigned i = 0; i < probe->rounds; i++) {
		pthread_barrier_wait(&barrier);
		pthread_barrier_wait(&barrier);
		figures->samples_ns[i] = round_ns(workers, probe->threads);
	}
	for (unsigned i = 0; i < probe->threads; i++)
		pthread_join(workers[i].thread, NULL);
	pthread_barrier_destroy(&barrier);
	error = first_error(workers, probe->threads);
	if (error)
		return areas_failed(probe, -error, failure);
	return 0;
}
