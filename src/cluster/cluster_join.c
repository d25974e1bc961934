/*
 * cluster_join.c - what a rank has, and what all others have
 */
#include <errno.h>
#include <sodium.h>
#include <stdlib.h>

#include "base/clock.h"
#include "cluster/cluster_state.h"
#include "cluster/agreement/input_division.h"
#include "exchange/exchange_grid.h"
#include "exchange/model/exchange_model.h"
#include "exchange/udp/udp.h"
#include "io/input/input_reader.h"
#include "io/output/outpath.h"
#include "net/interface.h"
#include "sort/key_probe.h"
#include "sort/sort_setup.h"
#include "system/machine.h"
#include "system/numa.h"

static void *take(struct arena *memory, size_t count, size_t bytes)
{
	return arena_take(memory, count * bytes, CACHE_PAIR_BYTES);
}

int cluster_lay_out_ranks(struct cluster *cluster)
{
	size_t count = cluster->rank.node_count;
	struct cluster_receive *receive = &cluster->receive;
	struct cluster_send *send = &cluster->send;
	struct arena *memory = &cluster->memory;
	const size_t bytes = sizeof(*cluster->hellos) +
			     sizeof(*receive->sources) +
			     sizeof(*receive->runs) + sizeof(*receive->shares) +
			     sizeof(*send->cuts) + sizeof(*send->send_bytes) +
			     sizeof(*send->targets);
	int error = sort_setup_arena(memory, (count + 1) * bytes, 7, 0,
				     cluster->failure);

	if (error)
		return error;
	cluster->node_count = (unsigned)count;
	cluster->hellos = take(memory, count, sizeof(*cluster->hellos));
	receive->sources = take(memory, count, sizeof(*receive->sources));
	receive->runs = take(memory, count, sizeof(*receive->runs));
	receive->shares = take(memory, count, sizeof(*receive->shares));
	send->cuts = take(memory, count + 1, sizeof(*send->cuts));
	send->send_bytes = take(memory, count, sizeof(*send->send_bytes));
	send->targets = take(memory, count, sizeof(*send->targets));
	return 0;
}

/* Our CPUs, where several ranks share a machine.  They are node by node, so
 * that few ranks are on more than one. */
static void choose_cpus(struct cluster *cluster, unsigned workers)
{
	struct topology *topology = &cluster->topology;
	const struct topology all = *topology;
	unsigned kept = MIN(workers, all.cpu_count);

	for (unsigned i = 0; i < kept; i++) {
		unsigned place = (cluster->rank.machine_rank * workers + i) %
				 all.cpu_count;

		topology->cpus[i] = all.cpus[place];
		topology->node_of[i] = all.node_of[place];
	}
	if (cluster->has_nodes)
		topology_keep(topology, kept);
	/* The pool leaves a lone worker where it is. */
	if (workers == 1 && !topology->unpinned)
		topology_pin_self(topology->cpus[0]);
}

static int start_pool(struct cluster *cluster)
{
	struct topology *topology = &cluster->topology;
	unsigned ranks = cluster->rank.machine_count;
	const char *source;
	unsigned workers;

	topology_read(topology);
	topology->unpinned = cluster->sort_config->unpinned;
	cluster->machine_cpus = topology->cpu_count;
	workers = sort_setup_workers(cluster->sort_config,
				     cluster->input.record_count,
				     topology->cpu_count / ranks, &source);
	/* Several ranks are several workers. */
	if (workers * ranks > 1 && !cluster->sort_config->ignores_nodes)
		topology_read_nodes(topology);
	cluster->has_nodes = topology->node_count > 1;
	if (ranks > 1)
		choose_cpus(cluster, workers);
	return thread_pool_start(&cluster->pool, workers, THREAD_POOL_ALL,
				 topology, cluster->failure);
}

/* How much of its part of the machine's memory a rank takes: the rest is for
 * other programs. */
#define MEMORY_SHARE(available) ((available) / 4 * 3)
/* So much input is sorted in memory, without asking how much of that there is:
 * to ask takes 0.2 ms, a tenth of a small sort. */
#define UNASKED_BYTES (8 * MIB)

uint64_t cluster_memory_bytes(const struct cluster *cluster)
{
	struct sort_memory memory;

	if (cluster->sort_config->memory_bytes > 0)
		return cluster->sort_config->memory_bytes;
	/* Each rank gets about as many records as it has. */
	sort_setup_ask_memory(&memory, cluster->sort_config,
			      cluster->input.record_count,
			      cluster->rank.machine_count);
	return MAX(1, MEMORY_SHARE(memory.bytes));
}

static bool is_small(const struct cluster *cluster)
{
	return cluster->sort_config->memory_bytes == 0 &&
	       cluster->input.record_count * cluster->sort_config->shape.size <=
		       UNASKED_BYTES;
}

/* Add what the hello says of a sort beyond memory. */
static void add_external(const struct cluster_config *config,
			 struct cluster_hello *hello)
{
	const struct external_config *external = config->external;

	hello->codec = (uint64_t)external->codec.kind << 32 |
		       (uint32_t)external->codec.level;
	if (config->predicts || external->codec.kind == CODEC_AUTO)
		hello->link = external->rates.link > 0 ? CLUSTER_LINK_KNOWN
						       : CLUSTER_LINK_UNKNOWN;
}

/* Our part of it, which may change. */
static void share_input(const struct cluster *cluster,
			struct cluster_hello *hello)
{
	uint64_t whole = hello->record_count;
	unsigned own = cluster->rank.rank, count = cluster->rank.node_count;

	hello->shared_records = whole;
	hello->record_count = input_division_begin(whole, own + 1, count) -
			      input_division_begin(whole, own, count);
	hello->slot_count = hello->record_count;
}

/* outpath_place() of a file that is there.  One that has lost its name, as
 * /proc/self/fd may lead to, is in no place, whatever that link says. */
static uint64_t input_place(const char *path)
{
	char *real_path = realpath(path, NULL);
	uint64_t place =
		real_path ? outpath_place(real_path, machine_host_id()) : 0;

	free(real_path);
	return place;
}

/* Add what the hello says of files that several ranks write together.  Of two
 * in one place one would replace the other; so would the trace, which rank 0
 * writes.  And ranks that name the files in another order might give two of
 * them one name: only the rank that names a file tells its place. */
static int announce_files(struct cluster *cluster, struct cluster_hello *hello)
{
	const struct sorter_config *config = cluster->sort_config;
	uint64_t places[OUTPUT_FILES_MAX + 1];
	unsigned count = config->output_count + (config->trace_path != NULL);

	hello->gather_files = config->output_count;
	while (hello->gather_nonce == 0)
		randombytes_buf(&hello->gather_nonce,
				sizeof(hello->gather_nonce));
	if (!cluster_own_has(cluster, CLUSTER_ROLE_SORT))
		return 0;
	for (unsigned i = 0; i < count; i++) {
		const char *path = i < config->output_count
					   ? config->output_paths[i]
					   : config->trace_path;

		places[i] = outpath_place(path, machine_host_id());
		for (unsigned j = 0; j < i && places[i] != 0; j++)
			if (places[j] == places[i])
				return failure_set(
					cluster->failure, EXIT_USAGE, path, 0,
					"is the same file as the output %s",
					config->output_paths[j]);
	}
	cluster_output_find_file(cluster);
	if (cluster->output.first_rank == cluster->rank.rank)
		hello->output_place = places[cluster->output.file];
	return 0;
}

/* What this rank knows by itself. */
static int open_input(struct cluster *cluster, struct cluster_hello *hello)
{
	const struct sorter_config *config = cluster->sort_config;
	struct input *input = &cluster->input;
	/* A rank that does not read does not even look at its input. */
	int error = sort_setup_input(
		input, config, cluster_own_has(cluster, CLUSTER_ROLE_READ),
		cluster->failure);
	bool is_uniform;

	if (error)
		return error;
	input_choose(input);
	/* What others are to read has to be a file's pages. */
	if (cluster->config->by_reference == CLUSTER_BY_REFERENCE_YES &&
	    config->io == INPUT_AUTO)
		input->mode = INPUT_MMAP;
	*hello = (struct cluster_hello){
		.shape = config->shape,
		.unique = config->unique != UNIQUE_NO,
		.keeps_last = config->unique == UNIQUE_LAST,
		.header = 2 * config->header_bytes + config->drops_header,
		.head_records = config->head_records,
		.number_words = config->widening.number_bytes / 4,
		.is_random = config->widening.is_random,
		.seed = config->widening.seed,
		.record_count = input->record_count,
		.wanted = config->splitters,
		.schedule = cluster_schedule_number(&cluster->config->schedule),
		.traces = config->trace_path != NULL,
		.by_reference = cluster->config->by_reference,
		.slot_count = input->slot_count,
		.shared_records = CLUSTER_NOT_SHARED,
		.memory_bytes =
			is_small(cluster) ? 0 : cluster_memory_bytes(cluster),
		.input_bytes = input_memory_bytes(input),
		.roles = cluster->result->roles[cluster->rank.rank],
	};
	if (cluster->config->external)
		add_external(cluster->config, hello);
	if (cluster->config->shares_input)
		share_input(cluster, hello);
	else if (cluster->config->by_reference != CLUSTER_BY_REFERENCE_NO)
		cluster_offer_input(cluster, hello);
	if (cluster->config->gathers && announce_files(cluster, hello) < 0)
		return -EINVAL;
	if (cluster_output_lacks_header(cluster))
		return failure_set(cluster->failure, EXIT_USAGE, "--header", 0,
				   "rank %u has no input whose header its "
				   "output could get: add ':drop'",
				   cluster->rank.rank);
	if (!cluster->config->gathers && config->output_count > 0 &&
	    cluster_own_has(cluster, CLUSTER_ROLE_SORT))
		hello->output_place = outpath_place(config->output_paths[0],
						    machine_host_id());
	if (!cluster->config->shares_input && input->record_count > 0)
		hello->input_place = input_place(config->input_paths[0]);
	hello->probed_kind = key_probe(input, config, &is_uniform);
	hello->is_uniform = is_uniform;
	return 0;
}

static struct exchange *open_udp(struct cluster *cluster,
				 const struct exchange_options *options,
				 struct failure *failure)
{
	const struct cluster_config *config = cluster->config;
	bool on_one_machine = cluster_is_on_one_machine(cluster);
	const struct udp_options udp_options = {
		.kernel = cluster->sort_config->kernel,
		.plain = config->plain,
		.thread_count = cluster->result->thread_count,
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

/* As many threads as a link of this rank needs, and as it has CPUs. */
static unsigned choose_threads(const struct cluster *cluster)
{
	const struct rank *rank = &cluster->rank;
	unsigned workers = cluster->pool.worker_count;
	char name[INTERFACE_NAME_BYTES];

	if (cluster->config->thread_count > 0)
		return cluster->config->thread_count;
	if (workers == 1 || cluster->config->open_exchange ||
	    cluster_is_on_one_machine(cluster) ||
	    !interface_find(&rank->addresses[rank->rank], name))
		return 1;
	return exchange_model_threads(1e6 * interface_mbit(name), workers);
}

/* Buffers of the network come from the node of the device that has our address,
 * if there are several nodes.  Of MPI's devices nothing is known. */
static void place_buffers(struct cluster *cluster,
			  struct exchange_options *options)
{
	char name[INTERFACE_NAME_BYTES];
	int node = -1;

	if (cluster->has_nodes && !cluster->config->open_exchange &&
	    interface_find(&cluster->rank.addresses[cluster->rank.rank], name))
		node = numa_node_of_interface(name);
	cluster->result->network_node = node;
	options->has_node = node >= 0;
	options->node = node >= 0 ? (unsigned)node : 0;
}

_Static_assert(CLUSTER_HELLO_BYTES <= EXCHANGE_HELLO_BYTES_MAX, "it fits");

/* hello is NULL if this rank has failed already: others get an empty one. */
static struct exchange *open_exchange(struct cluster *cluster,
				      const struct cluster_hello *hello,
				      struct failure *failure)
{
	const struct cluster_config *config = cluster->config;
	uint8_t bytes[CLUSTER_HELLO_BYTES];
	struct exchange_options options = {
		.rank = &cluster->rank,
		.schedule = cluster->result->schedule.kind,
		.deadline_ns = config->deadline_ns,
		.hello = bytes,
		.hello_bytes = hello ? sizeof(bytes) : 0,
		.lane = &cluster->trace.lanes[0],
		.spins = (uint64_t)cluster->rank.machine_count *
				 cluster->pool.worker_count <=
			 cluster->machine_cpus,
	};

	place_buffers(cluster, &options);
	if (hello)
		cluster_hello_encode(hello, bytes);
	if (config->open_exchange)
		return config->open_exchange(config->exchange_context, &options,
					     failure);
	return open_udp(cluster, &options, failure);
}

/* The rank has failed already; the reason is on its way. */
static int hear_of_failure(struct cluster *cluster, unsigned node)
{
	int error = exchange_barrier(cluster->exchange, CLUSTER_WRITTEN, NULL,
				     0, cluster->failure);

	return error ? error
		     : failure_set(cluster->failure, EXIT_PEER, NULL, 0,
				   "rank %u (%.80s) sent an empty "
				   "hello: " EXCHANGE_FAULTY,
				   node, cluster->rank.names[node]);
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
			return exchange_blame(
				cluster->exchange, i, cluster->failure,
				"sent an impossible hello: " EXCHANGE_FAULTY);
		if (error)
			return failure_set(cluster->failure, EXIT_USAGE, NULL,
					   0,
					   "rank %u (%.80s) is of another "
					   "version",
					   i, cluster->rank.names[i]);
		cluster->result->roles[i] = (uint8_t)cluster->hellos[i].roles;
	}
	return cluster_agree(
		&cluster->agreement, cluster->hellos, count, cluster->rank.rank,
		(const char *const *)cluster->rank.names, cluster->failure);
}

/* Reserve address space around our own input for records of other ranks, or for
 * their inputs: then our own has a place of whole pages among these. */
static void reserve_space(struct cluster *cluster)
{
	struct input *input = &cluster->input;
	bool is_by_reference = cluster_is_by_reference(cluster);

	input->exclusive_tail = is_by_reference;
	for (unsigned i = 0; i < cluster->rank.node_count; i++) {
		uint64_t slots = is_by_reference
					 ? cluster_input_slots(cluster, i)
					 : cluster->hellos[i].record_count;
		uint64_t bytes = slots * cluster->sort_config->shape.size;

		if (i < cluster->rank.rank)
			input->reserved_before_bytes += bytes;
		else if (i > cluster->rank.rank || is_by_reference)
			input->reserved_after_bytes += bytes;
	}
}

static int map_input(struct cluster *cluster)
{
	int error;

	reserve_space(cluster);
	error = input_map(&cluster->input, cluster->failure);
	cluster->source = input_source(&cluster->input);
	return error;
}

/* Each rank has at least so many threads for the exchange; the rank that has
 * fewest is the last to end. */
static unsigned least_threads(const struct cluster *cluster)
{
	uint64_t least = UDP_THREADS_MAX;

	for (unsigned i = 0; i < cluster->rank.node_count; i++)
		least = MIN(least, cluster->hellos[i].thread_count);
	return (unsigned)least;
}

static int set_schedule(struct cluster *cluster)
{
	struct cluster_schedule *choice = &cluster->result->schedule;
	const struct cluster_traffic traffic = {
		.node_count = cluster->rank.node_count,
		.byte_count = cluster->agreement.whole_count *
			      cluster->sort_config->shape.size,
		.on_one_machine = cluster_shares_no_link(cluster),
		.is_external = cluster->agreement.is_external,
		.is_by_mpi = cluster->config->open_exchange != NULL,
		.thread_count = least_threads(cluster),
	};
	int error = cluster_schedule_choose(choice, &cluster->config->schedule,
					    &traffic, cluster->failure);

	if (error)
		return error;
	if (choice->kind == EXCHANGE_GRID)
		return exchange_grid_set(cluster->exchange, choice->rows,
					 choice->columns, cluster->failure);
	exchange_set_schedule(cluster->exchange, choice->kind);
	return 0;
}

int cluster_join(struct cluster *cluster)
{
	int error = exchange_join(cluster->exchange, cluster->failure);

	if (error == 0)
		error = hear_hellos(cluster);
	if (error)
		return error;
	cluster->result->by_reference = cluster->agreement.by_reference;
	cluster->result->shares_input = cluster->config->shares_input;
	if (cluster->agreement.is_external)
		cluster->result->sort.place = SORT_BEYOND_MEMORY;
	error = set_schedule(cluster);
	if (error)
		return error;
	if (!cluster->agreement.is_external)
		error = map_input(cluster);
	if (error == 0)
		error = sort_trace_add_lanes(
			&cluster->trace,
			cluster->pool.worker_count +
				(cluster->result->thread_count > 1),
			SORT_TRACE_SPANS, cluster->failure);
	cluster->result->sort.prepared_ns = clock_now_ns();
	return error;
}

/* The input comes first, so that the hello can tell of it.  If that fails the
 * other ranks are told so, and need not wait. */
int cluster_open(struct cluster *cluster)
{
	struct cluster_hello hello;
	int error = open_input(cluster, &hello);

	if (error == 0)
		error = start_pool(cluster);
	cluster->result->thread_count = error ? 1 : choose_threads(cluster);
	hello.thread_count = cluster->result->thread_count;
	if (error) {
		struct failure failure;

		cluster->exchange = open_exchange(cluster, NULL, &failure);
		return error;
	}
	cluster->exchange = open_exchange(cluster, &hello, cluster->failure);
	return cluster->exchange ? 0 : -ECONNREFUSED;
}
