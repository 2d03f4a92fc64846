/* SPDX-License-Identifier: BSD-3-Clause */
/* DoorbellProcessing alone: doorbells in the client's page, descriptors in DBP_WS. */
#include "send_queue_fixture.h"

TEST(dbp_poll__input_empty)
{
	assert_int_equal(dbp_poll(fx->e), 0);
	assert_false(dbp_pending(fx->e));
	ring(0, USER_SEND, 0, 16);
	assert_true(dbp_pending(fx->e));
	assert_int_equal(dbp_poll(fx->e), 1);
	assert_descriptor(CHANNEL_DBP_WS, 0, 0);
	assert_int_equal(dbp_poll(fx->e), 0);
	assert_false(dbp_pending(fx->e));
	fx_assert_counter(doorbells, 1);
}

/* Six rounds of the FIFO: an entry counts once in each round, and an old one never. */
TEST(dbp_poll__phase_wraps)
{
	for (uint32_t i = 0; i < 6 * UAR_DOORBELLS; i++) {
		ring(i % FX_QPS, USER_SEND, i % 512 * 16, 16);
		assert_int_equal(dbp_poll(fx->e), 1);
		assert_descriptor(CHANNEL_DBP_WS, i % FX_QPS, i % 512 * 16);
		assert_int_equal(dbp_poll(fx->e), 0);
		assert_int_equal(fx->page->uar->consumer_index, i + 1);
	}
	fx_assert_counter(doorbells, 6 * UAR_DOORBELLS);
}

TEST(dbp_poll__full_fifo_in_bursts)
{
	uint32_t got = 0;

	for (uint32_t i = 0; i < UAR_DOORBELLS; i++)
		ring(0, USER_SEND, i * 16, 16);
	while (got < UAR_DOORBELLS) {
		assert_int_equal(dbp_poll(fx->e), BURST);
		for (unsigned i = 0; i < BURST; i++)
			assert_descriptor(CHANNEL_DBP_WS, 0, got++ * 16);
	}
	assert_int_equal(dbp_poll(fx->e), 0);
}

static void assert_collects(bool collects)
{
	ring(0, USER_SEND, 0, 16);
	ring(1, USER_SEND, 32, 16);
	for (unsigned i = 0; i < 3 && collects; i++)
		assert_int_equal(dbp_poll(fx->e), 0);
	assert_int_equal(dbp_poll(fx->e), 2);
	assert_descriptor(CHANNEL_DBP_WS, 0, 0);
	assert_descriptor(CHANNEL_DBP_WS, 1, 32);
}

/* While WQEParse has three polls' work; but not if the lcore is about to sleep, or somebody steps. */
TEST(dbp_poll__every_fourth_for_a_busy_wqe_parse)
{
	fx_fill(CHANNEL_WS_WP, channel_infos[CHANNEL_WS_WP].depth - 3 * BURST);
	ring(0, USER_SEND, 0, 16);
	assert_int_equal(dbp_poll(fx->e), 1);
	assert_descriptor(CHANNEL_DBP_WS, 0, 0);
	assert_collects(true);
	assert_collects(true);
	dbp_set_asleep(fx->e, true);
	assert_collects(false);
	dbp_set_asleep(fx->e, false);
	fx->e->watched = WATCH_STEPPED;
	assert_collects(false);
	fx->e->watched = 0;
	rte_pktmbuf_free(fx_take(CHANNEL_WS_WP));
	assert_collects(false);
}

static void refused(uint32_t qpn, uint32_t offset, uint32_t units, enum counter why)
{
	uint64_t before = fx_counter(why);

	ring_raw(qpn, offset / 16 << DOORBELL_OFFSET_SHIFT | USER_SEND, units);
	dbp_poll(fx->e);
	assert_int_equal(fx_ring_count(CHANNEL_DBP_WS), 0);
	assert_int_equal(fx_counter(why), before + 1);
	assert_false(dbp_pending(fx->e)); /* consumed all the same */
}

TEST(dbp_poll__foreign_queue_pair)
{
	fx->qp[1]->client = FX_CLIENT + 1;
	refused(fx->qp[1]->qpn, 0, 1, COUNTER_drop_doorbell_qpn);
	refused(fx->qp[0]->qpn + 64, 0, 1, COUNTER_drop_doorbell_qpn); /* same index */
	refused(0, 0, 1, COUNTER_drop_doorbell_qpn);
	refused(0xffffff, 0, 1, COUNTER_drop_doorbell_qpn);
}

TEST(dbp_poll__queue_pair_may_not_send)
{
	static const struct {
		enum qp_state state;
		bool taken;
	} rows[] = {{QP_RST, false}, {QP_INIT, false}, {QP_RTR, false}, {QP_RTS, true},
		    {QP_SQE, true},  {QP_SQD, true},   {QP_ERR, true}};

	for (unsigned i = 0; i < RTE_DIM(rows); i++) {
		fx->qp[0]->state = rows[i].state;
		if (!rows[i].taken) {
			refused(fx->qp[0]->qpn, 0, 1, COUNTER_drop_doorbell_state);
			continue;
		}
		ring(0, USER_SEND, 0, 16);
		assert_int_equal(dbp_poll(fx->e), 1);
		assert_descriptor(CHANNEL_DBP_WS, 0, 0);
	}
}

/* So that RequesterTransControl recognises requests posted before SQERR2RTS. */
TEST(dbp_poll__epoch_of_the_send_queue)
{
	struct rte_mbuf *m;

	fx->qp[0]->sq_epoch = 7;
	ring(0, USER_SEND, 0, 16);
	assert_int_equal(dbp_poll(fx->e), 1);
	m = fx_take(CHANNEL_DBP_WS);
	assert_int_equal(request_of(m)->sq_epoch, 7);
	rte_mbuf_raw_free(m);
}

TEST(dbp_poll__descriptor_outside_of_the_queue)
{
	uint32_t qpn = fx->qp[0]->qpn;

	ring(0, USER_SEND, FX_SQ_BYTES - 16, 16); /* the last unit */
	assert_int_equal(dbp_poll(fx->e), 1);
	assert_descriptor(CHANNEL_DBP_WS, 0, FX_SQ_BYTES - 16);
	ring(0, USER_SEND, FX_SQ_BYTES - WQE_BYTES_MAX, WQE_BYTES_MAX);
	assert_int_equal(dbp_poll(fx->e), 1);
	assert_descriptor(CHANNEL_DBP_WS, 0, FX_SQ_BYTES - WQE_BYTES_MAX);
	refused(qpn, FX_SQ_BYTES - 16, 2, COUNTER_drop_doorbell_size);
	refused(qpn, FX_SQ_BYTES, 1, COUNTER_drop_doorbell_size);
	refused(qpn, FX_SQ_BYTES + 16, 1, COUNTER_drop_doorbell_size);
	refused(qpn, 0xffffff0, 1, COUNTER_drop_doorbell_size); /* the largest offset there is */
	refused(qpn, 0, WQE_UNITS_MAX + 1, COUNTER_drop_doorbell_size);
	refused(qpn, 0, 255, COUNTER_drop_doorbell_size);
	refused(qpn, 0, 0, COUNTER_drop_doorbell_size);
}

TEST(dbp_poll__nop_wakes_the_responder)
{
	ring_raw(fx->qp[3]->qpn, USER_NOP, 0);
	assert_int_equal(dbp_poll(fx->e), 0);
	assert_int_equal(fx_ring_count(CHANNEL_DBP_WS), 0);
	assert_int_equal(wake_take(&fx->e->wake[WAKE_EE]), fx->qp[3]->index);
	wake_next(&fx->qp[3]->wake[WAKE_EE]);
	fx_assert_counter(drop_doorbell_size, 0);
}

/* Others hold that many: the client gets the rest, a few in any case, and no more. */
TEST(dbp_poll__share_of_the_descriptors)
{
	static const struct {
		uint32_t others, held, taken;
	} rows[] = {{0, 0, 10}, {3, 0, 7},  {8, 0, 4},	{10, 0, 4}, {12, 0, 4},
		    {12, 3, 1}, {12, 4, 0}, {12, 6, 0}, {0, 5, 0},  {0, 4, 2}};

	fx->e->descriptor_share = 10;
	for (unsigned i = 0; i < RTE_DIM(rows); i++) {
		for (unsigned k = 0; k < 10; k++)
			ring(0, USER_SEND, k * 16, 16);
		fx->e->held[FX_CLIENT] += rows[i].held;
		fx->e->held_total += rows[i].others + rows[i].held;
		if (dbp_poll(fx->e) != rows[i].taken)
			fail_msg("row %u", i);
		fx_unfill(CHANNEL_DBP_WS);
		fx->e->held[FX_CLIENT] -= rows[i].held;
		fx->e->held_total -= rows[i].others + rows[i].held;
		while (dbp_poll(fx->e))
			fx_unfill(CHANNEL_DBP_WS);
	}
	assert_int_equal(fx->e->held_total, 0);
}

/* When more than half is in use, what another client of the same user holds counts, too. */
TEST(dbp_poll__share_of_a_user)
{
	struct uar_page *other = aligned_alloc(4096, sizeof(*other));

	assert_non_null(other);
	fx->e->descriptor_share = 300;
	fx->qp[1]->client = FX_CLIENT + 1;
	for (unsigned user = 0; user < 2; user++) {
		memset(other, 0, sizeof(*other));
		other->doorbell[0] = DOORBELL_PHASE | USER_SEND |
				     (uint64_t)(fx->qp[1]->qpn << DOORBELL_QPN_SHIFT | 1) << 32;
		fx->qp[1]->user = user;
		dbp_set_client(fx->e, FX_CLIENT + 1, other);
		ring(0, USER_SEND, 0, 16);
		assert_int_equal(dbp_poll(fx->e), 2); /* now it is known whose clients they are */
		fx_unfill(CHANNEL_DBP_WS);
		fx->e->held[FX_CLIENT + 1] += 200;
		fx->e->held_total += 200;
		for (unsigned i = 0; i < 16; i++)
			dbp_poll(fx->e);
		for (unsigned i = 0; i < 10; i++)
			ring(0, USER_SEND, i * 16, 16);
		assert_int_equal(dbp_poll(fx->e), user ? 10 : 0);
		fx->e->held[FX_CLIENT + 1] -= 200;
		fx->e->held_total -= 200;
		dbp_poll(fx->e);
		fx_unfill(CHANNEL_DBP_WS);
	}
	/* one is new, and in its place another; nobody knows yet whose clients they are */
	memset(fx->page->uar, 0, sizeof(fx->page->uar));
	fx->doorbells = 0;
	dbp_set_client(fx->e, FX_CLIENT, fx->page->uar);
	dbp_set_client(fx->e, FX_CLIENT + 1, other);
	fx->e->held[FX_CLIENT + 1] += 200;
	fx->e->held_total += 200;
	for (unsigned i = 0; i < 16; i++)
		dbp_poll(fx->e);
	for (unsigned i = 0; i < 10; i++)
		ring(0, USER_SEND, i * 16, 16);
	assert_int_equal(dbp_poll(fx->e), 10);
	fx_unfill(CHANNEL_DBP_WS);
	fx->e->held[FX_CLIENT + 1] -= 200;
	fx->e->held_total -= 200;
	dbp_set_client(fx->e, FX_CLIENT + 1, NULL);
	fx->qp[1]->client = FX_CLIENT;
	fx->qp[1]->user = 0;
	free(other);
}

/* A client is asked once in a poll, also when all that it rings is refused. */
TEST(dbp_poll__refused_doorbells_in_bursts)
{
	for (unsigned poll = 1; poll <= 8; poll++) {
		for (unsigned i = 0; i < 2 * BURST; i++)
			ring_raw(0, USER_SEND, 1);
		dbp_poll(fx->e);
		fx_assert_counter(drop_doorbell_qpn, (2 * poll - 1) * BURST);
		dbp_poll(fx->e);
		fx_assert_counter(drop_doorbell_qpn, 2 * poll * BURST);
	}
}

TEST(dbp_poll__output_full)
{
	fx_fill(CHANNEL_DBP_WS, 2);
	for (unsigned i = 0; i < 5; i++)
		ring(0, USER_SEND, i * 16, 16);
	assert_int_equal(dbp_poll(fx->e), 2);
	assert_int_equal(dbp_poll(fx->e), 0);
	assert_int_equal(fx->page->uar->consumer_index, 2); /* the rest stays with the client */
	fx_unfill(CHANNEL_DBP_WS);
	assert_int_equal(dbp_poll(fx->e), 3);
	for (unsigned i = 2; i < 5; i++)
		assert_descriptor(CHANNEL_DBP_WS, 0, i * 16);
}

TEST(dbp_poll__no_descriptor_buffer)
{
	fx_exhaust(fx->descriptors, 0);
	ring(0, USER_SEND, 0, 16);
	ring(0, USER_SEND, 16, 16);
	assert_int_equal(dbp_poll(fx->e), 0);
	fx_assert_counter(wqe_descriptor_empty, 1);
	assert_int_equal(fx->page->uar->consumer_index, 0);
	fx_refill();
	assert_int_equal(dbp_poll(fx->e), 2);
	assert_descriptor(CHANNEL_DBP_WS, 0, 0);
	assert_descriptor(CHANNEL_DBP_WS, 0, 16);
}

/* A client that floods does not keep another one from its turn. */
TEST(dbp_poll__clients_in_turn)
{
	struct uar_page *other = aligned_alloc(4096, sizeof(*other));
	uint64_t w1 = fx->qp[1]->qpn << DOORBELL_QPN_SHIFT | 1;
	unsigned polls = 0, others = 0;
	struct rte_mbuf *m;

	memset(other, 0, sizeof(*other));
	fx->qp[1]->client = FX_CLIENT + 1;
	dbp_set_client(fx->e, FX_CLIENT + 1, other);
	for (unsigned i = 0; i < UAR_DOORBELLS; i++)
		ring(0, USER_SEND, 0, 16);
	other->doorbell[0] = DOORBELL_PHASE | USER_SEND | w1 << 32;
	while (!others && polls++ < 2) {
		dbp_poll(fx->e);
		while ((m = fx_take(CHANNEL_DBP_WS))) {
			others += request_of(m)->qpn == fx->qp[1]->qpn;
			rte_mbuf_raw_free(m);
		}
	}
	assert_int_equal(others, 1);
	dbp_set_client(fx->e, FX_CLIENT + 1, NULL);
	free(other);
}

/* How many polls it takes until a doorbell is taken. */
static unsigned polls_until_taken(void)
{
	unsigned polls = 1;

	while (dbp_poll(fx->e) == 0 && polls < 1000)
		polls++;
	fx_unfill(CHANNEL_DBP_WS);
	return polls;
}

/* Rings bell number n of that client's. */
static void ring_of(struct uar_page *page, unsigned qp, uint32_t client, unsigned n)
{
	uint64_t w1 = fx->qp[qp]->qpn << DOORBELL_QPN_SHIFT | 1;

	fx->qp[qp]->client = client;
	page[client].doorbell[n] = DOORBELL_PHASE | USER_SEND | w1 << 32;
}

/* How many clients from 100 on are found at once when they ring. */
static unsigned found_at_once(struct uar_page *page, unsigned clients, unsigned bell)
{
	unsigned found = 0;

	for (uint32_t i = 100; i < 100 + clients; i++) {
		ring_of(page, 1, i, bell);
		found += polls_until_taken() == 1;
	}
	return found;
}

/* Two that ring more than a poll takes: when one has been found, the next poll takes from the other. */
static void both_in_turn(struct uar_page *page, uint32_t one, uint32_t other)
{
	uint32_t first = page[one].consumer_index, second = page[other].consumer_index;

	for (unsigned i = 0; i < 2 * BURST; i++) {
		ring_of(page, 1, one, first + i);
		ring_of(page, 2, other, second + i);
	}
	polls_until_taken();
	dbp_poll(fx->e);
	fx_unfill(CHANNEL_DBP_WS);
	assert_int_not_equal(page[one].consumer_index, first);
	assert_int_not_equal(page[other].consumer_index, second);
	while (dbp_poll(fx->e))
		fx_unfill(CHANNEL_DBP_WS);
}

/* Of many who do nothing each poll looks at a few; at whoever rings, always, as long as those are not
 * many, too; and before the lcore sleeps at everybody. */
TEST(dbp_poll__few_of_many_clients)
{
	enum { MANY = 1000, RINGING = 80, LATELY_NS = 200000, LONG_NS = 1000000 };
	struct uar_page *page = aligned_alloc(4096, MANY * sizeof(*page));

	memset(page, 0, MANY * sizeof(*page));
	for (uint32_t i = 0; i < MANY; i++) {
		if (i != FX_CLIENT)
			dbp_set_client(fx->e, i, &page[i]);
		if (i == 63) { /* these are not many */
			assert_int_equal(dbp_poll(fx->e), 0);
			ring_of(page, 1, 60, 0);
			assert_int_equal(polls_until_taken(), 1);
		}
	}
	assert_int_equal(dbp_poll(fx->e), 0);
	ring(0, USER_SEND, 0, 16);
	assert_in_range(polls_until_taken(), 120, 130);
	fx->e->now_ns += LONG_NS;
	assert_int_equal(dbp_poll(fx->e), 0);
	ring(0, USER_SEND, 16, 16);
	assert_int_equal(polls_until_taken(), 1);
	fx_fill(CHANNEL_WS_WP, 0);
	for (unsigned i = 0; i < 4; i++) { /* none is left to accumulate */
		ring(0, USER_SEND, 16, 16);
		assert_int_equal(polls_until_taken(), 1);
	}
	fx_unfill(CHANNEL_WS_WP);
	for (unsigned poll = 0; poll < 130; poll++) { /* it is asked once in each */
		for (unsigned i = 0; i < (poll ? 1 : 2) * BURST; i++)
			ring_raw(0, USER_SEND, 1);
		dbp_poll(fx->e);
		fx_assert_counter(drop_doorbell_qpn, (poll + 1) * BURST);
	}
	dbp_poll(fx->e);
	found_at_once(page, RINGING, 0);
	fx->e->now_ns += LATELY_NS;
	assert_int_equal(dbp_poll(fx->e), 0);
	assert_int_equal(found_at_once(page, RINGING, 1), RINGING);
	fx->e->now_ns += LONG_NS;
	assert_int_equal(dbp_poll(fx->e), 0);
	ring_of(page, 1, 900, 0);
	assert_in_range(polls_until_taken(), 2, 200);
	assert_in_range(found_at_once(page, RINGING, 2), 1, RINGING / 2);
	dbp_set_asleep(fx->e, true);
	ring_of(page, 1, 899, 0);
	assert_int_equal(polls_until_taken(), 1);
	dbp_set_asleep(fx->e, false);
	ring_of(page, 1, 899, 1); /* known since */
	assert_int_equal(polls_until_taken(), 1);
	both_in_turn(page, 899, 900); /* of those that ring, */
	both_in_turn(page, 700, 701); /* and of the others */
	for (uint32_t i = 0; i < MANY; i++)
		dbp_set_client(fx->e, i, NULL);
	assert_int_equal(dbp_poll(fx->e), 0);
	free(page);
}

TEST(dbp_set_asleep__notifies_the_clients)
{
	dbp_set_asleep(fx->e, true);
	assert_int_equal(fx->page->uar->daemon_asleep, 1);
	dbp_set_asleep(fx->e, false);
	assert_int_equal(fx->page->uar->daemon_asleep, 0);
}

/* The state that the next client at a former client's place finds. */
TEST(dbp_set_client__begins_anew)
{
	ring(0, USER_SEND, 0, 16);
	ring(0, USER_SEND, 16, 16);
	assert_int_equal(dbp_poll(fx->e), 2);
	fx_unfill(CHANNEL_DBP_WS);
	dbp_set_client(fx->e, FX_CLIENT, NULL);
	memset(fx->page->uar, 0, sizeof(fx->page->uar));
	fx->doorbells = 0;
	dbp_set_asleep(fx->e, true);
	dbp_set_client(fx->e, FX_CLIENT, fx->page->uar);
	assert_int_equal(fx->page->uar->daemon_asleep, 1);
	ring(0, USER_SEND, 32, 16);
	assert_int_equal(dbp_poll(fx->e), 1);
	assert_descriptor(CHANNEL_DBP_WS, 0, 32);
	assert_int_equal(fx->page->uar->consumer_index, 1);
	dbp_set_asleep(fx->e, false);
}

/* One with a lower number comes: those above are still listened to. */
TEST(dbp_set_client__below_another)
{
	struct uar_page *other = aligned_alloc(4096, sizeof(*other));

	memset(other, 0, sizeof(*other));
	dbp_set_client(fx->e, FX_CLIENT - 2, other);
	ring(0, USER_SEND, 0, 16);
	assert_true(dbp_pending(fx->e));
	assert_int_equal(dbp_poll(fx->e), 1);
	assert_descriptor(CHANNEL_DBP_WS, 0, 0);
	dbp_set_client(fx->e, FX_CLIENT - 2, NULL);
	free(other);
}

/* Said once: the clients' pages are not written to for nothing. */
TEST(dbp_set_asleep__once)
{
	dbp_set_asleep(fx->e, true);
	fx->page->uar->daemon_asleep = 0;
	dbp_set_asleep(fx->e, true);
	assert_int_equal(fx->page->uar->daemon_asleep, 0);
	dbp_set_asleep(fx->e, false);
}

/* A client on the lcore's CPU counts while it has rung of late. */
TEST(dbp_crowd__of_those_who_ring)
{
	struct uar_page *uar = fx->page->uar;
	static const struct {
		uint32_t cpu, yields;
		uint64_t later_ns;
		enum dbp_crowd crowd;
	} rows[] = {
		{0, 0, 0, CROWD_NONE},	 {3, 0, 0, CROWD_NONE}, {4, 0, 0, CROWD_SPINS},
		{4, 1, 0, CROWD_YIELDS}, {3, 1, 0, CROWD_NONE}, {4, 0, DBP_ACTIVE_NS, CROWD_SPINS},
		{4, 0, 1, CROWD_NONE},
	};

	uar->client_cpu = 4;
	assert_int_equal(dbp_crowd(fx->e, 3), CROWD_NONE); /* has never rung */
	ring(0, USER_SEND, 0, 16);
	assert_int_equal(dbp_poll(fx->e), 1);
	for (unsigned i = 0; i < RTE_DIM(rows); i++) {
		uar->client_cpu = rows[i].cpu;
		uar->client_yields = rows[i].yields;
		fx->e->now_ns += rows[i].later_ns;
		assert_int_equal(dbp_crowd(fx->e, 3), rows[i].crowd);
	}
	ring(0, USER_SEND, 16, 16);
	assert_int_equal(dbp_poll(fx->e), 1);
	assert_int_equal(dbp_crowd(fx->e, 3), CROWD_SPINS);
	dbp_set_client(fx->e, FX_CLIENT, NULL);
	assert_int_equal(dbp_crowd(fx->e, 3), CROWD_NONE);
}

TEST(dbp_set_cpu__notifies_new_clients)
{
	dbp_set_cpu(fx->e, 3);
	dbp_set_client(fx->e, FX_CLIENT, fx->page->uar);
	assert_int_equal(fx->page->uar->daemon_cpu, 4);
}
