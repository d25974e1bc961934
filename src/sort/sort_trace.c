/*
 * sort_trace.c - the lanes of a timeline, and the file that they are written to
 */
#include "sort/sort_trace.h"

#include <errno.h>
#include <stdio.h>
#include <unistd.h>

void sort_trace_init(struct sort_trace *trace, const char *path)
{
	trace->path = path;
	trace->file = (struct outfile){ 0 };
	trace->lane_count = 0;
}

/* What the timeline would take the place of, or NULL. */
static const char *find_twin(const struct outfile *file,
			     const struct output *output,
			     const struct input *input)
{
	for (unsigned i = 0; i < output->file_count; i++)
		if (outfile_same_target(file, &output->files[i].outfile))
			return "output";
	for (unsigned i = 0; i < input->file_count; i++)
		if (outfile_replaces(file, input->files[i].device,
				     input->files[i].inode))
			return "input";
	return NULL;
}

int sort_trace_open(struct sort_trace *trace, const struct output *output,
		    const struct input *input, struct failure *failure)
{
	const char *twin;
	int error;

	if (!trace->path)
		return 0;
	error = outfile_open(&trace->file, trace->path, NULL, failure);
	if (error)
		return error;
	twin = find_twin(&trace->file, output, input);
	if (!twin)
		return 0;
	return failure_set(failure, EXIT_USAGE, trace->path, 0,
			   "is an %s file, too", twin);
}

int sort_trace_add_lanes(struct sort_trace *trace, unsigned worker_count,
			 uint32_t span_count, struct failure *failure)
{
	trace->lane_count = worker_count;
	for (unsigned w = 0; trace->path && w < worker_count; w++)
		if (trace_lane_init(&trace->lanes[w], span_count))
			return failure_no_memory(failure);
	return 0;
}

int sort_trace_write(const struct sort_trace *trace,
		     const struct trace_process *processes,
		     unsigned process_count, struct failure *failure)
{
	int fd = dup(trace->file.fd);
	FILE *stream = fd < 0 ? NULL : fdopen(fd, "w");
	int error;

	if (!stream) {
		error = errno;
		if (fd >= 0)
			close(fd);
		return failure_set(failure, EXIT_FILE, trace->path, error,
				   "cannot write");
	}
	error = trace_write_all(stream, processes, process_count);
	if (fclose(stream) == EOF || error)
		return failure_set(failure, EXIT_FILE, trace->path,
				   error ? -error : errno, "cannot write");
	return 0;
}

void sort_trace_close(struct sort_trace *trace)
{
	for (unsigned w = 0; w < trace->lane_count; w++)
		trace_lane_fini(&trace->lanes[w]);
	trace->lane_count = 0;
	outfile_close(&trace->file);
}
