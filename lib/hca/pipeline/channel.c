/* SPDX-License-Identifier: BSD-3-Clause */
/* Makes and frees the rings of the channels. Control thread only. */
#include <stdio.h>
#include <rte_errno.h>
#include "pipeline/channel.h"

int channel_create(struct channel *c, enum channel_id id, const char *prefix, bool multi_producer,
		   int socket)
{
	char name[RTE_RING_NAMESIZE];
	unsigned flags = RING_F_SC_DEQ | (multi_producer ? 0 : RING_F_SP_ENQ) | RING_F_EXACT_SZ;

	snprintf(name, sizeof(name), "%s_%s", prefix, channel_infos[id].name);
	*c = (struct channel){.id = id, .shared = multi_producer};
	c->ring = rte_ring_create(name, channel_infos[id].depth, socket, flags);
	c->in = c->ring;
	return c->ring ? 0 : -rte_errno;
}

void channel_destroy(struct channel *c)
{
	struct rte_mbuf *m;

	if (!c->ring)
		return;
	while (rte_ring_dequeue(c->ring, (void **)&m) == 0)
		rte_pktmbuf_free(m);
	rte_ring_free(c->ring);
	c->ring = c->in = NULL;
}
