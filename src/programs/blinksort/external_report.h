/*
 * external_report.h - print the plan, the progress and the result of a sort
 * that does not fit into memory
 */
#ifndef EXTERNAL_REPORT_H
#define EXTERNAL_REPORT_H

#include "external/external_sort.h"

/* For --explain, as a text or as one JSON document.  The result says what a
 * sort in memory would take.  The last one is for a sort that fits into memory.
 */
void external_report_explain(const struct external_config *config,
			     const struct external_explanation *explanation,
			     const struct sorter_result *result);
void external_report_explain_json(
	const struct external_config *config,
	const struct external_explanation *explanation);
void external_report_explain_memory(const struct sorter_result *result,
				    uint32_t record_size, bool json);

/* An external_progress_fn that needs no context: a line on the terminal, over
 * the line before.  The second function removes it. */
void external_report_progress(void *context,
			      const struct external_progress *progress);
void external_report_end_progress(void);

/* The value of the key "external" in the report of a sort. */
void external_report_json(const struct external_result *result);

#endif /* EXTERNAL_REPORT_H */
