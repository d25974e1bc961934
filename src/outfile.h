/*
 * outfile.h - a file that appears under its name whole, or not at all
 *
 * It is made without a name (O_TMPFILE) in the folder where it will stand and
 * gets its name by linkat(2) when it is complete, so that even a process that
 * is killed leaves nothing behind.  Where a file of that name exists, the new
 * one is linked beside it and renamed over it, with signals held back in
 * between.  On file systems without O_TMPFILE a hidden named file takes its
 * place, removed on failure and by the handlers of SIGINT, SIGTERM and SIGHUP.
 *
 * A name that exists and is no regular file is refused; a symbolic link is
 * followed, so that the file it points to is replaced and the link stays.
 */
#ifndef OUTFILE_H
#define OUTFILE_H

#include <stdbool.h>

struct failure;

struct outfile {
	int fd; /* readable and writable; -1: not open */
	const char *path; /* borrowed, as the user gave it */
	char *folder; /* owned */
	char *name; /* owned; the last part of the resolved path */
	char *beside; /* owned; the hidden file's name, or NULL: it has none */
	int folder_fd;
	bool linked; /* committed: abandon takes the name away again */
	bool replaced; /* an older file stood there: abandon can't undo */
};

/* Zeroed, it is safe to abandon. */
#define OUTFILE_NONE { .fd = -1, .folder_fd = -1 }

int outfile_open(struct outfile *file, const char *path,
		 struct failure *failure);

/* Give it its name; with sync, file and folder are on the medium first.  The
 * descriptor stays open. */
int outfile_commit(struct outfile *file, bool sync, struct failure *failure);

/* Close and free; if it was not committed, nothing is left of it. */
void outfile_close(struct outfile *file);

/* Several files as one: commits all in order; when one fails, those already
 * linked by this call (and that replaced nothing) are removed again. */
int outfile_commit_all(struct outfile *files, unsigned count, bool sync,
		       struct failure *failure);

/* From a signal handler: remove every hidden named file.  Async-signal-safe. */
void outfile_remove_hidden(void);

#endif /* OUTFILE_H */
