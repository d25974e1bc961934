/* loopdevice.c - asks the kernel what each loop device shows */
#include "io/loopdevice.h"

#include <dirent.h>
#include <fcntl.h>
#include <linux/loop.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "system/small_file.h"

static bool ask(int fd, struct loop_info64 *loop)
{
	return ioctl(fd, LOOP_GET_STATUS64, loop) == 0;
}

bool loopdevice_shows(int fd, const struct stat *shown)
{
	struct loop_info64 loop;

	if (!ask(fd, &loop))
		return false;
	/* A device may have several nodes: its number counts. */
	if (S_ISBLK(shown->st_mode))
		return loop.lo_rdevice == shown->st_rdev;
	return loop.lo_device == shown->st_dev &&
	       loop.lo_inode == shown->st_ino;
}

bool loopdevice_shows_device(int fd)
{
	struct loop_info64 loop;

	return ask(fd, &loop) && loop.lo_rdevice != 0;
}

/* The number of the disk that it is a partition of, or its own. */
static dev_t disk_of(dev_t device)
{
	char text[32];
	unsigned disk_major, disk_minor;

	/* /sys/dev/block/8:1 leads to .../block/sda/sda1. */
	if (small_file_read(text, sizeof(text), "/sys/dev/block/%u:%u/../dev",
			    major(device), minor(device)) &&
	    sscanf(text, "%u:%u", &disk_major, &disk_minor) == 2)
		return makedev(disk_major, disk_minor);
	return device;
}

bool loopdevice_is_twin(int fd, int other_fd)
{
	struct loop_info64 loop, other;
	struct stat status;

	if (!ask(other_fd, &other) || fstat(fd, &status) < 0)
		return false;
	if (other.lo_rdevice != 0)
		return other.lo_rdevice == status.st_rdev ||
		       other.lo_rdevice == disk_of(status.st_rdev);
	return ask(fd, &loop) && loop.lo_number != other.lo_number &&
	       loop.lo_device == other.lo_device &&
	       loop.lo_inode == other.lo_inode;
}

bool loopdevice_find_twin(int fd, char *path, size_t path_bytes)
{
	DIR *folder = opendir("/dev");
	const struct dirent *entry;
	bool found = false;

	if (!folder)
		return false;
	while (!found && (entry = readdir(folder)) != NULL) {
		int other_fd;

		if (strncmp(entry->d_name, "loop", 4) != 0)
			continue;
		other_fd = openat(dirfd(folder), entry->d_name,
				  O_RDONLY | O_NONBLOCK | O_CLOEXEC);
		if (other_fd < 0)
			continue;
		found = loopdevice_is_twin(fd, other_fd);
		close(other_fd);
		if (found)
			snprintf(path, path_bytes, "/dev/%s", entry->d_name);
	}
	closedir(folder);
	return found;
}
