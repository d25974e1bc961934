#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "descriptors.h"
#include "shell/idle_cpus.h"

static void available__more_cpus_than_processes(void **state)
{
	unsigned before = open_descriptors();
	struct idle_cpus idle_cpus;

	(void)state;
	idle_cpus_open(&idle_cpus);
	assert_true(idle_cpus.cpu_count >= 1);
	idle_cpus.cpu_count = 1000000;
	assert_true(idle_cpus_available(&idle_cpus));
	/* We ourselves want one. */
	idle_cpus.cpu_count = 0;
	assert_false(idle_cpus_available(&idle_cpus));
	idle_cpus_close(&idle_cpus);
	assert_int_equal(open_descriptors(), before);
}

static void available__cannot_be_known(void **state)
{
	struct idle_cpus idle_cpus = { .fd = -1, .cpu_count = 1000000 };

	(void)state;
	assert_false(idle_cpus_available(&idle_cpus));
	idle_cpus_close(&idle_cpus);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(available__more_cpus_than_processes),
		cmocka_unit_test(available__cannot_be_known),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
