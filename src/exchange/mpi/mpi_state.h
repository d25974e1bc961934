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
#include "exchange/exchange.h"
#include "exchange/mpi/mpi.h"

#define MPI_WINDOW_MAX 64

/* Of a host, as MPI_Get_processor_name() tells it. */
#define MPI_NAME_BYTES 256

/* What all ranks learn of one before the exchange is opened. */
struct mpi_place {
	char name[MPI_NAME_BYTES];
	uint64_t host_id;		   /* machine_host_id() */
	uint8_t secret[RANK_SECRET_BYTES]; /* of rank 0; others: 0 */
};

/* mpi_world.c writes it; mpi.c what is marked by *.  Nobody else uses
 * MPI_COMM_WORLD in this process, which needs no other communicator. */
struct mpi_world {
	struct rank_given ranks;
	struct mpi_place *places; /* [rank] */
	const char **names;	  /* [rank]: ranks.names */
	uint64_t init_ns;
	/* * There are requests that did not end: neither may their memory be
	 * freed, nor may MPI_Finalize be called, which may wait for them. */
	bool has_pending;
};

enum mpi_note_kind {
	MPI_NOTE_HELLO = 1, /* text: the hello; number: bytes of a chunk */
	/* Of the epoch, once; text: of all messages; or number: of the one to
	 * the destination. */
	MPI_NOTE_LENGTHS,
	MPI_NOTE_PHASE,	 /* text: the application payload, to rank 0 */
	MPI_NOTE_TOLD,	 /* text: the application payload */
	MPI_NOTE_ALIVE,	 /* of the delay, or that there is none */
	MPI_NOTE_FAILED, /* text: why; number: node << 32 | status */
};

/* The beginning of a note; behind it come text_bytes. */
struct mpi_note_head {
	uint32_t kind;
	uint32_t phase, epoch;
	/* The sender may be silent for that time: 0 to
	 * EXCHANGE_DELAY_MS_MAX. */
	uint32_t delay_ms;
	uint64_t number;
	uint64_t text_bytes;
};

/* More than EXCHANGE_LEAD_MAX, and a power of two. */
#define MPI_ANNOUNCED 4

/* Text of a note: LENGTHS has the most, or FAILED. */
#define MPI_NOTE_TEXT_MAX (EXCHANGE_KNOWN_MAX * sizeof(uint64_t))

struct mpi_note {
	struct mpi_note_head head;
	uint8_t text[MPI_NOTE_TEXT_MAX];
};

/* A note that is being sent. */
struct mpi_sent_note {
	struct mpi_sent_note *next;
	struct mpi_note note;
	unsigned request_count, requests_max;
	MPI_Request requests[];
};

struct mpi_peer {
	/* mpi_notes.c, with each note. */
	bool meets;   /* it is of the ring; mpi.c */
	bool is_here; /* the hello has come */
	uint8_t hello[EXCHANGE_HELLO_BYTES_MAX];
	size_t hello_bytes;
	uint32_t phase;
	/* For our epoch and those that it may be ahead: [epoch %
	 * MPI_ANNOUNCED]. */
	struct mpi_announced {
		uint32_t epoch;	     /* 0: not yet */
		uint64_t byte_count; /* of the message to us */
		/* [destination], or NULL of too many ranks; owned, by mpi.c. */
		uint64_t *bytes;
		bool has_all; /* bytes is filled */
	} announced[MPI_ANNOUNCED];
	uint8_t application[EXCHANGE_APPLICATION_BYTES_MAX];
	size_t application_bytes;
	/* When something last came from it: also by mpi_chunks.c, and by mpi.c
	 * when this rank was away. */
	uint64_t heard_ns;
	uint64_t quiet_until_ns;
	/* mpi.c; 0: we do not wait for it. */
	uint64_t waiting_since_ns;

	/* mpi_chunks.c: of the epoch's messages, what has arrived and what is
	 * sent, up to which offset. */
	uint64_t in_bytes, in_prefix;
	uint64_t out_bytes, out_done_bytes;
};

/* A chunk under way. */
struct mpi_chunk {
	unsigned node;
	uint64_t offset;
	size_t byte_count;
	uint8_t *target; /* of one to us: its place, or the buffer */
	bool is_done;
	uint8_t *buffer; /* owned; NULL until it is needed */
};

/* Chunks of one direction go by turns to, or from, the ranks in the order of
 * their rounds. */
struct mpi_turn {
	unsigned round; /* 1 .. ring_count - 1; ring_count: no chunk is left */
	uint64_t offset;
};

struct mpi {
	struct exchange base; /* first: see mpi_of() */
	/* By mpi.c, when it opens. */
	struct mpi_world *world;
	uint64_t deadline_ns;
	struct trace_lane *lane;
	uint8_t hello[EXCHANGE_HELLO_BYTES_MAX];
	size_t hello_bytes;
	size_t chunk_bytes;	/* of a full chunk; the same on all ranks */
	unsigned window;	/* chunks from us under way, at most */
	unsigned in_window;	/* to us; <= window */
	struct mpi_peer *peers; /* [node]; owned */

	/* By mpi.c. */
	const struct exchange_collective *collective; /* NULL: between them */
	uint32_t epoch; /* number of the collective, from 1; 0: none yet */
	bool is_prepared;
	uint32_t phase_wanted;
	uint32_t delay_ms; /* announced until the next barrier */
	uint8_t application[EXCHANGE_APPLICATION_BYTES_MAX];
	size_t application_bytes;
	uint64_t *send_bytes; /* [node]; owned */
	/* The ranks that meet in the collective, in the order of rounds: the
	 * own one, the next one, ..., the one that precedes the own; owned. */
	unsigned *ring;
	unsigned ring_count;
	uint64_t served_ns; /* when advance() last ran */
	uint64_t alive_ns;  /* when to tell next that we are alive */
	uint64_t wait_ns;   /* since when there is nothing to do; 0: there is
			       something */
	bool has_told_failure;

	/* By mpi_notes.c. */
	struct mpi_sent_note *notes; /* owned */
	struct mpi_note heard;	     /* the next one */
	MPI_Request hearing;

	/* By mpi_chunks.c: first those to us, then those from us. */
	MPI_Request requests[2 * MPI_WINDOW_MAX];
	struct mpi_chunk chunks[2 * MPI_WINDOW_MAX];
	/* Chunks to us are awaited in the order in which they were begun. */
	unsigned in_first, in_count, out_count;
	struct mpi_turn in_turn, out_turn;
	unsigned in_left; /* messages that are not whole yet */
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
	return x->base.rank->node_count;
}

static inline unsigned mpi_own(const struct mpi *x)
{
	return x->base.rank->rank;
}

/* --- mpi_world.c ------------------------------------------------------------
 */

/* Is the code of an MPI function MPI_SUCCESS?  If not, the run has failed. */
bool mpi_succeeds(struct mpi *x, int code);

/* --- mpi_notes.c ------------------------------------------------------------
 */

/* Send a note to one rank, to all.  number and text are as the kind has them.
 */
void mpi_notes_send(struct mpi *x, unsigned node, enum mpi_note_kind kind,
		    uint64_t number, const void *text, size_t text_bytes);
void mpi_notes_send_all(struct mpi *x, enum mpi_note_kind kind, uint64_t number,
			const void *text, size_t text_bytes);
/* All notes have left. */
bool mpi_notes_are_sent(struct mpi *x);
/* Take all notes that have come.  True if there was any. */
bool mpi_notes_receive(struct mpi *x);
/* Safe if no note was sent or received.  False: some requests do not end. */
bool mpi_notes_close(struct mpi *x);

/* What the node has announced for our epoch, or for an earlier one. */
static inline const struct mpi_announced *mpi_announced(const struct mpi *x,
							unsigned node)
{
	return &x->peers[node].announced[x->epoch % MPI_ANNOUNCED];
}

static inline bool mpi_has_announced(const struct mpi *x, unsigned node)
{
	return mpi_announced(x, node)->epoch == x->epoch;
}

/* --- mpi_chunks.c -----------------------------------------------------------
 */

/* All ranks have announced, and the collective is prepared. */
void mpi_chunks_begin(struct mpi *x);
/* Begin chunks, and end those that have come or left.  True if any has. */
bool mpi_chunks_advance(struct mpi *x, uint64_t now_ns);
/* False: some requests do not end. */
bool mpi_chunks_close(struct mpi *x);

static inline bool mpi_all_sent(const struct mpi *x)
{
	return x->out_turn.round == x->ring_count && x->out_count == 0;
}

#endif /* MPI_STATE_H */
