/*
 * cluster_world.h - whole ranks of the cluster sort in simulated time
 *
 * Ranks run the cluster sort, from the hello to the names, as hosts of a
 * simulated world (simulate/world.h): a job takes no longer than it computes,
 * however long its ranks wait.
 *
 * A sort beyond memory has threads of its own, which run in real time.  The
 * rank's own thread then looks for them again and again, in simulated time: how
 * much of that passes depends on the machine.
 *
 * Included by one file of a program, which is linked with --wrap for what the
 * Makefile's SIMULATED_RANKS lists.
 */
#ifndef CLUSTER_WORLD_H
#define CLUSTER_WORLD_H

#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>

#include "cluster/cluster_state.h"
#include "cluster/external/cluster_runs.h"
#include "simulate/virtual_network.h"

#define RANKS_MAX 32
#define SECOND_NS ((uint64_t)1000000000)
/* Not 0: of a STATUS's clock that means none. */
#define BEGIN_NS SECOND_NS
#define WAY_NS 10000 /* of a datagram, from host to switch to host */
#define READ_NS 100  /* of the clock, so that no loop goes on for ever */
#define REAL_PAUSE_NS 50000
#define STACK_BYTES ((size_t)1 << 20)

enum { CONTROL, DATA }; /* the order in which a rank opens its sockets */

struct simulated_rank {
	struct cluster *cluster; /* owned */
	const struct sorter_config *config;
	const struct cluster_config *cluster_config;
	struct cluster_result result;
	struct failure failure;
	int error;
	uint64_t ended_ns; /* after the beginning */
	bool has_run;	   /* so that the cluster is to be freed */
};

static struct world world;
static struct virtual_network network;
static struct simulated_rank ranks[RANKS_MAX];
static unsigned rank_count;

static const uint8_t secret[RANK_SECRET_BYTES] = "one that the liar has, too";

/* --- what the linker brings here --------------------------------------------
 */

int __wrap_rank_find(struct rank *rank, const struct rank_options *options,
		     struct failure *failure);
void __wrap_topology_read(struct topology *topology);
int __real_nanosleep(const struct timespec *time, struct timespec *left);
bool __real_external_rank_is_busy(const struct external_rank *rank);
bool __wrap_external_rank_is_busy(const struct external_rank *rank);
int __real_cluster_runs_pause(const struct cluster_runs *runs);
int __wrap_cluster_runs_pause(const struct cluster_runs *runs);

int __wrap_rank_find(struct rank *rank, const struct rank_options *options,
		     struct failure *failure)
{
	char text[ADDRESS_TEXT_BYTES];

	(void)options;
	*rank = (struct rank){
		.rank = host_current()->number,
		.node_count = rank_count,
		.addresses = calloc(rank_count, sizeof(*rank->addresses)),
		.names = calloc(rank_count, sizeof(*rank->names)),
		.machine_count = 1,
		.source = "options",
	};
	memcpy(rank->secret, secret, sizeof(secret));
	if (!rank->addresses || !rank->names)
		return failure_no_memory(failure);
	for (unsigned i = 0; i < rank_count; i++) {
		struct address *address = &rank->addresses[i];

		virtual_network_address(i, ADDRESS_PORT_DEFAULT, address);
		rank->names[i] = strdup(address_format(address, text));
	}
	return 0;
}

/* A rank looks for its own threads: let them work. */
static void wait_really(void)
{
	const struct timespec pause = { .tv_nsec = REAL_PAUSE_NS };

	__real_nanosleep(&pause, NULL);
}

bool __wrap_external_rank_is_busy(const struct external_rank *rank)
{
	bool is_busy = __real_external_rank_is_busy(rank);

	if (is_busy)
		wait_really();
	return is_busy;
}

int __wrap_cluster_runs_pause(const struct cluster_runs *runs)
{
	wait_really();
	return __real_cluster_runs_pause(runs);
}

/* Reading the mask of all CPUs that a kernel may have takes a while. */
void __wrap_topology_read(struct topology *topology)
{
	topology->cpu_count = 1;
	topology->cpus[0] = 0;
}

/* --- a job ------------------------------------------------------------------
 */

/* A quick network that loses nothing. */
static const struct virtual_network_options world_network_options = {
	.link_bits_per_s = (uint64_t)100 * 1000000000,
	.link_delay_ns = WAY_NS,
	.queue_bytes = 4 << 20,
	.mtu_bytes = 9000,
	.receive_room_max = 16 << 20,
	.clock_ns = READ_NS,
};

/* Returns 0 or -errno. */
static int world_set_up(unsigned host_count, uint64_t end_ns)
{
	int error = world_init(&world, host_count, 1, STACK_BYTES, BEGIN_NS, 0);

	/* The kernel would clear a huge page for each arena of a rank, which
	 * takes longer than the rest of a job. */
	prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0);
	for (unsigned i = 0; i < host_count && error == 0; i++) {
		ranks[i].cluster = alloc_apart(1, sizeof(struct cluster));
		error = ranks[i].cluster ? 0 : -ENOMEM;
	}
	if (error == 0)
		error = virtual_network_init(&network, &world,
					     &world_network_options, 0);
	world.end_ns = BEGIN_NS + end_ns;
	return error;
}

static void be_rank(void *argument)
{
	struct simulated_rank *self = argument;

	self->error = cluster_run_in(self->cluster, self->config,
				     self->cluster_config, &self->result,
				     &self->failure);
	self->ended_ns = host_current()->now_ns - BEGIN_NS;
}

/* The rank begins after a while, when the world runs. */
static void world_start_rank(unsigned rank, uint64_t after_ns)
{
	memset(ranks[rank].cluster, 0, sizeof(struct cluster));
	ranks[rank].failure = (struct failure){ .status = EXIT_DONE };
	ranks[rank].has_run = true;
	world_start(&world.hosts[rank], BEGIN_NS + after_ns, be_rank,
		    &ranks[rank]);
}

/* The world runs until all ranks have ended.  Returns 0 or -errno, as
 * world_run(). */
static int world_run_job(void)
{
	int error = world_run(&world);

	virtual_network_clear(&network);
	return error;
}

static void world_free_job(void)
{
	for (unsigned i = 0; i < rank_count; i++) {
		if (ranks[i].has_run)
			cluster_free(ranks[i].cluster);
		ranks[i].has_run = false;
	}
}

#endif /* CLUSTER_WORLD_H */
