/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef CONTEXT_PATH_CLASS_H
#define CONTEXT_PATH_CLASS_H
/*
 * What the network sees of a packet besides its addresses: traffic class, 802.1p priority, UDP
 * source port. No state.
 */
#include "context/qp_context.h"
#include "pipeline/message.h"

/*
 * Sets the traffic class and priority of a path, from the class and service level that its program
 * asked for; 0 is the HCA's default. path->vlan_tci has the VLAN ID, if any. The CEU; ReqPktGen.
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
	/* Consecutive packets on one port: all have had a turn within 32 packets, fewer than a map
	 * covers. */
	SPREAD_BURST = 4,
};

/* How many UDP source ports the requests of a QP use: more than one only if its peer keeps early
 * packets and reports them. */
static inline unsigned qp_spread(const struct engine *e, const struct qp *q)
{
	unsigned n = engine_setting(e, path_spread);

	return unlikely(n > 1) && q->agreed & AGREED_REPEAT ? n : 1;
}

/* Which of n ports a packet with that PSN uses first. */
static inline unsigned spread_port(uint32_t psn, unsigned n)
{
	return psn / SPREAD_BURST % n;
}

/* Which one it uses now: another one each time that it is sent. */
static inline unsigned packet_port(const struct packet *p, unsigned n)
{
	return (spread_port(p->headers.psn, n) + p->flags / PACKET_AGAIN) % n;
}

#endif
