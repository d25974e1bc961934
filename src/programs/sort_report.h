/*
 * sort_report.h - print the result of a sort as one JSON document on stdout
 *
 * Names of keys end in their unit.  All keys are always present; a value that
 * is not known is null.
 */
#ifndef SORT_REPORT_H
#define SORT_REPORT_H

#include "cluster/cluster.h"
#include "external/external_sort.h"
#include "sort/sorter.h"

/* external is NULL if all fitted into memory. */
void sort_report_json(const struct sorter_config *config,
		      const struct sorter_result *result,
		      const struct external_result *external);

/* Print the result of this rank.  On rank 0 the document also has the figures
 * of all ranks. */
void sort_report_cluster_json(const struct sorter_config *config,
			      const struct cluster_result *result);

/* Returns the sum over all ranks on rank 0, and this rank's sum on other ranks.
 */
unsigned __int128
sort_report_cluster_checksum(const struct cluster_result *result);

#endif /* SORT_REPORT_H */
