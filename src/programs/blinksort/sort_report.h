/*
 * sort_report.h - print the result of a sort as one JSON document on stdout
 *
 * Names of keys end in their unit.  All keys are always present; a value that
 * is not known is null.  blinksort-json(5) must have each key, as
 * check_external.sh and check_cluster_external.sh see.
 */
#ifndef SORT_REPORT_H
#define SORT_REPORT_H

#include "cluster/cluster.h"
#include "external/external_sort.h"
#include "programs/blinksort/mpi_link.h"
#include "sort/sort_config.h"

/* external is what a sort beyond memory has told. */
void sort_report_json(const struct sorter_config *config,
		      const struct sorter_result *result,
		      const struct external_result *external);

/* The result of this rank: the document, which on rank 0 also has the figures
 * of all ranks; or else the checksum, if it is wanted: on rank 0 of all ranks'
 * outputs.  mpi is NULL if the ranks did without MPI. */
void sort_report_cluster(const struct sorter_config *config,
			 const struct cluster_result *result,
			 const struct mpi_report *mpi, bool as_json);

/* A predicted time as whole ns, of which there are up to 1e18: a number of a
 * document has 64 bits. */
int64_t sort_report_ns(double ns);

/* The member "roles". */
void sort_report_roles(unsigned roles);

#endif /* SORT_REPORT_H */
