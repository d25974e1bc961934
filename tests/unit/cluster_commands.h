/*
 * cluster_commands.h - ranks of a simulated world that are told by command
 * lines what to do, in a folder of their own
 *
 * Rank r reads in.r, which is its part of the records, and writes out.r; its
 * scratch files are in scratch.r.
 *
 * Included by one file of a program, behind cmocka.h.
 */
#ifndef CLUSTER_COMMANDS_H
#define CLUSTER_COMMANDS_H

#include <sys/stat.h>

#include "cluster_world.h"
#include "folder.h"
#include "base/splitmix.h"
#include "stable_sort.h"

/* Options of the ranks are read as the program reads them. */
#define main blinksort_main
int main(int argc, char **argv);
#include "programs/blinksort/blinksort_main.c" /* NOLINT(bugprone-suspicious-include) */
#undef main

#define RECORD_BYTES 100
#define RECORDS 3000
/* More than fits into the memory that the ranks are given. */
#define RECORDS_BEYOND 300000
#define BEYOND "-S 12M "
#define DEADLINE_S 3
/* A rank that has not ended by then never does. */
#define END_NS (3600 * SECOND_NS)
#define WORDS_MAX 48

static char folder[64];
static uint8_t *records, *sorted;
static unsigned sorted_records; /* as many are in sorted[] */
static unsigned record_count;	/* RECORDS, or RECORDS_BEYOND */

/* --- a job ------------------------------------------------------------------
 */

/* A rank's command line. */
struct command {
	struct options options;
	char input[24], output[24], scratch[24];
	char *words[WORDS_MAX]; /* in the rank's text */
};

static struct command commands[RANKS_MAX];
static char texts[RANKS_MAX][512];

/* What has been written to the inputs. */
static unsigned written_ranks, written_records;
static bool written_is_shared;

static void write_file(const char *path, const uint8_t *bytes, size_t count)
{
	FILE *file = fopen(path, "we");

	assert_non_null(file);
	assert_int_equal(fwrite(bytes, 1, count, file), count);
	assert_int_equal(fclose(file), 0);
}

/* Cut the input as evenly as possible, unless all ranks read the whole. */
static void write_inputs(bool is_shared)
{
	unsigned begin = 0;

	if (written_ranks == rank_count && written_records == record_count &&
	    written_is_shared == is_shared)
		return;
	written_ranks = rank_count;
	written_records = record_count;
	written_is_shared = is_shared;
	for (unsigned i = 0; i < rank_count; i++) {
		unsigned left = record_count - begin;
		unsigned count =
			is_shared ? record_count : left / (rank_count - i);

		write_file(commands[i].input,
			   records + (size_t)begin * RECORD_BYTES,
			   (size_t)count * RECORD_BYTES);
		begin += is_shared ? 0 : count;
	}
}

static void read_options(struct options *options, char **command)
{
	struct failure failure;

	*options = (struct options){ 0 };
	options_init(options);
	options_begin(&options->reader, entries, ARRAY_LEN(entries), command);
	if (options_read(&options->reader, take_option, options, &failure) !=
		    0 ||
	    complete_options(options, &failure) < 0)
		fail_msg("%s: %s", failure.what, failure.why);
}

static void command_rank(unsigned rank, const char *given)
{
	struct command *command = &commands[rank];
	char *rest = texts[rank];
	unsigned count = 0;

	snprintf(
		texts[rank], sizeof(texts[rank]),
		"--cluster --threads=1 --pin=no --deadline=%u -T %s %s %s %s%s",
		DEADLINE_S, command->scratch, command->input, given,
		strstr(given, "--gather") ? "" : "-o ",
		strstr(given, "--gather") ? "" : command->output);
	while (rest) {
		char *word = strsep(&rest, " ");

		if (word[0] != '\0')
			command->words[count++] = word;
		assert_true(count < WORDS_MAX);
	}
	command->words[count] = NULL;
	read_options(&command->options, command->words);
	ranks[rank].config = &command->options.config;
	ranks[rank].cluster_config = &command->options.cluster.config;
}

/* Inputs and options of all ranks, each of which begins then. */
static void command_ranks(const char *given)
{
	for (unsigned i = 0; i < rank_count; i++)
		command_rank(i, given);
	write_inputs(strstr(given, "--shared-input"));
}

/* --- what comes of it -------------------------------------------------------
 */

static void remove_outputs(void)
{
	for (unsigned i = 0; i < world.host_count; i++)
		unlink(commands[i].output);
	unlink("trace");
}

static void clean_up(void)
{
	for (unsigned i = 0; i < rank_count; i++)
		assert_int_equal(count_entries(commands[i].scratch), 0);
	remove_outputs();
}

/* Sort the records that the ranks share. */
static void sort_records(void)
{
	const struct record_shape shape =
		RECORD_SHAPE_OF_SLICE(RECORD_BYTES, 0, 10);
	uint32_t *numbers = malloc(2 * record_count * sizeof(*numbers));

	assert_non_null(numbers);
	for (uint32_t i = 0; i < record_count; i++)
		numbers[i] = i;
	stable_sort(&shape, records, numbers, record_count,
		    numbers + record_count);
	for (uint32_t i = 0; i < record_count; i++)
		memcpy(sorted + (size_t)i * RECORD_BYTES,
		       records + (size_t)numbers[i] * RECORD_BYTES,
		       RECORD_BYTES);
	free(numbers);
	sorted_records = record_count;
}

/* All ranks have succeeded, and their outputs are the sorted records. */
static void expect_sorted(const char *what)
{
	size_t bytes = (size_t)record_count * RECORD_BYTES, got = 0;
	uint8_t *output = malloc(bytes + 1);

	assert_non_null(output);
	for (unsigned i = 0; i < rank_count; i++) {
		FILE *file;

		if (ranks[i].error)
			fail_msg("%s: rank %u: %s", what, i,
				 ranks[i].failure.why);
		file = fopen(commands[i].output, "re");
		assert_non_null(file);
		got += fread(output + got, 1, bytes + 1 - got, file);
		fclose(file);
	}
	assert_int_equal(got, bytes);
	if (sorted_records != record_count)
		sort_records();
	assert_memory_equal(output, sorted, bytes);
	free(output);
}

/* --- what all jobs need -----------------------------------------------------
 */

/* As ASCII records of the sort benchmark: a random key, a number, and letters
 * that shrink. */
static void make_record(uint8_t *record, unsigned number, uint64_t *random)
{
	char text[RECORD_BYTES + 1];

	snprintf(text, sizeof(text), "          %038u%52s", number, "");
	for (unsigned i = 0; i < 10; i++)
		text[i] = (char)(' ' + splitmix_next(random) % 95);
	for (unsigned i = 48; i < RECORD_BYTES; i += 4)
		memset(text + i, (char)('A' + splitmix_next(random) % 26), 4);
	memcpy(record, text, RECORD_BYTES);
}

static void set_up_commands(const char *name, unsigned host_count)
{
	size_t bytes = (size_t)RECORDS_BEYOND * RECORD_BYTES;
	uint64_t random = 1;

	records = malloc(bytes);
	sorted = malloc(bytes);
	snprintf(folder, sizeof(folder), "%s/%s.XXXXXX",
		 access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp", name);
	assert_true(records && sorted && mkdtemp(folder));
	assert_int_equal(chdir(folder), 0);
	for (unsigned i = 0; i < RECORDS_BEYOND; i++)
		make_record(records + (size_t)i * RECORD_BYTES, i, &random);
	assert_int_equal(world_set_up(host_count, END_NS), 0);
	for (unsigned i = 0; i < world.host_count; i++) {
		struct command *command = &commands[i];

		snprintf(command->input, sizeof(command->input), "in.%u", i);
		snprintf(command->output, sizeof(command->output), "out.%u", i);
		snprintf(command->scratch, sizeof(command->scratch),
			 "scratch.%u", i);
		assert_int_equal(mkdir(command->scratch, 0700), 0);
	}
}

/* Returns 0 if nothing was left. */
static int tear_down_commands(void)
{
	remove_outputs();
	for (unsigned i = 0; i < world.host_count; i++) {
		unlink(commands[i].input);
		rmdir(commands[i].scratch);
	}
	return chdir("/") < 0 || rmdir(folder) < 0;
}

#endif /* CLUSTER_COMMANDS_H */
