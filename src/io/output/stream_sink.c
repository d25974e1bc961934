/*
 * stream_sink.c - writes chunks in order to a pipe, whichever worker has the
 * next one
 */
#include "io/output/stream_sink.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/base.h"
#include "base/flow.h"
#include "io/pipe.h"

/* States of a sink_slot. */
enum { SLOT_FREE, SLOT_FILLING, SLOT_READY };

_Static_assert(offsetof(struct stream_sink, sink) == 0, "a sink is a stream");

static struct stream_sink *stream_of(struct sink *sink)
{
	return (struct stream_sink *)sink;
}

bool stream_sink_suits(const char *path)
{
	const dev_t null_device = makedev(1, 3);
	struct stat status;

	if (pipe_is_word(path))
		return true;
	if (stat(path, &status) < 0)
		return false;
	return S_ISFIFO(status.st_mode) ||
	       (S_ISCHR(status.st_mode) && status.st_rdev == null_device);
}

static int cannot_write(const struct stream_sink *stream, int error,
			struct failure *failure)
{
	/* The latter: of a socket, whose reader has left bytes unread. */
	if (error == EPIPE || error == ECONNRESET)
		return failure_set_silent(failure, EXIT_FILE, error);
	return failure_set(failure, EXIT_FILE, stream->name, error,
			   "cannot write");
}

/* --- turns, with the lock held ---------------------------------------------
 */

static struct sink_slot *find_free(struct stream_sink *stream)
{
	for (unsigned i = 0; i < stream->slot_count; i++)
		if (stream->slots[i].state == SLOT_FREE)
			return &stream->slots[i];
	return NULL;
}

/* The slot that is to be written next, or NULL. */
static struct sink_slot *find_next(struct stream_sink *stream)
{
	for (unsigned i = 0; i < stream->slot_count; i++) {
		struct sink_slot *slot = &stream->slots[i];

		if (slot->state == SLOT_READY &&
		    slot->offset_bytes == stream->written_bytes)
			return slot;
	}
	return NULL;
}

/* The lock is given up meanwhile. */
static void write_slot(struct stream_sink *stream, struct sink_slot *slot)
{
	uint64_t begin_ns = flow_clock();
	struct failure failure;
	int error;

	slot->begin_ns = stage_queue_begin(&stream->sink.writes);
	pthread_mutex_unlock(&stream->lock);
	error = pipe_write(stream->fd, slot->data, slot->length_bytes);
	flow_add(FLOW_WRITE, begin_ns, slot->length_bytes);
	pthread_mutex_lock(&stream->lock);
	stage_queue_end(&stream->sink.writes, slot->begin_ns,
			error ? 0 : slot->length_bytes);
	if (error) {
		cannot_write(stream, -error, &failure);
		first_failure_note(&stream->failure, &failure);
	}
	stream->written_bytes += slot->length_bytes;
	slot->state = SLOT_FREE;
	pthread_cond_broadcast(&stream->changed);
}

static bool is_too_far_ahead(const struct stream_sink *stream,
			     uint64_t offset_bytes)
{
	return offset_bytes >
	       stream->written_bytes +
		       (stream->slot_count - 1) * stream->sink.chunk_bytes;
}

/* --- the sink's operations -------------------------------------------------
 */

static uint8_t *place(struct sink *sink, unsigned part, uint64_t offset_bytes,
		      size_t length_bytes)
{
	struct stream_sink *stream = stream_of(sink);

	(void)part, (void)length_bytes;
	pthread_mutex_lock(&stream->lock);
	while (!first_failure_stops(&stream->failure) &&
	       is_too_far_ahead(stream, offset_bytes))
		pthread_cond_wait(&stream->changed, &stream->lock);
	pthread_mutex_unlock(&stream->lock);
	return NULL;
}

static struct sink_slot *take(struct sink *sink)
{
	struct stream_sink *stream = stream_of(sink);
	struct sink_slot *slot = NULL;

	pthread_mutex_lock(&stream->lock);
	if (!first_failure_stops(&stream->failure)) {
		slot = find_free(stream);
		assert(slot); /* see place() */
		slot->state = SLOT_FILLING;
	}
	pthread_mutex_unlock(&stream->lock);
	return slot;
}

static void put(struct sink *sink, struct sink_slot *slot)
{
	struct stream_sink *stream = stream_of(sink);

	pthread_mutex_lock(&stream->lock);
	slot->state = SLOT_READY;
	if (!stream->is_writing) {
		stream->is_writing = true;
		while (!first_failure_stops(&stream->failure) &&
		       (slot = find_next(stream)))
			write_slot(stream, slot);
		stream->is_writing = false;
	}
	pthread_mutex_unlock(&stream->lock);
}

static int finish(struct sink *sink, struct failure *failure)
{
	return first_failure_get(&stream_of(sink)->failure, failure);
}

/* A stream needs no help(): what is ready has been written, or another worker
 * is writing it. */
static const struct sink_ops operations = {
	.place = place,
	.take = take,
	.put = put,
	.finish = finish,
};

/* --- its life --------------------------------------------------------------
 */

void stream_sink_init(struct stream_sink *sink, const char *path,
		      uint8_t *memory, unsigned slot_count, size_t chunk_bytes)
{
	assert(slot_count >= 2 && slot_count <= STREAM_SINK_SLOTS_MAX);
	memset(sink, 0, sizeof(*sink));
	sink->path = path;
	sink->name = pipe_is_word(path) ? PIPE_OUTPUT_NAME : path;
	sink->fd = -1;
	sink->sink = (struct sink){
		.ops = &operations,
		.chunk_bytes = chunk_bytes,
		.part_count = 1,
		.part_bytes = &sink->part_bytes,
	};
	sink->slot_count = slot_count;
	for (unsigned i = 0; i < slot_count; i++)
		sink->slots[i].data = memory + i * chunk_bytes;
	pthread_mutex_init(&sink->lock, NULL);
	pthread_cond_init(&sink->changed, NULL);
}

int stream_sink_open(struct stream_sink *sink, uint64_t size_bytes,
		     const uint8_t *header, uint64_t header_bytes,
		     struct failure *failure)
{
	int error;

	sink->part_bytes = size_bytes;
	do {
		sink->fd = pipe_is_word(sink->path)
				   ? fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 0)
				   : open(sink->path, O_WRONLY | O_CLOEXEC);
	} while (sink->fd < 0 && errno == EINTR);
	if (sink->fd < 0)
		return cannot_write(sink, errno, failure);
	pipe_widen(sink->fd);
	error = pipe_write(sink->fd, header, header_bytes);
	return error ? cannot_write(sink, -error, failure) : 0;
}

/* Close the stream, too: some file systems tell only then that the disk is
 * full. */
int stream_sink_commit(struct stream_sink *sink, struct failure *failure)
{
	int fd = sink->fd;
	int error = finish(&sink->sink, failure);

	if (error)
		return error;
	sink->fd = -1;
	if (close(fd) == 0 || errno == EINTR)
		return 0;
	return cannot_write(sink, errno, failure);
}

void stream_sink_close(struct stream_sink *sink)
{
	if (!sink->sink.ops)
		return;
	if (sink->fd >= 0)
		close(sink->fd);
	pthread_cond_destroy(&sink->changed);
	pthread_mutex_destroy(&sink->lock);
	memset(sink, 0, sizeof(*sink));
}
