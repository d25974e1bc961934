/* rank.c - the rank of this process, the addresses of all, and their secret */
#include "net/rank.h"

#include <assert.h>
#include <errno.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "base/parse.h"
#include "net/hostlist.h"
#include "net/pmi_secret.h"
#include "net/rank_slurm.h"

/* A program that starts ranks, and the variables that it sets; NULL: it does
 * not set this one. */
struct launcher {
	const char *source; /* for struct rank */
	const char *rank;   /* the launcher is this one if it is set ... */
	const char *mark;   /* ... and this one */
	const char *count;
	const char *hosts;		 /* a list */
	const char *local_count;	 /* ranks on this machine */
	const char *job[RANK_JOB_PARTS]; /* together the job's name */
};

static const struct launcher by_options = {
	.source = "options",
	.rank = "--rank",
};

static const struct launcher blinkd = {
	.source = "blinkd",
	.rank = "BLINK_RANK",
	.count = "BLINK_NODES",
	.hosts = "BLINK_HOSTS",
	.job = { "BLINK_JOB" },
};

static const struct launcher open_mpi = {
	.source = "pmi",
	.rank = "OMPI_COMM_WORLD_RANK",
	.count = "OMPI_COMM_WORLD_SIZE",
	.local_count = "OMPI_COMM_WORLD_LOCAL_SIZE",
	.job = { "PMIX_NAMESPACE" },
};

static const struct launcher hydra = {
	.source = "pmi",
	.rank = "PMI_RANK",
	.mark = "MPI_LOCALNRANKS",
	.count = "PMI_SIZE",
	.local_count = "MPI_LOCALNRANKS",
	.job = { "PMI_JOBID" },
};

static const struct launcher slurm = {
	.source = "slurm",
	.rank = "SLURM_PROCID",
	.count = "SLURM_STEP_NUM_TASKS",
	.hosts = "SLURM_STEP_NODELIST",
	.job = { "SLURM_JOB_ID", "SLURM_STEP_ID" },
};

static const struct launcher pmi = {
	.source = "pmi",
	.rank = "PMI_RANK",
	.count = "PMI_SIZE",
	.job = { "PMI_JOBID" },
};

static const struct launcher pmix = {
	.source = "pmi",
	.rank = "PMIX_RANK",
	.job = { "PMIX_NAMESPACE" },
};

static const struct launcher *const launchers[] = {
	&blinkd, &open_mpi, &hydra, &slurm, &pmi, &pmix,
};

#define OF_ONE_HOST "ranks of one host need ports, as a:1,a:2"
#define WITHOUT_HOSTS "give --nodes, or start the ranks by srun"

/* The working state of rank_find() while it fills a struct rank. */
struct search {
	const struct rank_options *options;
	const struct launcher *launcher;
	struct hostlist hosts;
	const char *hosts_from;		  /* option or variable; NULL: none */
	unsigned host_of[RANK_NODES_MAX]; /* [rank]: index of its host */
	struct rank *rank;
	struct failure *failure;
};

/* --- numbers ------------------------------------------------------------- */

/* text: the value of the variable or option called name; NULL: it is not set */
static int read_number(const char *name, const char *text, unsigned min,
		       unsigned max, unsigned *value, struct failure *failure)
{
	uint64_t number;

	if (!text)
		return failure_set(failure, EXIT_USAGE, name, 0, "is not set");
	if (parse_u64(text, min, max, &number))
		return failure_set(failure, EXIT_USAGE, name, 0,
				   "'%.40s': want a number from %u to %u", text,
				   min, max);
	*value = (unsigned)number;
	return 0;
}

/* Returns NULL with the failure filled if there is none. */
static const struct launcher *find_launcher(const struct search *search)
{
	const struct rank_options *options = search->options;

	if (options->rank && options->nodes)
		return &by_options;
	if (options->rank) {
		failure_set(
			search->failure, EXIT_USAGE, "--rank", 0,
			"needs --nodes, which lists the hosts of all ranks");
		return NULL;
	}
	for (size_t i = 0; i < ARRAY_LEN(launchers); i++) {
		const struct launcher *launcher = launchers[i];

		if (getenv(launcher->rank) &&
		    (!launcher->mark || getenv(launcher->mark)))
			return launcher;
	}
	failure_set(search->failure, EXIT_USAGE,
		    options->nodes ? "--rank" : "--nodes, --rank", 0,
		    "needed: not started by blinkd, mpirun or srun");
	return NULL;
}

static int find_count(struct search *search)
{
	const char *name = search->launcher->count;
	struct rank *rank = search->rank;

	if (name)
		return read_number(name, getenv(name), 1, RANK_NODES_MAX,
				   &rank->node_count, search->failure);
	if (!search->hosts_from)
		return failure_set(search->failure, EXIT_USAGE,
				   search->launcher->rank, 0,
				   "does not tell the hosts: " WITHOUT_HOSTS);
	if (search->hosts.count < 1 || search->hosts.count > RANK_NODES_MAX)
		return failure_set(search->failure, EXIT_USAGE,
				   search->hosts_from, 0,
				   "%zu hosts: want 1 to %d",
				   search->hosts.count, RANK_NODES_MAX);
	rank->node_count = (unsigned)search->hosts.count;
	return 0;
}

static int find_numbers(struct search *search)
{
	const char *name = search->launcher->rank;
	const char *text = search->launcher == &by_options
				   ? search->options->rank
				   : getenv(name);
	struct rank *rank = search->rank;
	int error = find_count(search);

	if (error)
		return error;
	return read_number(name, text, 0, rank->node_count - 1, &rank->rank,
			   search->failure);
}

/* --- hosts --------------------------------------------------------------- */

static int list_hosts(struct search *search, const char *name, const char *text)
{
	int error = hostlist_add(&search->hosts, text, search->failure);

	search->hosts_from = name;
	if (error)
		search->failure->what = name;
	return error;
}

/* A list drops a host that it already has.  Refuse such a list: the job would
 * have one rank fewer than the user has started. */
static int list_nodes(struct search *search)
{
	int error = list_hosts(search, "--nodes", search->options->nodes);

	if (error || search->hosts.duplicate[0] == '\0')
		return error;
	return failure_set(search->failure, EXIT_USAGE, "--nodes", 0,
			   "%.80s is listed twice: " OF_ONE_HOST,
			   search->hosts.duplicate);
}

/* Each host has one rank. */
static int lay_out_singly(struct search *search)
{
	unsigned node_count = search->rank->node_count;

	if (search->hosts.count != node_count)
		return failure_set(
			search->failure, EXIT_USAGE, search->hosts_from, 0,
			"%zu hosts (each counts once) for %u ranks (%s)",
			search->hosts.count, node_count,
			search->launcher->count);
	for (unsigned r = 0; r < node_count; r++)
		search->host_of[r] = r;
	return 0;
}

static int lay_out_by_slurm(struct search *search)
{
	const struct rank_slurm layout = {
		.rank = search->rank->rank,
		.node_count = search->rank->node_count,
		.host_count = search->hosts.count,
		.count_from = search->launcher->count,
		.hosts_from = search->hosts_from,
		.host_of = search->host_of,
	};

	return rank_slurm_lay_out(&layout, search->failure);
}

/* mpirun does not tell the hosts, only how many ranks are on this one. */
static int place_locally(struct search *search)
{
	const char *name = search->launcher->local_count;
	unsigned node_count = search->rank->node_count;
	unsigned local_count = 0;
	int error;

	if (!name || !getenv(name))
		return failure_set(search->failure, EXIT_USAGE,
				   search->launcher->rank, 0,
				   "does not tell the hosts: " WITHOUT_HOSTS);
	error = read_number(name, getenv(name), 1, node_count, &local_count,
			    search->failure);
	if (error)
		return error;
	if (local_count < node_count)
		return failure_set(
			search->failure, EXIT_USAGE, name, 0,
			"%u of %u ranks are on this machine: " WITHOUT_HOSTS,
			local_count, node_count);
	return list_hosts(search, name, "127.0.0.1"); /* host_of: all 0 */
}

static int find_hosts(struct search *search)
{
	const char *name = search->launcher->hosts;
	int error;

	if (search->hosts_from)
		return lay_out_singly(search);
	if (!name)
		return place_locally(search);
	if (!getenv(name))
		return failure_set(search->failure, EXIT_USAGE, name, 0,
				   "is not set: give --nodes");
	error = list_hosts(search, name, getenv(name));
	if (error)
		return error;
	return search->launcher == &slurm ? lay_out_by_slurm(search)
					  : lay_out_singly(search);
}

/* --- addresses ----------------------------------------------------------- */

static int look_up(struct search *search, const char *host,
		   struct address *address)
{
	int error = address_parse(host, address);
	bool is_told = error == -ENOENT || error == -EAGAIN;

	if (error == 0)
		return 0;
	return failure_set(search->failure,
			   error == -EINVAL ? EXIT_USAGE : EXIT_PEER,
			   search->hosts_from, is_told ? 0 : -error,
			   "%s: %.100s", address_why(error), host);
}

/* Each host is looked up once, for its first rank. */
static int find_address(struct search *search, unsigned r)
{
	struct rank *rank = search->rank;
	const char *host = search->hosts.hosts[search->host_of[r]];
	unsigned first = 0;

	rank->names[r] = strdup(host);
	if (!rank->names[r])
		return failure_no_memory(search->failure);
	while (search->host_of[first] != search->host_of[r])
		first++;
	if (first == r)
		return look_up(search, host, &rank->addresses[r]);
	rank->addresses[r] = rank->addresses[first];
	return 0;
}

static int find_addresses(struct search *search)
{
	struct rank *rank = search->rank;
	int error = 0;

	assert(search->hosts.hosts);
	rank->addresses = calloc(rank->node_count, sizeof(*rank->addresses));
	rank->names = calloc(rank->node_count, sizeof(*rank->names));
	if (!rank->addresses || !rank->names)
		return failure_no_memory(search->failure);
	for (unsigned r = 0; r < rank->node_count && !error; r++)
		error = find_address(search, r);
	return error;
}

/* Refuse a host that is listed by two names. */
static int check_nodes_differ(struct search *search)
{
	const struct rank *rank = search->rank;
	const struct address *all = rank->addresses;

	for (unsigned r = 1; r < rank->node_count; r++)
		for (unsigned lower = 0; lower < r; lower++)
			if (address_port(&all[r]) ==
				    address_port(&all[lower]) &&
			    address_is_same_host(&all[r], &all[lower]))
				return failure_set(search->failure, EXIT_USAGE,
						   "--nodes", 0,
						   "%.50s and %.50s are one "
						   "address: " OF_ONE_HOST,
						   rank->names[lower],
						   rank->names[r]);
	return 0;
}

static void count_neighbours(struct rank *rank)
{
	const struct address *own = &rank->addresses[rank->rank];

	for (unsigned r = 0; r < rank->node_count; r++) {
		const struct address *other = &rank->addresses[r];
		bool machine = address_is_same_host(own, other) ||
			       (address_is_loopback(own) &&
				address_is_loopback(other));

		rank->machine_count += machine;
		rank->machine_rank += machine && r < rank->rank;
	}
}

/* --- the secret ---------------------------------------------------------- */

static bool is_number(const char *name, unsigned number)
{
	const char *text = getenv(name);
	uint64_t value;

	return text && parse_u64(text, number, number, &value) == 0;
}

/*
 * The value of PMI_FD if that is Slurm's, or NULL.  Slurm's daemons know each
 * other; the daemons of MPICH's mpirun (Hydra) do not: it hands the values of
 * a job to the first process that connects to its port, of whatever user.  A
 * launcher that Slurm has started leaves Slurm's variables as they are, but
 * numbers its own processes.
 */
static const char *find_slurm_pmi(const struct search *search)
{
	if (search->launcher != &slurm ||
	    !is_number("PMI_SIZE", search->rank->node_count) ||
	    !is_number("PMI_RANK", search->rank->rank))
		return NULL;
	return getenv("PMI_FD");
}

/* NULL: all ranks are on this machine. */
static const char *find_remote_host(const struct rank *rank)
{
	for (unsigned r = 0; r < rank->node_count; r++)
		if (!address_is_loopback(&rank->addresses[r]))
			return rank->names[r];
	return NULL;
}

/* Ranks of several machines need a key, or Slurm, which passes a secret on. */
static int find_remote(struct search *search, const char *remote_host)
{
	const char *pmi_text = find_slurm_pmi(search);
	struct rank *rank = search->rank;

	if (!pmi_text)
		return failure_set(search->failure, EXIT_USAGE, "--key-file", 0,
				   "needed, or BLINK_KEY%s: %.100s is not of "
				   "127.0.0.0/8 or ::1",
				   search->launcher == &slurm
					   ? ", or srun --mpi=pmi2"
					   : "",
				   remote_host);
	randombytes_buf(rank->secret, sizeof(rank->secret));
	rank->pmi_fd = pmi_secret_find_fd(pmi_text, search->failure);
	return MIN(rank->pmi_fd, 0);
}

/* Rank 0 draws the secret, and serves from now on, so that other ranks need not
 * wait while it opens its input. */
static int find_local(struct rank *rank, const char *const job[RANK_JOB_PARTS],
		      struct failure *failure)
{
	uint8_t name[RANK_SECRET_BYTES];
	int error = rank_secret_hash(job, NULL, name, failure);

	if (rank->rank == 0)
		randombytes_buf(rank->secret, sizeof(rank->secret));
	rank->is_keyless = rank->node_count > 1;
	if (error || !rank->is_keyless)
		return error;
	error = local_secret_init(&rank->local, rank->rank, rank->node_count,
				  name, rank->addresses, failure);
	if (error || rank->rank != 0)
		return error;
	rank->server = local_secret_serve(&rank->local, rank->secret, failure);
	return rank->server ? 0 : -EADDRINUSE;
}

static int find_secret(struct search *search)
{
	const struct launcher *launcher = search->launcher;
	const char *job[RANK_JOB_PARTS] = { search->options->job };
	const char *key_path = search->options->key_path;
	const char *fd = launcher == &blinkd ? getenv("BLINK_SECRET_FD") : NULL;
	struct rank *rank = search->rank;
	const char *remote_host = find_remote_host(rank);

	if (sodium_init() < 0)
		return failure_set(search->failure, EXIT_RESOURCES, "libsodium",
				   ENOSYS, "");
	if (!key_path && fd)
		return rank_secret_read(fd, rank->secret, search->failure);
	if (!key_path)
		key_path = getenv("BLINK_KEY");
	for (unsigned i = 0; !search->options->job && i < RANK_JOB_PARTS; i++)
		job[i] = launcher->job[i] ? getenv(launcher->job[i]) : NULL;
	if (key_path)
		return rank_secret_hash(job, key_path, rank->secret,
					search->failure);
	return remote_host ? find_remote(search, remote_host)
			   : find_local(rank, job, search->failure);
}

/* --- all of it ----------------------------------------------------------- */

static int find_all(struct search *search)
{
	int error = 0;

	search->launcher = find_launcher(search);
	if (!search->launcher)
		return -EINVAL;
	if (search->options->nodes)
		error = list_nodes(search);
	if (!error)
		error = find_numbers(search);
	if (!error)
		error = find_hosts(search);
	if (!error)
		error = find_addresses(search);
	if (!error && search->options->nodes)
		error = check_nodes_differ(search);
	if (error)
		return error;
	search->rank->source = search->launcher->source;
	count_neighbours(search->rank);
	return find_secret(search);
}

static int take_given(struct rank *rank, const struct rank_given *given,
		      struct failure *failure)
{
	*rank = (struct rank){
		.rank = given->rank,
		.node_count = given->node_count,
		.machine_rank = given->machine_rank,
		.machine_count = given->machine_count,
		.source = given->source,
	};
	memcpy(rank->secret, given->secret, sizeof(rank->secret));
	rank->names = calloc(rank->node_count, sizeof(*rank->names));
	for (unsigned r = 0; rank->names && r < rank->node_count; r++) {
		rank->names[r] = strdup(given->names[r]);
		if (!rank->names[r])
			break;
	}
	if (rank->names && rank->names[rank->node_count - 1])
		return 0;
	rank_free(rank);
	return failure_no_memory(failure);
}

bool rank_find_launch(struct rank_launch *launch)
{
	static const struct rank_options none;
	struct failure failure;
	struct search search = { .options = &none, .failure = &failure };
	const struct launcher *launcher = find_launcher(&search);

	if (!launcher || !launcher->count || !getenv(launcher->count) ||
	    read_number(launcher->count, getenv(launcher->count), 1, UINT32_MAX,
			&launch->node_count, &failure) < 0 ||
	    read_number(launcher->rank, getenv(launcher->rank), 0,
			launch->node_count - 1, &launch->rank, &failure) < 0)
		return false;
	launch->name = launcher->count;
	launch->is_slurm = launcher == &slurm;
	launch->is_blinkd = launcher == &blinkd;
	return true;
}

int rank_find(struct rank *rank, const struct rank_options *options,
	      struct failure *failure)
{
	struct search search = {
		.options = options,
		.rank = rank,
		.failure = failure,
	};
	int error;

	if (options->given)
		return take_given(rank, options->given, failure);
	*rank = (struct rank){ 0 };
	error = find_all(&search);
	if (error)
		rank_free(rank);
	hostlist_free(&search.hosts);
	return error;
}

int rank_learn_secret(struct rank *rank, uint64_t deadline_ns,
		      struct failure *failure)
{
	if (rank->pmi_fd > 0)
		return pmi_secret_share(rank->pmi_fd, rank->rank == 0,
					deadline_ns, rank->secret, failure);
	if (!rank->is_keyless || rank->rank == 0)
		return 0;
	return local_secret_fetch(&rank->local, rank->names[0], deadline_ns,
				  rank->secret, failure);
}

void rank_explain(const struct rank *rank, struct failure *failure)
{
	if (failure->status == EXIT_PEER &&
	    local_secret_is_contested(rank->server))
		local_secret_fail_contested(&rank->local, failure);
}

void rank_free(struct rank *rank)
{
	local_secret_end(rank->server);
	for (unsigned r = 0; rank->names && r < rank->node_count; r++)
		free(rank->names[r]);
	free(rank->names);
	free(rank->addresses);
	sodium_memzero(rank, sizeof(*rank));
}
