/* cluster_link.c - the rate of each rank's link */
#include "cluster/agreement/cluster_link.h"

#include <assert.h>

#include "base/base.h"
#include "base/clock.h"
#include "cluster/collective/cluster_allgather.h"

#define STEP_FACTOR 4
#define STEPS 4
/* The shortest measurement: in less time the datagrams of one batch are too
 * large a part. */
#define LONG_NS 50000000

/* A measurement. */
struct probe {
	uint64_t message_bytes; /* to each other rank */
	uint64_t prefix_bytes[RANK_NODES_MAX];
	uint64_t arrived_bytes;
	/* When the first bytes had arrived, and how many these were. */
	uint64_t begin_ns, begin_bytes;
	uint64_t end_ns;
};

static void read_nothing(void *context, unsigned node, uint64_t offset,
			 uint8_t *bytes, size_t byte_count)
{
	(void)context, (void)node, (void)offset;
	memset(bytes, 0, byte_count);
}

static struct exchange_length length_of(const void *context, unsigned source,
					unsigned destination)
{
	const struct probe *probe = context;

	(void)source, (void)destination;
	return (struct exchange_length){ probe->message_bytes, 1, 0 };
}

static int prepare(void *context, const uint64_t *receive_bytes,
		   struct failure *failure)
{
	(void)context, (void)receive_bytes, (void)failure;
	return 0;
}

static uint8_t *place(void *context, unsigned node, uint64_t offset,
		      size_t *room)
{
	(void)context, (void)node, (void)offset;
	*room = SIZE_MAX;
	return NULL;
}

static void arrived(void *context, unsigned node, uint64_t prefix_bytes,
		    bool whole)
{
	struct probe *probe = context;

	(void)whole;
	probe->arrived_bytes += prefix_bytes - probe->prefix_bytes[node];
	probe->prefix_bytes[node] = prefix_bytes;
	probe->end_ns = clock_now_ns();
	if (probe->begin_ns == 0) {
		probe->begin_ns = probe->end_ns;
		probe->begin_bytes = probe->arrived_bytes;
	}
}

/* One step, in which this rank sends `bytes` in all.  *rate is 0 if all bytes
 * arrived at once. */
static int measure(const struct rank *rank, struct exchange *exchange,
		   uint64_t bytes, uint64_t *rate, uint64_t *ns,
		   struct failure *failure)
{
	uint64_t send_bytes[RANK_NODES_MAX];
	struct probe probe;
	const struct exchange_collective collective = {
		.context = &probe,
		.send_bytes = send_bytes,
		.read = read_nothing,
		.length = length_of,
		.prepare = prepare,
		.place = place,
		.arrived = arrived,
	};
	int error;

	assert(rank->node_count > 1);
	memset(&probe, 0, sizeof(probe));
	probe.message_bytes = bytes / (rank->node_count - 1);
	for (unsigned i = 0; i < rank->node_count; i++)
		send_bytes[i] = probe.message_bytes;
	error = exchange_begin(exchange, &collective, failure);
	if (error == 0)
		error = exchange_finish(exchange, failure);
	*ns = probe.end_ns - probe.begin_ns;
	*rate = (uint64_t)((double)(probe.arrived_bytes - probe.begin_bytes) *
			   1e9 / (double)MAX(1, *ns));
	return error;
}

/* Tell all ranks our rate and the time of our step.  *least is the lowest rate
 * that is known (0: none is), *longest_ns the longest time. */
static int tell(const struct rank *rank, struct exchange *exchange,
		uint64_t rate, uint64_t ns, uint64_t *least,
		uint64_t *longest_ns, struct failure *failure)
{
	const uint64_t own[] = { rate, ns };
	uint64_t told[2 * RANK_NODES_MAX];
	int error =
		cluster_allgather_words(rank, exchange, own, 2, told, failure);

	*least = *longest_ns = 0;
	for (unsigned i = 0; i < rank->node_count && error == 0; i++) {
		uint64_t other = told[2 * i];

		/* Any figure will do: it forecasts, and chooses a codec. */
		if (other > 0 && (*least == 0 || other < *least))
			*least = other;
		*longest_ns = MAX(*longest_ns, told[2 * i + 1]);
	}
	return error;
}

/* The ranks measure if one rank needs it. */
static enum cluster_link_wish find_wish(const struct cluster_hello *hellos,
					unsigned count)
{
	enum cluster_link_wish wish = CLUSTER_LINK_UNASKED;

	for (unsigned i = 0; i < count; i++)
		wish = MAX(wish, hellos[i].link);
	return wish;
}

int cluster_link_learn(struct cluster_link *link,
		       const struct cluster_hello *hellos,
		       const struct rank *rank, struct exchange *exchange,
		       uint64_t step_bytes_max, struct failure *failure)
{
	enum cluster_link_wish wish = find_wish(hellos, rank->node_count);
	uint64_t rate = link->own, ns = 0, longest_ns = 0;
	uint64_t bytes = CLUSTER_LINK_BYTES_MIN;
	int error = 0;

	link->least = link->own;
	if (rank->node_count == 1 || wish == CLUSTER_LINK_UNASKED)
		return 0;
	if (wish == CLUSTER_LINK_KNOWN)
		return tell(rank, exchange, rate, ns, &link->least, &longest_ns,
			    failure);
	for (unsigned step = 0; step < STEPS && bytes <= step_bytes_max &&
				error == 0 && longest_ns < LONG_NS;
	     step++) {
		error = measure(rank, exchange, bytes, &rate, &ns, failure);
		if (error == 0)
			error = tell(rank, exchange,
				     link->own > 0 ? link->own : rate, ns,
				     &link->least, &longest_ns, failure);
		bytes *= STEP_FACTOR;
	}
	if (link->own == 0)
		link->own = rate;
	return error;
}
