/* SPDX-License-Identifier: BSD-3-Clause */
/* Impairment in virtual time (1 cycle = 1 us), and through a ring port. */
#include "fixture.h"
#include "impairment.h"
#include "pipeline/icrc.h"

enum { FRAMES = 1000, LOST_OF_SEED_42 = 105 };

static uint64_t count[PORT_COUNTER_COUNT];

struct run {
	uint32_t tag[2 * FRAMES]; /* in the order of the wire */
	unsigned int n;
	uint64_t count[PORT_COUNTER_COUNT];
};

static void collect(struct impairment *imp, uint64_t now, struct run *r)
{
	struct rte_mbuf *m[BURST];
	uint16_t n;

	while ((n = impairment_due(imp, now, m, BURST)) > 0) {
		impairment_sent(imp, n);
		for (uint16_t i = 0; i < n; i++) {
			r->tag[r->n++] = tag_of(m[i]);
			rte_pktmbuf_free(m[i]);
		}
	}
}

/* FRAMES frames, one every 10 us, each seen by a retransmit buffer that must find it unchanged. */
static void play(const struct port_impairment *config, struct run *r)
{
	struct impairment *imp;
	uint64_t now = 1000;

	memset(count, 0, sizeof(count));
	memset(r, 0, sizeof(*r));
	imp = impairment_create(config, 0, packets, count, 1000000);
	assert_non_null(imp);
	for (uint32_t i = 0; i < FRAMES; i++, now += 10) {
		struct rte_mbuf *m = roce_v4(2, 1, i);
		uint8_t before[ROCE_FRAME_BYTES];

		memcpy(before, rte_pktmbuf_mtod(m, void *), sizeof(before));
		rte_mbuf_refcnt_update(m, 1);
		assert_true(impairment_has_room(imp, now));
		impairment_take(imp, m, now);
		assert_memory_equal(before, rte_pktmbuf_mtod(m, void *), sizeof(before));
		rte_pktmbuf_free(m);
		collect(imp, now, r);
	}
	/* releases what is held, then of its delay */
	collect(imp, now + 2000000, r);
	collect(imp, now + 4000000, r);
	assert_true(impairment_is_empty(imp));
	memcpy(r->count, count, sizeof(count));
	impairment_destroy(imp);
	assert_no_leak();
}

static bool around(uint64_t value, double expected)
{
	return value > expected * 0.75 && value < expected * 1.25;
}

TEST(impairment__off_is_not_wanted)
{
	struct port_impairment c = {.seed = 9};

	assert_false(impairment_wanted(&c));
	c.jitter_us = 1;
	assert_true(impairment_wanted(&c));
}

TEST(impairment__loss)
{
	struct port_impairment c = {.loss = 0.1, .seed = 42};
	static struct run r;

	play(&c, &r);
	/* Exact: the seed decides. A change of the generator changes this number. */
	assert_int_equal(r.count[PORT_COUNTER_impaired_lost], LOST_OF_SEED_42);
	assert_int_equal(r.n, FRAMES - LOST_OF_SEED_42);
	c.loss = 1;
	play(&c, &r);
	assert_int_equal(r.n, 0);
}

TEST(impairment__same_seed_same_fate)
{
	struct port_impairment c = {.loss = 0.05,
				    .duplicate = 0.05,
				    .reorder = 0.05,
				    .corrupt = 0.05,
				    .mark = 0.05,
				    .delay_us = 100,
				    .jitter_us = 50,
				    .seed = 7};
	static struct run first, second;

	play(&c, &first);
	play(&c, &second);
	assert_int_equal(first.n, second.n);
	assert_memory_equal(first.tag, second.tag, sizeof(first.tag));
	assert_memory_equal(first.count, second.count, sizeof(first.count));
	c.seed = 8;
	play(&c, &second);
	assert_memory_not_equal(first.tag, second.tag, sizeof(first.tag));
}

TEST(impairment__settings_do_not_shift_each_other)
{
	struct port_impairment c = {.loss = 0.1, .seed = 42};
	static struct run alone, together;

	play(&c, &alone);
	c.delay_us = 500;
	c.jitter_us = 100;
	play(&c, &together);
	assert_int_equal(alone.n, together.n);
	assert_memory_equal(alone.tag, together.tag, sizeof(alone.tag));
	assert_int_equal(together.count[PORT_COUNTER_impaired_delayed], together.n);
}

TEST(impairment__duplicate)
{
	struct port_impairment c = {.duplicate = 0.2, .seed = 1};
	static struct run r;

	play(&c, &r);
	assert_true(around(r.count[PORT_COUNTER_impaired_duplicated], FRAMES * 0.2));
	assert_int_equal(r.n, FRAMES + r.count[PORT_COUNTER_impaired_duplicated]);
}

TEST(impairment__reorder)
{
	struct port_impairment c = {.reorder = 0.1, .seed = 1};
	bool seen[FRAMES] = {false};
	static struct run r;
	unsigned int late = 0;

	play(&c, &r);
	assert_int_equal(r.n, FRAMES);
	for (unsigned int i = 0; i < r.n; i++) {
		assert_false(seen[r.tag[i]]);
		seen[r.tag[i]] = true;
		late += i > r.tag[i];
		/* passed by IMPAIRMENT_SPAN_MAX frames, among them others held meanwhile */
		assert_true((int)i - (int)r.tag[i] <= IMPAIRMENT_SPAN_MAX + IMPAIRMENT_HELD_MAX);
	}
	assert_true(around(r.count[PORT_COUNTER_impaired_reordered], FRAMES * 0.1));
	assert_true(late > FRAMES / 20);
}

TEST(impairment__last_frame_is_not_held_for_ever)
{
	struct port_impairment c = {.reorder = 1, .seed = 1};
	struct impairment *imp = impairment_create(&c, 0, packets, count, 1000000);
	struct rte_mbuf *m;

	impairment_take(imp, roce_v4(2, 1, 0), 0);
	assert_int_equal(impairment_due(imp, IMPAIRMENT_HOLD_US - 1, &m, 1), 0);
	assert_int_equal(impairment_due(imp, IMPAIRMENT_HOLD_US, &m, 1), 1);
	impairment_destroy(imp);
	assert_no_leak();
}

TEST(impairment__corrupt_flips_one_bit_in_a_copy)
{
	struct port_impairment c = {.corrupt = 1, .seed = 3};
	struct impairment *imp = impairment_create(&c, 0, packets, count, 1000000);

	for (unsigned int i = 0; i < 100; i++) {
		struct rte_mbuf *sent = roce_v4(2, 1, i), *m;
		unsigned int bits = 0;

		rte_mbuf_refcnt_update(sent, 1);
		impairment_take(imp, sent, i);
		assert_int_equal(impairment_due(imp, i, &m, 1), 1);
		impairment_sent(imp, 1);
		assert_int_equal(rte_pktmbuf_data_len(m), ROCE_FRAME_BYTES);
		for (unsigned int b = 0; b < ROCE_FRAME_BYTES; b++) {
			uint8_t diff = rte_pktmbuf_mtod(m, uint8_t *)[b] ^
				       rte_pktmbuf_mtod(sent, uint8_t *)[b];

			bits += __builtin_popcount(diff);
			assert_true(diff == 0 || b >= RTE_ETHER_HDR_LEN);
		}
		assert_int_equal(bits, 1);
		rte_pktmbuf_free(m);
		rte_pktmbuf_free(sent);
	}
	impairment_destroy(imp);
	assert_no_leak();
}

/* Only frames whose senders allow it; a frame that is kept to be sent again stays as it was. */
TEST(impairment__mark_is_in_a_copy)
{
	struct port_impairment c = {.mark = 1, .seed = 3};
	struct impairment *imp = impairment_create(&c, 0, packets, count, 1000000);
	uint64_t before = count[PORT_COUNTER_impaired_marked];

	for (unsigned int ecn = 0; ecn < 4; ecn++) {
		struct rte_mbuf *sent = roce_v4(2, 1, ecn), *m;
		uint8_t *tos = rte_pktmbuf_mtod_offset(sent, uint8_t *, RTE_ETHER_HDR_LEN + 1);
		bool may = ecn == 1 || ecn == 2;

		*tos = (uint8_t)ecn;
		rte_mbuf_refcnt_update(sent, 1);
		impairment_take(imp, sent, ecn);
		assert_int_equal(impairment_due(imp, ecn, &m, 1), 1);
		impairment_sent(imp, 1);
		assert_int_equal(m != sent, may);
		assert_int_equal(*tos, ecn);
		assert_int_equal(rte_pktmbuf_mtod(m, uint8_t *)[RTE_ETHER_HDR_LEN + 1],
				 may ? 3 : ecn);
		rte_pktmbuf_free(m);
		rte_pktmbuf_free(sent);
	}
	assert_int_equal(count[PORT_COUNTER_impaired_marked] - before, 2);
	impairment_destroy(imp);
	assert_no_leak();
}

/* A corrupted frame without ICRC would be accepted: such a frame gets one first. */
TEST(impairment__corrupt_frames_have_an_icrc)
{
	struct port_impairment c = {.corrupt = 1, .seed = 3};
	struct impairment *imp = impairment_create(&c, 0, packets, count, 1000000);
	unsigned int wrong = 0;

	for (unsigned int i = 0; i < 100; i++) {
		struct rte_mbuf *sent = roce_v4(2, 1, i), *m;
		const uint8_t *l3;

		sent->ol_flags |= ICRC_OMITTED;
		impairment_take(imp, sent, i);
		assert_int_equal(impairment_due(imp, i, &m, 1), 1);
		impairment_sent(imp, 1);
		assert_false(m->ol_flags & ICRC_OMITTED);
		l3 = rte_pktmbuf_mtod(m, const uint8_t *) + RTE_ETHER_HDR_LEN;
		wrong += wire_icrc(l3, m->data_len - RTE_ETHER_HDR_LEN - 4, false) !=
			 wire_icrc_load(l3 + m->data_len - RTE_ETHER_HDR_LEN - 4);
		rte_pktmbuf_free(m);
	}
	/* except for flips of what routers may change: 56 of 480 bits */
	assert_in_range(wrong, 75, 99);
	impairment_destroy(imp);
	assert_no_leak();
}

TEST(impairment__delay)
{
	struct port_impairment c = {.delay_us = 100, .seed = 1};
	struct impairment *imp = impairment_create(&c, 0, packets, count, 1000000);
	struct rte_mbuf *m[2];

	impairment_take(imp, roce_v4(2, 1, 0), 0);
	impairment_take(imp, roce_v4(2, 1, 1), 50);
	assert_int_equal(impairment_due(imp, 99, m, 2), 0);
	assert_int_equal(impairment_due(imp, 100, m, 2), 1);
	/* seen, not taken: offered again */
	assert_int_equal(impairment_due(imp, 150, m, 2), 2);
	assert_int_equal(tag_of(m[1]), 1);
	impairment_destroy(imp);
	assert_no_leak();
}

/* One by one, then the delay; what waits in front of the link is bounded. */
TEST(impairment__rate)
{
	struct port_impairment c = {.delay_us = 100, .rate_mbps = 1, .seed = 1};
	struct impairment *imp = impairment_create(&c, 0, packets, count, 1000000);
	const uint64_t each = (ROCE_FRAME_BYTES + IMPAIRMENT_GAP_BYTES) * 8;
	struct rte_mbuf *m[2];
	uint32_t n = 2;

	assert_true(impairment_wanted(&c));
	impairment_take(imp, roce_v4(2, 1, 0), 50);
	impairment_take(imp, roce_v4(2, 1, 1), 60);
	assert_int_equal(impairment_due(imp, 50 + each + 99, m, 2), 0);
	assert_int_equal(impairment_due(imp, 50 + each + 100, m, 2), 1);
	assert_int_equal(impairment_due(imp, 50 + 2 * each + 99, m, 2), 1);
	assert_int_equal(impairment_due(imp, 50 + 2 * each + 100, m, 2), 2);
	for (; impairment_has_room(imp, 60); n++)
		impairment_take(imp, roce_v4(2, 1, n), 60);
	assert_in_range(n * each, IMPAIRMENT_LINK_BYTES * 8, IMPAIRMENT_LINK_BYTES * 8 + 2 * each);
	assert_true(impairment_has_room(imp, 60 + each));
	impairment_destroy(imp);
	assert_no_leak();
}

TEST(impairment__full_line_is_back_pressure)
{
	struct port_impairment impair = {.delay_us = 1000000, .seed = 1};
	struct port_config a = ring_config("a", "b", 1), b = ring_config("b", "a", 2);
	unsigned int sent = 0;
	struct rte_mbuf *m;
	struct pair p;

	a.impairment = impair;
	p = open_pair(&a, &b);
	while (send_one(p.a, m = roce_v4(2, 1, sent)) == 1)
		sent++;
	rte_pktmbuf_free(m);
	assert_int_equal(sent, IMPAIRMENT_QUEUE - IMPAIRMENT_HELD_MAX - 1);
	close_pair(&p);
}

TEST(impairment__through_a_port)
{
	struct port_config a = ring_config("a", "b", 1), b = ring_config("b", "a", 2);
	struct rte_mbuf *got[4];
	uint32_t arrived = 0;
	struct pair p;

	a.impairment = (struct port_impairment){.loss = 0.1, .seed = 42};
	p = open_pair(&a, &b);
	for (uint32_t i = 0; i < FRAMES; i++) {
		uint16_t n;

		assert_int_equal(send_one(p.a, roce_v4(2, 1, i)), 1);
		n = receive(p.b, got, 4);
		arrived += n;
		rte_pktmbuf_free_bulk(got, n);
	}
	assert_int_equal(arrived, FRAMES - LOST_OF_SEED_42);
	assert_int_equal(port_counter(p.a, PORT_COUNTER_impaired_lost), LOST_OF_SEED_42);
	close_pair(&p);
}

/* Sends a frame with these marks through p. Did it arrive? */
static bool passes(struct pair *p, uint64_t marks)
{
	struct rte_mbuf *m = roce_v4(2, 1, 0), *got[4];
	uint16_t n;

	m->ol_flags |= marks;
	assert_int_equal(send_one(p->a, m), 1);
	n = receive(p->b, got, 4);
	rte_pktmbuf_free_bulk(got, n);
	return n == 1;
}

/* What refers to its payload has been made before the change: it suffers nothing. */
TEST(impairment__set_while_the_port_sends)
{
	static const struct {
		struct port_impairment impair;
		bool plain, referring;
	} rows[] = {
		{{.seed = 1}, true, true},
		{{.loss = 1, .seed = 1}, false, true},
		{{.seed = 1}, true, true},
		{{.delay_us = 1000000, .seed = 1}, false, true},
		{{.corrupt = 1, .seed = 1}, false, true},
	};
	struct port_config a = ring_config("a", "b", 1), b = ring_config("b", "a", 2);
	struct pair p = open_pair(&a, &b);

	for (unsigned int i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		assert_int_equal(port_set_impairment(p.a, &rows[i].impair), 0);
		assert_int_equal(passes(&p, 0), rows[i].plain);
		assert_int_equal(passes(&p, PAYLOAD_REF), rows[i].referring);
	}
	assert_int_equal(port_counter(p.a, PORT_COUNTER_impaired_lost), 1);
	close_pair(&p);
}

/* A delayed frame leaves while none is sent: whoever may sleep at the other end has to be woken. */
TEST(impairment__tells_when_a_delayed_frame_leaves)
{
	static const struct port_impairment impair = {.delay_us = 1, .seed = 1};
	struct port_config a = ring_config("a", "b", 1), b = ring_config("b", "a", 2);
	struct pair p = open_pair(&a, &b);
	struct rte_mbuf *got[4];
	uint16_t n = 0;

	assert_int_equal(port_set_impairment(p.a, &impair), 0);
	assert_int_equal(send_one(p.a, roce_v4(2, 1, 0)), 1);
	while (n == 0) {
		assert_int_equal(receive(p.a, got, 4), 0);
		n = receive(p.b, got, 4);
		assert_int_equal(port_link(p.a)->sent_later, n);
	}
	rte_pktmbuf_free_bulk(got, n);
	close_pair(&p);
}
