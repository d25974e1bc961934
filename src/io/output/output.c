/*
 * output.c - writes chunks to files in any order, one writer at a time for each
 */
#include "io/output/output.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/base.h"
#include "base/flow.h"
#include "io/file_io.h"
#include "io/output/outdevice.h"
#include "system/numa.h"

static void fail(struct output *output, const struct output_file *file,
		 int error)
{
	struct failure failure;

	failure_set(&failure, EXIT_FILE, file->path, -error, "");
	first_failure_note(&output->failure, &failure);
}

/* --------------------------------------------------------------- writing */

/* The last chunk of a direct file is written to the end of its page and cut at
 * commit; what lies behind its bytes in the slot is cleared. */
static size_t padded_length(const struct output *output, struct sink_slot *slot)
{
	size_t padded = ROUND_UP(slot->length_bytes, PAGE_BYTES);

	if (!output->direct)
		return slot->length_bytes;
	memset(slot->data + slot->length_bytes, 0, padded - slot->length_bytes);
	return padded;
}

static void release(struct output *output, struct sink_slot *slot,
		    bool was_busy)
{
	pthread_mutex_lock(&output->lock);
	stage_queue_end(&output->sink.writes, slot->begin_ns,
			slot->length_bytes);
	if (was_busy)
		output->files[slot->part].busy = false;
	slot->state = SLOT_FREE;
	pthread_mutex_unlock(&output->lock);
}

/* A direct write may end early, because the disk is full or the file system
 * refuses it.  A plain write goes on where it ended, or finds the reason. */
static int write_rest(const struct output_file *file,
		      const struct sink_slot *slot, ssize_t written)
{
	size_t done = written > 0 ? (size_t)written : 0;

	if (done >= slot->length_bytes)
		return 0;
	return file_write_at(file->fd, slot->data + done,
			     slot->length_bytes - done,
			     slot->offset_bytes + done);
}

/* Write through the page cache.  The page is written soon: until then the
 * kernel cannot take it back, should a memory control group be at its limit. */
static int write_by_cache(const struct output_file *file, const uint8_t *bytes,
			  size_t length_bytes, uint64_t offset_bytes)
{
	int error = file_write_at(file->fd, bytes, length_bytes, offset_bytes);

	flow_add(FLOW_WRITE, 0, length_bytes);
	if (error == 0 && length_bytes > 0)
		(void)sync_file_range(file->fd, (off_t)offset_bytes,
				      (off_t)length_bytes,
				      SYNC_FILE_RANGE_WRITE);
	return error;
}

/*
 * A direct write takes whole pages.  If a slot holds a part of a chunk, its
 * first and its last page may hold bytes of other parts, too: our bytes on them
 * go through the page cache, and whole pages remain in the slot, or none.  The
 * end of a file is not shared; behind that of the output on a device there may
 * be anything.
 */
static int write_shared_pages(const struct output *output,
			      struct sink_slot *slot)
{
	const struct output_file *file = &output->files[slot->part];
	uint64_t begin = slot->offset_bytes, end = begin + slot->length_bytes;
	uint64_t first = MIN(ROUND_UP(begin, PAGE_BYTES), end);
	bool ends_file =
		end == file->begin_bytes + output->part_bytes[slot->part] &&
		!output->on_devices;
	uint64_t last =
		ends_file ? end : MAX(ROUND_DOWN(end, PAGE_BYTES), first);
	int error = write_by_cache(file, slot->data, first - begin, begin);

	if (error == 0)
		error = write_by_cache(file, slot->data + (last - begin),
				       end - last, last);
	if (first > begin)
		memmove(slot->data, slot->data + (first - begin), last - first);
	slot->offset_bytes = first;
	slot->length_bytes = last - first;
	return error;
}

static void write_slot(struct output *output, struct sink_slot *slot)
{
	const struct output_file *file = &output->files[slot->part];
	uint64_t begin_ns = flow_clock();
	ssize_t written = 0;
	int error;

	if (output->direct)
		written = pwrite(file->write_fd, slot->data,
				 padded_length(output, slot),
				 (off_t)slot->offset_bytes);
	if (output->by_node)
		numa_prefer_new(slot->node);
	error = write_rest(file, slot, written);
	flow_add(FLOW_WRITE, begin_ns, slot->length_bytes);
	if (output->by_node)
		numa_prefer_new(-1);
	if (error)
		fail(output, file, error);
	release(output, slot, true);
}

/* Store the slot through the file's mapping.  False: that is impossible (the
 * disk is full, or the kernel cannot make pages on request).  Then the slot is
 * ready again, and write(2) will find the reason. */
static bool store_slot(struct output *output, struct sink_slot *slot)
{
	const struct output_file *file = &output->files[slot->part];
	uint64_t begin = ROUND_DOWN(slot->offset_bytes, PAGE_BYTES);
	uint64_t end = slot->offset_bytes + slot->length_bytes;

	if (madvise(file->pages.map + begin, end - begin, MADV_POPULATE_WRITE) <
	    0) {
		pthread_mutex_lock(&output->lock);
		output->files[slot->part].map_refused = true;
		slot->state = SLOT_READY;
		stage_queue_end(&output->sink.writes, slot->begin_ns, 0);
		pthread_mutex_unlock(&output->lock);
		return false;
	}
	memcpy(file->pages.map + slot->offset_bytes, slot->data,
	       slot->length_bytes);
	flow_add(FLOW_WRITE, 0, slot->length_bytes);
	release(output, slot, false);
	return true;
}

/* Let the kernel write the slot meanwhile.  False: it refuses to. */
static bool submit_slot(struct output *output, struct sink_slot *slot)
{
	uint32_t length_bytes = (uint32_t)padded_length(output, slot);
	bool taken;

	sink_lock(&output->lock, slot);
	slot->begin_ns = stage_queue_begin(&output->sink.writes);
	taken = write_queue_submit(
		&output->queue, output->files[slot->part].write_fd, slot->data,
		length_bytes, slot->offset_bytes, slot);
	if (taken)
		slot->state = SLOT_WRITING;
	else
		stage_queue_end(&output->sink.writes, slot->begin_ns, 0);
	pthread_mutex_unlock(&output->lock);
	return taken;
}

/* Wait for one direct write.  The caller holds the lock and keeps it: other
 * workers could only wait, too. */
static void reap_slot(struct output *output)
{
	int written, error;
	struct sink_slot *slot = write_queue_reap(&output->queue, &written);
	const struct output_file *file;

	if (!slot) {
		fail(output, &output->files[0], written);
		return;
	}
	file = &output->files[slot->part];
	error = write_rest(file, slot, written);
	stage_queue_end(&output->sink.writes, slot->begin_ns,
			slot->length_bytes);
	flow_add(FLOW_WRITE, 0, slot->length_bytes);
	slot->state = SLOT_FREE;
	if (error)
		fail(output, file, error);
}

/* The time of their end is to be known. */
static void reap_ended(struct output *output)
{
	while (output->sink.writes.sum && write_queue_has_ended(&output->queue))
		reap_slot(output);
}

/* -------------------------------------------------------------- the turns */

static struct sink_slot *find(struct output *output,
			      enum output_slot_state state, bool idle_only)
{
	struct sink_slot *best = NULL;

	for (unsigned i = 0; i < output->slot_count; i++) {
		struct sink_slot *slot = &output->slots[i];

		if (slot->state != (int)state)
			continue;
		if (idle_only && output->files[slot->part].busy)
			continue;
		if (!best || slot->offset_bytes < best->offset_bytes)
			best = slot;
	}
	return best;
}

/* Write one ready slot.  With while_busy the slot may be one whose file is
 * being written by another worker, where the file can take it.  False: there
 * was none.  The caller holds the lock, which is given up while the slot is
 * written. */
static bool work(struct output *output, bool while_busy)
{
	struct sink_slot *slot = find(output, SLOT_READY, true);

	if (slot) {
		slot->state = SLOT_WRITING;
		slot->begin_ns = stage_queue_begin(&output->sink.writes);
		output->files[slot->part].busy = true;
		pthread_mutex_unlock(&output->lock);
		write_slot(output, slot);
		pthread_mutex_lock(&output->lock);
		return true;
	}
	slot = while_busy ? find(output, SLOT_READY, false) : NULL;
	if (slot && output->files[slot->part].pages.map &&
	    !output->files[slot->part].map_refused) {
		bool stored;

		slot->state = SLOT_WRITING;
		slot->begin_ns = stage_queue_begin(&output->sink.writes);
		pthread_mutex_unlock(&output->lock);
		stored = store_slot(output, slot);
		pthread_mutex_lock(&output->lock);
		return stored;
	}
	return false;
}

static void wait_a_little(unsigned *waits)
{
	/* Spin for up to 30 us, then let other threads have the CPU. */
	if (++*waits > 50)
		sched_yield();
	for (int i = 0; i < 32; i++)
#if defined(__x86_64__)
		__builtin_ia32_pause();
#else
		__asm__ volatile("" ::: "memory");
#endif
}

/* --- the sink's operations -------------------------------------------------
 */

_Static_assert(offsetof(struct output, sink) == 0, "a sink is an output");

static struct output *output_of(struct sink *sink)
{
	return (struct output *)sink;
}

/* Pages are made as far ahead as other workers may be filling already. */
static uint8_t *place(struct sink *sink, unsigned part, uint64_t offset_bytes,
		      size_t length_bytes)
{
	struct output *output = output_of(sink);

	return hugefile_place(&output->files[part].pages,
			      output->files[part].begin_bytes + offset_bytes,
			      length_bytes,
			      output->slot_count * output->sink.chunk_bytes);
}

static struct sink_slot *take(struct sink *sink)
{
	struct output *output = output_of(sink);
	struct sink_slot *slot = NULL;
	unsigned waits = 0;

	pthread_mutex_lock(&output->lock);
	reap_ended(output);
	while (!first_failure_stops(&output->failure)) {
		slot = find(output, SLOT_FREE, false);
		if (slot) {
			slot->state = SLOT_FILLING;
			break;
		}
		if (output->queue.in_flight > 0) {
			reap_slot(output);
		} else if (!work(output, true)) {
			pthread_mutex_unlock(&output->lock);
			wait_a_little(&waits);
			pthread_mutex_lock(&output->lock);
		}
	}
	if (first_failure_stops(&output->failure))
		slot = NULL;
	pthread_mutex_unlock(&output->lock);
	return slot;
}

/* False: nothing is left of the slot to write, and it is free. */
static bool prepare_direct(struct output *output, struct sink_slot *slot)
{
	size_t whole_bytes = slot->length_bytes;
	int error = write_shared_pages(output, slot);
	bool is_left = error == 0 && slot->length_bytes > 0;

	if (is_left && slot->length_bytes == whole_bytes)
		return true;
	pthread_mutex_lock(&output->lock);
	if (error)
		fail(output, &output->files[slot->part], error);
	/* The page cache takes that at once. */
	stage_queue_end(&output->sink.writes,
			stage_queue_begin(&output->sink.writes),
			whole_bytes - slot->length_bytes);
	if (!is_left)
		slot->state = SLOT_FREE;
	pthread_mutex_unlock(&output->lock);
	return is_left;
}

static void put(struct sink *sink, struct sink_slot *slot)
{
	struct output *output = output_of(sink);

	/* From here on it counts from the file's beginning. */
	slot->offset_bytes += output->files[slot->part].begin_bytes;
	if (output->direct && !prepare_direct(output, slot))
		return;
	if (output->direct && submit_slot(output, slot))
		return;
	if (output->by_node)
		slot->node = numa_node_of_self();
	sink_lock(&output->lock, slot);
	slot->state = SLOT_READY;
	while (!first_failure_stops(&output->failure) && work(output, false))
		;
	pthread_mutex_unlock(&output->lock);
}

static void help(struct sink *sink)
{
	struct output *output = output_of(sink);

	pthread_mutex_lock(&output->lock);
	while (!first_failure_stops(&output->failure) && work(output, true))
		;
	pthread_mutex_unlock(&output->lock);
}

static int cut_to_size(const struct output *output, struct failure *failure)
{
	bool cuts = !output->on_devices &&
		    (output->direct || output->sizes_lowered);

	for (unsigned i = 0; i < output->file_count && cuts; i++) {
		const struct output_file *file = &output->files[i];

		if (ftruncate(file->fd, (off_t)(file->begin_bytes +
						output->part_bytes[i])) < 0)
			return failure_set(failure, EXIT_FILE, file->path,
					   errno, "");
	}
	return 0;
}

static int finish(struct sink *sink, struct failure *failure)
{
	struct output *output = output_of(sink);
	int error;

	pthread_mutex_lock(&output->lock);
	while (output->queue.in_flight > 0)
		reap_slot(output);
	while (!first_failure_stops(&output->failure) && work(output, false))
		;
	pthread_mutex_unlock(&output->lock);
	error = first_failure_get(&output->failure, failure);
	return error ? error : cut_to_size(output, failure);
}

const struct sink_ops output_operations = {
	.place = place,
	.take = take,
	.put = put,
	.help = help,
	.finish = finish,
};

/* ------------------------------------------------------------ the end */

/* Devices have no names to be given. */
static int finish_devices(const struct output *output, bool sync,
			  struct failure *failure)
{
	int error = 0;

	for (unsigned i = 0; i < output->file_count && error == 0; i++)
		error = outdevice_finish(output->files[i].fd,
					 output->files[i].path, sync, failure);
	return error;
}

/* Last, as pages of their own would keep huge ones from being made. */
static int write_headers(const struct output *output, struct failure *failure)
{
	for (unsigned i = 0; i < output->file_count && output->header; i++) {
		const struct output_file *file = &output->files[i];
		int error = file_write_at(file->fd, output->header,
					  output->header_bytes, 0);

		if (error)
			return failure_set(failure, EXIT_FILE, file->path,
					   -error, "");
	}
	return 0;
}

int output_commit(struct output *output, bool sync, struct outfile *also,
		  struct failure *failure)
{
	struct outfile *outfiles[OUTPUT_FILES_MAX + 1];
	unsigned count = 0;
	int error = finish(&output->sink, failure);

	if (error == 0)
		error = write_headers(output, failure);
	if (error == 0 && output->on_devices)
		error = finish_devices(output, sync, failure);
	if (error)
		return error;
	for (unsigned i = 0; i < output->file_count && !output->on_devices; i++)
		outfiles[count++] = &output->files[i].outfile;
	if (also)
		outfiles[count++] = also;
	return outfile_commit_all(outfiles, count, sync, failure);
}

void output_place_by_node(struct output *output, uint64_t nodes)
{
	output->by_node = !output->direct;
	for (unsigned i = 0; i < output->file_count; i++) {
		struct output_file *file = &output->files[i];

		if (!file->pages.map)
			continue;
		hugefile_spread(&file->pages, file->write_fd, nodes);
		output->by_node = false;
	}
}

void output_roll_back(struct output *output)
{
	for (unsigned i = 0; i < output->file_count; i++)
		outfile_roll_back(&output->files[i].outfile);
}

void output_close(struct output *output)
{
	if (!output->files)
		return;
	write_queue_close(&output->queue);
	for (unsigned i = 0; i < output->file_count; i++) {
		struct output_file *file = &output->files[i];

		if (file->write_fd != file->fd)
			close(file->write_fd);
		if (output->on_devices)
			close(file->fd);
		hugefile_close(&file->pages);
		outfile_close(&file->outfile);
	}
	free(output->files);
	free(output->part_bytes);
	pthread_mutex_destroy(&output->lock);
	memset(output, 0, sizeof(*output));
}
