/*
 * blinkval_main.c - the program that checks the output of a sort
 */
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/answer.h"
#include "base/base.h"
#include "base/failure.h"
#include "base/format.h"
#include "base/log.h"
#include "base/options.h"
#include "base/stdout.h"
#include "io/output/outfile.h"
#include "io/pipe.h"
#include "programs/blinksort/shape_options.h"
#include "programs/blinkval/validation.h"
#include "record/validator.h"
#include "system/thread_pool.h"

struct options {
	struct options_reader reader;
	bool quiet;
	bool of_summaries;
	bool is_unordered;	  /* the only key is random */
	const char *summary_path; /* NULL: none */
	const char **input_paths; /* owned: those of the sort */
	/* FILEs are its outputs, or files of summaries of them. */
	struct sorter_config sort;
};

/* Each line as it is printed. */
/* clang-format off */
static const char help[] =
"Usage: blinkval [OPTION]... FILE...\n"
"Check that records are in order: those of 100 bytes as valsort does, or any\n"
"others of one size.  Several files are the parts of one output.  If FILE is -,\n"
"read standard input.  The report goes to stderr, and counts records from 0.\n"
"\n"
"      --record-size=BYTES   take records of this size (100)\n"
"      --key=OFFSET:LENGTH[:desc]\n"
"                            compare this slice of a record (0:10); with :desc,\n"
"                            descending\n"
"      --key=OFFSET:TYPE[:desc]\n"
"                            compare this number: u8 to u128, i8 to i128, f16,\n"
"                            bf16, f32 or f64, little endian, or u16be and so on;\n"
"                            NaNs last or first with :nanlast or :nanfirst; up to\n"
"                            eight keys, the first weighs most\n"
"      --key=random:SEED     expect no order of what other keys leave equal, or,\n"
"                            alone, no order at all: compare --against only\n"
"  -r, --reverse             expect the whole order reversed\n"
"  -u, --unique[=WHICH]      fail if there are duplicate keys, whichever record\n"
"                            of each key blinksort has kept: first or last\n"
"      --head=N              take FILEs as the first N records of the order\n"
"      --header=BYTES        skip BYTES at the head of each file, which are to be\n"
"                            those of the first INPUT; with BYTES:drop, of each\n"
"                            INPUT alone\n"
"      --device-bytes=SIZE   read the first SIZE bytes of each block device (all)\n"
"      --against=INPUT       fail unless this file has as many records, and the\n"
"                            same checksum; given again: for each file of the\n"
"                            input; not after --unique, which drops records\n"
"\n"
"  -q, --quiet               print errors only\n"
"  -o FILE                   write a summary of 280 bytes to this file, which\n"
"                            must be new, empty or another summary\n"
"  -s                        read summaries instead of records, in the order of\n"
"                            their parts\n"
"  -t, --threads=N           use N threads (one for each CPU)\n"
"  -h, --help                print this text\n"
"  -V, --version             print the version\n"
"\n"
"-o and -s are for the records of the benchmark only, which are the default.\n"
"\n"
"Statuses: 0 in order, 1 not in order, or not unique, not the input's or no\n"
"whole records, 2 usage, 3 file, 5 memory or threads.  See blinkval(1).\n";
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
			      struct validation_result *result,
			      struct failure *failure)
{
	for (unsigned i = 0; i < options->sort.output_count; i++) {
		const char *path = options->sort.output_paths[i];
		FILE *file = pipe_is_word(path) ? stdin : fopen(path, "re");
		int ret;

		if (!file)
			return failure_set(failure, EXIT_FILE, path, errno, "");
		if (file == stdin)
			path = PIPE_INPUT_NAME;
		ret = add_summaries(file, path, &result->summary,
				    &result->fragment_path, failure);
		fclose(file);
		if (ret < 0)
			return ret;
	}
	return 0;
}

/* --- the report ----------------------------------------------------------- */

static bool has_unwanted_duplicates(const struct options *options,
				    const struct tally *tally)
{
	return options->sort.unique && tally->duplicate_count > 0;
}

static bool has_too_many(const struct options *options,
			 const struct tally *tally)
{
	uint64_t head = options->sort.head_records;

	return head > 0 && tally->record_count > head;
}

static bool differs_from_inputs(const struct options *options,
				const struct validation_result *result)
{
	const struct tally *tally = &result->summary.tally;

	return options->sort.input_count > 0 &&
	       (tally->record_count != result->inputs.record_count ||
		tally->checksum != result->inputs.checksum);
}

static bool is_good(const struct options *options,
		    const struct validation_result *result)
{
	return result->summary.tally.unordered_count == 0 &&
	       !has_unwanted_duplicates(options, &result->summary.tally) &&
	       !has_too_many(options, &result->summary.tally) &&
	       !differs_from_inputs(options, result) && !result->header_path;
}

static void report_first_unordered(const struct tally *tally)
{
	if (tally->unordered_count > 0)
		fprintf(stderr, "First unordered record is record %s\n",
			FORMAT_U128(tally->first_unordered));
}

static void report_sums(const struct tally *tally, const char *records,
			const char *checksum)
{
	fprintf(stderr, "%s: %s\n%s: %s\n", records,
		FORMAT_U128(tally->record_count), checksum,
		FORMAT_U128_HEX(tally->checksum));
}

static void report_difference(const struct tally *tally,
			      const struct tally *inputs)
{
	if (tally->record_count != inputs->record_count)
		fprintf(stderr,
			"ERROR - there are %s records, but %s in the input\n",
			FORMAT_U128(tally->record_count),
			FORMAT_U128(inputs->record_count));
	else
		fprintf(stderr,
			"ERROR - the checksum is %s, but %s of the input\n",
			FORMAT_U128_HEX(tally->checksum),
			FORMAT_U128_HEX(inputs->checksum));
}

/* The defaults taken may be the reason of an error: the size, and the key where
 * it matters, as it does not if a record is cut short.  In a script, the report
 * on records of the benchmark has no more lines than that of valsort. */
static void hint_at_defaults(const struct options *options, bool key_matters)
{
	bool size = !options_given(&options->reader, SHAPE_OPTION_RECORD_SIZE);
	bool key = !options_given(&options->reader, SHAPE_OPTION_KEY);

	if (options->of_summaries || (size && key && !isatty(STDERR_FILENO)))
		return;
	shape_options_tell_defaults(&options->sort.shape, size,
				    key && key_matters);
}

/* Why the output may have more or fewer records than its input. */
static void hint_at_inputs(const struct tally *tally,
			   const struct tally *inputs)
{
	if (tally->record_count > inputs->record_count)
		log_warnx("give --against once for each file of the input");
	else if (tally->record_count > 0 && tally->unordered_count == 0 &&
		 tally->duplicate_count == 0 &&
		 tally->record_count < inputs->record_count)
		log_warnx("--against is not for an output from which --unique "
			  "has dropped records");
}

/* A sorted file and its input are no parts. */
static void hint_at_against(const struct options *options)
{
	if (!options->of_summaries && options->sort.output_count == 2 &&
	    options->sort.input_count == 0)
		log_warnx("two FILEs are parts of one output; --against=INPUT "
			  "compares with the input");
}

static void report_errors(const struct options *options,
			  const struct validation_result *result)
{
	const struct tally *tally = &result->summary.tally;

	if (tally->unordered_count > 0)
		fprintf(stderr, "ERROR - there are %s unordered records\n",
			FORMAT_U128(tally->unordered_count));
	if (has_unwanted_duplicates(options, tally))
		fprintf(stderr, "ERROR - there are %s duplicate keys\n",
			FORMAT_U128(tally->duplicate_count));
	if (has_too_many(options, tally))
		fprintf(stderr,
			"ERROR - there are %s records, but --head=%llu\n",
			FORMAT_U128(tally->record_count),
			(unsigned long long)options->sort.head_records);
	if (differs_from_inputs(options, result)) {
		report_difference(tally, &result->inputs);
		if (options->sort.head_records == 0)
			hint_at_inputs(tally, &result->inputs);
	}
	if (result->header_path)
		fprintf(stderr,
			"ERROR - the header of %s is not that of the first "
			"input\n",
			result->header_path);
	if (tally->unordered_count == 0)
		return;
	hint_at_defaults(options, true);
	hint_at_against(options);
}

static void report(const struct options *options,
		   const struct validation_result *result)
{
	const struct tally *tally = &result->summary.tally;

	report_first_unordered(tally);
	report_sums(tally, "Records", "Checksum");
	if (options->sort.input_count > 0)
		report_sums(&result->inputs, "Input records", "Input checksum");
	if (tally->unordered_count == 0 && !options->is_unordered)
		fprintf(stderr, "Duplicate keys: %s\n",
			FORMAT_U128(tally->duplicate_count));
	if (is_good(options, result))
		fputs(options->is_unordered
			      ? "SUCCESS - all records are there\n"
			      : "SUCCESS - all records are in order\n",
		      stderr);
	else
		report_errors(options, result);
}

/* As valsort, which names no file: it takes only one. */
static void report_fragment(const struct options *options, const char *path)
{
	const char *what = options->of_summaries
				   ? "partial partition summary found at end"
				   : "partial record found at end";

	if (options->sort.output_count + options->sort.input_count > 1)
		log_about(path, what);
	else
		fprintf(stderr, "%s\n", what);
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

static int check_not_input(const char *path, const struct stat *summary,
			   const char *summary_path, struct failure *failure)
{
	struct stat input;
	int ret = pipe_is_word(path) ? fstat(STDIN_FILENO, &input)
				     : stat(path, &input);

	if (ret == 0 && input.st_dev == summary->st_dev &&
	    input.st_ino == summary->st_ino)
		return failure_set(failure, EXIT_USAGE, summary_path, 0,
				   "is an input file, too");
	return 0;
}

/* Refuse an -o that names a file to be read, under whatever name, or a file
 * that is not a summary: "-o part*" would name one of the parts. */
static int check_summary_path(const struct options *options,
			      struct failure *failure)
{
	const struct sorter_config *sort = &options->sort;
	const char *path = options->summary_path;
	struct stat summary;
	int ret = 0;

	/* Whether a file can be made there, outfile_open() finds out; it takes
	 * nothing but a regular file. */
	if (stat(path, &summary) < 0 || !S_ISREG(summary.st_mode))
		return 0;
	for (unsigned i = 0; ret == 0 && i < sort->output_count; i++)
		ret = check_not_input(sort->output_paths[i], &summary, path,
				      failure);
	for (unsigned i = 0; ret == 0 && i < sort->input_count; i++)
		ret = check_not_input(sort->input_paths[i], &summary, path,
				      failure);
	return ret < 0 ? ret : check_old_summary(path, failure);
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
		    const struct validation_result *result)
{
	const struct summary *summary = &result->summary;
	struct failure failure;

	if (result->fragment_path) {
		if (!options->quiet)
			report_first_unordered(&summary->tally);
		report_fragment(options, result->fragment_path);
		if (!options->quiet)
			hint_at_defaults(options, false);
		return EXIT_WRONG;
	}
	/* The output of an empty input is empty; but no summary is. */
	if (summary->tally.record_count == 0 &&
	    (options->sort.input_count == 0 || file->name)) {
		fputs("there must be at least one record to be validated\n",
		      stderr);
		return EXIT_WRONG;
	}
	if (file->name && write_summary(file, summary, &failure) < 0)
		return log_failure(&failure);
	if (!options->quiet)
		report(options, result);
	return is_good(options, result) ? EXIT_DONE : EXIT_WRONG;
}

static int validate(const struct options *options)
{
	struct outfile file = { 0 };
	struct validation_result result = { 0 };
	struct failure failure;
	int ret = 0;

	if (options->summary_path)
		ret = check_summary_path(options, &failure);
	if (ret == 0 && options->summary_path)
		ret = outfile_open(&file, options->summary_path, NULL,
				   &failure);
	if (ret == 0 && options->of_summaries)
		ret = validate_summaries(options, &result, &failure);
	else if (ret == 0)
		ret = validate_records(&options->sort, &result, &failure);
	if (options->is_unordered)
		result.summary.tally.unordered_count = 0;
	if (ret < 0)
		ret = log_failure(&failure);
	else
		ret = conclude(options, &file, &result);
	outfile_close(&file);
	return ret;
}

/* --- the command line ----------------------------------------------------- */

enum {
	OPTION_AGAINST = OPTIONS_OWN,
	OPTION_QUIET,
	OPTION_OF_SUMMARIES,
	OPTION_SUMMARY,
};

static const struct options_entry entries[] = {
	SHAPE_OPTIONS,
	{ OPTION_AGAINST, "against", 0, OPTIONS_FILES, "INPUT" },
	{ OPTION_QUIET, "quiet", 'q', OPTIONS_FLAG, NULL },
	{ OPTION_OF_SUMMARIES, NULL, 's', OPTIONS_FLAG, NULL },
	{ OPTION_SUMMARY, NULL, 'o', OPTIONS_FILE, "FILE" },
	{ SHAPE_OPTION_THREADS, "threads", 't', OPTIONS_VALUE, "N" },
	OPTIONS_COMMON,
};

static int take_option(void *context, int id, struct failure *failure)
{
	struct options *options = context;
	struct options_reader *reader = &options->reader;

	if (id == OPTION_AGAINST)
		options->input_paths[options->sort.input_count++] =
			reader->value;
	return shape_options_take(reader, id, &options->sort, failure);
}

/* Summaries are of the benchmark's records alone. */
static int check_summaries(struct options *options, struct failure *failure)
{
	const struct sorter_config *sort = &options->sort;
	bool is_other = !record_shape_is_benchmark(&sort->shape);
	static const char *const of_benchmark =
		"only for records of 100 bytes by --key=0:10";
	const struct options_rule rules[] = {
		{ OPTION_OF_SUMMARIES, is_other, of_benchmark },
		{ OPTION_SUMMARY, is_other, of_benchmark },
		{ OPTION_OF_SUMMARIES, sort->input_count > 0,
		  "not together with --against" },
		{ OPTION_OF_SUMMARIES, sort->header_bytes > 0,
		  "not together with --header" },
		{ OPTION_OF_SUMMARIES, sort->device_bytes > 0,
		  "not together with --device-bytes" },
	};

	return options_check(&options->reader, rules, ARRAY_LEN(rules),
			     failure);
}

/* "-" may be given once: what has been read is gone. */
static int check_stdin(bool *has_stdin, struct failure *failure)
{
	if (*has_stdin)
		return failure_set(failure, EXIT_USAGE, PIPE_WORD, 0,
				   "given twice: standard input can be read "
				   "once");
	*has_stdin = true;
	return pipe_check(STDIN_FILENO, PIPE_INPUT_NAME, "cannot read",
			  failure);
}

static int check_operands(const struct sorter_config *sort,
			  struct failure *failure)
{
	bool has_stdin = false;
	int ret = 0;

	if (sort->output_count == 0)
		return failure_set(failure, EXIT_USAGE, "FILE", 0,
				   "is missing; see blinkval --help");
	for (unsigned i = 0; ret == 0 && i < sort->output_count; i++) {
		if (pipe_is_word(sort->output_paths[i]))
			ret = check_stdin(&has_stdin, failure);
		else
			ret = options_check_operand(sort->output_paths[i],
						    "a regular file", failure);
	}
	return ret;
}

/* Behind other keys a random one orders what they leave equal, in any way.  By
 * itself it leaves nothing to look at but the records. */
static int check_random(struct options *options, struct failure *failure)
{
	struct widening *widening = &options->sort.widening;

	options->is_unordered = widening->is_random &&
				options->sort.shape.keys.field_count == 0;
	widening->is_random = false;
	if (!options->is_unordered ||
	    (options->sort.input_count > 0 && !options->sort.unique &&
	     options->sort.head_records == 0 && !options->summary_path))
		return 0;
	return options_refuse_entry(
		&options->reader, SHAPE_OPTION_KEY, failure,
		"a random key alone leaves nothing to check but --against");
}

static int complete_options(struct options *options, struct failure *failure)
{
	struct options_reader *reader = &options->reader;
	int ret;

	options->quiet = options_given(reader, OPTION_QUIET);
	options->of_summaries = options_given(reader, OPTION_OF_SUMMARIES);
	options->summary_path = options_value(reader, OPTION_SUMMARY);
	options->sort.output_paths = (const char *const *)reader->operands;
	options->sort.output_count = reader->operand_count;
	if (options->sort.unique && options->sort.head_records > 0 &&
	    options->sort.input_count > 0)
		return options_refuse_entry(
			reader, SHAPE_OPTION_HEAD, failure,
			"not together with --unique and --against: nothing "
			"counts an input's keys");
	ret = check_operands(&options->sort, failure);
	if (ret == 0)
		ret = check_random(options, failure);
	if (ret == 0)
		ret = shape_options_complete(reader, &options->sort, failure);
	return ret < 0 ? ret : check_summaries(options, failure);
}

int main(int argc, char **argv)
{
	static struct options options = {
		.sort.shape.size = RECORD_SIZE_DEFAULT,
	};
	struct failure failure = { .status = EXIT_DONE };
	int ret;

	answer_begin("blinkval");
	log_init("blinkval");
	/* Each word may name an input.  The end of the process frees them. */
	options.input_paths =
		calloc((size_t)argc + 1, sizeof(*options.input_paths));
	options.sort.input_paths = options.input_paths;
	if (!options.input_paths) {
		failure_no_memory(&failure);
		return log_failure(&failure);
	}
	options_begin(&options.reader, entries, ARRAY_LEN(entries),
		      argv + (argc > 0));
	ret = options_read(&options.reader, take_option, &options, &failure);
	if (ret > 0)
		return stdout_print_info(ret, "blinkval", help);
	if (ret < 0 || complete_options(&options, &failure) < 0)
		return log_failure(&failure);
	return validate(&options);
}
