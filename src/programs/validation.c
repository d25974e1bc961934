/*
 * validation.c - reads the parts of a sorted output and checks all records
 *
 * The parts are cut into segments; each thread takes the next segment and makes
 * its tally, which includes the order at its beginning unless the part begins
 * there.  The tallies, added up in order, are that of the whole.  The inputs
 * that the parts are compared with are cut and read the same way, for their
 * checksum only.
 */
#include "programs/validation.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/base.h"
#include "base/cpu.h"
#include "base/first_failure.h"
#include "io/filesize.h"
#include "programs/progress.h"
#include "system/thread_pool.h"
#include "system/topology.h"

/*
 * Bytes that are read and then checked at a time, if at least one record fits:
 * 400 KiB, 4096 records of the benchmark, stay in the L2 cache of one CPU until
 * they are checked.  Reading was faster than mapping the files (100 MB in 13.4
 * ms against 15.3), and a file that another process cuts short is an error of
 * read(2), not a signal.
 */
#define PIECE_BYTES (400 * KIB)
/* Each segment has a tally in memory.  From 1.6 GB on, a segment holds more
 * than a piece. */
#define SEGMENTS_MAX 4096

/* --- parts: the files ----------------------------------------------------- */

struct part {
	const char *path;
	int fd;
	bool is_input;	       /* the order of its records means nothing */
	bool is_stream;	       /* a pipe or the like: its size is not known */
	uint64_t record_count; /* whole ones; 0 for a stream */
	size_t fragment_bytes; /* what is left behind the last one */
	uint8_t *first, *last; /* copies of these records; NULL for an input */
};

struct parts {
	struct part *parts;
	unsigned count;
	uint64_t record_count; /* without streams */
};

static int part_failed(const struct part *part, int error, const char *why,
		       struct failure *failure)
{
	return failure_set(failure, EXIT_FILE, part->path, error, "%s", why);
}

static int part_open(struct part *part, uint32_t record_size,
		     struct failure *failure)
{
	const char *path = part->path;
	struct stat status;

	part->fd = open(path, O_RDONLY | O_CLOEXEC);
	if (part->fd < 0 || fstat(part->fd, &status) < 0)
		return failure_set(failure, EXIT_FILE, path, errno, "");
	if (S_ISDIR(status.st_mode))
		return part_failed(part, EISDIR, "cannot read", failure);
	part->is_stream = !S_ISREG(status.st_mode);
	if (part->is_stream)
		return 0;
	part->record_count = (uint64_t)status.st_size / record_size;
	part->fragment_bytes = (uint64_t)status.st_size % record_size;
	return filesize_check(part->fd, &status, path, failure);
}

static int part_allocate(struct part *part, uint32_t record_size,
			 struct failure *failure)
{
	part->first = malloc(2 * (size_t)record_size);
	if (!part->first)
		return failure_no_memory(failure);
	part->last = part->first + record_size;
	return 0;
}

static int parts_add(struct parts *parts, const char *path, bool is_input,
		     uint32_t record_size, struct failure *failure)
{
	struct part *part = &parts->parts[parts->count++];
	int ret;

	part->path = path;
	part->is_input = is_input;
	ret = part_open(part, record_size, failure);
	if (ret == 0 && !is_input)
		ret = part_allocate(part, record_size, failure);
	parts->record_count += part->record_count;
	return ret;
}

/* What is opened and allocated here the end of the process closes and frees. */
static int parts_open(struct parts *parts,
		      const struct validation_request *request,
		      struct failure *failure)
{
	/* One file at least: the command line was read. */
	unsigned count = MAX(1, request->path_count + request->input_count);
	uint32_t record_size = request->shape.size;
	int ret = 0;

	parts->parts = calloc(count, sizeof(*parts->parts));
	if (!parts->parts)
		return failure_set(failure, EXIT_RESOURCES, NULL, ENOMEM,
				   "%u files", count);
	for (unsigned i = 0; ret == 0 && i < request->path_count; i++)
		ret = parts_add(parts, request->paths[i], false, record_size,
				failure);
	for (unsigned i = 0; ret == 0 && i < request->input_count; i++)
		ret = parts_add(parts, request->input_paths[i], true,
				record_size, failure);
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
	uint8_t *records; /* a piece */
	uint8_t *before;  /* the record before them in the part */
	bool has_before;
};

struct validation {
	struct validator validator;
	uint64_t piece_records;
	size_t piece_bytes;
	struct parts parts;
	struct segment *segments;
	uint64_t segment_count;
	uint8_t *staging;     /* staging_bytes of each thread */
	size_t staging_bytes; /* a piece and the record before */
	struct progress progress;
	_Alignas(CACHE_PAIR_BYTES) _Atomic uint64_t next_segment;
	struct first_failure failure; /* any thread notes its own */
};

static void choose_sizes(struct validation *v)
{
	uint32_t record_size = v->validator.shape.size;

	v->piece_records = MAX(PIECE_BYTES / record_size, 1);
	v->piece_bytes = v->piece_records * record_size;
	v->staging_bytes = ROUND_UP(v->piece_bytes + record_size, PAGE_BYTES);
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

/* Read len_bytes, or fewer only at the end of the file: at offset, or at the
 * descriptor's position if offset is negative.  Returns the count, or -errno.
 */
static ssize_t read_full(int fd, uint8_t *bytes, size_t len_bytes,
			 int64_t offset)
{
	size_t done = 0;

	while (done < len_bytes) {
		ssize_t n;

		if (offset < 0)
			n = read(fd, bytes + done, len_bytes - done);
		else
			n = pread(fd, bytes + done, len_bytes - done,
				  offset + (off_t)done);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (n == 0)
			break;
		done += (size_t)n;
	}
	return (ssize_t)done;
}

static int read_records(const struct validation *v, const struct part *part,
			uint8_t *records, uint64_t first, uint64_t count,
			struct failure *failure)
{
	uint32_t record_size = v->validator.shape.size;
	size_t len_bytes = count * record_size;
	ssize_t n = read_full(part->fd, records, len_bytes,
			      (int64_t)(first * record_size));

	if (n < 0)
		return part_failed(part, (int)-n, "cannot read", failure);
	if ((size_t)n < len_bytes)
		return part_failed(part, 0, "became shorter while it was read",
				   failure);
	return 0;
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

static void add_piece(struct validation *v, struct staging *staging,
		      struct segment *segment, uint64_t count)
{
	int order = VALIDATOR_NOTHING_BEFORE;
	struct tally piece;

	if (count == 0)
		return;
	if (segment->part->is_input) {
		validator_sum(&v->validator, &piece, staging->records, count);
	} else {
		validator_run(&v->validator, &piece, staging->records, count);
		order = pass_border(v, staging, segment->part, count);
	}
	/* What has been read in bytes can't overflow 128 bits. */
	(void)tally_append(&segment->tally, &piece, order);
	progress_add(&v->progress, count * v->validator.shape.size);
}

static int check_piece(struct validation *v, struct staging *staging,
		       struct segment *segment, uint64_t first, uint64_t count,
		       struct failure *failure)
{
	int ret = read_records(v, segment->part, staging->records, first, count,
			       failure);

	if (ret == 0)
		add_piece(v, staging, segment, count);
	return ret;
}

static int check_segment(struct validation *v, struct staging *staging,
			 struct segment *segment, struct failure *failure)
{
	uint64_t first = segment->first_record;
	uint64_t end = first + segment->record_count;
	int ret = 0;

	staging->has_before = first > 0 && !segment->part->is_input;
	if (staging->has_before)
		ret = read_records(v, segment->part, staging->before, first - 1,
				   1, failure);
	for (; ret == 0 && first < end; first += v->piece_records)
		ret = check_piece(v, staging, segment, first,
				  MIN(end - first, v->piece_records), failure);
	return ret;
}

static int check_stream(struct validation *v, struct staging *staging,
			struct segment *segment, struct failure *failure)
{
	uint32_t record_size = v->validator.shape.size;
	struct part *part = segment->part;
	ssize_t n;

	staging->has_before = false;
	do {
		n = read_full(part->fd, staging->records, v->piece_bytes, -1);
		if (n < 0)
			return part_failed(part, (int)-n, "cannot read",
					   failure);
		add_piece(v, staging, segment, (uint64_t)n / record_size);
	} while ((size_t)n == v->piece_bytes);
	part->fragment_bytes = (size_t)n % record_size;
	return 0;
}

/* Both counts of a stream are 0: it is one segment. */
static bool is_end_of_part(const struct segment *segment)
{
	return segment->first_record + segment->record_count ==
	       segment->part->record_count;
}

static int check_any(struct validation *v, struct staging *staging,
		     struct segment *segment, struct failure *failure)
{
	int ret;

	if (segment->part->is_stream)
		ret = check_stream(v, staging, segment, failure);
	else
		ret = check_segment(v, staging, segment, failure);
	if (ret == 0 && staging->has_before && is_end_of_part(segment))
		memcpy(segment->part->last, staging->before,
		       v->validator.shape.size);
	return ret;
}

static void check_segments(void *context, unsigned index)
{
	struct validation *v = context;
	uint8_t *records = v->staging + index * v->staging_bytes;
	struct staging staging = { .records = records,
				   .before = records + v->piece_bytes };

	while (!first_failure_stops(&v->failure)) {
		uint64_t next = atomic_fetch_add(&v->next_segment, 1);
		struct failure failure;

		if (next >= v->segment_count)
			return;
		if (check_any(v, &staging, &v->segments[next], &failure) < 0)
			first_failure_note(&v->failure, &failure);
	}
}

/* --- the threads -----------------------------------------------------------
 */

static int run_threads(struct validation *v,
		       const struct validation_request *request,
		       struct failure *failure)
{
	static struct topology topology;
	static struct thread_pool pool;
	unsigned count;
	int ret;

	topology_read(&topology);
	count = thread_pool_size(&topology, request->thread_count,
				 v->segment_count);
	/* The end of the process frees it. */
	v->staging = aligned_alloc(PAGE_BYTES, count * v->staging_bytes);
	if (!v->staging)
		return failure_no_memory(failure);
	ret = thread_pool_start(&pool, count, &topology, failure);
	if (ret < 0)
		return ret;
	progress_begin(&v->progress, STDERR_FILENO, "blinkval",
		       v->parts.record_count * v->validator.shape.size);
	thread_pool_run_last(&pool, check_segments, v);
	progress_end(&v->progress);
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

int validate_records(const struct validation_request *request,
		     struct validation_result *result, struct failure *failure)
{
	static struct validation v;
	int ret;

	validator_prepare(&v.validator, &request->shape, cpu_level_detect());
	choose_sizes(&v);
	ret = parts_open(&v.parts, request, failure);
	if (ret < 0)
		return ret;
	ret = cut_parts(&v, failure);
	if (ret < 0)
		return ret;
	ret = run_threads(&v, request, failure);
	if (ret < 0)
		return ret;
	add_segments(&v, result);
	for (unsigned i = v.parts.count; i-- > 0;) {
		if (v.parts.parts[i].fragment_bytes > 0)
			result->fragment_path = v.parts.parts[i].path;
	}
	return 0;
}
