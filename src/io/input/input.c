/* input.c - the input's files: opened, checked, mapped or given memory */
#include "io/input/input.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/base.h"
#include "io/file_io.h"
#include "io/input/sigbus.h"
#include "record/record.h"
#include "system/arena.h"
#include "system/descriptors.h"
#include "system/residency.h"

/* AUTO reads directly if less than this share of the input is in the page
 * cache. */
#define RESIDENT_PERCENT 90

const char *const input_mode_names[] = {
	[INPUT_AUTO] = "auto",
	[INPUT_BUFFERED] = "buffered",
	[INPUT_MMAP] = "mmap",
	[INPUT_DIRECT] = "direct",
};

static int refuse(const struct input_file *file, struct failure *failure,
		  int error, const char *reason)
{
	return failure_set(failure, EXIT_FILE, file->path, error, "%s", reason);
}

/* --- opening ---------------------------------------------------------------
 */

/* Find out what the descriptor is and how big. */
static int check_file(struct input_file *file, struct failure *failure)
{
	struct stat status;
	off_t size;

	if (fstat(file->fd, &status))
		return refuse(file, failure, errno, "cannot open");
	if (!S_ISREG(status.st_mode) && !S_ISBLK(status.st_mode))
		return refuse(file, failure, 0,
			      S_ISDIR(status.st_mode)
				      ? "is a folder, not a file"
				      : "not a regular file");
	size = status.st_size;
	if (S_ISBLK(status.st_mode))
		size = lseek(file->fd, 0, SEEK_END);
	if (size < 0)
		return refuse(file, failure, errno, "cannot find its size");
	file->device = status.st_dev;
	file->inode = status.st_ino;
	file->size_bytes = (uint64_t)size;
	file->is_device = S_ISBLK(status.st_mode);
	return file_check_size(file->fd, &status, file->path, failure);
}

/* The lock keeps a blinksort from writing to the device; and only its first
 * device_bytes are the input. */
static int take_device(struct input_file *file, uint64_t device_bytes,
		       struct failure *failure)
{
	if (file->size_bytes == 0)
		return refuse(file, failure, 0, "it has no medium");
	if (flock(file->fd, LOCK_SH | LOCK_NB) < 0 && errno == EWOULDBLOCK)
		return refuse(file, failure, 0,
			      "it is in use: another program has locked it");
	if (device_bytes > file->size_bytes)
		return failure_set(failure, EXIT_FILE, file->path, 0,
				   "it has %" PRIu64 " bytes, fewer than "
				   "--device-bytes",
				   file->size_bytes);
	if (device_bytes > 0)
		file->size_bytes = device_bytes;
	return 0;
}

/* blinkd runs its jobs in the folder /: there a relative name mostly leads
 * nowhere, and the line that blinksh shows must say why. */
static int cannot_open(const struct input_file *file, struct failure *failure)
{
	int error = errno;
	char folder[sizeof("/")]; /* no other folder fits */
	bool in_root = file->path[0] != '/' && getcwd(folder, sizeof(folder));

	return refuse(file, failure, error,
		      in_root ? "cannot open in the folder /" : "cannot open");
}

/* Files of NumPy begin with a magic number, the version of their format, and
 * the length of what precedes the array: 2 bytes of it, or 4 since version 2.
 */
static int refuse_npy(const struct input_file *file, struct failure *failure)
{
	static const uint8_t magic[] = "\x93NUMPY";
	uint8_t head[12];

	if (file_read_at(file->fd, head, sizeof(head), 0) != sizeof(head) ||
	    memcmp(head, magic, sizeof(magic) - 1) != 0)
		return 0;
	return failure_set(failure, EXIT_FILE, file->path, 0,
			   "is a NumPy file: sort it with --header=%" PRIu64
			   " (or 0, if it is not)",
			   head[6] == 1 ? 10u + (head[8] | head[9] << 8)
					: 12 + (uint64_t)load_le32(head + 8));
}

int input_refuse_header(const char *path, uint64_t bytes, uint64_t header_bytes,
			struct failure *failure)
{
	return failure_set(failure, EXIT_FILE, path, 0,
			   "%" PRIu64 " bytes are fewer than the %" PRIu64
			   " of --header",
			   bytes, header_bytes);
}

int input_refuse_partial(const char *path, uint64_t bytes,
			 const struct input_layout *layout, const char *hint,
			 struct failure *failure)
{
	return failure_set(
		failure, EXIT_FILE, path, 0,
		"%" PRIu64 " bytes%s are not a whole number of %" PRIu32
		"-byte records%s: %s",
		bytes, layout->header_bytes > 0 ? " behind the header" : "",
		layout->record_size, record_size_note(layout->record_size),
		hint ? hint
		     : "is there a header (--header), or another "
		       "--record-size?");
}

static int count_records(struct input_file *file,
			 const struct input_layout *layout,
			 struct failure *failure)
{
	uint64_t bytes = file->size_bytes - layout->header_bytes;

	if (file->size_bytes < layout->header_bytes)
		return input_refuse_header(file->path, file->size_bytes,
					   layout->header_bytes, failure);
	file->record_count = bytes / layout->record_size;
	if (bytes % layout->record_size == 0)
		return 0;
	return input_refuse_partial(
		file->path, bytes, layout,
		file->is_device && layout->device_bytes == 0
			? "how many are, --device-bytes says"
			: NULL,
		failure);
}

static int open_file(struct input_file *file, const struct input_layout *layout,
		     struct failure *failure)
{
	int error;

	/* O_NONBLOCK keeps open() from waiting for the writer of a pipe. */
	file->fd = open(file->path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	if (file->fd < 0)
		return cannot_open(file, failure);
	error = check_file(file, failure);
	if (error == 0 && file->is_device)
		error = take_device(file, layout->device_bytes, failure);
	if (error == 0 && layout->refuses_npy && !file->is_device)
		error = refuse_npy(file, failure);
	return error ? error : count_records(file, layout, failure);
}

/* Give a file its slots, behind those of the files before it. */
static int place_file(struct input *input, struct input_file *file,
		      struct failure *failure)
{
	uint64_t bytes;

	file->first_record = input->record_count;
	file->first_slot = input->slot_count;
	if (file->record_count == 0)
		return 0;
	if (input->slot_count > 0)
		file->first_slot =
			ROUND_UP(input->slot_count + input_lead_slots(input),
				 input->align_records);
	input->slot_count = file->first_slot + file->record_count;
	input->record_count += file->record_count;
	/* No sum of two sizes wraps.  There is room to round up the product to
	 * huge pages, and to reserve one more. */
	if (__builtin_mul_overflow(input->slot_count, input->record_size,
				   &bytes) ||
	    bytes > (uint64_t)PTRDIFF_MAX - 4 * HUGE_PAGE_BYTES)
		return refuse(file, failure, EFBIG, "the input is too large");
	return 0;
}

static int keep_header(struct input *input, struct failure *failure)
{
	input->header = malloc(input->header_bytes);
	if (!input->header)
		return failure_no_memory(failure);
	return input_read_at(&input->files[0], input->header, 0,
			     input->header_bytes, failure);
}

int input_open(struct input *input, const char *const *paths,
	       unsigned path_count, const struct input_layout *layout,
	       enum input_mode mode, struct failure *failure)
{
	bool has_device = false;
	int error = 0;

	*input = (struct input){
		.record_size = layout->record_size,
		.header_bytes = layout->header_bytes,
		.mode = mode,
		/* The greatest common divisor of both sizes is a power of two:
		 * the record's own, or the page. */
		.align_records = PAGE_BYTES /
				 MIN(PAGE_BYTES, layout->record_size &
							 -layout->record_size),
	};
	if (path_count > INPUT_FILES_MAX)
		return failure_set(failure, EXIT_USAGE, NULL, 0,
				   "more than %d input files", INPUT_FILES_MAX);
	descriptors_raise(path_count);
	input->files = calloc(MAX(path_count, 1u), sizeof(*input->files));
	if (!input->files)
		return failure_set(failure, EXIT_RESOURCES, NULL, ENOMEM,
				   "the input files");
	for (unsigned i = 0; i < path_count && !error; i++) {
		struct input_file *file = &input->files[input->file_count++];

		file->path = paths[i];
		file->fd = -1;
		file->direct_fd = -1;
		error = open_file(file, layout, failure);
		if (!error)
			error = place_file(input, file, failure);
		has_device |= file->is_device;
	}
	if (!error && path_count > 0 && layout->header_bytes > 0 &&
	    layout->keeps_header)
		error = keep_header(input, failure);
	if (!error && layout->device_bytes > 0 && path_count > 0 && !has_device)
		error = failure_set(failure, EXIT_USAGE, "--device-bytes", 0,
				    "no input is a block device");
	return error;
}

void input_leave(struct input *input)
{
	free(input->files);
	free(input->header);
	*input = (struct input){ 0 };
}

void input_close(struct input *input)
{
	if (input->base) {
		uint8_t *begin =
			input_start(input) - input->reserved_before_bytes;
		size_t bytes = input->reserved_before_bytes + input->map_bytes +
			       input->reserved_after_bytes;

		/* Other files may have been mapped into the reserved space. */
		sigbus_forget(begin, bytes);
		munmap(begin, bytes);
	}
	for (unsigned i = 0; i < input->file_count; i++) {
		if (input->files[i].fd >= 0)
			close(input->files[i].fd);
		if (input->files[i].direct_fd >= 0)
			close(input->files[i].direct_fd);
	}
	input_leave(input);
}

void input_forget(const struct input *input, unsigned part, unsigned parts)
{
	uint64_t begin, end;

	if (input->mode != INPUT_MMAP || !input->base)
		return;
	begin = input->map_bytes / PAGE_BYTES * part / parts * PAGE_BYTES;
	end = input->map_bytes / PAGE_BYTES * (part + 1) / parts * PAGE_BYTES;
	/* A failure costs nothing but time: the exit of the process unmaps the
	 * pages. */
	madvise(input_start(input) + begin, end - begin, MADV_DONTNEED);
}

/* --- the memory ------------------------------------------------------------
 */

void input_choose(struct input *input)
{
	uint64_t total = 0;
	uint64_t resident = 0;

	if (input->mode != INPUT_AUTO)
		return;
	for (unsigned i = 0; i < input->file_count; i++) {
		const struct input_file *file = &input->files[i];

		total += file->size_bytes;
		resident += MIN(residency_estimate(file->fd, file->size_bytes),
				file->size_bytes);
	}
	input->mode = total - resident <= total / 100 * (100 - RESIDENT_PERCENT)
			      ? INPUT_MMAP
			      : INPUT_DIRECT;
}

uint64_t input_layout_bytes(uint64_t bytes)
{
	/* Round up to whole huge pages; but for a small input the kernel would
	 * clear most of one for nothing. */
	return ROUND_UP(bytes,
			bytes < HUGE_PAGE_BYTES ? PAGE_BYTES : HUGE_PAGE_BYTES);
}

static uint64_t layout_bytes(const struct input *input)
{
	return input_layout_bytes(input_lead_bytes(input) +
				  input->slot_count * input->record_size);
}

uint64_t input_memory_bytes(const struct input *input)
{
	return input->mode == INPUT_MMAP ? 0 : layout_bytes(input);
}

/* Reserve space for the input and around it; the sum must not wrap. */
static uint8_t *reserve_all(struct input *input)
{
	uint64_t bytes;
	uint8_t *start;

	if (input->reserved_before_bytes > PTRDIFF_MAX / 4 ||
	    input->reserved_after_bytes > PTRDIFF_MAX / 4) {
		errno = ENOMEM;
		return NULL;
	}
	input->reserved_before_bytes =
		ROUND_UP(input->reserved_before_bytes +
				 input_lead_slots(input) * input->record_size,
			 HUGE_PAGE_BYTES);
	if (input->reserved_after_bytes > 0)
		/* input_space.c may make the last huge page accessible as a
		 * whole. */
		input->reserved_after_bytes =
			ROUND_UP(input->map_bytes + PAGE_BYTES +
					 input->record_size +
					 input->reserved_after_bytes,
				 HUGE_PAGE_BYTES) -
			input->map_bytes;
	bytes = input->reserved_before_bytes + input->map_bytes +
		input->reserved_after_bytes;
	start = bytes > PTRDIFF_MAX - HUGE_PAGE_BYTES
			? NULL
			: arena_reserve(bytes, PROT_NONE);
	if (!start)
		return NULL;
	return start + input->reserved_before_bytes + input_lead_bytes(input);
}

/* The last file is mapped with all of its last huge page, which would otherwise
 * be mapped by small pages; unless other records go there. */
static size_t mapped_bytes(const struct input *input,
			   const struct input_file *file,
			   const uint8_t *address, uint64_t offset)
{
	if (file != &input->files[input->file_count - 1] ||
	    (input->reserved_after_bytes > 0 && !input->exclusive_tail))
		return file->size_bytes - offset;
	return (size_t)(input_start(input) + input->map_bytes - address);
}

static int map_file(const struct input *input, const struct input_file *file,
		    struct failure *failure)
{
	uint64_t offset = ROUND_DOWN(input->header_bytes, PAGE_BYTES);
	uint8_t *address = input_address(input, file, offset);
	int error;

	if (mmap(address, mapped_bytes(input, file, address, offset), PROT_READ,
		 MAP_SHARED | MAP_FIXED, file->fd, (off_t)offset) == MAP_FAILED)
		return refuse(file, failure, errno, "cannot map");
	error = sigbus_watch(address,
			     ROUND_UP(file->size_bytes - offset, PAGE_BYTES),
			     file->fd, offset, file->path);
	if (error)
		return failure_set(failure, EXIT_RESOURCES, file->path, -error,
				   "cannot watch its mapping");
	return 0;
}

static int map_memory(struct input *input, struct failure *failure)
{
	uint8_t *start = input_start(input);

	if (mprotect(start, input->map_bytes, PROT_READ | PROT_WRITE))
		return failure_set(failure, EXIT_RESOURCES, NULL, errno,
				   "memory for the input");
	madvise(start, input->map_bytes, MADV_HUGEPAGE);
	return 0;
}

/* A second descriptor, which bypasses the page cache; plain reads need the
 * first one. */
static int open_directly(const struct input_file *file)
{
	const int flags = O_RDONLY | O_DIRECT | O_CLOEXEC | O_NONBLOCK;
	int fd = descriptors_reopen(file->fd, flags);
	struct stat status;

	if (fd == -ENOENT)
		fd = open(file->path, flags);
	if (fd < 0)
		return -1;
	/* Another file may have got the path meanwhile. */
	if (fstat(fd, &status) == 0 && status.st_dev == file->device &&
	    status.st_ino == file->inode)
		return fd;
	close(fd);
	return -1;
}

void input_open_directly(struct input *input)
{
	int last_fd = 0;

	for (unsigned i = 0; i < input->file_count; i++)
		last_fd = MAX(last_fd, input->files[i].fd);
	for (unsigned i = 0; i < input->file_count; i++) {
		struct input_file *file = &input->files[i];

		if (file->record_count == 0)
			continue;
		if (!descriptors_spare(last_fd))
			return;
		file->direct_fd = open_directly(file);
		last_fd = MAX(last_fd, file->direct_fd);
	}
}

int input_map(struct input *input, struct failure *failure)
{
	int error = 0;

	/* An empty input gets an address, too. */
	input->map_bytes = MAX(layout_bytes(input), (uint64_t)PAGE_BYTES);
	input->base = reserve_all(input);
	if (!input->base)
		return failure_set(failure, EXIT_RESOURCES, NULL, errno,
				   "address space for the input");
	if (input->mode != INPUT_MMAP)
		error = map_memory(input, failure);
	for (unsigned i = 0; i < input->file_count && !error; i++)
		if (input->mode == INPUT_MMAP &&
		    input->files[i].record_count > 0)
			error = map_file(input, &input->files[i], failure);
	if (input->mode == INPUT_DIRECT && !error)
		input_open_directly(input);
	return error;
}

unsigned input_find_file(const struct input *input, uint64_t record)
{
	unsigned file = 0;

	while (record - input->files[file].first_record >=
	       input->files[file].record_count)
		file++;
	return file;
}

/* --- reading ---------------------------------------------------------------
 */

int input_read_at(const struct input_file *file, uint8_t *target,
		  uint64_t offset, uint64_t bytes, struct failure *failure)
{
	ssize_t got = file_read_at(file->fd, target, bytes, offset);

	if (got < 0)
		return refuse(file, failure, (int)-got, "cannot read");
	return (uint64_t)got < bytes ? refuse(file, failure, 0, SIGBUS_SHRANK)
				     : 0;
}

int64_t input_peek(const struct input *input, uint8_t *buffer, uint64_t count,
		   struct failure *failure)
{
	uint64_t done = 0;

	for (unsigned i = 0; i < input->file_count && done < count; i++) {
		const struct input_file *file = &input->files[i];
		uint64_t records = MIN(count - done, file->record_count);
		int error = input_read_at(
			file, buffer + done * input->record_size,
			input_offset(input, file, file->first_record),
			records * input->record_size, failure);

		if (error)
			return error;
		done += records;
	}
	return (int64_t)done;
}

int input_check(const struct input *input, struct failure *failure)
{
	for (unsigned i = 0; i < input->file_count; i++) {
		const struct input_file *file = &input->files[i];
		struct stat status;

		if (fstat(file->fd, &status) == 0 && S_ISREG(status.st_mode) &&
		    (uint64_t)status.st_size < file->size_bytes)
			return refuse(file, failure, 0, SIGBUS_SHRANK);
	}
	return 0;
}

/* Short records of a place are read at once. */
#define PEEK_BYTES 4096

static int peek_place(const struct input_file *file, uint32_t record_size,
		      uint64_t offset, uint32_t width, uint64_t count,
		      uint8_t *target, struct failure *failure)
{
	uint8_t bytes[PEEK_BYTES];

	while (count > 0) {
		uint64_t here = MIN(count, MAX(PEEK_BYTES / record_size, 1));
		int error = input_read_at(file, bytes, offset,
					  (here - 1) * record_size + width,
					  failure);

		if (error)
			return error;
		for (uint64_t i = 0; i < here; i++, target += width)
			memcpy(target, bytes + i * record_size, width);
		offset += here * record_size;
		count -= here;
	}
	return 0;
}

int input_peek_places(const struct input *input, uint32_t offset,
		      uint32_t width, uint64_t count, unsigned places,
		      uint8_t *target, struct failure *failure)
{
	const struct input_file *file = &input->files[0];
	uint64_t each = count / places;

	assert(width <= PEEK_BYTES && count % places == 0);
	for (unsigned i = 0; i < places; i++) {
		uint64_t first = file->record_count * i / places;
		int error = peek_place(
			file, input->record_size,
			input_offset(input, file, first) + offset, width, each,
			target + i * each * width, failure);

		if (error)
			return error;
	}
	return 0;
}
