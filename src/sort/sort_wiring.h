/*
 * sort_wiring.h - what the two halves of a sort have in common
 */
#ifndef SORT_WIRING_H
#define SORT_WIRING_H

#include "base/cpu.h"
#include "base/first_failure.h"
#include "kernels/splitters.h"
#include "record/record.h"
#include "sort/plan.h"
#include "sort/sort_trace.h"
#include "system/thread_pool.h"

/* What pointers point to must outlive the sort.  Of these only the plan and the
 * splitters change, and only between passes. */
struct sort_wiring {
	struct record_shape shape;
	enum cpu_level kernel;
	const struct plan *plan; /* the bucketing's */
	const struct splitters *splitters;
	struct thread_pool *pool; /* its workers sort */
	struct sort_trace *trace;
	/* Any thread notes its failure here, and all workers stop. */
	struct first_failure *failure;
};

#endif /* SORT_WIRING_H */
