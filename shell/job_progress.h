/*
 * job_progress.h - the line on a terminal by which a job tells how far it is
 *
 * A job that runs for minutes writes such lines to standard error, each with a
 * carriage return behind it and no newline, so that a terminal shows the latest
 * one.  blinksh shows that of rank 0, and drops all of them from the output
 * that it prints in the end.
 */
#ifndef JOB_PROGRESS_H
#define JOB_PROGRESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The latest line, in what a job has written last: false, and *text is empty,
 * if that does not end with one.  A '?' stands for a byte that is no text. */
bool job_progress_find(const uint8_t *bytes, size_t byte_count, char *text,
		       size_t text_bytes);

/* Drop all such lines.  Returns how many bytes are left. */
size_t job_progress_drop(uint8_t *bytes, size_t byte_count);

#endif /* JOB_PROGRESS_H */
