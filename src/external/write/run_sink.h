/*
 * run_sink.h - the sink that is a sorted run in scratch files
 *
 * A chunk is some blocks of the run (run_index.h).  The worker that hands over
 * a chunk compresses its blocks, if that is chosen, and packs them side by
 * side; computes their checksums and keeps their first keys; then the chunk is
 * written to the scratch directory that has the least to write.  If that
 * directory is full, another one takes its place.
 *
 * Nothing is left to wait for when a chunk is handed over, so the memory of the
 * batch that it came from may be filled again.
 */
#ifndef RUN_SINK_H
#define RUN_SINK_H

#include <pthread.h>

#include "base/first_failure.h"
#include "external/plan/codec_choice.h"
#include "external/runs/run_index.h"
#include "io/output/sink.h"
#include "io/output/write_queue.h"
#include "kernels/crc32c.h"
#include "system/thread_pool.h"

/* A slot for each worker, and for each write under way. */
#define RUN_SINK_SLOTS_MAX (THREAD_POOL_WORKERS_MAX + 8)

struct run_sink_slot {
	struct sink_slot slot; /* the first member */
	struct scratch_place place;
	uint32_t first_block;
	uint32_t stored_bytes; /* of all its blocks */
	uint32_t padded_bytes;
	struct codec_encoder *encoder; /* from take() to put() */
};

struct run_sink {
	struct sink sink; /* the first member */
	struct run_index *index;
	struct scratch *scratch;
	crc32c_fn *crc;
	uint64_t run_bytes;   /* of what is being written */
	uint32_t first_block; /* of it */
	unsigned slot_count;
	struct codec_encoder encoders[RUN_SINK_SLOTS_MAX];
	/* Workers write what follows with the lock held; of the choice, the
	 * sample. */
	struct codec_choice choice;
	struct codec_encoder *idle_encoders[RUN_SINK_SLOTS_MAX];
	unsigned idle_count;
	uint64_t plain_bytes, stored_bytes; /* of all blocks */
	pthread_mutex_t lock;
	struct write_queue queue;
	struct run_sink_slot slots[RUN_SINK_SLOTS_MAX];
	struct first_failure failure;
};

struct run_sink_request {
	struct run_index *index;
	struct scratch *scratch;
	enum cpu_level kernel;
	uint8_t *memory; /* slot_count slots of slot_bytes, page aligned */
	unsigned slot_count;
	size_t slot_bytes;  /* whole pages, at least one chunk */
	size_t chunk_bytes; /* whole blocks */
	unsigned depth;	    /* writes under way */
	struct codec codec;
	/* What codec_choice.h asks for. */
	unsigned cpu_count;
	struct codec_work work;
	/* One encoder for each worker, of codec_encoder_bytes(). */
	uint8_t *encoder_memory;
	size_t encoder_bytes;
	unsigned encoder_count;
};

void run_sink_open(struct run_sink *sink,
		   const struct run_sink_request *request);

/* The latest run gets so many records more, before its first chunk.  All chunks
 * of the records before have been handed over. */
void run_sink_begin(struct run_sink *sink, uint64_t record_count);

/* Waits for the writes under way.  Safe on a zeroed one. */
void run_sink_close(struct run_sink *sink);

#endif /* RUN_SINK_H */
