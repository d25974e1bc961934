/*
 * validator.c - order, duplicates and checksum of records; adding up parts
 */
#include "record/validator.h"

#include <errno.h>
#include <stdbool.h>

#include "base/base.h"

typedef unsigned __int128 u128;

/* Each block is read twice, for the checksum and for the order: 12.5 KiB stay
 * in the L1 cache in between. */
#define BLOCK_RECORDS 128

/* The 10 bytes of a key as an integer: its order is that of memcmp(). */
static inline u128 key_of(const uint8_t *record)
{
	uint16_t last = (uint16_t)(record[8] << 8 | record[9]);

	return (u128)load_be64(record) << 16 | last;
}

static uint64_t first_unordered(u128 before, const uint8_t *records)
{
	uint64_t i = 0;

	while (key_of(records) >= before) {
		before = key_of(records);
		records += VALIDATOR_RECORD_BYTES;
		i++;
	}
	return i;
}

/*
 * Add the order of count records to *summary, which has `done` records already;
 * the last of these has the key before.  The counting has no branches, so that
 * an unsorted file takes no longer than a sorted one.
 */
static u128 check_order(struct summary *summary, uint64_t done, u128 before,
			const uint8_t *records, uint64_t count)
{
	u128 previous = before;
	uint64_t unordered = 0;
	uint64_t duplicates = 0;

	for (uint64_t i = 0; i < count; i++) {
		u128 key = key_of(records + i * VALIDATOR_RECORD_BYTES);

		unordered += key < previous;
		duplicates += key == previous;
		previous = key;
	}
	if (unordered > 0 && summary->unordered_count == 0)
		summary->first_unordered =
			done + first_unordered(before, records);
	summary->unordered_count += unordered;
	summary->duplicate_count += duplicates;
	return previous;
}

void validator_run(struct summary *summary, const uint8_t *records,
		   uint64_t count, checksum_fn *kernel)
{
	u128 before;

	memset(summary, 0, sizeof(*summary));
	if (count == 0)
		return;
	summary->record_count = count;
	memcpy(summary->first_record, records, VALIDATOR_RECORD_BYTES);
	memcpy(summary->last_record,
	       records + (count - 1) * VALIDATOR_RECORD_BYTES,
	       VALIDATOR_RECORD_BYTES);

	/* The first record is compared with itself, which is no duplicate. */
	before = key_of(records);
	for (uint64_t done = 0; done < count; done += BLOCK_RECORDS) {
		const uint8_t *block = records + done * VALIDATOR_RECORD_BYTES;
		uint64_t now = MIN(count - done, (uint64_t)BLOCK_RECORDS);

		summary->checksum += kernel(block, VALIDATOR_RECORD_BYTES, now);
		before = check_order(summary, done, before, block, now);
	}
	summary->duplicate_count--;
}

/* --- adding up ------------------------------------------------------------ */

/* sum = a + b + extra, where extra is 0 or 1; true if that does not fit. */
static bool add(u128 *sum, u128 a, u128 b, bool extra)
{
	return __builtin_add_overflow(a, b, sum) ||
	       __builtin_add_overflow(*sum, (u128)extra, sum);
}

int summary_append(struct summary *summary, const struct summary *next)
{
	struct summary sum = *summary;
	u128 last, first;

	if (next->record_count == 0)
		return 0;
	if (summary->record_count == 0) {
		*summary = *next;
		return 0;
	}
	last = key_of(summary->last_record);
	first = key_of(next->first_record);
	if (add(&sum.record_count, summary->record_count, next->record_count,
		false) ||
	    add(&sum.unordered_count, summary->unordered_count,
		next->unordered_count, first < last) ||
	    add(&sum.duplicate_count, summary->duplicate_count,
		next->duplicate_count, first == last) ||
	    add(&sum.checksum, summary->checksum, next->checksum, false))
		return -EOVERFLOW;

	if (summary->unordered_count == 0 && first < last)
		sum.first_unordered = summary->record_count;
	else if (summary->unordered_count == 0 && next->unordered_count > 0)
		sum.first_unordered =
			summary->record_count + next->first_unordered;
	memcpy(sum.last_record, next->last_record, VALIDATOR_RECORD_BYTES);
	*summary = sum;
	return 0;
}

/* --- as bytes ------------------------------------------------------------- */

#define NUMBER_BYTES 16
#define FIRST_RECORD_AT 80
#define LAST_RECORD_AT 180

static void store_number(uint8_t *bytes, u128 value)
{
	store_le64(bytes, (uint64_t)(value >> 64));
	store_le64(bytes + 8, (uint64_t)value);
}

static u128 load_number(const uint8_t *bytes)
{
	return (u128)load_le64(bytes) << 64 | load_le64(bytes + 8);
}

void summary_encode(const struct summary *summary, uint8_t bytes[SUMMARY_BYTES])
{
	store_number(bytes, summary->first_unordered);
	store_number(bytes + NUMBER_BYTES, summary->unordered_count);
	store_number(bytes + 2 * NUMBER_BYTES, summary->record_count);
	store_number(bytes + 3 * NUMBER_BYTES, summary->duplicate_count);
	store_number(bytes + 4 * NUMBER_BYTES, summary->checksum);
	memcpy(bytes + FIRST_RECORD_AT, summary->first_record,
	       VALIDATOR_RECORD_BYTES);
	memcpy(bytes + LAST_RECORD_AT, summary->last_record,
	       VALIDATOR_RECORD_BYTES);
}

/* Each record but the first adds at most one to either count. */
static bool counts_are_possible(const struct summary *s)
{
	u128 pairs = s->record_count - 1;

	return s->record_count > 0 && s->unordered_count <= pairs &&
	       s->duplicate_count <= pairs - s->unordered_count &&
	       s->first_unordered <= pairs &&
	       (s->first_unordered == 0) == (s->unordered_count == 0) &&
	       s->unordered_count <= s->record_count - s->first_unordered;
}

static bool checksum_is_possible(const struct summary *s)
{
	/* checksum <= record_count * UINT32_MAX, without overflow */
	return s->checksum / UINT32_MAX + (s->checksum % UINT32_MAX != 0) <=
	       s->record_count;
}

static bool records_are_possible(const struct summary *s)
{
	if (s->record_count == 1)
		return memcmp(s->first_record, s->last_record,
			      VALIDATOR_RECORD_BYTES) == 0 &&
		       s->checksum == checksum_scalar(s->first_record,
						      VALIDATOR_RECORD_BYTES,
						      1);
	return s->unordered_count > 0 ||
	       key_of(s->first_record) <= key_of(s->last_record);
}

int summary_decode(struct summary *summary, const uint8_t bytes[SUMMARY_BYTES])
{
	struct summary s;

	s.first_unordered = load_number(bytes);
	s.unordered_count = load_number(bytes + NUMBER_BYTES);
	s.record_count = load_number(bytes + 2 * NUMBER_BYTES);
	s.duplicate_count = load_number(bytes + 3 * NUMBER_BYTES);
	s.checksum = load_number(bytes + 4 * NUMBER_BYTES);
	memcpy(s.first_record, bytes + FIRST_RECORD_AT, VALIDATOR_RECORD_BYTES);
	memcpy(s.last_record, bytes + LAST_RECORD_AT, VALIDATOR_RECORD_BYTES);
	if (!counts_are_possible(&s) || !checksum_is_possible(&s) ||
	    !records_are_possible(&s))
		return -EBADMSG;
	*summary = s;
	return 0;
}
