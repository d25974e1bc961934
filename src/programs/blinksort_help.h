/*
 * blinksort_help.h - what blinksort --help prints
 */
#ifndef BLINKSORT_HELP_H
#define BLINKSORT_HELP_H

extern const char blinksort_help[];

#endif /* BLINKSORT_HELP_H */
