/* Every way to bring the records in brings in the same ones.  Where the kernel
 * must refuse something, a child process has a seccomp filter do it. */
#include <errno.h>
#include <fcntl.h>
#include <liburing.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/base.h"
#include "base/log.h"
#include "input_range_reader.h"
#include "io/output/outfile.h"
#include "system/residency.h"
#include "skip.h"
#include "refusal.h"

#define FILES_MAX 4
#define MEMBERS_MAX 5

static const enum input_mode modes[] = { INPUT_BUFFERED, INPUT_MMAP,
					 INPUT_DIRECT };
static const uint32_t record_sizes[] = { 1, 3, 100, 4096, 5000, 1000003 };

static char folder[64];
static int root_fd;

/* --- files with known content ----------------------------------------------
 */

#define LAYOUT(size) (&(const struct input_layout){ .record_size = (size) })

static int setup_in(const char *parent)
{
	snprintf(folder, sizeof(folder), "%s/test_input.XXXXXX", parent);
	assert_non_null(mkdtemp(folder));
	return chdir(folder);
}

/* On a disk, most likely. */
static int setup(void **state)
{
	(void)state;
	return setup_in("/tmp");
}

static int setup_shm(void **state)
{
	(void)state;
	return setup_in("/dev/shm");
}

static int teardown(void **state)
{
	char command[128];

	(void)state;
	assert_int_equal(fchdir(root_fd), 0);
	snprintf(command, sizeof(command), "rm -rf '%s'", folder);
	return system(command);
}

static uint8_t expected_byte(uint64_t position)
{
	return (uint8_t)(position * 0x9e3779b97f4a7c15u >> 56);
}

static uint8_t *expected_bytes(uint64_t bytes)
{
	uint8_t *expected = malloc(bytes + 1);

	assert_non_null(expected);
	for (uint64_t i = 0; i < bytes; i++)
		expected[i] = expected_byte(i);
	return expected;
}

/* The header is a hole. */
static void make_file_behind(uint64_t header_bytes, const char *path,
			     const uint8_t *bytes, uint64_t count)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);

	assert_true(fd >= 0);
	assert_int_equal(ftruncate(fd, (off_t)header_bytes), 0);
	assert_int_equal(lseek(fd, 0, SEEK_END), header_bytes);
	while (count > 0) {
		ssize_t put = write(fd, bytes, count);

		assert_true(put > 0);
		bytes += put;
		count -= (uint64_t)put;
	}
	close(fd);
}

static void make_file(const char *path, const uint8_t *bytes, uint64_t count)
{
	make_file_behind(0, path, bytes, count);
}

static const char *const names[FILES_MAX] = { "a", "b", "c", "d" };

/* Files of so many records, one content running through them all. */
struct files {
	uint32_t record_size;
	unsigned count;
	uint64_t records[FILES_MAX];
	uint64_t header_bytes;
	uint64_t total;
	uint8_t *expected; /* owned */
};

static const struct input_layout *layout_of(const struct files *files)
{
	static struct input_layout layout;

	layout = (struct input_layout){
		.record_size = files->record_size,
		.header_bytes = files->header_bytes,
	};
	return &layout;
}

static void make_files(struct files *files)
{
	uint64_t done = 0;

	files->total = 0;
	for (unsigned i = 0; i < files->count; i++)
		files->total += files->records[i];
	files->expected = expected_bytes(files->total * files->record_size);
	for (unsigned i = 0; i < files->count; i++) {
		make_file_behind(files->header_bytes, names[i],
				 files->expected + done * files->record_size,
				 files->records[i] * files->record_size);
		done += files->records[i];
	}
}

static void open_files(struct input *input, const struct files *files,
		       enum input_mode mode)
{
	struct failure failure = { 0 };

	if (input_open(input, names, files->count, layout_of(files), mode,
		       &failure))
		fail_msg("%s", failure.why);
	assert_int_equal(input->record_count, files->total);
}

static void open_and_map(struct input *input, const struct files *files,
			 enum input_mode mode)
{
	struct failure failure = { 0 };

	open_files(input, files, mode);
	if (input_map(input, &failure))
		fail_msg("%s", failure.why);
}

static void make_and_open(struct input *input, struct files *files,
			  enum input_mode mode)
{
	make_files(files);
	open_files(input, files, mode);
}

static void make_and_map(struct input *input, struct files *files,
			 enum input_mode mode)
{
	make_files(files);
	open_and_map(input, files, mode);
}

static void close_files(struct input *input, struct files *files)
{
	input_close(input);
	free(files->expected);
}

static const struct files several = {
	.record_size = 100,
	.count = 3,
	.records = { 70000, 1, 20001 },
};

/* --- reading and checking; no assertions, for children and threads ---------
 */

/* NULL or what is wrong with this run, which should begin at record. */
static const char *check_run(const struct input *input,
			     const struct files *files, uint64_t record,
			     uint64_t end_record, const struct source_run *run)
{
	const struct input_file *file =
		&input->files[input_find_file(input, record)];

	if (run->record_count == 0 || record + run->record_count > end_record)
		return "not a part of the share";
	if (run->slot != file->first_slot + record - file->first_record)
		return "not the next slot";
	if (record + run->record_count >
	    file->first_record + file->record_count)
		return "across the end of a file";
	if (run->records != input->base + run->slot * input->record_size)
		return "not where the slot is";
	if (memcmp(run->records, files->expected + record * input->record_size,
		   run->record_count * input->record_size) != 0)
		return "wrong content";
	return NULL;
}

/* The share of one of the members. */
static void share(const struct input *input, unsigned member,
		  unsigned member_count, uint64_t *first_record,
		  uint64_t *record_count)
{
	const struct source source = input_source(input);

	source.ops->share(&source, member, member_count, first_record,
			  record_count);
}

/* Read these records by one reader. */
static const char *read_range(struct input *input, const struct files *files,
			      uint64_t next, uint64_t end)
{
	struct failure failure = { 0 };
	struct range_reader reader;
	struct source_run run;
	const char *wrong = NULL;
	int more = 0;

	if (range_open(&reader, input, next, end - next, false, &failure))
		return "init failed";
	while (!wrong && (more = range_next(&reader, &run, &failure)) == 1) {
		wrong = check_run(input, files, next, end, &run);
		next += run.record_count;
	}
	if (!wrong && (more != 0 || next != end))
		wrong = "not all";
	range_close(&reader);
	return wrong;
}

/* Read all shares, taking turns among the members. */
static const char *read_shares(struct input *input, const struct files *files,
			       unsigned member_count, bool resident)
{
	struct range_reader readers[MEMBERS_MAX];
	uint64_t next[MEMBERS_MAX], end[MEMBERS_MAX];
	const char *wrong = NULL;
	struct failure failure;
	unsigned active = member_count;

	for (unsigned i = 0; i < member_count; i++) {
		share(input, i, member_count, &next[i], &end[i]);
		if (range_open(&readers[i], input, next[i], end[i], resident,
			       &failure))
			return "init failed";
		end[i] += next[i];
	}
	while (active > 0 && !wrong) {
		active = 0;
		for (unsigned i = 0; i < member_count && !wrong; i++) {
			struct source_run run;
			int more = range_next(&readers[i], &run, &failure);

			if (more < 0)
				wrong = "failed";
			if (more == 0 && next[i] != end[i])
				wrong = "ended too early";
			if (more <= 0)
				continue;
			active++;
			wrong = check_run(input, files, next[i], end[i], &run);
			next[i] += run.record_count;
		}
	}
	for (unsigned i = 0; i < member_count; i++)
		range_close(&readers[i]);
	return wrong;
}

/* In a child under a filter, too: open, map, read, walk. */
static const char *read_all(const struct files *files, enum input_mode mode,
			    unsigned member_count)
{
	struct failure failure;
	struct input input;
	const char *wrong;

	if (input_open(&input, names, files->count, layout_of(files), mode,
		       &failure))
		return "open failed";
	wrong = input_map(&input, &failure) ? "map failed" : NULL;
	if (!wrong)
		wrong = read_shares(&input, files, member_count, false);
	if (!wrong)
		wrong = read_shares(&input, files, member_count, true);
	input_close(&input);
	return wrong;
}

static void assert_reads(const struct files *files, enum input_mode mode,
			 unsigned member_count)
{
	const char *wrong = read_all(files, mode, member_count);

	if (wrong)
		fail_msg("%s, size %u, header %llu, %u files, %u members: %s",
			 input_mode_names[mode], files->record_size,
			 (unsigned long long)files->header_bytes, files->count,
			 member_count, wrong);
}

/* --- what the kernel refuses -----------------------------------------------
 */

/* The records come all the same. */
static void assert_reads_despite(const struct refusal *refusal)
{
	struct files files = several;
	pid_t child;
	int status;

	make_files(&files);
	child = fork();
	if (child == 0) {
		const char *wrong;

		if (!refuse(refusal))
			_exit(CHILD_CANNOT);
		wrong = read_all(&files, INPUT_DIRECT, 2);
		if (wrong)
			log_warnx("%s", wrong);
		_exit(wrong != NULL);
	}
	status = wait_for(child);
	free(files.expected);
	assert_int_equal(status, 0);
}

static long resident_file_pages(void)
{
	FILE *statm = fopen("/proc/self/statm", "r");
	long pages = 0;

	assert_non_null(statm);
	assert_int_equal(fscanf(statm, "%*d %*d %ld", &pages), 1);
	fclose(statm);
	return pages;
}

/* Parts of any number give back all pages, and the records stay. */
static void input_forget__every_part(void **state)
{
	static const unsigned counts[] = { 1, 2, 3, 7, 16 };
	struct files files = {
		.record_size = 100,
		.count = 2,
		.records = { 30000, 12345 },
	};
	struct input input;

	(void)state;
	make_and_map(&input, &files, INPUT_MMAP);
	for (size_t i = 0; i < ARRAY_LEN(counts); i++) {
		const uint8_t *expected = files.expected;
		long before, after, pages = 0;

		for (unsigned j = 0; j < files.count; j++) {
			uint64_t bytes = files.records[j] * files.record_size;

			assert_memory_equal(
				input_address(&input, &input.files[j], 0),
				expected, bytes);
			expected += bytes;
			pages += (long)(bytes / PAGE_BYTES);
		}
		before = resident_file_pages();
		for (unsigned part = 0; part < counts[i]; part++)
			input_forget(&input, part, counts[i]);
		after = resident_file_pages();
		/* The counter is kept by CPUs apart: a few may be missing. */
		assert_true(before - after >= pages * 9 / 10);
	}
	close_files(&input, &files);
}

/* No io_uring; one that takes nothing; no O_DIRECT. */
static void input_reader__refused_by_the_kernel(void **state)
{
	static const struct refusal refusals[] = {
		{ SYS_io_uring_setup, -1, 0, 0, EPERM },
		{ SYS_io_uring_enter, -1, 0, 0, EPERM },
		{ SYS_openat, 2, O_DIRECT, O_DIRECT, EINVAL },
	};

	(void)state;
	for (unsigned i = 0; i < ARRAY_LEN(refusals); i++)
		assert_reads_despite(&refusals[i]);
}

/* Direct descriptors that take no reads, so that the queue's answer is an error
 * each time; and one file in the middle that has none. */
static void input_reader__no_direct_reads(void **state)
{
	static const struct {
		unsigned first, end;
		const char *instead;
		unsigned members;
	} spoilt[] = { { 0, 3, "/dev/null", 2 }, { 1, 2, NULL, 1 } };

	(void)state;
	for (unsigned i = 0; i < ARRAY_LEN(spoilt); i++) {
		struct files files = several;
		struct input input;
		const char *wrong;

		make_and_map(&input, &files, INPUT_DIRECT);
		for (unsigned j = spoilt[i].first; j < spoilt[i].end; j++) {
			int *fd = &input.files[j].direct_fd;

			if (*fd >= 0)
				close(*fd);
			*fd = spoilt[i].instead
				      ? open(spoilt[i].instead, O_WRONLY)
				      : -1;
		}
		wrong = read_shares(&input, &files, spoilt[i].members, false);
		close_files(&input, &files);
		assert_null(wrong);
	}
}

/* --- reading ---------------------------------------------------------------
 */

static void check_shape(struct files *files, uint64_t header_bytes)
{
	files->header_bytes = header_bytes;
	make_files(files);
	for (unsigned k = 0; k < ARRAY_LEN(modes); k++)
		for (unsigned members = 1; members <= MEMBERS_MAX; members++)
			assert_reads(files, modes[k], members);
	free(files->expected);
}

static void input_reader__every_mode_size_and_shape(void **state)
{
	static const uint64_t headers[] = { 0, 128, 5001 };

	(void)state;
	for (unsigned i = 0; i < ARRAY_LEN(record_sizes); i++) {
		uint32_t size = record_sizes[i];
		uint64_t many = MAX(3 * MIB / size, (size_t)3);
		struct files shapes[] = {
			{ .record_size = size, .count = 0 },
			{ .record_size = size, .count = 1, .records = { 0 } },
			{ .record_size = size, .count = 1, .records = { 1 } },
			{ .record_size = size,
			  .count = 1,
			  .records = { many } },
			{ .record_size = size,
			  .count = 2,
			  .records = { 1, 1 } },
			{ .record_size = size,
			  .count = 3,
			  .records = { 0, many, 0 } },
			{ .record_size = size,
			  .count = 4,
			  .records = { many / 3, 0, 1, many / 2 + 1 } },
		};

		for (unsigned j = 0; j < ARRAY_LEN(shapes); j++)
			for (unsigned h = 0; h < ARRAY_LEN(headers); h++)
				check_shape(&shapes[j], headers[h]);
	}
}

/* Several times around the queue, records larger than a piece too. */
static void input_reader__longer_than_the_queue(void **state)
{
	const uint32_t sizes[] = { 100, 1000003 };

	(void)state;
	for (unsigned i = 0; i < ARRAY_LEN(sizes); i++) {
		struct files files = {
			.record_size = sizes[i],
			.count = 2,
			.records = { 9000000 / sizes[i], 7000000 / sizes[i] },
		};

		make_files(&files);
		assert_reads(&files, INPUT_DIRECT, 1);
		assert_reads(&files, INPUT_DIRECT, 2);
		free(files.expected);
	}
}

static void input_reader__same_file_twice(void **state)
{
	const char *const twice[] = { "a", "a" };
	struct files files = {
		.record_size = 100,
		.count = 1,
		.records = { 30001 },
	};
	const uint64_t bytes = 30001 * 100;

	(void)state;
	make_files(&files);
	files.expected = realloc(files.expected, 2 * bytes);
	assert_non_null(files.expected);
	memcpy(files.expected + bytes, files.expected, bytes);
	for (unsigned i = 0; i < ARRAY_LEN(modes); i++) {
		struct failure failure = { 0 };
		struct input input;

		assert_int_equal(input_open(&input, twice, 2, LAYOUT(100),
					    modes[i], &failure),
				 0);
		assert_int_equal(input_map(&input, &failure), 0);
		assert_null(read_range(&input, &files, 0, 60002));
		input_close(&input);
	}
	free(files.expected);
}

/* Any records may be asked for, not only shares. */
static void input_reader__from_anywhere(void **state)
{
	static const uint64_t ranges[][2] = { { 0, 0 },	    { 0, 1 },
					      { 1, 50000 }, { 1024, 5000 },
					      { 69999, 2 }, { 70001, 20001 },
					      { 90001, 1 }, { 90002, 0 } };
	struct files files = several;

	(void)state;
	files.header_bytes = 1000;
	make_files(&files);
	for (unsigned i = 0; i < ARRAY_LEN(modes); i++) {
		struct input input;

		open_and_map(&input, &files, modes[i]);
		for (unsigned j = 0; j < ARRAY_LEN(ranges); j++) {
			uint64_t first = ranges[j][0];
			uint64_t end = first + ranges[j][1];
			assert_null(read_range(&input, &files, first, end));
		}
		input_close(&input);
	}
	free(files.expected);
}

/* Where io_uring and O_DIRECT work, they are what is used. */
static void input_reader__uses_the_queue(void **state)
{
	struct failure failure = { 0 };
	struct range_reader reader;
	struct io_uring ring;
	struct files files = several;
	struct input input;
	bool possible;

	(void)state;
	possible = io_uring_queue_init(4, &ring, 0) == 0;
	if (possible)
		io_uring_queue_exit(&ring);
	make_and_map(&input, &files, INPUT_DIRECT);
	possible = possible && input.files[0].direct_fd >= 0;
	assert_int_equal(
		range_open(&reader, &input, 0, files.total, false, &failure),
		0);
	assert_int_equal(input_reader_of(&reader.reader)->way,
			 possible ? INPUT_QUEUE : INPUT_READ);
	/* Given up with reads under way: fini waits, or the memory that is
	 * unmapped next would be written to. */
	range_close(&reader);
	close_files(&input, &files);
}

struct thread {
	pthread_t id;
	struct input *input;
	const struct files *files;
	unsigned member;
	const char *wrong;
};

static void *thread_main(void *argument)
{
	struct thread *thread = argument;
	uint64_t first, count;

	share(thread->input, thread->member, 2, &first, &count);
	thread->wrong =
		read_range(thread->input, thread->files, first, first + count);
	return NULL;
}

static void input_reader__two_threads(void **state)
{
	struct files files = several;

	(void)state;
	make_files(&files);
	for (unsigned i = 0; i < ARRAY_LEN(modes); i++) {
		struct thread threads[2];
		struct input input;

		open_and_map(&input, &files, modes[i]);
		for (unsigned j = 0; j < 2; j++) {
			threads[j] = (struct thread){
				.input = &input,
				.files = &files,
				.member = j,
			};
			assert_int_equal(pthread_create(&threads[j].id, NULL,
							thread_main,
							&threads[j]),
					 0);
		}
		for (unsigned j = 0; j < 2; j++) {
			pthread_join(threads[j].id, NULL);
			assert_null(threads[j].wrong);
		}
		input_close(&input);
	}
	free(files.expected);
}

/* --- shares ----------------------------------------------------------------
 */

static void shares__covers_all_and_is_aligned(void **state)
{
	(void)state;
	for (unsigned i = 0; i < ARRAY_LEN(record_sizes); i++) {
		struct files files = {
			.record_size = record_sizes[i],
			.count = 3,
			.records = { 20000 / record_sizes[i] + 3, 0,
				     70000 / record_sizes[i] + 2 },
		};
		struct input input;

		make_and_open(&input, &files, INPUT_MMAP);
		for (unsigned members = 1; members < 20; members++) {
			uint64_t next = 0;

			for (unsigned j = 0; j < members; j++) {
				uint64_t first, count, file;

				share(&input, j, members, &first, &count);
				assert_int_equal(first, next);
				next = first + count;
				if (count == 0)
					continue;
				file = input_find_file(&input, first);
				first -= input.files[file].first_record;
				assert_int_equal(first % input.align_records,
						 0);
				assert_int_equal(first * input.record_size %
							 PAGE_BYTES,
						 0);
			}
			assert_int_equal(next, files.total);
		}
		close_files(&input, &files);
	}
}

static void shares__about_equal(void **state)
{
	struct files files = {
		.record_size = 100,
		.count = 2,
		.records = { 100000, 3 },
	};
	struct input input;

	(void)state;
	make_and_open(&input, &files, INPUT_MMAP);
	for (unsigned i = 0; i < 4; i++) {
		uint64_t first, count;

		share(&input, i, 4, &first, &count);
		assert_in_range(count, 25000 - 1024, 25000 + 1024);
	}
	close_files(&input, &files);
}

/* --- input_open ------------------------------------------------------------
 */

/* Of two files the first is good. */
static void input_open__refused(void **state)
{
	static const struct {
		const char *path;
		unsigned bytes; /* of a file that is made */
		int error;
		const char *why;
	} refused[] = {
		{ "none", 0, -ENOENT, "No such file" },
		{ "dir", 0, -EINVAL, "is a folder" },
		{ "fifo", 0, -EINVAL, "not a regular file" },
		{ "/dev/null", 0, -EINVAL, "not a regular file" },
		{ "part", 12345, -EINVAL,
		  "12345 bytes are not a whole number of 100-byte records (the "
		  "default): is there" },
		{ "short", 99, -EINVAL, "99 bytes" },
	};
	static const uint8_t bytes[12345];

	(void)state;
	make_file("good", bytes, 0);
	assert_int_equal(mkdir("dir", 0755), 0);
	assert_int_equal(mkfifo("fifo", 0644), 0);
	for (unsigned i = 0; i < ARRAY_LEN(refused); i++) {
		const char *const paths[] = { "good", refused[i].path };
		struct failure failure = { 0 };
		struct input input;

		if (refused[i].bytes > 0)
			make_file(paths[1], bytes, refused[i].bytes);
		assert_int_equal(input_open(&input, paths, 2, LAYOUT(100),
					    INPUT_AUTO, &failure),
				 refused[i].error);
		assert_int_equal(failure.status, EXIT_FILE);
		assert_string_equal(failure.what, paths[1]);
		assert_non_null(strstr(failure.why, refused[i].why));
		input_close(&input);
	}
}

/* Sparse files whose sizes do not add up in 63 bits. */
static void input_open__too_large(void **state)
{
	const char *const paths[] = { "huge", "huge", "huge" };
	struct failure failure = { 0 };
	struct input input;

	(void)state;
	make_file("huge", (const uint8_t *)"", 0);
	if (truncate("huge", (off_t)1 << 62))
		skip_because("no files of 2^62 bytes in this folder");
	assert_int_equal(
		input_open(&input, paths, 3, LAYOUT(1), INPUT_MMAP, &failure),
		-EFBIG);
	assert_non_null(strstr(failure.why, "too large"));
	input_close(&input);
	/* That fits, but there is no such address space. */
	assert_int_equal(input_open(&input, paths, 1, LAYOUT(4096),
				    INPUT_BUFFERED, &failure),
			 0);
	assert_int_equal(input_map(&input, &failure), -ENOMEM);
	assert_int_equal(failure.status, EXIT_RESOURCES);
	input_close(&input);
}

static void input_open__too_many(void **state)
{
	static const char *paths[INPUT_FILES_MAX + 1];
	struct failure failure = { 0 };
	struct input input;

	(void)state;
	assert_int_equal(input_open(&input, paths, INPUT_FILES_MAX + 1,
				    LAYOUT(100), INPUT_AUTO, &failure),
			 -EINVAL);
	assert_int_equal(failure.status, EXIT_USAGE);
	input_close(&input);
}

static void input_open__no_descriptors(void **state)
{
	pid_t child;

	(void)state;
	make_file("file", (const uint8_t *)"", 0);
	child = fork();
	if (child == 0) {
		const char *const paths[] = { "file", "file", "file", "file",
					      "file", "file", "file", "file" };
		struct rlimit limit = { .rlim_cur = 8, .rlim_max = 8 };
		struct failure failure = { 0 };
		struct input input;
		int error;

		setrlimit(RLIMIT_NOFILE, &limit);
		error = input_open(&input, paths, ARRAY_LEN(paths), LAYOUT(1),
				   INPUT_AUTO, &failure);
		_exit(!(error == -EMFILE && failure.status == EXIT_RESOURCES));
	}
	assert_int_equal(wait_for(child), 0);
}

/* It says that it is empty, as an empty file does. */
static void input_open__size_unknown(void **state)
{
	const char *const paths[] = { "empty", "/proc/self/status" };

	(void)state;
	make_file("empty", (const uint8_t *)"", 0);
	for (unsigned i = 0; i < ARRAY_LEN(modes); i++) {
		struct failure failure = { 0 };
		struct input input;

		assert_int_equal(input_open(&input, paths, 1, LAYOUT(1),
					    modes[i], &failure),
				 0);
		input_close(&input);
		assert_int_equal(input_open(&input, paths, 2, LAYOUT(1),
					    modes[i], &failure),
				 -EINVAL);
		assert_int_equal(failure.status, EXIT_FILE);
		assert_ptr_equal(failure.what, paths[1]);
		assert_string_equal(failure.why, "its size is unknown");
		input_close(&input);
	}
}

/* --- input_choose, input_memory_bytes, residency ---------------------------
 */

static void input_choose__keeps_what_was_wanted(void **state)
{
	struct files files = several;

	(void)state;
	make_files(&files);
	for (unsigned i = 0; i < ARRAY_LEN(modes); i++) {
		struct input input;

		open_files(&input, &files, modes[i]);
		input_choose(&input);
		assert_int_equal(input.mode, modes[i]);
		if (modes[i] == INPUT_MMAP)
			assert_int_equal(input_memory_bytes(&input), 0);
		else
			assert_in_range(input_memory_bytes(&input), 9000200,
					9000200 + 2 * HUGE_PAGE_BYTES);
		input_close(&input);
	}
	free(files.expected);
}

/* The way that is chosen when none was asked for: of these files, whose first
 * one ends in a hole of so many records. */
static void assert_chooses(struct files files, uint64_t hole_records,
			   enum input_mode wanted)
{
	struct input input;

	make_files(&files);
	files.records[0] += hole_records;
	files.total += hole_records;
	assert_int_equal(
		truncate("a", (off_t)(files.records[0] * files.record_size)),
		0);
	open_files(&input, &files, INPUT_AUTO);
	input_choose(&input);
	assert_int_equal(input.mode, wanted);
	close_files(&input, &files);
}

static void input_choose__mmap_when_empty(void **state)
{
	(void)state;
	assert_chooses((struct files){ .record_size = 100, .count = 1 }, 0,
		       INPUT_MMAP);
}

/* On tmpfs every page that was written is in memory, and a hole of a sparse
 * file is in no page cache. */
static void input_choose__by_residency(void **state)
{
	(void)state;
	assert_chooses(several, 0, INPUT_MMAP);
	assert_chooses((struct files){ .record_size = 100, .count = 1 }, 100000,
		       INPUT_DIRECT);
}

/* 40 MiB, more than one step of mincore, of which one is written; and the first
 * 8 of them, which are counted and not estimated. */
static void residency__counts_pages(void **state)
{
	const struct refusal refusal = { 451, -1, 0, 0, ENOSYS };
	uint8_t *bytes = expected_bytes(MIB);
	uint64_t of_all, of_8_mib;
	pid_t child;
	int fd;

	(void)state;
	make_file("a", bytes, MIB);
	free(bytes);
	assert_int_equal(truncate("a", 40 * MIB), 0);
	fd = open("a", O_RDONLY);
	of_all = residency_estimate(fd, 40 * MIB);
	of_8_mib = residency_estimate(fd, 8 * MIB);
	assert_int_equal(residency_estimate(fd, 0), 0);
	child = fork();
	if (child == 0) {
		if (!refuse(&refusal))
			_exit(CHILD_CANNOT);
		_exit(residency_estimate(fd, 40 * MIB) != of_8_mib ||
		      residency_estimate(fd, 8 * MIB) != of_8_mib ||
		      residency_estimate(fd, 0) != 0);
	}
	close(fd);
	/* Where huge pages are used for tmpfs, one of them. */
	assert_in_range(of_8_mib, MIB, HUGE_PAGE_BYTES);
	assert_in_range(of_all, MIB, HUGE_PAGE_BYTES + MIB);
	assert_int_equal(wait_for(child), 0);
}

/* --- input_peek ------------------------------------------------------------
 */

static void input_peek__across_files(void **state)
{
	struct files files = {
		.record_size = 100,
		.count = 4,
		.records = { 3, 0, 2, 5 },
	};
	const uint64_t counts[] = { 0, 1, 3, 4, 10, 11, 1000 };
	struct failure failure = { 0 };
	struct input input;
	uint8_t buffer[1001];

	(void)state;
	make_and_open(&input, &files, INPUT_MMAP);
	for (unsigned i = 0; i < ARRAY_LEN(counts); i++) {
		uint64_t count = MIN(counts[i], (uint64_t)10);

		memset(buffer, 0xee, sizeof(buffer));
		assert_int_equal(
			input_peek(&input, buffer, counts[i], &failure), count);
		assert_memory_equal(buffer, files.expected, count * 100);
		assert_int_equal(buffer[count * 100], 0xee);
	}
	close_files(&input, &files);
}

/* --- input_peek_places -----------------------------------------------------
 */

/* Of records[place's first + i]: width bytes from offset on. */
static void assert_peeks(uint32_t record_size, uint64_t records,
			 uint32_t offset, uint32_t width, unsigned places)
{
	struct files files = { .record_size = record_size,
			       .count = 1,
			       .records = { records } };
	uint64_t count = 4 * (uint64_t)places;
	struct failure failure = { 0 };
	struct input input;
	uint8_t *target;

	make_and_open(&input, &files, INPUT_MMAP);
	target = malloc(count * width);
	assert_int_equal(input_peek_places(&input, offset, width, count, places,
					   target, &failure),
			 0);
	for (uint64_t i = 0; i < count; i++) {
		uint64_t record = records * (i / 4) / places + i % 4;

		assert_memory_equal(
			target + i * width,
			files.expected + record * record_size + offset, width);
	}
	free(target);
	close_files(&input, &files);
}

static void input_peek_places__packs_what_is_asked_for(void **state)
{
	(void)state;
	assert_peeks(100, 1000, 0, 8, 32);
	assert_peeks(100, 128, 92, 8, 32);
	assert_peeks(13, 500, 3, 10, 8);
	/* A place does not fit the buffer, nor does a record. */
	assert_peeks(2000, 70, 1990, 10, 16);
	assert_peeks(5000, 40, 4999, 1, 4);
}

/* --- files cut short -------------------------------------------------------
 */

static void input_peek__shrank(void **state)
{
	struct files files = {
		.record_size = 100,
		.count = 1,
		.records = { 64 },
	};
	struct failure failure = { 0 };
	struct input input;
	uint8_t buffer[64 * 100];

	(void)state;
	make_and_open(&input, &files, INPUT_MMAP);
	assert_int_equal(truncate("a", 6250), 0);
	assert_true(input_peek(&input, buffer, 64, &failure) < 0);
	assert_string_equal(failure.why, "shrank while it was read");
	failure = (struct failure){ 0 };
	assert_true(input_peek_places(&input, 0, 8, 64, 16, buffer, &failure) <
		    0);
	assert_string_equal(failure.why, "shrank while it was read");
	close_files(&input, &files);
}

static void assert_shrinks(enum input_mode mode, off_t left)
{
	struct failure failure = { 0 };
	struct range_reader reader;
	struct source_run run;
	struct files files = several;
	struct input input;
	uint64_t records = 0;
	int more;

	make_and_map(&input, &files, mode);
	assert_int_equal(truncate("a", left), 0);
	assert_int_equal(
		range_open(&reader, &input, 0, files.total, false, &failure),
		0);
	while ((more = range_next(&reader, &run, &failure)) == 1)
		records += run.record_count;
	assert_true(more < 0);
	assert_true(records * 100 <= (uint64_t)left);
	assert_int_equal(failure.status, EXIT_FILE);
	assert_string_equal(failure.what, "a");
	assert_string_equal(failure.why, "shrank while it was read");
	range_close(&reader);
	close_files(&input, &files);
}

static void input_reader__shrank(void **state)
{
	(void)state;
	for (unsigned i = 0; i < ARRAY_LEN(modes); i++) {
		/* A mapping shows it by SIGBUS: see below. */
		if (modes[i] == INPUT_MMAP)
			continue;
		assert_shrinks(modes[i], 0);
		assert_shrinks(modes[i], 3 * PAGE_BYTES);
		assert_shrinks(modes[i], 4000000);
	}
	/* In the middle of a page: a mapping shows zeros instead. */
	assert_shrinks(INPUT_BUFFERED, 6999999);
	assert_shrinks(INPUT_DIRECT, 6999999);
}

/* What a child writes to stderr, and its status. */
static int run_child(void (*run)(void), char *text, size_t size)
{
	int ends[2];
	size_t length = 0;
	ssize_t got;
	pid_t child;

	assert_int_equal(pipe(ends), 0);
	child = fork();
	if (child == 0) {
		struct rlimit limit = { 0 };

		setrlimit(RLIMIT_CORE, &limit);
		dup2(ends[1], STDERR_FILENO);
		/* Neither cmocka nor a sanitizer shall catch what is not
		 * ours. */
		signal(SIGBUS, SIG_DFL);
		run();
		_exit(0);
	}
	close(ends[1]);
	while ((got = read(ends[0], text + length, size - 1 - length)) > 0)
		length += (size_t)got;
	text[length] = '\0';
	close(ends[0]);
	return wait_for(child);
}

/* Touch a mapped page that the file lost, past populating. */
static void touch_lost_page(void)
{
	const struct refusal no_tmpfile = { SYS_openat, 2, O_TMPFILE, O_TMPFILE,
					    EOPNOTSUPP };
	const char *const paths[] = { "a", "b\n" };
	struct failure failure;
	struct outfile file;
	struct input input;

	if (!refuse(&no_tmpfile) ||
	    outfile_open(&file, "out", NULL, &failure) ||
	    input_open(&input, paths, 2, LAYOUT(100), INPUT_MMAP, &failure) ||
	    input_map(&input, &failure) || truncate("b\n", 4096))
		_exit(CHILD_CANNOT);
	/* The first file is whole, the second's first page too. */
	if (input.base[0] != expected_byte(0))
		_exit(10);
	if (*input_address(&input, &input.files[1], 4095) != 0)
		_exit(11);
	*(volatile uint8_t *)input_address(&input, &input.files[1], 4096);
	_exit(12);
}

static void input_sigbus__one_line_and_exit_status(void **state)
{
	const uint8_t zeros[10000] = { 0 };
	uint8_t *bytes = expected_bytes(1000);
	char text[512];

	(void)state;
	make_file("a", bytes, 1000);
	free(bytes);
	make_file("b\n", zeros, 10000);
	assert_int_equal(run_child(touch_lost_page, text, sizeof(text)),
			 EXIT_FILE);
	assert_string_equal(text, "test: b\\x0a: shrank while it was read\n");
	/* The hidden output is gone: only a and b are here. */
	assert_int_equal(
		system("test \"$(ls -A | wc -l)\" = 3 && test ! -e out"), 0);
}

static void map_a(struct input *input)
{
	const char *const paths[] = { "a" };
	struct failure failure;

	if (input_open(input, paths, 1, LAYOUT(100), INPUT_MMAP, &failure) ||
	    input_map(input, &failure))
		_exit(CHILD_CANNOT);
}

static void touch_other_mapping(void)
{
	struct input input;
	int fd = open("other", O_RDWR | O_CREAT, 0600);
	volatile uint8_t *map;

	map_a(&input);
	map = mmap(NULL, 4096, PROT_READ, MAP_SHARED, fd, 0);
	(void)map[0];
}

static void touch_forgotten(void)
{
	struct input input;
	volatile uint8_t *map;
	void *base;
	int fd = open("other", O_RDWR | O_CREAT, 0600);

	map_a(&input);
	base = input.base;
	input_close(&input);
	map = mmap(base, 4096, PROT_READ, MAP_SHARED | MAP_FIXED, fd, 0);
	(void)map[0];
}

static void send_sigbus(void)
{
	struct input input;

	map_a(&input);
	raise(SIGBUS);
}

static void input_sigbus__others_as_ever(void **state)
{
	void (*const ways[])(void) = { touch_other_mapping, touch_forgotten,
				       send_sigbus };
	uint8_t *bytes = expected_bytes(1000);
	char text[512];

	(void)state;
	make_file("a", bytes, 1000);
	free(bytes);
	for (unsigned i = 0; i < ARRAY_LEN(ways); i++) {
		assert_int_equal(run_child(ways[i], text, sizeof(text)),
				 -SIGBUS);
		assert_string_equal(text, "");
	}
}

/* --- layout ----------------------------------------------------------------
 */

static void input_map__files_at_page_boundaries(void **state)
{
	(void)state;
	for (unsigned i = 0; i < ARRAY_LEN(record_sizes); i++) {
		struct files files = {
			.record_size = record_sizes[i],
			.count = 4,
			.records = { 1, 3, 0, 2 },
		};
		struct input input;
		uint64_t slot = 0;

		make_and_map(&input, &files, INPUT_MMAP);
		assert_int_equal((uintptr_t)input.base % HUGE_PAGE_BYTES, 0);
		for (unsigned j = 0; j < 4; j++) {
			const struct input_file *file = &input.files[j];

			if (file->record_count == 0)
				continue;
			assert_int_equal(
				(uintptr_t)input_address(&input, file, 0) %
					PAGE_BYTES,
				0);
			assert_in_range(file->first_slot, slot,
					slot + PAGE_BYTES - 1);
			slot = file->first_slot + file->record_count;
		}
		assert_int_equal(input.slot_count, slot);
		close_files(&input, &files);
	}
}

static void input_close__zeroed(void **state)
{
	struct input input = { 0 };
	struct range_reader reader = { .source = input_source(&input) };

	(void)state;
	range_close(&reader);
	input_close(&input);
	input_close(&input);
}

static void input_mode_name__all(void **state)
{
	(void)state;
	assert_string_equal(input_mode_names[INPUT_AUTO], "auto");
	assert_string_equal(input_mode_names[INPUT_BUFFERED], "buffered");
	assert_string_equal(input_mode_names[INPUT_MMAP], "mmap");
	assert_string_equal(input_mode_names[INPUT_DIRECT], "direct");
}

#define TEST(test) cmocka_unit_test_setup_teardown(test, setup, teardown)
#define SHM(test) cmocka_unit_test_setup_teardown(test, setup_shm, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(input_reader__every_mode_size_and_shape),
		TEST(input_reader__longer_than_the_queue),
		SHM(input_reader__longer_than_the_queue),
		TEST(input_reader__same_file_twice),
		TEST(input_reader__from_anywhere),
		TEST(input_reader__uses_the_queue),
		TEST(input_reader__two_threads),
		TEST(input_reader__refused_by_the_kernel),
		TEST(input_reader__no_direct_reads),
		TEST(shares__covers_all_and_is_aligned),
		TEST(shares__about_equal),
		TEST(input_open__refused),
		SHM(input_open__too_large),
		TEST(input_open__too_many),
		TEST(input_open__no_descriptors),
		TEST(input_open__size_unknown),
		TEST(input_choose__keeps_what_was_wanted),
		TEST(input_choose__mmap_when_empty),
		SHM(input_choose__by_residency),
		SHM(residency__counts_pages),
		TEST(input_peek__across_files),
		TEST(input_peek__shrank),
		TEST(input_peek_places__packs_what_is_asked_for),
		TEST(input_reader__shrank),
		SHM(input_reader__shrank),
		TEST(input_sigbus__one_line_and_exit_status),
		TEST(input_sigbus__others_as_ever),
		TEST(input_forget__every_part),
		TEST(input_map__files_at_page_boundaries),
		TEST(input_close__zeroed),
		TEST(input_mode_name__all),
	};

	log_init("test");
	root_fd = open("/", O_RDONLY | O_DIRECTORY);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
