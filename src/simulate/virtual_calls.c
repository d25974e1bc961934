/*
 * virtual_calls.c - what a host calls goes to the world, not to the kernel
 *
 * A program that simulates is linked with --wrap for each function here (the
 * Makefile's SIMULATED): all its calls come here, and go on to the function
 * itself if no host is running.  So neither the exchange nor datagram.c knows
 * of the simulation, and a program that is not linked so pays nothing for it.
 * Without --wrap the __real_ names below are missing, and nothing links.
 */
#include <assert.h>
#include <errno.h>
#include <poll.h>
#include <time.h>

#include "base/base.h"
#include "base/clock.h"
#include "exchange/udp/udp_threads.h"
#include "simulate/virtual_network.h"

/* A poll that does not wait does so for this long: a rank that has a CPU of its
 * own polls again and again until something comes. */
#define GLANCE_NS ((uint64_t)30000)
/* The kernel's default, in bytes with its overhead. */
#define ROOM_DEFAULT_BYTES 212992
#define PORT_FIRST_DRAWN 40000

/* The function itself, and the one that takes its calls. */
#define WRAPPED(function)                                                      \
	__typeof__(function) __real_##function, __wrap_##function

WRAPPED(clock_gettime);
WRAPPED(nanosleep);
WRAPPED(ppoll);
WRAPPED(datagram_open);
WRAPPED(datagram_close);
WRAPPED(datagram_payload_bytes);
WRAPPED(datagram_send);
WRAPPED(datagram_peek);
WRAPPED(datagram_take);
WRAPPED(datagram_receive);
WRAPPED(udp_waker_open);
WRAPPED(udp_waker_wake);
WRAPPED(udp_waker_clear);
WRAPPED(udp_waker_close);
WRAPPED(udp_thread_start);
WRAPPED(udp_thread_join);
WRAPPED(udp_lock_take);
WRAPPED(udp_lock_give);

/* --- time -------------------------------------------------------------------
 */

static const struct virtual_network_options *options_of(const struct host *host)
{
	return &host->world->network->options;
}

int __wrap_clock_gettime(clockid_t clock, struct timespec *time)
{
	struct host *host = host_current();
	uint64_t now_ns;

	if (!host || clock != CLOCK_MONOTONIC)
		return __real_clock_gettime(clock, time);
	host_spend(host, options_of(host)->clock_ns);
	now_ns = host->now_ns + host->clock_offset_ns;
	time->tv_sec = (time_t)(now_ns / NS_PER_S);
	time->tv_nsec = (long)(now_ns % NS_PER_S);
	return 0;
}

static uint64_t ns_of(const struct timespec *time)
{
	return (uint64_t)time->tv_sec * NS_PER_S + (uint64_t)time->tv_nsec;
}

int __wrap_nanosleep(const struct timespec *time, struct timespec *left)
{
	struct host *host = host_current();

	if (!host)
		return __real_nanosleep(time, left);
	host_sleep(host, host->now_ns + ns_of(time), false);
	return 0;
}

/* The descriptors of a host are the numbers of its sockets. */
static struct virtual_socket *socket_of(const struct host *host, int fd)
{
	return &host->world->network->sockets[host->number][fd];
}

static int free_descriptor(const struct host *host)
{
	int fd = 0;

	while (socket_of(host, fd)->open)
		fd++;
	assert(fd < VIRTUAL_SOCKETS);
	return fd;
}

/* *ready_ns may be lowered to when a socket can be written, or is woken. */
static int count_ready(const struct host *host, struct pollfd *fds,
		       nfds_t count, uint64_t *ready_ns)
{
	int ready = 0;

	for (nfds_t i = 0; i < count; i++) {
		uint64_t at_ns;

		fds[i].revents = 0;
		if (fds[i].fd < 0)
			continue;
		at_ns = virtual_network_writable_ns(host, (unsigned)fds[i].fd);
		if (socket_of(host, fds[i].fd)->first ||
		    socket_of(host, fds[i].fd)->woken_ns <= host->now_ns)
			fds[i].revents |= POLLIN;
		if (fds[i].events & POLLOUT && at_ns <= host->now_ns)
			fds[i].revents |= POLLOUT;
		else if (fds[i].events & POLLOUT)
			*ready_ns = MIN(*ready_ns, at_ns);
		*ready_ns =
			MIN(*ready_ns, socket_of(host, fds[i].fd)->woken_ns);
		ready += fds[i].revents != 0;
	}
	return ready;
}

static uint64_t awaited_of(const struct pollfd *fds, nfds_t count)
{
	uint64_t sockets = 0;

	for (nfds_t i = 0; i < count; i++)
		if (fds[i].fd >= 0)
			sockets |= (uint64_t)1 << fds[i].fd;
	return sockets;
}

int __wrap_ppoll(struct pollfd *fds, nfds_t count,
		 const struct timespec *timeout, const sigset_t *mask)
{
	struct host *host = host_current();
	uint64_t until_ns;
	int ready;

	if (!host)
		return __real_ppoll(fds, count, timeout, mask);
	host_spend(host, options_of(host)->poll_ns);
	host_settle(host);
	until_ns = timeout ? host->now_ns + MAX(ns_of(timeout), GLANCE_NS)
			   : UINT64_MAX;
	ready = count_ready(host, fds, count, &until_ns);
	if (ready > 0)
		return ready;
	host->awaited = awaited_of(fds, count);
	while (ready == 0 && host->now_ns < until_ns) {
		host_sleep(host, until_ns, true);
		ready = count_ready(host, fds, count, &until_ns);
	}
	host->awaited = UINT64_MAX;
	if (!timeout || ns_of(timeout) > 0)
		host_spend(host, options_of(host)->wakeup_ns);
	return count_ready(host, fds, count, &until_ns);
}

/* --- sockets ----------------------------------------------------------------
 */

/* The kernel doubles what a process asks for. */
static uint32_t room_of(uint32_t wanted_bytes, uint32_t max_bytes)
{
	return wanted_bytes ? 2 * MIN(wanted_bytes, max_bytes)
			    : ROOM_DEFAULT_BYTES;
}

int __wrap_datagram_open(struct datagram_socket *socket,
			 const struct address *local,
			 const struct datagram_options *options,
			 struct failure *failure)
{
	struct host *host = host_current();
	struct virtual_socket *virtual;
	uint32_t send_room_bytes;
	int fd;

	if (!host)
		return __real_datagram_open(socket, local, options, failure);
	fd = free_descriptor(host);
	virtual = socket_of(host, fd);
	*socket = (struct datagram_socket){
		.fd = fd,
		.local = *local,
		.sends_batches = !options->plain,
		.receives_batches = !options->plain,
		.receive_room_bytes =
			room_of(options->receive_room_bytes,
				options_of(host)->receive_room_max),
	};
	if (address_port(local) == 0)
		address_set_port(&socket->local,
				 (uint16_t)(PORT_FIRST_DRAWN + fd));
	send_room_bytes = room_of(options->send_room_bytes, UINT32_MAX / 2);
	*virtual = (struct virtual_socket){
		.open = true,
		.batches = socket->receives_batches,
		.port = address_port(&socket->local),
		.send_room_ps = (uint64_t)((unsigned __int128)send_room_bytes *
					   8 * 1000000000000 /
					   options_of(host)->link_bits_per_s),
		.room_bytes = socket->receive_room_bytes,
		.last = &virtual->first,
		.woken_ns = UINT64_MAX,
	};
	return 0;
}

void __wrap_datagram_close(struct datagram_socket *socket)
{
	struct host *host = host_current();
	struct virtual_socket *virtual;

	if (!host) {
		__real_datagram_close(socket);
		return;
	}
	if (socket->fd < 0)
		return;
	virtual = socket_of(host, socket->fd);
	while (virtual->first)
		virtual_network_drop_first(virtual);
	virtual->open = false;
	socket->fd = -1;
}

size_t __wrap_datagram_payload_bytes(const struct address *local,
				     const struct address *peer)
{
	const struct host *host = host_current();

	if (!host)
		return __real_datagram_payload_bytes(local, peer);
	return options_of(host)->datagram_bytes
		       ? options_of(host)->datagram_bytes
		       : options_of(host)->mtu_bytes - 28;
}

static void spend(struct host *host, const struct virtual_cost *cost,
		  unsigned datagrams, size_t bytes)
{
	host_spend(host, (uint64_t)datagrams * cost->datagram_ns +
				 (uint64_t)bytes * cost->byte_ps / 1000);
}

/* The kernel takes a message wholly if its socket's buffer has any room.  A
 * batch is one message; single segments are one each. */
/* Other threads of the place run while this one calls the kernel, also where it
 * has the lock. */
static void settle_threads(struct host *host)
{
	if (host->world->cpu_count > 1)
		host_settle(host);
}

int __wrap_datagram_send(struct datagram_socket *socket,
			 const struct address *to, const struct iovec *parts,
			 unsigned part_count, size_t segment_bytes,
			 size_t total_bytes)
{
	static uint8_t bytes[DATAGRAM_BATCH_BYTES_MAX];
	struct host *host = host_current();
	size_t filled = 0, at = 0;
	int sent = 0;

	if (!host)
		return __real_datagram_send(socket, to, parts, part_count,
					    segment_bytes, total_bytes);
	host_spend(host, options_of(host)->send.call_ns);
	settle_threads(host);
	for (unsigned i = 0; i < part_count; i++) {
		memcpy(bytes + filled, parts[i].iov_base, parts[i].iov_len);
		filled += parts[i].iov_len;
	}
	assert(filled == total_bytes);
	for (; at < total_bytes; at += segment_bytes, sent++) {
		size_t length = MIN(segment_bytes, total_bytes - at);

		if ((sent == 0 || !socket->sends_batches) &&
		    !virtual_network_has_room(host, (unsigned)socket->fd))
			break;
		spend(host, &options_of(host)->send, 1, length);
		if (host->world->network->tap)
			host->world->network->tap(host, (unsigned)socket->fd,
						  to, bytes + at, length);
		else
			virtual_network_put(host, (unsigned)socket->fd, to,
					    bytes + at, length);
	}
	settle_threads(host);
	return sent;
}

/* --- receiving ---------------------------------------------------------------
 */

/* The kernel has put together what came from one socket, of one length, but for
 * a shorter end.  Returns the segments; *bytes: of them all. */
static unsigned first_batch(const struct virtual_socket *socket, size_t *bytes)
{
	const struct packet *first = socket->first, *packet = first;
	unsigned count = 0;

	for (*bytes = 0; packet; packet = packet->next) {
		if (packet->from != first->from ||
		    packet->from_port != first->from_port ||
		    packet->byte_count > first->byte_count ||
		    *bytes + packet->byte_count > DATAGRAM_BATCH_BYTES_MAX ||
		    count == DATAGRAM_SEGMENTS_MAX)
			break;
		count++;
		*bytes += packet->byte_count;
		if (!socket->batches || packet->byte_count < first->byte_count)
			break;
	}
	return count;
}

/* Zeros are written only where there are none: pages that nobody has written
 * take no memory. */
static void clear(uint8_t *target, size_t byte_count)
{
	if (byte_count > 0 &&
	    (target[0] != 0 || memcmp(target, target + 1, byte_count - 1) != 0))
		memset(target, 0, byte_count);
}

/* Copy the packet's bytes from an offset on. */
static void copy(const struct packet *packet, size_t from, uint8_t *target,
		 size_t byte_count)
{
	size_t kept = packet->kept_bytes > from ? packet->kept_bytes - from : 0;

	kept = MIN(kept, byte_count);
	memcpy(target, packet->bytes + from, kept);
	clear(target + kept, byte_count - kept);
}

int __wrap_datagram_peek(struct datagram_socket *socket, void *room,
			 size_t room_bytes, struct datagram_head *head)
{
	struct host *host = host_current();
	const struct virtual_socket *virtual;
	const struct packet *packet;

	if (!host)
		return __real_datagram_peek(socket, room, room_bytes, head);
	virtual = socket_of(host, socket->fd);
	host_spend(host, options_of(host)->poll_ns);
	host_settle(host);
	packet = virtual->first;
	if (!packet)
		return 0;
	virtual_network_address(packet->from, packet->from_port, &head->from);
	first_batch(virtual, &head->total_bytes);
	head->segment_bytes = packet->byte_count;
	head->head_bytes = MIN(room_bytes, packet->byte_count);
	copy(packet, 0, room, head->head_bytes);
	return 1;
}

ssize_t __wrap_datagram_take(struct datagram_socket *socket,
			     const struct iovec *parts, unsigned part_count)
{
	struct host *host = host_current();
	struct virtual_socket *virtual;
	size_t total_bytes, at = 0, taken = 0;
	unsigned count;

	if (!host)
		return __real_datagram_take(socket, parts, part_count);
	virtual = socket_of(host, socket->fd);
	if (!virtual->first)
		return -EAGAIN;
	count = first_batch(virtual, &total_bytes);
	host_spend(host, options_of(host)->receive.call_ns);
	spend(host, &options_of(host)->receive, count, total_bytes);
	for (unsigned i = 0; i < part_count && count > 0; i++) {
		uint8_t *target = parts[i].iov_base;
		size_t left = parts[i].iov_len;

		while (left > 0 && count > 0) {
			const struct packet *packet = virtual->first;
			size_t length = MIN(left, packet->byte_count - at);

			copy(packet, at, target, length);
			target += length;
			left -= length;
			taken += length;
			at += length;
			if (at < packet->byte_count)
				continue;
			virtual_network_drop_first(virtual);
			count--;
			at = 0;
		}
	}
	for (; count > 0; count--)
		virtual_network_drop_first(virtual);
	return (ssize_t)taken;
}

int __wrap_datagram_receive(struct datagram_socket *socket, void *room,
			    size_t room_bytes, struct datagram_head *head)
{
	struct host *host = host_current();
	int any;

	if (!host)
		return __real_datagram_receive(socket, room, room_bytes, head);
	any = __wrap_datagram_peek(socket, room, room_bytes, head);
	if (any > 0) {
		struct iovec nothing = { room, 0 };

		__wrap_datagram_take(socket, &nothing, 1);
	}
	return any;
}

/* --- wakers -----------------------------------------------------------------
 */

int __wrap_udp_waker_open(void)
{
	struct host *host = host_current();
	int fd;

	if (!host)
		return __real_udp_waker_open();
	fd = free_descriptor(host);
	*socket_of(host, fd) = (struct virtual_socket){
		.open = true,
		.woken_ns = UINT64_MAX,
	};
	return fd;
}

void __wrap_udp_waker_wake(int waker)
{
	struct host *host = host_current();

	if (!host) {
		__real_udp_waker_wake(waker);
		return;
	}
	host_spend(host, options_of(host)->poll_ns);
	socket_of(host, waker)->woken_ns =
		MIN(socket_of(host, waker)->woken_ns, host->now_ns);
	world_wake(host->world, host->number, (uint64_t)1 << waker);
}

void __wrap_udp_waker_clear(int waker)
{
	struct host *host = host_current();

	if (!host) {
		__real_udp_waker_clear(waker);
		return;
	}
	host_spend(host, options_of(host)->poll_ns);
	socket_of(host, waker)->woken_ns = UINT64_MAX;
}

void __wrap_udp_waker_close(int waker)
{
	struct host *host = host_current();

	if (!host)
		__real_udp_waker_close(waker);
	else if (waker >= 0)
		socket_of(host, waker)->open = false;
}

/* --- threads ----------------------------------------------------------------
 *
 * Each has a CPU of the place to itself.
 */

/* How often a thread that waits for the end of another one looks. */
#define JOIN_NS ((uint64_t)1000)

int __wrap_udp_thread_start(struct udp_thread *thread)
{
	struct host *host = host_current(), *cpu;

	if (!host)
		return __real_udp_thread_start(thread);
	for (unsigned i = 1; i < host->world->cpu_count; i++) {
		cpu = world_cpu(host->world, host->number, i);
		if (!cpu->fiber.ended)
			continue;
		thread->number = i;
		thread->runs = true;
		cpu->clock_offset_ns = host->clock_offset_ns;
		cpu->slowness = host->slowness;
		world_start(cpu, host->now_ns, thread->work, thread->argument);
		return 0;
	}
	return -EAGAIN;
}

void __wrap_udp_thread_join(struct udp_thread *thread)
{
	struct host *host = host_current(), *cpu;

	if (!host) {
		__real_udp_thread_join(thread);
		return;
	}
	if (!thread->runs)
		return;
	cpu = world_cpu(host->world, host->number, thread->number);
	while (!cpu->fiber.ended && !cpu->is_dead) {
		world_wake(host->world, host->number, UINT64_MAX);
		host_sleep(host, host->now_ns + JOIN_NS, false);
	}
	thread->runs = false;
}

/* The fibers of a place share one lock.  One that takes it later in the world's
 * order, but at an earlier time of its own, waits until it was given away; and
 * one whose holder has died takes it from that. */
void __wrap_udp_lock_take(pthread_mutex_t *lock)
{
	struct host *host = host_current(), *place;

	if (!host) {
		__real_udp_lock_take(lock);
		return;
	}
	place = world_cpu(host->world, host->number, 0);
	host_settle(host);
	place->lock_waiters++;
	while (place->lock_holder && !place->lock_holder->is_dead)
		host_sleep(host, UINT64_MAX, true);
	place->lock_waiters--;
	place->lock_holder = host;
	if (place->lock_free_ns > host->now_ns)
		host_sleep(host, place->lock_free_ns, false);
}

void __wrap_udp_lock_give(pthread_mutex_t *lock)
{
	struct host *host = host_current(), *place;

	if (!host) {
		__real_udp_lock_give(lock);
		return;
	}
	place = world_cpu(host->world, host->number, 0);
	assert(place->lock_holder == host);
	place->lock_holder = NULL;
	place->lock_free_ns = host->now_ns;
	if (place->lock_waiters > 0)
		world_wake(host->world, host->number, UINT64_MAX);
}
