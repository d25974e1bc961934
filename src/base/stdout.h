/*
 * stdout.h - the standard output of every program: --help, --version, and its
 * end
 */
#ifndef BASE_STDOUT_H
#define BASE_STDOUT_H

/* Print the help text, or "program COMMIT".  question is OPTIONS_HELP or
 * OPTIONS_VERSION, as options_read() returns it.  Returns the exit status, as
 * stdout_finish() does. */
int stdout_print_info(int question, const char *program, const char *help);

/* Let no file or socket that is opened later become standard input, output or
 * error where the caller has closed these: what is printed would go there. */
void stdout_reserve(void);

/* Write what was printed so far, before lines on standard error follow it. */
void stdout_flush(void);

/* Flush standard output.  Returns EXIT_DONE; or EXIT_FILE, after printing the
 * reason, if something could not be written now or before. */
int stdout_finish(void);

#endif /* BASE_STDOUT_H */
