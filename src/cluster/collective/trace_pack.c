/*
 * trace_pack.c - a process's spans as bytes, for another process to write
 * out
 */
#include "cluster/collective/trace_pack.h"

#include <errno.h>
#include <stdlib.h>

#include "base/base.h"
#include "sort/sort_trace.h"

#define HEAD_BYTES 8 /* one for the document, and one for each lane */
#define SPAN_BYTES (16 + TRACE_PACK_LABEL_BYTES)

static void store_pair(uint8_t *bytes, uint32_t low, uint32_t high)
{
	store_le64(bytes, (uint64_t)high << 32 | low);
}

size_t trace_pack_bytes(const struct trace_lane *lanes, unsigned lane_count)
{
	size_t bytes = HEAD_BYTES + TRACE_PACK_FLOWS_BYTES;

	for (unsigned i = 0; i < lane_count; i++)
		bytes += HEAD_BYTES + (size_t)lanes[i].count * SPAN_BYTES;
	return bytes;
}

size_t trace_pack_bytes_max(unsigned lane_count, uint32_t span_count)
{
	return HEAD_BYTES + TRACE_PACK_FLOWS_BYTES +
	       lane_count * (HEAD_BYTES + (size_t)span_count * SPAN_BYTES);
}

static void pack_flows(const struct flow_bins *flows, uint8_t *bytes)
{
	store_le64(bytes, flows->width_ns);
	store_le64(bytes + 8, flows->first);
	for (unsigned i = 0; i < FLOWS * FLOW_BINS; i++)
		store_le64(bytes + 16 + 8 * i,
			   flows->bytes[i / FLOW_BINS][i % FLOW_BINS]);
}

static void unpack_flows(const uint8_t *bytes, struct flow_bins *flows)
{
	flows->width_ns = MAX(1, load_le64(bytes));
	flows->first = load_le64(bytes + 8);
	for (unsigned i = 0; i < FLOWS * FLOW_BINS; i++)
		flows->bytes[i / FLOW_BINS][i % FLOW_BINS] =
			load_le64(bytes + 16 + 8 * i);
}

void trace_pack(const struct trace_lane *lanes, unsigned lane_count,
		const struct flow_bins *flows, uint8_t *bytes)
{
	store_pair(bytes, lane_count, 0);
	bytes += HEAD_BYTES;
	for (unsigned i = 0; i < lane_count; i++) {
		store_pair(bytes, lanes[i].count, lanes[i].lost);
		bytes += HEAD_BYTES;
		for (uint32_t k = 0; k < lanes[i].count; k++) {
			const struct trace_span *span = &lanes[i].spans[k];

			store_le64(bytes, span->begin_ns);
			store_le64(bytes + 8, span->end_ns);
			memset(bytes + 16, 0, TRACE_PACK_LABEL_BYTES);
			memcpy(bytes + 16, span->label,
			       MIN(strlen(span->label),
				   TRACE_PACK_LABEL_BYTES - 1));
			bytes += SPAN_BYTES;
		}
	}
	pack_flows(flows, bytes);
}

/* Unpack one lane.  Returns the bytes read; 0 if they are not a lane. */
static size_t unpack_lane(uint8_t *bytes, size_t byte_count,
			  struct trace_lane *lane)
{
	uint64_t head;
	uint32_t count;

	if (byte_count < HEAD_BYTES)
		return 0;
	head = load_le64(bytes);
	count = (uint32_t)head;
	if (count > (byte_count - HEAD_BYTES) / SPAN_BYTES ||
	    trace_lane_init(lane, count) < 0)
		return 0;
	lane->count = count;
	lane->lost = (uint32_t)(head >> 32);
	bytes += HEAD_BYTES;
	for (uint32_t k = 0; k < count; k++, bytes += SPAN_BYTES) {
		bytes[SPAN_BYTES - 1] = 0;
		lane->spans[k] = (struct trace_span){
			.begin_ns = load_le64(bytes),
			.end_ns = load_le64(bytes + 8),
			.label = (const char *)bytes + 16,
		};
	}
	return HEAD_BYTES + (size_t)count * SPAN_BYTES;
}

int trace_unpack(uint8_t *bytes, size_t byte_count, struct trace_lane **lanes,
		 struct flow_bins *flows)
{
	uint64_t lane_count;
	unsigned done = 0;

	if (byte_count < HEAD_BYTES + TRACE_PACK_FLOWS_BYTES)
		return -EINVAL;
	byte_count -= TRACE_PACK_FLOWS_BYTES;
	unpack_flows(bytes + byte_count, flows);
	lane_count = load_le64(bytes);
	if (lane_count > SORT_TRACE_LANES_MAX)
		return -EINVAL;
	*lanes = aligned_alloc(CACHE_PAIR_BYTES,
			       (lane_count + 1) * sizeof(**lanes));
	if (!*lanes)
		return -ENOMEM;
	memset(*lanes, 0, lane_count * sizeof(**lanes));
	bytes += HEAD_BYTES;
	byte_count -= HEAD_BYTES;
	for (; done < lane_count; done++) {
		size_t taken = unpack_lane(bytes, byte_count, &(*lanes)[done]);

		if (taken == 0)
			break;
		bytes += taken;
		byte_count -= taken;
	}
	if (done == lane_count && byte_count == 0)
		return (int)lane_count;
	trace_unpack_free(*lanes, done);
	return -EINVAL;
}

void trace_unpack_free(struct trace_lane *lanes, unsigned lane_count)
{
	for (unsigned i = 0; i < lane_count; i++)
		trace_lane_fini(&lanes[i]);
	free(lanes);
}
