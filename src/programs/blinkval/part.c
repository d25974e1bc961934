/*
 * part.c - opens and reads the files that blinkval checks
 */
#include "programs/blinkval/part.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "io/direct.h"
#include "io/file_io.h"
#include "io/pipe.h"
#include "system/descriptors.h"

static int part_failed(const struct part *part, int error, const char *why,
		       struct failure *failure)
{
	return failure_set(failure, EXIT_FILE, part->path, error, "%s", why);
}

/* --- opening -------------------------------------------------------------- */

static void open_fd(struct part *part, const char *path)
{
	part->path = path;
	part->fd = STDIN_FILENO;
	if (pipe_is_word(path))
		part->path = PIPE_INPUT_NAME;
	else
		part->fd = open(path, O_RDONLY | O_CLOEXEC);
}

static void open_stream(struct part *part)
{
	part->is_stream = true;
	pthread_mutex_init(&part->reading, NULL);
	pipe_widen(part->fd);
}

static int open_bytes(struct part *part, uint64_t size_bytes,
		      uint32_t record_size, struct failure *failure)
{
	uint64_t record_bytes = size_bytes - part->header_bytes;
	ssize_t n;

	if (size_bytes < part->header_bytes)
		return input_refuse_header(part->path, size_bytes,
					   part->header_bytes, failure);
	if (part->header) {
		n = file_read_at(part->fd, part->header, part->header_bytes, 0);
		if (n < 0)
			return part_failed(part, (int)-n, "cannot read",
					   failure);
		if ((uint64_t)n < part->header_bytes)
			return input_refuse_header(part->path, (uint64_t)n,
						   part->header_bytes, failure);
	}
	part->record_count = record_bytes / record_size;
	part->fragment_bytes = record_bytes % record_size;
	if (direct_suits(part->fd, size_bytes) && descriptors_spare(part->fd))
		part->direct_fd =
			descriptors_reopen(part->fd, O_RDONLY | O_DIRECT);
	return 0;
}

static int open_file(struct part *part, const struct stat *status,
		     const struct input_layout *layout, struct failure *failure)
{
	off_t size = status->st_size;
	int ret;

	part->is_device = S_ISBLK(status->st_mode);
	if (part->is_device)
		size = lseek(part->fd, 0, SEEK_END);
	if (size < 0)
		return part_failed(part, errno, "cannot find its size",
				   failure);
	if (part->is_device && layout->device_bytes > (uint64_t)size)
		return failure_set(failure, EXIT_FILE, part->path, 0,
				   "it has %lld bytes, fewer than "
				   "--device-bytes",
				   (long long)size);
	if (part->is_device && layout->device_bytes > 0)
		size = (off_t)layout->device_bytes;
	ret = file_check_size(part->fd, status, part->path, failure);
	return ret < 0 ? ret
		       : open_bytes(part, (uint64_t)size, layout->record_size,
				    failure);
}

int part_open(struct part *part, const char *path, bool is_input,
	      const struct input_layout *layout, struct failure *failure)
{
	/* Any file may have descriptor 0 if standard input is closed. */
	bool is_stdin = pipe_is_word(path);
	struct stat status;
	int ret = 0;

	*part = (struct part){ .is_input = is_input,
			       .direct_fd = -1,
			       .header_bytes = layout->header_bytes };
	if (layout->header_bytes > 0 && layout->keeps_header) {
		part->header = malloc(layout->header_bytes);
		if (!part->header)
			return failure_no_memory(failure);
	}
	open_fd(part, path);
	if (part->fd < 0 || fstat(part->fd, &status) < 0)
		return failure_set(failure, EXIT_FILE, part->path, errno, "");
	if (S_ISDIR(status.st_mode))
		return part_failed(part, EISDIR, "cannot read", failure);
	/* Standard input is read from where it is, even if it is a file. */
	if ((S_ISREG(status.st_mode) || S_ISBLK(status.st_mode)) && !is_stdin)
		ret = open_file(part, &status, layout, failure);
	else if (S_ISBLK(status.st_mode) && layout->device_bytes > 0)
		ret = failure_set(failure, EXIT_USAGE, "--device-bytes", 0,
				  "not with a block device as standard input; "
				  "name the device");
	else
		open_stream(part);
	if (ret < 0 || is_input)
		return ret;
	part->first = malloc(2 * (size_t)layout->record_size);
	if (!part->first)
		return failure_no_memory(failure);
	part->last = part->first + layout->record_size;
	return 0;
}

/* --- a file or a device -----------------------------------------------------
 */

/* Read all pages that the bytes lie in.  Returns false if they are not all
 * there, or the kernel refuses. */
static bool read_direct(const struct part *part, uint64_t offset_bytes,
			size_t length_bytes, uint8_t *window)
{
	size_t skip = offset_bytes % PAGE_BYTES;
	ssize_t n = pread(part->direct_fd, window,
			  ROUND_UP(skip + length_bytes, PAGE_BYTES),
			  (off_t)(offset_bytes - skip));

	return n >= 0 && (size_t)n >= skip + length_bytes;
}

uint8_t *part_read(const struct part *part, uint64_t offset_bytes,
		   size_t length_bytes, uint8_t *window,
		   struct failure *failure)
{
	ssize_t n;

	offset_bytes += part->header_bytes;
	if (part->direct_fd >= 0 &&
	    read_direct(part, offset_bytes, length_bytes, window))
		return window + offset_bytes % PAGE_BYTES;
	n = file_read_at(part->fd, window, length_bytes, offset_bytes);
	if (n < 0)
		part_failed(part, (int)-n, "cannot read", failure);
	else if ((size_t)n < length_bytes)
		part_failed(part, 0, "became shorter while it was read",
			    failure);
	else
		return window;
	return NULL;
}

/* --- a stream ------------------------------------------------------------- */

static int skip_header(struct part *part, uint8_t *piece, size_t piece_bytes,
		       struct failure *failure)
{
	uint64_t done = 0;

	while (done < part->header_bytes) {
		ssize_t n =
			pipe_read(part->fd, piece,
				  MIN(piece_bytes, part->header_bytes - done));

		if (n < 0)
			return part_failed(part, (int)-n, "cannot read",
					   failure);
		if (n == 0)
			return input_refuse_header(part->path, done,
						   part->header_bytes, failure);
		if (part->header)
			memcpy(part->header + done, piece, (size_t)n);
		done += (uint64_t)n;
	}
	return 0;
}

int64_t part_read_stream(struct part *part, uint8_t *piece, size_t piece_bytes,
			 uint32_t record_size, uint64_t *first, uint8_t *before,
			 struct failure *failure)
{
	int64_t count;
	ssize_t n;

	if (part->is_at_end)
		return 0;
	if (part->record_count == 0 &&
	    skip_header(part, piece, piece_bytes, failure) < 0) {
		part->is_at_end = true;
		return -EINVAL;
	}
	n = pipe_read(part->fd, piece, piece_bytes);
	part->is_at_end = n < (ssize_t)piece_bytes;
	if (n < 0)
		return part_failed(part, (int)-n, "cannot read", failure);
	part->fragment_bytes = (size_t)n % record_size;
	count = n / record_size;
	if (count == 0)
		return 0;
	*first = part->record_count;
	part->record_count += (uint64_t)count;
	if (!part->is_input) {
		memcpy(before, part->last, record_size);
		memcpy(part->last, piece + (count - 1) * record_size,
		       record_size);
	}
	return count;
}
