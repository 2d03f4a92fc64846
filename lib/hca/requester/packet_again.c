/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a retransmission sends: a kept packet, a part of a train, or the request of a READ or atomic
 * (retransmission.c decides which). Stage requester_recv.
 */
#include "context/path_class.h"
#include "packet_again.h"
#include "pipeline/train.h"
#include "request_opcodes.h"
#include "virt-to-phys/payload_ref.h"

struct rte_mbuf *read_again(struct engine *e, const struct qp *q, const struct rd_element *rd,
			    uint32_t done, uint32_t packets)
{
	uint32_t left = rd->length - done * q->mtu_bytes, bytes = packets * q->mtu_bytes;
	struct rte_mbuf *m = rte_pktmbuf_alloc(e->packets);
	uint8_t opcode = request_opcodes[rd->opcode].only;
	bool carries = wire_opcodes[opcode].headers & WIRE_HAS_PAYLOAD;
	struct packet *p;

	if (!m) {
		count(rrc_counters(e), COUNTER_packet_empty);
		return NULL;
	}
	p = packet_of(m);
	p->qpn = qp_number(q);
	p->packets = 1;
	p->epoch = q->epoch;
	p->payload_bytes = carries ? sizeof(rd->swap_add) : 0;
	p->flags = (uint8_t)(PACKET_AGAIN * walk_time(e)); /* any port */
	p->wqe_offset = rd->wqe_offset;
	memcpy(payload_of(m), &rd->swap_add, sizeof(rd->swap_add));
	p->headers = (struct wire_headers){
		.opcode = opcode,
		.ackreq = 1,
		.psn = psn_add(rd->psn, done),
		.dest_qp = q->dest_qpn,
		.pkey = q->pkey,
		.va = rd->raddr + (uint64_t)done * q->mtu_bytes,
		.rkey = rd->rkey,
		.dma_len = carries ? sizeof(rd->swap_add) : RTE_MIN(left, bytes),
		.swap_add = rd->swap_add,
		.compare = rd->compare,
	};
	return m;
}

/* A copy of a kept packet, without its payload, to be built anew. NULL: no buffer, counted. */
static struct rte_mbuf *copy_packet(struct engine *e, const struct qp *q,
				    const struct sw_element *sw)
{
	struct rte_mbuf *m = rte_pktmbuf_alloc(e->packets);
	struct packet *p;

	if (!m) {
		count(rrc_counters(e), COUNTER_packet_empty);
		return NULL;
	}
	p = packet_of(m);
	*p = *packet_of(sw->m);
	p->flags &= (uint8_t)~PACKET_BUILT;
	p->turn = qp_way(q).turn;
	return m;
}

/* A reference with an ICRC? */
static inline bool is_checked_reference(const struct packet *p)
{
	return p->flags & PACKET_REF && p->icrcs;
}

/*
 * Copies the payload, `skip` bytes into what the reference at `place` names, into m, which is a
 * copy of the rest: its client may be changing it all the time, and would spoil each repetition of
 * a reference. If the payload is gone, m keeps a reference; the receiver will find it gone, too,
 * and drop the packet. NULL: m is freed; another lcore holds the entry.
 */
static struct rte_mbuf *copy_referred(struct rte_mbuf *m, const uint8_t *place, uint32_t skip)
{
	struct packet *p = packet_of(m);
	const uint8_t *at;
	enum v2p_state found = payload_ref_follow(place, &at);

	if (unlikely(found == V2P_PENDING)) {
		rte_pktmbuf_free(m);
		return NULL;
	}
	p->flags |= PACKET_CRC;
	if (likely(found == V2P_SUCCESS)) {
		p->payload_crc = wire_crc_copy(0, payload_of(m), at + skip, p->payload_bytes);
		p->flags &= (uint8_t)~PACKET_REF;
	}
	if (found != V2P_SUCCESS || unlikely(!payload_ref_held(place))) {
		payload_ref_part(payload_of(m), place, skip, p->payload_bytes);
		p->flags |= PACKET_REF;
	}
	return m;
}

/* Replaces a kept packet by a copy, since it was built for another path or migration state, or may
 * not be sent again as it is: the old frame may still be in flight. */
static __rte_noinline struct rte_mbuf *packet_anew(struct engine *e, const struct qp *q,
						   struct sw_element *sw)
{
	struct rte_mbuf *m = copy_packet(e, q, sw);

	if (!m)
		return NULL;
	if (is_checked_reference(packet_of(m)))
		m = copy_referred(m, payload_of(sw->m), 0);
	else
		memcpy(payload_of(m), payload_of(sw->m), packet_of(m)->payload_bytes);
	if (!m)
		return NULL;
	if (qp_spread(e, q) > 1)
		packet_of(m)->flags = (uint8_t)(packet_of(m)->flags + PACKET_AGAIN);
	rte_mbuf_refcnt_set(m, 2); /* one for the wire, one for MultiQueue */
	rte_pktmbuf_free(sw->m);
	sw->m = m;
	return m;
}

struct rte_mbuf *packet_part(struct engine *e, const struct qp *q, const struct sw_element *sw,
			     uint32_t psn, uint32_t packets)
{
	struct rte_mbuf *m = copy_packet(e, q, sw);
	uint32_t skip = psn_sub(psn, sw->psn);
	struct packet *p;

	if (!m)
		return NULL;
	p = packet_of(m);
	p->packets = packets;
	p->headers.psn = psn;
	p->headers.ackreq = 1;
	if (is_checked_reference(p))
		return copy_referred(m, payload_of(sw->m), skip * p->payload_bytes);
	payload_ref_part(payload_of(m), payload_of(sw->m), skip * p->payload_bytes,
			 packets * p->payload_bytes);
	return m;
}

bool packet_may_change(const struct rte_mbuf *m)
{
	return rte_mbuf_refcnt_read(m) == 2;
}

/* A copy of one message of a train, which stays as it is. */
static __rte_noinline struct rte_mbuf *message_again(struct engine *e, const struct qp *q,
						     const struct sw_element *sw)
{
	const uint8_t *payload = payload_of(sw->m), *part;
	struct rte_mbuf *m = copy_packet(e, q, sw);
	struct packet *p;
	uint32_t index;

	if (!m)
		return NULL;
	p = packet_of(m);
	index = psn_sub(sw->psn, p->headers.psn);
	if (index) {
		part = payload +
		       train_part_at(train_parts(p->headers.opcode, p->payload_bytes, p->icrcs),
				     index);
		wire_read_extensions(part, &p->headers);
		payload = part + wire_extension_bytes(p->headers.opcode);
	}
	p->packets = 1;
	p->flags &= (uint8_t)~PACKET_CRC; /* it is of the first message */
	p->wqe_offset = sw->wqe_offset;
	p->headers.psn = sw->psn;
	p->headers.ackreq = 1;
	memcpy(payload_of(m), payload, p->payload_bytes);
	return m;
}

struct rte_mbuf *packet_again(struct engine *e, const struct qp *q, struct sw_element *sw)
{
	struct packet *p = packet_of(sw->m);

	if (unlikely(p->packets > sw->packets))
		return message_again(e, q, sw);

	if (unlikely(p->turn != qp_way(q).turn || is_checked_reference(p)))
		return packet_anew(e, q, sw);
	rte_mbuf_refcnt_update(sw->m, 1);
	if (qp_spread(e, q) > 1 && packet_may_change(sw->m))
		p->flags = (uint8_t)((p->flags & ~PACKET_BUILT) + PACKET_AGAIN);
	return sw->m;
}
