/*
 * trace_pack.h - a process's spans and flows as bytes, for another process to
 * write out
 *
 *      u32 lanes, u32 zero;  for each lane: u32 spans, u32 lost;  for each
 * span: u64 begin_ns, u64 end_ns, 16 bytes of label with zeros behind it;  of
 * the flows: u64 width_ns, u64 first, for each flow a u64 for each bin
 *
 * all little endian.
 */
#ifndef TRACE_PACK_H
#define TRACE_PACK_H

#include <stddef.h>
#include <stdint.h>

#include "base/trace.h"

#define TRACE_PACK_LABEL_BYTES 16
#define TRACE_PACK_FLOWS_BYTES (8 * (2 + FLOWS * FLOW_BINS))

size_t trace_pack_bytes(const struct trace_lane *lanes, unsigned lane_count);

/* The size of lane_count lanes with span_count spans each. */
size_t trace_pack_bytes_max(unsigned lane_count, uint32_t span_count);

/* Write trace_pack_bytes() bytes.  Longer labels are cut. */
void trace_pack(const struct trace_lane *lanes, unsigned lane_count,
		const struct flow_bins *flows, uint8_t *bytes);

/*
 * Make lanes from packed bytes.  Their labels point into bytes, which must
 * outlive them.  Returns the number of lanes, and in *lanes an array for
 * trace_unpack_free(); -EINVAL if the bytes are not a packed trace; or -ENOMEM.
 * The bytes come from a peer and are not trusted: there are at most
 * SORT_TRACE_LANES_MAX lanes, and no more spans than the bytes can fill.
 * Times are taken as they are, but for a width of 0, and labels end within
 * their 16 bytes.
 */
int trace_unpack(uint8_t *bytes, size_t byte_count, struct trace_lane **lanes,
		 struct flow_bins *flows);

/* Safe on NULL, of no lanes. */
void trace_unpack_free(struct trace_lane *lanes, unsigned lane_count);

#endif /* TRACE_PACK_H */
