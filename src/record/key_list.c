/*
 * key_list.c - the keys of a record, encoded so that bytes compare as keys
 * do
 */
#include <assert.h>
#include <string.h>

#include "record/key_list.h"

typedef unsigned __int128 u128;

/* --- the list --------------------------------------------------------------
 */

bool key_field_is_good(const struct key_field *field)
{
	bool is_power = (field->length & (field->length - 1)) == 0;

	if (field->type == KEY_FLOAT)
		return is_power && field->length >= 2 && field->length <= 8 &&
		       (!field->is_bfloat || field->length == 2) &&
		       field->nans <= KEY_NANS_FIRST;
	if (field->is_bfloat || key_field_folds(field))
		return false;
	if (field->type == KEY_BYTES)
		return field->length > 0 && !field->is_big_endian;
	return is_power && field->length > 0 &&
	       field->length <= KEY_NUMBER_BYTES_MAX;
}

/* Bytes that compare as they are: their field is a slice. */
static bool is_slice(const struct key_field *field)
{
	return field->type == KEY_BYTES ||
	       (field->type == KEY_UNSIGNED &&
		(field->is_big_endian || field->length == 1));
}

/* Make one and the same of two fields that mean the same. */
static void make_canonical(struct key_field *field)
{
	if (is_slice(field)) {
		field->type = KEY_BYTES;
		field->is_big_endian = false;
	}
	if (field->length == 1)
		field->is_big_endian = false;
}

static bool is_continued_by(const struct key_field *field,
			    const struct key_field *next)
{
	return field->type == KEY_BYTES && next->type == KEY_BYTES &&
	       field->is_descending == next->is_descending &&
	       field->offset + field->length == next->offset;
}

static void join_slices(struct key_list *keys)
{
	unsigned count = 0;

	for (unsigned i = 0; i < keys->field_count; i++) {
		make_canonical(&keys->fields[i]);
		if (count > 0 &&
		    is_continued_by(&keys->fields[count - 1], &keys->fields[i]))
			keys->fields[count - 1].length +=
				keys->fields[i].length;
		else
			keys->fields[count++] = keys->fields[i];
	}
	keys->field_count = count;
}

void key_list_complete(struct key_list *keys, uint32_t record_size)
{
	assert(keys->field_count > 0 && keys->field_count <= KEY_FIELDS_MAX);
	join_slices(keys);
	keys->length = 0;
	keys->begin = UINT32_MAX;
	keys->end = 0;
	for (unsigned i = 0; i < keys->field_count; i++) {
		const struct key_field *field = &keys->fields[i];

		keys->length += field->length;
		keys->begin = MIN(keys->begin, field->offset);
		keys->end = MAX(keys->end, field->offset + field->length);
	}
	keys->is_plain = keys->field_count == 1 &&
			 keys->fields[0].type == KEY_BYTES &&
			 !keys->fields[0].is_descending;
	key_word_prepare(&keys->head, keys, record_size, 0);
}

void key_list_reverse(struct key_list *keys)
{
	for (unsigned i = 0; i < keys->field_count; i++)
		keys->fields[i].is_descending ^= true;
}

bool key_list_equal(const struct key_list *a, const struct key_list *b)
{
	bool equal = a->field_count == b->field_count;

	for (unsigned i = 0; equal && i < a->field_count; i++) {
		const struct key_field *x = &a->fields[i], *y = &b->fields[i];

		equal = x->offset == y->offset && x->length == y->length &&
			x->type == y->type &&
			x->is_big_endian == y->is_big_endian &&
			x->is_descending == y->is_descending &&
			x->is_bfloat == y->is_bfloat && x->nans == y->nans;
	}
	return equal;
}

/* --- the encoding ----------------------------------------------------------
 */

/* A field's bytes [from, from + count) of its encoding, 8 at most, in the top
 * bits. */
static uint64_t slice_bits(const struct key_field *field, const uint8_t *record,
			   uint32_t from, uint32_t count)
{
	const uint8_t *bytes = record + field->offset + from;
	uint64_t bits = 0;

	if (count == 8)
		return load_be64(bytes);
	for (uint32_t i = 0; i < count; i++)
		bits |= (uint64_t)bytes[i] << (56 - 8 * i);
	return bits;
}

static u128 load_number(const struct key_field *field, const uint8_t *record)
{
	const uint8_t *bytes = record + field->offset;
	u128 bits = 0;

	for (uint32_t i = 0; i < field->length; i++)
		bits = bits << 8 |
		       bytes[field->is_big_endian ? i : field->length - 1 - i];
	return bits;
}

/* Of an infinity, all bits of the exponent are ones and all behind it zeros. */
static struct key_fold fold_of(const struct key_field *field)
{
	unsigned exponent_bits = field->length == 8 ? 11 : 8;

	if (field->length == 2 && !field->is_bfloat)
		exponent_bits = 5;
	return (struct key_fold){
		.infinity = (((uint64_t)1 << exponent_bits) - 1)
			    << (63 - exponent_bits),
		.nan = field->nans == KEY_NANS_LAST
			       ? UINT64_MAX << (64 - 8 * field->length)
			       : 0,
		.negate = field->is_descending ? UINT64_MAX : 0,
	};
}

/* The sign and the magnitude become a number in two's complement, so that -0 is
 * 0; with its sign bit inverted, such numbers compare as unsigned ones.  No
 * number is encoded as fold->nan, since infinity is below it. */
static uint64_t fold_float(const struct key_fold *fold, uint64_t bits)
{
	uint64_t sign_bit = (uint64_t)1 << 63;
	uint64_t magnitude = bits & ~sign_bit;
	uint64_t negate = -(bits >> 63) ^ fold->negate;

	if (magnitude > fold->infinity)
		return fold->nan;
	return ((magnitude ^ negate) - negate) ^ sign_bit;
}

static uint64_t folded_bits(const struct key_field *field,
			    const uint8_t *record, uint32_t from)
{
	struct key_fold fold = fold_of(field);
	uint64_t number = (uint64_t)load_number(field, record);

	return fold_float(&fold, number << (64 - 8 * field->length))
	       << 8 * from;
}

static u128 number_bits(const struct key_field *field, const uint8_t *record)
{
	u128 sign = (u128)1 << (8 * field->length - 1);
	u128 all = sign | (sign - 1);
	u128 bits = load_number(field, record);

	if (field->type == KEY_SIGNED)
		bits ^= sign;
	else if (field->type == KEY_FLOAT)
		bits ^= bits & sign ? all : sign;
	return bits;
}

static uint64_t field_bits(const struct key_field *field, const uint8_t *record,
			   uint32_t from, uint32_t count)
{
	uint64_t mask = UINT64_MAX << (64 - 8 * count);
	uint64_t bits;

	if (key_field_folds(field))
		return folded_bits(field, record, from) & mask;
	if (field->type == KEY_BYTES) {
		bits = slice_bits(field, record, from, count);
	} else {
		u128 number = number_bits(field, record);

		number <<= 8 * (KEY_NUMBER_BYTES_MAX - field->length + from);
		bits = (uint64_t)(number >> 64) & mask;
	}
	return field->is_descending ? bits ^ mask : bits;
}

uint64_t key_list_word(const struct key_list *keys, const uint8_t *record,
		       uint32_t skip)
{
	unsigned done = 0; /* bytes of the word */
	uint64_t word = 0;

	for (unsigned i = 0; i < keys->field_count && done < 8; i++) {
		const struct key_field *field = &keys->fields[i];
		uint32_t count;

		if (skip >= field->length) {
			skip -= field->length;
			continue;
		}
		count = MIN(field->length - skip, 8 - done);
		word |= field_bits(field, record, skip, count) >> 8 * done;
		done += count;
		skip = 0;
	}
	return word;
}

void key_list_encode(const struct key_list *keys, const uint8_t *record,
		     uint8_t *encoded)
{
	for (uint32_t skip = 0; skip < keys->length; skip += 8) {
		uint8_t bytes[8];

		store_be64(bytes, key_list_word(keys, record, skip));
		memcpy(encoded + skip, bytes, MIN(8, keys->length - skip));
	}
}

/* --- the prepared word -----------------------------------------------------
 */

/* The field's encoded bytes [from, from + count) are `count` bytes of the
 * record, in either order.  A shift brings them to the top of the eight bytes
 * that are read. */
static void prepare_slice(struct key_part *part, const struct key_field *field,
			  uint32_t record_size, uint32_t from, uint32_t count)
{
	bool is_reversed = field->type != KEY_BYTES && !field->is_big_endian;
	uint32_t first = field->offset +
			 (is_reversed ? field->length - from - count : from);
	uint64_t sign = from == 0 ? (uint64_t)1 << 63 : 0;
	uint32_t at = MIN(first, record_size - 8);
	uint32_t before = first - at;

	*part = (struct key_part){
		.at = at,
		.sign_at =
			field->offset + (is_reversed ? field->length - 1 : 0),
		.is_swapped = is_reversed,
		.left = (uint8_t)(8 *
				  (is_reversed ? 8 - before - count : before)),
		.mask = UINT64_MAX << (64 - 8 * count),
	};
	if (field->type == KEY_SIGNED || field->type == KEY_FLOAT)
		part->invert = sign;
	if (field->type == KEY_FLOAT)
		part->invert_if_negative = part->mask & ~sign;
	if (field->is_descending)
		part->invert ^= part->mask;
}

static void prepare_part(struct key_part *part, const struct key_field *field,
			 uint32_t record_size, uint32_t from, uint32_t count)
{
	if (!key_field_folds(field)) {
		prepare_slice(part, field, record_size, from, count);
		return;
	}
	/* Bytes behind the word leave it when it is shifted right. */
	prepare_slice(part, field, record_size, 0, field->length);
	part->invert = 0;
	part->fold = fold_of(field);
	part->skip = (uint8_t)(8 * from);
}

uint64_t key_word_read_folded(const struct key_word *word,
			      const uint8_t *record)
{
	uint64_t bits = 0;

	for (unsigned i = 0; i < word->folded_count; i++) {
		const struct key_part *part = &word->parts[i];
		uint64_t all;

		if (part->fold.infinity == 0) {
			bits |= key_part_read(part, record);
			continue;
		}
		all = load_be64(record + part->at);
		if (part->is_swapped)
			all = __builtin_bswap64(all);
		all = fold_float(&part->fold, all << part->left & part->mask);
		bits |= all << part->skip >> part->right;
	}
	return bits;
}

void key_word_prepare(struct key_word *word, const struct key_list *keys,
		      uint32_t record_size, uint32_t skip)
{
	unsigned done = 0, part_count = 0;
	bool folds = false;

	for (unsigned i = 0;
	     i < keys->field_count && done < 8 && record_size >= 8; i++) {
		const struct key_field *field = &keys->fields[i];
		struct key_part *part = &word->parts[part_count];
		uint32_t count;

		if (skip >= field->length) {
			skip -= field->length;
			continue;
		}
		count = MIN(field->length - skip, 8 - done);
		prepare_part(part, field, record_size, skip, count);
		part->right = (uint8_t)(8 * done);
		folds |= key_field_folds(field);
		part_count++;
		done += count;
		skip = 0;
	}
	word->part_count = folds ? 0 : part_count;
	word->folded_count = folds ? part_count : 0;
}
