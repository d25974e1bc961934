/*
 * test_key_text.c - fields of a key list as users write them
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/base.h"
#include "record/key_text.h"

struct text_case {
	const char *text;
	struct key_field field;
};

/* Both ways: the text is how the field is written, too. */
static const struct text_case written[] = {
	{ "0:1", { .offset = 0, .length = 1 } },
	{ "0:10", { .offset = 0, .length = 10 } },
	{ "3:7:desc", { .offset = 3, .length = 7, .is_descending = true } },
	{ "16777215:1", { .offset = 16777215, .length = 1 } },
	{ "0:16777216:desc", { .length = 16777216, .is_descending = true } },
	{ "16777215:16777216:desc",
	  { .offset = 16777215, .length = 16777216, .is_descending = true } },
	{ "0:u8", { .length = 1, .type = KEY_UNSIGNED } },
	{ "0:u16", { .length = 2, .type = KEY_UNSIGNED } },
	{ "0:u32", { .length = 4, .type = KEY_UNSIGNED } },
	{ "8:u64", { .offset = 8, .length = 8, .type = KEY_UNSIGNED } },
	{ "0:u128", { .length = 16, .type = KEY_UNSIGNED } },
	{ "0:u16be",
	  { .length = 2, .type = KEY_UNSIGNED, .is_big_endian = true } },
	{ "0:u128be",
	  { .length = 16, .type = KEY_UNSIGNED, .is_big_endian = true } },
	{ "0:i8", { .length = 1, .type = KEY_SIGNED } },
	{ "0:i64:desc",
	  { .length = 8, .type = KEY_SIGNED, .is_descending = true } },
	{ "0:i128", { .length = 16, .type = KEY_SIGNED } },
	{ "5:i32be:desc",
	  { .offset = 5,
	    .length = 4,
	    .type = KEY_SIGNED,
	    .is_big_endian = true,
	    .is_descending = true } },
	{ "0:f32", { .length = 4, .type = KEY_FLOAT } },
	{ "8:f64:desc",
	  { .offset = 8,
	    .length = 8,
	    .type = KEY_FLOAT,
	    .is_descending = true } },
	{ "0:f16", { .length = 2, .type = KEY_FLOAT } },
	{ "0:bf16", { .length = 2, .type = KEY_FLOAT, .is_bfloat = true } },
	{ "0:f64:nanlast",
	  { .length = 8, .type = KEY_FLOAT, .nans = KEY_NANS_LAST } },
	{ "0:bf16be:desc:nanfirst",
	  { .length = 2,
	    .type = KEY_FLOAT,
	    .is_big_endian = true,
	    .is_descending = true,
	    .is_bfloat = true,
	    .nans = KEY_NANS_FIRST } },
	{ "0:f32be",
	  { .length = 4, .type = KEY_FLOAT, .is_big_endian = true } },
	{ "16777215:f64be:desc",
	  { .offset = 16777215,
	    .length = 8,
	    .type = KEY_FLOAT,
	    .is_big_endian = true,
	    .is_descending = true } },
};

static void check_field(const char *text, const struct key_field *found,
			const struct key_field *want)
{
	if (found->offset != want->offset || found->length != want->length ||
	    found->type != want->type ||
	    found->is_big_endian != want->is_big_endian ||
	    found->is_descending != want->is_descending ||
	    found->is_bfloat != want->is_bfloat || found->nans != want->nans)
		fail_msg("%s: read as %u:%u, type %d, be %d, desc %d, "
			 "bfloat %d, nans %d",
			 text, found->offset, found->length, (int)found->type,
			 found->is_big_endian, found->is_descending,
			 found->is_bfloat, (int)found->nans);
}

static void key_text_parse__reads_each_form(void **state)
{
	struct key_field field;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(written); i++) {
		memset(&field, 0xff, sizeof(field));
		assert_null(key_text_parse(written[i].text, &field));
		check_field(written[i].text, &field, &written[i].field);
		assert_true(key_field_is_good(&field));
	}
}

static void key_text_parse__suffixes_in_any_order(void **state)
{
	struct key_field field;
	char text[KEY_TEXT_BYTES];

	(void)state;
	assert_null(key_text_parse("0:f64:nanlast:desc", &field));
	assert_string_equal(key_text_format(&field, text),
			    "0:f64:desc:nanlast");
}

static void key_text_format__writes_each_form(void **state)
{
	char text[KEY_TEXT_BYTES];

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(written); i++)
		assert_string_equal(key_text_format(&written[i].field, text),
				    written[i].text);
}

/* The longest text of any field is whole. */
static void key_text_format__has_room(void **state)
{
	const struct key_field field = {
		.offset = UINT32_MAX,
		.length = UINT32_MAX,
		.is_descending = true,
	};
	const struct key_field bfloat = {
		.offset = UINT32_MAX,
		.length = 2,
		.type = KEY_FLOAT,
		.is_big_endian = true,
		.is_descending = true,
		.is_bfloat = true,
		.nans = KEY_NANS_FIRST,
	};
	char text[KEY_TEXT_BYTES];

	(void)state;
	assert_string_equal(key_text_format(&field, text),
			    "4294967295:4294967295:desc");
	assert_string_equal(key_text_format(&bfloat, text),
			    "4294967295:bf16be:desc:nanfirst");
}

#define NO_FORM "not of the form OFFSET:LENGTH or OFFSET:TYPE"
#define BAD_OFFSET "the offset is not a number from 0 to 16777215"
#define BAD_LENGTH "the length is not a number from 1 to 16777216"
#define BAD_TYPE                                                               \
	"the type is not u8, u16, u32, u64, u128, i8 to i128, f16, bf16, f32 " \
	"or f64, nor one of them with be behind it, nor a length; numbers "    \
	"are little endian without be"
#define BAD_END                                                                \
	"what follows the length or type is not desc, nanlast or nanfirst, "   \
	"each once; ascending is the default"
#define TWO_PLACES "nanlast and nanfirst exclude each other"
#define NO_FLOAT                                                               \
	"nanlast and nanfirst are for f16, bf16, f32 and f64: nothing else "   \
	"has a NaN"
#define TOO_LONG "the length or type is too long"

static void key_text_parse__refuses(void **state)
{
	static const struct {
		const char *text, *why;
	} cases[] = {
		{ "", NO_FORM },
		{ "5", NO_FORM },
		{ "u64", NO_FORM },
		{ "desc", NO_FORM },
		{ ":", BAD_OFFSET },
		{ ":u64", BAD_OFFSET },
		{ ":desc", BAD_OFFSET },
		{ "-1:4", BAD_OFFSET },
		{ "+1:4", BAD_OFFSET },
		{ " 1:4", BAD_OFFSET },
		{ "0x1:4", BAD_OFFSET },
		{ "16777216:1", BAD_OFFSET },
		{ "4294967296:1", BAD_OFFSET },
		{ "18446744073709551616:1", BAD_OFFSET },
		{ "0000000000000000000000000000000000000000:1", BAD_OFFSET },
		{ "0:0", BAD_LENGTH },
		{ "0:4 ", BAD_LENGTH },
		{ "0:4b", BAD_LENGTH },
		{ "0:16777217", BAD_LENGTH },
		{ "0:4294967297", BAD_LENGTH },
		{ "0:", BAD_TYPE },
		{ "0:desc", BAD_TYPE },
		{ "0::desc", BAD_TYPE },
		{ "0:-4", BAD_TYPE },
		{ "0:u", BAD_TYPE },
		{ "0:ube", BAD_TYPE },
		{ "0:be", BAD_TYPE },
		{ "0:u0", BAD_TYPE },
		{ "0:u4", BAD_TYPE },
		{ "0:u24", BAD_TYPE },
		{ "0:u064", BAD_TYPE },
		{ "0:u256", BAD_TYPE },
		{ "0:u8be", BAD_TYPE },
		{ "0:i8be", BAD_TYPE },
		{ "0:i65", BAD_TYPE },
		{ "0:f8", BAD_TYPE },
		{ "0:b", BAD_TYPE },
		{ "0:b16", BAD_TYPE },
		{ "0:bf32", BAD_TYPE },
		{ "0:bu16", BAD_TYPE },
		{ "0:bbf16", BAD_TYPE },
		{ "0:bf16bebe", BAD_TYPE },
		{ "0:nanlast", BAD_TYPE },
		{ "0:f128", BAD_TYPE },
		{ "0:d64", BAD_TYPE },
		{ "0:U64", BAD_TYPE },
		{ "0:u64le", BAD_TYPE },
		{ "0:u64bebe", BAD_TYPE },
		{ "0:u 64", BAD_TYPE },
		{ "0:u4294967360", BAD_TYPE },
		{ "0:u18446744073709551680", BAD_TYPE },
		{ "0:u64:", BAD_END },
		{ "0:u64:asc", BAD_END },
		{ "0:u64:desc:desc", BAD_END },
		{ "0:u64:DESC", BAD_END },
		{ "0:4:desc ", BAD_END },
		{ "0:4:4", BAD_END },
		{ "0:f16:4", BAD_END },
		{ "0:f64:nan", BAD_END },
		{ "0:f64:nanlast:", BAD_END },
		{ "0:f64:nanlast:nanlast", BAD_END },
		{ "0:f64:desc:nanlast:desc", BAD_END },
		{ "0:f64:nanlastnanlastnanlastnanlastnanlast", BAD_END },
		{ "0:f64:nanlast:nanfirst", TWO_PLACES },
		{ "0:f64:nanfirst:desc:nanlast", TWO_PLACES },
		{ "0:u32:nanlast", NO_FLOAT },
		{ "0:i64be:nanfirst", NO_FLOAT },
		{ "0:8:desc:nanlast", NO_FLOAT },
		{ "0:0000000000000000000000000000000000000004", TOO_LONG },
		{ "0:u6444444444444444444444444444444444444be", TOO_LONG },
	};
	struct key_field field;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		const char *why = key_text_parse(cases[i].text, &field);

		if (!why || strcmp(why, cases[i].why) != 0)
			fail_msg("'%s': %s", cases[i].text,
				 why ? why : "not refused");
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(key_text_parse__reads_each_form),
		cmocka_unit_test(key_text_parse__suffixes_in_any_order),
		cmocka_unit_test(key_text_parse__refuses),
		cmocka_unit_test(key_text_format__writes_each_form),
		cmocka_unit_test(key_text_format__has_room),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
