#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/base.h"
#include "net/datagram.h"
#include "descriptors.h"
#include "skip.h"

#define SEGMENTS_MAX DATAGRAM_SEGMENTS_MAX
#define BATCH_BYTES_MAX DATAGRAM_BATCH_BYTES_MAX

static struct datagram_socket sender, receiver;
static uint8_t message[BATCH_BYTES_MAX];

/* --- faults ---------------------------------------------------------------
 *
 * The module's calls come here.  Each takes the next of the errors, if there is
 * one, and fails with it without being made; 0 lets it through.
 */

#define FAULTS_MAX 8

static int faults[FAULTS_MAX];
static unsigned fault_count, fault_next;
static unsigned sendmsg_calls, sendmmsg_calls;
static unsigned sendmmsg_limit; /* messages that it takes at once; 0: all */

static bool fails(void)
{
	if (fault_next == fault_count)
		return false;
	errno = faults[fault_next++];
	return errno != 0;
}

ssize_t sendmsg(int fd, const struct msghdr *header, int flags)
{
	sendmsg_calls++;
	return fails() ? -1 : syscall(SYS_sendmsg, fd, header, flags);
}

#ifdef __GLIBC__
int sendmmsg(int fd, struct mmsghdr *messages, unsigned count, int flags)
#else
int sendmmsg(int fd, struct mmsghdr *messages, unsigned count, unsigned flags)
#endif
{
	sendmmsg_calls++;
	if (fails())
		return -1;
	if (sendmmsg_limit)
		count = MIN(count, sendmmsg_limit);
	return (int)syscall(SYS_sendmmsg, fd, messages, count, flags);
}

ssize_t recvmsg(int fd, struct msghdr *header, int flags)
{
	return fails() ? -1 : syscall(SYS_recvmsg, fd, header, flags);
}

static void inject(int error)
{
	assert_true(fault_count < FAULTS_MAX);
	faults[fault_count++] = error;
}

static void assert_faults_used(void)
{
	assert_int_equal(fault_next, fault_count);
}

static void reset_faults(void)
{
	fault_count = fault_next = sendmmsg_limit = 0;
	sendmsg_calls = sendmmsg_calls = 0;
}

/* --- sockets -------------------------------------------------------------- */

static struct address address_of(const char *text)
{
	struct address address;

	assert_int_equal(address_parse(text, &address), 0);
	return address;
}

/* With a port that is drawn: 0, which no text stands for. */
static struct address host(const char *text)
{
	struct address address = address_of(text);

	/* At the same place in both families. */
	((struct sockaddr_in *)&address.socket)->sin_port = 0;
	return address;
}

static int open_at(struct datagram_socket *socket, const char *text, bool plain)
{
	const struct datagram_options options = {
		.plain = plain,
		.receive_room_bytes = 4 * MIB,
	};
	const struct address local = host(text);
	struct failure failure;

	return datagram_open(socket, &local, &options, &failure);
}

static void open_pair(bool plain_sender, bool plain_receiver)
{
	assert_int_equal(open_at(&sender, "127.0.0.1", plain_sender), 0);
	assert_int_equal(open_at(&receiver, "127.0.0.1", plain_receiver), 0);
}

static void close_pair(void)
{
	datagram_close(&sender);
	datagram_close(&receiver);
}

/* Each case begins without sockets and faults, and ends so. */
static int setup(void **state)
{
	(void)state;
	reset_faults();
	sender.fd = receiver.fd = -1;
	for (size_t i = 0; i < sizeof(message); i++)
		message[i] = (uint8_t)(i * 31 + i / 256);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	close_pair();
	return 0;
}

/* The loopback device may be late, and when other programs flood it, it loses:
 * the caller that waits sends again. */
static bool comes_within_1s(void)
{
	struct pollfd poll_fd = { .fd = receiver.fd, .events = POLLIN };

	return poll(&poll_fd, 1, 1000) == 1;
}

static void deliver(const void *bytes, size_t byte_count)
{
	for (int tries = 0; tries < 20; tries++) {
		assert_int_equal(
			sendto(sender.fd, bytes, byte_count, 0,
			       (struct sockaddr *)&receiver.local.socket,
			       receiver.local.length),
			byte_count);
		if (comes_within_1s())
			return;
	}
	fail_msg("nothing comes");
}

static void assert_empty(void)
{
	struct datagram_head head;
	uint8_t byte;

	assert_int_equal(datagram_peek(&receiver, &byte, 1, &head), 0);
	assert_int_equal(datagram_receive(&receiver, &byte, 1, &head), 0);
	assert_int_equal(datagram_take(&receiver, NULL, 0), -EAGAIN);
}

static void assert_from_sender(const struct datagram_head *head)
{
	char is[ADDRESS_TEXT_BYTES], want[ADDRESS_TEXT_BYTES];

	assert_int_equal(head->from.length, sender.local.length);
	assert_string_equal(address_format(&head->from, is),
			    address_format(&sender.local, want));
}

/* --- batches --------------------------------------------------------------
 *
 * The first byte of a segment is its number, since they may overtake each
 * other; the others are the message's.
 */

struct batch {
	size_t segment_bytes, total_bytes;
	unsigned pieces; /* parts of a segment */
	unsigned segment_count;
	struct iovec parts[SEGMENTS_MAX * DATAGRAM_PARTS_MAX];
	unsigned part_first[SEGMENTS_MAX + 1];
	bool seen[SEGMENTS_MAX];
	unsigned seen_count, received_count;
};

static size_t length_of(const struct batch *batch, unsigned i)
{
	return MIN(batch->segment_bytes,
		   batch->total_bytes - i * batch->segment_bytes);
}

/* Pieces of 1 byte, and the last has the rest. */
static void cut(struct batch *batch)
{
	unsigned count = 0;

	for (unsigned i = 0; i < batch->segment_count; i++) {
		uint8_t *begin = message + i * batch->segment_bytes;
		size_t left = length_of(batch, i);

		*begin = (uint8_t)i;
		batch->part_first[i] = count;
		for (unsigned piece = 1; left > 0; piece++) {
			size_t bytes = piece < batch->pieces ? 1 : left;

			batch->parts[count++] = (struct iovec){ begin, bytes };
			begin += bytes;
			left -= bytes;
		}
	}
	batch->part_first[batch->segment_count] = count;
}

static struct batch make_batch(size_t segment_bytes, size_t total_bytes,
			       unsigned pieces)
{
	struct batch batch = {
		.segment_bytes = segment_bytes,
		.total_bytes = total_bytes,
		.pieces = pieces,
		.segment_count =
			(unsigned)DIV_ROUND_UP(total_bytes, segment_bytes),
	};

	cut(&batch);
	return batch;
}

/* Those from `first` on. */
static int send_from(const struct batch *batch, unsigned first)
{
	unsigned part = batch->part_first[first];

	return datagram_send(&sender, &receiver.local, batch->parts + part,
			     batch->part_first[batch->segment_count] - part,
			     batch->segment_bytes,
			     batch->total_bytes - first * batch->segment_bytes);
}

static void send_all(const struct batch *batch)
{
	struct pollfd poll_fd = { .fd = sender.fd, .events = POLLOUT };
	unsigned done = 0;

	while (done < batch->segment_count) {
		int sent = send_from(batch, done);

		assert_in_range(sent, 0, batch->segment_count - done);
		done += (unsigned)sent;
		if (sent == 0)
			assert_int_equal(poll(&poll_fd, 1, 10000), 1);
	}
}

static void check_segment(struct batch *batch, const uint8_t *bytes,
			  size_t byte_count)
{
	unsigned i = bytes[0];

	assert_true(i < batch->segment_count);
	assert_int_equal(byte_count, length_of(batch, i));
	assert_memory_equal(bytes, message + i * batch->segment_bytes,
			    byte_count);
	batch->seen_count += !batch->seen[i];
	batch->seen[i] = true;
	batch->received_count++;
}

/* As the exchange does: a look at the beginning, then the rest in parts. */
static void take_one(struct batch *batch)
{
	static uint8_t bytes[BATCH_BYTES_MAX];
	struct datagram_head head;
	struct iovec parts[5];
	uint8_t first;
	size_t at = 0;

	assert_int_equal(datagram_peek(&receiver, &first, 1, &head), 1);
	assert_from_sender(&head);
	assert_in_range(head.total_bytes, 1, sizeof(bytes));
	assert_in_range(head.segment_bytes, 1, head.total_bytes);
	assert_int_equal(head.head_bytes, 1);
	for (unsigned i = 0; i < ARRAY_LEN(parts); i++) {
		size_t end = head.total_bytes * (i + 1) / ARRAY_LEN(parts);

		parts[i] = (struct iovec){ bytes + at, end - at };
		at = end;
	}
	memset(bytes, 0, sizeof(bytes));
	assert_int_equal(datagram_take(&receiver, parts, ARRAY_LEN(parts)),
			 head.total_bytes);
	assert_int_equal(bytes[0], first);
	for (at = 0; at < head.total_bytes; at += head.segment_bytes)
		check_segment(batch, bytes + at,
			      MIN(head.segment_bytes, head.total_bytes - at));
}

static void transfer(struct batch *batch)
{
	for (int tries = 1; batch->seen_count < batch->segment_count; tries++) {
		assert_true(tries <= 20);
		send_all(batch);
		while (batch->seen_count < batch->segment_count &&
		       comes_within_1s())
			take_one(batch);
		/* Once each, unless some were lost. */
		if (tries == 1 && batch->seen_count == batch->segment_count) {
			assert_int_equal(batch->received_count,
					 batch->segment_count);
			assert_empty();
		}
	}
}

static void transfer_shapes(void)
{
	static const struct {
		size_t segment_bytes, total_bytes;
	} shapes[] = {
		{ 1, 1 },
		{ 1, 2 },
		{ 1, 64 },
		{ 2, 3 },
		{ 100, 99 },
		{ 100, 100 },
		{ 1000, 1001 },
		{ 1000, 2000 },
		{ 1440, 44 * 1440 },
		{ 1440, 44 * 1440 + 7 },
		{ 1023, 64 * 1023 },
		{ 1023, 64 * 1023 - 1 },
		{ 8940, 62581 },
		{ 30000, BATCH_BYTES_MAX },
		{ BATCH_BYTES_MAX - 1, BATCH_BYTES_MAX },
		{ BATCH_BYTES_MAX, BATCH_BYTES_MAX },
	};

	for (size_t i = 0; i < ARRAY_LEN(shapes); i++) {
		for (unsigned pieces = 1; pieces <= DATAGRAM_PARTS_MAX;
		     pieces++) {
			struct batch batch =
				make_batch(shapes[i].segment_bytes,
					   shapes[i].total_bytes, pieces);

			transfer(&batch);
		}
	}
}

static void datagram_send__batches_to_batches(void **state)
{
	(void)state;
	open_pair(false, false);
	transfer_shapes();
	if (sender.sends_batches)
		assert_int_equal(sendmmsg_calls, 0);
}

static void datagram_send__batches_to_plain(void **state)
{
	(void)state;
	open_pair(false, true);
	assert_false(receiver.receives_batches);
	transfer_shapes();
}

static void datagram_send__plain_to_batches(void **state)
{
	(void)state;
	open_pair(true, false);
	assert_false(sender.sends_batches);
	transfer_shapes();
	assert_true(sendmmsg_calls > 0);
}

static void datagram_send__plain_to_plain(void **state)
{
	(void)state;
	open_pair(true, true);
	transfer_shapes();
}

/* What all this is for: one call each on both sides. */
static void datagram_send__batch_stays_whole(void **state)
{
	struct batch batch = make_batch(1440, 44 * 1440 + 7, 2);
	struct datagram_head head;
	uint8_t room[4];

	(void)state;
	open_pair(false, false);
	if (!sender.sends_batches || !receiver.receives_batches)
		skip_because("the kernel takes no batches of datagrams here");
	do {
		sendmsg_calls = 0;
		assert_int_equal(send_from(&batch, 0), 45);
		assert_int_equal(sendmsg_calls, 1);
	} while (!comes_within_1s());
	assert_int_equal(datagram_peek(&receiver, room, 4, &head), 1);
	assert_int_equal(head.total_bytes, 44 * 1440 + 7);
	assert_int_equal(head.segment_bytes, 1440);
	assert_int_equal(head.head_bytes, 4);
	assert_memory_equal(room, message, 4);
}

/* One socket, several peers. */
static void datagram_send__to_others(void **state)
{
	struct datagram_socket other;

	(void)state;
	open_pair(false, false);
	assert_int_equal(open_at(&other, "127.0.0.1", false), 0);
	for (int i = 0; i < 4; i++) {
		struct datagram_socket swap = receiver;
		struct batch batch = make_batch(500, 2100, 1);

		transfer(&batch);
		receiver = other;
		other = swap;
	}
	datagram_close(&other);
}

static void datagram_send__ipv6(void **state)
{
	(void)state;
	if (open_at(&sender, "::1", false))
		skip_because("no IPv6 here");
	assert_int_equal(open_at(&receiver, "::1", false), 0);
	for (int plain = 0; plain < 2; plain++) {
		struct batch batch = make_batch(1440, 10 * 1440 + 7, 2);

		sender.sends_batches = sender.sends_batches && !plain;
		transfer(&batch);
	}
}

/* A real path that is too narrow: refused, not fragmented, either way, and that
 * is not taken for a kernel without batches. */
static void datagram_send__longer_than_the_path(void **state)
{
	const int mtu = 1280; /* the least that IPv6 has */
	struct batch fits = make_batch(mtu - 48, 5000, 1);
	struct batch single = make_batch(mtu - 47, mtu - 47, 1);
	struct batch several = make_batch(mtu - 47, 5000, 1);
	bool batches;

	(void)state;
	if (open_at(&sender, "::1", false))
		skip_because("no IPv6 here");
	assert_int_equal(open_at(&receiver, "::1", false), 0);
	assert_int_equal(setsockopt(sender.fd, IPPROTO_IPV6, IPV6_MTU, &mtu,
				    sizeof(mtu)),
			 0);
	batches = sender.sends_batches;
	assert_int_equal(send_from(&single, 0), -EMSGSIZE);
	assert_int_equal(send_from(&several, 0), -EMSGSIZE);
	assert_int_equal(sender.sends_batches, batches);
	cut(&fits);
	transfer(&fits);
	sender.sends_batches = false;
	cut(&several);
	assert_int_equal(send_from(&several, 0), -EMSGSIZE);
}

/* --- a kernel that refuses batches ---------------------------------------- */

static void datagram_send__refused_batch_goes_singly(void **state)
{
	static const int errors[] = { EINVAL, EIO, EOPNOTSUPP, ENOPROTOOPT };

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(errors); i++) {
		struct batch batch = make_batch(1000, 10500, 3);

		open_pair(false, false);
		sender.sends_batches =
			true; /* even if this kernel knows none */
		inject(errors[i]);
		transfer(&batch);
		assert_faults_used();
		assert_false(sender.sends_batches);
		assert_int_equal(sendmsg_calls, 1);
		assert_true(sendmmsg_calls > 0);
		close_pair();
		reset_faults();
	}
}

/* One that the kernel itself refuses: a batch without checksums. */
static void datagram_send__really_refused(void **state)
{
	const int yes = 1;
	struct batch batch = make_batch(1000, 10500, 3);

	(void)state;
	open_pair(false, false);
	if (!sender.sends_batches)
		skip_because("the kernel takes no batches of datagrams here");
	assert_int_equal(setsockopt(sender.fd, SOL_SOCKET, SO_NO_CHECK, &yes,
				    sizeof(yes)),
			 0);
	transfer(&batch);
	assert_false(sender.sends_batches);
}

/* Not for what has other reasons. */
static void datagram_send__other_errors_refuse_nothing(void **state)
{
	struct batch batch = make_batch(1000, 10500, 1);

	(void)state;
	open_pair(false, false);
	sender.sends_batches = true;
	inject(EMSGSIZE);
	assert_int_equal(send_from(&batch, 0), -EMSGSIZE);
	inject(EAGAIN);
	assert_int_equal(send_from(&batch, 0), 0);
	inject(ENOBUFS);
	assert_int_equal(send_from(&batch, 0), 11);
	assert_true(sender.sends_batches);
	assert_int_equal(sendmmsg_calls, 0);
	/* Older kernels call it EINVAL when a segment is too long. */
	inject(EINVAL);
	inject(EMSGSIZE);
	assert_int_equal(send_from(&batch, 0), -EMSGSIZE);
	assert_true(sender.sends_batches);
	/* A single segment is no batch. */
	batch = make_batch(1000, 1000, 1);
	inject(EINVAL);
	assert_int_equal(send_from(&batch, 0), -EINVAL);
	assert_true(sender.sends_batches);
	assert_faults_used();
}

/* --- errors on sending ---------------------------------------------------- */

static const int losses[] = { ECONNREFUSED, EHOSTDOWN, EHOSTUNREACH, ENETDOWN,
			      ENETUNREACH,  ENOBUFS,   ENOMEM,	     EPERM };

static void datagram_send__losses_count_as_sent(void **state)
{
	struct batch batch = make_batch(1000, 4500, 1);

	(void)state;
	open_pair(false, false);
	for (size_t i = 0; i < ARRAY_LEN(losses); i++) {
		reset_faults();
		sender.sends_batches = true;
		inject(losses[i]);
		assert_int_equal(send_from(&batch, 0), 5);
		assert_int_equal(sendmsg_calls, 1);
		assert_empty();
	}
}

/* Singly, only the one that it happened to is lost. */
static void datagram_send__one_loss_of_several(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(losses); i++) {
		struct batch batch = make_batch(1000, 4500, 2);

		open_pair(true, false);
		reset_faults();
		sendmmsg_limit = 2;
		inject(0);
		inject(losses[i]); /* the third segment */
		assert_int_equal(send_from(&batch, 0), 5);
		assert_faults_used();
		while (batch.seen_count < 4 && comes_within_1s())
			take_one(&batch);
		assert_int_equal(batch.received_count, 4);
		assert_false(batch.seen[2]);
		assert_empty();
		close_pair();
	}
}

static void datagram_send__queue_fills_up(void **state)
{
	struct batch batch = make_batch(1000, 9500, 2);

	(void)state;
	open_pair(true, false);
	inject(EAGAIN);
	assert_int_equal(send_from(&batch, 0), 0);
	sendmmsg_limit = 3;
	inject(0);
	inject(0);
	inject(EAGAIN);
	assert_int_equal(send_from(&batch, 0), 6);
	assert_int_equal(send_from(&batch, 6), 4);
	while (batch.seen_count < 10 && comes_within_1s())
		take_one(&batch);
	assert_int_equal(batch.received_count, 10);
}

static void datagram_send__interrupted(void **state)
{
	(void)state;
	for (int plain = 0; plain < 2; plain++) {
		struct batch batch = make_batch(1000, 9500, 2);

		open_pair(plain, false);
		reset_faults();
		inject(EINTR);
		inject(EINTR);
		transfer(&batch);
		assert_faults_used();
		close_pair();
	}
}

/* An error that stays is told, if need be by the next call. */
static void datagram_send__lasting_error(void **state)
{
	struct batch batch = make_batch(1000, 9500, 2);

	(void)state;
	open_pair(true, false);
	sendmmsg_limit = 3;
	inject(0);
	inject(EACCES);
	inject(EACCES);
	assert_int_equal(send_from(&batch, 0), 3);
	assert_int_equal(send_from(&batch, 3), -EACCES);
	inject(EBADF);
	batch = make_batch(1000, 1000, 1);
	assert_int_equal(send_from(&batch, 0), -EBADF);
}

/* Nobody there: as if it was lost, again and again. */
static void datagram_send__nobody_there(void **state)
{
	struct batch batch = make_batch(1000, 9500, 2);

	(void)state;
	open_pair(false, false);
	datagram_close(&receiver);
	for (int i = 0; i < 10; i++)
		send_all(&batch);
	sender.sends_batches = false;
	for (int i = 0; i < 10; i++)
		send_all(&batch);
	receiver = sender;
	assert_empty();
	receiver.fd = -1;
}

/* --- receiving ------------------------------------------------------------ */

static void datagram_peek__takes_nothing(void **state)
{
	struct datagram_head head;
	uint8_t room[20];

	(void)state;
	open_pair(true, false);
	deliver("0123456789", 10);
	for (size_t bytes = 0; bytes <= sizeof(room); bytes++) {
		memset(room, 'x', sizeof(room));
		assert_int_equal(datagram_peek(&receiver, room, bytes, &head),
				 1);
		assert_from_sender(&head);
		assert_int_equal(head.total_bytes, 10);
		assert_int_equal(head.segment_bytes, 10);
		assert_int_equal(head.head_bytes, MIN(bytes, 10));
		assert_memory_equal(room, "0123456789", head.head_bytes);
		for (size_t i = head.head_bytes; i < sizeof(room); i++)
			assert_int_equal(room[i], 'x');
	}
	assert_int_equal(
		datagram_take(&receiver, &(struct iovec){ room, 20 }, 1), 10);
	assert_empty();
}

static void datagram_peek__empty_queue(void **state)
{
	(void)state;
	for (int plain = 0; plain < 2; plain++) {
		open_pair(plain, plain);
		assert_empty();
		close_pair();
	}
}

/* Anybody may send one. */
static void datagram_peek__empty_datagram(void **state)
{
	struct datagram_head head;
	uint8_t room[4];

	(void)state;
	open_pair(true, false);
	deliver(NULL, 0);
	assert_int_equal(datagram_peek(&receiver, room, 4, &head), 1);
	assert_int_equal(head.total_bytes, 0);
	assert_int_equal(head.segment_bytes, 0);
	assert_int_equal(head.head_bytes, 0);
	assert_int_equal(datagram_take(&receiver, NULL, 0), 0);
	assert_empty();
}

static void datagram_take__what_does_not_fit_is_lost(void **state)
{
	uint8_t room[6];
	const struct iovec parts[] = { { room, 2 }, { room + 2, 4 } };

	(void)state;
	open_pair(true, false);
	deliver("0123456789", 10);
	assert_int_equal(datagram_take(&receiver, parts, 2), 6);
	assert_memory_equal(room, "012345", 6);
	assert_empty();
	/* Nobody wants this one. */
	deliver("0123456789", 10);
	assert_int_equal(datagram_take(&receiver, NULL, 0), 0);
	assert_empty();
}

static void datagram_receive__longer_than_the_room(void **state)
{
	struct datagram_head head;
	uint8_t room[12];

	(void)state;
	open_pair(true, true);
	for (size_t bytes = 0; bytes <= sizeof(room); bytes++) {
		deliver("0123456789", 10);
		memset(room, 'x', sizeof(room));
		assert_int_equal(
			datagram_receive(&receiver, room, bytes, &head), 1);
		assert_from_sender(&head);
		assert_int_equal(head.total_bytes, 10);
		assert_int_equal(head.segment_bytes, 10);
		assert_int_equal(head.head_bytes, MIN(bytes, 10));
		assert_memory_equal(room, "0123456789", head.head_bytes);
		for (size_t i = head.head_bytes; i < sizeof(room); i++)
			assert_int_equal(room[i], 'x');
	}
	assert_empty();
}

/* News of others, and signals, are passed over; anything else is told. */
static void datagram_receive__errors(void **state)
{
	static const int passed[] = { EINTR,	    ECONNREFUSED, EHOSTDOWN,
				      EHOSTUNREACH, ENETDOWN,	  ENETUNREACH };
	struct datagram_head head;
	uint8_t room[4];

	(void)state;
	open_pair(true, false);
	deliver("0123", 4);
	for (size_t i = 0; i < ARRAY_LEN(passed); i++)
		inject(passed[i]);
	assert_int_equal(datagram_peek(&receiver, room, 4, &head), 1);
	assert_faults_used();
	inject(ENOMEM);
	assert_int_equal(datagram_peek(&receiver, room, 4, &head), -ENOMEM);
	reset_faults();
	inject(EINTR);
	inject(ECONNREFUSED);
	inject(EBADF);
	assert_int_equal(datagram_take(&receiver, NULL, 0), -EBADF);
	inject(ECONNREFUSED);
	assert_int_equal(datagram_receive(&receiver, room, 4, &head), 1);
	inject(ECONNREFUSED);
	assert_int_equal(datagram_receive(&receiver, room, 4, &head), 0);
	assert_faults_used();
}

/* --- opening -------------------------------------------------------------- */

static int get_option(int level, int name)
{
	int value = -1;
	socklen_t length = sizeof(value);

	assert_int_equal(getsockopt(receiver.fd, level, name, &value, &length),
			 0);
	return value;
}

static void datagram_open__never_waits_and_is_not_inherited(void **state)
{
	(void)state;
	assert_int_equal(open_at(&receiver, "127.0.0.1", false), 0);
	assert_true(fcntl(receiver.fd, F_GETFL) & O_NONBLOCK);
	assert_true(fcntl(receiver.fd, F_GETFD) & FD_CLOEXEC);
	assert_int_equal(get_option(IPPROTO_IP, IP_MTU_DISCOVER),
			 IP_PMTUDISC_DO);
}

static void datagram_open__port_is_drawn(void **state)
{
	const struct sockaddr_in *v4 =
		(const struct sockaddr_in *)&receiver.local.socket;

	(void)state;
	assert_int_equal(open_at(&receiver, "127.0.0.1", false), 0);
	assert_int_equal(receiver.local.length, sizeof(*v4));
	assert_int_equal(v4->sin_family, AF_INET);
	assert_int_equal(ntohl(v4->sin_addr.s_addr), INADDR_LOOPBACK);
	assert_int_not_equal(v4->sin_port, 0);
}

static void datagram_open__port_in_use(void **state)
{
	const struct datagram_options options = { .plain = true };
	struct failure failure = { .status = EXIT_DONE };
	char text[ADDRESS_TEXT_BYTES];

	(void)state;
	assert_int_equal(open_at(&receiver, "127.0.0.1", false), 0);
	assert_int_equal(
		datagram_open(&sender, &receiver.local, &options, &failure),
		-EADDRINUSE);
	assert_int_equal(sender.fd, -1);
	assert_int_equal(failure.status, EXIT_PEER);
	assert_non_null(
		strstr(failure.why, address_format(&receiver.local, text)));
	datagram_close(&sender); /* safe */
}

static void datagram_open__no_descriptor(void **state)
{
	const struct datagram_options options = { .plain = true };
	const struct address local = host("127.0.0.1");
	struct failure failure = { .status = EXIT_DONE };
	struct rlimit before = refuse_descriptors();
	int error = datagram_open(&receiver, &local, &options, &failure);

	(void)state;
	release_descriptors(before);
	assert_int_equal(error, -EMFILE);
	assert_int_equal(failure.status, EXIT_RESOURCES);
}

static void datagram_open__not_our_address(void **state)
{
	(void)state;
	/* An address for examples (RFC 5737): no machine has it. */
	assert_int_equal(open_at(&receiver, "192.0.2.1", false),
			 -EADDRNOTAVAIL);
	assert_int_equal(receiver.fd, -1);
}

static void datagram_open__room(void **state)
{
	const struct address local = host("127.0.0.1");
	struct datagram_options options = { .plain = true };
	struct failure failure;
	int send_default;

	(void)state;
	assert_int_equal(datagram_open(&receiver, &local, &options, &failure),
			 0);
	send_default = get_option(SOL_SOCKET, SO_SNDBUF);
	assert_int_equal(receiver.receive_room_bytes,
			 get_option(SOL_SOCKET, SO_RCVBUF));
	datagram_close(&receiver);

	/* What any system grants; the kernel doubles it. */
	options.send_room_bytes = 32 * KIB;
	options.receive_room_bytes = 48 * KIB;
	assert_int_equal(datagram_open(&receiver, &local, &options, &failure),
			 0);
	assert_int_equal(get_option(SOL_SOCKET, SO_SNDBUF), 64 * KIB);
	assert_int_equal(get_option(SOL_SOCKET, SO_RCVBUF), 96 * KIB);
	assert_int_equal(receiver.receive_room_bytes, 96 * KIB);
	assert_int_not_equal(send_default, 64 * KIB);
	datagram_close(&receiver);

	/* Too much is as much as there is. */
	options.send_room_bytes = options.receive_room_bytes = UINT32_MAX;
	assert_int_equal(datagram_open(&receiver, &local, &options, &failure),
			 0);
	assert_true(get_option(SOL_SOCKET, SO_SNDBUF) >= 64 * (int)KIB);
	assert_true(receiver.receive_room_bytes >= 96 * KIB);
}

/* --- the path ------------------------------------------------------------- */

static void datagram_payload_bytes__loopback(void **state)
{
	const struct address peer = address_of("127.0.0.2:7300");

	(void)state;
	assert_int_equal(open_at(&receiver, "127.0.0.1", false), 0);
	assert_int_equal(datagram_payload_bytes(&receiver.local, &peer), 65507);
}

static void datagram_payload_bytes__ipv6(void **state)
{
	(void)state;
	if (open_at(&receiver, "::1", false))
		skip_because("no IPv6 here");
	/* The device's 65536 less 40 and 8. */
	assert_int_equal(
		datagram_payload_bytes(&receiver.local, &receiver.local),
		65488);
}

static void datagram_payload_bytes__no_way(void **state)
{
	const struct address loopback = address_of("127.0.0.1:7300");
	const struct address nobodys = address_of("192.0.2.1:7300");
	const struct address v6 = address_of("[::1]:7300");

	(void)state;
	assert_int_equal(datagram_payload_bytes(&nobodys, &loopback), 0);
	assert_int_equal(errno, EADDRNOTAVAIL);
	assert_int_equal(datagram_payload_bytes(&loopback, &v6), 0);
	assert_int_equal(errno, EAFNOSUPPORT);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(datagram_send__batches_to_batches),
		CASE(datagram_send__batches_to_plain),
		CASE(datagram_send__plain_to_batches),
		CASE(datagram_send__plain_to_plain),
		CASE(datagram_send__batch_stays_whole),
		CASE(datagram_send__to_others),
		CASE(datagram_send__ipv6),
		CASE(datagram_send__longer_than_the_path),
		CASE(datagram_send__refused_batch_goes_singly),
		CASE(datagram_send__really_refused),
		CASE(datagram_send__other_errors_refuse_nothing),
		CASE(datagram_send__losses_count_as_sent),
		CASE(datagram_send__one_loss_of_several),
		CASE(datagram_send__queue_fills_up),
		CASE(datagram_send__interrupted),
		CASE(datagram_send__lasting_error),
		CASE(datagram_send__nobody_there),
		CASE(datagram_peek__takes_nothing),
		CASE(datagram_peek__empty_queue),
		CASE(datagram_peek__empty_datagram),
		CASE(datagram_take__what_does_not_fit_is_lost),
		CASE(datagram_receive__longer_than_the_room),
		CASE(datagram_receive__errors),
		CASE(datagram_open__never_waits_and_is_not_inherited),
		CASE(datagram_open__port_is_drawn),
		CASE(datagram_open__port_in_use),
		CASE(datagram_open__no_descriptor),
		CASE(datagram_open__not_our_address),
		CASE(datagram_open__room),
		CASE(datagram_payload_bytes__loopback),
		CASE(datagram_payload_bytes__ipv6),
		CASE(datagram_payload_bytes__no_way),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
