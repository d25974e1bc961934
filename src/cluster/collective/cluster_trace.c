/* cluster_trace.c - the timelines of all ranks in one document */
#include "cluster/collective/cluster_trace.h"

#include <stdio.h>
#include <stdlib.h>

#include "cluster/collective/trace_pack.h"
#include "cluster/collective/cluster_allgather.h"

#define NAME_BYTES 96

/* What is unpacked of a rank, for rank 0 to write. */
struct timeline {
	struct trace_lane *lanes; /* owned, or NULL */
	struct flow_bins flows;
	char name[NAME_BYTES];
};

/* A timeline that cannot be read is left out: the sort is none the worse. */
static void unpack(struct timeline *timeline, struct trace_process *process,
		   const struct cluster_allgather *gather, unsigned node)
{
	size_t bytes =
		(size_t)(gather->offset[node + 1] - gather->offset[node]);
	int count = trace_unpack(gather->all + gather->offset[node], bytes,
				 &timeline->lanes, &timeline->flows);

	if (count < 0) {
		timeline->lanes = NULL;
		return;
	}
	process->lanes = timeline->lanes;
	process->lane_count = (unsigned)count;
	process->flows = &timeline->flows;
}

static int write_all(const struct sort_trace *trace, const struct rank *rank,
		     const struct exchange *exchange, uint64_t begin_ns,
		     const struct cluster_allgather *gather,
		     struct failure *failure)
{
	unsigned count = rank->node_count;
	struct timeline *timelines = calloc(count, sizeof(*timelines));
	struct trace_process *processes = calloc(count, sizeof(*processes));
	int error;

	if (!timelines || !processes) {
		free(timelines);
		free(processes);
		return failure_no_memory(failure);
	}
	for (unsigned i = 0; i < count; i++) {
		int64_t offset_ns = exchange_clock_offset_ns(
			exchange, i, &processes[i].bound_ns);

		snprintf(timelines[i].name, NAME_BYTES, "rank %u (%.70s)", i,
			 rank->names[i]);
		processes[i].name = timelines[i].name;
		processes[i].origin_ns = begin_ns + (uint64_t)offset_ns;
		unpack(&timelines[i], &processes[i], gather, i);
	}
	error = sort_trace_write(trace, processes, count, failure);
	for (unsigned i = 0; i < count; i++)
		trace_unpack_free(timelines[i].lanes, processes[i].lane_count);
	free(timelines);
	free(processes);
	return error;
}

int cluster_trace_write(const struct sort_trace *trace, const struct rank *rank,
			struct exchange *exchange, uint64_t begin_ns,
			struct failure *failure)
{
	struct cluster_allgather gather = {
		.rank = rank,
		/* All ranks have as many lanes and spans at most. */
		.bytes_max = trace_pack_bytes_max(SORT_TRACE_LANES_MAX,
						  SORT_TRACE_SPANS),
		.to_first_only = true,
	};
	uint8_t *own;
	int error;

	gather.own_bytes = trace_pack_bytes(trace->lanes, trace->lane_count);
	own = malloc(gather.own_bytes);
	if (!own)
		return failure_no_memory(failure);
	trace_pack(trace->lanes, trace->lane_count, flow_counted(), own);
	gather.own = own;
	error = cluster_allgather(&gather, exchange, failure);
	if (error == 0 && rank->rank == 0)
		error = write_all(trace, rank, exchange, begin_ns, &gather,
				  failure);
	free(gather.all);
	free(own);
	return error;
}
