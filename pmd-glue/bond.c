/* SPDX-License-Identifier: BSD-3-Clause */
/* Which of a port's two devices carry its traffic: see bond.h. */
#include "bond.h"

/* Those of the links in `up` that may carry traffic: settled ones, or all if none is. */
static unsigned settled_links(struct bond *b, const struct port_config *c, unsigned up,
			      uint64_t now_ms)
{
	unsigned mask = up & b->used;

	for (unsigned i = 0; i < BOND_DEVICES; i++) {
		if (up & ~b->up & 1u << i)
			b->settled_ms[i] = now_ms + c->updelay;
		if (up & 1u << i && now_ms >= b->settled_ms[i])
			mask |= 1u << i;
	}
	b->up = (uint8_t)up;
	return mask ? mask : up;
}

unsigned bond_update(struct bond *b, const struct port_config *c, unsigned up, uint64_t now_ms)
{
	unsigned before = b->used, now = settled_links(b, c, up, now_ms);

	if (c->bond_mode == BOND_ACTIVE_BACKUP)
		now = now & before ? before : now & -now;
	if (now)
		b->used = (uint8_t)now;
	return (before & ~b->used ? BOND_LEFT : 0) | (b->used & ~before ? BOND_JOINED : 0);
}
