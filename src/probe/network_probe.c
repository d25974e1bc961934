/*
 * network_probe.c - measures round trips and throughput between the ranks of a
 * job
 */
#include "probe/network_probe.h"

#include <errno.h>
#include <poll.h>
#include <stdbool.h>
#include <unistd.h>

#include "base/base.h"
#include "base/clock.h"
#include "base/cpu.h"
#include "exchange/udp/udp_wire.h"
#include "kernels/crc32c.h"
#include "net/datagram.h"

/* Time until a query is repeated: many times what a datagram takes on any link
 * that a cluster sorts over. */
#define ASK_NS ((uint64_t)20 * 1000000)
#define HEADER_BYTES UDP_DATA_HEADER_BYTES
#define PAYLOAD_BYTES_MAX (DATAGRAM_BATCH_BYTES_MAX - HEADER_BYTES)
#define ROOM_BYTES ((uint32_t)16 << 20)

/* Of each question but a ping, and of the answer. */
#define ASK_BYTES 24

enum kind { PING = 1, STREAM, COUNT, END, TCP };

struct prober {
	const struct network_probe *probe;
	struct datagram_socket socket;
	int listener; /* does not wait; -1: rank 0, or there is none */
	struct udp_wire_keys keys;
	crc32c_fn *crc32c;
	uint64_t serial;			 /* of the last question */
	uint8_t batch[DATAGRAM_BATCH_BYTES_MAX]; /* is sent */
	uint8_t room[DATAGRAM_BATCH_BYTES_MAX];	 /* has come */
};

/* --- datagrams ------------------------------------------------------------ */

static void address_of(const struct prober *prober, unsigned rank,
		       struct address *address)
{
	*address = prober->probe->rank->addresses[rank];
	/* Several ranks may share an address. */
	address_set_port(address, (uint16_t)(prober->probe->port + rank));
}

static size_t seal(struct prober *prober, enum kind kind, unsigned to,
		   uint64_t serial, uint8_t *datagram, uint32_t payload_bytes)
{
	struct udp_wire_data data = {
		.epoch = (uint8_t)kind,
		.source = (uint16_t)prober->probe->rank->rank,
		.destination = (uint16_t)to,
		.length = (uint16_t)payload_bytes,
		.offset = serial,
	};

	udp_wire_seal_data(&data, &prober->keys, prober->crc32c,
			   datagram + HEADER_BYTES, datagram);
	return HEADER_BYTES + payload_bytes;
}

static void send_one(struct prober *prober, unsigned to, size_t bytes)
{
	struct iovec part = { prober->batch, bytes };
	struct address address;

	address_of(prober, to, &address);
	datagram_send(&prober->socket, &address, &part, 1, bytes, bytes);
}

/* True if the bytes are a complete datagram of this job for this rank. */
static bool open_datagram(struct prober *prober, uint8_t *bytes, size_t count,
			  struct udp_wire_data *data)
{
	struct iovec part = { bytes + HEADER_BYTES, count - HEADER_BYTES };

	return count > HEADER_BYTES &&
	       udp_wire_open_data(bytes, &prober->keys, data) &&
	       data->length == part.iov_len &&
	       data->destination == prober->probe->rank->rank &&
	       data->source < prober->probe->rank->node_count &&
	       udp_wire_data_is_whole(bytes, &prober->keys, prober->crc32c,
				      &part, 1);
}

/* What came next, if anything did until then: its segments lie in room.
 * head->total_bytes 0: nothing. */
static int receive(struct prober *prober, uint64_t until_ns,
		   struct datagram_head *head)
{
	int count = datagram_receive(&prober->socket, prober->room,
				     DATAGRAM_BATCH_BYTES_MAX, head);

	if (count == 0) {
		struct pollfd readable[] = { { prober->socket.fd, POLLIN, 0 },
					     { prober->listener, POLLIN, 0 } };
		const struct timespec timeout = clock_left(until_ns);

		ppoll(readable, ARRAY_LEN(readable), &timeout, NULL);
		count = datagram_receive(&prober->socket, prober->room,
					 DATAGRAM_BATCH_BYTES_MAX, head);
	}
	if (count == 0)
		head->total_bytes = 0;
	return MIN(count, 0);
}

/* --- rank 0: queries ------------------------------------------------------ */

static int peer_failed(const struct prober *prober, unsigned rank,
		       struct failure *failure, const char *why)
{
	return failure_set(failure, EXIT_PEER, prober->probe->rank->names[rank],
			   0, "rank %u %s", rank, why);
}

/* Wait until the last question is answered, or the time is over (0). */
static int hear(struct prober *prober, unsigned rank, enum kind kind,
		uint64_t until_ns, struct failure *failure)
{
	while (clock_now_ns() < until_ns) {
		struct datagram_head head;
		struct udp_wire_data data;

		if (receive(prober, until_ns, &head) < 0)
			return peer_failed(prober, rank, failure,
					   "cannot be heard");
		if (open_datagram(prober, prober->room, head.total_bytes,
				  &data) &&
		    data.epoch == kind && data.source == rank &&
		    data.offset == prober->serial)
			return 1;
	}
	return 0;
}

/* Ask until it is answered; the answer's payload is then in room.  Returns how
 * often the question was sent again, or -errno. */
static int ask(struct prober *prober, unsigned rank, enum kind kind,
	       uint32_t payload_bytes, struct failure *failure)
{
	uint64_t give_up_ns = clock_now_ns() + prober->probe->deadline_ns;
	size_t bytes;

	prober->serial++;
	memset(prober->batch + HEADER_BYTES, 0, payload_bytes);
	bytes = seal(prober, kind, rank, prober->serial, prober->batch,
		     payload_bytes);
	for (int repeats = 0;; repeats++) {
		int found;

		send_one(prober, rank, bytes);
		found = hear(prober, rank, kind, clock_now_ns() + ASK_NS,
			     failure);
		if (found)
			return found < 0 ? found : repeats;
		if (clock_now_ns() > give_up_ns)
			return peer_failed(prober, rank, failure,
					   "does not answer");
	}
}

static int ping(struct prober *prober, unsigned rank,
		struct network_figures *figures, struct failure *failure)
{
	for (unsigned i = 0; i < prober->probe->rounds;) {
		uint64_t begin_ns = clock_now_ns();
		int repeats = ask(prober, rank, PING, prober->probe->ping_bytes,
				  failure);

		if (repeats < 0)
			return repeats;
		figures->round_trip_ns[i] = clock_now_ns() - begin_ns;
		figures->lost_pings += (uint32_t)repeats;
		/* The time of a query that was lost is not a sample. */
		if (repeats == 0)
			i++;
	}
	return 0;
}

/* A batch of equal datagrams, sent again and again. */
static void send_stream(struct prober *prober, unsigned rank,
			uint32_t payload_bytes)
{
	size_t segment_bytes = HEADER_BYTES + payload_bytes;
	size_t segments = MAX(1, MIN(DATAGRAM_SEGMENTS_MAX,
				     DATAGRAM_BATCH_BYTES_MAX / segment_bytes));
	struct iovec part = { prober->batch, segments * segment_bytes };
	struct pollfd writable = { prober->socket.fd, POLLOUT, 0 };
	struct address address;
	uint64_t sent_bytes = 0;

	address_of(prober, rank, &address);
	memset(prober->batch, 0, part.iov_len);
	prober->serial++;
	for (size_t i = 0; i < segments; i++)
		seal(prober, STREAM, rank, prober->serial,
		     prober->batch + i * segment_bytes, payload_bytes);
	while (sent_bytes < prober->probe->stream_bytes) {
		int sent = datagram_send(&prober->socket, &address, &part, 1,
					 segment_bytes, part.iov_len);

		if (sent < 0)
			return;
		if (sent == 0)
			poll(&writable, 1, 10);
		sent_bytes += (uint64_t)sent * payload_bytes;
	}
}

/* What arrived of the last stream or connection. */
static int ask_count(struct prober *prober, unsigned rank,
		     struct network_arrival *arrival, struct failure *failure)
{
	const uint8_t *answer = prober->room + HEADER_BYTES;
	uint64_t serial = prober->serial;
	int repeats = ask(prober, rank, COUNT, ASK_BYTES, failure);

	if (repeats < 0)
		return repeats;
	if (load_le64(answer) == serial) {
		arrival->bytes = load_le64(answer + 8);
		arrival->ns = load_le64(answer + 16);
	}
	return 0;
}

static int stream(struct prober *prober, unsigned rank,
		  struct network_figures *figures, struct failure *failure)
{
	const struct rank *ranks = prober->probe->rank;
	size_t path_bytes = datagram_payload_bytes(&ranks->addresses[0],
						   &ranks->addresses[rank]);

	if (path_bytes <= HEADER_BYTES)
		return peer_failed(prober, rank, failure, "has no route");
	figures->payload_bytes =
		(uint32_t)MIN(path_bytes - HEADER_BYTES, PAYLOAD_BYTES_MAX);
	send_stream(prober, rank, figures->payload_bytes);
	return ask_count(prober, rank, &figures->udp, failure);
}

/* A TCP socket of this rank.  Its calls, and those of the connections that it
 * accepts, wait no longer than the deadline.  -errno on failure. */
static int tcp_open(const struct prober *prober, int flags, uint16_t port)
{
	const struct network_probe *probe = prober->probe;
	struct timeval wait = { (time_t)(probe->deadline_ns / 1000000000), 0 };
	struct address local = probe->rank->addresses[probe->rank->rank];
	int fd = socket(local.socket.ss_family,
			SOCK_STREAM | SOCK_CLOEXEC | flags, 0);
	int yes = 1, error;

	if (fd < 0)
		return -errno;
	address_set_port(&local, port);
	(void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
	(void)setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &wait, sizeof(wait));
	(void)setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &wait, sizeof(wait));
	if (bind(fd, (struct sockaddr *)&local.socket, local.length) == 0)
		return fd;
	error = -errno;
	close(fd);
	return error;
}

/* The other rank closes the connection when it has read all.  Each call sends
 * from the beginning of the batch: a hello, of which only the first one is read
 * as such, and zeros. */
static int tcp_send(struct prober *prober, unsigned rank, int fd)
{
	uint64_t left = prober->probe->stream_bytes + HEADER_BYTES + ASK_BYTES;
	struct address to;

	address_of(prober, rank, &to);
	memset(prober->batch, 0, DATAGRAM_BATCH_BYTES_MAX);
	seal(prober, TCP, rank, ++prober->serial, prober->batch, ASK_BYTES);
	if (connect(fd, (struct sockaddr *)&to.socket, to.length) < 0)
		return -errno;
	while (left > 0) {
		ssize_t sent =
			send(fd, prober->batch,
			     MIN(left, DATAGRAM_BATCH_BYTES_MAX), MSG_NOSIGNAL);

		if (sent < 0)
			return -errno;
		left -= (uint64_t)sent;
	}
	/* In case the other one sends something. */
	errno = EPROTO;
	return shutdown(fd, SHUT_WR) < 0 || recv(fd, prober->room, 1, 0) != 0
		       ? -errno
		       : 0;
}

/* Whatever prevents a connection is told in figures. */
static int tcp_stream(struct prober *prober, unsigned rank,
		      struct network_figures *figures, struct failure *failure)
{
	int fd = tcp_open(prober, 0, 0);
	int why = fd < 0 ? fd : tcp_send(prober, rank, fd), error = 0;

	if (fd >= 0)
		close(fd);
	if (why == 0)
		error = ask_count(prober, rank, &figures->tcp, failure);
	if (why == 0 && figures->tcp.ns == 0)
		why = -EPROTO; /* another process has read it */
	figures->tcp_error =
		why == -EAGAIN || why == -EINPROGRESS ? -ETIMEDOUT : why;
	return error;
}

static int ask_rank(struct prober *prober, unsigned rank,
		    struct network_figures *figures, struct failure *failure)
{
	/* The first round trip is no sample: the other rank may not have
	 * started. */
	int ret = ask(prober, rank, PING, prober->probe->ping_bytes, failure);

	if (ret >= 0)
		ret = ping(prober, rank, figures, failure);
	if (ret == 0 && prober->probe->stream_bytes > 0)
		ret = stream(prober, rank, figures, failure);
	if (ret == 0 && prober->probe->stream_bytes > 0)
		ret = tcp_stream(prober, rank, figures, failure);
	if (ret == 0)
		ret = ask(prober, rank, END, ASK_BYTES, failure);
	return MIN(ret, 0);
}

/* --- other ranks: replies ------------------------------------------------- */

struct stream_count {
	uint64_t serial;
	uint64_t bytes;
	uint64_t first_ns, last_ns;
};

static void count_stream(struct stream_count *count, uint64_t serial,
			 uint64_t bytes)
{
	uint64_t now_ns = clock_now_ns();

	if (serial != count->serial)
		*count = (struct stream_count){ .serial = serial,
						.first_ns = now_ns };
	else
		count->bytes += bytes; /* the first began the time */
	count->last_ns = now_ns;
}

static void answer(struct prober *prober, const struct udp_wire_data *data,
		   const struct stream_count *count)
{
	uint8_t *payload = prober->batch + HEADER_BYTES;

	memcpy(payload, prober->room + HEADER_BYTES, data->length);
	if (data->epoch == COUNT && data->length >= ASK_BYTES) {
		store_le64(payload, count->serial);
		store_le64(payload + 8, count->bytes);
		store_le64(payload + 16, count->last_ns - count->first_ns);
	}
	send_one(prober, data->source,
		 seal(prober, (enum kind)data->epoch, data->source,
		      data->offset, prober->batch, data->length));
}

/* Read a connection to its end. */
static void tcp_read(struct prober *prober, int fd, struct stream_count *count)
{
	size_t bytes = HEADER_BYTES + ASK_BYTES;
	struct udp_wire_data data;
	ssize_t got = recv(fd, prober->room, bytes, MSG_WAITALL);

	if (got != (ssize_t)bytes ||
	    !open_datagram(prober, prober->room, bytes, &data) ||
	    data.source != 0 || data.epoch != TCP)
		return;
	*count = (struct stream_count){ .serial = data.offset,
					.first_ns = clock_now_ns() };
	do {
		count->last_ns = clock_now_ns();
		got = recv(fd, prober->room, DATAGRAM_BATCH_BYTES_MAX, 0);
		count->bytes += (uint64_t)MAX(got, 0);
	} while (got > 0);
}

/* Take a connection; false: none has come. */
static bool tcp_accept(struct prober *prober, struct stream_count *count)
{
	struct address from = { .length = sizeof(from.socket) };
	int fd = accept4(prober->listener, (struct sockaddr *)&from.socket,
			 &from.length, SOCK_CLOEXEC);

	if (fd < 0)
		return false;
	if (address_is_same_host(&from, &prober->probe->rank->addresses[0]))
		tcp_read(prober, fd, count);
	close(fd);
	return true;
}

/* All segments of a received batch have the same kind. */
static bool answer_segments(struct prober *prober,
			    const struct datagram_head *head,
			    struct stream_count *count)
{
	struct udp_wire_data data = { 0 };
	uint64_t bytes = 0;

	for (size_t at = 0; at < head->total_bytes; at += head->segment_bytes) {
		size_t length =
			MIN(head->segment_bytes, head->total_bytes - at);

		if (open_datagram(prober, prober->room + at, length, &data))
			bytes += data.length;
	}
	if (bytes == 0 || data.source != 0)
		return false;
	if (data.epoch == STREAM)
		count_stream(count, data.offset, bytes);
	else if (head->segment_bytes == head->total_bytes)
		answer(prober, &data, count);
	return data.epoch == END;
}

static int answer_all(struct prober *prober, struct failure *failure)
{
	uint64_t silent_ns =
		prober->probe->deadline_ns * prober->probe->rank->node_count;
	uint64_t give_up_ns = clock_now_ns() + silent_ns;
	struct stream_count count = { 0 };
	bool ended = false;

	/* The reply to END may be lost: stay as long as rank 0 repeats END. */
	while (clock_now_ns() < give_up_ns) {
		struct datagram_head head;

		if (receive(prober, give_up_ns, &head) < 0)
			return peer_failed(prober, 0, failure,
					   "cannot be heard");
		if (head.total_bytes > 0)
			ended |= answer_segments(prober, &head, &count);
		else if (!tcp_accept(prober, &count))
			continue;
		give_up_ns = clock_now_ns() + (ended ? 3 * ASK_NS : silent_ns);
	}
	return ended ? 0 : peer_failed(prober, 0, failure, "is silent");
}

/* --- a run ---------------------------------------------------------------- */

static int prober_open(struct prober *prober, struct failure *failure)
{
	struct datagram_options options = { .receive_room_bytes = ROOM_BYTES };
	struct address local;
	int error = udp_wire_derive_keys(prober->probe->rank->secret,
					 &prober->keys);

	if (error)
		return failure_no_memory(failure);
	prober->crc32c = crc32c_kernel(cpu_level_detect());
	address_of(prober, prober->probe->rank->rank, &local);
	error = datagram_open(&prober->socket, &local, &options, failure);
	if (error == 0 && prober->probe->rank->rank > 0) {
		/* Rank 0 will tell if there is none. */
		prober->listener =
			tcp_open(prober, SOCK_NONBLOCK, address_port(&local));
		if (prober->listener >= 0)
			(void)listen(prober->listener, 1);
	}
	return error;
}

int network_probe_run(const struct network_probe *probe,
		      struct network_figures *figures, struct failure *failure)
{
	static struct prober prober;
	int error;

	prober.probe = probe;
	prober.socket.fd = prober.listener = -1;
	error = prober_open(&prober, failure);
	if (error == 0 && probe->rank->rank > 0)
		error = answer_all(&prober, failure);
	for (unsigned i = 1; error == 0 && probe->rank->rank == 0 &&
			     i < probe->rank->node_count;
	     i++)
		error = ask_rank(&prober, i, &figures[i], failure);
	if (prober.socket.fd >= 0)
		datagram_close(&prober.socket);
	if (prober.listener >= 0)
		close(prober.listener);
	return error;
}
