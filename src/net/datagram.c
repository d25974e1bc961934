/* datagram.c - a UDP socket that moves many segments with one call */
#include "net/datagram.h"

#include <assert.h>
#include <errno.h>
#include <limits.h>
#include <netinet/in.h>
#include <netinet/udp.h>
#include <string.h>
#include <unistd.h>

#include "base/base.h"

#define IPV4_HEADERS_BYTES 28 /* with UDP's 8 */
#define IPV6_HEADERS_BYTES 48

/* --- opening ------------------------------------------------------------- */

static bool is_ipv6(const struct address *address)
{
	return address->socket.ss_family == AF_INET6;
}

static int set_option(int fd, int level, int name, int value)
{
	return setsockopt(fd, level, name, &value, sizeof(value));
}

/* A datagram that is too long for the path is an error.  It does not leave in
 * fragments: one lost fragment would lose all of it. */
static int forbid_fragments(int fd, const struct address *local)
{
	return is_ipv6(local) ? set_option(fd, IPPROTO_IPV6, IPV6_MTU_DISCOVER,
					   IPV6_PMTUDISC_DO)
			      : set_option(fd, IPPROTO_IP, IP_MTU_DISCOVER,
					   IP_PMTUDISC_DO);
}

/* Set the sizes of the buffers, as far as the kernel allows. */
static void make_room(struct datagram_socket *socket,
		      const struct datagram_options *options)
{
	int send_bytes = (int)MIN(options->send_room_bytes, INT_MAX);
	int receive_bytes = (int)MIN(options->receive_room_bytes, INT_MAX);
	int room_bytes = 0;
	socklen_t length = sizeof(room_bytes);

	if (send_bytes)
		set_option(socket->fd, SOL_SOCKET, SO_SNDBUF, send_bytes);
	/* SO_RCVBUFFORCE is not bound by net.core.rmem_max. */
	if (receive_bytes &&
	    set_option(socket->fd, SOL_SOCKET, SO_RCVBUFFORCE, receive_bytes))
		set_option(socket->fd, SOL_SOCKET, SO_RCVBUF, receive_bytes);
	getsockopt(socket->fd, SOL_SOCKET, SO_RCVBUF, &room_bytes, &length);
	socket->receive_room_bytes = (uint32_t)room_bytes;
}

static void find_batches(struct datagram_socket *socket)
{
	int segment_bytes;
	socklen_t length = sizeof(segment_bytes);

	/* Ask now: a kernel that does not know UDP_SEGMENT does not refuse it
	 * on a message, but sends one long datagram. */
	socket->sends_batches = getsockopt(socket->fd, SOL_UDP, UDP_SEGMENT,
					   &segment_bytes, &length) == 0;
	socket->receives_batches =
		set_option(socket->fd, SOL_UDP, UDP_GRO, 1) == 0;
}

static int set_up(struct datagram_socket *socket, const struct address *local,
		  const struct datagram_options *options)
{
	if (forbid_fragments(socket->fd, local))
		return -1;
	make_room(socket, options);
	if (!options->plain)
		find_batches(socket);
	if (bind(socket->fd, (const struct sockaddr *)&local->socket,
		 local->length))
		return -1;
	socket->local.length = sizeof(socket->local.socket);
	return getsockname(socket->fd, (struct sockaddr *)&socket->local.socket,
			   &socket->local.length);
}

int datagram_open(struct datagram_socket *datagram, const struct address *local,
		  const struct datagram_options *options,
		  struct failure *failure)
{
	char text[ADDRESS_TEXT_BYTES];
	int error;

	*datagram = (struct datagram_socket){
		.fd = socket(local->socket.ss_family,
			     SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0),
	};
	if (datagram->fd >= 0 && set_up(datagram, local, options) == 0)
		return 0;
	error = errno;
	datagram_close(datagram);
	return failure_set(failure, EXIT_PEER, NULL, error, "UDP socket of %s",
			   address_format(local, text));
}

void datagram_close(struct datagram_socket *socket)
{
	if (socket->fd >= 0)
		close(socket->fd);
	socket->fd = -1;
}

/* --- the path ------------------------------------------------------------ */

/* The MTU of the route from local to peer, or -1. */
static int route_mtu(int fd, const struct address *local,
		     const struct address *peer)
{
	struct address from = *local;
	int mtu;
	socklen_t length = sizeof(mtu);
	bool v6 = is_ipv6(local);

	address_set_port(&from, 0);
	if (bind(fd, (const struct sockaddr *)&from.socket, from.length) ||
	    connect(fd, (const struct sockaddr *)&peer->socket, peer->length) ||
	    getsockopt(fd, v6 ? IPPROTO_IPV6 : IPPROTO_IP,
		       v6 ? IPV6_MTU : IP_MTU, &mtu, &length))
		return -1;
	return mtu;
}

size_t datagram_payload_bytes(const struct address *local,
			      const struct address *peer)
{
	int fd = socket(local->socket.ss_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	int mtu, error;

	if (fd < 0)
		return 0;
	mtu = route_mtu(fd, local, peer);
	error = errno;
	close(fd);
	errno = error;
	if (mtu < 0)
		return 0;
	mtu -= is_ipv6(local) ? IPV6_HEADERS_BYTES : IPV4_HEADERS_BYTES;
	return MIN((size_t)mtu, DATAGRAM_BATCH_BYTES_MAX);
}

/* --- errors -------------------------------------------------------------- */

/* An ICMP message about an earlier datagram: the next call fails with it, once,
 * and sends nothing. */
static bool is_late_icmp_error(int error)
{
	return error == ECONNREFUSED || error == EHOSTDOWN ||
	       error == EHOSTUNREACH || error == ENETDOWN ||
	       error == ENETUNREACH;
}

/* The datagram did not leave, as if the network had lost it.  EPERM: a packet
 * filter dropped it.  If that goes on, the peer's silence shows it. */
static bool is_loss(int error)
{
	return is_late_icmp_error(error) || error == ENOBUFS ||
	       error == ENOMEM || error == EPERM;
}

/* The device (no checksums, IPsec) or the kernel refuses batches; or a segment
 * is longer than the path allows, and is then refused by itself, too. */
static bool is_refused_batch(int error)
{
	return error == EINVAL || error == EIO || error == EOPNOTSUPP ||
	       error == ENOPROTOOPT;
}

/* --- sending ------------------------------------------------------------- */

struct outgoing {
	int fd;
	const struct address *to;
	const struct iovec *parts;
	unsigned part_count;
	size_t segment_bytes;
	size_t total_bytes;
	unsigned segment_count;
};

static struct msghdr header_of(const struct outgoing *out,
			       const struct iovec *parts, unsigned part_count)
{
	return (struct msghdr){
		.msg_name = (void *)&out->to->socket,
		.msg_namelen = out->to->length,
		.msg_iov = (struct iovec *)parts,
		.msg_iovlen = part_count,
	};
}

/* Send all segments with one message.  Returns how many, or -errno; 0: there is
 * no room now. */
static int send_whole(const struct outgoing *out)
{
	const uint16_t segment_bytes = (uint16_t)out->segment_bytes;
	union {
		struct cmsghdr header;
		uint8_t bytes[CMSG_SPACE(sizeof(segment_bytes))];
	} control = { .header = {
			      .cmsg_level = SOL_UDP,
			      .cmsg_type = UDP_SEGMENT,
			      .cmsg_len = CMSG_LEN(sizeof(segment_bytes)),
		      } };
	struct msghdr header = header_of(out, out->parts, out->part_count);
	ssize_t sent;

	if (out->segment_count > 1) {
		memcpy(CMSG_DATA(&control.header), &segment_bytes,
		       sizeof(segment_bytes));
		header.msg_control = &control;
		header.msg_controllen = sizeof(control);
	}
	do
		sent = sendmsg(out->fd, &header, MSG_DONTWAIT | MSG_NOSIGNAL);
	while (sent < 0 && errno == EINTR);
	if (sent >= 0 || is_loss(errno))
		return (int)out->segment_count;
	return errno == EAGAIN ? 0 : -errno;
}

/* Make a message for each segment. */
static void cut(const struct outgoing *out, struct mmsghdr *messages)
{
	const struct iovec *part = out->parts;
	size_t left_bytes = out->total_bytes;

	for (unsigned i = 0; i < out->segment_count; i++) {
		const struct iovec *first = part;
		size_t bytes = MIN(out->segment_bytes, left_bytes);

		left_bytes -= bytes;
		for (; bytes > 0; part++) {
			assert(part < out->parts + out->part_count);
			assert(part->iov_len <= bytes);
			bytes -= part->iov_len;
		}
		messages[i].msg_hdr =
			header_of(out, first, (unsigned)(part - first));
	}
}

static int send_singly(const struct outgoing *out)
{
	struct mmsghdr messages[DATAGRAM_SEGMENTS_MAX];
	unsigned done = 0;

	cut(out, messages);
	while (done < out->segment_count) {
		int sent = sendmmsg(out->fd, messages + done,
				    out->segment_count - done,
				    MSG_DONTWAIT | MSG_NOSIGNAL);

		/* The error belongs to the first message: sendmmsg() fails
		 * only if it has sent none. */
		if (sent > 0)
			done += (unsigned)sent;
		else if (is_loss(errno))
			done++;
		else if (errno == EAGAIN)
			break;
		else if (errno != EINTR)
			return done ? (int)done : -errno;
	}
	return (int)done;
}

int datagram_send(struct datagram_socket *socket, const struct address *to,
		  const struct iovec *parts, unsigned part_count,
		  size_t segment_bytes, size_t total_bytes)
{
	const struct outgoing out = {
		.fd = socket->fd,
		.to = to,
		.parts = parts,
		.part_count = part_count,
		.segment_bytes = segment_bytes,
		.total_bytes = total_bytes,
		.segment_count =
			(unsigned)DIV_ROUND_UP(total_bytes, segment_bytes),
	};
	int sent;

	assert(total_bytes >= 1 && total_bytes <= DATAGRAM_BATCH_BYTES_MAX);
	assert(out.segment_count <= DATAGRAM_SEGMENTS_MAX);
	if (out.segment_count == 1)
		return send_whole(&out);
	if (socket->sends_batches) {
		sent = send_whole(&out);
		if (sent >= 0 || !is_refused_batch(-sent))
			return sent;
	}
	sent = send_singly(&out);
	/* Single segments can be sent, so the kernel had refused the batch. */
	if (sent > 0)
		socket->sends_batches = false;
	return sent;
}

/* --- receiving ----------------------------------------------------------- */

/* Returns bytes, or -errno; -EAGAIN: the queue is empty. */
static ssize_t receive(int fd, struct msghdr *header, int flags)
{
	ssize_t received;

	do
		received = recvmsg(fd, header, flags | MSG_DONTWAIT);
	while (received < 0 && (errno == EINTR || is_late_icmp_error(errno)));
	return received < 0 ? -errno : received;
}

/* Returns 0 if there is only one segment. */
static size_t segment_bytes_of(struct msghdr *header)
{
	const struct cmsghdr *control = CMSG_FIRSTHDR(header);
	int segment_bytes; /* the kernel's type here; uint16_t on sending */

	if (!control || control->cmsg_level != SOL_UDP ||
	    control->cmsg_type != UDP_GRO)
		return 0;
	memcpy(&segment_bytes, CMSG_DATA(control), sizeof(segment_bytes));
	return (size_t)segment_bytes;
}

static int receive_head(struct datagram_socket *socket, void *room,
			size_t room_bytes, int flags,
			struct datagram_head *head)
{
	union {
		struct cmsghdr header;
		uint8_t bytes[CMSG_SPACE(sizeof(int))];
	} control;
	struct iovec part = { .iov_base = room, .iov_len = room_bytes };
	struct msghdr header = {
		.msg_name = &head->from.socket,
		.msg_namelen = sizeof(head->from.socket),
		.msg_iov = &part,
		.msg_iovlen = 1,
		.msg_control = &control,
		.msg_controllen = sizeof(control),
	};
	/* MSG_TRUNC: return the whole length, however much of it fits. */
	ssize_t received = receive(socket->fd, &header, flags | MSG_TRUNC);
	size_t segment_bytes;

	if (received < 0)
		return received == -EAGAIN ? 0 : (int)received;
	segment_bytes = segment_bytes_of(&header);
	head->from.length = header.msg_namelen;
	head->total_bytes = (size_t)received;
	head->segment_bytes = segment_bytes
				      ? MIN(segment_bytes, head->total_bytes)
				      : head->total_bytes;
	head->head_bytes = MIN(room_bytes, head->total_bytes);
	return 1;
}

int datagram_peek(struct datagram_socket *socket, void *room, size_t room_bytes,
		  struct datagram_head *head)
{
	return receive_head(socket, room, room_bytes, MSG_PEEK, head);
}

ssize_t datagram_take(struct datagram_socket *socket, const struct iovec *parts,
		      unsigned part_count)
{
	struct msghdr header = {
		.msg_iov = (struct iovec *)parts,
		.msg_iovlen = part_count,
	};

	return receive(socket->fd, &header, 0);
}

int datagram_receive(struct datagram_socket *socket, void *room,
		     size_t room_bytes, struct datagram_head *head)
{
	return receive_head(socket, room, room_bytes, 0, head);
}
