/*
 * search.c - draw simulated networks at random, and judge what ranks make of
 * them
 *
 * usage: search SEEDS [FIRST [FAILURES]]
 *
 * Each seed from FIRST (1) on is a scenario: ranks, messages, a network, CPUs,
 * and perhaps a fault that no exchange can mend.  All CPUs run them, until the
 * judge has found fault with FAILURES (20) of them.  For each such seed a line
 * tells what was wrong, and another one how blinkprobe repeats it.  If SEEDS is
 * 1, the outcome of each rank is printed.
 *
 * What the judge holds against a run is in judge() and what it calls.
 */
#include <inttypes.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/base.h"
#include "base/clock.h"
#include "base/parse.h"
#include "base/splitmix.h"
#include "simulate/simulation.h"

/* A sanitizer takes memory of its own, and finds leaks.  clang has
 * __has_feature, gcc has macros. */
#ifdef __has_feature
#define HAS_FEATURE(name) __has_feature(name)
#else
#define HAS_FEATURE(name) 0
#endif
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) ||           \
	HAS_FEATURE(address_sanitizer) || HAS_FEATURE(thread_sanitizer)
#define SANITIZED 1
#else
#define SANITIZED 0
#endif
#define NODES_MAX 64
/* All messages of a scenario have so many bytes at most: more would take long.
 */
#define BYTES_MAX ((uint64_t)3 << 20)
#define FAILURES_DEFAULT 20
#define WORKERS_MAX 64
/* A seed takes some ms: one that computes for so long will never end. */
#define CPU_SECONDS_MAX 60

/* A scenario must end within so many deadlines beyond its pauses and what its
 * bytes take on the links: the first rank gives up after one, others may not
 * hear of it and do so after another one, debts begin anew once, and rank 0
 * stays for up to a second. */
#define DEADLINES_MAX 4
#define WIRE_TIMES_MAX 20
/* Where each eighth datagram or more is lost, lists of gaps are, too, and what
 * they name comes tens of milliseconds later, again and again. */
#define HEAVY_LOSS (VIRTUAL_CHANCE / 8)
#define HEAVY_LOSS_NS (300 * NS_PER_S)

struct scenario {
	uint64_t seed, random;
	struct simulation_options options;
	bool is_faulty[NODES_MAX]; /* others may give the rank up */
	bool is_killed[NODES_MAX];
	bool may_fail;
	struct simulation_outcome outcomes[NODES_MAX];
	struct simulation_figures figures;
	char wrong[256]; /* what the judge says; "": nothing */
};

/* In memory that all workers share. */
struct shared {
	uint64_t seeds[WORKERS_MAX]; /* of each worker: the one at hand */
	_Atomic uint64_t passed, failed, ended_by_fault;
	_Atomic uint64_t datagrams, bytes;
};

static struct shared *shared;
static pid_t workers[WORKERS_MAX];
static unsigned worker_count;
static uint64_t end_seed, failures_max;

/* --- drawing -----------------------------------------------------------------
 */

static uint64_t below(struct scenario *s, uint64_t limit)
{
	return splitmix_next(&s->random) % limit;
}

static uint64_t between(struct scenario *s, uint64_t min, uint64_t max)
{
	return min + below(s, max - min + 1);
}

static bool in_percent(struct scenario *s, unsigned percent)
{
	return below(s, 100) < percent;
}

#define PICK(s, ...)                                                           \
	((const uint64_t[]){ __VA_ARGS__ }[below(                              \
		s, ARRAY_LEN(((const uint64_t[]){ __VA_ARGS__ })))])

static void draw_messages(struct scenario *s)
{
	struct simulation_options *o = &s->options;
	uint64_t pairs, nodes_max;

	nodes_max = in_percent(s, 4) ? NODES_MAX
				     : PICK(s, 4, 4, 6, 6, 8, 8, 8, 12, 16);
	o->node_count = (unsigned)between(s, 2, nodes_max);
	o->times = in_percent(s, 50) ? 1 : (unsigned)between(s, 2, 6);
	pairs = (uint64_t)o->node_count * (o->node_count - 1) * o->times;
	o->message_bytes = below(s, PICK(s, 1, 100, 2000, 20000, 200000) + 1);
	o->message_bytes = MIN(o->message_bytes, BYTES_MAX / pairs);
	o->lengths = (enum simulation_lengths)PICK(
		s, SIMULATION_EQUAL, SIMULATION_EQUAL, SIMULATION_SKEWED,
		SIMULATION_SOME, SIMULATION_ONE);
	o->schedule = (enum exchange_schedule)PICK(
		s, EXCHANGE_ROUNDS, EXCHANGE_ALL_AT_ONCE, EXCHANGE_GRID,
		EXCHANGE_AUTO);
	/* A grid needs two rows and columns. */
	if (o->schedule == EXCHANGE_GRID && o->node_count < 4)
		o->schedule = EXCHANGE_ALL_AT_ONCE;
	o->says_hello = in_percent(s, 30);
	o->plain = in_percent(s, 20);
}

static void draw_network(struct scenario *s)
{
	struct virtual_network_options *n = &s->options.network;
	uint32_t longest;

	n->link_bits_per_s = NS_PER_S * PICK(s, 1, 10, 10, 100);
	if (in_percent(s, 10))
		n->link_bits_per_s = 100 * NS_PER_MS;
	n->link_delay_ns = PICK(s, 0, 500, 500, 5000, 50000, 500000);
	n->mtu_bytes = (uint32_t)PICK(s, 576, 1500, 1500, 9000);
	if (in_percent(s, 15))
		n->datagram_bytes = (uint32_t)PICK(s, 256, 1472, 4000, 8972);
	/* What holds no datagram never carries one. */
	longest = 2048 + MAX(n->mtu_bytes, n->datagram_bytes);
	n->queue_bytes = PICK(s, 0, 16, 64, 128, 4096) * KIB + 2 * longest;
	n->receive_room_max =
		(uint32_t)PICK(s, 0, 16, 64, 208, 16384) * KIB + 2 * longest;
	if (in_percent(s, 20)) {
		n->leaf_hosts = (unsigned)between(s, 1, s->options.node_count);
		n->oversubscription = (unsigned)between(s, 1, 4);
	}
	if (in_percent(s, 35))
		n->loss = VIRTUAL_CHANCE / PICK(s, 10000, 1000, 100, 30);
	if (in_percent(s, 25))
		n->duplication = VIRTUAL_CHANCE / PICK(s, 1000, 100, 10);
	if (in_percent(s, 25))
		n->reordering = VIRTUAL_CHANCE / PICK(s, 1000, 100, 10);
	if (in_percent(s, 25))
		n->corruption = VIRTUAL_CHANCE / PICK(s, 10000, 1000, 50);
}

/* Some ns up to a quarter of a second, as often of each order of magnitude. */
static uint64_t draw_moment(struct scenario *s)
{
	return below(s, (uint64_t)1 << between(s, 10, 28));
}

static void draw_cpus(struct scenario *s)
{
	struct simulation_options *o = &s->options;

	o->skew_ns = PICK(s, 0, 10000, 10000, 1000000, 100000000);
	o->deadline_ns = NS_PER_S * PICK(s, 1, 1, 2, 3);
	if (in_percent(s, 20)) {
		/* A tenth of the time, at most. */
		uint64_t gap_ns = NS_PER_S / PICK(s, 10, 100, 1000, 10000);

		o->noise[o->noise_count++] = (struct interruption){
			.gap_ns = gap_ns,
			.length_ns = below(s, gap_ns / 10),
		};
	}
	if (in_percent(s, 10)) {
		struct simulation_event *slow = &o->slow[o->slow_count++];

		slow->rank = (unsigned)below(s, o->node_count);
		slow->length_ns = between(s, 2, 30);
	}
}

/* A rank stops for less than the deadline, which all must outlast, or for
 * longer. */
static void draw_pause(struct scenario *s)
{
	struct simulation_options *o = &s->options;
	struct simulation_event *pause = &o->pauses[o->pause_count++];
	bool is_long = in_percent(s, 50);

	pause->rank = (unsigned)below(s, o->node_count);
	pause->at_ns = draw_moment(s);
	pause->length_ns = is_long ? o->deadline_ns * between(s, 10, 60) / 10
				   : below(s, o->deadline_ns * 7 / 10);
	s->is_faulty[pause->rank] |= is_long;
	s->may_fail |= is_long;
}

/* All ranks are stopped together, as virtual machines may be, and go on one
 * after the other: none is at fault. */
static void draw_pauses(struct scenario *s)
{
	struct simulation_options *o = &s->options;
	uint64_t at_ns = draw_moment(s);

	for (; o->pause_count < o->node_count; o->pause_count++)
		o->pauses[o->pause_count] = (struct simulation_event){
			.rank = o->pause_count,
			.at_ns = at_ns,
			.length_ns = 3 * o->deadline_ns +
				     below(s, o->deadline_ns / 2),
		};
}

static void draw_kill(struct scenario *s)
{
	struct simulation_options *o = &s->options;
	struct simulation_event *death = &o->deaths[o->death_count++];

	death->rank = (unsigned)below(s, o->node_count);
	death->at_ns = draw_moment(s);
	s->is_faulty[death->rank] = s->is_killed[death->rank] = true;
	s->may_fail = true;
}

static void draw_long_loss(struct scenario *s)
{
	struct virtual_network_options *n = &s->options.network;

	n->long_loss_host = (unsigned)below(s, s->options.node_count);
	n->long_loss_bytes = (uint32_t)PICK(s, 1, 150, 500, 1000, 1400);
	s->is_faulty[n->long_loss_host] = true;
	s->may_fail = true;
}

/* So much is lost that each rank may seem to be silent. */
static void draw_heavy_loss(struct scenario *s)
{
	s->options.network.loss = HEAVY_LOSS * PICK(s, 1, 2, 4);
	for (unsigned i = 0; i < s->options.node_count; i++)
		s->is_faulty[i] = true;
	s->may_fail = true;
}

/* What the scenario may take, in whole seconds: the option has no others. */
static uint64_t limit_of(const struct scenario *s)
{
	const struct simulation_options *o = &s->options;
	uint64_t bytes =
		o->message_bytes * o->node_count * o->node_count * o->times;
	uint64_t wire_ns =
		bytes * 8 * 1000 / (o->network.link_bits_per_s / NS_PER_MS);
	uint64_t ns = DEADLINES_MAX * o->deadline_ns +
		      WIRE_TIMES_MAX * wire_ns + NS_PER_S;

	if (o->network.loss >= HEAVY_LOSS)
		ns += HEAVY_LOSS_NS;
	for (unsigned i = 0; i < o->pause_count; i++)
		ns += o->pauses[i].length_ns;
	return DIV_ROUND_UP(ns, NS_PER_S) * NS_PER_S;
}

static void draw(struct scenario *s, uint64_t seed)
{
	*s = (struct scenario){ .seed = seed, .random = seed };
	s->options = simulation_usual();
	s->options.seed = seed;
	s->options.outcomes = s->outcomes;
	draw_messages(s);
	draw_network(s);
	draw_cpus(s);
	if (in_percent(s, 15))
		draw_pause(s);
	else if (in_percent(s, 3) &&
		 s->options.node_count <= ARRAY_LEN(s->options.pauses))
		draw_pauses(s);
	if (in_percent(s, 8))
		draw_kill(s);
	if (in_percent(s, 4))
		draw_long_loss(s);
	if (in_percent(s, 4))
		draw_heavy_loss(s);
	if (in_percent(s, 40))
		s->options.thread_count = (unsigned)PICK(s, 2, 2, 3, 4, 8);
	s->options.limit_ns = limit_of(s);
}

/* --- telling -----------------------------------------------------------------
 */

static void print_number(FILE *out, const char *name, uint64_t number,
			 uint64_t usual)
{
	if (number != usual)
		fprintf(out, " --%s=%" PRIu64, name, number);
}

static void print_chance(FILE *out, const char *name, uint64_t chance)
{
	if (chance > 0)
		fprintf(out, " --%s=0.%09" PRIu64, name, chance);
}

static void print_ms(FILE *out, uint64_t ns)
{
	fprintf(out, ":%" PRIu64 ".%06" PRIu64, ns / NS_PER_MS, ns % NS_PER_MS);
}

static void print_network(FILE *out, const struct virtual_network_options *n,
			  const struct virtual_network_options *usual)
{
	print_number(out, "link", n->link_bits_per_s, usual->link_bits_per_s);
	print_number(out, "delay", n->link_delay_ns, usual->link_delay_ns);
	print_number(out, "queue", n->queue_bytes, usual->queue_bytes);
	print_number(out, "mtu", n->mtu_bytes, usual->mtu_bytes);
	print_number(out, "datagram", n->datagram_bytes, usual->datagram_bytes);
	print_number(out, "receive-room", n->receive_room_max,
		     usual->receive_room_max);
	print_number(out, "leaf", n->leaf_hosts, usual->leaf_hosts);
	print_number(out, "oversubscription", n->oversubscription,
		     usual->oversubscription);
	print_chance(out, "loss", n->loss);
	print_chance(out, "duplicates", n->duplication);
	print_chance(out, "reordering", n->reordering);
	print_chance(out, "corruption", n->corruption);
	if (n->long_loss_bytes > 0)
		fprintf(out, " --lose-long=%u:%u", n->long_loss_host,
			n->long_loss_bytes);
}

static void print_command(FILE *out, const struct simulation_options *o)
{
	const struct simulation_options usual = simulation_usual();

	fprintf(out,
		"bin/blinkprobe simulate --nodes=%u --message=%" PRIu64
		" --lengths=%s --times=%u --schedule=%s%s%s"
		" --deadline=%" PRIu64 " --limit=%" PRIu64 " --seed=%" PRIu64,
		o->node_count, o->message_bytes,
		simulation_lengths_names[o->lengths], o->times,
		exchange_schedule_names[o->schedule],
		o->says_hello ? " --join" : "", o->plain ? " --plain" : "",
		o->deadline_ns / NS_PER_S, o->limit_ns / NS_PER_S, o->seed);
	print_number(out, "skew", o->skew_ns, usual.skew_ns);
	print_number(out, "threads", o->thread_count, usual.thread_count);
	print_network(out, &o->network, &usual.network);
	for (unsigned i = 0; i < o->noise_count; i++)
		fprintf(out, " --noise=%" PRIu64 ":%" PRIu64,
			NS_PER_S / o->noise[i].gap_ns, o->noise[i].length_ns);
	for (unsigned i = 0; i < o->slow_count; i++)
		fprintf(out, " --slow=%u:%" PRIu64, o->slow[i].rank,
			o->slow[i].length_ns);
	for (unsigned i = 0; i < o->pause_count; i++) {
		fprintf(out, " --pause=%u", o->pauses[i].rank);
		print_ms(out, o->pauses[i].at_ns);
		print_ms(out, o->pauses[i].length_ns);
	}
	for (unsigned i = 0; i < o->death_count; i++) {
		fprintf(out, " --kill=%u", o->deaths[i].rank);
		print_ms(out, o->deaths[i].at_ns);
	}
	fputc('\n', out);
}

static void print_ranks(const struct scenario *s)
{
	for (unsigned i = 0; i < s->options.node_count; i++) {
		const struct simulation_outcome *o = &s->outcomes[i];

		printf("  rank %u: %.6f ms%s: ", i, (double)o->ended_ns / 1e6,
		       o->has_come ? ", came to the barrier" : "");
		if (!o->has_ended)
			printf("did not end\n");
		else if (o->failure.status == EXIT_DONE)
			printf("success\n");
		else
			printf("blames rank %u: %s\n", o->blamed,
			       o->failure.why);
	}
	printf("  %" PRIu64 " datagrams, digest %016" PRIx64 "\n",
	       s->figures.network.datagrams, s->figures.digest);
}

/* --- judging -----------------------------------------------------------------
 */

/* Only the first reason is kept. */
__attribute__((format(printf, 2, 3))) static void blame(struct scenario *s,
							const char *format, ...)
{
	va_list arguments;

	if (s->wrong[0])
		return;
	va_start(arguments, format);
	vsnprintf(s->wrong, sizeof(s->wrong), format, arguments);
	va_end(arguments);
}

/* A rank that believes in success has all its bytes, and so have all others,
 * of which some may not know that all have come to the barrier. */
static void judge_success(struct scenario *s, unsigned rank)
{
	for (unsigned i = 0; i < s->options.node_count; i++)
		if (!s->outcomes[i].has_come)
			blame(s,
			      "rank %u believes in success, but rank %u had "
			      "not come to the barrier",
			      rank, i);
}

/* A rank that was stopped finds that it was away, and then waits for others for
 * the deadline anew. */
static bool was_away(const struct scenario *s, unsigned rank)
{
	const struct simulation_options *o = &s->options;
	uint64_t ended_ns = s->outcomes[rank].ended_ns;

	for (unsigned i = 0; i < o->pause_count; i++) {
		const struct simulation_event *pause = &o->pauses[i];

		if (pause->rank == rank && pause->length_ns > o->deadline_ns &&
		    ended_ns >= pause->at_ns &&
		    ended_ns < pause->at_ns + pause->length_ns + o->deadline_ns)
			return true;
	}
	return false;
}

/* A path loses long datagrams: both of its ends notice that the other one does
 * not get on.  So its rank may give up each other one, and tells that to all.
 */
static bool is_blamed_behind_path(const struct scenario *s, unsigned rank)
{
	const struct virtual_network_options *n = &s->options.network;

	return n->long_loss_bytes > 0 &&
	       s->outcomes[rank].blamed ==
		       s->outcomes[n->long_loss_host].blamed;
}

/* A rank that has ended may be missed by others, if a fault allowed it to fail:
 * it told them three times, and all may have been lost. */
static bool may_blame(const struct scenario *s, unsigned rank)
{
	const struct simulation_outcome *o = &s->outcomes[rank];
	const struct simulation_outcome *blamed = &s->outcomes[o->blamed];

	return s->may_fail &&
	       (s->is_faulty[o->blamed] || is_blamed_behind_path(s, rank) ||
		(blamed->has_ended && blamed->ended_ns < o->ended_ns &&
		 !was_away(s, rank)));
}

/* Ranks only time out, after the deadline: they speak the truth, and none may
 * find that another one lies. */
static bool is_time_out(const struct scenario *s, const char *why)
{
	char deadline[32];

	snprintf(deadline, sizeof(deadline), " %.1f s",
		 (double)s->options.deadline_ns / 1e9);
	return strstr(why, deadline) != NULL;
}

static void judge_rank(struct scenario *s, unsigned rank)
{
	const struct simulation_outcome *o = &s->outcomes[rank];

	if (o->has_other_bytes)
		blame(s, "rank %u got other bytes than were sent to it", rank);
	if (!o->has_ended && !s->is_killed[rank])
		blame(s, "rank %u did not end within %" PRIu64 " s", rank,
		      s->options.limit_ns / NS_PER_S);
	if (!o->has_ended)
		return;
	if (o->failure.status == EXIT_DONE)
		judge_success(s, rank);
	else if (o->failure.status != EXIT_PEER ||
		 !is_time_out(s, o->failure.why))
		blame(s, "rank %u failed by status %d: %s", rank,
		      (int)o->failure.status, o->failure.why);
	else if (!may_blame(s, rank))
		blame(s, "rank %u blames rank %u, which has no fault: %s", rank,
		      o->blamed, o->failure.why);
}

/*
 * Datagrams are bounded by what the bytes need, and by the time, in which each
 * pair may query and answer some 16 times a second, and send again what hardly
 * ever arrives as often.
 */
static void judge_datagrams(struct scenario *s)
{
	const struct simulation_options *o = &s->options;
	uint64_t pairs = (uint64_t)o->node_count * (o->node_count - 1);
	uint64_t payload = o->network.datagram_bytes
				   ? o->network.datagram_bytes
				   : o->network.mtu_bytes - 28;
	uint64_t segments = o->message_bytes / (payload - 64) + 1;
	uint64_t end_ns = 0, ticks, allowed;

	for (unsigned i = 0; i < o->node_count; i++)
		end_ns = MAX(end_ns, s->outcomes[i].ended_ns);
	ticks = end_ns / (64 * NS_PER_MS);
	allowed = pairs * o->times * (8 * segments + 32) + pairs * ticks * 8;

	if (o->network.long_loss_bytes > 0 || o->network.loss >= HEAVY_LOSS)
		allowed += pairs * segments * (32 + 4 * ticks);
	if (s->figures.network.datagrams > allowed)
		blame(s, "%" PRIu64 " datagrams, more than %" PRIu64,
		      s->figures.network.datagrams, allowed);
}

/* A run never takes more than so many times the bytes of its messages.  The
 * process keeps what earlier ones took. */
#define MEMORY_BYTES_MIN (64 * (uint64_t)MIB)
#define MEMORY_TIMES_MAX 8
/* A stack, and a mover's buffers, as far as they are touched. */
#define THREAD_BYTES_MAX (128 * KIB)

static void judge_memory(struct scenario *s)
{
	static uint64_t largest_bytes, most_threads;
	const struct simulation_options *o = &s->options;
	uint64_t bytes = o->message_bytes * o->node_count * o->node_count;
	struct rusage usage;

	largest_bytes = MAX(largest_bytes, bytes);
	most_threads =
		MAX(most_threads, (uint64_t)o->node_count * o->thread_count);
	getrusage(RUSAGE_SELF, &usage);
	if (!SANITIZED && (uint64_t)usage.ru_maxrss * KIB >
				  MEMORY_BYTES_MIN +
					  THREAD_BYTES_MAX * most_threads +
					  MEMORY_TIMES_MAX * largest_bytes)
		blame(s, "%ld KiB of memory", usage.ru_maxrss);
}

static void judge(struct scenario *s)
{
	for (unsigned i = 0; i < s->options.node_count; i++)
		judge_rank(s, i);
	judge_datagrams(s);
	judge_memory(s);
}

/* --- running -----------------------------------------------------------------
 */

static void run(struct scenario *s, uint64_t seed)
{
	struct failure failure;

	draw(s, seed);
	simulation_run(&s->options, &s->figures, &failure);
	judge(s);
}

/* In one write, beside those of other workers. */
static void tell_failed(const struct scenario *s)
{
	char *text = NULL;
	size_t bytes = 0;
	FILE *out = open_memstream(&text, &bytes);

	if (!out)
		return;
	fprintf(out, "seed %" PRIu64 ": %s\n  ", s->seed, s->wrong);
	print_command(out, &s->options);
	fclose(out);
	if (write(STDOUT_FILENO, text, bytes) < 0)
		perror("search");
	free(text);
}

static int run_one(uint64_t seed)
{
	static struct scenario s;

	run(&s, seed);
	print_command(stdout, &s.options);
	print_ranks(&s);
	printf("  %s\n", s.wrong[0] ? s.wrong : "passed");
	return s.wrong[0] ? EXIT_FAILURE : EXIT_SUCCESS;
}

/* All seeds of one worker, from the one at hand on. */
static void work(uint64_t *seed)
{
	const struct itimerval limit = { .it_value.tv_sec = CPU_SECONDS_MAX };
	static struct scenario s;

	for (; *seed < end_seed && shared->failed < failures_max;
	     *seed += worker_count) {
		bool ended_by_fault = false;

		setitimer(ITIMER_PROF, &limit, NULL);
		run(&s, *seed);
		for (unsigned i = 0; i < s.options.node_count; i++)
			ended_by_fault |=
				s.outcomes[i].failure.status != EXIT_DONE;
		shared->datagrams += s.figures.network.datagrams;
		shared->bytes += s.figures.ranks.received_bytes;
		shared->passed += !s.wrong[0];
		shared->failed += s.wrong[0] != '\0';
		shared->ended_by_fault += !s.wrong[0] && ended_by_fault;
		if (s.wrong[0])
			tell_failed(&s);
	}
}

static void start(unsigned worker)
{
	pid_t pid = fork();

	if (pid == 0) {
		work(&shared->seeds[worker]);
		exit(EXIT_SUCCESS);
	}
	if (pid < 0) {
		perror("search: fork");
		exit(EXIT_FAILURE);
	}
	workers[worker] = pid;
}

/* A worker that ends by a signal or an assertion does so by its seed, and
 * another one goes on with the next. */
static void wait_for(unsigned worker)
{
	uint64_t *seed = &shared->seeds[worker];
	static struct scenario s;
	int status;

	while (waitpid(workers[worker], &status, 0) == workers[worker] &&
	       status != 0) {
		draw(&s, *seed);
		blame(&s, "the process ended by signal %d, status %d",
		      WTERMSIG(status), WEXITSTATUS(status));
		tell_failed(&s);
		shared->failed++;
		*seed += worker_count;
		start(worker);
	}
}

static int search(uint64_t seeds, uint64_t first)
{
	worker_count =
		(unsigned)MIN(WORKERS_MAX, sysconf(_SC_NPROCESSORS_ONLN));
	end_seed = first + seeds;
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE,
		      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (shared == MAP_FAILED) {
		perror("search: memory");
		return EXIT_FAILURE;
	}
	for (unsigned i = 0; i < worker_count; i++) {
		shared->seeds[i] = first + i;
		start(i);
	}
	for (unsigned i = 0; i < worker_count; i++)
		wait_for(i);
	printf("%" PRIu64 " seeds: %" PRIu64 " passed, %" PRIu64
	       " failed, %" PRIu64 " ended by a fault; %" PRIu64
	       " datagrams, %" PRIu64 " bytes of messages\n",
	       shared->passed + shared->failed, shared->passed, shared->failed,
	       shared->ended_by_fault, shared->datagrams, shared->bytes);
	return shared->failed > 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}

int main(int argc, char **argv)
{
	uint64_t numbers[] = { 0, 1, FAILURES_DEFAULT };

	for (int i = 1; i < argc; i++)
		if (i > (int)ARRAY_LEN(numbers) ||
		    parse_u64(argv[i], 1, INT64_MAX, &numbers[i - 1]) < 0)
			numbers[0] = 0;
	if (numbers[0] == 0) {
		fprintf(stderr, "usage: search SEEDS [FIRST [FAILURES]]\n");
		return EXIT_USAGE;
	}
	failures_max = numbers[2];
	return numbers[0] == 1 ? run_one(numbers[1])
			       : search(numbers[0], numbers[1]);
}
