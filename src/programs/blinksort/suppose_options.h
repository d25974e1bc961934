/*
 * suppose_options.h - --suppose: what a sort would do on machines that one does
 * not have, without any file
 */
#ifndef SUPPOSE_OPTIONS_H
#define SUPPOSE_OPTIONS_H

#include "base/options.h"
#include "programs/blinksort/explain_report.h"

struct suppose_options {
	/* rank_count 0: the option was not given. */
	struct memory_request memory;
	/* What a rank has to exchange records; UINT64_MAX: as the model says
	 * (exchange_model.h). */
	uint64_t mtu_bytes, sending_cpus, receiving_cpus;
	uint64_t overhead_bytes, latency_ns;
	uint64_t shared_cpus; /* of all ranks; 0: each has its own */
	uint64_t storage;     /* as in external_rates */
	/* Its roles are NULL if none were given. */
	struct roles_choice choice;
};

/* Take the value of --suppose: RANKS:RECORDS[,NAME=NUMBER]...  0 or -errno with
 * *failure filled. */
int suppose_options_take(struct options_reader *reader,
			 struct suppose_options *suppose,
			 struct failure *failure);

/*
 * All options have been read: plan for the rank that has most.  *result says
 * what a sort in memory would take, and its place whether that suffices; if so,
 * *in_memory is filled, and if not, *explanation, and the choice of roles.  0
 * or -errno with *failure filled.
 */
int suppose_options_explain(struct suppose_options *suppose,
			    const struct external_config *config,
			    struct sorter_result *result,
			    struct memory_explanation *in_memory,
			    struct external_explanation *explanation,
			    struct failure *failure);

#endif /* SUPPOSE_OPTIONS_H */
