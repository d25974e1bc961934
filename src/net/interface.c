/* interface.c - the network interface that has an address of this machine */
#include "net/interface.h"

#include <assert.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "system/small_file.h"

static_assert(INTERFACE_NAME_BYTES == IF_NAMESIZE, "a name fits");

static bool has_address(const struct ifaddrs *each,
			const struct address *wanted)
{
	struct address own = { .length = 0 };

	if (!each->ifa_addr)
		return false;
	if (each->ifa_addr->sa_family == AF_INET)
		own.length = sizeof(struct sockaddr_in);
	else if (each->ifa_addr->sa_family == AF_INET6)
		own.length = sizeof(struct sockaddr_in6);
	memcpy(&own.socket, each->ifa_addr, own.length);
	return own.length > 0 && address_is_same_host(&own, wanted);
}

bool interface_find(const struct address *address,
		    char name[INTERFACE_NAME_BYTES])
{
	struct ifaddrs *all;
	bool found = false;

	if (getifaddrs(&all) < 0)
		return false;
	for (const struct ifaddrs *each = all; each && !found;
	     each = each->ifa_next) {
		found = has_address(each, address);
		if (found)
			snprintf(name, INTERFACE_NAME_BYTES, "%s",
				 each->ifa_name);
	}
	freeifaddrs(all);
	return found;
}

uint32_t interface_mbit(const char *name)
{
	char text[32];
	long mbit;

	if (!small_file_read(text, sizeof(text), "/sys/class/net/%s/speed",
			     name))
		return 0;
	mbit = strtol(text, NULL, 10);
	return mbit > 0 && mbit <= UINT32_MAX ? (uint32_t)mbit : 0;
}
