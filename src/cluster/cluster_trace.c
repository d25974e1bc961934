/*
 * cluster_trace.c - the timelines of all ranks in one document
 *
 * Each rank's clock runs by itself.  Rank 0 knows what they differ by, from the
 * round trips of the exchange's own datagrams, and says how well.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "cluster/cluster_state.h"
#include "base/trace_pack.h"

struct gathering {
	struct cluster *cluster;
	uint8_t *own;			/* our spans, on their way to rank 0 */
	uint8_t *bytes[RANK_NODES_MAX]; /* on rank 0: the others' */
	size_t byte_count[RANK_NODES_MAX];
	struct trace_lane *lanes[RANK_NODES_MAX];
	unsigned lane_count[RANK_NODES_MAX];
	char names[RANK_NODES_MAX][96];
};

static void read_own(void *context, unsigned node, uint64_t offset,
		     uint8_t *target, size_t byte_count)
{
	const struct gathering *gathering = context;

	(void)node;
	memcpy(target, gathering->own + offset, byte_count);
}

/* As many lanes as a team has members, and spans as a lane has room for; to
 * rank 0 only. */
static struct exchange_length length_of(const void *context, unsigned source,
					unsigned destination)
{
	(void)context, (void)source;
	if (destination != 0)
		return (struct exchange_length){ 0, 1, 0 };
	return (struct exchange_length){
		.unit_bytes = 1,
		.unit_count_max = trace_pack_bytes_max(THREAD_POOL_WORKERS_MAX,
						       SORTER_TRACE_SPANS),
	};
}

static int prepare(void *context, const uint64_t *receive_bytes,
		   struct failure *failure)
{
	struct gathering *gathering = context;
	unsigned count = gathering->cluster->rank.node_count;

	for (unsigned i = 0; i < count; i++) {
		gathering->byte_count[i] = receive_bytes[i];
		gathering->bytes[i] = malloc(receive_bytes[i] + 1);
		if (!gathering->bytes[i])
			return failure_set(failure, EXIT_RESOURCES, NULL,
					   ENOMEM, "memory");
	}
	return 0;
}

static uint8_t *place(void *context, unsigned node, uint64_t offset,
		      size_t *room)
{
	struct gathering *gathering = context;

	*room = gathering->byte_count[node] - offset;
	return gathering->bytes[node] + offset;
}

static void arrived(void *context, unsigned node, uint64_t prefix_bytes,
		    bool whole)
{
	(void)context, (void)node, (void)prefix_bytes, (void)whole;
}

static int gather(struct gathering *gathering, const struct trace_lane *lanes)
{
	struct cluster *cluster = gathering->cluster;
	unsigned lane_count = cluster->sorter.threads.worker_count;
	uint64_t send_bytes[RANK_NODES_MAX] = { 0 };
	struct exchange_collective collective = {
		.context = gathering,
		.send_bytes = send_bytes,
		.read = read_own,
		.length = length_of,
		.prepare = prepare,
		.place = place,
		.arrived = arrived,
	};
	int error;

	send_bytes[0] = trace_pack_bytes(lanes, lane_count);
	gathering->own = malloc(send_bytes[0]);
	if (!gathering->own)
		return failure_set(cluster->failure, EXIT_RESOURCES, NULL,
				   ENOMEM, "memory");
	trace_pack(lanes, lane_count, gathering->own);
	error = exchange_begin(cluster->exchange, &collective,
			       cluster->failure);
	return error ? error
		     : exchange_finish(cluster->exchange, cluster->failure);
}

/* A timeline that cannot be read is left out: the sort is none the worse. */
static void unpack(struct gathering *gathering, unsigned node)
{
	int count = trace_unpack(gathering->bytes[node],
				 gathering->byte_count[node],
				 &gathering->lanes[node]);

	if (count < 0)
		gathering->lanes[node] = NULL;
	else
		gathering->lane_count[node] = (unsigned)count;
}

static void describe(struct gathering *gathering, unsigned node,
		     const struct trace_lane *own_lanes,
		     struct trace_process *process)
{
	struct cluster *cluster = gathering->cluster;
	uint64_t bound_ns;
	int64_t offset_ns =
		exchange_clock_offset_ns(cluster->exchange, node, &bound_ns);

	snprintf(gathering->names[node], sizeof(gathering->names[node]),
		 "rank %u (%.70s)", node, cluster->rank.names[node]);
	if (node != cluster->rank.rank)
		unpack(gathering, node);
	*process = (struct trace_process){
		.name = gathering->names[node],
		.origin_ns =
			cluster->result->sort.begin_ns + (uint64_t)offset_ns,
		.bound_ns = bound_ns,
		.lanes = gathering->lanes[node],
		.lane_count = gathering->lane_count[node],
	};
	if (node == cluster->rank.rank) {
		process->lanes = own_lanes;
		process->lane_count = cluster->sorter.threads.worker_count;
	}
}

static int write_all(struct gathering *gathering,
		     const struct trace_lane *own_lanes)
{
	struct cluster *cluster = gathering->cluster;
	struct outfile *file = &cluster->sorter.trace;
	struct trace_process processes[RANK_NODES_MAX];
	int fd = dup(file->fd);
	FILE *stream = fd < 0 ? NULL : fdopen(fd, "w");
	int error;

	if (!stream) {
		error = errno;
		if (fd >= 0)
			close(fd);
		return failure_set(cluster->failure, EXIT_FILE, file->path,
				   error, "cannot write");
	}
	for (unsigned i = 0; i < cluster->rank.node_count; i++)
		describe(gathering, i, own_lanes, &processes[i]);
	error = trace_write_all(stream, processes, cluster->rank.node_count);
	if (fclose(stream) == EOF || error)
		return failure_set(cluster->failure, EXIT_FILE, file->path,
				   error ? -error : errno, "cannot write");
	return 0;
}

static void free_all(struct gathering *gathering)
{
	for (unsigned i = 0; i < gathering->cluster->rank.node_count; i++) {
		if (gathering->lanes[i])
			trace_unpack_free(gathering->lanes[i],
					  gathering->lane_count[i]);
		free(gathering->bytes[i]);
	}
	free(gathering->own);
	free(gathering);
}

int cluster_trace(struct cluster *cluster)
{
	struct gathering *gathering = calloc(1, sizeof(*gathering));
	struct trace_lane lanes[THREAD_POOL_WORKERS_MAX];
	int error;

	if (!gathering)
		return failure_set(cluster->failure, EXIT_RESOURCES, NULL,
				   ENOMEM, "memory");
	for (unsigned m = 0; m < cluster->sorter.threads.worker_count; m++)
		lanes[m] = cluster->sorter.members[m].lane;
	gathering->cluster = cluster;
	error = gather(gathering, lanes);
	if (error == 0 && cluster->rank.rank == 0)
		error = write_all(gathering, lanes);
	free_all(gathering);
	return error;
}
