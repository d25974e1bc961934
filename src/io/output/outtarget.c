/*
 * outtarget.c - refuses an output that could not, or should not, replace what
 * has its name
 */
#include "io/output/outtarget.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <stdbool.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/failure.h"
#include "io/output/file_attributes.h"
#include "io/output/outpath.h"

static int refuse(struct failure *failure, const char *path, int error,
		  const char *reason)
{
	return failure_set(failure, EXIT_FILE, path, error, "%s", reason);
}

/* --- the folder ----------------------------------------------------------- */

int outtarget_check_folder(int folder_fd, const char *path,
			   struct failure *failure)
{
	const struct file_attributes folder = file_attributes_read(folder_fd);

	if (folder.is_immutable)
		return refuse(failure, path, 0,
			      "its folder is immutable (chattr -i)");
	if (folder.is_append_only)
		return refuse(failure, path, 0,
			      "its folder is append-only (chattr -a): no "
			      "name in it can be replaced");
	return 0;
}

/* True, too, if the kernel does not say. */
static bool may_act_as_owner(void)
{
	struct __user_cap_header_struct header = {
		.version = _LINUX_CAPABILITY_VERSION_3,
	};
	struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3] = { 0 };

	return syscall(SYS_capget, &header, data) < 0 ||
	       (data[CAP_TO_INDEX(CAP_FOWNER)].effective &
		CAP_TO_MASK(CAP_FOWNER)) != 0;
}

static int check_sticky(int folder_fd, const struct stat *status,
			const char *path, struct failure *failure)
{
	const uid_t user = geteuid();
	const bool is_own = status->st_uid == user;
	struct stat folder;

	if ((is_own && status->st_nlink == 1) ||
	    fstat(folder_fd, &folder) < 0 || (folder.st_mode & S_ISVTX) == 0)
		return 0;
	/* The output would get the mode of a file that another user chose. */
	if (is_own && (folder.st_mode & S_IWOTH))
		return refuse(failure, path, EACCES,
			      "it has several names, of which another user "
			      "may have made this one: name another one");
	if (!outpath_is_trusted(&folder, status))
		return refuse(failure, path, EACCES,
			      "it is a file of another user, in a folder "
			      "that all may write: name another one");
	if (!is_own && folder.st_uid != user && !may_act_as_owner())
		return refuse(failure, path, EACCES,
			      "it is a file of another user, in a sticky "
			      "folder: name another one");
	return 0;
}

/* --- the file ------------------------------------------------------------- */

static int check_attributes(int fd, const char *path, struct failure *failure)
{
	const struct file_attributes file = file_attributes_read(fd);

	if (file.is_mount_point)
		return refuse(failure, path, 0,
			      "it is a mount point: name a file in a "
			      "mounted folder instead");
	if (file.is_immutable)
		return refuse(failure, path, 0, "it is immutable (chattr -i)");
	if (file.is_append_only)
		return refuse(failure, path, 0,
			      "it is append-only (chattr -a): it cannot "
			      "be replaced");
	return 0;
}

static int check(int folder_fd, const char *name, int fd,
		 const struct stat *status, const char *path,
		 struct failure *failure)
{
	int error;

	if (S_ISDIR(status->st_mode))
		return refuse(failure, path, EISDIR, "cannot write");
	if (!S_ISREG(status->st_mode))
		return refuse(failure, path, 0, "not a regular file");
	error = check_attributes(fd, path, failure);
	if (error)
		return error;
	/* A rename needs no right to the file itself. */
	if (faccessat(folder_fd, name, W_OK, 0))
		return refuse(failure, path, errno, "cannot write");
	error = check_sticky(folder_fd, status, path, failure);
	if (error)
		return error;
	return outtarget_check_folder(folder_fd, path, failure);
}

int outtarget_open(int folder_fd, const char *name, const char *path,
		   struct stat *status, struct failure *failure)
{
	int fd = openat(folder_fd, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	int error;

	if (fd < 0 && errno == ENOENT)
		return -ENOENT;
	if (fd < 0 || fstat(fd, status))
		error = refuse(failure, path, errno, "cannot write");
	else
		error = check(folder_fd, name, fd, status, path, failure);
	if (error == 0)
		return fd;
	if (fd >= 0)
		close(fd);
	return error;
}
