/* client.c - ask many daemons at once over one socket */
#include <assert.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/base.h"
#include "base/clock.h"
#include "shell/client.h"
#include "shell/client_lookup.h"

/* Thousands of nodes may answer within a millisecond, and the kernel counts 2
 * KiB for each datagram.  The kernel gives less if it allows less. */
#define RECEIVE_BUFFER_BYTES (8 << 20)

/* --- signals -------------------------------------------------------------- */

static volatile sig_atomic_t signal_count, signal_last;
static sigset_t open_mask;

static void on_signal(int number)
{
	signal_count++;
	signal_last = number;
}

int client_catch_signals(void)
{
	static const int numbers[] = { SIGINT, SIGTERM, SIGHUP, SIGQUIT };
	const struct sigaction action = { .sa_handler = on_signal };
	struct sigaction inherited;
	sigset_t block;

	sigemptyset(&block);
	for (unsigned i = 0; i < ARRAY_LEN(numbers); i++)
		sigaddset(&block, numbers[i]);
	if (sigprocmask(SIG_BLOCK, &block, &open_mask) < 0)
		return -errno;
	for (unsigned i = 0; i < ARRAY_LEN(numbers); i++) {
		sigdelset(&open_mask, numbers[i]);
		if (sigaction(numbers[i], NULL, &inherited) < 0)
			return -errno;
		/* nohup(1) has it ignored, to go on without a terminal. */
		if (numbers[i] == SIGHUP && inherited.sa_handler == SIG_IGN)
			continue;
		if (sigaction(numbers[i], &action, NULL) < 0)
			return -errno;
	}
	return 0;
}

/* --- sockets -------------------------------------------------------------- */

static int *fd_of(struct client *client, const struct client_node *node)
{
	return &client->fds[node->address.socket.ss_family == AF_INET6];
}

static int open_socket(int family)
{
	int bytes = RECEIVE_BUFFER_BYTES;
	int fd = socket(family, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (fd < 0)
		return -errno;
	/* An unprivileged user gets what the ordinary limit allows. */
	if (setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &bytes, sizeof(bytes)))
		(void)setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &bytes,
				 sizeof(bytes));
	return fd;
}

static int open_sockets(struct client *client)
{
	for (uint32_t i = 0; i < client->node_count; i++) {
		int family = client->nodes[i].address.socket.ss_family;
		int *fd = fd_of(client, &client->nodes[i]);

		if (client->nodes[i].lookup_error != 0)
			continue;
		if (*fd < 0)
			*fd = open_socket(family);
		if (*fd < 0)
			return *fd;
	}
	return 0;
}

int client_init(struct client *client, const struct hostlist *hosts,
		const uint8_t *key, uint64_t lost_after_ns, bool loses_unknown,
		struct failure *failure)
{
	int ret;

	*client = (struct client){ .hosts = hosts,
				   .fds = { -1, -1 },
				   .idle_cpus.fd = -1,
				   .lost_after_ns = lost_after_ns };
	memcpy(client->key, key, WIRE_KEY_BYTES);
	ret = client_lookup_all(client, loses_unknown, failure);
	if (ret < 0)
		return ret;
	ret = open_sockets(client);
	if (ret < 0)
		return failure_set(failure, EXIT_PEER, NULL, -ret, "socket");
	idle_cpus_open(&client->idle_cpus);
	return 0;
}

void client_fini(struct client *client)
{
	explicit_bzero(client->key, sizeof(client->key));
	for (unsigned i = 0; i < ARRAY_LEN(client->fds) && client->nodes; i++) {
		if (client->fds[i] >= 0)
			close(client->fds[i]);
	}
	if (client->nodes)
		idle_cpus_close(&client->idle_cpus);
	client_lookup_free(client);
}

/* --- sending -------------------------------------------------------------- */

static void send_datagram(struct client *client, struct client_node *node,
			  const struct command *command)
{
	uint8_t datagram[WIRE_LONG_BYTES];
	ssize_t sent;

	command_seal(command, client->key, datagram);
	if (client->first_ns == 0)
		client->first_ns = clock_now_ns();
	sent = sendto(*fd_of(client, node), datagram, command->length_bytes, 0,
		      (const struct sockaddr *)&node->address.socket,
		      node->address.length);
	/* A datagram that does not leave is sent again like one that is lost.
	 */
	node->send_error = sent < 0 ? errno : 0;
}

void client_send(struct client *client, struct client_node *node,
		 enum wire_type type, const void *body, size_t body_bytes,
		 size_t length_bytes)
{
	struct command command = {
		.type = type,
		.counter = ++node->counter,
		.body = body,
		.body_bytes = body_bytes,
		.length_bytes = length_bytes,
	};

	if (body_bytes > length_bytes - WIRE_HEADER_BYTES)
		command.length_bytes = WIRE_LONG_BYTES;
	memcpy(command.node, node->id, WIRE_NODE_BYTES);
	memcpy(command.session, node->session, WIRE_SESSION_BYTES);
	node->sent[node->counter % CLIENT_SENT] = (struct client_sent){
		.counter = node->counter,
		.type = type,
	};
	send_datagram(client, node, &command);
}

/* The nonce is fresh each time: a daemon does not answer the same one twice. */
static void send_hello(struct client *client, struct client_node *node)
{
	unsigned slot = node->hello_count++ % CLIENT_NONCES;
	struct wire_hello hello;
	struct command command = {
		.type = WIRE_HELLO,
		.body = (const uint8_t *)&hello,
		.body_bytes = sizeof(hello),
		.length_bytes = WIRE_SHORT_BYTES,
	};

	if (getrandom(hello.nonce, sizeof(hello.nonce), 0) !=
	    sizeof(hello.nonce))
		abort(); /* cannot happen: few bytes are never cut short */
	memcpy(node->nonces[slot], hello.nonce, sizeof(hello.nonce));
	node->hello_ns[slot] = clock_now_ns();
	memcpy(command.node, node->id, WIRE_NODE_BYTES);
	send_datagram(client, node, &command);
}

/* --- when to send --------------------------------------------------------- */

static void set_due(struct client *client, struct client_node *node,
		    uint64_t due_ns)
{
	node->due_ns = due_ns;
	client->next_due_ns = MIN(client->next_due_ns, due_ns);
}

static uint64_t first_interval_ns(const struct client_node *node)
{
	return MIN(MAX(CLIENT_RETRY_NS, 4 * node->round_trip_ns),
		   CLIENT_RETRY_NS_MAX);
}

void client_ask(struct client *client, struct client_node *node)
{
	uint64_t now_ns = clock_now_ns();

	client->asked_ns = now_ns;
	if (node->asked_ns == 0) {
		node->asked_ns = now_ns;
		node->interval_ns = first_interval_ns(node);
	}
	set_due(client, node, now_ns + node->interval_ns);
	node->interval_ns = MIN(2 * node->interval_ns, CLIENT_RETRY_NS_MAX);
	if (node->has_session)
		client->work->send(client, node);
	else
		send_hello(client, node);
}

void client_pause(struct client *client, struct client_node *node,
		  uint64_t pause_ns)
{
	set_due(client, node, clock_now_ns() + pause_ns);
}

void client_begin(struct client *client, struct client_node *node)
{
	assert(!node->working);
	node->working = true;
	node->asked_ns = 0;
	client->working++;
	set_due(client, node, 0); /* by client_run() */
}

void client_end(struct client *client, struct client_node *node)
{
	assert(node->working);
	node->working = false;
	client->working--;
}

static void lose(struct client *client, struct client_node *node)
{
	node->lost = true;
	client_end(client, node);
	if (client->work->lost)
		client->work->lost(client, node);
}

static bool is_lost(const struct client *client, const struct client_node *node,
		    uint64_t now_ns)
{
	return node->lookup_error != 0 ||
	       (node->asked_ns != 0 &&
		now_ns - node->asked_ns >= client->lost_after_ns);
}

static void serve_due(struct client *client, uint64_t now_ns)
{
	client->next_due_ns = UINT64_MAX;
	for (uint32_t i = 0; i < client->node_count; i++) {
		struct client_node *node = &client->nodes[i];

		if (!node->working)
			continue;
		if (node->due_ns > now_ns)
			set_due(client, node, node->due_ns);
		else if (is_lost(client, node, now_ns))
			lose(client, node);
		else
			client_ask(client, node);
	}
}

/* --- replies -------------------------------------------------------------- */

/* The time after which the node is lost starts again for the first request of
 * the work, but not for one that is repeated in another session: else a daemon
 * that forgets each session at once would never be lost. */
static void begin_session(struct client_node *node,
			  const struct wire_session *session)
{
	if (!node->has_epoch)
		node->asked_ns = 0;
	else if (memcmp(node->epoch, session->epoch, WIRE_EPOCH_BYTES) != 0)
		node->restarts++;
	node->has_epoch = true;
	memcpy(node->epoch, session->epoch, WIRE_EPOCH_BYTES);
	node->has_session = true;
	memcpy(node->session, session->session, WIRE_SESSION_BYTES);
	node->counter = 0;
	memset(node->sent, 0, sizeof(node->sent));
}

static void take_session(struct client *client, struct client_node *node,
			 const struct command *command)
{
	struct wire_session session;

	if (command->body_bytes != sizeof(session) || node->has_session)
		goto ignore;
	memcpy(&session, command->body, sizeof(session));
	for (unsigned i = 0; i < MIN(node->hello_count, CLIENT_NONCES); i++) {
		if (memcmp(node->nonces[i], session.nonce,
			   sizeof(session.nonce)) != 0)
			continue;
		node->round_trip_ns = clock_now_ns() - node->hello_ns[i];
		begin_session(node, &session);
		client_ask(client, node);
		return;
	}
ignore:
	client->ignored++;
}

static enum wire_type reply_type(enum wire_type request)
{
	switch (request) {
	case WIRE_START:
	case WIRE_RENEW:
	case WIRE_CANCEL:
		return WIRE_JOB;
	case WIRE_OUTPUT:
		return WIRE_OUTPUT_PART;
	case WIRE_STATUS:
		return WIRE_NODE;
	default:
		return WIRE_SESSION;
	}
}

/* True if the command replies to a request of ours, of this session.  The
 * network may deliver the same reply twice: the work must stand that. */
static bool was_asked(const struct client_node *node,
		      const struct command *command)
{
	const struct client_sent *sent =
		&node->sent[command->counter % CLIENT_SENT];

	return node->has_session && command->counter != 0 &&
	       sent->counter == command->counter &&
	       (reply_type(sent->type) == command->type ||
		command->type == WIRE_NO_SESSION) &&
	       memcmp(node->session, command->session, WIRE_SESSION_BYTES) == 0;
}

static void take_reply(struct client *client, struct client_node *node,
		       const struct command *command)
{
	if (command->type == WIRE_NO_SESSION) {
		/* serve_due() asks again, if the node is not lost by now. */
		node->has_session = false;
		client_pause(client, node, 0);
		return;
	}
	node->asked_ns = 0;
	client->work->reply(client, node, command);
}

static void take_datagram(struct client *client, const uint8_t *datagram,
			  size_t bytes)
{
	struct command command;
	struct client_node *node;

	if (command_open(datagram, bytes, client->key, &command) !=
	    COMMAND_GOOD) {
		client->ignored++;
		return;
	}
	node = client_lookup_find(client, command.node);
	if (node && node->working && command.type == WIRE_SESSION) {
		take_session(client, node, &command);
	} else if (node && node->working && was_asked(node, &command)) {
		take_reply(client, node, &command);
	} else {
		client->ignored++;
	}
}

/* Returns how many datagrams, 0 or 1; -errno if the socket is broken. */
static int receive(struct client *client, int fd)
{
	uint8_t datagram[WIRE_LONG_BYTES + 1]; /* + 1 shows an overlong one */
	ssize_t bytes = recv(fd, datagram, sizeof(datagram), 0);

	if (bytes >= 0) {
		take_datagram(client, datagram, (size_t)bytes);
		return 1;
	}
	if (errno == EAGAIN)
		return 0;
	/* These errors belong to datagrams sent earlier; each is reported once.
	 */
	return errno == EINTR || errno == ECONNREFUSED ||
			       errno == EHOSTUNREACH || errno == ENETUNREACH
		       ? 1
		       : -errno;
}

/* --- the loop ------------------------------------------------------------- */

/* If we have been stopped ourselves, the silence of nodes says nothing: their
 * answers may wait in our socket. */
static void note_absence(struct client *client, uint64_t now_ns)
{
	uint64_t away_ns = MAX(client->lost_after_ns / 4, CLIENT_RETRY_NS_MAX);

	if (now_ns > client->served_ns + away_ns)
		for (uint32_t i = 0; i < client->node_count; i++)
			if (client->nodes[i].asked_ns != 0)
				client->nodes[i].asked_ns = now_ns;
	client->served_ns = now_ns;
}

/* Should we look for replies again rather than sleep?  Only for a short time
 * after a request, and where that takes no CPU from another process: a daemon
 * of this machine, for one. */
static bool may_look_again(struct client *client, uint64_t now_ns)
{
	if (client->working >= client->idle_cpus.cpu_count ||
	    now_ns >= client->asked_ns + CLIENT_LOOK_NS)
		return false;
	if (client->judged_ns != client->asked_ns) {
		client->judged_ns = client->asked_ns;
		client->may_look = idle_cpus_available(&client->idle_cpus);
	}
	return client->may_look;
}

static int wait_for_datagram(struct client *client)
{
	struct pollfd polls[2];
	struct timespec timeout;
	uint64_t now_ns = clock_now_ns();
	uint64_t until_ns = client->next_due_ns;
	uint64_t wait_ns;

	if (client->deadline_ns != 0)
		until_ns = MIN(until_ns, client->deadline_ns);
	wait_ns = until_ns > now_ns ? until_ns - now_ns : 0;
	timeout.tv_sec = (time_t)MIN(wait_ns / 1000000000u, 1000000);
	timeout.tv_nsec = (long)(wait_ns % 1000000000u);
	for (unsigned i = 0; i < ARRAY_LEN(polls); i++)
		polls[i] = (struct pollfd){ .fd = client->fds[i],
					    .events = POLLIN };
	if (may_look_again(client, now_ns))
		sched_yield();
	else if (ppoll(polls, ARRAY_LEN(polls), &timeout, &open_mask) < 0 &&
		 errno != EINTR)
		return -errno;
	client->served_ns = MIN(clock_now_ns(), MAX(now_ns, until_ns));
	return 0;
}

/* Reads all datagrams that wait before any node is called silent, since we may
 * have been stopped for a while.  But no more than all nodes can have sent, so
 * that a flood of junk does not stop the clock. */
static int drain_sockets(struct client *client)
{
	int ret = 0;

	for (unsigned i = 0; i < ARRAY_LEN(client->fds) && ret >= 0; i++) {
		uint32_t budget = 64 + 2 * client->node_count;

		if (client->fds[i] < 0)
			continue;
		do {
			ret = receive(client, client->fds[i]);
		} while (ret > 0 && client->working > 0 && --budget > 0);
	}
	return MIN(ret, 0);
}

static int take_signals(struct client *client)
{
	if (signal_count == 0)
		return 0;
	if (signal_count > 1 || !client->work->interrupt) {
		client->signal = signal_last;
		return -EINTR;
	}
	if (client->signal == 0) {
		client->signal = signal_last;
		client->work->interrupt(client);
	}
	return 0;
}

int client_run(struct client *client, const struct client_work *work)
{
	int ret = 0;

	client->work = work;
	client->served_ns = clock_now_ns();
	while (ret == 0 && client->working > 0) {
		uint64_t now_ns = clock_now_ns();

		note_absence(client, now_ns);
		if (client->deadline_ns != 0 && now_ns >= client->deadline_ns)
			return -ETIME;
		if (now_ns >= client->next_due_ns)
			serve_due(client, now_ns);
		if (client->working > 0)
			ret = wait_for_datagram(client);
		if (ret == 0)
			ret = take_signals(client);
		if (ret == 0)
			ret = drain_sockets(client);
	}
	return ret;
}

int client_rest(struct client *client, uint64_t ms)
{
	struct timespec time = { .tv_sec = (time_t)(ms / 1000),
				 .tv_nsec = (long)(ms % 1000) * 1000000 };

	/* A signal that came before was blocked, and is delivered now. */
	ppoll(NULL, 0, &time, &open_mask);
	if (signal_count == 0)
		return 0;
	client->signal = signal_last;
	return -EINTR;
}
