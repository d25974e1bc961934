#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/base.h"
#include "fake_root.h"
#include "skip.h"
#include "system/topology.h"

static void topology_read__is_the_affinity(void **state)
{
	struct topology topology;
	cpu_set_t set;

	(void)state;
	topology_read(&topology);
	if (sched_getaffinity(0, sizeof(set), &set) != 0)
		skip_because("more than 1024 CPUs");
	assert_int_equal(topology.cpu_count, CPU_COUNT(&set));
	for (unsigned i = 0; i < topology.cpu_count; i++) {
		assert_true(CPU_ISSET(topology.cpus[i], &set));
		if (i > 0)
			assert_true(topology.cpus[i - 1] < topology.cpus[i]);
	}
}

static void topology_pin_self__narrows_what_is_read(void **state)
{
	struct topology before, pinned;
	cpu_set_t set;
	uint16_t last;

	(void)state;
	topology_read(&before);
	last = before.cpus[before.cpu_count - 1];
	topology_pin_self(last);
	topology_read(&pinned);
	assert_int_equal(pinned.cpu_count, 1);
	assert_int_equal(pinned.cpus[0], last);

	CPU_ZERO(&set);
	for (unsigned i = 0; i < before.cpu_count; i++)
		CPU_SET(before.cpus[i], &set);
	assert_int_equal(sched_setaffinity(0, sizeof(set), &set), 0);
}

static void *wait_for_end(void *end)
{
	pthread_mutex_lock(end);
	return NULL;
}

static void topology_pin_thread__binds_the_other_one(void **state)
{
	pthread_mutex_t end = PTHREAD_MUTEX_INITIALIZER;
	struct topology topology, after;
	uint16_t last;
	pthread_t thread;
	cpu_set_t set;

	(void)state;
	topology_read(&topology);
	last = topology.cpus[topology.cpu_count - 1];
	pthread_mutex_lock(&end);
	assert_int_equal(pthread_create(&thread, NULL, wait_for_end, &end), 0);
	topology_pin_thread(thread, last);
	assert_int_equal(pthread_getaffinity_np(thread, sizeof(set), &set), 0);
	/* A number that no machine has: refused, ignored. */
	topology_pin_thread(thread, UINT16_MAX);
	pthread_mutex_unlock(&end);
	pthread_join(thread, NULL);
	assert_int_equal(CPU_COUNT(&set), 1);
	assert_true(CPU_ISSET(last, &set));
	topology_read(&after);
	assert_int_equal(after.cpu_count, topology.cpu_count);
}

static void topology_place_of_self__is_where_we_are_bound(void **state)
{
	struct topology topology;
	cpu_set_t before;

	(void)state;
	topology_read(&topology);
	sched_getaffinity(0, sizeof(before), &before);
	for (unsigned place = 0; place < topology.cpu_count; place++) {
		topology_pin_self(topology.cpus[place]);
		assert_int_equal(topology_place_of_self(&topology), place);
	}
	/* Not among those: any of them will do. */
	topology.cpus[topology.cpu_count - 1] = UINT16_MAX;
	assert_int_equal(topology_place_of_self(&topology), 0);
	assert_int_equal(sched_setaffinity(0, sizeof(before), &before), 0);
}

static void topology_pin_self__refusal_is_ignored(void **state)
{
	struct topology before, after;

	(void)state;
	topology_read(&before);
	topology_pin_self(8191);
	topology_pin_self(UINT16_MAX);
	topology_read(&after);
	assert_int_equal(before.cpu_count, after.cpu_count);
}

/* --- nodes -----------------------------------------------------------------
 */

#define NODES "sys/devices/system/node/"

/* CPUs as another machine may have them. */
static struct topology with_cpus(unsigned count)
{
	struct topology topology = { .cpu_count = count };

	for (unsigned i = 0; i < count; i++)
		topology.cpus[i] = (uint16_t)(2 * i);
	return topology;
}

static void nodes__here(void **state)
{
	struct topology topology;

	(void)state;
	topology_read(&topology);
	topology_read_nodes(&topology);
	assert_in_range(topology.node_count, 1, topology.cpu_count);
	for (unsigned i = 0; i < topology.cpu_count; i++)
		assert_true(topology.node_of[i] < topology.node_count);
}

/* Every other CPU is of the other node; the last one is of neither's CPUs that
 * we may use. */
static void nodes__dealt_in_turn(void **state)
{
	static const uint16_t cpus[] = { 0, 4, 2, 6 };
	struct topology topology = with_cpus(4);

	(void)state;
	put(NODES "online", "0,2-3\n");
	put(NODES "node0/cpulist", "0-1,4-5\n");
	put(NODES "node2/cpulist", "8-90\n");
	put(NODES "node3/cpulist", "2-3,6-7\n");
	topology_read_nodes(&topology);
	assert_int_equal(topology.node_count, 2);
	assert_int_equal(topology.nodes[0], 0);
	assert_int_equal(topology.nodes[1], 3);
	assert_memory_equal(topology.cpus, cpus, sizeof(cpus));
	for (unsigned i = 0; i < 4; i++)
		assert_int_equal(topology.node_of[i], i / 2);
}

/* CPUs 0 and 4 of node 0, 2 and 6 of node 3; then only some are kept. */
static void nodes__kept(void **state)
{
	static const struct {
		unsigned first, count, node_count, nodes[2], node_of[3];
	} cases[] = {
		{ 0, 1, 1, { 0 }, { 0 } },
		{ 0, 2, 1, { 0 }, { 0, 0 } },
		{ 2, 2, 1, { 3 }, { 0, 0 } },
		{ 1, 3, 2, { 0, 3 }, { 0, 1, 1 } },
	};

	(void)state;
	put(NODES "online", "0,3\n");
	put(NODES "node0/cpulist", "0,4\n");
	put(NODES "node3/cpulist", "2,6\n");
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct topology topology = with_cpus(4);
		unsigned first = cases[i].first;

		topology_read_nodes(&topology);
		memmove(topology.node_of, topology.node_of + first, 4 - first);
		topology_keep(&topology, cases[i].count);
		assert_int_equal(topology.cpu_count, cases[i].count);
		assert_int_equal(topology.node_count, cases[i].node_count);
		for (unsigned n = 0; n < cases[i].node_count; n++)
			assert_int_equal(topology.nodes[n], cases[i].nodes[n]);
		for (unsigned k = 0; k < cases[i].count; k++)
			assert_int_equal(topology.node_of[k],
					 cases[i].node_of[k]);
	}
}

/* A line has a number for each node that is online, in order. */
static void nodes__distances(void **state)
{
	static const unsigned cases[][3] = {
		{ 0, 0, 10 }, { 0, 3, 21 }, { 3, 0, 22 },
		{ 3, 3, 10 }, { 0, 2, 0 },  { 2, 0, 0 },
		{ 0, 63, 0 }, { 5, 3, 0 },  { 5, 0, 9 },
	};

	(void)state;
	put(NODES "online", "0,3,5\n");
	put(NODES "node0/distance", "10 21 31\n");
	put(NODES "node3/distance", "22 10 x\n");
	put(NODES "node5/distance", "9\n");
	for (size_t i = 0; i < ARRAY_LEN(cases); i++)
		assert_int_equal(topology_distance(cases[i][0], cases[i][1]),
				 cases[i][2]);
	assert_int_equal(topology_distance(3, 5), 0);
}

static void check_one_node(struct topology *topology)
{
	topology_read_nodes(topology);
	assert_int_equal(topology->node_count, 1);
	for (unsigned i = 0; i < topology->cpu_count; i++) {
		assert_int_equal(topology->node_of[i], 0);
		assert_int_equal(topology->cpus[i], 2 * i);
	}
}

static void nodes__hidden(void **state)
{
	struct topology topology = with_cpus(3);

	(void)state;
	check_one_node(&topology);
}

/* One CPU is of no node: nothing is known then. */
static void nodes__not_of_each_cpu(void **state)
{
	struct topology topology = with_cpus(3);

	(void)state;
	put(NODES "online", "0-1\n");
	put(NODES "node0/cpulist", "0\n");
	put(NODES "node1/cpulist", "2\n");
	check_one_node(&topology);
}

static void nodes__malformed(void **state)
{
	struct topology topology = with_cpus(3);

	(void)state;
	put(NODES "online", "0-99999999999999999999\n");
	put(NODES "node0/cpulist", "0-4\n");
	check_one_node(&topology);
	put(NODES "online", "0-1\n");
	put(NODES "node0/cpulist", "4-x\n");
	put(NODES "node1/cpulist", "\n");
	check_one_node(&topology);
}

/* No kernel writes that, but there would be more nodes than have room. */
static void nodes__told_again_and_again(void **state)
{
	struct topology topology = with_cpus(3);
	char online[2 * (TOPOLOGY_NODES_MAX + 50) + 1] = "";

	(void)state;
	for (unsigned i = 0; i < TOPOLOGY_NODES_MAX + 50; i++)
		strcat(online, i ? ",0" : "1");
	put(NODES "online", online);
	put(NODES "node0/cpulist", "0-4\n");
	put(NODES "node1/cpulist", "0-4\n");
	check_one_node(&topology);
	assert_int_equal(topology.nodes[0], 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(topology_read__is_the_affinity),
		cmocka_unit_test(topology_pin_self__narrows_what_is_read),
		cmocka_unit_test(topology_pin_self__refusal_is_ignored),
		cmocka_unit_test(topology_pin_thread__binds_the_other_one),
		cmocka_unit_test(topology_place_of_self__is_where_we_are_bound),
		cmocka_unit_test(nodes__here),
		UNDER_ROOT(nodes__dealt_in_turn),
		UNDER_ROOT(nodes__kept),
		UNDER_ROOT(nodes__distances),
		UNDER_ROOT(nodes__hidden),
		UNDER_ROOT(nodes__not_of_each_cpu),
		UNDER_ROOT(nodes__malformed),
		UNDER_ROOT(nodes__told_again_and_again),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
