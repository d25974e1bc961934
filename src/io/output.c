#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <liburing.h>
#include <linux/magic.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/base.h"
#include "io/output.h"

/* Linux 5.14; older libc headers lack the name. */
#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

/* Direct writes under way at once: a virtio or NVMe disk is busy with 4 of
 * 2 MiB; more only take memory. */
#define DIRECT_DEPTH 4
_Static_assert(DIRECT_DEPTH >= 2, "output_slots_max() is the most");

/* With the lock held. */
static void fail(struct output *output, const struct output_file *file,
		 int error)
{
	if (output->failed)
		return;
	failure_set(&output->failure, EXIT_FILE, file->outfile.path, -error,
		    "");
	output->failed = true;
}

/* Large enough for few system calls, small enough to stay in a cache until it
 * is written: 2 MiB take 10 % longer on ext4.  On tmpfs chunks are whole huge
 * pages: half of one costs clearing the other half, 13 % of the CPU time. */
#define CHUNK_BYTES MIB

/* ------------------------------------------------------------- preparing */

/* The file again with O_DIRECT, which an unnamed file allows by its name under
 * /proc. */
static void open_direct(struct output *output, struct output_file *file)
{
	char name[64];
	int fd;

	snprintf(name, sizeof(name), "/proc/self/fd/%d", file->outfile.fd);
	fd = open(name, O_WRONLY | O_DIRECT | O_CLOEXEC);
	if (fd < 0)
		output->direct = false;
	else
		file->write_fd = fd;
}

static void close_direct(struct output *output)
{
	for (unsigned i = 0; i < output->file_count; i++) {
		struct output_file *file = &output->files[i];

		if (file->write_fd != file->outfile.fd)
			close(file->write_fd);
		file->write_fd = file->outfile.fd;
	}
}

/*
 * Room for the file before it is written: ext4 writes 100 MB into allocated
 * extents in 15 ms instead of 20; on tmpfs it costs more than it saves, on XFS
 * nothing changes.  A file on tmpfs is mapped.
 */
static int prepare_room(struct output_file *file, struct failure *failure)
{
	struct statfs fs;
	int fd = file->outfile.fd;
	off_t size = (off_t)file->size_bytes;

	if (size == 0 || fstatfs(fd, &fs) < 0)
		return 0;
	if (fs.f_type == EXT4_SUPER_MAGIC) {
		if (fallocate(fd, 0, 0, size) == 0)
			return 0;
		if (errno == ENOSPC || errno == EFBIG || errno == EDQUOT)
			return failure_set(failure, EXIT_FILE,
					   file->outfile.path, errno, "");
	}
	if (fs.f_type != TMPFS_MAGIC)
		return 0;
	if (ftruncate(fd, size) < 0)
		return failure_set(failure, EXIT_FILE, file->outfile.path,
				   errno, "");
	hugefile_open(&file->pages, fd, file->size_bytes);
	/* Stores are for small pages. */
	file->map_refused = file->pages.huge_anyway;
	return 0;
}

/* One would replace the other, and with it a part of the records. */
static int check_targets(const struct output *output, struct failure *failure)
{
	const struct output_file *files = output->files;

	for (unsigned i = 1; i < output->file_count; i++)
		for (unsigned j = 0; j < i; j++)
			if (outfile_same_target(&files[i].outfile,
						&files[j].outfile))
				return failure_set(failure, EXIT_USAGE,
						   files[i].outfile.path, 0,
						   "is an output file twice");
	return 0;
}

static void open_ring(struct output *output)
{
	output->ring = calloc(1, sizeof(*output->ring));
	if (output->ring &&
	    io_uring_queue_init(DIRECT_DEPTH, output->ring, 0) == 0)
		return;
	free(output->ring);
	output->ring = NULL;
}

static int init(struct output *output, unsigned file_count, bool direct,
		struct failure *failure)
{
	memset(output, 0, sizeof(*output));
	pthread_mutex_init(&output->lock, NULL);
	output->direct = direct;
	output->files = calloc(file_count, sizeof(*output->files));
	if (output->files)
		return 0;
	return failure_set(failure, EXIT_RESOURCES, NULL, ENOMEM, "");
}

int output_open(struct output *output, const char *const *paths,
		const uint64_t *sizes_bytes, unsigned file_count, bool direct,
		struct failure *failure)
{
	int error = init(output, file_count, direct, failure);

	if (error)
		return error;
	for (unsigned i = 0; i < file_count && error == 0; i++) {
		struct output_file *file = &output->files[i];

		file->outfile = (struct outfile)OUTFILE_NONE;
		error = outfile_open(&file->outfile, paths[i], failure);
		if (error)
			break;
		output->file_count++;
		file->size_bytes = sizes_bytes[i];
		file->write_fd = file->outfile.fd;
		error = prepare_room(file, failure);
		if (error == 0 && output->direct)
			open_direct(output, file);
	}
	if (error == 0)
		error = check_targets(output, failure);
	if (output->direct)
		open_ring(output);
	else
		close_direct(output);
	if (error)
		output_close(output);
	return error;
}

/* The whole size at once, before anything is written: a machine that takes the
 * end of its part for the end of the file clears the rest of that page, where
 * another one writes. */
int output_open_part(struct output *output, const char *path,
		     const struct output_part *part, struct failure *failure)
{
	int error = init(output, 1, false, failure);
	struct output_file *file = output->files;

	if (error)
		return error;
	error = outfile_open_shared(&file->outfile, path, part->mark, failure);
	if (error == 0) {
		output->file_count = 1;
		file->size_bytes = part->size_bytes;
		file->begin_bytes = part->begin_bytes;
		file->write_fd = file->outfile.fd;
		if (ftruncate(file->write_fd, (off_t)part->whole_bytes) < 0)
			error = failure_set(failure, EXIT_FILE, path, errno,
					    "");
	}
	if (error)
		output_close(output);
	return error;
}

size_t output_chunk_bytes_max(const struct output *output)
{
	for (unsigned i = 0; i < output->file_count; i++)
		if (output->files[i].pages.map ||
		    output->files[i].pages.huge_anyway)
			return OUTPUT_CHUNK_BYTES_MAX;
	return CHUNK_BYTES;
}

unsigned output_slots_max(unsigned members)
{
	return MIN(members + DIRECT_DEPTH, OUTPUT_SLOTS_MAX);
}

unsigned output_slots_wanted(const struct output *output, unsigned members)
{
	unsigned wanted = members + 1;

	/* Alone, a member fills and writes by turns. */
	if (members == 1 && !output->direct)
		return 1;
	/* What is under way is neither being filled nor free. */
	if (output->direct)
		wanted = members + DIRECT_DEPTH;
	/* Two writers keep one more busy. */
	for (unsigned i = 0; i < output->file_count && !output->direct; i++)
		if (output->files[i].pages.map)
			wanted = members + 2;
	return MIN(wanted, OUTPUT_SLOTS_MAX);
}

void output_set_slots(struct output *output, uint8_t *memory,
		      unsigned slot_count, size_t chunk_bytes)
{
	assert(slot_count <= OUTPUT_SLOTS_MAX);
	assert(chunk_bytes % PAGE_BYTES == 0);
	output->chunk_bytes = chunk_bytes;
	output->slot_count = slot_count;
	for (unsigned i = 0; i < slot_count; i++)
		output->slots[i].data = memory + i * chunk_bytes;
}

/* --------------------------------------------------------------- writing */

static int write_all(int fd, const uint8_t *data, size_t length_bytes,
		     uint64_t offset_bytes)
{
	while (length_bytes > 0) {
		ssize_t done =
			pwrite(fd, data, length_bytes, (off_t)offset_bytes);

		if (done < 0 && errno == EINTR)
			continue;
		if (done < 0)
			return -errno;
		if (done == 0)
			return -EIO;
		data += done;
		offset_bytes += (uint64_t)done;
		length_bytes -= (size_t)done;
	}
	return 0;
}

/* The last chunk of a direct file is written to the end of its page and cut at
 * commit; what lies behind its bytes in the slot is cleared. */
static size_t padded_length(const struct output *output,
			    struct output_slot *slot)
{
	size_t padded = ROUND_UP(slot->length_bytes, PAGE_BYTES);

	if (!output->direct)
		return slot->length_bytes;
	memset(slot->data + slot->length_bytes, 0, padded - slot->length_bytes);
	return padded;
}

static void release(struct output *output, struct output_slot *slot,
		    bool was_busy)
{
	pthread_mutex_lock(&output->lock);
	if (was_busy)
		output->files[slot->file].busy = false;
	slot->state = SLOT_FREE;
	pthread_mutex_unlock(&output->lock);
}

/* What a direct write left over, because the disk is full or the file system
 * refuses it: a plain one goes on where it ended, or finds the reason. */
static int write_rest(const struct output_file *file,
		      const struct output_slot *slot, ssize_t written)
{
	size_t done = written > 0 ? (size_t)written : 0;

	if (done >= slot->length_bytes)
		return 0;
	return write_all(file->outfile.fd, slot->data + done,
			 slot->length_bytes - done,
			 file->begin_bytes + slot->offset_bytes + done);
}

static void write_slot(struct output *output, struct output_slot *slot)
{
	const struct output_file *file = &output->files[slot->file];
	ssize_t written = 0;
	int error;

	if (output->direct)
		written = pwrite(file->write_fd, slot->data,
				 padded_length(output, slot),
				 (off_t)slot->offset_bytes);
	error = write_rest(file, slot, written);
	if (error) {
		pthread_mutex_lock(&output->lock);
		fail(output, file, error);
		pthread_mutex_unlock(&output->lock);
	}
	release(output, slot, true);
}

/* False: it could not be done this way (the disk is full, or the kernel cannot
 * make pages on request): the slot is ready again, and write(2) will tell. */
static bool store_slot(struct output *output, struct output_slot *slot)
{
	const struct output_file *file = &output->files[slot->file];
	uint64_t begin = ROUND_DOWN(slot->offset_bytes, PAGE_BYTES);
	uint64_t end = slot->offset_bytes + slot->length_bytes;

	if (madvise(file->pages.map + begin, end - begin, MADV_POPULATE_WRITE) <
	    0) {
		pthread_mutex_lock(&output->lock);
		output->files[slot->file].map_refused = true;
		slot->state = SLOT_READY;
		pthread_mutex_unlock(&output->lock);
		return false;
	}
	memcpy(file->pages.map + slot->offset_bytes, slot->data,
	       slot->length_bytes);
	release(output, slot, false);
	return true;
}

/* False: the kernel takes no more, and will not be asked again. */
static bool submit_slot(struct output *output, struct output_slot *slot)
{
	const struct output_file *file = &output->files[slot->file];
	size_t length_bytes = padded_length(output, slot);
	struct io_uring_sqe *sqe;
	int taken;

	pthread_mutex_lock(&output->lock);
	/* There is a place for each: what is queued is handed over at once. */
	sqe = output->ring_refused ? NULL : io_uring_get_sqe(output->ring);
	if (sqe) {
		io_uring_prep_write(sqe, file->write_fd, slot->data,
				    (unsigned)length_bytes, slot->offset_bytes);
		io_uring_sqe_set_data(sqe, slot);
		do
			taken = io_uring_submit(output->ring);
		while (taken == -EINTR);
		if (taken == 1) {
			output->in_flight++;
			slot->state = SLOT_WRITING;
		} else {
			output->ring_refused = true;
			sqe = NULL;
		}
	}
	pthread_mutex_unlock(&output->lock);
	return sqe != NULL;
}

/* Wait for one direct write; called with the lock held, and keeps it: the
 * others have nothing to do meanwhile but to wait, too. */
static void reap_slot(struct output *output)
{
	const struct output_file *file;
	struct io_uring_cqe *cqe;
	struct output_slot *slot;
	int error;

	do
		error = io_uring_wait_cqe(output->ring, &cqe);
	while (error == -EINTR || error == -EAGAIN);
	assert(error == 0);
	slot = io_uring_cqe_get_data(cqe);
	file = &output->files[slot->file];
	error = write_rest(file, slot, cqe->res);
	io_uring_cqe_seen(output->ring, cqe);
	output->in_flight--;
	slot->state = SLOT_FREE;
	if (error)
		fail(output, file, error);
}

/* -------------------------------------------------------------- the turns */

static struct output_slot *find(struct output *output,
				enum output_slot_state state, bool idle_only)
{
	struct output_slot *best = NULL;

	for (unsigned i = 0; i < output->slot_count; i++) {
		struct output_slot *slot = &output->slots[i];

		if (slot->state != state)
			continue;
		if (idle_only && output->files[slot->file].busy)
			continue;
		if (!best || slot->offset_bytes < best->offset_bytes)
			best = slot;
	}
	return best;
}

/* Write one ready slot.  With while_busy also one whose file is being written
 * by another member, where the file can take it.  False: there was none.
 * Called with the lock held, which it gives up while it writes. */
static bool work(struct output *output, bool while_busy)
{
	struct output_slot *slot = find(output, SLOT_READY, true);

	if (slot) {
		slot->state = SLOT_WRITING;
		output->files[slot->file].busy = true;
		pthread_mutex_unlock(&output->lock);
		write_slot(output, slot);
		pthread_mutex_lock(&output->lock);
		return true;
	}
	slot = while_busy ? find(output, SLOT_READY, false) : NULL;
	if (slot && output->files[slot->file].pages.map &&
	    !output->files[slot->file].map_refused) {
		bool stored;

		slot->state = SLOT_WRITING;
		pthread_mutex_unlock(&output->lock);
		stored = store_slot(output, slot);
		pthread_mutex_lock(&output->lock);
		return stored;
	}
	return false;
}

static void wait_a_little(unsigned *waits)
{
	/* Up to 30 us of looking, then others may have the CPU. */
	if (++*waits > 50)
		sched_yield();
	for (int i = 0; i < 32; i++)
#if defined(__x86_64__)
		__builtin_ia32_pause();
#else
		__asm__ volatile("" ::: "memory");
#endif
}

/* As far ahead as others may be writing already. */
uint8_t *output_place(struct output *output, unsigned file,
		      uint64_t offset_bytes, size_t length_bytes)
{
	return hugefile_place(&output->files[file].pages, offset_bytes,
			      length_bytes,
			      output->slot_count * output->chunk_bytes);
}

struct output_slot *output_take(struct output *output)
{
	struct output_slot *slot = NULL;
	unsigned waits = 0;

	pthread_mutex_lock(&output->lock);
	while (!output->failed) {
		slot = find(output, SLOT_FREE, false);
		if (slot) {
			slot->state = SLOT_FILLING;
			break;
		}
		if (output->in_flight > 0) {
			reap_slot(output);
		} else if (!work(output, true)) {
			pthread_mutex_unlock(&output->lock);
			wait_a_little(&waits);
			pthread_mutex_lock(&output->lock);
		}
	}
	if (output->failed)
		slot = NULL;
	pthread_mutex_unlock(&output->lock);
	return slot;
}

void output_put(struct output *output, struct output_slot *slot)
{
	if (output->ring && submit_slot(output, slot))
		return;
	pthread_mutex_lock(&output->lock);
	slot->state = SLOT_READY;
	while (!output->failed && work(output, false))
		;
	pthread_mutex_unlock(&output->lock);
}

void output_help(struct output *output)
{
	pthread_mutex_lock(&output->lock);
	while (!output->failed && work(output, true))
		;
	pthread_mutex_unlock(&output->lock);
}

/* ------------------------------------------------------------ the end */

static int collect(struct output *output, struct failure *failure)
{
	pthread_mutex_lock(&output->lock);
	while (output->in_flight > 0)
		reap_slot(output);
	while (!output->failed && work(output, false))
		;
	pthread_mutex_unlock(&output->lock);
	if (!output->failed)
		return 0;
	*failure = output->failure;
	return -EIO;
}

static int cut_to_size(const struct output *output, struct failure *failure)
{
	for (unsigned i = 0; i < output->file_count && output->direct; i++) {
		const struct output_file *file = &output->files[i];

		if (ftruncate(file->outfile.fd, (off_t)file->size_bytes) < 0)
			return failure_set(failure, EXIT_FILE,
					   file->outfile.path, errno, "");
	}
	return 0;
}

int output_finish(struct output *output, struct failure *failure)
{
	int error = collect(output, failure);

	return error ? error : cut_to_size(output, failure);
}

int output_commit(struct output *output, bool sync, struct outfile *also,
		  struct failure *failure)
{
	unsigned count = output->file_count;
	struct outfile *outfiles;
	int error = output_finish(output, failure);

	if (error)
		return error;
	outfiles = calloc(count + 1, sizeof(*outfiles));
	if (!outfiles)
		return failure_set(failure, EXIT_RESOURCES, NULL, ENOMEM, "");
	for (unsigned i = 0; i < count; i++)
		outfiles[i] = output->files[i].outfile;
	if (also)
		outfiles[count] = *also;
	error = outfile_commit_all(outfiles, count + (also != NULL), sync,
				   failure);
	for (unsigned i = 0; i < count; i++)
		output->files[i].outfile = outfiles[i];
	if (also)
		*also = outfiles[count];
	free(outfiles);
	return error;
}

void output_withdraw(struct output *output)
{
	for (unsigned i = 0; i < output->file_count; i++)
		outfile_withdraw(&output->files[i].outfile);
}

void output_close(struct output *output)
{
	if (!output->files)
		return;
	while (output->in_flight > 0)
		reap_slot(output);
	if (output->ring)
		io_uring_queue_exit(output->ring);
	free(output->ring);
	close_direct(output);
	for (unsigned i = 0; i < output->file_count; i++) {
		struct output_file *file = &output->files[i];

		hugefile_close(&file->pages);
		outfile_close(&file->outfile);
	}
	free(output->files);
	pthread_mutex_destroy(&output->lock);
	memset(output, 0, sizeof(*output));
}
