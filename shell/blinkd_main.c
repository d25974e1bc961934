/*
 * blinkd - the command daemon of a node
 */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
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

#include "address.h"
#include "allowlist.h"
#include "command.h"
#include "daemon.h"
#include "keyfile.h"
#include "log.h"
#include "parse.h"
#include "process.h"
#include "usage.h"
#include "version.h"

#define PROCESSES_DEFAULT 512
#define TIMEOUT_S_MAX 4000000 /* fits 32 bits in milliseconds */

static const char usage[] =
	"Usage: blinkd --key=FILE --listen=ADDRESS:PORT [OPTION]...\n"
	"Run what blinksh asks for, for those who have the key.\n"
	"\n"
	"      --key=FILE         the cluster's key, of 'blinksh keygen', or "
	"its\n"
	"                         descriptor, fd:N; or BLINK_KEY\n"
	"      --listen=ADDRESS   where to get datagrams, as clients write it\n"
	"      --allow=FOLDER     run programs below it only; may be given "
	"again\n"
	"                         (the folder of blinkd itself)\n"
	"      --foreground       stay; say on stdout when ready\n"
	"      --memory=SIZE      address space of each process, as 2G (no "
	"limit)\n"
	"      --processes=N      processes at the same time; 0: no limit "
	"(512)\n"
	"      --file-size=SIZE   of each file that is written (no limit)\n"
	"      --cgroups          a cgroup for each job, if they can be had\n"
	"      --timeout=S        kill a job after so many seconds (never)\n"
	"      --help, --version\n"
	"\n"
	"Statuses: 0 stopped by SIGTERM or SIGINT (or, in the background, "
	"ready),\n"
	"2 usage, 3 key file, 4 the address, 5 resources.  See blinkd(1).\n";

enum {
	OPTION_KEY = 256,
	OPTION_LISTEN,
	OPTION_ALLOW,
	OPTION_FOREGROUND,
	OPTION_MEMORY,
	OPTION_PROCESSES,
	OPTION_FILE_SIZE,
	OPTION_TIMEOUT,
	OPTION_CGROUPS,
	OPTION_HELP,
	OPTION_VERSION,
};

static const struct option long_options[] = {
	{ "key", required_argument, NULL, OPTION_KEY },
	{ "listen", required_argument, NULL, OPTION_LISTEN },
	{ "allow", required_argument, NULL, OPTION_ALLOW },
	{ "foreground", no_argument, NULL, OPTION_FOREGROUND },
	{ "memory", required_argument, NULL, OPTION_MEMORY },
	{ "processes", required_argument, NULL, OPTION_PROCESSES },
	{ "file-size", required_argument, NULL, OPTION_FILE_SIZE },
	{ "timeout", required_argument, NULL, OPTION_TIMEOUT },
	{ "cgroups", no_argument, NULL, OPTION_CGROUPS },
	{ "help", no_argument, NULL, OPTION_HELP },
	{ "version", no_argument, NULL, OPTION_VERSION },
	{ NULL, 0, NULL, 0 },
};

struct options {
	struct daemon_options daemon;
	const char *key_path;
	const char *listen;
	bool foreground;
};

/* --- the command line ------------------------------------------------------
 */

static uint64_t size_option(const char *name, const char *text)
{
	uint64_t bytes;

	if (parse_size(text, 1, INT64_MAX, &bytes) < 0)
		usage_error("--%s=%.64s: not a size such as 512M", name, text);
	return bytes;
}

static void allow_option(struct allowlist *allow, const char *folder)
{
	int error = allowlist_add(allow, folder);

	if (error < 0)
		usage_error("--allow=%.100s: %s", folder, strerror(-error));
}

__attribute__((noreturn)) static void print_and_exit(const char *text)
{
	if (fputs(text, stdout) >= 0 && fflush(stdout) == 0)
		exit(EXIT_DONE);
	log_warn("standard output");
	exit(EXIT_FILE);
}

static void take_option(struct options *options, int option)
{
	struct job_limits *limits = &options->daemon.limits;

	switch (option) {
	case OPTION_KEY:
		options->key_path = optarg;
		break;
	case OPTION_LISTEN:
		options->listen = optarg;
		break;
	case OPTION_ALLOW:
		allow_option(&options->daemon.allow, optarg);
		break;
	case OPTION_FOREGROUND:
		options->foreground = true;
		break;
	case OPTION_MEMORY:
		limits->memory_bytes = size_option("memory", optarg);
		break;
	case OPTION_PROCESSES:
		limits->process_count =
			usage_number("processes", optarg, 0, INT_MAX);
		break;
	case OPTION_FILE_SIZE:
		limits->file_bytes = size_option("file-size", optarg);
		break;
	case OPTION_TIMEOUT:
		limits->timeout_ms_max =
			(uint32_t)usage_number("timeout", optarg, 1,
					       TIMEOUT_S_MAX) *
			1000u;
		break;
	case OPTION_CGROUPS:
		options->daemon.use_groups = true;
		break;
	case OPTION_HELP:
		print_and_exit(usage);
	case OPTION_VERSION:
		printf("blinkd %s\n", blinksort_version);
		print_and_exit("");
	default:
		fputs("Try 'blinkd --help'.\n", stderr);
		exit(EXIT_USAGE);
	}
}

/* The folder that this program lies in. */
static void allow_own_folder(struct allowlist *allow)
{
	char path[PATH_MAX];
	ssize_t bytes = readlink("/proc/self/exe", path, sizeof(path) - 1);

	if (bytes <= 0)
		usage_error("/proc/self/exe: %s; --allow is needed",
			    strerror(errno));
	path[bytes] = '\0';
	*strrchr(path, '/') = '\0';
	allow_option(allow, path[0] != '\0' ? path : "/");
}

static void parse_command_line(struct options *options, int argc, char **argv)
{
	int option;

	options->key_path = getenv("BLINK_KEY");
	options->daemon.limits.process_count = PROCESSES_DEFAULT;
	while ((option = getopt_long(argc, argv, "", long_options, NULL)) != -1)
		take_option(options, option);
	if (optind < argc)
		usage_error("%.100s: not an option; see blinkd --help",
			    argv[optind]);
	if (!options->key_path || options->key_path[0] == '\0')
		usage_error("--key is needed; see blinkd --help");
	if (!options->listen)
		usage_error("--listen is needed; see blinkd --help");
	if (options->daemon.allow.count == 0)
		allow_own_folder(&options->daemon.allow);
}

/* --- the process -----------------------------------------------------------
 */

/* What we were given, jobs would inherit: descriptors, signals that are ignored
 * or blocked. */
static void shed_inheritance(void)
{
	sigset_t none;
	int fd;

	do
		fd = open("/dev/null", O_RDWR | O_CLOEXEC);
	while (fd >= 0 && fd <= STDERR_FILENO);
	close(fd);
	syscall(SYS_close_range, STDERR_FILENO + 1, ~0u,
		/* CLOSE_RANGE_CLOEXEC */ 4);
	process_default_signals();
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
}

/* The key must not end up in a core file, not even in one that a program is
 * given, which no limit forbids; and no command, being of our user, may look
 * into our memory.  The commands' own processes are as all others are. */
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

/* The parent's part: until the child is ready, or has said why it is not. */
__attribute__((noreturn)) static void wait_until_ready(int fd, pid_t child)
{
	int status;
	char byte;

	if (read(fd, &byte, 1) == 1)
		_exit(EXIT_DONE);
	if (waitpid(child, &status, 0) == child && WIFEXITED(status))
		_exit(WEXITSTATUS(status));
	_exit(EXIT_RESOURCES);
}

/* Returns in the child, with the end of a pipe to say so when it is ready. */
static int go_to_background(struct failure *failure)
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
		wait_until_ready(ready[0], child);
	}
	close(ready[0]);
	setsid();
	return ready[1];
}

/* In the background nobody reads what we say. */
static void say_ready(const struct daemon *daemon, int ready_fd)
{
	int null_fd;

	if (ready_fd < 0) {
		printf("blinkd: listening on %s\n", daemon_node(daemon));
		fflush(stdout);
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
		ready_fd = go_to_background(failure);
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
	parse_command_line(&options, argc, argv);
	ret = open_all(&options, &daemon, &failure);
	if (ret == 0) {
		ret = serve(daemon, options.foreground, &failure);
		daemon_close(daemon);
	}
	allowlist_free(&options.daemon.allow);
	explicit_bzero(options.daemon.key, sizeof(options.daemon.key));
	return ret < 0 ? log_failure(&failure) : EXIT_DONE;
}
