/* cluster_trace.c - the timelines of all ranks in one document */
#include "cluster/collective/cluster_trace.h"

#include <stdio.h>
#include <stdlib.h>

#include "cluster/collective/trace_pack.h"
#include "cluster/collective/cluster_allgather.h"

#define NAME_BYTES 96

/* What rank 0 writes; entry 0 is its own. */
struct timelines {
	struct trace_process processes[RANK_NODES_MAX];
	struct trace_lane *unpacked[RANK_NODES_MAX]; /* owned, or NULL */
	struct flow_bins *flows;		     /* [node_count], owned */
	char names[RANK_NODES_MAX][NAME_BYTES];
};

/* A timeline that cannot be read is left out: the sort is none the worse. */
static void unpack(struct timelines *timelines,
		   const struct cluster_allgather *gather, unsigned node)
{
	size_t bytes =
		(size_t)(gather->offset[node + 1] - gather->offset[node]);
	int count = trace_unpack(gather->all + gather->offset[node], bytes,
				 &timelines->unpacked[node],
				 &timelines->flows[node]);

	if (count < 0)
		timelines->unpacked[node] = NULL;
	else
		timelines->processes[node].flows = &timelines->flows[node];
	timelines->processes[node].lanes = timelines->unpacked[node];
	timelines->processes[node].lane_count = count < 0 ? 0 : (unsigned)count;
}

static void describe(struct timelines *timelines, const struct rank *rank,
		     const struct exchange *exchange, unsigned node,
		     uint64_t begin_ns)
{
	struct trace_process *process = &timelines->processes[node];
	uint64_t bound_ns;
	int64_t offset_ns = exchange_clock_offset_ns(exchange, node, &bound_ns);

	snprintf(timelines->names[node], NAME_BYTES, "rank %u (%.70s)", node,
		 rank->names[node]);
	process->name = timelines->names[node];
	process->origin_ns = begin_ns + (uint64_t)offset_ns;
	process->bound_ns = bound_ns;
}

static int write_all(const struct sort_trace *trace, const struct rank *rank,
		     const struct exchange *exchange, uint64_t begin_ns,
		     const struct cluster_allgather *gather,
		     struct failure *failure)
{
	struct timelines *timelines = calloc(1, sizeof(*timelines));
	int error;

	if (timelines)
		timelines->flows =
			calloc(rank->node_count, sizeof(*timelines->flows));
	if (!timelines || !timelines->flows) {
		free(timelines);
		return failure_no_memory(failure);
	}
	for (unsigned i = 0; i < rank->node_count; i++) {
		describe(timelines, rank, exchange, i, begin_ns);
		unpack(timelines, gather, i);
	}
	error = sort_trace_write(trace, timelines->processes, rank->node_count,
				 failure);
	for (unsigned i = 0; i < rank->node_count; i++)
		if (timelines->unpacked[i])
			trace_unpack_free(timelines->unpacked[i],
					  timelines->processes[i].lane_count);
	free(timelines->flows);
	free(timelines);
	return error;
}

int cluster_trace_write(const struct sort_trace *trace, const struct rank *rank,
			struct exchange *exchange, uint64_t begin_ns,
			struct failure *failure)
{
	struct cluster_allgather gather = {
		.rank = rank,
		/* All ranks have as many lanes and spans at most. */
		.bytes_max = trace_pack_bytes_max(THREAD_POOL_WORKERS_MAX,
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
