/*
 * permissions.h - owner, group, mode and access control list of an output
 *
 * A file that replaces another gets what that one had, as far as this process
 * may give it, and gives no user a right that the old file did not give:
 *
 * - Owner and group are set first.  Where the owner cannot be had, the new file
 *   belongs to this process's user.  Where the group cannot be had, the members
 *   of the group that the file has instead were others before, and the members
 *   of the old group become others: both get only what others and the old group
 *   both had.
 * - An access control list (POSIX ACL, see acl(5)) is set as it was.  Where
 *   that is refused, the mode takes its place.  Its group bits are those of the
 *   list's own group entry; and a user or group that had an entry of its own is
 *   then of the group or of the others, which therefore get no more than that
 *   entry gave.
 * - Set-user-ID, set-group-ID and sticky bits are dropped.
 *
 * The list is read by way of /proc; if it cannot be read, only the owner's bits
 * are kept.  Other extended attributes, such as the access control lists of
 * NFSv4, stay behind.
 */
#ifndef PERMISSIONS_H
#define PERMISSIONS_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct stat;

/* ext4 keeps a list in one block, and no list seen had a tenth of this. */
#define PERMISSIONS_ENTRIES_MAX 511

struct permissions_entry {
	uint16_t tag;  /* ACL_USER_OBJ ... of linux/posix_acl.h */
	uint16_t bits; /* of 7: read, write, execute */
	uint32_t id;   /* of a named user or group */
};

struct permissions {
	uid_t uid; /* PERMISSIONS_ANY: as the file has it */
	gid_t gid;
	/* 3 without a list: owner, group and others */
	unsigned entry_count;
	struct permissions_entry entries[PERMISSIONS_ENTRIES_MAX];
};

#define PERMISSIONS_ANY ((uid_t)-1)

/* Read the permissions of a file; fd may be of O_PATH, status is what fstat(2)
 * says. */
void permissions_read(struct permissions *permissions, int fd,
		      const struct stat *status);

/* Fill in what the kernel gives a new file of mode 0666 in a folder: by the
 * folder's default list, or by the umask. */
void permissions_of_new(struct permissions *permissions, int folder_fd);

/*
 * Give them to a file of this user that no other user can have open.  At no
 * moment does the file give more than in the end, or than it gave before.  0
 * or -errno; then it gives no more than it should.
 */
int permissions_give(const struct permissions *permissions, int fd);

/* --- the parts, for tests ------------------------------------------------- */

/* The list of size_bytes as the kernel gives it; 0, or -EINVAL if it is none.
 */
int permissions_decode(struct permissions *permissions, const uint8_t *list,
		       size_t size_bytes);

/* The group could not be had. */
void permissions_lose_group(struct permissions *permissions);

/* The mode that gives what the list gives, or less. */
mode_t permissions_mode(const struct permissions *permissions);

#endif /* PERMISSIONS_H */
