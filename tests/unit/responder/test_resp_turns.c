/* SPDX-License-Identifier: BSD-3-Clause */
/* RespPktGen: turns and quanta, what is worth nothing any more, and what it takes from its rings
 * and its pool. */
#include "context/pacing.h"
#include "resp_pkt_gen.h"
#include "responder_fixture.h"

/* One poll for which there is room for that many frames; takes them. Returns how many came. */
static unsigned poll_with_room(unsigned room)
{
	struct channel *out = &fx->e.channel[CHANNEL_RESPG_TXA];
	unsigned before = fx->frame_count, n = 0;
	struct rte_mbuf *m;

	for (; channel_room(out) > room; n++)
		channel_put_one(out, rte_pktmbuf_alloc(fx->rx));
	responder_exec_poll(&fx->e);
	while (n-- > 0) {
		assert_int_equal(channel_take(out, &m, 1), 1);
		rte_pktmbuf_free(m);
	}
	fx_collect();
	return fx->frame_count - before;
}

/* The next frames answer a READ, beginning with this PSN. */
static void assert_packets(uint32_t psn, unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		const struct fx_frame *f = fx_frame();

		assert_in_range(f->h.opcode, WIRE_RC_READ_RESP_FIRST, WIRE_RC_READ_RESP_ONLY);
		assert_int_equal(f->h.psn, psn_add(psn, i));
	}
}

/* A third and a fourth QP, beside qp and qp2. */
static struct qp *more_qp(unsigned i)
{
	struct qp *q = qp_at(&fx->qps, 5 + i);

	memcpy(q, fx->qp2, sizeof(*q));
	q->index = 5 + i;
	q->qpn = FX_QPN + 4 + i;
	return q;
}

TEST(turn__is_a_quantum)
{
	fx->qp2->rq_psn = 1000;
	fx_send_read(FX_QPN, FX_PSN, 10);
	fx_send_read(FX_QPN2, 1000, 6);
	fx_poll(1);
	assert_packets(FX_PSN, 4);
	assert_packets(1000, 4);
	assert_packets(FX_PSN + 4, 4);
	assert_packets(1004, 2);
	assert_packets(FX_PSN + 8, 2);
	fx_assert_no_frame();
}

/* And a packet that goes beyond it is its last. */
TEST(turn__ends_with_the_packet_that_exceeds_it)
{
	fx->e.settings.quantum_bytes = FX_MTU + 1;
	fx->qp2->rq_psn = 1000;
	fx_send_read(FX_QPN, FX_PSN, 8);
	fx_send_read(FX_QPN2, 1000, 8);
	fx_poll(1);
	assert_packets(FX_PSN, 4); /* the first turn has the quantum of before */
	assert_packets(1000, 2);
	assert_packets(FX_PSN + 4, 2);
	assert_packets(1002, 2);
}

TEST(turn__continues_where_there_was_no_room)
{
	fx->qp2->rq_psn = 1000;
	fx_send_read(FX_QPN, FX_PSN, 16);
	assert_int_equal(poll_with_room(1), 1);
	fx_send_read(FX_QPN2, 1000, 16);
	assert_int_equal(poll_with_room(5), 5);
	assert_int_equal(poll_with_room(4), 4);
	assert_packets(FX_PSN, 4);
	assert_packets(1000, 4);
	assert_packets(FX_PSN + 4, 2);
	fx_poll(5);
}

TEST(turn__of_a_qp_that_leaves_is_nobody_elses)
{
	struct qp *third = more_qp(0);

	fx->qp2->rq_psn = 1000;
	third->rq_psn = 2000;
	fx_send_read(FX_QPN, FX_PSN, 16);
	assert_int_equal(poll_with_room(1), 1);
	fx_send_read(FX_QPN2, 1000, 16);
	fx_send_read(third->qpn, 2000, 16);
	poll_with_room(0);
	fx->qp->qpn = 0;
	wake_post(&fx->e.wake[WAKE_EE], &fx->qp->wake[WAKE_EE], fx->qp->index);
	fx_poll(1);
	assert_packets(FX_PSN, 1);
	assert_packets(1000, 4);
	assert_packets(2000, 4);
	assert_packets(1004, 4);
}

/* It must be in no list when its number is free for another one. */
TEST(leave__from_behind_one_that_waits_for_room)
{
	fx_send_read(FX_QPN, FX_PSN, 16);
	fx_send_read(FX_QPN2, FX_PSN, 16);
	assert_int_equal(poll_with_room(2), 2);
	fx->qp2->qpn = 0;
	fx->qp2->closed = 0;
	wake_post(&fx->e.wake[WAKE_EE], &fx->qp2->wake[WAKE_EE], fx->qp2->index);
	assert_int_equal(poll_with_room(0), 0);
	assert_int_equal(fx->qp2->closed, 1u << WAKE_EE);
	assert_false(fx->qp2->respg.active.listed);
	assert_null(fx->qp2->respg.head);
	assert_non_null(fx->qp->respg.head);
}

/* Reset, and nothing has looked at it yet; or another one by now. */
TEST(answers__of_a_queue_pair_that_was_are_dropped)
{
	for (unsigned i = 0; i < 2; i++) {
		fx_send_read(FX_QPN, psn_add(FX_PSN, 16 * i), 16);
		assert_int_equal(poll_with_room(1), 1);
		fx->qp->state = i ? QP_RTS : QP_RST;
		fx->qp->qpn = i ? FX_QPN + 0x10000 : FX_QPN;
		assert_int_equal(poll_with_room(8), 0);
		assert_false(fx->qp->respg.active.listed);
		assert_null(fx->qp->respg.head);
		fx->qp->state = QP_RTS;
	}
}

TEST(answers__in_the_ring_are_dropped_after_a_reset)
{
	fx_send_write(FX_QPN, FX_PSN, FX_KEY);
	assert_int_equal(poll_with_room(0), 0);
	fx->qp->state = QP_RST;
	assert_int_equal(poll_with_room(8), 0);
	fx_assert_counter(drop_qp_state, 1);
}

TEST(answers__leave_in_rtr)
{
	fx->qp->state = QP_RTR;
	fx_send_read(FX_QPN, FX_PSN, 16);
	assert_int_equal(poll_with_room(10), 10);
	fx_send_write(FX_QPN, FX_PSN + 16, FX_KEY);
	fx_poll(2);
	assert_packets(FX_PSN, 16);
	fx_assert_ack(FX_PSN + 16, 31, 2);
	fx_assert_no_frame();
}

/* The NAK is still in the ring, the QP in ERR already. */
TEST(c9_087__a_read_before_a_nak_is_answered)
{
	fx_send_read(FX_QPN, FX_PSN, 6);
	fx_send_write(FX_QPN, FX_PSN + 6, 0x99);
	assert_int_equal(poll_with_room(1), 1);
	assert_int_equal(fx->qp->state, QP_ERR);
	fx_poll(3);
	assert_packets(FX_PSN, 6);
	fx_assert_ack(FX_PSN + 6, aeth_nak(AETH_NAK_REMOTE_ACCESS), 1);
	fx_assert_no_frame();
}

/* It ends with one NAK, its own, and the client hears of one error. */
TEST(c9_100__a_read_fails_before_a_nak)
{
	fx_send_read(FX_QPN, FX_PSN, 100);
	fx_send_write(FX_QPN, FX_PSN + 100, 0x99);
	assert_int_equal(poll_with_room(4), 4);
	fx_assert_event(EQE_WQ_ACCESS_ERROR, FX_QPN);
	v2p_invalidate_mpt(&fx->v2p, FX_KEY);
	fx_poll(3);
	assert_packets(FX_PSN, 4);
	fx_assert_ack(FX_PSN + 4, aeth_nak(AETH_NAK_REMOTE_ACCESS), 1);
	fx_assert_no_frame();
	fx_assert_no_event();
	assert_int_equal(rte_mempool_in_use_count(fx->rx), 0);
}

/* In ERR what waits behind a READ is worth nothing, unless it is the NAK that ends it all. */
TEST(error__an_ack_at_the_end_does_not_keep_a_read)
{
	fx_send_read(FX_QPN, FX_PSN, 16);
	fx_send_write(FX_QPN, FX_PSN + 16, FX_KEY);
	assert_int_equal(poll_with_room(2), 2);
	qp_set_error(&fx->e, fx->qp);
	assert_int_equal(poll_with_room(8), 0);
	assert_false(fx->qp->respg.active.listed);
}

/* Puts n ACKs of qp2 into the ring in front of RespPktGen. */
static void put_acks(uint32_t psn, unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		fx_send_write(FX_QPN2, psn + i, FX_KEY);
		assert_int_equal(poll_with_room(0), 0);
	}
}

TEST(room__is_shared_by_reads_and_short_answers)
{
	unsigned acks = 0;

	fx->qp2->rq_psn = 1000;
	fx_send_read(FX_QPN, FX_PSN, 16);
	assert_int_equal(poll_with_room(1), 1);
	put_acks(1000, 8);
	assert_int_equal(poll_with_room(4), 4);
	for (unsigned i = 1; i < fx->frame_count; i++)
		acks += fx->frames[i].h.opcode == WIRE_RC_ACK;
	assert_int_equal(acks, 2);
	fx_poll(3);
}

TEST(room__is_all_for_short_answers_without_reads)
{
	fx->qp2->rq_psn = 1000;
	put_acks(1000, 8);
	assert_int_equal(poll_with_room(5), 5);
	assert_int_equal(poll_with_room(5), 3);
}

/* An unsolicited ACK acknowledges everything: it must not overtake those in the ring. */
TEST(c9_101__credits_wait_for_what_is_in_the_ring)
{
	fx->e.settings.e2e_credits = true;
	fx->qp->srq = NULL;
	fx->qp2->rq = NULL;
	fx->qp2->rq_psn = 1000;
	put_acks(1000, BURST);
	fx_send_write(FX_QPN, FX_PSN, FX_KEY);
	assert_int_equal(poll_with_room(0), 0);
	fx_post_simple(0, 100);
	for (unsigned i = 0; i < 4; i++) {
		fx->e.now_ns += 256000;
		fx_poll(1);
	}
	for (unsigned i = 0; i < BURST; i++)
		assert_int_equal(fx_frame()->h.psn, 1000 + i);
	fx_assert_ack(FX_PSN, aeth_ack(0), 1);
	fx_assert_ack(FX_PSN, aeth_ack(1), 1);
	fx_assert_no_frame();
}

TEST(idle__takes_no_buffers)
{
	fx_poll(3);
	assert_int_equal(responder_stock(&fx->e), 0);
	assert_int_equal(rte_mempool_in_use_count(fx->e.packets), 0);
}

static int real_ops;

/* A pool that many take from at once: a few are there, and soon others. */
static int dequeue_one(struct rte_mempool *p, void **to, unsigned n)
{
	return n > 1 ? -ENOBUFS : rte_mempool_get_ops(real_ops)->dequeue(p, to, n);
}

static int enqueue(struct rte_mempool *p, void *const *from, unsigned n)
{
	return rte_mempool_get_ops(real_ops)->enqueue(p, from, n);
}

static unsigned get_count(const struct rte_mempool *p)
{
	return rte_mempool_get_ops(real_ops)->get_count(p);
}

static int alloc_nothing(struct rte_mempool *p)
{
	return 0;
}

TEST(stock__one_by_one_is_as_many_as_are_wanted)
{
	static const struct rte_mempool_ops ops = {.name = "one_by_one",
						   .alloc = alloc_nothing,
						   .enqueue = enqueue,
						   .dequeue = dequeue_one,
						   .get_count = get_count};

	real_ops = fx->e.packets->ops_index;
	fx->e.packets->ops_index = rte_mempool_register_ops(&ops);
	fx_send_write(FX_QPN, FX_PSN, FX_KEY);
	fx_poll(1);
	fx_assert_ack(FX_PSN, 31, 1);
	assert_int_equal(responder_stock(&fx->e), BURST); /* one more was needed, and is dropped */
	fx_assert_counter(packet_empty, 0);
	fx->e.packets->ops_index = real_ops;
}

/* Its time comes when its answers have been given up. */
TEST(paced__nothing_is_left)
{
	const struct pacer *p = fx->e.stage[STAGE_RESPONDER_EXEC].pacer; /* RespPktGen's */

	pacer_wait((struct pacer *)(uintptr_t)p, fx->qp, fx->e.now_ns);
	fx->e.now_ns += 1000000;
	fx_poll(1);
	fx_assert_no_frame();
}

/* It owes a CNP, and fails before there is room for it. */
TEST(cnp__of_one_that_has_failed)
{
	respg_notify(&fx->e, fx->qp);
	assert_int_equal(poll_with_room(0), 0);
	fx->qp->state = QP_ERR;
	fx_poll(1);
	fx_assert_no_frame();
	fx_assert_counter(np_cnp_sent, 0);
}

/* However many READs wait: none of them keeps its packet, and none is refused. */
TEST(answers__hold_no_packet)
{
	uint32_t psn = FX_PSN;

	fx->qp->max_dest_rd_atomic = READS_MAX;
	for (unsigned i = 0; i < READS_MAX; i++, psn = psn_add(psn, 8)) {
		fx_send_read(FX_QPN, psn, 8);
		poll_with_room(0);
		poll_with_room(1);
	}
	assert_int_equal(rte_mempool_in_use_count(fx->rx), 0);
	fx->frame_next = fx->frame_count;
	while (fx_poll(1))
		fx->frame_count = fx->frame_next = 0;
	assert_int_equal(fx->qp->respg.reads_done, READS_MAX);
	fx_send_read(FX_QPN, psn, 8);
	fx_poll(1);
	assert_packets(psn, 8);
	fx_assert_no_frame();
}
