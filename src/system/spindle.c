/* spindle.c - which rotating disks a device lies on */
#include "system/spindle.h"

#include <dirent.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysmacros.h>

#include "system/small_file.h"

/* Of an array of volumes of partitions and so on; what is deeper is passed
 * over, as are further disks. */
#define LAYERS_MAX 8
#define SPINDLES_MAX 64

struct spindles {
	unsigned count;
	uint64_t devices[SPINDLES_MAX];
};

/* The device whose number is in the file "dev" of a folder of /sys. */
static bool read_device(const char *folder, uint64_t *device)
{
	char text[32];
	unsigned numbers[2];

	if (!small_file_read(text, sizeof(text), "%s/dev", folder) ||
	    sscanf(text, "%u:%u", &numbers[0], &numbers[1]) != 2)
		return false;
	*device = makedev(numbers[0], numbers[1]);
	return true;
}

static bool is_one(const char *folder, const char *file)
{
	char text[8];

	return small_file_read(text, sizeof(text), "%s/%s", folder, file) &&
	       text[0] == '1';
}

/* KVM, Xen and Hyper-V say of each disk that it rotates. */
static bool is_virtual(const char *folder)
{
	return strstr(folder, "/virtio") || strstr(folder, "/vbd-") ||
	       strstr(folder, "/VMBUS");
}

static void find(struct spindles *spindles, uint64_t device, unsigned layer);

/* What a volume or an array is made of.  False: it is neither. */
static bool find_below(struct spindles *spindles, const char *folder,
		       unsigned layer)
{
	char path[PATH_MAX];
	const struct dirent *entry;
	bool found = false;
	uint64_t device;
	DIR *slaves;

	if (!small_file_path(path, "%s/slaves", folder))
		return false;
	slaves = opendir(path);
	while (slaves && (entry = readdir(slaves)) != NULL) {
		if (entry->d_name[0] == '.' ||
		    snprintf(path, sizeof(path), "%s/slaves/%s", folder,
			     entry->d_name) >= (int)sizeof(path) ||
		    !read_device(path, &device))
			continue;
		find(spindles, device, layer + 1);
		found = true;
	}
	if (slaves)
		closedir(slaves);
	return found;
}

static void find(struct spindles *spindles, uint64_t device, unsigned layer)
{
	char folder[64], parent[80], link[PATH_MAX], target[PATH_MAX];
	uint64_t disk;

	snprintf(folder, sizeof(folder), "/sys/dev/block/%u:%u", major(device),
		 minor(device));
	snprintf(parent, sizeof(parent), "%s/..", folder);
	if (layer == LAYERS_MAX || !small_file_path(link, "%s", folder) ||
	    !realpath(link, target) || find_below(spindles, folder, layer))
		return;
	/* The folder of a partition is in that of its disk. */
	if (read_device(parent, &disk))
		find(spindles, disk, layer + 1);
	else if (is_one(folder, "queue/rotational") && !is_virtual(target) &&
		 spindles->count < SPINDLES_MAX)
		spindles->devices[spindles->count++] = device;
}

bool spindle_is_shared(uint64_t one, uint64_t other)
{
	struct spindles ones = { 0 }, others = { 0 };

	find(&ones, one, 0);
	find(&others, other, 0);
	for (unsigned i = 0; i < ones.count; i++)
		for (unsigned j = 0; j < others.count; j++)
			if (ones.devices[i] == others.devices[j])
				return true;
	return false;
}
