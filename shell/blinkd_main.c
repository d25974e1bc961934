/* blinkd_main.c - the command daemon of a node */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/base.h"
#include "base/log.h"
#include "base/options.h"
#include "base/stdout.h"
#include "net/address.h"
#include "net/keyfile.h"
#include "shell/allowlist.h"
#include "shell/command.h"
#include "shell/daemon.h"
#include "shell/process.h"

#define PROCESSES_DEFAULT 512
#define TIMEOUT_S_MAX 4000000 /* fits 32 bits in milliseconds */

/* Each line as it is printed. */
/* clang-format off */
static const char help[] =
"Usage: blinkd --key-file=FILE --listen=ADDRESS[:PORT] [OPTION]...\n"
"Run commands for blinksh, if the client has the cluster's key.  When the daemon\n"
"is ready, it prints its address and process ID, and is in the background.\n"
"SIGTERM stops it and its jobs.\n"
"\n"
"  --key-file=FILE    read the key, which 'blinksh keygen' makes, from a\n"
"                     file or a descriptor, fd:N ($BLINK_KEY)\n"
"  --listen=ADDRESS[:PORT]\n"
"                     receive datagrams there (port 7300); clients use the\n"
"                     same address\n"
"  --allow=DIR        run only programs below DIR; may be given again\n"
"                     (the folder of blinkd itself)\n"
"  --foreground       stay in the foreground; print the address when ready\n"
"  --memory=SIZE      limit each process's address space, as 2G (no\n"
"                     limit)\n"
"  --processes=N      limit the processes at the same time; 0: no limit\n"
"                     (512)\n"
"  --file-size=SIZE   limit each file that is written (no limit)\n"
"  --timeout=SECONDS  kill a job after this time (never)\n"
"  --cgroups          make a cgroup for each job, if that is possible\n"
"  --no-namespaces    forbid jobs to make namespaces\n"
"  -h, --help         print this text\n"
"  -V, --version      print the version\n"
"\n"
"Statuses: 0 stopped by SIGTERM or SIGINT (or, in the background, ready),\n"
"2 usage, 3 key file, 4 the address, 5 resources.  See blinkd(1).\n";
/* clang-format on */

enum {
	OPTION_KEY = OPTIONS_OWN,
	OPTION_LISTEN,
	OPTION_ALLOW,
	OPTION_FOREGROUND,
	OPTION_MEMORY,
	OPTION_PROCESSES,
	OPTION_FILE_SIZE,
	OPTION_TIMEOUT,
	OPTION_CGROUPS,
	OPTION_NO_NAMESPACES,
};

static const struct options_entry entries[] = {
	{ OPTION_KEY, "key-file", 0, OPTIONS_FILE, "FILE" },
	{ OPTION_KEY, "key", 0, OPTIONS_FILE, "FILE" }, /* before 0.1.0 */
	{ OPTION_LISTEN, "listen", 0, OPTIONS_VALUE, "ADDRESS:PORT" },
	{ OPTION_ALLOW, "allow", 0, OPTIONS_VALUES, "DIR" },
	{ OPTION_FOREGROUND, "foreground", 0, OPTIONS_FLAG, NULL },
	{ OPTION_MEMORY, "memory", 0, OPTIONS_VALUE, "SIZE" },
	{ OPTION_PROCESSES, "processes", 0, OPTIONS_VALUE, "N" },
	{ OPTION_FILE_SIZE, "file-size", 0, OPTIONS_VALUE, "SIZE" },
	{ OPTION_TIMEOUT, "timeout", 0, OPTIONS_VALUE, "SECONDS" },
	{ OPTION_CGROUPS, "cgroups", 0, OPTIONS_FLAG, NULL },
	{ OPTION_NO_NAMESPACES, "no-namespaces", 0, OPTIONS_FLAG, NULL },
	OPTIONS_COMMON,
};

struct options {
	struct options_reader reader;
	struct daemon_options daemon;
	const char *key_path;
	const char *listen;
	bool foreground;
};

/* --- the command line ----------------------------------------------------- */

static int take_folder(struct options *options, struct failure *failure)
{
	int error =
		allowlist_add(&options->daemon.allow, options->reader.value);

	if (error < 0)
		return options_refuse(&options->reader, failure, "%s",
				      strerror(-error));
	return 0;
}

static int take_timeout(struct options *options, struct failure *failure)
{
	uint64_t seconds = 0;
	int ret = options_number(&options->reader, 1, TIMEOUT_S_MAX, &seconds,
				 failure);

	options->daemon.limits.timeout_ms_max = (uint32_t)(1000 * seconds);
	return ret;
}

static int take_option(void *context, int id, struct failure *failure)
{
	struct options *options = context;
	struct options_reader *reader = &options->reader;
	struct job_limits *limits = &options->daemon.limits;

	switch (id) {
	case OPTION_ALLOW:
		return take_folder(options, failure);
	case OPTION_MEMORY:
		return options_size(reader, 1, INT64_MAX, &limits->memory_bytes,
				    failure);
	case OPTION_PROCESSES:
		return options_number(reader, 0, INT_MAX,
				      &limits->process_count, failure);
	case OPTION_FILE_SIZE:
		return options_size(reader, 1, INT64_MAX, &limits->file_bytes,
				    failure);
	case OPTION_TIMEOUT:
		return take_timeout(options, failure);
	default:
		return 0;
	}
}

/* Allows the folder that this program lies in. */
static int allow_own_folder(struct allowlist *allow, struct failure *failure)
{
	char path[PATH_MAX];
	ssize_t bytes = readlink("/proc/self/exe", path, sizeof(path) - 1);
	int error;

	if (bytes <= 0)
		return failure_set(failure, EXIT_USAGE, "/proc/self/exe", 0,
				   "%s; --allow is needed", strerror(errno));
	path[bytes] = '\0';
	*strrchr(path, '/') = '\0';
	error = allowlist_add(allow, path[0] != '\0' ? path : "/");
	if (error < 0)
		return failure_set(failure, EXIT_USAGE, "/proc/self/exe", 0,
				   "its folder: %s; --allow is needed",
				   strerror(-error));
	return 0;
}

static int complete_options(struct options *options, struct failure *failure)
{
	const struct options_reader *reader = &options->reader;

	options->key_path = options_value(reader, OPTION_KEY);
	if (!options->key_path)
		options->key_path = getenv("BLINK_KEY");
	options->listen = options_value(reader, OPTION_LISTEN);
	options->foreground = options_given(reader, OPTION_FOREGROUND);
	options->daemon.limits.no_namespaces =
		options_given(reader, OPTION_NO_NAMESPACES);
	options->daemon.use_groups = options_given(reader, OPTION_CGROUPS);
	if (reader->operand_count > 0)
		return failure_set(failure, EXIT_USAGE, reader->operands[0], 0,
				   "not an option; see blinkd --help");
	if (!options->key_path || options->key_path[0] == '\0')
		return failure_set(failure, EXIT_USAGE, "--key-file", 0,
				   "is missing, and BLINK_KEY is not set; see "
				   "blinkd --help");
	if (!options->listen)
		return failure_set(failure, EXIT_USAGE, "--listen", 0,
				   "is missing; see blinkd --help");
	if (options->daemon.allow.count == 0)
		return allow_own_folder(&options->daemon.allow, failure);
	return 0;
}

/* --- the process --------------------------------------------------------- */

/* Gives up what jobs would inherit from our parent: descriptors, and signals
 * that are ignored or blocked. */
static void shed_inheritance(void)
{
	sigset_t none;

	stdout_reserve();
	syscall(SYS_close_range, STDERR_FILENO + 1, ~0u,
		/* CLOSE_RANGE_CLOEXEC */ 4);
	process_default_signals();
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
}

/* The key must not end up in a core file, not even in one that the kernel pipes
 * into a program, which no limit forbids; and no command, which runs as our
 * user, may look into our memory.  execve() makes the commands' own processes
 * dumpable again. */
static int keep_to_ourselves(struct failure *failure)
{
	const struct rlimit no_core = { 0, 0 };

	if (setrlimit(RLIMIT_CORE, &no_core) < 0 ||
	    prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0)
		return failure_set(failure, EXIT_RESOURCES, "core files", errno,
				   "");
	return 0;
}

static int find_address(const struct options *options, struct address *address,
			struct failure *failure)
{
	int error = address_parse(options->listen, address);

	if (error == -EINVAL)
		return failure_set(failure, EXIT_USAGE, options->listen, 0,
				   "not an address such as 10.0.0.1:7300");
	if (error == -ENOENT)
		return failure_set(failure, EXIT_PEER, options->listen, 0,
				   "no such host: give an address of this "
				   "machine, such as 10.0.0.1:7300");
	if (error == -EAGAIN)
		return failure_set(failure, EXIT_PEER, options->listen, 0, "%s",
				   address_why(error));
	if (error < 0)
		return failure_set(failure, EXIT_PEER, options->listen, -error,
				   "");
	return 0;
}

static int open_all(struct options *options, struct daemon **daemon,
		    struct failure *failure)
{
	struct daemon_options *wanted = &options->daemon;
	int ret = keep_to_ourselves(failure);

	if (ret < 0)
		return ret;
	ret = command_init();
	if (ret < 0)
		return failure_set(failure, EXIT_RESOURCES, "libsodium", -ret,
				   "");
	ret = keyfile_read(options->key_path, wanted->key, failure);
	if (ret == 0)
		ret = find_address(options, &wanted->listen, failure);
	if (ret == 0)
		ret = daemon_open(daemon, wanted, failure);
	return ret;
}

/* A daemon whose standard output is lost still serves, also if that is a pipe
 * without a reader.  Jobs get SIGPIPE as the daemon got it. */
static void print_ready(const struct daemon *daemon, const char *process)
{
	struct sigaction before, ignored = { .sa_handler = SIG_IGN };

	sigaction(SIGPIPE, &ignored, &before);
	printf("blinkd: listening on %s%s\n", daemon_node(daemon), process);
	(void)stdout_finish();
	sigaction(SIGPIPE, &before, NULL);
}

/* The parent waits until the child is ready, or has said why it is not.  It
 * prints the child's number, which the shell does not learn. */
__attribute__((noreturn)) static void
wait_until_ready(const struct daemon *daemon, int fd, pid_t child)
{
	char process[32];
	int status;
	char byte;

	if (read(fd, &byte, 1) == 1) {
		snprintf(process, sizeof(process), ", process %d", child);
		print_ready(daemon, process);
		_exit(EXIT_DONE);
	}
	if (waitpid(child, &status, 0) == child && WIFEXITED(status))
		_exit(WEXITSTATUS(status));
	_exit(EXIT_RESOURCES);
}

/* Returns in the child, with the end of a pipe that tells the parent when the
 * child is ready. */
static int go_to_background(const struct daemon *daemon,
			    struct failure *failure)
{
	int ready[2];
	pid_t child;

	if (pipe2(ready, O_CLOEXEC) < 0)
		return failure_set(failure, EXIT_RESOURCES, "pipe", errno, "");
	child = fork();
	if (child < 0)
		return failure_set(failure, EXIT_RESOURCES, "fork", errno, "");
	if (child > 0) {
		close(ready[1]);
		wait_until_ready(daemon, ready[0], child);
	}
	close(ready[0]);
	setsid();
	return ready[1];
}

/* A daemon in the background closes its streams once it is ready: its user has
 * the shell back and reads no more messages. */
static void say_ready(const struct daemon *daemon, int ready_fd)
{
	int null_fd;

	if (ready_fd < 0) {
		print_ready(daemon, "");
		return;
	}
	null_fd = open("/dev/null", O_RDWR | O_CLOEXEC);
	for (int fd = 0; null_fd >= 0 && fd <= STDERR_FILENO; fd++)
		dup2(null_fd, fd);
	if (null_fd >= 0)
		close(null_fd);
	while (write(ready_fd, "", 1) < 0 && errno == EINTR)
		;
	close(ready_fd);
}

static int serve(struct daemon *daemon, bool foreground,
		 struct failure *failure)
{
	int ready_fd = -1;
	int ret;

	if (!foreground) {
		ready_fd = go_to_background(daemon, failure);
		if (ready_fd < 0)
			return ready_fd;
	}
	if (chdir("/") < 0)
		return failure_set(failure, EXIT_FILE, "/", errno, "");
	ret = daemon_begin(daemon, failure);
	if (ret < 0)
		return ret;
	say_ready(daemon, ready_fd);
	return daemon_run(daemon, failure);
}

int main(int argc, char **argv)
{
	static struct options options;
	struct failure failure = { .status = EXIT_DONE };
	struct daemon *daemon = NULL;
	int ret;

	log_init("blinkd");
	shed_inheritance();
	options.daemon.limits.process_count = PROCESSES_DEFAULT;
	options_begin(&options.reader, entries, ARRAY_LEN(entries),
		      argv + (argc > 0));
	ret = options_read(&options.reader, take_option, &options, &failure);
	if (ret > 0)
		return stdout_print_info(ret, "blinkd", help);
	if (ret == 0)
		ret = complete_options(&options, &failure);
	if (ret == 0)
		ret = open_all(&options, &daemon, &failure);
	if (ret == 0) {
		ret = serve(daemon, options.foreground, &failure);
		daemon_close(daemon);
	}
	allowlist_free(&options.daemon.allow);
	explicit_bzero(options.daemon.key, sizeof(options.daemon.key));
	return ret < 0 ? log_failure(&failure) : EXIT_DONE;
}
