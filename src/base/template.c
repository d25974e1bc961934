/* template.c - put the rank of a process into its file names and arguments */
#include "base/template.h"

#include <stdio.h>

/* The text that is being written: room for its bytes and a NUL, if any. */
struct writer {
	char *target;
	size_t room;
	size_t byte_count; /* of the whole text */
};

static void put_byte(struct writer *writer, char byte)
{
	if (writer->byte_count + 1 < writer->room)
		writer->target[writer->byte_count] = byte;
	writer->byte_count++;
}

static void put_text(struct writer *writer, const char *text)
{
	while (*text != '\0')
		put_byte(writer, *text++);
}

static void put_number(struct writer *writer, unsigned number)
{
	char digits[16];

	snprintf(digits, sizeof(digits), "%u", number);
	put_text(writer, digits);
}

/* Writes what a '%' and the byte behind it stand for. */
static void put_pair(struct writer *writer, char letter,
		     const struct template_values *values)
{
	switch (letter) {
	case 'r':
		put_number(writer, values->rank);
		break;
	case 'n':
		put_number(writer, values->node_count);
		break;
	case 'h':
		put_text(writer, values->host);
		break;
	case '%':
		put_byte(writer, '%');
		break;
	default:
		put_byte(writer, '%');
		put_byte(writer, letter);
		break;
	}
}

size_t template_fill(char *target, size_t room, const char *text,
		     const struct template_values *values)
{
	struct writer writer = { target, room, 0 };

	for (; *text != '\0'; text++) {
		if (text[0] == '%' && text[1] != '\0')
			put_pair(&writer, *++text, values);
		else
			put_byte(&writer, *text);
	}
	if (room > 0)
		target[writer.byte_count < room ? writer.byte_count
						: room - 1] = '\0';
	return writer.byte_count;
}
