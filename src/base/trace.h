/*
 * trace.h - a timeline of each thread, kept in memory and written afterwards
 *
 * A span costs two clock reads and one 24-byte store; nothing is allocated or
 * printed during the run.  The file has Chrome trace events (JSON), which
 * Perfetto and chrome://tracing open: spans, and counters of bytes a second,
 * each of which holds until the next one.  Idea: Homa's timetrace.
 */
#ifndef TRACE_H
#define TRACE_H

#include <stdint.h>
#include <stdio.h>

#include "base/base.h"
#include "base/clock.h"
#include "base/flow.h"
#include "base/stage.h"

struct trace_span {
	uint64_t begin_ns;
	uint64_t end_ns;
	const char *label; /* static string */
};

/* One thread's spans, and what it is measured by; written by that thread only,
 * a pair of cache lines apart from the next thread's. */
struct trace_lane {
	_Alignas(CACHE_PAIR_BYTES) struct trace_span *spans; /* or NULL */
	uint32_t capacity;
	uint32_t count; /* spans stored */
	uint32_t lost;	/* spans that found no room */
	struct stage_clock clock;
};

/* Make room for capacity spans.  Returns 0 or -ENOMEM. */
int trace_lane_init(struct trace_lane *lane, uint32_t capacity);
void trace_lane_fini(struct trace_lane *lane);

/* Returns 0 when not tracing, so that an untraced run reads no clock. */
static inline uint64_t trace_begin(const struct trace_lane *lane)
{
	return lane->spans ? clock_now_ns() : 0;
}

static inline void trace_end(struct trace_lane *lane, uint64_t begin_ns,
			     const char *label)
{
	if (!lane->spans)
		return;
	if (lane->count >= lane->capacity) {
		lane->lost++;
		return;
	}
	lane->spans[lane->count++] = (struct trace_span){
		.begin_ns = begin_ns,
		.end_ns = clock_now_ns(),
		.label = label,
	};
}

/* The spans of one process, by its own clock. */
struct trace_process {
	const char *name;
	uint64_t origin_ns; /* shown as 0 */
	uint64_t bound_ns;  /* its origin and the first process's lie this far
			       apart at most, where they should be one */
	const struct trace_lane *lanes;
	unsigned lane_count;
	/* Shown as counters; NULL: the process has none, or another one of the
	 * document's has them. */
	const struct flow_bins *flows;
};

/* Write all lanes of all processes as one document.  Returns 0, or -EIO if the
 * stream has failed. */
int trace_write_all(FILE *stream, const struct trace_process *processes,
		    unsigned process_count);

#endif /* TRACE_H */
