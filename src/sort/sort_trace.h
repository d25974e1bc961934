/*
 * sort_trace.h - a sort's timeline: a lane for each worker, and the file
 */
#ifndef SORT_TRACE_H
#define SORT_TRACE_H

#include "base/base.h"
#include "base/trace.h"
#include "io/input/input.h"
#include "io/output/output.h"
#include "system/thread_pool.h"

/* Spans that a worker's lane has room for: of a sort in memory, and of one that
 * goes on for minutes. */
#define SORT_TRACE_SPANS 4096
#define SORT_TRACE_SPANS_MAX ((uint32_t)1 << 18)

/* Of the workers, and then of what other threads receive. */
#define SORT_TRACE_LANES_MAX (THREAD_POOL_WORKERS_MAX + 1)

struct sort_trace {
	const char *path;    /* borrowed; NULL: nothing is traced */
	struct outfile file; /* not open: another process writes the trace */
	unsigned lane_count;
	struct trace_lane lanes[SORT_TRACE_LANES_MAX];
};

/* Nothing is open.  path may be NULL. */
void sort_trace_init(struct sort_trace *trace, const char *path);

/* Open the file, which must be neither an output nor an input.  0 or -errno
 * with *failure filled. */
int sort_trace_open(struct sort_trace *trace, const struct output *output,
		    const struct input *input, struct failure *failure);

/* Memory for the lanes, if anything is traced.  0 or -errno with *failure
 * filled. */
int sort_trace_add_lanes(struct sort_trace *trace, unsigned worker_count,
			 uint32_t span_count, struct failure *failure);

/* The timelines of these processes into the file, before it gets its name: what
 * can fail here fails the run.  0 or -errno with *failure filled. */
int sort_trace_write(const struct sort_trace *trace,
		     const struct trace_process *processes,
		     unsigned process_count, struct failure *failure);

/* What was not committed is gone.  Safe on one that was not opened. */
void sort_trace_close(struct sort_trace *trace);

#endif /* SORT_TRACE_H */
