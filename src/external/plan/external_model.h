/*
 * external_model.h - how long an external sort will take, and what limits it
 *
 * Stages that run at the same time combine by the longest, passes by their sum
 * (as in DEPSort's model).  In a pass a disk moves what is read and
 * what is written; it does so together faster than one after the other, and
 * what is left of one alone goes at that one's rate.  Where both at once are as
 * fast as each alone, added up, these are different disks, and the longer one
 * counts.  Of a pass that reads and writes in turns (external_plan.h) the sum
 * of both times counts.  A read of another place takes the time of a small read
 * more.
 *
 * Ranks that merge together send each other the blocks of their runs in the
 * last pass (external_rank.h): of what a rank has and of what it gets, all but
 * its own part passes its link, while its disks and its threads work.  Runs
 * that a rank does not keep pass its link and the keeper's in the first pass.
 */
#ifndef EXTERNAL_MODEL_H
#define EXTERNAL_MODEL_H

#include <stdbool.h>
#include <stdint.h>

/* Bytes a second.  The three of the disk are all above 0, or none is known. */
struct external_rates {
	uint64_t read;
	uint64_t write;
	uint64_t both; /* the sum, when it reads and writes at once */
	/* What this rank's link brings in and takes out at once, each way; 0:
	 * there is none, or it is not known. */
	uint64_t link;
	/* What the file system moves that all ranks' inputs and outputs lie on,
	 * for all of them together; 0: they lie on the disk. */
	uint64_t storage;
	/* Small reads from anywhere that the disk serves in a second, several
	 * under way; 0: not known, and many. */
	uint64_t requests;
};

/* Bytes that the disk reads in order in the time of one small read; 0: that is
 * not known.  If the rate of reading is not known, it is supposed to be that of
 * a disk with an arm. */
uint64_t external_rates_seek_bytes(const struct external_rates *rates);

/* Both at once are as fast as each alone, added up: what is read and what is
 * written are on different disks. */
bool external_rates_apart(const struct external_rates *rates);

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

/* A pass of any sort, also of one in memory (memory_model.h). */
struct pass_forecast {
	const char *name;
	uint64_t read_bytes, written_bytes;
	uint64_t sent_bytes; /* to other ranks, or from them */
	/* How often it asks for another place of the disk, and what that costs.
	 */
	uint64_t seeks, seeks_ns;
	uint64_t ns;
	/* What each limit alone would take, and the one that takes longest. */
	uint64_t limits_ns[EXTERNAL_LIMITS];
	enum external_limit limit;
};

struct external_forecast {
	uint64_t ns; /* of all passes */
	struct pass_forecast passes[EXTERNAL_PASSES];
};

/* Set the times of a pass, whose stages run at the same time: together they
 * take as long as the longest of them; of equal ones, the first is the limit.
 */
void external_model_set_pass(struct pass_forecast *pass,
			     const double ns[EXTERNAL_LIMITS]);

struct external_plan;
struct external_request;

/* The request says the number of records.  If the rates of the disk are 0, they
 * are not known, and neither are the times: these are 0, too. */
void external_model_forecast(struct external_forecast *forecast,
			     const struct external_plan *plan,
			     const struct external_request *request,
			     const struct external_rates *rates);

/* [enum external_pass]: "runs", "merges", "output"; [enum external_limit]:
 * "disk", "cpu", "link" */
extern const char *const external_pass_names[EXTERNAL_PASSES];
extern const char *const external_limit_names[];

#endif /* EXTERNAL_MODEL_H */
