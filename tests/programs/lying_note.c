/*
 * lying_note.c - a library for LD_PRELOAD whose rank sends notes over MPI that
 * no honest rank sends
 *
 * LIE in the environment says which:
 *
 *   delay   each note announces a silence of 49 days
 *   again   each note with lengths is sent twice
 *
 * Handles of MPI are ints or pointers, as the implementation has them:
 * MPI_Isend passes them on as they come.  Notes are those of mpi_state.h, which
 * cannot be included without mpi.h.
 */
#include <dlfcn.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define TAG_NOTE 1
#define KIND_LENGTHS 2
/* Of a note's u32 fields: the kind, and how long the sender may be silent. */
#define KIND_AT 0
#define DELAY_AT 12

typedef int isend_fn(const void *bytes, int count, void *type, int rank,
		     int tag, void *communicator, void **request);

int MPI_Isend(const void *bytes, int count, void *type, int rank, int tag,
	      void *communicator, void **request);

static bool lies(const char *lie)
{
	const char *wanted = getenv("LIE");

	return wanted && strcmp(wanted, lie) == 0;
}

int MPI_Isend(const void *bytes, int count, void *type, int rank, int tag,
	      void *communicator, void **request)
{
	isend_fn *isend = (isend_fn *)dlsym(RTLD_NEXT, "MPI_Isend");
	uint32_t kind, delay_ms = UINT32_MAX;

	if (tag != TAG_NOTE)
		return isend(bytes, count, type, rank, tag, communicator,
			     request);
	memcpy(&kind, (const uint8_t *)bytes + KIND_AT, sizeof(kind));
	/* The note is in memory that the program writes to, too. */
	if (lies("delay"))
		memcpy((uint8_t *)bytes + DELAY_AT, &delay_ms,
		       sizeof(delay_ms));
	if (lies("again") && kind == KIND_LENGTHS) {
		void *copy = malloc((size_t)count);
		void **second = calloc(1, sizeof(*second));

		/* Nobody waits for this one: its memory stays. */
		memcpy(copy, bytes, (size_t)count);
		isend(copy, count, type, rank, tag, communicator, second);
	}
	return isend(bytes, count, type, rank, tag, communicator, request);
}
