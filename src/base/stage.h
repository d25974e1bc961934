/*
 * stage.h - what each stage of a pass takes: units, bytes, times and waits
 *
 * A stage is one kind of work, done unit by unit.  A thread that is measured
 * has a clock, which it reads once whenever it goes from one kind of work to
 * another, or has waited: the time since the last reading is then counted, to
 * a stage or to what the thread waited for.  So from stage_begin() to
 * stage_end() all of a thread's time is counted, and all of it once.
 *
 * Reads and writes that the kernel makes meanwhile are stages, too.  Busy is
 * there the time in which any of a queue is under way.  Its threads see the end
 * of one when they look, so what lies between two pieces of their work is not
 * counted.
 *
 * TritonSort's authors balanced their stages by such a table (Rasmussen et al.
 * 2011, section 3.5, figure 8), those of SPsort by counts of waits (Wyllie
 * 1999).
 */
#ifndef STAGE_H
#define STAGE_H

#include <stdatomic.h>
#include <stdint.h>

#include "base/base.h"

enum stage {
	STAGE_READ,	/* by the kernel: from inputs and scratch files */
	STAGE_BUCKET,	/* records brought in, their entries into buckets */
	STAGE_ORDER,	/* the entries of a chunk */
	STAGE_GATHER,	/* its records, in that order */
	STAGE_PUT,	/* it is compressed, and handed over to be written */
	STAGE_WRITE,	/* by the kernel: to scratch files and outputs */
	STAGE_SEND,	/* blocks for other ranks are packed */
	STAGE_EXCHANGE, /* messages between ranks */
	STAGES
};

/* What threads wait for. */
enum stage_cause {
	STAGE_FOR_READ,
	STAGE_FOR_WRITE,
	STAGE_FOR_FILL,	 /* a batch to fill */
	STAGE_FOR_EMPTY, /* a batch to empty */
	STAGE_FOR_WAVE,	 /* of messages: the turn of this thread */
	STAGE_FOR_TEAM,	 /* other threads of the team, its leader's own work */
	STAGE_FOR_END,	 /* nothing is left to do in this pass */
	STAGE_CAUSES
};

/* [enum stage]: "read" and so on; [enum stage_cause]: "batch_to_fill" and so
 * on. */
extern const char *const stage_names[];
extern const char *const stage_cause_names[];

/* A thread that waited for less was not stopped: its time counts, and the wait
 * does not. */
#define STAGE_WAIT_NS 5000

/* Times of units are counted in classes that are an eighth of a power of two
 * wide, so a median is wrong by 6 % at most. */
#define STAGE_CLASSES 256

/* Any thread adds to it. */
struct stage_sum {
	_Atomic uint64_t units, bytes, busy_ns;
	struct {
		_Atomic uint64_t ns, count;
	} waits[STAGE_CAUSES];
	_Atomic uint32_t classes[STAGE_CLASSES]; /* units of such times */
};

/* Of a pass.  All zeros: nothing has been counted. */
struct stage_table {
	struct stage_sum sums[STAGES];
};

/* How long the leader of a team has waited: the other threads of the team
 * waited meanwhile, and learn from it for what. */
struct stage_leader {
	_Atomic uint64_t wait_ns[STAGE_CAUSES];
};

/* One thread's, written by that thread, or by another one while it has no work.
 * All zeros: the thread is not measured, and what follows does nothing; so it
 * does with NULL. */
struct stage_clock {
	struct stage_table *table;
	const struct stage_leader *leader; /* NULL: of no team */
	enum stage home; /* the stage that the thread's waits stand by */
	uint64_t lap_ns; /* all before that has been counted */
	/* Of the unit under way, so far. */
	uint64_t unit_ns, unit_bytes;
	uint64_t seen_ns[STAGE_CAUSES]; /* of the leader's waits */
};

/* The pass begins; and it ends. */
void stage_begin(struct stage_clock *clock, struct stage_table *table,
		 enum stage home, const struct stage_leader *leader,
		 uint64_t now_ns);
void stage_end(struct stage_clock *clock, uint64_t now_ns);

/* The thread has got work: it waited as its leader did, and else for this. */
void stage_resume(struct stage_clock *clock, enum stage_cause cause);

/* A wait begins: what lies behind is work on the unit under way. */
void stage_pause(struct stage_clock *clock);
/* A wait has ended. */
void stage_wait(struct stage_clock *clock, enum stage_cause cause);

/* The unit under way ends, with so many bytes more.  One without bytes is none,
 * but its time counts. */
void stage_unit(struct stage_clock *clock, enum stage stage, uint64_t bytes);

/* A unit of small parts has at least so many bytes: a part takes too little
 * time to read a clock for it. */
#define STAGE_UNIT_BYTES MIB

/* A part of a unit has been done. */
static inline void stage_part(struct stage_clock *clock, enum stage stage,
			      uint64_t bytes)
{
	if (!clock || !clock->table)
		return;
	clock->unit_bytes += bytes;
	if (clock->unit_bytes >= STAGE_UNIT_BYTES)
		stage_unit(clock, stage, 0);
}

/* The leader of a team has waited. */
static inline void stage_leader_add(struct stage_leader *leader,
				    enum stage_cause cause, uint64_t ns)
{
	atomic_fetch_add_explicit(&leader->wait_ns[cause], ns,
				  memory_order_relaxed);
}

/* What the kernel does for a queue; the functions belong to one thread at a
 * time. */
struct stage_queue {
	struct stage_sum *sum; /* NULL: nothing is counted */
	uint64_t seen_ns;      /* all before that has been counted */
	unsigned under_way;
};

/* Count to this sum, or, if that is NULL, no more.  What was under way before
 * has not been seen. */
void stage_queue_resume(struct stage_queue *queue, struct stage_sum *sum);

/* A read or write begins; returns what its end is told.  One of no bytes has
 * failed. */
uint64_t stage_queue_begin(struct stage_queue *queue);
void stage_queue_end(struct stage_queue *queue, uint64_t begin_ns,
		     uint64_t bytes);

/* A stage of a pass, as a report has it. */
struct stage_result {
	unsigned workers; /* threads, or queues of the kernel's */
	uint64_t units, bytes;
	uint64_t busy_ns;   /* of all workers */
	uint64_t median_ns; /* of a unit */
	struct {
		uint64_t ns, count;
	} waits[STAGE_CAUSES];
};

void stage_fill_result(struct stage_result *result, const struct stage_sum *sum,
		       unsigned workers);

#endif /* STAGE_H */
