/*
 * generator.c - binary and ascii records, ordinary and skewed
 */
#include "record/generator.h"

#include <pthread.h>

#include "base/base.h"

typedef unsigned __int128 u128;

#define KEY_BYTES 10
#define SKEW_BITS_MAX 48

/* --- random numbers ------------------------------------------------------- */

#define U128(high, low) ((u128)(high) << 64 | (low))
#define LCG_FACTOR U128(0x2360ed051fc65da4, 0x4385df649fccf645)
#define LCG_ADDEND U128(0x4a696d4772617952, 0x4950202020202001)

static inline u128 lcg_step(u128 x)
{
	return LCG_FACTOR * x + LCG_ADDEND;
}

/*
 * The random number of record n: the state after n + 1 steps from 0.  A step is
 * an affine map, and so is any number of steps; those of 2^i steps come by
 * squaring.
 */
static u128 random_of(u128 n)
{
	u128 factor = LCG_FACTOR;
	u128 addend = LCG_ADDEND;
	u128 x = 0;

	for (; n != 0; n >>= 1) {
		if (n & 1)
			x = factor * x + addend;
		addend *= factor + 1;
		factor *= factor;
	}
	return lcg_step(x);
}

/* --- binary records ------------------------------------------------------- */

/* A record is the keys of ten record numbers, its own first, under this. */
static const uint8_t mask_of_keys[GENERATOR_RECORD_BYTES] = {
	0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, /* key */
	0xf0, 0xe8, 0xe4, 0xe2, 0xe1, 0xd8, 0xd4, 0xd2, 0xd1, 0xcc, /* key + 1
								     */
	0xca, 0xc9, 0xc6, 0xc5, 0xc3, 0xb8, 0xb4, 0xb2, 0xb1, 0xac, /* ... */
	0xaa, 0xa9, 0xa6, 0xa5, 0xa3, 0x9c, 0x9a, 0x99, 0x96, 0x95, 0x93, 0x8e,
	0x8d, 0x8b, 0x87, 0x78, 0x74, 0x72, 0x71, 0x6c, 0x6a, 0x69, 0x66, 0x65,
	0x63, 0x5c, 0x5a, 0x59, 0x56, 0x55, 0x53, 0x4e, 0x4d, 0x4b, 0x47, 0x3c,
	0x3a, 0x39, 0x36, 0x35, 0x33, 0x2e, 0x2d, 0x2b, 0x27, 0x1e, 0x1d, 0x1b,
	0x17, 0x0f, 0xc8, 0xc4, 0xc2, 0xc1, 0x98, 0x94, 0x92, 0x91, 0x8c, 0xe0,
	0x17, 0x0f, 0x33, 0x2e, 0x2d, 0x2b, 0x27, 0x1e, 0x1d, 0x1b,
};

/* Sixteen bytes in a register, on any machine. */
typedef uint8_t bytes16 __attribute__((vector_size(16)));

static inline void xor_16(uint8_t *to, const uint8_t *a, const uint8_t *b)
{
	bytes16 x, y;

	memcpy(&x, a, sizeof(x));
	memcpy(&y, b, sizeof(y));
	x ^= y;
	memcpy(to, &x, sizeof(x));
}

static inline void mask_keys(uint8_t *record, const uint8_t *keys)
{
	for (int i = 0; i < 96; i += 16)
		xor_16(record + i, keys + i, mask_of_keys + i);
	/* The last 16 bytes overlap the ones before: cheaper than a rest of 4.
	 */
	xor_16(record + 84, keys + 84, mask_of_keys + 84);
}

static inline void binary_key(uint8_t *key, u128 random)
{
	uint16_t last = (uint16_t)(random >> 48);

	store_be64(key, (uint64_t)(random >> 64));
	key[8] = (uint8_t)(last >> 8);
	key[9] = (uint8_t)last;
}

/* Records made from one stretch of keys, which stays in the L1 cache. */
#define KEYS_AT_ONCE 256
#define KEYS_AHEAD 9

static void binary_fill(u128 first, uint8_t *records, size_t count)
{
	/* The keys of consecutive record numbers, one after the other: a record
	 * is a window on them that moves on by one key. */
	uint8_t keys[(KEYS_AT_ONCE + KEYS_AHEAD) * KEY_BYTES];
	u128 random = random_of(first);
	size_t known = 0;

	while (count > 0) {
		size_t now = MIN(count, (size_t)KEYS_AT_ONCE);

		for (; known < now + KEYS_AHEAD; known++) {
			binary_key(keys + known * KEY_BYTES, random);
			random = lcg_step(random);
		}
		for (size_t i = 0; i < now; i++) {
			mask_keys(records, keys + i * KEY_BYTES);
			records += GENERATOR_RECORD_BYTES;
		}
		memmove(keys, keys + now * KEY_BYTES, KEYS_AHEAD * KEY_BYTES);
		known = KEYS_AHEAD;
		count -= now;
	}
}

/* --- ascii records -------------------------------------------------------- */

#define ASCII_DIGITS 95 /* ' ' to '~' */
#define ASCII_PAIRS (ASCII_DIGITS * ASCII_DIGITS)

/* The positions of the parts of an ascii record. */
#define NUMBER_AT 12
#define NUMBER_DIGITS 32
#define FILLER_AT 46
#define FILLER_DIGITS 13 /* each written four times */
#define LINE_END_AT 98

static const char hex_digits[] = "0123456789ABCDEF";

/* The tables: two base-95 digits, two hex digits, one hex digit four times. */
static uint8_t ascii_pairs[ASCII_PAIRS][2];
static uint8_t hex_pairs[256][2];
static uint8_t hex_quads[16][4];
static pthread_once_t tables_made = PTHREAD_ONCE_INIT;

static void make_tables(void)
{
	for (unsigned pair = 0; pair < ASCII_PAIRS; pair++) {
		ascii_pairs[pair][0] = (uint8_t)(' ' + pair % ASCII_DIGITS);
		ascii_pairs[pair][1] = (uint8_t)(' ' + pair / ASCII_DIGITS);
	}
	for (unsigned byte = 0; byte < 256; byte++) {
		hex_pairs[byte][0] = (uint8_t)hex_digits[byte >> 4];
		hex_pairs[byte][1] = (uint8_t)hex_digits[byte & 15];
	}
	for (unsigned digit = 0; digit < 16; digit++)
		memset(hex_quads[digit], hex_digits[digit], 4);
}

/* Base 95, the least digit first: 8 digits of the upper half, 2 of the lower.
 */
static inline void ascii_key(uint8_t *key, u128 random)
{
	uint64_t high = (uint64_t)(random >> 64);
	uint64_t low = (uint64_t)random;

	for (int i = 0; i < 8; i += 2) {
		memcpy(key + i, ascii_pairs[high % ASCII_PAIRS], 2);
		high /= ASCII_PAIRS;
	}
	memcpy(key + 8, ascii_pairs[low % ASCII_PAIRS], 2);
}

/* The lower byte_count bytes of the record number, at the end of its place. */
static inline void ascii_number(uint8_t *record, u128 n, int byte_count)
{
	uint8_t *end = record + NUMBER_AT + NUMBER_DIGITS;

	for (int i = 0; i < byte_count; i++) {
		end -= 2;
		memcpy(end, hex_pairs[n & 0xff], 2);
		n >>= 8;
	}
}

static inline void ascii_filler(uint8_t *filler, uint64_t low)
{
	for (int i = 0; i < FILLER_DIGITS; i++)
		memcpy(filler + 4 * i, hex_quads[low >> (48 - 4 * i) & 15], 4);
}

static void ascii_fill(u128 first, uint8_t *records, size_t count)
{
	/* The frame holds what is the same in all records whose numbers differ
	 * in the lower 16 bits at most. */
	uint8_t frame[GENERATOR_RECORD_BYTES];
	u128 random = random_of(first);

	pthread_once(&tables_made, make_tables);
	memset(frame, ' ', sizeof(frame));
	frame[LINE_END_AT] = '\r';
	frame[LINE_END_AT + 1] = '\n';
	ascii_number(frame, first, 16);
	for (u128 n = first; count > 0; count--, n++) {
		if ((uint16_t)n == 0)
			ascii_number(frame, n, 16);
		memcpy(records, frame, sizeof(frame));
		ascii_key(records, random);
		ascii_number(records, n, 2);
		ascii_filler(records + FILLER_AT, (uint64_t)random);
		random = lcg_step(random);
		records += GENERATOR_RECORD_BYTES;
	}
}

/* --- skew ----------------------------------------------------------------- */

static unsigned bit_length(u128 n)
{
	uint64_t high = (uint64_t)(n >> 64);
	uint64_t low = (uint64_t)n;

	if (high != 0)
		return 128 - (unsigned)__builtin_clzll(high);
	return low == 0 ? 0 : 64 - (unsigned)__builtin_clzll(low);
}

/* Returns which of 129 prefixes record n may get: its number's length in bits;
 * but gensort rounds the lengths 61 to 63 and 125 to 127 up. */
static unsigned skew_index(u128 n)
{
	unsigned bits = bit_length(n);

	if (bits > 60 && bits <= 64)
		return 64;
	if (bits > 124)
		return 128;
	return bits;
}

/* The prefix is the beginning of the ordinary key of record number index. */
static void skew_prefix(bool ascii, unsigned index, uint8_t prefix[KEY_BYTES])
{
	if (ascii)
		ascii_key(prefix, random_of(index));
	else
		binary_key(prefix, random_of(index));
}

/* Returns how many bits of the key give way to the prefix: whole bytes if
 * ascii, else any number.  A number that is drawn above the most means none. */
static inline unsigned skew_bits(bool ascii, uint64_t random_low)
{
	unsigned drawn = (unsigned)(random_low >> 32);
	unsigned bits = ascii ? 8 * (drawn & 7) : drawn & 63;

	return bits <= SKEW_BITS_MAX ? bits : 0;
}

static inline void skew_key(uint8_t *key, const uint8_t *prefix, unsigned bits)
{
	uint64_t from_prefix = ~(UINT64_MAX >> bits);

	store_be64(key, (load_be64(prefix) & from_prefix) |
				(load_be64(key) & ~from_prefix));
}

static void skew(bool ascii, u128 first, uint8_t *records, size_t count)
{
	uint8_t prefix[KEY_BYTES];
	unsigned index = UINT32_MAX;
	u128 random = random_of(first);

	for (u128 n = first; count > 0; count--, n++) {
		if (skew_index(n) != index) {
			index = skew_index(n);
			skew_prefix(ascii, index, prefix);
		}
		skew_key(records, prefix, skew_bits(ascii, (uint64_t)random));
		random = lcg_step(random);
		records += GENERATOR_RECORD_BYTES;
	}
}

void generator_fill(const struct generator_kind *kind, unsigned __int128 first,
		    uint8_t *records, size_t count)
{
	if (kind->ascii)
		ascii_fill(first, records, count);
	else
		binary_fill(first, records, count);
	if (kind->skewed)
		skew(kind->ascii, first, records, count);
}
