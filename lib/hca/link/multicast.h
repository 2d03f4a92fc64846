/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef LINK_MULTICAST_H
#define LINK_MULTICAST_H
/* Datagrams to multicast groups. Stage header_parse. */
#include "hp.h"

/* m is a datagram to DestQP 0xffffff with its arrival filled in: keeps it if queue pairs are
 * attached to its group, else counts it. */
void multicast_keep(struct engine *e, struct rte_mbuf *m);
/* Delivers kept datagrams to the queue pairs. False: HP_EE is full, some are left. */
bool multicast_deliver(struct engine *e);

/* Has multicast_keep() just taken it? */
static inline bool multicast_kept(const struct hp *hp, const struct rte_mbuf *m)
{
	return hp->waits && hp->waiting[hp->waits - 1] == m;
}

#endif
