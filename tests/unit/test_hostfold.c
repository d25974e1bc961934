#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "shell/hostfold.h"

#define ROOM ((size_t)HOSTLIST_MAX * HOSTLIST_NAME_BYTES)

static uint64_t seed;

static uint32_t any(uint32_t below)
{
	seed = seed * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)(seed >> 33) % below;
}

static void add(struct hostlist *list, const char *text)
{
	struct failure failure = { 0 };

	if (hostlist_add(list, text, &failure) != 0)
		fail_msg("%s: %s", text, failure.why);
}

/* Folded; the text stays until the next call.  It has a block of memory to
 * itself, for the sanitizer to see its end, and a NUL. */
static const char *fold(const struct hostlist *list)
{
	static char text[ROOM];
	char *exact;
	ssize_t length = hostfold(list, text, ROOM);

	assert_in_range(length, 0, ROOM - 1);
	exact = malloc((size_t)length + 1);
	assert_non_null(exact);
	assert_int_equal(hostfold(list, exact, (size_t)length), length);
	assert_memory_equal(exact, text, length);
	free(exact);
	text[length] = '\0';
	exact = hostfold_text(list->hosts, list->count);
	assert_non_null(exact);
	assert_string_equal(exact, text);
	free(exact);
	return text;
}

static void expect_same(const struct hostlist *list, const char *text)
{
	struct hostlist again = { 0 };

	add(&again, text);
	if (again.count != list->count)
		fail_msg("%s: %zu names, not %zu", text, again.count,
			 list->count);
	for (size_t i = 0; i < list->count; i++)
		if (strcmp(again.hosts[i], list->hosts[i]) != 0)
			fail_msg("%s: name %zu is %s, not %s", text, i,
				 again.hosts[i], list->hosts[i]);
	hostlist_free(&again);
}

static void hostfold__forms(void **state)
{
	static const struct {
		const char *text, *folded;
	} cases[] = {
		{ "a", "a" },
		{ "a,b c", "a,b,c" },
		{ "127.0.0.2:7300,127.0.0.3:7300,127.0.0.4:7300",
		  "127.0.0.[2-4]:7300" },
		{ "n[1-1000]", "n[1-1000]" },
		{ "n1,n2", "n[1-2]" },
		{ "n0,n1", "n[0-1]" },
		{ "[1-3]n", "[1-3]n" },
		{ "[1-3]:7300", "[1-3]:7300" },
		{ "1,2,3", "[1-3]" },
		/* Only what follows, and by one. */
		{ "n[1-3,7,9-10]", "n[1-3],n7,n[9-10]" },
		{ "n[0-12/4]", "n0,n4,n8,n12" },
		{ "n3,n2,n1", "n3,n2,n1" },
		{ "n1,x,n2", "n1,x,n2" },
		{ "n1,m2", "n1,m2" },
		{ "n1a,n2b", "n1a,n2b" },
		{ "n1,n2a,n3a", "n1,n[2-3]a" },
		{ "n1,n11", "n1,n11" },
		{ "n,n1,n2", "n,n[1-2]" },
		{ "n1x,n2", "n1x,n2" },
		/* The number that counts, wherever it stands; one at a time. */
		{ "h:7300,h:7301", "h:[7300-7301]" },
		{ "h1:7300,h2:7301", "h1:7300,h2:7301" },
		{ "r1n8,r1n9,r1n10,r2n8", "r1n[8-10],r2n8" },
		{ "r[1-2]n[1-2]", "r1n[1-2],r2n[1-2]" },
		{ "n19,n20", "n[19-20]" },
		{ "n199x,n200x", "n[199-200]x" },
		/* Zero padding is that of the first name. */
		{ "n[08-11]", "n[08-11]" },
		{ "n[00-02]", "n[00-02]" },
		{ "n[98-101]", "n[98-101]" },
		{ "n[098-101]", "n[098-101]" },
		{ "n[09-99],n100", "n[09-100]" },
		{ "n9,n010", "n9,n010" },
		{ "n09,n010", "n09,n010" },
		{ "n0,n01", "n0,n01" },
		{ "n00,n1", "n00,n1" },
		/* As long as brackets may hold. */
		{ "n[999999999999999997-999999999999999999]",
		  "n[999999999999999997-999999999999999999]" },
		{ "n999999999999999999,n1000000000000000000",
		  "n999999999999999999,n1000000000000000000" },
		{ "n1000000000000000000,n1000000000000000001",
		  "n1000000000000000000,n1000000000000000001" },
		{ "n0000000000000000001,n0000000000000000002",
		  "n0000000000000000001,n0000000000000000002" },
		{ "n000000000000000001,n000000000000000002",
		  "n[000000000000000001-000000000000000002]" },
		{ "n18446744073709551615,n0", "n18446744073709551615,n0" },
		/* IPv6. */
		{ "[::1]:7300,[::2]:7300", "[::1]:7300,[::2]:7300" },
		{ "[::[1-2]]", "[::1],[::2]" },
		{ "a1,[::1],[::2],a2,a3", "a1,[::1],[::2],a[2-3]" },
		{ "2001:db8::[8-10]", "2001:db8::[8-10]" },
		{ "::1,::2", "::[1-2]" },
	};

	(void)state;
	for (unsigned i = 0; i < ARRAY_LEN(cases); i++) {
		struct hostlist list = { 0 };

		add(&list, cases[i].text);
		assert_string_equal(fold(&list), cases[i].folded);
		expect_same(&list, cases[i].folded);
		hostlist_free(&list);
	}
}

static void hostfold__nobody(void **state)
{
	const struct hostlist list = { 0 };

	(void)state;
	assert_int_equal(hostfold(&list, NULL, 0), 0);
}

/* Any room but the whole is too little, and nothing is written behind it. */
static void hostfold__no_room(void **state)
{
	struct hostlist list = { 0 };
	size_t length;

	(void)state;
	add(&list, "first,n[1-20],n[30-40],last");
	length = strlen(fold(&list));
	for (size_t room = 0; room < length; room++) {
		char *text = malloc(room + 1);

		assert_non_null(text);
		text[room] = '~';
		assert_int_equal(hostfold(&list, text, room), -ENOSPC);
		assert_int_equal(text[room], '~');
		free(text);
	}
	hostlist_free(&list);
}

/* A few names out of few parts, so that neighbours often nearly fold. */
static void put_any_item(char *item, size_t room)
{
	static const char *const heads[] = { "", "n", "n1", "n0", "r1-", "::" };
	static const char *const tails[] = { "", "", "x", "0", ":7300", "-2" };
	uint32_t first = any(12) + (any(4) == 0 ? 90 : 0);
	uint32_t last = first + any(13);
	int width = any(3) == 0 ? 3 : 1;
	const char *head = heads[any(ARRAY_LEN(heads))];
	const char *tail = tails[any(ARRAY_LEN(tails))];

	if (any(16) == 0)
		snprintf(item, room, "[::%u:[%u-%u]]:%u", any(3), first, last,
			 any(3));
	else if (any(2) == 0)
		snprintf(item, room, "%s[%0*u-%0*u]%s", head, width, first,
			 width, last, tail);
	else
		snprintf(item, room, "%s%u%s%u", head, any(3), tail, first);
}

static void hostfold__any_list_comes_back(void **state)
{
	const char *text = getenv("SEED");

	(void)state;
	seed = text ? strtoull(text, NULL, 0) : 20261121;
	print_message("SEED=%llu\n", (unsigned long long)seed);
	for (unsigned round = 0; round < 3000; round++) {
		struct hostlist list = { 0 };

		for (uint32_t items = 1 + any(8); items > 0; items--) {
			char item[128];

			put_any_item(item, sizeof(item));
			add(&list, item);
		}
		expect_same(&list, fold(&list));
		hostlist_free(&list);
	}
}

/* As long as a name may be, its number too. */
static void hostfold__longest_name(void **state)
{
	static const char brackets[] =
		"[000000000000000008-000000000000000011]";
	char item[HOSTLIST_NAME_BYTES + sizeof(brackets)];
	size_t head_bytes = HOSTLIST_NAME_BYTES - 1 - 18 - 5;
	struct hostlist list = { 0 };

	(void)state;
	memset(item, 'n', head_bytes);
	snprintf(item + head_bytes, sizeof(item) - head_bytes, "%s:7300",
		 brackets);
	add(&list, item);
	assert_int_equal(list.count, 4);
	assert_int_equal(strlen(list.hosts[0]), HOSTLIST_NAME_BYTES - 1);
	assert_string_equal(fold(&list), item);
	hostlist_free(&list);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(hostfold__forms),
		cmocka_unit_test(hostfold__nobody),
		cmocka_unit_test(hostfold__no_room),
		cmocka_unit_test(hostfold__any_list_comes_back),
		cmocka_unit_test(hostfold__longest_name),
	};

	return cmocka_run_group_tests_name("hostfold", tests, NULL, NULL);
}
