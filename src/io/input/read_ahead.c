/*
 * read_ahead.c - keeps reads under way by io_uring, and hands out what they
 * bring in order
 */
#include "io/input/read_ahead.h"

#include <assert.h>
#include <errno.h>

#include "base/base.h"
#include "base/failure.h"
#include "base/flow.h"
#include "io/file_io.h"
#include "io/input/sigbus.h"

/* Returns how many bytes there are from the beginning of the extent's first
 * page to the extent's end. */
static uint32_t needed_bytes(const struct read_ahead_slot *slot)
{
	return (uint32_t)(slot->extent.offset_bytes - slot->begin_bytes) +
	       slot->extent.length_bytes;
}

/* Only pages can be read directly; and beside what is read to its target there
 * may be other bytes. */
static bool takes_pages(const struct read_extent *extent)
{
	return extent->direct_fd >= 0 || !extent->target;
}

static uint8_t *place_of(const struct read_ahead_slot *slot)
{
	return slot->extent.target ? slot->extent.target : slot->memory;
}

/* --- submitting ----------------------------------------------------------- */

static void prepare(struct read_ahead *ahead, struct read_ahead_slot *slot)
{
	const struct read_extent *extent = &slot->extent;
	struct io_uring_sqe *sqe;

	if (!ahead->has_ring || ahead->refused) {
		slot->landed = true;
		return;
	}
	/* The ring has a place for each slot. */
	sqe = io_uring_get_sqe(&ahead->ring);
	io_uring_prep_read(
		sqe,
		extent->direct_fd >= 0 ? extent->direct_fd : extent->plain_fd,
		place_of(slot),
		takes_pages(extent) ? ROUND_UP(needed_bytes(slot), PAGE_BYTES)
				    : extent->length_bytes,
		slot->begin_bytes);
	io_uring_sqe_set_data(sqe, slot);
	slot->begin_ns = stage_queue_begin(&ahead->queue);
	ahead->prepared++;
}

/* The kernel gets no more reads: those of the last slots that it did not take
 * count as landed with nothing read. */
static void refuse(struct read_ahead *ahead)
{
	ahead->refused = true;
	for (uint64_t i = ahead->tail; ahead->prepared > 0; i--) {
		struct read_ahead_slot *slot =
			&ahead->slots[(i - 1) % ahead->depth];

		if (!slot->landed) {
			ahead->prepared--;
			stage_queue_end(&ahead->queue, slot->begin_ns, 0);
		}
		slot->landed = true;
	}
}

static void submit(struct read_ahead *ahead)
{
	while (ahead->prepared > 0) {
		int taken = io_uring_submit(&ahead->ring);

		if (taken == -EINTR)
			continue;
		if (taken <= 0) {
			refuse(ahead);
			return;
		}
		ahead->prepared -= (unsigned)taken;
		ahead->in_flight += (unsigned)taken;
	}
}

static void fill(struct read_ahead *ahead)
{
	struct read_extent extent;

	while (ahead->tail - ahead->head < ahead->depth &&
	       ahead->next(ahead->context, &extent)) {
		struct read_ahead_slot *slot =
			&ahead->slots[ahead->tail % ahead->depth];

		assert(extent.length_bytes > 0 &&
		       extent.length_bytes <= ahead->length_bytes_max);
		assert(!extent.target || !takes_pages(&extent) ||
		       extent.offset_bytes % PAGE_BYTES == 0);
		slot->extent = extent;
		slot->begin_bytes =
			ROUND_DOWN(extent.offset_bytes,
				   takes_pages(&extent) ? PAGE_BYTES : 1);
		slot->got_bytes = 0;
		slot->landed = false;
		ahead->tail++;
		prepare(ahead, slot);
	}
	submit(ahead);
}

/* --- landing -------------------------------------------------------------- */

static void land_one(struct read_ahead *ahead, struct io_uring_cqe *cqe)
{
	struct read_ahead_slot *slot = io_uring_cqe_get_data(cqe);

	if (cqe->res > 0)
		slot->got_bytes = (uint32_t)cqe->res;
	slot->landed = true;
	stage_queue_end(&ahead->queue, slot->begin_ns, slot->got_bytes);
	flow_add(FLOW_READ, 0, slot->got_bytes);
	ahead->in_flight--;
	io_uring_cqe_seen(&ahead->ring, cqe);
}

/* Wait for any one read.  0 or -errno. */
static int reap(struct read_ahead *ahead)
{
	struct io_uring_cqe *cqe;
	int error;

	do {
		error = io_uring_wait_cqe(&ahead->ring, &cqe);
	} while (error == -EINTR || error == -EAGAIN);
	if (error == 0)
		land_one(ahead, cqe);
	return error;
}

void read_ahead_look(struct read_ahead *ahead)
{
	struct io_uring_cqe *cqe;

	while (ahead->queue.sum && ahead->in_flight > 0 &&
	       io_uring_peek_cqe(&ahead->ring, &cqe) == 0)
		land_one(ahead, cqe);
}

static void drain(struct read_ahead *ahead)
{
	while (ahead->in_flight > 0 && reap(ahead) == 0)
		;
}

/* Read by pread(2) what the ring has not brought of the extent. */
static int read_rest(struct read_ahead *ahead, struct read_ahead_slot *slot,
		     struct failure *failure)
{
	const struct read_extent *extent = &slot->extent;
	uint32_t end = needed_bytes(slot);
	uint32_t done = MAX(slot->got_bytes, end - extent->length_bytes);
	uint64_t begin_ns;
	ssize_t got;

	if (done >= end)
		return 0;
	begin_ns = stage_queue_begin(&ahead->queue);
	got = file_read_at(extent->plain_fd, place_of(slot) + done, end - done,
			   slot->begin_bytes + done);
	stage_queue_end(&ahead->queue, begin_ns, got > 0 ? (uint64_t)got : 0);
	if (got < 0)
		return failure_set(failure, EXIT_FILE, extent->path, (int)-got,
				   "cannot read");
	if ((uint32_t)got < end - done)
		return failure_set(failure, EXIT_FILE, extent->path, 0,
				   SIGBUS_SHRANK);
	flow_add(FLOW_READ, 0, (uint64_t)got);
	return 0;
}

static int land(struct read_ahead *ahead, struct read_ahead_slot *slot,
		struct failure *failure)
{
	int error = 0;

	while (!slot->landed && !error)
		error = reap(ahead);
	if (error)
		return failure_set(failure, EXIT_FILE, slot->extent.path,
				   -error, "cannot wait for a read");
	return read_rest(ahead, slot, failure);
}

static int wait_for(struct read_ahead *ahead, struct read_ahead_slot *slot,
		    struct failure *failure)
{
	int error;

	if (slot->landed && slot->got_bytes >= needed_bytes(slot))
		return 0;
	stage_pause(ahead->clock);
	error = land(ahead, slot, failure);
	stage_wait(ahead->clock, STAGE_FOR_READ);
	return error;
}

void read_ahead_resume(struct read_ahead *ahead, struct stage_clock *clock)
{
	struct stage_table *table = clock ? clock->table : NULL;

	ahead->clock = clock;
	stage_queue_resume(&ahead->queue,
			   table ? &table->sums[STAGE_READ] : NULL);
}

int read_ahead_take(struct read_ahead *ahead, struct read_extent *extent,
		    const uint8_t **bytes, struct failure *failure)
{
	struct read_ahead_slot *slot;
	int error;

	if (ahead->lent)
		ahead->head++;
	ahead->lent = false;
	fill(ahead);
	read_ahead_look(ahead);
	if (ahead->head == ahead->tail)
		return 0;
	slot = &ahead->slots[ahead->head % ahead->depth];
	error = wait_for(ahead, slot, failure);
	if (error) {
		drain(ahead);
		return error;
	}
	*extent = slot->extent;
	*bytes = place_of(slot) + (extent->offset_bytes - slot->begin_bytes);
	ahead->lent = !extent->target;
	if (!ahead->lent) {
		ahead->head++;
		fill(ahead);
	}
	return 1;
}

const uint8_t *read_ahead_bytes(struct read_ahead *ahead, uint32_t byte_count,
				struct failure *failure)
{
	const uint8_t *bytes;

	if (ahead->left_bytes == 0) {
		struct read_extent extent = { 0 };
		int ret =
			read_ahead_take(ahead, &extent, &ahead->left, failure);

		if (ret < 0)
			return NULL;
		assert(ret == 1);
		ahead->left_bytes = extent.length_bytes;
	}
	assert(byte_count <= ahead->left_bytes);
	bytes = ahead->left;
	ahead->left += byte_count;
	ahead->left_bytes -= byte_count;
	return bytes;
}

/* --- its life ------------------------------------------------------------- */

/*
 * Make a ring whose completions wait for the thread's next call instead of
 * interrupting it, where the kernel can do that (Linux 5.19); a flag lets
 * io_uring_peek_cqe() see them all the same.  Older kernels refuse that.
 */
static bool open_ring(struct io_uring *ring, unsigned depth)
{
	const unsigned flags =
		IORING_SETUP_COOP_TASKRUN | IORING_SETUP_TASKRUN_FLAG;

	return io_uring_queue_init(depth, ring, flags) == 0 ||
	       io_uring_queue_init(depth, ring, 0) == 0;
}

void read_ahead_init(struct read_ahead *ahead, unsigned depth, uint8_t *memory,
		     uint32_t slot_bytes, read_ahead_next_fn *next,
		     void *context)
{
	*ahead = (struct read_ahead){
		.next = next,
		.context = context,
		.depth = depth,
		.length_bytes_max = slot_bytes - 2 * PAGE_BYTES,
	};
	assert(depth > 0 && depth <= READ_AHEAD_DEPTH_MAX);
	assert(slot_bytes >= 3 * PAGE_BYTES && slot_bytes % PAGE_BYTES == 0);
	for (unsigned i = 0; i < depth && memory; i++)
		ahead->slots[i].memory = memory + (size_t)i * slot_bytes;
	ahead->has_ring = open_ring(&ahead->ring, depth);
}

void read_ahead_close(struct read_ahead *ahead)
{
	if (!ahead->has_ring)
		return;
	drain(ahead);
	io_uring_queue_exit(&ahead->ring);
	ahead->has_ring = false;
}
