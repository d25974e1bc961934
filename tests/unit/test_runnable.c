#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "descriptors.h"
#include "shell/runnable.h"

static void all_run__more_cpus_than_processes(void **state)
{
	unsigned before = open_descriptors();
	struct runnable runnable;

	(void)state;
	runnable_open(&runnable);
	assert_true(runnable.cpu_count >= 1);
	runnable.cpu_count = 1000000;
	assert_true(runnable_all_run(&runnable));
	/* We ourselves want one. */
	runnable.cpu_count = 0;
	assert_false(runnable_all_run(&runnable));
	runnable_close(&runnable);
	assert_int_equal(open_descriptors(), before);
}

static void all_run__cannot_be_known(void **state)
{
	struct runnable runnable = { .fd = -1, .cpu_count = 1000000 };

	(void)state;
	assert_false(runnable_all_run(&runnable));
	runnable_close(&runnable);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(all_run__more_cpus_than_processes),
		cmocka_unit_test(all_run__cannot_be_known),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
