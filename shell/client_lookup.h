/*
 * client_lookup.h - the addresses of a client's nodes, and the node of an id
 */
#ifndef CLIENT_LOOKUP_H
#define CLIENT_LOOKUP_H

#include <stdbool.h>
#include <stdint.h>

#include "base/failure.h"
#include "shell/client.h"

/* Fills client.nodes from client.hosts.  Returns 0 or -errno with *failure
 * filled, which names all hosts without an address.  If loses_unknown, these
 * are nodes with a lookup_error instead.  Call client_lookup_free() in either
 * case. */
int client_lookup_all(struct client *client, bool loses_unknown,
		      struct failure *failure);
void client_lookup_free(struct client *client);

/* id: WIRE_NODE_BYTES; NULL: it is none of ours. */
struct client_node *client_lookup_find(const struct client *client,
				       const uint8_t *id);

#endif /* CLIENT_LOOKUP_H */
