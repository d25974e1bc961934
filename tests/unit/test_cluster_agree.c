/*
 * test_cluster_agree.c - what follows from what ranks say of themselves
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "cluster/agreement/cluster_agree.h"
#include "cluster/agreement/input_division.h"
#include "cluster/collective/cluster_report.h"
#include "sort/plan.h"

#define NODES 5

static const char *const names[NODES] = { "a", "b", "c", "d", "e" };

static const struct cluster_hello usual = {
	.shape = RECORD_SHAPE_OF_SLICE(100, 0, 10),
	.record_count = 1000000,
	.slot_count = 1000000,
	.wanted = SPLITTERS_AUTO,
	.probed_kind = SPLITTERS_STATIC_95,
	.is_uniform = true,
	.roles = CLUSTER_ROLES_ALL,
	.shared_records = CLUSTER_NOT_SHARED,
	.thread_count = 4,
};

static void fill(struct cluster_hello *hellos)
{
	for (unsigned i = 0; i < NODES; i++)
		hellos[i] = usual;
}

static struct cluster_agreement agree(const struct cluster_hello *hellos,
				      unsigned own)
{
	struct cluster_agreement agreement;
	struct failure failure;

	assert_int_equal(
		cluster_agree(&agreement, hellos, NODES, own, names, &failure),
		0);
	return agreement;
}

static void check_refused(const struct cluster_hello *hellos, unsigned own,
			  const char *why)
{
	struct cluster_agreement agreement;
	struct failure failure;

	assert_int_equal(
		cluster_agree(&agreement, hellos, NODES, own, names, &failure),
		-EINVAL);
	assert_int_equal(failure.status, EXIT_USAGE);
	assert_non_null(strstr(failure.why, why));
}

static void cluster_hello__comes_back(void **state)
{
	const struct cluster_hello hello = {
		.shape = RECORD_SHAPE_OF_SLICE(1 << 24, 77, 9),
		.record_count = 0x123456789abc,
		.wanted = SPLITTERS_SAMPLED,
		.probed_kind = SPLITTERS_STATIC_256,
		.is_uniform = true,
		.schedule = 2,
		.gather_files = 3,
		.gather_nonce = 0x8899aabbccddeeff,
		.link = CLUSTER_LINK_UNKNOWN,
		.roles = 5,
		.shared_records = 0x1122334455667788,
		.output_place = 0x99aabbccddeeff00,
		.input_place = 0x0102030405060708,
		.unique = true,
		.thread_count = 8,
	};
	uint8_t bytes[CLUSTER_HELLO_BYTES];
	struct cluster_hello back;

	(void)state;
	cluster_hello_encode(&hello, bytes);
	assert_int_equal(cluster_hello_decode(&back, bytes, sizeof(bytes)), 0);
	assert_int_equal(back.shape.size, hello.shape.size);
	assert_int_equal(back.shape.keys.begin, hello.shape.keys.begin);
	assert_int_equal(back.shape.keys.length, hello.shape.keys.length);
	assert_int_equal(back.record_count, hello.record_count);
	assert_int_equal(back.wanted, hello.wanted);
	assert_int_equal(back.probed_kind, hello.probed_kind);
	assert_int_equal(back.is_uniform, hello.is_uniform);
	assert_int_equal(back.schedule, hello.schedule);
	assert_true(back.gather_files == hello.gather_files);
	assert_true(back.gather_nonce == hello.gather_nonce);
	assert_int_equal(back.link, hello.link);
	assert_int_equal(back.roles, hello.roles);
	assert_true(back.shared_records == hello.shared_records);
	assert_true(back.output_place == hello.output_place);
	assert_true(back.input_place == hello.input_place);
	assert_true(back.unique && !back.traces);
}

/* Of any float, and no NaNs in a place that there is not. */
static void cluster_hello__floats_come_back(void **state)
{
	uint8_t bytes[CLUSTER_HELLO_BYTES];
	struct cluster_hello hello = usual, back;
	struct key_field *field = &hello.shape.keys.fields[0];

	(void)state;
	*field = (struct key_field){ .length = 2, .type = KEY_FLOAT };
	for (unsigned i = 0; i < 8; i++) {
		field->is_bfloat = i & 1;
		field->nans = (enum key_nans)(i / 2);
		key_list_complete(&hello.shape.keys, hello.shape.size);
		cluster_hello_encode(&hello, bytes);
		assert_int_equal(
			cluster_hello_decode(&back, bytes, sizeof(bytes)),
			i / 2 <= KEY_NANS_FIRST ? 0 : -EBADMSG);
		if (i / 2 <= KEY_NANS_FIRST)
			assert_true(key_list_equal(&back.shape.keys,
						   &hello.shape.keys));
	}
}

static void cluster_hello__strange_ones(void **state)
{
	uint8_t bytes[CLUSTER_HELLO_BYTES + 1] = { 0 };
	struct cluster_hello back;

	(void)state;
	cluster_hello_encode(&usual, bytes);
	assert_int_equal(
		cluster_hello_decode(&back, bytes, CLUSTER_HELLO_BYTES - 1),
		-EPROTO);
	assert_int_equal(
		cluster_hello_decode(&back, bytes, CLUSTER_HELLO_BYTES + 1),
		-EPROTO);
	assert_int_equal(cluster_hello_decode(&back, bytes, 0), -EPROTO);
	bytes[0]++; /* version */
	assert_int_equal(
		cluster_hello_decode(&back, bytes, CLUSTER_HELLO_BYTES),
		-EPROTO);
}

/* Each word as a peer may send it, with one bit too many. */
static void cluster_hello__numbers_that_cannot_be(void **state)
{
	static const struct {
		unsigned word, bit;
		int error;
	} cases[] = {
		{ 1, 23, 0 },
		{ 1, 24, -EBADMSG }, /* size */
		{ 1, 32, -EBADMSG },
		/* A field: its offset, length, type, byte order, direction. */
		{ 2, 6, 0 },
		{ 2, 7, -EBADMSG },
		{ 2, 24 + 6, 0 },
		{ 2, 24 + 7, -EBADMSG },
		{ 2, 49, -EBADMSG },
		{ 2, 51, -EBADMSG },
		{ 2, 52, 0 },
		{ 2, 53, -EBADMSG },
		{ 2, 54, -EBADMSG },
		{ 2, 56, -EBADMSG },
		{ 3, 0, -EBADMSG },
		{ 9, 63, 0 },
		{ 10, 0, 0 }, /* yes or no, thrice */
		{ 10, 1, 0 },
		{ 10, 2, 0 },
		{ 10, 5, 0 },
		{ 10, 6, 0 },
		{ 10, 8, -EBADMSG }, /* kinds */
		{ 10, 10, 0 },
		{ 10, 12, 0 },
		{ 10, 16 + 8, 0 },
		{ 10, 25, 0 }, /* files; the last of duplicates */
		{ 10, 26, 0 },
		{ 10, 27, 0 },
		{ 10, 28, 0 },
		{ 10, 30, 0 }, /* 6 threads, and 12 */
		{ 10, 32, -EBADMSG },
		{ 10, 33, -EBADMSG },
		{ 10, 63, -EBADMSG },
		{ 11, 63, 0 },
		{ 12, 31, 0 },
		{ 12, 32, -EBADMSG }, /* schedule */
		{ 13, 63, 0 },	      /* for the others */
		{ 18, 63, 0 },
		{ 23, 63, 0 },
	};
	uint8_t bytes[CLUSTER_HELLO_BYTES];
	struct cluster_hello back;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		uint8_t *word = bytes + 8 * (size_t)cases[i].word;

		cluster_hello_encode(&usual, bytes);
		store_le64(word, load_le64(word) | (uint64_t)1 << cases[i].bit);
		if (cluster_hello_decode(&back, bytes, sizeof(bytes)) !=
		    cases[i].error)
			fail_msg("word %u, bit %u", cases[i].word,
				 cases[i].bit);
	}
}

/* Who chooses a schedule divides by it. */
static void cluster_hello__of_one_to_eight_threads(void **state)
{
	uint8_t bytes[CLUSTER_HELLO_BYTES];
	struct cluster_hello hello = usual, back;

	(void)state;
	for (unsigned count = 0; count < 16; count++) {
		hello.thread_count = count;
		cluster_hello_encode(&hello, bytes);
		assert_int_equal(
			cluster_hello_decode(&back, bytes, sizeof(bytes)),
			count >= 1 && count <= 8 ? 0 : -EBADMSG);
	}
}

static void cluster_agree__who_differs_is_named(void **state)
{
	struct cluster_hello hellos[NODES];

	(void)state;
	fill(hellos);
	hellos[3].shape.size = 50;
	check_refused(hellos, 0,
		      "rank 3 (d) has a record size of 50, rank 0 "
		      "of 100");
	check_refused(hellos, 3, "rank 0 (a)");
	fill(hellos);
	hellos[1].shape =
		(struct record_shape)RECORD_SHAPE_OF_SLICE(100, 1, 10);
	check_refused(hellos, 0, "rank 1 (b) has another --key than rank 0");
	fill(hellos);
	hellos[1].shape = (struct record_shape)RECORD_SHAPE_OF_SLICE(100, 0, 9);
	check_refused(hellos, 2, "rank 1 (b) has another --key than rank 2");
	fill(hellos);
	hellos[1].shape.keys.fields[0].is_descending = true;
	check_refused(hellos, 2, "rank 1 (b) has another --key than rank 2");
	fill(hellos);
	hellos[1].unique = true;
	check_refused(hellos, 2, "rank 1 (b) has another --unique than rank 2");
	fill(hellos);
	hellos[4].wanted = SPLITTERS_STATIC;
	check_refused(hellos, 0, "rank 4 (e) has another --splitters");
	fill(hellos);
	hellos[4].output_place = 7;
	hellos[0].output_place = 7;
	check_refused(hellos, 0,
		      "rank 4 (e) writes the same output file as rank 0: %r");
	for (unsigned i = 0; i < NODES; i++)
		hellos[i].gather_files = 2;
	check_refused(hellos, 0,
		      "rank 4 (e) writes the same output file as rank 0: all");
	for (unsigned i = 0; i < NODES; i++)
		hellos[i].gather_files = 0;
	hellos[4].output_place = 0;
	hellos[4].input_place = 7;
	hellos[0].input_place = 7;
	check_refused(hellos, 0, "rank 4 (e) reads the same input file");
	hellos[4].input_place = 0;
	hellos[4].schedule = 1;
	check_refused(hellos, 0, "rank 4 (e) has another --schedule");
	fill(hellos);
	hellos[2].gather_files = 1;
	check_refused(hellos, 0, "rank 2 (c) has another --gather");
	check_refused(hellos, 2, "rank 0 (a) has another --gather");
	fill(hellos);
	hellos[1].shared_records = 1000000 * NODES;
	check_refused(hellos, 0, "rank 1 (b) has another --shared-input");
	check_refused(hellos, 1, "rank 0 (a) has another --shared-input");
}

static void fill_shared(struct cluster_hello *hellos, uint64_t whole)
{
	fill(hellos);
	for (unsigned i = 0; i < NODES; i++) {
		hellos[i].shared_records = whole;
		hellos[i].record_count =
			input_division_begin(whole, i + 1, NODES) -
			input_division_begin(whole, i, NODES);
		hellos[i].slot_count = hellos[i].record_count;
	}
}

/* It is read in parts that are known, beyond memory. */
static void cluster_agree__shared_input(void **state)
{
	struct cluster_hello hellos[NODES];
	struct cluster_agreement agreement;
	struct failure failure;

	(void)state;
	fill_shared(hellos, 1234567);
	assert_true(agree(hellos, 2).is_external);
	assert_int_equal(agree(hellos, 2).whole_count, 1234567);
	hellos[3].shared_records++;
	check_refused(hellos, 0,
		      "rank 3 (d) finds 1234568 records in the shared input, "
		      "rank 0 1234567");
	fill_shared(hellos, 0);
	assert_int_equal(agree(hellos, 2).whole_count, 0);
	fill_shared(hellos, 1234567);
	hellos[2].record_count++;
	hellos[2].slot_count++;
	assert_int_equal(
		cluster_agree(&agreement, hellos, NODES, 1, names, &failure),
		-EINVAL);
	assert_int_equal(failure.status, EXIT_PEER);
	assert_non_null(strstr(failure.why, "rank 2 (c)"));
}

/* Each role needs a rank; and where a rank lacks one, all sort by way of
 * scratch files, however little there is. */
static void cluster_agree__roles(void **state)
{
	struct cluster_hello hellos[NODES];

	(void)state;
	fill(hellos);
	assert_false(agree(hellos, 0).is_external);
	hellos[3].roles = CLUSTER_ROLES_ALL ^ 1u << CLUSTER_ROLE_KEEP;
	assert_true(agree(hellos, 0).is_external);
	for (unsigned role = 0; role < CLUSTER_ROLES; role++) {
		static const char *const texts[] = { "has the role read",
						     "has the role sort",
						     "has the role keep" };

		for (unsigned i = 0; i < NODES; i++) {
			hellos[i].roles = CLUSTER_ROLES_ALL ^ 1u << role;
			hellos[i].record_count = 0;
		}
		check_refused(hellos, 1, texts[role]);
	}
}

/* Rank 2 says that; we are another, or it. */
static void check_cannot_be(const struct cluster_hello *said,
			    enum exit_status of_own)
{
	struct cluster_hello hellos[NODES];
	struct cluster_agreement agreement;
	struct failure failure;

	fill(hellos);
	for (unsigned own = 1; own < 3; own++) {
		hellos[2] = *said;
		assert_int_equal(cluster_agree(&agreement, hellos, NODES, own,
					       names, &failure),
				 -EINVAL);
		assert_int_equal(failure.status, own == 2 ? of_own : EXIT_PEER);
		assert_non_null(strstr(failure.why, "rank 2 (c)"));
	}
}

/* The most that may be, and one more. */
static void cluster_agree__inputs_that_cannot_be(void **state)
{
	const uint64_t largest[] = {
		PLAN_RECORDS_MAX, CLUSTER_INPUT_BYTES_MAX / RECORD_SIZE_MAX
	};
	struct cluster_hello hellos[NODES], *said = &hellos[2];

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(largest); i++) {
		fill(hellos);
		for (unsigned k = 0; k < NODES && i == 1; k++)
			hellos[k].shape.size = RECORD_SIZE_MAX;
		said->record_count = said->slot_count = largest[i];
		agree(hellos, 1);
		said->record_count = said->slot_count = largest[i] + 1;
		if (i == 0)
			check_cannot_be(said, EXIT_RESOURCES);
	}
	fill(hellos);
	said->record_count = said->slot_count = UINT64_MAX;
	check_cannot_be(said, EXIT_RESOURCES);
	fill(hellos);
	said->slot_count = said->record_count - 1;
	check_cannot_be(said, EXIT_PEER);
	said->slot_count = UINT64_MAX;
	check_cannot_be(said, EXIT_PEER);
	/* Holes between files; where one is offered, there are none. */
	said->slot_count = said->record_count + 4096;
	agree(hellos, 1);
	said->host_id = 1;
	check_cannot_be(said, EXIT_PEER);
}

/* A rank may have more records than a sort in memory can number, however much
 * memory there is; it may get as many as that. */
static void cluster_agree__more_records_than_a_plan_has(void **state)
{
	struct cluster_hello hellos[NODES], *said = &hellos[2];

	(void)state;
	fill(hellos);
	said->memory_bytes = INT64_MAX;
	said->record_count = said->slot_count = PLAN_RECORDS_MAX;
	assert_false(agree(hellos, 1).is_external);
	said->record_count = ++said->slot_count;
	assert_true(agree(hellos, 1).is_external);
	assert_true(agree(hellos, 2).is_external);
	said->record_count = said->slot_count = CLUSTER_INPUT_BYTES_MAX / 100;
	assert_true(agree(hellos, 1).is_external);
	assert_true(agree(hellos, 1).whole_count >
		    CLUSTER_INPUT_BYTES_MAX / 100);
	said->record_count = ++said->slot_count;
	check_cannot_be(said, EXIT_RESOURCES);

	/* None has too many, but an equal share varies by chance. */
	for (unsigned i = 0; i < NODES; i++) {
		hellos[i].record_count = hellos[i].slot_count =
			PLAN_RECORDS_MAX - 1;
		hellos[i].memory_bytes = INT64_MAX;
	}
	assert_true(agree(hellos, 1).is_external);
}

static void cluster_agree__keys_that_cannot_be(void **state)
{
	struct cluster_hello hellos[NODES];
	struct cluster_agreement agreement;
	struct failure failure;

	(void)state;
	fill(hellos);
	hellos[2].probed_kind = SPLITTERS_SAMPLED;
	check_cannot_be(&hellos[2], EXIT_PEER);
	hellos[2].probed_kind = SPLITTERS_AUTO;
	check_cannot_be(&hellos[2], EXIT_PEER);
	fill(hellos);
	hellos[2].roles ^= 1u << CLUSTER_ROLE_READ;
	check_cannot_be(&hellos[2], EXIT_PEER);
	/* Characters pick a bucket by four of them. */
	for (unsigned i = 0; i < NODES; i++) {
		hellos[i] = usual;
		hellos[i].shape =
			(struct record_shape)RECORD_SHAPE_OF_SLICE(100, 0, 3);
		hellos[i].probed_kind = SPLITTERS_STATIC_256;
	}
	agree(hellos, 0);
	hellos[2].probed_kind = SPLITTERS_STATIC_95;
	assert_int_equal(
		cluster_agree(&agreement, hellos, NODES, 0, names, &failure),
		-EINVAL);
	assert_int_equal(failure.status, EXIT_PEER);
}

/* The numbers are drawn; how many files there are has to be the same, and no
 * more than ranks that sort. */
static void cluster_agree__all_gather(void **state)
{
	struct cluster_hello hellos[NODES];

	(void)state;
	fill(hellos);
	for (unsigned i = 0; i < NODES; i++) {
		hellos[i].gather_nonce = i + 1;
		hellos[i].gather_files = NODES;
	}
	agree(hellos, 3);
	hellos[1].roles ^= 1u << CLUSTER_ROLE_SORT;
	check_refused(hellos, 3,
		      "5 files are more than the ranks that sort, 4");
	for (unsigned i = 0; i < NODES; i++)
		hellos[i].gather_files--;
	agree(hellos, 3);
}

/* They gather without duplicates in memory only. */
static void cluster_agree__gathered_without_duplicates(void **state)
{
	static const char why[] = "write parts, or sort without --unique";
	struct cluster_hello hellos[NODES];

	(void)state;
	fill(hellos);
	for (unsigned i = 0; i < NODES; i++) {
		hellos[i].gather_files = 1;
		hellos[i].unique = true;
	}
	agree(hellos, 3);
	hellos[2].memory_bytes = 1;
	check_refused(hellos, 2, why);
	check_refused(hellos, 3, why);
	hellos[2].memory_bytes = 0;
	hellos[4].roles ^= 1u << CLUSTER_ROLE_KEEP;
	check_refused(hellos, 3, why);
}

static void cluster_agree__counts(void **state)
{
	struct cluster_hello hellos[NODES];

	(void)state;
	fill(hellos);
	for (unsigned i = 0; i < NODES; i++)
		hellos[i].record_count = hellos[i].slot_count = (uint64_t)1
								<< (4 * i);
	for (unsigned own = 0; own < NODES; own++)
		assert_int_equal(agree(hellos, own).whole_count, 0x11111);
}

/* All ranks must come to the same. */
static void cluster_agree__kinds(void **state)
{
	struct cluster_hello hellos[NODES];

	(void)state;
	fill(hellos);
	assert_int_equal(agree(hellos, 1).kind, SPLITTERS_STATIC_95);
	assert_true(agree(hellos, 1).may_sample);
	for (unsigned i = 0; i < NODES; i++)
		hellos[i].probed_kind = SPLITTERS_STATIC_256;
	assert_int_equal(agree(hellos, 1).kind, SPLITTERS_STATIC_256);
	hellos[2].is_uniform = false;
	for (unsigned own = 0; own < NODES; own++)
		assert_int_equal(agree(hellos, own).kind, SPLITTERS_SAMPLED);
	/* A rank without records has no say. */
	hellos[2].record_count = hellos[2].slot_count = 0;
	assert_int_equal(agree(hellos, 1).kind, SPLITTERS_STATIC_256);
	/* Characters here and bytes there. */
	hellos[3].probed_kind = SPLITTERS_STATIC_95;
	assert_int_equal(agree(hellos, 1).kind, SPLITTERS_SAMPLED);
	for (unsigned i = 0; i < NODES; i++)
		hellos[i].wanted = SPLITTERS_STATIC;
	assert_int_equal(agree(hellos, 1).kind, SPLITTERS_STATIC_256);
	assert_false(agree(hellos, 1).may_sample);
	for (unsigned i = 0; i < NODES; i++)
		hellos[i].wanted = SPLITTERS_SAMPLED;
	assert_int_equal(agree(hellos, 1).kind, SPLITTERS_SAMPLED);
	/* There is nothing to sample. */
	for (unsigned i = 0; i < NODES; i++)
		hellos[i].record_count = hellos[i].slot_count = 0;
	assert_int_equal(agree(hellos, 1).kind, SPLITTERS_STATIC_256);
}

/* At least one for each node, and as many for each; never too many. */
static void cluster_agree__buckets(void **state)
{
	static const uint64_t counts[] = { 0, 1, 599, 1000, 100000, 1 << 30 };
	struct cluster_hello hellos[NODES];

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(counts); i++) {
		struct cluster_agreement agreement;

		fill(hellos);
		for (unsigned k = 0; k < NODES; k++)
			hellos[k].record_count = hellos[k].slot_count =
				counts[i];
		agreement = agree(hellos, 0);
		assert_true(agreement.static_buckets >= NODES);
		assert_int_equal(agreement.static_buckets % NODES, 0);
		assert_true(agreement.static_buckets <=
			    plan_buckets(UINT64_MAX));
		/* Blocks of a rank's lists are nearly filled. */
		assert_true(agreement.static_buckets == NODES ||
			    (uint64_t)agreement.static_buckets * 25 <=
				    counts[i]);
		assert_true(agreement.sampled_splitters >= 64 * NODES);
		assert_true(agreement.sampled_splitters <= SPLITTERS_MAX);
	}
	assert_int_equal(agree(hellos, 0).sampled_splitters, SPLITTERS_MAX);
}

static void cluster_is_skewed__what_chance_does_not_bring(void **state)
{
	uint64_t few[] = { 0, 0, 0, 900 };
	uint64_t even[] = { 1000000, 1003000, 997000, 1000000 };
	uint64_t skewed[] = { 1000000, 1150000, 850000, 1000000 };
	uint64_t one[] = { 0, 1000000, 0, 0 };
	uint64_t none[] = { 0, 0, 0, 0 };
	uint64_t less[] = { 1010000, 1010000, 1010000, 0 };

	(void)state;
	assert_false(cluster_is_skewed(few, 4));
	assert_false(cluster_is_skewed(even, 4));
	assert_true(cluster_is_skewed(skewed, 4));
	assert_true(cluster_is_skewed(one, 4));
	assert_false(cluster_is_skewed(none, 4));
	assert_true(cluster_is_skewed(less, 4));
	assert_false(cluster_is_skewed(one + 1, 1));
}

static void cluster_report__comes_back(void **state)
{
	uint8_t bytes[CLUSTER_REPORT_BYTES];
	struct cluster_report report, back;

	(void)state;
	for (unsigned i = 0; i < CLUSTER_FIGURES; i++)
		report.figures[i] = 0x0123456789abcdef * (i + 1);
	cluster_report_encode(&report, bytes);
	cluster_report_decode(&back, bytes, sizeof(bytes));
	assert_memory_equal(&back, &report, sizeof(report));
	/* Of an older version: what it does not know. */
	cluster_report_decode(&back, bytes, 8 * 3 + 5);
	assert_memory_equal(&back, &report, 8 * 3);
	for (unsigned i = 3; i < CLUSTER_FIGURES; i++)
		assert_int_equal(back.figures[i], 0);
	cluster_report_decode(&back, NULL, 0);
	assert_int_equal(back.figures[0], 0);
}

static void cluster_figure_name__all_but_a_few(void **state)
{
	unsigned nameless = 0;

	(void)state;
	for (unsigned i = 0; i < CLUSTER_FIGURES; i++)
		nameless += !cluster_figure_names[i];
	/* The sum's halves, and the clock's two. */
	assert_int_equal(nameless, 4);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(cluster_hello__comes_back),
		cmocka_unit_test(cluster_hello__floats_come_back),
		cmocka_unit_test(cluster_hello__strange_ones),
		cmocka_unit_test(cluster_hello__numbers_that_cannot_be),
		cmocka_unit_test(cluster_hello__of_one_to_eight_threads),
		cmocka_unit_test(cluster_agree__who_differs_is_named),
		cmocka_unit_test(cluster_agree__roles),
		cmocka_unit_test(cluster_agree__shared_input),
		cmocka_unit_test(cluster_agree__inputs_that_cannot_be),
		cmocka_unit_test(cluster_agree__more_records_than_a_plan_has),
		cmocka_unit_test(cluster_agree__keys_that_cannot_be),
		cmocka_unit_test(cluster_agree__all_gather),
		cmocka_unit_test(cluster_agree__gathered_without_duplicates),
		cmocka_unit_test(cluster_agree__counts),
		cmocka_unit_test(cluster_agree__kinds),
		cmocka_unit_test(cluster_agree__buckets),
		cmocka_unit_test(cluster_is_skewed__what_chance_does_not_bring),
		cmocka_unit_test(cluster_report__comes_back),
		cmocka_unit_test(cluster_figure_name__all_but_a_few),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
