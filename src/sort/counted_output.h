/*
 * counted_output.h - records that have been counted, to a sink
 *
 * Each worker takes the next chunk, and fills it from the counts.
 */
#ifndef COUNTED_OUTPUT_H
#define COUNTED_OUTPUT_H

#include "base/first_failure.h"
#include "sort/chunk_range.h"
#include "sort/record_counts.h"

struct counted_output_config {
	const struct record_counts *counts; /* added up; outlives the output */
	struct sink *sink; /* each chunk is whole pages, but a part's last */
	const struct first_failure *failure; /* the run's */
	/* What a worker calls after each of its chunks, or NULL. */
	void (*serve)(void *context, unsigned worker, uint64_t chunk_bytes);
	void *serve_context;
};

struct counted_output {
	struct counted_output_config config;
	struct chunk_range range;
	_Atomic uint64_t next_chunk; /* any worker raises it */
};

/* The sink's geometry is set. */
void counted_output_begin(struct counted_output *output,
			  const struct counted_output_config *config);

/* Each worker, once.  It stops where the run or the sink has failed; when all
 * have returned, the sink can be finished. */
void counted_output_run(struct counted_output *output, unsigned worker);

#endif /* COUNTED_OUTPUT_H */
