/*
 * blinksort_help.h - what blinksort --help prints, and what blinksort says to
 * options of sort(1)
 */
#ifndef BLINKSORT_HELP_H
#define BLINKSORT_HELP_H

#include "base/options.h"

#define BLINKSORT_HINTS 8

extern const char blinksort_help[];
extern const struct options_hint blinksort_hints[BLINKSORT_HINTS];

#endif /* BLINKSORT_HELP_H */
