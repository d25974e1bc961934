/*
 * field_order.h - which of two records comes first by one field of a key list,
 * told from the numbers themselves, without any encoding
 */
#ifndef FIELD_ORDER_H
#define FIELD_ORDER_H

#include <assert.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "record/key_list.h"

typedef unsigned __int128 field_u128;
typedef __int128 field_i128;

static inline field_u128 field_load(const struct key_field *field,
				    const uint8_t *record)
{
	field_u128 value = 0;

	for (uint32_t i = 0; i < field->length; i++) {
		uint32_t at = field->is_big_endian ? field->length - 1 - i : i;

		value |= (field_u128)record[field->offset + at] << 8 * i;
	}
	return value;
}

static inline int field_compare_signed(field_u128 a, field_u128 b,
				       uint32_t length)
{
	unsigned unused = 128 - 8 * length;
	field_i128 x = (field_i128)(a << unused) >> unused,
		   y = (field_i128)(b << unused) >> unused;

	return (x > y) - (x < y);
}

/* A half has a sign, 5 bits of the exponent, and 10 of the fraction. */
static inline double field_half(uint32_t bits)
{
	int exponent = bits >> 10 & 31, fraction = bits & 1023;
	double sign = bits >> 15 ? -1 : 1;

	if (exponent == 31)
		return fraction ? NAN : sign * INFINITY;
	return sign * (exponent ? ldexp(1024 + fraction, exponent - 25)
				: ldexp(fraction, -24));
}

static inline double field_number(const struct key_field *field,
				  field_u128 bits)
{
	uint32_t narrow = (uint32_t)bits;
	uint64_t wide = (uint64_t)bits;
	double number;
	float single;

	if (field->length == 2 && !field->is_bfloat)
		return field_half(narrow);
	/* A bfloat is the upper half of a single. */
	if (field->length == 2)
		narrow <<= 16;
	if (field->length < 8) {
		memcpy(&single, &narrow, sizeof(single));
		return (double)single;
	}
	memcpy(&number, &wide, sizeof(number));
	return number;
}

/* Where NaNs come last or first, the direction does not matter to them. */
static inline int field_compare_nans(const struct key_field *field, bool a,
				     bool b)
{
	int order = (int)a - (int)b;

	return (field->nans == KEY_NANS_LAST) != field->is_descending ? order
								      : -order;
}

/* By value where values differ; a zero, or a NaN, by its sign, and NaNs of one
 * sign by their payloads, as totalOrder has it. */
static inline int field_compare_floats(const struct key_field *field,
				       field_u128 a, field_u128 b)
{
	double x = field_number(field, a), y = field_number(field, b);
	bool a_is_negative = a >> (8 * field->length - 1) & 1;
	bool b_is_negative = b >> (8 * field->length - 1) & 1;
	int by_payload;

	if (x < y)
		return -1;
	if (x > y)
		return 1;
	if (field->nans != KEY_NANS_IN_ORDER)
		return field_compare_nans(field, isnan(x), isnan(y));
	if (a_is_negative != b_is_negative)
		return a_is_negative ? -1 : 1;
	if (!isnan(x) && !isnan(y))
		return 0;
	by_payload =
		isnan(x) != isnan(y) ? (isnan(x) ? 1 : -1) : (a > b) - (a < b);
	return a_is_negative ? -by_payload : by_payload;
}

/* <0, 0 or >0: a before b, the same, or behind it. */
static inline int field_compare(const struct key_field *field, const uint8_t *a,
				const uint8_t *b)
{
	field_u128 x, y;
	int order;

	if (field->type == KEY_BYTES) {
		order = memcmp(a + field->offset, b + field->offset,
			       field->length);
	} else {
		assert(field->length > 0 &&
		       field->length <= KEY_NUMBER_BYTES_MAX);
		x = field_load(field, a);
		y = field_load(field, b);
		if (field->type == KEY_UNSIGNED)
			order = (x > y) - (x < y);
		else if (field->type == KEY_SIGNED)
			order = field_compare_signed(x, y, field->length);
		else
			order = field_compare_floats(field, x, y);
	}
	return field->is_descending ? -order : order;
}

#endif /* FIELD_ORDER_H */
