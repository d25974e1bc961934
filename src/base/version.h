/*
 * version.h - what this was built from, as --version shows it
 */
#ifndef VERSION_H
#define VERSION_H

/*
 * This is one word, VERSION+COMMIT: the newest version in NEWS, and the
 * abbreviated commit with "-dirty" behind it if files were changed; COMMIT is
 * "unknown" where neither git nor a file knows it.
 */
extern const char blinksort_version[];

#endif /* VERSION_H */
