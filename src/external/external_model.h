/*
 * external_model.h - how long an external sort will take, and what limits it
 *
 * Stages that run at the same time combine by the longest, passes by their sum
 * (DEPSort's model, Hou et al. 2014).  In a pass a disk moves what is read and
 * what is written; it does so together faster than one after the other, and
 * what is left of one alone goes at that one's rate.
 */
#ifndef EXTERNAL_MODEL_H
#define EXTERNAL_MODEL_H

#include <stdbool.h>
#include <stdint.h>

/* Of the disk, in bytes a second; all above 0. */
struct external_rates {
	uint64_t read;
	uint64_t write;
	uint64_t both; /* the sum, when it reads and writes at once */
};

enum external_pass {
	EXTERNAL_RUNS,	 /* the input into runs */
	EXTERNAL_MERGES, /* runs into fewer and longer runs */
	EXTERNAL_OUTPUT, /* runs into the output */
	EXTERNAL_PASSES,
};

enum external_limit {
	EXTERNAL_DISK,
	EXTERNAL_CPU,
	EXTERNAL_LINK, /* to other ranks */
	EXTERNAL_LIMITS,
};

struct external_forecast {
	uint64_t ns; /* of all passes */
	struct {
		uint64_t read_bytes, written_bytes;
		uint64_t ns;
		enum external_limit limit;
	} passes[EXTERNAL_PASSES];
};

struct external_plan;
struct external_request;

/* The request says the number of records.  If all rates are 0, they are not
 * known, and neither are the times: these are 0, too. */
void external_model_forecast(struct external_forecast *forecast,
			     const struct external_plan *plan,
			     const struct external_request *request,
			     const struct external_rates *rates);

/* "runs", "merges", "output"; "disk", "cpu", "link" */
const char *external_pass_name(enum external_pass pass);
const char *external_limit_name(enum external_limit limit);

#endif /* EXTERNAL_MODEL_H */
