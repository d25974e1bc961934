/*
 * exchange_baseline.c - the same exchange, as one would write it without
 * thought
 *
 * usage: exchange_baseline same-order|CONTROL BYTES HOST...
 *
 * One process for each host, its rank in BLINK_RANK (as blinkd has it); all
 * together hold BYTES, in equal messages from each to each.
 *
 *      same-order   UDP; all send to rank 0 first, then to rank 1, ...; what is
 *                   missing is asked for and sent again at the end
 *      CONTROL      TCP with this congestion control (cubic, bbr, ...); a
 *                   connection and a thread for each way of each pair, all at
 *                   once
 *
 * Prints two numbers, on the one clock that all namespaces share: when this
 * rank began, and when it had all of its messages (and, with UDP, the others
 * theirs). Compiled by cluster.sh.
 */
#include <arpa/inet.h>
#include <err.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <netinet/udp.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define NODES_MAX 64
#define PORT 9511
/* As blinksort's: a header of 32 bytes in a datagram for an MTU of 1500. */
#define DATAGRAM_BYTES 1472
#define PAYLOAD_BYTES 1440
#define BATCH 32
#define MISSING_MAX 300
#define SEND_ROOM_BYTES (256 << 10)
#define RECEIVE_ROOM_BYTES (16 << 20)
#define HELLO_US 5000
#define ASK_US 4000
#define GIVE_UP_S 60

enum type { HELLO, DATA, ASK, MISSING, DONE };

struct datagram {
	uint32_t type, from, number, count;
	uint8_t unused[16];
	union {
		uint8_t payload[PAYLOAD_BYTES];
		uint32_t missing[MISSING_MAX];
	};
};

_Static_assert(sizeof(struct datagram) == DATAGRAM_BYTES, "a full one");

struct peer {
	struct sockaddr_in address;
	uint8_t *out, *in;
	/* Of its message to us: which segments have come. */
	bool *come;
	uint32_t come_count;
	/* Of ours to it: which it has asked for again. */
	_Atomic bool *asked;
	_Atomic bool is_done, hello, has_all;
};

static unsigned rank, nodes;
static size_t message_bytes;
static uint32_t segments;
static struct peer peers[NODES_MAX];
static int udp;
static _Atomic unsigned whole; /* messages that have come */
static _Atomic bool greeted;

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static void *must_alloc(size_t bytes)
{
	void *room = calloc(1, bytes + 1);

	if (!room)
		err(5, "memory");
	/* Touched now, not during the exchange. */
	memset(room, 0, bytes + 1);
	return room;
}

static size_t segment_bytes(uint32_t segment)
{
	size_t left = message_bytes - (size_t)segment * PAYLOAD_BYTES;

	return left < PAYLOAD_BYTES ? left : PAYLOAD_BYTES;
}

/* --- UDP -------------------------------------------------------------------
 */

static void tell(unsigned to, enum type type, uint32_t count,
		 const struct datagram *filled)
{
	struct datagram datagram = { 0 };

	if (filled)
		datagram = *filled;
	datagram.type = type;
	datagram.from = rank;
	datagram.count = count;
	/* What gets lost is told again. */
	sendto(udp, &datagram, 32 + (filled ? 4 * count : 0), 0,
	       (const struct sockaddr *)&peers[to].address,
	       sizeof(peers[to].address));
}

static unsigned hello_count(void)
{
	unsigned count = 0;

	for (unsigned i = 0; i < nodes; i++)
		count += i != rank && peers[i].hello;
	return count;
}

static void answer(unsigned to)
{
	struct peer *peer = &peers[to];
	struct datagram list;
	uint32_t count = 0;

	if (peer->come_count == segments) {
		tell(to, DONE, 0, NULL);
		return;
	}
	for (uint32_t i = 0; i < segments && count < MISSING_MAX; i++)
		if (!peer->come[i])
			list.missing[count++] = i;
	tell(to, MISSING, count, &list);
}

static void take_data(struct peer *peer, const struct datagram *datagram)
{
	uint32_t number = datagram->number;

	if (number >= segments || peer->come[number])
		return;
	memcpy(peer->in + (size_t)number * PAYLOAD_BYTES, datagram->payload,
	       segment_bytes(number));
	peer->come[number] = true;
	if (++peer->come_count == segments) {
		tell((unsigned)(peer - peers), DONE, 0, NULL);
		whole++;
	}
}

static void take(const struct datagram *datagram)
{
	struct peer *peer = &peers[datagram->from];

	switch (datagram->type) {
	case HELLO:
		peer->hello = true;
		if (datagram->count == nodes - 1)
			peer->has_all = true;
		/* Our last one was lost; an answer is not answered. */
		if (greeted && datagram->number == 0)
			tell(datagram->from, HELLO, nodes - 1,
			     &(struct datagram){ .number = 1 });
		break;
	case DATA:
		take_data(peer, datagram);
		break;
	case ASK:
		answer(datagram->from);
		break;
	case MISSING:
		for (uint32_t i = 0; i < datagram->count; i++)
			if (datagram->missing[i] < segments)
				peer->asked[datagram->missing[i]] = true;
		break;
	case DONE:
		peer->is_done = true;
		break;
	}
}

static void *receive_all(void *unused)
{
	struct datagram datagram;

	for (;;)
		if (recv(udp, &datagram, sizeof(datagram), 0) >= 32 &&
		    datagram.from < nodes && datagram.from != rank &&
		    datagram.count <= MISSING_MAX)
			take(&datagram);
	return unused;
}

/* Full segments that follow each other go as one call. */
static void send_batch(unsigned to, const uint32_t *numbers, unsigned count)
{
	static struct datagram batch[BATCH];
	size_t bytes = 0;

	for (unsigned i = 0; i < count; i++) {
		size_t payload = segment_bytes(numbers[i]);

		batch[i].type = DATA;
		batch[i].from = rank;
		batch[i].number = numbers[i];
		batch[i].count = 0;
		memcpy(batch[i].payload,
		       peers[to].out + (size_t)numbers[i] * PAYLOAD_BYTES,
		       payload);
		bytes += 32 + payload;
	}
	if (count > 0 &&
	    sendto(udp, batch, bytes, 0,
		   (const struct sockaddr *)&peers[to].address,
		   sizeof(peers[to].address)) < 0 &&
	    errno != ENOBUFS && errno != ECONNREFUSED)
		err(4, "sendto");
}

/* All segments, or those that were asked for; how many. */
static unsigned send_message(unsigned to, bool all)
{
	uint32_t numbers[BATCH];
	unsigned filled = 0, sent = 0;

	for (uint32_t i = 0; i < segments; i++) {
		if (!all && !atomic_exchange(&peers[to].asked[i], false))
			continue;
		numbers[filled++] = i;
		sent++;
		/* A shorter one ends a batch. */
		if (filled == BATCH || i == segments - 1) {
			send_batch(to, numbers, filled);
			filled = 0;
		}
	}
	send_batch(to, numbers, filled);
	return sent;
}

static void open_udp(void)
{
	int one = DATAGRAM_BYTES, send_room = SEND_ROOM_BYTES;
	int receive_room = RECEIVE_ROOM_BYTES;

	udp = socket(AF_INET, SOCK_DGRAM, 0);
	if (udp < 0 || bind(udp, (struct sockaddr *)&peers[rank].address,
			    sizeof(peers[rank].address)) < 0)
		err(4, "UDP socket");
	setsockopt(udp, IPPROTO_UDP, UDP_SEGMENT, &one, sizeof(one));
	setsockopt(udp, SOL_SOCKET, SO_SNDBUF, &send_room, sizeof(send_room));
	if (setsockopt(udp, SOL_SOCKET, SO_RCVBUFFORCE, &receive_room,
		       sizeof(receive_room)) < 0)
		setsockopt(udp, SOL_SOCKET, SO_RCVBUF, &receive_room,
			   sizeof(receive_room));
}

static void greet(void)
{
	unsigned ready;

	do {
		ready = 0;
		for (unsigned i = 0; i < nodes; i++) {
			if (i == rank)
				continue;
			tell(i, HELLO, hello_count(), NULL);
			ready += peers[i].has_all;
		}
		usleep(HELLO_US);
	} while (ready < nodes - 1);
	greeted = true;
	for (unsigned i = 0; i < nodes; i++)
		if (i != rank)
			tell(i, HELLO, nodes - 1, NULL);
}

/* Send what is asked for until all have all. */
static void repair(void)
{
	unsigned left, sent;

	do {
		left = nodes - 1 - whole;
		sent = 0;
		for (unsigned i = 0; i < nodes; i++) {
			if (i == rank || peers[i].is_done)
				continue;
			left++;
			sent += send_message(i, false);
			tell(i, ASK, 0, NULL);
		}
		if (left > 0 && sent == 0)
			usleep(ASK_US);
	} while (left > 0);
}

static void exchange_udp(uint64_t *begin_ns, uint64_t *end_ns)
{
	pthread_t receiver;

	open_udp();
	if (pthread_create(&receiver, NULL, receive_all, NULL) != 0)
		errx(5, "no thread");
	greet();
	*begin_ns = now_ns();
	for (unsigned to = 0; to < nodes; to++)
		if (to != rank)
			send_message(to, true);
	repair();
	*end_ns = now_ns();
	/* Others may ask again for an answer that was lost. */
	usleep(50 * ASK_US);
}

/* --- TCP -------------------------------------------------------------------
 */

static pthread_barrier_t start;
static const char *control;

static int connect_to(unsigned to)
{
	for (;;) {
		int fd = socket(AF_INET, SOCK_STREAM, 0);

		if (fd < 0)
			err(4, "socket");
		if (setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, control,
			       (socklen_t)strlen(control)) < 0)
			err(4, "%s", control);
		if (connect(fd, (struct sockaddr *)&peers[to].address,
			    sizeof(peers[to].address)) == 0)
			return fd;
		close(fd);
		usleep(HELLO_US);
	}
}

static void *send_tcp(void *argument)
{
	struct peer *peer = argument;
	int fd = connect_to((unsigned)(peer - peers));
	uint32_t own = rank;

	if (write(fd, &own, sizeof(own)) != sizeof(own))
		err(4, "write");
	pthread_barrier_wait(&start);
	for (size_t sent = 0; sent < message_bytes;) {
		ssize_t n = write(fd, peer->out + sent, message_bytes - sent);

		if (n < 0)
			err(4, "write");
		sent += (size_t)n;
	}
	shutdown(fd, SHUT_WR);
	return NULL;
}

static void *receive_tcp(void *argument)
{
	int fd = (int)(intptr_t)argument;
	uint32_t from;

	if (recv(fd, &from, sizeof(from), MSG_WAITALL) != sizeof(from) ||
	    from >= nodes)
		errx(4, "a peer did not say its rank");
	pthread_barrier_wait(&start);
	for (size_t received = 0; received < message_bytes;) {
		ssize_t n = read(fd, peers[from].in + received,
				 message_bytes - received);

		if (n <= 0)
			err(4, "read");
		received += (size_t)n;
	}
	return NULL;
}

static void accept_all(pthread_t *threads)
{
	int one = 1, listener = socket(AF_INET, SOCK_STREAM, 0);

	setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	if (bind(listener, (struct sockaddr *)&peers[rank].address,
		 sizeof(peers[rank].address)) < 0 ||
	    listen(listener, NODES_MAX) < 0)
		err(4, "TCP socket");
	for (unsigned i = 0; i < nodes; i++)
		if (i != rank)
			pthread_create(&threads[i], NULL, send_tcp, &peers[i]);
	for (unsigned i = 0; i < nodes - 1; i++) {
		int fd = accept(listener, NULL, NULL);

		if (fd < 0)
			err(4, "accept");
		pthread_create(&threads[nodes + i], NULL, receive_tcp,
			       (void *)(intptr_t)fd);
	}
}

static void exchange_tcp(uint64_t *begin_ns, uint64_t *end_ns)
{
	pthread_t threads[2 * NODES_MAX];

	pthread_barrier_init(&start, NULL, 2 * (nodes - 1) + 1);
	accept_all(threads);
	pthread_barrier_wait(&start);
	*begin_ns = now_ns();
	for (unsigned i = 0; i < 2 * nodes - 1; i++)
		if (i != rank)
			pthread_join(threads[i], NULL);
	*end_ns = now_ns();
}

/* --- both ------------------------------------------------------------------
 */

static uint8_t byte_of(unsigned from, unsigned to)
{
	return (uint8_t)(from * 37 + to + 1);
}

static void make_messages(char **hosts)
{
	for (unsigned i = 0; i < nodes; i++) {
		struct peer *peer = &peers[i];

		peer->address.sin_family = AF_INET;
		peer->address.sin_port = htons(PORT);
		if (inet_pton(AF_INET, hosts[i], &peer->address.sin_addr) != 1)
			errx(2, "%s: not an address", hosts[i]);
		peer->out = must_alloc(message_bytes);
		peer->in = must_alloc(message_bytes);
		peer->come = must_alloc(segments * sizeof(*peer->come));
		peer->asked = must_alloc(segments * sizeof(*peer->asked));
		memset(peer->out, byte_of(rank, i), message_bytes);
	}
}

static void check_messages(void)
{
	for (unsigned i = 0; i < nodes; i++)
		for (size_t k = 0; i != rank && k < message_bytes; k++)
			if (peers[i].in[k] != byte_of(i, rank))
				errx(1, "rank %u: byte %zu is wrong", i, k);
}

int main(int argc, char **argv)
{
	uint64_t begin_ns, end_ns;
	const char *own = getenv("BLINK_RANK");

	if (argc < 5 || argc - 3 > NODES_MAX || !own)
		errx(2, "usage: exchange_baseline same-order|CONTROL BYTES "
			"HOST...");
	alarm(GIVE_UP_S);
	nodes = (unsigned)argc - 3;
	rank = (unsigned)atoi(own);
	if (rank >= nodes)
		errx(2, "BLINK_RANK: %s", own);
	message_bytes = strtoul(argv[2], NULL, 10) / nodes / nodes;
	segments =
		(uint32_t)((message_bytes + PAYLOAD_BYTES - 1) / PAYLOAD_BYTES);
	make_messages(argv + 3);
	control = argv[1];
	if (strcmp(control, "same-order") == 0)
		exchange_udp(&begin_ns, &end_ns);
	else
		exchange_tcp(&begin_ns, &end_ns);
	check_messages();
	printf("%llu %llu\n", (unsigned long long)begin_ns,
	       (unsigned long long)end_ns);
	return 0;
}
