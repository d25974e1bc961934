/* job_wire.c - the body of a JOB, which tells a client how a job is */
#include <string.h>

#include "base/base.h"
#include "base/clock.h"
#include "shell/command.h"
#include "shell/job_wire.h"

/* Copies the last bytes of a stream, as many as there is room for. */
static size_t put_tail(const struct stream *stream, uint8_t *to, size_t room)
{
	uint64_t begin = stream_begin(stream);

	if (stream->total_bytes - begin > room)
		begin = stream->total_bytes - room;
	return stream_copy(stream, begin, to, room);
}

size_t job_wire_put(const struct job *job, uint8_t *body, size_t body_bytes)
{
	const struct stream *out = &job->streams[JOB_STDOUT];
	const struct stream *err = &job->streams[JOB_STDERR];
	size_t room = body_bytes - sizeof(struct wire_job);
	uint8_t *tails = body + sizeof(struct wire_job);
	uint64_t end_ns = job->end_ns ? job->end_ns : clock_now_ns();
	size_t err_bytes = MIN(room, err->total_bytes);
	size_t out_bytes = put_tail(out, tails, room - err_bytes);
	struct wire_job wire = {
		.state = le32_store(job->state),
		.code = le32_store((uint32_t)job->code),
		.elapsed_ns = le64_store(end_ns - job->begin_ns),
		.user_ns = le64_store(job->user_ns),
		.system_ns = le64_store(job->system_ns),
		.max_rss_bytes = le64_store(job->max_rss_bytes),
		.stdout_total = le64_store(out->total_bytes),
		.stderr_total = le64_store(err->total_bytes),
		.stdout_bytes = le32_store((uint32_t)out_bytes),
	};

	err_bytes = put_tail(err, tails + out_bytes, err_bytes);
	wire.stderr_bytes = le32_store((uint32_t)err_bytes);
	memcpy(wire.job, job->id, WIRE_JOB_BYTES);
	memcpy(body, &wire, sizeof(wire));
	return sizeof(wire) + out_bytes + err_bytes;
}
