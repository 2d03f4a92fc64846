/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef CONGESTION_RULES_H
#define CONGESTION_RULES_H
/* Which connections use a different congestion control from the rest of their HCA: by their peer's
 * address, or by the traffic class that their program requested. The first matching rule
 * applies. */
#include <stdbool.h>
#include "base/peer_list.h"

enum {
	CC_RULES_MAX = 16,
	CC_RULE_ECN_BITS = 3, /* of a traffic class: ignored */
};

struct cc_rule {
	bool by_class;
	uint8_t tclass;
	uint8_t ip[16], bits; /* a prefix, in the form of base/ip.h */
	uint8_t cc;	      /* enum congestion_control */
};

struct cc_rules {
	struct cc_rule rule[CC_RULES_MAX];
	unsigned count;
};

/* The control of a connection; `otherwise`: if no rule matches. */
static inline uint8_t cc_choose(const struct cc_rules *rules, const uint8_t peer[16],
				uint8_t tclass, uint8_t otherwise)
{
	for (unsigned i = 0; i < rules->count; i++) {
		const struct cc_rule *r = &rules->rule[i];

		if (r->by_class ? !((r->tclass ^ tclass) & ~CC_RULE_ECN_BITS)
				: ip_shares_bits(peer, r->ip, r->bits))
			return r->cc;
	}
	return otherwise;
}

#endif
