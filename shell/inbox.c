/* inbox.c - a batch of datagrams, received by one system call */
#include "shell/inbox.h"

void inbox_init(struct inbox *inbox)
{
	inbox->count = 0;
	for (unsigned i = 0; i < INBOX_DATAGRAMS_MAX; i++) {
		inbox->parts[i] = (struct iovec){ inbox->datagrams[i],
						  sizeof(inbox->datagrams[i]) };
		inbox->messages[i].msg_hdr = (struct msghdr){
			.msg_name = &inbox->senders[i],
			.msg_namelen = sizeof(inbox->senders[i]),
			.msg_iov = &inbox->parts[i],
			.msg_iovlen = 1,
		};
	}
}

int inbox_receive(struct inbox *inbox, int socket)
{
	/* The kernel has overwritten these in the last batch. */
	for (int i = 0; i < inbox->count; i++)
		inbox->messages[i].msg_hdr.msg_namelen =
			sizeof(inbox->senders[i]);
	inbox->count = recvmmsg(socket, inbox->messages, INBOX_DATAGRAMS_MAX,
				MSG_DONTWAIT, NULL);
	return inbox->count;
}
