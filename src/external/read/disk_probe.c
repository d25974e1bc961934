/*
 * disk_probe.c - reads and writes for a second, to measure rates
 */
#include "external/read/disk_probe.h"

#include <errno.h>
#include <limits.h>
#include <liburing.h>
#include <string.h>

#include "base/base.h"
#include "base/clock.h"
#include "system/arena.h"

#define REQUESTS 8 /* of each kind, under way */
#define PART_NS 300000000u
/* Room for what is written, over and over, if there is twice as much. */
#define SCRATCH_BYTES_MAX (256 * MIB)

struct probe {
	struct io_uring ring;
	const struct input *input;
	unsigned file; /* of the input: the one that is read next */
	int write_fd;
	size_t request_bytes;
	/* A slot for each request: REQUESTS to read, and REQUESTS to write.  A
	 * disk takes as few small pages at once as its queue has segments, so
	 * they are huge ones, like those of a sort. */
	struct arena memory;
	uint32_t lengths[2 * REQUESTS]; /* that each of them moves */
	uint64_t scratch_begin, scratch_bytes;
	uint64_t next_read, next_write; /* in the file, in the scratch room */
	uint64_t step_bytes; /* from one read to the next, if that is more */
	unsigned left;	     /* requests to submit, at most */
	unsigned in_flight;
	/* What the first request that failed said; 0: it was cut short. */
	bool has_failed;
	unsigned failed_slot;
	int error;
};

static const struct input_file *file_of(const struct probe *probe)
{
	return &probe->input->files[probe->file];
}

/* The files are read one after the other, over and over: each may be smaller
 * than a request.  O_DIRECT asks for whole pages, also at the end of a file. */
static void prepare_read(struct probe *probe, unsigned slot, uint8_t *memory,
			 struct io_uring_sqe *sqe)
{
	const struct input_file *file;

	while (probe->next_read >= file_of(probe)->size_bytes) {
		probe->file = (probe->file + 1) % probe->input->file_count;
		probe->next_read = 0;
	}
	file = file_of(probe);
	probe->lengths[slot] = (uint32_t)MIN(
		probe->request_bytes, file->size_bytes - probe->next_read);
	io_uring_prep_read(
		sqe, file->direct_fd >= 0 ? file->direct_fd : file->fd, memory,
		ROUND_UP(probe->lengths[slot], PAGE_BYTES), probe->next_read);
	probe->next_read += MAX(probe->lengths[slot], probe->step_bytes);
}

static void prepare_write(struct probe *probe, unsigned slot, uint8_t *memory,
			  struct io_uring_sqe *sqe)
{
	probe->lengths[slot] = (uint32_t)probe->request_bytes;
	io_uring_prep_write(sqe, probe->write_fd, memory, probe->lengths[slot],
			    probe->scratch_begin +
				    probe->next_write % probe->scratch_bytes);
	probe->next_write += probe->request_bytes;
}

static void fail(struct probe *probe, unsigned slot, int result)
{
	if (probe->has_failed)
		return;
	probe->has_failed = true;
	probe->failed_slot = slot;
	probe->error = result < 0 ? -result : 0;
}

static void submit(struct probe *probe, unsigned slot)
{
	struct io_uring_sqe *sqe = io_uring_get_sqe(&probe->ring);
	uint8_t *memory = probe->memory.base + slot * probe->request_bytes;
	int taken;

	if (slot < REQUESTS)
		prepare_read(probe, slot, memory, sqe);
	else
		prepare_write(probe, slot, memory, sqe);
	probe->left--;
	sqe->user_data = slot;
	do
		taken = io_uring_submit(&probe->ring);
	while (taken == -EINTR);
	if (taken == 1)
		probe->in_flight++;
	else
		fail(probe, slot, taken);
}

/* Wait for any request: its slot, or -errno if the ring fails. */
static int reap(struct probe *probe)
{
	struct io_uring_cqe *cqe;
	int error, result;
	unsigned slot;

	do
		error = io_uring_wait_cqe(&probe->ring, &cqe);
	while (error == -EINTR || error == -EAGAIN);
	if (error)
		return error;
	slot = (unsigned)cqe->user_data;
	result = cqe->res;
	io_uring_cqe_seen(&probe->ring, cqe);
	probe->in_flight--;
	if (result < (int)probe->lengths[slot])
		fail(probe, slot, result);
	return (int)slot;
}

/* Bytes a second of requests [first, end), or 0 if one of them fails. */
static uint64_t rate(struct probe *probe, unsigned first, unsigned end)
{
	uint64_t begin_ns = clock_now_ns(), now_ns = begin_ns;
	uint64_t bytes = 0;

	for (unsigned slot = first; slot < end && !probe->has_failed; slot++)
		submit(probe, slot);
	while (probe->in_flight > 0) {
		int slot = reap(probe);

		if (slot < 0) {
			fail(probe, first, slot);
			return 0;
		}
		bytes += probe->lengths[slot];
		now_ns = clock_now_ns();
		if (!probe->has_failed && probe->left > 0 &&
		    now_ns - begin_ns < PART_NS)
			submit(probe, (unsigned)slot);
	}
	return probe->has_failed
		       ? 0
		       : (uint64_t)((double)bytes * 1e9 /
				    (double)MAX(1, now_ns - begin_ns));
}

/* Begin to read in the middle of the largest file: its beginning may be cached.
 */
static void find_file(struct probe *probe)
{
	const struct input *input = probe->input;

	for (unsigned i = 1; i < input->file_count; i++)
		if (input->files[i].size_bytes > file_of(probe)->size_bytes)
			probe->file = i;
	probe->next_read = ROUND_DOWN(file_of(probe)->size_bytes / 2,
				      probe->request_bytes);
}

static int measure(struct probe *probe, struct external_rates *rates,
		   struct failure *failure)
{
	struct external_rates found = *rates;

	if (file_of(probe)->size_bytes == 0)
		return failure_set(failure, EXIT_FILE, NULL, 0,
				   "all inputs are empty");
	found.write = rate(probe, REQUESTS, 2 * REQUESTS);
	found.read = rate(probe, 0, REQUESTS);
	found.both = rate(probe, 0, 2 * REQUESTS);
	if (probe->has_failed)
		return failure_set(failure, EXIT_FILE, NULL, probe->error,
				   probe->failed_slot < REQUESTS
					   ? "a read fails"
					   : "a write fails");
	*rates = found;
	return 0;
}

/* They are whole requests, and one at least. */
static uint64_t scratch_bytes(const struct scratch *scratch,
			      size_t request_bytes)
{
	uint64_t bytes = MIN(SCRATCH_BYTES_MAX, scratch_room(scratch, 0) / 2);

	return MAX(request_bytes, bytes / request_bytes * request_bytes);
}

int disk_probe(const struct input *input, struct scratch *scratch,
	       size_t request_bytes, struct external_rates *rates,
	       struct failure *failure)
{
	struct scratch_place place;
	struct probe probe = {
		.input = input,
		.request_bytes = request_bytes,
		.scratch_bytes = scratch_bytes(scratch, request_bytes),
		.left = UINT_MAX,
	};
	size_t memory_bytes = 2 * REQUESTS * request_bytes;
	int error = scratch_take(scratch, probe.scratch_bytes, &place, failure);

	if (error)
		return error;
	find_file(&probe);
	probe.write_fd = scratch_fd(scratch, place.directory);
	probe.scratch_begin = place.offset_bytes;
	error = io_uring_queue_init(2 * REQUESTS, &probe.ring, 0);
	if (error)
		return failure_set(failure, EXIT_RESOURCES, "io_uring", -error,
				   "");
	error = arena_map(&probe.memory, memory_bytes);
	if (error) {
		failure_no_memory(failure);
	} else {
		memset(probe.memory.base, 1, memory_bytes);
		error = measure(&probe, rates, failure);
	}
	io_uring_queue_exit(&probe.ring);
	arena_unmap(&probe.memory);
	scratch_written(scratch, &place, probe.scratch_bytes);
	scratch_release(scratch, &place, probe.scratch_bytes);
	return error;
}

/* --- small reads ---------------------------------------------------------- */

#define PLACES 64

uint64_t disk_probe_requests(const struct input *input)
{
	struct probe probe = {
		.input = input,
		.request_bytes = PAGE_BYTES,
		.left = PLACES,
	};
	uint64_t bytes = 0;

	if (input->file_count == 0)
		return 0;
	find_file(&probe);
	probe.next_read = 0;
	probe.step_bytes =
		ROUND_DOWN(file_of(&probe)->size_bytes / PLACES, PAGE_BYTES);
	if (file_of(&probe)->direct_fd < 0 || probe.step_bytes == 0 ||
	    io_uring_queue_init(REQUESTS, &probe.ring, 0) < 0)
		return 0;
	if (arena_map(&probe.memory, REQUESTS * PAGE_BYTES) == 0)
		bytes = rate(&probe, 0, REQUESTS);
	io_uring_queue_exit(&probe.ring);
	arena_unmap(&probe.memory);
	return bytes / PAGE_BYTES;
}
