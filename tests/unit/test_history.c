#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "base/base.h"
#include "shell/history.h"

static struct history history;

struct id {
	uint8_t bytes[WIRE_JOB_BYTES];
};

static int set_up(void **state)
{
	(void)state;
	memset(&history, 0, sizeof(history));
	return 0;
}

/* The id of this number; those of one chain have the same number % chain. */
static struct id id_of(uint64_t number, uint64_t chain)
{
	uint64_t high = number / chain, low = number % chain ^ high;
	struct id id;

	memcpy(id.bytes, &low, sizeof(low));
	memcpy(id.bytes + 8, &high, sizeof(high));
	return id;
}

static bool has(uint64_t number, uint64_t chain)
{
	return history_has(&history, id_of(number, chain).bytes);
}

/* From nothing to two and a half times as many as are kept: the last ones are
 * known, and no other is. */
static void check_window(uint64_t chain, uint64_t step)
{
	set_up(NULL);
	for (uint64_t i = 0; i < 5 * HISTORY_JOBS / 2; i++) {
		assert_false(has(i, chain));
		history_add(&history, id_of(i, chain).bytes);
		assert_true(has(i, chain));
		if (i % step != 0)
			continue;
		for (uint64_t k = 0; k <= i; k += step) {
			bool kept = i - k < HISTORY_JOBS;

			assert_int_equal(has(k, chain), kept);
		}
		if (i >= HISTORY_JOBS) {
			assert_true(has(i - HISTORY_JOBS + 1, chain));
			assert_false(has(i - HISTORY_JOBS, chain));
		}
	}
}

static void add__the_last_ones_are_known(void **state)
{
	(void)state;
	check_window(UINT64_C(1) << 32, 997);
}

/* Many ids of the same hash: chains of 64. */
static void add__long_chains(void **state)
{
	(void)state;
	check_window(1024, 9973);
}

/* An empty place is not the id of zeros. */
static void has__id_of_zeros(void **state)
{
	static const uint8_t zeros[WIRE_JOB_BYTES];

	(void)state;
	assert_false(history_has(&history, zeros));
	history_add(&history, zeros);
	assert_true(history_has(&history, zeros));
}

/* All bytes of an id count. */
static void has__one_bit_off(void **state)
{
	struct id id = id_of(12345, 1 << 16);

	(void)state;
	history_add(&history, id.bytes);
	for (unsigned bit = 0; bit < 8 * WIRE_JOB_BYTES; bit++) {
		id.bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
		assert_false(history_has(&history, id.bytes));
		id.bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
	}
	assert_true(history_has(&history, id.bytes));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(add__the_last_ones_are_known, set_up),
		cmocka_unit_test_setup(add__long_chains, set_up),
		cmocka_unit_test_setup(has__id_of_zeros, set_up),
		cmocka_unit_test_setup(has__one_bit_off, set_up),
	};

	return cmocka_run_group_tests_name("history", tests, NULL, NULL);
}
