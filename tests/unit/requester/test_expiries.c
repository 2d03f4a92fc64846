/* SPDX-License-Identifier: BSD-3-Clause */
/* Timers that expire, in time or too late to mean anything; waits that end; settings that change.
 */
#include "recv_fixture.h"

#define US 1000ull

static void wake_rrc(unsigned qp)
{
	struct qp *q = fx->qp[qp];

	wake_post(&fx->e->wake[WAKE_RRC], &q->wake[WAKE_RRC], q->index);
	rrc_poll(fx->e);
}

/* For a destroyed queue pair, and for one that has been reset since. */
TEST(expiry__of_another_time)
{
	struct rte_mbuf *m;

	sends(1);
	for (unsigned i = 0; i < 2; i++) {
		put_expiry(0, TIMER_LOSS);
		m = fx_take(CHANNEL_TC_RRC);
		if (i)
			timer_event_of(m)->qpn ^= 0x800000;
		else
			timer_event_of(m)->epoch++;
		fx_put(CHANNEL_TC_RRC, m);
		rrc_poll(fx->e);
	}
	fx_assert_counter(loss_timeouts, 0);
	expire(0, TIMER_LOSS);
	fx_assert_counter(loss_timeouts, 1);
}

/* ---- RNR ---- */

/* As if the NAK had been lost: it counts no retry, and the QP does not wait for a timer that is not
 * armed. */
TEST(rnr__no_room_for_the_timer)
{
	struct qp *q = fx->qp[0];

	sends(1);
	fx_fill(CHANNEL_RRC_TC, 0);
	respond(0, P(0), aeth_rnr(1), 0);
	assert_int_equal(q->rrc.rnr_waiting, 0);
	assert_int_equal(q->rrc.rnr_left, q->rnr_retry);
	fx_unfill(CHANNEL_RRC_TC);
	respond(0, P(0), aeth_rnr(1), 0);
	assert_int_equal(q->rrc.rnr_waiting, 1);
}

/* ---- settings that change in SQD ---- */

TEST(settings__count_from_now_on)
{
	struct qp *q = fx->qp[0];
	uint64_t before = q->rrc.progress_ns;

	q->retry_cnt = 6;
	wake_rrc(0);
	assert_int_equal(q->rrc.retry_left, 3); /* in SQD only */
	q->state = QP_SQD;
	fx->e->now_ns += 100 * US;
	wake_rrc(0);
	assert_int_equal(q->rrc.retry_left, 6);
	assert_true(q->rrc.progress_ns == before); /* no wait was ended */
	q->rrc.rnr_waiting = 1;
	wake_rrc(0);
	assert_int_equal(q->rrc.rnr_waiting, 0);
	assert_true(q->rrc.progress_ns == fx->e->now_ns);
}

/* The Loss timer was armed for long: it rests, or, if something is sent again by then, it is on
 * time with that. */
TEST(settings__loss_timer)
{
	struct qp *q = fx->qp[0];
	uint64_t tick = fx->e->settings.timer_tick_ns, start;

	fx->e->settings.first_probe_us = 0;
	for (unsigned i = 0; i < 2; i++) {
		q->timeout = 31;
		q->state = QP_RTS;
		send_request(0, USER_SEND, 8, 0);
		segmentation_poll(fx->e);
		requester_recv_poll(fx->e);
		assert_int_equal(q->tc.armed[TIMER_LOSS], 1);
		respond_ack(0, P(2 * i));
		q->state = QP_SQD;
		q->timeout = 8;
		wake_rrc(0);
		start = fx->e->now_ns;
		q->state = QP_RTS;
		if (i) {
			send_request(0, USER_SEND, 8, 0);
			segmentation_poll(fx->e);
			fx_unfill(CHANNEL_RTC_TC);
		}
		while (fx->e->now_ns < start + 2 * tick) {
			fx->e->now_ns += tick / 4;
			tc_poll(fx->e);
		}
		assert_int_equal(q->tc.armed[TIMER_LOSS], i);
		if (!i)
			q->rtc.next_psn = q->rrc.unacked_psn = P(2);
	}
	while (!fx_ring_count(CHANNEL_TC_RRC)) {
		fx->e->now_ns += tick / 4;
		tc_poll(fx->e);
	}
	assert_in_range(fx->e->now_ns - start, qp_timeout_ns(q), qp_timeout_ns(q) + 2 * tick);
	tc_stop(fx->e, q);
	fx_unfill(CHANNEL_TC_RRC);
}
