/*
 * equal_keys_scalar.c - the plain C version, which defines tied
 */
#include "kernels/equal_keys.h"

bool equal_keys_scalar(const uint64_t *entries, size_t count,
		       unsigned index_bits)
{
	for (size_t i = 1; i < count; i++)
		if ((entries[i] ^ entries[i - 1]) >> index_bits == 0)
			return true;
	return false;
}
