/*
 * validator.c - order, duplicates and checksum of records; adding up parts
 */
#include "record/validator.h"

#include <errno.h>
#include <stdbool.h>

#include "base/base.h"

typedef unsigned __int128 u128;

/* Each block is read twice, for the checksum and for the order: it stays in the
 * L1 cache in between.  128 of the benchmark's records. */
#define BLOCK_BYTES 12800

/* --- the benchmark's shape ------------------------------------------------ */

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
		records += RECORD_SIZE_DEFAULT;
		i++;
	}
	return i;
}

/*
 * Add the order of count records to *tally, which has `done` records already;
 * `before` is the last of these.  The counting has no branches, so that an
 * unsorted file takes no longer than a sorted one.
 */
static void add_benchmark_order(const struct validator *validator,
				struct tally *tally, uint64_t done,
				const uint8_t *before, const uint8_t *records,
				uint64_t count)
{
	u128 previous = key_of(before);
	uint64_t unordered = 0;
	uint64_t duplicates = 0;

	(void)validator;
	for (uint64_t i = 0; i < count; i++) {
		u128 key = key_of(records + i * RECORD_SIZE_DEFAULT);

		unordered += key < previous;
		duplicates += key == previous;
		previous = key;
	}
	if (unordered > 0 && tally->unordered_count == 0)
		tally->first_unordered =
			done + first_unordered(key_of(before), records);
	tally->unordered_count += unordered;
	tally->duplicate_count += duplicates;
}

/* --- any shape ------------------------------------------------------------ */

int validator_compare(const struct validator *validator, const uint8_t *a,
		      const uint8_t *b)
{
	const struct record_shape *shape = &validator->shape;

	for (uint32_t skip = 0; skip < shape->keys.length; skip += 8) {
		const struct key_word *word =
			&validator->words[MIN(skip / 8, VALIDATOR_WORDS)];
		uint64_t a_word = record_prepared_word(shape, word, a, skip);
		uint64_t b_word = record_prepared_word(shape, word, b, skip);

		if (a_word != b_word)
			return a_word < b_word ? -1 : 1;
	}
	return 0;
}

/* Does for any shape what add_benchmark_order() does for the benchmark's. */
static void add_any_order(const struct validator *validator,
			  struct tally *tally, uint64_t done,
			  const uint8_t *before, const uint8_t *records,
			  uint64_t count)
{
	uint64_t unordered = 0;
	uint64_t duplicates = 0;

	for (uint64_t i = 0; i < count; i++) {
		int order = validator_compare(validator, before, records);

		if (order > 0 && unordered++ == 0 &&
		    tally->unordered_count == 0)
			tally->first_unordered = done + i;
		duplicates += order == 0;
		before = records;
		records += validator->shape.size;
	}
	tally->unordered_count += unordered;
	tally->duplicate_count += duplicates;
}

void validator_prepare(struct validator *validator,
		       const struct record_shape *shape, enum cpu_level level)
{
	*validator = (struct validator){
		.shape = *shape,
		.checksum = checksum_kernel(level, shape->size),
		.add_order = record_shape_is_benchmark(shape)
				     ? add_benchmark_order
				     : add_any_order,
		.block_records = MAX(BLOCK_BYTES / shape->size, 1),
	};
	for (uint32_t i = 0; i < VALIDATOR_WORDS && 8 * i < shape->keys.length;
	     i++)
		key_word_prepare(&validator->words[i], &shape->keys,
				 shape->size, 8 * i);
}

void validator_run(const struct validator *validator, struct tally *tally,
		   const uint8_t *records, uint64_t count)
{
	uint32_t size = validator->shape.size;
	const uint8_t *before = records;

	*tally = (struct tally){ .record_count = count };
	if (count == 0)
		return;
	/* The first record is compared with itself, which is no duplicate. */
	for (uint64_t done = 0; done < count;) {
		const uint8_t *block = records + done * size;
		uint64_t now = MIN(count - done, validator->block_records);

		tally->checksum += validator->checksum(block, size, now);
		validator->add_order(validator, tally, done, before, block,
				     now);
		done += now;
		before = block + (now - 1) * size;
	}
	tally->duplicate_count--;
}

void validator_sum(const struct validator *validator, struct tally *tally,
		   const uint8_t *records, uint64_t count)
{
	*tally = (struct tally){
		.record_count = count,
		.checksum = validator->checksum(records, validator->shape.size,
						count),
	};
}

/* --- adding up ------------------------------------------------------------ */

/* sum = a + b + extra, where extra is 0 or 1; true if that does not fit. */
static bool add(u128 *sum, u128 a, u128 b, bool extra)
{
	return __builtin_add_overflow(a, b, sum) ||
	       __builtin_add_overflow(*sum, (u128)extra, sum);
}

int tally_add(struct tally *tally, const struct tally *next,
	      unsigned __int128 first, int order)
{
	struct tally sum = *tally;
	u128 unordered = 0; /* the first one of next, or 0 */

	if (next->record_count == 0)
		return 0;
	if (add(&sum.record_count, tally->record_count, next->record_count,
		false) ||
	    add(&sum.unordered_count, tally->unordered_count,
		next->unordered_count, order > 0) ||
	    add(&sum.duplicate_count, tally->duplicate_count,
		next->duplicate_count, order == 0) ||
	    add(&sum.checksum, tally->checksum, next->checksum, false))
		return -EOVERFLOW;

	if (order > 0)
		unordered = first;
	else if (next->unordered_count > 0)
		unordered = first + next->first_unordered;
	if (unordered > 0 &&
	    (tally->unordered_count == 0 || unordered < tally->first_unordered))
		sum.first_unordered = unordered;
	*tally = sum;
	return 0;
}

int tally_append(struct tally *tally, const struct tally *next, int order)
{
	return tally_add(tally, next, tally->record_count, order);
}

/* Records on the same side of the pivot that follow each other are summed up
 * together, which is faster. */
void validator_split(const struct validator *validator,
		     struct validator_split *split, const uint8_t *pivot,
		     const uint8_t *records, uint64_t count)
{
	uint32_t size = validator->shape.size;

	for (uint64_t begin = 0, end; begin < count; begin = end) {
		const uint8_t *first = records + begin * size;
		int order = validator_compare(validator, first, pivot);
		struct tally run;

		end = begin + 1;
		while (end < count &&
		       validator_compare(validator, records + end * size,
					 pivot) == order)
			end++;
		if (order > 0)
			continue;
		validator_sum(validator, &run, first, end - begin);
		/* Bytes that were read can't overflow 128 bits. */
		(void)tally_append(order < 0 ? &split->before : &split->equal,
				   &run, VALIDATOR_NOTHING_BEFORE);
	}
}

int summary_append(struct summary *summary, const struct summary *next)
{
	int ret;

	if (next->tally.record_count == 0)
		return 0;
	if (summary->tally.record_count == 0) {
		*summary = *next;
		return 0;
	}
	ret = tally_append(&summary->tally, &next->tally,
			   memcmp(summary->last_record, next->first_record,
				  RECORD_KEY_LENGTH_DEFAULT));
	if (ret == 0)
		memcpy(summary->last_record, next->last_record,
		       SUMMARY_RECORD_BYTES);
	return ret;
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
	store_number(bytes, summary->tally.first_unordered);
	store_number(bytes + NUMBER_BYTES, summary->tally.unordered_count);
	store_number(bytes + 2 * NUMBER_BYTES, summary->tally.record_count);
	store_number(bytes + 3 * NUMBER_BYTES, summary->tally.duplicate_count);
	store_number(bytes + 4 * NUMBER_BYTES, summary->tally.checksum);
	memcpy(bytes + FIRST_RECORD_AT, summary->first_record,
	       SUMMARY_RECORD_BYTES);
	memcpy(bytes + LAST_RECORD_AT, summary->last_record,
	       SUMMARY_RECORD_BYTES);
}

/* Each record but the first adds at most one to either count. */
static bool counts_are_possible(const struct tally *s)
{
	u128 pairs = s->record_count - 1;

	return s->record_count > 0 && s->unordered_count <= pairs &&
	       s->duplicate_count <= pairs - s->unordered_count &&
	       s->first_unordered <= pairs &&
	       (s->first_unordered == 0) == (s->unordered_count == 0) &&
	       s->unordered_count <= s->record_count - s->first_unordered;
}

static bool checksum_is_possible(const struct tally *s)
{
	/* checksum <= record_count * UINT32_MAX, without overflow */
	return s->checksum / UINT32_MAX + (s->checksum % UINT32_MAX != 0) <=
	       s->record_count;
}

static bool records_are_possible(const struct summary *s)
{
	if (s->tally.record_count == 1)
		return memcmp(s->first_record, s->last_record,
			      SUMMARY_RECORD_BYTES) == 0 &&
		       s->tally.checksum ==
			       checksum_scalar(s->first_record,
					       SUMMARY_RECORD_BYTES, 1);
	return s->tally.unordered_count > 0 ||
	       key_of(s->first_record) <= key_of(s->last_record);
}

int summary_decode(struct summary *summary, const uint8_t bytes[SUMMARY_BYTES])
{
	struct summary s;

	s.tally.first_unordered = load_number(bytes);
	s.tally.unordered_count = load_number(bytes + NUMBER_BYTES);
	s.tally.record_count = load_number(bytes + 2 * NUMBER_BYTES);
	s.tally.duplicate_count = load_number(bytes + 3 * NUMBER_BYTES);
	s.tally.checksum = load_number(bytes + 4 * NUMBER_BYTES);
	memcpy(s.first_record, bytes + FIRST_RECORD_AT, SUMMARY_RECORD_BYTES);
	memcpy(s.last_record, bytes + LAST_RECORD_AT, SUMMARY_RECORD_BYTES);
	if (!counts_are_possible(&s.tally) || !checksum_is_possible(&s.tally) ||
	    !records_are_possible(&s))
		return -EBADMSG;
	*summary = s;
	return 0;
}
