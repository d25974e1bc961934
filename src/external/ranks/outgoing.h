/*
 * outgoing.h - blocks of our runs on their way to other ranks, wave by wave
 *
 * A wave has a message for each rank: of each of our runs, in their order, the
 * blocks that the rank's piece of that number has, as they are stored.  One
 * wave is read into an area of memory while the wave before is sent from
 * another one.
 *
 * All functions belong to one thread at a time; messages may be read by another
 * one meanwhile.
 */
#ifndef OUTGOING_H
#define OUTGOING_H

#include "external/runs/run_index.h"
#include "io/input/read_ahead.h"
#include "kernels/gather.h"

/* What a rank wants of our runs.  Its piece p has the blocks of run r from
 * first_block[p * run_count + r] up to that of piece p + 1. */
struct outgoing_wants {
	uint32_t piece_count;
	uint32_t *first_block; /* [(piece_count + 1) * run_count] */
};

struct outgoing_message {
	const uint8_t *bytes;
	uint64_t byte_count;
};

/* All pointers are borrowed until outgoing_close(). */
struct outgoing_request {
	const struct run_index *index;
	const struct scratch *scratch;
	/* [rank_count]; they are good: outgoing_wants_are_good(). */
	const struct outgoing_wants *wants;
	unsigned rank_count;
	uint32_t wave_count; /* no rank has more pieces */
	uint8_t *areas[2];   /* of area_bytes each */
	size_t area_bytes;
	/* Staging slots for reads. */
	uint8_t *memory;
	uint32_t slot_bytes;
	unsigned depth;
	enum cpu_level kernel;
	struct stage_clock *clock; /* of the thread that reads, or NULL */
};

/* A place in the order in which blocks are sent: the next one to be read. */
struct outgoing_cursor {
	uint32_t wave;
	unsigned rank, run;
	uint32_t block;
};

struct outgoing {
	struct outgoing_request request;
	uint32_t read_waves; /* have been read */
	gather_fn *gather;
	/* [rank_count], owned: of the even and of the odd one of the last two
	 * waves that have been read. */
	struct outgoing_message *messages[2];
	struct read_ahead reads;
	struct outgoing_cursor ahead;
};

/* Do the blocks of each run ascend with the pieces, from first[run] to
 * end[run], and has no piece more than bytes_max of them? */
bool outgoing_wants_are_good(const struct outgoing_wants *wants,
			     const struct run_index *index,
			     const uint32_t *first, const uint32_t *end,
			     uint64_t bytes_max);

/* 0 or -errno with *failure filled. */
int outgoing_open(struct outgoing *outgoing,
		  const struct outgoing_request *request,
		  struct failure *failure);

/* Read the next wave, in place of the last but one.  0 or -errno with *failure
 * filled. */
int outgoing_read(struct outgoing *outgoing, struct failure *failure);

/* Safe on a zeroed one. */
void outgoing_close(struct outgoing *outgoing);

#endif /* OUTGOING_H */
