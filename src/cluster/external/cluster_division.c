/* cluster_division.c - the ranks divide an input that all of them read */
#include "cluster/external/cluster_division.h"

#include <inttypes.h>
#include <stdlib.h>

#include "base/base.h"
#include "base/clock.h"
#include "cluster/collective/cluster_allgather.h"

/* A message is a struct input_division_told, in words. */
#define TOLD_WORDS (sizeof(struct input_division_told) / 8)
/* The shortest time over which the first rate is measured, and each later one.
 * A rank that has read nothing in the first of these times is slow. */
#define RATE_NS_FIRST 20000000
#define RATE_NS_NEXT 200000000

/* How long a rank pauses between two divisions: in a pass of days there are
 * fewer than CLUSTER_FIRST_PASS_COLLECTIVES_MAX in any pass that comes to an
 * end. */
#define PAUSE_PART(elapsed_ns) ((elapsed_ns) / 1024)

static void give(struct cluster_division *division)
{
	const struct input_part *own =
		&division->division.parts[division->rank->rank];
	uint64_t now_ns = clock_now_ns();

	reading_claims_give(division->claims, own->ranges, own->range_count,
			    division->division.is_final);
	division->next_ns =
		now_ns + MAX(division->division.pause_ns,
			     PAUSE_PART(now_ns - division->begin_ns));
}

void cluster_division_begin(struct cluster_division *division,
			    uint64_t whole_count, const unsigned *given_max)
{
	input_division_init(&division->division, whole_count,
			    division->rank->node_count, given_max);
	division->begin_ns = clock_now_ns();
	division->last_ns = division->begin_ns;
	give(division);
}

/* Waiting for a part to read is no fault of the rank's.  Each rate counts as
 * much as all before it. */
static void measure(struct cluster_division *division, uint64_t read)
{
	uint64_t now_ns = clock_now_ns();
	uint64_t waited_ns = reading_claims_waited_ns(division->claims);
	uint64_t ns = now_ns - division->last_ns -
		      MIN(waited_ns - division->last_waited_ns,
			  now_ns - division->last_ns);
	uint64_t recent = (uint64_t)((double)(read - division->last_read) *
				     1e9 / (double)MAX(1, ns));

	if (ns < (division->rate > 0 ? RATE_NS_NEXT : RATE_NS_FIRST))
		return;
	if (division->rate > 0)
		recent = (division->rate + recent) / 2;
	division->rate = MAX(1, recent);
	division->last_ns = now_ns;
	division->last_read = read;
	division->last_waited_ns = waited_ns;
}

static struct input_division_told look(struct cluster_division *division)
{
	uint64_t read = external_rank_read_records(division->external_rank);

	measure(division, read);
	return (struct input_division_told){
		.taken = reading_claims_hold(division->claims),
		.read = read,
		.rate = division->rate,
		.grain = division->claims->capacity,
	};
}

static int update(struct cluster_division *division,
		  const struct input_division_told *told,
		  struct failure *failure)
{
	unsigned bad = 0;

	if (input_division_update(&division->division, told, &bad) == 0)
		return 0;
	return exchange_blame(division->exchange, bad, failure,
			      "claims an impossible %" PRIu64
			      " records of the shared input: " EXCHANGE_FAULTY,
			      told[bad].taken);
}

int cluster_division_step(struct cluster_division *division,
			  struct failure *failure)
{
	struct input_division_told own;
	uint64_t *told;
	int error;

	if (division->division.is_final || clock_now_ns() < division->next_ns)
		return 0;
	if (division->step_count++ == CLUSTER_FIRST_PASS_COLLECTIVES_MAX)
		return failure_set(failure, EXIT_PEER, NULL, 0,
				   "the input has been divided %d times, and "
				   "is not read",
				   CLUSTER_FIRST_PASS_COLLECTIVES_MAX);
	own = look(division);
	error = cluster_allgather_words(division->rank, division->exchange,
					(const uint64_t *)&own, TOLD_WORDS,
					&told, failure);
	if (error == 0)
		error = update(division,
			       (const struct input_division_told *)told,
			       failure);
	free(told);
	if (error == 0)
		give(division);
	return error;
}
