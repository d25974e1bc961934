/*
 * crc32c.h - the CRC-32C of a segment's bytes, at the speed of a copy
 *
 * The UDP checksum misses one damaged segment in 65536, and is not computed at
 * all where a driver says that it has checked it: so the exchange computes a
 * CRC-32C.  It finds accidents.  To forge a segment, an attacker has to guess
 * the job's token.
 *
 * The bytes may lie in several parts: begin with the seed, and give each call
 * the value of the one before.  The value depends on all bytes in order and on
 * the seed, not on how they were cut into parts, and is the same on all
 * machines and kernels.
 *
 * The kernels are our own because segments are short: 1440 bytes take 27 ns
 * with AVX-512, and 49 ns with ISA-L 2.30; 64 KiB take as long with either
 * (results/NOTES.md).
 */
#ifndef CRC32C_H
#define CRC32C_H

#include <stddef.h>
#include <stdint.h>

#include "base/cpu.h"

/* Returns the CRC-32C (Castagnoli) of the bytes, continued from crc, which is
 * the seed or an earlier call's value.  Both are as in the crc32 instruction,
 * without a final inversion. */
typedef uint32_t crc32c_fn(uint32_t crc, const void *bytes, size_t byte_count);

crc32c_fn crc32c_scalar, crc32c_pclmul, crc32c_vpclmul;

/* The fastest function that this level of instructions has. */
static inline crc32c_fn *crc32c_kernel(enum cpu_level level)
{
	return CPU_BEST(level, crc32c_scalar, crc32c_pclmul, crc32c_vpclmul);
}

#endif /* CRC32C_H */
