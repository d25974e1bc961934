/*
 * test_external_sort.c - whole sorts in little memory against a plain stable
 * one
 *
 * The memory is the least that suffices, or a little more, so that records are
 * spilled.  Failures are pretended: the program's calls go to the __wrap_
 * functions below.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <liburing.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "descriptors.h"
#include "external/external_plan.h"
#include "external/external_sort.h"
#include "io/scratch.h"
#include "io/write_queue.h"
#include "random_shape.h"
#include "record/checksum.h"

#define FILES_MAX 3
#define BYTES_MAX (24 * MIB)
#define RECORDS_MAX 400000
#define DIRECTORIES 2
/* More than there are staging slots of the two sinks. */
#define LATE_MAX 256
/* A run that hangs is ended after so many seconds. */
#define HANGS_SECONDS 300
/* Of the calls of a kind, about twice as many are made to fail. */
#define TRIES 8

static const char *const inputs[FILES_MAX] = { "in0", "in1", "in2" };
static const char *const outputs[FILES_MAX] = { "out0", "out1", "out2" };

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

/* --- what is pretended ------------------------------------------------------
 */

enum call {
	CALL_NONE,
	CALL_PREAD,
	CALL_PWRITE,
	CALL_URING, /* a read or write that the ring gets */
	CALL_SUBMIT,
	CALL_FALLOCATE,
	CALL_MALLOC, /* and its relatives */
	CALL_MMAP,
	CALL_THREAD,
	CALLS
};

static struct {
	enum call call;
	unsigned nth; /* of these calls, from 1 on */
	bool for_ever;
	int error;
	_Atomic unsigned count;
	bool no_ring;
	bool late; /* writes */
	/* Of the places that are taken in scratch files: the nth is the first
	 * for which directory 0 is full, and all are if all_full. */
	unsigned full_at;
	bool all_full;
	unsigned taken;
	int full_fds[DIRECTORIES];
	/* The nth piece that is written gets a bit flipped, of this byte. */
	unsigned flip_at;
	uint32_t flip_byte;
	unsigned written;
} pretend;

ssize_t __real_pread(int fd, void *buffer, size_t bytes, off_t offset);
ssize_t __wrap_pread(int fd, void *buffer, size_t bytes, off_t offset);
ssize_t __real_pwrite(int fd, const void *buffer, size_t bytes, off_t offset);
ssize_t __wrap_pwrite(int fd, const void *buffer, size_t bytes, off_t offset);
int __real_fallocate(int fd, int mode, off_t offset, off_t length);
int __wrap_fallocate(int fd, int mode, off_t offset, off_t length);
int __real_io_uring_queue_init(unsigned entries, struct io_uring *ring,
			       unsigned flags);
int __wrap_io_uring_queue_init(unsigned entries, struct io_uring *ring,
			       unsigned flags);
int __real_io_uring_submit(struct io_uring *ring);
int __wrap_io_uring_submit(struct io_uring *ring);
void *__real_malloc(size_t bytes);
void *__wrap_malloc(size_t bytes);
void *__real_calloc(size_t count, size_t bytes);
void *__wrap_calloc(size_t count, size_t bytes);
void *__real_realloc(void *memory, size_t bytes);
void *__wrap_realloc(void *memory, size_t bytes);
void *__real_aligned_alloc(size_t align, size_t bytes);
void *__wrap_aligned_alloc(size_t align, size_t bytes);
void *__real_mmap(void *address, size_t bytes, int access, int flags, int fd,
		  off_t offset);
void *__wrap_mmap(void *address, size_t bytes, int access, int flags, int fd,
		  off_t offset);
int __real_pthread_create(pthread_t *thread, const pthread_attr_t *attributes,
			  void *(*run)(void *), void *argument);
int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attributes,
			  void *(*run)(void *), void *argument);
int __real_scratch_take(struct scratch *scratch, uint64_t bytes,
			struct scratch_place *place, struct failure *why);
int __wrap_scratch_take(struct scratch *scratch, uint64_t bytes,
			struct scratch_place *place, struct failure *why);
bool __real_write_queue_submit(struct write_queue *queue, int fd,
			       const uint8_t *bytes, uint32_t length_bytes,
			       uint64_t offset_bytes, void *tag);
bool __wrap_write_queue_submit(struct write_queue *queue, int fd,
			       const uint8_t *bytes, uint32_t length_bytes,
			       uint64_t offset_bytes, void *tag);
void *__real_write_queue_reap(struct write_queue *queue, int *written);
void *__wrap_write_queue_reap(struct write_queue *queue, int *written);
void __real_scratch_written(struct scratch *scratch,
			    const struct scratch_place *place, uint64_t bytes);
void __wrap_scratch_written(struct scratch *scratch,
			    const struct scratch_place *place, uint64_t bytes);

static bool fails(enum call call)
{
	unsigned number;

	if (pretend.call != call)
		return false;
	number = atomic_fetch_add(&pretend.count, 1) + 1;
	if (number < pretend.nth || (number > pretend.nth && !pretend.for_ever))
		return false;
	errno = pretend.error;
	return true;
}

ssize_t __wrap_pread(int fd, void *buffer, size_t bytes, off_t offset)
{
	return fails(CALL_PREAD) ? -1 : __real_pread(fd, buffer, bytes, offset);
}

static bool is_full(int fd)
{
	for (unsigned d = 0; d < DIRECTORIES; d++)
		if (pretend.full_fds[d] == fd && fd > 0)
			return true;
	return false;
}

ssize_t __wrap_pwrite(int fd, const void *buffer, size_t bytes, off_t offset)
{
	if (fails(CALL_PWRITE))
		return -1;
	if (!is_full(fd))
		return __real_pwrite(fd, buffer, bytes, offset);
	errno = ENOSPC;
	return -1;
}

int __wrap_fallocate(int fd, int mode, off_t offset, off_t length)
{
	return fails(CALL_FALLOCATE)
		       ? -1
		       : __real_fallocate(fd, mode, offset, length);
}

int __wrap_io_uring_queue_init(unsigned entries, struct io_uring *ring,
			       unsigned flags)
{
	return pretend.no_ring
		       ? -ENOSYS
		       : __real_io_uring_queue_init(entries, ring, flags);
}

/* What fails in the ring gets a bad descriptor. */
int __wrap_io_uring_submit(struct io_uring *ring)
{
	struct io_uring_sq *queue = &ring->sq;

	if (fails(CALL_SUBMIT))
		return -pretend.error;
	for (unsigned i = queue->sqe_head; i != queue->sqe_tail; i++)
		if (fails(CALL_URING))
			queue->sqes[i & (*queue->kring_entries - 1)].fd = -1;
	return __real_io_uring_submit(ring);
}

void *__wrap_malloc(size_t bytes)
{
	return fails(CALL_MALLOC) ? NULL : __real_malloc(bytes);
}

void *__wrap_calloc(size_t count, size_t bytes)
{
	return fails(CALL_MALLOC) ? NULL : __real_calloc(count, bytes);
}

void *__wrap_realloc(void *memory, size_t bytes)
{
	return fails(CALL_MALLOC) ? NULL : __real_realloc(memory, bytes);
}

void *__wrap_aligned_alloc(size_t align, size_t bytes)
{
	return fails(CALL_MALLOC) ? NULL : __real_aligned_alloc(align, bytes);
}

void *__wrap_mmap(void *address, size_t bytes, int access, int flags, int fd,
		  off_t offset)
{
	return fails(CALL_MMAP)
		       ? MAP_FAILED
		       : __real_mmap(address, bytes, access, flags, fd, offset);
}

int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attributes,
			  void *(*run)(void *), void *argument)
{
	return fails(CALL_THREAD) ? pretend.error
				  : __real_pthread_create(thread, attributes,
							  run, argument);
}

/* The sink's lock guards what these two count. */
int __wrap_scratch_take(struct scratch *scratch, uint64_t bytes,
			struct scratch_place *place, struct failure *why)
{
	if (++pretend.taken == pretend.full_at)
		for (unsigned d = 0; d < (pretend.all_full ? DIRECTORIES : 1);
		     d++)
			pretend.full_fds[d] = scratch_plain_fd(scratch, d);
	return __real_scratch_take(scratch, bytes, place, why);
}

void __wrap_scratch_written(struct scratch *scratch,
			    const struct scratch_place *place, uint64_t bytes)
{
	int fd = scratch_plain_fd(scratch, place->directory);
	off_t offset = (off_t)(place->offset_bytes + pretend.flip_byte);
	uint8_t byte;

	if (++pretend.written == pretend.flip_at &&
	    __real_pread(fd, &byte, 1, offset) == 1) {
		byte ^= 0x10;
		if (__real_pwrite(fd, &byte, 1, offset) != 1)
			pretend.flip_at = 0;
	}
	__real_scratch_written(scratch, place, bytes);
}

/* Late writes happen when they are waited for, and not before. */
static struct late_write {
	const struct write_queue *queue; /* NULL: unused */
	int fd;
	const uint8_t *bytes;
	uint32_t length_bytes;
	off_t offset;
	void *tag;
} late_writes[LATE_MAX];
static pthread_mutex_t late_lock = PTHREAD_MUTEX_INITIALIZER;

bool __wrap_write_queue_submit(struct write_queue *queue, int fd,
			       const uint8_t *bytes, uint32_t length_bytes,
			       uint64_t offset_bytes, void *tag)
{
	struct late_write *late = late_writes;

	if (!pretend.late)
		return __real_write_queue_submit(queue, fd, bytes, length_bytes,
						 offset_bytes, tag);
	pthread_mutex_lock(&late_lock);
	while (late->queue)
		late++;
	*late = (struct late_write){
		queue, fd, bytes, length_bytes, (off_t)offset_bytes, tag
	};
	pthread_mutex_unlock(&late_lock);
	queue->in_flight++;
	return true;
}

void *__wrap_write_queue_reap(struct write_queue *queue, int *written)
{
	struct late_write *late = late_writes, found;

	if (!pretend.late)
		return __real_write_queue_reap(queue, written);
	pthread_mutex_lock(&late_lock);
	while (late->queue != queue)
		late++;
	found = *late;
	late->queue = NULL;
	pthread_mutex_unlock(&late_lock);
	*written = (int)__real_pwrite(found.fd, found.bytes, found.length_bytes,
				      found.offset);
	queue->in_flight--;
	return found.tag;
}

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

static void make_key(uint8_t *key, uint32_t length, enum keys keys,
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
static void make_records(enum keys keys, uint32_t count)
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

static void write_file(const char *path, const uint8_t *bytes, size_t count)
{
	FILE *stream = fopen(path, "w");

	assert_non_null(stream);
	assert_int_equal(fwrite(bytes, 1, count, stream), count);
	assert_int_equal(fclose(stream), 0);
}

/* Cut anywhere between records; parts may be empty. */
static void write_inputs(void)
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
static size_t read_outputs(void)
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

static unsigned count_entries(const char *path)
{
	DIR *stream = opendir(path);
	unsigned count = 0;

	assert_non_null(stream);
	while (readdir(stream))
		count++;
	closedir(stream);
	return count - 2;
}

static void remove_outputs(void)
{
	for (unsigned i = 0; i < FILES_MAX; i++)
		unlink(outputs[i]);
}

/* --- one sort ---------------------------------------------------------------
 */

static void plain_config(uint32_t record_size, unsigned threads)
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

/* The least that suffices for the records. */
static void set_least_memory(void)
{
	const struct external_request request = {
		.shape = sort.shape,
		.record_count = record_count,
		.worker_count = sort.threads,
		.runs_max = config.runs_max,
		.sums_up = sort.checksum,
	};

	sort.memory_bytes = external_plan_memory_min(&request);
}

static int run(void)
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
static bool is_dropped(uint32_t i)
{
	return sort.unique && i > 0 &&
	       record_compare(&sort.shape,
			      records + (size_t)order[i - 1] * sort.shape.size,
			      records + (size_t)order[i] * sort.shape.size) ==
		       0;
}

static void check_output(void)
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
	if (sort.checksum)
		assert_true(result.checksum ==
			    checksum_scalar(output, size, kept));
	remove_outputs();
}

static void check_sort(void)
{
	unsigned descriptors = open_descriptors();

	if (run() != 0)
		fail_msg("%s: %s (SEED=%llu)", failure.what ? failure.what : "",
			 failure.why, (unsigned long long)seed);
	check_output();
	assert_int_equal(open_descriptors(), descriptors);
}

/* --- exact ------------------------------------------------------------------
 */

static uint32_t count_of_bytes(size_t bytes, uint32_t record_size)
{
	return (uint32_t)MIN(bytes / record_size, RECORDS_MAX);
}

static void external_sort__sizes_and_threads(void **state)
{
	static const uint32_t sizes[] = { 1, 7, 100, 4096, 1 << 20 };

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
	for (unsigned turn = 0; turn < 40; turn++) {
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
	assert_true(spilled > 10);
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

/* However it failed, the reason is told; and if it did not, the output is
 * exact. */
static void check_faulty(bool must_survive)
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
static void fail_each(enum call call, int error, bool for_ever,
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

/* The second directory takes over, at whatever piece. */
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
		/* Each piece has a record at least. */
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

/* --- a fresh folder ---------------------------------------------------------
 */

static int setup(void **state)
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

static int teardown(void **state)
{
	char command[192];

	(void)state;
	memset(&pretend, 0, sizeof(pretend));
	assert_int_equal(fchdir(root_fd), 0);
	snprintf(command, sizeof(command), "rm -rf '%s' '%s'", folder,
		 scratch_folder);
	return system(command);
}

static int make_memory(void **state)
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

static int free_memory(void **state)
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(external_sort__sizes_and_threads),
		TEST(external_sort__random),
		TEST(external_sort__few_records),
		TEST(external_sort__two_runs_at_a_time),
		TEST(external_sort__late_writes),
		TEST(external_sort__refuses_too_little_memory),
		TEST(external_sort__reads_and_writes_fail),
		TEST(external_sort__ring_fails),
		TEST(external_sort__resources_fail),
		TEST(external_sort__one_directory_full),
		TEST(external_sort__all_directories_full),
		TEST(external_sort__flipped_bit),
	};

	random_begin();
	return cmocka_run_group_tests(tests, make_memory, free_memory);
}
