/*
 * rank_report.h - print how far the ranks of a sort beyond memory have come,
 * and what each of their passes has taken
 */
#ifndef RANK_REPORT_H
#define RANK_REPORT_H

#include "cluster/cluster.h"

/* A cluster_progress_fn: a line on the terminal, over its last one; or, for a
 * job of blinkd's, a line that ends with a carriage return, of which blinksh
 * shows the last one.  progress_remove() removes it. */
void rank_report_progress(const struct external_progress *ranks,
			  unsigned rank_count);

/* On standard error: passes, of all ranks together and of each, and how many
 * times the input was read and written in all.  Nothing, if this is not rank 0,
 * or all records were in memory. */
void rank_report_table(const struct cluster_result *result,
		       uint32_t record_size);

/*
 * Print a failure as log_failure() does; returns its status.
 *
 * A wrong command line mostly is that of all ranks, but no launcher tells
 * whether it has started one command for all.  Of such a failure rank 0 prints
 * its line at once and each other rank two seconds later.  srun
 * --kill-on-bad-exit has ended them by then, and the line stands there once;
 * and where rank 3 alone was given a wrong option, its line still comes.
 * blinksh shows what each rank prints by itself: there no rank waits.
 */
int rank_report_failure(const struct failure *failure);

#endif /* RANK_REPORT_H */
