/* SPDX-License-Identifier: BSD-3-Clause */
/* RequesterTransControl alone: requests in DP_RTC, packets in RTC_RPG, bad requests in RTC_RRC. */
#include "requester_fixture.h"

/* ---- segmentation ---- */

static const struct {
	uint8_t user, first, middle, last, only;
	uint8_t services;
} operations[] = {
	{USER_SEND, 0x00, 0x01, 0x02, 0x04, 3},
	{USER_SEND_IMM, 0x00, 0x01, 0x03, 0x05, 3},
	{USER_SEND_INV, 0x00, 0x01, 0x16, 0x17, 1},
	{USER_RDMA_WRITE, 0x06, 0x07, 0x08, 0x0a, 3},
	{USER_RDMA_WRITE_IMM, 0x06, 0x07, 0x09, 0x0b, 3},
};

static const uint32_t sizes[] = {0, 1, FX_MTU - 1, FX_MTU, FX_MTU + 1, 2 * FX_MTU, 2 * FX_MTU + 1};

static void check_segments(unsigned op, uint32_t bytes, uint8_t base, uint32_t *psn)
{
	uint32_t n = bytes ? (bytes + FX_MTU - 1) / FX_MTU : 1;

	for (uint32_t i = 0; i < n; i++) {
		uint8_t opcode = n == 1	      ? operations[op].only
				 : i == 0     ? operations[op].first
				 : i == n - 1 ? operations[op].last
					      : operations[op].middle;
		struct rte_mbuf *m = fx_take(CHANNEL_RTC_RPG);
		uint32_t piece = RTE_MIN(bytes - i * FX_MTU, (uint32_t)FX_MTU);
		struct packet *p;

		assert_non_null(m);
		p = packet_of(m);
		assert_int_equal(p->headers.opcode, base + opcode);
		assert_int_equal(p->headers.psn, *psn);
		assert_int_equal(p->headers.dest_qp, fx->qp[0]->dest_qpn);
		assert_int_equal(p->headers.dma_len, bytes);
		assert_int_equal(p->payload_bytes, piece);
		assert_memory_equal((uint8_t *)m->buf_addr + HEADROOM_BYTES,
				    fx->memory + i * FX_MTU, piece);
		if (p->flags & PACKET_CRC)
			assert_true(p->payload_crc == wire_crc(0, fx->memory + i * FX_MTU, piece));
		*psn = psn_add(*psn, 1);
		rte_pktmbuf_free(m);
	}
	assert_null(fx_take(CHANNEL_RTC_RPG));
}

static void segment_all(enum qp_service service, uint8_t base)
{
	uint32_t psn = FX_PSN, completions = 0;

	fx_service(0, service);
	fx_fill_memory(0, 4 * FX_MTU, 5);
	for (unsigned op = 0; op < RTE_DIM(operations); op++)
		for (unsigned i = 0; i < RTE_DIM(sizes); i++) {
			if (!(operations[op].services >> service & 1))
				continue;
			send_request(0, operations[op].user, sizes[i], 64 * i);
			rtc_poll(fx->e);
			check_segments(op, sizes[i], base, &psn);
			completions++;
			if (service == SERVICE_UC)
				fx_assert_cqe(operations[op].user, 64 * i);
		}
	assert_int_equal(fx->qp[0]->rtc.next_psn, psn);
	assert_true(psn < FX_PSN); /* it wrapped */
	assert_int_equal(fx->qp[0]->rtc.consumed, completions);
	fx_assert_no_cqe();
}

TEST(rtc_poll__segments_of_rc)
{
	segment_all(SERVICE_RC, 0);
}

TEST(rtc_poll__segments_of_uc)
{
	segment_all(SERVICE_UC, 0x20);
}

/* A READ takes as many PSNs as its response has packets. */
TEST(rtc_poll__psn_hole_after_a_read)
{
	static const uint32_t packets[] = {1, 1, 1, 1, 2, 2, 3};
	uint32_t psn = FX_PSN;
	struct packet p;

	fx->qp[0]->max_rd_atomic = 100;
	for (unsigned i = 0; i < RTE_DIM(sizes); i++) {
		send_request(0, USER_RDMA_READ, sizes[i], 0);
		send_request(0, USER_SEND, 0, 0);
		rtc_poll(fx->e);
		assert_true(take_packet(CHANNEL_RTC_RPG, &p));
		assert_int_equal(p.headers.opcode, WIRE_RC_READ_REQUEST);
		assert_int_equal(p.headers.psn, psn);
		assert_int_equal(p.headers.dma_len, sizes[i]);
		assert_true(p.headers.va == 0x1000);
		assert_int_equal(p.headers.rkey, 0x99);
		assert_int_equal(p.headers.ackreq, 1);
		assert_int_equal(p.payload_bytes, 0);
		psn = psn_add(psn, packets[i]);
		assert_true(take_packet(CHANNEL_RTC_RPG, &p));
		assert_int_equal(p.headers.opcode, WIRE_RC_SEND_ONLY);
		assert_int_equal(p.headers.psn, psn);
		psn = psn_add(psn, 1);
	}
	assert_int_equal(fx->qp[0]->rtc.reads_issued, RTE_DIM(sizes));
}

TEST(rtc_poll__atomics)
{
	struct rte_mbuf *m = fx_request(0, USER_ATOMIC_CS, 8, 0);
	struct packet p = {0};

	request_of(m)->swap_add = 0x1122334455667788;
	request_of(m)->compare = 0x99;
	fx_put(CHANNEL_DP_RTC, m);
	send_request(0, USER_ATOMIC_FA, 8, 0);
	rtc_poll(fx->e);
	assert_true(take_packet(CHANNEL_RTC_RPG, &p));
	assert_int_equal(p.headers.opcode, WIRE_RC_CMP_SWAP);
	assert_true(p.headers.swap_add == 0x1122334455667788 && p.headers.compare == 0x99);
	assert_true(take_packet(CHANNEL_RTC_RPG, &p));
	assert_int_equal(p.headers.opcode, WIRE_RC_FETCH_ADD);
	assert_int_equal(p.headers.psn, FX_PSN + 1);
}

TEST(rtc_poll__solicited_on_the_last_packet)
{
	struct packet p;

	send_flags(0, USER_SEND, 3 * FX_MTU, REQUEST_SOLICITED);
	rtc_poll(fx->e);
	for (unsigned i = 0; i < 3; i++) {
		assert_true(take_packet(CHANNEL_RTC_RPG, &p));
		assert_int_equal(p.headers.se, i == 2);
	}
}

/* Every ack_interval packets, and on the last one of a turn. */
TEST(rtc_poll__ackreq)
{
	struct packet p;

	fx->e->settings.ack_interval = 4;
	send_request(0, USER_RDMA_WRITE, 10 * FX_MTU, 0);
	rtc_poll(fx->e);
	for (unsigned i = 0; i < 10; i++) {
		assert_true(take_packet(CHANNEL_RTC_RPG, &p));
		assert_int_equal(p.headers.ackreq, i == 3 || i == 7 || i == 9);
	}
}

TEST(rtc_poll__ackreq_at_the_end_of_each_turn)
{
	struct packet p;

	fx->e->settings.quantum_bytes = 3 * FX_MTU;
	send_request(0, USER_RDMA_WRITE, 9 * FX_MTU, 0);
	for (unsigned turn = 0; turn < 3; turn++)
		rtc_poll(fx->e);
	for (unsigned i = 0; i < 9; i++) {
		assert_true(take_packet(CHANNEL_RTC_RPG, &p));
		assert_int_equal(p.headers.ackreq, i % 3 == 2);
	}
}

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

static void drain(uint64_t bytes[4])
{
	struct packet p;

	while (take_packet(CHANNEL_RTC_RPG, &p))
		bytes[p.qpn - FX_QPN - 1] += p.payload_bytes;
	fx_unfill(CHANNEL_RTC_TC);
	for (unsigned i = 0; i < 4; i++) {
		acknowledge_all(i);
		wake_sender_of(i);
	}
}

/* One queue pair has a message of 1 GiB, three have short ones: bytes are what is shared, also when
 * the full ring cuts turns short. */
TEST(rtc_poll__fair_by_bytes)
{
	uint64_t bytes[4] = {0};

	fx->e->settings.quantum_bytes = 8 * FX_MTU;
	send_request(0, USER_RDMA_WRITE, 1 << 30, 0);
	for (unsigned round = 0; round < 240; round++) {
		for (unsigned i = 1; i < 4; i++)
			while (fx->qp[i]->ws.issued - fx->qp[i]->rtc.consumed < 40 &&
			       fx_ring_count(CHANNEL_DP_RTC) < 200) {
				send_request(i, USER_RDMA_WRITE, i * 700, 0);
				fx->qp[i]->ws.issued++;
			}
		fx_fill(CHANNEL_RTC_RPG, 64); /* little room, so that turns matter */
		rtc_poll(fx->e);
		for (unsigned skip = channel_infos[CHANNEL_RTC_RPG].depth - 64; skip; skip--)
			rte_pktmbuf_free(fx_take(CHANNEL_RTC_RPG));
		drain(bytes);
	}
	for (unsigned i = 1; i < 4; i++) {
		int64_t diff = (int64_t)bytes[0] - (int64_t)bytes[i];

		assert_true(bytes[0] > 300000);
		if (llabs(diff) > (int64_t)bytes[0] / 10)
			fail_msg("queue pair 0 sent %lu bytes, %u sent %lu", bytes[0], i, bytes[i]);
	}
}

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

TEST(rtc_poll__output_full)
{
	struct packet p;

	fx_fill(CHANNEL_RTC_RPG, 2);
	send_request(0, USER_RDMA_WRITE, 5 * FX_MTU, 0);
	rtc_poll(fx->e);
	assert_int_equal(fx_ring_count(CHANNEL_RTC_RPG), channel_infos[CHANNEL_RTC_RPG].depth);
	assert_int_equal(mq_count(&fx->qp[0]->mq.sw), 2);
	assert_int_equal(rtc_poll(fx->e), 0);
	fx_unfill(CHANNEL_RTC_RPG);
	rtc_poll(fx->e);
	for (unsigned i = 2; i < 5; i++) {
		assert_true(take_packet(CHANNEL_RTC_RPG, &p));
		assert_int_equal(p.headers.psn, psn_add(FX_PSN, i));
	}
	assert_false(take_packet(CHANNEL_RTC_RPG, &p));
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

static void waits(enum park_reason reason, enum counter counter)
{
	fx_unfill(CHANNEL_RTC_RPG);
	rtc_poll(fx->e);
	assert_int_equal(fx_ring_count(CHANNEL_RTC_RPG), 0);
	assert_int_equal(fx->qp[0]->rtc.parked, reason);
	assert_int_equal(fx_counter(counter), 1);
	rtc_poll(fx->e); /* parked is parked */
	assert_int_equal(fx_counter(counter), 1);
}

static void continues(void)
{
	wake_sender_of(0);
	rtc_poll(fx->e);
	assert_int_equal(fx->qp[0]->rtc.parked, PARK_NONE);
	assert_int_equal(fx_ring_count(CHANNEL_RTC_RPG), 1);
}

TEST(rtc_poll__parks_for_a_fence)
{
	send_request(0, USER_RDMA_READ, 8, 0);
	rtc_poll(fx->e);
	send_flags(0, USER_SEND, 8, REQUEST_FENCE);
	waits(PARK_FENCE, COUNTER_park_fence);
	fx->qp[0]->rrc.reads_done++;
	continues();
}

TEST(rtc_poll__parks_for_reads)
{
	for (unsigned i = 0; i < 4; i++)
		send_request(0, i & 1 ? USER_ATOMIC_FA : USER_RDMA_READ, 8, 0);
	rtc_poll(fx->e);
	assert_int_equal(fx_ring_count(CHANNEL_RTC_RPG), 4);
	send_request(0, USER_RDMA_READ, 8, 0);
	waits(PARK_READS, COUNTER_park_reads);
	fx->qp[0]->rrc.reads_done++;
	continues();
}

TEST(rtc_poll__parks_for_rnr)
{
	fx->qp[0]->rrc.rnr_waiting = 1;
	send_request(0, USER_SEND, 8, 0);
	waits(PARK_RNR, COUNTER_park_rnr);
	fx->qp[0]->rrc.rnr_waiting = 0;
	continues();
}

TEST(rtc_poll__parks_for_a_retransmission)
{
	fx->qp[0]->rrc.retransmitting = 1;
	send_request(0, USER_SEND, 8, 0);
	waits(PARK_RETRANSMIT, COUNTER_park_retransmit);
	fx->qp[0]->rrc.retransmitting = 0;
	continues();
}

TEST(rtc_poll__parks_at_the_psn_window)
{
	struct qp *q = fx->qp[0];

	q->rtc.next_psn = psn_add(q->rrc.unacked_psn, PSN_WINDOW - 1);
	send_request(0, USER_RDMA_WRITE, 2 * FX_MTU, 0);
	waits(PARK_PSN, COUNTER_park_psn);
	q->rrc.unacked_psn = psn_sub(q->rtc.next_psn, 1);
	wake_sender_of(0);
	rtc_poll(fx->e);
	assert_int_equal(fx_ring_count(CHANNEL_RTC_RPG), 2);
}

/* Others do not notice. */
TEST(rtc_poll__parked_queue_pair_stops_nobody)
{
	fx->qp[0]->rrc.rnr_waiting = 1;
	send_request(0, USER_SEND, 8, 0);
	send_request(1, USER_SEND, 8, 0);
	rtc_poll(fx->e);
	assert_int_equal(fx_ring_count(CHANNEL_RTC_RPG), 1);
	assert_int_equal(fx->qp[1]->rtc.consumed, 1);
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

TEST(rtc_poll__bad_request_and_what_follows)
{
	struct rte_mbuf *m = fx_request(0, USER_SEND, 8, 64);

	request_of(m)->outcome = OUTCOME_LOCAL_QP_OP;
	send_request(0, USER_SEND, 8, 0);
	fx_put(CHANNEL_DP_RTC, m);
	send_request(0, USER_SEND, 8, 128);
	rtc_poll(fx->e);
	assert_int_equal(fx_ring_count(CHANNEL_RTC_RPG), 1);
	assert_bad(64, OUTCOME_LOCAL_QP_OP);
	assert_bad(128, OUTCOME_FLUSH);
	assert_int_equal(fx->qp[0]->rtc.consumed, 3);
	fx_assert_no_cqe(); /* they complete in their turn */
}

TEST(rtc_poll__flushes_in_error)
{
	send_request(0, USER_SEND, 8, 0);
	fx->qp[0]->state = QP_ERR;
	rtc_poll(fx->e);
	assert_int_equal(fx_ring_count(CHANNEL_RTC_RPG), 0);
	assert_bad(0, OUTCOME_FLUSH);
}

TEST(rtc_poll__memory_refused_midway)
{
	struct rte_mbuf *m = fx_request(0, USER_SEND, 2 * FX_MTU, 64);

	((struct wqe_data *)(request_wqe(m) + 16))->addr = FX_VA + FX_MEMORY_BYTES - FX_MTU - 1;
	fx_put(CHANNEL_DP_RTC, m);
	rtc_poll(fx->e);
	assert_bad(64, OUTCOME_LOCAL_PROT);
	assert_int_equal(fx_ring_count(CHANNEL_RTC_RPG), 1); /* the first was good */
	fx_assert_counter(bad_wqe_access, 1);
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

TEST(rtc_poll__read_not_allowed)
{
	fx->qp[0]->max_rd_atomic = 0;
	send_request(0, USER_RDMA_READ, 8, 64);
	rtc_poll(fx->e);
	assert_int_equal(fx_ring_count(CHANNEL_RTC_RPG), 0);
	assert_bad(64, OUTCOME_LOCAL_QP_OP);
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
