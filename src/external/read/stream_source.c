/*
 * stream_source.c - reads pipes and the like, one worker at a time
 */
#include "external/read/stream_source.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/flow.h"
#include "io/pipe.h"
#include "record/record.h"

/* What is read at once: it is still in a cache when its keys are read. */
#define UNIT_BYTES (128 * KIB)
/* A reader looks that often whether the run has failed elsewhere. */
#define LOOK_MS 100

/* --- inputs --------------------------------------------------------------- */

/* The reason why a path leads nowhere is found when it is opened. */
static bool is_stream(const char *path)
{
	struct stat status;

	return pipe_is_word(path) ||
	       (stat(path, &status) == 0 &&
		(S_ISFIFO(status.st_mode) || S_ISSOCK(status.st_mode) ||
		 S_ISCHR(status.st_mode)));
}

bool stream_source_suits(const char *const *paths, unsigned path_count)
{
	for (unsigned i = 0; i < path_count; i++)
		if (is_stream(paths[i]))
			return true;
	return false;
}

/* What messages call it. */
static const char *name_of(const char *path)
{
	return pipe_is_word(path) ? PIPE_INPUT_NAME : path;
}

static int cannot_open(const char *name, int error, struct failure *failure)
{
	return failure_set(failure, EXIT_FILE, name, error, "cannot open");
}

static int check_path(const char *path, struct failure *failure)
{
	struct stat status;

	if (pipe_is_word(path) ? fstat(STDIN_FILENO, &status)
			       : stat(path, &status))
		return cannot_open(name_of(path), errno, failure);
	if (S_ISDIR(status.st_mode))
		return failure_set(failure, EXIT_FILE, name_of(path), 0,
				   "is a folder: a file or a pipe is expected");
	return 0;
}

/* A FIFO is opened without waiting for its writer: poll(2) waits for it, and
 * the reader still sees meanwhile that the run has failed elsewhere. */
static int open_path(const char *path)
{
	struct stat status;
	int flags = O_RDONLY | O_NOCTTY | O_CLOEXEC;

	if (pipe_is_word(path))
		return fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 0);
	if (stat(path, &status) == 0 && S_ISFIFO(status.st_mode))
		flags |= O_NONBLOCK;
	return open(path, flags);
}

/* The caller holds the lock. */
static int open_next(struct stream_source *streams, struct failure *failure)
{
	const char *path = streams->paths[streams->next_path++];

	streams->name = name_of(path);
	streams->bytes = 0;
	do {
		streams->fd = open_path(path);
	} while (streams->fd < 0 && errno == EINTR);
	if (streams->fd < 0)
		return cannot_open(streams->name, errno, failure);
	if (isatty(streams->fd))
		return failure_set(failure, EXIT_FILE, streams->name, 0,
				   "is a terminal: a pipe or a file is "
				   "expected");
	pipe_widen(streams->fd);
	return 0;
}

/* The caller holds the lock. */
static int close_ended(struct stream_source *streams, struct failure *failure)
{
	close(streams->fd);
	streams->fd = -1;
	if (streams->bytes % streams->layout.record_size == 0)
		return 0;
	return input_refuse_partial(streams->name, streams->bytes,
				    &streams->layout, NULL, failure);
}

/* --- reading, with the lock held ------------------------------------------ */

/* Some bytes; 0 at the end of the stream, or if the run has failed elsewhere;
 * -errno with *failure filled. */
static ssize_t read_some(struct stream_source *streams, uint8_t *target,
			 size_t bytes, struct failure *failure)
{
	struct pollfd ready = { .fd = streams->fd, .events = POLLIN };

	while (!first_failure_stops(streams->failure)) {
		ssize_t got;

		if (poll(&ready, 1, LOOK_MS) <= 0)
			continue;
		got = read(streams->fd, target, bytes);
		if (got >= 0)
			return got;
		if (errno != EINTR && errno != EAGAIN)
			return failure_set(failure, EXIT_FILE, streams->name,
					   errno, "cannot read");
	}
	return 0;
}

/* The target has room for so many bytes, and will be used again.  The run may
 * have failed elsewhere when this returns. */
static int skip_header(struct stream_source *streams, uint8_t *target,
		       uint64_t bytes, struct failure *failure)
{
	uint64_t header_bytes = streams->layout.header_bytes;
	bool is_first = streams->next_path == 1;
	uint64_t done = 0;

	while (done < header_bytes) {
		ssize_t got =
			read_some(streams, target,
				  MIN(bytes, header_bytes - done), failure);

		if (got < 0)
			return (int)got;
		if (got == 0 && first_failure_stops(streams->failure))
			return 0;
		if (got == 0)
			return input_refuse_header(streams->name, done,
						   header_bytes, failure);
		if (streams->header && is_first)
			memcpy(streams->header + done, target, (size_t)got);
		done += (uint64_t)got;
	}
	return 0;
}

/* Read up to `bytes` of the open stream, fewer only at its end: then it is
 * closed.  Returns the count or -errno with *failure filled. */
static int64_t read_stream(struct stream_source *streams, uint8_t *target,
			   uint64_t bytes, struct failure *failure)
{
	uint64_t done = 0;

	while (done < bytes) {
		ssize_t got = read_some(streams, target + done, bytes - done,
					failure);

		if (got < 0)
			return got;
		streams->bytes += (uint64_t)got;
		streams->read_bytes += (uint64_t)got;
		flow_add(FLOW_READ, 0, (uint64_t)got);
		done += (uint64_t)got;
		if (got == 0 && first_failure_stops(streams->failure))
			return 0;
		if (got == 0) {
			int error = close_ended(streams, failure);

			return error ? error : (int64_t)done;
		}
	}
	return (int64_t)done;
}

/* Append what is wanted to records that have come.  Returns how many there are,
 * or -errno with *failure filled. */
static int64_t widen(const struct stream_source *streams,
		     const uint8_t *records, uint64_t count,
		     struct failure *failure)
{
	const struct source *source = &streams->source;
	uint64_t number = streams->record_count + streams->batch_records;
	int error = widening_check(streams->widening, number + count, failure);

	if (error)
		return error;
	if (streams->widening->bytes > 0)
		widening_copy(streams->widening, streams->layout.record_size,
			      source->base + streams->batch_records *
						     source->record_size,
			      records, count, number);
	return (int64_t)count;
}

/* The next unit of the batch.  Returns how many records it has; 0 at the end of
 * the batch or of all streams; -errno with *failure filled. */
static int64_t read_unit(struct stream_source *streams, struct failure *failure)
{
	const struct source *source = &streams->source;
	uint64_t count = MIN(source->slot_count - streams->batch_records,
			     streams->unit_records);
	/* What is widened comes to the end of what it will take. */
	uint8_t *target = source->base +
			  streams->batch_records * source->record_size +
			  count * streams->widening->bytes;
	uint64_t bytes = count * streams->layout.record_size;
	int64_t got = 0;

	while (got == 0 && count > 0 &&
	       !first_failure_stops(streams->failure)) {
		int error = 0;

		if (streams->fd < 0 &&
		    streams->next_path == streams->path_count) {
			streams->has_ended = true;
			return 0;
		}
		if (streams->fd < 0) {
			error = open_next(streams, failure);
			if (error == 0)
				error = skip_header(streams, target, bytes,
						    failure);
		}
		if (error)
			return error;
		got = read_stream(streams, target, bytes, failure);
	}
	return got <= 0 ? got
			: widen(streams, target,
				(uint64_t)got / streams->layout.record_size,
				failure);
}

/* The same as read_unit(), counted. */
static int64_t take_unit(struct stream_source *streams, struct failure *failure)
{
	uint64_t begin_ns = stage_queue_begin(&streams->reads);
	int64_t count = 0;

	if (!streams->has_ended)
		count = read_unit(streams, failure);
	if (count > 0)
		streams->batch_records += (uint64_t)count;
	if (count < 0)
		streams->has_ended = true;
	stage_queue_end(&streams->reads, begin_ns,
			(uint64_t)MAX(0, count) * streams->source.record_size);
	return count;
}

/* --- the source's operations ---------------------------------------------- */

/* The caller holds the lock.  As source_ops.next(). */
static int take_run(struct stream_source *streams, struct source_run *run,
		    struct failure *failure)
{
	int64_t count = (int64_t)streams->peeked_records;

	run->slot = count > 0 ? 0 : streams->batch_records;
	if (count == 0)
		count = take_unit(streams, failure);
	streams->peeked_records = 0;
	if (count < 0)
		return (int)count;
	run->record_count = (uint64_t)count;
	run->records =
		streams->source.base + run->slot * streams->source.record_size;
	return count > 0;
}

static int next_run(struct source_reader *reader, struct source_run *run,
		    struct failure *failure)
{
	/* A source's context is its owner, which the readers change. */
	struct stream_source *streams =
		(struct stream_source *)reader->source->context;
	int ret;

	if (source_walk_of(reader)->is_resident)
		return source_walk_next(reader, run, failure);
	stage_pause(reader->clock);
	pthread_mutex_lock(&streams->lock);
	ret = take_run(streams, run, failure);
	pthread_mutex_unlock(&streams->lock);
	stage_wait(reader->clock, STAGE_FOR_READ);
	return ret;
}

/* What is not resident belongs to the worker that reads it, whatever its share
 * is. */
static const struct source_ops operations = {
	.open = source_walk_open,
	.next = next_run,
	.share = source_walk_share,
	.record = source_walk_record,
};

/* --- its life ------------------------------------------------------------- */

int stream_source_open(struct stream_source *streams, const char *const *paths,
		       unsigned path_count, const struct input_layout *layout,
		       const struct widening *widening,
		       const struct first_failure *run_failure,
		       struct failure *failure)
{
	int error = 0;

	*streams = (struct stream_source){
		.source = {
			.ops = &operations,
			.context = streams,
			.record_size = layout->record_size + widening->bytes,
		},
		.layout = *layout,
		.widening = widening,
		.paths = paths,
		.path_count = path_count,
		.unit_records = MAX(1, UNIT_BYTES / layout->record_size),
		.failure = run_failure,
		.fd = -1,
	};
	pthread_mutex_init(&streams->lock, NULL);
	if (layout->header_bytes > 0 && layout->keeps_header) {
		streams->header = malloc(layout->header_bytes);
		if (!streams->header)
			return failure_no_memory(failure);
	}
	for (unsigned i = 0; i < path_count && error == 0; i++)
		error = check_path(paths[i], failure);
	return error;
}

int64_t stream_source_begin(struct stream_source *streams, struct batch *batch,
			    struct failure *failure)
{
	int64_t count;

	batch->first_record = streams->record_count;
	streams->batch_records = 0;
	streams->source.base = batch->records;
	streams->source.record_count = batch->capacity;
	streams->source.slot_count = batch->capacity;
	pthread_mutex_lock(&streams->lock);
	count = take_unit(streams, failure);
	streams->peeked_records = streams->batch_records;
	pthread_mutex_unlock(&streams->lock);
	return count;
}

void stream_source_end(struct stream_source *streams)
{
	streams->source.record_count = streams->batch_records;
	streams->source.slot_count = streams->batch_records;
	streams->record_count += streams->batch_records;
}

void stream_source_close(struct stream_source *streams)
{
	/* A zeroed one has no operations. */
	if (!streams->source.ops)
		return;
	if (streams->fd >= 0)
		close(streams->fd);
	free(streams->header);
	pthread_mutex_destroy(&streams->lock);
	memset(streams, 0, sizeof(*streams));
}
