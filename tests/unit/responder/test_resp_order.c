/* SPDX-License-Identifier: BSD-3-Clause */
/* RespPktGen's list of waiting answers alone: who stands where, what replaces what, whose
 * place is free, and what was counted. */
#include "resp_order.h"
#include "resp_pkt_gen.h"
#include "responder_fixture.h"

static struct arrival make(enum response_kind kind, uint32_t psn, uint32_t packets)
{
	return (struct arrival){.qpn = FX_QPN,
				.response = kind,
				.response_psn = psn & PSN_MASK,
				.length = kind == RESPONSE_READ ? packets * FX_MTU : 0,
				.syndrome = 31};
}

static void order(const struct arrival *a)
{
	order_put(&fx->qps, stage_counters(&fx->e, STAGE_RESPONDER_EXEC), fx->qp, a);
}

/* The one that was put last. */
static struct answer *put(enum response_kind kind, uint32_t psn, uint32_t packets)
{
	struct arrival a = make(kind, psn, packets);

	order(&a);
	return fx->qp->respg.tail;
}

static void put_again(enum response_kind kind, uint32_t psn, uint32_t packets)
{
	struct arrival a = make(kind, psn, packets);

	response_set_duplicate(&a, true);
	order(&a);
}

/* How many places are in use: those used so far, without the free ones. */
static unsigned places(void)
{
	unsigned n = fx->qp->respg.fresh;

	for (const struct answer *a = fx->qp->respg.free; a; a = a->next)
		n--;
	return n;
}

/* The list, by next PSN; as many places as it has are in use, and its tail is its last. */
static void assert_list(unsigned n, const uint32_t *psns)
{
	struct answer *a = fx->qp->respg.head, *last = NULL;

	for (unsigned i = 0; i < n; i++, a = a->next) {
		assert_non_null(a);
		assert_int_equal(order_next_psn(a), psns[i] & PSN_MASK);
		last = a;
	}
	assert_null(a);
	assert_ptr_equal(fx->qp->respg.tail, last);
	assert_int_equal(places(), n);
}
#define ASSERT_LIST(...)                                                                           \
	assert_list(sizeof((uint32_t[]){__VA_ARGS__}) / sizeof(uint32_t), (uint32_t[]){__VA_ARGS__})

static void assert_done(unsigned reads)
{
	assert_int_equal(fx->qp->respg.reads_done, reads);
}

TEST(purge__gives_all_up_and_counts_it)
{
	put(RESPONSE_READ, 10, 5);
	put_again(RESPONSE_READ, 8, 1);
	put(RESPONSE_ACK, 15, 0);
	put(RESPONSE_ATOMIC, 16, 0);
	order_purge(fx->qp);
	assert_list(0, NULL);
	assert_done(2); /* the duplicate holds none */
	put(RESPONSE_READ, 20, 1);
	ASSERT_LIST(20);
	order_purge(fx->qp);
	order_purge(fx->qp);
}

TEST(ack__supersedes_the_one_it_is_behind)
{
	put(RESPONSE_ACK, 9, 0);
	put(RESPONSE_READ, 10, 5);
	assert_int_equal(put(RESPONSE_ACK, 15, 0)->response, RESPONSE_ACK);
	put(RESPONSE_ACK, 17, 0);
	ASSERT_LIST(9, 10, 17);
	order_purge(fx->qp);
}

/* A NAK carries the PSN that is expected: what a duplicate draws after it says less. */
TEST(ack__of_before_does_not_supersede_a_nak)
{
	struct answer *nak;

	put(RESPONSE_READ, 10, 5);
	nak = put(RESPONSE_ACK, 15, 0);
	nak->syndrome = aeth_nak(AETH_NAK_SEQUENCE);
	put(RESPONSE_ACK, 14, 0);
	ASSERT_LIST(10, 15);
	assert_int_equal(nak->syndrome, aeth_nak(AETH_NAK_SEQUENCE));
	put(RESPONSE_ACK, 15, 0);
	assert_int_equal(nak->syndrome, 31);
	order_purge(fx->qp);
}

/* What is executed by now, but is not answered yet, it does not count: the MSN never goes back. */
TEST(duplicate__in_front_of_an_older_msn)
{
	struct arrival a = make(RESPONSE_READ, 9, 1);

	put(RESPONSE_READ, 10, 1)->msn = 1;
	put(RESPONSE_READ, 11, 1)->msn = 2;
	response_set_duplicate(&a, true);
	a.msn = 2;
	order(&a);
	ASSERT_LIST(9, 10, 11);
	assert_int_equal(fx->qp->respg.head->msn, 1);
	order_purge(fx->qp);
}

/* Asked for from within what is left: the old answer would give the same packets twice. */
TEST(duplicate__replaces_what_it_overlaps)
{
	static const struct {
		uint32_t psn, packets, old; /* is the old one, 10 to 19 with 13 next, kept? */
	} rows[] = {
		{5, 8, 1},   {5, 9, 0},	 {13, 1, 0}, {12, 1, 1},
		{10, 10, 0}, {16, 2, 0}, {19, 1, 0}, {20, 1, 1},
	};

	for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		put(RESPONSE_READ, 10, 10)->done_packets = 3;
		put_again(RESPONSE_READ, rows[i].psn, rows[i].packets);
		if (!rows[i].old)
			ASSERT_LIST(rows[i].psn);
		else if (rows[i].psn < 13)
			ASSERT_LIST(rows[i].psn, 13);
		else
			ASSERT_LIST(13, rows[i].psn);
		assert_done(i); /* it holds what the old one held */
		order_purge(fx->qp);
		assert_done(i + 1);
	}
}

TEST(duplicate__of_an_atomic)
{
	put(RESPONSE_ATOMIC, 10, 0);
	put_again(RESPONSE_ATOMIC, 9, 0);
	put_again(RESPONSE_ATOMIC, 11, 0);
	ASSERT_LIST(9, 10, 11);
	put_again(RESPONSE_ATOMIC, 10, 0);
	ASSERT_LIST(9, 10, 11);
	put_again(RESPONSE_READ, 8, 2);
	ASSERT_LIST(8, 10, 11);
	order_purge(fx->qp);
	assert_done(1);
}

/* The ACK of a duplicate carries the PSN of the last request, which may be the READ's that is asked
 * for again. */
TEST(duplicate__leaves_acknowledgements)
{
	put(RESPONSE_READ, 10, 5);
	put(RESPONSE_ACK, 14, 0);
	put_again(RESPONSE_READ, 10, 5);
	ASSERT_LIST(10, 14);
	assert_int_equal(fx->qp->respg.tail->response, RESPONSE_ACK);
	order_purge(fx->qp);
}

TEST(duplicate__replaces_several_and_the_last)
{
	put(RESPONSE_READ, 0xfffffe, 2);
	put(RESPONSE_READ, 0, 2);
	put(RESPONSE_READ, 2, 2);
	put_again(RESPONSE_READ, 0xffffff, 5); /* 0xffffff .. 3 */
	ASSERT_LIST(0xffffff);
	assert_done(0);
	put(RESPONSE_ACK, 4, 0);
	ASSERT_LIST(0xffffff, 4);
	order_pop(fx->qp);
	assert_done(3);
	order_purge(fx->qp);
}

/* In the middle of the list, where one in front of it and one behind it stay. */
TEST(duplicate__replaces_one_between_others)
{
	put(RESPONSE_READ, 10, 2);
	put(RESPONSE_READ, 12, 2);
	put(RESPONSE_READ, 14, 2);
	put_again(RESPONSE_READ, 13, 1);
	ASSERT_LIST(10, 13, 14);
	order_purge(fx->qp);
	assert_done(3);
}

TEST(duplicate__beyond_the_bound_is_dropped)
{
	for (uint32_t i = 0; i < order_others_max(fx->qp); i++)
		put_again(RESPONSE_READ, 2 * i, 1);
	fx_assert_counter(drop_duplicate, 0);
	put_again(RESPONSE_READ, 1, 1);
	fx_assert_counter(drop_duplicate, 1);
	put_again(RESPONSE_READ, 2, 1); /* replaces its like */
	fx_assert_counter(drop_duplicate, 1);
	assert_int_equal(places(), order_others_max(fx->qp));
	assert_done(0);
	order_purge(fx->qp);
}

/* A peer that asks for its unanswered READs again, and has every other request acknowledged: the
 * list does not grow, and has a place for each new READ all the same. */
TEST(places__suffice_whatever_the_peer_asks)
{
	uint32_t psn = 0, reads = fx->qp->max_dest_rd_atomic;

	for (unsigned i = 0; i < 4 * ANSWERS_MAX; i++) {
		put_again(RESPONSE_READ, psn + 1, 2);
		put(RESPONSE_ACK, psn + 2, 0);
		put_again(RESPONSE_READ, psn + 2, 2);
		put(RESPONSE_ACK, psn + 4, 0);
		psn += 4;
	}
	assert_int_equal(places(), order_others_max(fx->qp));
	for (unsigned i = 0; i < reads; i++)
		put(RESPONSE_READ, psn + i, 1);
	put(RESPONSE_ACK, psn + reads, 0);
	fx_assert_counter(drop_ack_full, 1);
	assert_int_equal(places(), order_others_max(fx->qp) + reads);
	for (unsigned i = 0; i < reads; i++)
		put_again(RESPONSE_READ, psn + i, 1);
	assert_int_equal(places(), order_others_max(fx->qp) + reads);
	order_purge(fx->qp);
	assert_done(reads);
}

TEST(fatal_nak__is_one_that_ends_the_queue_pair)
{
	static const struct {
		uint8_t syndrome, fatal;
	} rows[] = {
		{0, 0},	   {1, 0},    {31, 0},	 {0x20, 0}, {0x21, 0},
		{0x60, 0}, {0x61, 1}, {0x62, 1}, {0x63, 1},
	};

	put(RESPONSE_READ, 10, 2);
	for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		assert_false(order_ends_in_fatal_nak(fx->qp));
		put(RESPONSE_ACK, 12, 0)->syndrome = rows[i].syndrome;
		assert_int_equal(order_ends_in_fatal_nak(fx->qp), rows[i].fatal);
		order_purge(fx->qp);
		put(RESPONSE_READ, 10, 2);
	}
	order_purge(fx->qp);
}
