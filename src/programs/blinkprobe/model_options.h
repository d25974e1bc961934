/*
 * model_options.h - blinkprobe model: what exchanges will take, by the model
 * that a cluster sort chooses its schedule by
 */
#ifndef MODEL_OPTIONS_H
#define MODEL_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/options.h"

/* Those in the program's table are above its own. */
enum {
	MODEL_OPTION_RANKS = 1000,
	MODEL_OPTION_RECORDS,
	MODEL_OPTION_RECORD_SIZE,
	MODEL_OPTION_LINK,
	MODEL_OPTION_MTU,
	MODEL_OPTION_OVERHEAD,
	MODEL_OPTION_SENDERS,
	MODEL_OPTION_RECEIVERS,
	MODEL_OPTION_SHARED_CPUS,
	MODEL_OPTION_LATENCY,
	MODEL_OPTION_ANNOUNCE,
};

/* clang-format off */
#define MODEL_OPTIONS                                                          \
	{ MODEL_OPTION_RANKS, "ranks", 0, OPTIONS_VALUE, "N,..." },            \
	{ MODEL_OPTION_RECORDS, "records", 0, OPTIONS_VALUE, "N" },            \
	{ MODEL_OPTION_RECORD_SIZE, "record-size", 0, OPTIONS_VALUE, "BYTES" },\
	{ MODEL_OPTION_LINK, "link", 0, OPTIONS_VALUE, "BITS" },               \
	{ MODEL_OPTION_MTU, "mtu", 0, OPTIONS_VALUE, "BYTES" },                \
	{ MODEL_OPTION_OVERHEAD, "overhead", 0, OPTIONS_VALUE, "BYTES" },      \
	{ MODEL_OPTION_SENDERS, "senders", 0, OPTIONS_VALUE, "N" },            \
	{ MODEL_OPTION_RECEIVERS, "receivers", 0, OPTIONS_VALUE, "N" },        \
	{ MODEL_OPTION_SHARED_CPUS, "shared-cpus", 0, OPTIONS_VALUE, "N" },    \
	{ MODEL_OPTION_LATENCY, "latency-ns", 0, OPTIONS_VALUE, "NS" },        \
	{ MODEL_OPTION_ANNOUNCE, "announce", 0, OPTIONS_VALUE, "KIND" }
/* clang-format on */

#define MODEL_RANK_COUNTS_MAX 64

struct model_options {
	unsigned ranks[MODEL_RANK_COUNTS_MAX];
	unsigned rank_counts; /* how many of them; 0: the option is missing */
	uint64_t record_count;
	uint32_t record_bytes;
	uint64_t link_bits_per_s;
	uint32_t mtu_bytes;
	uint32_t overhead_bytes; /* if the option was given */
	uint32_t sending_cpus, receiving_cpus;
	uint32_t shared_cpus; /* of all ranks; 0: each has its own */
	uint32_t latency_ns;  /* if the option was given */
	bool announces_all;   /* every rank the lengths of all messages */
};

/* Set what holds if no option says otherwise. */
void model_options_init(struct model_options *options);

/* Take the value of an option of the table above; of others, nothing.  0 or
 * -errno with *failure filled. */
int model_options_take(struct options_reader *reader, int id,
		       struct model_options *options, struct failure *failure);

/* All options have been read: are those there that are needed?  0 or -errno
 * with *failure filled. */
int model_options_check(struct options_reader *reader,
			const struct model_options *options,
			struct failure *failure);

/* Print what a JSON document has beside its head, from a comma on. */
void model_options_print(const struct options_reader *reader,
			 const struct model_options *options);

#endif /* MODEL_OPTIONS_H */
