/* SPDX-License-Identifier: BSD-3-Clause */
/* RespPktGen: quanta, order behind long READs, missing buffers and room, errors in the middle, QPs
 * that go away. */
#include "resp_order.h"
#include "resp_pkt_gen.h"
#include "responder_fixture.h"

static void assert_read(uint8_t opcode, uint32_t psn)
{
	const struct fx_frame *f = fx_frame();

	assert_int_equal(f->h.opcode, opcode);
	assert_int_equal(f->h.psn, psn & PSN_MASK);
}

/* A whole answer of that many packets. */
static void assert_answer(uint32_t psn, uint32_t packets)
{
	assert_read(WIRE_RC_READ_RESP_FIRST, psn);
	for (uint32_t i = 1; i + 1 < packets; i++)
		assert_read(WIRE_RC_READ_RESP_MIDDLE, psn + i);
	assert_read(WIRE_RC_READ_RESP_LAST, psn + packets - 1);
}

TEST(no_buffer__continues_later)
{
	struct rte_mbuf *all[255];
	unsigned n = 0;

	while (n < 255 && (all[n] = rte_pktmbuf_alloc(fx->e.packets)))
		n++;
	fx_send_write(FX_QPN, FX_PSN, FX_KEY);
	fx_send_read(FX_QPN, FX_PSN + 1, 6);
	fx_poll(3);
	fx_assert_no_frame();
	assert_true(fx_counter(COUNTER_packet_empty) > 0);
	for (unsigned i = 0; i < 4; i++)
		rte_pktmbuf_free(all[--n]);
	responder_exec_poll(&fx->e);
	assert_int_equal(rte_ring_count(fx->e.channel[CHANNEL_RESPG_TXA].ring), 4);
	while (n)
		rte_pktmbuf_free(all[--n]);
	fx_poll(2);
	fx_assert_ack(FX_PSN, 31, 1);
	assert_answer(FX_PSN + 1, 6);
	fx_assert_no_frame();
}

TEST(no_room__continues_later)
{
	struct channel *out = &fx->e.channel[CHANNEL_RESPG_TXA];
	struct rte_mbuf *m;

	fx_send_read(FX_QPN, FX_PSN, 100);
	while (channel_room(out) > 3) {
		m = rte_pktmbuf_alloc(fx->rx);
		assert_non_null(m);
		channel_put_one(out, m);
	}
	responder_exec_poll(&fx->e);
	responder_exec_poll(&fx->e);
	assert_int_equal(channel_room(out), 0);
	for (unsigned i = 0; i < channel_infos[CHANNEL_RESPG_TXA].depth - 3; i++) {
		assert_int_equal(channel_take(out, &m, 1), 1);
		rte_pktmbuf_free(m);
	}
	fx_poll(5);
	assert_answer(FX_PSN, 100);
	fx_assert_no_frame();
}

static void close_qp(struct qp *q)
{
	q->state = QP_RST;
	q->qpn = 0;
	wake_post(&fx->e.wake[WAKE_EE], &q->wake[WAKE_EE], q->index);
}

TEST(qp_closed__is_released_at_once)
{
	fx->qp2->rq_psn = psn_add(FX_PSN, 1000);
	fx_send_read(FX_QPN, FX_PSN, 200);
	fx_send_read(FX_QPN2, fx->qp2->rq_psn, 100);
	fx_poll(1);
	fx->qp->closed = fx->qp2->closed = 0;
	close_qp(fx->qp);
	fx_poll(1);
	assert_int_equal(fx->qp->closed, 1u << WAKE_EE);
	assert_false(fx->qp->respg.active.listed);
	assert_null(fx->qp->respg.head);
	fx_poll(5);
	assert_int_equal(fx->frames[fx->frame_count - 1].h.psn, psn_add(FX_PSN, 1099));
	assert_int_equal(fx->qp2->closed, 0);
}

/* It leaves although RespPktGen cannot take what was answered: that is not sent if its number is soon in
 * use again. What others are answered is. */
TEST(qp_closed__answers_in_the_ring)
{
	struct channel *out = &fx->e.channel[CHANNEL_RESPG_TXA];
	struct rte_mbuf *m;

	while (channel_room(out))
		channel_put_one(out, rte_pktmbuf_alloc(fx->e.packets));
	fx_send_write(FX_QPN, FX_PSN, FX_KEY);
	fx_send_write(FX_QPN2, FX_PSN, FX_KEY);
	responder_exec_poll(&fx->e);
	assert_int_equal(ring_used(fx->e.channel[CHANNEL_EE_RESPG].ring), 2);
	close_qp(fx->qp);
	responder_exec_poll(&fx->e);
	assert_int_equal(fx->qp->closed, 1u << WAKE_EE);
	fx->qp->qpn = FX_QPN;
	fx->qp->state = QP_RTS;
	while (channel_take(out, &m, 1))
		rte_pktmbuf_free(m);
	fx_poll(2);
	assert_int_equal(fx->frame_count, 1);
	fx_assert_counter(drop_qp_state, 1);
}

TEST(qp_closed__inside_the_list)
{
	struct qp *q[3] = {fx->qp, fx->qp2, qp_at(&fx->qps, 5)};

	memcpy(q[2], q[1], sizeof(*q[2]));
	q[2]->index = 5;
	q[2]->qpn = FX_QPN + 4;
	for (unsigned i = 0; i < 3; i++)
		fx_send_read(q[i]->qpn, FX_PSN, 100);
	fx_poll(1);
	close_qp(q[1]);
	close_qp(q[2]);
	fx_poll(1);
	assert_true(q[0]->respg.active.listed);
	assert_int_equal(q[1]->closed & q[2]->closed, 1u << WAKE_EE);
	fx_poll(5);
	assert_false(q[0]->respg.active.listed);
}

/* The fixture looks for the mark. */
TEST(icrc__is_omitted)
{
	fx->e.settings.icrc = ICRC_NEVER;
	fx->qp->mtu_bytes = 1024;
	fx_send_write(FX_QPN, FX_PSN, FX_KEY);
	fx_send_read(FX_QPN, FX_PSN + 1, 3);
	fx_send_read(FX_QPN, FX_PSN + 2, 1);
	fx_poll(1);
	fx_assert_ack(FX_PSN, 31, 1);
	assert_read(WIRE_RC_READ_RESP_ONLY, FX_PSN + 1);
	assert_read(WIRE_RC_READ_RESP_ONLY, FX_PSN + 2);
	fx_assert_no_frame();
}
