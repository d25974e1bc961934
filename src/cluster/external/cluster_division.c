/* cluster_division.c - the ranks divide an input that all of them read */
#include "cluster/external/cluster_division.h"

#include <inttypes.h>
#include <stdlib.h>

#include "base/base.h"
#include "base/clock.h"
#include "cluster/agreement/input_division.h"
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

struct dividing {
	struct input_division *division;
	const struct cluster_runs *runs;
	struct reading_claims *claims;
	uint64_t begin_ns, next_ns; /* the ranks divide then */
	/* When the rate was measured last. */
	uint64_t last_ns, last_read, last_waited_ns;
	uint64_t rate; /* records in a second; 0: not known yet */
};

static void give(struct dividing *dividing)
{
	const struct input_division *division = dividing->division;
	const struct input_part *own =
		&division->parts[dividing->runs->rank->rank];
	uint64_t now_ns = clock_now_ns();

	reading_claims_give(dividing->claims, own->ranges, own->range_count,
			    division->is_final);
	dividing->next_ns =
		now_ns + MAX(division->pause_ns,
			     PAUSE_PART(now_ns - dividing->begin_ns));
}

/* Waiting for a part to read is no fault of the rank's.  Each rate counts as
 * much as all before it. */
static void measure(struct dividing *dividing, uint64_t read)
{
	uint64_t now_ns = clock_now_ns();
	uint64_t waited_ns = reading_claims_waited_ns(dividing->claims);
	uint64_t ns = now_ns - dividing->last_ns -
		      MIN(waited_ns - dividing->last_waited_ns,
			  now_ns - dividing->last_ns);
	uint64_t recent = (uint64_t)((double)(read - dividing->last_read) *
				     1e9 / (double)MAX(1, ns));

	if (ns < (dividing->rate > 0 ? RATE_NS_NEXT : RATE_NS_FIRST))
		return;
	if (dividing->rate > 0)
		recent = (dividing->rate + recent) / 2;
	dividing->rate = MAX(1, recent);
	dividing->last_ns = now_ns;
	dividing->last_read = read;
	dividing->last_waited_ns = waited_ns;
}

static struct input_division_told look(struct dividing *dividing)
{
	uint64_t read = external_rank_read_records(dividing->runs->self);

	measure(dividing, read);
	return (struct input_division_told){
		.taken = reading_claims_hold(dividing->claims),
		.read = read,
		.rate = dividing->rate,
		.grain = dividing->claims->capacity,
	};
}

static int divide(struct dividing *dividing)
{
	const struct cluster_runs *runs = dividing->runs;
	const struct input_division_told own = look(dividing);
	struct input_division_told told[RANK_NODES_MAX];
	unsigned bad = 0;
	int error = cluster_allgather_words(runs->rank, runs->exchange,
					    (const uint64_t *)&own, TOLD_WORDS,
					    (uint64_t *)told, runs->failure);

	if (error == 0 &&
	    input_division_update(dividing->division, told, &bad) < 0)
		error = exchange_blame(
			runs->exchange, bad, runs->failure,
			"claims an impossible %" PRIu64
			" records of the shared input: " EXCHANGE_FAULTY,
			told[bad].taken);
	return error;
}

static int divide_until_final(struct dividing *dividing)
{
	unsigned count = 0;
	int error = 0;

	give(dividing);
	while (error == 0 && !dividing->division->is_final) {
		if (clock_now_ns() < dividing->next_ns) {
			error = cluster_runs_pause(dividing->runs);
			continue;
		}
		if (count++ == CLUSTER_FIRST_PASS_COLLECTIVES_MAX)
			return failure_set(dividing->runs->failure, EXIT_PEER,
					   NULL, 0,
					   "the input has been divided %d "
					   "times, and is not read",
					   CLUSTER_FIRST_PASS_COLLECTIVES_MAX);
		error = divide(dividing);
		if (error == 0)
			give(dividing);
	}
	return error;
}

int cluster_divide(struct cluster_runs *runs)
{
	unsigned rank_count = runs->rank->node_count;
	struct dividing dividing = {
		.division = calloc(1, sizeof(*dividing.division)),
		.runs = runs,
		.claims = runs->self->claims,
		.begin_ns = clock_now_ns(),
		.last_ns = clock_now_ns(),
	};
	unsigned given_max[RANK_NODES_MAX];
	int error;

	if (!dividing.division)
		return failure_no_memory(runs->failure);
	for (unsigned i = 0; i < rank_count; i++)
		given_max[i] = cluster_runs_max(runs, i) / 2;
	input_division_init(dividing.division, runs->hellos[0].shared_records,
			    rank_count, given_max);
	error = divide_until_final(&dividing);
	for (unsigned i = 0; i < rank_count; i++)
		runs->spans[i].part_count = input_division_parts(
			&dividing.division->parts[i], runs->spans[i].parts);
	free(dividing.division);
	return error;
}
