#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <arpa/inet.h>
#include <cmocka.h>
#include <errno.h>
#include <netinet/in.h>
#include <string.h>

#include "net/address.h"
#include "net/interface.h"
#include "base/base.h"
#include "descriptors.h"
#include "skip.h"

static void address_parse__forms(void **state)
{
	static const struct {
		const char *text, *canonical; /* NULL: -EINVAL */
	} cases[] = {
		{ "1.2.3.4", "1.2.3.4:7300" },
		{ "1.2.3.4:1", "1.2.3.4:1" },
		{ "127.0.0.2:65535", "127.0.0.2:65535" },
		{ "0.0.0.0:7300", "0.0.0.0:7300" },
		{ "1.2.3.4:007", "1.2.3.4:7" },
		{ "::1", "[::1]:7300" },
		{ "[::1]", "[::1]:7300" },
		{ "[::1]:5", "[::1]:5" },
		{ "[2001:DB8:0:0::1]:7300", "[2001:db8::1]:7300" },
		{ "2001:db8::1:7300", "[2001:db8::1:7300]:7300" },
		{ "::", "[::]:7300" },
		/* A zone that the machine does not have is an error; that of
		 * the loopback it has, and it is not part of the name. */
		{ "[fe80::1%lo]:9", "[fe80::1]:9" },
		{ "fe80::1%1", "[fe80::1]:7300" },
		/* IPv4 in IPv6's clothes. */
		{ "[::ffff:1.2.3.4]:5", "1.2.3.4:5" },
		{ "::ffff:1.2.3.4", "1.2.3.4:7300" },
		{ "", NULL },
		{ ":", NULL },
		{ ":7300", NULL },
		{ "1.2.3.4:", NULL },
		{ "1.2.3.4:0", NULL },
		{ "1.2.3.4:65536", NULL },
		{ "1.2.3.4:-1", NULL },
		{ "1.2.3.4: 1", NULL },
		{ "1.2.3.4:1x", NULL },
		{ "1.2.3.4:http", NULL },
		{ "1.2.3", NULL },
		{ "1.2.3.256", NULL },
		{ "1.2.3.4.5", NULL },
		{ "010.0.0.1", NULL },
		{ "10.0.0.01", NULL },
		{ "7", NULL },
		{ "1.2.3.4.", NULL },
		{ "[1.2.3.4]", NULL },
		{ "[::1", NULL },
		{ "[]", NULL },
		{ "[]:1", NULL },
		{ "[::1]x", NULL },
		{ "[::1]7300", NULL },
		{ "[::1]:", NULL },
		{ "[[::1]]", NULL },
		{ "[node]", NULL },
		{ "[localhost]:1", NULL },
		{ ":::", NULL },
		{ "1::2::3", NULL },
		{ "[::1]:1:2", NULL },
		{ "a:b:c", NULL },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		char text[ADDRESS_TEXT_BYTES];
		struct address address;
		int error = address_parse(cases[i].text, &address);

		if (error != (cases[i].canonical ? 0 : -EINVAL))
			fail_msg("\"%s\": %d", cases[i].text, error);
		if (!error)
			assert_string_equal(address_format(&address, text),
					    cases[i].canonical);
	}
}

/* A text that was formatted once stays as it is. */
static void address_format__is_stable(void **state)
{
	static const char *const texts[] = {
		"10.0.0.1:7300", "[::1]:7300",
		"[1234:5678:9abc:def0:1234:5678:9abc:def0]:65535"
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
		char text[ADDRESS_TEXT_BYTES];
		struct address address;

		assert_int_equal(address_parse(texts[i], &address), 0);
		assert_string_equal(address_format(&address, text), texts[i]);
	}
}

static void address_parse__socket(void **state)
{
	struct sockaddr_in v4;
	struct sockaddr_in6 v6;
	struct address address;

	(void)state;
	assert_int_equal(address_parse("1.2.3.4:5", &address), 0);
	assert_int_equal(address.length, sizeof(v4));
	memcpy(&v4, &address.socket, sizeof(v4));
	assert_int_equal(v4.sin_family, AF_INET);
	assert_int_equal(v4.sin_port, htons(5));
	assert_int_equal(v4.sin_addr.s_addr, htonl(0x01020304));

	assert_int_equal(address_parse("[fe80::1%lo]:9", &address), 0);
	assert_int_equal(address.length, sizeof(v6));
	memcpy(&v6, &address.socket, sizeof(v6));
	assert_int_equal(v6.sin6_family, AF_INET6);
	assert_int_equal(v6.sin6_port, htons(9));
	assert_int_not_equal(v6.sin6_scope_id, 0);

	/* So that a socket of the right family is made for it. */
	assert_int_equal(address_parse("[::ffff:1.2.3.4]:5", &address), 0);
	assert_int_equal(address.length, sizeof(v4));
	assert_int_equal(address.socket.ss_family, AF_INET);
}

/* From a socket that takes both families. */
static void address_format__mapped(void **state)
{
	struct sockaddr_in6 v6 = { .sin6_family = AF_INET6,
				   .sin6_port = htons(5) };
	struct address address = { .length = sizeof(v6) };
	char text[ADDRESS_TEXT_BYTES];

	(void)state;
	assert_int_equal(inet_pton(AF_INET6, "::ffff:1.2.3.4", &v6.sin6_addr),
			 1);
	memcpy(&address.socket, &v6, sizeof(v6));
	assert_string_equal(address_format(&address, text), "1.2.3.4:5");
}

static void address_parse__name(void **state)
{
	char text[ADDRESS_TEXT_BYTES];
	struct address address;

	(void)state;
	if (address_parse("localhost:5", &address) != 0)
		skip_because("localhost has no address here");
	address_format(&address, text);
	if (strcmp(text, "127.0.0.1:5") != 0)
		assert_string_equal(text, "[::1]:5");
}

/* To look up a name takes a descriptor: that there is none must not be taken
 * for a host that is not there. */
static void address_parse__no_descriptor(void **state)
{
	struct address address;
	struct rlimit before;
	int error;

	(void)state;
	if (address_parse("localhost:5", &address) != 0)
		skip_because("localhost has no address here");
	before = refuse_descriptors();
	error = address_parse("localhost:5", &address);
	release_descriptors(before);
	assert_int_equal(error, -EMFILE);
}

static void address_parse__no_such_name(void **state)
{
	struct address address;
	char text[400];

	(void)state;
	/* Refused without asking a name server: no label begins so. */
	assert_int_equal(address_parse("no..such", &address), -ENOENT);
	memset(text, 'a', sizeof(text));
	text[sizeof(text) - 1] = '\0';
	assert_int_equal(address_parse(text, &address), -EINVAL);
}

static void address__loopback_and_same_host(void **state)
{
	static const struct {
		const char *a, *b;
		bool a_is_loopback, are_same;
	} cases[] = {
		{ "127.0.0.1:1", "127.0.0.1:2", true, true },
		{ "127.9.8.7:1", "127.0.0.1:1", true, false },
		{ "128.0.0.1:1", "128.0.0.1:1", false, true },
		{ "[::1]:1", "[::1]:2", true, true },
		{ "[::2]:1", "[::1]:1", false, false },
		{ "[::1]:1", "127.0.0.1:1", true, false },
		{ "[fe80::1%1]:1", "[fe80::1%2]:1", false, false },
		{ "[fe80::1%1]:1", "[fe80::1%1]:2", false, true },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct address a, b;

		assert_int_equal(address_parse(cases[i].a, &a), 0);
		assert_int_equal(address_parse(cases[i].b, &b), 0);
		assert_int_equal(address_is_loopback(&a),
				 cases[i].a_is_loopback);
		assert_int_equal(address_is_same_host(&a, &b),
				 cases[i].are_same);
		assert_int_equal(address_is_same_host(&b, &a),
				 cases[i].are_same);
	}
}

/* An address of this machine is of one interface, whatever its port is. */
static void interface_find__of_this_machine(void **state)
{
	static const struct {
		const char *text;
		bool is_here;
	} cases[] = {
		{ "127.0.0.1:7300", true },
		{ "127.0.0.1", true },
		/* Of a network for documentation: of no machine. */
		{ "192.0.2.77", false },
		{ "[2001:db8::77]:7300", false },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		char name[INTERFACE_NAME_BYTES] = "";
		struct address address;

		assert_int_equal(address_parse(cases[i].text, &address), 0);
		assert_int_equal(interface_find(&address, name),
				 cases[i].is_here);
		assert_string_equal(name, cases[i].is_here ? "lo" : "");
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(address_parse__forms),
		cmocka_unit_test(address_format__is_stable),
		cmocka_unit_test(address_parse__socket),
		cmocka_unit_test(address_format__mapped),
		cmocka_unit_test(address_parse__name),
		cmocka_unit_test(address_parse__no_descriptor),
		cmocka_unit_test(address_parse__no_such_name),
		cmocka_unit_test(address__loopback_and_same_host),
		cmocka_unit_test(interface_find__of_this_machine),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
