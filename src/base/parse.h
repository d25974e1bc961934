/*
 * parse.h - strict numbers and sizes from the command line and from files
 *
 * Each function parses the whole string: no sign, no blank, no rest and no
 * silent overflow.  Each returns 0, -EINVAL (not of this form) or -ERANGE (of
 * this form but outside the range), and leaves *value alone unless it returns
 * 0.
 */
#ifndef PARSE_H
#define PARSE_H

#include <stdint.h>

/* Decimal digits, min..max. */
int parse_u64(const char *text, uint64_t min, uint64_t max, uint64_t *value);

/* Decimal digits, to 2^128 - 1. */
int parse_u128(const char *text, unsigned __int128 *value);

/* The first number or range, 3 or 3-5, of a list such as 0,3-5: up to max, and
 * the first not above the last.  *text is then what follows its comma, or the
 * end: "".  On an error *text stays. */
int parse_range(const char **text, uint64_t max, uint64_t *first,
		uint64_t *last);

/* Bytes: decimal digits, then nothing or one of K M G T (powers of 1024),
 * in either case, optionally followed by "iB" or "B": 64M, 64MiB, 2g. */
int parse_size(const char *text, uint64_t min, uint64_t max, uint64_t *bytes);

/* Bits a second, min 1: decimal digits, then nothing or one of k K M G T
 * (powers of 1000), optionally followed by "bit": 10G, 25Gbit. */
int parse_bits(const char *text, uint64_t max, uint64_t *bits);
/* The same of things that are counted: 1M. */
int parse_count(const char *text, uint64_t max, uint64_t *count);

#endif /* PARSE_H */
