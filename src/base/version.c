/* version.c - what this was built from, as --version shows it */
#include "base/version.h"

/* The Makefile defines it for this file alone, so that a new commit compiles
 * one file. */
#ifndef BLINKSORT_VERSION
#define BLINKSORT_VERSION "unknown"
#endif

const char blinksort_version[] = BLINKSORT_VERSION;
