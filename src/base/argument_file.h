/*
 * argument_file.h - further arguments from a file, for the word @FILE
 *
 * A line of the file is an argument, all of it: there are no quotes.  A
 * carriage return before the end of a line, as Windows has it, is no part of
 * the line.  Empty lines, and those that begin with '#', are none.  A word of
 * the file is not looked for in other files.  Words behind "--" stay as they
 * are; a file whose own name begins with '@' is written ./@FILE.
 */
#ifndef ARGUMENT_FILE_H
#define ARGUMENT_FILE_H

struct failure;

/* Far more than arguments ever take: a longer file is data to be sorted. */
#define ARGUMENT_FILE_BYTES_MAX (1 << 20)

/*
 * Put the arguments of files in the place of their names.  *words are all words
 * of a command line, the program's name first, ended by NULL.  They stay if no
 * file is named; else *words is another array, of *count words, which lives
 * until the next call; the words themselves live as long as the process.
 * Returns 0; -EINVAL, or another -errno, with *failure filled: EXIT_FILE, for a
 * file that cannot be read, is longer than ARGUMENT_FILE_BYTES_MAX or has a
 * byte 0; EXIT_RESOURCES.
 */
int argument_file_expand(int *count, char ***words, struct failure *failure);

#endif /* ARGUMENT_FILE_H */
