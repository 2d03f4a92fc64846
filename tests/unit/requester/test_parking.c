/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Every reason for which RequesterTransControl sets a queue pair aside (enum park_reason): what
 * makes it so, that it stays so for as long as nothing changes, what ends it, and that the queue
 * pair then continues with the very request that waited. Both stages of the requester, by
 * themselves: nobody but them wakes the queue pair. A reason without a row fails.
 */
#include "recv_fixture.h"

static void send_one(void)
{
	send_request(0, USER_SEND, 16, 0);
}

static void buffer_enter(void)
{
	fx->e->mq->sw_free.size = 16; /* 8 held and 8 left: the tenth packet has to wait */
	send_request(0, USER_RDMA_WRITE, 12 * FX_MTU, 0);
}

static void buffer_leave(void)
{
	respond_ack(0, P(8));
}

static void fence_enter(void)
{
	send_request(0, USER_RDMA_READ, 8, 0);
	sent();
	send_flags(0, USER_SEND, 8, REQUEST_FENCE);
}

static void read_leave(void)
{
	read_response(WIRE_RC_READ_RESP_ONLY, P(0), 8);
}

static void reads_enter(void)
{
	fx->qp[0]->max_rd_atomic = 1;
	send_request(0, USER_RDMA_READ, 8, 0);
	send_request(0, USER_RDMA_READ, 8, 64);
}

static void credit_enter(void)
{
	fx->qp[0]->rrc.credits = CREDITS_CAME;
	send_request(0, USER_SEND, 2 * FX_MTU, 0);
}

static void credit_leave(void)
{
	respond(0, P(0), aeth_ack(1), 0);
}

static void rnr_enter(void)
{
	sends(1);
	respond(0, P(0), aeth_rnr(1), 0);
	send_one();
}

static void rnr_leave(void)
{
	fx->e->now_ns += 1000000;
}

/* Four READs of 2^31 bytes are as many responses as there may be PSNs outstanding. */
static void psn_enter(void)
{
	fx->qp[0]->max_rd_atomic = 16;
	for (unsigned i = 0; i < 4; i++)
		send_request(0, USER_RDMA_READ, 1u << 31, 64 * i);
	send_one();
}

/* The last response of the first one, as if all before it had come. */
static void psn_leave(void)
{
	uint32_t last = psn_packets(1u << 31, FX_MTU) - 1;

	fx->qp[0]->rrc.read_packets = last;
	fx->qp[0]->rrc.unacked_psn = P(last);
	read_response(WIRE_RC_READ_RESP_LAST, P(last), FX_MTU);
}

static void retransmit_enter(void)
{
	sends(2);
	fx_fill(CHANNEL_RRC_RPG, 0);
	respond(0, P(0), aeth_nak(AETH_NAK_SEQUENCE), 0);
	send_one();
}

static void retransmit_leave(void)
{
	fx_unfill(CHANNEL_RRC_RPG);
}

/* After a loss 32 packets may be outstanding, those that are sent again first. */
static void window_enter(void)
{
	sends(40);
	respond(0, P(0), aeth_nak(AETH_NAK_SEQUENCE), 0);
	sent();
	respond_ack(0, P(19));
	sent();
	rrc_poll(fx->e);
	for (unsigned i = 0; i < 20; i++)
		send_one();
}

static void window_leave(void)
{
	respond_ack(0, P(39));
}

static void drain_enter(void)
{
	fx->qp[0]->state = QP_SQD;
	send_one();
}

/* The CEU's RTS. */
static void drain_leave(void)
{
	fx->qp[0]->state = QP_RTS;
	wake_sender_of(0);
}

static const struct {
	enum counter counter;
	const char *text;
	void (*enter)(void); /* ends with a request that has to wait */
	void (*leave)(void);
} rows[] = {
	[PARK_BUFFER] = {COUNTER_park_buffer, "retransmit buffers", buffer_enter, buffer_leave},
	[PARK_FENCE] = {COUNTER_park_fence, "READs and atomics before a fence", fence_enter,
			read_leave},
	[PARK_READS] = {COUNTER_park_reads, "fewer READs and atomics outstanding", reads_enter,
			read_leave},
	[PARK_CREDIT] = {COUNTER_park_credit, "credits", credit_enter, credit_leave},
	[PARK_RNR] = {COUNTER_park_rnr, "the RNR timer", rnr_enter, rnr_leave},
	[PARK_PSN] = {COUNTER_park_psn, "fewer PSNs outstanding", psn_enter, psn_leave},
	[PARK_RETRANSMIT] = {COUNTER_park_retransmit, "retransmission", retransmit_enter,
			     retransmit_leave},
	[PARK_WINDOW] = {COUNTER_park_window, "the window after a loss", window_enter,
			 window_leave},
	[PARK_DRAIN] = {COUNTER_park_drain, "leaving SQD", drain_enter, drain_leave},
};

static void poll_requester(unsigned times)
{
	while (times--) {
		hca_poll_stage(fx->e, STAGE_SEGMENTATION);
		fx_unfill(CHANNEL_RPG_TXA);
		hca_poll_stage(fx->e, STAGE_REQUESTER_RECV);
	}
}

static void assert_parked(unsigned reason)
{
	struct qp *q = fx->qp[0];

	if (q->rtc.parked != reason || fx_counter(rows[reason].counter) != 1)
		fail_msg("parked for %u, not %u; %s %lu", q->rtc.parked, reason,
			 counter_name(rows[reason].counter), fx_counter(rows[reason].counter));
	assert_non_null(q->rtc.head);
	assert_string_equal(requester_waits_for(q), rows[reason].text);
}

static void enter_and_leave(unsigned reason)
{
	struct qp *q = fx->qp[0];
	uint32_t psn;

	rows[reason].enter();
	rtc_poll(fx->e);
	assert_parked(reason);
	psn = q->rtc.next_psn;
	for (unsigned i = 0; i < 3; i++) { /* ReqPktGen not: what RRC_RPG holds stays there */
		rtc_poll(fx->e);
		rrc_poll(fx->e);
		tc_poll(fx->e);
	}
	assert_parked(reason);
	assert_int_equal(q->rtc.next_psn, psn);
	rows[reason].leave();
	poll_requester(4);
	if (q->rtc.parked || q->rtc.head)
		fail_msg("%s: still parked for %u", counter_name(rows[reason].counter),
			 q->rtc.parked);
	assert_true(psn_after(q->rtc.next_psn, psn));
	assert_string_equal(requester_waits_for(q), "nothing");
}

TEST(parking__every_reason_is_entered_and_left)
{
	assert_int_equal(RTE_DIM(rows), PARK_REASONS);
	for (unsigned reason = PARK_NONE + 1; reason < PARK_REASONS; reason++) {
		if (!rows[reason].enter)
			fail_msg("reason %u has no row", reason);
		enter_and_leave(reason);
		fx_teardown(state);
		fx_setup(state);
	}
}

/* ---- what a queue pair waits for comes while it is being parked ---- */

/*
 * RequesterRecvControl may change the condition that a QP waits for after RequesterTransControl has
 * checked it and before it has stored `parked`: then the QP is not woken, and has to notice that
 * itself. In between the Loss timer is set, with an event from a pool: here the pool's allocation
 * makes the change.
 */
static void (*meanwhile)(void);

static int hooked_alloc(struct rte_mempool *mp)
{
	return -ENOTSUP; /* an existing pool is made to use these */
}

static void hooked_free(struct rte_mempool *mp)
{
	rte_ring_free(mp->pool_data);
}

static int hooked_enqueue(struct rte_mempool *mp, void *const *objects, unsigned n)
{
	return rte_ring_mp_enqueue_bulk(mp->pool_data, objects, n, NULL) ? 0 : -ENOBUFS;
}

static int hooked_dequeue(struct rte_mempool *mp, void **objects, unsigned n)
{
	void (*hook)(void) = meanwhile;

	meanwhile = NULL;
	if (hook)
		hook();
	return rte_ring_mc_dequeue_bulk(mp->pool_data, objects, n, NULL) ? 0 : -ENOBUFS;
}

static unsigned hooked_count(const struct rte_mempool *mp)
{
	return rte_ring_count(mp->pool_data);
}

static const struct rte_mempool_ops hooked = {.name = "hooked",
					      .alloc = hooked_alloc,
					      .free = hooked_free,
					      .enqueue = hooked_enqueue,
					      .dequeue = hooked_dequeue,
					      .get_count = hooked_count};

/* From now on `change` happens once, when something is taken from that pool. */
static void change_when_taken(struct rte_mempool *pool, void (*change)(void))
{
	static int index = -1;

	if (index < 0)
		index = rte_mempool_register_ops(&hooked);
	assert_true(index >= 0);
	pool->ops_index = index;
	meanwhile = change;
}

/* When RequesterTransControl has judged queue pair 0 and takes an event, which it does when
 * something is outstanding and no timer set. */
static void change_meanwhile(void (*change)(void))
{
	fx_unfill(CHANNEL_RTC_TC);
	change_when_taken(fx->e->events, change);
}

/* One poll parks the queue pair and unparks it; the next one sends. It is not woken. */
static void assert_noticed(enum counter reason)
{
	struct qp *q = fx->qp[0];

	rtc_poll(fx->e);
	assert_null(meanwhile);
	assert_int_equal(fx_counter(reason), 1);
	assert_int_equal(q->rtc.parked, PARK_NONE);
	rtc_poll(fx->e);
	assert_null(q->rtc.head);
	assert_int_equal(q->rtc.parked, PARK_NONE);
	assert_int_equal(fx_counter(reason), 1);
}

/* Something else changes: it stays parked. */
static void nothing(void)
{
}

static void assert_stays(enum park_reason reason)
{
	rtc_poll(fx->e);
	assert_null(meanwhile);
	assert_int_equal(fx->qp[0]->rtc.parked, reason);
	rtc_poll(fx->e);
	assert_int_equal(fx->qp[0]->rtc.parked, reason);
	assert_non_null(fx->qp[0]->rtc.head);
}

static void rnr_over(void)
{
	fx->qp[0]->rrc.rnr_waiting = 0;
}

TEST(park_qp__rnr_ends_meanwhile)
{
	sends(1);
	fx->qp[0]->rrc.rnr_waiting = 1;
	send_one();
	change_meanwhile(rnr_over);
	assert_noticed(COUNTER_park_rnr);
}

TEST(park_qp__stays_when_nothing_has_changed)
{
	sends(1);
	fx->qp[0]->rrc.rnr_waiting = 1;
	send_one();
	change_meanwhile(nothing);
	assert_stays(PARK_RNR);
}

TEST(park_qp__buffers_come_meanwhile)
{
	buffer_enter();
	change_meanwhile(buffer_leave);
	assert_noticed(COUNTER_park_buffer);
}

/* It may be sent as far as the peer is concerned, but there is still no buffer. */
TEST(park_qp__stays_without_buffers)
{
	buffer_enter();
	change_meanwhile(nothing);
	assert_stays(PARK_BUFFER);
}

/* The wait is over and there is no buffer: it waits for that then, not for what has come. */
static void rnr_over_without_buffers(void)
{
	rnr_over();
	fx->e->mq->sw_free.size = 1;
}

TEST(park_qp__another_reason_meanwhile)
{
	uint32_t size = fx->e->mq->sw_free.size;

	sends(1);
	fx->qp[0]->rrc.rnr_waiting = 1;
	send_one();
	change_meanwhile(rnr_over_without_buffers);
	rtc_poll(fx->e);
	rtc_poll(fx->e);
	fx_assert_counter(park_rnr, 1);
	fx_assert_counter(park_buffer, 1);
	assert_int_equal(fx->qp[0]->rtc.parked, PARK_BUFFER);
	fx->e->mq->sw_free.size = size;
	respond_ack(0, P(0));
	rtc_poll(fx->e);
	assert_null(fx->qp[0]->rtc.head);
}

static void window_opens(void)
{
	fx->qp[0]->rrc.window = 4 << 4;
}

TEST(park_qp__window_opens_meanwhile)
{
	sends(2);
	fx->qp[0]->rrc.window = 2 << 4;
	send_one();
	change_meanwhile(window_opens);
	assert_noticed(COUNTER_park_window);
}

TEST(park_qp__read_completes_meanwhile)
{
	reads_enter();
	change_meanwhile(read_leave);
	assert_noticed(COUNTER_park_reads);
}

static void rts_again(void)
{
	fx->qp[0]->state = QP_RTS;
}

TEST(park_qp__rts_meanwhile)
{
	sends(1);
	drain_enter();
	change_meanwhile(rts_again);
	assert_noticed(COUNTER_park_drain);
}

/* In SQD it waits though it could be sent. */
TEST(park_qp__stays_in_sqd)
{
	sends(1);
	drain_enter();
	change_meanwhile(nothing);
	assert_stays(PARK_DRAIN);
}

static void error_meanwhile(void)
{
	qp_set_error(fx->e, fx->qp[0]);
	wake_take(&fx->e->wake[WAKE_RTC]); /* came too early: it was not parked yet */
	wake_next(&fx->qp[0]->wake[WAKE_RTC]);
}

/* The queue pair fails: its requests are flushed, whatever they waited for. */
TEST(park_qp__error_meanwhile)
{
	struct rte_mbuf *m;

	sends(1);
	fx->qp[0]->rrc.rnr_waiting = 1;
	send_request(0, USER_SEND, 16, 640);
	change_meanwhile(error_meanwhile);
	rtc_poll(fx->e);
	assert_int_equal(fx->qp[0]->rtc.parked, PARK_NONE);
	rtc_poll(fx->e);
	m = fx_take(CHANNEL_RTC_RRC);
	assert_non_null(m);
	assert_int_equal(request_of(m)->wqe_offset, 640);
	assert_int_equal(request_of(m)->outcome, OUTCOME_FLUSH);
	rte_mbuf_raw_free(m);
}

static void error_and_flush(void)
{
	qp_set_error(fx->e, fx->qp[0]);
	rrc_poll(fx->e); /* finds nothing to flush */
}

/* It fails when a packet is about to be made: that is kept after the flush, and flushed by another.
 */
TEST(end_visit__error_while_a_packet_is_made)
{
	change_when_taken(fx->packets, error_and_flush);
	send_request(0, USER_SEND, 16, 640);
	rtc_poll(fx->e);
	assert_null(meanwhile);
	fx_assert_no_cqe();
	assert_int_equal(mq_count(&fx->qp[0]->mq.sw), 1);
	rrc_poll(fx->e);
	fx_assert_error(SYNDROME_WR_FLUSH, 640);
	assert_int_equal(mq_count(&fx->qp[0]->mq.sw), 0);
}
