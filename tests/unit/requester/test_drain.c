/* SPDX-License-Identifier: BSD-3-Clause */
/* SQD: what has begun is finished, nothing new begins; drained when all is acknowledged. */
#include "recv_fixture.h"

static void assert_packets(unsigned n)
{
	rtc_poll(fx->e);
	assert_int_equal(fx_ring_count(CHANNEL_RTC_RPG), n);
	fx_unfill(CHANNEL_RTC_RPG);
}

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

TEST(sqd__event_only_if_asked_for)
{
	enter_sqd(0, false);
	assert_drained(0, 0);
}

/* Drained when all is acknowledged: RequesterRecvControl's progress wakes the QP, though it has no
 * requests. */
TEST(sqd__waits_for_acknowledgements)
{
	send_request(0, USER_SEND, 2 * FX_MTU, 0);
	assert_packets(2);
	enter_sqd(0, true);
	assert_not_drained(0);
	assert_int_equal(fx->qp[0]->rtc.parked, PARK_DRAIN);
	respond_ack(0, FX_PSN);
	rtc_poll(fx->e);
	assert_not_drained(0);
	respond_ack(0, psn_add(FX_PSN, 1));
	rtc_poll(fx->e);
	assert_drained(0, 1);
}

TEST(sqd__message_that_has_begun_is_finished)
{
	struct packet p;

	fx_fill(CHANNEL_RTC_RPG, 1);
	send_request(0, USER_SEND, 3 * FX_MTU, 0);
	send_request(0, USER_SEND, 8, 64);
	rtc_poll(fx->e);
	fx_unfill(CHANNEL_RTC_RPG);
	enter_sqd(0, true);
	assert_int_equal(fx_ring_count(CHANNEL_RTC_RPG), 2);
	assert_int_equal(fx->qp[0]->rtc.parked, PARK_DRAIN);
	assert_int_equal(fx_counter(COUNTER_park_drain), 1);
	assert_not_drained(0);
	fx_unfill(CHANNEL_RTC_RPG);
	send_request(0, USER_SEND, 8, 128);
	rtc_poll(fx->e);
	respond_ack(0, psn_add(FX_PSN, 2));
	rtc_poll(fx->e);
	assert_drained(0, 1);
	assert_int_equal(fx_ring_count(CHANNEL_RTC_RPG), 0);
	fx->qp[0]->state = QP_RTS; /* SQD2RTS: on where it stopped */
	wake_sender_of(0);
	rtc_poll(fx->e);
	for (unsigned i = 3; i < 5; i++) {
		assert_true(take_packet(CHANNEL_RTC_RPG, &p));
		assert_int_equal(p.headers.psn, psn_add(FX_PSN, i));
	}
}

static void unreliable_drains(enum qp_service service)
{
	fx_service(0, service);
	fx_fill(CHANNEL_RTC_RPG, 1);
	send_request(0, USER_SEND, service == SERVICE_UC ? 2 * FX_MTU : 8, 0);
	send_request(0, USER_SEND, 8, 64);
	rtc_poll(fx->e);
	fx_fill(CHANNEL_RTC_RPG, 0);
	enter_sqd(0, true);
	if (service == SERVICE_UC)
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

TEST(sqd__uc)
{
	unreliable_drains(SERVICE_UC);
}

TEST(sqd__ud)
{
	unreliable_drains(SERVICE_UD);
}

TEST(sqd__error_flushes_what_waits)
{
	enter_sqd(0, false);
	send_request(0, USER_SEND, 8, 64);
	rtc_poll(fx->e);
	assert_int_equal(fx_ring_count(CHANNEL_RTC_RRC), 0);
	qp_set_error(fx->e, fx->qp[0]);
	rtc_poll(fx->e);
	rrc_poll(fx->e);
	fx_assert_error(SYNDROME_WR_FLUSH, 64);
}

/* It fails while it drains: nothing is drained any more. */
TEST(sqd__error_while_it_drains)
{
	sends(1);
	enter_sqd(0, true);
	assert_int_equal(fx->qp[0]->rtc.parked, PARK_DRAIN);
	qp_set_error(fx->e, fx->qp[0]);
	acknowledge_all(0);
	wake_sender_of(0);
	rtc_poll(fx->e);
	assert_not_drained(0);
	rrc_poll(fx->e);
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

/* A Loss timer that was set with a long timeout does not outlive it. */
TEST(sqd__timer_set_anew)
{
	struct qp *q = fx->qp[0];
	struct rte_mbuf *m;

	q->timeout = 31;
	send_request(0, USER_SEND, 8, 0);
	segmentation_poll(fx->e);
	requester_recv_poll(fx->e);
	assert_int_equal(q->tc.armed[TIMER_LOSS], 1);
	respond_ack(0, P(0));
	enter_sqd(0, false);
	q->timeout = 8;
	wake_post(&fx->e->wake[WAKE_RRC], &q->wake[WAKE_RRC], q->index);
	rrc_poll(fx->e);
	fx->e->now_ns += 2 * fx->e->settings.timer_tick_ns;
	tc_poll(fx->e);
	assert_int_equal(q->tc.armed[TIMER_LOSS], 0);
	q->state = QP_RTS;
	wake_sender_of(0);
	send_request(0, USER_SEND, 8, 64);
	rtc_poll(fx->e);
	m = fx_take(CHANNEL_RTC_TC);
	assert_non_null(m);
	assert_true(timer_event_of(m)->value_ns <= 4096ull << 8);
	rte_mbuf_raw_free(m);
}

/* The RNR NAK of a packet that was sent twice may come before the acknowledgement of the other: the
 * wait outlives what it was for. It ends with its timer. */
TEST(sqd__ends_a_wait_for_nothing)
{
	struct qp *q = fx->qp[0];

	sends(1);
	respond(0, P(0), aeth_rnr(1), 0);
	requester_recv_poll(fx->e);
	assert_int_equal(q->tc.armed[TIMER_RNR], 1);
	respond_ack(0, P(0));
	assert_int_equal(q->rrc.rnr_waiting, 1);
	enter_sqd(0, false);
	wake_post(&fx->e->wake[WAKE_RRC], &q->wake[WAKE_RRC], q->index);
	rrc_poll(fx->e);
	q->state = QP_RTS;
	wake_sender_of(0);
	send_request(0, USER_SEND, 8, 64);
	for (unsigned i = 0; i < 100 && !fx_ring_count(CHANNEL_RTC_RPG); i++) {
		rtc_poll(fx->e);
		fx->e->now_ns += 1000000;
		requester_recv_poll(fx->e);
	}
	assert_int_equal(fx_ring_count(CHANNEL_RTC_RPG), 1);
}
