/*
 * validator.h - check that records are in order, and add up their checksum
 *
 * A tally describes a part, a run of records that follow each other.  The
 * tallies of neighbouring parts, and the order of the two records where they
 * meet, add up to the tally of both.  So any thread can check the parts, in any
 * order.
 *
 * A summary is a tally of the benchmark's records with the first and the last
 * of them, which is what another process or machine needs to add it up.
 * valsort writes and reads a summary as 280 bytes:
 *
 *      0     first_unordered     two 64-bit integers, little endian, the upper
 *     16     unordered_count     half first; and so the next four
 *     32     record_count
 *     48     duplicate_count
 *     64     checksum
 *     80     the first record
 *    180     the last record
 */
#ifndef VALIDATOR_H
#define VALIDATOR_H

#include <stdint.h>

#include "base/cpu.h"
#include "record/checksum.h"
#include "record/record.h"

#define SUMMARY_RECORD_BYTES RECORD_SIZE_DEFAULT
#define SUMMARY_BYTES 280

struct tally {
	/* Index of the first record whose key is less than the key before it;
	 * 0 if there is none, since record 0 has no key before it. */
	unsigned __int128 first_unordered;
	unsigned __int128 unordered_count; /* keys less than the one before */
	unsigned __int128 record_count; /* 0: an empty part; rest zero then */
	unsigned __int128 duplicate_count; /* keys equal to the one before */
	unsigned __int128 checksum;	   /* sum of CRC-32s, see checksum.h */
};

/* --- records of any shape ------------------------------------------------- */

/* Words of the encoded key that are prepared: all of eight numbers. */
#define VALIDATOR_WORDS (KEY_FIELDS_MAX * KEY_NUMBER_BYTES_MAX / 8)

struct validator;
typedef void validator_order_fn(const struct validator *validator,
				struct tally *tally, uint64_t done,
				const uint8_t *before, const uint8_t *records,
				uint64_t count);

/* Any number of threads may use one validator. */
struct validator {
	struct record_shape shape;
	/* Private. */
	checksum_fn *checksum;
	validator_order_fn *add_order;
	uint64_t block_records;
	/* The one behind the last is not prepared: it stands for all others. */
	struct key_word words[VALIDATOR_WORDS + 1];
};

/* Prepare to check records of this shape, which is complete. */
void validator_prepare(struct validator *validator,
		       const struct record_shape *shape, enum cpu_level level);

/* Describe count records, one after the other; at most 2^32. */
void validator_run(const struct validator *validator, struct tally *tally,
		   const uint8_t *records, uint64_t count);

/* Describe count records whose order means nothing: their number and checksum
 * only. */
void validator_sum(const struct validator *validator, struct tally *tally,
		   const uint8_t *records, uint64_t count);

/* Number and checksum of some records, by their keys. */
struct validator_split {
	struct tally before; /* those whose key precedes the pivot's */
	struct tally equal;  /* those that have its key */
};

/* Add count records, whose order means nothing, to *split. */
void validator_split(const struct validator *validator,
		     struct validator_split *split, const uint8_t *pivot,
		     const uint8_t *records, uint64_t count);

/* Returns <0 if b may follow a, 0 if it is its duplicate, >0 if it is less. */
int validator_compare(const struct validator *validator, const uint8_t *a,
		      const uint8_t *b);

/* Stands for the result of a comparison where no record precedes. */
#define VALIDATOR_NOTHING_BEFORE (-1)

/*
 * Add the tally of a part that begins with record number `first`; parts may be
 * added in any order.  order is what validator_compare() says of the record
 * before next and its first one, or VALIDATOR_NOTHING_BEFORE.  If next is
 * empty, order means nothing.  Returns 0; or -EOVERFLOW if a count does not
 * fit, which only summaries from files can cause; then *tally is unchanged.
 */
int tally_add(struct tally *tally, const struct tally *next,
	      unsigned __int128 first, int order);

/* Add the tally of the part that follows directly on those added. */
int tally_append(struct tally *tally, const struct tally *next, int order);

/* --- summaries ------------------------------------------------------------ */

struct summary {
	struct tally tally;
	uint8_t first_record[SUMMARY_RECORD_BYTES];
	uint8_t last_record[SUMMARY_RECORD_BYTES];
};

/* Add the summary of the part that follows directly.  0 or -EOVERFLOW, as
 * above.
 */
int summary_append(struct summary *summary, const struct summary *next);

void summary_encode(const struct summary *summary,
		    uint8_t bytes[SUMMARY_BYTES]);

/* Returns 0; or -EBADMSG if no records can have this summary: an index or a
 * count is larger than the number of records, there is no record, the checksum
 * is larger than that number of CRCs can add up to, or a single record is given
 * as two different ones. */
int summary_decode(struct summary *summary, const uint8_t bytes[SUMMARY_BYTES]);

#endif /* VALIDATOR_H */
