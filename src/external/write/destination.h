/*
 * destination.h - where the sorted whole goes: files, or a stream
 *
 * The functions belong to the thread that leads the sort, between passes; the
 * sink is the workers' meanwhile.  Those that return int return 0 or -errno
 * with *failure filled.
 */
#ifndef DESTINATION_H
#define DESTINATION_H

#include "external/plan/external_plan.h"
#include "io/output/output.h"
#include "io/output/stream_sink.h"
#include "sort/sort_config.h"

struct destination {
	const struct sorter_config *config; /* borrowed */
	bool is_stream;
	bool has_sizes; /* the files had theirs when they were opened */
	struct output files;
	struct output *output; /* these, or the caller's; NULL: not lent yet */
	struct stream_sink stream;
	struct sink *sink; /* of either, since destination_set_slots() */
};

/* The outputs that the config names, or one that is lent: nothing is opened. */
void destination_init(struct destination *destination,
		      const struct sorter_config *config, bool is_lent);

/* Make the files, with room for so many records, or for none if that is
 * EXTERNAL_RECORDS_UNKNOWN; a stream is opened later. */
int destination_open(struct destination *destination, uint64_t record_count,
		     struct failure *failure);

/* The output is the caller's, instead of files that are opened; the caller also
 * gives it its names.  It is borrowed. */
void destination_lend(struct destination *destination, struct output *output);

/* Slots over memory of slot_count * chunk_bytes, page aligned; none of an
 * output that is yet to be lent. */
void destination_set_slots(struct destination *destination, uint8_t *memory,
			   unsigned slot_count, size_t chunk_bytes);

/* All has been read, and so many records will come at most.  A FIFO waits here
 * for its reader, and a stream gets the header, which may be NULL. */
int destination_begin(struct destination *destination, uint64_t record_count,
		      const uint8_t *header, struct failure *failure);

/* How many records it has room for, since destination_begin(). */
uint64_t destination_records(const struct destination *destination);

/* All workers have ended, and have written so many records. */
int destination_finish(struct destination *destination, uint64_t record_count,
		       struct failure *failure);

/* The files get their names after that, and `also`, if it is not NULL, with
 * them. */
int destination_commit(struct destination *destination, struct outfile *also,
		       struct failure *failure);

/* What was not committed is gone.  Safe on a zeroed one. */
void destination_close(struct destination *destination);

#endif /* DESTINATION_H */
