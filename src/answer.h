/*
 * answer.h - what every program answers on standard output
 */
#ifndef ANSWER_H
#define ANSWER_H

#include <stdbool.h>

/* If --help or --version stands among the options at the beginning, print help
 * or "program COMMIT"; argv[0] is skipped.  True: that was all there is to do,
 * answer_finish() gives the status. */
bool answer_question(char **argv, const char *program, const char *help);

/* Write out standard output: EXIT_DONE, or EXIT_FILE after saying why. */
int answer_finish(void);

#endif /* ANSWER_H */
