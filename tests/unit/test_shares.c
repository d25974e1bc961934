/*
 * test_shares.c - shares against a list of every record in the whole's order
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/base.h"
#include "random.h"
#include "cluster/memory/shares.h"

#define NODES_MAX 40
#define SOURCES_MAX 9
#define BUCKETS_MAX 600
#define RECORDS_MAX 4000

/* What is cut: counts[source * bucket_count + bucket]. */
static struct {
	unsigned node_count, source_count;
	uint32_t bucket_count;
	uint32_t counts[SOURCES_MAX * BUCKETS_MAX];
	bool equal[BUCKETS_MAX];
} input;

/* Every record, in the order of the whole. */
static struct record {
	uint32_t bucket, index; /* index: of its source's in the bucket */
	unsigned source;
	unsigned taken; /* by so many shares */
} records[RECORDS_MAX];
static uint32_t record_count;

static struct share_cut cuts[NODES_MAX + 2];

static uint32_t random_below(uint32_t n)
{
	return (uint32_t)(random_next() % n);
}

static bool is_equal(const void *context, uint32_t bucket)
{
	assert_ptr_equal(context, &input);
	assert_in_range(bucket, 0, input.bucket_count - 1);
	return input.equal[bucket];
}

/* A cut that is not written is seen. */
static const struct share_cut poison = { 0xdeadbeef, 0xdeadbeef };

static bool same(const struct share_cut *a, const struct share_cut *b)
{
	return a->bucket == b->bucket && a->position == b->position;
}

static void cut(void)
{
	for (size_t i = 0; i < ARRAY_LEN(cuts); i++)
		cuts[i] = poison;
	shares_cut(cuts, input.node_count, input.counts, input.source_count,
		   input.bucket_count, is_equal, &input);
	assert_true(same(&cuts[input.node_count + 1], &poison));
}

static void list_records(void)
{
	record_count = 0;
	for (uint32_t b = 0; b < input.bucket_count; b++) {
		for (unsigned s = 0; s < input.source_count; s++) {
			uint32_t n = input.counts[s * input.bucket_count + b];

			for (uint32_t i = 0; i < n; i++)
				records[record_count++] = (struct record){
					.bucket = b, .index = i, .source = s
				};
		}
	}
}

/* The records of a bucket are *first .. *first + n - 1 of the list. */
static uint32_t bucket_in_list(uint32_t bucket, uint32_t *first)
{
	uint32_t n = 0;

	*first = 0;
	while (*first < record_count && records[*first].bucket < bucket)
		++*first;
	while (*first + n < record_count &&
	       records[*first + n].bucket == bucket)
		n++;
	return n;
}

/* The records before a cut. */
static uint32_t records_before(const struct share_cut *at)
{
	uint32_t first;
	uint32_t n = bucket_in_list(at->bucket, &first);

	if (at->position > 0) {
		assert_in_range(at->bucket, 0, input.bucket_count - 1);
		assert_true(input.equal[at->bucket]);
		assert_in_range(at->position, 1, n - 1);
	}
	return first + (uint32_t)at->position;
}

/* Where the k-th cut should be: exactly so, or at either end of the bucket that
 * lies across, whichever is no farther. */
static void check_place(unsigned k)
{
	uint32_t target =
		(uint32_t)((uint64_t)record_count * k / input.node_count);
	uint32_t place = records_before(&cuts[k]);
	uint32_t first, n;

	if (record_count == 0)
		return;
	n = bucket_in_list(records[target].bucket, &first);
	if (input.equal[records[target].bucket] || target == first) {
		assert_int_equal(place, target);
		return;
	}
	assert_int_equal(cuts[k].position, 0);
	if (place == first)
		assert_in_range(2 * (target - first), 0, n);
	else
		assert_int_equal(place, first + n);
	if (place == first + n)
		assert_in_range(2 * (target - first), n, 2 * n);
}

static void check_cuts(void)
{
	static const struct share_cut zero;

	assert_true(same(&cuts[0], &zero));
	for (unsigned k = 1; k < input.node_count; k++)
		check_place(k);
	assert_int_equal(cuts[input.node_count].bucket, input.bucket_count);
	assert_int_equal(cuts[input.node_count].position, 0);
	for (unsigned k = 0; k < input.node_count; k++) {
		assert_in_range(cuts[k].bucket, 0, cuts[k + 1].bucket);
		if (cuts[k].bucket == cuts[k + 1].bucket)
			assert_in_range(cuts[k].position, 0,
					cuts[k + 1].position);
	}
}

/* What share_of_bucket() says that share k has of a bucket. */
static void take_bucket(unsigned k, uint32_t bucket, uint32_t begin,
			uint32_t end)
{
	bool touched = bucket >= share_first_bucket(&cuts[k]) &&
		       bucket < share_end_bucket(&cuts[k]);
	uint32_t first, before = 0;

	bucket_in_list(bucket, &first);
	for (unsigned s = 0; s < input.source_count; s++) {
		uint32_t own = input.counts[s * input.bucket_count + bucket];
		uint32_t skip, take;

		share_of_bucket(&cuts[k], bucket, before, own, &skip, &take);
		assert_in_range(skip, 0, own);
		assert_in_range(take, 0, own - skip);
		if (!touched)
			assert_int_equal(take, 0);
		for (uint32_t i = 0; i < own; i++) {
			uint32_t at = first + before + i;

			assert_int_equal(records[at].source, s);
			assert_int_equal(records[at].index, i);
			assert_int_equal(i >= skip && i < skip + take,
					 at >= begin && at < end);
			records[at].taken += i >= skip && i < skip + take;
		}
		before += own;
	}
}

static void check_shares(void)
{
	for (unsigned k = 0; k < input.node_count; k++) {
		uint32_t begin = records_before(&cuts[k]);
		uint32_t end = records_before(&cuts[k + 1]);

		if (same(&cuts[k], &cuts[k + 1]))
			assert_int_equal(share_first_bucket(&cuts[k]),
					 share_end_bucket(&cuts[k]));
		assert_in_range(share_end_bucket(&cuts[k]),
				share_first_bucket(&cuts[k]),
				input.bucket_count);
		for (uint32_t b = 0; b < input.bucket_count; b++)
			take_bucket(k, b, begin, end);
	}
	for (uint32_t i = 0; i < record_count; i++)
		assert_int_equal(records[i].taken, 1);
}

static void check_input(void)
{
	list_records();
	cut();
	check_cuts();
	check_shares();
}

static void make_input(unsigned node_count, unsigned source_count,
		       uint32_t bucket_count)
{
	memset(&input, 0, sizeof(input));
	input.node_count = node_count;
	input.source_count = source_count;
	input.bucket_count = bucket_count;
}

/* --- counted ------------------------------------------------------------- */

static void randomize(unsigned node_count, unsigned source_count,
		      uint32_t bucket_count, uint32_t most)
{
	unsigned equal = random_below(5), empty = random_below(4);

	make_input(node_count, source_count, bucket_count);
	for (uint32_t b = 0; b < bucket_count; b++)
		input.equal[b] = random_below(4) < equal;
	for (uint32_t i = 0; i < bucket_count * source_count; i++)
		if (random_below(4) >= empty)
			input.counts[i] = random_below(most + 1);
}

static void shares_cut__random(void **state)
{
	(void)state;
	for (int round = 0; round < 1500; round++) {
		unsigned sources = 1 + random_below(SOURCES_MAX);
		uint32_t buckets = 1 + random_below(20);

		randomize(1 + random_below(NODES_MAX), sources, buckets,
			  1 + random_below(RECORDS_MAX / SOURCES_MAX / 20));
		check_input();
	}
}

/* More buckets than are added up at once. */
static void shares_cut__many_buckets(void **state)
{
	static const uint32_t counts[] = { 255, 256, 257, 512, BUCKETS_MAX };

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(counts); i++) {
		randomize(7, 3, counts[i], 2);
		check_input();
		randomize(NODES_MAX, 2, counts[i], 3);
		check_input();
	}
}

static void shares_cut__one_equal_bucket(void **state)
{
	(void)state;
	for (unsigned n = 1; n <= NODES_MAX; n++) {
		make_input(n, 2, 3);
		input.equal[1] = true;
		input.counts[1] = 100;
		input.counts[4] = 1;
		check_input();
		for (unsigned k = 0; k < n; k++) {
			uint32_t size = records_before(&cuts[k + 1]) -
					records_before(&cuts[k]);

			assert_in_range(size, 101 / n, 101 / n + 1);
		}
	}
}

/* The same, were they not all equal: only one rank can have them. */
static void shares_cut__one_other_bucket(void **state)
{
	(void)state;
	for (unsigned n = 1; n <= NODES_MAX; n++) {
		make_input(n, 2, 3);
		input.counts[1] = 100;
		input.counts[4] = 1;
		check_input();
	}
}

static void shares_cut__known(void **state)
{
	static const uint32_t counts[] = { 4, 10, 2, 0, 3, 1 };
	static const struct share_cut want[] = {
		{ 0, 0 }, { 1, 1 }, { 1, 6 }, { 3, 0 }, { 6, 0 }
	};

	(void)state;
	make_input(4, 1, 6);
	memcpy(input.counts, counts, sizeof(counts));
	input.equal[1] = true;
	check_input();
	for (size_t i = 0; i < ARRAY_LEN(want); i++)
		assert_true(same(&cuts[i], &want[i]));
}

static void shares_cut__nothing(void **state)
{
	(void)state;
	for (unsigned n = 1; n <= 4; n++) {
		for (uint32_t buckets = 0; buckets <= 3; buckets++) {
			make_input(n, 3, buckets);
			input.equal[0] = true;
			check_input();
			make_input(n, 0, buckets);
			check_input();
		}
	}
}

static void shares_cut__more_nodes_than_records(void **state)
{
	(void)state;
	for (uint32_t n = 1; n <= 5; n++) {
		make_input(NODES_MAX, 1, 2);
		input.counts[0] = n / 2;
		input.counts[1] = n - n / 2;
		check_input();
		input.equal[1] = true;
		check_input();
		input.equal[0] = true;
		check_input();
	}
}

/* Products that have no room in 64 bits, nor counts in 32. */
static void shares_cut__huge(void **state)
{
	enum { SOURCES = 3000, BUCKETS = 2, NODES = 1 << 23 };
	const uint64_t total = (uint64_t)SOURCES * BUCKETS * UINT32_MAX;
	uint32_t *counts = malloc(sizeof(*counts) * SOURCES * BUCKETS);
	struct share_cut *many = malloc(sizeof(*many) * (NODES + 1));

	(void)state;
	assert_non_null(counts);
	assert_non_null(many);
	memset(counts, 0xff, sizeof(*counts) * SOURCES * BUCKETS);
	make_input(1, 1, BUCKETS);
	input.equal[0] = input.equal[1] = true;
	shares_cut(many, NODES, counts, SOURCES, BUCKETS, is_equal, &input);
	for (unsigned k = 0; k < NODES; k += 4099) {
		/* total * k / NODES, in two halves. */
		uint64_t want = total / NODES * k + total % NODES * k / NODES;
		uint64_t at = many[k].bucket * (total / 2) + many[k].position;

		assert_int_equal(at, want);
	}
	free(many);
	free(counts);
}

/* --- the same number of buckets ------------------------------------------ */

static void shares_cut_evenly__all(void **state)
{
	(void)state;
	for (unsigned n = 1; n <= NODES_MAX; n++) {
		for (uint32_t each = 0; each <= 5; each++) {
			cuts[n + 1] = poison;
			shares_cut_evenly(cuts, n, n * each);
			for (unsigned k = 0; k <= n; k++) {
				assert_int_equal(cuts[k].bucket, k * each);
				assert_int_equal(cuts[k].position, 0);
			}
			assert_true(same(&cuts[n + 1], &poison));
		}
	}
}

/* --- one source's part --------------------------------------------------- */

static void share_of_bucket__far_positions(void **state)
{
	const uint64_t far = (uint64_t)1 << 40;
	const struct share_cut share[] = { { 5, far }, { 5, far + 10 } };
	const struct share_cut to_the_end[] = { { 5, far }, { 6, 0 } };
	uint32_t skip, take;

	(void)state;
	share_of_bucket(share, 5, far - 3, UINT32_MAX, &skip, &take);
	assert_int_equal(skip, 3);
	assert_int_equal(take, 10);
	share_of_bucket(share, 5, far + 8, UINT32_MAX, &skip, &take);
	assert_int_equal(skip, 0);
	assert_int_equal(take, 2);
	share_of_bucket(share, 5, 0, UINT32_MAX, &skip, &take);
	assert_int_equal(take, 0);
	share_of_bucket(share, 5, far + 10, 7, &skip, &take);
	assert_int_equal(take, 0);
	share_of_bucket(to_the_end, 5, far - 3, 7, &skip, &take);
	assert_int_equal(skip, 3);
	assert_int_equal(take, 4);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(shares_cut__random),
		cmocka_unit_test(shares_cut__many_buckets),
		cmocka_unit_test(shares_cut__one_equal_bucket),
		cmocka_unit_test(shares_cut__one_other_bucket),
		cmocka_unit_test(shares_cut__known),
		cmocka_unit_test(shares_cut__nothing),
		cmocka_unit_test(shares_cut__more_nodes_than_records),
		cmocka_unit_test(shares_cut__huge),
		cmocka_unit_test(shares_cut_evenly__all),
		cmocka_unit_test(share_of_bucket__far_positions),
	};

	random_begin();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
