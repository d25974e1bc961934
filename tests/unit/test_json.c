/* test_json.c - a document on stdout: commas, brackets and what is null */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <unistd.h>

#include "base/json.h"

/* Values of each kind, as the first one and as a later one. */
static void print_values(void)
{
	json_begin("test-1");
	json_bool("yes", true);
	json_bool("no", false);
	json_number("most", UINT64_MAX);
	json_known("least", true, INT64_MIN);
	json_known("unknown", false, 1);
	json_decimal("rounded", 1.25e3 / 7, 4);
	json_text("text", "\"");
	json_text("no_text", NULL);
	json_open("empty", '{');
	json_close('}');
	json_bytes("bytes", "a\0", 2);
	json_open("lines", '[');
	json_line();
	json_number(NULL, 1);
	json_line();
	json_number(NULL, 2);
	json_close(']');
	assert_true(json_open_known("list", true, '['));
	json_open(NULL, '{');
	assert_false(json_open_known("a", false, '['));
	json_close('}');
	json_open(NULL, '[');
	json_number(NULL, 1);
	json_number(NULL, 2);
	json_close(']');
	json_close(']');
	json_end();
}

static void json__documents(void **state)
{
	static const char want[] =
		"{\"schema\": \"test-1\", \"yes\": true, \"no\": false"
		", \"most\": 18446744073709551615"
		", \"least\": -9223372036854775808, \"unknown\": null"
		", \"rounded\": 178.5714, \"text\": \"\\\"\""
		", \"no_text\": null, \"empty\": {}"
		", \"bytes\": \"a\\u0000\", \"lines\": [\n  1,\n  2]"
		", \"list\": [{\"a\": null}, [1, 2]]}\n"
		"{\"schema\": \"next-1\"}\n";
	char got[sizeof(want) + 1];
	FILE *file = tmpfile();
	int saved = dup(STDOUT_FILENO);
	size_t length;

	(void)state;
	assert_non_null(file);
	fflush(stdout);
	assert_int_equal(dup2(fileno(file), STDOUT_FILENO), STDOUT_FILENO);
	print_values();
	json_begin("next-1");
	json_end();
	fflush(stdout);
	assert_int_equal(dup2(saved, STDOUT_FILENO), STDOUT_FILENO);
	close(saved);
	rewind(file);
	length = fread(got, 1, sizeof(got) - 1, file);
	got[length] = '\0';
	fclose(file);
	assert_string_equal(got, want);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(json__documents),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
