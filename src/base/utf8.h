/*
 * utf8.h - where text is well-formed UTF-8 (Unicode 15, table 3-7)
 */
#ifndef UTF8_H
#define UTF8_H

#include <stddef.h>

/* The length in bytes, 1 to 4, of the well-formed character that text begins
 * with, 0 if there is none or text is empty.  No overlong forms, no surrogates,
 * nothing above U+10FFFF.  Never reads past the NUL. */
size_t utf8_length(const char *text);

#endif /* UTF8_H */
