/*
 * json.h - print a JSON document on stdout
 *
 * Each call prints one value, behind a comma where one belongs.  key names the
 * value in an object; in an array it is NULL.  One thread prints one document
 * at a time.
 */
#ifndef JSON_H
#define JSON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Begin a document with its schema, and end it and its line. */
void json_begin(const char *schema);
void json_end(void);

/* Open an object by '{' or an array by '[', and close it by the other bracket.
 */
void json_open(const char *key, char bracket);
void json_close(char bracket);
/* The same if what it has is known; or else print null.  Returns is_known. */
bool json_open_known(const char *key, bool is_known, char bracket);

/* Let the next value of an array stand on a line of its own. */
void json_line(void);

void json_bool(const char *key, bool is_true);
void json_number(const char *key, uint64_t number);
/* The number is rounded to this many decimals. */
void json_decimal(const char *key, double number, int decimals);
/* This prints null if the number is not known. */
void json_known(const char *key, bool is_known, int64_t number);
/* This prints null if text is NULL. */
void json_text(const char *key, const char *text);
/* The bytes are printed as format_json_bytes() prints them. */
void json_bytes(const char *key, const char *text, size_t bytes);

#endif /* JSON_H */
