/*
 * validation.c - reads the parts of a sorted output and checks all records
 *
 * The parts are cut into segments; each thread takes the next segment and makes
 * its summary.  The summaries, added up in order, are that of the whole.
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
#include "record/checksum.h"
#include "system/thread_pool.h"
#include "system/topology.h"

/*
 * Records that are read and then checked at a time: 400 KiB stay in the L2
 * cache of one CPU until they are checked.  Reading was faster than mapping the
 * files (100 MB in 13.4 ms against 15.3), and a file that another process cuts
 * short is an error of read(2), not a signal.
 */
#define PIECE_RECORDS 4096
#define PIECE_BYTES ((size_t)PIECE_RECORDS * VALIDATOR_RECORD_BYTES)
/* Each segment has a summary in memory.  From 1.6 GB on, a segment holds more
 * than a piece. */
#define SEGMENTS_MAX 4096

/* --- parts: the files ----------------------------------------------------- */

struct part {
	const char *path;
	int fd;
	bool is_stream;	       /* a pipe or the like: its size is not known */
	uint64_t record_count; /* whole ones; 0 for a stream */
	size_t fragment_bytes; /* what is left behind the last one */
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

static int part_open(struct part *part, const char *path,
		     struct failure *failure)
{
	struct stat status;

	part->path = path;
	part->fd = open(path, O_RDONLY | O_CLOEXEC);
	if (part->fd < 0 || fstat(part->fd, &status) < 0)
		return failure_set(failure, EXIT_FILE, path, errno, "");
	if (S_ISDIR(status.st_mode))
		return part_failed(part, EISDIR, "cannot read", failure);
	part->is_stream = !S_ISREG(status.st_mode);
	if (part->is_stream)
		return 0;
	part->record_count = (uint64_t)status.st_size / VALIDATOR_RECORD_BYTES;
	part->fragment_bytes =
		(uint64_t)status.st_size % VALIDATOR_RECORD_BYTES;
	return filesize_check(part->fd, &status, path, failure);
}

/* What is opened here the end of the process closes. */
static int parts_open(struct parts *parts,
		      const struct validation_request *request,
		      struct failure *failure)
{
	/* One file at least: the command line was read. */
	parts->parts =
		calloc(MAX(1, request->path_count), sizeof(*parts->parts));
	if (!parts->parts)
		return failure_set(failure, EXIT_RESOURCES, NULL, ENOMEM,
				   "%u files", request->path_count);
	for (unsigned i = 0; i < request->path_count; i++) {
		int ret =
			part_open(&parts->parts[i], request->paths[i], failure);

		if (ret < 0)
			return ret;
		parts->count++;
		parts->record_count += parts->parts[i].record_count;
	}
	return 0;
}

/* --- segments: what threads take ------------------------------------------ */

struct segment {
	struct part *part;     /* a stream is one segment */
	uint64_t first_record; /* in the part */
	uint64_t record_count;
	struct summary summary;
};

struct validation {
	struct parts parts;
	struct segment *segments;
	uint64_t segment_count;
	uint8_t *staging; /* PIECE_BYTES of each thread */
	checksum_fn *checksum;
	struct progress progress;
	_Alignas(CACHE_PAIR_BYTES) _Atomic uint64_t next_segment;
	struct first_failure failure; /* any thread notes its own */
};

static uint64_t choose_segment_records(uint64_t record_count)
{
	uint64_t pieces = DIV_ROUND_UP(record_count, PIECE_RECORDS);

	return MAX(DIV_ROUND_UP(pieces, SEGMENTS_MAX), 1) * PIECE_RECORDS;
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
	uint64_t records = choose_segment_records(v->parts.record_count);
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

static void add_piece(struct validation *v, struct segment *segment,
		      const uint8_t *records, uint64_t count)
{
	struct summary piece;

	validator_run(&piece, records, count, v->checksum);
	/* What has been read in bytes can't overflow 128 bits. */
	(void)summary_append(&segment->summary, &piece);
	progress_add(&v->progress, count * VALIDATOR_RECORD_BYTES);
}

static int check_piece(struct validation *v, uint8_t *staging,
		       struct segment *segment, uint64_t first_record,
		       uint64_t count, struct failure *failure)
{
	const struct part *part = segment->part;
	uint64_t offset = first_record * VALIDATOR_RECORD_BYTES;
	size_t len_bytes = count * VALIDATOR_RECORD_BYTES;
	ssize_t n;

	n = read_full(part->fd, staging, len_bytes, (int64_t)offset);
	if (n < 0)
		return part_failed(part, (int)-n, "cannot read", failure);
	if ((size_t)n < len_bytes)
		return part_failed(part, 0, "became shorter while it was read",
				   failure);
	add_piece(v, segment, staging, count);
	return 0;
}

static int check_segment(struct validation *v, uint8_t *staging,
			 struct segment *segment, struct failure *failure)
{
	uint64_t first = segment->first_record;
	uint64_t end = first + segment->record_count;
	int ret = 0;

	for (; ret == 0 && first < end; first += PIECE_RECORDS)
		ret = check_piece(v, staging, segment, first,
				  MIN(end - first, (uint64_t)PIECE_RECORDS),
				  failure);
	return ret;
}

static int check_stream(struct validation *v, uint8_t *staging,
			struct segment *segment, struct failure *failure)
{
	struct part *part = segment->part;
	ssize_t n;

	do {
		n = read_full(part->fd, staging, PIECE_BYTES, -1);
		if (n < 0)
			return part_failed(part, (int)-n, "cannot read",
					   failure);
		add_piece(v, segment, staging,
			  (uint64_t)n / VALIDATOR_RECORD_BYTES);
	} while (n == PIECE_BYTES);
	part->fragment_bytes = (size_t)n % VALIDATOR_RECORD_BYTES;
	return 0;
}

static void check_segments(void *context, unsigned index)
{
	struct validation *v = context;
	uint8_t *staging = v->staging + index * PIECE_BYTES;

	while (!first_failure_stops(&v->failure)) {
		uint64_t next = atomic_fetch_add(&v->next_segment, 1);
		struct segment *segment;
		struct failure failure;
		int ret;

		if (next >= v->segment_count)
			return;
		segment = &v->segments[next];
		if (segment->part->is_stream)
			ret = check_stream(v, staging, segment, &failure);
		else
			ret = check_segment(v, staging, segment, &failure);
		if (ret < 0)
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
	v->staging = aligned_alloc(PAGE_BYTES, count * PIECE_BYTES);
	if (!v->staging)
		return failure_no_memory(failure);
	ret = thread_pool_start(&pool, count, &topology, failure);
	if (ret < 0)
		return ret;
	progress_begin(&v->progress, STDERR_FILENO, "blinkval",
		       v->parts.record_count * VALIDATOR_RECORD_BYTES);
	thread_pool_run_last(&pool, check_segments, v);
	progress_end(&v->progress);
	return first_failure_get(&v->failure, failure);
}

int validate_records(const struct validation_request *request,
		     struct summary *summary, const char **fragment_path,
		     struct failure *failure)
{
	static struct validation v;
	int ret;

	ret = parts_open(&v.parts, request, failure);
	if (ret < 0)
		return ret;
	ret = cut_parts(&v, failure);
	if (ret < 0)
		return ret;
	v.checksum =
		checksum_kernel(cpu_level_detect(), VALIDATOR_RECORD_BYTES);
	ret = run_threads(&v, request, failure);
	if (ret < 0)
		return ret;
	for (uint64_t i = 0; i < v.segment_count; i++)
		(void)summary_append(summary, &v.segments[i].summary);
	for (unsigned i = v.parts.count; i-- > 0;) {
		if (v.parts.parts[i].fragment_bytes > 0)
			*fragment_path = v.parts.parts[i].path;
	}
	return 0;
}
