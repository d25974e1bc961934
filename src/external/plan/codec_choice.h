/*
 * codec_choice.h - whether the blocks of runs are compressed, and by what
 *
 * With CODEC_AUTO the first run is written as it is, and only a few of its
 * blocks are compressed, to learn how small they become and how long it takes.
 * Once the sort has shown for half a second how fast its disks and its threads
 * are, the model (external_model.h) decides for all that follows: CODEC_LZ4, if
 * all passes together are faster by it, or CODEC_NONE.  A sort that ends
 * earlier compresses nothing, unless its link is so slow that the disk's pace
 * does not matter.
 *
 * Ranks that merge together send each other blocks as they are stored, so that
 * smaller ones save time on a slow link, too.  Each rank decides for itself, by
 * the slowest link of all: the last pass ends on all ranks when that has
 * brought the last block.
 */
#ifndef CODEC_CHOICE_H
#define CODEC_CHOICE_H

#include <stdbool.h>
#include <stdint.h>

#include "external/runs/codec.h"
#include "external/plan/external_model.h"

/* Blocks of one run, or more, that were compressed as a test. */
struct codec_sample {
	uint64_t plain_bytes;
	uint64_t stored_bytes; /* a block that stays as it is counts whole */
	uint64_t cpu_ns;
};

/* What a part of the first pass has taken, in which as many bytes were spilled
 * as read. */
struct codec_pace {
	uint64_t spilled_bytes;
	uint64_t elapsed_ns;
	uint64_t cpu_ns;    /* of all threads of the process */
	unsigned cpu_count; /* that these threads have */
};

/* The whole sort, as it is planned. */
struct codec_work {
	/* What the first pass reads, what of it is spilled, and what is merged
	 * before the last pass; all are 0, as with a stream: not known, so all
	 * that is read counts as spilled, once. */
	uint64_t whole_bytes, spilled_bytes, merged_bytes;
	unsigned rank_count; /* that merge together; 0 and 1: this alone */
	uint64_t link;	     /* of the slowest rank, as in external_rates */
};

/* What was compared. */
struct codec_verdict {
	struct codec_sample sample; /* of nothing: nothing was */
	/* What is predicted with CODEC_NONE and with CODEC_LZ4: times alone. */
	struct external_forecast none, lz4;
};

/* True: to compress blocks like the sample's makes a sort of this pace faster.
 * *verdict is filled, unless sample or pace are of nothing.  Pure arithmetic.
 */
bool codec_pays(const struct codec_sample *sample,
		const struct codec_pace *pace, const struct codec_work *work,
		struct codec_verdict *verdict);

/* What it takes a rank to send plain_bytes of records that are compressed
 * before: its CPUs compress them together, and then it sends what is left,
 * which takes stored_ns, and one CPU decompresses what comes meanwhile.  The
 * sample is not of nothing. */
double codec_sending_ns(const struct codec_sample *sample, unsigned cpu_count,
			double plain_bytes, double stored_ns);

/* Is the time with a codec so much shorter that the gain is sure? */
bool codec_gains(double none_ns, double codec_ns);

struct codec_choice {
	struct codec codec; /* for the blocks that are written now */
	bool is_open;	    /* it may change at the next run */
	unsigned cpu_count;
	struct codec_work work;
	struct codec_verdict verdict;
	/* These count while it is open. */
	struct codec_sample sample;
	unsigned run_count; /* that have begun */
	uint64_t spilled_bytes;
	uint64_t begin_ns, begin_cpu_ns; /* of the first run */
};

void codec_choice_init(struct codec_choice *choice, const struct codec *wanted,
		       unsigned cpu_count, const struct codec_work *work);

/* Another run of so many bytes begins now; those before have been handed over.
 * The choice changes here and nowhere else. */
void codec_choice_begin_run(struct codec_choice *choice, uint64_t run_bytes,
			    uint64_t now_ns, uint64_t process_cpu_ns);

/* CPU time of all threads of the process so far. */
uint64_t codec_choice_cpu_ns(void);

/* True: a block of this chunk is to be compressed as a test. */
bool codec_choice_wants(const struct codec_choice *choice, uint64_t chunk,
			uint64_t chunk_count);

/* Compress the block as a test, and say in *sample what came of it. */
void codec_choice_test(struct codec_encoder *encoder, const uint8_t *block,
		       uint32_t block_bytes, struct codec_sample *sample);

/* The caller lets one thread at a time add a sample to a choice's. */
void codec_choice_add(struct codec_sample *sum,
		      const struct codec_sample *sample);

#endif /* CODEC_CHOICE_H */
