/*
 * proctree.c - reads which processes there are, and kills those of a job
 */
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "system/proctree.h"
#include "system/small_file.h"

/* Rounds of stopping before the killing.  More are in vain: a generation of a
 * fork bomb lives shorter than a round takes; and the caller calls again. */
#define STOP_ROUNDS_MAX 8

/* --- /proc --------------------------------------------------------------- */

/* The name, in parentheses, may hold anything, parentheses included. */
static bool read_process(pid_t pid, struct proctree_process *process)
{
	char text[1024];
	const char *rest = NULL;
	unsigned long long start;

	if (small_file_read(text, sizeof(text), "/proc/%d/stat", (int)pid))
		rest = strrchr(text, ')');
	if (!rest)
		return false;
	/* The fields from the third on: state, parent, group, session, 13
	 * others up to 19. */
	/* NOLINTNEXTLINE(cert-err34-c): the kernel's own numbers */
	if (sscanf(rest + 1,
		   " %c %d %d %d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d"
		   " %*d %*d %u %*d %llu",
		   &process->state, &process->parent, &process->group,
		   &process->session, &process->thread_count, &start) != 6)
		return false;
	process->pid = pid;
	process->start_ticks = start;
	process->marked = false;
	return true;
}

/* True if the process has a thread that can run.  A zombie has none. */
static bool lives(const struct proctree_process *process)
{
	/* A zombie that has threads has lost its first thread only. */
	return (process->state != 'Z' && process->state != 'X') ||
	       process->thread_count > 1;
}

static void add(struct proctree *tree, pid_t pid)
{
	if (tree->count < PROCTREE_MAX &&
	    read_process(pid, &tree->processes[tree->count]))
		tree->count++;
}

static int by_pid(const void *a, const void *b)
{
	const struct proctree_process *left = a, *right = b;

	return (left->pid > right->pid) - (left->pid < right->pid);
}

static void read_all(struct proctree *tree)
{
	DIR *folder = opendir("/proc");
	const struct dirent *entry;

	tree->count = 0;
	while (folder && (entry = readdir(folder)))
		if (isdigit((unsigned char)entry->d_name[0]))
			add(tree, (pid_t)strtol(entry->d_name, NULL, 10));
	if (folder)
		closedir(folder);
	qsort(tree->processes, tree->count, sizeof(tree->processes[0]), by_pid);
}

/* Reads a process's environment from offset on.  Returns how many bytes; 0 on
 * error. */
static size_t read_environment(pid_t pid, off_t offset, char *text, size_t room)
{
	char path[64];
	ssize_t bytes;
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/environ", (int)pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return 0;
	bytes = pread(fd, text, room, offset);
	close(fd);
	return bytes > 0 ? (size_t)bytes : 0;
}

/* A variable may lie across two reads: each read begins with the end of the one
 * before. */
bool proctree_has_variable(pid_t pid, const char *variable)
{
	size_t length = strlen(variable) + 1;
	char text[8192];
	off_t offset = 0;
	size_t bytes;

	if (length > sizeof(text) / 2)
		return false;
	do {
		const char *at = text;

		bytes = read_environment(pid, offset, text, sizeof(text));
		if (bytes < length)
			return false;
		while ((at = memmem(at, (size_t)(text + bytes - at), variable,
				    length))) {
			if (at == text ? offset == 0 : at[-1] == '\0')
				return true;
			at++;
		}
		/* The end is a variable and the NUL before it. */
		offset += (off_t)(bytes - length);
	} while (bytes == sizeof(text));
	return false;
}

/* --- children ------------------------------------------------------------ */

/* Reads the kernel's list of our thread's children, "12 15 ", into pids.
 * Returns their count, or -errno: some kernels are built without the list. */
static int list_children(pid_t *pids, unsigned room)
{
	char path[64];
	FILE *list;
	unsigned count = 0;
	int pid;

	snprintf(path, sizeof(path), "/proc/self/task/%d/children",
		 (int)syscall(SYS_gettid));
	list = fopen(path, "re");
	if (!list)
		return -errno;
	/* NOLINTNEXTLINE(cert-err34-c): the kernel's own numbers */
	while (count < room && fscanf(list, "%d", &pid) == 1)
		pids[count++] = pid;
	fclose(list);
	return (int)count;
}

static void keep_living_children(struct proctree *tree)
{
	pid_t self = getpid();
	unsigned kept = 0;

	for (unsigned i = 0; i < tree->count; i++)
		if (tree->processes[i].parent == self &&
		    lives(&tree->processes[i]))
			tree->processes[kept++] = tree->processes[i];
	tree->count = kept;
}

void proctree_read_children(struct proctree *tree)
{
	static pid_t pids[PROCTREE_MAX];
	int count = list_children(pids, PROCTREE_MAX);

	if (count < 0) {
		read_all(tree);
	} else {
		tree->count = 0;
		for (int i = 0; i < count; i++)
			add(tree, pids[i]);
	}
	keep_living_children(tree);
}

/* --- marking ------------------------------------------------------------- */

static const struct proctree_process *find(const struct proctree *tree,
					   pid_t pid)
{
	struct proctree_process wanted = { .pid = pid };

	return bsearch(&wanted, tree->processes, tree->count, sizeof(wanted),
		       by_pid);
}

/* Marks the children of marked processes until no more are found.  That takes a
 * walk for each generation at most, and mostly one, since pids grow. */
static void mark_descendants(struct proctree *tree)
{
	bool found = true;

	while (found) {
		found = false;
		for (unsigned i = 0; i < tree->count; i++) {
			struct proctree_process *child = &tree->processes[i];
			const struct proctree_process *parent;

			if (child->marked)
				continue;
			parent = find(tree, child->parent);
			if (parent && parent->marked)
				child->marked = found = true;
		}
	}
}

struct selection {
	proctree_choice *choice; /* of children; NULL: by variable */
	void *context;
	const char *variable;
};

static void mark(struct proctree *tree, const struct selection *selection)
{
	pid_t self = getpid();

	for (unsigned i = 0; i < tree->count; i++) {
		struct proctree_process *process = &tree->processes[i];

		if (process->pid == self)
			continue;
		process->marked =
			selection->choice
				? process->parent == self &&
					  selection->choice(process,
							    selection->context)
				: proctree_has_variable(process->pid,
							selection->variable);
	}
	if (selection->choice)
		mark_descendants(tree);
}

/* --- signals ------------------------------------------------------------- */

/* Uses a pidfd, and checks that it is still the same process: one that is not
 * our child may have been reaped by now, and its pid given to another one. */
static void send_signal(const struct proctree_process *process, int signal)
{
	struct proctree_process now;
	int pidfd = (int)syscall(SYS_pidfd_open, process->pid, 0);

	if (pidfd < 0)
		return;
	if (read_process(process->pid, &now) &&
	    now.start_ticks == process->start_ticks)
		syscall(SYS_pidfd_send_signal, pidfd, signal, NULL, 0);
	close(pidfd);
}

/* Sends the signal to all marked processes that live; SIGSTOP only to those
 * that are not stopped.  Returns how many got it. */
static unsigned signal_marked(const struct proctree *tree, int signal)
{
	unsigned count = 0;

	for (unsigned i = 0; i < tree->count; i++) {
		const struct proctree_process *process = &tree->processes[i];

		if (!process->marked || !lives(process) ||
		    (signal == SIGSTOP && process->state == 'T'))
			continue;
		send_signal(process, signal);
		count++;
	}
	return count;
}

static unsigned kill_selected(struct proctree *tree,
			      const struct selection *selection)
{
	for (unsigned round = 0; round < STOP_ROUNDS_MAX; round++) {
		read_all(tree);
		mark(tree, selection);
		if (signal_marked(tree, SIGSTOP) == 0)
			break;
	}
	return signal_marked(tree, SIGKILL);
}

unsigned proctree_kill_children(struct proctree *tree, proctree_choice *choice,
				void *context)
{
	struct selection selection = { .choice = choice, .context = context };

	return kill_selected(tree, &selection);
}

unsigned proctree_kill_marked(struct proctree *tree, const char *variable)
{
	struct selection selection = { .variable = variable };

	return kill_selected(tree, &selection);
}
