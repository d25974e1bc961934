/* test_batch.c - the capacity of a batch, against a search by halves */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "external/runs/batch.h"
#include "random_shape.h"

/* --- the reference: the largest that fits, by nothing but batch_bytes() --- */

static uint64_t find_capacity(struct batch_request request, uint64_t bytes)
{
	uint64_t low = 0;
	uint64_t high = MIN(bytes / request.shape.size, PLAN_RECORDS_MAX);

	while (low < high) {
		request.capacity = low + (high - low + 1) / 2;
		if (batch_bytes(&request) <= bytes)
			low = request.capacity;
		else
			high = request.capacity - 1;
	}
	return low;
}

/* Any number below 2 to some number of bits. */
static uint64_t random_bits(unsigned bits)
{
	return random_next() >> (64 - 1 - random_below(bits));
}

static struct batch_request random_request(void)
{
	uint32_t size = 1 + (uint32_t)random_bits(24);

	return (struct batch_request){
		.shape = random_shape(size),
		.worker_count = 1 + (unsigned)random_bits(8),
	};
}

static void check(const struct batch_request *request, uint64_t bytes)
{
	uint64_t expected = find_capacity(*request, bytes);

	if (batch_capacity(request, bytes) != expected)
		fail_msg("%llu and not %llu records of %u bytes in %llu, with "
			 "%u workers",
			 (unsigned long long)batch_capacity(request, bytes),
			 (unsigned long long)expected, request->shape.size,
			 (unsigned long long)bytes, request->worker_count);
}

static void batch_capacity__is_the_largest(void **state)
{
	(void)state;
	for (unsigned turn = 0; turn < turns_of(100000); turn++) {
		struct batch_request request = random_request();

		check(&request, random_bits(46));
	}
}

/* What a capacity takes suffices for it, and a byte less does not. */
static void batch_capacity__at_its_borders(void **state)
{
	(void)state;
	for (unsigned turn = 0; turn < turns_of(100000); turn++) {
		struct batch_request request = random_request();
		uint64_t records = random_bits(33), bytes;

		request.capacity = MIN(records, PLAN_RECORDS_MAX);
		bytes = batch_bytes(&request);
		check(&request, bytes);
		check(&request, bytes - 1);
		if (request.capacity > 0)
			assert_int_equal(batch_capacity(&request, bytes),
					 request.capacity);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(batch_capacity__is_the_largest),
		cmocka_unit_test(batch_capacity__at_its_borders),
	};

	random_begin();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
