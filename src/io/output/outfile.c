/*
 * outfile.c - a file that gets its name when it is complete, or none
 */
#include "io/output/outfile.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/base.h"
#include "base/failure.h"
#include "io/output/outpath.h"
#include "io/output/outtarget.h"
#include "io/output/permissions.h"

/* Names left behind by killed processes whose number comes round again. */
#define HIDDEN_NAME_TRIES 100
/* A file belongs to this user only until it is complete: a process that opens
 * it early could read, or write, all that comes later. */
#define HIDDEN_MODE 0600

/*
 * A hidden name that is to be removed when a signal ends the process.  Entries
 * are used again but never freed: a handler may be walking the list.
 */
struct outfile_hidden {
	struct outfile_hidden *next;
	_Atomic int folder_fd; /* -1: entry is free */
	char name[NAME_MAX + 1];
};

static struct outfile_hidden *_Atomic hidden_list;
/* Held while an entry is taken from the list and armed. */
static pthread_mutex_t hidden_lock = PTHREAD_MUTEX_INITIALIZER;
/* A child made by fork(2) shares the list but must not act on it. */
static _Atomic pid_t hidden_owner;

/* --- hidden names ------------------------------------------------------- */

void outfile_remove_hidden(void)
{
	if (atomic_load(&hidden_owner) != getpid())
		return;
	for (struct outfile_hidden *hidden = atomic_load(&hidden_list); hidden;
	     hidden = hidden->next) {
		int folder_fd = atomic_load(&hidden->folder_fd);

		if (folder_fd >= 0)
			unlinkat(folder_fd, hidden->name, 0);
	}
}

/* SA_RESETHAND has put the default action back: it takes place as soon as this
 * returns, so the parent sees which signal it was. */
static void on_fatal_signal(int number)
{
	int saved = errno;

	outfile_remove_hidden();
	raise(number);
	errno = saved;
}

static void catch_fatal_signals(void)
{
	static const int numbers[] = { SIGINT, SIGTERM, SIGHUP };
	struct sigaction action = {
		.sa_handler = on_fatal_signal,
		.sa_flags = (int)SA_RESETHAND,
	};

	if (atomic_exchange(&hidden_owner, getpid()) == getpid())
		return;
	sigfillset(&action.sa_mask);
	for (size_t i = 0; i < ARRAY_LEN(numbers); i++) {
		struct sigaction old;

		/* A signal that is ignored (nohup) or caught already stays so.
		 */
		if (sigaction(numbers[i], NULL, &old) == 0 &&
		    !(old.sa_flags & SA_SIGINFO) && old.sa_handler == SIG_DFL)
			sigaction(numbers[i], &action, NULL);
	}
}

/* An entry with a free place; not armed yet. */
static struct outfile_hidden *hidden_take(void)
{
	struct outfile_hidden *hidden;

	for (hidden = atomic_load(&hidden_list); hidden; hidden = hidden->next)
		if (atomic_load(&hidden->folder_fd) < 0)
			return hidden;
	hidden = calloc(1, sizeof(*hidden));
	if (!hidden)
		return NULL;
	atomic_init(&hidden->folder_fd, -1);
	hidden->next = atomic_load(&hidden_list);
	atomic_store(&hidden_list, hidden);
	return hidden;
}

/* ".NAME.blinksort-MARK"; NAME is cut to fit. */
static void marked_name(char buffer[NAME_MAX + 1], const char *name,
			const char *mark)
{
	char suffix[64];
	int length = snprintf(suffix, sizeof(suffix), ".blinksort-%.48s", mark);

	snprintf(buffer, NAME_MAX + 1, ".%.*s%s", NAME_MAX - 1 - length, name,
		 suffix);
}

/* The mark is our PID, and "-ATTEMPT" after the first. */
static void hidden_name(char buffer[NAME_MAX + 1], const char *name,
			unsigned attempt)
{
	char mark[48];

	if (attempt == 0)
		snprintf(mark, sizeof(mark), "%ld", (long)getpid());
	else
		snprintf(mark, sizeof(mark), "%ld-%u", (long)getpid(), attempt);
	marked_name(buffer, name, mark);
}

static void hold_signals(sigset_t *old)
{
	sigset_t all;

	sigfillset(&all);
	pthread_sigmask(SIG_BLOCK, &all, old);
}

static void release_signals(const sigset_t *old)
{
	pthread_sigmask(SIG_SETMASK, old, NULL);
}

/* --- the file ------------------------------------------------------------ */

static void open_own(struct outfile *file, struct outfile_hidden *hidden)
{
	for (unsigned i = 0; i < HIDDEN_NAME_TRIES; i++) {
		hidden_name(hidden->name, file->name, i);
		file->fd = openat(file->folder_fd, hidden->name,
				  O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC,
				  HIDDEN_MODE);
		if (file->fd >= 0 || errno != EEXIST)
			break;
	}
}

/* The file is not opened for reading: NFS would read a page before a part of it
 * is written, and write all of it back, over what another machine has written
 * there. */
static void open_marked(struct outfile *file, struct outfile_hidden *hidden,
			const char *mark)
{
	marked_name(hidden->name, file->name, mark);
	file->fd = openat(file->folder_fd, hidden->name,
			  O_WRONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC,
			  HIDDEN_MODE);
}

/* error: an errno value */
static int fail(const struct outfile *file, int error, const char *why,
		struct failure *failure)
{
	return failure_set(failure, EXIT_FILE, file->path, error, "%s", why);
}

/* Signals are held back, so that the name is never there without being on the
 * list, nor on the list while it is another's. */
static int create_hidden(struct outfile *file, const char *mark,
			 struct failure *failure)
{
	struct outfile_hidden *hidden;
	sigset_t old;
	int error =
		outtarget_check_folder(file->folder_fd, file->path, failure);

	if (error)
		return error;
	pthread_mutex_lock(&hidden_lock);
	hidden = hidden_take();
	if (hidden) {
		catch_fatal_signals();
		hold_signals(&old);
		if (mark)
			open_marked(file, hidden, mark);
		else
			open_own(file, hidden);
		error = file->fd < 0 ? errno : 0;
		if (!error) {
			atomic_store(&hidden->folder_fd, file->folder_fd);
			file->hidden = hidden;
		}
		release_signals(&old);
	}
	pthread_mutex_unlock(&hidden_lock);
	if (!hidden)
		error = ENOMEM;
	return error ? fail(file, error, "cannot create", failure) : 0;
}

/* A name for the nameless; 0 or -errno. */
static int link_as(const struct outfile *file, const char *name)
{
	char self[32];

	/* AT_EMPTY_PATH needs a capability or Linux 6.10; the way below needs
	 * /proc. */
	if (linkat(file->fd, "", file->folder_fd, name, AT_EMPTY_PATH) == 0)
		return 0;
	if (errno != ENOENT && errno != EPERM)
		return -errno;
	snprintf(self, sizeof(self), "/proc/self/fd/%d", file->fd);
	if (linkat(AT_FDCWD, self, file->folder_fd, name, AT_SYMLINK_FOLLOW))
		return -errno;
	return 0;
}

/* The kernel looks at all but the file system before it says that "." is there
 * already: that the call is allowed, and that the file can be named, by its
 * descriptor or by /proc.  It takes 1 us. */
static bool can_link(const struct outfile *file)
{
	return link_as(file, ".") == -EEXIST;
}

/* A new file gets the mode that the kernel gives by default: while it has no
 * name, only this user's processes can open it.  A file that replaces another
 * gets that one's permissions in the end, and none before. */
static int create_file(struct outfile *file, bool replaces,
		       struct failure *failure)
{
	file->fd = openat(file->folder_fd, ".", O_TMPFILE | O_RDWR | O_CLOEXEC,
			  replaces ? HIDDEN_MODE : 0666);
	if (file->fd >= 0 && can_link(file)) {
		file->has_permissions = !replaces;
		return 0;
	}
	if (file->fd >= 0)
		close(file->fd);
	/* These errors mean that there is no O_TMPFILE: the file system's
	 * answer, an old kernel's, and that of an old kernel's C library. */
	else if (errno != EOPNOTSUPP && errno != EISDIR && errno != EINVAL)
		return fail(file, errno, "cannot create", failure);
	file->fd = -1;
	return create_hidden(file, NULL, failure);
}

int outfile_open(struct outfile *file, const char *path, const char *mark,
		 struct failure *failure)
{
	struct stat status;
	int error, target_fd;

	*file = (struct outfile){ .fd = -1, .path = path };
	error = outpath_open(path, &file->folder_fd, &file->name, failure);
	if (error)
		goto close;
	target_fd = outtarget_open(file->folder_fd, file->name, path, &status,
				   failure);
	if (target_fd >= 0) {
		file->target_uid = status.st_uid;
		close(target_fd);
	} else if (target_fd == -ENOENT) {
		file->target_uid = geteuid();
	} else {
		error = target_fd;
		goto close;
	}
	error = mark ? create_hidden(file, mark, failure)
		     : create_file(file, target_fd >= 0, failure);
	if (error == 0)
		return 0;
close:
	outfile_close(file);
	return error;
}

void outfile_remove_shared(const char *path, const char *mark)
{
	char hidden[NAME_MAX + 1], *name;
	struct failure failure;
	int folder_fd;

	if (outpath_open(path, &folder_fd, &name, &failure) < 0)
		return;
	marked_name(hidden, name, mark);
	unlinkat(folder_fd, hidden, 0);
	close(folder_fd);
	free(name);
}

int outfile_reopen(const struct outfile *file)
{
	int fd = openat(file->folder_fd, file->hidden->name,
			O_RDONLY | O_NOFOLLOW | O_CLOEXEC);

	return fd < 0 ? -errno : fd;
}

bool outfile_same_target(const struct outfile *a, const struct outfile *b)
{
	struct stat a_folder, b_folder;

	return a->name && b->name && strcmp(a->name, b->name) == 0 &&
	       fstat(a->folder_fd, &a_folder) == 0 &&
	       fstat(b->folder_fd, &b_folder) == 0 &&
	       a_folder.st_dev == b_folder.st_dev &&
	       a_folder.st_ino == b_folder.st_ino;
}

bool outfile_replaces(const struct outfile *file, dev_t device, ino_t inode)
{
	struct stat status;

	return fstatat(file->folder_fd, file->name, &status,
		       AT_SYMLINK_NOFOLLOW) == 0 &&
	       status.st_dev == device && status.st_ino == inode;
}

/* --- the end ------------------------------------------------------------- */

/* The output gets the owner of the file that it replaces.  So another user
 * could put a file there while the sort runs, to read the output. */
static int check_owner(const struct outfile *file, const struct stat *status,
		       struct failure *failure)
{
	if (status->st_uid == file->target_uid || status->st_uid == geteuid())
		return 0;
	return fail(file, EEXIST,
		    "another user has made a file there meanwhile", failure);
}

/* Give it the permissions of what stands under its name, or of a new file: 1 if
 * there is something, 0, or -errno with *failure filled. */
static int give_permissions(struct outfile *file, struct failure *failure)
{
	struct permissions permissions;
	struct stat status;
	int fd = outtarget_open(file->folder_fd, file->name, file->path,
				&status, failure);
	int error;

	if (fd >= 0) {
		permissions_read(&permissions, fd, &status);
		close(fd);
		error = check_owner(file, &status, failure);
		if (error)
			return error;
		error = permissions_give(&permissions, file->fd);
		if (error)
			return fail(file, -error, "cannot set its permissions",
				    failure);
	} else if (fd == -ENOENT) {
		/* If the kernel refuses them, the file stays this user's only.
		 */
		permissions_of_new(&permissions, file->folder_fd);
		permissions_give(&permissions, file->fd);
	} else {
		return fd;
	}
	file->has_permissions = true;
	return fd >= 0;
}

/* Remove a name that could not become the file's own; left, of NAME_MAX + 1
 * bytes, is its copy if it stays: some folders let a user make names only. */
static bool remove_name(const struct outfile *file, const char *name,
			char *left)
{
	if (unlinkat(file->folder_fd, name, 0) == 0 || errno == ENOENT)
		return true;
	strcpy(left, name);
	return false;
}

/* No system call links over a name, so link beside it, then rename. */
static int link_and_rename(const struct outfile *file, char *left)
{
	char beside[NAME_MAX + 1];
	sigset_t old;
	int error = -EEXIST;

	hold_signals(&old);
	for (unsigned i = 0; i < HIDDEN_NAME_TRIES && error == -EEXIST; i++) {
		hidden_name(beside, file->name, i);
		error = link_as(file, beside);
	}
	if (!error &&
	    renameat(file->folder_fd, beside, file->folder_fd, file->name)) {
		error = -errno;
		remove_name(file, beside, left);
	}
	release_signals(&old);
	return error;
}

static int rename_hidden(struct outfile *file, char *left)
{
	sigset_t old;
	int error = 0;

	hold_signals(&old);
	if (renameat(file->folder_fd, file->hidden->name, file->folder_fd,
		     file->name))
		error = -errno;
	if (error == 0 || remove_name(file, file->hidden->name, left)) {
		atomic_store(&file->hidden->folder_fd, -1);
		file->hidden = NULL;
	}
	release_signals(&old);
	return error;
}

static int give_name(struct outfile *file, struct failure *failure)
{
	char left[NAME_MAX + 1] = "";
	int error = -EEXIST;
	int found;

	if (!file->hidden && file->has_permissions)
		error = link_as(file, file->name);
	if (error == -EEXIST) {
		found = give_permissions(file, failure);
		if (found < 0)
			return found;
		file->replaced = found;
		error = file->hidden ? rename_hidden(file, left)
				     : link_and_rename(file, left);
	}
	if (left[0] != '\0')
		return failure_set(failure, EXIT_FILE, file->path, -error,
				   "cannot give it its name, and cannot remove "
				   "%s beside it, which is complete",
				   left);
	if (error)
		return fail(file, -error, "cannot give it its name", failure);
	file->linked = true;
	return 0;
}

/* Remove the name, unless it is another file's by now. */
void outfile_roll_back(struct outfile *file)
{
	struct stat ours;

	if (!file->linked || file->replaced)
		return;
	if (fstat(file->fd, &ours) == 0 &&
	    outfile_replaces(file, ours.st_dev, ours.st_ino))
		unlinkat(file->folder_fd, file->name, 0);
	file->linked = false;
}

static int sync_file(const struct outfile *file, struct failure *failure)
{
	if (fsync(file->fd))
		return fail(file, errno, "cannot sync", failure);
	return 0;
}

/* Permissions are on the medium before the name is, too. */
static int sync_complete(struct outfile *file, struct failure *failure)
{
	int found = file->has_permissions ? 0 : give_permissions(file, failure);

	return found < 0 ? found : sync_file(file, failure);
}

static int sync_folder(const struct outfile *file, struct failure *failure)
{
	/* EBADF: the folder could only be opened by O_PATH. */
	if (fsync(file->folder_fd) && (errno != EBADF || syncfs(file->fd)))
		return fail(file, errno, "cannot sync its folder", failure);
	return 0;
}

/* The close of any descriptor sends what NFS and its kind have kept back; a
 * file system of this machine has nothing to do there. */
int outfile_flush(const struct outfile *file, bool sync,
		  struct failure *failure)
{
	int fd;

	if (sync)
		return sync_file(file, failure);
	fd = fcntl(file->fd, F_DUPFD_CLOEXEC, 0);
	if (fd < 0 || close(fd) < 0)
		return fail(file, errno, "cannot write", failure);
	return 0;
}

int outfile_commit_all(struct outfile *const *files, unsigned count, bool sync,
		       struct failure *failure)
{
	int error = 0;

	for (unsigned i = 0; sync && !error && i < count; i++)
		error = sync_complete(files[i], failure);
	for (unsigned i = 0; !error && i < count; i++)
		error = give_name(files[i], failure);
	for (unsigned i = 0; sync && !error && i < count; i++)
		error = sync_folder(files[i], failure);
	for (unsigned i = 0; error && i < count; i++)
		outfile_roll_back(files[i]);
	return error;
}

int outfile_commit(struct outfile *file, bool sync, struct failure *failure)
{
	return outfile_commit_all(&file, 1, sync, failure);
}

void outfile_close(struct outfile *file)
{
	if (file->hidden) {
		unlinkat(file->folder_fd, file->hidden->name, 0);
		atomic_store(&file->hidden->folder_fd, -1);
	}
	/* A name is what a file that was ever opened has. */
	if (file->name) {
		if (file->fd >= 0)
			close(file->fd);
		if (file->folder_fd >= 0)
			close(file->folder_fd);
		free(file->name);
	}
	*file = (struct outfile){ 0 };
}
