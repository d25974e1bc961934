/*
 * memory_model.h - how long a sort in memory will take, pass by pass, and what
 * its exchange takes
 *
 * Ranks are alike, have equal shares and begin at once.  The CPUs of a rank
 * bring each record of its share into a bucket, the ranks exchange what belongs
 * to others (exchange_model.h), and the CPUs bring the buckets into order.  A
 * disk reads or writes while they do that, so the longer of the two counts; to
 * write to the page cache is the CPUs' own work.
 *
 * The costs of the CPUs are constants, fitted to sorts of 1,000,000 records in
 * the page cache of a machine with Zen 4
 * (results/runs/2026-11-22-zen4-1-sweep): on another CPU they may be off by as
 * much as it is faster.  What slow ranks, lost datagrams and the queues of
 * switches cost is not in the model.
 */
#ifndef MEMORY_MODEL_H
#define MEMORY_MODEL_H

#include <stdbool.h>
#include <stdint.h>

#include "exchange/model/exchange_model.h"
#include "external/plan/codec_choice.h"

struct memory_request {
	unsigned rank_count;	/* 1: one process sorts alone */
	uint64_t whole_records; /* of all ranks */
	uint32_t record_size;
	unsigned thread_count; /* of each rank */
	/* Bytes a second that these threads read in order and copy together; 0:
	 * not known, and then only the exchange is predicted. */
	uint64_t memory_read, memory_copy;
	uint64_t start_ns; /* to start a process and to see its end */
	/* Bytes a second; 0: input and output are in the page cache. */
	uint64_t disk_read, disk_write;
	/* The exchange; NULL: its link is not known. */
	const struct exchange_model *exchange;
	/* What may compress the records that are sent, and what percentage of
	 * their bytes it leaves, 1 or more.  Only lz4 is predicted. */
	enum codec_kind codec;
	uint64_t compressed_percent;
};

enum memory_pass {
	MEMORY_LAUNCH,	 /* the ranks start, and greet each other */
	MEMORY_BUCKET,	 /* the input into buckets */
	MEMORY_EXCHANGE, /* what belongs to other ranks */
	MEMORY_ORDER,	 /* the buckets into the output */
	MEMORY_PASSES,
};

struct memory_forecast {
	uint64_t ns; /* of all passes; 0: not known, as are these then */
	struct pass_forecast passes[MEMORY_PASSES];
	/* Whether the request has an exchange, with the following. */
	bool has_exchange;
	double message_bytes; /* from a rank to another one */
	double link_ns;	      /* of the bytes alone */
	/* [enum exchange_schedule]; that of EXCHANGE_AUTO is `chosen`. */
	double schedules_ns[EXCHANGE_SCHEDULES];
	enum exchange_schedule chosen;
	unsigned rows, columns; /* of the grid */
	/* The chosen schedule, if records are compressed first; 0: they are
	 * not, or by a codec that is not predicted. */
	double compressed_ns;
	bool compresses; /* as CODEC_LZ4 says, or CODEC_AUTO chooses */
};

void memory_model_forecast(struct memory_forecast *forecast,
			   const struct memory_request *request);

#endif /* MEMORY_MODEL_H */
