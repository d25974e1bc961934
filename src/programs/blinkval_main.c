/*
 * blinkval_main.c - the program that checks the output of a sort
 */
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/base.h"
#include "base/failure.h"
#include "base/format.h"
#include "base/log.h"
#include "base/options.h"
#include "base/stdout.h"
#include "io/outfile.h"
#include "programs/validation.h"
#include "record/validator.h"
#include "system/thread_pool.h"

struct options {
	struct options_reader reader;
	bool quiet;
	bool of_summaries;
	const char *summary_path;	 /* NULL: none */
	struct validation_request files; /* or files of summaries */
};

/* Each line as it is printed. */
/* clang-format off */
static const char help[] =
"Usage: blinkval [OPTION]... FILE...\n"
"Check that 100-byte records are in order, as valsort does.  Several files are\n"
"the parts of one output.  The report goes to stderr.\n"
"\n"
"  -q           print errors only\n"
"  -o SUMMARY   write a summary of 280 bytes to this file, which must be new,\n"
"               empty or another summary\n"
"  -s           read summaries instead of records, in the order of their parts\n"
"  -t THREADS   use this number of threads (one for each CPU)\n"
"  --help       print this text\n"
"  --version    print the version\n"
"\n"
"Statuses: 0 in order, 1 not in order, or no whole records, 2 usage, 3 file,\n"
"5 memory or threads.  See blinkval(1).\n";
/* clang-format on */

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
	for (unsigned i = 0; i < options->files.path_count; i++) {
		const char *path = options->files.paths[i];
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

	if (options->files.path_count > 1)
		log_warnx("%s: partial %s found at end", path, what);
	else
		fprintf(stderr, "partial %s found at end\n", what);
}

/* Is this file a summary, or empty, so that replacing it loses nothing? */
static int check_old_summary(const char *path, struct failure *failure)
{
	uint8_t bytes[SUMMARY_BYTES + 1];
	struct summary summary;
	FILE *file = fopen(path, "re");
	bool is_read;
	size_t n;

	if (!file)
		return failure_set(failure, EXIT_FILE, path, errno,
				   "cannot read what -o is to replace");
	n = fread(bytes, 1, sizeof(bytes), file);
	is_read = !ferror(file);
	fclose(file);
	if (!is_read)
		return failure_set(failure, EXIT_FILE, path, EIO,
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
	for (unsigned i = 0; i < options->files.path_count; i++)
		if (stat(options->files.paths[i], &input) == 0 &&
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
		ret = validate_records(&options->files, &summary,
				       &fragment_path, &failure);
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

	if (id == 't')
		return options_number(&options->reader, 1,
				      THREAD_POOL_WORKERS_MAX,
				      &options->files.thread_count, failure);
	return 0;
}

static int complete_options(struct options *options, struct failure *failure)
{
	int ret = 0;

	options->quiet = options_given(&options->reader, 'q');
	options->of_summaries = options_given(&options->reader, 's');
	options->summary_path = options_value(&options->reader, 'o');
	options->files.paths = options->reader.operands;
	options->files.path_count = options->reader.operand_count;
	if (options->files.path_count == 0)
		return failure_set(failure, EXIT_USAGE, "FILE", 0,
				   "is missing; see blinkval --help");
	for (unsigned i = 0; ret == 0 && i < options->files.path_count; i++)
		ret = options_check_operand(options->files.paths[i],
					    "/dev/stdin", failure);
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
	if (ret < 0 || complete_options(&options, &failure) < 0)
		return log_failure(&failure);
	return validate(&options);
}
