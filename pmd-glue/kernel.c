/* SPDX-License-Identifier: BSD-3-Clause */
/* The kernel's view of an interface that it shares with a port. Control thread; system calls. */
#include <errno.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "control.h"

/* One interface ioctl; 0 or -errno. */
static int ask_kernel(unsigned long what, const char *name, struct ifreq *request)
{
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	int error = 0;

	if (fd < 0)
		return -errno;
	if (strlen(name) >= IFNAMSIZ) {
		close(fd);
		return -ENODEV;
	}
	strcpy(request->ifr_name, name);
	if (ioctl(fd, what, request) != 0)
		error = -errno;
	close(fd);
	return error;
}

int kernel_mtu(const char *name)
{
	struct ifreq r = {0};
	int error = ask_kernel(SIOCGIFMTU, name, &r);

	return error ? error : r.ifr_mtu;
}

int kernel_set_mtu(const char *name, uint16_t mtu_bytes)
{
	struct ifreq r = {.ifr_mtu = mtu_bytes};

	return ask_kernel(SIOCSIFMTU, name, &r);
}

bool kernel_is_running(const char *name)
{
	struct ifreq r = {0};
	int up = IFF_UP | IFF_RUNNING;

	return ask_kernel(SIOCGIFFLAGS, name, &r) == 0 && (r.ifr_flags & up) == up;
}

bool kernel_shares(enum port_type type)
{
	return type == PORT_AF_PACKET || type == PORT_AF_XDP;
}

static bool to_ip(const struct sockaddr *address, uint8_t ip[16])
{
	if (!address)
		return false;
	if (address->sa_family == AF_INET)
		ip_map_v4(&((const struct sockaddr_in *)address)->sin_addr, ip);
	else if (address->sa_family == AF_INET6)
		memcpy(ip, &((const struct sockaddr_in6 *)address)->sin6_addr, 16);
	else
		return false;
	return true;
}

/* Bits of a netmask, which are all at its front. */
static uint8_t prefix_length(const struct sockaddr *mask, bool v6)
{
	uint8_t bytes[16], length = 0;

	if (!to_ip(mask, bytes))
		return v6 ? 128 : 32;
	for (unsigned i = v6 ? 0 : 12; i < sizeof(bytes); i++)
		length += (uint8_t)__builtin_popcount(bytes[i]);
	return length;
}

void port_kernel_addresses(enum port_type type, const char *device, struct port_addresses *out)
{
	struct ifaddrs *all;

	out->count = 0;
	if (!kernel_shares(type) || getifaddrs(&all) != 0)
		return;
	for (const struct ifaddrs *a = all; a && out->count < PORT_ADDRESSES_MAX; a = a->ifa_next) {
		struct port_address *own = &out->at[out->count];

		if (strcmp(a->ifa_name, device) != 0 || !to_ip(a->ifa_addr, own->ip) ||
		    ip_is_link_local(own->ip))
			continue;
		own->v6 = a->ifa_addr->sa_family == AF_INET6;
		own->prefix_len = prefix_length(a->ifa_netmask, own->v6);
		out->count++;
	}
	freeifaddrs(all);
}

void kernel_refresh(struct port *port)
{
	bool has[PORT_OWN_MAX] = {false};
	struct ifaddrs *all;
	uint8_t ip[16];

	if (!kernel_shares(port->config.type) || getifaddrs(&all) != 0)
		return;
	for (const struct ifaddrs *a = all; a; a = a->ifa_next) {
		int own = -1;

		if (strcmp(a->ifa_name, port->eth[port->eth_now].device) == 0 &&
		    to_ip(a->ifa_addr, ip))
			own = route_own_address(port, ip);
		if (own >= 0)
			has[own] = true;
	}
	freeifaddrs(all);
	memcpy(port->kernel_has, has, sizeof(has));
}
