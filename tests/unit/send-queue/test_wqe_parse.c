/* SPDX-License-Identifier: BSD-3-Clause */
/* WQEParse alone: descriptors in WS_WP, requests in WP_DP, the rest of chains in WP_WS. */
#include "send_queue_fixture.h"

static void parse_put(const struct wqe *w, uint8_t opcode)
{
	fx_put(CHANNEL_WS_WP, fetched(w->qp, opcode, w->offset, w->bytes));
	assert_true(wp_poll(fx->e) > 0);
}

/* The parsed request; freed by the caller. */
static struct rte_mbuf *parse(const struct wqe *w, uint8_t opcode)
{
	struct rte_mbuf *m;

	parse_put(w, opcode);
	m = fx_take(CHANNEL_WP_DP);
	assert_non_null(m);
	assert_null(fx_take(CHANNEL_WP_DP));
	return m;
}

/* Each operation, with the services that may use it and the units it needs. */
static const struct operation {
	uint8_t opcode;
	uint8_t services; /* bits */
	bool raddr, atomic;
} operations[] = {
	{USER_SEND, 7, false, false},	       {USER_SEND_IMM, 7, false, false},
	{USER_SEND_INV, 1, false, false},      {USER_RDMA_WRITE, 3, true, false},
	{USER_RDMA_WRITE_IMM, 3, true, false}, {USER_RDMA_READ, 1, true, false},
	{USER_ATOMIC_CS, 1, true, true},       {USER_ATOMIC_FA, 1, true, true},
	{USER_ATOMIC_WRITE, 1, true, false},   {USER_FLUSH, 1, true, true},
};

static struct wqe build(const struct operation *o, enum qp_service service, uint32_t length)
{
	struct wqe w = wqe_begin(0, 0, WQE_SIGNALED | WQE_SOLICITED);
	struct wqe_atomic a = {0x1111, 0x2222};
	struct wqe_ud u = {.qpn = 5};

	if (o->raddr)
		wqe_add_raddr(&w);
	if (o->atomic)
		wqe_add(&w, &a, sizeof(a));
	if (service == SERVICE_UD)
		wqe_add(&w, &u, sizeof(u));
	if (o->opcode != USER_FLUSH)
		wqe_add_data(&w, FX_KEY, FX_VA, length);
	return w;
}

static void assert_parsed(struct rte_mbuf *m, const struct operation *o, enum qp_service service)
{
	struct request *r = request_of(m);

	assert_int_equal(r->outcome, OUTCOME_OK);
	assert_int_equal(r->service, service);
	assert_int_equal(r->length, o->opcode == USER_FLUSH			  ? 0
				    : o->atomic || o->opcode == USER_ATOMIC_WRITE ? 8
										  : 100);
	assert_int_equal(r->data_units, o->opcode != USER_FLUSH);
	assert_int_equal(r->imm, 0x01020304);
	assert_int_equal(r->flags, REQUEST_SIGNALED | REQUEST_SOLICITED);
	if (o->raddr) {
		assert_true(r->raddr == 0x123456789a);
		assert_int_equal(r->rkey, 0x777);
	}
	if (o->atomic) {
		assert_true(r->swap_add == 0x1111);
		assert_true(r->compare == 0x2222);
	}
	if (service == SERVICE_UD)
		assert_int_equal(r->ud_offset, 16);
	if (r->data_units)
		assert_int_equal(((struct wqe_data *)(request_wqe(m) + r->data_first))->length,
				 100);
}

TEST(wp_poll__every_operation_on_every_service)
{
	unsigned refused = 0;

	for (enum qp_service s = SERVICE_RC; s <= SERVICE_UD; s++)
		for (unsigned i = 0; i < RTE_DIM(operations); i++) {
			struct wqe w = build(&operations[i], s, 100);
			struct rte_mbuf *m;

			fx_service(0, s);
			m = parse(&w, operations[i].opcode);
			if (operations[i].services >> s & 1) {
				assert_parsed(m, &operations[i], s);
			} else {
				assert_int_equal(request_of(m)->outcome, OUTCOME_LOCAL_QP_OP);
				refused++;
			}
			rte_mbuf_raw_free(m);
		}
	assert_int_equal(refused, 6 + 8);
	fx_assert_counter(bad_wqe_opcode, refused);
	fx_assert_counter(wqes, 3 * RTE_DIM(operations));
}

TEST(wp_poll__undefined_operations)
{
	for (uint8_t opcode = 0; opcode <= DOORBELL_OPCODE_MASK; opcode++) {
		struct wqe w = wqe_begin(0, 0, 0);
		struct rte_mbuf *m;
		bool known = false;

		for (unsigned i = 0; i < RTE_DIM(operations); i++)
			known |= operations[i].opcode == opcode;
		known |=
			opcode == USER_BIND_MW || opcode == USER_LOCAL_INV || opcode == USER_REG_MR;
		if (known)
			continue;
		m = parse(&w, opcode);
		assert_int_equal(request_of(m)->outcome, OUTCOME_LOCAL_QP_OP);
		rte_mbuf_raw_free(m);
	}
	fx_assert_counter(bad_wqe_opcode, 32 - RTE_DIM(operations) - 3);
}

static void refused(const struct wqe *w, uint8_t opcode, enum wire_outcome outcome,
		    enum counter why)
{
	uint64_t before = fx_counter(why);
	struct rte_mbuf *m = parse(w, opcode);

	assert_int_equal(request_of(m)->outcome, outcome);
	assert_int_equal(request_of(m)->length, 0);
	assert_int_equal(request_of(m)->data_units, 0);
	assert_int_equal(request_of(m)->flags & REQUEST_INLINE, 0);
	assert_int_equal(fx_counter(why), before + 1);
	rte_mbuf_raw_free(m);
}

TEST(wp_poll__unit_missing)
{
	struct wqe w = wqe_begin(0, 0, 0);

	refused(&w, USER_RDMA_WRITE, OUTCOME_LOCAL_QP_OP, COUNTER_bad_wqe);
	refused(&w, USER_RDMA_READ, OUTCOME_LOCAL_QP_OP, COUNTER_bad_wqe);
	wqe_add_raddr(&w);
	refused(&w, USER_ATOMIC_FA, OUTCOME_LOCAL_QP_OP, COUNTER_bad_wqe);
	fx_service(0, SERVICE_UD);
	w = wqe_begin(0, 0, 0);
	refused(&w, USER_SEND, OUTCOME_LOCAL_QP_OP, COUNTER_bad_wqe);
	wqe_add_raddr(&w);
	wqe_add_raddr(&w); /* two of three units */
	refused(&w, USER_SEND, OUTCOME_LOCAL_QP_OP, COUNTER_bad_wqe);
}

TEST(wp_poll__entries_at_the_limit)
{
	struct wqe w = wqe_begin(0, 0, 0);
	struct rte_mbuf *m;

	for (unsigned i = 0; i < SGE_MAX; i++)
		wqe_add_data(&w, FX_KEY, FX_VA + i, 1);
	m = parse(&w, USER_SEND);
	assert_int_equal(request_of(m)->outcome, OUTCOME_OK);
	assert_int_equal(request_of(m)->data_units, SGE_MAX);
	assert_int_equal(request_of(m)->length, SGE_MAX);
	rte_mbuf_raw_free(m);
	wqe_add_data(&w, FX_KEY, FX_VA, 1);
	refused(&w, USER_SEND, OUTCOME_LOCAL_QP_OP, COUNTER_bad_wqe);
}

TEST(wp_poll__inline_too_long)
{
	static const uint32_t claims[] = {13, 28, 1000, 0x7fffffff};

	for (unsigned i = 0; i < RTE_DIM(claims); i++) {
		struct wqe w = wqe_begin(0, 0, 0);

		wqe_add_inline(&w, 12, claims[i], 3);
		refused(&w, USER_SEND, OUTCOME_LOCAL_QP_OP, COUNTER_bad_wqe);
	}
}

TEST(wp_poll__inline_where_data_comes_back)
{
	struct wqe w = wqe_begin(0, 0, 0);

	wqe_add_raddr(&w);
	wqe_add_inline(&w, 8, 8, 3);
	refused(&w, USER_RDMA_READ, OUTCOME_LOCAL_QP_OP, COUNTER_bad_wqe);
}

static struct wqe of_lengths(uint32_t first, uint32_t second)
{
	struct wqe w = wqe_begin(0, 0, 0);

	wqe_add_data(&w, FX_HUGE_KEY, FX_HUGE_VA, first);
	wqe_add_data(&w, FX_HUGE_KEY, FX_HUGE_VA, second);
	return w;
}

TEST(wp_poll__message_length_at_the_limit)
{
	struct wqe w = of_lengths(0x7fffffff, 1); /* 2^31: C9-72 */

	for (uint16_t mtu = 256; mtu <= 4096; mtu *= 2) {
		struct rte_mbuf *m;

		fx->qp[0]->mtu_bytes = mtu;
		m = parse(&w, USER_SEND);
		assert_int_equal(request_of(m)->outcome, OUTCOME_OK);
		assert_true(request_of(m)->length == MESSAGE_BYTES_MAX);
		rte_mbuf_raw_free(m);
	}
	w = of_lengths(0x7fffffff, 2);
	refused(&w, USER_SEND, OUTCOME_LOCAL_LENGTH, COUNTER_bad_wqe_length);
	w = of_lengths(0x7fffffff, 0x7fffffff);
	refused(&w, USER_SEND, OUTCOME_LOCAL_LENGTH, COUNTER_bad_wqe_length);
	w = of_lengths(4, 0x80000001u); /* an inline mark behind the first unit */
	refused(&w, USER_SEND, OUTCOME_LOCAL_QP_OP, COUNTER_bad_wqe);
}

TEST(wp_poll__atomic_needs_eight_bytes)
{
	struct wqe w = build(&operations[7], SERVICE_RC, 7);

	refused(&w, USER_ATOMIC_FA, OUTCOME_LOCAL_LENGTH, COUNTER_bad_wqe_length);
}

TEST(wp_poll__local_access)
{
	struct wqe w = wqe_begin(0, 0, 0);

	/* A READ writes here */
	wqe_add_raddr(&w);
	wqe_add_data(&w, FX_READ_KEY, FX_VA, 8);
	refused(&w, USER_RDMA_READ, OUTCOME_LOCAL_PROT, COUNTER_bad_wqe_access);
	fx_assert_counter(v2p_flags_error, 1);
	/* Several packets: known before the first leaves */
	w = wqe_begin(0, 0, 0);
	wqe_add_data(&w, FX_KEY, FX_VA, FX_MTU);
	wqe_add_data(&w, FX_KEY, FX_VA + FX_MEMORY_BYTES, 1);
	refused(&w, USER_SEND, OUTCOME_LOCAL_PROT, COUNTER_bad_wqe_access);
	fx_assert_counter(v2p_length_error, 1);
	w = wqe_begin(0, 0, 0);
	wqe_add_data(&w, 0x9909, FX_VA, FX_MTU + 1);
	refused(&w, USER_SEND, OUTCOME_LOCAL_PROT, COUNTER_bad_wqe_access);
	fx_assert_counter(v2p_key_error, 1);
	fx->qp[0]->pd++;
	w = wqe_begin(0, 0, 0);
	wqe_add_data(&w, FX_KEY, FX_VA, FX_MTU + 1);
	refused(&w, USER_SEND, OUTCOME_LOCAL_PROT, COUNTER_bad_wqe_access);
	fx_assert_counter(v2p_pd_error, 1);
}

static void local(const struct wqe *w, uint8_t opcode, uint32_t first)
{
	struct rte_mbuf *m = parse(w, opcode);

	assert_int_equal(request_of(m)->outcome, OUTCOME_OK);
	assert_int_equal(request_of(m)->flags, REQUEST_LOCAL);
	assert_int_equal(request_of(m)->data_first, first);
	assert_int_equal(request_of(m)->length, 0);
	rte_mbuf_raw_free(m);
}

TEST(wp_poll__local_operations)
{
	struct wqe_bind bind = {.key = 1};
	struct wqe_register reg = {.pages = 3};
	uint64_t page[4] = {0};
	struct wqe w = wqe_begin(0, 0, 0);

	for (enum qp_service s = SERVICE_RC; s <= SERVICE_UC; s++) {
		fx_service(0, s);
		w = wqe_begin(0, 0, 0);
		local(&w, USER_LOCAL_INV, 16);
		wqe_add(&w, &bind, sizeof(bind));
		local(&w, USER_BIND_MW, 16);
		w = wqe_begin(0, 0, 0);
		wqe_add(&w, &reg, sizeof(reg));
		wqe_add(&w, page, 32);
		local(&w, USER_REG_MR, 16);
	}
	reg.pages = WQE_REGISTER_PAGES;
	w = wqe_begin(0, 0, 0);
	wqe_add(&w, &reg, sizeof(reg));
	for (unsigned i = 0; i < WQE_REGISTER_PAGES / 4; i++)
		wqe_add(&w, page, 32);
	local(&w, USER_REG_MR, 16);
	fx_service(0, SERVICE_UD);
	refused(&w, USER_REG_MR, OUTCOME_LOCAL_QP_OP, COUNTER_bad_wqe_opcode);
	refused(&w, USER_LOCAL_INV, OUTCOME_LOCAL_QP_OP, COUNTER_bad_wqe_opcode);
	refused(&w, USER_BIND_MW, OUTCOME_LOCAL_QP_OP, COUNTER_bad_wqe_opcode);
}

TEST(wp_poll__local_operations_malformed)
{
	struct wqe_bind bind = {.key = 1};
	struct wqe_register reg = {.pages = 3};
	uint64_t page[4] = {0};
	struct wqe w = wqe_begin(0, 0, 0), with_pages;

	refused(&w, USER_BIND_MW, OUTCOME_LOCAL_QP_OP, COUNTER_bad_wqe_local);
	refused(&w, USER_REG_MR, OUTCOME_LOCAL_QP_OP, COUNTER_bad_wqe_local);
	wqe_add(&w, &bind, 16);
	refused(&w, USER_BIND_MW, OUTCOME_LOCAL_QP_OP, COUNTER_bad_wqe_local);
	refused(&w, USER_LOCAL_INV, OUTCOME_LOCAL_QP_OP, COUNTER_bad_wqe_local);
	wqe_add(&w, &bind, 32); /* a unit too many */
	refused(&w, USER_BIND_MW, OUTCOME_LOCAL_QP_OP, COUNTER_bad_wqe_local);
	bind.reserved = 1;
	w = wqe_begin(0, 0, 0);
	wqe_add(&w, &bind, sizeof(bind));
	refused(&w, USER_BIND_MW, OUTCOME_LOCAL_QP_OP, COUNTER_bad_wqe_local);
	for (unsigned i = 0; i < 5; i++) {
		static const uint16_t pages[] = {0, 1, 5, WQE_REGISTER_PAGES + 1, 3};

		reg.pages = pages[i];
		reg.reserved = i == 4;
		with_pages = wqe_begin(0, 0, 0);
		wqe_add(&with_pages, &reg, sizeof(reg));
		/* Ends before its pages. */
		refused(&with_pages, USER_REG_MR, OUTCOME_LOCAL_QP_OP, COUNTER_bad_wqe_local);
		wqe_add(&with_pages, page, 32);
		refused(&with_pages, USER_REG_MR, OUTCOME_LOCAL_QP_OP, COUNTER_bad_wqe_local);
	}
}

/* A key that a fast registration may make good before the request's turn comes. */
TEST(wp_poll__key_that_may_become_good)
{
	struct mpt_entry fast = {
		.key = 0x7707, .pd = FX_PD, .flags = MPT_FAST | MPT_INVALIDATE_REMOTE};
	struct wqe w = wqe_begin(0, 0, 0);
	struct rte_mbuf *m;

	assert_int_equal(v2p_write_mpt(&fx->h->v2p, &fast), 0);
	wqe_add_data(&w, 0x7705, FX_VA, FX_MTU + 1);
	m = parse(&w, USER_SEND);
	assert_int_equal(request_of(m)->outcome, OUTCOME_OK);
	rte_mbuf_raw_free(m);
	assert_int_equal(v2p_invalidate_mpt(&fx->h->v2p, 0x7707), 0);
	refused(&w, USER_SEND, OUTCOME_LOCAL_PROT, COUNTER_bad_wqe_access);
}

/* Another lcore holds what a READ to a region in pages needs: the request stays, and continues when
 * it is free. What is before it in its chain does not wait. */
TEST(wp_poll__waits_for_virt_to_phys)
{
	const struct mpt_entry region = {.key = 0x7707,
					 .pd = FX_PD,
					 .flags = MPT_PAGES,
					 .access = ACCESS_LOCAL_WRITE,
					 .start = FX_VA,
					 .length = 8,
					 .log_page = 12};
	struct v2p *v = &fx->h->v2p;
	struct wqe w = wqe_begin(0, 0, 0);
	struct tpt_hold hold;
	struct rte_mbuf *m;

	wqe_add_raddr(&w);
	assert_int_equal(v2p_write_mpt(v, &region), 0);
	wqe_add_data(&w, region.key, FX_VA, 8);
	wqe_empty_send(0, 512);
	wqe_link(0, 512, 0, USER_RDMA_READ, w.bytes / 16);
	for (unsigned before = 0; before < 2; before++) {
		assert_true(tpt_take(&v->mpt_cache, v2p_index(v, region.key), NULL, &hold));
		fx_put(CHANNEL_WS_WP, before ? fetched(0, USER_SEND, 512, 16)
					     : fetched(0, USER_RDMA_READ, w.offset, w.bytes));
		wp_poll(fx->e);
		if (before) {
			assert_descriptor(CHANNEL_WP_DP, 0, 512);
			m = fx_take(CHANNEL_WP_WS);
			request_of(m)->allowance = 1;
			fx_put(CHANNEL_WS_WP, m);
		}
		assert_null(fx_take(CHANNEL_WP_DP));
		tpt_release(&hold);
		for (int i = 0; i < 3; i++)
			wp_poll(fx->e);
		m = fx_take(CHANNEL_WP_DP);
		assert_non_null(m);
		assert_int_equal(request_of(m)->outcome, OUTCOME_OK);
		rte_mbuf_raw_free(m);
	}
}

TEST(wp_poll__queue_pair_in_error)
{
	static const enum qp_state states[] = {QP_ERR, QP_SQE};

	for (unsigned i = 0; i < 2; i++) {
		struct wqe w = wqe_begin(0, 0, 0);
		struct rte_mbuf *m;

		fx->qp[0]->state = states[i];
		m = parse(&w, USER_SEND);
		assert_int_equal(request_of(m)->outcome, OUTCOME_FLUSH);
		rte_mbuf_raw_free(m);
	}
}

/* Six SENDs, each naming the next. */
static void chain_of_six(void)
{
	for (uint32_t i = 0; i < 6; i++) {
		wqe_empty_send(0, i * 64);
		if (i < 5)
			wqe_link(0, i * 64, i * 64 + 64, USER_SEND, 1 | (i == 2 ? WQE_NEXT_F : 0));
	}
}

TEST(wp_poll__chain_to_its_end)
{
	struct rte_mbuf *first;

	fx->qp[0]->ws.chain = 1;
	chain_of_six();
	first = fetched(0, USER_SEND, 0, 16);
	request_of(first)->sq_epoch = 9;
	fx_put(CHANNEL_WS_WP, first);
	wp_poll(fx->e);
	assert_int_equal(fx_ring_count(CHANNEL_WP_DP), 6);
	for (unsigned i = 0; i < 6; i++) {
		struct rte_mbuf *m = fx_take(CHANNEL_WP_DP);

		assert_int_equal(request_of(m)->wqe_offset, i * 64);
		assert_int_equal(request_of(m)->opcode, USER_SEND);
		assert_int_equal(request_of(m)->sq_epoch, 9); /* of the doorbell, as all of it */
		assert_int_equal(!!(request_of(m)->flags & REQUEST_FENCE), i == 3);
		assert_int_equal(!!(request_of(m)->flags & REQUEST_CHAINED), i > 0);
		rte_mbuf_raw_free(m);
	}
	assert_int_equal(fx_ring_count(CHANNEL_WP_WS), 0);
	assert_int_equal(fx->qp[0]->ws.chain, 0);
	assert_int_equal(fx->qp[0]->ws.issued, 5);
}

TEST(wp_poll__chain_given_back_at_the_allowance)
{
	struct rte_mbuf *m;

	fx->qp[0]->ws.chain = 1;
	chain_of_six();
	m = fetched(0, USER_SEND, 0, 16);
	request_of(m)->allowance = 4;
	fx_put(CHANNEL_WS_WP, m);
	wp_poll(fx->e);
	for (unsigned i = 0; i < 4; i++)
		assert_descriptor(CHANNEL_WP_DP, 0, i * 64);
	assert_null(fx_take(CHANNEL_WP_DP));
	assert_descriptor(CHANNEL_WP_WS, 0, 256);
	assert_int_equal(fx->qp[0]->ws.chain, 1); /* until WQEScheduler has it */
	assert_int_equal(fx->qp[0]->ws.issued, 3);
}

TEST(wp_poll__next_descriptor_with_a_doorbell_of_its_own)
{
	wqe_empty_send(0, 0);
	wqe_link(0, 0, 64, USER_SEND, 1 | WQE_NEXT_D);
	fx_put(CHANNEL_WS_WP, fetched(0, USER_SEND, 0, 16));
	wp_poll(fx->e);
	assert_descriptor(CHANNEL_WP_DP, 0, 0);
	assert_null(fx_take(CHANNEL_WP_DP));
	assert_null(fx_take(CHANNEL_WP_WS));
}

TEST(wp_poll__next_descriptor_outside_of_the_queue)
{
	static const uint32_t offsets[] = {FX_SQ_BYTES, 0xffffffc0u, FX_SQ_BYTES - 64};

	for (unsigned i = 0; i < RTE_DIM(offsets); i++) {
		fx->qp[0]->ws.chain = 1;
		wqe_empty_send(0, 0);
		wqe_link(0, 0, offsets[i], USER_SEND, 5);
		fx_put(CHANNEL_WS_WP, fetched(0, USER_SEND, 0, 16));
		wp_poll(fx->e);
		assert_descriptor(CHANNEL_WP_DP, 0, 0);
		assert_null(fx_take(CHANNEL_WP_DP));
		assert_null(fx_take(CHANNEL_WP_WS));
		assert_int_equal(fx->qp[0]->ws.chain, 0); /* later doorbells do not wait for ever */
	}
	fx_assert_counter(bad_wqe, RTE_DIM(offsets));
}

/* A cyclic chain is followed at the pace of its allowance, and does not stop others. */
TEST(wp_poll__endless_chain)
{
	wqe_empty_send(0, 0);
	wqe_link(0, 0, 0, USER_SEND, 1);
	wqe_empty_send(1, 64);
	fx_put(CHANNEL_WS_WP, fetched(0, USER_SEND, 0, 16));
	fx_put(CHANNEL_WS_WP, fetched(1, USER_SEND, 64, 16));
	wp_poll(fx->e);
	assert_int_equal(fx_ring_count(CHANNEL_WP_DP), BURST); /* and no more in one poll */
	for (unsigned i = 0; i < 2; i++)
		wp_poll(fx->e);
	assert_int_equal(fx_ring_count(CHANNEL_WP_DP), 64 + 1);
	assert_int_equal(fx_ring_count(CHANNEL_WP_WS), 1);
}

/* Allowances granted while there were enough descriptors do not empty the pool. */
TEST(wp_poll__many_endless_chains)
{
	enum { CHAINS = 12, SHARE = 3 * BURST };
	struct channel *out = &fx->e->channel[CHANNEL_WP_DP];
	struct rte_mbuf *kept[2 * CHAINS * BURST];
	unsigned n = 0;

	fx->e->descriptor_share = SHARE;
	wqe_empty_send(0, 0);
	wqe_link(0, 0, 0, USER_SEND, 1);
	for (unsigned i = 0; i < CHAINS; i++)
		fx_put(CHANNEL_WS_WP, fetched(0, USER_SEND, 0, 16));
	for (unsigned i = 0; i < 2 * CHAINS; i++) {
		wp_poll(fx->e);
		n += channel_take(out, &kept[n], BURST); /* held by a queue pair that waits */
	}
	assert_int_equal(fx_ring_count(CHANNEL_WP_WS), CHAINS);
	assert_in_range(n, BURST, SHARE + BURST);
	for (unsigned i = 0; i < n; i++) {
		channel_put_one(out, kept[i]);
		fx_unfill(CHANNEL_WP_DP);
	}
}

TEST(wp_poll__output_full)
{
	chain_of_six();
	fx_fill(CHANNEL_WP_DP, 0);
	fx_put(CHANNEL_WS_WP, fetched(0, USER_SEND, 0, 16));
	assert_int_equal(wp_poll(fx->e), 0);
	assert_int_equal(fx_ring_count(CHANNEL_WS_WP), 1);
	fx_unfill(CHANNEL_WP_DP);
	fx_fill(CHANNEL_WP_DP, 2);
	wp_poll(fx->e); /* two of the chain, the rest back */
	assert_int_equal(fx_ring_count(CHANNEL_WP_DP), channel_infos[CHANNEL_WP_DP].depth);
	assert_descriptor(CHANNEL_WP_WS, 0, 128);
}

TEST(wp_poll__way_back_full)
{
	fx_fill(CHANNEL_WP_WS, 0);
	wqe_empty_send(0, 0);
	fx_put(CHANNEL_WS_WP, fetched(0, USER_SEND, 0, 16));
	assert_int_equal(wp_poll(fx->e), 0);
	assert_int_equal(fx_ring_count(CHANNEL_WS_WP), 1);
	fx_unfill(CHANNEL_WP_WS);
	assert_true(wp_poll(fx->e) > 0);
	assert_descriptor(CHANNEL_WP_DP, 0, 0);
}

/* For a chain: others do not wait for it. */
TEST(wp_poll__no_descriptor_buffer)
{
	static const unsigned left[] = {0, 2};

	chain_of_six();
	wqe_empty_send(1, 0);
	for (unsigned k = 0; k < RTE_DIM(left); k++) {
		fx->qp[0]->ws.chain = 1;
		fx_put(CHANNEL_WS_WP, fetched(0, USER_SEND, 0, 16));
		fx_put(CHANNEL_WS_WP, fetched(1, USER_SEND, 0, 16));
		fx_exhaust(fx->descriptors, left[k]);
		wp_poll(fx->e);
		for (unsigned i = 0; i < left[k]; i++)
			assert_descriptor(CHANNEL_WP_DP, 0, i * 64);
		assert_descriptor(CHANNEL_WP_DP, 1, 0);
		assert_null(fx_take(CHANNEL_WP_DP));
		assert_descriptor(CHANNEL_WP_WS, 0, left[k] * 64); /* not parsed, not lost */
		fx_assert_counter(wqe_descriptor_empty, k + 1);
		fx_refill();
	}
}

TEST(wp_poll__stale_descriptor)
{
	wqe_empty_send(0, 0);
	fx_put(CHANNEL_WS_WP, fetched(0, USER_SEND, 0, 16));
	fx->qp[0]->epoch++;
	wp_poll(fx->e);
	assert_null(fx_take(CHANNEL_WP_DP));
	fx_assert_counter(drop_stale_wqe, 1);
}
