/*
 * bench_exchange.c - the exchange alone: ranks as processes, over loopback, or
 * on links with a rate
 *
 * usage: bench_exchange [-t THREADS] [-1]
 *                       [NODES [MEGABYTES [PAYLOAD [ROUNDS [BRIDGE MBIT]]]]]
 *
 * With -t each rank moves bytes by so many threads, which then may run on any
 * CPU; with -1 only rank 0 sends.
 *
 * With a BRIDGE, as root, rank R is in the network namespace blinkBRIDGE-(R+1)
 * of "tests/cluster up NODES --netns --rate=MBIT", behind its link; and the
 * last column is what the model says, with CPU times measured between
 * namespaces.
 *
 * All ranks together hold so much data, in equal messages.  Each round of the
 * benchmark is one collective for each schedule, taken from when all have met
 * to when the last rank has all of its messages and all have its own.  Memory
 * is warm, as it is not in a sort.
 */
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/base.h"
#include "base/clock.h"
#include "base/log.h"
#include "exchange/exchange_grid.h"
#include "exchange/model/exchange_model.h"
#include "exchange/udp/udp.h"
#include "system/topology.h"
#include "messages.h"

#define ROUNDS_MAX 200
#define NODES_MAX 64

static const enum exchange_schedule schedules[] = {
	EXCHANGE_ROUNDS,
	EXCHANGE_ALL_AT_ONCE,
	EXCHANGE_GRID,
};

struct shared {
	uint64_t begin_ns[ROUNDS_MAX][NODES_MAX];
	uint64_t end_ns[ROUNDS_MAX][NODES_MAX];
	struct exchange_counters counters[NODES_MAX];
};

static unsigned node_count = 16, round_count = 20;
static uint32_t payload_bytes;
static unsigned thread_count = 1;
static bool is_one_way;
static const char *bridge; /* NULL: loopback */
static double link_mbit;
static struct shared *shared;

/* A grid is made when all have come. */
static int join(struct exchange *x, enum exchange_schedule schedule,
		struct failure *failure)
{
	unsigned rows, columns;
	int error = exchange_join(x, failure);

	if (error || schedule != EXCHANGE_GRID)
		return error;
	exchange_model_grid_sides(node_count, &rows, &columns);
	return exchange_grid_set(x, rows, columns, failure);
}

static struct exchange_length
length_one_way(const void *context, unsigned source, unsigned destination)
{
	(void)context, (void)destination;
	return (struct exchange_length){ source == 0 ? message_bytes : 0, 1,
					 0 };
}

static int run_rounds(struct exchange *x, unsigned own,
		      enum exchange_schedule schedule, struct failure *failure)
{
	uint64_t send_bytes[NODES_MAX];
	struct exchange_collective collective =
		make_collective(send_bytes, node_count);
	int error = join(x, schedule, failure);

	if (is_one_way) {
		collective.length = length_one_way;
		for (unsigned i = 0; i < node_count && own > 0; i++)
			send_bytes[i] = 0;
	}
	for (unsigned i = 0; i < round_count && error == 0; i++) {
		error = exchange_barrier(x, i + 1, NULL, 0, failure);
		shared->begin_ns[i][own] = clock_now_ns();
		if (error == 0)
			error = exchange_begin(x, &collective, failure);
		if (error == 0)
			error = exchange_finish(x, failure);
		shared->end_ns[i][own] = clock_now_ns();
	}
	if (error == 0)
		error = exchange_barrier(x, round_count + 1, NULL, 0, failure);
	if (error == 0)
		exchange_leave(x);
	shared->counters[own] = *exchange_counters(x);
	return error;
}

static void make_rank(struct rank *rank, unsigned own, unsigned run)
{
	pid_t parent = getppid();

	*rank = (struct rank){ .rank = own, .node_count = node_count };
	memcpy(rank->secret, &parent, sizeof(parent));
	memcpy(rank->secret + sizeof(parent), &run, sizeof(run));
	rank->addresses = calloc(node_count, sizeof(*rank->addresses));
	rank->names = calloc(node_count, sizeof(*rank->names));
	for (unsigned i = 0; i < node_count; i++) {
		char text[32];

		if (bridge)
			snprintf(text, sizeof(text), "10.177.%s.%u:7300",
				 bridge, 2 + i);
		else
			snprintf(text, sizeof(text), "127.0.0.%u:7300", 2 + i);
		address_parse(text, &rank->addresses[i]);
		rank->names[i] = strdup(text);
	}
}

/* Into the rank's namespace.  0 or -1, with a line of why. */
static int enter_namespace(unsigned own)
{
	char path[64];
	int fd, error;

	snprintf(path, sizeof(path), "/run/netns/blink%s-%u", bridge, 1 + own);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	error = fd < 0 ? -1 : setns(fd, CLONE_NEWNET);
	if (error)
		perror(path);
	if (fd >= 0)
		close(fd);
	return error;
}

static int run_node(unsigned own, enum exchange_schedule schedule)
{
	struct failure failure = { .status = EXIT_DONE };
	struct exchange_options options = {
		.schedule = schedule == EXCHANGE_GRID ? EXCHANGE_ALL_AT_ONCE
						      : schedule,
		.deadline_ns = (uint64_t)20 * 1000000000,
	};
	const struct udp_options udp_options = {
		.kernel = cpu_level_detect(),
		.payload_bytes = payload_bytes,
		.thread_count = thread_count,
	};
	struct topology topology;
	struct exchange *x;
	struct rank rank;
	int error = -1;

	if (bridge && enter_namespace(own))
		return 1;
	topology_read(&topology);
	if (thread_count == 1)
		topology_pin_self(topology.cpus[own % topology.cpu_count]);
	options.spins = node_count * thread_count <= topology.cpu_count;
	make_rank(&rank, own, schedule);
	options.rank = &rank;
	out = malloc(node_count * message_bytes);
	in = malloc(node_count * message_bytes);
	memset(out, 1, node_count * message_bytes);
	memset(in, 1, node_count * message_bytes);
	x = udp_open(&options, &udp_options, &failure);
	if (x)
		error = run_rounds(x, own, schedule, &failure);
	exchange_close(x);
	return error ? log_failure(&failure) : 0;
}

static int compare(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

/* CPU times where 32 namespaces share two CPUs, from all-at-once alone on links
 * that are no limit: 14 us for anything that is sent and received, and 10 for
 * each more datagram of a message (results/NOTES.md). */
static double model_ms(enum exchange_schedule schedule)
{
	struct exchange_model model;
	struct topology topology;

	topology_read(&topology);
	exchange_model_ethernet(&model, link_mbit * 1e6, 1500, 1, 1);
	/* A token bucket counts 14 bytes of Ethernet, and not 38. */
	model.overhead_bytes -= 24;
	model.status_bytes -= 24;
	model.message_ns = 1800;
	model.send_ns = 3400;
	model.receive_ns = 6900;
	model.status_ns = 14000;
	model.ranks_per_cpu = (double)node_count / topology.cpu_count;
	return exchange_model_ns(&model, schedule, node_count,
				 (double)message_bytes) /
	       1e6;
}

static void report(enum exchange_schedule schedule)
{
	uint64_t took_ns[ROUNDS_MAX], median_ns;
	struct exchange_counters sum = { 0 };

	for (unsigned i = 0; i < round_count; i++) {
		uint64_t begin_ns = UINT64_MAX, end_ns = 0;

		for (unsigned n = 0; n < node_count; n++) {
			begin_ns = MIN(begin_ns, shared->begin_ns[i][n]);
			end_ns = MAX(end_ns, shared->end_ns[i][n]);
		}
		took_ns[i] = end_ns - begin_ns;
	}
	for (unsigned n = 0; n < node_count; n++) {
		sum.sent_datagrams += shared->counters[n].sent_datagrams;
		sum.resent_datagrams += shared->counters[n].resent_datagrams;
		sum.status_datagrams += shared->counters[n].status_datagrams;
		sum.rounds_unwaited += shared->counters[n].rounds_unwaited;
	}
	qsort(took_ns, round_count, sizeof(*took_ns), compare);
	median_ns = took_ns[round_count / 2];
	printf("%-12s %8.2f %8.2f %10llu %8llu %8llu %8llu",
	       exchange_schedule_names[schedule], (double)took_ns[0] / 1e6,
	       (double)median_ns / 1e6,
	       (unsigned long long)sum.sent_datagrams / round_count,
	       (unsigned long long)sum.resent_datagrams / round_count,
	       (unsigned long long)sum.status_datagrams / round_count,
	       (unsigned long long)sum.rounds_unwaited / round_count);
	if (link_mbit > 0)
		printf(" %8.2f", model_ms(schedule));
	putchar('\n');
}

static int run_schedule(enum exchange_schedule schedule)
{
	int status, worst = 0;

	for (unsigned own = 0; own < node_count; own++)
		if (fork() == 0)
			_exit(run_node(own, schedule));
	while (wait(&status) > 0)
		worst |= status;
	if (worst == 0)
		report(schedule);
	return worst;
}

int main(int argc, char **argv)
{
	double megabytes;
	int option, worst = 0;

	log_init("bench_exchange");
	while ((option = getopt(argc, argv, "t:1")) != -1)
		switch (option) {
		case 't':
			thread_count = (unsigned)atoi(optarg);
			break;
		case '1':
			is_one_way = true;
			break;
		default:
			return 2;
		}
	argv += optind - 1;
	argc -= optind - 1;
	megabytes = argc > 2 ? atof(argv[2]) : 94;
	node_count = argc > 1 ? (unsigned)atoi(argv[1]) : node_count;
	bridge = argc > 6 ? argv[5] : NULL;
	link_mbit = argc > 6 ? atof(argv[6]) : 0;
	payload_bytes = argc > 3 ? (uint32_t)atoi(argv[3]) : 0;
	round_count = argc > 4 ? (unsigned)atoi(argv[4]) : round_count;
	if (node_count < 2 || node_count > NODES_MAX || round_count < 1 ||
	    round_count > ROUNDS_MAX || thread_count < 1 ||
	    thread_count > UDP_THREADS_MAX)
		return 2;
	message_bytes =
		(uint64_t)(megabytes * 1e6 / node_count / (node_count - 1));
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE,
		      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (shared == MAP_FAILED)
		return 5;
	printf("%u ranks, %.1f MB, payload %u; ms; datagrams a collective\n",
	       node_count, megabytes, payload_bytes);
	printf("%-12s %8s %8s %10s %8s %8s %8s%s\n", "schedule", "min",
	       "median", "sent", "again", "status", "skipped",
	       bridge ? "    model" : "");
	for (unsigned s = 0; s < ARRAY_LEN(schedules); s++)
		worst |= run_schedule(schedules[s]);
	return worst != 0;
}
