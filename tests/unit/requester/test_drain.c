/* SPDX-License-Identifier: BSD-3-Clause */
/* SQD: what has begun is finished, nothing new begins; drained when all is acknowledged. */
#include "recv_fixture.h"

static void enter_sqd(unsigned qp, bool notify)
{
	fx->qp[qp]->sqd_notify = notify;
	fx->qp[qp]->sqd_turn++;
	fx->qp[qp]->state = QP_SQD;
	wake_sender_of(qp);
	rtc_poll(fx->e);
}

static void assert_drained(unsigned qp, unsigned events)
{
	assert_int_equal(fx->qp[qp]->rtc.drained, fx->qp[qp]->sqd_turn);
	assert_int_equal(fx_counter(COUNTER_events), events);
	if (events) {
		assert_int_equal(fx->page->eq[events - 1].type, EQE_SQ_DRAINED);
		assert_int_equal(fx->page->eq[events - 1].number, fx->qp[qp]->qpn);
	}
}

static void assert_not_drained(unsigned qp)
{
	assert_int_not_equal(fx->qp[qp]->rtc.drained, fx->qp[qp]->sqd_turn);
	fx_assert_counter(events, 0);
}

TEST(sqd__idle_queue_is_drained_at_once)
{
	enter_sqd(0, true);
	assert_drained(0, 1);
	wake_sender_of(0);
	rtc_poll(fx->e);
	assert_drained(0, 1); /* once */
	fx->qp[0]->state = QP_RTS;
	wake_sender_of(0);
	rtc_poll(fx->e);
	assert_int_equal(fx->qp[0]->rtc.parked, PARK_NONE);
	enter_sqd(0, true);
	assert_drained(0, 2);
}

TEST(sqd__uc)
{
	fx_service(0, SERVICE_UC);
	fx_fill(CHANNEL_RTC_RPG, 1);
	send_request(0, USER_SEND, 2 * FX_MTU, 0);
	send_request(0, USER_SEND, 8, 64);
	rtc_poll(fx->e);
	fx_fill(CHANNEL_RTC_RPG, 0);
	enter_sqd(0, true);
	assert_not_drained(0);
	fx_unfill(CHANNEL_RTC_RPG);
	rtc_poll(fx->e);
	assert_drained(0, 1);
	fx_assert_cqe(USER_SEND, 0);
	fx_assert_no_cqe();
	fx->qp[0]->state = QP_RTS;
	wake_sender_of(0);
	rtc_poll(fx->e);
	fx_assert_cqe(USER_SEND, 64);
}

/* A message that continues in turns: not drained between them. */
TEST(sqd__not_drained_within_a_message)
{
	fx_service(0, SERVICE_UC);
	fx->e->settings.quantum_bytes = FX_MTU;
	send_request(0, USER_SEND, 3 * FX_MTU, 0);
	rtc_poll(fx->e);
	enter_sqd(0, true);
	assert_not_drained(0);
	rtc_poll(fx->e);
	assert_drained(0, 1);
	assert_int_equal(fx_ring_count(CHANNEL_RTC_RPG), 3);
}

/* SQD2SQD has changed the counters: they count from now on. */
TEST(sqd__retry_counters_reloaded)
{
	struct qp *q = fx->qp[0];

	sends(1);
	q->state = QP_SQD;
	q->retry_cnt = 6;
	q->rnr_retry = 5;
	wake_post(&fx->e->wake[WAKE_RRC], &q->wake[WAKE_RRC], q->index);
	rrc_poll(fx->e);
	assert_int_equal(q->rrc.retry_left, 3); /* not while something is outstanding */
	q->rrc.unacked_psn = q->rtc.next_psn;
	wake_post(&fx->e->wake[WAKE_RRC], &q->wake[WAKE_RRC], q->index);
	rrc_poll(fx->e);
	assert_int_equal(q->rrc.retry_left, 6);
	assert_int_equal(q->rrc.rnr_left, 5);
}
