/* SPDX-License-Identifier: BSD-3-Clause */
/* RequesterTransControl alone: requests in DP_RTC, packets in RTC_RPG, bad requests in RTC_RRC. */
#include "requester_fixture.h"

TEST(rtc_poll__arms_the_loss_timer)
{
	struct rte_mbuf *m;

	send_request(0, USER_SEND, 10, 0);
	rtc_poll(fx->e);
	m = fx_take(CHANNEL_RTC_TC);
	assert_non_null(m);
	assert_int_equal(timer_event_of(m)->qpn, fx->qp[0]->qpn);
	assert_int_equal(timer_event_of(m)->timer, TIMER_LOSS);
	assert_true(timer_event_of(m)->value_ns ==
		    FIRST_LOOK_TICKS * (uint64_t)fx->e->settings.timer_tick_ns);
	assert_true(fx->qp[0]->rtc.busy_since_ns == FX_START_NS);
	rte_mbuf_raw_free(m);
	fx->qp[1]->timeout = 0;
	send_request(1, USER_SEND, 10, 0);
	rtc_poll(fx->e);
	m = fx_take(CHANNEL_RTC_TC);
	assert_non_null(m);
	assert_true(timer_event_of(m)->value_ns == GIVE_WAY_NS);
	rte_mbuf_raw_free(m);
}

/* ---- turns and buffers ---- */

/* A queue pair whose peer is dead leaves others theirs. */
TEST(rtc_poll__buffer_share)
{
	fx->e->mq->sw_free.size = 16;
	send_request(0, USER_RDMA_WRITE, 100 * FX_MTU, 0);
	rtc_poll(fx->e);
	assert_int_equal(mq_count(&fx->qp[0]->mq.sw), 9); /* 8 held <= 8 free: one more */
	assert_int_equal(fx->qp[0]->rtc.parked, PARK_BUFFER);
	fx_assert_counter(park_buffer, 1);
	for (unsigned i = 1; i < 4; i++) {
		send_request(i, USER_RDMA_WRITE, 100 * FX_MTU, 0);
		rtc_poll(fx->e);
		assert_true(mq_count(&fx->qp[i]->mq.sw) >= 1);
		assert_int_equal(fx->qp[i]->rtc.parked, PARK_BUFFER);
	}
	fx_unfill(CHANNEL_RTC_RPG);
	acknowledge_all(1);
	wake_sender_of(1);
	rtc_poll(fx->e);
	assert_true(fx_ring_count(CHANNEL_RTC_RPG) >= 1);
	assert_int_equal(mq_count(&fx->qp[0]->mq.sw), 9);
}

TEST(rtc_poll__no_packet_buffer)
{
	fx_exhaust(fx->packets, 0);
	send_request(0, USER_RDMA_WRITE, 3 * FX_MTU, 0);
	rtc_poll(fx->e);
	assert_int_equal(fx_ring_count(CHANNEL_RTC_RPG), 0);
	assert_true(fx_counter(COUNTER_packet_empty) > 0);
	fx_refill();
	rtc_poll(fx->e);
	assert_int_equal(fx_ring_count(CHANNEL_RTC_RPG), 3);
}

TEST(rtc_poll__timer_ring_full)
{
	fx_fill(CHANNEL_RTC_TC, 0);
	send_request(0, USER_SEND, 8, 0);
	rtc_poll(fx->e);
	fx_unfill(CHANNEL_RTC_TC);
	rtc_poll(fx->e);
	assert_int_equal(fx_ring_count(CHANNEL_RTC_TC), 1);
}

/* ---- parking ---- */

/* Another lcore holds what is needed to translate: the packet is made when that is over. */
TEST(rtc_poll__waits_for_virt_to_phys)
{
	struct tpt_hold hold;

	fx_service(1, SERVICE_UC);
	for (unsigned i = 0; i < 2; i++) {
		assert_true(tpt_take(&fx->h->v2p.mpt_cache, v2p_index(&fx->h->v2p, FX_KEY), NULL,
				     &hold));
		send_request(i, USER_SEND, 8 + 8 * i, 64 * i); /* not the same request */
		for (unsigned n = 0; n < 3; n++)
			segmentation_poll(fx->e);
		assert_int_equal(fx_ring_count(CHANNEL_RPG_TXA), 0);
		fx_assert_counter(v2p_pending, i + 1);
		tpt_release(&hold);
		segmentation_poll(fx->e);
		assert_int_equal(fx_ring_count(CHANNEL_RPG_TXA), 1);
		fx_unfill(CHANNEL_RPG_TXA);
		assert_null(fx->qp[i]->rtc.head);
	}
	fx_assert_counter(bad_wqe_access, 0);
	fx_assert_cqe(USER_SEND, 64);
}

/* ---- errors ---- */

static void assert_bad(uint32_t wqe_offset, enum wire_outcome outcome)
{
	struct rte_mbuf *m = fx_take(CHANNEL_RTC_RRC);

	assert_non_null(m);
	assert_int_equal(request_of(m)->wqe_offset, wqe_offset);
	assert_int_equal(request_of(m)->outcome, outcome);
	rte_mbuf_raw_free(m);
}

TEST(rtc_poll__bad_request_ring_full)
{
	struct rte_mbuf *m = fx_request(0, USER_SEND, 8, 64);

	request_of(m)->outcome = OUTCOME_LOCAL_QP_OP;
	fx_fill(CHANNEL_RTC_RRC, 0);
	fx_put(CHANNEL_DP_RTC, m);
	rtc_poll(fx->e);
	fx_unfill(CHANNEL_RTC_RRC);
	rtc_poll(fx->e);
	assert_bad(64, OUTCOME_LOCAL_QP_OP);
}

/* A READ finds no place for its entries: its turn is repeated, until there is one. An ATOMIC WRITE
 * has none to keep. */
TEST(rtc_poll__no_read_buffer)
{
	uint32_t size = fx->e->mq->re_free.size;

	fx->e->mq->re_free.size = 0;
	send_request(0, USER_RDMA_READ, 8, 0);
	rtc_poll(fx->e);
	assert_int_equal(fx_ring_count(CHANNEL_RTC_RPG), 0);
	assert_int_equal(fx->qp[0]->rtc.parked, PARK_NONE);
	fx->e->mq->re_free.size = size;
	fx_exhaust(fx->packets, 0);
	rtc_poll(fx->e);
	assert_int_equal(fx_ring_count(CHANNEL_RTC_RPG), 0);
	assert_int_equal(fx->qp[0]->rtc.reads_issued, 0);
	fx_refill();
	rtc_poll(fx->e);
	assert_int_equal(fx_ring_count(CHANNEL_RTC_RPG), 1);
	fx->e->mq->re_free.size = 0;
	send_request(1, USER_ATOMIC_WRITE, 8, 0);
	rtc_poll(fx->e);
	assert_int_equal(fx_ring_count(CHANNEL_RTC_RPG), 2);
	fx->e->mq->re_free.size = size;
}

TEST(rtc_poll__unreliable_output_full)
{
	fx_service(0, SERVICE_UC);
	fx_fill(CHANNEL_RTC_RPG, 1);
	send_request(0, USER_SEND, 2 * FX_MTU, 64);
	rtc_poll(fx->e);
	fx_assert_no_cqe();
	fx_unfill(CHANNEL_RTC_RPG);
	rtc_poll(fx->e);
	assert_int_equal(fx_ring_count(CHANNEL_RTC_RPG), 1);
	fx_assert_cqe(USER_SEND, 64);
}

TEST(rtc_poll__stale_request)
{
	send_request(0, USER_SEND, 8, 0);
	fx->qp[0]->epoch++;
	rtc_poll(fx->e);
	assert_int_equal(fx_ring_count(CHANNEL_RTC_RPG), 0);
	fx_assert_counter(drop_stale_wqe, 1);
}
