/*
 * sort_report.h - what a sort has done, as one JSON document on stdout
 *
 * Units are in the names; a key is always there, null if nobody knows.
 */
#ifndef SORT_REPORT_H
#define SORT_REPORT_H

#include "cluster/cluster.h"
#include "sort/sorter.h"

void sort_report_json(const struct sorter_config *config,
		      const struct sorter_result *result);

/* Of this rank's share; rank 0 adds the figures of all ranks. */
void sort_report_cluster_json(const struct sorter_config *config,
			      const struct cluster_result *result);

/* The sum over all ranks on rank 0, else our own. */
unsigned __int128
sort_report_cluster_checksum(const struct cluster_result *result);

#endif /* SORT_REPORT_H */
