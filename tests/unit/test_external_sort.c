/*
 * test_external_sort.c - whole sorts in little memory against a plain stable
 * one
 *
 * The memory is the least that suffices, or a little more, so that records are
 * spilled.
 */
#include "external_world.h"
#include "sort/record_counts.h"

/* --- exact ------------------------------------------------------------------
 */

static uint32_t count_of_bytes(size_t bytes, uint32_t record_size)
{
	return (uint32_t)MIN(bytes / record_size, RECORDS_MAX);
}

static void external_sort__sizes_and_threads(void **state)
{
	static const uint32_t sizes[] = { 3, 7, 100, 4096, 1 << 20 };

	(void)state;
	for (size_t s = 0; s < ARRAY_LEN(sizes); s++)
		for (unsigned threads = 1; threads <= 4; threads++) {
			plain_config(sizes[s], threads);
			sort.checksum = true;
			config.runs_max = threads % 2 ? 0 : 2;
			make_records((enum keys)(threads - 1),
				     count_of_bytes(sizes[s] == 1 << 20
							    ? BYTES_MAX
							    : 6 * MIB,
						    sizes[s]));
			write_inputs();
			set_least_memory();
			check_sort();
			assert_true(external.run_count > 1);
			assert_true(external.spilled_bytes > 0);
		}
}

/* Records that are all key and have one or two bytes: no run is made. */
static void external_sort__counts_small_records(void **state)
{
	(void)state;
	for (unsigned turn = 0; turn < turns_of(40); turn++) {
		plain_config(1 + turn % 2, 1 + turn / 2 % 4);
		do {
			sort.shape = random_shape(sort.shape.size);
		} while (!record_counts_suit(&sort.shape));
		sort.unique = random_below(3) == 0;
		sort.checksum = random_below(2);
		sort.input_count = 1 + random_below(FILES_MAX);
		sort.output_count =
			sort.unique ? 1 : 1 + random_below(FILES_MAX);
		sort.io = (enum input_mode)random_below(4);
		pretend.no_ring = random_below(4) == 0;
		make_records((enum keys)(turn % KEYS_KINDS),
			     turn < 2 ? 0 : random_below(RECORDS_MAX));
		write_inputs();
		set_least_memory();
		check_sort();
		assert_int_equal(external.way, EXTERNAL_BY_COUNTS);
		assert_int_equal(external.spilled_bytes, 0);
	}
}

static void random_config(void)
{
	static const enum splitters_kind kinds[] = { SPLITTERS_AUTO,
						     SPLITTERS_STATIC,
						     SPLITTERS_SAMPLED };

	plain_config(1 + random_below(200), 1 + random_below(4));
	sort.shape = random_shape(sort.shape.size);
	sort.unique = random_below(3) == 0;
	sort.input_count = 1 + random_below(FILES_MAX);
	sort.output_count = sort.unique ? 1 : 1 + random_below(FILES_MAX);
	sort.io = (enum input_mode)random_below(4);
	sort.splitters = kinds[random_below(ARRAY_LEN(kinds))];
	sort.kernel =
		(enum cpu_level)random_below((uint64_t)cpu_level_detect() + 1);
	sort.sync = random_below(4) == 0;
	sort.checksum = random_below(2);
	config.scratch_count = 1 + random_below(DIRECTORIES);
	if (random_below(2))
		config.runs_max = 2 + random_below(3);
	pretend.no_ring = random_below(4) == 0;
}

static void external_sort__random(void **state)
{
	unsigned spilled = 0;

	(void)state;
	for (unsigned turn = 0; turn < turns_of(40); turn++) {
		random_config();
		make_records((enum keys)(turn % KEYS_KINDS),
			     count_of_bytes(MIB + random_below(6 * MIB),
					    sort.shape.size));
		write_inputs();
		set_least_memory();
		sort.memory_bytes += random_below(3) * random_below(2 * MIB);
		check_sort();
		spilled += external.spilled_bytes > 0;
	}
	assert_true(spilled > turns_of(40) / 4);
}

/* Less than a batch, and nothing at all. */
static void external_sort__few_records(void **state)
{
	static const uint32_t counts[] = { 0, 1, 2, 100, 2000 };

	(void)state;
	for (size_t c = 0; c < ARRAY_LEN(counts); c++)
		for (unsigned unique = 0; unique < 2; unique++) {
			plain_config(100, 2);
			sort.unique = unique;
			sort.input_count = 3;
			make_records(KEYS_HALF, counts[c]);
			write_inputs();
			set_least_memory();
			check_sort();
			assert_int_equal(external.spilled_bytes, 0);
		}
}

/* Two runs at a time: many merges, and each record is written once a pass. */
static void external_sort__two_runs_at_a_time(void **state)
{
	(void)state;
	for (unsigned unique = 0; unique < 2; unique++) {
		plain_config(100, 2);
		sort.unique = unique;
		config.runs_max = 2;
		make_records(KEYS_RANDOM, 60000);
		write_inputs();
		set_least_memory();
		check_sort();
		assert_true(external.merge_count > 1);
		assert_true(external.spilled_bytes > 2 * (uint64_t)6000000);
		/* What has been merged is given back. */
		assert_true(external.scratch_peak_bytes <
			    external.spilled_bytes);
	}
}

/* Nothing is read, and no slot is used again, before it has been written. */
static void external_sort__late_writes(void **state)
{
	(void)state;
	for (unsigned turn = 0; turn < 16; turn++) {
		plain_config(100, 1 + turn % 3);
		sort.unique = turn % 4 == 3;
		config.runs_max = turn % 2 ? 0 : 3;
		make_records((enum keys)(turn % KEYS_KINDS),
			     15000 + 3000 * turn);
		write_inputs();
		set_least_memory();
		sort.memory_bytes += turn * 200000;
		pretend.late = true;
		check_sort();
	}
}

static void external_sort__refuses_too_little_memory(void **state)
{
	(void)state;
	plain_config(100, 2);
	make_records(KEYS_RANDOM, 20000);
	write_inputs();
	sort.memory_bytes = MIB;
	sort.memory_option = "--memory";
	assert_true(run() < 0);
	assert_int_equal(failure.status, EXIT_RESOURCES);
	assert_string_equal(failure.what, "--memory");
}

/* --- failures ---------------------------------------------------------------
 */

/* A few runs of 1.5 MB together, merged three at a time. */
static void prepare_failures(void)
{
	plain_config(100, 2);
	config.runs_max = 3;
	make_records(KEYS_RANDOM, 15000);
	write_inputs();
	set_least_memory();
}

static void external_sort__reads_and_writes_fail(void **state)
{
	(void)state;
	prepare_failures();
	pretend.no_ring = true;
	for (unsigned for_ever = 0; for_ever < 2; for_ever++) {
		fail_each(CALL_PREAD, EIO, for_ever, false);
		fail_each(CALL_PWRITE, EIO, for_ever, false);
		fail_each(CALL_PWRITE, ENOSPC, for_ever, false);
	}
	fail_each(CALL_PREAD, EINTR, false, true);
	fail_each(CALL_PWRITE, EINTR, false, true);
}

/* What the ring does not do is done by plain reads and writes. */
static void external_sort__ring_fails(void **state)
{
	(void)state;
	prepare_failures();
	for (unsigned for_ever = 0; for_ever < 2; for_ever++) {
		fail_each(CALL_URING, EBADF, for_ever, true);
		fail_each(CALL_SUBMIT, EPERM, for_ever, true);
	}
	fail_each(CALL_SUBMIT, EINTR, false, true);
}

/* Whether a write has ended remains unknown: the output would not be exact. */
static void external_sort__waits_for_writes_fail(void **state)
{
	(void)state;
	prepare_failures();
	for (unsigned for_ever = 0; for_ever < 2; for_ever++)
		fail_each(CALL_REAP, EBADF, for_ever, false);
	pretend.call = CALL_REAP;
	pretend.error = EBADF;
	pretend.nth = 1;
	assert_true(run() < 0);
	assert_null(failure.what);
	assert_string_equal(failure.why,
			    "cannot wait for writes of scratch files: "
			    "Bad file descriptor");
}

/* The other team notes it, whatever the workers of this one do: each time that
 * one of them turns to the orderer, of few threads or many. */
static void external_sort__the_other_team_fails(void **state)
{
	(void)state;
	for (unsigned turn = 0; turn < 8; turn++) {
		plain_config(100, turn % 2 ? 8 : 2);
		sort.unique = turn / 2 % 2;
		make_records(turn / 4 ? KEYS_EQUAL : KEYS_RANDOM, 15000);
		write_inputs();
		set_least_memory();
		fail_each(CALL_ORDERER, 0, false, false);
	}
}

static void external_sort__resources_fail(void **state)
{
	(void)state;
	prepare_failures();
	for (unsigned for_ever = 0; for_ever < 2; for_ever++) {
		fail_each(CALL_MALLOC, ENOMEM, for_ever, false);
		fail_each(CALL_MMAP, ENOMEM, for_ever, false);
		fail_each(CALL_THREAD, EAGAIN, for_ever, false);
		fail_each(CALL_FALLOCATE, ENOSPC, for_ever, false);
	}
	fail_each(CALL_FALLOCATE, EOPNOTSUPP, true, true);
}

/* The second directory takes over, at whatever stripe. */
static void external_sort__one_directory_full(void **state)
{
	unsigned taken = 1;

	(void)state;
	prepare_failures();
	for (unsigned at = 1; at <= taken; at += 1 + taken / 10) {
		memset(&pretend, 0, sizeof(pretend));
		pretend.no_ring = true;
		pretend.full_at = at;
		check_sort();
		taken = pretend.taken;
	}
	assert_true(taken > 5);
}

static void external_sort__all_directories_full(void **state)
{
	(void)state;
	prepare_failures();
	for (unsigned at = 1; at <= 10; at++) {
		memset(&pretend, 0, sizeof(pretend));
		pretend.no_ring = true;
		pretend.full_at = at;
		pretend.all_full = true;
		assert_true(run() < 0);
		assert_int_equal(failure.status, EXIT_FILE);
	}
}

/* One bit of what was spilled has changed: it is found, and said where. */
static void external_sort__flipped_bit(void **state)
{
	unsigned written = 1;

	(void)state;
	prepare_failures();
	for (unsigned at = 1; at <= written; at += 1 + written / 10) {
		memset(&pretend, 0, sizeof(pretend));
		pretend.flip_at = at;
		/* Each stripe has a record at least. */
		pretend.flip_byte = random_below(sort.shape.size);
		assert_true(run() < 0);
		written = MAX(written, pretend.written);
		assert_int_equal(failure.status, EXIT_FILE);
		assert_true(strcmp(failure.what, scratch_paths[0]) == 0 ||
			    strcmp(failure.what, scratch_paths[1]) == 0);
		assert_non_null(strstr(failure.why, "checksum"));
		assert_non_null(strstr(failure.why, "offset"));
	}
	assert_true(written > 5);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(external_sort__sizes_and_threads),
		TEST(external_sort__counts_small_records),
		TEST(external_sort__random),
		TEST(external_sort__few_records),
		TEST(external_sort__two_runs_at_a_time),
		TEST(external_sort__late_writes),
		TEST(external_sort__refuses_too_little_memory),
		TEST(external_sort__reads_and_writes_fail),
		TEST(external_sort__ring_fails),
		TEST(external_sort__waits_for_writes_fail),
		TEST(external_sort__the_other_team_fails),
		TEST(external_sort__resources_fail),
		TEST(external_sort__one_directory_full),
		TEST(external_sort__all_directories_full),
		TEST(external_sort__flipped_bit),
	};

	random_begin();
	return cmocka_run_group_tests(tests, make_memory, free_memory);
}
