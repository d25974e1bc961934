/* trace.c - a timeline of each thread, kept in memory and written afterwards */
#include "base/trace.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/format.h"

int trace_lane_init(struct trace_lane *lane, uint32_t capacity)
{
	size_t bytes = capacity * sizeof(*lane->spans);

	memset(lane, 0, sizeof(*lane));
	if (capacity == 0)
		return 0;
	lane->spans = malloc(bytes);
	if (!lane->spans)
		return -ENOMEM;
	/* Touched here, so that no span of the run pays for a page. */
	memset(lane->spans, 0, bytes);
	lane->capacity = capacity;
	return 0;
}

void trace_lane_fini(struct trace_lane *lane)
{
	free(lane->spans);
	memset(lane, 0, sizeof(*lane));
}

/* Trace events count in microseconds; three decimals make it exact. */
static void write_us(FILE *stream, int64_t ns)
{
	uint64_t size = ns < 0 ? -(uint64_t)ns : (uint64_t)ns;

	fprintf(stream, "%s%llu.%03u", ns < 0 ? "-" : "",
		(unsigned long long)(size / 1000), (unsigned)(size % 1000));
}

static void write_name(FILE *stream, const char *kind, unsigned process,
		       unsigned lane, const char *name)
{
	fprintf(stream, "{\"name\":\"%s\",\"ph\":\"M\",\"pid\":%u,\"tid\":%u,",
		kind, process + 1, lane);
	fputs("\"args\":{\"name\":", stream);
	format_json_string(stream, name);
	fputs("}}", stream);
}

static void write_span(FILE *stream, unsigned process, unsigned lane,
		       uint64_t origin_ns, const struct trace_span *span)
{
	fputs(",\n{\"name\":", stream);
	format_json_string(stream, span->label);
	fprintf(stream,
		",\"ph\":\"X\",\"pid\":%u,\"tid\":%u,\"ts\":", process + 1,
		lane);
	write_us(stream, (int64_t)(span->begin_ns - origin_ns));
	fputs(",\"dur\":", stream);
	write_us(stream, (int64_t)(span->end_ns - span->begin_ns));
	putc('}', stream);
}

/* A rate, where another one begins.  Times the time until the next, in
 * nanoseconds, it is 10^9 times the bytes of the bins. */
static void write_rate(FILE *stream, unsigned process, enum flow flow,
		       int64_t ns, double bytes_per_s)
{
	fprintf(stream, ",\n{\"name\":\"%s\",\"ph\":\"C\",\"pid\":%u,\"ts\":",
		flow_names[flow], process + 1);
	write_us(stream, ns);
	fprintf(stream, ",\"args\":{\"bytes/s\":%.0f}}", bytes_per_s);
}

static void write_flow(FILE *stream, unsigned number,
		       const struct trace_process *process, enum flow flow)
{
	const struct flow_bins *bins = process->flows;
	uint64_t last = 0;

	for (unsigned i = 0; i <= FLOW_BINS; i++) {
		uint64_t bytes = i < FLOW_BINS ? bins->bytes[flow][i] : 0;
		uint64_t begin_ns = (bins->first + i) * bins->width_ns;

		if (bytes != last)
			write_rate(stream, number, flow,
				   (int64_t)(begin_ns - process->origin_ns),
				   (double)bytes * 1e9 /
					   (double)bins->width_ns);
		last = bytes;
	}
}

/* Returns the spans that were lost. */
static uint64_t write_process(FILE *stream, unsigned number,
			      const struct trace_process *process)
{
	uint64_t lost = 0;

	write_name(stream, "process_name", number, 0, process->name);
	for (unsigned lane = 0; lane < process->lane_count; lane++) {
		const struct trace_lane *spans = &process->lanes[lane];
		char name[24];

		snprintf(name, sizeof(name), "thread %u", lane);
		fputs(",\n", stream);
		write_name(stream, "thread_name", number, lane, name);
		for (uint32_t i = 0; i < spans->count; i++)
			write_span(stream, number, lane, process->origin_ns,
				   &spans->spans[i]);
		lost += spans->lost;
	}
	for (unsigned f = 0; process->flows && f < FLOWS; f++)
		write_flow(stream, number, process, f);
	return lost;
}

int trace_write_all(FILE *stream, const struct trace_process *processes,
		    unsigned process_count)
{
	uint64_t lost = 0, bound_ns = 0;

	fputs("{\"displayTimeUnit\":\"ns\",\"traceEvents\":[\n", stream);
	for (unsigned i = 0; i < process_count; i++) {
		if (i > 0)
			fputs(",\n", stream);
		lost += write_process(stream, i, &processes[i]);
		if (processes[i].bound_ns > bound_ns)
			bound_ns = processes[i].bound_ns;
	}
	fprintf(stream, "\n],\"otherData\":{\"lost_spans\":%llu",
		(unsigned long long)lost);
	if (process_count > 1)
		fprintf(stream, ",\"clock_bound_ns\":%llu",
			(unsigned long long)bound_ns);
	fputs("}}\n", stream);
	return fflush(stream) || ferror(stream) ? -EIO : 0;
}
