/*
 * cluster_pause.h - what the thread that has the exchange does while it waits
 *
 * Other threads of this rank work meanwhile, for minutes it may be.  The other
 * ranks hold a rank that does not answer them for dead, so this thread asks
 * again and again whether the work is done, and pauses between.
 */
#ifndef CLUSTER_PAUSE_H
#define CLUSTER_PAUSE_H

#include "cluster/collective/cluster_progress.h"

/* Answer the other ranks by the exchange that the progress has, tell rank 0 how
 * far we are, and sleep for half a millisecond.  0; or -errno with *failure
 * filled: another rank has failed. */
int cluster_pause(struct cluster_progress *progress, struct failure *failure);

#endif /* CLUSTER_PAUSE_H */
