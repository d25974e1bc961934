/* argument_file.c - reads further arguments from files */
#include "base/argument_file.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "base/failure.h"

struct arguments {
	char **words;
	size_t count, room;
};

static int add(struct arguments *arguments, char *word, struct failure *failure)
{
	if (arguments->count == arguments->room) {
		size_t room = 2 * arguments->room + 16;
		char **words =
			reallocarray(arguments->words, room, sizeof(*words));

		if (!words)
			return failure_no_memory(failure);
		arguments->words = words;
		arguments->room = room;
	}
	arguments->words[arguments->count++] = word;
	return 0;
}

static int read_text(FILE *file, const char *path, char *text,
		     struct failure *failure)
{
	size_t byte_count = fread(text, 1, ARGUMENT_FILE_BYTES_MAX + 1, file);

	text[byte_count] = '\0';
	if (ferror(file))
		return failure_set(failure, EXIT_FILE, path, errno, "");
	if (byte_count > ARGUMENT_FILE_BYTES_MAX)
		return failure_set(failure, EXIT_FILE, path, 0,
				   "more than %d bytes of arguments",
				   ARGUMENT_FILE_BYTES_MAX);
	if (strlen(text) != byte_count)
		return failure_set(failure, EXIT_FILE, path, 0,
				   "a byte 0 is no part of an argument");
	return 0;
}

/* The next line of *rest, without what ends it there or on Windows. */
static char *next_line(char **rest)
{
	char *line = strsep(rest, "\n");
	size_t length = strlen(line);

	if (length > 0 && line[length - 1] == '\r')
		line[length - 1] = '\0';
	return line;
}

/* Arguments point into the text, which stays if there are any. */
static int add_lines(struct arguments *arguments, const char *path,
		     struct failure *failure)
{
	FILE *file = fopen(path, "re");
	char *text, *rest, *line;
	size_t count = arguments->count;
	int error;

	if (!file)
		return failure_set(failure, EXIT_FILE, path, errno, "");
	text = malloc(ARGUMENT_FILE_BYTES_MAX + 2);
	error = text ? read_text(file, path, text, failure)
		     : failure_no_memory(failure);
	fclose(file);
	rest = error ? NULL : text;
	while (error == 0 && rest) {
		line = next_line(&rest);
		if (*line != '\0' && *line != '#')
			error = add(arguments, line, failure);
	}
	if (arguments->count == count)
		free(text);
	return error;
}

static bool names_file(const char *word)
{
	return word[0] == '@' && word[1] != '\0';
}

static bool is_any_named(char *const *words)
{
	for (; *words && strcmp(*words, "--") != 0; words++)
		if (names_file(*words))
			return true;
	return false;
}

int argument_file_expand(int *count, char ***words, struct failure *failure)
{
	static struct arguments arguments;
	size_t first = arguments.count;
	bool is_operand = false;
	int error = 0;

	if (!is_any_named(*words))
		return 0;
	for (char **word = *words; *word && error == 0; word++) {
		error = word > *words && !is_operand && names_file(*word)
				? add_lines(&arguments, *word + 1, failure)
				: add(&arguments, *word, failure);
		is_operand |= strcmp(*word, "--") == 0;
	}
	if (error == 0)
		error = add(&arguments, NULL, failure);
	if (error)
		return error;
	*count = (int)(arguments.count - first) - 1;
	*words = arguments.words + first;
	return 0;
}
