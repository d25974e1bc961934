/*
 * job_wire.h - the body of a JOB, which tells a client how a job is
 */
#ifndef JOB_WIRE_H
#define JOB_WIRE_H

#include <stddef.h>
#include <stdint.h>

#include "shell/job.h"

/* Fills the body with the state of the job and, as far as there is room, the
 * last bytes of its output, stderr first to be kept.  body_bytes is the room,
 * at least sizeof(struct wire_job).  Returns how many bytes were written. */
size_t job_wire_put(const struct job *job, uint8_t *body, size_t body_bytes);

#endif /* JOB_WIRE_H */
