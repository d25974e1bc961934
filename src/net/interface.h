/*
 * interface.h - the network interface that has an address of this machine
 */
#ifndef INTERFACE_H
#define INTERFACE_H

#include <stdbool.h>
#include <stdint.h>

#include "net/address.h"

/* Bytes of a name, with its end. */
#define INTERFACE_NAME_BYTES 16

/* Find the name of the interface that has the address.  False: no interface has
 * it, or the system does not tell.  Costs a system call or two. */
bool interface_find(const struct address *address,
		    char name[INTERFACE_NAME_BYTES]);

/* The rate of its link, in 10^6 bits a second; 0: it is down, or has none. */
uint32_t interface_mbit(const char *name);

#endif /* INTERFACE_H */
