/*
 * Any text to every parser of parse.h, to that of keys, and to what prints
 * names: no crash, and what a parser returns keeps the promises of the header.
 */
#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cpu.h"
#include "base/format.h"
#include "base/parse.h"
#include "record/key_text.h"
#include "record/record.h"

#define UNTOUCHED 0x5a5a5a5a5a5a5a5aULL

static void require(int condition)
{
	if (!condition)
		abort();
}

static void fuzz_u128(const char *text)
{
	unsigned __int128 value = UNTOUCHED;
	char buffer[FORMAT_U128_BYTES];
	int error = parse_u128(text, &value);

	require(error == 0 || error == -EINVAL || error == -ERANGE);
	if (error) {
		require(value == UNTOUCHED);
		return;
	}
	/* Printed, it is the same text but for leading zeros. */
	while (*text == '0' && text[1] != '\0')
		text++;
	require(strcmp(format_u128(buffer, value), text) == 0);
}

static void fuzz_u64(const char *text)
{
	uint64_t value = UNTOUCHED;

	if (parse_u64(text, 10, 1000000, &value) == 0)
		require(value >= 10 && value <= 1000000);
	else
		require(value == UNTOUCHED);
	if (parse_size(text, 1, 1 << 30, &value) == 0)
		require(value >= 1 && value <= 1 << 30);
}

/* The same texts, but for zeros at the begin of numbers. */
static bool is_rewritten(const char *text, const char *written)
{
	bool begins = true;

	for (; *text != '\0'; text++) {
		if (begins && *text == '0' && text[1] >= '0' && text[1] <= '9')
			continue;
		if (*text != *written++)
			return false;
		begins = *text == ':';
	}
	return *written == '\0';
}

/* What is read is a field that can be, and it is written as it was. */
static void fuzz_key(const char *text)
{
	char written[KEY_TEXT_BYTES];
	struct key_field field;
	const char *why = key_text_parse(text, &field);

	if (why) {
		require(strlen(why) > 0);
		return;
	}
	require(key_field_is_good(&field));
	require(field.offset < RECORD_SIZE_MAX);
	require(field.length <= RECORD_SIZE_MAX);
	require(key_text_format(&field, written) == written);
	require(is_rewritten(text, written));
}

static void fuzz_text(const char *text)
{
	static FILE *null;
	enum cpu_level level;

	if (!null)
		null = fopen("/dev/null", "w");
	require(null != NULL);
	format_json_string(null, text);
	cpu_level_parse(text, &level);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = malloc(size + 1);

	require(text != NULL);
	if (size > 0)
		memcpy(text, data, size);
	text[size] = '\0';
	fuzz_u128(text);
	fuzz_u64(text);
	fuzz_key(text);
	fuzz_text(text);
	free(text);
	return 0;
}
