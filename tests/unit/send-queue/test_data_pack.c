/* SPDX-License-Identifier: BSD-3-Clause */
/* DataPack: passes requests on in order, as far as there is room. */
#include "send_queue_fixture.h"

TEST(dp_poll__bad_requests_pass_through)
{
	struct rte_mbuf *m = fx_request(0, USER_SEND, 0, 64);

	request_of(m)->outcome = OUTCOME_LOCAL_QP_OP;
	fx_put(CHANNEL_WP_DP, m);
	assert_int_equal(dp_poll(fx->e), 1);
	m = fx_take(CHANNEL_DP_RTC);
	assert_int_equal(request_of(m)->outcome, OUTCOME_LOCAL_QP_OP);
	rte_mbuf_raw_free(m);
}

/* Of these nothing is copied: entries continue in the descriptor itself. */
TEST(dp_poll__reads_atomics_and_empty_sends)
{
	static const uint8_t opcodes[] = {USER_RDMA_READ, USER_ATOMIC_FA, USER_SEND};

	for (unsigned i = 0; i < RTE_DIM(opcodes); i++)
		fx_put(CHANNEL_WP_DP, fx_request(0, opcodes[i], i < 2 ? 8 : 0, i * 64));
	assert_int_equal(dp_poll(fx->e), 3);
	for (unsigned i = 0; i < RTE_DIM(opcodes); i++)
		assert_descriptor(CHANNEL_DP_RTC, 0, i * 64);
}

TEST(dp_poll__output_full)
{
	fx_fill(CHANNEL_DP_RTC, 1);
	fx_put(CHANNEL_WP_DP, fx_request(0, USER_SEND, 10, 0));
	fx_put(CHANNEL_WP_DP, fx_request(0, USER_SEND, 10, 64));
	assert_int_equal(dp_poll(fx->e), 1);
	assert_int_equal(dp_poll(fx->e), 0);
	assert_int_equal(fx_ring_count(CHANNEL_WP_DP), 1);
	fx_unfill(CHANNEL_DP_RTC);
	assert_int_equal(dp_poll(fx->e), 1);
	assert_descriptor(CHANNEL_DP_RTC, 0, 64);
}
