/* roles_options.c - reads --roles, from a list or a file */
#include "programs/blinksort/roles_options.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/base.h"

/* The longest file of roles: each rank may have a line for each role, with a
 * comment. */
#define FILE_BYTES_MAX (64 * KIB)

/* What is wrong with an entry. */
static const char *reason_of(int error)
{
	static char text[96];

	if (error != -ERANGE)
		return "not ROLE:RANKS, such as read:0-3+8; a role is read, "
		       "sort or keep";
	snprintf(text, sizeof(text),
		 "ranks are numbers up to %d, and ranges ascend",
		 RANK_NODES_MAX - 1);
	return text;
}

int roles_options_read(struct cluster_roles *roles, const char *text,
		       size_t byte_count, unsigned *line)
{
	const char *end = text + byte_count;

	for (*line = 1; text < end; ++*line) {
		size_t whole = strcspn(text, "\n");
		size_t length = MIN(whole, strcspn(text, "#"));
		size_t blank = strspn(text, " \t\r");
		int error = 0;

		while (length > blank && strchr(" \t\r", text[length - 1]))
			length--;
		/* A NUL ends a string, but not the file. */
		if (text + whole < end && text[whole] == '\0')
			return -EINVAL;
		if (length > blank)
			error = cluster_roles_add(roles, text + blank,
						  length - blank);
		if (error)
			return error;
		text += whole + 1;
	}
	return 0;
}

static int read_file(const char *path, struct cluster_roles *roles,
		     struct failure *failure)
{
	static char text[FILE_BYTES_MAX + 1];
	FILE *file = fopen(path, "re");
	size_t byte_count;
	unsigned line = 0;
	int error;

	if (!file)
		return failure_set(failure, EXIT_FILE, path, errno,
				   "cannot read this file of roles (a list of "
				   "roles has a colon)");
	byte_count = fread(text, 1, FILE_BYTES_MAX, file);
	error = ferror(file) ? errno : 0;
	if (error == 0 && byte_count == FILE_BYTES_MAX)
		error = EFBIG;
	fclose(file);
	if (error)
		return failure_set(failure, EXIT_FILE, path, error,
				   "cannot read this file of roles");
	text[byte_count] = '\0';
	error = roles_options_read(roles, text, byte_count, &line);
	if (error)
		return failure_set(failure, EXIT_USAGE, path, 0, "line %u: %s",
				   line, reason_of(error));
	return 0;
}

int roles_options_take(struct options_reader *reader,
		       struct cluster_roles *roles, struct failure *failure)
{
	int error;

	roles->is_auto = strcmp(reader->value, "auto") == 0;
	if (roles->is_auto)
		return 0;
	if (!strchr(reader->value, ':'))
		return read_file(reader->value, roles, failure);
	error = cluster_roles_add_list(roles, reader->value);
	return error ? options_refuse(reader, failure, "%s", reason_of(error))
		     : 0;
}
