/*
 * version.h - which commit this was built from, as --version shows it
 */
#ifndef VERSION_H
#define VERSION_H

/* "git describe --always --dirty", or "unknown" outside a repository. */
extern const char blinksort_version[];

#endif /* VERSION_H */
