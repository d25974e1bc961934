/* outpath.c - follows the links of an output's path to its folder and name */
#include "io/output/outpath.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/failure.h"

/* The kernel follows this many symbolic links in a row (path_resolution(7)). */
#define LINKS_MAX 40

struct walk {
	const char *path; /* the user's, for messages */
	int folder_fd;	  /* AT_FDCWD before the first step */
	char *name;	  /* owned; what stands in the folder */
	struct failure *failure;
};

static int refuse(const struct walk *walk, int error, const char *reason)
{
	return failure_set(walk->failure, EXIT_FILE, walk->path, error, "%s",
			   reason);
}

static int cannot_write(const struct walk *walk, int error)
{
	return refuse(walk, error, "cannot write");
}

static int open_folder(int folder_fd, const char *path)
{
	int fd = openat(folder_fd, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	/* A folder may be writable without being readable. */
	if (fd < 0 && errno == EACCES)
		fd = openat(folder_fd, path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	return fd;
}

/* Go to the folder of this path, which is relative to the walk's folder; path
 * is cut into folder and name. */
static int step(struct walk *walk, char *path)
{
	char *slash = strrchr(path, '/');
	char *name = strdup(slash ? slash + 1 : path);
	const char *folder = slash == path ? "/" : slash ? path : ".";
	int fd;

	if (!name) {
		failure_set(walk->failure, EXIT_RESOURCES, walk->path, ENOMEM,
			    "");
		return -ENOMEM;
	}
	free(walk->name);
	walk->name = name;
	if (name[0] == '\0')
		return cannot_write(walk, slash ? EISDIR : ENOENT);
	if (slash)
		*slash = '\0';
	fd = open_folder(walk->folder_fd, folder);
	if (fd < 0)
		return refuse(walk, errno, "its folder");
	if (walk->folder_fd >= 0)
		close(walk->folder_fd);
	walk->folder_fd = fd;
	return 0;
}

bool outpath_is_trusted(const struct stat *folder, const struct stat *entry)
{
	const mode_t shared = S_ISVTX | S_IWOTH;

	return (folder->st_mode & shared) != shared ||
	       entry->st_uid == geteuid() || entry->st_uid == folder->st_uid;
}

/* The target of a link that was opened by O_PATH: its length, 0 if it is no
 * link (any more), or -errno with the failure filled. */
static int read_link(const struct walk *walk, int link_fd,
		     char target[PATH_MAX])
{
	struct stat folder, link;
	ssize_t length;

	if (fstat(link_fd, &link) || fstat(walk->folder_fd, &folder))
		return cannot_write(walk, errno);
	if (!S_ISLNK(link.st_mode))
		return 0;
	if (!outpath_is_trusted(&folder, &link))
		return refuse(walk, EACCES,
			      "it is a symbolic link of another user, in "
			      "a folder that all may write");
	length = readlinkat(link_fd, "", target, PATH_MAX);
	if (length < 0)
		return cannot_write(walk, errno);
	if (length == PATH_MAX)
		return cannot_write(walk, ENAMETOOLONG);
	target[length] = '\0';
	return (int)length;
}

/* Reads the link that stands under the walk's name.  One link is looked at,
 * asked for its owner and read, even if another takes its place. */
static int find_link(const struct walk *walk, char target[PATH_MAX])
{
	int fd, length;

	/* Nearly always there is no link, which one call tells. */
	if (readlinkat(walk->folder_fd, walk->name, target, 1) < 0) {
		if (errno == EINVAL || errno == ENOENT)
			return 0;
		return cannot_write(walk, errno);
	}
	fd = openat(walk->folder_fd, walk->name,
		    O_PATH | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return cannot_write(walk, errno);
	length = read_link(walk, fd, target);
	close(fd);
	return length;
}

/* Ask the kernel about the links, too: it knows more reasons to refuse them,
 * and links such as /dev/stdout lead to things that have no path. */
static int ask_kernel(const struct walk *walk)
{
	struct stat status;

	if (stat(walk->path, &status))
		return errno == ENOENT ? 0 : cannot_write(walk, errno);
	if (!S_ISREG(status.st_mode) && !S_ISDIR(status.st_mode))
		return refuse(walk, 0, "not a regular file");
	return 0;
}

static int follow(struct walk *walk)
{
	char target[PATH_MAX];
	int error, length;

	for (unsigned links = 0;; links++) {
		length = find_link(walk, target);
		if (length <= 0)
			return length;
		error = links == 0 ? ask_kernel(walk) : 0;
		if (error == 0 && links == LINKS_MAX)
			error = cannot_write(walk, ELOOP);
		if (error == 0)
			error = step(walk, target);
		if (error)
			return error;
	}
}

int outpath_open(const char *path, int *folder_fd, char **name,
		 struct failure *failure)
{
	struct walk walk = {
		.path = path,
		.folder_fd = AT_FDCWD,
		.failure = failure,
	};
	char *copy = strdup(path);
	int error;

	*folder_fd = -1;
	*name = NULL;
	if (!copy)
		return failure_set(failure, EXIT_RESOURCES, path, ENOMEM, "");
	error = step(&walk, copy);
	free(copy);
	if (error == 0)
		error = follow(&walk);
	if (error == 0) {
		*folder_fd = walk.folder_fd;
		*name = walk.name;
		return 0;
	}
	if (walk.folder_fd >= 0)
		close(walk.folder_fd);
	free(walk.name);
	return error;
}

/* --- places -----------------------------------------------------------------
 */

/* File systems that several machines have, with the same inode numbers: NFS,
 * Lustre, Spectrum Scale, BeeGFS, Ceph, SMB, OCFS2, GFS2 (statfs(2)). */
static bool is_shared(const struct statfs *system)
{
	static const uint32_t shared[] = {
		0x6969,	    0x0bd00bd0, 0x47504653, 0x19830326, 0x00c36400,
		0xfe534d42, 0xff534d42, 0x7461636f, 0x01161970,
	};

	for (size_t i = 0; i < sizeof(shared) / sizeof(shared[0]); i++)
		if ((uint32_t)system->f_type == shared[i])
			return true;
	return false;
}

/* FNV-1a */
static uint64_t mix(uint64_t hash, const void *bytes, size_t byte_count)
{
	for (size_t i = 0; i < byte_count; i++)
		hash = (hash ^ ((const uint8_t *)bytes)[i]) *
		       UINT64_C(0x100000001b3);
	return hash;
}

static uint64_t number_place(int folder_fd, const char *name, uint64_t machine)
{
	uint64_t hash = UINT64_C(0xcbf29ce484222325), device;
	struct statfs system;
	struct stat folder, file;

	if (fstat(folder_fd, &folder) < 0 || fstatfs(folder_fd, &system) < 0)
		return 0;
	if (fstatat(folder_fd, name, &file, AT_SYMLINK_NOFOLLOW) == 0 &&
	    !S_ISREG(file.st_mode))
		return 0;
	device = (uint64_t)folder.st_dev;
	if (is_shared(&system)) {
		device = (uint64_t)system.f_type;
		machine = 0;
	} else if (machine == 0) {
		return 0;
	}
	hash = mix(hash, &machine, sizeof(machine));
	hash = mix(hash, &device, sizeof(device));
	hash = mix(hash, &folder.st_ino, sizeof(folder.st_ino));
	hash = mix(hash, name, strlen(name));
	return hash ? hash : 1;
}

uint64_t outpath_place(const char *path, uint64_t machine)
{
	struct failure failure;
	uint64_t place;
	int folder_fd;
	char *name;

	if (outpath_open(path, &folder_fd, &name, &failure) < 0)
		return 0;
	assert(name);
	place = number_place(folder_fd, name, machine);
	close(folder_fd);
	free(name);
	return place;
}
