/*
 * digest.h - a 32-bit check of a segment's bytes, at the speed of a copy
 *
 * The UDP checksum misses one damaged segment in 65536, and is not computed at
 * all where a driver says that it was checked: the exchange has a check of its
 * own.  It finds accidents; who wants to forge has to guess the job's token.
 *
 * Over bytes that may lie in several parts: begin with the seed, add parts,
 * finish.  The value depends on all bytes in order and on the seed, not on how
 * they were cut into parts, and is the same on all machines and kernels.
 */
#ifndef DIGEST_H
#define DIGEST_H

#include <stddef.h>
#include <stdint.h>

#include "base/cpu.h"

/* CRC-32C (Castagnoli) of the bytes, continued from an earlier call's value;
 * begin with the seed.  crc in and out as in the crc32 instruction: no final
 * inversion. */
typedef uint32_t digest_fn(uint32_t crc, const void *bytes, size_t byte_count);

/* The fastest of this level. */
digest_fn *digest_kernel(enum cpu_level level);

uint32_t digest_scalar(uint32_t crc, const void *bytes, size_t byte_count);
#if defined(__x86_64__)
uint32_t digest_pclmul(uint32_t crc, const void *bytes, size_t byte_count);
uint32_t digest_vpclmul(uint32_t crc, const void *bytes, size_t byte_count);
#endif

#endif /* DIGEST_H */
