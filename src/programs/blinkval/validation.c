/*
 * validation.c - reads the parts of a sorted output and checks all records
 *
 * The parts are cut into segments; each thread takes the next segment and makes
 * its tally, which includes the order at its beginning unless the part begins
 * there.  The tallies, added up in order, are that of the whole.  The inputs
 * that the parts are compared with are cut and read the same way, for their
 * checksum only.  A stream is one segment, whose pieces the threads take turns
 * to read.
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
/* Each segment has a tally in memory.  From 1.6 GB on, a segment holds more
 * than a piece. */
#define SEGMENTS_MAX 4096
/* Threads that take part in reading a stream: one reads, and a pipe brings less
 * than three of them can check. */
#define STREAM_THREADS 4

/* --- parts: the files ----------------------------------------------------- */

struct parts {
	struct part *parts;
	unsigned count;
	unsigned stream_count;
	bool has_device;       /* one is a block device */
	bool has_direct;       /* one is read past the page cache */
	uint64_t record_count; /* without streams */
};

static int parts_add(struct parts *parts, const char *path, bool is_input,
		     const struct sorter_config *sort, struct failure *failure)
{
	struct part *part = &parts->parts[parts->count++];
	const struct input_layout layout = {
		.record_size = sort->shape.size,
		.device_bytes = sort->device_bytes,
		.header_bytes = is_input || !sort->drops_header
					? sort->header_bytes
					: 0,
		.keeps_header = !sort->drops_header,
	};
	int ret = part_open(part, path, is_input, &layout, failure);

	parts->has_device |= part->is_device;
	parts->stream_count += part->is_stream;
	parts->has_direct |= part->direct_fd >= 0;
	parts->record_count += part->record_count;
	return ret;
}

/* What is opened and allocated here the end of the process closes and frees. */
static int parts_open(struct parts *parts, const struct sorter_config *sort,
		      struct failure *failure)
{
	/* One file at least: the command line was read. */
	unsigned count = MAX(1, sort->output_count + sort->input_count);
	int ret = 0;

	descriptors_raise(count);
	parts->parts = calloc(count, sizeof(*parts->parts));
	if (!parts->parts)
		return failure_set(failure, EXIT_RESOURCES, NULL, ENOMEM,
				   "%u files", count);
	for (unsigned i = 0; ret == 0 && i < sort->output_count; i++)
		ret = parts_add(parts, sort->output_paths[i], false, sort,
				failure);
	for (unsigned i = 0; ret == 0 && i < sort->input_count; i++)
		ret = parts_add(parts, sort->input_paths[i], true, sort,
				failure);
	if (ret == 0 && sort->device_bytes > 0 && !parts->has_device)
		ret = failure_set(failure, EXIT_USAGE, "--device-bytes", 0,
				  "no file is a block device");
	return ret;
}

/* --- segments: what threads take ------------------------------------------ */

struct segment {
	struct part *part;     /* a stream is one segment */
	uint64_t first_record; /* in the part */
	uint64_t record_count;
	struct tally tally;
};

/* What a thread reads into. */
struct staging {
	uint8_t *window;  /* room for a piece and PART_WINDOW_EXTRA_BYTES */
	uint8_t *records; /* a piece, in the window */
	uint8_t *before;  /* the record before them in the part */
	bool has_before;
};

struct validation {
	struct validator validator;
	uint64_t piece_records;
	size_t piece_bytes;
	size_t window_bytes;
	struct parts parts;
	struct segment *segments;
	uint64_t segment_count;
	/* The last record of all parts of a head that is compared with inputs;
	 * else NULL. */
	uint8_t *last_record;
	pthread_mutex_t splitting;
	/* By last_record: the parts; the inputs.  Written with the lock. */
	struct validator_split splits[2];
	uint8_t *staging;     /* of each thread, and for last_record */
	size_t staging_bytes; /* a window and the record before */
	struct progress progress;
	_Alignas(CACHE_PAIR_BYTES) _Atomic uint64_t next_segment;
	struct first_failure failure; /* any thread notes its own */
};

static void choose_sizes(struct validation *v)
{
	uint32_t record_size = v->validator.shape.size;
	size_t wanted_bytes =
		v->parts.has_direct ? DIRECT_PIECE_BYTES : PIECE_BYTES;

	v->piece_records = MAX(wanted_bytes / record_size, 1);
	v->piece_bytes = v->piece_records * record_size;
	v->window_bytes = v->piece_bytes + PART_WINDOW_EXTRA_BYTES;
	v->staging_bytes = ROUND_UP(v->window_bytes + record_size, PAGE_BYTES);
}

static uint64_t choose_segment_records(const struct validation *v)
{
	uint64_t pieces = DIV_ROUND_UP(v->parts.record_count, v->piece_records);

	return MAX(DIV_ROUND_UP(pieces, SEGMENTS_MAX), 1) * v->piece_records;
}

static uint64_t part_segment_count(const struct part *part,
				   uint64_t segment_records)
{
	return part->is_stream
		       ? 1
		       : DIV_ROUND_UP(part->record_count, segment_records);
}

static void cut_part(struct validation *v, struct part *part,
		     uint64_t segment_records)
{
	uint64_t count = part_segment_count(part, segment_records);

	for (uint64_t i = 0; i < count; i++) {
		struct segment *segment = &v->segments[v->segment_count++];

		segment->part = part;
		segment->first_record = i * segment_records;
		if (!part->is_stream)
			segment->record_count =
				MIN(segment_records,
				    part->record_count - segment->first_record);
	}
}

static int cut_parts(struct validation *v, struct failure *failure)
{
	uint64_t records = choose_segment_records(v);
	uint64_t count = 0;

	for (unsigned i = 0; i < v->parts.count; i++)
		count += part_segment_count(&v->parts.parts[i], records);
	v->segments = calloc(MAX(count, 1), sizeof(*v->segments));
	if (!v->segments)
		return failure_set(failure, EXIT_RESOURCES, NULL, ENOMEM,
				   "%llu segments", (unsigned long long)count);
	for (unsigned i = 0; i < v->parts.count; i++)
		cut_part(v, &v->parts.parts[i], records);
	return 0;
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

/* Pieces may be added in any order. */
static void split_piece(struct validation *v, const uint8_t *records,
			const struct part *part, uint64_t count)
{
	struct validator_split *split = &v->splits[part->is_input];
	struct validator_split piece = { 0 };

	validator_split(&v->validator, &piece, v->last_record, records, count);
	pthread_mutex_lock(&v->splitting);
	(void)tally_append(&split->before, &piece.before,
			   VALIDATOR_NOTHING_BEFORE);
	(void)tally_append(&split->equal, &piece.equal,
			   VALIDATOR_NOTHING_BEFORE);
	pthread_mutex_unlock(&v->splitting);
}

/* Returns the order of the piece's first record and the one before it. */
static int check_piece(struct validation *v, struct staging *staging,
		       const struct part *part, uint64_t count,
		       struct tally *tally)
{
	progress_add(&v->progress, count * v->validator.shape.size);
	if (v->last_record)
		split_piece(v, staging->records, part, count);
	if (part->is_input) {
		validator_sum(&v->validator, tally, staging->records, count);
		return VALIDATOR_NOTHING_BEFORE;
	}
	validator_run(&v->validator, tally, staging->records, count);
	return pass_border(v, staging, part, count);
}

static int add_piece(struct validation *v, struct staging *staging,
		     struct segment *segment, uint64_t first, uint64_t count,
		     struct failure *failure)
{
	struct tally piece;
	int ret =
		read_records(v, staging, segment->part, first, count, failure);

	if (ret < 0)
		return ret;
	ret = check_piece(v, staging, segment->part, count, &piece);
	/* What has been read in bytes can't overflow 128 bits. */
	(void)tally_append(&segment->tally, &piece, ret);
	return 0;
}

static int read_before(struct validation *v, struct staging *staging,
		       const struct segment *segment, struct failure *failure)
{
	uint64_t first = segment->first_record;
	int ret;

	staging->has_before = first > 0 && !segment->part->is_input;
	if (!staging->has_before)
		return 0;
	ret = read_records(v, staging, segment->part, first - 1, 1, failure);
	if (ret == 0)
		memcpy(staging->before, staging->records,
		       v->validator.shape.size);
	return ret;
}

static bool is_end_of_part(const struct segment *segment)
{
	return segment->first_record + segment->record_count ==
	       segment->part->record_count;
}

static int check_segment(struct validation *v, struct staging *staging,
			 struct segment *segment, struct failure *failure)
{
	uint64_t first = segment->first_record;
	uint64_t end = first + segment->record_count;
	int ret = read_before(v, staging, segment, failure);

	for (; ret == 0 && first < end; first += v->piece_records)
		ret = add_piece(v, staging, segment, first,
				MIN(end - first, v->piece_records), failure);
	if (ret == 0 && staging->has_before && is_end_of_part(segment))
		memcpy(segment->part->last, staging->before,
		       v->validator.shape.size);
	return ret;
}

/* --- streams -------------------------------------------------------------- */

/* As part_read_stream(). */
static int64_t read_next(struct validation *v, struct staging *staging,
			 struct part *part, uint64_t *number,
			 struct failure *failure)
{
	int64_t count;

	staging->records = staging->window;
	pthread_mutex_lock(&part->stream.reading);
	count = part_read_stream(part, staging->records, v->piece_bytes,
				 v->validator.shape.size, number,
				 staging->before, failure);
	pthread_mutex_unlock(&part->stream.reading);
	staging->has_before = count > 0 && *number > 0 && !part->is_input;
	return count;
}

/* Each piece that has been read gets its turn, or the threads behind it would
 * wait for ever. */
static void add_in_turn(struct segment *segment, uint64_t number,
			const struct tally *piece, int order)
{
	struct part_stream *stream = &segment->part->stream;

	pthread_mutex_lock(&stream->adding);
	while (stream->added_count != number)
		pthread_cond_wait(&stream->added, &stream->adding);
	(void)tally_append(&segment->tally, piece, order);
	stream->added_count++;
	pthread_cond_broadcast(&stream->added);
	pthread_mutex_unlock(&stream->adding);
}

/* Take part in checking the stream, until its end. */
static int check_stream(struct validation *v, struct staging *staging,
			struct segment *segment, struct failure *failure)
{
	struct part *part = segment->part;
	uint64_t number = 0;

	while (!first_failure_stops(&v->failure)) {
		int64_t count = read_next(v, staging, part, &number, failure);
		struct tally piece;
		int order;

		if (count <= 0)
			return (int)count;
		order = check_piece(v, staging, part, (uint64_t)count, &piece);
		add_in_turn(segment, number, &piece, order);
	}
	return 0;
}

/* --- the threads ---------------------------------------------------------- */

static void check_any(struct validation *v, struct staging *staging,
		      struct segment *segment)
{
	struct failure failure;
	int ret;

	if (segment->part->is_stream)
		ret = check_stream(v, staging, segment, &failure);
	else
		ret = check_segment(v, staging, segment, &failure);
	if (ret < 0)
		first_failure_note(&v->failure, &failure);
}

/* No segment is left: help those threads that read streams. */
static void help_streams(struct validation *v, struct staging *staging,
			 unsigned index)
{
	for (uint64_t i = 0; i < v->segment_count; i++) {
		struct segment *segment =
			&v->segments[(index + i) % v->segment_count];

		if (segment->part->is_stream)
			check_any(v, staging, segment);
	}
}

static void check_segments(void *context, unsigned index)
{
	struct validation *v = context;
	uint8_t *window = v->staging + index * v->staging_bytes;
	struct staging staging = { .window = window,
				   .before = window + v->window_bytes };

	while (!first_failure_stops(&v->failure)) {
		uint64_t next = atomic_fetch_add(&v->next_segment, 1);

		if (next >= v->segment_count)
			break;
		check_any(v, &staging, &v->segments[next]);
	}
	help_streams(v, &staging, index);
}

/* One thread at least for each stream: the program that writes one of them may
 * wait until the other one is read. */
static unsigned choose_thread_count(const struct validation *v,
				    const struct topology *topology,
				    uint64_t wanted)
{
	unsigned streams = v->parts.stream_count;
	uint64_t tasks =
		v->segment_count + (uint64_t)streams * (STREAM_THREADS - 1);
	unsigned count = thread_pool_size(topology, wanted, tasks);

	if (wanted > 0)
		return count;
	if (v->parts.has_direct)
		count = MAX(count, DIRECT_THREADS);
	return MIN(MAX(count, streams), THREAD_POOL_WORKERS_MAX);
}

static uint8_t *allocate_staging(const struct validation *v, unsigned count)
{
	if (v->parts.has_direct)
		return direct_memory(count * v->staging_bytes);
	return aligned_alloc(PAGE_BYTES, count * v->staging_bytes);
}

/* Find last_record, which an output of no records has not. */
static int read_last(struct validation *v, const struct sorter_config *sort,
		     uint8_t *window, struct failure *failure)
{
	uint32_t size = v->validator.shape.size;
	const struct part *part = v->parts.parts + sort->output_count;

	do {
		if (part-- == v->parts.parts)
			return 0;
	} while (!part->is_stream && part->record_count == 0);
	if (part->is_stream)
		return failure_set(failure, EXIT_USAGE, part->path, 0,
				   "is a stream: with --head and --against, "
				   "the last record is read first");
	pthread_mutex_init(&v->splitting, NULL);
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
				(sort->threads > 0 || v->parts.stream_count > 0)
					? THREAD_POOL_ALL
					: THREAD_POOL_SOME,
				&topology, failure);
	if (ret < 0)
		return ret;
	progress_begin(&v->progress, STDERR_FILENO, "blinkval",
		       v->parts.stream_count > 0
			       ? 0
			       : v->parts.record_count *
					 v->validator.shape.size);
	thread_pool_run_last(&pool, check_segments, v);
	progress_end();
	return first_failure_get(&v->failure, failure);
}

/* --- the whole ------------------------------------------------------------ */

/* Add the next segment of the parts.  *last is the last record before it, or
 * NULL. */
static void add_segment(const struct validation *v,
			const struct segment *segment, struct tally *tally,
			const uint8_t **last)
{
	const struct part *part = segment->part;
	int order = VALIDATOR_NOTHING_BEFORE;

	/* Within a part, the segment's tally has its first record's order. */
	if (segment->first_record == 0 && *last)
		order = validator_compare(&v->validator, *last, part->first);
	(void)tally_append(tally, &segment->tally, order);
	*last = part->last;
}

static void add_segments(const struct validation *v,
			 struct validation_result *result)
{
	const uint8_t *first = NULL, *last = NULL;

	for (uint64_t i = 0; i < v->segment_count; i++) {
		const struct segment *segment = &v->segments[i];

		if (segment->tally.record_count == 0)
			continue; /* an empty stream */
		if (segment->part->is_input) {
			(void)tally_append(&result->inputs, &segment->tally,
					   VALIDATOR_NOTHING_BEFORE);
			continue;
		}
		if (!first)
			first = segment->part->first;
		add_segment(v, segment, &result->summary.tally, &last);
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
static const char *find_header(const struct parts *parts,
			       const struct sorter_config *sort)
{
	const struct part *input = &parts->parts[sort->output_count];

	for (unsigned i = 0; i < sort->output_count && input->header; i++)
		if (memcmp(parts->parts[i].header, input->header,
			   input->header_bytes) != 0)
			return parts->parts[i].path;
	return NULL;
}

int validate_records(const struct sorter_config *sort,
		     struct validation_result *result, struct failure *failure)
{
	static struct validation v;
	int ret;

	validator_prepare(&v.validator, &sort->shape, cpu_level_detect());
	ret = parts_open(&v.parts, sort, failure);
	if (ret < 0)
		return ret;
	choose_sizes(&v);
	ret = cut_parts(&v, failure);
	if (ret < 0)
		return ret;
	ret = run_threads(&v, sort, failure);
	if (ret < 0)
		return ret;
	add_segments(&v, result);
	if (sort->head_records > 0)
		leave_head(&v, sort->head_records, &result->summary.tally,
			   &result->inputs);
	if (sort->input_count > 0)
		result->header_path = find_header(&v.parts, sort);
	for (unsigned i = v.parts.count; i-- > 0;) {
		if (v.parts.parts[i].fragment_bytes > 0)
			result->fragment_path = v.parts.parts[i].path;
	}
	return 0;
}
