/*
 * blinkval_main.c - the program that checks the output of a sort
 *
 * Files are cut into segments; each thread takes the next one and makes its
 * summary; the summaries, added up in order, are the verdict.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/stdout.h"
#include "base/base.h"
#include "record/checksum.h"
#include "base/cpu.h"
#include "base/failure.h"
#include "io/filesize.h"
#include "base/format.h"
#include "base/log.h"
#include "base/options.h"
#include "io/outfile.h"
#include "programs/progress.h"
#include "system/thread_pool.h"
#include "system/topology.h"
#include "record/validator.h"

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

struct options {
	struct options_reader reader;
	bool quiet;
	bool of_summaries;
	const char *summary_path; /* NULL: none */
	uint64_t thread_count;	  /* 0: one a CPU */
	char **paths;
	unsigned path_count;
};

static const char help[] =
	"Usage: blinkval [OPTION]... FILE...\n"
	"Check that 100-byte records are in order, as valsort does.  Several "
	"files are\n"
	"the parts of one output.  The report goes to stderr.\n"
	"\n"
	"  -q           print errors only\n"
	"  -o SUMMARY   write a summary of 280 bytes to this file, which must "
	"be "
	"new,\n"
	"               empty or another summary\n"
	"  -s           read summaries instead of records, in the order of "
	"their parts\n"
	"  -t THREADS   use this number of threads (one for each CPU)\n"
	"  --help       print this text\n"
	"  --version    print the version\n"
	"\n"
	"Statuses: 0 in order, 1 not in order, or no whole records, 2 usage, "
	"3 file,\n"
	"5 memory or threads.  See blinkval(1).\n";

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
static int parts_open(struct parts *parts, const struct options *options,
		      struct failure *failure)
{
	/* One file at least: the command line was read. */
	parts->parts =
		calloc(MAX(1, options->path_count), sizeof(*parts->parts));
	if (!parts->parts)
		return failure_set(failure, EXIT_RESOURCES, NULL, ENOMEM,
				   "%u files", options->path_count);
	for (unsigned i = 0; i < options->path_count; i++) {
		int ret =
			part_open(&parts->parts[i], options->paths[i], failure);

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

struct member {
	struct failure failure;
	uint8_t *staging; /* PIECE_BYTES */
};

struct validation {
	struct parts parts;
	struct segment *segments;
	uint64_t segment_count;
	struct member *members;
	checksum_fn *checksum;
	struct progress progress;
	_Alignas(CACHE_PAIR_BYTES) _Atomic uint64_t next_segment;
	_Alignas(CACHE_PAIR_BYTES) _Atomic bool stop; /* a member has failed */
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

static int check_piece(struct validation *v, struct member *member,
		       struct segment *segment, uint64_t first_record,
		       uint64_t count)
{
	const struct part *part = segment->part;
	uint64_t offset = first_record * VALIDATOR_RECORD_BYTES;
	size_t len_bytes = count * VALIDATOR_RECORD_BYTES;
	ssize_t n;

	n = read_full(part->fd, member->staging, len_bytes, (int64_t)offset);
	if (n < 0)
		return part_failed(part, (int)-n, "cannot read",
				   &member->failure);
	if ((size_t)n < len_bytes)
		return part_failed(part, 0, "became shorter while it was read",
				   &member->failure);
	add_piece(v, segment, member->staging, count);
	return 0;
}

static int check_segment(struct validation *v, struct member *member,
			 struct segment *segment)
{
	uint64_t first = segment->first_record;
	uint64_t end = first + segment->record_count;
	int ret = 0;

	for (; ret == 0 && first < end; first += PIECE_RECORDS)
		ret = check_piece(v, member, segment, first,
				  MIN(end - first, (uint64_t)PIECE_RECORDS));
	return ret;
}

static int check_stream(struct validation *v, struct member *member,
			struct segment *segment)
{
	struct part *part = segment->part;
	ssize_t n;

	do {
		n = read_full(part->fd, member->staging, PIECE_BYTES, -1);
		if (n < 0)
			return part_failed(part, (int)-n, "cannot read",
					   &member->failure);
		add_piece(v, segment, member->staging,
			  (uint64_t)n / VALIDATOR_RECORD_BYTES);
	} while (n == PIECE_BYTES);
	part->fragment_bytes = (size_t)n % VALIDATOR_RECORD_BYTES;
	return 0;
}

static void check_segments(void *context, unsigned index)
{
	struct validation *v = context;
	struct member *member = &v->members[index];

	while (!atomic_load_explicit(&v->stop, memory_order_relaxed)) {
		uint64_t next = atomic_fetch_add(&v->next_segment, 1);
		struct segment *segment;
		int ret;

		if (next >= v->segment_count)
			return;
		segment = &v->segments[next];
		if (segment->part->is_stream)
			ret = check_stream(v, member, segment);
		else
			ret = check_segment(v, member, segment);
		if (ret < 0)
			atomic_store(&v->stop, true);
	}
}

/* --- all together --------------------------------------------------------- */

static unsigned choose_thread_count(const struct validation *v,
				    const struct options *options,
				    const struct topology *topology)
{
	uint64_t count = options->thread_count;

	if (count == 0)
		count = MIN(topology->cpu_count, THREAD_POOL_WORKERS_MAX);
	return (unsigned)MAX(MIN(count, v->segment_count), 1);
}

static int alloc_members(struct validation *v, unsigned count,
			 struct failure *failure)
{
	v->members = calloc(count, sizeof(*v->members));
	for (unsigned i = 0; v->members && i < count; i++) {
		v->members[i].staging = aligned_alloc(PAGE_BYTES, PIECE_BYTES);
		if (!v->members[i].staging)
			v->members = NULL;
	}
	if (!v->members)
		return failure_set(failure, EXIT_RESOURCES, NULL, ENOMEM,
				   "%u threads", count);
	return 0;
}

static int first_failure(const struct validation *v, unsigned member_count,
			 struct failure *failure)
{
	for (unsigned i = 0; i < member_count; i++) {
		if (v->members[i].failure.status == EXIT_DONE)
			continue;
		*failure = v->members[i].failure;
		return -EIO;
	}
	return 0;
}

static int run_threads(struct validation *v, const struct options *options,
		       struct failure *failure)
{
	static struct topology topology;
	static struct thread_pool pool;
	unsigned count;
	int ret;

	topology_read(&topology);
	count = choose_thread_count(v, options, &topology);
	ret = alloc_members(v, count, failure);
	if (ret < 0)
		return ret;
	ret = thread_pool_start(&pool, count, &topology);
	if (ret < 0)
		return failure_set(failure, EXIT_RESOURCES, NULL, -ret,
				   "can't start %u threads", count);
	progress_begin(&v->progress, STDERR_FILENO, "blinkval",
		       v->parts.record_count * VALIDATOR_RECORD_BYTES);
	thread_pool_run_last(&pool, check_segments, v);
	progress_end(&v->progress);
	return first_failure(v, count, failure);
}

static int validate_records(const struct options *options,
			    struct summary *summary, const char **fragment_path,
			    struct failure *failure)
{
	static struct validation v;
	int ret;

	ret = parts_open(&v.parts, options, failure);
	if (ret < 0)
		return ret;
	ret = cut_parts(&v, failure);
	if (ret < 0)
		return ret;
	v.checksum =
		checksum_kernel(cpu_level_detect(), VALIDATOR_RECORD_BYTES);
	ret = run_threads(&v, options, failure);
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

/* --- summaries ------------------------------------------------------------ */

static int add_summaries(FILE *file, const char *path, struct summary *summary,
			 const char **fragment_path, struct failure *failure)
{
	uint8_t bytes[SUMMARY_BYTES];
	unsigned long long number = 0;
	struct summary next;
	size_t n;

	while ((n = fread(bytes, 1, SUMMARY_BYTES, file)) == SUMMARY_BYTES) {
		number++;
		if (summary_decode(&next, bytes) < 0)
			return failure_set(failure, EXIT_WRONG, path, 0,
					   "no records have a summary such as "
					   "number %llu",
					   number);
		if (summary_append(summary, &next) < 0)
			return failure_set(failure, EXIT_WRONG, path, 0,
					   "sums up to number %llu need more "
					   "than 128 bits",
					   number);
	}
	if (ferror(file))
		return failure_set(failure, EXIT_FILE, path, errno,
				   "cannot read");
	if (n > 0 && !*fragment_path)
		*fragment_path = path;
	return 0;
}

static int validate_summaries(const struct options *options,
			      struct summary *summary,
			      const char **fragment_path,
			      struct failure *failure)
{
	for (unsigned i = 0; i < options->path_count; i++) {
		const char *path = options->paths[i];
		FILE *file = fopen(path, "re");
		int ret;

		if (!file)
			return failure_set(failure, EXIT_FILE, path, errno, "");
		ret = add_summaries(file, path, summary, fragment_path,
				    failure);
		fclose(file);
		if (ret < 0)
			return ret;
	}
	return 0;
}

/* --- the report ----------------------------------------------------------- */

static void report_first_unordered(const struct summary *summary)
{
	char text[FORMAT_U128_BYTES];

	if (summary->unordered_count > 0)
		fprintf(stderr, "First unordered record is record %s\n",
			format_u128(text, summary->first_unordered));
}

static void report(const struct summary *summary)
{
	char text[2][FORMAT_U128_BYTES];

	report_first_unordered(summary);
	fprintf(stderr, "Records: %s\nChecksum: %s\n",
		format_u128(text[0], summary->record_count),
		format_u128_hex(text[1], summary->checksum));
	if (summary->unordered_count > 0)
		fprintf(stderr, "ERROR - there are %s unordered records\n",
			format_u128(text[0], summary->unordered_count));
	else
		fprintf(stderr,
			"Duplicate keys: %s\n"
			"SUCCESS - all records are in order\n",
			format_u128(text[0], summary->duplicate_count));
}

/* As valsort, which names no file: it takes only one. */
static void report_fragment(const struct options *options, const char *path)
{
	const char *what =
		options->of_summaries ? "partition summary" : "record";

	if (options->path_count > 1)
		log_warnx("%s: partial %s found at end", path, what);
	else
		fprintf(stderr, "partial %s found at end\n", what);
}

/* Is this file a summary, or empty, so that replacing it loses nothing? */
static int check_old_summary(const char *path, struct failure *failure)
{
	uint8_t bytes[SUMMARY_BYTES + 1];
	struct summary summary;
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n;

	if (fd < 0)
		return failure_set(failure, EXIT_FILE, path, errno,
				   "cannot read what -o is to replace");
	n = read_full(fd, bytes, sizeof(bytes), 0);
	close(fd);
	if (n < 0)
		return failure_set(failure, EXIT_FILE, path, (int)-n,
				   "cannot read what -o is to replace");
	if (n == 0 ||
	    (n == SUMMARY_BYTES && summary_decode(&summary, bytes) == 0))
		return 0;
	return failure_set(
		failure, EXIT_FILE, path, 0,
		"exists and is no summary: -o replaces nothing else");
}

/* Refuse an -o that names a file to be checked, under whatever name, or a file
 * that is not a summary: "-o part*" would name one of the parts. */
static int check_summary_path(const struct options *options,
			      struct failure *failure)
{
	const char *path = options->summary_path;
	struct stat summary, input;

	/* Whether a file can be made there, outfile_open() finds out; it takes
	 * nothing but a regular file. */
	if (stat(path, &summary) < 0 || !S_ISREG(summary.st_mode))
		return 0;
	for (unsigned i = 0; i < options->path_count; i++)
		if (stat(options->paths[i], &input) == 0 &&
		    input.st_dev == summary.st_dev &&
		    input.st_ino == summary.st_ino)
			return failure_set(failure, EXIT_USAGE, path, 0,
					   "is an input file, too");
	return check_old_summary(path, failure);
}

static int write_summary(struct outfile *file, const struct summary *summary,
			 struct failure *failure)
{
	uint8_t bytes[SUMMARY_BYTES];
	ssize_t n;

	summary_encode(summary, bytes);
	n = write(file->fd, bytes, SUMMARY_BYTES);
	if (n != SUMMARY_BYTES)
		return failure_set(failure, EXIT_FILE, file->path,
				   n < 0 ? errno : ENOSPC, "cannot write");
	return outfile_commit(file, false, failure);
}

/* The exit status; the summary file stays away unless there is a verdict. */
static int conclude(const struct options *options, struct outfile *file,
		    const struct summary *summary, const char *fragment_path)
{
	struct failure failure;

	if (fragment_path) {
		if (!options->quiet)
			report_first_unordered(summary);
		report_fragment(options, fragment_path);
		return EXIT_WRONG;
	}
	if (summary->record_count == 0) {
		fputs("there must be at least one record to be validated\n",
		      stderr);
		return EXIT_WRONG;
	}
	if (file->fd >= 0 && write_summary(file, summary, &failure) < 0)
		return log_failure(&failure);
	if (!options->quiet)
		report(summary);
	return summary->unordered_count > 0 ? EXIT_WRONG : EXIT_DONE;
}

static int validate(const struct options *options)
{
	struct outfile file = OUTFILE_NONE;
	const char *fragment_path = NULL;
	struct summary summary = { 0 };
	struct failure failure;
	int ret = 0;

	if (options->summary_path)
		ret = check_summary_path(options, &failure);
	if (ret == 0 && options->summary_path)
		ret = outfile_open(&file, options->summary_path, &failure);
	if (ret == 0 && options->of_summaries)
		ret = validate_summaries(options, &summary, &fragment_path,
					 &failure);
	else if (ret == 0)
		ret = validate_records(options, &summary, &fragment_path,
				       &failure);
	if (ret < 0)
		ret = log_failure(&failure);
	else
		ret = conclude(options, &file, &summary, fragment_path);
	outfile_close(&file);
	return ret;
}

/* --- the command line ----------------------------------------------------- */

static const struct options_entry entries[] = {
	{ 'q', NULL, 'q', OPTIONS_FLAG, NULL },
	{ 's', NULL, 's', OPTIONS_FLAG, NULL },
	{ 'o', NULL, 'o', OPTIONS_FILE, "SUMMARY" },
	{ 't', NULL, 't', OPTIONS_VALUE, "THREADS" },
	OPTIONS_COMMON,
};

static int take_option(void *context, int id, struct failure *failure)
{
	struct options *options = context;

	switch (id) {
	case 'q':
		options->quiet = true;
		return 0;
	case 's':
		options->of_summaries = true;
		return 0;
	case 'o':
		options->summary_path = options->reader.value;
		return 0;
	default:
		return options_number(&options->reader, 1,
				      THREAD_POOL_WORKERS_MAX,
				      &options->thread_count, failure);
	}
}

static int parse_operands(struct options *options, struct failure *failure)
{
	int ret = 0;

	options->paths = options->reader.operands;
	options->path_count = options->reader.operand_count;
	if (options->path_count == 0)
		return failure_set(failure, EXIT_USAGE, "FILE", 0,
				   "is missing; see blinkval --help");
	for (unsigned i = 0; ret == 0 && i < options->path_count; i++)
		ret = options_check_operand(options->paths[i], "/dev/stdin",
					    failure);
	return ret;
}

int main(int argc, char **argv)
{
	struct failure failure = { .status = EXIT_DONE };
	struct options options = { 0 };
	int ret;

	log_init("blinkval");
	options_begin(&options.reader, entries, ARRAY_LEN(entries),
		      argv + (argc > 0));
	ret = options_read(&options.reader, take_option, &options, &failure);
	if (ret > 0)
		return stdout_print_info(ret, "blinkval", help);
	if (ret < 0 || parse_operands(&options, &failure) < 0)
		return log_failure(&failure);
	return validate(&options);
}
