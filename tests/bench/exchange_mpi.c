/*
 * exchange_mpi.c - the exchange over MPI against MPI_Alltoallv
 *
 * usage: mpirun -n N exchange_mpi [MEGABYTES [ROUNDS]]
 *
 * All ranks together hold so much data (94 MB), in equal messages of records of
 * 100 bytes.  Each round is one collective of each kind, one after the other:
 *
 *   raw           MPI_Alltoallv, of what lies ready
 *   exchange      exchange/mpi/mpi.h, of the same
 *   packed raw    records are gathered from random places into one buffer, and
 *                 then MPI_Alltoallv
 *   packed        the exchange, whose read function gathers them
 *   empty         the exchange, of no bytes
 *
 * A collective is taken from an MPI_Barrier to when the last rank is through.
 * Each byte that arrives is checked, after the clock has stopped.  Rank 0
 * prints the least and the median, in ms, and the ratios of the medians.
 * Memory is warm, as it is not in a sort.  make mpi-bench compiles it.
 *
 * Two ranks that have a CPU each also print how long a cache line takes from
 * one to the other: the median, before each "packed".  A virtual machine may
 * move between CPUs that share a cache and others that share none, without a
 * trace within it.  Only "packed" writes again and again to lines that the
 * other rank has in its cache, and takes up to three times as long then.
 */
#include <mpi.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/base.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/cpu.h"
#include "exchange/mpi/mpi.h"
#include "kernels/gather.h"
#include "messages.h"

#define RECORD_BYTES 100
#define ROUNDS_MAX 200
#define DEADLINE_NS ((uint64_t)20000000000)
#define PASSES 2000

enum kind { RAW, EXCHANGE, PACKED_RAW, PACKED, EMPTY, KINDS };

static const char *const names[KINDS] = { "raw", "exchange", "packed raw",
					  "packed", "empty" };

static unsigned own, rank_count;
static uint64_t message_records;
static uint8_t *pack_buffer;
static uint64_t *order; /* of all our records: where they lie in out */
static gather_fn *gather;
static bool packs;
static volatile uint64_t *passed; /* shared by two ranks; NULL: not two */

/* --- the exchange's functions -----------------------------------------------
 */

static void read_records(void *context, unsigned to, uint64_t offset,
			 uint8_t *target, size_t byte_count)
{
	(void)context;
	gather_bytes(gather, target, byte_count, out, RECORD_BYTES,
		     order + to * message_records + offset / RECORD_BYTES,
		     offset % RECORD_BYTES, UINT64_MAX);
}

static const uint8_t *find_message(void *context, unsigned to, uint64_t offset,
				   size_t *room)
{
	(void)context;
	*room = message_bytes - offset;
	return out + to * message_bytes + offset;
}

static int exchange_all(struct exchange *x, struct failure *failure)
{
	uint64_t send_bytes[RANK_NODES_MAX];
	struct exchange_collective collective =
		make_collective(send_bytes, rank_count);
	int error;

	if (packs)
		collective.read = read_records;
	else
		collective.find = find_message;
	error = exchange_begin(x, &collective, failure);
	return error ? error : exchange_finish(x, failure);
}

/* --- MPI's own ---------------------------------------------------------------
 */

static void alltoall(void)
{
	int counts[RANK_NODES_MAX], places[RANK_NODES_MAX];
	const uint8_t *sent = out;

	for (unsigned i = 0; packs && i < rank_count; i++)
		if (i != own)
			read_records(NULL, i, 0,
				     pack_buffer + i * message_bytes,
				     message_bytes);
	if (packs)
		sent = pack_buffer;
	for (unsigned i = 0; i < rank_count; i++) {
		counts[i] = i == own ? 0 : (int)message_bytes;
		places[i] = (int)(i * message_bytes);
	}
	MPI_Alltoallv(sent, counts, places, MPI_BYTE, in, counts, places,
		      MPI_BYTE, MPI_COMM_WORLD);
}

/* --- records
 * ------------------------------------------------------------------ */

/* The first bytes of a record say whose it is, and which. */
static void make_records(void)
{
	uint64_t count = rank_count * message_records, seed = own + 1;

	for (uint64_t i = 0; i < count; i++) {
		memset(out + i * RECORD_BYTES, (int)(own + i), RECORD_BYTES);
		store_le64(out + i * RECORD_BYTES, own * count + i);
		order[i] = i;
	}
	for (uint64_t i = count; i-- > 1;) {
		uint64_t other, swapped = order[i];

		seed = seed * 6364136223846793005 + 1442695040888963407;
		other = (seed >> 33) % (i + 1);
		order[i] = order[other];
		order[other] = swapped;
	}
}

/* Without packing the records come in the order of their numbers. */
static void check(unsigned from, uint64_t number_at_first)
{
	const uint8_t *message = in + from * message_bytes;
	uint64_t count = rank_count * message_records;

	for (uint64_t i = 0; i < message_records; i++) {
		const uint8_t *record = message + i * RECORD_BYTES;
		uint64_t number = load_le64(record);

		if (number / count != from ||
		    (!packs && number != number_at_first + i) ||
		    record[8] != (uint8_t)(from + number % count) ||
		    record[RECORD_BYTES - 1] != record[8]) {
			log_warnx("rank %u: wrong bytes of rank %u", own, from);
			MPI_Abort(MPI_COMM_WORLD, 1);
		}
	}
}

static void check_all(void)
{
	for (unsigned from = 0; from < rank_count; from++)
		if (from != own)
			check(from,
			      (uint64_t)from * rank_count * message_records +
				      own * message_records);
	memset(in, 0, rank_count * message_bytes);
}

/* --- measuring
 * ---------------------------------------------------------------- */

static int compare(const void *a, const void *b)
{
	const double *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

static double measure(enum kind kind, struct exchange *x)
{
	struct failure failure;
	uint64_t full_bytes = message_bytes;
	double begin_s, took_s, longest_s;

	message_bytes = kind == EMPTY ? 0 : full_bytes;
	packs = kind == PACKED_RAW || kind == PACKED;
	MPI_Barrier(MPI_COMM_WORLD);
	begin_s = MPI_Wtime();
	if (kind == RAW || kind == PACKED_RAW)
		alltoall();
	else if (exchange_all(x, &failure) < 0)
		MPI_Abort(MPI_COMM_WORLD, log_failure(&failure));
	took_s = MPI_Wtime() - begin_s;
	MPI_Allreduce(&took_s, &longest_s, 1, MPI_DOUBLE, MPI_MAX,
		      MPI_COMM_WORLD);
	message_bytes = full_bytes;
	if (kind != EMPTY)
		check_all();
	return longest_s * 1e3;
}

static void share_line(void)
{
	MPI_Win window;
	MPI_Aint byte_count;
	int unit;
	void *line;

	MPI_Win_allocate_shared(own == 0 ? 64 : 0, 1, MPI_INFO_NULL,
				MPI_COMM_WORLD, &line, &window);
	MPI_Win_shared_query(window, 0, &byte_count, &unit, &line);
	passed = line;
}

/* From one rank to the other, in ns. */
static double pass_line(void)
{
	double begin_s;

	if (own == 0)
		*passed = 0;
	MPI_Barrier(MPI_COMM_WORLD);
	begin_s = MPI_Wtime();
	for (uint64_t i = own; i < PASSES; i += 2) {
		while (*passed != i)
			;
		*passed = i + 1;
	}
	return (MPI_Wtime() - begin_s) / PASSES * 1e9;
}

static void report_line(double took_ns[ROUNDS_MAX], unsigned round_count)
{
	qsort(took_ns, round_count, sizeof(double), compare);
	printf("a cache line takes %.0f ns from rank to rank, %.0f to %.0f\n",
	       took_ns[round_count / 2], took_ns[0], took_ns[round_count - 1]);
}

static void report(double took_ms[KINDS][ROUNDS_MAX], unsigned round_count)
{
	double medians[KINDS];

	printf("%u ranks, %s; ms\n%-12s %8s %8s\n", rank_count, mpi_library(),
	       "kind", "min", "median");
	for (unsigned kind = 0; kind < KINDS; kind++) {
		qsort(took_ms[kind], round_count, sizeof(double), compare);
		medians[kind] = took_ms[kind][round_count / 2];
		printf("%-12s %8.2f %8.2f\n", names[kind], took_ms[kind][0],
		       medians[kind]);
	}
	printf("exchange / raw %.2f, packed / packed raw %.2f\n",
	       medians[EXCHANGE] / medians[RAW],
	       medians[PACKED] / medians[PACKED_RAW]);
}

static void make_memory(double megabytes)
{
	message_records = (uint64_t)(megabytes * 1e6 / RECORD_BYTES /
				     rank_count / MAX(1, rank_count - 1));
	message_bytes = message_records * RECORD_BYTES;
	out = malloc(rank_count * message_bytes);
	in = malloc(rank_count * message_bytes);
	pack_buffer = malloc(rank_count * message_bytes);
	order = malloc(rank_count * message_records * sizeof(*order));
	if (!out || !in || !pack_buffer || !order)
		MPI_Abort(MPI_COMM_WORLD, 5);
	memset(in, 0, rank_count * message_bytes);
	memset(pack_buffer, 0, rank_count * message_bytes);
	make_records();
}

int main(int argc, char **argv)
{
	static double took_ms[KINDS][ROUNDS_MAX], line_ns[ROUNDS_MAX];
	struct exchange_options options = { .deadline_ns = DEADLINE_NS };
	unsigned round_count = argc > 2 ? (unsigned)atoi(argv[2]) : 20;
	struct rank_options wanted = { 0 };
	struct failure failure;
	struct mpi_world *world;
	struct exchange *x;
	struct rank rank;

	log_init("exchange_mpi");
	if (mpi_world_start(&world, DEADLINE_NS, &failure) < 0)
		return log_failure(&failure);
	wanted.given = mpi_world_ranks(world);
	if (rank_find(&rank, &wanted, &failure) < 0)
		return log_failure(&failure);
	own = rank.rank;
	rank_count = rank.node_count;
	if (round_count < 1 || round_count > ROUNDS_MAX || rank_count < 2)
		MPI_Abort(MPI_COMM_WORLD, EXIT_USAGE);
	options.rank = &rank;
	options.spins = rank_count <= (unsigned)sysconf(_SC_NPROCESSORS_ONLN);
	gather = gather_kernel(cpu_level_detect(), RECORD_BYTES);
	make_memory(argc > 1 ? atof(argv[1]) : 94);
	if (rank_count == 2 && options.spins)
		share_line();
	x = mpi_open(world, &options, &failure);
	if (!x || exchange_join(x, &failure) < 0)
		MPI_Abort(MPI_COMM_WORLD, log_failure(&failure));
	for (unsigned round = 0; round < round_count; round++)
		for (unsigned kind = 0; kind < KINDS; kind++) {
			if (kind == PACKED && passed)
				line_ns[round] = pass_line();
			took_ms[kind][round] = measure((enum kind)kind, x);
		}
	if (own == 0)
		report(took_ms, round_count);
	if (own == 0 && passed)
		report_line(line_ns, round_count);
	exchange_close(x);
	rank_free(&rank);
	mpi_world_end(world, EXIT_DONE);
	return 0;
}
