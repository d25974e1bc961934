/* What permissions promises: a file that replaces another gives no user a right
 * that the old one did not give.  The rule of acl(5) stands here once more, and
 * lists of all kinds are held against it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/posix_acl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/base.h"
#include "io/output/permissions.h"
#include "random.h"
#include "skip.h"

#define ROUNDS 2000
/* The groups that a person may be in, as bits of a set. */
enum { OLD_GROUP, NEW_GROUP, NAMED_1, NAMED_2, GROUPS };
/* Users: 1 and 2 may have entries of their own, 3 has none. */
#define USERS 3

struct person {
	uint32_t user;
	unsigned groups;
};

static bool is_in(const struct person *person, uint32_t group)
{
	return person->groups >> group & 1;
}

/* A list and the group that the file belongs to say whether a person, not its
 * owner, may have all of these bits; by acl(5), "ACCESS CHECK ALGORITHM". */
static bool may(const struct permissions *list, uint32_t file_group,
		const struct person *person, unsigned want)
{
	unsigned mask = 7, others = 0;
	bool found = false, granted = false;

	for (unsigned i = 0; i < list->entry_count; i++) {
		if (list->entries[i].tag == ACL_MASK)
			mask = list->entries[i].bits;
		if (list->entries[i].tag == ACL_OTHER)
			others = list->entries[i].bits;
	}
	for (unsigned i = 0; i < list->entry_count; i++) {
		const struct permissions_entry *entry = &list->entries[i];
		unsigned bits = entry->bits & mask;

		if (entry->tag == ACL_USER && entry->id == person->user)
			return (bits & want) == want;
		if ((entry->tag == ACL_GROUP_OBJ &&
		     is_in(person, file_group)) ||
		    (entry->tag == ACL_GROUP && is_in(person, entry->id))) {
			found = true;
			granted |= (bits & want) == want;
		}
	}
	return found ? granted : (others & want) == want;
}

static void add(struct permissions *list, uint16_t tag, uint32_t id)
{
	list->entries[list->entry_count++] = (struct permissions_entry){
		.tag = tag,
		.bits = (uint16_t)(random_next() & 7),
		.id = id,
	};
}

/* In the kernel's order. */
static void draw(struct permissions *list)
{
	unsigned named = (unsigned)(random_next() & 15);

	list->entry_count = 0;
	add(list, ACL_USER_OBJ, 0);
	for (uint32_t i = 0; i < 2; i++)
		if (named >> i & 1)
			add(list, ACL_USER, i + 1);
	add(list, ACL_GROUP_OBJ, 0);
	for (uint32_t i = 0; i < 2; i++)
		if (named >> (2 + i) & 1)
			add(list, ACL_GROUP, NAMED_1 + i);
	if (named != 0)
		add(list, ACL_MASK, 0);
	add(list, ACL_OTHER, 0);
}

static void from_mode(struct permissions *list, mode_t mode)
{
	static const uint16_t tags[] = { ACL_USER_OBJ, ACL_GROUP_OBJ,
					 ACL_OTHER };

	list->entry_count = 3;
	for (unsigned i = 0; i < 3; i++)
		list->entries[i] = (struct permissions_entry){
			.tag = tags[i],
			.bits = mode >> (6 - 3 * i) & 7,
		};
}

static void assert_no_more(const struct permissions *before,
			   const struct permissions *after, uint32_t new_group)
{
	for (uint32_t user = 1; user <= USERS; user++)
		for (unsigned groups = 0; groups < 1u << GROUPS; groups++)
			for (unsigned want = 1; want < 8; want++) {
				struct person person = { user, groups };

				if (may(after, new_group, &person, want) &&
				    !may(before, OLD_GROUP, &person, want))
					fail_msg("user %u of groups %x may %o",
						 user, groups, want);
			}
}

/* --- what is computed ----------------------------------------------------- */

static void permissions_lose_group__gives_no_more(void **state)
{
	static struct permissions before, after;

	(void)state;
	for (unsigned i = 0; i < ROUNDS; i++) {
		draw(&before);
		after = before;
		permissions_lose_group(&after);
		assert_no_more(&before, &after, NEW_GROUP);
	}
}

static void permissions_mode__gives_no_more(void **state)
{
	static struct permissions before, lost, after;

	(void)state;
	for (unsigned i = 0; i < ROUNDS; i++) {
		draw(&before);
		from_mode(&after, permissions_mode(&before));
		assert_no_more(&before, &after, OLD_GROUP);
		lost = before;
		permissions_lose_group(&lost);
		from_mode(&after, permissions_mode(&lost));
		assert_no_more(&before, &after, NEW_GROUP);
	}
}

/* And not less than is needed where there is no list. */
static void permissions_mode__of_a_plain_mode(void **state)
{
	static struct permissions list;

	(void)state;
	for (mode_t mode = 0; mode <= 0777; mode++) {
		unsigned both = mode >> 3 & mode & 7;

		from_mode(&list, mode);
		assert_int_equal(permissions_mode(&list), mode);
		permissions_lose_group(&list);
		assert_int_equal(permissions_mode(&list),
				 (mode & 0700) | both << 3 | both);
	}
}

/* --- what the kernel gives ------------------------------------------------ */

/* In the kernel's form: u::6 u:1000:6 g::4 m::6 o::0 */
static const uint8_t example[] = {
	2,    0, 0, 0,			       /* version */
	1,    0, 6, 0, 0xff, 0xff, 0xff, 0xff, /* owner */
	2,    0, 6, 0, 0xe8, 3,	   0,	 0,    /* user 1000 */
	4,    0, 4, 0, 0xff, 0xff, 0xff, 0xff, /* group */
	0x10, 0, 6, 0, 0xff, 0xff, 0xff, 0xff, /* mask */
	0x20, 0, 0, 0, 0xff, 0xff, 0xff, 0xff, /* others */
};

static void permissions_decode__example(void **state)
{
	static struct permissions list;

	(void)state;
	assert_int_equal(permissions_decode(&list, example, sizeof(example)),
			 0);
	assert_int_equal(list.entry_count, 5);
	assert_int_equal(list.entries[1].tag, ACL_USER);
	assert_int_equal(list.entries[1].id, 1000);
	assert_int_equal(permissions_mode(&list), 0640);
}

static void permissions_decode__not_a_list(void **state)
{
	static uint8_t large[4 + 8 * (PERMISSIONS_ENTRIES_MAX + 1)];
	static struct permissions list;
	uint8_t *copy = malloc(sizeof(example));

	(void)state;
	assert_non_null(copy);
	for (size_t bytes = 0; bytes < sizeof(example); bytes++) {
		/* ASan sees a read behind the end. */
		uint8_t *cut = malloc(bytes + 1);

		assert_non_null(cut);
		memcpy(cut, example, bytes);
		assert_int_equal(permissions_decode(&list, cut, bytes),
				 -EINVAL);
		free(cut);
	}
	memcpy(copy, example, sizeof(example));
	copy[0] = 3;
	assert_int_equal(permissions_decode(&list, copy, sizeof(example)),
			 -EINVAL);
	free(copy);
	memcpy(large, example, sizeof(example));
	assert_int_equal(permissions_decode(&list, large, sizeof(large)),
			 -EINVAL);
}

/* --- files ---------------------------------------------------------------- */

static char path[64];

static int make_file(mode_t mode)
{
	int fd;

	snprintf(path, sizeof(path), "/tmp/test_permissions.XXXXXX");
	fd = mkostemp(path, O_CLOEXEC);
	assert_true(fd >= 0);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(fchmod(fd, mode), 0);
	return fd;
}

static mode_t mode_of(int fd)
{
	struct stat status;

	assert_int_equal(fstat(fd, &status), 0);
	return status.st_mode & 07777;
}

static void read_all(struct permissions *permissions, int fd)
{
	struct stat status;

	assert_int_equal(fstat(fd, &status), 0);
	permissions_read(permissions, fd, &status);
}

static void permissions_give__mode(void **state)
{
	static struct permissions permissions;
	int from = make_file(06754);
	int to = make_file(0600);

	(void)state;
	read_all(&permissions, from);
	assert_int_equal(permissions_give(&permissions, to), 0);
	assert_int_equal(mode_of(to), 0754);
	close(from);
	close(to);
}

/* The list by O_PATH, too, and in place of another. */
static void permissions_give__list(void **state)
{
	static struct permissions permissions;
	uint8_t list[sizeof(example) + 1];
	char self[32];
	int from = make_file(0600), to = make_file(0600);
	int again;

	(void)state;
	if (fsetxattr(from, "system.posix_acl_access", example, sizeof(example),
		      0)) {
		close(from);
		close(to);
		skip_because("no access control lists in /tmp");
	}
	snprintf(self, sizeof(self), "/proc/self/fd/%d", from);
	again = open(self, O_PATH | O_CLOEXEC);
	assert_true(again >= 0);
	read_all(&permissions, again);
	assert_int_equal(permissions_give(&permissions, to), 0);
	assert_int_equal(mode_of(to), 0660);
	assert_int_equal(
		fgetxattr(to, "system.posix_acl_access", list, sizeof(list)),
		sizeof(example));
	assert_memory_equal(list, example, sizeof(example));
	/* And away with it. */
	close(again);
	again = make_file(0640);
	read_all(&permissions, again);
	assert_int_equal(permissions_give(&permissions, to), 0);
	assert_int_equal(mode_of(to), 0640);
	assert_true(fgetxattr(to, "system.posix_acl_access", list,
			      sizeof(list)) < 0);
	close(from);
	close(again);
	close(to);
}

static void permissions_of_new__umask(void **state)
{
	static struct permissions permissions;
	char folder[] = "/tmp/test_permissions.XXXXXX";
	int folder_fd;

	(void)state;
	assert_non_null(mkdtemp(folder));
	folder_fd = open(folder, O_PATH | O_DIRECTORY | O_CLOEXEC);
	assert_true(folder_fd >= 0);
	for (mode_t mask = 0; mask <= 0777; mask++) {
		mode_t before = umask(mask);

		permissions_of_new(&permissions, folder_fd);
		assert_int_equal(umask(before), mask);
		assert_int_equal(permissions_mode(&permissions), 0666 & ~mask);
	}
	close(folder_fd);
	assert_int_equal(rmdir(folder), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(permissions_lose_group__gives_no_more),
		cmocka_unit_test(permissions_mode__gives_no_more),
		cmocka_unit_test(permissions_mode__of_a_plain_mode),
		cmocka_unit_test(permissions_decode__example),
		cmocka_unit_test(permissions_decode__not_a_list),
		cmocka_unit_test(permissions_give__mode),
		cmocka_unit_test(permissions_give__list),
		cmocka_unit_test(permissions_of_new__umask),
	};

	random_begin();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
