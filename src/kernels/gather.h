/*
 * gather.h - copy records into sorted order
 *
 * The i-th record of the target is the one that entries[i] names: the record
 * at records + (entries[i] & index_mask) * record_size.  The source is random
 * access over memory far larger than the caches, so this is where the time of a
 * sort goes: 2.5 cache lines a record.  Records are prefetched well before they
 * are copied, first into L2, then into L1.
 */
#ifndef GATHER_H
#define GATHER_H

#include <stddef.h>
#include <stdint.h>

#include "base/cpu.h"

/*
 * Reads only the named records and writes only the count * record_size bytes of
 * the target, of any alignment.  Source and target must not overlap.
 */
typedef void gather_fn(uint8_t *target, const uint8_t *records,
		       size_t record_size, const uint64_t *entries,
		       size_t count, uint64_t index_mask);

/*
 * Copy byte_count bytes of the records that entries name, beginning with byte
 * `cut` of the first record (cut < record_size).  The last record may be copied
 * in part, too.
 */
void gather_bytes(gather_fn *gather, uint8_t *target, uint64_t byte_count,
		  const uint8_t *records, uint32_t record_size,
		  const uint64_t *entries, uint32_t cut, uint64_t index_mask);

/* Returns the kernel of this level for this record size. */
gather_fn *gather_kernel(enum cpu_level level, size_t record_size);

gather_fn gather_scalar;
/* These kernels take records of 100 bytes only. */
gather_fn gather_100_avx2, gather_100_avx512;

#endif /* GATHER_H */
