/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef CONTEXT_PATH_CLASS_H
#define CONTEXT_PATH_CLASS_H
/*
 * How a packet looks to the network beside its addresses: traffic class, 802.1p priority, UDP source
 * port. No state.
 */
#include "context/qp_context.h"
#include "pipeline/message.h"

/*
 * The traffic class and priority of packets whose program asked for that class and service level: 0 is
 * the HCA's default. The path has its VLAN, if any. The CEU; ReqPktGen.
 */
static inline void path_set_class(const struct engine *e, struct wire_path *path,
				  uint8_t traffic_class, uint8_t sl)
{
	uint32_t priority = sl & WIRE_PCP_MAX;

	if (!priority)
		priority = engine_setting(e, priority);
	path->tos = traffic_class ? traffic_class : (uint8_t)engine_setting(e, traffic_class);
	path->has_vlan |= engine_setting(e, priority_tag);
	path->vlan_tci |= (uint16_t)(priority << WIRE_PCP_SHIFT);
}

enum {
	SPREAD_MAX = 8, /* UDP source ports of a connection */
	SPREAD_BURST =
		4, /* packets in a row along one of them; all ports have a turn in 32, within a map */
};

/* How many UDP source ports the requests of a QP take: more than one only if its peer keeps what
 * comes early and says so. */
static inline unsigned qp_spread(const struct engine *e, const struct qp *q)
{
	unsigned n = engine_setting(e, path_spread);

	return unlikely(n > 1) && q->agreed & AGREED_REPEAT ? n : 1;
}

/* Which of n ports a packet of that PSN takes at first. */
static inline unsigned spread_port(uint32_t psn, unsigned n)
{
	return psn / SPREAD_BURST % n;
}

/* Which one it takes now: another one each time. */
static inline unsigned packet_port(const struct packet *p, unsigned n)
{
	return (spread_port(p->headers.psn, n) + p->flags / PACKET_AGAIN) % n;
}

#endif
