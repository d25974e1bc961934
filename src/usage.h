/*
 * usage.h - what is wrong with a command line: one line, and the end
 *
 * For the mains alone: these print and end the process with EXIT_USAGE.
 */
#ifndef USAGE_H
#define USAGE_H

#include <stdint.h>

/* "program: message\n" */
__attribute__((noreturn, format(printf, 1, 2))) void
usage_error(const char *format, ...);

/* The number of an option --NAME=TEXT, min..max. */
uint64_t usage_number(const char *name, const char *text, uint64_t min,
		      uint64_t max);

#endif /* USAGE_H */
