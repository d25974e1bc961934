/*
 * blinkgen_main.c - the program that makes the benchmark's input
 *
 * The output is cut into blocks; each thread takes the next one, generates it
 * where the sink wants it, and the sink writes it: to a file in any order, to
 * standard output in turn.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/answer.h"
#include "base/base.h"
#include "base/cpu.h"
#include "base/failure.h"
#include "base/format.h"
#include "base/log.h"
#include "base/options.h"
#include "base/parse.h"
#include "base/progress.h"
#include "base/stdout.h"
#include "io/direct.h"
#include "io/output/output.h"
#include "io/output/stream_sink.h"
#include "io/pipe.h"
#include "record/checksum.h"
#include "record/generator.h"
#include "system/thread_pool.h"
#include "system/topology.h"

typedef unsigned __int128 u128;

/*
 * Records generated, added up and written at a time.  A multiple of 1024, so
 * that blocks begin at page boundaries, as chunks of a sink do; 400 KiB fit the
 * L2 cache of one CPU beside the page cache's copy.
 */
#define BLOCK_RECORDS 4096
/* The same where blocks are written past the page cache: about
 * DIRECT_PIECE_BYTES. */
#define DIRECT_BLOCK_RECORDS 40960

/* Threads that write to standard output: one generates several GB/s, more than
 * a pipe takes, and a second one generates while the first one writes. */
#define STREAM_THREADS_MAX 2

struct options {
	struct options_reader reader;
	struct generator_kind kind;
	u128 first;
	uint64_t thread_count; /* 0: one a CPU */
	uint64_t record_count;
	const char *path;
	bool to_stdout; /* path is "-" */
};

/* Each line as it is printed. */
/* clang-format off */
static const char help[] =
"Usage: blinkgen [OPTION]... COUNT FILE\n"
"Write COUNT benchmark records of 100 bytes to FILE, as gensort does.\n"
"If FILE is -, write them to standard output.\n"
"If FILE is /dev/null, generate them and write nothing.\n"
"\n"
"  -a                 make ascii records, not binary ones\n"
"  -s                 skew the keys\n"
"  -c                 print the checksum on stderr\n"
"  -b START           begin with this record, below 2^128 (0)\n"
"  -t, --threads=N    use N threads (one for each CPU)\n"
"  -h, --help         print this text\n"
"  -V, --version      print the version\n"
"\n"
"Statuses: 0 done, 2 usage, 3 output file, 5 memory or threads.\n"
"See blinkgen(1).\n";
/* clang-format on */

/* --- making and writing --------------------------------------------------- */

struct member {
	_Alignas(CACHE_PAIR_BYTES) u128 checksum;
};

struct generation {
	const struct options *options;
	checksum_fn *checksum; /* NULL: not wanted */
	struct sink *sink;     /* one of the next two; NULL: write nothing */
	struct output file;
	struct stream_sink stream;
	size_t block_records;
	size_t block_bytes;
	uint64_t block_count;
	struct progress progress;
	struct member *members; /* of each thread */
	uint8_t *memory; /* of the slots, or block_bytes of each thread */
	_Alignas(CACHE_PAIR_BYTES) _Atomic uint64_t next_block;
};

static void fill_block(struct generation *g, unsigned index, uint8_t *target,
		       uint64_t first, size_t count)
{
	const struct options *options = g->options;

	generator_fill(&options->kind, options->first + first, target, count);
	if (g->checksum)
		g->members[index].checksum +=
			g->checksum(target, GENERATOR_RECORD_BYTES, count);
}

/* Returns where the block may be generated at once, or NULL. */
static uint8_t *place(struct generation *g, unsigned index, uint64_t offset,
		      size_t len_bytes)
{
	return g->sink ? sink_place(g->sink, 0, offset, len_bytes)
		       : g->memory + index * g->block_bytes;
}

/* False: the sink has failed. */
static bool make_block(struct generation *g, unsigned index, uint64_t block)
{
	uint64_t first = block * g->block_records;
	size_t count = MIN(g->block_records, g->options->record_count - first);
	uint64_t offset = first * GENERATOR_RECORD_BYTES;
	size_t len_bytes = count * GENERATOR_RECORD_BYTES;
	uint8_t *target = place(g, index, offset, len_bytes);
	struct sink_slot *slot;

	if (target) {
		fill_block(g, index, target, first, count);
		return true;
	}
	slot = sink_take(g->sink);
	if (!slot)
		return false;
	fill_block(g, index, slot->data, first, count);
	slot->offset_bytes = offset;
	slot->length_bytes = len_bytes;
	sink_put(g->sink, slot);
	return true;
}

static void make_blocks(void *context, unsigned index)
{
	struct generation *g = context;

	for (;;) {
		uint64_t block = atomic_fetch_add(&g->next_block, 1);

		if (block >= g->block_count || !make_block(g, index, block))
			break;
		progress_add(&g->progress, g->block_bytes);
	}
	if (g->sink)
		sink_help(g->sink);
}

/* --- the output ----------------------------------------------------------- */

/* Refuse what no file can hold, before anything is written. */
static int check_size(const struct options *options, struct failure *failure)
{
	uint64_t max_bytes = INT64_MAX;
	struct rlimit limit;

	if (getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur < max_bytes)
		max_bytes = limit.rlim_cur;
	if (options->record_count > max_bytes / GENERATOR_RECORD_BYTES)
		return failure_set(failure, EXIT_FILE, options->path, EFBIG,
				   "%llu records",
				   (unsigned long long)options->record_count);
	return 0;
}

static int open_file(struct generation *g, struct failure *failure)
{
	const struct options *options = g->options;
	uint64_t size_bytes = options->record_count * GENERATOR_RECORD_BYTES;
	int ret = check_size(options, failure);

	g->sink = &g->file.sink;
	if (ret == 0)
		ret = output_open(&g->file, &options->path, &size_bytes, 1, 0,
				  NULL, direct_is_large(size_bytes), failure);
	/* Asks the file system whether it has files as large as that. */
	if (ret == 0 && ftruncate(g->file.files->fd, (off_t)size_bytes) < 0)
		ret = failure_set(failure, EXIT_FILE, options->path, errno,
				  "cannot write");
	if (g->file.direct)
		g->block_records = DIRECT_BLOCK_RECORDS;
	return ret;
}

static int open_sink(struct generation *g, struct failure *failure)
{
	/* A write that fails is an error like others, not a signal. */
	signal(SIGPIPE, SIG_IGN);
	signal(SIGXFSZ, SIG_IGN);
	if (g->options->to_stdout)
		g->sink = &g->stream.sink;
	else if (strcmp(g->options->path, "/dev/null") != 0)
		return open_file(g, failure);
	return 0;
}

static int set_slots(struct generation *g, unsigned slot_count,
		     struct failure *failure)
{
	if (g->sink == &g->file.sink)
		output_set_slots(&g->file, g->memory, slot_count,
				 g->block_bytes);
	if (g->sink != &g->stream.sink)
		return 0;
	stream_sink_init(&g->stream, g->options->path, g->memory, slot_count,
			 g->block_bytes);
	return stream_sink_open(&g->stream, UINT64_MAX, NULL, 0, failure);
}

static int close_sink(struct generation *g, struct failure *failure)
{
	if (g->sink == &g->stream.sink)
		return stream_sink_commit(&g->stream, failure);
	return g->sink ? output_commit(&g->file, false, NULL, failure) : 0;
}

/* --- threads -------------------------------------------------------------- */

/* What is allocated here is freed by the end of the process. */
static int alloc_members(struct generation *g, unsigned thread_count,
			 struct failure *failure)
{
	unsigned slot_count =
		g->sink == &g->file.sink
			? output_slots_wanted(&g->file, thread_count)
			: thread_count + 1;

	g->members = alloc_apart(thread_count, sizeof(*g->members));
	g->memory = g->file.direct ? direct_memory(slot_count * g->block_bytes)
				   : aligned_alloc(PAGE_BYTES,
						   slot_count * g->block_bytes);
	if (!g->members || !g->memory)
		return failure_no_memory(failure);
	return set_slots(g, slot_count, failure);
}

static unsigned choose_thread_count(const struct generation *g,
				    const struct topology *topology)
{
	uint64_t wanted = g->options->thread_count;
	unsigned count = thread_pool_size(topology, wanted, g->block_count);

	return wanted == 0 && g->options->to_stdout
		       ? MIN(count, STREAM_THREADS_MAX)
		       : count;
}

static void cut_blocks(struct generation *g)
{
	g->block_bytes = g->block_records * GENERATOR_RECORD_BYTES;
	g->block_count = g->options->record_count / g->block_records +
			 (g->options->record_count % g->block_records != 0);
}

static int run_threads(struct generation *g, u128 *checksum,
		       struct failure *failure)
{
	static struct topology topology;
	static struct thread_pool pool;
	unsigned count;
	int ret;

	topology_read(&topology);
	cut_blocks(g);
	count = choose_thread_count(g, &topology);
	ret = alloc_members(g, count, failure);
	if (ret < 0)
		return ret;
	ret = thread_pool_start(&pool, count,
				g->options->thread_count > 0 ? THREAD_POOL_ALL
							     : THREAD_POOL_SOME,
				&topology, failure);
	if (ret < 0)
		return ret;
	/* Standard output has no line of progress: the programs that read it
	 * use the same terminal. */
	progress_begin(&g->progress, g->options->to_stdout ? -1 : STDERR_FILENO,
		       "blinkgen",
		       g->options->record_count * GENERATOR_RECORD_BYTES);
	thread_pool_run_last(&pool, make_blocks, g);
	progress_end();
	for (unsigned i = 0; i < count; i++)
		*checksum += g->members[i].checksum;
	return 0;
}

static int generate(const struct options *options, u128 *checksum,
		    struct failure *failure)
{
	static struct generation g;
	int ret;

	g.options = options;
	g.block_records = BLOCK_RECORDS;
	if (options_given(&options->reader, 'c'))
		g.checksum = checksum_kernel(cpu_level_detect(),
					     GENERATOR_RECORD_BYTES);
	ret = open_sink(&g, failure);
	if (ret == 0)
		ret = run_threads(&g, checksum, failure);
	if (ret == 0)
		ret = close_sink(&g, failure);
	output_close(&g.file);
	return ret;
}

/* --- the command line ----------------------------------------------------- */

static const struct options_entry entries[] = {
	{ 'a', NULL, 'a', OPTIONS_FLAG, NULL },
	{ 's', NULL, 's', OPTIONS_FLAG, NULL },
	{ 'c', NULL, 'c', OPTIONS_FLAG, NULL },
	{ 'b', NULL, 'b', OPTIONS_VALUE, "START" },
	{ 't', "threads", 't', OPTIONS_VALUE, "N" },
	OPTIONS_COMMON,
};

static int take_option(void *context, int id, struct failure *failure)
{
	struct options *options = context;
	struct options_reader *reader = &options->reader;

	if (id == 't')
		return options_number(reader, 1, THREAD_POOL_WORKERS_MAX,
				      &options->thread_count, failure);
	if (id == 'b' && parse_u128(reader->value, &options->first) < 0)
		return options_refuse(
			reader, failure,
			"not a number below 2^128, such as -b1000");
	return 0;
}

/* Now, before another file can get the number of a closed descriptor. */
static int check_stdout(const struct options *options, struct failure *failure)
{
	if (fcntl(STDOUT_FILENO, F_GETFL) < 0)
		return failure_set(failure, EXIT_FILE, PIPE_OUTPUT_NAME, errno,
				   "cannot write");
	if (!options->kind.ascii && isatty(STDOUT_FILENO))
		return failure_set(failure, EXIT_FILE, PIPE_OUTPUT_NAME, 0,
				   "is a terminal, and the records are binary: "
				   "a pipe or a file is expected");
	return 0;
}

static int check_path(struct options *options, struct failure *failure)
{
	options->to_stdout = pipe_is_word(options->path);
	if (!options->to_stdout)
		return options_check_operand(options->path, "a regular file",
					     failure);
	return check_stdout(options, failure);
}

static int complete_options(struct options *options, struct failure *failure)
{
	const struct options_reader *reader = &options->reader;
	char **operands = reader->operands;

	options->kind.ascii = options_given(reader, 'a');
	options->kind.skewed = options_given(reader, 's');
	if (reader->operand_count < 2)
		return failure_set(failure, EXIT_USAGE,
				   operands[0] ? "FILE" : "COUNT", 0,
				   "is missing; see blinkgen --help");
	if (reader->operand_count > 2)
		return failure_set(failure, EXIT_USAGE, operands[2], 0,
				   "one word too many: COUNT and FILE are "
				   "expected");
	if (parse_u64(operands[0], 0, UINT64_MAX, &options->record_count) < 0)
		return failure_set(failure, EXIT_USAGE, operands[0], 0,
				   "COUNT is a whole number below 2^64");
	options->path = operands[1];
	return check_path(options, failure);
}

int main(int argc, char **argv)
{
	struct failure failure = { .status = EXIT_DONE };
	static struct options options;
	u128 checksum = 0;
	int ret;

	answer_begin("blinkgen");
	log_init("blinkgen");
	options_begin(&options.reader, entries, ARRAY_LEN(entries),
		      argv + (argc > 0));
	ret = options_read(&options.reader, take_option, &options, &failure);
	if (ret > 0)
		return stdout_print_info(ret, "blinkgen", help);
	if (ret < 0 || complete_options(&options, &failure) < 0)
		return log_failure(&failure);
	if (generate(&options, &checksum, &failure) < 0)
		return log_failure(&failure);
	if (options_given(&options.reader, 'c'))
		fprintf(stderr, "%s\n", FORMAT_U128_HEX(checksum));
	return EXIT_DONE;
}
