/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * getifaddrs(), in front of libc's (LD_PRELOAD): after the kernel's addresses it lists those of the
 * daemon's devices, each as belonging to an interface of the device's name. RDMA programs look
 * there for addresses to bind to with librdmacm, since a RoCE device usually has a kernel interface
 * with them. Any thread; no locks.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "next.h"
#include "softhca/softhca.h"

enum { DEVICES = 16, ADDRESSES = 128, TEXT_BYTES = 480 };

union address {
	struct sockaddr any;
	struct sockaddr_in v4;
	struct sockaddr_in6 v6;
};

struct entry {
	struct ifaddrs listed; /* first: its address is the entry's */
	union address address, netmask;
	char name[IF_NAMESIZE];
};

/* What getifaddrs() adds, one allocation, freed by freeifaddrs(). */
struct added {
	struct entry entries[ADDRESSES];
	unsigned int count;
};

/* ---- the devices' addresses ---- */

/*
 * The address of GID `index`. The link-local one is left out: it is meaningless without a link,
 * which the kernel does not know. The mask covers all bits, since GIDs have no subnet, and TCP
 * cannot reach it.
 */
static bool read_address(const char *device, unsigned int index, struct entry *e)
{
	char name[32], text[TEXT_BYTES] = "";
	struct in6_addr gid;

	snprintf(name, sizeof(name), "ports/1/gids/%u", index);
	if (softhca_read_attribute(NULL, device, name, text, sizeof(text) - 1) <= 0)
		return false;
	text[strcspn(text, "\n")] = 0;
	if (inet_pton(AF_INET6, text, &gid) != 1 || IN6_IS_ADDR_LINKLOCAL(&gid) ||
	    IN6_IS_ADDR_UNSPECIFIED(&gid))
		return false;
	*e = (struct entry){0};
	if (IN6_IS_ADDR_V4MAPPED(&gid)) {
		e->address.v4.sin_family = e->netmask.v4.sin_family = AF_INET;
		memcpy(&e->address.v4.sin_addr, &gid.s6_addr[12], 4);
		memset(&e->netmask.v4.sin_addr, 0xff, 4);
	} else {
		e->address.v6.sin6_family = e->netmask.v6.sin6_family = AF_INET6;
		e->address.v6.sin6_addr = gid;
		memset(&e->netmask.v6.sin6_addr, 0xff, sizeof(gid));
	}
	snprintf(e->name, sizeof(e->name), "%.*s", IF_NAMESIZE - 1, device);
	return true;
}

static bool addresses_is_same(const struct sockaddr *a, const union address *b)
{
	if (!a || a->sa_family != b->any.sa_family)
		return false;
	if (a->sa_family == AF_INET)
		return ((const struct sockaddr_in *)a)->sin_addr.s_addr == b->v4.sin_addr.s_addr;
	return IN6_ARE_ADDR_EQUAL(&((const struct sockaddr_in6 *)a)->sin6_addr, &b->v6.sin6_addr);
}

/* An address on lo does not count: programs that look for interfaces skip lo. */
static bool kernel_has(const struct ifaddrs *list, const union address *address)
{
	for (; list; list = list->ifa_next)
		if (!(list->ifa_flags & IFF_LOOPBACK) && addresses_is_same(list->ifa_addr, address))
			return true;
	return false;
}

static void add_device(struct added *to, const struct softhca_device_info *device,
		       const struct ifaddrs *kernel)
{
	for (unsigned int i = 0; i < device->port.gid_count && to->count < ADDRESSES; i++) {
		struct entry *e = &to->entries[to->count];

		if (!read_address(device->name, i, e) || kernel_has(kernel, &e->address))
			continue;
		if (device->port.state == SOFTHCA_PORT_ACTIVE)
			e->listed.ifa_flags = IFF_UP | IFF_RUNNING;
		to->count++;
	}
}

/* ---- the list ---- */

/*
 * Neither broadcast nor multicast: no one announces services there. ifa_data, which has no meaning
 * for an address, points to the entry itself, which marks it as ours: libc's entries never do.
 */
static void chain(struct added *a)
{
	for (unsigned int i = 0; i < a->count; i++) {
		struct entry *e = &a->entries[i];

		e->listed = (struct ifaddrs){
			.ifa_next = i + 1 < a->count ? &a->entries[i + 1].listed : NULL,
			.ifa_name = e->name,
			.ifa_flags = e->listed.ifa_flags | IFF_NOARP,
			.ifa_addr = &e->address.any,
			.ifa_netmask = &e->netmask.any,
			.ifa_data = e,
		};
	}
}

static struct ifaddrs **addresses_end_of(struct ifaddrs **at)
{
	while (*at)
		at = &(*at)->ifa_next;
	return at;
}

static void add_all(struct ifaddrs **list)
{
	struct softhca_device_info devices[DEVICES];
	int n = softhca_device_list(NULL, devices, DEVICES);
	struct added *added = n > 0 ? malloc(sizeof(*added)) : NULL;

	if (!added)
		return;
	added->count = 0;
	for (int i = 0; i < n && i < DEVICES; i++)
		add_device(added, &devices[i], *list);
	if (added->count == 0) {
		free(added);
		return;
	}
	chain(added);
	*addresses_end_of(list) = &added->entries[0].listed;
}

SHOWN int getifaddrs(struct ifaddrs **list)
{
	int error = errno, rc = NEXT(getifaddrs)(list);

	if (rc)
		return rc;
	add_all(list);
	errno = error; /* without a daemon there is nothing to add */
	return 0;
}

SHOWN void freeifaddrs(struct ifaddrs *list)
{
	struct ifaddrs **at = &list;

	while (*at && (*at)->ifa_data != *at)
		at = &(*at)->ifa_next;
	free(*at);
	*at = NULL;
	NEXT(freeifaddrs)(list);
}
