/*
 * checksum.h - the benchmark's checksum: the sum of the records' CRC-32s
 *
 * CRC-32 as in zlib (reflected 0xEDB88320, initial value and final XOR all
 * ones) of each record, added up as a 128-bit integer: the order of the
 * records does not matter, so input and output of a sort have the same sum.
 *
 * The kernels are our own because records are short: a record of 100 bytes
 * takes 3.5 ns with AVX-512 and 7.8 ns with AVX2, and 10.5 ns with libdeflate
 * 1.14 (results/NOTES.md).
 */
#ifndef CHECKSUM_H
#define CHECKSUM_H

#include <stddef.h>
#include <stdint.h>

#include "base/cpu.h"

/* Returns the sum over count records of record_size bytes each, which follow
 * each other.  The sum is below 2^32 * count, so 64 bits hold it for up to 2^32
 * records; callers add the sums of parts in 128 bits. */
typedef uint64_t checksum_fn(const uint8_t *records, size_t record_size,
			     size_t count);

checksum_fn *checksum_kernel(enum cpu_level level, size_t record_size);

checksum_fn checksum_scalar;
/* These kernels take records of 100 bytes only. */
checksum_fn checksum_100_pclmul, checksum_100_vpclmul;

#endif /* CHECKSUM_H */
