/*
 * output_open.c - how an output begins: files, their room, direct writes
 */
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/base.h"
#include "io/output/outdevice.h"
#include "io/output/output.h"
#include "system/descriptors.h"

/* Direct writes under way at once: a virtio or NVMe disk is busy with 4 of
 * 2 MiB; more only take memory. */
#define DIRECT_DEPTH 4
_Static_assert(DIRECT_DEPTH >= 2, "output_slots_max() is the most");

/* A file, its folder, and the file for direct writes. */
#define OUTPUT_DESCRIPTORS 3

static void open_direct(struct output *output, struct output_file *file)
{
	int fd = descriptors_reopen(file->fd, O_WRONLY | O_DIRECT);

	if (fd < 0)
		output->direct = false;
	else
		file->write_fd = fd;
}

static void close_direct(struct output *output)
{
	for (unsigned i = 0; i < output->file_count; i++) {
		struct output_file *file = &output->files[i];

		if (file->write_fd != file->fd)
			close(file->write_fd);
		file->write_fd = file->fd;
	}
}

/*
 * Make room for the file before it is written: ext4 writes 100 MB into
 * allocated extents in 15 ms instead of 20; on tmpfs it costs more than it
 * saves, on XFS nothing changes.  A file on tmpfs is mapped.  A device has the
 * room, or not.
 */
static int prepare_room(const struct output *output, struct output_file *file,
			uint64_t record_bytes, struct failure *failure)
{
	uint64_t size_bytes = file->begin_bytes + record_bytes;
	struct statfs fs;
	int fd = file->fd;
	off_t size = (off_t)size_bytes;

	if (output->on_devices)
		return outdevice_check_size(fd, file->path, size_bytes,
					    failure);
	if (record_bytes == 0 || fstatfs(fd, &fs) < 0)
		return 0;
	if (fs.f_type == EXT4_SUPER_MAGIC) {
		if (fallocate(fd, 0, 0, size) == 0)
			return 0;
		if (errno == ENOSPC || errno == EFBIG || errno == EDQUOT)
			return failure_set(failure, EXIT_FILE, file->path,
					   errno, "");
	}
	if (fs.f_type != TMPFS_MAGIC)
		return 0;
	if (ftruncate(fd, size) < 0)
		return failure_set(failure, EXIT_FILE, file->path, errno, "");
	hugefile_open(&file->pages, fd, size_bytes);
	/* Stores through the mapping are for small pages. */
	file->map_refused = file->pages.huge_anyway;
	return 0;
}

/* No two outputs may have the same name: one would replace the other, and with
 * it a part of the records. */
static int check_targets(const struct output *output, struct failure *failure)
{
	const struct output_file *files = output->files;

	for (unsigned i = 1; i < output->file_count; i++)
		for (unsigned j = 0; j < i; j++)
			if (outfile_same_target(&files[i].outfile,
						&files[j].outfile))
				return failure_set(failure, EXIT_USAGE,
						   files[i].path, 0,
						   "is an output file twice");
	return 0;
}

static int init(struct output *output, const uint64_t *sizes_bytes,
		unsigned file_count, bool direct, struct failure *failure)
{
	assert(file_count <= OUTPUT_FILES_MAX);
	memset(output, 0, sizeof(*output));
	pthread_mutex_init(&output->lock, NULL);
	output->direct = direct;
	output->files = calloc(file_count, sizeof(*output->files));
	if (output->files)
		output->part_bytes =
			calloc(file_count, sizeof(*output->part_bytes));
	if (!output->part_bytes)
		return failure_no_memory(failure);
	memcpy(output->part_bytes, sizes_bytes,
	       file_count * sizeof(*sizes_bytes));
	output->sink = (struct sink){
		.ops = &output_operations,
		.part_count = file_count,
		.part_bytes = output->part_bytes,
	};
	return 0;
}

/* inputs: NULL, or the file is a device.  mark: as of outfile_open(). */
static int open_file(struct output_file *file, const char *path,
		     const struct output_inputs *inputs, const char *mark,
		     struct failure *failure)
{
	int error = 0;

	file->path = path;
	if (inputs) {
		file->fd = outdevice_open(path, inputs->paths, inputs->count,
					  failure);
		error = MIN(file->fd, 0);
	} else {
		error = outfile_open(&file->outfile, path, mark, failure);
		file->fd = file->outfile.fd;
	}
	file->write_fd = file->fd;
	return error;
}

int output_open(struct output *output, const char *const *paths,
		const uint64_t *sizes_bytes, unsigned file_count,
		uint64_t header_bytes, const struct output_inputs *inputs,
		bool direct, struct failure *failure)
{
	int error = init(output, sizes_bytes, file_count, direct, failure);

	if (error)
		return error;
	output->on_devices = inputs != NULL;
	output->header_bytes = header_bytes;
	descriptors_raise(file_count * OUTPUT_DESCRIPTORS);
	for (unsigned i = 0; i < file_count && error == 0; i++) {
		struct output_file *file = &output->files[i];

		error = open_file(file, paths[i], inputs, NULL, failure);
		if (error)
			break;
		output->file_count++;
		file->begin_bytes = header_bytes;
		error = prepare_room(output, file, output->part_bytes[i],
				     failure);
		if (error == 0 && output->direct)
			open_direct(output, file);
	}
	if (error)
		return error;
	if (output->direct)
		write_queue_open(&output->queue, DIRECT_DEPTH);
	else
		close_direct(output);
	/* O_EXCL refuses a device that is named twice. */
	return inputs ? 0 : check_targets(output, failure);
}

/* The file gets its whole size at once, before anything is written: a machine
 * that takes the end of its part for the end of the file would clear the rest
 * of that page, where another machine writes. */
int output_open_part(struct output *output, const char *path,
		     const struct output_part *part, struct failure *failure)
{
	int error = init(output, &part->size_bytes, 1, false, failure);
	struct output_file *file = output->files;

	if (error)
		return error;
	error = open_file(file, path, NULL, part->mark, failure);
	if (error)
		return error;
	output->file_count = 1;
	output->header_bytes = part->header_bytes;
	file->begin_bytes = part->begin_bytes;
	if (ftruncate(file->fd, (off_t)part->whole_bytes) < 0)
		return failure_set(failure, EXIT_FILE, path, errno, "");
	return 0;
}

int output_set_sizes(struct output *output, const uint64_t *sizes_bytes,
		     struct failure *failure)
{
	int error = 0;

	for (unsigned i = 0; i < output->file_count && error == 0; i++) {
		if (output->part_bytes[i] > 0)
			output->sizes_lowered = true;
		else
			error = prepare_room(output, &output->files[i],
					     sizes_bytes[i], failure);
		output->part_bytes[i] = sizes_bytes[i];
	}
	return error;
}

uint64_t output_room_bytes(const struct output *output)
{
	uint64_t bytes = 0;

	for (unsigned i = 0; i < output->file_count; i++) {
		struct stat status;

		if (fstat(output->files[i].fd, &status) == 0)
			bytes += (uint64_t)status.st_blocks * 512;
	}
	return bytes;
}

void output_move_part(struct output *output, uint64_t begin_bytes,
		      uint64_t size_bytes)
{
	output->files[0].begin_bytes = begin_bytes;
	output->part_bytes[0] = size_bytes;
}

size_t output_chunk_bytes_max(const struct output *output)
{
	for (unsigned i = 0; i < output->file_count; i++)
		if (output->files[i].pages.map ||
		    output->files[i].pages.huge_anyway)
			return OUTPUT_CHUNK_BYTES_MAX;
	return OUTPUT_CHUNK_BYTES;
}

unsigned output_slots_max(unsigned workers)
{
	return MIN(workers + DIRECT_DEPTH, OUTPUT_SLOTS_MAX);
}

unsigned output_slots_wanted(const struct output *output, unsigned workers)
{
	unsigned wanted = workers + 1;

	/* A lone worker fills and writes by turns. */
	if (workers == 1 && !output->direct)
		return 1;
	/* A slot that is being written is neither being filled nor free. */
	if (output->direct)
		wanted = workers + DIRECT_DEPTH;
	/* A second writer keeps one more slot busy. */
	for (unsigned i = 0; i < output->file_count && !output->direct; i++)
		if (output->files[i].pages.map)
			wanted = workers + 2;
	return MIN(wanted, OUTPUT_SLOTS_MAX);
}

void output_set_slots(struct output *output, uint8_t *memory,
		      unsigned slot_count, size_t chunk_bytes)
{
	assert(slot_count <= OUTPUT_SLOTS_MAX);
	assert(chunk_bytes % PAGE_BYTES == 0);
	output->sink.chunk_bytes = chunk_bytes;
	output->sink.lead_bytes = output->header_bytes % chunk_bytes;
	output->slot_count = slot_count;
	for (unsigned i = 0; i < slot_count; i++)
		output->slots[i].data = memory + i * chunk_bytes;
}
