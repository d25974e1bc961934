/*
 * external_report.h - print the progress and the result of a sort that does not
 * fit into memory
 */
#ifndef EXTERNAL_REPORT_H
#define EXTERNAL_REPORT_H

#include "external/external_sort.h"

/* An external_progress_fn that needs no context: it draws a line. */
void external_report_progress(void *context,
			      const struct external_progress *progress);
/* Draw a line on the terminal, over the last one; and remove it, if any. */
void external_report_draw(const char *text);
void external_report_end_progress(void);

/* Print members of a document behind others:
 * disk_rates and link_rate; predicted_ns and predicted_passes. */
void external_report_rates(const struct external_rates *rates);
void external_report_forecast(uint64_t ns, const struct pass_forecast *passes,
			      unsigned pass_count);

/* The value of the key "external" in the report of a sort. */
void external_report_json(const struct external_result *result);

#endif /* EXTERNAL_REPORT_H */
