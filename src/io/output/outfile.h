/*
 * outfile.h - a file that appears under its name whole, or not at all
 *
 * It is made without a name (O_TMPFILE) in the folder where it will stand and
 * gets its name by linkat(2) when it is complete, so that even a process that
 * is killed leaves nothing behind.  Where a file of that name exists, the new
 * one is linked beside it and renamed over it, with signals held back in
 * between.  On file systems without O_TMPFILE, and where a file without a name
 * cannot be linked (which is tried when it is opened, as far as the kernel
 * tells without doing it), a hidden named file takes its place, removed on
 * failure and by the handlers of SIGINT, SIGTERM and SIGHUP, which are
 * installed only then.
 *
 * A file that several processes write together, maybe on several machines, is
 * always a hidden named one, whose name they agree on.  One of them commits it;
 * a process that gives up removes it, and then it cannot be committed.
 *
 * A hidden file is open to this user only, mode 0600: all processes that share
 * one are of one user.  Right before it gets its name it gets the permissions
 * of the file that stands there (permissions.h), or of a new file.
 *
 * A name that exists is refused if it is no regular file, or one that this
 * process could not or should not replace (outtarget.h); a symbolic link is
 * followed (outpath.h).
 *
 * The functions belong to the thread that opened the file; several threads may
 * have files of their own.
 */
#ifndef OUTFILE_H
#define OUTFILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct failure;
struct outfile_hidden;

struct outfile {
	int fd;		  /* readable (unless shared) and writable */
	const char *path; /* borrowed, as the user gave it */
	int folder_fd;
	char *name; /* owned; last part of the resolved path; NULL: not open */
	struct outfile_hidden
		*hidden;      /* its name so far, or NULL: it has none */
	uid_t target_uid;     /* owner of what stood under its name when it was
				 opened; this user if nothing did */
	bool has_permissions; /* those that it is to have under its name */
	bool linked;	      /* it has its name: close leaves it alone */
	bool replaced; /* an older file stood there: that can't be undone */
};

/*
 * Open a file of this process's own; or, with a mark, which no other run may
 * know, one file for all processes that give the same mark: the first makes the
 * hidden file, and all have it open.  Returns 0 or -errno with *failure filled;
 * then *file is not open.
 */
int outfile_open(struct outfile *file, const char *path, const char *mark,
		 struct failure *failure);

/* Remove the hidden file of this path and mark, if it is there: it has not been
 * committed, and the processes that have it open may have been killed. */
void outfile_remove_shared(const char *path, const char *mark);

/* True if both are open and would have the same name in the same folder. */
bool outfile_same_target(const struct outfile *a, const struct outfile *b);

/* True if what stands under its name is this file. */
bool outfile_replaces(const struct outfile *file, dev_t device, ino_t inode);

/* Give it its name; with sync, file and folder are on the medium when this
 * returns, and the file is before it has the name.  The descriptor stays open.
 * Returns 0 or -errno with *failure filled. */
int outfile_commit(struct outfile *file, bool sync, struct failure *failure);

/* A shared one again, before it is committed, to be read: what others flushed
 * before is there.  The descriptor is the caller's; -errno. */
int outfile_reopen(const struct outfile *file);

/* Other machines that have the file open see from now on what was written; with
 * sync, it is on the medium.  0 or -errno with *failure filled. */
int outfile_flush(const struct outfile *file, bool sync,
		  struct failure *failure);

/* Commit several files as one, in order; when one fails, those already linked
 * by this call (and that replaced nothing) are removed again. */
int outfile_commit_all(struct outfile *const *files, unsigned count, bool sync,
		       struct failure *failure);

/* Roll back a commit: take the name away again, if the file was committed and
 * replaced nothing. */
void outfile_roll_back(struct outfile *file);

/* Close and free; if it was not committed, nothing is left of it.  Safe on a
 * zeroed struct, and twice. */
void outfile_close(struct outfile *file);

/* Remove every hidden named file.  It is async-signal-safe: a signal handler
 * calls it, in any thread. */
void outfile_remove_hidden(void);

#endif /* OUTFILE_H */
