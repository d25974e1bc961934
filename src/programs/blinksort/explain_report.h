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
	struct sorter_result result; /* of one rank */
	unsigned rank_count;	     /* 1: one process sorts alone */
	uint64_t whole_records;	     /* of all ranks */
	uint32_t record_size;
	uint64_t header_bytes;	     /* before the records of each input */
	struct external_rates rates; /* as far as they were told */
	struct memory_forecast forecast;
};

/* Print the explanation as a text, or as one JSON document. */
void explain_report_memory(const struct memory_explanation *explanation,
			   bool json);

/* Print that of a sort beyond memory.  The result says what a sort in memory
 * would take. */
void explain_report_external(const struct external_config *config,
			     const struct external_explanation *explanation,
			     const struct roles_choice *choice,
			     const struct sorter_result *result, bool json);

#endif /* EXPLAIN_REPORT_H */
