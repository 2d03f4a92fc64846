/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A queue pair that was reset has nothing of its former life (IBTA volume 1, 10.3.1.1): whatever waits for
 * it somewhere in the HCA, before modules that stand meanwhile, is gone, however often it is reset. The
 * sequence numbers of the lives are the same, so that nothing else tells them apart.
 */
#include "pipeline/channel.h"
#include "pipeline/stepping.h"
#include "rig.h"

enum { BYTES = 64 };

static void stand(struct sim *s, uint32_t modules)
{
	stepping_set(&s->node[0].hca->engines[0], modules);
}

static void reborn(struct sim *s)
{
	sim_modify(s, 0, 0, QP_RST, 0);
	sim_modify(s, 0, 0, QP_INIT, 0);
	sim_modify(s, 0, 0, QP_RTR, 0);
	sim_modify(s, 0, 0, QP_RTS, 0);
}

static uint32_t post_write(struct sim *s)
{
	struct sim_wr wr = SIM_WR(USER_RDMA_WRITE, 0, BYTES);

	return sim_post(s, 0, 0, &wr);
}

/* Into memory of its own. */
static void post_read(struct sim *s, unsigned qp)
{
	struct sim_wr wr = SIM_WR(USER_RDMA_READ, qp * BYTES, BYTES);

	sim_post(s, 0, qp, &wr);
}

/* The queue pair works, from its first sequence numbers on. */
static void works(struct sim *s)
{
	uint32_t psn = s->params.psn, offset = post_write(s);

	rig_expect(s, WIRE_RC_WRITE_ONLY, psn);
	rig_ack(s, 0, psn, aeth_ack(AETH_CREDIT_INVALID), 1);
	rig_expect_cqe(s, USER_RDMA_WRITE, 0, offset);
	rig_request(s, 0, WIRE_RC_WRITE_ONLY, psn, BYTES, BYTES, BYTES);
	rig_expect_ack(s, psn, aeth_ack(AETH_CREDIT_INVALID), 1);
}

/* Has each of these modules stand by itself, while `begin` begins something and during `lives` resets. */
static void nothing_is_left(const enum module_id *modules, unsigned count, unsigned lives,
			    void (*begin)(struct sim *s, uint32_t modules))
{
	for (unsigned i = 0; i < count; i++) {
		struct sim *s = rig_make(SERVICE_RC);

		begin(s, 1u << modules[i]);
		for (unsigned k = 0; k < lives; k++)
			reborn(s);
		stand(s, 0);
		rig_quiet(s, 50 * US);
		rig_untouched(s, 0, 2 * BYTES);
		works(s);
		rig_end(s);
	}
}

static void begin_write(struct sim *s, uint32_t modules)
{
	stand(s, modules);
	post_write(s);
	sim_run(s, 10 * US);
}

static const enum module_id senders[] = {MODULE_DBP, MODULE_WS,	 MODULE_WP,
					 MODULE_DP,  MODULE_RTC, MODULE_RPG};

TEST(reset__ends_requests)
{
	nothing_is_left(senders, RTE_DIM(senders), 1, begin_write);
}

/* A small number of the life would have come round by then. */
TEST(reset__ends_requests_of_long_ago)
{
	nothing_is_left(senders, RTE_DIM(senders), 256, begin_write);
}

/* A chain of requests, in the midst of which the queue pair goes from INIT to ERR and RESET: it has
 * no path MTU, by which their packets could be counted (ctz(0)). Whatever module the chain has
 * reached, it is gone. */
TEST(reset__init_err_reset_in_the_midst_of_a_chain)
{
	for (unsigned i = 0; i < RTE_DIM(senders); i++) {
		struct sim *s = rig_make(SERVICE_RC);

		sim_renew(s, 0, 0);
		sim_modify(s, 0, 0, QP_INIT, 0);
		sim_modify(s, 0, 0, QP_ERR, 0);
		stand(s, 1u << senders[i]);
		for (unsigned n = 0; n < 3; n++) {
			post_write(s);
			post_read(s, 0);
		}
		sim_run(s, 10 * US);
		while (sim_poll_cq(s, 0, &(struct cqe){0}))
			;
		sim_modify(s, 0, 0, QP_RST, 0);
		stand(s, 0);
		rig_quiet(s, 50 * US);
		sim_modify(s, 0, 0, QP_INIT, 0);
		sim_modify(s, 0, 0, QP_RTR, 0);
		sim_modify(s, 0, 0, QP_RTS, 0);
		works(s);
		rig_end(s);
	}
}

static void begin_again(struct sim *s, uint32_t modules)
{
	post_write(s);
	rig_expect(s, WIRE_RC_WRITE_ONLY, s->params.psn);
	stand(s, modules);
	rig_ack(s, 0, s->params.psn, aeth_nak(AETH_NAK_SEQUENCE), 0);
	sim_run(s, 10 * US);
}

TEST(reset__ends_retransmissions)
{
	static const enum module_id modules[] = {MODULE_RPG, MODULE_RRC};

	nothing_is_left(modules, RTE_DIM(modules), 1, begin_again);
}

static void begin_request(struct sim *s, uint32_t modules)
{
	stand(s, modules);
	rig_request(s, 0, WIRE_RC_WRITE_ONLY, s->params.psn, 0, BYTES, BYTES);
	sim_run(s, 10 * US);
}

static void begin_read(struct sim *s, uint32_t modules)
{
	stand(s, modules);
	rig_request(s, 0, WIRE_RC_READ_REQUEST, s->params.psn, 0, BYTES, 0);
	sim_run(s, 10 * US);
}

TEST(reset__ends_requests_of_the_peer)
{
	static const enum module_id modules[] = {MODULE_EE};

	nothing_is_left(modules, RTE_DIM(modules), 1, begin_request);
}

TEST(reset__ends_answers)
{
	static const enum module_id modules[] = {MODULE_EE, MODULE_RESPG};

	nothing_is_left(modules, RTE_DIM(modules), 1, begin_read);
}

/* The acknowledgement of a request does not complete the one that has its number now. */
TEST_RC(reset__ends_acknowledgements)
{
	uint32_t psn = s->params.psn;

	post_write(s);
	rig_expect(s, WIRE_RC_WRITE_ONLY, psn);
	stand(s, 1u << MODULE_RRC);
	rig_ack(s, 0, psn, aeth_ack(AETH_CREDIT_INVALID), 1);
	sim_run(s, 10 * US);
	reborn(s);
	post_write(s);
	rig_expect(s, WIRE_RC_WRITE_ONLY, psn);
	stand(s, 0);
	sim_run(s, 10 * US);
	rig_no_cqe(s);
	rig_ack(s, 0, psn, aeth_ack(AETH_CREDIT_INVALID), 1);
	rig_expect_cqe(s, USER_RDMA_WRITE, 0, 0);
}

/* What the former peer sends in INIT does not count as the new one's, however late it is looked at. */
TEST_RC(reset__forgets_the_peer)
{
	sim_modify(s, 0, 0, QP_RST, 0);
	sim_modify(s, 0, 0, QP_INIT, 0);
	begin_request(s, 1u << MODULE_EE);
	s->node[1].ip[15] ^= 0x40;
	sim_modify(s, 0, 0, QP_RTR, 0);
	sim_modify(s, 0, 0, QP_RTS, 0);
	stand(s, 0);
	rig_silent(s, 50 * US);
	rig_untouched(s, 0, BYTES);
	works(s);
}

static void send_ahead(struct sim *s, uint32_t ahead, uint64_t to)
{
	rig_request(s, 0, WIRE_RC_WRITE_ONLY, psn_add(s->params.psn, ahead), to, BYTES, BYTES);
	rig_expect_nak(s, s->params.psn, AETH_NAK_SEQUENCE, 0);
}

/* A packet that came ahead of one that is missing does not follow its namesake. */
TEST_RC(reset__ends_packets_that_came_early)
{
	uint32_t psn = s->params.psn;

	send_ahead(s, 1, 0);
	reborn(s);
	send_ahead(s, 2, BYTES);
	rig_request(s, 0, WIRE_RC_WRITE_ONLY, psn, BYTES, BYTES, BYTES);
	rig_expect_ack(s, psn, aeth_ack(AETH_CREDIT_INVALID), 1);
	rig_silent(s, 50 * US);
	rig_untouched(s, 0, BYTES);
	reborn(s);
}

/* Packets that came early and have been released, but wait for room behind them. */
TEST_RC(reset__ends_packets_that_wait_for_room)
{
	const struct channel *answers = &s->node[0].hca->engines[0].channel[CHANNEL_EE_RESPG];
	uint32_t psn = s->params.psn;

	stand(s, 1u << MODULE_RESPG);
	while (ring_room(answers->ring) > 2) {
		rig_request(s, 0, WIRE_RC_READ_REQUEST, psn, BYTES, BYTES, 0);
		sim_run(s, 2 * US);
	}
	for (uint32_t ahead = 3; ahead > 1; ahead--) {
		rig_request(s, 0, WIRE_RC_WRITE_ONLY, psn_add(psn, ahead), 0, BYTES, BYTES);
		sim_run(s, 2 * US);
	}
	rig_request(s, 0, WIRE_RC_READ_REQUEST, psn_add(psn, 1), BYTES, BYTES, 0);
	sim_run(s, 2 * US);
	assert_int_equal(ring_room(answers->ring), 0);
	assert_int_equal(rig_epsn(s, 0), psn_add(psn, 2));
	memset(s->node[0].memory, 0, BYTES);
	s->params.psn = psn_add(psn, 2); /* of the first that waits */
	reborn(s);
	stand(s, 0);
	rig_silent(s, 50 * US);
	rig_untouched(s, 0, BYTES);
}

/* Two READs, of queue pairs 1 and 0, whose responses wait, since another lcore holds their key. */
static void read_with_key_held(struct sim *s, struct tpt_hold *hold)
{
	struct v2p *v = &s->node[0].hca->v2p;
	uint32_t psn = s->params.psn;

	stand(s, 1u << MODULE_RRC);
	for (unsigned qp = 2; qp-- > 0;) {
		post_read(s, qp);
		rig_expect(s, WIRE_RC_READ_REQUEST, psn);
		rig_read_response(s, qp, WIRE_RC_READ_RESP_ONLY, psn, 1, NULL, BYTES);
	}
	sim_run(s, 10 * US);
	assert_true(tpt_take(&v->mpt_cache, v2p_index(v, s->node[0].key), NULL, hold));
	stand(s, 0);
	sim_run(s, 10 * US);
	rig_no_cqe(s);
}

/* A response that waits behind another one does not complete the READ that has its number now. */
TEST_RIG_WITH(reset__ends_responses_that_wait, p.qps = 2)
{
	struct tpt_hold hold;

	read_with_key_held(s, &hold);
	reborn(s);
	stand(s, 1u << MODULE_RRC);
	tpt_release(&hold);
	post_read(s, 0);
	rig_expect(s, WIRE_RC_READ_REQUEST, s->params.psn);
	stand(s, 0);
	rig_expect_cqe(s, USER_RDMA_READ, 0, 0);
	rig_untouched(s, 0, BYTES);
	rig_no_cqe(s);
	rig_read_response(s, 0, WIRE_RC_READ_RESP_ONLY, s->params.psn, 1, NULL, BYTES);
	rig_expect_cqe(s, USER_RDMA_READ, 0, 0);
}
