/*
 * mpi_state.h - what the parts of the exchange over MPI share; private to it
 *
 * Calls go from the left to the right only:
 *
 *      mpi.c  ->  mpi_chunks.c   records in and out
 *             ->  mpi_notes.c    notes in and out: where each rank stands
 *             ->  mpi_world.c    MPI itself: its start, its errors, its end
 *
 * A comment at a field names the file that writes it; the other files only read
 * it.
 */
#ifndef MPI_STATE_H
#define MPI_STATE_H

#include <mpi.h>

#include "base/base.h"
#include "exchange/exchange_state.h"
#include "exchange/mpi/mpi.h"

#define MPI_WINDOW_MAX 64

/* A host's name, as MPI_Get_processor_name() tells it. */
#define MPI_NAME_BYTES 256

/* What all ranks learn of one before the exchange is opened.
 * Written by mpi_world.c. */
struct mpi_place {
	char name[MPI_NAME_BYTES];
	uint64_t host_id;		   /* machine_host_id() */
	uint8_t secret[RANK_SECRET_BYTES]; /* of rank 0; others: 0 */
};

/* No other code uses MPI_COMM_WORLD in this process, which needs no other
 * communicator.
 * Written by mpi_world.c. */
struct mpi_world {
	struct rank_given ranks;
	struct mpi_place *places; /* [rank] */
	const char **names;	  /* [rank]: ranks.names */
	uint64_t init_ns;
	/* There are requests that did not end: neither may their memory be
	 * freed, nor may MPI_Finalize be called, which may wait for them. */
	bool has_pending;
};

/* The beginning of a note; behind it come text_bytes.
 * Written by mpi_notes.c. */
struct mpi_note_head {
	uint32_t kind; /* enum exchange_news */
	uint32_t phase, epoch;
	/* The sender may be silent for that time: 0 to
	 * EXCHANGE_DELAY_MS_MAX. */
	uint32_t delay_ms;
	/* HELLO: bytes of a chunk.  LENGTHS without a text: of the message to
	 * the destination.  FAILED: node << 32 | status. */
	uint64_t number;
	uint64_t text_bytes;
};

/* The text is the hello, the lengths of all messages, the application payload,
 * or why the run has failed.  Lengths are the longest. */
#define MPI_NOTE_TEXT_MAX (EXCHANGE_KNOWN_MAX * sizeof(uint64_t))

/* Written by mpi_notes.c. */
struct mpi_note {
	struct mpi_note_head head;
	uint8_t text[MPI_NOTE_TEXT_MAX];
};

/* A note that is being sent.
 * Written by mpi_notes.c. */
struct mpi_sent_note {
	struct mpi_sent_note *next;
	struct mpi_note note;
	unsigned request_count, requests_max;
	MPI_Request requests[];
};

/* Up to which offset the epoch's messages have arrived and are sent.
 * Written by mpi_chunks.c. */
struct mpi_peer {
	uint64_t in_bytes, in_prefix;
	uint64_t out_bytes, out_done_bytes;
};

/* A chunk under way.
 * Written by mpi_chunks.c. */
struct mpi_chunk {
	unsigned node;
	uint64_t offset;
	size_t byte_count;
	uint8_t *target; /* of one to us: its place, or the buffer */
	bool is_done;
	uint8_t *buffer; /* owned; NULL until it is needed */
};

/* Chunks of one direction go by turns to, or from, the ranks in the order of
 * their rounds.
 * Written by mpi_chunks.c. */
struct mpi_turn {
	unsigned round; /* 1 .. ring_count - 1; ring_count: no chunk is left */
	uint64_t offset;
};

struct mpi {
	/* Written by exchange.c. */
	struct exchange base; /* first: see mpi_of() */

	/* Written by mpi.c, when it opens. */
	struct mpi_world *world;
	size_t chunk_bytes;	/* of a full chunk; the same on all ranks */
	unsigned window;	/* chunks from us under way, at most */
	unsigned in_window;	/* to us; <= window */
	struct mpi_peer *peers; /* [node]; owned */

	/* Written by mpi.c. */
	uint64_t alive_ns; /* when to tell next that we are alive */
	uint64_t wait_ns;  /* since when there is nothing to do; 0: there is
			      something */

	/* Written by mpi_notes.c. */
	bool has_told_failure;	     /* or has been told of it */
	struct mpi_sent_note *notes; /* owned */
	struct mpi_note heard;	     /* the next one */
	MPI_Request hearing;

	/* Written by mpi_chunks.c. */
	/* First those to us, then those from us. */
	MPI_Request requests[2 * MPI_WINDOW_MAX];
	struct mpi_chunk chunks[2 * MPI_WINDOW_MAX];
	/* Chunks to us are awaited in the order in which they were begun. */
	unsigned in_first, in_count, out_count;
	struct mpi_turn in_turn, out_turn;
};

static inline struct mpi *mpi_of(struct exchange *exchange)
{
	return (struct mpi *)exchange;
}

static inline const struct mpi *mpi_of_const(const struct exchange *exchange)
{
	return (const struct mpi *)exchange;
}

static inline unsigned mpi_node_count(const struct mpi *x)
{
	return exchange_count(&x->base);
}

static inline unsigned mpi_own(const struct mpi *x)
{
	return exchange_own(&x->base);
}

/* --- mpi_world.c ------------------------------------------------------------
 */

/* How long closing waits for requests.  One that was cancelled ends at once,
 * unless its message is under way from a rank that is gone. */
#define MPI_CANCEL_NS ((uint64_t)200000000)

/* Wait for requests to end, until end_ns at most.  Returns MPI's code; *ended:
 * all have. */
int mpi_await(int count, MPI_Request *requests, uint64_t end_ns, bool *ended);
/* Is the code of an MPI function MPI_SUCCESS?  If not, the run has failed. */
bool mpi_succeeds(struct mpi *x, int code);
/* Requests did not end, and their memory stays. */
void mpi_world_leave_pending(struct mpi_world *world);

/* --- mpi_notes.c ------------------------------------------------------------
 */

/* There are no requests yet, for mpi_notes_close(). */
void mpi_notes_init(struct mpi *x);
/* Send a note to one rank, or to EXCHANGE_ALL. */
void mpi_notes_tell(struct mpi *x, unsigned node, enum exchange_news news);
/* All notes have left. */
bool mpi_notes_are_sent(struct mpi *x);
/* Take all notes that have come.  True if there was any. */
bool mpi_notes_receive(struct mpi *x);
/* Safe if no note was sent or received.  False: some requests do not end. */
bool mpi_notes_close(struct mpi *x);

/* --- mpi_chunks.c -----------------------------------------------------------
 */

/* There are no requests yet, for mpi_chunks_close(). */
void mpi_chunks_init(struct mpi *x);
/* All ranks have announced. */
void mpi_chunks_begin(struct mpi *x);
/* Begin chunks, and end those that have come or left.  True if any has. */
bool mpi_chunks_advance(struct mpi *x, uint64_t now_ns);
/* False: some requests do not end. */
bool mpi_chunks_close(struct mpi *x);

#endif /* MPI_STATE_H */
