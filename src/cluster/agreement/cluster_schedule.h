/*
 * cluster_schedule.h - in which order ranks send to each other: what the user
 * wants, and what is done
 */
#ifndef CLUSTER_SCHEDULE_H
#define CLUSTER_SCHEDULE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/failure.h"
#include "exchange/exchange.h"

/* Rows and columns are of a grid; 0: as square as can be. */
struct cluster_schedule {
	enum exchange_schedule kind;
	unsigned rows, columns; /* 0 .. RANK_NODES_MAX */
};

/* A number for the hello: wishes that differ have different ones. */
uint32_t cluster_schedule_number(const struct cluster_schedule *wish);

/* What the choice depends on: so many ranks send so many bytes in all. */
struct cluster_traffic {
	unsigned node_count;
	uint64_t byte_count;
	bool on_one_machine; /* there is no link to share */
	bool is_external;    /* messages go in waves, long ones */
	bool is_by_mpi;	     /* which sends by rounds, or a grid of them */
	/* Each rank has at least so many threads for the exchange; from 1. */
	unsigned thread_count;
};

/* The schedule before the ranks know of each other: rounds, or all-at-once on
 * one machine.
 */
enum exchange_schedule cluster_schedule_first(const struct cluster_schedule *,
					      bool on_one_machine);

/*
 * What all ranks do then: never EXCHANGE_AUTO, and a grid with rows and
 * columns. Auto is what exchange_model_schedule() says of the mean message,
 * between machines and in memory; else as at first.  MPI has no all-at-once,
 * and gets rounds instead.  Returns 0, or -EINVAL with *failure filled: ranks
 * or messages do not suit the grid that is wanted.
 */
int cluster_schedule_choose(struct cluster_schedule *choice,
			    const struct cluster_schedule *wish,
			    const struct cluster_traffic *traffic,
			    struct failure *failure);

#endif /* CLUSTER_SCHEDULE_H */
