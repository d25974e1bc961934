/*
 * test_udp.c - ranks as threads of one process, over loopback
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <linux/filter.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "exchange/exchange_grid.h"
#include "exchange/model/exchange_model.h"
#include "exchange/udp/udp_state.h"

#define NODES_MAX 32
#define HEAD_BYTES 24 /* a second place for the beginning of each message */
#define DEADLINE_NS ((uint64_t)60 * 1000000000)
/* Where a rank is to be given up: longer than a living one may be kept from
 * answering by a busy machine. */
#define SHORT_DEADLINE_NS ((uint64_t)3 * 1000000000)

enum conduct {
	BEHAVES,
	STAYS_AWAY,
	LEAVES_AFTER_JOINING,
	FAILS,
	FAILS_TO_PREPARE,
	PREPARES_LATE,
	/* Announces, and claims to be in the second collective at once. */
	GOES_ON_EARLY,
	/* Is in the second collective, and never announces for the first. */
	SKIPS_THE_FIRST,
	/* Announces, and answers for ever that it is not ready. */
	IS_NEVER_READY,
	/* In the first collective, of the length of one message. */
	ANNOUNCES_ANOTHER,
	/* No DATA reaches it, as where the network takes short datagrams only.
	 */
	HEARS_NO_DATA,
	/* Behaves, but has nothing to say at the first barrier. */
	REPORTS_NOTHING,
};

struct setting {
	unsigned node_count;
	enum exchange_schedule schedule;
	unsigned rows, columns; /* not 0: a grid */
	bool has_long_messages; /* in every other collective, from the first */
	uint32_t payload_bytes;
	uint32_t window_bytes;
	uint16_t port; /* 0: drawn */
	bool plain;
	unsigned loss_percent; /* of all datagrams, or of batches */
	unsigned collectives;
	enum conduct conduct; /* of the culprit */
	unsigned culprit;
	unsigned deceived;   /* the message to this rank */
	uint64_t more_bytes; /* are announced */
	bool page;
	unsigned threads; /* that move DATA; 0: the rank's own */
	bool strangers;	  /* send to all */
	bool computes;	  /* a rank that has all messages serves others */
	bool tells;	  /* after the collectives, all tell rank 0 something */
	uint64_t (*bytes)(unsigned exchange, unsigned source, unsigned to);
};

/* One rank, in a thread of its own. */
struct node {
	const struct setting *setting;
	struct rank rank;
	unsigned epoch; /* at hand */
	uint64_t in_bytes[NODES_MAX];
	uint8_t *heads[NODES_MAX], *bodies[NODES_MAX];
	bool whole[NODES_MAX];
	unsigned whole_count;
	uint64_t prefix[NODES_MAX];
	bool bad; /* something was not as it should be */
	uint64_t strays, resent;
	uint64_t served_max; /* datagrams sent again by one call */
	struct failure failure;
	char what[64]; /* of the failure, which ends with the exchange */
	char told[FAILURE_WHY_BYTES]; /* to the other ranks, at the end */
	pthread_t thread;
};

static uint8_t byte_at(unsigned exchange, unsigned source, unsigned to,
		       uint64_t offset)
{
	uint64_t mixed = (offset + 1) * 0x9e3779b97f4a7c15u + source * 1009 +
			 to * 31 + exchange * 7;

	return (uint8_t)(mixed >> 40);
}

static void read_message(void *context, unsigned to, uint64_t offset,
			 uint8_t *target, size_t byte_count)
{
	const struct node *node = context;

	for (size_t i = 0; i < byte_count; i++)
		target[i] =
			byte_at(node->epoch, node->rank.rank, to, offset + i);
}

static struct exchange_length length_of(const void *context, unsigned source,
					unsigned destination)
{
	const struct node *node = context;

	return (struct exchange_length){
		node->setting->bytes(node->epoch, source, destination), 1, 0
	};
}

static atomic_bool culprit_is_prepared;

static int prepare(void *context, const uint64_t *receive_bytes,
		   struct failure *failure)
{
	struct node *node = context;

	if (node->setting->conduct == FAILS_TO_PREPARE &&
	    node->rank.rank == node->setting->culprit)
		return failure_set(failure, EXIT_FILE, "out.1", 0,
				   "the disk is full");
	if (node->setting->conduct == PREPARES_LATE &&
	    node->rank.rank == node->setting->culprit) {
		usleep(100000);
		atomic_store(&culprit_is_prepared, true);
	}
	for (unsigned i = 0; i < node->setting->node_count; i++) {
		node->in_bytes[i] = receive_bytes[i];
		node->heads[i] = calloc(1, HEAD_BYTES);
		node->bodies[i] = calloc(1, receive_bytes[i] + 1);
		node->prefix[i] = 0;
		node->whole[i] = false;
	}
	node->whole_count = 0;
	return 0;
}

static uint8_t *place(void *context, unsigned from, uint64_t offset,
		      size_t *room)
{
	struct node *node = context;

	if (offset < HEAD_BYTES) {
		*room = HEAD_BYTES - offset;
		return node->heads[from] + offset;
	}
	*room = node->in_bytes[from] - offset;
	return node->bodies[from] + offset;
}

static void arrived(void *context, unsigned from, uint64_t prefix_bytes,
		    bool whole)
{
	struct node *node = context;

	if (node->whole[from] ||
	    (prefix_bytes <= node->prefix[from] && prefix_bytes > 0))
		node->bad = true;
	node->prefix[from] = prefix_bytes;
	node->whole[from] = whole;
	node->whole_count += whole;
	if (whole != (prefix_bytes == node->in_bytes[from]))
		node->bad = true;
	/* The sender's first message is the culprit's, which was not ready. */
	if (node->setting->conduct == PREPARES_LATE &&
	    (from + 1) % node->setting->node_count == node->setting->culprit &&
	    node->rank.rank != node->setting->culprit &&
	    !atomic_load(&culprit_is_prepared))
		node->bad = true;
}

static void free_messages(struct node *node)
{
	for (unsigned from = 0; from < node->setting->node_count; from++) {
		free(node->heads[from]);
		free(node->bodies[from]);
		node->heads[from] = node->bodies[from] = NULL;
	}
}

static void check_and_free(struct node *node)
{
	unsigned own = node->rank.rank;

	for (unsigned from = 0; from < node->setting->node_count; from++) {
		for (uint64_t i = 0; i < node->in_bytes[from]; i++) {
			const uint8_t *bytes = i < HEAD_BYTES
						       ? node->heads[from]
						       : node->bodies[from];

			if (bytes[i] != byte_at(node->epoch, from, own, i))
				node->bad = true;
		}
	}
	free_messages(node);
	if (node->whole_count != node->setting->node_count - 1)
		node->bad = true;
}

/* As one that has got all and sorts it, in pieces of 2 ms. */
static int compute(struct node *node, struct exchange *x)
{
	const struct exchange_counters *counters = exchange_counters(x);
	int error = exchange_receive(x, &node->failure);

	while (error == 0 && !x->transport->is_through(x)) {
		uint64_t before = counters->resent_datagrams;

		usleep(2000);
		error = exchange_serve(x, &node->failure);
		node->served_max = MAX(node->served_max,
				       counters->resent_datagrams - before);
	}
	return error;
}

/* Of messages to this rank and from it, at any time before the end. */
static void check_lengths(struct node *node, const struct exchange *x)
{
	unsigned own = node->rank.rank;

	for (unsigned i = 0; i < node->setting->node_count; i++)
		if (i != own &&
		    (exchange_bytes(x, i, own) !=
			     node->setting->bytes(node->epoch, i, own) ||
		     exchange_bytes(x, own, i) !=
			     node->setting->bytes(node->epoch, own, i)))
			node->bad = true;
}

static int run_collectives(struct node *node, struct exchange *x)
{
	const struct setting *setting = node->setting;

	for (node->epoch = 1; node->epoch <= setting->collectives;
	     node->epoch++) {
		uint64_t send_bytes[NODES_MAX];
		struct exchange_collective collective = {
			.context = node,
			.send_bytes = send_bytes,
			.read = read_message,
			.length = length_of,
			.prepare = prepare,
			.place = place,
			.arrived = arrived,
			.has_long_messages = setting->has_long_messages &&
					     node->epoch % 2 == 1,
		};
		int error;

		for (unsigned to = 0; to < setting->node_count; to++)
			send_bytes[to] = setting->bytes(node->epoch,
							node->rank.rank, to);
		if (setting->conduct == ANNOUNCES_ANOTHER &&
		    node->rank.rank == setting->culprit)
			send_bytes[setting->deceived] += setting->more_bytes;
		error = exchange_begin(x, &collective, &node->failure);
		if (error == 0 && setting->computes)
			error = compute(node, x);
		if (error == 0)
			error = exchange_receive(x, &node->failure);
		if (error == 0)
			check_lengths(node, x);
		if (error == 0)
			error = exchange_finish(x, &node->failure);
		if (error) {
			free_messages(node);
			return error;
		}
		check_and_free(node);
	}
	return 0;
}

/* What comes in is dropped in so many cases of a hundred, by the kernel. */
static void lose(int fd, unsigned percent)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
			 (uint32_t)(SKF_AD_OFF + SKF_AD_RANDOM)),
		BPF_STMT(BPF_ALU | BPF_MOD | BPF_K, 100),
		BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, percent, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, UINT32_MAX),
		BPF_STMT(BPF_RET | BPF_K, 0),
	};
	struct sock_fprog program = { ARRAY_LEN(code), code };

	if (percent > 0)
		setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &program,
			   sizeof(program));
}

/* Datagrams that only look as if they were ours. */
static void disturb(const struct udp *x, unsigned seed)
{
	struct udp_wire_keys keys = x->keys, strange;
	uint8_t bytes[UDP_STATUS_BYTES_MAX + 100], secret[32] = { 9 };
	struct udp_wire_data data = { .epoch = 1, .source = 1, .length = 8 };
	struct udp_wire_status status = { .source = 1,
					  .serial = 1u << 30,
					  .epoch = 1,
					  .data_port = 1,
					  .segment_bytes = 1000,
					  .flags = UDP_STATUS_READY };
	struct datagram_socket out;
	struct datagram_options plain = { .plain = true };
	struct address any;
	struct failure failure;

	udp_wire_derive_keys(secret, &strange);
	address_parse("127.0.0.1:7300", &any);
	address_set_port(&any, 0);
	if (datagram_open(&out, &any, &plain, &failure) < 0)
		return;
	for (unsigned i = 0; i < 400; i++) {
		struct iovec part = { bytes, (i * 37 + seed) % sizeof(bytes) };
		const struct udp_wire_keys *by = i % 2 ? &strange : &keys;

		for (size_t k = 0; k < sizeof(bytes); k++)
			bytes[k] = (uint8_t)(k * 31 + i * 7 + seed);
		data.destination = status.destination = (uint16_t)udp_own(x);
		if (i % 3 == 0) {
			udp_wire_seal_data(&data, by, crc32c_scalar, bytes + 32,
					   bytes);
			part.iov_len = 40;
			bytes[33] ^= by == &keys; /* damaged, if it was good */
		} else if (i % 3 == 1) {
			part.iov_len = udp_wire_seal_status(&status, by, bytes);
			bytes[part.iov_len - 1] ^= by == &keys;
			part.iov_len -= i % 5 == 0;
		}
		if (part.iov_len == 0)
			continue;
		datagram_send(&out, &x->movers[0].control.local, &part, 1,
			      part.iov_len, part.iov_len);
		datagram_send(&out, &x->movers[i % x->mover_count].data.local,
			      &part, 1, part.iov_len, part.iov_len);
	}
	datagram_close(&out);
}

/* Ranks that have heard all others, and that have come to the end of what they
 * do. */
static atomic_uint joined_count, ended_count;

/* One that says nothing true from now on must not be waited for any more. */
static bool wait_until_joined(struct exchange *x, unsigned count,
			      struct failure *failure)
{
	for (unsigned i = 0; i < 20000 && atomic_load(&joined_count) < count;
	     i++) {
		if (exchange_serve(x, failure) < 0)
			return false;
		usleep(1000);
	}
	return atomic_load(&joined_count) == count;
}

/* Say the same until the others have ended, and take nothing. */
static void insist(struct node *node, struct exchange *x)
{
	uint64_t send_bytes[NODES_MAX] = { 0 };
	struct exchange_collective collective = {
		.context = node,
		.send_bytes = send_bytes,
		.read = read_message,
		.length = length_of,
		.prepare = prepare,
		.place = place,
		.arrived = arrived,
	};
	enum conduct conduct = node->setting->conduct;
	struct udp *udp = udp_of(x);

	node->epoch = 1;
	for (unsigned to = 0; to < udp_node_count(udp); to++)
		send_bytes[to] = node->setting->bytes(1, node->rank.rank, to);
	if (!wait_until_joined(x, udp_node_count(udp), &node->failure))
		return;
	/* Whatever the others announce, it is not heard. */
	x->serve_steps_max = 0;
	x->epoch += conduct == SKIPS_THE_FIRST;
	if (exchange_begin(x, &collective, &node->failure) < 0)
		return;
	x->epoch += conduct == GOES_ON_EARLY;
	/* The others leave out what they are told before their first, which on
	 * a busy machine they begin late. */
	for (unsigned i = 0;
	     i < 20000 && atomic_load(&ended_count) < udp_node_count(udp) - 1;
	     i++) {
		udp_status_send(udp, EXCHANGE_ALL, 0);
		usleep(1000);
	}
	free_messages(node);
}

static const char told[] = "so far";
static atomic_bool is_told; /* by all, to rank 0 */

static bool have_all_told(const struct exchange *x, unsigned count)
{
	for (unsigned i = 1; i < count; i++) {
		size_t bytes;
		const void *got = exchange_application_payload(x, i, &bytes);

		if (bytes != sizeof(told) || memcmp(got, told, bytes) != 0)
			return false;
	}
	return true;
}

/* No rank goes on before rank 0 has heard all others. */
static int tell(struct node *node, struct exchange *x)
{
	unsigned count = node->setting->node_count;

	if (node->rank.rank != 0)
		exchange_tell(x, told, sizeof(told));
	for (unsigned i = 0; i < 20000 && !atomic_load(&is_told); i++) {
		if (exchange_serve(x, &node->failure) < 0)
			return -1;
		usleep(1000);
		if (node->rank.rank == 0 && have_all_told(x, count))
			atomic_store(&is_told, true);
	}
	return atomic_load(&is_told) ? 0 : -1;
}

static bool reports_nothing(const struct setting *setting, unsigned rank)
{
	return setting->conduct == REPORTS_NOTHING && rank == setting->culprit;
}

/* At the first barrier; rank 0 has what each rank says there, and nothing that
 * it has told before. */
static int report(struct node *node, struct exchange *x)
{
	const struct setting *setting = node->setting;
	unsigned own = node->rank.rank;
	uint32_t payload = own * 3;
	int error = exchange_barrier(
		x, 1, &payload,
		reports_nothing(setting, own) ? 0 : sizeof(payload),
		&node->failure);

	for (unsigned i = 0; error == 0 && own == 0 && i < setting->node_count;
	     i++) {
		uint32_t want = i * 3;
		size_t bytes;
		const void *got = exchange_application_payload(x, i, &bytes);

		if (reports_nothing(setting, i))
			node->bad |= bytes != 0;
		else if (bytes != sizeof(want) ||
			 memcmp(got, &want, bytes) != 0)
			node->bad = true;
	}
	return error;
}

/* What the culprit does instead of what it should; false: nothing else. */
static bool misbehave(struct node *node, struct exchange *x)
{
	struct failure mine;

	if (node->rank.rank != node->setting->culprit ||
	    node->setting->conduct == ANNOUNCES_ANOTHER ||
	    node->setting->conduct == REPORTS_NOTHING ||
	    node->setting->conduct == HEARS_NO_DATA ||
	    node->setting->conduct == FAILS_TO_PREPARE)
		return false;
	if (node->setting->conduct == FAILS) {
		failure_set(&mine, EXIT_FILE, "out.1", 0, "the disk is full");
		exchange_fail(x, &mine);
	}
	if (node->setting->conduct == GOES_ON_EARLY ||
	    node->setting->conduct == SKIPS_THE_FIRST ||
	    node->setting->conduct == IS_NEVER_READY)
		insist(node, x);
	return node->setting->conduct != BEHAVES &&
	       node->setting->conduct != PREPARES_LATE;
}

static atomic_uint serve_count; /* by all ranks */

int __real_exchange_serve(struct exchange *x, struct failure *failure);
int __wrap_exchange_serve(struct exchange *x, struct failure *failure);

int __wrap_exchange_serve(struct exchange *x, struct failure *failure)
{
	atomic_fetch_add(&serve_count, 1);
	return __real_exchange_serve(x, failure);
}

static void *run_node(void *argument)
{
	struct node *node = argument;
	const struct setting *setting = node->setting;
	struct exchange_options options = {
		.rank = &node->rank,
		.schedule = setting->schedule,
		/* One that goes on is refused for that, not for its silence,
		 * which begins at once, too. */
		.deadline_ns =
			setting->conduct == BEHAVES ||
					setting->conduct == PREPARES_LATE ||
					setting->conduct == REPORTS_NOTHING ||
					setting->conduct == GOES_ON_EARLY
				? DEADLINE_NS
				: SHORT_DEADLINE_NS,
		.hello = &node->rank.rank,
		.hello_bytes = sizeof(node->rank.rank),
	};
	struct udp_options udp_options = {
		.payload_bytes = setting->payload_bytes,
		.window_bytes = setting->window_bytes,
		.port = setting->port,
		.plain = setting->plain,
		.status_page = setting->page,
		.thread_count = setting->threads,
		.kernel = cpu_level_detect(),
		.crc32c = !setting->plain,
	};
	struct exchange *x = NULL;
	int error = -1;

	if (node->rank.rank != setting->culprit ||
	    setting->conduct != STAYS_AWAY)
		x = udp_open(&options, &udp_options, &node->failure);
	if (x) {
		if (setting->strangers)
			disturb(udp_of(x), node->rank.rank);
		for (unsigned i = 0; i < udp_of(x)->mover_count; i++) {
			lose(udp_of(x)->movers[i].control.fd,
			     setting->loss_percent);
			lose(udp_of(x)->movers[i].data.fd,
			     setting->conduct == HEARS_NO_DATA &&
					     node->rank.rank == setting->culprit
				     ? 100
				     : setting->loss_percent);
		}
		error = exchange_join(x, &node->failure);
		if (error == 0)
			atomic_fetch_add(&joined_count, 1);
		if (error == 0 && setting->rows > 0)
			error = exchange_grid_set(x, setting->rows,
						  setting->columns,
						  &node->failure);
	}
	for (unsigned i = 0; error == 0 && i < setting->node_count; i++) {
		size_t bytes;
		const void *hello = exchange_hello(x, i, &bytes);

		if (bytes != sizeof(i) || memcmp(hello, &i, sizeof(i)) != 0)
			node->bad = true;
	}
	if (error == 0 && misbehave(node, x))
		error = -1;
	if (error == 0) {
		error = run_collectives(node, x);
		if (error)
			exchange_fail(x, &node->failure);
	}
	/* Not before: a rank that may not have the hello yet is sent that. */
	if (error == 0 && setting->tells)
		error = tell(node, x);
	if (error == 0)
		error = report(node, x);
	if (error == 0)
		error = exchange_barrier(x, 2, NULL, 0, &node->failure);
	if (error == 0)
		exchange_leave(x);
	atomic_fetch_add(&ended_count, 1);
	node->bad |= error != 0;
	if (node->failure.what)
		snprintf(node->what, sizeof(node->what), "%s",
			 node->failure.what);
	if (x) {
		node->strays = exchange_counters(x)->stray_datagrams;
		node->resent = exchange_counters(x)->resent_datagrams;
		snprintf(node->told, sizeof(node->told), "%s",
			 x->failed.failure.why);
	}
	exchange_close(x);
	return NULL;
}

/* A secret of this process, and so ports of its own. */
static void init_rank(struct rank *rank, unsigned number, unsigned count)
{
	static unsigned run;
	char text[64];

	if (number == 0)
		run++;
	*rank = (struct rank){ .rank = number, .node_count = count };
	memcpy(rank->secret, &run, sizeof(run));
	snprintf(text, sizeof(text), "%d", (int)getpid());
	memcpy(rank->secret + 8, text, strlen(text));
	rank->addresses = calloc(count, sizeof(*rank->addresses));
	rank->names = calloc(count, sizeof(*rank->names));
	for (unsigned i = 0; i < count; i++) {
		snprintf(text, sizeof(text), "127.0.0.%u:7300", 2 + i % 5);
		assert_int_equal(address_parse(text, &rank->addresses[i]), 0);
		rank->names[i] = strdup(text);
	}
}

static struct node nodes[NODES_MAX];

static void run_all(const struct setting *setting)
{
	memset(nodes, 0, sizeof(nodes));
	atomic_store(&joined_count, 0);
	atomic_store(&ended_count, 0);
	atomic_store(&is_told, false);
	for (unsigned i = 0; i < setting->node_count; i++) {
		nodes[i].setting = setting;
		init_rank(&nodes[i].rank, i, setting->node_count);
	}
	for (unsigned i = 0; i < setting->node_count; i++)
		assert_int_equal(pthread_create(&nodes[i].thread, NULL,
						run_node, &nodes[i]),
				 0);
	for (unsigned i = 0; i < setting->node_count; i++)
		pthread_join(nodes[i].thread, NULL);
	for (unsigned i = 0; i < setting->node_count; i++) {
		for (unsigned k = 0; k < setting->node_count; k++)
			free(nodes[i].rank.names[k]);
		free(nodes[i].rank.names);
		free(nodes[i].rank.addresses);
	}
}

/* All do their work. */
static void run_well(const struct setting *setting)
{
	run_all(setting);
	for (unsigned i = 0; i < setting->node_count; i++) {
		if (nodes[i].failure.status != EXIT_DONE)
			fail_msg("rank %u: %s", i, nodes[i].failure.why);
		assert_false(nodes[i].bad);
		if (setting->strangers)
			assert_true(nodes[i].strays > 0);
	}
}

static void run(const struct setting *setting)
{
	struct setting with_page = *setting;

	with_page.page = true;
	run_well(setting);
	run_well(&with_page);
}

static uint64_t even_bytes(unsigned exchange, unsigned source, unsigned to)
{
	(void)exchange, (void)source, (void)to;
	return 150000;
}

/* All others end, and say that it is the culprit. */
static void expect_culprit(const struct setting *setting, const char *why)
{
	char what[64];

	snprintf(what, sizeof(what), "rank %u (127.0.0.%u:7300)",
		 setting->culprit, 2 + setting->culprit);
	for (unsigned i = 0; i < setting->node_count; i++) {
		if (i == setting->culprit)
			continue;
		assert_int_equal(nodes[i].failure.status, EXIT_PEER);
		assert_string_equal(nodes[i].what, what);
		if (!strstr(nodes[i].failure.why, why))
			fail_msg("rank %u: %s", i, nodes[i].failure.why);
	}
}

/* With rank 0, which makes the page, and with another. */
static void run_without(enum conduct conduct, const char *why)
{
	struct setting setting = { .node_count = 4,
				   .collectives = 2,
				   .conduct = conduct,
				   .bytes = even_bytes };

	for (unsigned i = 0; i < 4; i++) {
		setting.culprit = i / 2;
		setting.page = i % 2;
		run_all(&setting);
		expect_culprit(&setting, why);
	}
}

static uint64_t odd_bytes(unsigned exchange, unsigned source, unsigned to)
{
	static const uint64_t sizes[] = { 0,	1,     23,    24,    25,
					  1440, 70000, 65475, 300001 };

	return sizes[(exchange * 5 + source * 3 + to * 7) % 9];
}

static uint64_t bytes_to_one(unsigned exchange, unsigned source, unsigned to)
{
	(void)source;
	return to == exchange % 3 ? 200000 : 0;
}

static void udp__rounds_of_all_sizes(void **state)
{
	static const unsigned counts[] = { 1, 2, 3, 4, 7, 8, 16 };

	(void)state;
	for (unsigned i = 0; i < sizeof(counts) / sizeof(counts[0]); i++)
		run(&(struct setting){ .node_count = counts[i],
				       .collectives = 2,
				       .bytes = odd_bytes });
}

static void udp__other_schedules(void **state)
{
	(void)state;
	for (enum exchange_schedule s = EXCHANGE_ROUNDS;
	     s <= EXCHANGE_ALL_AT_ONCE; s++) {
		run(&(struct setting){ .node_count = 5,
				       .schedule = s,
				       .collectives = 3,
				       .bytes = odd_bytes });
		run(&(struct setting){ .node_count = 4,
				       .schedule = s,
				       .collectives = 3,
				       .bytes = bytes_to_one });
	}
}

/* In rounds, if a rank is not ready, those that send to it first do not send to
 * others before. */
static void udp__turns_are_kept(void **state)
{
	(void)state;
	atomic_store(&culprit_is_prepared, false);
	run_well(&(struct setting){ .node_count = 4,
				    .schedule = EXCHANGE_ROUNDS,
				    .collectives = 1,
				    .conduct = PREPARES_LATE,
				    .culprit = 1,
				    .bytes = even_bytes });
}

/* Most of these numbers of ranks leave the last row incomplete.  Some thirty
 * ranks take two CPUs a second. */
static void udp__grids_of_many_sizes(void **state)
{
	(void)state;
	for (unsigned n = 1; n <= NODES_MAX; n += n < 13 ? 1 : 1 + n / 8) {
		struct setting setting = { .node_count = n,
					   .collectives = 3,
					   .bytes = odd_bytes };

		exchange_model_grid_sides(n, &setting.rows, &setting.columns);
		run(&setting);
	}
}

static void udp__grids_of_any_shape(void **state)
{
	static const struct {
		unsigned node_count, rows, columns;
	} cases[] = {
		{ 7, 1, 7 },   { 7, 7, 1 },  { 7, 2, 4 },  { 7, 2, 6 },
		{ 16, 2, 15 }, { 16, 8, 2 }, { 11, 3, 5 }, { 5, 2, 4 },
	};

	(void)state;
	for (unsigned i = 0; i < ARRAY_LEN(cases); i++)
		run(&(struct setting){ .node_count = cases[i].node_count,
				       .rows = cases[i].rows,
				       .columns = cases[i].columns,
				       .payload_bytes = 1472,
				       .loss_percent = i % 2 ? 5 : 0,
				       .collectives = 4,
				       .bytes = i % 3 ? odd_bytes
						      : bytes_to_one });
}

static uint64_t long_bytes(unsigned exchange, unsigned source, unsigned to)
{
	(void)exchange, (void)source, (void)to;
	return (uint64_t)17 << 20;
}

/* To copy a long message out of a bundle takes long. */
static void udp__a_grid_serves_while_it_delivers(void **state)
{
	(void)state;
	atomic_store(&serve_count, 0);
	run_well(&(struct setting){ .node_count = 2,
				    .rows = 1,
				    .columns = 2,
				    .collectives = 1,
				    .bytes = long_bytes });
	assert_true(atomic_load(&serve_count) > 0);
}

/* Collectives that go by the grid, and others that do not. */
static void udp__grid_and_long_messages(void **state)
{
	(void)state;
	run(&(struct setting){ .node_count = 7,
			       .rows = 3,
			       .columns = 3,
			       .has_long_messages = true,
			       .collectives = 4,
			       .bytes = odd_bytes });
}

static void udp__segments_of_an_ethernet(void **state)
{
	(void)state;
	for (unsigned plain = 0; plain < 2; plain++)
		run(&(struct setting){ .node_count = 4,
				       .payload_bytes = 1472,
				       .plain = plain,
				       .collectives = 2,
				       .bytes = even_bytes });
}

/* The window is smaller than a message: it moves with what has arrived. */
static void udp__a_small_window(void **state)
{
	(void)state;
	run(&(struct setting){ .node_count = 3,
			       .payload_bytes = 1000,
			       .window_bytes = 5000,
			       .collectives = 2,
			       .bytes = even_bytes });
}

/* Batches too: a gap of many segments. */
static void udp__what_is_lost_is_sent_again(void **state)
{
	static const unsigned percents[] = { 1, 5, 20, 40 };

	(void)state;
	for (unsigned i = 0; i < ARRAY_LEN(percents); i++)
		for (unsigned plain = 0; plain < 2; plain++)
			run(&(struct setting){ .node_count = 4,
					       .payload_bytes = 1472,
					       .plain = plain,
					       .loss_percent = percents[i],
					       .collectives = 2,
					       .bytes = odd_bytes });
}

/* All that one thread does, and what is the threads' own: to share the peers
 * among them, to wake each other, and to end. */
static void udp__threads_share_the_peers(void **state)
{
	static const unsigned losses[] = { 0, 0, 10 };
	uint64_t (*const bytes[])(unsigned, unsigned,
				  unsigned) = { odd_bytes, bytes_to_one };

	(void)state;
	for (unsigned i = 0; i < ARRAY_LEN(losses) * ARRAY_LEN(bytes); i++) {
		struct setting setting = {
			.node_count = 4 + i % 3,
			.threads = 2 + i % 4,
			.payload_bytes = i % 2 ? 1472 : 0,
			.loss_percent = losses[i / ARRAY_LEN(bytes)],
			.collectives = 6,
			.strangers = i == 1,
			.bytes = bytes[i % ARRAY_LEN(bytes)],
		};

		run(&setting);
		setting.schedule = EXCHANGE_ALL_AT_ONCE;
		run(&setting);
		setting.rows = 2;
		setting.columns = 3;
		setting.node_count = 6;
		run(&setting);
	}
}

static uint64_t bytes_of_first(unsigned exchange, unsigned source, unsigned to)
{
	(void)exchange, (void)to;
	return source == 0 ? 600000 : 0;
}

/* By one call all that was asked for, segment by segment. */
static void udp__computing_rank_serves_all_at_once(void **state)
{
	(void)state;
	run_well(&(struct setting){ .node_count = 2,
				    .payload_bytes = 1472,
				    .plain = true,
				    .loss_percent = 30,
				    .collectives = 1,
				    .computes = true,
				    .bytes = bytes_of_first });
	assert_true(nodes[0].served_max > 16);
}

static uint64_t bytes_of_one(unsigned exchange, unsigned source, unsigned to)
{
	return source == exchange % 4 && to == (source + 1) % 4 ? 3000 : 0;
}

/* A rank with nothing to send or to get goes on, though what it has announced
 * may be lost: a rank that asks for it gets it, also in the next exchange. */
static void udp__announcements_that_are_lost(void **state)
{
	(void)state;
	run(&(struct setting){ .node_count = 4,
			       .loss_percent = 30,
			       .collectives = 20,
			       .bytes = bytes_of_one });
}

/* DATA tells collectives apart, however many there are. */
static void udp__many_collectives(void **state)
{
	(void)state;
	run(&(struct setting){
		.node_count = 2, .collectives = 300, .bytes = bytes_of_one });
}

static void udp__strangers_change_nothing(void **state)
{
	(void)state;
	run(&(struct setting){ .node_count = 3,
			       .strangers = true,
			       .collectives = 3,
			       .bytes = odd_bytes });
}

/* Another process has the port that a rank would take: the rank takes another
 * one, and no rank is told of a failure. */
static void udp__another_port(void **state)
{
	const struct datagram_options plain = { .plain = true };
	struct datagram_socket taken;
	struct failure failure;
	struct address any;

	(void)state;
	assert_int_equal(address_parse("127.0.0.2:7300", &any), 0);
	address_set_port(&any, 0);
	assert_int_equal(datagram_open(&taken, &any, &plain, &failure), 0);
	run(&(struct setting){ .node_count = 3,
			       .port = address_port(&taken.local),
			       .collectives = 2,
			       .bytes = odd_bytes });
	datagram_close(&taken);
}

/* Rank 0 of so many on one address. */
static struct exchange *open_in_crowd(unsigned count, uint16_t port,
				      struct failure *failure)
{
	static struct address addresses[RANK_NODES_MAX];
	static char *names[RANK_NODES_MAX];
	static char name[] = "127.0.0.2:7300";
	static struct rank rank;
	struct exchange_options options = { .rank = &rank,
					    .deadline_ns = DEADLINE_NS,
					    .hello = "",
					    .hello_bytes = 1 };
	struct udp_options udp_options = { .port = port };

	for (unsigned i = 0; i < count; i++) {
		address_parse(name, &addresses[i]);
		names[i] = name;
	}
	rank = (struct rank){ .node_count = count,
			      .addresses = addresses,
			      .names = names };
	return udp_open(&options, &udp_options, failure);
}

/* A rank whose port is taken takes none that is another rank's first one. */
static void udp__another_port_in_a_crowd(void **state)
{
	static const unsigned counts[][2] = { { 2, 256 }, { 300, 300 } };
	const struct datagram_options plain = { .plain = true };
	struct datagram_socket taken;
	struct failure failure;
	struct address any;
	struct exchange *x;

	(void)state;
	assert_int_equal(address_parse("127.0.0.2:7300", &any), 0);
	address_set_port(&any, 0);
	assert_int_equal(datagram_open(&taken, &any, &plain, &failure), 0);
	for (unsigned i = 0; i < ARRAY_LEN(counts); i++) {
		x = open_in_crowd(counts[i][0], address_port(&taken.local),
				  &failure);
		assert_non_null(x);
		assert_int_equal(
			address_port(&udp_of(x)->movers[0].control.local),
			address_port(&taken.local) + counts[i][1]);
		exchange_close(x);
	}
	datagram_close(&taken);
}

/* Ports end with 65535, of the last rank and at its last try. */
static void udp__ports_end(void **state)
{
	struct failure failure;
	struct exchange *x;

	(void)state;
	x = open_in_crowd(2, 65535 - 3 * 256 - 1, &failure);
	assert_non_null(x);
	exchange_close(x);
	assert_null(open_in_crowd(2, 65535 - 3 * 256, &failure));
	assert_int_equal(failure.status, EXIT_USAGE);
	assert_string_equal(failure.why,
			    "--port=64767: ranks need ports up to 65536, and "
			    "65535 is the last one");
	x = open_in_crowd(300, 65535 - 3 * 300 - 299, &failure);
	assert_non_null(x);
	exchange_close(x);
	assert_null(open_in_crowd(300, 65535 - 3 * 300 - 298, &failure));
}

static void udp__absent_rank_is_named(void **state)
{
	(void)state;
	run_without(STAYS_AWAY, "has not come within");
}

static void udp__silent_rank_is_named(void **state)
{
	(void)state;
	run_without(LEAVES_AFTER_JOINING, "has been silent for");
}

/* It is asked for until the deadline, in some 60 lists of what is missing,
 * which do not keep the network busy: without a pause there were 4,000. */
static void udp__what_never_comes_is_asked_for_seldom(void **state)
{
	struct setting setting = { .node_count = 3,
				   .payload_bytes = 1472,
				   .collectives = 1,
				   .conduct = HEARS_NO_DATA,
				   .culprit = 1,
				   .bytes = even_bytes };
	uint64_t segments = DIV_ROUND_UP(even_bytes(1, 0, 1), 1472 - 100);

	(void)state;
	run_all(&setting);
	assert_int_equal(nodes[0].failure.status, EXIT_PEER);
	assert_in_range(nodes[0].resent, 1, 200 * segments);
}

static void udp__a_failure_is_told_to_all(void **state)
{
	(void)state;
	run_without(FAILS, "out.1: the disk is full");
}

static void udp__what_is_told_ends_at_the_barrier(void **state)
{
	(void)state;
	run(&(struct setting){ .node_count = 3,
			       .collectives = 1,
			       .tells = true,
			       .culprit = 2,
			       .conduct = REPORTS_NOTHING,
			       .bytes = even_bytes });
}

/* A process that got a rank's STATUS and passes it on from another address has
 * no DATA sent to that address. */
static void udp__a_relay_changes_no_address(void **state)
{
	struct rank rank;
	struct exchange_options options = { .rank = &rank,
					    .deadline_ns = DEADLINE_NS,
					    .hello = "",
					    .hello_bytes = 1 };
	struct udp_wire_status status = { .source = 1, .data_port = 7000 };
	struct address relay, data, got;
	struct datagram_socket out;
	struct datagram_options plain = { .plain = true };
	struct failure failure;
	struct udp_options udp_options = { 0 };
	struct exchange *exchange;
	struct udp *x;
	uint8_t bytes[UDP_STATUS_BYTES_MAX];
	struct iovec part = { .iov_base = bytes };

	(void)state;
	init_rank(&rank, 0, 2);
	exchange = udp_open(&options, &udp_options, &failure);
	assert_non_null(exchange);
	x = udp_of(exchange);
	address_parse("127.0.0.99:7300", &relay);
	address_set_port(&relay, 0);
	assert_int_equal(datagram_open(&out, &relay, &plain, &failure), 0);
	status.serial = 1;
	part.iov_len = udp_wire_seal_status(&status, &x->keys, bytes);
	datagram_send(&out, &x->movers[0].control.local, &part, 1, part.iov_len,
		      part.iov_len);
	for (unsigned i = 0; i < 1000 && !x->base.peers[1]->is_here; i++) {
		assert_int_equal(exchange_serve(exchange, &failure), 0);
		usleep(1000);
	}
	assert_true(x->base.peers[1]->is_here);
	data = rank.addresses[1];
	address_set_port(&data, status.data_port);
	got = udp_address(x, 1, x->peers[1]->data_port);
	assert_memory_equal(&got.socket, &data.socket, data.length);
	address_set_port(&data, address_port(&out.local));
	got = udp_address(x, 1, x->control_ports[1]);
	assert_memory_equal(&got.socket, &data.socket, data.length);
	datagram_close(&out);
	exchange_close(exchange);
	for (unsigned i = 0; i < 2; i++)
		free(rank.names[i]);
	free(rank.names);
	free(rank.addresses);
}

/* The rank itself gets the failure as it was; the others are told, and told
 * again, what it is about. */
static void udp__a_failure_to_prepare(void **state)
{
	struct setting setting = { .node_count = 4,
				   .collectives = 1,
				   .conduct = FAILS_TO_PREPARE,
				   .bytes = even_bytes };

	(void)state;
	for (unsigned i = 0; i < 4; i++) {
		setting.culprit = i % 2;
		setting.page = i / 2;
		run_all(&setting);
		for (unsigned r = 0; r < setting.node_count; r++) {
			struct node *node = &nodes[r];

			assert_string_equal(node->told,
					    "out.1: the disk is full");
			assert_string_equal(node->failure.why,
					    r == setting.culprit
						    ? "the disk is full"
						    : node->told);
		}
		assert_string_equal(nodes[setting.culprit].what, "out.1");
	}
}

/* One rank has nothing for the others, and all others have something for it. */
static uint64_t bytes_but_of_0(unsigned exchange, unsigned source, unsigned to)
{
	(void)exchange, (void)to;
	return source == 0 ? 0 : 150000;
}

static uint64_t bytes_but_of_1(unsigned exchange, unsigned source, unsigned to)
{
	(void)exchange, (void)to;
	return source == 1 ? 0 : 150000;
}

/* It depends on what the first rank that hears of it has done by then: has it
 * yet to begin the collective itself, it believes the claim, and refuses the
 * next that it is told. */
static bool is_for_going_on(const char *why)
{
	return strstr(why, "began the next exchange") ||
	       strstr(why, "took other steps than this rank");
}

/* The others wait for nothing more from a rank that has gone on; so one that
 * claims it while they still have to send to it would stop them. */
static void udp__a_rank_that_goes_on_too_early(void **state)
{
	struct setting setting = { .node_count = 4,
				   .collectives = 1,
				   .conduct = GOES_ON_EARLY };

	(void)state;
	for (unsigned i = 0; i < 4; i++) {
		setting.culprit = i / 2;
		setting.bytes = i / 2 ? bytes_but_of_1 : bytes_but_of_0;
		setting.page = i % 2;
		run_all(&setting);
		expect_culprit(&setting, "");
		for (unsigned k = 0; k < setting.node_count; k++)
			assert_true(k == setting.culprit ||
				    is_for_going_on(nodes[k].failure.why));
	}
}

/* The last rank and the others have nothing for each other. */
static uint64_t bytes_without_3(unsigned exchange, unsigned source, unsigned to)
{
	(void)exchange;
	return source == 3 || to == 3 ? 0 : 150000;
}

/* A rank may go on from a collective in which there was nothing for it, but it
 * says what it has announced when it is asked. */
static void udp__a_rank_that_skips_a_collective(void **state)
{
	struct setting setting = { .node_count = 4,
				   .collectives = 1,
				   .conduct = SKIPS_THE_FIRST,
				   .culprit = 3,
				   .bytes = bytes_without_3 };

	(void)state;
	for (unsigned page = 0; page < 2; page++) {
		setting.page = page;
		run_all(&setting);
		expect_culprit(&setting, "has gone on without announcing its "
					 "messages for");
	}
}

/* Messages longer than what may be sent before a rank is ready stay where they
 * are. */
static void udp__a_rank_that_is_never_ready(void **state)
{
	struct setting setting = { .node_count = 4,
				   .payload_bytes = 1472,
				   .window_bytes = 12000,
				   .collectives = 1,
				   .conduct = IS_NEVER_READY,
				   .culprit = 3,
				   .bytes = even_bytes };

	(void)state;
	for (unsigned page = 0; page < 2; page++) {
		setting.page = page;
		run_all(&setting);
		expect_culprit(&setting,
			       "has received nothing from this rank for");
	}
}

/* By one byte, or so that the sum of all wraps: the ranks that the message is
 * not for refuse it, too.  The culprit may begin to send before it hears of
 * that: so far below 2^64 it can round what is left up to whole segments. */
static void udp__lengths_that_cannot_be(void **state)
{
	static const uint64_t more_bytes[] = { 1, -(uint64_t)1,
					       -(uint64_t)350000,
					       (uint64_t)1 << 63 };
	struct setting setting = { .node_count = 4,
				   .collectives = 1,
				   .conduct = ANNOUNCES_ANOTHER,
				   .bytes = even_bytes };

	(void)state;
	for (unsigned i = 0; i < 2 * ARRAY_LEN(more_bytes); i++) {
		setting.more_bytes = more_bytes[i / 2];
		setting.culprit = i % 2;
		setting.deceived = 3 * (i % 3 == 0) + (1 - i % 2) * (i % 3 > 0);
		setting.page = i % 4 == 3;
		run_all(&setting);
		expect_culprit(&setting, "bytes to rank");
		expect_culprit(&setting, ", not 150000");
	}
}

static unsigned count_known(const struct udp *x)
{
	unsigned count = 0;

	for (unsigned i = 1; i < udp_node_count(x); i++)
		count += x->peers[i] != &x->stranger ||
			 x->base.peers[i] != &x->base.nobody;
	return count;
}

/* Only ranks that this one speaks with take memory, and none by what comes from
 * a process that has not the secret. */
static void udp__unknown_ranks_take_no_memory(void **state)
{
	struct rank rank;
	struct exchange_options options = { .rank = &rank,
					    .deadline_ns = DEADLINE_NS,
					    .skips_hello = true };
	struct udp_wire_status status = { .source = 7,
					  .serial = 1,
					  .data_port = 7000 };
	struct datagram_options plain = { .plain = true };
	uint8_t bytes[UDP_STATUS_BYTES_MAX];
	struct udp_options udp_options = { 0 };
	struct iovec part = { .iov_base = bytes };
	struct datagram_socket out;
	struct failure failure;
	struct address any;
	struct udp *x;

	(void)state;
	init_rank(&rank, 0, 60);
	x = udp_of(udp_open(&options, &udp_options, &failure));
	assert_non_null(x);
	any = x->movers[0].control.local;
	address_set_port(&any, 0);
	assert_int_equal(datagram_open(&out, &any, &plain, &failure), 0);
	for (unsigned sealed = 0; sealed < 2; sealed++) {
		part.iov_len = udp_wire_seal_status(&status, &x->keys, bytes);
		bytes[0] ^= !sealed;
		datagram_send(&out, &x->movers[0].control.local, &part, 1,
			      part.iov_len, part.iov_len);
		for (unsigned i = 0;
		     i < 1000 && x->base.counters.stray_datagrams == 0 &&
		     count_known(x) == 0;
		     i++) {
			assert_int_equal(exchange_serve(&x->base, &failure), 0);
			usleep(1000);
		}
		assert_int_equal(x->base.counters.stray_datagrams, !sealed);
		assert_int_equal(count_known(x), sealed);
		x->base.counters.stray_datagrams = 0;
	}
	datagram_close(&out);
	exchange_close(&x->base);
	for (unsigned i = 0; i < 60; i++)
		free(rank.names[i]);
	free(rank.names);
	free(rank.addresses);
}

#define STRAYS 200

/* However many come, a rank turns to what else there is after some. */
static void udp__strays_do_not_hold_up(void **state)
{
	struct rank rank;
	struct exchange_options options = { .rank = &rank,
					    .deadline_ns = DEADLINE_NS,
					    .skips_hello = true };
	struct udp_options udp_options = { 0 };
	uint8_t byte = 0;
	struct iovec part = { &byte, 1 };
	struct failure failure;
	struct udp *x;

	(void)state;
	init_rank(&rank, 0, 2);
	x = udp_of(udp_open(&options, &udp_options, &failure));
	assert_non_null(x);
	for (unsigned i = 0; i < STRAYS; i++)
		assert_int_equal(datagram_send(&x->movers[0].data,
					       &x->movers[0].control.local,
					       &part, 1, 1, 1),
				 1);
	assert_true(udp_status_receive(x->movers));
	assert_in_range(x->base.counters.stray_datagrams, 1, STRAYS / 2);
	while (udp_status_receive(x->movers))
		;
	assert_int_equal(x->base.counters.stray_datagrams, STRAYS);
	exchange_close(&x->base);
	for (unsigned i = 0; i < 2; i++)
		free(rank.names[i]);
	free(rank.names);
	free(rank.addresses);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(udp__rounds_of_all_sizes),
		cmocka_unit_test(udp__other_schedules),
		cmocka_unit_test(udp__turns_are_kept),
		cmocka_unit_test(udp__grids_of_many_sizes),
		cmocka_unit_test(udp__grids_of_any_shape),
		cmocka_unit_test(udp__grid_and_long_messages),
		cmocka_unit_test(udp__a_grid_serves_while_it_delivers),
		cmocka_unit_test(udp__segments_of_an_ethernet),
		cmocka_unit_test(udp__a_small_window),
		cmocka_unit_test(udp__what_is_lost_is_sent_again),
		cmocka_unit_test(udp__threads_share_the_peers),
		cmocka_unit_test(udp__computing_rank_serves_all_at_once),
		cmocka_unit_test(udp__announcements_that_are_lost),
		cmocka_unit_test(udp__many_collectives),
		cmocka_unit_test(udp__strangers_change_nothing),
		cmocka_unit_test(udp__another_port),
		cmocka_unit_test(udp__another_port_in_a_crowd),
		cmocka_unit_test(udp__ports_end),
		cmocka_unit_test(udp__absent_rank_is_named),
		cmocka_unit_test(udp__silent_rank_is_named),
		cmocka_unit_test(udp__what_never_comes_is_asked_for_seldom),
		cmocka_unit_test(udp__a_failure_is_told_to_all),
		cmocka_unit_test(udp__what_is_told_ends_at_the_barrier),
		cmocka_unit_test(udp__a_relay_changes_no_address),
		cmocka_unit_test(udp__unknown_ranks_take_no_memory),
		cmocka_unit_test(udp__strays_do_not_hold_up),
		cmocka_unit_test(udp__a_failure_to_prepare),
		cmocka_unit_test(udp__a_rank_that_goes_on_too_early),
		cmocka_unit_test(udp__a_rank_that_skips_a_collective),
		cmocka_unit_test(udp__a_rank_that_is_never_ready),
		cmocka_unit_test(udp__lengths_that_cannot_be),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
