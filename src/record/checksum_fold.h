/*
 * checksum_fold.h - the CRC-32 of a 100-byte record by carry-less products
 *
 * Bit i of a little-endian integer is the coefficient of y^i, as the record's
 * bits come in; P is the CRC's polynomial in that order, of degree 32 with
 * P(0) = 1.  The CRC of 800 bits M that starts from zero is
 *
 *         M * y^-800  mod P.
 *
 * Instead of folding block into block, each of the record's twelve words q[j]
 * (bits 64 j to 64 j + 63) is multiplied at once by a 32-bit constant:
 *
 *         T = sum of q[j] * k[j],   k[j] = y^(64 + 64 j - 800) mod P,
 *
 * and the last four bytes by y^32, a shift.  No product waits for another.
 * T has 96 bits, and one step brings it to 32 (Montgomery's reduction):
 *
 *         u = T / P mod y^64,   CRC = (T + u * P) / y^64.
 *
 * The all-ones start and end of the CRC are linear too: they XOR it with the
 * CRC of 100 zero bytes.
 *
 * Idea of products with carry-less multiplication: Gopal et al., "Fast CRC
 * Computation for Generic Polynomials Using PCLMULQDQ", Intel 2009.
 */
#ifndef CHECKSUM_FOLD_H
#define CHECKSUM_FOLD_H

#define FOLD_RECORD_BYTES 100

#define FOLD_K0 0x101a2331
#define FOLD_K1 0x5a03a0cf
#define FOLD_K2 0x8e42b13e
#define FOLD_K3 0x653d9822
#define FOLD_K4 0xcad38e8f
#define FOLD_K5 0x69ccfc0d
#define FOLD_K6 0x2a283862
#define FOLD_K7 0x9570d495
#define FOLD_K8 0x01b5fd1d
#define FOLD_K9 0x65673b46
#define FOLD_K10 0x9ba54c6f
#define FOLD_K11 0xb8bc6765

/* P, 1 / P mod y^64, and the CRC of 100 zero bytes. */
#define FOLD_P 0x1db710641
#define FOLD_P_INVERSE ((long long)0xb4e5b025f7011641)
#define FOLD_OF_ZEROS 0x9988c6ca

#endif /* CHECKSUM_FOLD_H */
