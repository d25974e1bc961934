/*
 * cluster.h - one sort by many machines: each has a part of the input, and gets
 * a part of the output
 *
 * All ranks run it at once.  Rank k's outputs hold the k-th part of the sorted
 * records; with equal keys, records of lower ranks come first.
 *
 *      hello      each rank tells all what it has (cluster_agree.h)
 *      bucket     each rank puts its records into buckets that all agree on
 *      exchange   each rank gets, bucket by bucket, what belongs to its share
 *      order      a rank sorts and writes buckets while others still arrive
 *      commit     when all ranks have written everything, they give the names
 *
 * Or all ranks write into one file, each its part, and the first that sorts
 * gives the name.
 *
 * If the records do not fit into the memory of some rank, or a rank lacks a
 * role (cluster_roles.h), or the ranks share their input, all of them sort by
 * way of scratch files (cluster_external.c).
 *
 * Buckets are equal key ranges when the probed keys are uniform.  Otherwise the
 * buckets' borders come from a sample, and the places where the shares begin
 * from counts; all ranks get all samples and all counts.
 *
 * The output is all or nothing.  A rank that fails tells the others, and a rank
 * that is silent for longer than the deadline ends the run on all ranks.
 */
#ifndef CLUSTER_H
#define CLUSTER_H

#include "cluster/agreement/cluster_agree.h"
#include "cluster/collective/cluster_progress.h"
#include "cluster/collective/cluster_report.h"
#include "cluster/agreement/cluster_roles.h"
#include "cluster/agreement/cluster_schedule.h"
#include "cluster/collective/cluster_passes.h"
#include "exchange/exchange.h"
#include "external/plan/codec_choice.h"
#include "external/external_sort.h"
#include "net/rank.h"
#include "sort/sort_config.h"

struct cluster_config {
	struct rank_options rank;
	struct cluster_schedule schedule; /* what the user wants */
	enum cluster_by_reference by_reference;
	/* Nothing goes through shared memory, not even the ranks' status. */
	bool datagrams_only;
	bool plain;
	struct cluster_roles roles; /* of all ranks */
	bool gathers; /* the outputs are the same files on all ranks */
	/* All ranks name the same input files, and each reads a part of them:
	 * beyond memory, whatever its size. */
	bool shares_input;
	uint16_t port;
	uint32_t payload_bytes;
	unsigned thread_count; /* of the exchange over UDP; 0: by the link */
	uint64_t deadline_ns;
	/* What a sort beyond memory needs: scratch files, codec.  The sort and
	 * the ranks are set by the cluster.  NULL: such a sort is refused. */
	const struct external_config *external;
	/* This rank shows predicted times of a sort beyond memory: ranks that
	 * do not know the rates of their links measure these. */
	bool predicts;
	/* Called on rank 0 with the progress of a sort beyond memory.  NULL:
	 * this rank tells nothing, and rank 0 sees a total of 0 for it. */
	cluster_progress_fn *progress;
	/* Called once, when the rank is known and no file has been opened: the
	 * caller may still change the paths in its configurations.  Returns 0,
	 * or -errno with *failure filled.  NULL: nothing is to be changed. */
	int (*take_rank)(void *context, const struct rank *rank,
			 struct failure *failure);
	void *rank_context;
	/* Opens another exchange than UDP; NULL: UDP.  Called once, by the
	 * thread that runs the sort, which then closes the exchange.  What it
	 * opens is taken for MPI where a schedule is chosen. */
	struct exchange *(*open_exchange)(
		void *context, const struct exchange_options *options,
		struct failure *failure);
	void *exchange_context;
};

/* What an exchange in memory has compressed its records with, and why. */
struct cluster_sending {
	struct codec codec; /* CODEC_NONE: with nothing */
	/* With CODEC_AUTO, if there was something to choose. */
	struct codec_sample sample;
	/* By the slowest link, in bytes a second, what a rank sends would take
	 * without and with lz4; 0: some rank's sample has decided. */
	uint64_t link_rate;
	double none_ns, lz4_ns;
};

/* Valid if cluster_run() returned 0; failed, if it did not. */
struct cluster_result {
	struct sorter_result
		sort; /* of this rank's share; all have one place */
	unsigned rank, node_count;
	uint32_t payload_bytes; /* of a datagram */
	unsigned thread_count;	/* of the exchange, with the rank's own */
	const char *transport;	/* how bytes have travelled: "udp", "mpi" */
	/* NUMA node of the device that has this rank's address, where buffers
	 * of the network lie; -1: of none, or not known, or with MPI. */
	int network_node;
	bool by_reference; /* ranks have sent references, not records */
	bool shares_input; /* all ranks have read the same files */
	struct external_result external; /* beyond memory: of this rank */
	/* [rank]: bits as in cluster_roles_of(). */
	uint8_t roles[RANK_NODES_MAX];
	struct cluster_schedule schedule; /* what was done */
	struct cluster_sending sending;	  /* in memory */
	/* What a failure's name is kept in: the failure points to it. */
	char failed[FAILURE_WHY_BYTES];
	/* Rank 0 has those of all ranks, the others have their own only. */
	struct cluster_report reports[RANK_NODES_MAX];
	struct cluster_passes passes; /* of all ranks, if it is external */
};

/* Sort, for a process that ends then: mappings and inputs are left to its end.
 * Returns 0 or -errno with *failure filled; EXIT_PEER: another rank has failed,
 * or the network. */
int cluster_run(const struct sorter_config *config,
		const struct cluster_config *cluster_config,
		struct cluster_result *result, struct failure *failure);

#endif /* CLUSTER_H */
