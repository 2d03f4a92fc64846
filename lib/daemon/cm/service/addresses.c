/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Properties of addresses alone: IPv4, IPv6, and GIDs with service IDs (AF_IB). Pure.
 */
#include <arpa/inet.h>
#include <endian.h>
#include <errno.h>
#include <sys/param.h>
#include "base/ip.h"
#include "addresses.h"

unsigned int ucm_address_bytes(const union ucm_address *a)
{
	switch (a->family) {
	case AF_INET:
		return sizeof(a->v4);
	case AF_INET6:
		return sizeof(a->v6);
	case UCM_AF_IB:
		return sizeof(a->ib);
	default:
		return 0;
	}
}

/* A scope ID is local to the program's host: a peer's address arrives without one, and programs
 * compare the two. */
static void drop_scope(union ucm_address *a)
{
	if (a->family == AF_INET6)
		a->v6.sin6_scope_id = 0;
}

int ucm_address_copy(union ucm_address *to, const void *from, size_t bytes)
{
	memset(to, 0, sizeof(*to));
	memcpy(to, from, MIN(bytes, sizeof(*to)));
	drop_scope(to);
	return bytes && bytes == ucm_address_bytes(to) ? 0 : -EINVAL;
}

void ucm_address_copy_ip(union ucm_address *to, const struct sockaddr_in6 *from)
{
	memset(to, 0, sizeof(*to));
	memcpy(to, from, sizeof(*from));
	drop_scope(to);
}

static bool all_zero(const void *bytes, size_t n)
{
	const uint8_t *p = bytes;

	while (n && !p[n - 1])
		n--;
	return !n;
}

bool ucm_address_zero(const union ucm_address *a)
{
	switch (a->family) {
	case AF_INET:
		return !(ntohl(a->v4.sin_addr.s_addr) >> 24); /* 0.0.0.0/8, as a kernel */
	case AF_INET6:
		return all_zero(&a->v6.sin6_addr, sizeof(a->v6.sin6_addr));
	case UCM_AF_IB:
		return all_zero(a->ib.gid, sizeof(a->ib.gid));
	default:
		return false;
	}
}

static bool is_one(const uint8_t gid[16])
{
	return all_zero(gid, 15) && gid[15] == 1;
}

bool ucm_address_loopback(const union ucm_address *a)
{
	switch (a->family) {
	case AF_INET:
		return ntohl(a->v4.sin_addr.s_addr) >> 24 == 127;
	case AF_INET6:
		return is_one(a->v6.sin6_addr.s6_addr);
	case UCM_AF_IB:
		return is_one(a->ib.gid);
	default:
		return false;
	}
}

bool ucm_address_any(const union ucm_address *a)
{
	return ucm_address_zero(a) || ucm_address_loopback(a);
}

bool ucm_address_same_host(const union ucm_address *a, const union ucm_address *b)
{
	uint8_t x[16], y[16];

	if (a->family != b->family)
		return false;
	ucm_address_gid(a, x);
	ucm_address_gid(b, y);
	return !memcmp(x, y, sizeof(x));
}

bool ucm_address_multicast(const union ucm_address *a)
{
	uint8_t gid[16];

	ucm_address_gid(a, gid);
	return ip_is_group(gid);
}

uint16_t ucm_address_port(const union ucm_address *a)
{
	switch (a->family) {
	case AF_INET:
		return ntohs(a->v4.sin_port);
	case AF_INET6:
		return ntohs(a->v6.sin6_port);
	case UCM_AF_IB:
		return (uint16_t)be64toh(a->ib.sid & a->ib.sid_mask);
	default:
		return 0;
	}
}

void ucm_address_set_port(union ucm_address *a, uint16_t port)
{
	uint64_t space;

	switch (a->family) {
	case AF_INET:
		a->v4.sin_port = htons(port);
		return;
	case AF_INET6:
		a->v6.sin6_port = htons(port);
		return;
	case UCM_AF_IB:
		space = be64toh(a->ib.sid & a->ib.sid_mask) & ~0xffffull;
		a->ib.sid = htobe64(space | port);
		a->ib.sid_mask = UINT64_MAX;
		return;
	default:
		ASSERT(false);
	}
}

void ucm_address_gid(const union ucm_address *a, uint8_t gid[16])
{
	switch (a->family) {
	case AF_INET:
		ip_map_v4(&a->v4.sin_addr, gid);
		return;
	case AF_INET6:
		memcpy(gid, &a->v6.sin6_addr, 16);
		return;
	case UCM_AF_IB:
		memcpy(gid, a->ib.gid, 16);
		return;
	default:
		memset(gid, 0, 16);
		return;
	}
}

void ucm_address_set_gid(union ucm_address *a, const uint8_t gid[16])
{
	switch (a->family) {
	case AF_INET:
		memcpy(&a->v4.sin_addr, gid + 12, 4);
		return;
	case AF_INET6:
		memcpy(&a->v6.sin6_addr, gid, 16);
		return;
	case UCM_AF_IB:
		memcpy(a->ib.gid, gid, 16);
		return;
	default:
		ASSERT(false);
	}
}

void ucm_address_set_loopback(union ucm_address *a)
{
	static const uint8_t v4[16] = {[10] = 0xff, [11] = 0xff, [12] = 127, [15] = 1};
	static const uint8_t v6[16] = {[15] = 1};

	ucm_address_set_gid(a, a->family == AF_INET ? v4 : v6);
}

uint64_t ucm_service_id(const struct ucm_id *id, const union ucm_address *a)
{
	if (a->family == UCM_AF_IB)
		return be64toh(a->ib.sid);
	return ((uint64_t)id->space << 16) + ucm_address_port(a);
}

void ucm_ip_address(union ucm_address *a, uint8_t version, const uint8_t gid[16], uint16_t port)
{
	a->family = version == 4 ? AF_INET : AF_INET6;
	ucm_address_set_gid(a, gid);
	ucm_address_set_port(a, port);
}
