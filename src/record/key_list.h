/*
 * key_list.h - the keys of a record, encoded so that bytes compare as keys do
 *
 * A key list names up to KEY_FIELDS_MAX fields of a record; the first one
 * weighs most.  Each field is encoded into as many bytes as it has, which
 * compare as unsigned bytes in the field's order:
 *
 *      bytes      as they are
 *      unsigned   the most significant byte first
 *      signed     the same, with the sign bit inverted
 *      float      IEEE 754's totalOrder: the most significant byte first; of a
 *                 negative number all bits are inverted, of others the sign bit
 *
 * and all bits inverted once more if the field is descending.  A float whose
 * NaNs come last or first is folded instead (key_list.c).  The encoded
 * fields, one behind the other, are the encoded key: comparing two of them as
 * bytes compares the key lists.  (DuckDB and Arrow call it a row format.)
 *
 * The encoded key is never stored.  A sort asks for 64 bits of it at a time,
 * its words: word 0 makes the entries, and words behind it settle what word 0
 * leaves undecided.
 */
#ifndef KEY_LIST_H
#define KEY_LIST_H

#include <stdbool.h>
#include <stdint.h>

#include "base/base.h"

#define KEY_FIELDS_MAX 8
/* Numbers have 1, 2, 4, 8 or 16 bytes. */
#define KEY_NUMBER_BYTES_MAX 16

/* Ranks tell it in two bits (cluster_agree.c).  A float of another length needs
 * no type of its own. */
enum key_type {
	KEY_BYTES,
	KEY_UNSIGNED,
	KEY_SIGNED,
	KEY_FLOAT,
};

/* Where NaNs of a float come, in an ascending and in a descending field.  But
 * for KEY_NANS_IN_ORDER, all NaNs are equal, and so are -0 and 0. */
enum key_nans {
	KEY_NANS_IN_ORDER, /* IEEE 754's totalOrder */
	KEY_NANS_LAST,
	KEY_NANS_FIRST,
};

struct key_field {
	uint32_t offset; /* in the record */
	uint32_t length; /* bytes, 1 or more */
	enum key_type type;
	bool is_big_endian; /* false for KEY_BYTES, which have no such order */
	bool is_descending;
	bool is_bfloat; /* a float of 2 bytes: its exponent has 8 bits, not 5 */
	enum key_nans nans; /* KEY_NANS_IN_ORDER if the field is no float */
};

/* How to encode a float whose NaNs are equal.  Numbers are in the upper bits of
 * 64, with zeros below. */
struct key_fold {
	uint64_t infinity;
	uint64_t nan;	 /* the encoded NaN: the greatest, or the least */
	uint64_t negate; /* all ones if the field is descending, else 0 */
};

/*
 * The recipe for the part of a word that comes from one field: eight bytes of
 * the record, shifted left until the field's first bit is on top, masked,
 * inverted in some bits, and shifted right to their place.
 */
struct key_part {
	uint32_t at;	  /* of the eight bytes */
	uint32_t sign_at; /* the byte with the sign of a float */
	bool is_swapped;  /* the bytes are least significant first */
	uint8_t left, right;
	uint64_t mask;
	uint64_t invert;
	uint64_t invert_if_negative; /* of a float; else 0 */
	/* If fold.infinity is not 0, the part is all of a float, folded and
	 * shifted left past the bytes before the word. */
	struct key_fold fold;
	uint8_t skip;
};

struct key_word {
	/* 0: the record is too short for such loads, or some part is folded.
	 */
	unsigned part_count;
	unsigned folded_count; /* parts of a word of which some are folded */
	struct key_part parts[KEY_FIELDS_MAX];
};

struct key_list {
	unsigned field_count;
	struct key_field fields[KEY_FIELDS_MAX];

	/* key_list_complete() sets the following. */
	uint32_t length; /* bytes of the encoded key */
	/* The encoded key is the record's bytes from begin to end. */
	bool is_plain;
	uint32_t begin, end;  /* all fields lie between them */
	struct key_word head; /* word 0; means nothing if is_plain */
};

/* True if there can be such a field: the length is one that its type has. */
bool key_field_is_good(const struct key_field *field);

static inline uint64_t key_field_end(const struct key_field *field)
{
	return (uint64_t)field->offset + field->length;
}

/*
 * Called when the caller has set the fields, which are good and lie in the
 * record: joins those that are one slice (so that lists that order alike become
 * the same), and sets the rest.
 */
void key_list_complete(struct key_list *keys, uint32_t record_size);

/* True if fields of different bytes can be equal. */
static inline bool key_field_folds(const struct key_field *field)
{
	return field->nans != KEY_NANS_IN_ORDER;
}

/* Reverse the direction of each field; NaNs that come last or first still do.
 * The list must be completed afterwards. */
void key_list_reverse(struct key_list *keys);

/* True if two complete lists have the same fields. */
bool key_list_equal(const struct key_list *a, const struct key_list *b);

/* Returns bytes skip .. skip+7 of the encoded key, the first one most
 * significant, with zeros behind its end; skip <= length.  Reads the fields
 * only.  This function defines the encoding. */
uint64_t key_list_word(const struct key_list *keys, const uint8_t *record,
		       uint32_t skip);

/* Store the encoded key, keys->length bytes. */
void key_list_encode(const struct key_list *keys, const uint8_t *record,
		     uint8_t *encoded);

/* Prepare to read the word at skip of many records. */
void key_word_prepare(struct key_word *word, const struct key_list *keys,
		      uint32_t record_size, uint32_t skip);

static inline uint64_t key_part_read(const struct key_part *part,
				     const uint8_t *record)
{
	uint64_t bits = load_be64(record + part->at);

	if (part->is_swapped)
		bits = __builtin_bswap64(bits);
	bits = (bits << part->left & part->mask) ^ part->invert;
	if (part->invert_if_negative != 0)
		bits ^= part->invert_if_negative &
			-(uint64_t)(record[part->sign_at] >> 7);
	return bits >> part->right;
}

/* Returns what key_list_word() does, if word->folded_count is not 0: apart from
 * key_word_read(), which it would make slower by a tenth (results/NOTES.md). */
uint64_t key_word_read_folded(const struct key_word *word,
			      const uint8_t *record);

/* Returns what key_list_word() does, if word->part_count is not 0. */
static inline uint64_t key_word_read(const struct key_word *word,
				     const uint8_t *record)
{
	uint64_t bits = key_part_read(&word->parts[0], record);

	for (unsigned i = 1; i < word->part_count; i++)
		bits |= key_part_read(&word->parts[i], record);
	return bits;
}

#endif /* KEY_LIST_H */
