#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "sort/sort_setup.h"

/* Two CPUs on each of nodes 2 and 63. */
static const struct topology topology = {
	.cpu_count = 4,
	.cpus = { 0, 1, 8, 9 },
	.node_count = 2,
	.nodes = { 2, 63 },
	.node_of = { 0, 0, 1, 1 },
};

static void sort_setup_worker_nodes__only_those_of_workers(void **state)
{
	static struct thread_pool pool = {
		.workers = { { .node = 1 }, { .node = 1 }, { .node = 0 } },
	};
	(void)state;
	pool.worker_count = 2;
	assert_int_equal(sort_setup_worker_nodes(&topology, &pool),
			 UINT64_C(1) << 63);
	pool.worker_count = 3;
	assert_int_equal(sort_setup_worker_nodes(&topology, &pool),
			 UINT64_C(1) << 63 | 1 << 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(
			sort_setup_worker_nodes__only_those_of_workers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
