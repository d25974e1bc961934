/*
 * cluster_external.h - the sort beyond memory, by many ranks: their messages
 *
 * What a rank does by itself is in external_rank.h.  The ranks tell each other:
 *
 *      links      before all this, how fast each is (cluster_link.h)
 *      limits     how much memory each has for pieces, and for what others want
 *      batches    runs that other ranks keep (cluster_keep.h)
 *      samples    of the runs that each has made; all find the same cuts
 *      parts      the blocks of our runs that belong to another's part
 *      wants      which of these blocks another wants in which wave
 *      waves      the blocks
 *      shares     after the first wave: how many records each will write
 *      stages     in the end: what each pass has taken
 *
 * All but the batches and the waves is small, and in memory at once.
 */
#ifndef CLUSTER_EXTERNAL_H
#define CLUSTER_EXTERNAL_H

#include "cluster/agreement/cluster_agree.h"
#include "cluster/output/cluster_output.h"
#include "cluster/collective/cluster_progress.h"
#include "cluster/collective/cluster_report.h"
#include "cluster/collective/cluster_stages.h"
#include "exchange/exchange.h"
#include "external/external_sort.h"

/* All is borrowed. */
struct cluster_external {
	const struct external_config *config; /* with rank_count */
	struct exchange *exchange;	      /* all have joined */
	const struct rank *rank;
	const struct cluster_hello *hellos;
	struct cluster_output *output; /* not opened yet */
	struct cluster_report *report;
	struct sorter_result *result;
	struct external_result *external_result;
	struct cluster_stages *stages;
	struct cluster_progress *progress; /* the config notes it there */
};

/* Sort: our share has been handed over to the output, which the caller then
 * finishes.  0, or -errno with *failure filled. */
int cluster_external_run(const struct cluster_external *external,
			 struct failure *failure);

#endif /* CLUSTER_EXTERNAL_H */
