/*
 * input_division.h - which rank reads which part of an input that all share
 *
 * At first each rank has an equal part.  From time to time each tells how many
 * records it has taken so far and how fast it reads; then what no rank has
 * taken is divided anew, so that all ranks come to the end at the same time: a
 * rank that is early reads for one that is late.  All ranks compute the same
 * parts from the same numbers, in integers.  Only pause_ns is not exact, and
 * ranks may differ in it: they divide when the last of them is there.
 *
 * A false rate changes how much the rank is given, and that is half as much
 * again as its equal part at most.  What a rank says it has taken is bounded by
 * what it has been given.
 */
#ifndef INPUT_DIVISION_H
#define INPUT_DIVISION_H

#include <stdbool.h>
#include <stdint.h>

#include "external/read/reading_claims.h"
#include "net/rank.h"

/* What a rank tells, in records, as words. */
struct input_division_told {
	uint64_t taken; /* so far, with what it may take meanwhile */
	uint64_t read;	/* of these; the others are still to be read */
	uint64_t rate;	/* in a second; 0: not known yet */
	uint64_t grain; /* a full batch: no fewer are given at once */
};

/* What a rank may still take, and what it has had. */
struct input_part {
	struct input_range ranges[READING_RANGES_MAX];
	unsigned range_count;
	uint64_t left; /* records of all ranges */
	struct input_range had[READING_RANGES_MAX];
	unsigned had_count;
	uint64_t taken; /* records of all that it had */
	/* Ranges that it has been given, and may be: runs of different ones are
	 * no neighbours, and cannot be merged before the last merge. */
	unsigned given, given_max;
};

struct input_division {
	unsigned rank_count;
	uint64_t records_max; /* that a rank may read, in all */
	struct input_part parts[RANK_NODES_MAX];
	bool is_final;	   /* it will not be divided any more */
	uint64_t pause_ns; /* until it is to be divided again */
};

/* The first record of a rank's equal part of whole_count. */
uint64_t input_division_begin(uint64_t whole_count, unsigned rank,
			      unsigned rank_count);

/* How many records a rank may read in all: what its index has room for. */
uint64_t input_division_records_max(uint64_t whole_count, unsigned rank_count);

/* given_max[rank]: how many ranges it may get; at least 1 is taken. */
void input_division_init(struct input_division *division, uint64_t whole_count,
			 unsigned rank_count, const unsigned *given_max);

/* Divide anew, by what all ranks have told.  0, or -EBADMSG: what rank *bad
 * says cannot be. */
int input_division_update(struct input_division *division,
			  const struct input_division_told *told,
			  unsigned *bad);

/* All ranges that a rank has had and has left, in any order; there are at most
 * 2 * READING_RANGES_MAX.  Returns how many. */
unsigned input_division_parts(const struct input_part *part,
			      struct input_range *parts);

#endif /* INPUT_DIVISION_H */
