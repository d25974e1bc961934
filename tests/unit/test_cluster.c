/*
 * test_cluster.c - whole cluster sorts in one process, over an exchange in
 * memory, against a plain stable sort of all records
 *
 * Each rank is a thread.  Keys are uniform, skewed, few, or all equal; a record
 * has its rank and its place in that rank's input behind the key, so that a
 * comparison of all bytes also tells whether the sort is stable.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

#include "cluster/cluster_state.h"
#include "io/input/sigbus.h"
#include "memory_exchange.h"
#include "net/keyfile.h"
#include "random.h"

#define RANKS_MAX 3
#define RECORD_BYTES 40
#define KEY_BYTES 10
#define RECORDS_MAX 20000
#define DEADLINE_NS ((uint64_t)60 * 1000000000)

enum keys { KEYS_UNIFORM, KEYS_SKEWED, KEYS_FEW, KEYS_EQUAL };

struct job {
	enum keys keys;
	unsigned rank_count;
	unsigned counts[RANKS_MAX]; /* records of each rank */
	enum splitters_kind splitters;
	enum cluster_by_reference by_reference;
	unsigned threads;
	bool unique;
	struct codec codec;
	uint64_t memory_bytes; /* 0: what there is */
};

struct rank_thread {
	pthread_t thread;
	char number[11], input[128], output[128];
	const char *input_path, *output_path;
	struct sorter_config config;
	struct cluster_config cluster_config;
	struct external_config external;
	struct cluster *cluster;
	struct cluster_result result;
	struct failure failure;
	int error;
};

static char folder[64], key_path[96];
static struct memory_hub hub;
static struct rank_thread ranks[RANKS_MAX];
static uint8_t wanted[RANKS_MAX * RECORDS_MAX * RECORD_BYTES];
static uint8_t got[sizeof(wanted) + 1];

/* --- records ----------------------------------------------------------------
 */

static void fill_key(uint8_t *key, enum keys kind)
{
	for (unsigned i = 0; i < KEY_BYTES; i++)
		key[i] = (uint8_t)random_next();
	if (kind == KEYS_SKEWED && random_next() % 8 > 0)
		memset(key, 0, 3);
	if (kind == KEYS_FEW || kind == KEYS_EQUAL) {
		memset(key, 'x', KEY_BYTES);
		key[KEY_BYTES - 1] =
			(uint8_t)(kind == KEYS_FEW ? random_next() % 3 : 0);
	}
}

static void fill_record(uint8_t *record, enum keys kind, unsigned rank,
			unsigned number)
{
	memset(record, '.', RECORD_BYTES);
	fill_key(record, kind);
	store_le64(record + KEY_BYTES, rank);
	store_le64(record + KEY_BYTES + 8, number);
}

static void write_file(const char *path, const uint8_t *bytes, size_t count)
{
	FILE *file = fopen(path, "wb");

	assert_non_null(file);
	assert_int_equal(fwrite(bytes, 1, count, file), count);
	assert_int_equal(fclose(file), 0);
}

/* By key, and then as the records came: rank and number are not asked. */
static int compare_records(const void *a, const void *b)
{
	const uint8_t *const *x = a, *const *y = b;
	int order = memcmp(*x, *y, KEY_BYTES);

	return order ? order : (*x > *y) - (*x < *y);
}

/* Replaces the records at wanted by what the ranks' outputs must be; returns
 * how many those are. */
static size_t sort_wanted(size_t count, bool unique)
{
	size_t kept = 0;
	const uint8_t **pointers = malloc((count + 1) * sizeof(*pointers));
	uint8_t *sorted = malloc(count * RECORD_BYTES + 1);

	assert_true(pointers && sorted);
	for (size_t i = 0; i < count; i++)
		pointers[i] = wanted + i * RECORD_BYTES;
	qsort(pointers, count, sizeof(*pointers), compare_records);
	for (size_t i = 0; i < count; i++)
		if (!unique || i == 0 ||
		    memcmp(pointers[i], pointers[i - 1], KEY_BYTES) != 0)
			memcpy(sorted + kept++ * RECORD_BYTES, pointers[i],
			       RECORD_BYTES);
	memcpy(wanted, sorted, kept * RECORD_BYTES);
	free(sorted);
	free(pointers);
	return kept;
}

/* Makes all inputs; returns how many records they have. */
static size_t make_inputs(const struct job *job)
{
	size_t count = 0;

	for (unsigned r = 0; r < job->rank_count; r++) {
		uint8_t *begin = wanted + count * RECORD_BYTES;

		for (unsigned i = 0; i < job->counts[r]; i++)
			fill_record(begin + i * (size_t)RECORD_BYTES, job->keys,
				    r, i);
		write_file(ranks[r].input, begin,
			   job->counts[r] * (size_t)RECORD_BYTES);
		count += job->counts[r];
	}
	return count;
}

/* --- a job ------------------------------------------------------------------
 */

static void configure(const struct job *job, unsigned number)
{
	static const char hosts[] = "127.0.0.1:1,127.0.0.1:2,127.0.0.1:3";
	static const char two_hosts[] = "127.0.0.1:1,127.0.0.1:2";
	struct rank_thread *rank = &ranks[number];

	memset(rank, 0, sizeof(*rank));
	snprintf(rank->number, sizeof(rank->number), "%u", number);
	snprintf(rank->input, sizeof(rank->input), "%s/in.%u", folder, number);
	snprintf(rank->output, sizeof(rank->output), "%s/out.%u", folder,
		 number);
	rank->input_path = rank->input;
	rank->output_path = rank->output;
	rank->config = (struct sorter_config){
		.input_paths = &rank->input_path,
		.input_count = 1,
		.output_paths = &rank->output_path,
		.output_count = 1,
		.shape = RECORD_SHAPE_OF_SLICE(RECORD_BYTES, 0, KEY_BYTES),
		.threads = job->threads,
		.memory_bytes = job->memory_bytes,
		.splitters = job->splitters,
		.unique = job->unique,
		.kernel = cpu_level_detect(),
		.checksum = true,
	};
	rank->external.codec = job->codec;
	rank->cluster_config = (struct cluster_config){
		.rank = { .nodes = job->rank_count == 2 ? two_hosts : hosts,
			  .rank = rank->number,
			  .key_path = key_path },
		.schedule = { .kind = EXCHANGE_AUTO },
		.by_reference = job->by_reference,
		.external = &rank->external,
		.deadline_ns = DEADLINE_NS,
		.open_exchange = memory_open,
		.exchange_context = &hub,
	};
	/* Its members are aligned for more than malloc() promises. */
	rank->cluster =
		aligned_alloc(_Alignof(struct cluster), sizeof(*rank->cluster));
	assert_non_null(rank->cluster);
	memset(rank->cluster, 0, sizeof(*rank->cluster));
}

static void *run_rank(void *argument)
{
	struct rank_thread *rank = argument;

	rank->error = cluster_run_in(rank->cluster, &rank->config,
				     &rank->cluster_config, &rank->result,
				     &rank->failure);
	return NULL;
}

static void free_rank(struct rank_thread *rank)
{
	struct cluster *cluster = rank->cluster;

	cluster_free(cluster);
	free(cluster);
}

/* What was prepared by configure() and make_inputs(). */
static void run_ranks(const struct job *job)
{
	memory_hub_init(&hub);
	for (unsigned r = 0; r < job->rank_count; r++)
		assert_int_equal(pthread_create(&ranks[r].thread, NULL,
						run_rank, &ranks[r]),
				 0);
	for (unsigned r = 0; r < job->rank_count; r++)
		pthread_join(ranks[r].thread, NULL);
	memory_hub_fini(&hub);
}

static void clean_up(const struct job *job)
{
	for (unsigned r = 0; r < job->rank_count; r++) {
		free_rank(&ranks[r]);
		unlink(ranks[r].input);
		unlink(ranks[r].output);
	}
}

/* All outputs, one after the other; returns the bytes. */
static size_t read_outputs(const struct job *job)
{
	size_t bytes = 0;

	for (unsigned r = 0; r < job->rank_count; r++) {
		FILE *file = fopen(ranks[r].output, "rb");

		assert_non_null(file);
		bytes += fread(got + bytes, 1, sizeof(got) - bytes, file);
		fclose(file);
	}
	return bytes;
}

static void check_outputs(const struct job *job, size_t count)
{
	for (unsigned r = 0; r < job->rank_count; r++)
		if (ranks[r].error)
			fail_msg("rank %u: %s", r, ranks[r].failure.why);
	assert_string_equal(ranks[0].result.transport, "memory");
	count = sort_wanted(count, job->unique);
	assert_int_equal(read_outputs(job), count * RECORD_BYTES);
	for (size_t i = 0; i < count; i++)
		if (memcmp(got + i * RECORD_BYTES, wanted + i * RECORD_BYTES,
			   RECORD_BYTES) != 0)
			fail_msg("record %zu is wrong", i);
}

static void run(const struct job *job)
{
	size_t count;

	for (unsigned r = 0; r < job->rank_count; r++)
		configure(job, r);
	count = make_inputs(job);
	run_ranks(job);
	check_outputs(job, count);
	clean_up(job);
}

/* --- cases ------------------------------------------------------------------
 */

/* With each way to divide keys, and the records sent or references to them. */
static void run_all_ways(enum keys keys)
{
	static const enum splitters_kind kinds[] = { SPLITTERS_AUTO,
						     SPLITTERS_STATIC,
						     SPLITTERS_SAMPLED };

	for (unsigned i = 0; i < ARRAY_LEN(kinds); i++)
		for (unsigned by = 0; by < 4; by++)
			run(&(struct job){
				.keys = keys,
				.rank_count = 2,
				.counts = { RECORDS_MAX, RECORDS_MAX - 7 },
				.splitters = kinds[i],
				.by_reference =
					by % 2 ? CLUSTER_BY_REFERENCE_YES
					       : CLUSTER_BY_REFERENCE_NO,
				.unique = by > 1,
				.threads = 1 + i % 2,
			});
}

static void cluster__uniform_keys(void **state)
{
	(void)state;
	run_all_ways(KEYS_UNIFORM);
}

static void cluster__skewed_keys(void **state)
{
	(void)state;
	run_all_ways(KEYS_SKEWED);
}

static void cluster__few_keys(void **state)
{
	(void)state;
	run_all_ways(KEYS_FEW);
}

static void cluster__equal_keys(void **state)
{
	(void)state;
	run_all_ways(KEYS_EQUAL);
}

/* A rank without records, one that has nearly all, and none that has any. */
static void cluster__parts_of_any_size(void **state)
{
	static const unsigned counts[][RANKS_MAX] = {
		{ 0, 5000, 1 }, { 1, 0, 0 }, { 20000, 3, 3000 }, { 0, 0, 0 }
	};

	(void)state;
	for (unsigned i = 0; i < ARRAY_LEN(counts); i++) {
		struct job job = { .keys = KEYS_FEW,
				   .rank_count = 3,
				   .splitters = SPLITTERS_AUTO,
				   .threads = 1 };

		memcpy(job.counts, counts[i], sizeof(counts[i]));
		run(&job);
	}
}

/* Figures of all ranks: the sum. */
static uint64_t figure(const struct job *job, enum cluster_figure figure)
{
	uint64_t sum = 0;

	for (unsigned r = 0; r < job->rank_count; r++)
		sum += ranks[0].result.reports[r].figures[figure];
	return sum;
}

/* Records that shrink, whatever their keys are: in blocks of which the last one
 * is shorter, or is the only one. */
static void cluster__compressed(void **state)
{
	static const unsigned counts[][RANKS_MAX] = {
		{ 20000, 19993, 9000 }, { 300, 0, 2 }, { 0, 20000, 0 }, { 0 }
	};
	static const struct codec codecs[] = { { CODEC_LZ4, 0 },
					       { CODEC_ZSTD, 3 } };
	struct job job = { .rank_count = 3 };

	(void)state;
	for (unsigned i = 0; i < 2 * 4 * ARRAY_LEN(counts); i++) {
		uint64_t plain_bytes;

		job.codec = codecs[i % 2];
		job.threads = 1 + i % 2;
		job.keys = (enum keys)(i / 2 % 4);
		job.unique = i % 3 == 0;
		memcpy(job.counts, counts[i / 8], sizeof(job.counts));
		run(&job);
		plain_bytes = figure(&job, CLUSTER_PLAIN_BYTES);
		assert_int_equal(ranks[0].result.sending.codec.kind,
				 job.codec.kind);
		if (i / 8 == 0)
			assert_in_range(figure(&job, CLUSTER_RECORDS_IN), 1,
					2 * plain_bytes / RECORD_BYTES);
	}
}

/* Neither references, nor what there is no memory for. */
static void cluster__not_compressed(void **state)
{
	struct job job = { .rank_count = 2,
			   .counts = { 20000, 20000 },
			   .threads = 1,
			   .codec = { CODEC_LZ4, 0 },
			   .by_reference = CLUSTER_BY_REFERENCE_YES };

	(void)state;
	for (unsigned i = 0; i < 2; i++) {
		run(&job);
		assert_int_equal(ranks[0].result.sending.codec.kind,
				 CODEC_NONE);
		assert_int_equal(figure(&job, CLUSTER_PLAIN_BYTES), 0);
		assert_int_equal(ranks[0].result.sort.place, SORT_IN_MEMORY);
		job.by_reference = CLUSTER_BY_REFERENCE_NO;
		job.memory_bytes = 2500000;
	}
}

/* The culprit keeps its own failure, the other rank names the culprit, and no
 * output is there. */
static void check_failed(unsigned culprit, enum exit_status status,
			 const char *path)
{
	const struct rank_thread *failing = &ranks[culprit];
	const struct rank_thread *other = &ranks[1 - culprit];

	assert_int_not_equal(failing->error, 0);
	assert_int_equal(failing->failure.status, status);
	assert_int_not_equal(other->error, 0);
	assert_int_equal(other->failure.status, EXIT_PEER);
	assert_non_null(strstr(other->failure.why, path));
	for (unsigned r = 0; r < 2; r++)
		assert_int_equal(access(ranks[r].output, F_OK), -1);
}

/* Before the hello: an input that is not there. */
static void cluster__no_input(void **state)
{
	const struct job job = { .rank_count = 2,
				 .counts = { 5000, 5000 },
				 .threads = 1 };

	(void)state;
	for (unsigned culprit = 0; culprit < 2; culprit++) {
		for (unsigned r = 0; r < 2; r++)
			configure(&job, r);
		make_inputs(&job);
		unlink(ranks[culprit].input);
		run_ranks(&job);
		check_failed(culprit, EXIT_FILE, ranks[culprit].input);
		clean_up(&job);
	}
}

/* In the middle: an output for which there is no folder. */
static void cluster__no_output(void **state)
{
	const struct job job = { .rank_count = 2,
				 .counts = { 5000, 5000 },
				 .threads = 1 };

	(void)state;
	for (unsigned culprit = 0; culprit < 2; culprit++) {
		for (unsigned r = 0; r < 2; r++)
			configure(&job, r);
		make_inputs(&job);
		snprintf(ranks[culprit].output, sizeof(ranks[culprit].output),
			 "%s/none/out", folder);
		run_ranks(&job);
		check_failed(culprit, EXIT_FILE, ranks[culprit].output);
		clean_up(&job);
	}
}

/* --- ------------------------------------------------------------------------
 */

static int set_up(void **state)
{
	struct failure failure;

	(void)state;
	random_begin();
	snprintf(folder, sizeof(folder), "/tmp/test_cluster.XXXXXX");
	if (!mkdtemp(folder))
		return -1;
	snprintf(key_path, sizeof(key_path), "%s/key", folder);
	return keyfile_create(key_path, &failure);
}

static int tear_down(void **state)
{
	(void)state;
	for (unsigned r = 0; r < RANKS_MAX; r++) {
		unlink(ranks[r].input);
		unlink(ranks[r].output);
	}
	unlink(key_path);
	return rmdir(folder);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(cluster__uniform_keys),
		cmocka_unit_test(cluster__skewed_keys),
		cmocka_unit_test(cluster__few_keys),
		cmocka_unit_test(cluster__equal_keys),
		cmocka_unit_test(cluster__parts_of_any_size),
		cmocka_unit_test(cluster__compressed),
		cmocka_unit_test(cluster__not_compressed),
		cmocka_unit_test(cluster__no_input),
		cmocka_unit_test(cluster__no_output),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
