/* SPDX-License-Identifier: BSD-3-Clause */
/* SQD with a whole HCA: requests in progress are finished, none begins, the event comes when all
 * are acknowledged, the responder continues, address and timers change only then. */
#include "peer.h"

enum { PSN = PEER_PSN, MTU = PEER_MTU };

static enum ceu_status modify(struct sim *s, uint8_t op, uint32_t mask)
{
	struct ceu_modify m = {.attr = {.mask = mask, .timeout = 12, .retry_cnt = 5}};

	return ceu_exec(s->node[0].ceu, op, s->node[0].qp[0].qpn, &m, sizeof(m), NULL, 0);
}

TEST_PEER(sqd__drains_says_so_and_continues)
{
	struct sim_wr wr = peer_wr(USER_RDMA_WRITE, 3 * MTU), rd = peer_wr(USER_RDMA_READ, MTU);
	uint32_t qpn = s->node[0].qp[0].qpn;

	peer_sends(s, PSN, &wr, &rd);
	assert_int_equal(modify(s, CEU_RTS2SQD, QP_ATTR_EN_SQD_ASYNC_NOTIFY), CEU_OK);
	sim_post(s, 0, 0, &wr);
	rig_silent(s, MS);
	rig_no_event(s);
	assert_int_equal(modify(s, CEU_SQD2SQD, QP_ATTR_TIMEOUT), CEU_BAD_SYS_STATE);
	peer_ack(s, PSN + 2, 1);
	rig_expect_cqe(s, USER_RDMA_WRITE, 0, 0);
	rig_silent(s, MS);
	rig_no_event(s); /* the READ is still out */
	rig_request(s, 0, WIRE_RC_WRITE_ONLY, PSN, 0, 8, 8);
	rig_expect_ack(s, PSN, aeth_ack(0), 1);
	peer_read_responses(s, PSN + 3, MTU, 0, 0, 2);
	rig_expect_cqe(s, USER_RDMA_READ, 0, SIM_STRIDE);
	sim_run(s, 100 * US);
	rig_expect_event(s, EQE_SQ_DRAINED, qpn);
	rig_silent(s, MS);
	rig_no_event(s);
	assert_int_equal(modify(s, CEU_SQD2SQD, QP_ATTR_TIMEOUT | QP_ATTR_RETRY_CNT), CEU_OK);
	assert_int_equal(modify(s, CEU_SQD2RTS, 0), CEU_OK);
	peer_expect(s, &wr, PSN + 4, NULL);
	peer_ack(s, PSN + 6, 3);
	rig_expect_cqe(s, USER_RDMA_WRITE, 0, 2 * SIM_STRIDE);
	assert_int_equal(sim_context(s, 0, 0)->rrc.retry_left, 5);
}

TEST_PEER(sqd__no_event_unless_asked_for)
{
	assert_int_equal(modify(s, CEU_RTS2SQD, 0), CEU_OK);
	rig_silent(s, MS);
	rig_no_event(s);
	assert_int_equal(modify(s, CEU_SQD2SQD, QP_ATTR_TIMEOUT), CEU_OK); /* drained, silently */
	assert_int_equal(modify(s, CEU_SQD2RTS, 0), CEU_OK);
	assert_int_equal(modify(s, CEU_RTS2SQD, QP_ATTR_EN_SQD_ASYNC_NOTIFY), CEU_OK);
	sim_run(s, 100 * US);
	rig_expect_event(s, EQE_SQ_DRAINED, s->node[0].qp[0].qpn);
}

/* A loss while it drains: sent again as usual. */
TEST_PEER(sqd__sends_again_while_it_drains)
{
	struct sim_wr wr = peer_wr(USER_SEND, 2 * MTU);

	peer_sends(s, PSN, &wr);
	assert_int_equal(modify(s, CEU_RTS2SQD, QP_ATTR_EN_SQD_ASYNC_NOTIFY), CEU_OK);
	peer_nak(s, PSN, AETH_NAK_SEQUENCE, 0);
	peer_expect(s, &wr, PSN, NULL);
	rig_no_event(s);
	peer_ack(s, PSN + 1, 1);
	rig_expect_cqe(s, USER_SEND, 0, 0);
	sim_run(s, 100 * US);
	rig_expect_event(s, EQE_SQ_DRAINED, s->node[0].qp[0].qpn);
}

TEST_PEER(sqd__error_while_it_drains)
{
	struct sim_wr wr = peer_wr(USER_SEND, 8);

	peer_sends(s, PSN, &wr);
	assert_int_equal(modify(s, CEU_RTS2SQD, QP_ATTR_EN_SQD_ASYNC_NOTIFY), CEU_OK);
	sim_post(s, 0, 0, &wr);
	sim_run(s, 100 * US);
	peer_nak(s, PSN, AETH_NAK_REMOTE_OPERATION, 0);
	peer_expect_failed(s, SYNDROME_REMOTE_OP, 0, 2);
	rig_no_event(s);
}
