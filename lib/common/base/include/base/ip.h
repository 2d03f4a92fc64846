/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef BASE_IP_H
#define BASE_IP_H
/*
 * IP addresses of both versions in 16 bytes, as on the wire: an IPv4 address a.b.c.d is written
 * ::ffff:a.b.c.d ("v4-mapped", RFC 4291, 2.5.5.2), as in a GID of RoCEv2. Pure; any stage. No DPDK:
 * the libraries of programs include it.
 */
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

enum { IP_V4_AT = 12 }; /* offset of the four bytes of a v4-mapped address */

static const uint8_t ip_v4_prefix[IP_V4_AT] = {[10] = 0xff, [11] = 0xff};

static inline bool ip_is_v4_mapped(const uint8_t ip[16])
{
	return memcmp(ip, ip_v4_prefix, sizeof(ip_v4_prefix)) == 0;
}

/* v4: four bytes in network order, of any type and alignment, outside of ip. */
static inline void ip_map_v4(const void *v4, uint8_t ip[16])
{
	memcpy(ip, ip_v4_prefix, sizeof(ip_v4_prefix));
	memcpy(ip + IP_V4_AT, v4, 4);
}

/* The address of a multicast group: ff00::/8, or v4-mapped 224.0.0.0/4. Broadcast is not. */
static inline bool ip_is_group(const uint8_t ip[16])
{
	return ip[0] == 0xff || ((ip[IP_V4_AT] & 0xf0) == 0xe0 && ip_is_v4_mapped(ip));
}

/* A unicast address: neither multicast, nor ::, nor v4-mapped 0.0.0.0/8 or
 * 240.0.0.0/4. */
static inline bool ip_is_host(const uint8_t ip[16])
{
	static const uint8_t any[16];

	if (ip_is_v4_mapped(ip))
		return ip[IP_V4_AT] != 0 && ip[IP_V4_AT] < 224;
	return ip[0] != 0xff && memcmp(ip, any, sizeof(any)) != 0;
}

#endif
