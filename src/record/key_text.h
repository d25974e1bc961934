/*
 * key_text.h - a field of a key list as users write it
 *
 *      OFFSET:LENGTH[:desc]    a slice of bytes
 *      OFFSET:TYPE[:desc]      a number: u8 u16 u32 u64 u128, i8 .. i128, f16,
 *                              bf16, f32, f64, little endian; or big endian:
 *                              u16be, ...
 *
 * Behind a float may also be :nanlast or :nanfirst.
 */
#ifndef KEY_TEXT_H
#define KEY_TEXT_H

#include "record/key_list.h"

/* Room for the longest: a number of 32 bits and ":bf16be:desc:nanfirst". */
#define KEY_TEXT_BYTES 32

/* Read a field.  Returns NULL; or what is wrong with the text, and *field means
 * nothing. */
const char *key_text_parse(const char *text, struct key_field *field);

/* Write a field; returns text. */
const char *key_text_format(const struct key_field *field,
			    char text[KEY_TEXT_BYTES]);

#endif /* KEY_TEXT_H */
