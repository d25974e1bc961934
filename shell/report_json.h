/*
 * report_json.h - print one JSON document on stdout: a launch, or a query
 *
 * Units are in the names.  A key is always there; its value is null if unknown.
 */
#ifndef REPORT_JSON_H
#define REPORT_JSON_H

#include "shell/report.h"

void report_json(const struct launch *launch, int status,
		 const struct report_samples *samples);
void report_query_json(const struct query *query);

#endif /* REPORT_JSON_H */
