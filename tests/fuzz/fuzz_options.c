/*
 * Any words to the reader of options: it comes to an end, no word is lost or
 * read twice, and every value and operand is one of the words or their rest.
 */
#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "base/options.h"

#define WORDS_MAX 32

static const struct options_entry entries[] = {
	{ 10, "flag", 'f', OPTIONS_FLAG, NULL },
	{ 11, NULL, 'x', OPTIONS_FLAG, NULL },
	{ 12, "once", 'o', OPTIONS_VALUE, "N" },
	{ 13, "many", 'm', OPTIONS_VALUES, "HOSTS" },
	{ 14, "file", 'i', OPTIONS_FILE, "IN" },
	{ 15, "files", 0, OPTIONS_FILES, "OUT" },
	{ 16, "once-more", 0, OPTIONS_VALUE, "N" },
	OPTIONS_COMMON,
};

static void require(int condition)
{
	if (!condition)
		abort();
}

/* A copy of each word, so that the sanitizer sees a read beside it. */
static unsigned split(char **words, const char *text, size_t size)
{
	unsigned count = 0;

	while (size > 0 && count < WORDS_MAX) {
		size_t length = strnlen(text, size);

		words[count++] = strndup(text, length);
		length = MIN(length + 1, size);
		text += length;
		size -= length;
	}
	words[count] = NULL;
	return count;
}

static bool is_part_of_word(char *const *words, unsigned count,
			    const char *text)
{
	for (unsigned i = 0; i < count; i++)
		if (text >= words[i] && text <= words[i] + strlen(words[i]))
			return true;
	return false;
}

static void check_operands(const struct options_reader *reader,
			   char *const *words, unsigned count)
{
	require(reader->operand_count <= count);
	require(reader->operands[reader->operand_count] == NULL);
	/* In the order of the words, each of them once. */
	for (unsigned i = 0, at = 0; i < reader->operand_count; i++, at++) {
		while (at < count && words[at] != reader->operands[i])
			at++;
		require(at < count);
	}
}

static void check_failure(const struct failure *failure)
{
	require(failure->status == EXIT_USAGE);
	require(failure->what[0] == '-');
	require(strlen(failure->what) < OPTIONS_TEXT_BYTES);
	require(failure->why[0] != '\0');
}

static void check_value(struct options_reader *reader)
{
	static const char *const choices[] = { "a", "b" };
	struct failure failure = { .status = EXIT_DONE };
	unsigned choice;
	uint64_t number;

	require(reader->value[0] != '\0');
	if (options_choice(reader, choices, 2, &choice, &failure) < 0)
		check_failure(&failure);
	if (options_number(reader, 3, 5, &number, &failure) == 0)
		require(number >= 3 && number <= 5);
	if (options_size(reader, 3, 5000, &number, &failure) == 0)
		require(number >= 3 && number <= 5000);
}

/* Stops the reading at each option. */
static int stop_at(void *context, int id, struct failure *failure)
{
	(void)failure;
	*(int *)context = id;
	return -ECANCELED;
}

/* The next option, 0 or -errno. */
static int next_option(struct options_reader *reader, struct failure *failure)
{
	int id = 0, ret = options_read(reader, stop_at, &id, failure);

	return ret == -ECANCELED ? id : ret;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *words[WORDS_MAX + 1], *copy[WORDS_MAX + 1];
	struct failure failure = { .status = EXIT_DONE };
	struct options_reader reader;
	size_t steps = size + 1; /* each option is a byte at least */
	unsigned count;
	int id;

	if (size == 0)
		return 0;
	count = split(words, (const char *)data + 1, size - 1);
	memcpy(copy, words, sizeof(copy));
	options_begin(&reader, entries, ARRAY_LEN(entries), copy);
	reader.stops_at_operand = data[0] & 1;
	while ((id = next_option(&reader, &failure)) > 0) {
		require(steps-- > 0);
		require(options_given(&reader, id));
		if (reader.value) {
			require(is_part_of_word(words, count, reader.value));
			check_value(&reader);
		}
	}
	if (id < 0)
		check_failure(&failure);
	else
		check_operands(&reader, words, count);
	for (unsigned i = 0; i < count; i++)
		free(words[i]);
	return 0;
}
