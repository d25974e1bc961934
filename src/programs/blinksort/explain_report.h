/*
 * explain_report.h - print what a sort would do, for --explain
 */
#ifndef EXPLAIN_REPORT_H
#define EXPLAIN_REPORT_H

#include "cluster/external/roles_choice.h"
#include "cluster/memory/memory_model.h"
#include "external/external_sort.h"

/* A sort that fits into memory. */
struct memory_explanation {
	unsigned rank_count;	/* 1: one process sorts alone */
	uint64_t whole_records; /* of all ranks */
	uint64_t header_bytes;	/* before the records of each input */
	struct memory_forecast forecast;
};

/* Print the explanation as a text, or as one JSON document.  The result says
 * what a sort in memory would take, of one rank. */
void explain_report_memory(const struct external_config *config,
			   const struct memory_explanation *explanation,
			   const struct sorter_result *result, bool json);

/* Print that of a sort beyond memory. */
void explain_report_external(const struct external_config *config,
			     const struct external_explanation *explanation,
			     const struct roles_choice *choice,
			     const struct sorter_result *result, bool json);

#endif /* EXPLAIN_REPORT_H */
