/*
 * cluster_options.h - the options of a rank's sort
 */
#ifndef CLUSTER_OPTIONS_H
#define CLUSTER_OPTIONS_H

#include "base/options.h"
#include "cluster/cluster.h"

/* In the program's table, above the numbers of its own options. */
enum {
	CLUSTER_OPTION_CLUSTER = 1000,
	CLUSTER_OPTION_NODES,
	CLUSTER_OPTION_RANK,
	/* These two also go with --suppose. */
	CLUSTER_OPTION_LINK_RATE,
	CLUSTER_OPTION_ROLES,
	/* The options from here on need --cluster or --nodes. */
	CLUSTER_OPTION_SHARED_INPUT,
	CLUSTER_OPTION_GATHER,
	CLUSTER_OPTION_KEY_FILE,
	CLUSTER_OPTION_JOB,
	CLUSTER_OPTION_SCHEDULE,
	CLUSTER_OPTION_TRANSPORT,
	CLUSTER_OPTION_BY_REFERENCE,
	CLUSTER_OPTION_PORT,
	CLUSTER_OPTION_PAYLOAD,
	CLUSTER_OPTION_THREADS,
	CLUSTER_OPTION_PLAIN,
	CLUSTER_OPTION_DEADLINE,
	CLUSTER_OPTION_END,
};

/* clang-format off */
#define CLUSTER_OPTIONS                                                        \
	{ CLUSTER_OPTION_CLUSTER, "cluster", 0, OPTIONS_FLAG, NULL },          \
	{ CLUSTER_OPTION_NODES, "nodes", 0, OPTIONS_VALUE, "HOSTS" },          \
	{ CLUSTER_OPTION_RANK, "rank", 0, OPTIONS_VALUE, "R" },                \
	{ CLUSTER_OPTION_LINK_RATE, "link-rate", 0, OPTIONS_VALUE, "RATE" },   \
	{ CLUSTER_OPTION_SHARED_INPUT, "shared-input", 0, OPTIONS_FLAG, NULL },\
	{ CLUSTER_OPTION_GATHER, "gather", 0, OPTIONS_FILES, "FILE" },         \
	{ CLUSTER_OPTION_KEY_FILE, "key-file", 0, OPTIONS_FILE, "FILE" },      \
	{ CLUSTER_OPTION_JOB, "job", 0, OPTIONS_VALUE, "NAME" },               \
	{ CLUSTER_OPTION_SCHEDULE, "schedule", 0, OPTIONS_VALUE, "KIND" },     \
	{ CLUSTER_OPTION_TRANSPORT, "transport", 0, OPTIONS_VALUE, "KIND" },   \
	{ CLUSTER_OPTION_BY_REFERENCE, "by-reference", 0, OPTIONS_VALUE,       \
	  "WHEN" },                                                            \
	{ CLUSTER_OPTION_ROLES, "roles", 0, OPTIONS_VALUE, "ROLES" },          \
	{ CLUSTER_OPTION_PORT, "port", 0, OPTIONS_VALUE, "P" },                \
	{ CLUSTER_OPTION_PAYLOAD, "payload", 0, OPTIONS_VALUE, "BYTES" },      \
	{ CLUSTER_OPTION_THREADS, "exchange-threads", 0, OPTIONS_VALUE, "N" }, \
	{ CLUSTER_OPTION_PLAIN, "plain", 0, OPTIONS_FLAG, NULL },              \
	{ CLUSTER_OPTION_DEADLINE, "deadline", 0, OPTIONS_VALUE, "SECONDS" }
/* clang-format on */

/* What this process is. */
enum cluster_kind { CLUSTER_NONE, CLUSTER_UDP_RANK, CLUSTER_MPI_RANK };

struct cluster_options {
	enum cluster_kind kind;
	struct cluster_config config;
};

/* Take the value of an option of the table above; of others, nothing.
 * --link-rate is stored in *link_rate, in bytes a second.  0 or -errno with
 * *failure filled. */
int cluster_options_take(struct options_reader *reader, int id,
			 struct cluster_options *options, uint64_t *link_rate,
			 struct failure *failure);

/* All options have been read: is this a rank, and may it be one with these?  0
 * or -errno with *failure filled. */
int cluster_options_complete(struct options_reader *reader,
			     struct cluster_options *options,
			     struct failure *failure);

#endif /* CLUSTER_OPTIONS_H */
