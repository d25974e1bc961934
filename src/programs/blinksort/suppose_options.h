/*
 * suppose_options.h - --suppose: what a sort would do on machines that one does
 * not have, without any file
 */
#ifndef SUPPOSE_OPTIONS_H
#define SUPPOSE_OPTIONS_H

#include "base/options.h"
#include "external/external_sort.h"

struct suppose_options {
	unsigned rank_count;   /* 0: the option was not given */
	uint64_t record_count; /* of all ranks */
};

/* Take the value of --suppose: RANKS:RECORDS.  0 or -errno with *failure
 * filled. */
int suppose_options_take(struct options_reader *reader,
			 struct suppose_options *suppose,
			 struct failure *failure);

/*
 * All options have been read: plan for the rank that has most.  *result says
 * what a sort in memory would take, and *fits whether it would suffice; if not,
 * *explanation is filled.  0 or -errno with *failure filled.
 */
int suppose_options_explain(const struct suppose_options *suppose,
			    const struct external_config *config,
			    struct sorter_result *result, bool *fits,
			    struct external_explanation *explanation,
			    struct failure *failure);

#endif /* SUPPOSE_OPTIONS_H */
