/*
 * test_cluster_runs.c - ranks whose memory differs agree on how many runs each
 * may have, and on who has too little for a merge
 *
 * Each rank is a thread; they meet in memory.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <pthread.h>

#include "cluster/external/cluster_runs.h"
#include "memory_exchange.h"

#define RANKS 3
#define RECORD_BYTES 100
#define DEADLINE_NS ((uint64_t)60 * 1000000000)

struct rank_thread {
	pthread_t thread;
	struct rank rank;
	char *names[RANKS];
	struct external_rank_limits limits;
	unsigned runs_max;
	struct failure failure;
	int error;
};

static struct memory_hub hub;
static struct rank_thread ranks[RANKS];
static bool sorts[RANKS], keeps[RANKS];
static uint64_t wave_bytes[RANKS];

static void agree(struct rank_thread *own, struct exchange *exchange)
{
	static const struct record_shape shape =
		RECORD_SHAPE_OF_SLICE(RECORD_BYTES, 0, 10);
	struct cluster_runs *runs = calloc(1, sizeof(*runs));

	if (!runs)
		return;
	runs->exchange = exchange;
	runs->failure = &own->failure;
	runs->rank = &own->rank;
	runs->shape = &shape;
	memcpy(runs->sorts, sorts, sizeof(sorts));
	memcpy(runs->keeps, keeps, sizeof(keeps));
	for (unsigned i = 0; i < RANKS; i++)
		runs->keeper_count += keeps[i];
	own->error = cluster_runs_tell_limits(runs, &own->limits);
	if (own->error)
		exchange_fail(exchange, &own->failure);
	else
		own->runs_max = cluster_runs_max(runs, own->rank.rank);
	cluster_runs_free(runs);
	free(runs);
}

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
	if (exchange_join(exchange, &own->failure) == 0)
		agree(own, exchange);
	exchange_close(exchange);
	return NULL;
}

/* [rank]: records of a piece and of a block. */
static void tell(const uint64_t *piece_records, const uint32_t *block_records)
{
	memory_hub_init(&hub);
	for (unsigned i = 0; i < RANKS; i++)
		ranks[i] = (struct rank_thread){
			.rank = { .rank = i,
				  .node_count = RANKS,
				  .names = ranks[i].names },
			.names = { "a", "b", "c" },
			.limits = {
				.piece_records = piece_records[i],
				.block_records = block_records[i],
				.wanted_bytes = wave_bytes[i],
			},
			.error = -ENOMEM,
		};
	for (unsigned i = 0; i < RANKS; i++)
		assert_int_equal(pthread_create(&ranks[i].thread, NULL,
						run_rank, &ranks[i]),
				 0);
	for (unsigned i = 0; i < RANKS; i++)
		pthread_join(ranks[i].thread, NULL);
	memory_hub_fini(&hub);
}

static int all_roles(void **state)
{
	(void)state;
	for (unsigned i = 0; i < RANKS; i++) {
		sorts[i] = keeps[i] = true;
		wave_bytes[i] = 1 << 30;
	}
	return 0;
}

/* One rank says that it has too little memory, the others that this one has. */
static void assert_short(unsigned rank)
{
	for (unsigned i = 0; i < RANKS; i++) {
		assert_true(ranks[i].error < 0);
		assert_int_equal(ranks[i].failure.status,
				 i == rank ? EXIT_RESOURCES : EXIT_PEER);
		assert_non_null(strstr(ranks[i].failure.why, "too little"));
	}
}

static void cluster_runs__memory_suffices(void **state)
{
	static const uint64_t pieces[RANKS] = { 60000, 30000, 30000 };
	static const uint32_t blocks[RANKS] = { 2500, 100, 100 };

	(void)state;
	tell(pieces, blocks);
	for (unsigned i = 0; i < RANKS; i++) {
		assert_int_equal(ranks[i].error, 0);
		assert_int_equal(ranks[i].runs_max,
				 pieces[1] / 2 / RANKS / blocks[i]);
	}
}

/* The blocks of another rank are too large for the smallest pieces, which hold
 * those of their own rank. */
static void cluster_runs__small_pieces(void **state)
{
	static const uint64_t pieces[RANKS] = { 60000, 60000, 20000 };
	static const uint32_t blocks[RANKS] = { 2500, 100, 100 };

	(void)state;
	tell(pieces, blocks);
	assert_short(2);
}

/* A rank's pieces are too small for its own blocks; those of another rank are
 * still smaller. */
static void cluster_runs__large_blocks(void **state)
{
	static const uint64_t pieces[RANKS] = { 10000, 20000, 20000 };
	static const uint32_t blocks[RANKS] = { 100, 2500, 100 };

	(void)state;
	tell(pieces, blocks);
	assert_short(1);
}

/* A rank that keeps runs gets no part of the merge, and has no pieces. */
static void cluster_runs__roles(void **state)
{
	static const uint64_t pieces[RANKS] = { 1, 20000, 60000 };
	static const uint32_t blocks[RANKS] = { 10000, 2500, 2500 };

	(void)state;
	sorts[0] = keeps[1] = keeps[2] = false;
	tell(pieces, blocks);
	assert_short(1);
}

/* A wave has no room for two blocks of a rank. */
static void cluster_runs__small_waves(void **state)
{
	static const uint64_t pieces[RANKS] = { 60000, 60000, 60000 };
	static const uint32_t blocks[RANKS] = { 100, 2500, 100 };

	(void)state;
	wave_bytes[1] = 2 * 2500 * RECORD_BYTES - 1;
	tell(pieces, blocks);
	assert_short(1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(cluster_runs__memory_suffices,
				       all_roles),
		cmocka_unit_test_setup(cluster_runs__small_pieces, all_roles),
		cmocka_unit_test_setup(cluster_runs__large_blocks, all_roles),
		cmocka_unit_test_setup(cluster_runs__small_waves, all_roles),
		cmocka_unit_test_setup(cluster_runs__roles, all_roles),
	};

	alarm(120);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
