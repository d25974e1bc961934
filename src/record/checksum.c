/*
 * checksum.c - choose the kernel that adds up the CRC-32s
 */
#include "record/checksum.h"

#include "record/record.h"

checksum_fn *checksum_kernel(enum cpu_level level, size_t record_size)
{
	if (record_size != RECORD_SIZE_DEFAULT)
		return checksum_scalar;
	return CPU_BEST(level, checksum_scalar, checksum_100_pclmul,
			checksum_100_vpclmul);
}
