/*
 * interface.h - the network interface that has an address of this machine
 */
#ifndef INTERFACE_H
#define INTERFACE_H

#include <stdbool.h>

#include "net/address.h"

/* Bytes of a name, with its end. */
#define INTERFACE_NAME_BYTES 16

/* Find the name of the interface that has the address.  False: no interface has
 * it, or the system does not tell.  Costs a system call or two. */
bool interface_find(const struct address *address,
		    char name[INTERFACE_NAME_BYTES]);

#endif /* INTERFACE_H */
