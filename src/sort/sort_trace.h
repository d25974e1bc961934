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

/* A pair of cache lines apart from the next worker's. */
struct sort_trace_worker {
	_Alignas(CACHE_PAIR_BYTES) struct trace_lane lane;
};

struct sort_trace {
	const char *path;    /* borrowed; NULL: nothing is traced */
	struct outfile file; /* not open: another process writes the trace */
	unsigned lane_count;
	/* A lane is written by its worker alone. */
	struct sort_trace_worker workers[THREAD_POOL_WORKERS_MAX];
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

static inline struct trace_lane *sort_trace_lane(struct sort_trace *trace,
						 unsigned worker)
{
	return &trace->workers[worker].lane;
}

/* Copies of all lanes, one behind the other. */
void sort_trace_copy_lanes(const struct sort_trace *trace,
			   struct trace_lane *lanes);

/* The timelines of these processes into the file, before it gets its name: what
 * can fail here fails the run.  0 or -errno with *failure filled. */
int sort_trace_write(const struct sort_trace *trace,
		     const struct trace_process *processes,
		     unsigned process_count, struct failure *failure);

/* The timeline of this process alone. */
int sort_trace_write_own(const struct sort_trace *trace, uint64_t origin_ns,
			 struct failure *failure);

/* What was not committed is gone.  Safe on one that was not opened. */
void sort_trace_close(struct sort_trace *trace);

#endif /* SORT_TRACE_H */
