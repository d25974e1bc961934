#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "format.h"
#include "trace.h"

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

static void write_name(FILE *stream, const char *kind, unsigned lane,
		       const char *name)
{
	fprintf(stream, "{\"name\":\"%s\",\"ph\":\"M\",\"pid\":1,\"tid\":%u,",
		kind, lane);
	fputs("\"args\":{\"name\":", stream);
	format_json_string(stream, name);
	fputs("}}", stream);
}

static void write_span(FILE *stream, unsigned lane, uint64_t origin_ns,
		       const struct trace_span *span)
{
	fputs(",\n{\"name\":", stream);
	format_json_string(stream, span->label);
	fprintf(stream, ",\"ph\":\"X\",\"pid\":1,\"tid\":%u,\"ts\":", lane);
	write_us(stream, (int64_t)(span->begin_ns - origin_ns));
	fputs(",\"dur\":", stream);
	write_us(stream, (int64_t)(span->end_ns - span->begin_ns));
	putc('}', stream);
}

int trace_write(FILE *stream, const char *process, uint64_t origin_ns,
		const struct trace_lane *lanes, unsigned lane_count)
{
	uint64_t lost = 0;

	fputs("{\"displayTimeUnit\":\"ns\",\"traceEvents\":[\n", stream);
	write_name(stream, "process_name", 0, process);
	for (unsigned lane = 0; lane < lane_count; lane++) {
		char name[24];

		snprintf(name, sizeof(name), "thread %u", lane);
		fputs(",\n", stream);
		write_name(stream, "thread_name", lane, name);
		for (uint32_t i = 0; i < lanes[lane].count; i++)
			write_span(stream, lane, origin_ns,
				   &lanes[lane].spans[i]);
		lost += lanes[lane].lost;
	}
	fprintf(stream, "\n],\"otherData\":{\"lost_spans\":%llu}}\n",
		(unsigned long long)lost);
	return fflush(stream) || ferror(stream) ? -EIO : 0;
}
