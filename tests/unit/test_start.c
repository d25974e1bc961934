#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "shell/command.h"
#include "shell/start.h"

/* A body being made: the head as it should be, texts as a literal with its
 * NULs, the host without. */
static uint8_t body[4096];
static size_t body_bytes;
static struct wire_start head;
static struct start start;
static uint8_t *copy; /* start.job points into it */

static void make(uint32_t count, const char *texts, size_t texts_bytes,
		 const char *host)
{
	head = (struct wire_start){
		.job = { 1, 2, 3 },
		.rank = le32_store(5),
		.node_count = le32_store(16),
		.lease_ms = le32_store(1000),
		.timeout_ms = le32_store(2000),
		.argument_count = le32_store(count),
		.host_bytes = le32_store((uint32_t)strlen(host)),
	};
	memcpy(body, &head, sizeof(head));
	memcpy(body + sizeof(head), texts, texts_bytes);
	body_bytes = sizeof(head) + texts_bytes;
	while (*host != '\0')
		body[body_bytes++] = (uint8_t)*host++;
}

#define MAKE(count, texts, host) make(count, texts, sizeof(texts) - 1, host)

/* With this list of hosts before the host. */
static void insert_hosts(const char *hosts, size_t hosts_bytes)
{
	size_t host_bytes = le32_load(head.host_bytes);
	uint8_t *at = body + body_bytes - host_bytes;

	memmove(at + hosts_bytes, at, host_bytes);
	memcpy(at, hosts, hosts_bytes);
	body_bytes += hosts_bytes;
	head.hosts_bytes = le32_store((uint32_t)hosts_bytes);
	memcpy(body, &head, sizeof(head));
}

/* From a copy that ends where the body does, for the sanitizer to see. */
static int parse(void)
{
	free(copy);
	copy = malloc(body_bytes);
	assert_non_null(copy);
	memcpy(copy, body, body_bytes);
	return start_parse(copy, body_bytes, &start);
}

static void parse__fields(void **state)
{
	(void)state;
	MAKE(3, "/bin/x\0a b\0\0", "node5");
	assert_int_equal(parse(), 0);
	assert_memory_equal(start.job, head.job, WIRE_JOB_BYTES);
	assert_int_equal(start.rank, 5);
	assert_int_equal(start.node_count, 16);
	assert_int_equal(start.lease_ms, 1000);
	assert_int_equal(start.timeout_ms, 2000);
	assert_string_equal(start.host, "node5");
	assert_string_equal(start.hosts, "");
	assert_string_equal(start.arguments[0], "/bin/x");
	assert_string_equal(start.arguments[1], "a b");
	assert_string_equal(start.arguments[2], "");
	assert_null(start.arguments[3]);
}

static void parse__hosts(void **state)
{
	static const char hosts[] = "n[01-16],Node-1_x.org:7300,[fe80::1%e]:1";

	(void)state;
	MAKE(2, "/bin/x\0%h\0", "node5");
	insert_hosts(hosts, strlen(hosts));
	assert_int_equal(parse(), 0);
	assert_string_equal(start.hosts, hosts);
	assert_string_equal(start.host, "node5");
	assert_string_equal(start.arguments[1], "node5");
	/* The last list is gone when there is none. */
	MAKE(2, "/bin/x\0%h\0", "node5");
	assert_int_equal(parse(), 0);
	assert_string_equal(start.hosts, "");
}

/* Of all bytes only those of names, brackets and commas. */
static void parse__hosts_that_are_none(void **state)
{
	static const char allowed[] = "0123456789abcdefghijklmnopqrstuvwxyz"
				      "ABCDEFGHIJKLMNOPQRSTUVWXYZ.-_:%[],";

	(void)state;
	for (unsigned byte = 0; byte < 256; byte++) {
		char hosts[3] = { 'a', (char)byte, 'b' };
		bool good = byte > 0 && strchr(allowed, (int)byte);

		MAKE(1, "/x\0", "h");
		insert_hosts(hosts, sizeof(hosts));
		assert_int_equal(parse(), good ? 0 : -EINVAL);
	}
}

static void parse__hosts_length(void **state)
{
	char hosts[START_HOSTS_BYTES_MAX + 2] = "";

	(void)state;
	memset(hosts, 'h', START_HOSTS_BYTES_MAX + 1);
	MAKE(1, "/x\0", "h");
	insert_hosts(hosts, START_HOSTS_BYTES_MAX + 1);
	assert_int_equal(parse(), -EINVAL);
	MAKE(1, "/x\0", "h");
	insert_hosts(hosts, START_HOSTS_BYTES_MAX);
	assert_int_equal(parse(), 0);
	assert_int_equal(strlen(start.hosts), START_HOSTS_BYTES_MAX);
}

static void parse__substitution(void **state)
{
	static const struct {
		const char *text, *wanted;
	} cases[] = {
		{ "%r", "5" },
		{ "%n", "16" },
		{ "%h", "node5" },
		{ "%%", "%" },
		{ "in.%r.%n", "in.5.16" },
		{ "%%r", "%r" },
		{ "%%%r", "%5" },
		{ "%h%h", "node5node5" },
		{ "+%s", "+%s" }, /* others mean themselves */
		{ "100%", "100%" },
		{ "%", "%" },
		{ "", "" },
	};
	char texts[64];

	(void)state;
	for (unsigned i = 0; i < ARRAY_LEN(cases); i++) {
		size_t bytes = strlen(cases[i].text) + 1;

		memcpy(texts, "/x", 3);
		memcpy(texts + 3, cases[i].text, bytes);
		make(2, texts, 3 + bytes, "node5");
		assert_int_equal(parse(), 0);
		assert_string_equal(start.arguments[1], cases[i].wanted);
		assert_null(start.arguments[2]);
	}
}

/* What is put in is not looked at again. */
static void parse__host_with_a_percent_sign(void **state)
{
	(void)state;
	MAKE(2, "/x\0%h\0", "%r%n");
	assert_int_equal(parse(), 0);
	assert_string_equal(start.arguments[1], "%r%n");
}

static void parse__malformed(void **state)
{
	(void)state;
	MAKE(1, "/x\0", "h");
	assert_int_equal(parse(), 0);
	/* Cut anywhere: the host is missing, or the texts are not ended. */
	while (--body_bytes > 0)
		assert_int_equal(parse(), -EINVAL);
	MAKE(0, "/x\0", "h"); /* counts that are wrong */
	assert_int_equal(parse(), -EINVAL);
	MAKE(2, "/x\0", "h");
	assert_int_equal(parse(), -EINVAL);
	MAKE(UINT32_MAX, "/x\0", "h");
	assert_int_equal(parse(), -EINVAL);
	MAKE(1, "/x\0y\0", "h");
	assert_int_equal(parse(), -EINVAL);
	MAKE(0, "", "h");
	assert_int_equal(parse(), -EINVAL);
	MAKE(1, "/x", "h"); /* not ended */
	assert_int_equal(parse(), -EINVAL);
	MAKE(1, "/x\0y", "h");
	assert_int_equal(parse(), -EINVAL);
	MAKE(1, "/x\0", ""); /* no host */
	assert_int_equal(parse(), -EINVAL);
	MAKE(1, "/x\0", "h");
	body[body_bytes - 1] = '\0'; /* one with a NUL */
	assert_int_equal(parse(), -EINVAL);
}

static void set_numbers(uint32_t rank, uint32_t node_count, uint32_t host_bytes)
{
	head.rank = le32_store(rank);
	head.node_count = le32_store(node_count);
	head.host_bytes = le32_store(host_bytes);
	memcpy(body, &head, sizeof(head));
}

static void parse__numbers_that_do_not_agree(void **state)
{
	(void)state;
	MAKE(1, "/x\0", "h");
	set_numbers(16, 16, 1);
	assert_int_equal(parse(), -EINVAL);
	set_numbers(0, 0, 1);
	assert_int_equal(parse(), -EINVAL);
	set_numbers(15, 16, 2);
	assert_int_equal(parse(), -EINVAL);
	set_numbers(15, 16, 5);
	assert_int_equal(parse(), -EINVAL);
	set_numbers(15, 16, UINT32_MAX);
	assert_int_equal(parse(), -EINVAL);
	set_numbers(15, 16, 1);
	assert_int_equal(parse(), 0);
	/* What the one takes is not the other's. */
	insert_hosts("abc", 3);
	assert_int_equal(parse(), 0);
	for (uint32_t bytes = 0; bytes < 10; bytes++) {
		head.hosts_bytes = le32_store(bytes);
		memcpy(body, &head, sizeof(head));
		assert_int_equal(parse(), bytes == 3 ? 0 : -EINVAL);
	}
	head.hosts_bytes = le32_store(UINT32_MAX);
	head.host_bytes = le32_store(5); /* in 32 bits the sum is 4 */
	memcpy(body, &head, sizeof(head));
	assert_int_equal(parse(), -EINVAL);
}

static void parse__host_length(void **state)
{
	char host[START_HOST_BYTES_MAX + 2] = "";

	(void)state;
	memset(host, 'h', START_HOST_BYTES_MAX);
	MAKE(1, "/x\0", host);
	assert_int_equal(parse(), 0);
	assert_string_equal(start.host, host);
	host[START_HOST_BYTES_MAX] = 'h';
	MAKE(1, "/x\0", host);
	assert_int_equal(parse(), -EINVAL);
}

static void parse__too_many(void **state)
{
	char texts[START_ARGUMENTS_MAX + 1] = { 0 }; /* all of them empty */

	(void)state;
	make(START_ARGUMENTS_MAX, texts, START_ARGUMENTS_MAX, "h");
	assert_int_equal(parse(), 0);
	assert_null(start.arguments[START_ARGUMENTS_MAX]);
	make(START_ARGUMENTS_MAX + 1, texts, START_ARGUMENTS_MAX + 1, "h");
	assert_int_equal(parse(), -E2BIG);
	assert_int_equal(start.rank, 5); /* for the refusal */
}

/* Short as it came, too long with the host put in: exactly the room, and one
 * byte more. */
static void parse__too_long(void **state)
{
	char host[START_HOST_BYTES_MAX + 1] = "";
	char texts[1024];
	size_t times = (START_TEXT_BYTES - 1) / START_HOST_BYTES_MAX;
	size_t rest = START_TEXT_BYTES - 1 - times * START_HOST_BYTES_MAX;

	(void)state;
	memset(host, 'h', START_HOST_BYTES_MAX);
	for (size_t more = 0; more < 2; more++) {
		size_t bytes = 0;

		for (size_t i = 0; i < times; i++) {
			texts[bytes++] = '%';
			texts[bytes++] = 'h';
		}
		memset(texts + bytes, 'x', rest + more);
		bytes += rest + more;
		texts[bytes++] = '\0';
		make(1, texts, bytes, host);
		assert_int_equal(parse(), more ? -E2BIG : 0);
	}
}

/* Any bytes: never a crash, and the sanitizers watch. */
static void parse__random_bytes(void **state)
{
	const char *text = getenv("SEED");
	uint64_t seed = text ? strtoull(text, NULL, 0) : 20261121;

	(void)state;
	print_message("SEED=%llu\n", (unsigned long long)seed);
	for (unsigned round = 0; round < 20000; round++) {
		MAKE(3, "/x\0%h\0%\0", "host");
		insert_hosts("n[1-3]", 6);
		for (unsigned i = 0; i < 1 + round % 4; i++) {
			seed = seed * 6364136223846793005u +
			       1442695040888963407u;
			body[(seed >> 33) % body_bytes] = (uint8_t)(seed >> 25);
		}
		body_bytes -= (seed >> 40) % 3;
		parse();
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(parse__fields),
		cmocka_unit_test(parse__hosts),
		cmocka_unit_test(parse__hosts_that_are_none),
		cmocka_unit_test(parse__hosts_length),
		cmocka_unit_test(parse__substitution),
		cmocka_unit_test(parse__host_with_a_percent_sign),
		cmocka_unit_test(parse__malformed),
		cmocka_unit_test(parse__numbers_that_do_not_agree),
		cmocka_unit_test(parse__host_length),
		cmocka_unit_test(parse__too_many),
		cmocka_unit_test(parse__too_long),
		cmocka_unit_test(parse__random_bytes),
	};

	int ret = cmocka_run_group_tests_name("start", tests, NULL, NULL);

	free(copy);
	return ret;
}
