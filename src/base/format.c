/*
 * format.c - writes numbers and strings as text for people and for JSON
 */
#include "base/format.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/base.h"

static char *format_base(char buffer[FORMAT_U128_BYTES],
			 unsigned __int128 value, unsigned base)
{
	char digits[FORMAT_U128_BYTES];
	size_t first = sizeof(digits);

	digits[--first] = '\0';
	do {
		digits[--first] = "0123456789abcdef"[(unsigned)(value % base)];
		value /= base;
	} while (value > 0);
	return memcpy(buffer, digits + first, sizeof(digits) - first);
}

char *format_u128(char buffer[FORMAT_U128_BYTES], unsigned __int128 value)
{
	return format_base(buffer, value, 10);
}

char *format_u128_hex(char buffer[FORMAT_U128_BYTES], unsigned __int128 value)
{
	return format_base(buffer, value, 16);
}

char *format_hex(char *buffer, const uint8_t *bytes, size_t count)
{
	char *end = buffer;

	for (size_t i = 0; i < count; i++) {
		*end++ = "0123456789abcdef"[bytes[i] >> 4];
		*end++ = "0123456789abcdef"[bytes[i] & 15];
	}
	*end = '\0';
	return buffer;
}

enum rounding { ROUNDING_DOWN, ROUNDING_NEAREST, ROUNDING_UP };

/* value * scale / unit */
static uint64_t scaled(uint64_t value, unsigned scale, uint64_t unit,
		       enum rounding rounding)
{
	const uint64_t more[] = { 0, unit / 2, unit - 1 };

	return (uint64_t)(((unsigned __int128)value * scale + more[rounding]) /
			  unit);
}

static char *format_rounded(char buffer[FORMAT_SIZE_BYTES], uint64_t bytes,
			    enum rounding rounding)
{
	static const char letters[] = "KMGTPE";
	char digits[FORMAT_U128_BYTES], unit[] = ".0 KiB";
	unsigned power = 1;
	uint64_t tenths;

	if (bytes < KIB)
		return strcat(strcpy(buffer, format_u128(digits, bytes)), " B");
	/* Compared after rounding: 1023.96 KiB is 1.0 MiB, not 1024.0 KiB. */
	while ((tenths = scaled(bytes, 10, UINT64_C(1) << 10 * power,
				rounding)) >= 10240)
		power++;
	unit[1] = (char)('0' + tenths % 10);
	unit[3] = letters[power - 1];
	return strcat(strcpy(buffer, format_u128(digits, tenths / 10)), unit);
}

char *format_size(char buffer[FORMAT_SIZE_BYTES], uint64_t bytes)
{
	return format_rounded(buffer, bytes, ROUNDING_NEAREST);
}

char *format_size_up(char buffer[FORMAT_SIZE_BYTES], uint64_t bytes)
{
	return format_rounded(buffer, bytes, ROUNDING_UP);
}

char *format_size_down(char buffer[FORMAT_SIZE_BYTES], uint64_t bytes)
{
	return format_rounded(buffer, bytes, ROUNDING_DOWN);
}

char *format_duration(char buffer[FORMAT_DURATION_BYTES], uint64_t ns)
{
	static const struct {
		const char *name;
		uint64_t ns;
	} units[] = {
		{ "us", 1000 },
		{ "ms", 1000 * 1000 },
		{ "s", 1000 * 1000 * 1000 },
	};
	static const unsigned scales[] = { 100, 10, 1 };

	if (ns < 1000) {
		snprintf(buffer, FORMAT_DURATION_BYTES, "%u ns", (unsigned)ns);
		return buffer;
	}
	/* The first form that has three figures after rounding. */
	for (size_t i = 0; i < ARRAY_LEN(units) * ARRAY_LEN(scales); i++) {
		size_t unit = i / ARRAY_LEN(scales);
		size_t cut = i % ARRAY_LEN(scales);
		uint64_t number = scaled(ns, scales[cut], units[unit].ns,
					 ROUNDING_NEAREST);

		snprintf(buffer, FORMAT_DURATION_BYTES, "%.*f %s", 2 - (int)cut,
			 (double)number / scales[cut], units[unit].name);
		if (number < 1000)
			break;
	}
	return buffer;
}

static bool is_continuation(char byte)
{
	return ((unsigned char)byte & 0xc0) == 0x80;
}

size_t format_utf8_length(const char *text)
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
		if (!is_continuation(text[i]))
			return 0;
	return length;
}

char *format_shortened(char *buffer, size_t room, const char *text,
		       size_t length)
{
	size_t head = (room - sizeof("...")) / 2, tail = head;

	if (length < room) {
		memcpy(buffer, text, length);
		buffer[length] = '\0';
		return buffer;
	}
	/* A character has at most three bytes behind its first. */
	for (int i = 0; i < 3 && is_continuation(text[head]); i++)
		head--;
	for (int i = 0; i < 3 && is_continuation(text[length - tail]); i++)
		tail--;
	snprintf(buffer, room, "%.*s...%.*s", (int)head, text, (int)tail,
		 text + length - tail);
	return buffer;
}

void format_json_bytes(FILE *stream, const char *text, size_t bytes)
{
	const char *end = text + bytes;

	putc('"', stream);
	while (text < end) {
		size_t length = format_utf8_length(text);
		unsigned char byte = (unsigned char)*text;

		if (byte == '\n')
			fputs("\\n", stream);
		else if (byte < 0x20)
			fprintf(stream, "\\u%04x", byte);
		else if (byte == '"' || byte == '\\')
			fprintf(stream, "\\%c", byte);
		else if (length == 0)
			fputs("\\ufffd", stream);
		else
			fwrite(text, 1, length, stream);
		text += MAX(length, 1);
	}
	putc('"', stream);
}

void format_json_string(FILE *stream, const char *text)
{
	format_json_bytes(stream, text, strlen(text));
}

void format_add(struct format_line *line, const char *text)
{
	size_t room = sizeof(line->text) - 1 - line->length;
	size_t length = MIN(strlen(text), room);

	memcpy(line->text + line->length, text, length);
	line->length += length;
	line->text[line->length] = '\0';
}

void format_add_number(struct format_line *line, uint64_t number)
{
	format_add(line, FORMAT_U128(number));
}

void format_add_percent(struct format_line *line, double part)
{
	format_add_number(line, (uint64_t)(100 * part + 0.5));
	format_add(line, "%");
}
