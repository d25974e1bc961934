/*
 * validator.h - check that records are in order, and add up their checksum
 *
 * A summary describes a part, a run of records that follow each other.  The
 * summaries of neighbouring parts add up to the summary of both.  So any
 * thread, process or machine can check the parts, in any order.
 *
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

#include <stddef.h>
#include <stdint.h>

#include "record/checksum.h"

#define VALIDATOR_RECORD_BYTES 100
#define SUMMARY_BYTES 280

struct summary {
	/* Index of the first record whose key is less than the key before it;
	 * 0 if there is none, since record 0 has no key before it. */
	unsigned __int128 first_unordered;
	unsigned __int128 unordered_count; /* keys less than the one before */
	unsigned __int128 record_count; /* 0: an empty part; rest zero then */
	unsigned __int128 duplicate_count; /* keys equal to the one before */
	unsigned __int128 checksum;	   /* sum of CRC-32s, see checksum.h */
	uint8_t first_record[VALIDATOR_RECORD_BYTES];
	uint8_t last_record[VALIDATOR_RECORD_BYTES];
};

/* Describe count records, one after the other; kernel adds up their CRC-32s
 * (checksum_kernel of VALIDATOR_RECORD_BYTES). */
void validator_run(struct summary *summary, const uint8_t *records,
		   uint64_t count, checksum_fn *kernel);

/* Add the summary of the part that follows directly.  Returns 0; or -EOVERFLOW
 * if a count does not fit, which only summaries from files can cause; then
 * *summary is unchanged. */
int summary_append(struct summary *summary, const struct summary *next);

void summary_encode(const struct summary *summary,
		    uint8_t bytes[SUMMARY_BYTES]);

/* Returns 0; or -EBADMSG if no records can have this summary: an index or a
 * count is larger than the number of records, there is no record, the checksum
 * is larger than that number of CRCs can add up to, or a single record is given
 * as two different ones. */
int summary_decode(struct summary *summary, const uint8_t bytes[SUMMARY_BYTES]);

#endif /* VALIDATOR_H */
