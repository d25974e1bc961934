/* jobgroup.c - a cgroup for each job, where we may make one */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "shell/jobgroup.h"

#define FOLDER_FLAGS (O_RDONLY | O_DIRECTORY | O_CLOEXEC)

/* --- files --------------------------------------------------------------- */

static bool write_text(int folder_fd, const char *name, const char *text)
{
	int fd = openat(folder_fd, name, O_WRONLY | O_CLOEXEC);
	size_t bytes = strlen(text);
	bool done;

	if (fd < 0)
		return false;
	done = write(fd, text, bytes) == (ssize_t)bytes;
	close(fd);
	return done;
}

/* Reads the beginning of the file as a string; "" if it cannot be read. */
static void read_text(int folder_fd, const char *name, char *text, size_t room)
{
	int fd = openat(folder_fd, name, O_RDONLY | O_CLOEXEC);
	ssize_t bytes = -1;

	if (fd >= 0) {
		bytes = read(fd, text, room - 1);
		close(fd);
	}
	text[bytes > 0 ? bytes : 0] = '\0';
}

/* --- where we are -------------------------------------------------------- */

/* Finds where cgroup v2 is mounted: alone, or beside v1. */
static const char *find_mount(void)
{
	static const char *const mounts[] = { "/sys/fs/cgroup",
					      "/sys/fs/cgroup/unified" };
	struct statfs status;

	for (unsigned i = 0; i < 2; i++)
		if (statfs(mounts[i], &status) == 0 &&
		    status.f_type == CGROUP2_SUPER_MAGIC)
			return mounts[i];
	return NULL;
}

/* Opens the folder of the cgroup that we are in, or returns -1. */
static int open_own_cgroup(void)
{
	const char *mount = find_mount();
	char text[8192], path[PATH_MAX];
	char *line;

	if (!mount)
		return -1;
	read_text(AT_FDCWD, "/proc/self/cgroup", text, sizeof(text));
	line = strstr(text, "0::/");
	if (!line || (line != text && line[-1] != '\n'))
		return -1;
	line += strlen("0::");
	line[strcspn(line, "\n")] = '\0';
	if ((size_t)snprintf(path, sizeof(path), "%s%s", mount, line) >=
	    sizeof(path))
		return -1;
	return open(path, FOLDER_FLAGS);
}

static bool is_alone(int cgroup_fd)
{
	char text[64], self[32];

	read_text(cgroup_fd, "cgroup.procs", text, sizeof(text));
	snprintf(self, sizeof(self), "%d\n", (int)getpid());
	return strcmp(text, self) == 0;
}

/* Moves us out of the cgroup, if no other process is in it. */
static bool move_out(int cgroup_fd)
{
	return is_alone(cgroup_fd) &&
	       (mkdirat(cgroup_fd, "blinkd-self", 0755) == 0 ||
		errno == EEXIST) &&
	       write_text(cgroup_fd, "blinkd-self/cgroup.procs", "0");
}

/* The root may have processes and children; it alone has no cgroup.type. */
static bool is_root(int cgroup_fd)
{
	return faccessat(cgroup_fd, "cgroup.type", F_OK, 0) < 0;
}

/* A cgroup that holds processes would accept "+pids", too, but become the root
 * of a threaded subtree, whose cgroups can hold no process of their own. */
static bool enable_pids(int cgroup_fd)
{
	return (is_root(cgroup_fd) || move_out(cgroup_fd)) &&
	       write_text(cgroup_fd, "cgroup.subtree_control", "+pids");
}

/* True if processes can be started in this cgroup. */
static bool is_domain(int cgroup_fd)
{
	char text[32];

	read_text(cgroup_fd, "cgroup.type", text, sizeof(text));
	return strcmp(text, "domain\n") == 0;
}

/* --- the pool ------------------------------------------------------------ */

static int make_folder(int parent_fd, const char *name)
{
	if (mkdirat(parent_fd, name, 0755) < 0 && errno != EEXIST)
		return -1;
	return openat(parent_fd, name, FOLDER_FLAGS);
}

/* Removes the groups of an earlier daemon, except those in which processes are
 * still dying. */
static void remove_groups(int pool_fd)
{
	DIR *folder = fdopendir(openat(pool_fd, ".", FOLDER_FLAGS));
	const struct dirent *entry;

	while (folder && (entry = readdir(folder)))
		if (entry->d_type == DT_DIR && entry->d_name[0] != '.')
			unlinkat(pool_fd, entry->d_name, AT_REMOVEDIR);
	if (folder)
		closedir(folder);
}

static void close_folders(struct jobgroup_pool *pool)
{
	unlinkat(pool->parent_fd, pool->name, AT_REMOVEDIR);
	if (pool->fd >= 0)
		close(pool->fd);
	close(pool->parent_fd);
	pool->fd = pool->parent_fd = -1;
}

void jobgroup_open(struct jobgroup_pool *pool, const char *node,
		   uint64_t process_count)
{
	*pool = (struct jobgroup_pool){ .fd = -1,
					.process_count = process_count };
	snprintf(pool->name, sizeof(pool->name), "blinkd-%s", node);
	pool->parent_fd = open_own_cgroup();
	if (pool->parent_fd < 0)
		return;
	pool->fd = make_folder(pool->parent_fd, pool->name);
	if (pool->fd >= 0) {
		write_text(pool->fd, "cgroup.kill", "1");
		remove_groups(pool->fd);
		pool->counts = enable_pids(pool->parent_fd);
	}
	if (pool->fd < 0 || !is_domain(pool->fd)) {
		pool->counts = false;
		close_folders(pool);
		return;
	}
	pool->counts = pool->counts &&
		       write_text(pool->fd, "cgroup.subtree_control", "+pids");
}

static void set_process_count(const struct jobgroup_pool *pool, int group_fd)
{
	char text[24] = "max";

	if (pool->process_count > 0)
		snprintf(text, sizeof(text), "%llu",
			 (unsigned long long)pool->process_count);
	if (pool->counts)
		write_text(group_fd, "pids.max", text);
}

static struct jobgroup make_group(struct jobgroup_pool *pool)
{
	struct jobgroup group = { .fd = -1 };
	char name[24];

	if (pool->fd < 0)
		return group;
	do {
		group.number = pool->made++;
		snprintf(name, sizeof(name), "%u", group.number);
	} while (mkdirat(pool->fd, name, 0755) < 0 && errno == EEXIST);
	group.fd = openat(pool->fd, name, FOLDER_FLAGS);
	if (group.fd >= 0)
		set_process_count(pool, group.fd);
	return group;
}

static void remove_group(struct jobgroup_pool *pool, struct jobgroup *group)
{
	char name[24];

	snprintf(name, sizeof(name), "%u", group->number);
	unlinkat(pool->fd, name, AT_REMOVEDIR);
	close(group->fd);
}

struct jobgroup jobgroup_take(struct jobgroup_pool *pool)
{
	if (pool->free_count > 0)
		return pool->free[--pool->free_count];
	return make_group(pool);
}

void jobgroup_give(struct jobgroup_pool *pool, struct jobgroup *group)
{
	if (group->fd >= 0 &&
	    (group->killed || pool->free_count == JOBGROUPS_MAX))
		remove_group(pool, group);
	else if (group->fd >= 0)
		pool->free[pool->free_count++] = *group;
	group->fd = -1;
}

bool jobgroup_kill(struct jobgroup *group)
{
	if (group->fd < 0)
		return false;
	group->killed = true;
	return write_text(group->fd, "cgroup.kill", "1");
}

bool jobgroup_is_empty(const struct jobgroup *group)
{
	char text[128];

	read_text(group->fd, "cgroup.events", text, sizeof(text));
	return strstr(text, "populated 0") != NULL;
}

void jobgroup_close(struct jobgroup_pool *pool)
{
	while (pool->free_count > 0)
		remove_group(pool, &pool->free[--pool->free_count]);
	if (pool->fd < 0)
		return;
	close_folders(pool);
}
