/* json.c - prints a JSON document on stdout */
#include "base/json.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/format.h"

/* The next value is the first one in its object or array. */
static bool is_first;

static void print_key(const char *key)
{
	fputs(is_first ? "" : ", ", stdout);
	is_first = false;
	if (key)
		printf("\"%s\": ", key);
}

void json_open(const char *key, char bracket)
{
	print_key(key);
	putchar(bracket);
	is_first = true;
}

void json_close(char bracket)
{
	putchar(bracket);
	is_first = false;
}

void json_line(void)
{
	fputs(is_first ? "\n  " : ",\n  ", stdout);
	is_first = true;
}

void json_begin(const char *schema)
{
	is_first = true;
	json_open(NULL, '{');
	json_text("schema", schema);
}

void json_end(void)
{
	json_close('}');
	putchar('\n');
}

bool json_open_known(const char *key, bool is_known, char bracket)
{
	if (is_known)
		json_open(key, bracket);
	else
		json_text(key, NULL);
	return is_known;
}

void json_bool(const char *key, bool is_true)
{
	print_key(key);
	fputs(is_true ? "true" : "false", stdout);
}

void json_number(const char *key, uint64_t number)
{
	print_key(key);
	printf("%" PRIu64, number);
}

void json_decimal(const char *key, double number, int decimals)
{
	print_key(key);
	printf("%.*f", decimals, number);
}

void json_known(const char *key, bool is_known, int64_t number)
{
	print_key(key);
	if (is_known)
		printf("%" PRId64, number);
	else
		fputs("null", stdout);
}

void json_text(const char *key, const char *text)
{
	print_key(key);
	if (text)
		format_json_string(stdout, text);
	else
		fputs("null", stdout);
}

void json_bytes(const char *key, const char *text, size_t bytes)
{
	print_key(key);
	format_json_bytes(stdout, text, bytes);
}
