/*
 * bench_kernels.c - what a record costs in each kernel
 *
 * USAGE: bench_kernels [--json] [--file PATH] [NAME...]
 *
 * NAME: local_sort, counts (local_sort by count), partition, gather, checksum,
 * crc32c, generator, libdeflate, isal; all of them if none is given.  The last
 * two are the CRC-32 of libdeflate (Debian: libdeflate0) and the CRC-32C of
 * ISA-L (libisal2) on the work of checksum and crc32c; they are loaded at run
 * time, and left out with a message where they are not installed or the program
 * is static (build/dyn has one that is not).  A line each: kernel, level,
 * variant, threads, median and minimum of the rounds in ns per entry, record or
 * piece.  Levels take turns within a round, so that a machine that drifts
 * treats them alike. Threads time themselves between two barriers; the round's
 * figure is the slowest one's time over all their entries.
 *
 * partition, gather and checksum read 100 MB in huge pages, or with --file the
 * first 100 MB of that file, mapped.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/base.h"
#include "record/checksum.h"
#include "base/clock.h"
#include "base/cpu.h"
#include "base/splitmix.h"
#include "kernels/crc32c.h"
#include "kernels/gather.h"
#include "record/generator.h"
#include "kernels/local_sort.h"
#include "sort/partition.h"

#define RECORD_COUNT 1000000
#define RECORD_BYTES 100
#define INDEX_BITS 20
#define THREADS_MAX 2
#define ROUNDS 15
/* As the sorter: one slot of staging at a time, reused. */
#define STAGING_RECORDS 20480
/* Pieces to be summed: again and again, as if they had just been copied. */
#define CRC32C_BYTES (64 * KIB)
/* As a million records have them; a piece as the sorter takes one. */
#define BUCKETS 9615
#define PIECE_RECORDS 20971
/* As a bucket leaves the partition: out of L1, in L2. */
#define SORT_BATCH_ENTRIES 65536

struct trial;
typedef void trial_fn(const struct trial *trial, unsigned thread);

/* One thing to be timed. */
struct trial {
	const char *kernel;
	char variant[24];
	enum cpu_level level;
	unsigned threads;
	trial_fn *run;
	trial_fn *prepare; /* before each round, not timed; may be NULL */
	size_t count;	   /* entries of a bucket, bytes of a piece */
	uint64_t units;	   /* entries, records, pieces of one thread's run */
	double ns[ROUNDS];
};

static uint8_t *records;
static uint64_t *shuffled; /* entries, [RECORD_COUNT] */
static uint64_t *batch[THREADS_MAX];
static uint8_t *staging[THREADS_MAX];
static struct bucket_pool pool;
static struct bucket_writer writers[THREADS_MAX];
static struct splitters splitters;
static uint64_t sink;
static bool json;

static uint64_t random_next(void)
{
	static uint64_t state = 1;

	return splitmix_next(&state);
}

static void *huge_map(size_t bytes)
{
	void *map;

	bytes = ROUND_UP(bytes, HUGE_PAGE_BYTES) + HUGE_PAGE_BYTES;
	map = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
		   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (map == MAP_FAILED) {
		perror("bench_kernels: mmap");
		exit(EXIT_FAILURE);
	}
	map = (void *)ROUND_UP((uintptr_t)map, HUGE_PAGE_BYTES);
	madvise(map, bytes - HUGE_PAGE_BYTES, MADV_HUGEPAGE);
	return map;
}

static uint8_t *file_map(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	void *map;

	if (fd < 0 || lseek(fd, 0, SEEK_END) < RECORD_COUNT * RECORD_BYTES) {
		fprintf(stderr, "bench_kernels: %s: no 100 MB there\n", path);
		exit(EXIT_FAILURE);
	}
	map = mmap(NULL, RECORD_COUNT * RECORD_BYTES, PROT_READ,
		   MAP_SHARED | MAP_POPULATE, fd, 0);
	if (map == MAP_FAILED) {
		perror("bench_kernels: mmap");
		exit(EXIT_FAILURE);
	}
	close(fd);
	return map;
}

static void data_prepare(const char *path)
{
	static const struct generator_kind kind = { .ascii = false };

	if (path) {
		records = file_map(path);
	} else {
		records = huge_map(RECORD_COUNT * RECORD_BYTES);
		generator_fill(&kind, 0, records, RECORD_COUNT);
	}
	shuffled = huge_map(RECORD_COUNT * sizeof(*shuffled));
	for (uint64_t i = 0; i < RECORD_COUNT; i++) {
		uint64_t other = random_next() % (i + 1);
		uint64_t index = other == i ? i : shuffled[other];

		shuffled[other] = i;
		shuffled[i] = index;
	}
	for (size_t i = 0; i < RECORD_COUNT; i++)
		shuffled[i] |= random_next() << INDEX_BITS;
	for (unsigned thread = 0; thread < THREADS_MAX; thread++) {
		batch[thread] = huge_map(SORT_BATCH_ENTRIES * 8);
		staging[thread] = huge_map(STAGING_RECORDS * RECORD_BYTES);
		memset(staging[thread], 1, STAGING_RECORDS * RECORD_BYTES);
	}
}

static void prepare_batch(const struct trial *trial, unsigned thread)
{
	(void)trial;
	memcpy(batch[thread], shuffled + thread * (RECORD_COUNT / THREADS_MAX),
	       SORT_BATCH_ENTRIES * sizeof(**batch));
}

static void run_local_sort(const struct trial *trial, unsigned thread)
{
	local_sort_fn *sort = local_sort_kernel(trial->level);

	for (size_t start = 0; start < trial->units; start += trial->count)
		sort(batch[thread] + start,
		     MIN(trial->count, trial->units - start));
}

/*
 * Buckets of one mean as random keys fill them: the standard deviation is the
 * square root of the mean; a sum of 12 random bits has one of 1.73.
 */
static void run_local_sort_mixed(const struct trial *trial, unsigned thread)
{
	local_sort_fn *sort = local_sort_kernel(trial->level);
	uint64_t *entries = batch[thread];
	uint64_t *end = entries + trial->units;
	size_t spread = 1;
	uint64_t random = 88172645463325252 + thread;

	while ((spread + 1) * (spread + 1) * 3 <= trial->count)
		spread++;
	while (entries < end) {
		size_t bits, count;

		random ^= random << 13;
		random ^= random >> 7;
		random ^= random << 17;
		bits = (size_t)__builtin_popcount(random & 0xfff);
		count = trial->count + bits * spread - 6 * spread;
		count = MIN(count, (size_t)(end - entries));
		sort(entries, count);
		entries += count;
	}
}

static void run_gather(const struct trial *trial, unsigned thread)
{
	gather_fn *gather = gather_kernel(trial->level, RECORD_BYTES);
	const uint64_t *entries = shuffled + thread * trial->units;

	for (uint64_t i = 0; i < trial->units; i += STAGING_RECORDS)
		gather(staging[thread], records, RECORD_BYTES, entries + i,
		       MIN(STAGING_RECORDS, trial->units - i),
		       ((uint64_t)1 << INDEX_BITS) - 1);
}

static void prepare_lists(const struct trial *trial, unsigned thread)
{
	(void)trial;
	if (thread == 0)
		bucket_pool_reset(&pool);
	bucket_writer_reset(&writers[thread], BUCKETS);
}

static void run_partition(const struct trial *trial, unsigned thread)
{
	static const struct record_shape shape = RECORD_SHAPE_OF_SLICE(
		RECORD_BYTES, 0, RECORD_KEY_LENGTH_DEFAULT);
	uint64_t first = thread * trial->units;
	uint64_t end = first + trial->units;

	for (; first < end; first += PIECE_RECORDS)
		partition_records(&writers[thread], trial->level, &splitters,
				  &shape, INDEX_BITS,
				  records + first * RECORD_BYTES, first,
				  MIN(PIECE_RECORDS, end - first));
}

static void run_checksum(const struct trial *trial, unsigned thread)
{
	checksum_fn *checksum = checksum_kernel(trial->level, RECORD_BYTES);
	uint64_t sum = checksum(records + thread * trial->units * RECORD_BYTES,
				RECORD_BYTES, trial->units);

	__atomic_fetch_xor(&sink, sum, __ATOMIC_RELAXED);
}

static void run_crc32c(const struct trial *trial, unsigned thread)
{
	crc32c_fn *crc32c = crc32c_kernel(trial->level);
	const size_t pieces = CRC32C_BYTES / trial->count;
	uint32_t crc = 0;

	for (uint64_t i = 0; i < trial->units; i++)
		crc ^= crc32c(thread,
			      staging[thread] + i % pieces * trial->count,
			      trial->count);
	__atomic_fetch_xor(&sink, crc, __ATOMIC_RELAXED);
}

static void run_generator(const struct trial *trial, unsigned thread)
{
	const struct generator_kind kind = { .ascii = trial->count };

	for (uint64_t i = 0; i < trial->units; i += STAGING_RECORDS)
		generator_fill(&kind, thread * trial->units + i,
			       staging[thread],
			       MIN(STAGING_RECORDS, trial->units - i));
}

struct member {
	const struct trial *trial;
	unsigned thread;
	pthread_barrier_t *barrier;
	uint64_t elapsed_ns;
};

static void *member_run(void *context)
{
	struct member *member = context;
	const struct trial *trial = member->trial;
	cpu_set_t cpus;
	uint64_t start_ns;

	CPU_ZERO(&cpus);
	CPU_SET(member->thread, &cpus);
	sched_setaffinity(0, sizeof(cpus), &cpus);
	if (trial->prepare)
		trial->prepare(trial, member->thread);
	pthread_barrier_wait(member->barrier);
	start_ns = clock_now_ns();
	trial->run(trial, member->thread);
	member->elapsed_ns = clock_now_ns() - start_ns;
	return NULL;
}

/* ns per unit of all threads together */
static double trial_round(const struct trial *trial)
{
	struct member members[THREADS_MAX];
	pthread_t threads[THREADS_MAX];
	pthread_barrier_t barrier;
	uint64_t slowest_ns = 0;

	pthread_barrier_init(&barrier, NULL, trial->threads);
	for (unsigned i = 0; i < trial->threads; i++) {
		members[i] = (struct member){ .trial = trial,
					      .thread = i,
					      .barrier = &barrier };
		errno = pthread_create(&threads[i], NULL, member_run,
				       &members[i]);
		if (errno) {
			perror("bench_kernels: pthread_create");
			exit(EXIT_FAILURE);
		}
	}
	for (unsigned i = 0; i < trial->threads; i++) {
		pthread_join(threads[i], NULL);
		slowest_ns = MAX(slowest_ns, members[i].elapsed_ns);
	}
	pthread_barrier_destroy(&barrier);
	return (double)slowest_ns / (double)(trial->units * trial->threads);
}

static int compare_doubles(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static void trial_report(struct trial *trial)
{
	const char *format = "%-10s %-7s %-12s %u thread%s  %7.2f  %7.2f\n";

	qsort(trial->ns, ROUNDS, sizeof(*trial->ns), compare_doubles);
	if (json)
		printf("{\"kernel\": \"%s\", \"level\": \"%s\", "
		       "\"variant\": \"%s\", \"threads\": %u, "
		       "\"median_ns\": %.3f, \"min_ns\": %.3f}\n",
		       trial->kernel, cpu_level_names[trial->level],
		       trial->variant, trial->threads, trial->ns[ROUNDS / 2],
		       trial->ns[0]);
	else
		printf(format, trial->kernel, cpu_level_names[trial->level],
		       trial->variant, trial->threads,
		       trial->threads == 1 ? " " : "s", trial->ns[ROUNDS / 2],
		       trial->ns[0]);
}

/* Time this trial at every level and with one thread and two. */
static void trial_compare(const struct trial *trial, bool all_levels,
			  bool all_threads)
{
	struct trial turns[CPU_LEVELS * THREADS_MAX];
	unsigned turn_count = 0;
	int best = (int)cpu_level_detect();

	for (int level = all_levels ? CPU_SCALAR : best; level <= best; level++)
		for (unsigned n = 1; n <= (all_threads ? THREADS_MAX : 1);
		     n++) {
			turns[turn_count] = *trial;
			turns[turn_count].level = level;
			turns[turn_count++].threads = n;
		}
	for (unsigned round = 0; round < ROUNDS; round++)
		for (unsigned i = 0; i < turn_count; i++)
			turns[i].ns[round] = trial_round(&turns[i]);
	for (unsigned i = 0; i < turn_count; i++)
		trial_report(&turns[i]);
}

static void bench_local_sort(void)
{
	static const size_t means[] = { 64, 100, 120, 180, 244, 400, 1000 };

	for (size_t i = 0; i < ARRAY_LEN(means); i++) {
		struct trial trial = { .kernel = "local_sort",
				       .run = run_local_sort_mixed,
				       .prepare = prepare_batch,
				       .count = means[i],
				       .units = SORT_BATCH_ENTRIES };

		snprintf(trial.variant, sizeof(trial.variant), "mean %zu",
			 means[i]);
		trial_compare(&trial, true, false);
	}
}

static void bench_counts(void)
{
	for (size_t count = 1; count <= 300; count += count < 8 ? 1 : 4) {
		struct trial trial = { .kernel = "local_sort",
				       .run = run_local_sort,
				       .prepare = prepare_batch,
				       .count = count,
				       .units = SORT_BATCH_ENTRIES };

		snprintf(trial.variant, sizeof(trial.variant), "count %zu",
			 count);
		trial_compare(&trial, true, false);
	}
}

static void bench_partition(void)
{
	struct trial trial = { .kernel = "partition",
			       .variant = "100 bytes",
			       .run = run_partition,
			       .prepare = prepare_lists,
			       .units = RECORD_COUNT / THREADS_MAX };
	uint64_t blocks =
		buckets_blocks_needed(RECORD_COUNT, BUCKETS, THREADS_MAX);

	splitters_init_static(&splitters, SPLITTERS_STATIC_256, BUCKETS);
	pool.block_count = (uint32_t)blocks;
	pool.entries = huge_map(blocks * BUCKETS_BLOCK_ENTRIES * 8);
	memset(pool.entries, 0, blocks * BUCKETS_BLOCK_ENTRIES * 8);
	pool.owners = huge_map(blocks * sizeof(*pool.owners));
	pool.next_grant = huge_map(blocks / BUCKETS_GRANT_BLOCKS *
				   sizeof(*pool.next_grant));
	for (unsigned i = 0; i < THREADS_MAX; i++) {
		writers[i].pool = &pool;
		writers[i].cursors =
			huge_map(BUCKETS * sizeof(*writers[i].cursors));
		writers[i].lists =
			huge_map(BUCKETS * sizeof(*writers[i].lists));
	}
	trial_compare(&trial, true, true);
}

static void bench_gather(void)
{
	struct trial trial = { .kernel = "gather",
			       .variant = "100 bytes",
			       .run = run_gather,
			       .units = RECORD_COUNT / THREADS_MAX };

	trial_compare(&trial, true, true);
}

static void bench_checksum(void)
{
	struct trial trial = { .kernel = "checksum",
			       .variant = "100 bytes",
			       .run = run_checksum,
			       .units = RECORD_COUNT / THREADS_MAX };

	trial_compare(&trial, true, true);
}

/* A segment of Ethernet's usual size, and a batch of them as one. */
static void bench_crc32c(void)
{
	static const size_t lengths[] = { 1440, CRC32C_BYTES };

	for (size_t i = 0; i < ARRAY_LEN(lengths); i++) {
		struct trial trial = { .kernel = "crc32c",
				       .run = run_crc32c,
				       .count = lengths[i],
				       .units = 64 * MIB / lengths[i] };

		snprintf(trial.variant, sizeof(trial.variant), "%zu bytes",
			 lengths[i]);
		trial_compare(&trial, true, true);
	}
}

/* --- libraries ------------------------------------------------------------ */

static uint32_t (*libdeflate_crc)(uint32_t crc, const void *bytes,
				  size_t count);
static unsigned (*isal_crc)(unsigned char *bytes, int count, unsigned crc);

/* Set *function, a pointer to a function, to NAME of the library; false, after
 * saying so, if it cannot be loaded. */
static bool load_function(const char *library, const char *name, void *function)
{
	void *handle = dlopen(library, RTLD_NOW);
	void *symbol = handle ? dlsym(handle, name) : NULL;

	if (!symbol) {
		fprintf(stderr, "bench_kernels: %s: cannot be loaded\n",
			library);
		return false;
	}
	memcpy(function, &symbol, sizeof(symbol));
	return true;
}

/* The sum of the records' CRC-32s, as checksum.h defines it. */
static void run_libdeflate(const struct trial *trial, unsigned thread)
{
	const uint8_t *record = records + thread * trial->units * RECORD_BYTES;
	uint64_t sum = 0;

	for (uint64_t i = 0; i < trial->units; i++, record += RECORD_BYTES)
		sum += libdeflate_crc(0, record, RECORD_BYTES);
	__atomic_fetch_xor(&sink, sum, __ATOMIC_RELAXED);
}

static void bench_libdeflate(void)
{
	struct trial trial = { .kernel = "libdeflate",
			       .variant = "100 bytes",
			       .run = run_libdeflate,
			       .units = RECORD_COUNT / THREADS_MAX };

	if (!load_function("libdeflate.so.0", "libdeflate_crc32",
			   &libdeflate_crc))
		return;
	/* Two ways to the same sum; a wrong one is not worth timing. */
	if (libdeflate_crc(0, records, RECORD_BYTES) !=
	    checksum_scalar(records, RECORD_BYTES, 1)) {
		fprintf(stderr, "bench_kernels: libdeflate: another CRC\n");
		exit(1);
	}
	trial_compare(&trial, false, true);
}

static void run_isal(const struct trial *trial, unsigned thread)
{
	const size_t pieces = CRC32C_BYTES / trial->count;
	uint32_t crc = 0;

	for (uint64_t i = 0; i < trial->units; i++)
		crc ^= isal_crc(staging[thread] + i % pieces * trial->count,
				(int)trial->count, thread);
	__atomic_fetch_xor(&sink, crc, __ATOMIC_RELAXED);
}

static void bench_isal(void)
{
	static const size_t lengths[] = { 1440, CRC32C_BYTES };

	if (!load_function("libisal.so.2", "crc32_iscsi", &isal_crc))
		return;
	if (isal_crc(staging[0], 1440, 1) !=
	    crc32c_scalar(1, staging[0], 1440)) {
		fprintf(stderr, "bench_kernels: ISA-L: another CRC\n");
		exit(1);
	}
	for (size_t i = 0; i < ARRAY_LEN(lengths); i++) {
		struct trial trial = { .kernel = "isal",
				       .run = run_isal,
				       .count = lengths[i],
				       .units = 64 * MIB / lengths[i] };

		snprintf(trial.variant, sizeof(trial.variant), "%zu bytes",
			 lengths[i]);
		trial_compare(&trial, false, true);
	}
}

static void bench_generator(void)
{
	struct trial trial = { .kernel = "generator",
			       .variant = "binary",
			       .run = run_generator,
			       .units = RECORD_COUNT / THREADS_MAX };

	trial_compare(&trial, false, true);
	trial.count = 1;
	strcpy(trial.variant, "ascii");
	trial_compare(&trial, false, true);
}

static const struct {
	const char *name;
	void (*run)(void);
} benches[] = {
	{ "local_sort", bench_local_sort },
	{ "counts", bench_counts },
	{ "partition", bench_partition },
	{ "gather", bench_gather },
	{ "checksum", bench_checksum },
	{ "crc32c", bench_crc32c },
	{ "generator", bench_generator },
	{ "libdeflate", bench_libdeflate },
	{ "isal", bench_isal },
};

static int run_named(const char *name)
{
	for (size_t i = 0; i < ARRAY_LEN(benches); i++) {
		if (!strcmp(name, benches[i].name)) {
			benches[i].run();
			return 0;
		}
	}
	fprintf(stderr, "bench_kernels: no kernel %s\n", name);
	return -EINVAL;
}

int main(int argc, char **argv)
{
	const char *path = NULL;
	int arg = 1;

	for (; arg < argc && !strncmp(argv[arg], "--", 2); arg++) {
		if (!strcmp(argv[arg], "--json")) {
			json = true;
		} else if (!strcmp(argv[arg], "--file") && arg + 1 < argc) {
			path = argv[++arg];
		} else {
			fputs("usage: bench_kernels [--json] [--file PATH] "
			      "[NAME...]\n",
			      stderr);
			return 2;
		}
	}
	setvbuf(stdout, NULL, _IOLBF, 0);
	data_prepare(path);
	if (!json)
		puts("kernel     level   variant      threads    median      "
		     "min  ns each");
	if (arg == argc)
		for (size_t i = 0; i < ARRAY_LEN(benches); i++)
			benches[i].run();
	for (; arg < argc; arg++)
		if (run_named(argv[arg]))
			return 2;
	return EXIT_SUCCESS;
}
