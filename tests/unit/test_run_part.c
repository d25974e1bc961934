/*
 * test_run_part.c - the parts that ranks get of all their runs
 *
 * A few ranks have runs of random keys.  By samples of these all of them find
 * the same cuts; each tells each other one of its part.  Each block must come
 * into one part, the blocks that lie across a cut into the next one as well,
 * and a message in which anything has changed must do no harm.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/failure.h"
#include "cluster/external/run_part.h"
#include "random_shape.h"

#define RANKS_MAX 5
#define RUNS_MAX 6
#define BLOCKS_MAX 30
#define FEW_RECORDS 9
/* A run of three such blocks has more records than 32 bits can count. */
#define MANY_RECORDS ((uint32_t)1 << 31)
#define ROUNDS 300

static struct record_shape shape;
static struct run_index indexes[RANKS_MAX];
static unsigned rank_count;
static uint32_t numbers[RANKS_MAX][RUNS_MAX];
static uint32_t number_count; /* runs of all ranks */
static bool has_part[RANKS_MAX];
static uint64_t whole_records;
static uint32_t block_records; /* in each block but a last one */

/* --- runs ------------------------------------------------------------------
 */

static int compare_keys(const void *a, const void *b)
{
	return record_compare(&indexes[0].key_shape, a, b);
}

/* Bytes of fewer values make more equal keys. */
static void make_run(struct run_index *index, unsigned values)
{
	uint32_t count = (uint32_t)random_below(BLOCKS_MAX + 1);
	uint32_t key_bytes = index->key_shape.size;
	uint32_t first = index->block_count;
	struct failure failure;
	uint8_t *keys;

	assert_int_equal(
		run_index_begin(index, index->run_count, 1, count, &failure),
		0);
	if (count > 0)
		run_index_extend(index, (uint64_t)(count - 1) * block_records +
						1 +
						random_below(block_records));
	keys = index->keys + (size_t)first * key_bytes;
	for (size_t i = 0; i < (size_t)count * key_bytes; i++)
		keys[i] = (uint8_t)(random_below(values) * 255 /
				    MAX(1, values - 1));
	if (count > 1)
		qsort(keys, count, key_bytes, compare_keys);
	for (uint32_t b = first; b < index->block_count; b++) {
		struct run_block *block = &index->blocks[b];

		block->stored_bytes =
			1 + (uint32_t)random_below(MIN(
				    (uint64_t)block->record_count * shape.size,
				    UINT32_MAX));
		block->crc = (uint32_t)random_next();
		block->offset_bytes = (uint64_t)b << 30;
	}
	whole_records += index->runs[index->run_count - 1].record_count;
}

/* Any rank may have any part of the input, and its runs are in that order. */
static void number_runs(void)
{
	unsigned given[RANKS_MAX] = { 0 };

	number_count = 0;
	for (unsigned i = 0; i < rank_count; i++)
		number_count += indexes[i].run_count;
	for (uint32_t number = 0; number < number_count;) {
		unsigned i = random_below(rank_count);

		if (given[i] < indexes[i].run_count)
			numbers[i][given[i]++] = number++;
	}
}

static void make_ranks(unsigned values)
{
	unsigned sure; /* it gets a part */

	block_records = random_below(2) ? MANY_RECORDS : FEW_RECORDS;
	shape = random_shape(1 + random_below(30));
	rank_count = 1 + random_below(RANKS_MAX);
	sure = random_below(rank_count);
	whole_records = 0;
	for (unsigned i = 0; i < rank_count; i++) {
		unsigned runs = random_below(RUNS_MAX + 1);

		run_index_init(&indexes[i], &shape, block_records);
		for (unsigned r = 0; r < runs; r++)
			make_run(&indexes[i], values);
	}
	number_runs();
	for (unsigned i = 0; i < rank_count; i++)
		has_part[i] = random_below(3) > 0;
	has_part[sure] = true;
}

static void free_ranks(void)
{
	for (unsigned i = 0; i < rank_count; i++)
		run_index_free(&indexes[i]);
}

static uint64_t records_of(const struct run_index *index)
{
	uint64_t count = 0;

	for (unsigned r = 0; r < index->run_count; r++)
		count += index->runs[r].record_count;
	return count;
}

/* --- cuts ------------------------------------------------------------------
 */

static void free_samples(struct run_sample *samples)
{
	for (unsigned i = 0; i < rank_count; i++)
		free((void *)samples[i].bytes);
}

static void take_samples(struct run_sample *samples, uint32_t blocks_max)
{
	struct failure failure;

	for (unsigned i = 0; i < rank_count; i++) {
		uint8_t *bytes;

		samples[i] = (struct run_sample){
			.run_count = indexes[i].run_count,
			.numbers = numbers[i],
			.record_count = records_of(&indexes[i]),
		};
		assert_int_equal(run_cut_sample(&indexes[i], blocks_max,
						cpu_level_detect(), &bytes,
						&samples[i].byte_count,
						&failure),
				 0);
		assert_true(
			samples[i].byte_count <=
			(uint64_t)blocks_max *
				run_cut_sample_bytes(&indexes[i].key_shape));
		samples[i].bytes = bytes;
	}
}

static void make_cuts(struct run_cuts *cuts, uint32_t blocks_max)
{
	struct run_sample samples[RANKS_MAX] = { 0 };
	struct failure failure;
	unsigned bad;

	take_samples(samples, blocks_max);
	assert_int_equal(run_cuts_make(cuts, &indexes[0].key_shape, samples,
				       has_part, rank_count, &bad, &failure),
			 0);
	free_samples(samples);
}

/* Records of all blocks that begin in the part. */
static uint64_t part_records(const struct run_cuts *cuts, unsigned part)
{
	const struct run_cut *begin = run_cuts_begin(cuts, part);
	const struct run_cut *end = run_cuts_end(cuts, part);
	uint64_t count = 0;

	for (unsigned i = 0; i < rank_count; i++)
		for (unsigned r = 0; r < indexes[i].run_count; r++) {
			const struct run *run = &indexes[i].runs[r];
			uint32_t number = numbers[i][r];
			uint32_t b = run->first_block;
			uint32_t until = b + run->block_count;

			if (begin)
				b = run_cut_block(begin, &indexes[i], r,
						  number);
			if (end)
				until = run_cut_block(end, &indexes[i], r,
						      number);
			assert_true(b <= until);
			for (; b < until; b++)
				count += indexes[i].blocks[b].record_count;
		}
	return count;
}

static void check_has_none(const struct run_cuts *cuts, unsigned part)
{
	for (unsigned i = 0; i < rank_count; i++)
		for (unsigned r = 0; r < indexes[i].run_count; r++) {
			uint32_t first, end;

			run_part_range(cuts, part, &indexes[i], r,
				       numbers[i][r], &first, &end);
			assert_int_equal(first, end);
		}
}

static unsigned count_parts(void)
{
	unsigned count = 0;

	for (unsigned i = 0; i < rank_count; i++)
		count += has_part[i];
	return count;
}

/* Each part has what it is to have, but for what ranks have between two sampled
 * blocks; a rank that gets none has not even a block that lies across. */
static void run_cuts__parts_are_about_equal(void **state)
{
	static const unsigned values[] = { 256, 2, 3, 1 };

	(void)state;
	for (unsigned round = 0; round < ROUNDS; round++) {
		uint32_t blocks_max = 1 + (uint32_t)random_below(200);
		uint64_t margin, sum = 0;
		struct run_cuts cuts;

		make_ranks(values[round % ARRAY_LEN(values)]);
		make_cuts(&cuts, blocks_max);
		margin = block_records;
		for (unsigned i = 0; i < rank_count; i++)
			margin += (uint64_t)DIV_ROUND_UP(indexes[i].block_count,
							 blocks_max) *
				  block_records;
		for (unsigned i = 0; i < rank_count; i++) {
			uint64_t count = part_records(&cuts, i);
			uint64_t wanted = whole_records / MAX(1, count_parts());

			if (!has_part[i]) {
				check_has_none(&cuts, i);
				continue;
			}
			assert_true(count <= wanted + 2 * margin);
			assert_true(count + 2 * margin >= wanted);
			sum += count;
		}
		assert_int_equal(sum, whole_records);
		run_cuts_free(&cuts);
		free_ranks();
	}
}

/* A block of the sample is of a run that the rank does not have. */
static void name_no_run(struct run_sample *sample)
{
	if (sample->byte_count == 0)
		sample->record_count++;
	else
		store_le32((uint8_t *)sample->bytes + indexes[0].key_shape.size,
			   sample->run_count);
}

/* What a rank says may be anything. */
static void run_cuts_make__refuses_what_cannot_be(void **state)
{
	(void)state;
	for (unsigned round = 0; round < ROUNDS; round++) {
		struct run_sample samples[RANKS_MAX] = { 0 };
		struct run_cuts cuts = { 0 };
		struct failure failure;
		unsigned victim, bad = RANKS_MAX;
		int error;

		make_ranks(256);
		take_samples(samples, 50);
		victim = random_below(rank_count);
		switch (random_below(3)) {
		case 0:
			samples[victim].record_count++;
			break;
		case 1:
			name_no_run(&samples[victim]);
			break;
		default:
			samples[victim].byte_count++;
		}
		error = run_cuts_make(&cuts, &indexes[0].key_shape, samples,
				      has_part, rank_count, &bad, &failure);
		assert_int_equal(error, -EBADMSG);
		assert_int_equal(bad, victim);
		run_cuts_free(&cuts);
		free_samples(samples);
		free_ranks();
	}
}

/* --- parts -----------------------------------------------------------------
 */

static struct run_part_message message_of(unsigned source, const uint8_t *bytes,
					  uint64_t byte_count)
{
	return (struct run_part_message){
		.bytes = bytes,
		.byte_count = byte_count,
		.source = source,
		.run_count = indexes[source].run_count,
		.numbers = numbers[source],
		.record_count = records_of(&indexes[source]),
		.block_records = block_records,
	};
}

static void write_part(const struct run_cuts *cuts, unsigned source,
		       unsigned part, uint8_t **bytes, uint64_t *byte_count)
{
	struct failure failure;

	assert_int_equal(run_part_write(&indexes[source], cuts, part,
					numbers[source], bytes, byte_count,
					&failure),
			 0);
}

/* The runs of all ranks, as rank `part` knows them. */
static void make_part(struct run_index *index, const struct run_cuts *cuts,
		      unsigned part)
{
	struct failure failure;

	run_index_init(index, &shape, block_records);
	for (unsigned i = 0; i < rank_count; i++) {
		struct run_part_message message;
		uint64_t byte_count;
		uint8_t *bytes;

		if (i == part) {
			assert_int_equal(run_part_add_own(index, &indexes[i],
							  cuts, i, numbers[i],
							  &failure),
					 0);
			continue;
		}
		write_part(cuts, i, part, &bytes, &byte_count);
		message = message_of(i, bytes, byte_count);
		assert_int_equal(run_part_read(index, &message,
					       run_cuts_begin(cuts, part),
					       run_cuts_end(cuts, part),
					       &failure),
				 0);
		free(bytes);
	}
	assert_int_equal(run_index_order(index, &failure), 0);
}

/* A run as the part has it: its blocks are those of the range. */
static void check_run(const struct run_index *part, uint32_t number,
		      const struct run_index *index, uint32_t first,
		      uint32_t end)
{
	const struct run *run = &part->runs[number];
	uint64_t offset_bytes = 0, records = 0;

	assert_int_equal(run->block_count, end - first);
	for (uint32_t b = first; b < end; b++) {
		uint32_t at = run->first_block + b - first;
		const struct run_block *got = &part->blocks[at];
		const struct run_block *want = &index->blocks[b];

		assert_int_equal(got->record_count, want->record_count);
		assert_int_equal(got->stored_bytes, want->stored_bytes);
		assert_int_equal(got->crc, want->crc);
		assert_memory_equal(run_index_key(part, at),
				    run_index_key(index, b),
				    index->key_shape.size);
		if (run->is_received) {
			assert_int_equal(got->offset_bytes, offset_bytes);
			/* It is known modulo 2^32. */
			assert_int_equal(got->first_record, (uint32_t)records);
		}
		offset_bytes += want->stored_bytes;
		records += want->record_count;
	}
	assert_int_equal(run->record_count, records);
}

/* Blocks that begin in a part are in no other; the one before them, if it may
 * have records behind the cut, is there, too. */
static void run_part__each_block_in_its_part(void **state)
{
	static const unsigned values[] = { 256, 2, 3, 1 };

	(void)state;
	for (unsigned round = 0; round < ROUNDS; round++) {
		struct run_cuts cuts;

		make_ranks(values[round % ARRAY_LEN(values)]);
		make_cuts(&cuts, 100);
		for (unsigned part = 0; part < rank_count; part++) {
			const struct run_cut *begin =
				run_cuts_begin(&cuts, part);
			struct run_index index;

			make_part(&index, &cuts, part);
			assert_int_equal(index.run_count, number_count);
			for (unsigned i = 0; i < rank_count; i++)
				for (unsigned r = 0; r < indexes[i].run_count;
				     r++) {
					uint32_t number = numbers[i][r];
					uint32_t first, end, at;

					run_part_range(&cuts, part, &indexes[i],
						       r, number, &first, &end);
					check_run(&index, number, &indexes[i],
						  first, end);
					at = indexes[i].runs[r].first_block;
					if (begin)
						at = run_cut_block(begin,
								   &indexes[i],
								   r, number);
					if (begin && begin->run != number &&
					    at > indexes[i].runs[r].first_block)
						at--;
					if (has_part[part])
						assert_int_equal(first, at);
				}
			run_index_free(&index);
		}
		run_cuts_free(&cuts);
		free_ranks();
	}
}

/* What has been read is bounded, whatever the message was. */
static void check_bounds(const struct run_index *part)
{
	for (uint32_t b = 0; b < part->block_count; b++) {
		const struct run_block *block = &part->blocks[b];

		assert_in_range(block->record_count, 1, block_records);
		assert_in_range(block->stored_bytes, 1,
				(uint64_t)block->record_count * shape.size);
	}
	for (unsigned r = 0; r < part->run_count; r++)
		for (uint32_t b = 1; b < part->runs[r].block_count; b++)
			assert_true(record_compare(
					    &part->key_shape,
					    run_index_key(
						    part,
						    part->runs[r].first_block +
							    b - 1),
					    run_index_key(
						    part,
						    part->runs[r].first_block +
							    b)) <= 0);
}

static void read_changed(const struct run_cuts *cuts, const uint8_t *bytes,
			 uint64_t byte_count, unsigned source, unsigned part)
{
	/* Of its own size, so that a read behind it is noticed. */
	uint8_t *copy = malloc(byte_count);
	struct run_part_message message = message_of(source, copy, byte_count);
	struct run_index index;
	struct failure failure;
	int error;

	memcpy(copy, bytes, byte_count);
	run_index_init(&index, &shape, block_records);
	error = run_part_read(&index, &message, run_cuts_begin(cuts, part),
			      run_cuts_end(cuts, part), &failure);
	assert_true(error == 0 || error == -EBADMSG);
	if (error == 0)
		check_bounds(&index);
	run_index_free(&index);
	free(copy);
}

static void run_part_read__any_message(void **state)
{
	(void)state;
	for (unsigned round = 0; round < ROUNDS; round++) {
		unsigned source, part;
		struct run_cuts cuts;
		uint64_t byte_count;
		uint8_t *bytes;

		make_ranks(256);
		make_cuts(&cuts, 100);
		source = random_below(rank_count);
		part = random_below(rank_count);
		write_part(&cuts, source, part, &bytes, &byte_count);
		for (unsigned i = 0; i < 50 && byte_count > 0; i++) {
			uint64_t at = random_next() % byte_count;
			uint8_t before = bytes[at];

			bytes[at] = (uint8_t)random_next();
			read_changed(&cuts, bytes, byte_count, source, part);
			bytes[at] = before;
			read_changed(&cuts, bytes, random_next() % byte_count,
				     source, part);
		}
		free(bytes);
		run_cuts_free(&cuts);
		free_ranks();
	}
}

/* The blocks of a message have as many records as the rank has told of, and no
 * more, even where 32 bits cannot count these. */
static void run_part_read__records_as_told(void **state)
{
	struct run_cuts cuts;
	unsigned turns = 0;

	(void)state;
	while (turns < ROUNDS) {
		struct run_part_message message;
		struct failure failure;
		struct run_index index;
		uint64_t byte_count;
		unsigned made;
		uint8_t *bytes;

		make_ranks(256);
		made = rank_count;
		rank_count = 1;
		has_part[0] = true;
		number_runs();
		make_cuts(&cuts, 100);
		write_part(&cuts, 0, 0, &bytes, &byte_count);
		message = message_of(0, bytes, byte_count);
		for (unsigned less = 0; less < 2 && message.record_count > 0;
		     less++) {
			message.record_count -= less;
			run_index_init(&index, &shape, block_records);
			assert_int_equal(run_part_read(&index, &message, NULL,
						       NULL, &failure),
					 less ? -EBADMSG : 0);
			run_index_free(&index);
			turns++;
		}
		free(bytes);
		run_cuts_free(&cuts);
		rank_count = made;
		free_ranks();
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(run_cuts__parts_are_about_equal),
		cmocka_unit_test(run_cuts_make__refuses_what_cannot_be),
		cmocka_unit_test(run_part__each_block_in_its_part),
		cmocka_unit_test(run_part_read__any_message),
		cmocka_unit_test(run_part_read__records_as_told),
	};

	random_begin();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
