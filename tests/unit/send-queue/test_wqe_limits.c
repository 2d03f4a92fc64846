/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * WQEParse at the end of descriptors and of what they may hold: what lies behind a descriptor in
 * its buffer (another one was there before) is never looked at; limits, one less and one more;
 * flags that are not there. And the order of a single descriptor and a chain.
 */
#include <sys/mman.h>
#include "pipeline/machine.h"
#include "send_queue_fixture.h"

enum wp_state {
#define STATE(id, text) WP_##id,
#include "wqe_parse.def"
};

/* The descriptor parsed; behind it in its buffer lie the `bytes` at `stale`. Freed by the caller.
 */
static struct rte_mbuf *parse_before(const struct wqe *w, uint8_t opcode, const void *stale,
				     uint32_t bytes)
{
	struct rte_mbuf *m = fetched(w->qp, opcode, w->offset, w->bytes);

	if (bytes)
		memcpy(request_wqe(m) + w->bytes, stale, bytes);
	fx_put(CHANNEL_WS_WP, m);
	assert_true(wp_poll(fx->e) > 0);
	m = fx_take(CHANNEL_WP_DP);
	assert_non_null(m);
	return m;
}

static struct rte_mbuf *parse(const struct wqe *w, uint8_t opcode)
{
	return parse_before(w, opcode, NULL, 0);
}

static void assert_outcome(struct rte_mbuf *m, enum wire_outcome outcome, uint32_t length)
{
	assert_int_equal(request_of(m)->outcome, outcome);
	assert_int_equal(request_of(m)->length, length);
	rte_mbuf_raw_free(m);
}

/* ---- the end of a descriptor ---- */

/* An address unit and inline data that were another descriptor's do not complete this one. */
TEST(end__address_unit_of_another_descriptor)
{
	struct {
		struct wqe_ud u;
		uint32_t head;
		uint8_t bytes[12];
	} stale = {.u = {.dmac = {2}, .qpn = 5}, .head = WQE_INLINE | 8};
	struct wqe w = wqe_begin(0, 0, 0);

	fx_service(0, SERVICE_UD);
	assert_outcome(parse_before(&w, USER_SEND, &stale, sizeof(stale)), OUTCOME_LOCAL_QP_OP, 0);
	fx_assert_counter(bad_wqe, 1);
}

/* A WRITE without data stays one, whatever was inline before. */
TEST(end__inline_data_of_another_descriptor)
{
	const uint32_t stale[4] = {WQE_INLINE | 4, 1, 2, 3};
	struct wqe w = wqe_begin(0, 0, 0);
	struct rte_mbuf *m;

	wqe_add_raddr(&w);
	m = parse_before(&w, USER_RDMA_WRITE, stale, sizeof(stale));
	assert_int_equal(request_of(m)->flags & REQUEST_INLINE, 0);
	assert_outcome(m, OUTCOME_OK, 0);
}

/* A SEND without data is done with its first unit. */
TEST(end__send_without_data)
{
	uint64_t before = machine_taken("WQEParse", WP_NEXT_SEG, WP_IDLE);
	struct wqe w = wqe_begin(0, 0, 0);

	assert_outcome(parse(&w, USER_SEND), OUTCOME_OK, 0);
	fx_assert_steps(machine_taken("WQEParse", WP_NEXT_SEG, WP_IDLE), before + 1);
}

/* An entry that was another descriptor's is not checked. */
TEST(end__entry_of_another_descriptor)
{
	const struct wqe_data stale = {.length = 1, .lkey = 0xdead, .addr = FX_VA};
	struct wqe w = wqe_begin(0, 0, 0);
	struct rte_mbuf *m;

	wqe_add_raddr(&w);
	wqe_add_data(&w, FX_KEY, FX_VA, 8);
	wqe_add_data(&w, FX_KEY, FX_VA + 8, 8);
	m = parse_before(&w, USER_RDMA_READ, &stale, sizeof(stale));
	assert_int_equal(request_of(m)->data_units, 2);
	assert_outcome(m, OUTCOME_OK, 16);
	fx_assert_counter(v2p_key_error, 0);
}

/* ---- the end of the queue ---- */

/* All descriptors that end with the queue, wherever they begin: all of their bytes come along and
 * none from behind the queue, where nothing is mapped. */
TEST(fetch__up_to_the_end_of_the_queue)
{
	enum { PAGE = 4096 };
	struct qp *q = fx->qp[0];
	uint8_t *sq =
		mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	assert_ptr_not_equal(sq, MAP_FAILED);
	assert_int_equal(mprotect(sq + PAGE, PAGE, PROT_NONE), 0);
	for (uint32_t i = 0; i < PAGE; i++)
		sq[i] = fx_pattern(5, i);
	q->sq = sq;
	q->sq_bytes = PAGE;
	for (uint32_t units = 1; units <= WQE_UNITS_MAX; units++) {
		uint32_t bytes = units * WQE_UNIT_BYTES;
		struct rte_mbuf *m = fetched(0, USER_SEND, PAGE - bytes, bytes);

		assert_memory_equal(request_wqe(m), sq + PAGE - bytes, bytes);
		assert_false(wqe_fetch(q, PAGE - bytes + WQE_UNIT_BYTES, units, m));
		rte_mbuf_raw_free(m);
	}
	q->sq = fx->sq[0];
	q->sq_bytes = FX_SQ_BYTES;
	munmap(sq, 2 * PAGE);
}

/* ---- flags ---- */

static uint8_t flags_of(uint32_t wqe_flags)
{
	struct wqe w = wqe_begin(0, 0, wqe_flags);
	struct rte_mbuf *m = parse(&w, USER_SEND);
	uint8_t flags = request_of(m)->flags;

	rte_mbuf_raw_free(m);
	return flags;
}

TEST(flags__only_what_is_asked_for)
{
	assert_int_equal(flags_of(0), 0);
	assert_int_equal(flags_of(WQE_SIGNALED), REQUEST_SIGNALED);
	assert_int_equal(flags_of(WQE_SOLICITED), REQUEST_SOLICITED);
	fx->qp[0]->sq_signal_all = 1;
	assert_int_equal(flags_of(0), REQUEST_SIGNALED);
	assert_int_equal(flags_of(WQE_SOLICITED), REQUEST_SIGNALED | REQUEST_SOLICITED);
}

/* ---- a chain behind a single descriptor ---- */

/* The single one is parsed first; that ends no chain: the doorbell behind the chain still waits. */
TEST(chain__behind_a_single_descriptor)
{
	static const uint32_t order[] = {0, 64, 128, 192, 256, 512};

	for (unsigned i = 1; i < 4; i++)
		wqe_link(0, 64 * i, 64 * (i + 1), USER_SEND, 1);
	wqe_empty_send(0, 256);
	fx_put(CHANNEL_DBP_WS, fetched(0, USER_SEND, 0, 16));
	fx_put(CHANNEL_DBP_WS, fetched(0, USER_SEND, 64, 16));
	fx_put(CHANNEL_DBP_WS, fetched(0, USER_SEND, 512, 16));
	fx->e->settings.pipeline_depth = 3; /* the single one and half of the chain */
	ws_poll(fx->e);
	fx_fill(CHANNEL_WP_DP, 1);
	wp_poll(fx->e); /* room for the single one only */
	ws_poll(fx->e);
	for (unsigned i = channel_infos[CHANNEL_WP_DP].depth - 1; i; i--)
		rte_mbuf_raw_free(fx_take(CHANNEL_WP_DP));
	for (unsigned i = 0; i < RTE_DIM(order); i++) {
		wp_poll(fx->e);
		assert_descriptor(CHANNEL_WP_DP, 0, order[i]);
		fx->qp[0]->rtc.consumed++;
		wake_post(&fx->e->wake[WAKE_WS], &fx->qp[0]->wake[WAKE_WS], fx->qp[0]->index);
		ws_poll(fx->e);
	}
}
