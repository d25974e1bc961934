/* client_lookup.c - the addresses of a client's nodes, and the node of an id */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "shell/hostfold.h"
#include "shell/client_lookup.h"

static uint32_t index_slot(const struct client *client, const uint8_t *id)
{
	/* The id of a node is a hash already. */
	return (uint32_t)load_le64(id) & client->index_mask;
}

struct client_node *client_lookup_find(const struct client *client,
				       const uint8_t *id)
{
	uint32_t slot = index_slot(client, id);

	for (; client->index[slot] != 0;
	     slot = (slot + 1) & client->index_mask) {
		struct client_node *node =
			&client->nodes[client->index[slot] - 1];

		if (memcmp(node->id, id, WIRE_NODE_BYTES) == 0)
			return node;
	}
	return NULL;
}

static void index_node(struct client *client, const struct client_node *node)
{
	uint32_t slot = index_slot(client, node->id);

	while (client->index[slot] != 0)
		slot = (slot + 1) & client->index_mask;
	client->index[slot] = node->rank + 1;
}

/* A name without an address is noted in the node's lookup_error.  But where one
 * would end all anyway, do not wait seconds for each of the other names, too,
 * while no name server answers. */
static int node_init(struct client *client, struct client_node *node,
		     bool loses_unknown, struct failure *failure)
{
	const struct client_node *twin;
	char text[ADDRESS_TEXT_BYTES];
	int ret = address_parse(node->host, &node->address);

	if (ret == -ENOENT || (ret == -EAGAIN && loses_unknown)) {
		node->lookup_error = ret;
		return 0;
	}
	if (ret == -EAGAIN)
		return failure_set(failure, EXIT_PEER, node->host, 0, "%s",
				   address_why(ret));
	if (ret == -EINVAL)
		return failure_set(failure, EXIT_USAGE, node->host, EINVAL,
				   "%s", address_why(ret));
	if (ret < 0)
		return failure_set(failure, EXIT_PEER, node->host, -ret, "%s",
				   address_why(ret));
	command_node(address_format(&node->address, text), node->id);
	twin = client_lookup_find(client, node->id);
	if (twin)
		return failure_set(failure, EXIT_USAGE, node->host, 0,
				   "the same daemon as %s", twin->host);
	index_node(client, node);
	return 0;
}

static int alloc_nodes(struct client *client, uint32_t count)
{
	uint32_t slots = 16;

	while (slots < 2 * count)
		slots *= 2;
	client->index_mask = slots - 1;
	client->index = calloc(slots, sizeof(*client->index));
	client->nodes = calloc(MAX(count, 1), sizeof(*client->nodes));
	return client->index && client->nodes ? 0 : -ENOMEM;
}

/* Fails if there are hosts without an address, and names them all. */
static int check_unknown(struct client *client, struct failure *failure)
{
	char **names = calloc(MAX(client->node_count, 1), sizeof(*names));
	size_t count = 0;

	if (!names)
		return failure_no_memory(failure);
	for (uint32_t i = 0; i < client->node_count; i++)
		if (client->nodes[i].lookup_error != 0)
			names[count++] = client->hosts->hosts[i];
	if (count > 0)
		client->unknown = hostfold_text(names, count);
	free(names);
	if (count == 0)
		return 0;
	if (!client->unknown)
		return failure_no_memory(failure);
	return failure_set(failure, EXIT_PEER, client->unknown, 0,
			   count == 1 ? "%s" : "%s (%zu of %u)",
			   address_why(-ENOENT), count, client->node_count);
}

/* Returns NULL if there is no memory. */
static char *make_label(const char *host)
{
	char port[8];
	size_t bytes = strlen(host);
	int port_bytes =
		snprintf(port, sizeof(port), ":%d", ADDRESS_PORT_DEFAULT);

	/* An IPv6 address without brackets has no port behind it. */
	if (bytes > (size_t)port_bytes &&
	    strcmp(host + bytes - port_bytes, port) == 0 &&
	    (host[bytes - (size_t)port_bytes - 1] == ']' ||
	     strchr(host, ':') == host + bytes - port_bytes))
		bytes -= (size_t)port_bytes;
	return strndup(host, bytes);
}

int client_lookup_all(struct client *client, bool loses_unknown,
		      struct failure *failure)
{
	size_t count = client->hosts->count;
	int ret = alloc_nodes(client, (uint32_t)count);

	if (ret < 0)
		return failure_set(failure, EXIT_RESOURCES, NULL, -ret,
				   "%zu nodes", count);
	for (; client->node_count < count; client->node_count++) {
		struct client_node *node = &client->nodes[client->node_count];

		node->host = client->hosts->hosts[client->node_count];
		node->rank = client->node_count;
		node->label = make_label(node->host);
		if (!node->label)
			return failure_no_memory(failure);
		ret = node_init(client, node, loses_unknown, failure);
		if (ret < 0)
			return ret;
	}
	return loses_unknown ? 0 : check_unknown(client, failure);
}

void client_lookup_free(struct client *client)
{
	/* The one behind the last may have failed half-way. */
	for (uint32_t i = 0; client->nodes && i < client->hosts->count; i++)
		free(client->nodes[i].label);
	free(client->nodes);
	free(client->index);
	free(client->unknown);
	client->nodes = NULL;
	client->index = NULL;
	client->unknown = NULL;
}
