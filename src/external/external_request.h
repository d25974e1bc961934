/*
 * external_request.h - from what the user wants to the plan of a sort beyond
 * memory, for sorts that run and for those that are only asked about
 */
#ifndef EXTERNAL_REQUEST_H
#define EXTERNAL_REQUEST_H

#include "external/plan/external_plan.h"
#include "external/external_sort.h"

/* Make the request for record_count records of this process
 * (EXTERNAL_RECORDS_UNKNOWN: for a stream).  Memory and workers that the config
 * leaves open follow from this machine. */
void external_request_make(struct external_request *request,
			   const struct external_config *config,
			   uint64_t record_count, unsigned cpu_count);

/* The least memory that suffices for the request, with as few workers as it may
 * have; UINT64_MAX: no memory suffices. */
uint64_t external_request_memory_min(const struct external_request *request);

/* Make the plan for the request's workers; or, if it may have fewer, for half,
 * a quarter or less of them, where all of them leave too little memory for a
 * plan, or for a good one: worker_count and threads_source then say so.
 * If all scratch files are memory, memory_bytes is made smaller until they fit
 * beside the sort, and memory_source says so.  0; or -errno with *failure
 * filled: the memory does not suffice, and the failure says how much would. */
int external_request_plan(struct external_request *request,
			  const struct external_config *config,
			  struct external_plan *plan, struct failure *failure);

#endif /* EXTERNAL_REQUEST_H */
