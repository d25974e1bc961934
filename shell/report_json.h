/*
 * report_json.h - one JSON document on stdout: a launch, or a survey
 *
 * Units are in the names; a key is always there, null if nobody knows.
 */
#ifndef REPORT_JSON_H
#define REPORT_JSON_H

#include "shell/report.h"

void report_json(const struct launch *launch, int status,
		 const struct report_samples *samples);
void report_survey_json(const struct survey *survey);

#endif /* REPORT_JSON_H */
