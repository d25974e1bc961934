/*
 * Any bytes as summaries from outside: what is accepted has the bytes it was
 * read from, and sums of what is accepted are accepted or refused, never wrong.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "record/validator.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(int condition)
{
	if (!condition)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint8_t bytes[SUMMARY_BYTES];
	struct summary sum = { 0 };
	struct summary next;
	int error;

	for (; size >= SUMMARY_BYTES;
	     size -= SUMMARY_BYTES, data += SUMMARY_BYTES) {
		error = summary_decode(&next, data);
		require(error == 0 || error == -EBADMSG);
		if (error)
			continue;
		summary_encode(&next, bytes);
		require(memcmp(bytes, data, SUMMARY_BYTES) == 0);
		error = summary_append(&sum, &next);
		require(error == 0 || error == -EOVERFLOW);
		if (error)
			continue;
		require(sum.tally.record_count >= next.tally.record_count);
		summary_encode(&sum, bytes);
		require(summary_decode(&next, bytes) == 0);
	}
	return 0;
}
