/*
 * random_shape.h - shapes of records with keys of any kind, drawn at random
 *
 * Included behind cmocka.h by one file of a program.
 */
#ifndef RANDOM_SHAPE_H
#define RANDOM_SHAPE_H

#include "random.h"
#include "record/record.h"

static inline uint32_t random_below(uint64_t end)
{
	return (uint32_t)(random_next() % end);
}

/* A field that lies in the record: a number, or a slice of up to 20 bytes where
 * no number fits. */
static inline struct key_field random_field(uint32_t record_size)
{
	uint32_t offset = random_below(record_size);
	uint32_t room = record_size - offset;
	struct key_field field = {
		.offset = offset,
		.type = (enum key_type)random_below(KEY_FLOAT + 1),
		.is_big_endian = random_below(2),
		.is_descending = random_below(3) == 0,
	};

	field.length = field.type == KEY_FLOAT ? 2u << random_below(3)
					       : 1u << random_below(5);
	if (field.type == KEY_BYTES || field.length > room) {
		field.type = KEY_BYTES;
		field.is_big_endian = false;
		field.length = 1 + random_below(MIN(room, 20));
	} else if (field.type == KEY_FLOAT) {
		field.is_bfloat = field.length == 2 && random_below(2);
		field.nans = (enum key_nans)random_below(KEY_NANS_FIRST + 1);
	}
	assert_true(key_field_is_good(&field));
	return field;
}

/* Half of the shapes have one slice as their key. */
static inline struct record_shape random_shape(uint32_t record_size)
{
	struct record_shape shape = { .size = record_size };

	shape.keys.field_count = random_below(2) ? 1 : 1 + random_below(3);
	for (unsigned i = 0; i < shape.keys.field_count; i++)
		shape.keys.fields[i] = random_field(record_size);
	if (shape.keys.field_count == 1 && random_below(2)) {
		struct key_field *field = &shape.keys.fields[0];

		field->type = KEY_BYTES;
		field->is_big_endian = field->is_descending = false;
		field->is_bfloat = false;
		field->nans = KEY_NANS_IN_ORDER;
	}
	key_list_complete(&shape.keys, record_size);
	return shape;
}

#endif /* RANDOM_SHAPE_H */
