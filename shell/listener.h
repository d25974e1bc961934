/*
 * listener.h - the socket of a daemon, bound to the one address clients use
 */
#ifndef LISTENER_H
#define LISTENER_H

#include "base/failure.h"
#include "net/address.h"

/* Binds a UDP socket to *address, whose port may be 0: then *address gets the
 * port that the kernel chose.  An address that stands for many is refused,
 * since the name of the node holds the address as clients write it.  Returns
 * the socket, or -errno with *failure filled. */
int listener_open(struct address *address, struct failure *failure);

#endif /* LISTENER_H */
