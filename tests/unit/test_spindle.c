/* test_spindle.c - two devices on one rotating disk, as /sys may tell it */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "fake_root.h"
#include "system/spindle.h"

#define SDA "sys/devices/pci0000:00/ata1/block/sda"
#define SDB "sys/devices/pci0000:00/ata2/block/sdb"
#define VDA "sys/devices/pci0000:00/virtio0/block/vda"
#define VIRTUAL "sys/devices/virtual/block/"

/* A folder of /sys with the file "dev", to which sys/dev/block leads. */
static void make_device(const char *folder, const char *number)
{
	char path[256], target[512];

	snprintf(path, sizeof(path), "%s/dev", folder);
	put(path, number);
	put("sys/dev/block/README", "");
	snprintf(path, sizeof(path), "%s/sys/dev/block/%s", root, number);
	snprintf(target, sizeof(target), "%s/%s", root, folder);
	assert_int_equal(symlink(target, path), 0);
}

static void make_disk(const char *folder, const char *number,
		      const char *rotational)
{
	char path[256];

	make_device(folder, number);
	snprintf(path, sizeof(path), "%s/queue/rotational", folder);
	put(path, rotational);
}

/* The device of `folder` is made of that of `slave`, among others. */
static void make_slave(const char *folder, const char *name, const char *slave)
{
	char path[256], target[512];

	snprintf(path, sizeof(path), "%s/slaves/README", folder);
	put(path, "");
	snprintf(path, sizeof(path), "%s/%s/slaves/%s", root, folder, name);
	snprintf(target, sizeof(target), "%s/%s", root, slave);
	assert_int_equal(symlink(target, path), 0);
}

static void expect_shared(unsigned one_major, unsigned one_minor,
			  unsigned major, unsigned minor, bool is_shared)
{
	uint64_t one = makedev(one_major, one_minor);
	uint64_t other = makedev(major, minor);

	assert_int_equal(spindle_is_shared(one, other), is_shared);
	assert_int_equal(spindle_is_shared(other, one), is_shared);
}

static void spindle__partitions(void **state)
{
	(void)state;
	make_disk(SDA, "8:0", "1\n");
	make_device(SDA "/sda1", "8:1");
	make_device(SDA "/sda2", "8:2");
	make_disk(SDB, "8:16", "1\n");
	make_device(SDB "/sdb1", "8:17");
	expect_shared(8, 1, 8, 1, true);
	expect_shared(8, 1, 8, 2, true);
	expect_shared(8, 0, 8, 2, true);
	expect_shared(8, 1, 8, 17, false);
	expect_shared(8, 1, 8, 3, false);
	expect_shared(8, 3, 8, 3, false);
	expect_shared(0, 40, 0, 40, false);
}

static void spindle__others_do_not_rotate(void **state)
{
	(void)state;
	make_disk(SDA, "8:0", "0\n");
	make_disk(SDB, "8:16", "");
	make_disk(VDA, "254:0", "1\n");
	make_device(VDA "/vda1", "254:1");
	expect_shared(8, 0, 8, 0, false);
	expect_shared(8, 16, 8, 16, false);
	expect_shared(254, 1, 254, 1, false);
}

/* A volume on an array of a partition and a disk */
static void spindle__below_volumes(void **state)
{
	(void)state;
	make_disk(SDA, "8:0", "1\n");
	make_device(SDA "/sda1", "8:1");
	make_device(SDA "/sda2", "8:2");
	make_disk(SDB, "8:16", "1\n");
	make_disk(VIRTUAL "md0", "9:0", "1\n");
	make_slave(VIRTUAL "md0", "sda2", SDA "/sda2");
	make_slave(VIRTUAL "md0", "sdb", SDB);
	make_disk(VIRTUAL "dm-0", "253:0", "1\n");
	make_slave(VIRTUAL "dm-0", "md0", VIRTUAL "md0");
	make_disk(VIRTUAL "dm-1", "253:1", "1\n");
	make_slave(VIRTUAL "dm-1", "dm-1", VIRTUAL "dm-1");
	expect_shared(253, 0, 8, 1, true);
	expect_shared(253, 0, 8, 16, true);
	expect_shared(253, 0, 9, 0, true);
	expect_shared(253, 0, 253, 1, false);
	/* It is said to be made of itself. */
	expect_shared(253, 1, 253, 1, false);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		UNDER_ROOT(spindle__partitions),
		UNDER_ROOT(spindle__others_do_not_rotate),
		UNDER_ROOT(spindle__below_volumes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
