/*
 * test_kept_runs.c - batches of other ranks, slice by slice into scratch files
 *
 * What givers send comes back from the files, under the right runs; and what a
 * giver says that cannot be is refused, whatever it is.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/base.h"
#include "external/ranks/kept_runs.h"
#include "random_shape.h"
#include "system/topology.h"

#define GIVERS 3
#define RECORD_BYTES 16
#define BLOCK_RECORDS 8
#define SLICE_RECORDS (4 * BLOCK_RECORDS)
#define BATCH_RECORDS (3 * SLICE_RECORDS + 5)
/* Of each giver; the last batch is smaller. */
#define GIVER_RECORDS (2 * BATCH_RECORDS + 1)

static const struct record_shape shape =
	RECORD_SHAPE_OF_SLICE(RECORD_BYTES, 0, 8);
static char folder[64];
static struct external_plan plan;
static struct scratch scratch;
static struct kept_runs *kept;
static uint8_t *memory;
static struct failure failure;
static struct first_failure run_failure;
/* How far each giver has come. */
static uint64_t sent[GIVERS];
static uint32_t wave;
static uint64_t byte_counts[GIVERS];

static void open_all(bool unique)
{
	const char *const paths[] = { folder };
	struct topology topology;
	struct kept_runs_request request = {
		.plan = &plan,
		.shape = &shape,
		.giver_count = GIVERS,
		.drops = unique,
		.sink = { .scratch = &scratch,
			  .slot_bytes = PAGE_BYTES,
			  .chunk_bytes = 2 * BLOCK_RECORDS * RECORD_BYTES },
		.topology = &topology,
		.failure = &run_failure,
	};

	topology_read(&topology);
	plan = (struct external_plan){
		.block_records = BLOCK_RECORDS,
		.run_chunk_bytes = 2 * BLOCK_RECORDS * RECORD_BYTES,
		.slot_bytes = PAGE_BYTES,
		.kept_slice_records = SLICE_RECORDS,
		.kept_message_bytes = PAGE_BYTES,
		.kept_bytes = GIVERS * (2 + KEPT_RUNS_SLOTS) * PAGE_BYTES,
	};
	memory = aligned_alloc(PAGE_BYTES, plan.kept_bytes);
	request.memory = memory;
	assert_non_null(memory);
	assert_int_equal(scratch_open(&scratch, paths, 1, &failure), 0);
	assert_int_equal(kept_runs_open(&kept, &request, &failure), 0);
	for (unsigned i = 0; i < GIVERS; i++)
		kept_runs_expect(kept, i, (uint64_t)i * GIVER_RECORDS,
				 GIVER_RECORDS, 3);
	memset(sent, 0, sizeof(sent));
	wave = 0;
}

static void close_all(void)
{
	kept_runs_close(kept);
	scratch_close(&scratch);
	free(memory);
}

/* Record number n of all; the numbers of a batch ascend, as its keys do. */
static void make_record(uint64_t n, uint8_t *record)
{
	store_be64(record, n);
	store_be64(record + 8, ~n);
}

/* The next slice of the giver, or nothing. */
static void write_message(unsigned giver)
{
	uint8_t *message = kept_runs_place(kept, wave, giver);
	uint64_t batch = ROUND_DOWN(sent[giver], BATCH_RECORDS);
	uint64_t of_batch = MIN(BATCH_RECORDS, GIVER_RECORDS - batch);
	uint64_t count = MIN(SLICE_RECORDS, of_batch - (sent[giver] - batch));

	byte_counts[giver] = 0;
	if (sent[giver] == GIVER_RECORDS)
		return;
	store_le64(message, (uint64_t)giver * GIVER_RECORDS + batch);
	store_le64(message + 8, of_batch);
	store_le64(message + 16, of_batch);
	store_le64(message + 24, 0);
	for (uint64_t i = 0; i < count; i++)
		make_record((uint64_t)giver * GIVER_RECORDS + sent[giver] + i,
			    message + KEPT_RUNS_HEAD_BYTES + i * RECORD_BYTES);
	sent[giver] += count;
	byte_counts[giver] = KEPT_RUNS_HEAD_BYTES + count * RECORD_BYTES;
	assert_true(kept_runs_length_is_good(kept, byte_counts[giver]));
}

static void wait_until_written(uint32_t waves)
{
	while (kept_runs_written(kept) < waves)
		usleep(100);
}

/* A wave in which some givers have nothing yet. */
static int send_wave(unsigned *bad)
{
	int error;

	if (wave > 1)
		wait_until_written(wave - 1);
	for (unsigned i = 0; i < GIVERS; i++)
		if (random_below(3) > 0)
			write_message(i);
		else
			byte_counts[i] = sent[i] < GIVER_RECORDS
						 ? KEPT_RUNS_HEAD_BYTES
						 : 0;
	error = kept_runs_take(kept, wave, byte_counts, bad);
	wave++;
	return error;
}

static bool all_is_sent(void)
{
	for (unsigned i = 0; i < GIVERS; i++)
		if (sent[i] < GIVER_RECORDS)
			return false;
	return true;
}

static void check_block(const struct run_index *index, const struct run *run,
			uint32_t number)
{
	const struct run_block *block = &index->blocks[number];
	uint64_t first = run->input_record + block->first_record;
	uint8_t bytes[BLOCK_RECORDS * RECORD_BYTES], record[RECORD_BYTES];

	assert_int_equal(pread(scratch.directories[block->directory].fd, bytes,
			       block->stored_bytes, (off_t)block->offset_bytes),
			 block->record_count * RECORD_BYTES);
	make_record(first, record);
	assert_memory_equal(run_index_key(index, number), record, 8);
	for (uint32_t i = 0; i < block->record_count; i++) {
		make_record(first + i, record);
		assert_memory_equal(bytes + (size_t)i * RECORD_BYTES, record,
				    RECORD_BYTES);
	}
}

static void kept_runs__come_back(void **state)
{
	(void)state;
	for (unsigned round = 0; round < 20; round++) {
		struct run_index index;
		unsigned bad;
		uint64_t records = 0;

		open_all(round % 2);
		while (!all_is_sent())
			assert_int_equal(send_wave(&bad), 0);
		wait_until_written(wave);
		assert_false(first_failure_stops(&run_failure));
		assert_int_equal(kept_runs_end(kept, &bad, &failure), 0);
		run_index_init(&index, &shape, BLOCK_RECORDS);
		assert_int_equal(kept_runs_append(kept, &index, &failure), 0);
		assert_int_equal(index.run_count, 3 * GIVERS);
		for (unsigned r = 0; r < index.run_count; r++) {
			const struct run *run = &index.runs[r];

			assert_int_equal(run->input_record, records);
			assert_int_equal(run->input_count, run->record_count);
			records += run->record_count;
			for (uint32_t b = 0; b < run->block_count; b++)
				check_block(&index, run, run->first_block + b);
		}
		assert_int_equal(records, GIVERS * GIVER_RECORDS);
		run_index_free(&index);
		close_all();
	}
}

static void kept_runs_length_is_good__whole_records(void **state)
{
	uint64_t most = KEPT_RUNS_HEAD_BYTES + SLICE_RECORDS * RECORD_BYTES;

	(void)state;
	open_all(false);
	assert_true(kept_runs_length_is_good(kept, 0));
	assert_true(kept_runs_length_is_good(kept, KEPT_RUNS_HEAD_BYTES));
	assert_true(kept_runs_length_is_good(kept, most));
	assert_false(kept_runs_length_is_good(kept, 1));
	assert_false(kept_runs_length_is_good(kept, KEPT_RUNS_HEAD_BYTES - 1));
	assert_false(kept_runs_length_is_good(kept, KEPT_RUNS_HEAD_BYTES + 1));
	assert_false(kept_runs_length_is_good(kept, most + RECORD_BYTES));
	assert_false(kept_runs_length_is_good(kept, UINT64_MAX));
	close_all();
}

/* Source 1 says something else in its `slice`-th message. */
static int take_lie(bool unique, unsigned slice, unsigned word, uint64_t value,
		    unsigned *bad)
{
	uint8_t *message;

	open_all(unique);
	memset(byte_counts, 0, sizeof(byte_counts));
	for (; wave < slice; wave++) {
		wait_until_written(wave);
		write_message(1);
		assert_int_equal(kept_runs_take(kept, wave, byte_counts, bad),
				 0);
	}
	wait_until_written(wave);
	write_message(1);
	message = kept_runs_place(kept, wave, 1);
	store_le64(message + (size_t)8 * word, value);
	return kept_runs_take(kept, wave, byte_counts, bad);
}

static void kept_runs_take__what_cannot_be(void **state)
{
	static const struct {
		bool unique;
		unsigned slice, word;
		uint64_t value;
		int error;
	} cases[] = {
		/* Word 0 is where the batch begins, 1 how many records of the
		 * input it has, 2 how many are left. */
		{ false, 0, 0, GIVER_RECORDS, 0 },
		{ false, 0, 0, GIVER_RECORDS - 1, -EBADMSG },
		{ false, 0, 0, 0, -EBADMSG },
		{ false, 0, 0, UINT64_MAX, -EBADMSG },
		{ false, 0, 0, 2 * GIVER_RECORDS - BATCH_RECORDS, 0 },
		{ false, 0, 0, 2 * GIVER_RECORDS - BATCH_RECORDS + 1,
		  -EBADMSG },
		{ false, 0, 1, BATCH_RECORDS + 1, -EBADMSG },
		{ true, 0, 1, BATCH_RECORDS + 1, 0 },
		{ true, 0, 1, BATCH_RECORDS - 1, -EBADMSG },
		{ true, 0, 1, GIVER_RECORDS + 1, -EBADMSG },
		{ true, 0, 1, UINT64_MAX, -EBADMSG },
		{ true, 0, 2, BATCH_RECORDS - 1, 0 },
		{ true, 0, 2, SLICE_RECORDS, 0 },
		{ true, 0, 2, SLICE_RECORDS - 1, -EBADMSG },
		{ true, 0, 2, 0, -EBADMSG },
		{ false, 0, 2, BATCH_RECORDS - 1, -EBADMSG },
		/* Within a batch no slice says anything else. */
		{ false, 1, 0, GIVER_RECORDS, 0 },
		{ false, 1, 0, GIVER_RECORDS + 1, -EBADMSG },
		{ true, 1, 1, BATCH_RECORDS + 1, -EBADMSG },
		{ true, 1, 2, BATCH_RECORDS - 1, -EBADMSG },
		/* Keys: of the first block, and of one in the middle. */
		{ false, 0, 4, 0, 0 },
		{ false, 0, 4, UINT64_MAX, -EBADMSG },
		{ false, 1, 4, 0, -EBADMSG },
		{ false, 0, 4 + 2 * BLOCK_RECORDS, 0, -EBADMSG },
		/* Records within a block may have any. */
		{ false, 0, 6, 0, 0 },
		/* Another batch may begin with any key. */
		{ false, 4, 4, 0, 0 },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		unsigned bad = GIVERS;
		int error = take_lie(cases[i].unique, cases[i].slice,
				     cases[i].word, cases[i].value, &bad);

		if (error != cases[i].error || (error && bad != 1))
			fail_msg("case %zu: %d of %u", i, error, bad);
		if (error == 0)
			wait_until_written(wave + 1);
		close_all();
	}
}

/* But for the last slice of a batch. */
static void kept_runs_take__whole_blocks(void **state)
{
	unsigned bad;

	(void)state;
	for (unsigned less = 0; less <= BLOCK_RECORDS; less++) {
		open_all(false);
		memset(byte_counts, 0, sizeof(byte_counts));
		write_message(1);
		byte_counts[1] -= (uint64_t)less * RECORD_BYTES;
		assert_int_equal(kept_runs_take(kept, 0, byte_counts, &bad),
				 less % BLOCK_RECORDS == 0 ? 0 : -EBADMSG);
		close_all();
	}
}

/* More runs than it may have. */
static void kept_runs_take__too_many_runs(void **state)
{
	unsigned bad;

	(void)state;
	open_all(false);
	kept_runs_expect(kept, 1, GIVER_RECORDS, GIVER_RECORDS, 1);
	memset(byte_counts, 0, sizeof(byte_counts));
	for (; sent[1] < BATCH_RECORDS; wave++) {
		wait_until_written(wave);
		write_message(1);
		assert_int_equal(kept_runs_take(kept, wave, byte_counts, &bad),
				 0);
	}
	wait_until_written(wave);
	write_message(1);
	assert_int_equal(kept_runs_take(kept, wave, byte_counts, &bad),
			 -EBADMSG);
	close_all();
}

/* Not all of its part, by number or by place. */
static void kept_runs_end__all_of_its_part(void **state)
{
	(void)state;
	for (unsigned lie = 0; lie < 3; lie++) {
		unsigned bad = GIVERS;

		open_all(true);
		memset(byte_counts, 0, sizeof(byte_counts));
		for (unsigned i = 0; i < GIVERS; i++)
			for (; sent[i] < GIVER_RECORDS; wave++) {
				bool is_last =
					i == 1 && sent[1] >= 2 * BATCH_RECORDS;
				uint8_t *message;

				if (lie == 0 && is_last)
					break;
				wait_until_written(wave);
				write_message(i);
				message = kept_runs_place(kept, wave, i);
				/* The last batch lies upon the first one. */
				if (lie == 1 && is_last)
					store_le64(message, GIVER_RECORDS);
				assert_int_equal(kept_runs_take(kept, wave,
								byte_counts,
								&bad),
						 0);
				byte_counts[i] = 0;
			}
		wait_until_written(wave);
		assert_int_equal(kept_runs_end(kept, &bad, &failure),
				 lie < 2 ? -EBADMSG : 0);
		if (lie < 2)
			assert_int_equal(bad, 1);
		close_all();
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(kept_runs__come_back),
		cmocka_unit_test(kept_runs_length_is_good__whole_records),
		cmocka_unit_test(kept_runs_take__what_cannot_be),
		cmocka_unit_test(kept_runs_take__whole_blocks),
		cmocka_unit_test(kept_runs_take__too_many_runs),
		cmocka_unit_test(kept_runs_end__all_of_its_part),
	};
	int failed;

	snprintf(folder, sizeof(folder), "/tmp/test-kept-runs.XXXXXX");
	if (!mkdtemp(folder))
		return 1;
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	rmdir(folder);
	return failed;
}
