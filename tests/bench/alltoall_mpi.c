/*
 * alltoall_mpi.c - the exchange as an MPI program does it, from start to end
 *
 * usage: mpirun -n N alltoall_mpi [RECORDS]
 *
 * Each rank makes its part of RECORDS (1,000,000) records of 100 bytes, as many
 * for each other rank, and one MPI_Alltoallv brings them there.  Nothing is
 * read, sorted or written.  Rank 0 prints the nanoseconds of the exchange
 * alone, from the begin of the last rank to the end of the last; the caller of
 * mpirun measures the whole.  Compiled by cluster.sh with the mpicc that
 * is installed.
 */
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define RECORD_BYTES 100

/* Other bytes for each pair, so that nothing arrives by accident. */
static int byte_of(int from, int to)
{
	return (from * 37 + to) & 0xff;
}

static void check(const uint8_t *received, int rank, int ranks,
		  int message_bytes)
{
	for (int from = 0; from < ranks; from++) {
		const uint8_t *message =
			received + (size_t)from * (size_t)message_bytes;
		int expected = byte_of(from, rank);

		if (message_bytes > 0 &&
		    (message[0] != expected ||
		     message[message_bytes - 1] != expected))
			MPI_Abort(MPI_COMM_WORLD, 1);
	}
}

int main(int argc, char **argv)
{
	long records = argc > 1 ? atol(argv[1]) : 1000000;
	int rank, ranks, *counts, *places, message_bytes;
	uint8_t *sent, *received;
	size_t part_bytes;
	double begin_s;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &ranks);
	message_bytes = (int)(records / ranks / ranks * RECORD_BYTES);
	part_bytes = (size_t)message_bytes * (size_t)ranks;
	sent = malloc(part_bytes);
	received = malloc(part_bytes);
	counts = malloc((size_t)ranks * sizeof(*counts));
	places = malloc((size_t)ranks * sizeof(*places));
	if (!sent || !received || !counts || !places)
		MPI_Abort(MPI_COMM_WORLD, 5);
	for (int to = 0; to < ranks; to++) {
		counts[to] = message_bytes;
		places[to] = to * message_bytes;
		memset(sent + places[to], byte_of(rank, to),
		       (size_t)message_bytes);
	}

	MPI_Barrier(MPI_COMM_WORLD);
	begin_s = MPI_Wtime();
	MPI_Alltoallv(sent, counts, places, MPI_BYTE, received, counts, places,
		      MPI_BYTE, MPI_COMM_WORLD);
	MPI_Barrier(MPI_COMM_WORLD);
	if (rank == 0)
		printf("%.0f\n", (MPI_Wtime() - begin_s) * 1e9);
	check(received, rank, ranks, message_bytes);
	MPI_Finalize();
	return 0;
}
