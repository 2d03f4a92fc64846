/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef REQUESTER_FIXTURE_H
#define REQUESTER_FIXTURE_H
/* Requests going out and responses coming in, for the tests of both stages of the requester. */
#include "engine_fixture.h"
#include "completion/completion.h"
#include "multi_queue.h"
#include "outstanding.h"
#include "req_pkt_gen.h"
#include "requester/requester.h"
#include "requester_recv_control.h"
#include "requester_trans_control.h"
#include "send-queue/send_queue.h"
#include "timer_control.h"

/* Hands one request to RequesterTransControl, as DataPack does. */
static inline void send_request(unsigned qp, uint8_t opcode, uint32_t length, uint32_t wqe_offset)
{
	fx_put(CHANNEL_DP_RTC, fx_request(qp, opcode, length, wqe_offset));
}

static inline void send_flags(unsigned qp, uint8_t opcode, uint32_t length, uint8_t flags)
{
	struct rte_mbuf *m = fx_request(qp, opcode, length, 0);

	request_of(m)->flags |= flags;
	fx_put(CHANNEL_DP_RTC, m);
}

/* The next packet that RequesterTransControl made; its reference is given back. */
static inline bool take_packet(enum channel_id from, struct packet *out)
{
	struct rte_mbuf *m = fx_take(from);

	if (!m)
		return false;
	*out = *packet_of(m);
	rte_pktmbuf_free(m);
	return true;
}

/* RequesterRecvControl's part when everything of a queue pair is acknowledged. */
static inline void acknowledge_all(unsigned qp)
{
	struct qp *q = fx->qp[qp];
	struct sw_element *sw;

	while ((sw = sw_head(fx->e->mq, &q->mq.sw))) {
		rte_pktmbuf_free(sw->m);
		sw_pop(fx->e->mq, &q->mq.sw);
	}
	q->rrc.unacked_psn = q->rtc.next_psn;
	q->rrc.reads_done = q->rtc.reads_issued;
}

static inline void wake_sender_of(unsigned qp)
{
	wake_post(&fx->e->wake[WAKE_RTC], &fx->qp[qp]->wake[WAKE_RTC], fx->qp[qp]->index);
}

/* A response for that queue pair into HP_RRC; payload: the pattern `seed`. Not polled. */
static inline void respond_with(unsigned qp, struct wire_headers h, uint32_t bytes, uint8_t seed)
{
	struct rte_mbuf *m = rte_pktmbuf_alloc(fx->packets);
	uint8_t *p = (uint8_t *)rte_pktmbuf_append(m, 80 + bytes);

	for (uint32_t i = 0; i < bytes; i++)
		p[80 + i] = fx_pattern(seed, i);
	h.dest_qp = fx->qp[qp]->qpn;
	*arrival_of(m) = (struct arrival){.qpn = h.dest_qp,
					  .payload = p + 80,
					  .payload_bytes = bytes,
					  .packets = 1,
					  .headers = h};
	fx_put(CHANNEL_HP_RRC, m);
}

static inline void respond(unsigned qp, uint32_t psn, uint8_t syndrome, uint32_t msn)
{
	respond_with(qp,
		     (struct wire_headers){.opcode = WIRE_RC_ACK,
					   .psn = psn & PSN_MASK,
					   .syndrome = syndrome,
					   .msn = msn},
		     0, 0);
	rrc_poll(fx->e);
}

/* An ACK without credits. */
static inline void respond_ack(unsigned qp, uint32_t psn)
{
	respond(qp, psn, aeth_ack(AETH_CREDIT_INVALID), 0);
}

#endif
