/*
 * mpi_world.c - start MPI, learn which rank this is, and end MPI
 */
#include <assert.h>
#include <errno.h>
#include <signal.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "exchange/mpi/mpi_state.h"
#include "system/machine.h"

#define POLL_NS 50000
/* This long all other ranks have after a failure to print what they say. */
#define FAREWELL_NS ((uint64_t)1000000000)
/* MPI_Init_thread may take so many deadlines, since a launcher starts many
 * ranks one after the other; 1 minute by default. */
#define INIT_DEADLINES 12
/* MPI_Finalize waits for all ranks, and may do so without end if one is gone.
 */
#define FINALIZE_S 10

static_assert(MPI_MAX_PROCESSOR_NAME <= MPI_NAME_BYTES, "all of a name fits");

/* --- errors -----------------------------------------------------------------
 */

static void describe(int code, char why[FAILURE_WHY_BYTES])
{
	char text[MPI_MAX_ERROR_STRING] = "?";
	int length = 0;

	MPI_Error_string(code, text, &length);
	snprintf(why, FAILURE_WHY_BYTES, "MPI: %.*s", (int)strcspn(text, "\n"),
		 text);
}

bool mpi_succeeds(struct mpi *x, int code)
{
	char why[FAILURE_WHY_BYTES];

	if (code == MPI_SUCCESS)
		return true;
	describe(code, why);
	exchange_note_failure(&x->base, mpi_own(x), EXIT_PEER, why);
	return false;
}

static int check(int code, struct failure *failure)
{
	char why[FAILURE_WHY_BYTES];

	if (code == MPI_SUCCESS)
		return 0;
	describe(code, why);
	return failure_set(failure, EXIT_PEER, NULL, 0, "%s", why);
}

int mpi_await(int count, MPI_Request *requests, uint64_t end_ns, bool *ended)
{
	const struct timespec pause = { .tv_nsec = POLL_NS };
	int flag = 0, code;

	for (;;) {
		/* MPI_Test()'s code is the reason of its one request. */
		code = count == 1 ? MPI_Test(requests, &flag, MPI_STATUS_IGNORE)
				  : MPI_Testall(count, requests, &flag,
						MPI_STATUSES_IGNORE);
		*ended = code == MPI_SUCCESS && flag;
		if (code != MPI_SUCCESS || flag || clock_now_ns() > end_ns)
			return code;
		nanosleep(&pause, NULL);
	}
}

/* Wait until the request has ended.  0, or -errno with *failure filled. */
static int await(MPI_Request *request, uint64_t for_ns, struct failure *failure)
{
	bool ended;
	int error =
		check(mpi_await(1, request, clock_now_ns() + for_ns, &ended),
		      failure);

	if (error || ended)
		return error;
	return failure_set(failure, EXIT_PEER, NULL, 0,
			   "MPI: a rank has not come within %.1f s",
			   (double)for_ns / 1e9);
}

/* --- what waits -------------------------------------------------------------
 *
 * MPI_Init_thread and MPI_Finalize wait for all ranks and cannot be polled:
 * when they take too long, the process ends, and the launcher ends the others.
 */

#define PREFIX "blinksort-mpi: "

/* What is said when the one limit at a time is over. */
static const char *volatile late_line;

static void handle_alarm(int number)
{
	const char *line = late_line;
	ssize_t written = write(STDERR_FILENO, line, strlen(line));

	(void)number, (void)written;
	_exit(EXIT_PEER);
}

static void begin_limit(struct sigaction *before, unsigned seconds,
			const char *line)
{
	const struct sigaction action = { .sa_handler = handle_alarm };

	late_line = line;
	sigaction(SIGALRM, &action, before);
	alarm(seconds);
}

static void end_limit(const struct sigaction *before)
{
	alarm(0);
	sigaction(SIGALRM, before, NULL);
}

static void begin_start(struct sigaction *before, uint64_t deadline_ns)
{
	static char line[128];
	uint64_t seconds = INIT_DEADLINES * (deadline_ns / 1000000) / 1000 + 1;

	snprintf(line, sizeof(line),
		 PREFIX "MPI_Init: not all ranks have come within %u s\n",
		 (unsigned)seconds);
	begin_limit(before, (unsigned)MIN(seconds, UINT32_MAX), line);
}

/* --- starting ---------------------------------------------------------------
 */

/* A launcher that belongs to another MPI starts processes of which each is rank
 * 0 of 1, without a word.  Each would sort its own input. */
static int compare_with_launcher(const struct rank_given *ranks,
				 struct failure *failure)
{
	struct rank_launch launch;

	if (ranks->node_count > 1 || !rank_find_launch(&launch) ||
	    launch.node_count == 1)
		return 0;
	return failure_set(
		failure, EXIT_USAGE, launch.name, 0,
		"this is rank %u of %u, but to MPI it is alone: %s (%.60s)",
		launch.rank, launch.node_count,
		launch.is_slurm ? "give srun --mpi=pmix or --mpi=pmi2"
				: "start it by the mpirun of its own MPI",
		mpi_library());
}

static int find_rank(struct mpi_world *world, struct failure *failure)
{
	struct rank_given *ranks = &world->ranks;
	int rank = 0, count = 0;

	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &count);
	ranks->source = "mpi";
	ranks->rank = (unsigned)rank;
	ranks->node_count = (unsigned)count;
	if (count > RANK_NODES_MAX)
		return failure_set(failure, EXIT_USAGE, NULL, 0,
				   "%d ranks: want 1 to %d", count,
				   RANK_NODES_MAX);
	return compare_with_launcher(ranks, failure);
}

/* Ranks of one boot and user, or where that cannot be told, of one name. */
static bool share_machine(const struct mpi_place *a, const struct mpi_place *b)
{
	return a->host_id == b->host_id &&
	       (a->host_id != 0 || strcmp(a->name, b->name) == 0);
}

static void count_machine(struct rank_given *ranks,
			  const struct mpi_place *places)
{
	ranks->machine_rank = ranks->machine_count = 0;
	for (unsigned i = 0; i < ranks->node_count; i++) {
		if (!share_machine(&places[i], &places[ranks->rank]))
			continue;
		ranks->machine_rank += i < ranks->rank;
		ranks->machine_count++;
	}
}

/* Rank 0 draws the secret: the name of a gathered file follows from it. */
static void describe_own(struct mpi_place *place, unsigned rank)
{
	int length = 0;

	MPI_Get_processor_name(place->name, &length);
	place->host_id = machine_host_id();
	if (rank == 0)
		randombytes_buf(place->secret, sizeof(place->secret));
}

/* One collective for all, since 16 ranks that share two CPUs spend some
 * milliseconds in each. */
static int find_places(struct mpi_world *world, uint64_t deadline_ns,
		       struct failure *failure)
{
	struct rank_given *ranks = &world->ranks;
	unsigned count = ranks->node_count;
	MPI_Request request;
	int error;

	world->places = calloc(count, sizeof(*world->places));
	world->names = calloc(count, sizeof(*world->names));
	if (!world->places || !world->names)
		return failure_no_memory(failure);
	describe_own(&world->places[ranks->rank], ranks->rank);
	error = check(MPI_Iallgather(MPI_IN_PLACE, 0, MPI_BYTE, world->places,
				     sizeof(*world->places), MPI_BYTE,
				     MPI_COMM_WORLD, &request),
		      failure);
	if (error == 0)
		error = await(&request, deadline_ns, failure);
	if (error)
		return error;
	for (unsigned i = 0; i < count; i++)
		world->names[i] = world->places[i].name;
	ranks->names = world->names;
	memcpy(ranks->secret, world->places[0].secret, sizeof(ranks->secret));
	count_machine(ranks, world->places);
	return 0;
}

static void free_world(struct mpi_world *world)
{
	free(world->names);
	free(world->places);
	free(world);
}

int mpi_world_start(struct mpi_world **started, uint64_t deadline_ns,
		    struct failure *failure)
{
	struct mpi_world *world = calloc(1, sizeof(*world));
	uint64_t begin_ns = clock_now_ns();
	int provided = 0, error;
	struct sigaction before;

	*started = NULL;
	if (!world)
		return failure_no_memory(failure);
	begin_start(&before, deadline_ns);
	error = check(
		MPI_Init_thread(NULL, NULL, MPI_THREAD_FUNNELED, &provided),
		failure);
	end_limit(&before);
	if (error) {
		free_world(world);
		return error;
	}
	world->init_ns = clock_now_ns() - begin_ns;
	MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
	error = find_rank(world, failure);
	if (error == 0)
		error = find_places(world, deadline_ns, failure);
	/* Where ranks have not come, MPI_Finalize would wait for them. */
	world->has_pending = error && failure->status != EXIT_USAGE;
	*started = world;
	return error;
}

const struct rank_given *mpi_world_ranks(const struct mpi_world *world)
{
	return &world->ranks;
}

uint64_t mpi_world_init_ns(const struct mpi_world *world)
{
	return world->init_ns;
}

const char *mpi_library(void)
{
	static char text[MPI_MAX_LIBRARY_VERSION_STRING];
	int length = 0;

	MPI_Get_library_version(text, &length);
	text[strcspn(text, "\n")] = '\0';
	for (char *at = text; *at != '\0'; at++)
		if (*at == '\t')
			*at = ' ';
	return text;
}

/* --- ending -----------------------------------------------------------------
 */

/* All ranks have come here, so that none is killed before it has printed its
 * message. */
static bool meet(void)
{
	struct failure failure;
	MPI_Request request;

	return MPI_Ibarrier(MPI_COMM_WORLD, &request) == MPI_SUCCESS &&
	       await(&request, FAREWELL_NS, &failure) == 0;
}

/* Notes that were under way when the exchange ended: MPI_Finalize may complain
 * of what nobody has received.  One that MPI has found is here whole. */
static void take_late_notes(void)
{
	for (;;) {
		struct mpi_note note;
		MPI_Status status;
		int flag = 0, byte_count = 0;

		if (MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD,
			       &flag, &status) != MPI_SUCCESS ||
		    !flag)
			return;
		MPI_Get_count(&status, MPI_BYTE, &byte_count);
		if ((size_t)byte_count > sizeof(note) ||
		    MPI_Recv(&note, byte_count, MPI_BYTE, status.MPI_SOURCE,
			     status.MPI_TAG, MPI_COMM_WORLD,
			     MPI_STATUS_IGNORE) != MPI_SUCCESS)
			return;
	}
}

static uint64_t finalize(void)
{
	uint64_t begin_ns = clock_now_ns();
	struct sigaction before;

	begin_limit(&before, FINALIZE_S,
		    PREFIX "MPI_Finalize does not end: a rank is gone\n");
	take_late_notes();
	MPI_Finalize();
	end_limit(&before);
	return clock_now_ns() - begin_ns;
}

void mpi_world_leave_pending(struct mpi_world *world)
{
	world->has_pending = true;
}

uint64_t mpi_world_end(struct mpi_world *world, enum exit_status status)
{
	uint64_t finalize_ns;

	if (status != EXIT_DONE && !meet())
		world->has_pending = true;
	if (world->has_pending)
		MPI_Abort(MPI_COMM_WORLD, (int)status);
	if (world->has_pending)
		_exit((int)status);
	finalize_ns = finalize();
	free_world(world);
	return finalize_ns;
}
