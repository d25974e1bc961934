/*
 * record_counts.h - records that are so small that they are counted
 *
 * A record of one or two bytes that is all key is known when its key is.  So
 * such records need not be moved: it suffices to count each of the 256 or 65536
 * different ones, and to write each as often as it came (counting sort, Seward
 * 1954).  That takes the same memory for any number of records.
 *
 * The workers count, each in a table of its own.  When all have, one thread
 * adds the tables up; then any thread may ask for records of the sorted whole.
 */
#ifndef RECORD_COUNTS_H
#define RECORD_COUNTS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/cpu.h"
#include "base/first_failure.h"
#include "record/record.h"
#include "sort/chunk_range.h"
#include "sort/sort_trace.h"
#include "system/arena.h"

#define RECORD_COUNTS_SIZE_MAX 2

/* A record that came at least once. */
struct counted_record {
	uint64_t count;	     /* of it and equal ones, in the sorted whole */
	uint64_t end_record; /* of the sorted whole: its last one is before */
	uint8_t bytes[RECORD_COUNTS_SIZE_MAX];
};

struct record_counts {
	struct record_shape shape;
	unsigned worker_count;
	uint64_t *tables;	      /* of all workers, one behind the other */
	struct counted_record *items; /* in order */
	uint32_t item_count;
};

/* True: the records have at most that size, the keys cover all of each, and
 * different records have different keys. */
bool record_counts_suit(const struct record_shape *shape);

/* How many different records there may be. */
uint32_t record_counts_items_max(uint32_t record_size);

/* The length of a worker's table, which is zeroed at first. */
uint32_t record_counts_length(uint32_t record_size);

/* What so many workers take of an arena. */
uint64_t record_counts_bytes(uint32_t record_size, unsigned worker_count);

/* The arena's memory is fresh, and so zeroed. */
void record_counts_take_memory(struct record_counts *counts,
			       const struct record_shape *shape,
			       unsigned worker_count, struct arena *arena);

/* A worker: count record_count records in its table. */
void record_counts_add(uint64_t *table, uint32_t record_size,
		       const uint8_t *records, uint64_t record_count);

/* All workers have counted: bring into order what they have.  unique: one
 * record is left of equal ones. */
void record_counts_add_up(struct record_counts *counts, bool unique,
			  enum cpu_level kernel);

/* How many records the sorted whole has, and the sum of their checksums
 * (checksum.h). */
uint64_t record_counts_whole(const struct record_counts *counts);
unsigned __int128 record_counts_checksum(const struct record_counts *counts);

/* Copy records [first, first + count) of the sorted whole, which has them. */
void record_counts_copy(const struct record_counts *counts, uint64_t first,
			uint64_t count, uint8_t *target);

/* The sorted whole on its way to a sink: each worker takes the next chunk, and
 * fills it from the counts. */
struct counted_output {
	/* The driver sets these. */
	const struct record_counts *counts; /* added up; outlives the output */
	struct sink *sink;
	const struct first_failure *failure; /* the run's */
	/* What a worker calls after each of its chunks, or NULL. */
	void (*serve)(void *context, unsigned worker, uint64_t chunk_bytes);
	void *serve_context;
	struct sort_trace *trace; /* NULL: no worker is measured */
	/* counted_output_begin() sets the range. */
	struct chunk_range range;
	_Atomic uint64_t next_chunk; /* any worker raises it */
};

/* The sink's geometry is set. */
void counted_output_begin(struct counted_output *output);

/* Each worker, once.  It stops where the run or the sink has failed; when all
 * have returned, the sink can be finished. */
void counted_output_run(struct counted_output *output, unsigned worker);

#endif /* RECORD_COUNTS_H */
