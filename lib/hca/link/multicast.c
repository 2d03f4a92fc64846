/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * HeaderParser's part for datagrams to multicast groups (DestQP 0xffffff; IBTA volume 1, 10.5.2):
 * each queue pair that is attached to the group gets its own reference to the frame, as if the
 * datagram had been for it alone. ExecutionEngine checks its Q_Key, state and receives, so that one
 * that cannot receive costs the others nothing.
 *
 * The references follow the other frames of the burst into the room that these have left; if that
 * is not enough, HeaderParser takes no frames until there is room, and continues where it stopped.
 * Stage header_parse. Reads the table of groups, writes no context and no frame.
 */
#include "context/multicast.h"
#include "context/qp_context.h"
#include "multicast.h"
#include "pipeline/message.h"
#include "wire/encap.h"

/* The group it is for; NULL: none. */
static const struct multicast_group *group_of(const struct engine *e, struct rte_mbuf *m)
{
	const struct arrival *a = arrival_of(m);
	unsigned at = a->l3_offset + (a->is_ipv6 ? 24 : 16); /* destination */
	uint8_t mgid[16];

	wire_address16(mgid, rte_pktmbuf_mtod_offset(m, const uint8_t *, at), a->is_ipv6);
	return multicast_find(e->multicast, mgid);
}

void multicast_keep(struct engine *e, struct rte_mbuf *m)
{
	struct hp *hp = e->hp;

	if (!group_of(e, m)) {
		count(hp_counters(e), COUNTER_drop_rx_multicast);
		return;
	}
	/* Checked once here, not by each queue pair that copies it. */
	if (unlikely(!arrival_intact(m))) {
		count(hp_counters(e), COUNTER_drop_rx_icrc);
		return;
	}
	arrival_of(m)->icrc_bytes = 0;
	count(hp_counters(e), COUNTER_rx_multicast);
	hp->waiting[hp->waits++] = m;
}

/* A reference with its own metadata; NULL: no buffer. */
static struct rte_mbuf *refer(struct engine *e, struct rte_mbuf *m, uint32_t qpn)
{
	struct rte_mbuf *clone = rte_pktmbuf_alloc(e->clones);

	if (unlikely(!clone)) {
		count(hp_counters(e), COUNTER_drop_multicast_buffer);
		return NULL;
	}
	rte_pktmbuf_attach(clone, m);
	*arrival_of(clone) = *arrival_of(m);
	arrival_of(clone)->qpn = qpn;
	return clone;
}

/* Another engine's channel may be full: then it is dropped at this edge, as all frames are. */
static void hand_to(struct engine *e, struct rte_mbuf *m, uint32_t qpn)
{
	const struct qp *q = qp_find(e->qps, qpn);
	struct rte_mbuf *clone;

	if (unlikely(!q)) /* being destroyed */
		return;
	if (unlikely(!pkey_matches(arrival_of(m)->headers.pkey, q->pkey))) {
		count(hp_counters(e), COUNTER_drop_rx_pkey);
		return;
	}
	clone = refer(e, m, qpn);
	if (unlikely(!clone))
		return;
	if (channel_try_put(&e->peers[q->engine].channel[CHANNEL_HP_EE], &clone, 1)) {
		count(hp_counters(e), COUNTER_multicast_copies);
		return;
	}
	count(hp_counters(e), COUNTER_drop_rx_full);
	rte_pktmbuf_free(clone);
}

/* False: no room for another one. */
static bool deliver_one(struct engine *e, struct hp *hp, struct rte_mbuf *m)
{
	const struct multicast_group *g = group_of(e, m);
	uint32_t end = g ? multicast_end(g) : 0;

	for (; hp->place < end; hp->place++) {
		uint32_t qpn = multicast_member(g, hp->place);

		if (!channel_room(&e->channel[CHANNEL_HP_EE]))
			return false;
		if (qpn)
			hand_to(e, m, qpn);
	}
	hp->place = 0;
	return true;
}

bool multicast_deliver(struct engine *e)
{
	struct hp *hp = e->hp;

	for (; hp->first < hp->waits; hp->first++) {
		struct rte_mbuf *m = hp->waiting[hp->first];

		if (!deliver_one(e, hp, m))
			return false;
		rte_pktmbuf_free(m);
	}
	hp->first = hp->waits = 0;
	return true;
}
