/* utf8.c - where text is well-formed UTF-8 (Unicode 15, table 3-7) */
#include "base/utf8.h"

#include <stdbool.h>

static bool is_continuation(unsigned char byte)
{
	return (byte & 0xc0) == 0x80;
}

size_t utf8_length(const char *text)
{
	const unsigned char *byte = (const unsigned char *)text;
	unsigned char low = 0x80, high = 0xbf; /* of the second byte */
	size_t length;

	if (byte[0] < 0x80)
		return byte[0] != 0;
	if (byte[0] < 0xc2 || byte[0] > 0xf4)
		return 0;
	length = byte[0] < 0xe0 ? 2 : byte[0] < 0xf0 ? 3 : 4;

	/* Overlong forms, surrogates and what is above U+10FFFF would begin
	 * with these first bytes. */
	switch (byte[0]) {
	case 0xe0:
		low = 0xa0;
		break;
	case 0xed:
		high = 0x9f;
		break;
	case 0xf0:
		low = 0x90;
		break;
	case 0xf4:
		high = 0x8f;
		break;
	}
	if (byte[1] < low || byte[1] > high)
		return 0;
	for (size_t i = 2; i < length; i++)
		if (!is_continuation(byte[i]))
			return 0;
	return length;
}
