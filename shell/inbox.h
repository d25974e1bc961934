/*
 * inbox.h - a batch of datagrams, received by one system call
 */
#ifndef INBOX_H
#define INBOX_H

#include <stdint.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include "shell/wire.h"

#define INBOX_DATAGRAMS_MAX 64

/* Stays where it is: messages point into it. */
struct inbox {
	int count; /* of the last batch; -1: it failed */
	struct mmsghdr messages[INBOX_DATAGRAMS_MAX];
	struct iovec parts[INBOX_DATAGRAMS_MAX];
	struct sockaddr_storage senders[INBOX_DATAGRAMS_MAX];
	/* One byte more than the longest, so that an overlong one is seen. */
	uint8_t datagrams[INBOX_DATAGRAMS_MAX][WIRE_LONG_BYTES + 1];
};

void inbox_init(struct inbox *inbox);

/* Receives what waits, at most INBOX_DATAGRAMS_MAX datagrams, and does not
 * sleep: datagrams[i] has messages[i].msg_len bytes, and came from senders[i],
 * of messages[i].msg_hdr.msg_namelen bytes.  Returns how many, or -1: errors
 * concern one datagram, or pass by. */
int inbox_receive(struct inbox *inbox, int socket);

#endif /* INBOX_H */
