/*
 * trace_pack.h - a process's spans as bytes, for another to write them down
 *
 *      u32 lanes, u32 zero;  for each lane: u32 spans, u32 lost;  for each
 * span: u64 begin_ns, u64 end_ns, 16 bytes of label with zeros behind it
 *
 * all little endian.
 */
#ifndef TRACE_PACK_H
#define TRACE_PACK_H

#include <stddef.h>
#include <stdint.h>

#include "base/trace.h"

#define TRACE_PACK_LABEL_BYTES 16

size_t trace_pack_bytes(const struct trace_lane *lanes, unsigned lane_count);

/* Of as many lanes with as many spans each. */
size_t trace_pack_bytes_max(unsigned lane_count, uint32_t span_count);

/* trace_pack_bytes() bytes; longer labels are cut. */
void trace_pack(const struct trace_lane *lanes, unsigned lane_count,
		uint8_t *bytes);

/*
 * Lanes whose labels point into bytes, which must stay.  Returns the number of
 * lanes, and in *lanes what trace_unpack_free() takes back; -EINVAL: this is no
 * packed trace; -ENOMEM.  Bytes of a peer: no number in them is counted upon,
 * and no more is allocated than there are bytes for; times and labels are
 * whatever it says (labels end within their room).
 */
int trace_unpack(uint8_t *bytes, size_t byte_count, struct trace_lane **lanes);

void trace_unpack_free(struct trace_lane *lanes, unsigned lane_count);

#endif /* TRACE_PACK_H */
