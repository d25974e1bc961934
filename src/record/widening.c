/* widening.c - appends its number, and a mix of that, to each record */
#include "record/widening.h"

#include <string.h>

#include "base/base.h"
#include "base/splitmix.h"

struct mix_keys {
	uint64_t key[3];
};

void widening_complete(struct widening *widening)
{
	widening->bytes = WIDENING_WORD_BYTES *
			  ((widening->number_bytes > 0) + widening->is_random);
}

struct record_slice widening_written(const struct widening *widening,
				     uint32_t input_size)
{
	if (widening->number_bytes > 0)
		return (struct record_slice){ input_size,
					      widening->number_bytes };
	return (struct record_slice){ 0, input_size };
}

static struct mix_keys make_keys(uint64_t seed)
{
	struct mix_keys keys;

	for (unsigned i = 0; i < ARRAY_LEN(keys.key); i++)
		keys.key[i] = splitmix_next(&seed);
	return keys;
}

/*
 * A permutation of the 64-bit numbers, another one for each seed, that is the
 * same in all releases.  It is an Even-Mansour cipher of two rounds (Even and
 * Mansour 1991; Bogdanov et al. 2012): its permutation is the finalizer of
 * SplitMix64, which also makes its three keys of the seed.  It keeps no secret.
 */
static uint64_t mix(uint64_t number, const struct mix_keys *keys)
{
	uint64_t bits = splitmix_finalize(number ^ keys->key[0]);

	return splitmix_finalize(bits ^ keys->key[1]) ^ keys->key[2];
}

void widening_copy(const struct widening *widening, uint32_t input_size,
		   uint8_t *target, const uint8_t *records,
		   uint64_t record_count, uint64_t number)
{
	struct mix_keys keys;

	if (widening->bytes == 0) {
		memcpy(target, records, record_count * input_size);
		return;
	}
	keys = make_keys(widening->seed);
	for (uint64_t i = 0; i < record_count; i++, number++) {
		memmove(target, records, input_size);
		target += input_size;
		records += input_size;
		if (widening->number_bytes > 0) {
			store_le64(target, number);
			target += WIDENING_WORD_BYTES;
		}
		if (widening->is_random) {
			store_be64(target, mix(number, &keys));
			target += WIDENING_WORD_BYTES;
		}
	}
}

int widening_check(const struct widening *widening, uint64_t record_count,
		   struct failure *failure)
{
	if (widening->number_bytes != 4 || record_count <= (uint64_t)1 << 32)
		return 0;
	return failure_set(failure, EXIT_USAGE, "--numbers=u32", 0,
			   "more than 4294967296 records: take u64");
}
