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

static inline double field_number(field_u128 bits, uint32_t length)
{
	uint32_t narrow = (uint32_t)bits;
	uint64_t wide = (uint64_t)bits;
	double number;
	float single;

	if (length == 4) {
		memcpy(&single, &narrow, sizeof(single));
		return (double)single;
	}
	memcpy(&number, &wide, sizeof(number));
	return number;
}

/* By value where values differ; a zero, or a NaN, by its sign, and NaNs of one
 * sign by their payloads, as totalOrder has it. */
static inline int field_compare_floats(field_u128 a, field_u128 b,
				       uint32_t length)
{
	double x = field_number(a, length), y = field_number(b, length);
	bool a_is_negative = a >> (8 * length - 1) & 1;
	bool b_is_negative = b >> (8 * length - 1) & 1;
	int by_payload;

	if (x < y)
		return -1;
	if (x > y)
		return 1;
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
			order = field_compare_floats(x, y, field->length);
	}
	return field->is_descending ? -order : order;
}

#endif /* FIELD_ORDER_H */
