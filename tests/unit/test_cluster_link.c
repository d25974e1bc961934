/*
 * test_cluster_link.c - ranks learn how fast their links are
 *
 * Each rank is a thread; they meet in memory, of which no speed is expected.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <pthread.h>

#include "cluster/agreement/cluster_link.h"
#include "memory_exchange.h"

#define RANKS 3
#define MB ((uint64_t)1000000)
#define DEADLINE_NS ((uint64_t)60 * 1000000000)

struct rank_thread {
	pthread_t thread;
	struct rank rank;
	struct cluster_link link;
	uint32_t collectives;
	struct failure failure;
	int error;
};

static struct memory_hub hub;
static struct rank_thread ranks[RANKS];
static struct cluster_hello hellos[RANKS];
static uint64_t step_bytes_max = UINT64_MAX;

static void *run_rank(void *context)
{
	struct rank_thread *own = context;
	const struct exchange_options options = {
		.rank = &own->rank,
		.deadline_ns = DEADLINE_NS,
	};
	struct exchange *exchange = memory_open(&hub, &options, &own->failure);

	if (!exchange)
		return NULL;
	own->error = exchange_join(exchange, &own->failure);
	if (own->error == 0)
		own->error = cluster_link_learn(&own->link, hellos, &own->rank,
						exchange, step_bytes_max,
						&own->failure);
	own->collectives = exchange->epoch;
	exchange_close(exchange);
	return NULL;
}

/* [rank]: what the user has told, and what the rank wants to know. */
static void learn(const uint64_t *told, const enum cluster_link_wish *wishes)
{
	memory_hub_init(&hub);
	for (unsigned i = 0; i < RANKS; i++) {
		ranks[i] = (struct rank_thread){
			.rank = { .rank = i, .node_count = RANKS },
			.link = { .own = told[i] },
			.error = -ENOMEM,
		};
		hellos[i] = (struct cluster_hello){ .link = wishes[i] };
	}
	for (unsigned i = 0; i < RANKS; i++)
		assert_int_equal(pthread_create(&ranks[i].thread, NULL,
						run_rank, &ranks[i]),
				 0);
	for (unsigned i = 0; i < RANKS; i++) {
		pthread_join(ranks[i].thread, NULL);
		assert_int_equal(ranks[i].error, 0);
	}
	memory_hub_fini(&hub);
}

/* Nobody wants to know: nothing is sent. */
static void cluster_link__unasked(void **state)
{
	static const uint64_t told[RANKS] = { 7 * MB, 0, 0 };
	static const enum cluster_link_wish wishes[RANKS] = { 0 };

	(void)state;
	learn(told, wishes);
	for (unsigned i = 0; i < RANKS; i++) {
		assert_int_equal(ranks[i].link.own, told[i]);
		assert_int_equal(ranks[i].link.least, told[i]);
		assert_int_equal(ranks[i].collectives, 0);
	}
}

/* Those that need to know have been told: it is passed on, and not measured. */
static void cluster_link__told(void **state)
{
	static const uint64_t told[RANKS] = { 70 * MB, 0, 37 * MB };
	static const enum cluster_link_wish wishes[RANKS] = {
		CLUSTER_LINK_KNOWN,
		CLUSTER_LINK_UNASKED,
		CLUSTER_LINK_KNOWN,
	};

	(void)state;
	learn(told, wishes);
	for (unsigned i = 0; i < RANKS; i++) {
		assert_int_equal(ranks[i].link.own, told[i]);
		assert_int_equal(ranks[i].link.least, 37 * MB);
		assert_int_equal(ranks[i].collectives, 1);
	}
}

/* One has to measure, so all do; what the user has told is not measured away.
 */
static void cluster_link__measured(void **state)
{
	static const uint64_t told[RANKS] = { 1, 0, 0 };
	static const enum cluster_link_wish wishes[RANKS] = {
		CLUSTER_LINK_KNOWN,
		CLUSTER_LINK_UNKNOWN,
		CLUSTER_LINK_UNASKED,
	};

	(void)state;
	learn(told, wishes);
	assert_int_equal(ranks[0].link.own, 1);
	for (unsigned i = 0; i < RANKS; i++) {
		assert_true(ranks[i].link.own > 0);
		assert_int_equal(ranks[i].link.least, 1);
		/* Steps of two collectives each. */
		assert_in_range(ranks[i].collectives, 2, 8);
		assert_int_equal(ranks[i].collectives % 2, 0);
		assert_int_equal(ranks[i].collectives, ranks[0].collectives);
	}
}

/* Only the first step is short enough. */
static void cluster_link__measured_shortly(void **state)
{
	static const uint64_t told[RANKS] = { 0 };
	static const enum cluster_link_wish wishes[RANKS] = {
		CLUSTER_LINK_UNKNOWN
	};

	(void)state;
	step_bytes_max = 2 * CLUSTER_LINK_BYTES_MIN;
	learn(told, wishes);
	step_bytes_max = UINT64_MAX;
	for (unsigned i = 0; i < RANKS; i++) {
		assert_true(ranks[i].link.own > 0);
		assert_int_equal(ranks[i].collectives, 2);
	}
}

static void cluster_link__least_of_all(void **state)
{
	static const uint64_t told[RANKS] = { 0 };
	static const enum cluster_link_wish wishes[RANKS] = {
		CLUSTER_LINK_UNKNOWN,
		CLUSTER_LINK_UNKNOWN,
		CLUSTER_LINK_UNKNOWN,
	};
	uint64_t least = UINT64_MAX;

	(void)state;
	learn(told, wishes);
	for (unsigned i = 0; i < RANKS; i++)
		least = MIN(least, ranks[i].link.own);
	for (unsigned i = 0; i < RANKS; i++)
		assert_int_equal(ranks[i].link.least, least);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(cluster_link__unasked),
		cmocka_unit_test(cluster_link__told),
		cmocka_unit_test(cluster_link__measured),
		cmocka_unit_test(cluster_link__measured_shortly),
		cmocka_unit_test(cluster_link__least_of_all),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
