/*
 * external_world.h - whole sorts in little memory, for tests of what does not
 * fit into it
 *
 * Records, the sort of them that is expected, folders, and runs in which calls
 * fail (external_faults.h).
 *
 * Included by one file of a program.
 */
#ifndef EXTERNAL_WORLD_H
#define EXTERNAL_WORLD_H

#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "descriptors.h"
#include "external/plan/external_plan.h"
#include "external/external_request.h"
#include "external/external_sort.h"
#include "external_faults.h"
#include "folder.h"
#include "random_shape.h"
#include "record/checksum.h"
#include "stable_sort.h"

#define FILES_MAX 4
#define BYTES_MAX (24 * MIB)
#define RECORDS_MAX 400000
/* A run that hangs is ended after so many seconds. */
#define HANGS_SECONDS 300
/* Of the calls of a kind, about twice as many are made to fail. */
#define TRIES 8

static const char *const inputs[FILES_MAX] = { "in0", "in1", "in2", "in3" };
static const char *const outputs[FILES_MAX] = { "out0", "out1", "out2",
						"out3" };

static char folder[64], scratch_folder[64];
static char scratch_names[DIRECTORIES][96];
static const char *scratch_paths[DIRECTORIES];
static int root_fd;
static uint8_t *records, *output;
static uint32_t *order, *spare;
static uint32_t record_count;

static struct sorter_config sort;
static struct external_config config;
static struct sorter_result result;
static struct external_result external;
static struct failure failure;

/* --- records and files ------------------------------------------------------
 */

enum keys {
	KEYS_RANDOM,
	KEYS_EQUAL,
	KEYS_FEW,
	KEYS_SORTED,
	KEYS_REVERSED,
	KEYS_HALF, /* half of them equal */
	KEYS_LATE, /* random at first, then a few values */
	KEYS_KINDS
};

static inline void make_key(uint8_t *key, uint32_t length, enum keys keys,
			    uint32_t number)
{
	uint32_t value = keys == KEYS_REVERSED ? record_count - number : number;

	if (keys == KEYS_LATE)
		keys = number < record_count / 2 ? KEYS_RANDOM : KEYS_FEW;
	if (keys == KEYS_HALF)
		keys = random_below(2) ? KEYS_RANDOM : KEYS_EQUAL;
	for (uint32_t i = 0; i < length; i++)
		switch (keys) {
		case KEYS_RANDOM:
			key[i] = (uint8_t)random_next();
			break;
		case KEYS_EQUAL:
			key[i] = 'e';
			break;
		case KEYS_FEW:
			key[i] = (uint8_t)(i == 0 ? random_below(5) : 7);
			break;
		default:
			key[i] = i < 4 ? (uint8_t)(value >> (24 - 8 * i)) : 0;
		}
}

/* Bytes beside the key tell records apart. */
static inline void make_records(enum keys keys, uint32_t count)
{
	const struct record_shape *shape = &sort.shape;

	record_count = count;
	for (uint32_t r = 0; r < count; r++) {
		uint8_t *record = records + (size_t)r * shape->size;

		memset(record, (int)(r * 31), shape->size);
		memcpy(record, &r, MIN(sizeof(r), shape->size));
		make_key(record + shape->keys.begin,
			 shape->keys.end - shape->keys.begin, keys, r);
		order[r] = r;
	}
	stable_sort(shape, records, order, count, spare);
}

static inline void write_file(const char *path, const uint8_t *bytes,
			      size_t count)
{
	FILE *stream = fopen(path, "w");

	assert_non_null(stream);
	assert_int_equal(fwrite(bytes, 1, count, stream), count);
	assert_int_equal(fclose(stream), 0);
}

/* Cut anywhere between records; parts may be empty. */
static inline void write_inputs(void)
{
	uint32_t size = sort.shape.size, begin = 0;

	for (unsigned i = 0; i < FILES_MAX; i++)
		unlink(inputs[i]);
	for (unsigned i = 0; i < FILES_MAX && i < sort.input_count; i++) {
		uint32_t left = record_count - begin;
		uint32_t count = i + 1 == sort.input_count
					 ? left
					 : random_below((uint64_t)left + 1);

		write_file(inputs[i], records + (size_t)begin * size,
			   (size_t)count * size);
		begin += count;
	}
}

/* All outputs one after the other. */
static inline size_t read_outputs(void)
{
	size_t count = 0;

	for (unsigned i = 0; i < FILES_MAX && i < sort.output_count; i++) {
		FILE *stream = fopen(outputs[i], "r");

		assert_non_null(stream);
		count +=
			fread(output + count, 1, BYTES_MAX + 1 - count, stream);
		assert_int_equal(count % sort.shape.size, 0);
		fclose(stream);
	}
	return count;
}

static inline void remove_outputs(void)
{
	for (unsigned i = 0; i < FILES_MAX; i++)
		unlink(outputs[i]);
}

/* --- one sort ---------------------------------------------------------------
 */

static inline void plain_config(uint32_t record_size, unsigned threads)
{
	memset(&pretend, 0, sizeof(pretend));
	sort = (struct sorter_config){
		.input_paths = inputs,
		.input_count = 1,
		.output_paths = outputs,
		.output_count = 1,
		.shape = RECORD_SHAPE_OF_SLICE(record_size, 0,
					       MIN(record_size, 10)),
		.threads = threads,
		.splitters = SPLITTERS_AUTO,
		.kernel = cpu_level_detect(),
	};
	config = (struct external_config){
		.sort = &sort,
		.scratch_paths = scratch_paths,
		.scratch_count = DIRECTORIES,
	};
}

static inline struct external_request least_request(void)
{
	return (struct external_request){
		.shape = sort.shape,
		.record_count = record_count,
		.worker_count = sort.threads,
		.runs_max = config.runs_max,
		.sums_up = sort.checksum,
	};
}

/* The least that suffices for the records. */
static inline void set_least_memory(void)
{
	const struct external_request request = least_request();

	sort.memory_bytes = external_request_memory_min(&request);
}

static inline int run(void)
{
	int error;

	failure = (struct failure){ .status = EXIT_DONE };
	alarm(HANGS_SECONDS);
	error = external_sort_run(&config, &result, &external, &failure);
	alarm(0);
	pretend.call = CALL_NONE;
	/* No file is left but inputs and outputs. */
	for (unsigned d = 0; d < DIRECTORIES; d++)
		assert_int_equal(count_entries(scratch_paths[d]), 0);
	assert_int_equal(count_entries("."),
			 sort.input_count + (error ? 0 : sort.output_count));
	return error;
}

/* With --unique, numbers of records whose keys occurred before are skipped. */
static inline bool is_dropped(uint32_t i)
{
	return sort.unique && i > 0 &&
	       record_compare(&sort.shape,
			      records + (size_t)order[i - 1] * sort.shape.size,
			      records + (size_t)order[i] * sort.shape.size) ==
		       0;
}

/* Work and waits of the threads that do these stages by turns. */
static inline uint64_t threads_ns(const struct external_pass_result *pass,
				  enum stage first, enum stage last)
{
	uint64_t ns = 0;

	for (unsigned s = first; s <= last; s++) {
		ns += pass->stages[s].busy_ns;
		for (unsigned c = 0; c < STAGE_CAUSES; c++)
			ns += pass->stages[s].waits[c].ns;
	}
	return ns;
}

/* All of a thread's time is told, and each byte once. */
static inline void check_stages(uint64_t output_bytes)
{
	const struct external_pass_result *passes = external.passes;
	const struct stage_result *runs = passes[EXTERNAL_RUNS].stages;
	const struct stage_result *merges = passes[EXTERNAL_MERGES].stages;
	const struct stage_result *ends = passes[EXTERNAL_OUTPUT].stages;

	for (unsigned p = 0; p < EXTERNAL_PASSES; p++) {
		const struct stage_result *stages = passes[p].stages;

		assert_int_equal(
			threads_ns(&passes[p], STAGE_BUCKET, STAGE_BUCKET),
			passes[p].ns * stages[STAGE_BUCKET].workers);
		assert_int_equal(threads_ns(&passes[p], STAGE_ORDER, STAGE_PUT),
				 passes[p].ns * stages[STAGE_ORDER].workers);
	}
	if (external.way != EXTERNAL_BY_KEYS)
		assert_int_equal(runs[STAGE_BUCKET].bytes,
				 (uint64_t)record_count * sort.shape.size);
	assert_int_equal(runs[STAGE_PUT].bytes + merges[STAGE_PUT].bytes,
			 external.plain_bytes);
	assert_int_equal(runs[STAGE_WRITE].bytes + merges[STAGE_WRITE].bytes,
			 external.spilled_bytes);
	assert_int_equal(ends[STAGE_GATHER].bytes, output_bytes);
	assert_int_equal(ends[STAGE_WRITE].bytes, ends[STAGE_PUT].bytes);
}

static inline void check_output(void)
{
	uint32_t size = sort.shape.size;
	size_t bytes = read_outputs(), at = 0;
	uint32_t kept = 0;

	for (uint32_t i = 0; i < record_count; i++) {
		if (is_dropped(i))
			continue;
		if (at + size > bytes ||
		    memcmp(output + at, records + (size_t)order[i] * size,
			   size) != 0)
			fail_msg("record %u of %u is not number %u: size %u, "
				 "key %u+%u, %u threads, memory %llu, unique "
				 "%d (SEED=%llu)",
				 i, record_count, order[i], size,
				 sort.shape.keys.begin, sort.shape.keys.length,
				 sort.threads,
				 (unsigned long long)sort.memory_bytes,
				 sort.unique, (unsigned long long)seed);
		at += size;
		kept++;
	}
	assert_int_equal(at, bytes);
	assert_int_equal(result.record_count, record_count);
	assert_int_equal(result.dropped_count, record_count - kept);
	assert_int_equal(external.passes[EXTERNAL_OUTPUT].written_bytes, bytes);
	check_stages(bytes);
	if (sort.checksum)
		assert_true(result.checksum ==
			    checksum_scalar(output, size, kept));
	remove_outputs();
}

static inline void check_sort(void)
{
	unsigned descriptors = open_descriptors();

	if (run() != 0)
		fail_msg("%s: %s (SEED=%llu)", failure.what ? failure.what : "",
			 failure.why, (unsigned long long)seed);
	check_output();
	assert_int_equal(open_descriptors(), descriptors);
}

/* --- failures ---------------------------------------------------------------
 */

/* However it failed, the reason is told; and if it did not, the output is
 * exact. */
static inline void check_faulty(bool must_survive)
{
	unsigned descriptors = open_descriptors();
	enum call call = pretend.call;
	int error = run();

	assert_int_equal(open_descriptors(), descriptors);
	if (error == 0) {
		check_output();
		return;
	}
	if (must_survive)
		fail_msg("call %d number %u: %s: %s", (int)call, pretend.nth,
			 failure.what ? failure.what : "", failure.why);
	assert_true(failure.status == EXIT_FILE ||
		    failure.status == EXIT_RESOURCES);
	assert_true(failure.why[0] != '\0');
	remove_outputs();
}

/* Calls of a kind fail, one a run: some at first, then about as many of all
 * that there are. */
static inline void fail_each(enum call call, int error, bool for_ever,
			     bool must_survive)
{
	bool no_ring = pretend.no_ring;
	unsigned hits = 0, count = 1;

	for (unsigned nth = 1; nth <= count;
	     nth += nth < TRIES ? 1 : 1 + count / TRIES) {
		memset(&pretend, 0, sizeof(pretend));
		pretend.no_ring = no_ring;
		pretend.call = call;
		pretend.error = error;
		pretend.nth = nth;
		pretend.for_ever = for_ever;
		check_faulty(must_survive);
		count = pretend.count;
		hits += count >= nth;
	}
	assert_true(hits > 0);
	memset(&pretend, 0, sizeof(pretend));
	pretend.no_ring = no_ring;
}

/* --- a fresh folder ---------------------------------------------------------
 */

static inline int setup(void **state)
{
	(void)state;
	memset(&pretend, 0, sizeof(pretend));
	snprintf(folder, sizeof(folder), "/tmp/test_external_sort.XXXXXX");
	assert_non_null(mkdtemp(folder));
	assert_int_equal(chdir(folder), 0);
	/* A busy disk makes hundreds of small sorts slow. */
	snprintf(scratch_folder, sizeof(scratch_folder), "%s%s",
		 access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp",
		 "/test_external_sort.XXXXXX");
	assert_non_null(mkdtemp(scratch_folder));
	for (unsigned d = 0; d < DIRECTORIES; d++) {
		snprintf(scratch_names[d], sizeof(scratch_names[d]), "%s/%u",
			 scratch_folder, d);
		scratch_paths[d] = scratch_names[d];
		assert_int_equal(mkdir(scratch_paths[d], 0755), 0);
	}
	return 0;
}

static inline int teardown(void **state)
{
	char command[192];

	(void)state;
	memset(&pretend, 0, sizeof(pretend));
	assert_int_equal(fchdir(root_fd), 0);
	snprintf(command, sizeof(command), "rm -rf '%s' '%s'", folder,
		 scratch_folder);
	return system(command);
}

static inline int make_memory(void **state)
{
	(void)state;
	root_fd = open(".", O_PATH | O_CLOEXEC);
	records = malloc(BYTES_MAX);
	output = malloc(BYTES_MAX + 1);
	order = malloc(RECORDS_MAX * sizeof(*order));
	spare = malloc(RECORDS_MAX * sizeof(*spare));
	signal(SIGXFSZ, SIG_IGN);
	return records && output && order && spare && root_fd >= 0 ? 0 : -1;
}

static inline int free_memory(void **state)
{
	(void)state;
	free(records);
	free(output);
	free(order);
	free(spare);
	close(root_fd);
	return 0;
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

#endif /* EXTERNAL_WORLD_H */
