/*
 * cluster_link.h - the rate of each rank's link
 *
 * The user may give the rate (--link-rate).  Otherwise the ranks measure it
 * before they sort: each rank sends the same number of bytes to every other
 * rank, and divides what it has received by the time from the first arrival to
 * the last.  All ranks send and receive at once, as in the sort, so the figure
 * includes a switch that is shared and a rank that receives slowly.
 *
 * In the first step each rank sends 256 KiB in all.  Each further step sends
 * four times as many bytes, up to 16 MiB; the ranks stop when a step has taken
 * any of them 50 ms, or before a step that has more bytes than the caller
 * allows.  A link of 300 Mbit/s is measured for 0.15 s, one of 25 Gbit/s for
 * 0.01 s.
 *
 * All ranks call the function together.  They decide by all hellos, so alike.
 */
#ifndef CLUSTER_LINK_H
#define CLUSTER_LINK_H

#include "base/base.h"
#include "cluster/agreement/cluster_agree.h"
#include "exchange/exchange.h"

/* Bytes a second, each way; 0: not known. */
struct cluster_link {
	uint64_t own;	/* of this rank */
	uint64_t least; /* of the rank with the slowest link */
};

/* The bytes of the first step. */
#define CLUSTER_LINK_BYTES_MIN (256 * KIB)

/* link->own is what the user has told of it, or 0.  Nothing is sent if no rank
 * needs to know, and no step has more bytes than step_bytes_max, which is
 * CLUSTER_LINK_BYTES_MIN or more.  0, or -errno with *failure filled. */
int cluster_link_learn(struct cluster_link *link,
		       const struct cluster_hello *hellos,
		       const struct rank *rank, struct exchange *exchange,
		       uint64_t step_bytes_max, struct failure *failure);

#endif /* CLUSTER_LINK_H */
