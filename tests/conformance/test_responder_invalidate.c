/* SPDX-License-Identifier: BSD-3-Clause */
/* SEND with invalidate: when the key ends, and what is refused. Between two HCAs: test_windows.c. */
#include "rig.h"

enum { PSN = 0x100, AT = 4096, LEN = 100, MTU = 1024 };

static void invalidate(struct sim *s, uint8_t opcode, uint32_t psn, uint32_t key)
{
	struct wire_headers h = rig_headers(s, 0, opcode, psn, 0, 0);

	h.invalidate_rkey = key;
	h.ackreq = 1;
	rig_send(s, h, NULL, LEN);
}

/* The key of the entry that has this one, or had it. */
static uint32_t key_now(struct sim *s, uint32_t key)
{
	struct mpt_entry m;

	assert_true(v2p_entry_get(&s->node[0].hca->v2p, key, &m));
	return m.key;
}

TEST_RC(send_inv__nobody_finds_the_key_good_once_it_completed)
{
	uint32_t key = rig_window(s, AT, LEN);
	struct cqe c;

	sim_post_recv(s, 0, 0, 0, MTU + LEN);
	rig_request(s, 0, WIRE_RC_SEND_FIRST, PSN, 0, 0, MTU);
	rig_expect_ack(s, PSN, aeth_ack(0), 0);
	invalidate(s, WIRE_RC_SEND_LAST_INV, PSN + 1, key);
	while (!sim_poll_cq(s, 0, &c)) {
		assert_int_equal(key_now(s, key), key);
		sim_step(s);
	}
	assert_int_equal(c.opcode, USER_RECV_INV);
	assert_int_equal(c.byte_count, MTU + LEN);
	assert_int_equal(key_now(s, key), 0);
	rig_expect_ack(s, PSN + 1, aeth_ack(0), 1);
	rig_revoke(s, key);
}

/* Another lcore holds the key's set: all of the packet waits, and then counts once. */
TEST_RC(send_inv__the_key_is_held_elsewhere)
{
	struct v2p *v = &s->node[0].hca->v2p;
	uint32_t key = rig_window(s, AT, LEN), at = sim_post_recv(s, 0, 0, 0, LEN);
	struct tpt_hold hold;
	struct cqe c;

	assert_true(tpt_take(&v->mpt_cache, v2p_index(v, key), NULL, &hold));
	invalidate(s, WIRE_RC_SEND_ONLY_INV, PSN, key);
	for (int i = 0; i < 5; i++) {
		sim_step(s);
		assert_false(sim_poll_cq(s, 0, &c));
		assert_int_equal(rig_epsn(s, 0), PSN);
	}
	tpt_release(&hold);
	rig_expect_ack(s, PSN, aeth_ack(0), 1);
	c = rig_expect_cqe(s, USER_RECV_INV, 0, at);
	assert_int_equal(c.byte_count, LEN);
	rig_revoke(s, key);
}

/* A region, a number that is no key, none (windows: test_windows): earlier requests are
 * acknowledged, the SEND is neither acknowledged nor refused; its receive fails, and with it the
 * queue pair. */
TEST(send_inv__a_key_that_is_not_to_be_invalidated_draws_no_nak)
{
	for (unsigned i = 0; i < 3; i++) {
		struct sim *s = rig_make(SERVICE_RC);
		uint32_t window = rig_window(s, AT, LEN),
			 key[] = {s->node[0].key, window ^ 1u << 30, 0};
		uint32_t at = sim_post_recv(s, 0, 0, 0, LEN);

		rig_request(s, 0, WIRE_RC_WRITE_ONLY, PSN, AT, LEN, LEN);
		invalidate(s, WIRE_RC_SEND_ONLY_INV, PSN + 1, key[i]);
		rig_expect_ack(s, PSN, aeth_ack(0), 1);
		rig_expect_cqe(s, USER_INVALID, SYNDROME_LOCAL_ACCESS, at);
		rig_expect_event(s, EQE_WQ_ACCESS_ERROR, s->node[0].qp[0].qpn);
		assert_int_equal(qp_state(sim_context(s, 0, 0)), QP_ERR);
		rig_silent(s, 100 * US);
		rig_end(s);
	}
}
