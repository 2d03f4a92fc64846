/* SPDX-License-Identifier: BSD-3-Clause */
/* Turns of queue pairs in RequesterTransControl: what is left of one that was cut short, what a
 * poll may do and what it does not touch, the notifications at the end of a turn. */
#include "pipeline/machine.h"
#include "requester_fixture.h"
#include "rtc_visit.h"

#define TURN 8 /* packets */

static void short_turns(void)
{
	fx->e->settings.quantum_bytes = TURN * FX_MTU;
}

static void write_of(unsigned qp, unsigned packets)
{
	send_request(qp, USER_RDMA_WRITE, packets * FX_MTU, 0);
}

/* The next packets made are that many of that queue pair. */
static void assert_run(unsigned qp, unsigned packets)
{
	struct packet p = {0};

	while (packets--) {
		assert_true(take_packet(CHANNEL_RTC_RPG, &p));
		assert_int_equal(p.qpn, fx->qp[qp]->qpn);
	}
}

static void assert_no_more(void)
{
	assert_int_equal(fx_ring_count(CHANNEL_RTC_RPG), 0);
}

/* The end of a poll cuts the turn of queue pair 1 short: it continues first, for the rest of it,
 * and then it is 2's. */
TEST(turn__continues_first_for_what_is_left)
{
	short_turns();
	write_of(0, 4);
	write_of(1, 16);
	write_of(2, 16);
	rtc_poll(fx->e);
	assert_run(0, 4);
	assert_run(1, 4);
	assert_no_more();
	rtc_poll(fx->e);
	assert_run(1, 4);
	assert_run(2, 4);
	assert_no_more();
	rtc_poll(fx->e);
	assert_run(2, 4);
	assert_run(1, 4);
	assert_no_more();
}

TEST(turn__continues_first_after_a_full_ring)
{
	short_turns();
	fx_fill(CHANNEL_RTC_RPG, 2);
	write_of(0, 16);
	write_of(1, 16);
	rtc_poll(fx->e);
	assert_int_equal(mq_count(&fx->qp[0]->mq.sw), 2);
	fx_unfill(CHANNEL_RTC_RPG);
	rtc_poll(fx->e);
	assert_run(0, 6);
	assert_run(1, 2);
	assert_no_more();
}

/* A queue pair that waits for the ring of timers is in the list already: the rest of its turn does
 * not pass to another. */
TEST(turn__waiting_for_its_timer)
{
	short_turns();
	fx_fill(CHANNEL_RTC_TC, 0);
	write_of(0, 4);
	write_of(1, 16);
	rtc_poll(fx->e);
	assert_run(0, 4);
	assert_run(1, 4);
	fx_unfill(CHANNEL_RTC_TC);
	write_of(0, 16);
	rtc_poll(fx->e);
	assert_run(0, TURN);
	assert_no_more();
}

/* A READ costs something, too: turns end. */
TEST(turn__ends_with_reads)
{
	fx->qp[0]->max_rd_atomic = 16;
	fx->e->settings.quantum_bytes = 3 * 64;
	for (unsigned i = 0; i < 5; i++)
		send_request(0, USER_RDMA_READ, 8, 0);
	rtc_poll(fx->e);
	assert_run(0, 3);
	assert_no_more();
	rtc_poll(fx->e);
	assert_run(0, 2);
}

/* More requests than descriptors are freed together. */
TEST(turn__of_many_requests)
{
	for (unsigned i = 0; i < 2 * BURST; i++)
		send_request(0, USER_SEND, 8, 0);
	rtc_poll(fx->e);
	assert_run(0, 2 * BURST);
	assert_int_equal(rte_mempool_in_use_count(fx->descriptors), 0);
}

/* ---- what is not looked at ---- */

static uint64_t looked_at(void)
{
	return machine_taken("RequesterTransControl", RTC_IDLE, RTC_RESP_CXT);
}

TEST(visit__none_without_room)
{
	uint64_t before = looked_at();

	fx_fill(CHANNEL_RTC_RPG, 0);
	write_of(0, 1);
	rtc_poll(fx->e);
	fx_assert_steps(looked_at(), before);
	fx_unfill(CHANNEL_RTC_RPG);
	rtc_poll(fx->e);
	fx_assert_steps(looked_at(), before + 1);
}

TEST(visit__none_when_the_quantum_is_spent)
{
	uint64_t before = looked_at();

	short_turns();
	write_of(0, TURN);
	write_of(1, 1);
	rtc_poll(fx->e);
	assert_run(0, TURN);
	assert_no_more();
	fx_assert_steps(looked_at(), before + 1);
	rtc_poll(fx->e);
	assert_run(1, 1);
}

/* Requests behind a waiting one are not touched either. */
TEST(visit__none_while_parked)
{
	fx->qp[0]->rrc.rnr_waiting = 1;
	write_of(0, 1);
	rtc_poll(fx->e);
	fx_assert_counter(park_rnr, 1);
	write_of(0, 1);
	rtc_poll(fx->e);
	fx_assert_counter(park_rnr, 1);
	fx->qp[0]->rrc.rnr_waiting = 0;
	wake_sender_of(0);
	rtc_poll(fx->e);
	assert_run(0, 2);
}

static struct fx_options more_qps = {.qps = 128};

/* However many queue pairs have requests, a poll looks at so many of them. */
TEST_OPTIONS(visit__bounded_number, &more_qps)
{
	uint64_t before = looked_at();

	for (uint32_t i = 0; i < BURST + 6; i++) {
		struct qp *q = qp_at(&fx->h->qps, i);
		struct rte_mbuf *m = fx_request(0, USER_SEND, 8, 0);

		if (!q->qpn)
			fx_make_qp(q, 0x500000 | i, i);
		q->rrc.rnr_waiting = 1; /* nothing comes of the visit */
		request_of(m)->qpn = q->qpn;
		fx_put(CHANNEL_DP_RTC, m);
	}
	rtc_poll(fx->e);
	fx_assert_steps(looked_at(), before + BURST);
	rtc_poll(fx->e);
	fx_assert_steps(looked_at(), before + BURST + 6);
	for (uint32_t i = 0; i < BURST + 6;
	     i++) { /* flushed: the fixture knows only a few of them */
		struct qp *q = qp_at(&fx->h->qps, i);

		q->state = QP_ERR;
		wake_post(&fx->e->wake[WAKE_RTC], &q->wake[WAKE_RTC], q->index);
	}
	rtc_poll(fx->e);
	rtc_poll(fx->e);
	assert_int_equal(fx_ring_count(CHANNEL_RTC_RRC), BURST + 6);
	fx_unfill(CHANNEL_RTC_RRC);
}

/* Nor, however many are due at once, at more of those that were paced. */
TEST_OPTIONS(visit__bounded_number_of_paced, &more_qps)
{
	struct pacer *p = &fx->e->rtc->pacer;

	for (uint32_t i = 0; i < BURST + 6; i++) {
		struct qp *q = qp_at(&fx->h->qps, i);

		if (!q->qpn)
			fx_make_qp(q, 0x500000 | i, i);
		q->rtc.flow.next_ns = fx->e->now_ns;
		pacer_wait(p, q, fx->e->now_ns);
	}
	fx->e->now_ns += 2 * PACING_SLOT_NS;
	rtc_poll(fx->e);
	assert_int_equal(p->waiting, 6);
	rtc_poll(fx->e);
	assert_int_equal(p->waiting, 0);
}

/* ---- the end of a turn ---- */

TEST(end_visit__wakes_nobody_for_nothing)
{
	write_of(0, 1);
	rtc_poll(fx->e);
	assert_int_equal(wake_take(&fx->e->wake[WAKE_WS]), WAKE_END);
	assert_int_equal(wake_take(&fx->e->wake[WAKE_RRC]), WAKE_END);
	fx->qp[0]->ws.parked = 1; /* WQEScheduler waits for requests to be consumed */
	write_of(0, 1);
	rtc_poll(fx->e);
	assert_int_equal(wake_take(&fx->e->wake[WAKE_WS]), fx->qp[0]->index);
	wake_next(&fx->qp[0]->wake[WAKE_WS]);
}

static void polled_away(struct qp *q)
{
	rtc_poll(fx->e);
	assert_int_not_equal(q->closed & 1u << WAKE_RTC, 0);
	assert_int_equal(q->rtc.active.listed, 0);
	assert_null(q->rtc.head);
}

static void close_qp(struct qp *q)
{
	__atomic_store_n(&q->qpn, 0, __ATOMIC_SEQ_CST);
	hca_close_qp(fx->h, q);
	polled_away(q);
}

/* A queue pair that is taken away waits for no room: its turn that was cut short is not the next one's,
 * and no list names it. */
TEST(release__without_room)
{
	fx_fill(CHANNEL_RTC_RPG, 0);
	write_of(0, 1);
	write_of(1, 1);
	rtc_poll(fx->e);
	fx->e->rtc->turn_left = 1;
	close_qp(fx->qp[1]); /* the last one */
	assert_int_equal(fx->e->rtc->turn_left, 1);
	close_qp(fx->qp[0]);
	assert_int_equal(fx->e->rtc->turn_left, 0);
	assert_null(qp_list_first(&fx->e->rtc->active));
	fx_unfill(CHANNEL_RTC_RPG);
}

TEST(release__starved)
{
	struct mq_free *f = &fx->e->mq->sw_free;

	f->fresh = f->size; /* none is left */
	write_of(0, 1);
	write_of(1, 1);
	rtc_poll(fx->e);
	assert_ptr_equal(qp_list_first(&fx->e->rtc->starved), fx->qp[0]);
	fx_fill(CHANNEL_RTC_RPG, 0);
	close_qp(fx->qp[0]);
	assert_ptr_equal(qp_list_first(&fx->e->rtc->starved), fx->qp[1]);
	close_qp(fx->qp[1]);
	assert_null(qp_list_first(&fx->e->rtc->starved));
	fx_unfill(CHANNEL_RTC_RPG);
	f->fresh = 0;
}

/* Its turn comes before it is woken. */
TEST(release__at_its_turn)
{
	struct mq_free *f = &fx->e->mq->sw_free;

	fx_fill(CHANNEL_RTC_RPG, 0);
	write_of(0, 1);
	rtc_poll(fx->e);
	fx_unfill(CHANNEL_RTC_RPG);
	__atomic_store_n(&fx->qp[0]->qpn, 0, __ATOMIC_SEQ_CST);
	polled_away(fx->qp[0]);
	f->fresh = f->size;
	write_of(1, 1);
	rtc_poll(fx->e);
	__atomic_store_n(&fx->qp[1]->qpn, 0, __ATOMIC_SEQ_CST);
	polled_away(fx->qp[1]);
	f->fresh = 0;
}

/* ---- shares ---- */

/* Of a pool of 16. */
TEST(share__of_a_pool)
{
	static const struct {
		bool proven;
		uint32_t held, left, few;
		bool more;
	} rows[] = {
		{true, 0, 1, 4, true},
		{true, 1, 1, 4, true},
		{true, 2, 1, 4, false},
		{true, 8, 8, 4, true},
		{true, 9, 8, 4, false},
		{true, 0, 0, 4, false},
		{false, 0, 1, 4, true}, /* one to prove itself with */
		{false, 0, 0, 4, false},
		{false, 1, 4, 4, false}, /* the last quarter is for others */
		{false, 1, 5, 4, true},
		{false, 3, 12, 4, true},
		{false, 4, 12, 4, false}, /* a few are enough */
		{false, 5, 11, 4, false}, /* it held more when its peer fell silent */
	};

	for (unsigned i = 0; i < RTE_DIM(rows); i++) {
		const struct mq_free f = {.size = 16};

		uint32_t more =
			share_of_qp(rows[i].proven, &f, rows[i].left, rows[i].held, rows[i].few);

		if ((more != 0) != rows[i].more)
			fail_msg("row %u", i);
	}
}

/* Of a pool of 160, by what its QP, client and user hold; the QP's peer is proven. */
TEST(share__of_owners)
{
	static const struct {
		uint32_t left, qp, client, user, others, share;
	} rows[] = {
		{160, 0, 0, 0, 0, 107},	 /* the client may hold twice what is left */
		{80, 0, 80, 80, 0, 27},	 /* and has half of that */
		{53, 0, 106, 106, 0, 1}, /* held twice what is left: one more */
		{53, 1, 107, 107, 0, 0}, /* and no more */
		{53, 0, 107, 107, 0, 1}, /* but the first of a QP, */
		{40, 0, 110, 120, 0, 1}, /* down to a quarter */
		{39, 0, 110, 110, 0, 0}, /* of the pool */
		{30, 1, 3, 130, 0, 0},	 /* the user has its share: */
		{30, 1, 3, 90, 0, 1},	 /* a client of his that holds little */
		{11, 1, 3, 15, 0, 5},	 /* out of what is kept for users */
		{4, 1, 3, 15, 0, 1},	 /* who hold */
		{1, 0, 0, 15, 0, 1},	 /* fewer than 16 */
		{1, 0, 0, 16, 0, 0},	 /* and not for this one */
		{0, 0, 0, 0, 0, 0},	 /* nor if there is none */
		{70, 1, 3, 89, 1, 1},	 /* beside others, without the last quarter: */
		{70, 1, 3, 91, 1, 0},	 /* three times the rest is less */
		{40, 1, 3, 20, 1, 0},	 /* that quarter is for those */
		{40, 1, 3, 19, 1, 26},	 /* who hold less than an eighth */
	};
	struct mq_free *f = &fx->e->mq->sw_free;
	const struct qp *q = fx->qp[0];

	f->size = 160;
	for (unsigned i = 0; i < RTE_DIM(rows); i++) {
		uint32_t share;

		f->put[HOLDER_CLIENT + q->client] = rows[i].client;
		f->put[HOLDER_USER + q->user] = rows[i].user;
		f->put[HOLDER_ALL] = rows[i].user + rows[i].others;
		share = share_of_owner(f, rows[i].left, q, rows[i].qp);
		if (share != rows[i].share)
			fail_msg("row %u: %u", i, share);
	}
	f->put[HOLDER_CLIENT + q->client] = f->put[HOLDER_USER + q->user] = 0;
	f->put[HOLDER_ALL] = 0;
	/* what is taken may be counted before it is counted as put */
	f->got[HOLDER_CLIENT + q->client] = 1;
	assert_int_equal(mq_held(f, HOLDER_CLIENT + q->client), 0);
	assert_int_equal(requester_holders(fx->e), 1);
	f->got[HOLDER_CLIENT + q->client] = 0;
}

TEST(share__is_small_while_the_peer_is_silent)
{
	static const struct {
		uint32_t proven, outstanding;
		uint64_t since_ns, srtt_ns;
		bool is;
	} rows[] = {
		{0, 0, 0, 0, false},
		{1, 0, PROOF_NS, 0, true}, /* it owes no answer */
		{1, 1, PROOF_NS - 1, 0, true},
		{1, 1, PROOF_NS, 0, false},
		{1, 1, PROOF_NS, PROOF_NS / 8 + 1, true},
	};
	struct qp *q = fx->qp[0];

	fx->e->now_ns += PROOF_NS;
	for (unsigned i = 0; i < RTE_DIM(rows); i++) {
		q->rrc.proven = rows[i].proven;
		q->rrc.srtt_ns = rows[i].srtt_ns;
		q->rtc.next_psn = psn_add(q->rrc.unacked_psn, rows[i].outstanding);
		q->rtc.busy_since_ns = q->rrc.answered_ns = fx->e->now_ns - rows[i].since_ns;
		if (peer_is_proven(fx->e, q) != rows[i].is)
			fail_msg("row %u", i);
	}
	q->rtc.next_psn = q->rrc.unacked_psn;
}

/* Of a pool of 160. */
TEST(share__who_gives_way)
{
	static const struct {
		uint32_t all, user;
		bool gives;
	} rows[] = {
		{121, 40, true},
		{121, 39, false},  /* others hold it */
		{120, 120, false}, /* a quarter is left */
	};
	struct mq_free *f = &fx->e->mq->sw_free;
	const struct qp *q = fx->qp[0];

	f->size = 160;
	for (unsigned i = 0; i < RTE_DIM(rows); i++) {
		f->put[HOLDER_ALL] = rows[i].all;
		f->put[HOLDER_USER + q->user] = rows[i].user;
		if (mq_must_give_way(f, q) != rows[i].gives)
			fail_msg("row %u", i);
	}
	f->put[HOLDER_ALL] = f->put[HOLDER_USER + q->user] = 0;
}

TEST(share__of_each_pool)
{
	struct multi_queue *mq = fx->e->mq;

	mq->sw_free.size = 5;
	mq->rd_free.size = 6;
	mq->re_free.size = 7;
	assert_int_equal(requester_room(fx->e, DATA_SHARE_packets_kept), 5);
	assert_int_equal(requester_room(fx->e, DATA_SHARE_reads_kept), 6);
	assert_int_equal(requester_room(fx->e, DATA_SHARE_entries_kept), 7);
}

TEST(share__who_holds_it)
{
	const struct qp *q = fx->qp[0];

	write_of(0, 2);
	rtc_poll(fx->e);
	assert_run(0, 2);
	assert_int_equal(mq_held(&fx->e->mq->sw_free, HOLDER_USER + q->user), 2);
	assert_int_equal(requester_kept(fx->e, DATA_SHARE_packets_kept, q->client), 2);
	assert_int_equal(requester_kept(fx->e, DATA_SHARE_packets_kept, q->client + 1), 0);
	assert_int_equal(requester_kept(fx->e, DATA_SHARE_packets_kept, REQUESTER_ALL), 2);
}

/* Nothing is held and nothing is left: nobody would wake it, so its turn is repeated. */
TEST(share__no_buffer_at_all)
{
	uint32_t size = fx->e->mq->sw_free.size;

	fx->e->mq->sw_free.size = 0;
	write_of(0, 1);
	rtc_poll(fx->e);
	assert_no_more();
	assert_int_equal(fx->qp[0]->rtc.parked, PARK_NONE);
	fx->e->mq->sw_free.size = size;
	rtc_poll(fx->e);
	assert_run(0, 1);
}

static void reads_of_two_entries(unsigned n)
{
	while (n--) {
		struct rte_mbuf *m = fx_request(0, USER_RDMA_READ, 8, 0);

		request_of(m)->data_units = 2;
		fx_put(CHANNEL_DP_RTC, m);
	}
}

/* A READ of two entries: nothing is left to a user who holds more than his share; the first one of
 * a QP may be longer than the share of its client, others wait for it. */
TEST(share__read_entries_of_owners)
{
	struct mq_free *f = &fx->e->mq->re_free;
	uint32_t *user = &f->put[HOLDER_USER + fx->qp[0]->user];
	uint32_t *client = &f->put[HOLDER_CLIENT + fx->qp[0]->client];

	reads_of_two_entries(2);
	f->size = 2;
	*user = USER_FLOOR;
	rtc_poll(fx->e);
	assert_no_more();
	*user = 0;
	*client = 3;
	fx->qp[0]->max_rd_atomic = 1;
	rtc_poll(fx->e);
	assert_run(0, 1);
	f->size = 4;
	*client = 4;
	fx->qp[0]->max_rd_atomic = 2;
	wake_sender_of(0);
	rtc_poll(fx->e);
	assert_no_more();
	assert_int_equal(fx->qp[0]->rtc.parked, PARK_READS);
	*client = 2;
}

/* Entries of READs: exactly as many as are left will do; one too many waits for those before. */
TEST(share__read_entries)
{
	fx->e->mq->re_free.size = 1;
	send_request(0, USER_RDMA_READ, 8, 0);
	rtc_poll(fx->e);
	assert_run(0, 1);
	send_request(0, USER_RDMA_READ, 8, 0);
	rtc_poll(fx->e);
	assert_no_more();
	assert_int_equal(fx->qp[0]->rtc.parked, PARK_READS);
	fx->e->mq->re_free.size = 2;
	fx->qp[0]->rrc.reads_done++;
	wake_sender_of(0);
	rtc_poll(fx->e);
	assert_run(0, 1);
}

/* So does one of a run, whose buffers are looked up once. */
TEST(share__read_entries_of_a_run)
{
	reads_of_two_entries(4);
	fx->e->mq->re_free.size = 7;
	fx->qp[0]->max_rd_atomic = 16;
	rtc_poll(fx->e);
	assert_run(0, 2);
	assert_no_more();
}

/* As many READs as may be are outstanding: others do not wait for them. */
TEST(share__no_reads_needed)
{
	fx->qp[0]->max_rd_atomic = 1;
	send_request(0, USER_RDMA_READ, 8, 0);
	write_of(0, 1);
	rtc_poll(fx->e);
	assert_run(0, 2);
}

/* Behind a READ whose timer could not be armed: its turn comes again for that, in one list. */
TEST(share__starved_and_without_a_timer)
{
	struct mq_free *f = &fx->e->mq->sw_free;

	f->fresh = f->size; /* none is left */
	fx_fill(CHANNEL_RTC_TC, 0);
	send_request(0, USER_RDMA_READ, 8, 0);
	write_of(0, 1);
	rtc_poll(fx->e);
	assert_run(0, 1);
	assert_no_more();
	assert_ptr_equal(qp_list_first(&fx->e->rtc->active), fx->qp[0]);
	assert_int_equal(fx->qp[0]->rtc.active.listed, 1);
	fx_unfill(CHANNEL_RTC_TC);
	f->fresh = 0;
}

/* ---- how many PSNs ---- */

TEST(window__ends_during_a_message)
{
	fx->qp[0]->rrc.window = 4 << 4;
	write_of(0, 10);
	rtc_poll(fx->e);
	assert_run(0, 4);
	assert_no_more();
	assert_int_equal(fx->qp[0]->rtc.parked, PARK_WINDOW);
	pacer_wait(&fx->e->rtc->pacer, fx->qp[0], fx->e->now_ns);
	fx->e->now_ns += 1000000; /* its time has come, not what it waits for */
	rtc_poll(fx->e);
	fx_assert_counter(park_window, 1);
	fx->qp[0]->rrc.window = 0;
	wake_sender_of(0);
	rtc_poll(fx->e);
	assert_run(0, 6);
}

/* ---- metadata ---- */

/* Long payloads come with the CRC of their copy, short ones with none. */
TEST(segment__crc_of_long_payloads)
{
	static const uint32_t sizes[] = {1, 255, 256, 257, 1000};
	struct packet p = {0};

	fx_fill_memory(0, FX_MTU, 3);
	for (unsigned i = 0; i < RTE_DIM(sizes); i++) {
		bool crc = sizes[i] > CRC_WITH_COPY_BYTES;

		send_request(0, USER_SEND, sizes[i], 0);
		rtc_poll(fx->e);
		assert_true(take_packet(CHANNEL_RTC_RPG, &p));
		assert_int_equal(!!(p.flags & PACKET_CRC), crc);
		assert_true(p.payload_crc == (crc ? wire_crc(0, fx->memory, sizes[i]) : 0));
	}
}
