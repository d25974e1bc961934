/*
 * format.h - numbers and strings as text
 *
 * Each function writes into the caller's buffer, always ends it with a NUL, and
 * returns the buffer, so that the call can be an argument of printf().
 */
#ifndef FORMAT_H
#define FORMAT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#define FORMAT_U128_BYTES 40 /* 39 digits and the NUL */
#define FORMAT_SIZE_BYTES 24
#define FORMAT_DURATION_BYTES 24

char *format_u128(char buffer[FORMAT_U128_BYTES], unsigned __int128 value);

/* Write lower-case hexadecimal digits without prefix or leading zeros. */
char *format_u128_hex(char buffer[FORMAT_U128_BYTES], unsigned __int128 value);

/* Write two lower-case hexadecimal digits for each byte; the buffer has room
 * for 2 * count + 1 bytes. */
char *format_hex(char *buffer, const uint8_t *bytes, size_t count);

/* Write a size for people: "812 B", "1.5 KiB", "95.4 MiB". */
char *format_size(char buffer[FORMAT_SIZE_BYTES], uint64_t bytes);

/* Write a size for people, rounded up or down: of two sizes in one message the
 * larger one goes up and the smaller one down, so that they are not the same
 * text. */
char *format_size_up(char buffer[FORMAT_SIZE_BYTES], uint64_t bytes);
char *format_size_down(char buffer[FORMAT_SIZE_BYTES], uint64_t bytes);

/* Write a duration for people, with three figures: "812 ns", "45.1 us", "28.3
 * ms", "1.02 s". */
char *format_duration(char buffer[FORMAT_DURATION_BYTES], uint64_t ns);

/* The same texts as an argument of a call; their memory lives until the end of
 * the block that the call stands in. */
#define FORMAT_U128(value) format_u128((char[FORMAT_U128_BYTES]){ 0 }, value)
#define FORMAT_U128_HEX(value)                                                 \
	format_u128_hex((char[FORMAT_U128_BYTES]){ 0 }, value)
#define FORMAT_SIZE(bytes) format_size((char[FORMAT_SIZE_BYTES]){ 0 }, bytes)
#define FORMAT_DURATION(ns)                                                    \
	format_duration((char[FORMAT_DURATION_BYTES]){ 0 }, ns)

/* Write length bytes of text, or if they have no room, their beginning, "..."
 * and their end, cut between characters.  room is that of the buffer with the
 * NUL, 16 at least. */
char *format_shortened(char *buffer, size_t room, const char *text,
		       size_t length);

/* The length in bytes, 1 to 4, of the well-formed character (Unicode 15, table
 * 3-7) that text begins with, 0 if there is none or text is empty.  No overlong
 * forms, no surrogates, nothing above U+10FFFF.  Never reads past the NUL. */
size_t format_utf8_length(const char *text);

/* Print text as a JSON string with its quotes.  Bytes that are not well-formed
 * UTF-8 become U+FFFD, since JSON text must be UTF-8. */
void format_json_string(FILE *stream, const char *text);

/* Print this many bytes, which may hold NULs, as a JSON string; one NUL follows
 * them. */
void format_json_bytes(FILE *stream, const char *text, size_t bytes);

/* --- a line ----------------------------------------------------------------
 *
 * This and format_size() are async-signal-safe.  A line of all zeros is empty;
 * what has no room is cut.
 */

#define FORMAT_LINE_BYTES 240
/* A line that is drawn on a terminal is one column shorter than that, or it
 * would wrap; this is the longest. */
#define FORMAT_DRAWN_COLUMNS 79

struct format_line {
	char text[FORMAT_LINE_BYTES];
	size_t length;
};

void format_add(struct format_line *line, const char *text);
void format_add_number(struct format_line *line, uint64_t number);
/* "45%" of 0.454 */
void format_add_percent(struct format_line *line, double part);

#endif /* FORMAT_H */
