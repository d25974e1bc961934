/*
 * test_input_space.c - records of others before and behind the input's own
 */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/base.h"
#include "input_range_reader.h"

static char path[64];

/* Of the files to come, a hole. */
static uint64_t header_bytes;

static uint8_t expected_byte(uint64_t position)
{
	return (uint8_t)(position * 0x9e3779b97f4a7c15u >> 56);
}

static void make_file(uint64_t bytes)
{
	FILE *file = fopen(path, "w");

	assert_non_null(file);
	assert_int_equal(ftruncate(fileno(file), (off_t)header_bytes), 0);
	assert_int_equal(fseek(file, 0, SEEK_END), 0);
	for (uint64_t i = 0; i < bytes; i++)
		putc(expected_byte(i), file);
	assert_int_equal(fclose(file), 0);
}

/* Open, with room for so many records, and read. */
static void open_with_room(struct input *input, enum input_mode mode,
			   uint32_t record_size, uint64_t before,
			   uint64_t after)
{
	const char *const paths[] = { path };
	const struct input_layout layout = { .record_size = record_size,
					     .header_bytes = header_bytes };
	struct failure failure = { 0 };
	struct range_reader reader;
	struct source_run run;

	assert_int_equal(input_open(input, paths, 1, &layout, mode, &failure),
			 0);
	input->reserved_before_bytes = before * record_size;
	input->reserved_after_bytes = after * record_size;
	assert_int_equal(input_map(input, &failure), 0);
	assert_int_equal((uintptr_t)input_start(input) % HUGE_PAGE_BYTES, 0);
	assert_int_equal((uintptr_t)input->base % PAGE_BYTES,
			 header_bytes % PAGE_BYTES);
	assert_int_equal(range_open(&reader, input, 0, input->record_count,
				    false, &failure),
			 0);
	while (range_next(&reader, &run, &failure) > 0)
		;
	range_close(&reader);
}

static void fill(uint8_t *bytes, uint64_t count, uint8_t salt)
{
	for (uint64_t i = 0; i < count; i++)
		bytes[i] = expected_byte(i) ^ salt;
}

static void check(const uint8_t *bytes, uint64_t count, uint8_t salt)
{
	for (uint64_t i = 0; i < count; i++)
		if (bytes[i] != (expected_byte(i) ^ salt))
			fail_msg("byte %llu of %llu", (unsigned long long)i,
				 (unsigned long long)count);
}

static void check_room(enum input_mode mode, uint32_t record_size, uint64_t own,
		       uint64_t before, uint64_t after)
{
	struct failure failure = { 0 };
	struct input input;
	uint8_t *low, *high;
	uint64_t slot, lead;

	make_file(own * record_size);
	open_with_room(&input, mode, record_size, before, after);
	lead = input_lead_slots(&input);
	assert_int_equal(input_open_before(&input, lead + before, &failure), 0);
	assert_int_equal(input_open_after(&input, after, &failure), 0);
	slot = input_after_slot(&input);
	assert_true(slot >= input.slot_count);
	assert_true((slot - input.slot_count) * record_size <
		    PAGE_BYTES + (uint64_t)record_size);
	low = input.base - (lead + before) * record_size;
	high = input.base + slot * record_size;
	fill(low, before * record_size, 1);
	fill(high, after * record_size, 2);
	check(low, before * record_size, 1);
	check(input.base, own * record_size, 0);
	check(high, after * record_size, 2);
	input_close(&input);
	header_bytes = 0;
	make_file(0);
}

static void input_open_room__every_mode_and_size(void **state)
{
	static const uint64_t headers[] = { 0, 128, 5001 };
	static const enum input_mode modes[] = { INPUT_BUFFERED, INPUT_MMAP,
						 INPUT_DIRECT };
	static const uint32_t sizes[] = { 1, 3, 100, 4096, 5000 };
	static const uint64_t bytes[] = { 0, 1, 4096, 100000, 3500000 };

	(void)state;
	for (size_t m = 0; m < ARRAY_LEN(modes); m++)
		for (size_t s = 0; s < ARRAY_LEN(sizes); s++)
			for (size_t b = 0; b < ARRAY_LEN(bytes); b++)
				for (size_t o = 0; o < ARRAY_LEN(bytes); o++) {
					header_bytes =
						headers[(m + s + b + o) %
							ARRAY_LEN(headers)];
					check_room(modes[m], sizes[s],
						   bytes[o] / sizes[s],
						   bytes[b] / sizes[s],
						   bytes[(b + o) %
							 ARRAY_LEN(bytes)] /
							   sizes[s]);
				}
}

/* Huge pages or not: what is opened is what was asked for, rounded. */
static void input_open_room__is_kept_to(void **state)
{
	struct failure failure = { 0 };
	struct input input;

	(void)state;
	make_file(1000);
	open_with_room(&input, INPUT_MMAP, 100, 50000, 50000);
	assert_int_equal(input_open_before(&input, 30000, &failure), 0);
	assert_int_equal(input_open_before(&input, HUGE_PAGE_BYTES, &failure),
			 -ENOMEM);
	assert_int_equal(failure.status, EXIT_RESOURCES);
	assert_int_equal(input_open_after(&input, HUGE_PAGE_BYTES, &failure),
			 -ENOMEM);
	assert_int_equal(input_open_after(&input, UINT64_MAX / 99, &failure),
			 -ENOMEM);
	input_close(&input);
}

/* Without a wish there is none; what was not opened cannot be touched. */
static void input_open_room__none(void **state)
{
	struct failure failure = { 0 };
	struct input input;
	int status;
	pid_t child;

	(void)state;
	make_file(1000);
	open_with_room(&input, INPUT_MMAP, 100, 0, 0);
	assert_int_equal(input_open_before(&input, 0, &failure), 0);
	assert_int_equal(input_open_after(&input, 0, &failure), 0);
	assert_int_equal(input_open_before(&input, 1, &failure), -ENOMEM);
	assert_int_equal(input_open_after(&input, 10000, &failure), -ENOMEM);
	input_close(&input);

	open_with_room(&input, INPUT_MMAP, 100, 1000, 0);
	child = fork();
	if (child == 0) {
		signal(SIGSEGV, SIG_DFL);
		*(volatile uint8_t *)(input.base - 1) = 1;
		_exit(0);
	}
	assert_true(child > 0);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_false(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	input_close(&input);
}

/* No page of the file is written to, whatever is stored around it. */
static void input_open_room__leaves_the_file_alone(void **state)
{
	uint8_t bytes[300];
	int fd;

	(void)state;
	check_room(INPUT_MMAP, 100, 3, 2, 2);
	make_file(sizeof(bytes));
	{
		struct failure failure = { 0 };
		struct input input;

		open_with_room(&input, INPUT_MMAP, 100, 5, 5);
		assert_int_equal(input_open_before(&input, 5, &failure), 0);
		assert_int_equal(input_open_after(&input, 5, &failure), 0);
		fill(input.base - 500, 500, 9);
		fill(input.base + input_after_slot(&input) * 100, 500, 9);
		input_close(&input);
	}
	fd = open(path, O_RDONLY);
	assert_true(fd >= 0);
	assert_int_equal(read(fd, bytes, sizeof(bytes)), sizeof(bytes));
	check(bytes, sizeof(bytes), 0);
	close(fd);
}

static int setup(void **state)
{
	int fd;

	(void)state;
	strcpy(path, "/tmp/test_input_space.XXXXXX");
	fd = mkstemp(path);
	return fd < 0 ? -1 : close(fd);
}

static int teardown(void **state)
{
	(void)state;
	return unlink(path);
}

#define TEST(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(input_open_room__every_mode_and_size),
		TEST(input_open_room__is_kept_to),
		TEST(input_open_room__none),
		TEST(input_open_room__leaves_the_file_alone),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
