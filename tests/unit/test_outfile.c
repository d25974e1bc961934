/* What outfile promises: whole or not at all, on file systems with O_TMPFILE
 * and (by its test switch) without.  Every test runs in both worlds. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "descriptors.h"
#include "base/failure.h"
#include "folder.h"
#include "io/output/outfile.h"
#include "io/output/outpath.h"
#include "skip.h"

static char folder[64];
static int root_fd;

/* No file system has O_TMPFILE. */
static bool without_tmpfile;

int __real_openat(int folder_fd, const char *path, int flags, ...);
int __wrap_openat(int folder_fd, const char *path, int flags, ...);

int __wrap_openat(int folder_fd, const char *path, int flags, ...)
{
	mode_t mode = 0;

	if ((flags & O_CREAT) || (flags & O_TMPFILE) == O_TMPFILE) {
		va_list arguments;

		va_start(arguments, flags);
		mode = va_arg(arguments, mode_t);
		va_end(arguments);
	}
	if (!without_tmpfile || (flags & O_TMPFILE) != O_TMPFILE)
		return __real_openat(folder_fd, path, flags, mode);
	errno = EOPNOTSUPP;
	return -1;
}

/* --- a fresh folder for each test, which is also the working directory ---- */

static int setup_named(void **state)
{
	(void)state;
	snprintf(folder, sizeof(folder), "/tmp/test_outfile.XXXXXX");
	assert_non_null(mkdtemp(folder));
	assert_int_equal(chdir(folder), 0);
	without_tmpfile = false;
	umask(022);
	return 0;
}

static int setup_hidden(void **state)
{
	setup_named(state);
	without_tmpfile = true;
	return 0;
}

static int teardown(void **state)
{
	char command[192];

	(void)state;
	assert_int_equal(fchdir(root_fd), 0);
	/* A folder that may not be read can't be emptied either. */
	snprintf(command, sizeof(command), "chmod -R u+rwX '%s' && rm -rf '%s'",
		 folder, folder);
	return system(command);
}

static void make(const char *path, const char *text, mode_t mode)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_EXCL, 0600);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	assert_int_equal(fchmod(fd, mode), 0);
	close(fd);
}

static void assert_content(const char *path, const char *text)
{
	char buffer[256];
	int fd = open(path, O_RDONLY);
	ssize_t length;

	assert_true(fd >= 0);
	length = read(fd, buffer, sizeof(buffer) - 1);
	assert_true(length >= 0);
	buffer[length] = '\0';
	assert_string_equal(buffer, text);
	close(fd);
}

static mode_t mode_of(const char *path)
{
	struct stat status;

	assert_int_equal(lstat(path, &status), 0);
	return status.st_mode & 07777;
}

static void open_ok(struct outfile *file, const char *path, const char *text)
{
	struct failure failure = { 0 };

	assert_int_equal(outfile_open(file, path, NULL, &failure), 0);
	assert_int_equal(write(file->fd, text, strlen(text)), strlen(text));
}

static void commit_ok(struct outfile *file, bool sync)
{
	struct failure failure = { 0 };

	assert_int_equal(outfile_commit(file, sync, &failure), 0);
	assert_int_equal(failure.status, EXIT_DONE);
}

static void open_fails(const char *path, int error, const char *why)
{
	struct outfile file = { 0 };
	struct failure failure = { 0 };

	assert_int_equal(outfile_open(&file, path, NULL, &failure), error);
	assert_int_equal(failure.status, EXIT_FILE);
	assert_ptr_equal(failure.what, path);
	assert_non_null(strstr(failure.why, why));
	outfile_close(&file);
}

/* --- outfile_open --------------------------------------------------------- */

static void outfile_open__nothing_under_the_name_before_commit(void **state)
{
	struct outfile file;

	(void)state;
	open_ok(&file, "out", "text");
	assert_int_equal(access("out", F_OK), -1);
	outfile_close(&file);
	assert_int_equal(count_entries("."), 0);
}

static void outfile_open__folder_missing(void **state)
{
	(void)state;
	open_fails("none/out", -ENOENT, "folder");
}

static void outfile_open__folder_is_a_file(void **state)
{
	(void)state;
	make("file", "", 0644);
	open_fails("file/out", -ENOTDIR, "folder");
}

static void outfile_open__empty_path(void **state)
{
	(void)state;
	open_fails("", -ENOENT, "No such file");
}

static void outfile_open__directory(void **state)
{
	(void)state;
	assert_int_equal(mkdir("dir", 0755), 0);
	open_fails("dir", -EISDIR, "directory");
	open_fails("dir/", -EISDIR, "directory");
	open_fails("dir/.", -EISDIR, "directory");
	open_fails("new/", -EISDIR, "directory");
	open_fails("/", -EISDIR, "directory");
	assert_int_equal(symlink("dir", "link"), 0);
	open_fails("link", -EISDIR, "directory");
}

static void outfile_open__no_regular_file(void **state)
{
	(void)state;
	assert_int_equal(mkfifo("fifo", 0644), 0);
	open_fails("fifo", -EINVAL, "not a regular file");
	open_fails("/dev/null", -EINVAL, "not a regular file");
}

static void outfile_open__stdout_is_a_pipe(void **state)
{
	char path[32];
	int ends[2];

	(void)state;
	assert_int_equal(pipe(ends), 0);
	snprintf(path, sizeof(path), "/dev/fd/%d", ends[1]);
	open_fails(path, -EINVAL, "not a regular file");
	close(ends[0]);
	close(ends[1]);
}

static void outfile_open__symlinks_in_a_circle(void **state)
{
	(void)state;
	assert_int_equal(symlink("b", "a"), 0);
	assert_int_equal(symlink("a", "b"), 0);
	open_fails("a", -ELOOP, strerror(ELOOP));
}

/* Root may write everywhere, so a child process runs as another user. */
static void outfile_open__not_permitted(void **state)
{
	pid_t child;
	int status;

	(void)state;
	make("read-only", "kept", 0444);
	assert_int_equal(mkdir("closed", 0555), 0);
	assert_int_equal(chmod(".", 0777), 0);
	child = fork();
	if (child == 0) {
		struct outfile file = { 0 };
		struct failure failure = { 0 };
		int failed;

		if (getuid() == 0 && (setgid(65534) || setuid(65534)))
			_exit(77);
		failed = outfile_open(&file, "closed/out", NULL, &failure) !=
				 -EACCES ||
			 !failure.why[0];
		failed |= outfile_open(&file, "read-only", NULL, &failure) !=
					  -EACCES
				  ? 2
				  : 0;
		_exit(failed);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
	assert_content("read-only", "kept");
}

/* A folder that may be written and entered but not read. */
static void outfile_open__folder_not_readable(void **state)
{
	pid_t child;
	int status;

	(void)state;
	assert_int_equal(mkdir("drop", 0), 0);
	assert_int_equal(chmod("drop", 0333), 0);
	child = fork();
	if (child == 0) {
		struct outfile file = { 0 };
		struct failure failure = { 0 };

		if (getuid() == 0 &&
		    (chmod(".", 0777) || setgid(65534) || setuid(65534)))
			_exit(77);
		if (outfile_open(&file, "drop/out", NULL, &failure))
			_exit(1);
		if (outfile_commit(&file, true, &failure))
			_exit(2);
		outfile_close(&file);
		_exit(0);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
	assert_int_equal(access("drop/out", F_OK), 0);
}

/* In a sticky folder that all may write, another user's link is not followed,
 * whether it leads to a file or to nothing; a link of the folder's owner is,
 * and so is any link elsewhere. */
static void outfile_open__link_of_another_user(void **state)
{
	struct outfile file;

	(void)state;
	if (getuid() != 0)
		skip_because("needs root");
	make("real", "kept", 0644);
	assert_int_equal(mkdir("shared", 0755), 0);
	assert_int_equal(symlink("../real", "shared/link"), 0);
	assert_int_equal(symlink("../none", "shared/dangling"), 0);
	assert_int_equal(symlink("shared/link", "chain"), 0);
	for (const char *const *path =
		     (const char *const[]){ "shared/link", "shared/dangling",
					    "chain", NULL };
	     *path; path++) {
		assert_int_equal(lchown("shared/link", 65534, 65534), 0);
		assert_int_equal(lchown("shared/dangling", 65534, 65534), 0);
		assert_int_equal(chmod("shared", 01777), 0);
		open_fails(*path, -EACCES, "link of another user");
		assert_int_equal(chown("shared", 65534, 65534), 0);
		open_ok(&file, *path, "");
		outfile_close(&file);
		assert_int_equal(chown("shared", 0, 0), 0);
		open_fails(*path, -EACCES, "link of another user");
		assert_int_equal(chmod("shared", 0777), 0);
		open_ok(&file, *path, "");
		outfile_close(&file);
		assert_int_equal(chmod("shared", 01777), 0);
		assert_int_equal(lchown("shared/link", 0, 0), 0);
		assert_int_equal(lchown("shared/dangling", 0, 0), 0);
		open_ok(&file, *path, "");
		outfile_close(&file);
	}
	assert_content("real", "kept");
}

/* A chain as long as the kernel follows, and one that is longer; each link
 * counts from the folder that it stands in. */
static void outfile_open__chain_of_links(void **state)
{
	char from[16], to[16];
	struct outfile file;

	(void)state;
	assert_int_equal(mkdir("a", 0755), 0);
	assert_int_equal(symlink("../real", "a/1"), 0);
	for (unsigned i = 2; i <= 41; i++) {
		snprintf(from, sizeof(from), "a/%u", i);
		snprintf(to, sizeof(to), "../a/%u", i - 1);
		assert_int_equal(symlink(to, from), 0);
	}
	open_ok(&file, "a/40", "text");
	commit_ok(&file, false);
	outfile_close(&file);
	assert_content("real", "text");
	open_fails("a/41", -ELOOP, strerror(ELOOP));
}

static void outfile_open__link_with_a_slash_at_its_end(void **state)
{
	(void)state;
	assert_int_equal(symlink("new/", "link"), 0);
	open_fails("link", -EISDIR, "directory");
}

/* However many descriptors are missing: the same status, and none is left
 * open. */
static void outfile_open__no_descriptor(void **state)
{
	struct outfile file = { 0 };
	unsigned open_before = open_descriptors();
	struct rlimit before, few;
	int error = -EMFILE, lowest;

	(void)state;
	make("old", "kept", 0644);
	assert_int_equal(symlink("old", "link"), 0);
	lowest = open("/", O_RDONLY | O_CLOEXEC);
	assert_true(lowest >= 0);
	close(lowest);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
	few = before;
	for (rlim_t spare = 0; error != 0 && spare < 8; spare++) {
		struct failure failure = { 0 };

		few.rlim_cur = (rlim_t)lowest + spare;
		assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
		error = outfile_open(&file, "link", NULL, &failure);
		outfile_close(&file);
		release_descriptors(before);
		assert_int_equal(failure.status,
				 error ? EXIT_RESOURCES : EXIT_DONE);
		assert_true(error == 0 || error == -EMFILE);
	}
	assert_int_equal(error, 0);
	assert_int_equal(open_descriptors(), open_before);
	assert_content("old", "kept");
}

/* --- outfile_commit --------------------------------------------------------
 */

static void outfile_commit__new_file(void **state)
{
	struct outfile file;

	(void)state;
	umask(027);
	open_ok(&file, "out", "text");
	commit_ok(&file, false);
	assert_content("out", "text");
	/* The descriptor stays open, for reading too. */
	assert_int_equal(pwrite(file.fd, "T", 1, 0), 1);
	outfile_close(&file);
	assert_content("out", "Text");
	assert_int_equal(mode_of("out"), 0640);
	assert_int_equal(count_entries("."), 1);
}

static void outfile_commit__sync(void **state)
{
	struct outfile file;

	(void)state;
	assert_int_equal(mkdir("dir", 0755), 0);
	open_ok(&file, "dir/out", "text");
	commit_ok(&file, true);
	outfile_close(&file);
	assert_content("dir/out", "text");
	assert_int_equal(count_entries("dir"), 1);
}

static void outfile_commit__replaces_and_keeps_the_mode(void **state)
{
	struct outfile file;

	(void)state;
	make("out", "old text", 0604);
	open_ok(&file, "out", "new");
	assert_content("out", "old text");
	commit_ok(&file, false);
	assert_true(file.replaced);
	outfile_close(&file);
	assert_content("out", "new");
	assert_int_equal(mode_of("out"), 0604);
	assert_int_equal(count_entries("."), 1);
}

static void outfile_commit__appeared_meanwhile(void **state)
{
	struct outfile file;

	(void)state;
	open_ok(&file, "out", "new");
	make("out", "other", 0644);
	commit_ok(&file, false);
	assert_true(file.replaced);
	outfile_close(&file);
	assert_content("out", "new");
	assert_int_equal(count_entries("."), 1);
}

static void outfile_commit__became_a_directory(void **state)
{
	struct outfile file;
	struct failure failure = { 0 };

	(void)state;
	open_ok(&file, "out", "new");
	assert_int_equal(mkdir("out", 0755), 0);
	assert_int_equal(outfile_commit(&file, false, &failure), -EISDIR);
	assert_string_equal(failure.what, "out");
	outfile_close(&file);
	assert_int_equal(count_entries("."), 1);
}

static void outfile_commit__became_a_fifo(void **state)
{
	struct outfile file;
	struct failure failure = { 0 };

	(void)state;
	open_ok(&file, "out", "new");
	assert_int_equal(mkfifo("out", 0644), 0);
	assert_int_equal(outfile_commit(&file, false, &failure), -EINVAL);
	assert_string_equal(failure.why, "not a regular file");
	outfile_close(&file);
	assert_int_equal(count_entries("."), 1);
}

static void outfile_commit__folder_is_gone(void **state)
{
	struct outfile file;
	struct failure failure = { 0 };

	(void)state;
	assert_int_equal(mkdir("dir", 0755), 0);
	open_ok(&file, "dir/out", "new");
	if (file.hidden) {
		/* Its own file keeps the folder alive; take it away. */
		assert_int_equal(system("rm -r dir"), 0);
	} else {
		assert_int_equal(rmdir("dir"), 0);
	}
	assert_int_equal(outfile_commit(&file, false, &failure), -ENOENT);
	assert_string_equal(failure.what, "dir/out");
	outfile_close(&file);
}

static void outfile_commit__symlink_stays(void **state)
{
	struct outfile file;

	(void)state;
	assert_int_equal(mkdir("dir", 0755), 0);
	make("dir/real", "old", 0600);
	assert_int_equal(symlink("dir/middle", "link"), 0);
	assert_int_equal(symlink("real", "dir/middle"), 0);
	open_ok(&file, "link", "new");
	commit_ok(&file, false);
	outfile_close(&file);
	assert_content("dir/real", "new");
	assert_content("link", "new");
	assert_int_equal(mode_of("dir/real"), 0600);
	assert_int_equal(count_entries("."), 2);
	assert_int_equal(count_entries("dir"), 2);
}

static void outfile_commit__dangling_symlink(void **state)
{
	char target[128];
	struct outfile file;

	(void)state;
	snprintf(target, sizeof(target), "%s/real", folder);
	assert_int_equal(symlink(target, "link"), 0);
	open_ok(&file, "link", "new");
	assert_int_equal(access("real", F_OK), -1);
	commit_ok(&file, false);
	outfile_close(&file);
	assert_content("real", "new");
	assert_content("link", "new");
	assert_int_equal(count_entries("."), 2);
}

static void outfile_commit__longest_name(void **state)
{
	char name[256];
	struct outfile one, two;

	(void)state;
	memset(name, 'n', 255);
	name[255] = '\0';
	/* Both at a time: their hidden names, cut to fit, must differ. */
	open_ok(&one, name, "one");
	open_ok(&two, name, "two");
	commit_ok(&one, false);
	commit_ok(&two, false);
	outfile_close(&one);
	outfile_close(&two);
	assert_content(name, "two");
	assert_int_equal(count_entries("."), 1);
}

static void outfile_commit__name_too_long(void **state)
{
	char name[257];

	(void)state;
	memset(name, 'n', 256);
	name[256] = '\0';
	open_fails(name, -ENAMETOOLONG, "too long");
}

/* The name beside is another's: the next one is taken. */
static void outfile_commit__hidden_name_is_taken(void **state)
{
	char beside[64];
	struct outfile file;

	(void)state;
	snprintf(beside, sizeof(beside), ".out.blinksort-%ld", (long)getpid());
	make(beside, "theirs", 0644);
	make("out", "old", 0644);
	open_ok(&file, "out", "new");
	commit_ok(&file, false);
	outfile_close(&file);
	assert_content("out", "new");
	assert_content(beside, "theirs");
	assert_int_equal(count_entries("."), 2);
}

/* Before it has its name, only its owner can open a hidden file; as any file
 * gets its name, it has the mode of what stands there by then. */
static void outfile_commit__mode_at_the_end(void **state)
{
	static const char hidden[] = ".out.blinksort-";
	char name[64];
	struct outfile file;

	(void)state;
	umask(0);
	snprintf(name, sizeof(name), "%s%ld", hidden, (long)getpid());
	open_ok(&file, "out", "new");
	if (file.hidden)
		assert_int_equal(mode_of(name), 0600);
	commit_ok(&file, false);
	outfile_close(&file);
	assert_int_equal(mode_of("out"), 0666);
	open_ok(&file, "out", "new");
	if (file.hidden)
		assert_int_equal(mode_of(name), 0600);
	assert_int_equal(chmod("out", 0640), 0);
	commit_ok(&file, true);
	outfile_close(&file);
	assert_int_equal(mode_of("out"), 0640);
	/* It appears meanwhile; it goes meanwhile. */
	open_ok(&file, "another", "new");
	make("another", "old", 0604);
	commit_ok(&file, false);
	outfile_close(&file);
	assert_int_equal(mode_of("another"), 0604);
	open_ok(&file, "out", "new");
	assert_int_equal(unlink("out"), 0);
	umask(027);
	commit_ok(&file, false);
	outfile_close(&file);
	assert_int_equal(mode_of("out"), 0640);
	assert_int_equal(count_entries("."), 2);
}

/* --- outfile_commit_all ----------------------------------------------------
 */

static int commit_all(struct outfile *files, unsigned count, bool sync,
		      struct failure *failure)
{
	struct outfile *all[] = { &files[0], &files[1], &files[2] };

	return outfile_commit_all(all, count, sync, failure);
}

static void outfile_commit_all__all(void **state)
{
	struct failure failure = { 0 };
	struct outfile files[3];

	(void)state;
	open_ok(&files[0], "a", "1");
	open_ok(&files[1], "b", "2");
	assert_int_equal(commit_all(files, 2, true, &failure), 0);
	outfile_close(&files[0]);
	outfile_close(&files[1]);
	assert_content("a", "1");
	assert_content("b", "2");
	assert_int_equal(count_entries("."), 2);
}

static void outfile_commit_all__none_if_one_fails(void **state)
{
	struct failure failure = { 0 };
	struct outfile files[3];

	(void)state;
	open_ok(&files[0], "a", "1");
	open_ok(&files[1], "b", "2");
	open_ok(&files[2], "c", "3");
	assert_int_equal(mkdir("b", 0755), 0);
	assert_int_equal(commit_all(files, 3, false, &failure), -EISDIR);
	assert_string_equal(failure.what, "b");
	for (unsigned i = 0; i < 3; i++)
		outfile_close(&files[i]);
	assert_int_equal(count_entries("."), 1);
}

static void outfile_commit_all__keeps_what_replaced(void **state)
{
	struct failure failure = { 0 };
	struct outfile files[3];

	(void)state;
	make("a", "old", 0644);
	open_ok(&files[0], "a", "1");
	open_ok(&files[1], "b", "2");
	assert_int_equal(mkdir("b", 0755), 0);
	assert_int_equal(commit_all(files, 2, false, &failure), -EISDIR);
	outfile_close(&files[0]);
	outfile_close(&files[1]);
	assert_content("a", "1");
	assert_int_equal(count_entries("."), 2);
}

/* A name that another file has taken over stays. */
static void outfile_commit_all__removes_only_its_own(void **state)
{
	struct failure failure = { 0 };
	struct outfile files[3];

	(void)state;
	open_ok(&files[0], "a", "1");
	open_ok(&files[1], "a", "2");
	open_ok(&files[2], "b", "3");
	assert_int_equal(mkdir("b", 0755), 0);
	assert_int_equal(commit_all(files, 3, false, &failure), -EISDIR);
	for (unsigned i = 0; i < 3; i++)
		outfile_close(&files[i]);
	assert_content("a", "2");
	assert_int_equal(count_entries("."), 2);
}

/* --- outfile_close, signals ------------------------------------------------
 */

static void outfile_close__zeroed_and_twice(void **state)
{
	struct outfile zero = { 0 };
	struct outfile file;

	(void)state;
	outfile_close(&zero);
	/* Descriptor 0 was not the zeroed one's to close. */
	assert_true(fcntl(0, F_GETFD) >= 0);
	open_ok(&file, "out", "text");
	outfile_close(&file);
	outfile_close(&file);
	assert_int_equal(count_entries("."), 0);
}

static void end_by_signal(int number, bool ignored)
{
	struct outfile one, two;
	pid_t child = fork();
	int status;

	assert_true(child >= 0);
	if (child == 0) {
		struct failure failure = { 0 };

		signal(number, ignored ? SIG_IGN : SIG_DFL);
		if (outfile_open(&one, "one", NULL, &failure) ||
		    outfile_open(&two, "two", NULL, &failure))
			_exit(1);
		raise(number);
		if (outfile_commit(&one, false, &failure))
			_exit(1);
		outfile_close(&one);
		outfile_close(&two);
		_exit(0);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	if (ignored) {
		assert_true(WIFEXITED(status));
		assert_int_equal(WEXITSTATUS(status), 0);
		assert_int_equal(count_entries("."), 1);
		assert_int_equal(unlink("one"), 0);
	} else {
		assert_true(WIFSIGNALED(status));
		assert_int_equal(WTERMSIG(status), number);
		assert_int_equal(count_entries("."), 0);
	}
}

static void outfile_signal__leaves_nothing(void **state)
{
	(void)state;
	end_by_signal(SIGINT, false);
	end_by_signal(SIGTERM, false);
	end_by_signal(SIGHUP, false);
	end_by_signal(SIGHUP, true);
}

/* A killed process leaves nothing either, where there is O_TMPFILE. */
static void outfile_signal__killed(void **state)
{
	pid_t child = fork();
	int status;

	(void)state;
	assert_true(child >= 0);
	if (child == 0) {
		struct outfile file;
		struct failure failure = { 0 };

		if (outfile_open(&file, "out", NULL, &failure))
			_exit(1);
		raise(SIGKILL);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFSIGNALED(status));
	assert_int_equal(count_entries("."), 0);
}

/* A forked child shares the list of names but must not act on it. */
static void outfile_remove_hidden__not_in_a_child(void **state)
{
	struct outfile file;
	pid_t child;
	int status;

	(void)state;
	open_ok(&file, "out", "text");
	assert_int_equal(count_entries("."), 1);
	child = fork();
	if (child == 0) {
		outfile_remove_hidden();
		_exit(0);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(count_entries("."), 1);
	outfile_remove_hidden();
	assert_int_equal(count_entries("."), 0);
	outfile_close(&file);
}

/* What is committed or closed is not on the list any more. */
static void outfile_remove_hidden__only_what_is_hidden(void **state)
{
	struct outfile one, two;

	(void)state;
	open_ok(&one, "one", "1");
	open_ok(&two, "two", "2");
	commit_ok(&one, false);
	outfile_close(&two);
	outfile_remove_hidden();
	assert_content("one", "1");
	outfile_close(&one);
	assert_int_equal(count_entries("."), 1);
}

/* --- shared files --------------------------------------------------------
 */

static void open_shared_ok(struct outfile *file, const char *mark, off_t offset,
			   const char *text)
{
	struct failure failure = { 0 };

	assert_int_equal(outfile_open(file, "out", mark, &failure), 0);
	assert_int_equal(pwrite(file->fd, text, strlen(text), offset),
			 strlen(text));
}

static void outfile_open__shared_one_file(void **state)
{
	struct outfile one, two, other;
	struct failure failure = { 0 };
	char text[5] = "";
	int fd;

	(void)state;
	make("out", "old", 0640);
	open_shared_ok(&one, "mark", 0, "ab");
	open_shared_ok(&two, "mark", 2, "cd");
	open_shared_ok(&other, "another", 0, "x");
	assert_int_equal(mode_of(".out.blinksort-mark"), 0600);
	assert_int_equal(outfile_flush(&two, false, &failure), 0);
	assert_int_equal(outfile_flush(&two, true, &failure), 0);
	fd = outfile_reopen(&one);
	assert_true(fd >= 0);
	assert_int_equal(read(fd, text, sizeof(text)), 4);
	assert_string_equal(text, "abcd");
	close(fd);
	assert_content("out", "old");
	assert_int_equal(access(".out.blinksort-mark", F_OK), 0);
	commit_ok(&one, false);
	/* Their names are not the file's any more. */
	outfile_close(&two);
	outfile_close(&other);
	outfile_close(&one);
	assert_content("out", "abcd");
	assert_int_equal(mode_of("out"), 0640);
	assert_int_equal(count_entries("."), 1);
}

/* Whoever gives up ends it for all, also if one comes late. */
static void outfile_open__shared_given_up_by_one(void **state)
{
	struct outfile one, two, late;
	struct failure failure = { 0 };

	(void)state;
	open_shared_ok(&one, "mark", 0, "ab");
	open_shared_ok(&two, "mark", 2, "cd");
	outfile_close(&two);
	assert_int_equal(count_entries("."), 0);
	assert_int_equal(outfile_reopen(&one), -ENOENT);
	assert_int_equal(outfile_commit(&one, false, &failure), -ENOENT);
	open_shared_ok(&late, "mark", 2, "cd");
	outfile_close(&late);
	outfile_close(&one);
	assert_int_equal(count_entries("."), 0);
}

static void outfile_open__shared_withdrawn(void **state)
{
	struct outfile one, two;

	(void)state;
	open_shared_ok(&one, "mark", 0, "ab");
	open_shared_ok(&two, "mark", 2, "cd");
	commit_ok(&one, false);
	outfile_roll_back(&two);
	assert_content("out", "abcd");
	outfile_roll_back(&one);
	outfile_close(&one);
	outfile_close(&two);
	assert_int_equal(count_entries("."), 0);
}

/* --- places -----------------------------------------------------------------
 */

static void outpath_place__one_number_for_one_place(void **state)
{
	uint64_t place = outpath_place("out", 7);

	(void)state;
	assert_true(place != 0);
	assert_int_equal(symlink("out", "link"), 0);
	assert_int_equal(outpath_place("./out", 7), place);
	assert_int_equal(outpath_place("link", 7), place);
	assert_true(outpath_place("out2", 7) != place);
	make("out", "", 0600);
	assert_int_equal(outpath_place("out", 7), place);
	assert_int_equal(outpath_place("missing/out", 7), 0);
	assert_int_equal(mkfifo("fifo", 0600), 0);
	assert_int_equal(outpath_place("fifo", 7), 0);
}

/* Of two machines with the same device and inode, the place is another; and of
 * machines that cannot tell which one they are, it is not told. */
static void outpath_place__machines(void **state)
{
	(void)state;
	if (outpath_place("out", 7) == outpath_place("out", 8))
		skip_because("the folder is in a network file system");
	assert_int_equal(outpath_place("out", 0), 0);
}

#define NAMED(test) cmocka_unit_test_setup_teardown(test, setup_named, teardown)
#define HIDDEN(test)                                                           \
	cmocka_unit_test_setup_teardown(test, setup_hidden, teardown)
#define BOTH(test) NAMED(test), HIDDEN(test)

int main(void)
{
	const struct CMUnitTest tests[] = {
		BOTH(outfile_open__nothing_under_the_name_before_commit),
		BOTH(outfile_open__folder_missing),
		BOTH(outfile_open__folder_is_a_file),
		BOTH(outfile_open__empty_path),
		BOTH(outfile_open__directory),
		BOTH(outfile_open__no_regular_file),
		BOTH(outfile_open__stdout_is_a_pipe),
		BOTH(outfile_open__symlinks_in_a_circle),
		BOTH(outfile_open__not_permitted),
		BOTH(outfile_open__folder_not_readable),
		BOTH(outfile_open__link_of_another_user),
		BOTH(outfile_open__chain_of_links),
		BOTH(outfile_open__link_with_a_slash_at_its_end),
		BOTH(outfile_open__no_descriptor),
		BOTH(outfile_commit__new_file),
		BOTH(outfile_commit__sync),
		BOTH(outfile_commit__replaces_and_keeps_the_mode),
		BOTH(outfile_commit__appeared_meanwhile),
		BOTH(outfile_commit__became_a_directory),
		BOTH(outfile_commit__became_a_fifo),
		BOTH(outfile_commit__folder_is_gone),
		BOTH(outfile_commit__symlink_stays),
		BOTH(outfile_commit__dangling_symlink),
		BOTH(outfile_commit__longest_name),
		BOTH(outfile_commit__name_too_long),
		BOTH(outfile_commit__hidden_name_is_taken),
		BOTH(outfile_commit__mode_at_the_end),
		BOTH(outfile_commit_all__all),
		BOTH(outfile_commit_all__none_if_one_fails),
		BOTH(outfile_commit_all__keeps_what_replaced),
		BOTH(outfile_commit_all__removes_only_its_own),
		BOTH(outfile_close__zeroed_and_twice),
		BOTH(outfile_signal__leaves_nothing),
		NAMED(outfile_signal__killed),
		HIDDEN(outfile_remove_hidden__not_in_a_child),
		BOTH(outfile_remove_hidden__only_what_is_hidden),
		BOTH(outfile_open__shared_one_file),
		BOTH(outfile_open__shared_given_up_by_one),
		BOTH(outfile_open__shared_withdrawn),
		NAMED(outpath_place__one_number_for_one_place),
		NAMED(outpath_place__machines),
	};

	root_fd = open("/", O_RDONLY | O_DIRECTORY);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
