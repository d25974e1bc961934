/*
 * piece_source.h - the pieces of a merge as a source, piece after piece
 *
 * A piece's records lie in the batch run by run, so that slots ascend as the
 * input does: of each run first the rest of the piece before, then its blocks.
 * Workers read shares of the blocks, in that order, through staging slots.
 * Each block is checked by its CRC, and copied or decompressed to its place;
 * or, if it lies in an input file, it is copied and must be in order.
 *
 * Blocks that come from other ranks (run_part.h) lie in memory when their piece
 * begins.
 */
#ifndef PIECE_SOURCE_H
#define PIECE_SOURCE_H

#include "external/runs/batch.h"
#include "external/runs/codec.h"
#include "external/plan/merge_plan.h"
#include "io/input/read_ahead.h"
#include "io/input/source.h"
#include "kernels/crc32c.h"

/* A step through the items of a piece: of each run its rest, then its blocks.
 */
struct piece_cursor {
	uint32_t piece;
	unsigned run;	     /* counted from the first run of the merge */
	uint32_t item;	     /* of the run: 0 is the rest */
	uint64_t left_items; /* of the worker's share of the piece */
};

/* One worker's. */
struct piece_reader {
	_Alignas(CACHE_PAIR_BYTES) struct read_ahead reads;
	struct piece_source *source;
	struct codec_decoder decoder;
	unsigned worker;
	struct piece_cursor ahead; /* what is to be read next */
	struct piece_cursor at;	   /* what is to be copied next */
};

/* What lies behind the end of a piece, of the blocks that it has of a run. */
struct piece_rest {
	const uint8_t *records; /* in the batch of that piece */
	uint64_t record_count;
};

struct piece_source {
	/* The owner sets these before piece_source_open(). */
	const struct merge_plan *plan;
	const struct scratch *scratch;
	/* NULL: runs in input files have been found to be in order. */
	const struct input *input;
	enum cpu_level kernel;
	unsigned worker_count;
	unsigned depth; /* slots of each worker */
	uint32_t slot_bytes;
	uint8_t *memory; /* worker_count * depth * slot_bytes */
	/* That the blocks are compressed with, if they are. */
	struct codec codec;
	uint8_t *decoder_memory; /* worker_count * decoder_bytes */
	size_t decoder_bytes;	 /* codec_decoder_bytes() */

	struct source source; /* of the current piece's records */
	crc32c_fn *crc;
	gather_fn *gather;
	uint32_t piece; /* the current one */
	uint32_t next_piece;
	struct piece_reader *readers; /* [worker_count], owned */
	/* [run_count], owned.  A worker sets the new rest of a run when it has
	 * copied the last that the piece has of the run. */
	struct piece_rest *rests, *new_rests;
	uint64_t *slots; /* [run_count]: of each run, the first slot */
	const uint8_t *const *received;
};

/* 0 or -errno with *failure filled. */
int piece_source_open(struct piece_source *pieces, struct failure *failure);

/* The caller, between pieces: the next one's records go to this batch.  It may
 * be that of the piece before, all of whose records but its rests are in the
 * output.  False: no piece is left. */
bool piece_source_begin(struct piece_source *pieces, struct batch *batch);

/* Where blocks come from other ranks, say before that where they lie:
 * [run_count], the first one that the next piece has of each run.  Borrowed
 * until the piece has been brought in. */
void piece_source_set_received(struct piece_source *pieces,
			       const uint8_t *const *received);

/* A piece has been brought in: how many records its blocks have behind its end.
 */
uint64_t piece_source_rest_records(const struct piece_source *pieces);

/* Safe on a zeroed one. */
void piece_source_close(struct piece_source *pieces);

#endif /* PIECE_SOURCE_H */
