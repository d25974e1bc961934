/*
 * validation.c - reads the parts of a sorted output and checks all records
 *
 * The parts are cut into segments; each thread takes the next segment, checks
 * it piece by piece, including the order at its beginning unless the part
 * begins there, and adds what it finds to the part's tally.  These tallies,
 * added up in order, are that of the whole.  The inputs that the parts are
 * compared with are cut and read the same way, for their checksum only.  A
 * stream is one segment, whose pieces the threads take turns to read.
 */
#include "programs/blinkval/validation.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/base.h"
#include "base/cpu.h"
#include "base/first_failure.h"
#include "base/progress.h"
#include "io/direct.h"
#include "programs/blinkval/part.h"
#include "system/descriptors.h"
#include "system/thread_pool.h"
#include "system/topology.h"

/*
 * Bytes that are read and then checked at a time, if at least one record fits:
 * 400 KiB, 4096 records of the benchmark, stay in the L2 cache of one CPU until
 * they are checked.  Reading was faster than mapping the files (100 MB in 13.4
 * ms against 15.3), and a file that another process cuts short is an error of
 * read(2), not a signal.  Files that are read past the page cache want larger
 * pieces.
 */
#define PIECE_BYTES (400 * KIB)
/* The record before a segment is read once more.  From 1.6 GB on, a segment
 * holds more than a piece. */
#define SEGMENTS_MAX 4096
/* Threads that take part in reading a stream: one reads, and a pipe brings less
 * than three of them can check. */
#define STREAM_THREADS 4

/* What a thread reads into. */
struct staging {
	uint8_t *window;  /* room for a piece and PART_WINDOW_EXTRA_BYTES */
	uint8_t *records; /* a piece, in the window */
	uint8_t *before;  /* the record before them in the part */
	bool has_before;
};

struct validation {
	struct validator validator;
	struct part *parts; /* those of the output, then the inputs */
	unsigned part_count;
	unsigned stream_count;
	bool has_device;       /* one is a block device */
	bool has_direct;       /* one is read past the page cache */
	uint64_t record_count; /* without streams */
	uint64_t piece_records;
	size_t piece_bytes;
	size_t window_bytes;
	uint64_t segment_records; /* of each but the last of a part */
	uint64_t segment_count;
	/* The last record of all parts of a head that is compared with inputs;
	 * else NULL. */
	uint8_t *last_record;
	pthread_mutex_t adding;
	/* By last_record: the parts; the inputs.  Written with `adding` held,
	 * as the tallies of the parts are. */
	struct validator_split splits[2];
	uint8_t *staging;     /* of each thread, and for last_record */
	size_t staging_bytes; /* a window and the record before */
	struct progress progress;
	_Alignas(CACHE_PAIR_BYTES) _Atomic uint64_t next_segment;
	struct first_failure failure; /* any thread notes its own */
};

/* --- parts: the files ----------------------------------------------------- */

static int open_part(struct validation *v, const char *path, bool is_input,
		     const struct sorter_config *sort, struct failure *failure)
{
	struct part *part = &v->parts[v->part_count++];
	const struct input_layout layout = {
		.record_size = sort->shape.size,
		.device_bytes = sort->device_bytes,
		.header_bytes = is_input || !sort->drops_header
					? sort->header_bytes
					: 0,
		.keeps_header = !sort->drops_header,
	};
	int ret = part_open(part, path, is_input, &layout, failure);

	v->has_device |= part->is_device;
	v->stream_count += part->is_stream;
	v->has_direct |= part->direct_fd >= 0;
	v->record_count += part->record_count;
	return ret;
}

/* What is opened and allocated here the end of the process closes and frees. */
static int open_parts(struct validation *v, const struct sorter_config *sort,
		      struct failure *failure)
{
	/* One file at least: the command line was read. */
	unsigned count = MAX(1, sort->output_count + sort->input_count);
	int ret = 0;

	descriptors_raise(count);
	v->parts = calloc(count, sizeof(*v->parts));
	if (!v->parts)
		return failure_set(failure, EXIT_RESOURCES, NULL, ENOMEM,
				   "%u files", count);
	for (unsigned i = 0; ret == 0 && i < sort->output_count; i++)
		ret = open_part(v, sort->output_paths[i], false, sort, failure);
	for (unsigned i = 0; ret == 0 && i < sort->input_count; i++)
		ret = open_part(v, sort->input_paths[i], true, sort, failure);
	if (ret == 0 && sort->device_bytes > 0 && !v->has_device)
		ret = failure_set(failure, EXIT_USAGE, "--device-bytes", 0,
				  "no file is a block device");
	return ret;
}

/* --- segments: what threads take ------------------------------------------ */

static void choose_sizes(struct validation *v)
{
	uint32_t record_size = v->validator.shape.size;
	size_t wanted_bytes = v->has_direct ? DIRECT_PIECE_BYTES : PIECE_BYTES;
	uint64_t pieces;

	v->piece_records = MAX(wanted_bytes / record_size, 1);
	v->piece_bytes = v->piece_records * record_size;
	v->window_bytes = v->piece_bytes + PART_WINDOW_EXTRA_BYTES;
	v->staging_bytes = ROUND_UP(v->window_bytes + record_size, PAGE_BYTES);
	pieces = DIV_ROUND_UP(v->record_count, v->piece_records);
	v->segment_records =
		MAX(DIV_ROUND_UP(pieces, SEGMENTS_MAX), 1) * v->piece_records;
}

static void cut_parts(struct validation *v)
{
	for (unsigned i = 0; i < v->part_count; i++) {
		struct part *part = &v->parts[i];

		part->first_segment = v->segment_count;
		v->segment_count += part->is_stream
					    ? 1
					    : DIV_ROUND_UP(part->record_count,
							   v->segment_records);
	}
}

/* --- checking the records ------------------------------------------------- */

static int read_records(const struct validation *v, struct staging *staging,
			const struct part *part, uint64_t first, uint64_t count,
			struct failure *failure)
{
	uint32_t record_size = v->validator.shape.size;

	staging->records =
		part_read(part, first * record_size, count * record_size,
			  staging->window, failure);
	return staging->records ? 0 : -EIO;
}

/* Returns the order of the piece's first record and the one before it, and
 * keeps copies of the records at its ends. */
static int pass_border(struct validation *v, struct staging *staging,
		       const struct part *part, uint64_t count)
{
	uint32_t record_size = v->validator.shape.size;
	int order = VALIDATOR_NOTHING_BEFORE;

	if (staging->has_before)
		order = validator_compare(&v->validator, staging->before,
					  staging->records);
	else
		memcpy(part->first, staging->records, record_size);
	memcpy(staging->before, staging->records + (count - 1) * record_size,
	       record_size);
	staging->has_before = true;
	return order;
}

static void split_piece(struct validation *v, const uint8_t *records,
			const struct part *part, uint64_t count)
{
	struct validator_split *split = &v->splits[part->is_input];
	struct validator_split piece = { 0 };

	validator_split(&v->validator, &piece, v->last_record, records, count);
	pthread_mutex_lock(&v->adding);
	(void)tally_append(&split->before, &piece.before,
			   VALIDATOR_NOTHING_BEFORE);
	(void)tally_append(&split->equal, &piece.equal,
			   VALIDATOR_NOTHING_BEFORE);
	pthread_mutex_unlock(&v->adding);
}

/* Check the piece that begins with this record of the part.  Any thread may
 * check any piece, in any order. */
static void check_piece(struct validation *v, struct staging *staging,
			struct part *part, uint64_t first, uint64_t count)
{
	int order = VALIDATOR_NOTHING_BEFORE;
	struct tally piece;

	progress_add(&v->progress, count * v->validator.shape.size);
	if (v->last_record)
		split_piece(v, staging->records, part, count);
	if (part->is_input) {
		validator_sum(&v->validator, &piece, staging->records, count);
	} else {
		validator_run(&v->validator, &piece, staging->records, count);
		order = pass_border(v, staging, part, count);
	}
	pthread_mutex_lock(&v->adding);
	/* What has been read in bytes can't overflow 128 bits. */
	(void)tally_add(&part->tally, &piece, first, order);
	pthread_mutex_unlock(&v->adding);
}

static int read_before(struct validation *v, struct staging *staging,
		       const struct part *part, uint64_t first,
		       struct failure *failure)
{
	int ret;

	staging->has_before = first > 0 && !part->is_input;
	if (!staging->has_before)
		return 0;
	ret = read_records(v, staging, part, first - 1, 1, failure);
	if (ret == 0)
		memcpy(staging->before, staging->records,
		       v->validator.shape.size);
	return ret;
}

/* Check the segment that begins with this record of the part. */
static int check_segment(struct validation *v, struct staging *staging,
			 struct part *part, uint64_t first,
			 struct failure *failure)
{
	uint64_t end = MIN(first + v->segment_records, part->record_count);
	int ret = read_before(v, staging, part, first, failure);

	while (ret == 0 && first < end) {
		uint64_t count = MIN(end - first, v->piece_records);

		ret = read_records(v, staging, part, first, count, failure);
		if (ret == 0)
			check_piece(v, staging, part, first, count);
		first += count;
	}
	if (ret == 0 && staging->has_before && end == part->record_count)
		memcpy(part->last, staging->before, v->validator.shape.size);
	return ret;
}

/* --- streams -------------------------------------------------------------- */

/* As part_read_stream(). */
static int64_t read_next(struct validation *v, struct staging *staging,
			 struct part *part, uint64_t *first,
			 struct failure *failure)
{
	int64_t count;

	staging->records = staging->window;
	pthread_mutex_lock(&part->reading);
	count = part_read_stream(part, staging->records, v->piece_bytes,
				 v->validator.shape.size, first,
				 staging->before, failure);
	pthread_mutex_unlock(&part->reading);
	staging->has_before = count > 0 && *first > 0 && !part->is_input;
	return count;
}

/* Take part in checking the stream, until its end. */
static int check_stream(struct validation *v, struct staging *staging,
			struct part *part, struct failure *failure)
{
	while (!first_failure_stops(&v->failure)) {
		uint64_t first = 0;
		int64_t count = read_next(v, staging, part, &first, failure);

		if (count <= 0)
			return (int)count;
		check_piece(v, staging, part, first, (uint64_t)count);
	}
	return 0;
}

/* --- the threads ---------------------------------------------------------- */

/* Check a segment of the part, of a stream what nobody has read of it. */
static void check_any(struct validation *v, struct staging *staging,
		      struct part *part, uint64_t first)
{
	struct failure failure;
	int ret;

	if (part->is_stream)
		ret = check_stream(v, staging, part, &failure);
	else
		ret = check_segment(v, staging, part, first, &failure);
	if (ret < 0)
		first_failure_note(&v->failure, &failure);
}

/* No segment is left: help those threads that read streams. */
static void help_streams(struct validation *v, struct staging *staging,
			 unsigned index)
{
	for (unsigned i = 0; i < v->part_count; i++) {
		struct part *part = &v->parts[(index + i) % v->part_count];

		if (part->is_stream)
			check_any(v, staging, part, 0);
	}
}

static void check_segments(void *context, unsigned index)
{
	struct validation *v = context;
	const struct part *end = v->parts + v->part_count;
	struct part *part = v->parts;
	uint8_t *window = v->staging + index * v->staging_bytes;
	struct staging staging = { .window = window,
				   .before = window + v->window_bytes };

	while (!first_failure_stops(&v->failure)) {
		uint64_t next = atomic_fetch_add(&v->next_segment, 1);

		if (next >= v->segment_count)
			break;
		/* The segments that a thread takes ascend. */
		while (part + 1 < end && part[1].first_segment <= next)
			part++;
		check_any(v, &staging, part,
			  (next - part->first_segment) * v->segment_records);
	}
	help_streams(v, &staging, index);
}

/* One thread at least for each stream: the program that writes one of them may
 * wait until the other one is read. */
static unsigned choose_thread_count(const struct validation *v,
				    const struct topology *topology,
				    uint64_t wanted)
{
	unsigned streams = v->stream_count;
	uint64_t tasks =
		v->segment_count + (uint64_t)streams * (STREAM_THREADS - 1);
	unsigned count = thread_pool_size(topology, wanted, tasks);

	if (wanted > 0)
		return count;
	if (v->has_direct)
		count = MAX(count, DIRECT_THREADS);
	return MIN(MAX(count, streams), THREAD_POOL_WORKERS_MAX);
}

static uint8_t *allocate_staging(const struct validation *v, unsigned count)
{
	if (v->has_direct)
		return direct_memory(count * v->staging_bytes);
	return aligned_alloc(PAGE_BYTES, count * v->staging_bytes);
}

/* Find last_record, which an output of no records has not. */
static int read_last(struct validation *v, const struct sorter_config *sort,
		     uint8_t *window, struct failure *failure)
{
	uint32_t size = v->validator.shape.size;
	const struct part *part = v->parts + sort->output_count;

	do {
		if (part-- == v->parts)
			return 0;
	} while (!part->is_stream && part->record_count == 0);
	if (part->is_stream)
		return failure_set(failure, EXIT_USAGE, part->path, 0,
				   "is a stream: with --head and --against, "
				   "the last record is read first");
	v->last_record = part_read(part, (part->record_count - 1) * size, size,
				   window, failure);
	return v->last_record ? 0 : -EIO;
}

static int run_threads(struct validation *v, const struct sorter_config *sort,
		       struct failure *failure)
{
	static struct topology topology;
	static struct thread_pool pool;
	unsigned count;
	int ret = 0;

	topology_read(&topology);
	count = choose_thread_count(v, &topology, sort->threads);
	/* The end of the process frees it. */
	v->staging = allocate_staging(v, count + 1);
	if (!v->staging)
		return failure_no_memory(failure);
	if (sort->head_records > 0 && sort->input_count > 0)
		ret = read_last(v, sort, v->staging + count * v->staging_bytes,
				failure);
	if (ret < 0)
		return ret;
	/* Several streams may have to be read at the same time. */
	ret = thread_pool_start(&pool, count,
				(sort->threads > 0 || v->stream_count > 0)
					? THREAD_POOL_ALL
					: THREAD_POOL_SOME,
				&topology, failure);
	if (ret < 0)
		return ret;
	progress_begin(&v->progress, STDERR_FILENO, "blinkval",
		       v->stream_count > 0
			       ? 0
			       : v->record_count * v->validator.shape.size);
	thread_pool_run_last(&pool, check_segments, v);
	progress_end();
	return first_failure_get(&v->failure, failure);
}

/* --- the whole ------------------------------------------------------------ */

static void add_parts(const struct validation *v,
		      struct validation_result *result)
{
	const uint8_t *first = NULL, *last = NULL;

	for (unsigned i = 0; i < v->part_count; i++) {
		const struct part *part = &v->parts[i];
		int order = VALIDATOR_NOTHING_BEFORE;

		if (part->tally.record_count == 0)
			continue;
		if (part->is_input) {
			(void)tally_append(&result->inputs, &part->tally,
					   order);
			continue;
		}
		if (last)
			order = validator_compare(&v->validator, last,
						  part->first);
		else
			first = part->first;
		(void)tally_append(&result->summary.tally, &part->tally, order);
		last = part->last;
	}
	if (first && v->validator.shape.size == SUMMARY_RECORD_BYTES) {
		memcpy(result->summary.first_record, first,
		       SUMMARY_RECORD_BYTES);
		memcpy(result->summary.last_record, last, SUMMARY_RECORD_BYTES);
	}
}

/* Of all inputs' records, leave those that a head should have: all before its
 * last key, and of those with that key all, or if it has fewer, its own.  Their
 * number is that of the head only if it has as many as it should. */
static void leave_head(const struct validation *v, uint64_t head_records,
		       const struct tally *parts, struct tally *inputs)
{
	const struct tally *equal =
		v->splits[0].equal.record_count <
				v->splits[1].equal.record_count
			? &v->splits[0].equal
			: &v->splits[1].equal;
	struct tally wanted = v->splits[1].before;

	(void)tally_append(&wanted, equal, VALIDATOR_NOTHING_BEFORE);
	if (wanted.record_count == parts->record_count)
		wanted.record_count = MIN(head_records, inputs->record_count);
	*inputs = wanted;
}

/* The first part that begins otherwise than the first input, or NULL. */
static const char *find_header(const struct part *parts,
			       const struct sorter_config *sort)
{
	const struct part *input = &parts[sort->output_count];

	for (unsigned i = 0; i < sort->output_count && input->header; i++)
		if (memcmp(parts[i].header, input->header,
			   input->header_bytes) != 0)
			return parts[i].path;
	return NULL;
}

int validate_records(const struct sorter_config *sort,
		     struct validation_result *result, struct failure *failure)
{
	static struct validation v;
	int ret;

	validator_prepare(&v.validator, &sort->shape, cpu_level_detect());
	pthread_mutex_init(&v.adding, NULL);
	ret = open_parts(&v, sort, failure);
	if (ret < 0)
		return ret;
	choose_sizes(&v);
	cut_parts(&v);
	ret = run_threads(&v, sort, failure);
	if (ret < 0)
		return ret;
	add_parts(&v, result);
	if (sort->head_records > 0)
		leave_head(&v, sort->head_records, &result->summary.tally,
			   &result->inputs);
	if (sort->input_count > 0)
		result->header_path = find_header(v.parts, sort);
	for (unsigned i = v.part_count; i-- > 0;) {
		if (v.parts[i].fragment_bytes > 0)
			result->fragment_path = v.parts[i].path;
	}
	return 0;
}
