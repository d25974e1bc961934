/*
 * external_report.h - print the progress and the result of a sort that does not
 * fit into memory
 */
#ifndef EXTERNAL_REPORT_H
#define EXTERNAL_REPORT_H

#include "external/external_sort.h"

/* An external_progress_fn that needs no context: a line on the terminal, over
 * its last one, until progress_remove(). */
void external_report_progress(void *context,
			      const struct external_progress *progress);

/* Print members of a document:
 * disk_rates and link_rate; predicted_ns and predicted_passes. */
void external_report_rates(const struct external_rates *rates);
void external_report_forecast(uint64_t ns, const struct pass_forecast *passes,
			      unsigned pass_count);

/* The member "external" of the report of a sort: null, if it was in memory. */
void external_report_json(const struct sorter_result *sort,
			  const struct external_result *result);

#endif /* EXTERNAL_REPORT_H */
