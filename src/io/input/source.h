/*
 * source.h - where records come from, run by run
 *
 * A source has record_count records, numbered from 0 in input order.  When they
 * have been brought in, record i lies in a slot: slot s is the record_size
 * bytes at base + s * record_size.  Slots ascend as numbers do, but some slots
 * may hold no record, so slot_count may be larger than record_count.
 *
 * Each worker reads with a reader of its own, a share of the records or piece
 * after piece; a reader belongs to one thread.  The operations may be called by
 * several workers at a time.
 */
#ifndef SOURCE_H
#define SOURCE_H

#include <stdbool.h>
#include <stdint.h>

struct failure;
struct source;
struct stage_clock;

/* Some records that follow each other in memory. */
struct source_run {
	uint64_t slot; /* of the first record */
	uint64_t record_count;
	const uint8_t *records; /* base + slot * record_size */
};

#define SOURCE_READER_BYTES 64

struct source_reader {
	/* The worker sets these before open(). */
	const struct source *source;
	unsigned worker;	   /* its number */
	struct stage_clock *clock; /* or NULL: it is not measured */
	/* The source's operations write it: their state of this reader. */
	_Alignas(16) uint8_t state[SOURCE_READER_BYTES];
};

struct source_ops {
	/* Read record_count records from first_record on.  If resident is true,
	 * the reader walks over records that an earlier reader has brought in.
	 * 0 or -errno with *failure filled; then there is nothing to close. */
	int (*open)(struct source_reader *reader, uint64_t first_record,
		    uint64_t record_count, bool resident,
		    struct failure *failure);
	/* The next run, in order.  1 with *run filled; 0 at the end; -errno
	 * with *failure filled. */
	int (*next)(struct source_reader *reader, struct source_run *run,
		    struct failure *failure);
	/* Waits for reads that are under way.  NULL: there is nothing to do. */
	void (*close)(struct source_reader *reader);
	/* The worker's share of the records: the shares of all workers follow
	 * each other and cover all records. */
	void (*share)(const struct source *source, unsigned worker,
		      unsigned worker_count, uint64_t *first_record,
		      uint64_t *record_count);
	/* Returns the address of the record of this number, which has been
	 * brought in.  NULL: the caller takes no sample from this source. */
	const uint8_t *(*record)(const struct source *source, uint64_t number);
};

/* The thread that sets up the sort fills it; then nothing changes. */
struct source {
	const struct source_ops *ops;
	const void *context; /* for the operations */
	uint64_t record_count;
	uint64_t slot_count;
	uint32_t record_size;
	uint8_t *base; /* of slot 0 */
	/* Pieces of any place and length may be read in any order.  Otherwise
	 * each worker reads its share. */
	bool has_pieces;
};

/*
 * Operations of a source whose record i lies in slot i, to be used as they are
 * or by its own; they cannot fail.
 */

/* The reader's state as source_walk_open() fills it. */
struct source_walk {
	bool is_resident; /* the reader walks over resident records */
	/* the records that are left */
	uint64_t slot, record_count;
};

static inline struct source_walk *source_walk_of(struct source_reader *reader)
{
	return (struct source_walk *)reader->state;
}

int source_walk_open(struct source_reader *reader, uint64_t first_record,
		     uint64_t record_count, bool resident,
		     struct failure *failure);

/* Hand out all that are left as one run; the reader walks over resident
 * records.  1 with *run filled, or 0: none is left. */
int source_walk_next(struct source_reader *reader, struct source_run *run,
		     struct failure *failure);

/* Shares differ by one record at most. */
void source_walk_share(const struct source *source, unsigned worker,
		       unsigned worker_count, uint64_t *first_record,
		       uint64_t *record_count);
const uint8_t *source_walk_record(const struct source *source, uint64_t number);

#endif /* SOURCE_H */
