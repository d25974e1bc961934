/*
 * template.h - put the rank of a process into its file names and arguments
 *
 *      %r   the rank           %n   the number of ranks
 *      %h   the host's name    %%   a '%'
 *
 * Another pair, and a '%' at the end, stand for themselves, so that date +%s
 * can be written as it is.
 */
#ifndef TEMPLATE_H
#define TEMPLATE_H

#include <stddef.h>

struct template_values {
	unsigned rank, node_count;
	const char *host;
};

/* Write the text with its pairs replaced, as much of it as fits into room bytes
 * with its NUL.  Returns the bytes of the whole text without the NUL: if they
 * are not less than room, some did not fit. */
size_t template_fill(char *target, size_t room, const char *text,
		     const struct template_values *values);

#endif /* TEMPLATE_H */
