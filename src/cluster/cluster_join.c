/*
 * cluster_join.c - what a rank has, and what all others have
 */
#include <errno.h>

#include <sodium.h>

#include "base/clock.h"
#include "cluster/cluster_state.h"
#include "exchange/udp.h"

/* CPUs of ours where several ranks share a machine. */
static void choose_cpus(struct cluster *cluster, unsigned members)
{
	struct topology *topology = &cluster->sorter.topology;
	unsigned count = topology->cpu_count;
	uint16_t cpus[THREAD_POOL_WORKERS_MAX];

	for (unsigned i = 0; i < MIN(members, count); i++)
		cpus[i] = topology->cpus[(cluster->rank.machine_rank * members +
					  i) %
					 count];
	memcpy(topology->cpus, cpus, MIN(members, count) * sizeof(*cpus));
	/* A team of one is left where it is. */
	if (members == 1)
		topology_pin_self(topology->cpus[0]);
}

static int start_team(struct cluster *cluster)
{
	struct sorter *sorter = &cluster->sorter;
	const struct sorter_config *config = sorter->config;
	unsigned ranks = cluster->rank.machine_count;
	unsigned members = config->threads;

	topology_read(&sorter->topology);
	if (members == 0)
		members = plan_members(
			sorter->input.record_count * config->shape.size,
			MAX(1, MIN(sorter->topology.cpu_count / ranks,
				   THREAD_POOL_WORKERS_MAX)));
	if (ranks > 1)
		choose_cpus(cluster, members);
	return sorter_start_team(sorter, members, cluster->failure);
}

/* What is known before the others are. */
static int open_input(struct cluster *cluster, struct cluster_hello *hello)
{
	struct sorter *sorter = &cluster->sorter;
	const struct sorter_config *config = sorter->config;
	int error = input_open(&sorter->input, config->input_paths,
			       config->input_count, config->shape.size,
			       config->io, cluster->failure);

	if (error)
		return error;
	input_choose(&sorter->input);
	/* What others are to read has to be a file's pages. */
	if (cluster->config->by_reference == CLUSTER_BY_REFERENCE_YES &&
	    config->io == INPUT_AUTO)
		sorter->input.mode = INPUT_MMAP;
	*hello = (struct cluster_hello){
		.shape = config->shape,
		.record_count = sorter->input.record_count,
		.wanted = config->splitters,
		.schedule = (uint32_t)cluster->config->schedule,
		.traces = config->trace_path != NULL,
		.by_reference = cluster->config->by_reference,
		.slot_count = sorter->input.slot_count,
	};
	if (cluster->config->by_reference != CLUSTER_BY_REFERENCE_NO)
		cluster_offer_input(cluster, hello);
	while (cluster->config->gathers && hello->gather_mark == 0)
		randombytes_buf(&hello->gather_mark,
				sizeof(hello->gather_mark));
	hello->looked = sorter_look(sorter, &hello->even, cluster->failure);
	return 0;
}

static struct exchange *open_udp(struct cluster *cluster,
				 const struct exchange_options *options,
				 struct failure *failure)
{
	const struct cluster_config *config = cluster->config;
	bool on_one_machine = cluster_is_on_one_machine(cluster);
	const struct udp_options udp_options = {
		.kernel = cluster->sorter.config->kernel,
		.plain = config->plain,
		.port = config->port,
		.payload_bytes = config->payload_bytes,
		/* On one machine bytes are only copied. */
		.crc32c = !on_one_machine,
		.status_page = on_one_machine && !config->plain &&
			       !config->datagrams_only,
	};

	if (rank_learn_secret(&cluster->rank, config->deadline_ns, failure) < 0)
		return NULL;
	return udp_open(options, &udp_options, failure);
}

/* Without a hello: an empty one, of a rank that has failed already. */
static struct exchange *open_exchange(struct cluster *cluster,
				      const struct cluster_hello *hello,
				      struct failure *failure)
{
	const struct cluster_config *config = cluster->config;
	const struct sorter *sorter = &cluster->sorter;
	uint8_t bytes[CLUSTER_HELLO_BYTES];
	struct exchange_options options = {
		.rank = &cluster->rank,
		.schedule = cluster->result->schedule,
		.deadline_ns = config->deadline_ns,
		.hello = bytes,
		.hello_bytes = hello ? sizeof(bytes) : 0,
		.lane = &cluster->sorter.members[0].lane,
	};

	options.spins = (uint64_t)cluster->rank.machine_count *
				sorter->threads.worker_count <=
			sorter->topology.cpu_count;
	if (hello)
		cluster_hello_encode(hello, bytes);
	if (config->open_exchange)
		return config->open_exchange(config->exchange_context, &options,
					     failure);
	return open_udp(cluster, &options, failure);
}

/* Why it has failed is on its way. */
static int hear_of_failure(struct cluster *cluster, unsigned node)
{
	int error = exchange_barrier(cluster->exchange, CLUSTER_WRITTEN, NULL,
				     0, cluster->failure);

	return error ? error
		     : failure_set(cluster->failure, EXIT_PEER, NULL, 0,
				   "rank %u (%.80s) has nothing to say", node,
				   cluster->rank.names[node]);
}

static int hear_hellos(struct cluster *cluster)
{
	unsigned count = cluster->rank.node_count;

	for (unsigned i = 0; i < count; i++) {
		size_t bytes;
		const void *hello =
			exchange_hello(cluster->exchange, i, &bytes);
		int error;

		if (bytes == 0)
			return hear_of_failure(cluster, i);
		error = cluster_hello_decode(&cluster->hellos[i], hello, bytes);
		if (error == -EBADMSG)
			return exchange_blame(cluster->exchange, i,
					      cluster->failure,
					      "says hello with a number that "
					      "cannot be");
		if (error)
			return failure_set(cluster->failure, EXIT_USAGE, NULL,
					   0,
					   "rank %u (%.80s) is of another "
					   "version",
					   i, cluster->rank.names[i]);
	}
	return cluster_agree(
		&cluster->agreement, cluster->hellos, count, cluster->rank.rank,
		(const char *const *)cluster->rank.names, cluster->failure);
}

int cluster_join(struct cluster *cluster)
{
	struct sorter *sorter = &cluster->sorter;
	int error = exchange_join(cluster->exchange, cluster->failure);

	if (error == 0)
		error = hear_hellos(cluster);
	if (error)
		return error;
	cluster->result->by_reference = cluster->agreement.by_reference;
	if (cluster->agreement.by_reference) {
		cluster_reserve_inputs(cluster);
	} else {
		sorter->input.room_before_bytes =
			cluster->agreement.lower_count *
			sorter->config->shape.size;
		sorter->input.room_after_bytes =
			cluster->agreement.higher_count *
			sorter->config->shape.size;
	}
	error = input_map(&sorter->input, cluster->failure);
	if (error == 0)
		error = sorter_trace_lanes(sorter, cluster->failure);
	sorter_choose_kernels(sorter);
	sorter->keeps_order = true;
	cluster->result->sort.prepared_ns = clock_now_ns();
	return error;
}

/* The input first, so that the hello can tell of it; what fails there is told
 * to the others, too, so that they need not wait. */
int cluster_open(struct cluster *cluster)
{
	struct cluster_hello hello;
	int error = open_input(cluster, &hello);

	if (error == 0)
		error = start_team(cluster);
	if (error) {
		struct failure failure;

		cluster->exchange = open_exchange(cluster, NULL, &failure);
		return error;
	}
	cluster->exchange = open_exchange(cluster, &hello, cluster->failure);
	if (cluster->exchange)
		return 0;
	thread_pool_stop(&cluster->sorter.threads);
	return -ECONNREFUSED;
}
