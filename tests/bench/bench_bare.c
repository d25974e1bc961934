/*
 * bench_bare.c - the least that starting a program everywhere can cost
 *
 * USAGE: bench_bare NODES LAUNCHES PROGRAM
 *
 * What blinksh and blinkd do, and nothing of what makes it safe or useful: each
 * node is a process with one socket, which upon any datagram starts PROGRAM by
 * vfork(2) and execve(2), waits for it and sends the datagram back.  Nobody
 * authenticates anything, no output is read, no program is ever killed, and all
 * that a node does between two programs is three system calls.
 *
 * Prints a line for each launch: ns from before the first datagram was sent
 * until the last one was back.  Nodes have the addresses 127.0.0.2 and
 * following, and end with the client.
 */
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"

#define NODES_MAX 253
/* As long as the shortest of blinksh's. */
#define DATAGRAM_BYTES 256
/* Nothing is lost on one machine: what is silent for so long has ended. */
#define SILENCE_MS 10000
/* The first ones find cold caches and make page tables: not printed. */
#define WARM_UP 10

static const char *program;
static struct sockaddr_in nodes[NODES_MAX];
static unsigned node_count;

__attribute__((noreturn)) static void die(const char *what)
{
	fprintf(stderr, "bench_bare: %s: %s\n", what, strerror(errno));
	_exit(1);
}

/* --- a node ----------------------------------------------------------------
 */

/* The exit status, or -1: there is no program. */
static int run_program(void)
{
	char *arguments[] = { (char *)program, NULL };
	char *environment[] = { NULL };
	int status;
	/* What is to be measured.  NOLINTNEXTLINE(clang-analyzer-security*) */
	pid_t pid = vfork();

	if (pid == 0) {
		execve(program, arguments, environment);
		_exit(127);
	}
	if (pid < 0 || waitpid(pid, &status, 0) != pid || !WIFEXITED(status))
		return -1;
	return WEXITSTATUS(status);
}

__attribute__((noreturn)) static void serve(int fd)
{
	uint8_t datagram[DATAGRAM_BYTES];
	struct sockaddr_in from;
	socklen_t from_bytes = sizeof(from);

	for (;;) {
		ssize_t bytes = recvfrom(fd, datagram, sizeof(datagram), 0,
					 (struct sockaddr *)&from, &from_bytes);

		if (bytes < 0)
			die("recvfrom");
		if (run_program() != 0)
			die(program);
		if (sendto(fd, datagram, (size_t)bytes, 0,
			   (struct sockaddr *)&from, from_bytes) != bytes)
			die("sendto");
	}
}

/* The socket is there before the process is: no datagram comes too early. */
static void start_node(unsigned number)
{
	struct sockaddr_in *address = &nodes[number];
	socklen_t bytes = sizeof(*address);
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	pid_t client = getpid();
	pid_t pid;

	*address = (struct sockaddr_in){
		.sin_family = AF_INET,
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK + 1 + number),
	};
	if (fd < 0 || bind(fd, (struct sockaddr *)address, bytes) < 0 ||
	    getsockname(fd, (struct sockaddr *)address, &bytes) < 0)
		die("socket");
	pid = fork();
	if (pid < 0)
		die("fork");
	if (pid == 0) {
		/* One that ended before we asked sends no signal. */
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (getppid() != client)
			_exit(1);
		serve(fd);
	}
	close(fd);
}

/* --- the client ------------------------------------------------------------
 */

static bool receive(int fd, const uint8_t *expected)
{
	struct pollfd polled = { .fd = fd, .events = POLLIN };
	uint8_t datagram[DATAGRAM_BYTES];
	ssize_t bytes;

	/* As blinksh does: it has time-outs to see to. */
	do {
		bytes = recv(fd, datagram, sizeof(datagram), MSG_DONTWAIT);
		if (bytes < 0 && errno != EAGAIN)
			die("recv");
	} while (bytes < 0 && poll(&polled, 1, SILENCE_MS) > 0);
	if (bytes < 0)
		return false;
	return memcmp(datagram, expected, sizeof(datagram)) == 0;
}

static uint64_t launch(int fd)
{
	uint8_t datagram[DATAGRAM_BYTES] = { 0 };
	uint64_t begin_ns = clock_now_ns();

	memcpy(datagram, &begin_ns, sizeof(begin_ns));
	for (unsigned i = 0; i < node_count; i++)
		if (sendto(fd, datagram, sizeof(datagram), 0,
			   (struct sockaddr *)&nodes[i], sizeof(nodes[i])) < 0)
			die("sendto");
	for (unsigned i = 0; i < node_count; i++) {
		if (!receive(fd, datagram)) {
			fprintf(stderr, "bench_bare: a node is silent\n");
			_exit(1);
		}
	}
	return clock_now_ns() - begin_ns;
}

static bool parse(const char *text, unsigned max, unsigned *number)
{
	char *end;
	unsigned long value = strtoul(text, &end, 10);

	*number = (unsigned)value;
	return *text != '\0' && *end == '\0' && value >= 1 && value <= max;
}

int main(int argc, char **argv)
{
	unsigned count;
	int fd;

	if (argc != 4 || !parse(argv[1], NODES_MAX, &node_count) ||
	    !parse(argv[2], 10000000, &count)) {
		fprintf(stderr, "usage: bench_bare NODES LAUNCHES PROGRAM\n");
		return 2;
	}
	program = argv[3];
	for (unsigned i = 0; i < node_count; i++)
		start_node(i);
	fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		die("socket");
	for (unsigned i = 0; i < WARM_UP; i++)
		launch(fd);
	for (unsigned i = 0; i < count; i++)
		printf("%llu\n", (unsigned long long)launch(fd));
	return 0;
}
