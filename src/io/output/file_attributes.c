/* file_attributes.c - reads a file's attributes by statx(2) */
#include "io/output/file_attributes.h"

/* The kernel's own headers, and none that defines statx, too: only newer C
 * libraries have the call. */
#include <linux/fcntl.h>
#include <linux/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

struct file_attributes file_attributes_read(int fd)
{
	struct statx answer;
	unsigned long long known;

	if (syscall(SYS_statx, fd, "", AT_EMPTY_PATH, 0, &answer) < 0)
		return (struct file_attributes){ 0 };
	known = answer.stx_attributes & answer.stx_attributes_mask;
	return (struct file_attributes){
		.is_mount_point = known & STATX_ATTR_MOUNT_ROOT,
		.is_append_only = known & STATX_ATTR_APPEND,
		.is_immutable = known & STATX_ATTR_IMMUTABLE,
	};
}
