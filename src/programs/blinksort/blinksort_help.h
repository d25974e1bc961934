/*
 * blinksort_help.h - what blinksort --help prints, and what blinksort says to
 * options of sort(1)
 */
#ifndef BLINKSORT_HELP_H
#define BLINKSORT_HELP_H

#include "base/options.h"

#define BLINKSORT_HINTS 22

/* Print the help for the --help just returned, which may have a topic.  Returns
 * 0, or -EINVAL with *failure filled if there is no such topic. */
int blinksort_help(struct options_reader *reader, struct failure *failure);

extern const struct options_hint blinksort_hints[BLINKSORT_HINTS];

#endif /* BLINKSORT_HELP_H */
