/*
 * cluster_trace.h - the timelines of all ranks in one document
 *
 * Each rank's clock runs by itself.  Rank 0 knows the clocks' differences from
 * the round trips of the exchange's own datagrams, and how exact they are.
 */
#ifndef CLUSTER_TRACE_H
#define CLUSTER_TRACE_H

#include "exchange/exchange.h"
#include "sort/sort_trace.h"

/* All ranks: rank 0 gets all timelines and writes them to its trace's file, by
 * its own clock, on which the run began at begin_ns.  0 or -errno with *failure
 * filled. */
int cluster_trace_write(const struct sort_trace *trace, const struct rank *rank,
			struct exchange *exchange, uint64_t begin_ns,
			struct failure *failure);

#endif /* CLUSTER_TRACE_H */
