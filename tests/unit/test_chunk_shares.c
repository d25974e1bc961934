#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "sort/chunk_range.h"

#define CHUNKS_MAX 1000

static struct chunk_shares shares;
static struct thread_pool pool;

/* Workers in turn on so many nodes, beginning with the last one. */
static void set_up(unsigned workers, unsigned nodes)
{
	pool.worker_count = workers;
	pool.node_count = nodes;
	for (unsigned w = 0; w < workers; w++)
		pool.workers[w].node = (uint8_t)((w + nodes - 1) % nodes);
}

/* What a lone worker takes, in order: all chunks, each once. */
static void take_all(unsigned worker, unsigned chunk_count, uint64_t *taken)
{
	unsigned count = 0;

	for (unsigned i = 0; i < shares.count; i++) {
		struct chunk_share *share =
			chunk_shares_of(&shares, &pool, worker, i);

		while (share->next < share->end)
			taken[count++] = share->next++;
	}
	assert_int_equal(count, chunk_count);
}

static void check_all(unsigned worker, unsigned chunk_count)
{
	uint64_t taken[CHUNKS_MAX] = { 0 };
	bool seen[CHUNKS_MAX] = { false };

	take_all(worker, chunk_count, taken);
	for (unsigned i = 0; i < chunk_count; i++) {
		assert_true(taken[i] < chunk_count && !seen[taken[i]]);
		seen[taken[i]] = true;
	}
}

static void chunk_shares__all_chunks_once(void **state)
{
	(void)state;
	for (unsigned nodes = 1; nodes <= 5; nodes++)
		for (unsigned workers = 1; workers <= 9; workers++)
			for (unsigned chunks = 0; chunks < 40; chunks++) {
				unsigned worker = chunks % workers;

				set_up(workers, nodes);
				chunk_shares_deal(&shares, chunks, &pool, true);
				check_all(worker, chunks);
				chunk_shares_deal(&shares, chunks, &pool,
						  false);
				assert_int_equal(shares.count, 1);
				check_all(worker, chunks);
			}
}

/* Three workers of node 1, one of node 0; none of node 2. */
static void chunk_shares__by_the_workers(void **state)
{
	uint64_t taken[CHUNKS_MAX];

	(void)state;
	set_up(4, 3);
	for (unsigned w = 0; w < 4; w++)
		pool.workers[w].node = w != 2;
	chunk_shares_deal(&shares, 100, &pool, true);
	assert_int_equal(shares.shares[0].end, 25);
	assert_int_equal(shares.shares[1].end, 100);
	assert_int_equal(shares.shares[2].end, 100);
	assert_int_equal(shares.shares[2].next, 100);
	take_all(0, 100, taken);
	assert_int_equal(taken[0], 25);
	assert_int_equal(taken[74], 99);
	assert_int_equal(taken[75], 0);
	/* In order, where the sink wants that. */
	chunk_shares_deal(&shares, 100, &pool, false);
	take_all(0, 100, taken);
	for (unsigned i = 0; i < 100; i++)
		assert_int_equal(taken[i], i);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(chunk_shares__all_chunks_once),
		cmocka_unit_test(chunk_shares__by_the_workers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
