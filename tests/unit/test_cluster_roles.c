/*
 * test_cluster_roles.c - which rank has which roles, and who keeps whose runs
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/base.h"
#include "cluster/agreement/cluster_agree.h"
#include "cluster/agreement/cluster_roles.h"
#include "programs/blinksort/roles_options.h"

#define READ (1u << CLUSTER_ROLE_READ)
#define SORT (1u << CLUSTER_ROLE_SORT)
#define KEEP (1u << CLUSTER_ROLE_KEEP)

static void cluster_roles__unnamed_are_of_all(void **state)
{
	struct cluster_roles roles = { 0 };
	struct failure failure = { 0 };

	(void)state;
	assert_int_equal(cluster_roles_of(&roles, 0), CLUSTER_ROLES_ALL);
	assert_int_equal(cluster_roles_of(&roles, RANK_NODES_MAX - 1),
			 CLUSTER_ROLES_ALL);
	assert_int_equal(cluster_roles_check(&roles, 0, &failure), 0);
	assert_int_equal(cluster_roles_add_list(&roles, "keep:2"), 0);
	assert_int_equal(cluster_roles_of(&roles, 1), READ | SORT);
	assert_int_equal(cluster_roles_of(&roles, 2), CLUSTER_ROLES_ALL);
}

static void cluster_roles_add_list__numbers_and_ranges(void **state)
{
	struct cluster_roles roles = { 0 };
	struct failure failure = { 0 };

	(void)state;
	assert_int_equal(
		cluster_roles_add_list(
			&roles, "read:0-3+8,sort:7,sort:63-64+127,keep:9"),
		0);
	assert_int_equal(cluster_roles_of(&roles, 0), READ);
	assert_int_equal(cluster_roles_of(&roles, 3), READ);
	assert_int_equal(cluster_roles_of(&roles, 4), 0);
	assert_int_equal(cluster_roles_of(&roles, 7), SORT);
	assert_int_equal(cluster_roles_of(&roles, 8), READ);
	assert_int_equal(cluster_roles_of(&roles, 9), KEEP);
	assert_int_equal(cluster_roles_of(&roles, 62), 0);
	assert_int_equal(cluster_roles_of(&roles, 63), SORT);
	assert_int_equal(cluster_roles_of(&roles, 64), SORT);
	assert_int_equal(cluster_roles_of(&roles, 65), 0);
	assert_int_equal(cluster_roles_check(&roles, 128, &failure), 0);
	assert_true(cluster_roles_check(&roles, 127, &failure) < 0);
}

static void cluster_roles_add_list__strange_ones(void **state)
{
	static const struct {
		const char *list;
		int error;
	} cases[] = {
		{ "read:0", 0 },
		{ "read:007", 0 },
		{ "read:3-3", 0 },
		{ "", -EINVAL },
		{ "read", -EINVAL },
		{ "read:", -EINVAL },
		{ ":0", -EINVAL },
		{ "reads:0", -EINVAL },
		{ "rea:0", -EINVAL },
		{ "READ:0", -EINVAL },
		{ "read:0,", -EINVAL },
		{ ",read:0", -EINVAL },
		{ "read:0,1", -EINVAL },
		{ "read:0+", -EINVAL },
		{ "read:+0", -EINVAL },
		{ "read:0++1", -EINVAL },
		{ "read:-1", -EINVAL },
		{ "read:1-", -EINVAL },
		{ "read:1-2-3", -EINVAL },
		{ "read: 1", -EINVAL },
		{ "read:1x", -EINVAL },
		{ "read:2-1", -ERANGE },
		{ "read:4096", -ERANGE },
		{ "read:0-4096", -ERANGE },
		{ "read:99999999999999999999", -ERANGE },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct cluster_roles roles = { 0 };

		if (cluster_roles_add_list(&roles, cases[i].list) !=
		    cases[i].error)
			fail_msg("%s", cases[i].list);
	}
}

static int read_text(const char *text, struct cluster_roles *roles,
		     unsigned *line)
{
	memset(roles, 0, sizeof(*roles));
	return roles_options_read(roles, text, strlen(text), line);
}

static void roles_options_read__lines(void **state)
{
	struct cluster_roles roles;
	unsigned line;

	(void)state;
	assert_int_equal(read_text("# who reads\n\n  read:0-1 # two\r\n"
				   "\tkeep:2\nread:5",
				   &roles, &line),
			 0);
	assert_int_equal(cluster_roles_of(&roles, 1), READ | SORT);
	assert_int_equal(cluster_roles_of(&roles, 2), SORT | KEEP);
	assert_int_equal(cluster_roles_of(&roles, 5), READ | SORT);
	assert_int_equal(read_text("", &roles, &line), 0);
	assert_int_equal(
		read_text("read:0\n# no\nread:0,sort:1\n", &roles, &line),
		-EINVAL);
	assert_int_equal(line, 3);
	assert_int_equal(read_text("read:0\nsort:3-2", &roles, &line), -ERANGE);
	assert_int_equal(line, 2);
	memset(&roles, 0, sizeof(roles));
	assert_int_equal(roles_options_read(&roles, "read:0\0\n", 8, &line),
			 -EINVAL);
}

/* --- keepers ---------------------------------------------------------------
 */

static void check_keepers(const struct cluster_hello *hellos, unsigned count,
			  const uint16_t *wanted)
{
	uint16_t keeper[RANK_NODES_MAX];

	cluster_keepers_choose(hellos, count, keeper);
	assert_memory_equal(keeper, wanted, count * sizeof(*keeper));
}

static void cluster_keepers_choose__neighbours_together(void **state)
{
	const struct cluster_hello plain[] = {
		{ .roles = CLUSTER_ROLES_ALL, .record_count = 5 },
		{ .roles = CLUSTER_ROLES_ALL, .record_count = 6 },
	};
	const struct cluster_hello mixed[] = {
		{ .roles = READ, .record_count = 100 },
		{ .roles = READ | KEEP, .record_count = 150 },
		{ .roles = READ, .record_count = 30 },
		{ .roles = KEEP },
		{ .roles = READ, .record_count = 30 },
		{ .roles = READ | SORT, .record_count = 1 },
		{ .roles = SORT },
	};
	const struct cluster_hello even[] = {
		{ .roles = READ, .record_count = 10 },
		{ .roles = READ, .record_count = 10 },
		{ .roles = READ, .record_count = 10 },
		{ .roles = READ, .record_count = 10 },
		{ .roles = KEEP },
		{ .roles = KEEP },
	};

	(void)state;
	check_keepers(plain, 2, (const uint16_t[]){ 0, 1 });
	check_keepers(mixed, 7, (const uint16_t[]){ 3, 1, 3, 3, 3, 3, 3 });
	check_keepers(even, 6, (const uint16_t[]){ 4, 4, 5, 5, 4, 5 });
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(cluster_roles__unnamed_are_of_all),
		cmocka_unit_test(cluster_roles_add_list__numbers_and_ranges),
		cmocka_unit_test(cluster_roles_add_list__strange_ones),
		cmocka_unit_test(roles_options_read__lines),
		cmocka_unit_test(cluster_keepers_choose__neighbours_together),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
