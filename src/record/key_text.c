/* key_text.c - a field of a key list as users write it */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/parse.h"
#include "record/key_text.h"
#include "record/record.h"

#define DESCENDING ":desc"
#define BIG_ENDIAN_SUFFIX "be"

static const char kind_letters[] = {
	[KEY_UNSIGNED] = 'u',
	[KEY_SIGNED] = 'i',
	[KEY_FLOAT] = 'f',
};

/* A copy, as far as end, for functions that read to the end of a string. */
static bool copy_word(char *word, size_t room, const char *begin,
		      const char *end)
{
	size_t length = (size_t)(end - begin);

	if (length >= room)
		return false;
	memcpy(word, begin, length);
	word[length] = '\0';
	return true;
}

/* "u64", "f32be" */
static bool parse_type(const char *word, struct key_field *field)
{
	uint64_t bits, bits_min = 8, bits_max = 128;
	char digits[KEY_TEXT_BYTES];
	size_t length = strlen(word);

	field->type = KEY_BYTES;
	for (unsigned i = KEY_UNSIGNED; i <= KEY_FLOAT; i++)
		if (word[0] == kind_letters[i])
			field->type = (enum key_type)i;
	if (field->type == KEY_BYTES)
		return false;
	if (field->type == KEY_FLOAT) {
		bits_min = 32;
		bits_max = 64;
	}
	if (length > 2 && strcmp(word + length - 2, BIG_ENDIAN_SUFFIX) == 0) {
		field->is_big_endian = true;
		length -= 2;
	}
	if (word[1] == '0' ||
	    !copy_word(digits, sizeof(digits), word + 1, word + length) ||
	    parse_u64(digits, bits_min, bits_max, &bits) < 0 ||
	    (bits & (bits - 1)) != 0 || (bits == 8 && field->is_big_endian))
		return false;
	field->length = (uint32_t)(bits / 8);
	return true;
}

static const char *parse_length(const char *word, struct key_field *field)
{
	uint64_t length;

	if (word[0] < '0' || word[0] > '9')
		return parse_type(word, field)
			       ? NULL
			       : "the type is not u8, u16, u32, u64, u128, i8 "
				 "to i128, f32 or f64, nor one of them with be "
				 "behind it, nor a length; numbers are little "
				 "endian without be";
	field->type = KEY_BYTES;
	if (parse_u64(word, 1, RECORD_SIZE_MAX, &length) < 0)
		return "the length is not a number from 1 to 16777216";
	field->length = (uint32_t)length;
	return NULL;
}

const char *key_text_parse(const char *text, struct key_field *field)
{
	const char *colon = strchr(text, ':');
	const char *end = text + strlen(text);
	char word[KEY_TEXT_BYTES];
	uint64_t offset;

	*field = (struct key_field){ 0 };
	if (!colon)
		return "not of the form OFFSET:LENGTH or OFFSET:TYPE";
	if (!copy_word(word, sizeof(word), text, colon) ||
	    parse_u64(word, 0, RECORD_SIZE_MAX - 1, &offset) < 0)
		return "the offset is not a number from 0 to 16777215";
	field->offset = (uint32_t)offset;
	text = colon + 1;
	colon = strchr(text, ':');
	if (colon && strcmp(colon, DESCENDING) != 0)
		return "what follows the second colon is not desc; ascending "
		       "is the default";
	field->is_descending = colon != NULL;
	if (!copy_word(word, sizeof(word), text, colon ? colon : end))
		return "the length or type is too long";
	return parse_length(word, field);
}

const char *key_text_format(const struct key_field *field,
			    char text[KEY_TEXT_BYTES])
{
	const char *end = field->is_descending ? DESCENDING : "";

	if (field->type == KEY_BYTES)
		snprintf(text, KEY_TEXT_BYTES, "%" PRIu32 ":%" PRIu32 "%s",
			 field->offset, field->length, end);
	else
		snprintf(text, KEY_TEXT_BYTES, "%" PRIu32 ":%c%" PRIu32 "%s%s",
			 field->offset, kind_letters[field->type],
			 8 * field->length,
			 field->is_big_endian ? BIG_ENDIAN_SUFFIX : "", end);
	return text;
}
