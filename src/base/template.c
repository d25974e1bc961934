/* template.c - put the rank of a process into its file names and arguments */
#include "base/template.h"

#include <stdio.h>
#include <string.h>

#include "base/format.h"

/* What a '%' and this byte behind it stand for; NULL: for themselves. */
static const char *value_of(char letter, const struct template_values *values,
			    char number[FORMAT_U128_BYTES])
{
	switch (letter) {
	case 'r':
		return format_u128(number, values->rank);
	case 'n':
		return format_u128(number, values->node_count);
	case 'h':
		return values->host;
	case '%':
		return "%";
	default:
		return NULL;
	}
}

size_t template_fill(char *target, size_t room, const char *text,
		     const struct template_values *values)
{
	size_t byte_count = 0;

	if (room > 0)
		target[0] = '\0';
	while (*text != '\0') {
		char number[FORMAT_U128_BYTES];
		const char *value =
			*text == '%' ? value_of(text[1], values, number) : NULL;
		size_t plain = 1 + strcspn(text + 1, "%");
		size_t length = value ? strlen(value) : plain;

		if (byte_count < room)
			snprintf(target + byte_count, room - byte_count, "%.*s",
				 (int)length, value ? value : text);
		byte_count += length;
		text += value ? 2 : plain;
	}
	return byte_count;
}
