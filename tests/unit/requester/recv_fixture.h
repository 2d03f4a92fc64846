/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef RECV_FIXTURE_H
#define RECV_FIXTURE_H
/* Requests that were sent, timers that expire, packets that go out again: for the tests of
 * RequesterRecvControl. */
#include "requester_fixture.h"

/* The PSN of packet n. */
#define P(n) psn_add(FX_PSN, n)

/* Sends everything put and drops the frames: the network has them. */
static inline void sent(void)
{
	segmentation_poll(fx->e);
	fx_unfill(CHANNEL_RPG_TXA);
	fx_unfill(CHANNEL_RTC_TC);
}

/* n SENDs of one packet, WQEs at 0, 64, ... */
static inline void sends(unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		send_request(0, USER_SEND, 16, 64 * i);
	sent();
}

static inline void assert_retransmission(uint8_t opcode, uint32_t psn)
{
	struct packet p;

	assert_true(take_packet(CHANNEL_RRC_RPG, &p));
	assert_int_equal(p.headers.opcode, opcode);
	assert_int_equal(p.headers.psn, psn);
}

static inline void assert_no_retransmission(void)
{
	assert_int_equal(fx_ring_count(CHANNEL_RRC_RPG), 0);
}

static inline void put_timer_event(unsigned qp, enum timer_kind kind, enum timer_expiry expiry)
{
	struct rte_mbuf *m = rte_mbuf_raw_alloc(fx->descriptors);

	*timer_event_of(m) = (struct timer_event){.qpn = fx->qp[qp]->qpn,
						  .timer = kind,
						  .expiry = expiry,
						  .epoch = fx->qp[qp]->epoch};
	fx_put(CHANNEL_TC_RRC, m);
}

/* An expiry into TC_RRC, in time. Not polled. */
static inline void put_expiry(unsigned qp, enum timer_kind kind)
{
	if (kind == TIMER_LOSS)
		fx->e->now_ns = RTE_MAX(fx->e->now_ns,
					qp_quiet_since(fx->qp[qp]) + qp_timeout_ns(fx->qp[qp]));
	put_timer_event(qp, kind, TIMER_EXPIRED);
}

static inline void expire(unsigned qp, enum timer_kind kind)
{
	put_expiry(qp, kind);
	rrc_poll(fx->e);
}

/* Of queue pair 0, after that time. */
static inline void probe_after(uint64_t ns)
{
	fx->e->now_ns += ns;
	put_timer_event(0, TIMER_LOSS, TIMER_PROBE);
	rrc_poll(fx->e);
}

static inline void nak(uint32_t psn)
{
	respond(0, psn, aeth_nak(AETH_NAK_SEQUENCE), 0);
}

static inline void read_response(uint8_t opcode, uint32_t psn, uint32_t bytes)
{
	respond_with(0,
		     (struct wire_headers){.opcode = opcode,
					   .psn = psn,
					   .syndrome = aeth_ack(AETH_CREDIT_INVALID)},
		     bytes, 1);
	rrc_poll(fx->e);
}

#endif
