/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Work requests that send nothing, between the two stages of the requester: a poll's share of them,
 * what they need a buffer for, who waits for their completion and who is notified of it. Here all
 * of them bind a window to nothing, which can be done again and again.
 */
#include "recv_fixture.h"

enum { WINDOW = 0x4404 };

static struct rte_mbuf *a_bind(unsigned qp, uint8_t flags, uint32_t wqe_offset)
{
	struct rte_mbuf *m = fx_request(qp, USER_BIND_MW, 0, wqe_offset);
	const struct wqe_bind u = {.key = WINDOW};

	memcpy(request_wqe(m) + request_of(m)->data_first, &u, sizeof(u));
	request_of(m)->flags = REQUEST_LOCAL | flags;
	return m;
}

static void bind_by(unsigned qp, uint8_t flags, uint32_t wqe_offset)
{
	fx_put(CHANNEL_DP_RTC, a_bind(qp, flags, wqe_offset));
}

static void make_window(void)
{
	const struct mpt_entry w = {.key = WINDOW, .pd = FX_PD, .flags = MPT_WINDOW_1};

	assert_int_equal(v2p_write_mpt(&fx->h->v2p, &w), 0);
}

/* They are no bytes, and yet a turn has an end. */
TEST(local__a_turn_is_so_many)
{
	static const unsigned done[] = {2, 4, 5, 5};

	make_window();
	fx->e->settings.quantum_bytes = 128;
	for (unsigned i = 0; i < 5; i++)
		bind_by(0, 0, 0);
	for (unsigned i = 0; i < RTE_DIM(done); i++) {
		rtc_poll(fx->e);
		fx_assert_counter(binds, done[i]);
	}
}

/* Another QP has all buffers: an unsignalled operation needs none; a QP that needs one and has none
 * outstanding is not parked, since nothing would wake it. */
TEST(local__without_buffers)
{
	make_window();
	for (unsigned i = 0; i < 8; i++)
		send_request(1, USER_SEND, 16, 0);
	sent();
	fx->e->mq->sw_free.size = 8;
	assert_int_equal(mq_free_count(&fx->e->mq->sw_free), 0);
	bind_by(0, 0, 0);
	bind_by(0, REQUEST_SIGNALED, 64);
	rtc_poll(fx->e);
	rtc_poll(fx->e);
	fx_assert_counter(binds, 1);
	assert_int_equal(fx->qp[0]->rtc.parked, PARK_NONE);
	respond_ack(1, P(7));
	for (unsigned i = 0; i < 8; i++)
		fx_assert_cqe(USER_SEND, 0);
	rtc_poll(fx->e);
	fx_assert_counter(binds, 2);
	rrc_poll(fx->e);
	fx_assert_cqe(USER_BIND_MW, 64);
}

/* Another lcore holds what it needs: it continues when that is over, and counts once. */
TEST(local__waits_for_virt_to_phys)
{
	struct v2p *v = &fx->h->v2p;
	struct tpt_hold hold;

	make_window();
	fx_service(1, SERVICE_UC);
	for (unsigned qp = 0; qp < 2; qp++) {
		assert_true(tpt_take(&v->mpt_cache, v2p_index(v, WINDOW), NULL, &hold));
		bind_by(qp, 0, 0);
		rtc_poll(fx->e);
		tpt_release(&hold);
		fx_assert_counter(binds, qp);
		rtc_poll(fx->e);
		fx_assert_counter(binds, qp + 1);
		fx_assert_counter(bad_bind, 0);
	}
}

/* It has no sequence number, and does not wait for one. */
TEST(local__window_full)
{
	struct qp *q = fx->qp[0];
	uint32_t next = q->rtc.next_psn;

	make_window();
	q->rtc.next_psn = psn_add(next, PSN_WINDOW);
	bind_by(0, 0, 0);
	rtc_poll(fx->e);
	fx_assert_counter(binds, 1);
	q->rtc.next_psn = next;
}

/* Its completion says so, although the queue pair fails before. */
TEST(local__executed_before_an_error)
{
	make_window();
	bind_by(0, REQUEST_SIGNALED, 64);
	rtc_poll(fx->e);
	fx_assert_counter(binds, 1);
	qp_set_error(fx->e, fx->qp[0]);
	rrc_poll(fx->e);
	fx_assert_cqe(USER_BIND_MW, 64);
}

/* It completes without any packet; SQD waits for that, and is notified. */
TEST(local__completes_by_itself)
{
	struct qp *q = fx->qp[0];

	make_window();
	bind_by(0, REQUEST_SIGNALED, 64);
	rtc_poll(fx->e);
	fx_assert_counter(binds, 1);
	fx_assert_no_cqe();
	q->sqd_turn++;
	q->state = QP_SQD;
	wake_sender_of(0);
	rtc_poll(fx->e);
	assert_int_not_equal(q->rtc.drained, q->sqd_turn);
	assert_int_equal(q->rtc.parked, PARK_DRAIN);
	rrc_poll(fx->e);
	fx_assert_cqe(USER_BIND_MW, 64);
	rtc_poll(fx->e);
	assert_int_equal(q->rtc.drained, q->sqd_turn);
}

/* It was executed while its queue pair failed, and what lay before it was flushed already: so is it
 * (IBTA 10.3.1.6). */
TEST(local__behind_what_was_flushed)
{
	make_window();
	send_request(0, USER_SEND, 16, 0);
	sent();
	qp_set_error(fx->e, fx->qp[0]);
	rrc_poll(fx->e);
	fx_assert_error(SYNDROME_WR_FLUSH, 0);
	fx->qp[0]->state = QP_RTS; /* as the visit found it */
	bind_by(0, REQUEST_SIGNALED, 64);
	rtc_poll(fx->e);
	fx_assert_counter(binds, 1);
	fx->qp[0]->state = QP_ERR;
	rrc_poll(fx->e);
	fx_assert_error(SYNDROME_WR_FLUSH, 64);
}
