/*
 * cluster_link.h - how much each rank's link brings in
 *
 * A user may tell (--link-rate).  Otherwise the ranks measure it before they
 * sort: each sends some bytes to each other one, and a rank divides what has
 * come by the time from the first bytes to the last.  All ranks send and get at
 * once, as in the sort, so that this is what the sort will see: also of a
 * switch, and of a rank that takes what comes to it slowly.
 *
 * First these are 256 KiB for each rank in all; then four times as many, as
 * long as no rank has needed 50 ms, and up to 16 MiB.  A link of 300 Mbit/s is
 * measured for a tenth of a second, one of 25 Gbit/s for less.
 *
 * All ranks call it at the same place, and do so alike, by what all hellos say.
 */
#ifndef CLUSTER_LINK_H
#define CLUSTER_LINK_H

#include "cluster/cluster_agree.h"
#include "exchange/exchange.h"

/* In bytes a second, each way; 0: not known. */
struct cluster_link {
	uint64_t own;	/* of this rank */
	uint64_t least; /* of the rank with the slowest link */
};

/* link->own is what the user has told of it, or 0.  Nothing is sent if no rank
 * needs to know.  0, or -errno with *failure filled. */
int cluster_link_learn(struct cluster_link *link,
		       const struct cluster_hello *hellos,
		       const struct rank *rank, struct exchange *exchange,
		       struct failure *failure);

#endif /* CLUSTER_LINK_H */
