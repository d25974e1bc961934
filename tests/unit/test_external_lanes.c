/*
 * test_external_lanes.c - input files on two devices, which are read side by
 * side: the order of the input is kept, and if one lane fails, all end
 *
 * The files lie on /tmp and on /dev/shm in turn.
 */
#include "external_world.h"
#include "skip.h"

/* A read that waits for another one waits no longer than so. */
#define MEETS_SECONDS 60
/* Keys are probed by smaller reads. */
#define LARGE_READ_BYTES (64 * KIB)

/* More than all records. */
#define MEMORY_MAX (2 * BYTES_MAX)

static struct lane_plan lanes;
static struct stat here, there; /* of the two folders */

/* --- files on two devices ---------------------------------------------------
 */

static void need_two_devices(void)
{
	assert_int_equal(stat(".", &here), 0);
	assert_int_equal(stat(scratch_folder, &there), 0);
	if (here.st_dev == there.st_dev)
		skip_because("/tmp and /dev/shm are one device here");
}

/* Every other file is a link to one on the other device. */
static void write_input(unsigned i, const uint8_t *bytes, size_t count)
{
	char path[128];

	unlink(inputs[i]);
	if (i % 2 == 1) {
		snprintf(path, sizeof(path), "%s/%s", scratch_folder,
			 inputs[i]);
		write_file(path, bytes, count);
		assert_int_equal(symlink(path, inputs[i]), 0);
	} else {
		write_file(inputs[i], bytes, count);
	}
}

/* About equal parts, so that batches are. */
static void write_on_two_devices(void)
{
	struct lane_file files[FILES_MAX];
	uint32_t size = sort.shape.size, begin = 0;

	sort.input_count = FILES_MAX;
	for (unsigned i = 0; i < FILES_MAX; i++) {
		uint32_t end = record_count / FILES_MAX * (i + 1);

		end = i + 1 == FILES_MAX ? record_count : end;
		write_input(i, records + (size_t)begin * size,
			    (size_t)(end - begin) * size);
		files[i] = (struct lane_file){
			.device = i % 2,
			.record_count = end - begin,
		};
		begin = end;
	}
	lane_plan_make(&lanes, files, FILES_MAX, LANES_MAX);
}

/* About the least for which two lanes are made; where a merge may have only two
 * runs, there may be none. */
static void set_memory_for_lanes(void)
{
	struct external_request single = least_request(), several;
	struct external_plan single_plan, several_plan;

	several = single;
	several.lanes = &lanes;
	several.memory_bytes = external_request_memory_min(&several);
	do {
		several.memory_bytes += 256 * KIB;
		single.memory_bytes = several.memory_bytes;
		assert_int_equal(external_plan_make(&single_plan, &single), 0);
		assert_int_equal(external_plan_make(&several_plan, &several),
				 0);
	} while (!external_plan_gains(&several_plan, &single_plan, &single) &&
		 several.memory_bytes < MEMORY_MAX);
	sort.memory_bytes = several.memory_bytes;
}

static void prepare(enum keys keys, uint32_t count)
{
	make_records(keys, count);
	write_on_two_devices();
	set_memory_for_lanes();
}

/* --- exact ------------------------------------------------------------------
 */

/* Equal keys come in the order of the files on the command line. */
static void external_lanes__exact(void **state)
{
	unsigned with_lanes = 0;
	uint64_t bytes;

	(void)state;
	need_two_devices();
	for (unsigned turn = 0; turn < turns_of(6 * KEYS_KINDS); turn++) {
		plain_config(1 + random_below(200), 1 + turn % 4);
		sort.unique = turn % 5 == 4;
		sort.checksum = true;
		sort.io = turn % 2 ? INPUT_DIRECT : INPUT_BUFFERED;
		config.runs_max = turn % 3 ? 0 : 2 + turn % 4;
		pretend.late = turn % 4 == 0;
		pretend.no_ring = turn % 7 == 0;
		bytes = 2 * MIB + random_below(6 * MIB);
		prepare((enum keys)(turn % KEYS_KINDS),
			(uint32_t)MIN(RECORDS_MAX, bytes / sort.shape.size));
		sort.memory_bytes += random_below(3) * random_below(4 * MIB);
		check_sort();
		with_lanes += external.lane_count == 2;
	}
	assert_true(with_lanes > turns_of(6 * KEYS_KINDS) * 2 / 7);
}

/* The least memory suffices for one lane only. */
static void external_lanes__too_little_memory(void **state)
{
	(void)state;
	need_two_devices();
	plain_config(100, 2);
	prepare(KEYS_FEW, 60000);
	check_sort();
	assert_int_equal(external.lane_count, 2);
	set_least_memory();
	check_sort();
	assert_int_equal(external.lane_count, 1);
}

/* Files of a record or two, whose batches are as small: by two lanes or one,
 * all is sorted. */
static void external_lanes__small_ranges(void **state)
{
	(void)state;
	need_two_devices();
	plain_config(100, 2);
	prepare(KEYS_FEW, 60000);
	write_input(0, records, 100);
	write_input(1, records + 100, 100);
	write_input(2, records + 200, 59996 * (size_t)100);
	write_input(3, records + 59998 * (size_t)100, 200);
	check_sort();
	assert_true(external.run_count > 1);
}

/* --- side by side -----------------------------------------------------------
 */

static struct {
	_Atomic bool here, there; /* a large read has begun */
	_Atomic bool missed;
} meeting;

/* No lane reads anything before both read. */
static void meet(int fd, size_t bytes)
{
	struct stat status;

	if (bytes < LARGE_READ_BYTES || fstat(fd, &status) < 0 ||
	    (status.st_dev != here.st_dev && status.st_dev != there.st_dev))
		return;
	atomic_store(status.st_dev == here.st_dev ? &meeting.here
						  : &meeting.there,
		     true);
	for (unsigned i = 0;
	     !atomic_load(&meeting.here) || !atomic_load(&meeting.there); i++) {
		if (i == MEETS_SECONDS * 1000) {
			atomic_store(&meeting.missed, true);
			atomic_store(&meeting.here, true);
			atomic_store(&meeting.there, true);
		}
		usleep(1000);
	}
}

static void external_lanes__side_by_side(void **state)
{
	(void)state;
	need_two_devices();
	for (unsigned threads = 1; threads <= 3; threads++) {
		plain_config(100, threads);
		prepare(KEYS_RANDOM, 60000);
		memset(&meeting, 0, sizeof(meeting));
		pretend.no_ring = true;
		pretend.before_pread = meet;
		check_sort();
		assert_true(meeting.here && meeting.there);
		assert_false(meeting.missed);
		assert_int_equal(external.lane_count, 2);
	}
}

/* --- failures ---------------------------------------------------------------
 */

static void prepare_lane_failures(void)
{
	plain_config(100, 2);
	prepare(KEYS_FEW, 30000);
	check_sort();
	assert_int_equal(external.lane_count, 2);
}

static void external_lanes__calls_fail(void **state)
{
	(void)state;
	need_two_devices();
	prepare_lane_failures();
	fail_each(CALL_URING, EBADF, false, true);
	for (unsigned for_ever = 0; for_ever < 2; for_ever++) {
		fail_each(CALL_MALLOC, ENOMEM, for_ever, false);
		fail_each(CALL_MMAP, ENOMEM, for_ever, false);
		fail_each(CALL_THREAD, EAGAIN, for_ever, false);
	}
	pretend.no_ring = true;
	for (unsigned for_ever = 0; for_ever < 2; for_ever++) {
		fail_each(CALL_PREAD, EIO, for_ever, false);
		fail_each(CALL_PWRITE, ENOSPC, for_ever, false);
	}
}

static struct {
	unsigned file;
	int at; /* this read */
	_Atomic int count;
} shrink;

static void shrink_file(int fd, size_t bytes)
{
	(void)fd;
	if (bytes >= LARGE_READ_BYTES &&
	    atomic_fetch_add(&shrink.count, 1) == shrink.at &&
	    truncate(inputs[shrink.file], 100) < 0)
		shrink.at = -1;
}

/* A file of either lane gets shorter while both are read. */
static void external_lanes__file_shrinks(void **state)
{
	unsigned found = 0;

	(void)state;
	need_two_devices();
	prepare_lane_failures();
	for (unsigned turn = 0; turn < 4 * FILES_MAX; turn++) {
		write_on_two_devices();
		memset(&shrink, 0, sizeof(shrink));
		shrink.file = turn % FILES_MAX;
		shrink.at = (int)(turn / FILES_MAX);
		pretend.no_ring = true;
		pretend.before_pread = shrink_file;
		if (run() == 0) {
			/* All of the file had been read by then. */
			check_output();
			continue;
		}
		found++;
		assert_int_equal(failure.status, EXIT_FILE);
		assert_string_equal(failure.what, inputs[shrink.file]);
	}
	assert_true(found > 2 * FILES_MAX);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(external_lanes__exact),
		TEST(external_lanes__too_little_memory),
		TEST(external_lanes__small_ranges),
		TEST(external_lanes__side_by_side),
		TEST(external_lanes__calls_fail),
		TEST(external_lanes__file_shrinks),
	};

	random_begin();
	return cmocka_run_group_tests(tests, make_memory, free_memory);
}
