/* SPDX-License-Identifier: BSD-3-Clause */
/* Which addresses are ours, which are on the link, which next hop the others take. Pure functions
 * of the configuration. Control thread. */
#include <errno.h>
#include <string.h>

#include "control.h"

bool ip_is_multicast(const uint8_t ip[16])
{
	static const uint8_t broadcast[4] = {255, 255, 255, 255};

	return ip_is_group(ip) || (ip_is_v4_mapped(ip) && memcmp(ip + IP_V4_AT, broadcast, 4) == 0);
}

bool ip_is_link_local(const uint8_t ip[16])
{
	return ip[0] == 0xfe && (ip[1] & 0xc0) == 0x80;
}

void multicast_mac(const uint8_t ip[16], uint8_t mac[6])
{
	if (!ip_is_v4_mapped(ip)) {
		mac[0] = mac[1] = 0x33;
		memcpy(mac + 2, ip + 12, 4);
	} else if (ip[12] == 255) {
		memset(mac, 0xff, 6);
	} else {
		mac[0] = 0x01;
		mac[1] = 0x00;
		mac[2] = 0x5e;
		mac[3] = ip[13] & 0x7f;
		mac[4] = ip[14];
		mac[5] = ip[15];
	}
}

int route_own_address(const struct port *port, const uint8_t ip[16])
{
	for (unsigned int i = 0; i < port->n_own; i++) {
		if (memcmp(port->own[i].ip, ip, 16) == 0)
			return (int)i;
	}
	return -1;
}

static bool in_prefix(const struct port_address *a, const uint8_t ip[16])
{
	unsigned int bits = a->v6 ? a->prefix_len : 96 + a->prefix_len;
	unsigned int bytes = bits / 8;
	uint8_t mask = 0xff00 >> (bits % 8);

	if (a->v6 == ip_is_v4_mapped(ip) || memcmp(a->ip, ip, bytes) != 0)
		return false;
	return bits % 8 == 0 || ((a->ip[bytes] ^ ip[bytes]) & mask) == 0;
}

/* Is it meaningful only on the link: fe80::/10, ff02::/16 and narrower scopes? */
static bool is_of_link(const uint8_t ip[16])
{
	return ip_is_link_local(ip) || (ip[0] == 0xff && (ip[1] & 0x0f) <= 2);
}

int port_source(const struct port *port, const uint8_t ip[16])
{
	int chosen = route_own_address(port, ip);

	if (chosen >= 0)
		return chosen;
	if (!ip_is_multicast(ip) && !route_next_hop(port, ip))
		return -ENETUNREACH;
	for (unsigned int i = 0; i < port->n_own; i++) {
		const struct port_address *a = &port->own[i];

		if (a->v6 == ip_is_v4_mapped(ip))
			continue;
		if (in_prefix(a, ip))
			return (int)i;
		if (chosen < 0 || (ip_is_link_local(port->own[chosen].ip) && !is_of_link(ip)))
			chosen = (int)i;
	}
	return chosen < 0 ? -ENETUNREACH : chosen;
}

bool route_is_on_link(const struct port *port, const uint8_t ip[16])
{
	if (ip_is_link_local(ip))
		return true;
	for (unsigned int i = 0; i < port->n_own; i++) {
		if (in_prefix(&port->own[i], ip))
			return true;
	}
	return false;
}

const uint8_t *route_next_hop(const struct port *port, const uint8_t ip[16])
{
	const struct port_config *c = &port->config;

	if (!route_source(port, ip))
		return NULL;
	if (route_is_on_link(port, ip))
		return ip;
	if (ip_is_v4_mapped(ip))
		return c->gateways.has_v4 ? c->gateways.v4 : NULL;
	return c->gateways.has_v6 ? c->gateways.v6 : NULL;
}

const struct port_address *route_source(const struct port *port, const uint8_t ip[16])
{
	const struct port_address *first = NULL;

	for (unsigned int i = 0; i < port->n_own; i++) {
		const struct port_address *a = &port->own[i];

		if (a->v6 == ip_is_v4_mapped(ip))
			continue;
		if (in_prefix(a, ip))
			return a;
		if (!first)
			first = a;
	}
	return first;
}
