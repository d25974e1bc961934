/*
 * cluster.h - one sort by many machines: each has a part of the input, and gets
 * a part of the output
 *
 * All ranks run it at once.  Rank k's outputs hold the k-th part of the sorted
 * whole; with equal keys, records of lower ranks come first.
 *
 *      hello      who has how much, of what kind (cluster_agree.h)
 *      bucket     each rank's records into buckets that are the same on all
 *      exchange   to each rank, bucket by bucket, what belongs to its share
 *      order      a rank sorts and writes buckets while others still arrive
 *      commit     when all ranks have all written, all give the names
 *
 * Or all write into one file, each its part of it, and rank 0 gives the name.
 *
 * Buckets are equal key ranges when keys look evenly spread; else their
 * borders, and where the shares begin, come from a sample and from counts that
 * all tell all.
 *
 * Either all ranks have their outputs in the end, or none has: who fails tells
 * the others, and who falls silent is given up.
 */
#ifndef CLUSTER_H
#define CLUSTER_H

#include "cluster/cluster_agree.h"
#include "cluster/cluster_report.h"
#include "exchange/exchange.h"
#include "net/rank.h"
#include "sort/sorter.h"

struct cluster_config {
	struct rank_options rank;
	/* AUTO: rounds, but all at once on one machine, where no link is to be
	 * shared and turns are only switches between processes. */
	enum exchange_schedule schedule;
	enum cluster_by_reference by_reference;
	/* Send all by UDP, also STATUS within a machine. */
	bool datagrams_only;
	bool plain;
	bool gathers; /* the one output is the same file on all ranks */
	uint16_t port;
	uint32_t payload_bytes;
	uint64_t deadline_ns;
	/* Opens another exchange than UDP; NULL: UDP.  Called once, by the
	 * thread that runs the sort, which then closes the exchange. */
	struct exchange *(*open_exchange)(
		void *context, const struct exchange_options *options,
		struct failure *failure);
	void *exchange_context;
};

/* Valid if cluster_run() returned 0; failed, if it did not. */
struct cluster_result {
	struct sorter_result sort; /* of this rank's share */
	unsigned rank, node_count;
	uint32_t payload_bytes; /* of a datagram */
	const char *transport;	/* how bytes have travelled: "udp" */
	bool by_reference;	/* ranks have sent references, not records */
	enum exchange_schedule schedule;
	/* What a failure's name is kept in: the failure points to it. */
	char failed[FAILURE_WHY_BYTES];
	/* On rank 0 of all ranks, else only our own. */
	struct cluster_report reports[RANK_NODES_MAX];
};

/* As sorter_run(), which reads the same configuration.  EXIT_PEER: another
 * rank's failure, or the network's. */
int cluster_run(const struct sorter_config *config,
		const struct cluster_config *cluster_config,
		struct cluster_result *result, struct failure *failure);

#endif /* CLUSTER_H */
