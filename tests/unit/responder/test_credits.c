/* SPDX-License-Identifier: BSD-3-Clause */
/* End-to-end credits: those in acknowledgements, and unsolicited acknowledgements. */
#include "execution_engine.h"
#include "responder_fixture.h"

static void wake(struct qp *q)
{
	wake_post(&fx->e.wake[WAKE_EE], &q->wake[WAKE_EE], q->index);
}

/* Polls, with time between. */
static void poll_slowly(unsigned times)
{
	while (times--) {
		fx->e.now_ns += 16000;
		fx_poll(1);
	}
}

/* Like a QP that has just become able to receive. */
static void enter_rtr(void)
{
	fx->e.settings.e2e_credits = true;
	fx->qp->state = QP_RTR;
	wake(fx->qp);
	poll_slowly(2);
}

static void send_write(uint32_t psn, uint8_t ackreq)
{
	fx_send(4, 1, .opcode = WIRE_RC_WRITE_ONLY, .psn = psn & PSN_MASK, .va = FX_VA,
		.rkey = FX_KEY, .dma_len = 4, .ackreq = ackreq);
}

TEST(credits__waits_for_room_and_buffers)
{
	struct channel *out = &fx->e.channel[CHANNEL_RESPG_TXA];
	struct channel *answers = &fx->e.channel[CHANNEL_EE_RESPG];
	struct rte_mbuf *all[255], *m;
	unsigned n = 0;

	enter_rtr();
	while (n < 255 && (all[n] = rte_pktmbuf_alloc(fx->e.packets)))
		n++;
	fx_post_simple(0, 100);
	wake(fx->qp);
	poll_slowly(5);
	fx_assert_no_frame();
	while (n)
		rte_pktmbuf_free(all[--n]);
	while (channel_room(out))
		channel_put_one(out, rte_pktmbuf_alloc(fx->rx));
	while (channel_room(answers) > 3) { /* one less than are checked: none of them has */
		m = rte_pktmbuf_alloc(fx->rx);
		arrival_of(m)->qpn = 0;
		channel_put_one(answers, m);
	}
	for (unsigned i = 0; i < 3; i++) {
		fx->e.now_ns += 16000;
		responder_exec_poll(&fx->e);
	}
	fx_assert_counter(acks_unsolicited, 0);
	assert_int_equal(channel_take(answers, &m, 1), 1);
	rte_pktmbuf_free(m);
	responder_exec_poll(&fx->e); /* as soon as there is room */
	fx_assert_counter(acks_unsolicited, 1);
	while (channel_take(out, &m, 1))
		rte_pktmbuf_free(m);
	poll_slowly(20);
	fx_assert_ack(FX_PSN - 1, aeth_ack(1), 0);
	fx_assert_no_frame();
	fx_assert_counter(acks_unsolicited, 1);
}

/* All the QPs of the table but 0; each has its own number. */
static struct qp *make_more(unsigned i)
{
	struct qp *q = qp_at(&fx->qps, i);

	if (q == fx->qp || q == fx->qp2)
		return q;
	memcpy(q, fx->qp2, sizeof(*q));
	memset(&q->wake, 0, sizeof(q->wake));
	q->index = i;
	q->qpn = FX_QPN - 1 + i;
	return q;
}

TEST(credits__a_few_are_looked_at_in_turn)
{
	unsigned before;

	fx->e.settings.e2e_credits = true;
	for (unsigned i = 1; i < 16; i++)
		wake(make_more(i));
	poll_slowly(4);
	fx->record.rq_posted = fx->record2.rq_posted = 1; /* for all of them */
	for (unsigned i = 1; i < 16; i++)
		wake(qp_at(&fx->qps, i));
	for (unsigned i = 0; i < 4; i++) {
		before = fx->frame_count;
		poll_slowly(1);
		assert_true(fx->frame_count - before <= 4);
		fx_poll(3); /* no time has passed */
		assert_true(fx->frame_count - before <= 4);
	}
	assert_int_equal(fx->frame_count, 15);
	poll_slowly(20);
	assert_int_equal(fx->frame_count, 15);
}

/* The peer uses up its credits, and the next receive is posted after so many us: for how many more
 * is it overlooked? */
static unsigned overlooked(uint32_t message, unsigned us)
{
	unsigned more = 0;

	fx_send(9, 1, .opcode = WIRE_RC_SEND_ONLY, .psn = psn_add(FX_PSN, message), .ackreq = 1);
	fx_poll(1);
	fx_assert_ack(psn_add(FX_PSN, message), aeth_ack(0), message + 1);
	while (us--) {
		fx->e.now_ns += 1000;
		fx_poll(1);
	}
	fx_post_simple(0, 100);
	while (fx->frame_next == fx->frame_count) {
		fx->e.now_ns += 1000;
		fx_poll(1);
		more++;
	}
	fx_assert_ack(psn_add(FX_PSN, message), aeth_ack(1), message + 1);
	return more;
}

/* While there is nothing to find, looks become seldom, down to one every 256 us. */
TEST(credits__looks_become_seldom)
{
	unsigned us, sum = 0;

	fx_post_simple(0, 100);
	enter_rtr();
	fx_assert_ack(FX_PSN - 1, aeth_ack(1), 0);
	for (uint32_t i = 0; i < 8; i++) {
		us = overlooked(2 * i, (i & 1 ? 20000 : 10000) + 32 * i);
		assert_in_range(us, 1, 256);
		sum += us;
		assert_in_range(overlooked(2 * i + 1, 10 * i), 1, 5 * i + 2);
	}
	assert_in_range(sum, 8 * 100, 8 * 156);
}

/* Until the daemon has seen a first receive, it seldom looks, and acknowledgements do not. */
TEST(credits__of_a_queue_pair_that_never_posted)
{
	unsigned us = 0;

	enter_rtr();
	fx_post_simple(0, 100);
	send_write(FX_PSN, 1);
	fx_poll(1);
	fx_assert_ack(FX_PSN, aeth_ack(0), 1);
	for (; fx->frame_next == fx->frame_count; us++) {
		fx->e.now_ns += 1000;
		fx_poll(1);
	}
	fx_assert_ack(FX_PSN, aeth_ack(1), 1);
	assert_in_range(us, 200, 256);
}

/* Those of which there is little hope do not stand in the way of others. */
TEST(credits__of_a_hopeful_one_beside_many_others)
{
	fx_post_simple(0, 100);
	enter_rtr();
	fx_assert_ack(FX_PSN - 1, aeth_ack(1), 0);
	for (unsigned i = 1; i < 16; i++) {
		make_more(i)->ee.has_posted = i & 1;
		if (qp_at(&fx->qps, i) != fx->qp)
			wake(qp_at(&fx->qps, i));
	}
	poll_slowly(2000);
	assert_in_range(overlooked(0, 4), 1, 3);
}

/* Even if another gives reason to look at every poll. */
TEST(credits__of_one_that_never_posted_beside_a_busy_one)
{
	wake(fx->qp2);
	fx_post_simple(0, 100);
	enter_rtr();
	fx_assert_ack(FX_PSN - 1, aeth_ack(1), 0);
	fx->record2.rq_posted = 1;
	for (uint32_t i = 0; i < 30; i++) {
		fx_send(9, 1, .opcode = WIRE_RC_SEND_ONLY, .psn = psn_add(FX_PSN, i), .ackreq = 1);
		poll_slowly(1);
		fx_post_simple(0, 100);
		poll_slowly(1);
	}
	assert_int_equal(fx->qp2->ee.has_posted, 1);
	fx->frame_next = fx->frame_count;
}

/* The client has rung. */
TEST(credits__of_a_first_receive_are_announced_at_once)
{
	enter_rtr();
	poll_slowly(1000);
	fx_post_simple(0, 100);
	wake(fx->qp);
	fx_poll(1);
	fx->e.now_ns += 1000;
	fx_poll(1);
	fx_assert_ack(FX_PSN - 1, aeth_ack(1), 0);
}

static bool listed(void)
{
	return fx->qp->ee.starved.listed;
}

TEST(credits__the_first_look_is_at_once_and_the_next_later)
{
	fx->e.settings.e2e_credits = true;
	fx->e.now_ns = 5;
	fx_poll(5); /* the list is empty: that is not a check */
	fx->qp->state = QP_RTR;
	wake(fx->qp);
	fx_post_simple(0, 100);
	assert_true(fx_poll(1) > 0); /* a packet sent is work */
	fx_assert_ack(FX_PSN - 1, aeth_ack(1), 0);
	assert_false(listed());
	fx_send(9, 1, .opcode = WIRE_RC_SEND_ONLY, .psn = FX_PSN, .ackreq = 1);
	fx_poll(1);
	fx_assert_ack(FX_PSN, aeth_ack(0), 1);
	assert_true(listed());
	fx_post_simple(0, 100);
	fx->e.now_ns += 999;
	fx_poll(3);
	fx_assert_no_frame();
	fx->e.now_ns += 1;
	fx_poll(1);
	fx_assert_ack(FX_PSN, aeth_ack(1), 1);
	assert_false(listed());
}

/* They have become seldom, one finds something, and the next is soon again. */
TEST(credits__looks_become_frequent_again)
{
	enter_rtr();
	poll_slowly(10);
	fx_post_simple(0, 100);
	poll_slowly(8);
	fx_assert_ack(FX_PSN - 1, aeth_ack(1), 0);
	fx_send(9, 1, .opcode = WIRE_RC_SEND_ONLY, .psn = FX_PSN, .ackreq = 1);
	fx_poll(1);
	fx_assert_ack(FX_PSN, aeth_ack(0), 1);
	fx_post_simple(0, 100);
	fx->e.now_ns += 1000;
	fx_poll(1);
	fx_assert_ack(FX_PSN, aeth_ack(1), 1);
}

TEST(credits__nobody_is_listed_who_needs_no_look)
{
	static const uint8_t states[] = {QP_RST, QP_INIT};

	enter_rtr();
	fx_post_simple(0, 100);
	fx->qp2->rq = NULL;
	wake(fx->qp);
	send_write(FX_PSN, 1); /* announces one; no check before some time has passed */
	poll_slowly(1);
	fx_assert_ack(FX_PSN, aeth_ack(1), 1);
	poll_slowly(1);
	assert_false(listed());
	send_write(FX_PSN + 1, 1);
	fx_poll(1);
	assert_false(listed());
	fx->qp->ee.credits_granted = 0;
	for (unsigned i = 0; i < sizeof(states); i++) {
		fx->qp->state = states[i];
		wake(fx->qp);
		fx_poll(1);
		assert_false(listed());
	}
}

TEST(credits__a_qp_that_leaves_is_released)
{
	fx->e.settings.e2e_credits = true;
	for (unsigned i = 1; i < 9; i++)
		wake(make_more(i));
	fx_poll(1);
	for (unsigned i = 3; i < 6; i++) {
		struct qp *q = qp_at(&fx->qps, i);

		q->qpn = 0;
		q->state = QP_RST;
		wake(q);
	}
	qp_at(&fx->qps, 7)->state = QP_ERR;
	fx_poll(1);
	for (unsigned i = 3; i < 6; i++) {
		assert_int_equal(qp_at(&fx->qps, i)->closed, 1u << WAKE_EE);
		assert_false(qp_at(&fx->qps, i)->ee.starved.listed);
	}
	fx->record.rq_posted = fx->record2.rq_posted = 1;
	poll_slowly(40); /* nobody rang */
	assert_int_equal(fx->frame_count, 4);
	assert_false(qp_at(&fx->qps, 7)->ee.starved.listed);
}
