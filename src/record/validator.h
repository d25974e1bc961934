/*
 * validator.h - are records in order, and what is their checksum
 *
 * Some records that follow each other are described by a summary; summaries of
 * neighbours add up to that of the whole.  So parts can be looked at by any
 * thread, process or machine, in any order.
 *
 * As 280 bytes a summary is what valsort writes and reads:
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
	/* Index of the first record whose key is less than that before it.  The
	 * first record of all has none before it, so 0 means: there is none. */
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

/* Add what follows directly.  Returns 0, or -EOVERFLOW if a count does not fit
 * (only summaries from outside can be so large); then *summary is as it was. */
int summary_append(struct summary *summary, const struct summary *next);

void summary_encode(const struct summary *summary,
		    uint8_t bytes[SUMMARY_BYTES]);

/* Returns 0, or -EBADMSG if no records could have this summary: an index or
 * a count beyond the records, no record at all, a checksum that so many CRCs
 * can't add up to, or one record that is two. */
int summary_decode(struct summary *summary, const uint8_t bytes[SUMMARY_BYTES]);

#endif /* VALIDATOR_H */
