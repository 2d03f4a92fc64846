/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef BASE_PEER_LIST_H
#define BASE_PEER_LIST_H
/* The peers that an HCA admits: addresses and prefixes, in the form of base/ip.h. A list is filled
 * once, then read by any thread; a change takes a new list (hca_admit()). */
#include "base/ip.h"

enum {
	PEERS_MAX = 32,	   /* that can be named ... */
	PEERS_OWN_MAX = 8, /* ... besides the HCA's own addresses */
};

struct peer_list {
	struct {
		uint8_t ip[16];
		uint8_t bits; /* that must agree: those of an IPv4 prefix follow 96 others */
	} prefix[PEERS_MAX + PEERS_OWN_MAX];
	unsigned count; /* 0: everyone is admitted */
};

/* Do the first `bits` of both agree? */
static inline bool ip_shares_bits(const uint8_t a[16], const uint8_t b[16], unsigned bits)
{
	unsigned whole = bits / 8, rest = bits % 8;

	return memcmp(a, b, whole) == 0 && (!rest || (a[whole] ^ b[whole]) >> (8 - rest) == 0);
}

static inline bool peer_is_admitted(const struct peer_list *l, const uint8_t ip[16])
{
	for (unsigned i = 0; i < l->count; i++) {
		if (ip_shares_bits(ip, l->prefix[i].ip, l->prefix[i].bits))
			return true;
	}
	return l->count == 0;
}

#endif
