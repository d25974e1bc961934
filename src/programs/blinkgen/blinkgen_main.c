/*
 * blinkgen_main.c - the program that makes the benchmark's input
 *
 * The file is cut into blocks; each thread takes the next one, generates it
 * into memory of its own that stays in its L2 cache, and writes it.  Blocks of
 * standard output are written in turn: while one thread writes, the others
 * generate theirs.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/vfs.h>
#include <unistd.h>

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
#include "io/output/outfile.h"
#include "io/pipe.h"
#include "record/checksum.h"
#include "record/generator.h"
#include "system/hugefile.h"
#include "system/thread_pool.h"
#include "system/topology.h"

typedef unsigned __int128 u128;

/*
 * Records generated, added up and written at a time.  A multiple of 1024, so
 * that blocks begin at page boundaries; 400 KiB fit the L2 cache of one CPU
 * beside the page cache's copy.
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
	bool checksum;
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
	checksum_fn *checksum;	    /* NULL: not wanted */
	const struct outfile *file; /* NULL: write nothing */
	int direct_fd;		    /* past the page cache; -1: none */
	struct hugefile pages;	    /* of a file on tmpfs */
	uint64_t ahead_bytes;	    /* where others may be writing */
	size_t block_records;
	size_t block_bytes;
	uint64_t block_count;
	struct progress progress;
	struct member *members; /* of each thread */
	uint8_t *staging;	/* block_bytes of each thread */
	/* Standard output takes block number `turn` next; the threads that have
	 * later blocks wait on turn_passed. */
	pthread_mutex_t turn_lock;
	pthread_cond_t turn_passed;
	uint64_t turn;
	_Alignas(CACHE_PAIR_BYTES) _Atomic uint64_t next_block;
	_Alignas(CACHE_PAIR_BYTES) _Atomic unsigned writers;
	_Alignas(
		CACHE_PAIR_BYTES) _Atomic int error; /* the first one's errno */
};

/*
 * Returns where in the mapped file this thread generates its block, or NULL if
 * it must generate into its staging buffer and write that.  Threads generate
 * into the file on huge pages, and while another thread is writing, since
 * writes to one file wait for each other and stores into its pages do not.  The
 * pages are made here: if the file system is full, the thread falls back to
 * pwrite(2), which returns an error, where a store would raise a signal.
 */
static uint8_t *place(struct generation *g, uint64_t offset, size_t len_bytes)
{
	uint8_t *at =
		hugefile_place(&g->pages, offset, len_bytes, g->ahead_bytes);

	if (at)
		return at;
	if (g->pages.map && atomic_load(&g->writers) > 0 &&
	    madvise(g->pages.map + offset, len_bytes, MADV_POPULATE_WRITE) == 0)
		return g->pages.map + offset;
	return NULL;
}

static void fill_block(struct generation *g, struct member *member,
		       uint8_t *target, uint64_t first, size_t count)
{
	const struct options *options = g->options;

	generator_fill(&options->kind, options->first + first, target, count);
	if (g->checksum)
		member->checksum +=
			g->checksum(target, GENERATOR_RECORD_BYTES, count);
}

static void note_error(struct generation *g, int error)
{
	int none = 0;

	if (error < 0)
		atomic_compare_exchange_strong(&g->error, &none, -error);
}

static void wait_for_turn(struct generation *g, uint64_t block)
{
	pthread_mutex_lock(&g->turn_lock);
	while (g->turn != block)
		pthread_cond_wait(&g->turn_passed, &g->turn_lock);
	pthread_mutex_unlock(&g->turn_lock);
}

static void pass_turn(struct generation *g)
{
	pthread_mutex_lock(&g->turn_lock);
	g->turn++;
	pthread_cond_broadcast(&g->turn_passed);
	pthread_mutex_unlock(&g->turn_lock);
}

/* Each block that a thread has taken gets its turn, also after an error, or
 * the threads behind it would wait for ever. */
static int write_in_turn(struct generation *g, uint64_t block,
			 const uint8_t *bytes, size_t len_bytes)
{
	int ret = 0;

	wait_for_turn(g, block);
	if (atomic_load(&g->error) == 0)
		ret = pipe_write(STDOUT_FILENO, bytes, len_bytes);
	/* Now: the next thread must not write behind a hole. */
	note_error(g, ret);
	pass_turn(g);
	return ret;
}

/* A direct write that fails or ends early, such as that of a last block that
 * does not fill its pages, is a plain write's, which tells the reason. */
static int write_block(const struct generation *g, const uint8_t *bytes,
		       size_t len_bytes, uint64_t offset)
{
	if (g->direct_fd >= 0 && len_bytes % PAGE_BYTES == 0 &&
	    pwrite(g->direct_fd, bytes, len_bytes, (off_t)offset) ==
		    (ssize_t)len_bytes)
		return 0;
	return outfile_write(g->file, bytes, len_bytes, offset);
}

static int make_block(struct generation *g, unsigned index, uint64_t block)
{
	struct member *member = &g->members[index];
	uint8_t *staging = g->staging + index * g->block_bytes;
	uint64_t first = block * g->block_records;
	size_t count = MIN(g->block_records, g->options->record_count - first);
	uint64_t offset = first * GENERATOR_RECORD_BYTES;
	size_t len_bytes = count * GENERATOR_RECORD_BYTES;
	uint8_t *target = place(g, offset, len_bytes);
	int ret = 0;

	if (target) {
		fill_block(g, member, target, first, count);
		return 0;
	}
	atomic_fetch_add(&g->writers, 1);
	fill_block(g, member, staging, first, count);
	if (g->options->to_stdout)
		ret = write_in_turn(g, block, staging, len_bytes);
	else if (g->file)
		ret = write_block(g, staging, len_bytes, offset);
	atomic_fetch_sub(&g->writers, 1);
	return ret;
}

static void make_blocks(void *context, unsigned index)
{
	struct generation *g = context;

	while (atomic_load_explicit(&g->error, memory_order_relaxed) == 0) {
		uint64_t block = atomic_fetch_add(&g->next_block, 1);

		if (block >= g->block_count)
			return;
		note_error(g, make_block(g, index, block));
		progress_add(&g->progress, g->block_bytes);
	}
}

/* --- the file ------------------------------------------------------------- */

static bool writes_nothing(const struct options *options)
{
	return strcmp(options->path, "/dev/null") == 0;
}

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

/* Past the page cache, into room that ext4 sets aside now: several threads can
 * write there at a time only where blocks of the disk are the file's already.
 * What is in the way, a plain write finds. */
static void open_direct(struct generation *g, int fd, uint64_t size_bytes)
{
	struct statfs fs;

	if (g->pages.map || !direct_is_large(size_bytes))
		return;
	g->direct_fd = direct_reopen(fd, O_WRONLY | O_DIRECT);
	if (g->direct_fd < 0)
		return;
	g->block_records = DIRECT_BLOCK_RECORDS;
	if (fstatfs(fd, &fs) == 0 && fs.f_type == EXT4_SUPER_MAGIC)
		(void)fallocate(fd, 0, 0, (off_t)size_bytes);
}

static int open_output(struct generation *g, struct outfile *file,
		       struct failure *failure)
{
	const struct options *options = g->options;
	uint64_t size_bytes;
	int ret;

	ret = check_size(options, failure);
	if (ret < 0)
		return ret;
	ret = outfile_open(file, options->path, failure);
	if (ret < 0)
		return ret;
	size_bytes = options->record_count * GENERATOR_RECORD_BYTES;
	/* Also asks the file system whether it has files as large as that. */
	if (ftruncate(file->fd, (off_t)size_bytes) < 0)
		return failure_set(failure, EXIT_FILE, options->path, errno,
				   "cannot write");
	g->file = file;
	/* Only tmpfs is mapped: there a page, once made, stays, so that a store
	 * can't fail; and there it pays. */
	hugefile_open(&g->pages, file->fd, size_bytes);
	open_direct(g, file->fd, size_bytes);
	return 0;
}

/* A write that fails is an error like others, not a signal. */
static void open_stdout(void)
{
	signal(SIGPIPE, SIG_IGN);
	signal(SIGXFSZ, SIG_IGN);
	pipe_widen(STDOUT_FILENO);
}

/* Some file systems tell only now that the disk is full. */
static int close_stdout(struct failure *failure)
{
	if (close(STDOUT_FILENO) == 0 || errno == EINTR)
		return 0;
	return failure_set(failure, EXIT_FILE, PIPE_OUTPUT_NAME, errno,
			   "cannot write");
}

/* --- threads -------------------------------------------------------------- */

static uint8_t *alloc_staging(const struct generation *g, unsigned count)
{
	if (g->direct_fd >= 0)
		return direct_memory(count * g->block_bytes);
	return aligned_alloc(PAGE_BYTES, count * g->block_bytes);
}

static int alloc_members(struct generation *g, unsigned count,
			 struct failure *failure)
{
	g->members = alloc_apart(count, sizeof(*g->members));
	g->staging = alloc_staging(g, count);
	if (!g->members || !g->staging)
		return failure_no_memory(failure);
	return 0;
}

static unsigned choose_thread_count(const struct generation *g,
				    const struct topology *topology)
{
	uint64_t wanted = g->options->thread_count;
	unsigned count = thread_pool_size(topology, wanted, g->block_count);

	if (wanted == 0 && g->options->to_stdout)
		return MIN(count, STREAM_THREADS_MAX);
	if (wanted == 0 && g->direct_fd >= 0)
		return MAX(count, DIRECT_THREADS);
	return count;
}

/* Standard output has no line of progress: the programs that read it use the
 * same terminal. */
static void begin_progress(struct generation *g)
{
	progress_begin(&g->progress, g->options->to_stdout ? -1 : STDERR_FILENO,
		       "blinkgen",
		       g->options->record_count * GENERATOR_RECORD_BYTES);
}

static void cut_blocks(struct generation *g)
{
	g->block_bytes = g->block_records * GENERATOR_RECORD_BYTES;
	g->block_count = g->options->record_count / g->block_records +
			 (g->options->record_count % g->block_records != 0);
}

/* The memory allocated here is freed by the end of the process. */
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
	g->ahead_bytes = count * g->block_bytes;
	ret = thread_pool_start_some(&pool, count, g->options->thread_count > 0,
				     &topology, failure);
	if (ret < 0)
		return ret;
	begin_progress(g);
	thread_pool_run_last(&pool, make_blocks, g);
	progress_end(&g->progress);
	for (unsigned i = 0; i < count; i++)
		*checksum += g->members[i].checksum;
	return -g->error;
}

/* Returns -EPIPE if the reader of standard output has gone. */
static int generate(const struct options *options, u128 *checksum,
		    struct failure *failure)
{
	static struct generation g;
	struct outfile file = OUTFILE_NONE;
	int ret = 0;

	g.options = options;
	g.direct_fd = -1;
	g.block_records = BLOCK_RECORDS;
	pthread_mutex_init(&g.turn_lock, NULL);
	pthread_cond_init(&g.turn_passed, NULL);
	if (options->checksum)
		g.checksum = checksum_kernel(cpu_level_detect(),
					     GENERATOR_RECORD_BYTES);
	if (options->to_stdout)
		open_stdout();
	else if (!writes_nothing(options))
		ret = open_output(&g, &file, failure);
	if (ret == 0)
		ret = run_threads(&g, checksum, failure);
	if (g.error != 0)
		failure_set(failure, EXIT_FILE, options->path, g.error,
			    "cannot write");
	if (ret == 0 && options->to_stdout)
		ret = close_stdout(failure);
	if (ret == 0 && file.fd >= 0)
		ret = outfile_commit(&file, false, failure);
	outfile_close(&file);
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

static int take_start(struct options *options, struct failure *failure)
{
	struct options_reader *reader = &options->reader;

	if (parse_u128(reader->value, &options->first) == 0)
		return 0;
	return options_refuse(reader, failure,
			      "not a number below 2^128, such as -b1000");
}

static int take_option(void *context, int id, struct failure *failure)
{
	struct options *options = context;

	if (id == 'b')
		return take_start(options, failure);
	if (id == 't')
		return options_number(&options->reader, 1,
				      THREAD_POOL_WORKERS_MAX,
				      &options->thread_count, failure);
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
	options->path = PIPE_OUTPUT_NAME;
	return check_stdout(options, failure);
}

static int complete_options(struct options *options, struct failure *failure)
{
	const struct options_reader *reader = &options->reader;
	char **operands = reader->operands;

	options->kind.ascii = options_given(reader, 'a');
	options->kind.skewed = options_given(reader, 's');
	options->checksum = options_given(reader, 'c');
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
	char text[FORMAT_U128_BYTES];
	u128 checksum = 0;
	int ret;

	log_init("blinkgen");
	options_begin(&options.reader, entries, ARRAY_LEN(entries),
		      argv + (argc > 0));
	ret = options_read(&options.reader, take_option, &options, &failure);
	if (ret > 0)
		return stdout_print_info(ret, "blinkgen", help);
	if (ret < 0 || complete_options(&options, &failure) < 0)
		return log_failure(&failure);
	ret = generate(&options, &checksum, &failure);
	/* No line: a reader that has seen enough is no mistake. */
	if (ret == -EPIPE && options.to_stdout)
		return EXIT_FILE;
	if (ret < 0)
		return log_failure(&failure);
	if (options.checksum)
		fprintf(stderr, "%s\n", format_u128_hex(text, checksum));
	return EXIT_DONE;
}
