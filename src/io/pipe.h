/*
 * pipe.h - bytes that come and go in order: a pipe, a socket, a terminal
 *
 * A descriptor that does not block (O_NONBLOCK, which another process may have
 * set on the open file that both share) is waited for by poll(2).  Any thread
 * may call the functions; the caller sees to it that only one thread at a time
 * reads or writes a descriptor.
 */
#ifndef PIPE_H
#define PIPE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct failure;

/* The word that stands for standard input or output in place of a file's name,
 * and what messages call them. */
#define PIPE_WORD "-"
#define PIPE_INPUT_NAME "standard input"
#define PIPE_OUTPUT_NAME "standard output"

/* True if the path is that word. */
bool pipe_is_word(const char *path);

/* Check that standard input or output is open and no terminal, before any file
 * is opened, which could get its number.  name is one of the two above; use is
 * what fails if it is closed, such as "cannot read".  0 or -errno with *failure
 * filled. */
int pipe_check(int fd, const char *name, const char *use,
	       struct failure *failure);

/* Let a pipe hold 1 MiB, the most that the kernel allows every user, instead of
 * 64 KiB: the two processes then wait for each other less often.  A refusal is
 * ignored; nothing happens to what is no pipe, or is as large already. */
void pipe_widen(int fd);

/* Read length_bytes, fewer only at the end.  Returns the count or -errno. */
ssize_t pipe_read(int fd, uint8_t *bytes, size_t length_bytes);

/* Write all.  0 or -errno; -EPIPE, where SIGPIPE is ignored: the reader has
 * gone. */
int pipe_write(int fd, const uint8_t *bytes, size_t length_bytes);

#endif /* PIPE_H */
