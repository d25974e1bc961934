/*
 * skip.h - a case that cannot run here says why
 *
 * tests/run takes the last line that a skipped case has printed for its reason.
 * The words are those of tool_lib.sh where the cause is the same.
 */
#ifndef SKIP_H
#define SKIP_H

#define skip_because(why)                                                      \
	do {                                                                   \
		print_message("%s\n", why);                                    \
		skip();                                                        \
	} while (0)

#endif /* SKIP_H */
