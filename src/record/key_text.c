/* key_text.c - a field of a key list as users write it */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/parse.h"
#include "record/key_text.h"
#include "record/record.h"

#define DESCENDING "desc"
#define BIG_ENDIAN_SUFFIX "be"
#define BFLOAT_PREFIX "b"

static const char kind_letters[] = {
	[KEY_UNSIGNED] = 'u',
	[KEY_SIGNED] = 'i',
	[KEY_FLOAT] = 'f',
};

static const char *const nans_words[] = {
	[KEY_NANS_LAST] = "nanlast",
	[KEY_NANS_FIRST] = "nanfirst",
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

/* "u64", "f32be", "bf16" */
static bool parse_type(const char *word, struct key_field *field)
{
	uint64_t bits, bits_min = 8, bits_max = 128;
	char digits[KEY_TEXT_BYTES];
	size_t length;

	field->is_bfloat = word[0] == BFLOAT_PREFIX[0];
	word += field->is_bfloat;
	length = strlen(word);
	field->type = KEY_BYTES;
	for (unsigned i = KEY_UNSIGNED; i <= KEY_FLOAT; i++)
		if (word[0] == kind_letters[i])
			field->type = (enum key_type)i;
	if (field->type == KEY_BYTES)
		return false;
	if (field->type == KEY_FLOAT) {
		bits_min = 16;
		bits_max = field->is_bfloat ? 16 : 64;
	} else if (field->is_bfloat) {
		return false;
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
				 "to i128, f16, bf16, f32 or f64, nor one of "
				 "them with be behind it, nor a length; "
				 "numbers are little endian without be";
	field->type = KEY_BYTES;
	if (parse_u64(word, 1, RECORD_SIZE_MAX, &length) < 0)
		return "the length is not a number from 1 to 16777216";
	field->length = (uint32_t)length;
	return NULL;
}

/* What follows the length or type: words, each behind a colon. */
static const char *parse_suffixes(const char *colon, struct key_field *field)
{
	static const char *const bad =
		"what follows the length or type is not desc, nanlast or "
		"nanfirst, each once; ascending is the default";
	char word[KEY_TEXT_BYTES];

	while (colon) {
		const char *text = colon + 1;
		unsigned nans = KEY_NANS_FIRST;

		colon = strchr(text, ':');
		if (!copy_word(word, sizeof(word), text,
			       colon ? colon : text + strlen(text)))
			return bad;
		while (nans > 0 && strcmp(word, nans_words[nans]) != 0)
			nans--;
		if (nans == 0) {
			if (field->is_descending ||
			    strcmp(word, DESCENDING) != 0)
				return bad;
			field->is_descending = true;
			continue;
		}
		if (field->nans == nans)
			return bad;
		if (field->nans != KEY_NANS_IN_ORDER)
			return "nanlast and nanfirst exclude each other";
		if (field->type != KEY_FLOAT)
			return "nanlast and nanfirst are for f16, bf16, f32 "
			       "and f64: nothing else has a NaN";
		field->nans = (enum key_nans)nans;
	}
	return NULL;
}

const char *key_text_parse(const char *text, struct key_field *field)
{
	const char *colon = strchr(text, ':');
	const char *end = text + strlen(text), *why;
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
	if (!copy_word(word, sizeof(word), text, colon ? colon : end))
		return "the length or type is too long";
	why = parse_length(word, field);
	return why ? why : parse_suffixes(colon, field);
}

const char *key_text_format(const struct key_field *field,
			    char text[KEY_TEXT_BYTES])
{
	char end[KEY_TEXT_BYTES] = "";

	if (field->is_descending)
		strcat(end, ":" DESCENDING);
	if (key_field_folds(field))
		strcat(strcat(end, ":"), nans_words[field->nans]);
	if (field->type == KEY_BYTES)
		snprintf(text, KEY_TEXT_BYTES, "%" PRIu32 ":%" PRIu32 "%s",
			 field->offset, field->length, end);
	else
		snprintf(text, KEY_TEXT_BYTES,
			 "%" PRIu32 ":%s%c%" PRIu32 "%s%s", field->offset,
			 field->is_bfloat ? BFLOAT_PREFIX : "",
			 kind_letters[field->type], 8 * field->length,
			 field->is_big_endian ? BIG_ENDIAN_SUFFIX : "", end);
	return text;
}
