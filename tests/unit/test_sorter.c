/*
 * test_sorter.c - whole sorts of small files against a plain stable one
 *
 * Most sorts run in a child, whose limits are its own; the result comes back
 * through shared memory.  Some run in this process, several times or two at a
 * time.
 */
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "descriptors.h"
#include "folder.h"
#include "record/checksum.h"
#include "random.h"
#include "sort/sorter.h"
#include "stable_sort.h"

#define FILES_MAX 3
#define BYTES_MAX (8 * MIB)
#define RECORDS_MAX 120000

/* What a child reports. */
struct report {
	int returned;
	struct sorter_result result;
	struct failure failure;
};

static char folder[64];
static char input_names[FILES_MAX][96], output_names[FILES_MAX][96];
static const char *input_paths[FILES_MAX], *output_paths[FILES_MAX];
static struct report *report; /* shared with the child */
static uint8_t *records, *output;
static uint32_t *order, *scratch;

static uint32_t random_below(uint64_t end)
{
	return (uint32_t)(random_next() % end);
}

/* ------------------------------------------------------------- the records */

enum keys {
	KEYS_BINARY,
	KEYS_ASCII,
	KEYS_FEW, /* a handful of values: oversized buckets */
	KEYS_EQUAL,
	KEYS_PREFIX, /* alike but for the end */
	KEYS_HALF,   /* half of them equal */
	KEYS_LATE,   /* evenly spread at first, then all equal */
	KEYS_KINDS
};

/* More records than the sort looks at before it starts. */
#define LATE_RECORD 5000

static void make_key(uint8_t *key, uint32_t length, enum keys keys)
{
	if (keys == KEYS_HALF && random_next() % 2)
		keys = KEYS_EQUAL;
	for (uint32_t i = 0; i < length; i++) {
		switch (keys) {
		case KEYS_ASCII:
			key[i] = (uint8_t)(32 + random_below(95));
			break;
		case KEYS_FEW:
			key[i] = i == length / 2 ? (uint8_t)random_below(5)
						 : 200;
			break;
		case KEYS_EQUAL:
			key[i] = 'e';
			break;
		case KEYS_PREFIX:
			key[i] = i + 3 < length ? 'p' : (uint8_t)random_next();
			break;
		default:
			key[i] = (uint8_t)random_next();
		}
	}
}

static void make_records(const struct record_shape *shape, enum keys keys,
			 uint32_t count)
{
	for (uint32_t r = 0; r < count; r++) {
		uint8_t *record = records + (size_t)r * shape->size;

		for (uint32_t i = 0; i < shape->size; i++)
			record[i] = (uint8_t)(r * 31 + i);
		make_key(record + shape->keys.begin, shape->keys.length,
			 keys == KEYS_LATE && r >= LATE_RECORD ? KEYS_EQUAL
							       : keys);
		order[r] = r;
	}
}

/* --------------------------------------------------------------- the files */

static void write_file(const char *path, const uint8_t *bytes, size_t count)
{
	FILE *stream = fopen(path, "w");

	assert_non_null(stream);
	assert_int_equal(fwrite(bytes, 1, count, stream), count);
	assert_int_equal(fclose(stream), 0);
}

/* Cut anywhere between records; parts may be empty. */
static void write_inputs(const struct sorter_config *config, uint32_t count)
{
	uint32_t size = config->shape.size, begin = 0;

	for (unsigned i = 0; i < config->input_count; i++) {
		uint32_t end =
			i + 1 == config->input_count
				? count
				: begin + random_below(count - begin + 1);

		write_file(input_paths[i], records + (size_t)begin * size,
			   (size_t)(end - begin) * size);
		begin = end;
	}
}

/* All outputs one after the other; each part ends between records. */
static size_t read_outputs(const struct sorter_config *config)
{
	size_t count = 0;

	for (unsigned i = 0; i < config->output_count; i++) {
		FILE *stream = fopen(output_paths[i], "r");

		assert_non_null(stream);
		count +=
			fread(output + count, 1, BYTES_MAX + 1 - count, stream);
		assert_int_equal(count % config->shape.size, 0);
		fclose(stream);
	}
	return count;
}

/* Before each test, too: one that fails leaves them. */
static int remove_files(void **state)
{
	(void)state;
	for (unsigned i = 0; i < FILES_MAX; i++) {
		unlink(input_paths[i]);
		unlink(output_paths[i]);
	}
	return 0;
}

/* ---------------------------------------------------------------- the sort */

static int sort_files(const struct sorter_config *config,
		      struct sorter_result *result, struct failure *failure)
{
	struct sorter *sorter = sorter_open(config, result, failure);
	int error = -1;

	if (!sorter)
		return error;
	if (result->place == SORT_IN_MEMORY)
		error = sorter_sort(sorter, failure);
	sorter_close(sorter);
	return error;
}

static void sort_in_child(const struct sorter_config *config,
			  rlim_t file_bytes_max)
{
	const struct rlimit limit = { file_bytes_max, RLIM_INFINITY };

	signal(SIGXFSZ, SIG_IGN);
	if (file_bytes_max != RLIM_INFINITY)
		setrlimit(RLIMIT_FSIZE, &limit);
	report->returned =
		sort_files(config, &report->result, &report->failure);
	_exit(EXIT_SUCCESS);
}

/* Sort, and see that the child came to its end. */
static void run(const struct sorter_config *config, rlim_t file_bytes_max)
{
	pid_t child;
	int status;

	memset(report, 0, sizeof(*report));
	child = fork();
	assert_true(child >= 0);
	if (child == 0)
		sort_in_child(config, file_bytes_max);
	assert_int_equal(waitpid(child, &status, 0), child);
	if (status != 0)
		fail_msg("a sort ended with wait status %x (SEED=%llu)",
			 (unsigned)status, (unsigned long long)seed);
}

static struct sorter_config plain_config(void)
{
	return (struct sorter_config){
		.input_paths = input_paths,
		.input_count = 1,
		.output_paths = output_paths,
		.output_count = 1,
		.shape = RECORD_SHAPE_OF_SLICE(100, 0, 10),
		.kernel = cpu_level_detect(),
	};
}

/* A timeline was written, with spans if there was anything to do; takes it away
 * again. */
static void check_trace(const char *path, bool spans)
{
	static char text[1 << 20];
	FILE *stream = fopen(path, "r");
	size_t length;

	assert_non_null(stream);
	length = fread(text, 1, sizeof(text) - 1, stream);
	fclose(stream);
	text[length] = '\0';
	assert_int_equal(strstr(text, "\"ph\": \"X\"") != NULL ||
				 strstr(text, "\"ph\":\"X\"") != NULL,
			 spans);
	assert_int_equal(unlink(path), 0);
}

/* Records of one or two bytes, all key, from as many on as may differ. */
static bool is_counted(const struct record_shape *shape, uint32_t count)
{
	return shape->size <= 2 && shape->keys.length == shape->size &&
	       count >= 1U << 8 * shape->size;
}

static void check_result(const struct sorter_config *config, uint32_t count)
{
	const struct sorter_result *result = &report->result;

	assert_int_equal(result->record_count, count);
	assert_int_equal(result->size_bytes,
			 (uint64_t)count * config->shape.size);
	assert_true(result->io != INPUT_AUTO);
	assert_true(config->io == INPUT_AUTO || result->io == config->io);
	if (is_counted(&config->shape, count)) {
		assert_int_equal(result->splitters, SPLITTERS_AUTO);
		assert_int_equal(result->bucket_count, 0);
	} else {
		assert_true(result->splitters >= SPLITTERS_STATIC_256);
		assert_true(result->bucket_count >= 1);
	}
	assert_true(result->threads >= 1);
	assert_true(config->threads == 0 || result->threads == config->threads);
	assert_true(result->begin_ns <= result->prepared_ns);
	assert_true(result->prepared_ns <= result->bucketed_ns);
	assert_true(result->bucketed_ns <= result->ordered_ns);
	assert_true(result->ordered_ns <= result->committed_ns);
	if (config->checksum)
		assert_true(
			result->checksum ==
			checksum_scalar(records, config->shape.size, count));
	if (config->trace_path)
		check_trace(config->trace_path, count > 0);
}

static void check_sort(const struct sorter_config *config, enum keys keys,
		       uint32_t count)
{
	uint32_t size = config->shape.size;

	make_records(&config->shape, keys, count);
	write_inputs(config, count);
	run(config, RLIM_INFINITY);
	if (report->returned != 0)
		fail_msg("%s (SEED=%llu)", report->failure.why,
			 (unsigned long long)seed);
	check_result(config, count);
	assert_int_equal(read_outputs(config), (size_t)count * size);
	stable_sort(&config->shape, records, order, count, scratch);
	for (uint32_t i = 0; i < count; i++)
		if (memcmp(output + (size_t)i * size,
			   records + (size_t)order[i] * size, size) != 0)
			fail_msg("record %u of %u is not number %u: keys %d, "
				 "size %u, key %u+%u, %u threads, io %s, "
				 "splitters %s (SEED=%llu)",
				 i, count, order[i], keys, size,
				 config->shape.keys.begin,
				 config->shape.keys.length,
				 report->result.threads,
				 input_mode_names[report->result.io],
				 splitters_kind_names[report->result.splitters],
				 (unsigned long long)seed);
	assert_int_equal(count_entries(folder),
			 config->input_count + config->output_count);
	remove_files(NULL);
}

static void random_config(struct sorter_config *config)
{
	static const enum splitters_kind kinds[] = { SPLITTERS_AUTO,
						     SPLITTERS_STATIC,
						     SPLITTERS_SAMPLED };

	*config = plain_config();
	config->input_count = 1 + random_below(FILES_MAX);
	config->output_count = 1 + random_below(FILES_MAX);
	if (random_next() % 3) {
		uint32_t size = 1 + random_below(130);
		uint32_t offset = random_below(size);

		config->shape = (struct record_shape)RECORD_SHAPE_OF_SLICE(
			size, offset, 1 + random_below(size - offset));
	}
	config->threads = random_below(5);
	config->io = (enum input_mode)random_below(4);
	config->splitters = kinds[random_below(ARRAY_LEN(kinds))];
	config->kernel =
		(enum cpu_level)random_below((uint64_t)cpu_level_detect() + 1);
	config->sync = random_below(4) == 0;
	config->checksum = random_below(2);
	config->trace_path = random_below(2) ? "timeline" : NULL;
}

/* ------------------------------------------------------------------- tests */

static void sorter_sort__random_shapes_and_modes(void **state)
{
	static const uint32_t counts[] = { 0, 1, 2, 9, 100, 1000, 4000 };

	(void)state;
	for (uint32_t turn = 0; turn < turns_of(140); turn++) {
		struct sorter_config config;

		random_config(&config);
		check_sort(
			&config, (enum keys)(turn % KEYS_KINDS),
			counts[turn % ARRAY_LEN(counts)] +
				(turn % 2 && turn % 7 ? random_below(50) : 0));
	}
}

/* Just enough records to be counted, and one less. */
static void sorter_sort__records_of_one_and_two_bytes(void **state)
{
	(void)state;
	for (uint32_t size = 1; size <= 2; size++)
		for (uint32_t less = 0; less <= 1; less++)
			for (int keys = 0; keys < KEYS_KINDS; keys++) {
				struct sorter_config config;

				random_config(&config);
				config.shape = (struct record_shape)
					RECORD_SHAPE_OF_SLICE(size, 0, size);
				check_sort(&config, (enum keys)keys,
					   (1U << 8 * size) - less);
			}
}

/* Thousands alike: a bucket of more than a chunk holds. */
static void sorter_sort__oversized_buckets(void **state)
{
	(void)state;
	for (int keys = 0; keys < KEYS_KINDS; keys++)
		for (uint32_t io = INPUT_BUFFERED; io <= INPUT_DIRECT; io++) {
			struct sorter_config config;

			random_config(&config);
			config.io = (enum input_mode)io;
			config.shape =
				(struct record_shape)RECORD_SHAPE_OF_SLICE(
					20, 3, 12);
			check_sort(&config, (enum keys)keys,
				   20000 + random_below(40000));
		}
}

/* The probe tells the wrong thing, so the pass is done again. */
static void sorter_sort__probe_is_wrong(void **state)
{
	(void)state;
	for (unsigned threads = 1; threads <= 3; threads++) {
		struct sorter_config config = plain_config();

		config.threads = threads;
		config.io = INPUT_BUFFERED;
		config.shape =
			(struct record_shape)RECORD_SHAPE_OF_SLICE(20, 3, 12);
		check_sort(&config, KEYS_LATE, 100000);
		assert_int_equal(report->result.splitters, SPLITTERS_SAMPLED);
	}
}

/* Of the benchmark's shape, in chunks of every output file. */
static void sorter_sort__benchmark_shape(void **state)
{
	(void)state;
	for (int keys = KEYS_BINARY; keys <= KEYS_ASCII; keys++) {
		struct sorter_config config = plain_config();

		config.checksum = true;
		config.threads = 2;
		config.output_count = 1 + (unsigned)keys;
		check_sort(&config, (enum keys)keys, 50000);
		assert_int_equal(report->result.splitters,
				 keys == KEYS_ASCII ? SPLITTERS_STATIC_95
						    : SPLITTERS_STATIC_256);
	}
}

/* Records larger than a chunk, and not a multiple of anything. */
static void sorter_sort__large_records(void **state)
{
	static const uint32_t sizes[] = { 4096, 65537, 300007, 1048576 };

	(void)state;
	for (size_t s = 0; s < ARRAY_LEN(sizes); s++)
		for (uint32_t turn = 0; turn < 4; turn++) {
			struct sorter_config config = plain_config();

			config.shape =
				(struct record_shape)RECORD_SHAPE_OF_SLICE(
					sizes[s], sizes[s] - 3, 3);
			config.threads = 1 + turn % 3;
			config.io = (enum input_mode)turn;
			config.output_count = 1 + turn % 2;
			config.checksum = true;
			check_sort(&config, KEYS_BINARY,
				   1 + (uint32_t)(6 * MIB / sizes[s]));
		}
}

/* Nothing to sort, in every way. */
static void sorter_sort__no_records(void **state)
{
	static const enum splitters_kind kinds[] = { SPLITTERS_AUTO,
						     SPLITTERS_STATIC,
						     SPLITTERS_SAMPLED };

	(void)state;
	for (uint32_t io = INPUT_AUTO; io <= INPUT_DIRECT; io++)
		for (size_t k = 0; k < ARRAY_LEN(kinds); k++) {
			struct sorter_config config = plain_config();

			config.io = (enum input_mode)io;
			config.splitters = kinds[k];
			config.threads = 2;
			config.trace_path = k == 0 ? "timeline" : NULL;
			check_sort(&config, KEYS_BINARY, 0);
		}
}

/* Refused: the status, and nothing but what was there. */
static void check_failure(const struct sorter_config *config,
			  rlim_t file_bytes_max, enum exit_status status,
			  const char *what)
{
	unsigned before = count_entries(folder);

	run(config, file_bytes_max);
	assert_true(report->returned < 0);
	assert_int_equal(report->failure.status, status);
	assert_string_equal(report->failure.what, what);
	assert_true(report->failure.why[0] != '\0');
	assert_int_equal(count_entries(folder), before);
}

static void sorter_sort__input_failures(void **state)
{
	struct sorter_config config = plain_config();

	(void)state;
	check_failure(&config, RLIM_INFINITY, EXIT_FILE, input_paths[0]);
	assert_string_equal(strstr(report->failure.why, strerror(ENOENT)),
			    strerror(ENOENT));
	/* Not a whole number of records, in the second. */
	config.input_count = 2;
	write_file(input_paths[0], records, 1000);
	write_file(input_paths[1], records, 1001);
	check_failure(&config, RLIM_INFINITY, EXIT_FILE, input_paths[1]);
	remove_files(NULL);
	config = plain_config();
	input_paths[0] = folder;
	check_failure(&config, RLIM_INFINITY, EXIT_FILE, folder);
	input_paths[0] = input_names[0];
}

static void sorter_sort__output_folder_missing(void **state)
{
	struct sorter_config config = plain_config();

	(void)state;
	write_file(input_paths[0], records, 1000);
	output_paths[0] = "/nonexistent-folder/out";
	check_failure(&config, RLIM_INFINITY, EXIT_FILE, output_paths[0]);
	output_paths[0] = output_names[0];
	remove_files(NULL);
}

/* What is there already stays as it is. */
static void sorter_sort__disk_full_keeps_the_old_output(void **state)
{
	(void)state;
	for (unsigned turn = 0; turn < 8; turn++) {
		struct sorter_config config = plain_config();
		FILE *stream;

		config.threads = 1 + turn % 3;
		config.sync = turn >= 4;
		write_file(input_paths[0], records, 2000000);
		write_file(output_paths[0], (const uint8_t *)"old", 3);
		check_failure(&config, (rlim_t)500000, EXIT_FILE,
			      output_paths[0]);
		assert_string_equal(report->failure.why, strerror(EFBIG));
		stream = fopen(output_paths[0], "r");
		assert_non_null(stream);
		assert_int_equal(fread(output, 1, 10, stream), 3);
		assert_memory_equal(output, "old", 3);
		fclose(stream);
		remove_files(NULL);
	}
}

/* If their number is not given, as many threads sort as there is memory for. */
static void check_fewer_threads(struct sorter_config config)
{
	unsigned threads = config.threads;

	if (threads == 1)
		return;
	config.threads = 0;
	run(&config, RLIM_INFINITY);
	assert_int_equal(report->returned, 0);
	assert_true(report->result.threads < threads);
	assert_string_equal(report->result.threads_source, "memory");
	unlink(output_paths[0]);
}

/* The plan says so, and nothing is left. */
static void check_beyond_memory(const struct sorter_config *config)
{
	unsigned before = count_entries(folder);

	run(config, RLIM_INFINITY);
	assert_true(report->returned < 0);
	assert_int_equal(report->result.place, SORT_BEYOND_MEMORY);
	assert_true(report->result.memory_bytes > config->memory_bytes);
	assert_string_equal(report->result.memory_source, "--memory");
	assert_int_equal(count_entries(folder), before);
}

static void sorter_sort__memory_limit(void **state)
{
	struct sorter_config config = plain_config();

	(void)state;
	write_file(input_paths[0], records, 1000000);
	config.memory_option = "--memory";
	config.memory_bytes = 100000;
	check_beyond_memory(&config);
	/* Just enough, as it was planned. */
	config.memory_bytes = 0;
	run(&config, RLIM_INFINITY);
	assert_int_equal(report->returned, 0);
	assert_true(report->result.memory_bytes > 0);
	config.io = report->result.io;
	config.memory_bytes = report->result.memory_bytes;
	run(&config, RLIM_INFINITY);
	assert_int_equal(report->returned, 0);
	unlink(output_paths[0]);
	config.threads = report->result.threads;
	config.memory_bytes--;
	check_beyond_memory(&config);
	check_fewer_threads(config);
	/* What was to be read is mapped if only so it fits. */
	config.io = INPUT_BUFFERED;
	config.memory_bytes++;
	check_beyond_memory(&config);
	remove_files(NULL);
}

/* --- in one process --------------------------------------------------------
 */

/* Each sorts this input in several ways, to a file of its own. */
struct sorting {
	unsigned number;
	unsigned turns;
	const char *output_path;
	struct failure failure;
	int returned;
};

static struct sorter_config config_of_turn(const struct sorting *sorting,
					   unsigned turn)
{
	static const enum splitters_kind kinds[] = { SPLITTERS_AUTO,
						     SPLITTERS_SAMPLED };
	struct sorter_config config = plain_config();

	config.output_paths = (const char *const *)&sorting->output_path;
	config.threads = 1 + (turn + sorting->number) % 3;
	config.io = (enum input_mode)((turn + sorting->number) % 4);
	config.splitters = kinds[turn / 2 % 2];
	config.checksum = turn % 2;
	return config;
}

static void *sort_in_turn(void *context)
{
	struct sorting *sorting = context;

	for (unsigned turn = 0; turn < sorting->turns; turn++) {
		struct sorter_config config = config_of_turn(sorting, turn);
		struct sorter_result result;

		sorting->returned =
			sort_files(&config, &result, &sorting->failure);
		if (sorting->returned)
			break;
	}
	return NULL;
}

static void check_sorting(const struct sorting *sorting, uint32_t count)
{
	struct sorter_config config = plain_config();

	assert_int_equal(sorting->returned, 0);
	config.output_paths = (const char *const *)&sorting->output_path;
	assert_int_equal(read_outputs(&config), (size_t)count * 100);
	for (uint32_t i = 0; i < count; i++)
		assert_memory_equal(output + (size_t)i * 100,
				    records + (size_t)order[i] * 100, 100);
}

static void make_input(uint32_t count)
{
	struct sorter_config config = plain_config();

	make_records(&config.shape, KEYS_HALF, count);
	write_inputs(&config, count);
	stable_sort(&config.shape, records, order, count, scratch);
}

/* This process's resident memory; its address space would tell less, since
 * malloc() reserves 64 MiB for a thread. */
static size_t resident_bytes(void)
{
	unsigned long pages = 0;
	FILE *stream = fopen("/proc/self/statm", "r");

	assert_non_null(stream);
	assert_int_equal(fscanf(stream, "%*u %lu", &pages), 1);
	fclose(stream);
	return pages * PAGE_BYTES;
}

/* A sort after a sort does the same, and leaves no descriptor and no memory: it
 * touches its input of 6 MB and about as much besides, and 24 of them would add
 * up. */
static void sorter_sort__again_and_again(void **state)
{
	struct sorting sorting = { .turns = 4, .output_path = output_paths[0] };
	unsigned descriptors;
	size_t resident;

	(void)state;
	make_input(60000);
	sort_in_turn(&sorting);
	check_sorting(&sorting, 60000);
	descriptors = open_descriptors();
	resident = resident_bytes();
	sorting.turns = 24;
	sort_in_turn(&sorting);
	check_sorting(&sorting, 60000);
	assert_int_equal(open_descriptors(), descriptors);
	assert_true(resident_bytes() < resident + 64 * MIB);
}

/* A sort that fails leaves nothing either, and the next one is as good. */
static void sorter_sort__after_a_failure(void **state)
{
	static const char *const missing[] = { "/nonexistent-folder/out" };
	struct sorting sorting = { .turns = 2, .output_path = output_paths[0] };
	struct sorter_config config = plain_config();
	unsigned descriptors = open_descriptors();
	struct sorter_result result;
	struct failure failure;

	(void)state;
	make_input(20000);
	config.threads = 3;
	config.output_paths = missing;
	assert_true(sort_files(&config, &result, &failure) < 0);
	assert_int_equal(failure.status, EXIT_FILE);
	sort_in_turn(&sorting);
	check_sorting(&sorting, 20000);
	assert_int_equal(open_descriptors(), descriptors);
}

static void sorter_sort__two_at_the_same_time(void **state)
{
	struct sorting sortings[2];
	pthread_t threads[2];

	(void)state;
	make_input(40000);
	for (unsigned i = 0; i < 2; i++) {
		sortings[i] = (struct sorting){
			.number = i,
			.turns = 8,
			.output_path = output_paths[i],
		};
		assert_int_equal(pthread_create(&threads[i], NULL, sort_in_turn,
						&sortings[i]),
				 0);
	}
	for (unsigned i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
	for (unsigned i = 0; i < 2; i++)
		check_sorting(&sortings[i], 40000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(sorter_sort__random_shapes_and_modes,
				       remove_files),
		cmocka_unit_test_setup(
			sorter_sort__records_of_one_and_two_bytes,
			remove_files),
		cmocka_unit_test_setup(sorter_sort__oversized_buckets,
				       remove_files),
		cmocka_unit_test_setup(sorter_sort__probe_is_wrong,
				       remove_files),
		cmocka_unit_test_setup(sorter_sort__benchmark_shape,
				       remove_files),
		cmocka_unit_test_setup(sorter_sort__large_records,
				       remove_files),
		cmocka_unit_test_setup(sorter_sort__no_records, remove_files),
		cmocka_unit_test_setup(sorter_sort__input_failures,
				       remove_files),
		cmocka_unit_test_setup(sorter_sort__output_folder_missing,
				       remove_files),
		cmocka_unit_test_setup(
			sorter_sort__disk_full_keeps_the_old_output,
			remove_files),
		cmocka_unit_test_setup(sorter_sort__memory_limit, remove_files),
		cmocka_unit_test_setup(sorter_sort__again_and_again,
				       remove_files),
		cmocka_unit_test_setup(sorter_sort__after_a_failure,
				       remove_files),
		cmocka_unit_test_setup(sorter_sort__two_at_the_same_time,
				       remove_files),
	};
	int failed;

	random_begin();
	fflush(stdout);
	snprintf(folder, sizeof(folder), "/tmp/test_sorter.XXXXXX");
	report = mmap(NULL, sizeof(*report), PROT_READ | PROT_WRITE,
		      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	records = calloc(1, BYTES_MAX + 1);
	output = malloc(BYTES_MAX + 1);
	order = calloc(RECORDS_MAX, sizeof(*order));
	scratch = calloc(RECORDS_MAX, sizeof(*scratch));
	if (!mkdtemp(folder) || report == MAP_FAILED || !records || !output ||
	    !order || !scratch)
		return EXIT_FAILURE;
	for (unsigned i = 0; i < FILES_MAX; i++) {
		snprintf(input_names[i], sizeof(input_names[i]), "%s/in%u",
			 folder, i);
		snprintf(output_names[i], sizeof(output_names[i]), "%s/out%u",
			 folder, i);
		input_paths[i] = input_names[i];
		output_paths[i] = output_names[i];
	}
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	remove_files(NULL);
	rmdir(folder);
	return failed;
}
