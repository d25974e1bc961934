/*
 * answer.h - what every program answers on standard output
 */
#ifndef ANSWER_H
#define ANSWER_H

/* question: OPTIONS_HELP or OPTIONS_VERSION, as options_read() returns it.
 * Writes help, or "program COMMIT"; returns the exit status, as below. */
int answer_question(int question, const char *program, const char *help);

/* Write out standard output: EXIT_DONE, or EXIT_FILE after saying why. */
int answer_finish(void);

#endif /* ANSWER_H */
