/*
 * permissions.c - reads the owner, mode and access control list of a file, and
 * gives them to another
 */
#include "io/output/permissions.h"

#include <errno.h>
#include <linux/posix_acl.h>
#include <linux/posix_acl_xattr.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/base.h"
#include "system/small_file.h"

#define ACCESS_LIST "system.posix_acl_access"
#define DEFAULT_LIST "system.posix_acl_default"
#define ALL_BITS (ACL_READ | ACL_WRITE | ACL_EXECUTE)
/* A list that is none: owner, group, others. */
#define PLAIN_ENTRIES 3

#define LIST_HEADER_BYTES sizeof(struct posix_acl_xattr_header)
#define LIST_ENTRY_BYTES sizeof(struct posix_acl_xattr_entry)
#define LIST_BYTES_MAX                                                         \
	(LIST_HEADER_BYTES + PERMISSIONS_ENTRIES_MAX * LIST_ENTRY_BYTES)

/* --- lists ---------------------------------------------------------------- */

/* All numbers of a list are little endian, as those in memory are. */
_Static_assert(LIST_ENTRY_BYTES == sizeof(struct permissions_entry),
	       "lists are copied");

int permissions_decode(struct permissions *permissions, const uint8_t *list,
		       size_t size_bytes)
{
	unsigned plain = 0;

	if (size_bytes < LIST_HEADER_BYTES || size_bytes > LIST_BYTES_MAX ||
	    (size_bytes - LIST_HEADER_BYTES) % LIST_ENTRY_BYTES != 0 ||
	    load_le32(list) != POSIX_ACL_XATTR_VERSION)
		return -EINVAL;
	permissions->entry_count =
		(unsigned)((size_bytes - LIST_HEADER_BYTES) / LIST_ENTRY_BYTES);
	memcpy(permissions->entries, list + LIST_HEADER_BYTES,
	       size_bytes - LIST_HEADER_BYTES);
	for (unsigned i = 0; i < permissions->entry_count; i++) {
		struct permissions_entry *entry = &permissions->entries[i];

		entry->bits &= ALL_BITS;
		if (entry->tag == ACL_USER_OBJ || entry->tag == ACL_GROUP_OBJ ||
		    entry->tag == ACL_OTHER)
			plain |= entry->tag;
	}
	return plain == (ACL_USER_OBJ | ACL_GROUP_OBJ | ACL_OTHER) ? 0
								   : -EINVAL;
}

static size_t encode(const struct permissions *permissions,
		     uint8_t list[LIST_BYTES_MAX])
{
	size_t bytes = permissions->entry_count * LIST_ENTRY_BYTES;

	store_le32(list, POSIX_ACL_XATTR_VERSION);
	memcpy(list + LIST_HEADER_BYTES, permissions->entries, bytes);
	return LIST_HEADER_BYTES + bytes;
}

static void set_plain(struct permissions *permissions, mode_t mode)
{
	static const uint16_t tags[PLAIN_ENTRIES] = {
		ACL_USER_OBJ,
		ACL_GROUP_OBJ,
		ACL_OTHER,
	};

	permissions->entry_count = PLAIN_ENTRIES;
	for (unsigned i = 0; i < PLAIN_ENTRIES; i++)
		permissions->entries[i] = (struct permissions_entry){
			.tag = tags[i],
			.bits = mode >> (6 - 3 * i) & ALL_BITS,
		};
}

/* Returns the bits that all entries with this tag give, or ALL_BITS if there is
 * none. */
static unsigned bits_of(const struct permissions *permissions, uint16_t tag)
{
	unsigned bits = ALL_BITS;

	for (unsigned i = 0; i < permissions->entry_count; i++)
		if (permissions->entries[i].tag == tag)
			bits &= permissions->entries[i].bits;
	return bits;
}

static void limit(struct permissions *permissions, uint16_t tag, unsigned bits)
{
	for (unsigned i = 0; i < permissions->entry_count; i++)
		if (permissions->entries[i].tag == tag)
			permissions->entries[i].bits &= (uint16_t)bits;
}

/* A member of the new group may also be of a named one: the two entries
 * together are to give no more than the named one did. */
void permissions_lose_group(struct permissions *permissions)
{
	unsigned bits = bits_of(permissions, ACL_GROUP_OBJ) &
			bits_of(permissions, ACL_MASK) &
			bits_of(permissions, ACL_OTHER);

	limit(permissions, ACL_OTHER, bits);
	limit(permissions, ACL_GROUP_OBJ,
	      bits & bits_of(permissions, ACL_GROUP));
}

/* Named users come before groups, so a named user may become one of the group;
 * a member of the file's group had its rights whatever named groups had. */
mode_t permissions_mode(const struct permissions *permissions)
{
	unsigned mask = bits_of(permissions, ACL_MASK);
	unsigned users = bits_of(permissions, ACL_USER);
	unsigned groups = bits_of(permissions, ACL_GROUP);
	unsigned group = bits_of(permissions, ACL_GROUP_OBJ) & mask & users;
	unsigned others = bits_of(permissions, ACL_OTHER) & users & groups;

	/* The mask limits named entries. */
	if (permissions->entry_count > PLAIN_ENTRIES)
		others &= mask;
	return bits_of(permissions, ACL_USER_OBJ) << 6 | group << 3 | others;
}

/* --- reading -------------------------------------------------------------- */

/* A list of an open file, also of O_PATH: 0, or -errno; -ENODATA: it has none.
 */
static int read_list(struct permissions *permissions, int fd, const char *name)
{
	uint8_t list[LIST_BYTES_MAX];
	char self[32];
	ssize_t bytes;

	snprintf(self, sizeof(self), "/proc/self/fd/%d", fd);
	bytes = fgetxattr(fd, name, list, sizeof(list));
	if (bytes < 0 && errno == EBADF)
		bytes = getxattr(self, name, list, sizeof(list));
	if (bytes < 0)
		return errno == EOPNOTSUPP ? -ENODATA : -errno;
	return permissions_decode(permissions, list, (size_t)bytes);
}

void permissions_read(struct permissions *permissions, int fd,
		      const struct stat *status)
{
	int error = read_list(permissions, fd, ACCESS_LIST);

	permissions->uid = status->st_uid;
	permissions->gid = status->st_gid;
	if (error == -ENODATA)
		set_plain(permissions, status->st_mode);
	else if (error)
		set_plain(permissions, status->st_mode & S_IRWXU);
}

/* Read the umask from /proc, since umask(2) tells it only by changing it, for
 * all threads.  Where there is no /proc, umask(2) is used: a file that another
 * thread makes meanwhile gets fewer rights. */
static mode_t read_umask(void)
{
	char text[256], *line = NULL;
	unsigned mask;
	mode_t old;

	/* It stands behind the program's name. */
	if (small_file_read(text, sizeof(text), "/proc/self/status"))
		line = strstr(text, "\nUmask:");
	if (line && sscanf(line, "\nUmask: %o", &mask) == 1)
		return mask & 0777;
	old = umask(0777);
	umask(old);
	return old;
}

void permissions_of_new(struct permissions *permissions, int folder_fd)
{
	const unsigned new_bits = ACL_READ | ACL_WRITE;
	int error = read_list(permissions, folder_fd, DEFAULT_LIST);

	permissions->uid = PERMISSIONS_ANY;
	permissions->gid = PERMISSIONS_ANY;
	if (error == -ENODATA) {
		set_plain(permissions, 0666 & ~read_umask());
	} else if (error) {
		set_plain(permissions, 0600);
	} else {
		/* The kernel does the same: the mode limits owner and others,
		 * and the mask, or the group if there is no mask. */
		limit(permissions, ACL_USER_OBJ, new_bits);
		limit(permissions, ACL_OTHER, new_bits);
		limit(permissions,
		      permissions->entry_count > PLAIN_ENTRIES ? ACL_MASK
							       : ACL_GROUP_OBJ,
		      new_bits);
	}
}

/* --- giving --------------------------------------------------------------- */

/* Give as much of owner and group as may be had.  True: the group is had. */
static bool give_owner(const struct permissions *permissions, int fd)
{
	const gid_t gid = permissions->gid;
	struct stat status;

	/* Root can have both, a user a group of its own; and in a namespace one
	 * of the two may have no number. */
	if (fchown(fd, permissions->uid, gid) &&
	    fchown(fd, PERMISSIONS_ANY, gid) &&
	    fchown(fd, permissions->uid, PERMISSIONS_ANY))
		return false;
	return fstat(fd, &status) == 0 && status.st_gid == gid;
}

/* Remove the list that the file has inherited from its folder. */
static int remove_list(int fd)
{
	if (fgetxattr(fd, ACCESS_LIST, NULL, 0) <= 0)
		return 0;
	return fremovexattr(fd, ACCESS_LIST) ? -errno : 0;
}

/* Set the mode.  Some file systems have none: a file whose mode gives no more
 * than it should will do. */
static int set_mode(int fd, mode_t mode)
{
	struct stat status;
	int error;

	if (fchmod(fd, mode) == 0)
		return 0;
	error = -errno;
	if (fstat(fd, &status) || (status.st_mode & 0777 & ~mode) != 0)
		return error;
	return 0;
}

static int give_list(const struct permissions *permissions, int fd)
{
	uint8_t list[LIST_BYTES_MAX];
	mode_t mode = permissions_mode(permissions);

	if (permissions->entry_count > PLAIN_ENTRIES &&
	    fsetxattr(fd, ACCESS_LIST, list, encode(permissions, list), 0) == 0)
		return 0;
	/* The group bits of a file with a list are what its mask gives. */
	if (remove_list(fd))
		mode &= ~(mode_t)S_IRWXG;
	return set_mode(fd, mode);
}

int permissions_give(const struct permissions *permissions, int fd)
{
	struct permissions given = *permissions;
	struct stat status;

	if (fstat(fd, &status))
		return -errno;
	if ((given.uid != PERMISSIONS_ANY && given.uid != status.st_uid) ||
	    (given.gid != PERMISSIONS_ANY && given.gid != status.st_gid)) {
		/* The new owner and group get nothing before the end. */
		if (fchmod(fd, 0))
			return -errno;
		if (!give_owner(&given, fd))
			permissions_lose_group(&given);
	}
	return give_list(&given, fd);
}
