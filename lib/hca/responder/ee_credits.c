/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ExecutionEngine's part in end-to-end flow control (C9-150 to C9-158, doc/transport.md#credits):
 * the credits that acknowledgements carry, and unsolicited acknowledgements. Clients post receives
 * without a doorbell, so QPs whose peers have no credits are kept on a list, and a few of them are
 * polled at intervals. Reads the clients' counts; writes qp->ee; sends through RespPktGen, after
 * every earlier answer (EE_RESPG). Stage responder_exec. Never promises more than is posted.
 */
#include "ee_work.h"

enum {
	LOOK_NS = 1000, /* interval; doubled while no check finds a receive, up to ... */
	LOOK_NS_MAX = 16 * LOOK_NS, /* ... this: QPs that never post must cost others little */
};

static inline bool gives_credits(const struct engine *e, const struct qp *qp)
{
	return e->settings.e2e_credits && qp_may_give_credits(qp);
}

static struct qp_list *starved(struct engine *e)
{
	return &e->ee->starved;
}

uint8_t ee_ack_syndrome(struct engine *e, struct qp *qp)
{
	uint32_t credits;

	if (!gives_credits(e, qp))
		return aeth_ack(AETH_CREDIT_INVALID);
	credits = rwm_credits(qp);
	qp->ee.credits_granted = credits > qp->rwm.open;
	if (unlikely(!qp->ee.credits_granted))
		qp_list_add(starved(e), qp);
	return aeth_ack(aeth_credit_code(credits));
}

void ee_watch_credits(struct engine *e, struct qp *qp)
{
	if (gives_credits(e, qp))
		qp_list_add(starved(e), qp);
}

void ee_forget_credits(struct engine *e, struct qp *qp)
{
	qp_list_remove(starved(e), qp);
}

/* May the QP acknowledge now? While a NAK is outstanding, the peer must get nothing else until it
 * has sent again (C9-80, C9-114). */
static inline bool may_announce(const struct qp *qp)
{
	return !(qp->ee.gap & EE_GAP_SILENT) && rwm_available(qp) > 0;
}

/* Sends an unsolicited acknowledgement of everything executed. There is no received frame to carry
 * it: false if there is no buffer. */
static bool ee_announce_credits(struct engine *e, struct qp *qp)
{
	uint32_t expected = qp->ee.comm_est ? qp->ee.expected_psn : qp->rq_psn;
	struct rte_mbuf *m = answer_alloc(e, qp);

	if (unlikely(!m))
		return false;
	hand_over(e->ee, qp, m, RESPONSE_ACK, psn_sub(expected, 1), ee_ack_syndrome(e, qp));
	count(stage_counters(e, STAGE_RESPONDER_EXEC), COUNTER_acks_unsolicited);
	return true;
}

/* Unless it sends an acknowledgement, the QP goes back to the end of the list if its peer still has
 * no credits and it receives. */
static void look_at_starved(struct engine *e, struct qp *qp)
{
	if (!qp_receives(qp_state(qp)) || qp->ee.credits_granted)
		return;
	if (!may_announce(qp) || !ee_announce_credits(e, qp))
		qp_list_add(starved(e), qp);
}

unsigned ee_offer_credits(struct engine *e)
{
	struct execution_engine *ee = e->ee;
	unsigned sent;

	if (likely(qp_list_empty(&ee->starved) || engine_now(e) < ee->look_ns))
		return 0;
	if (!ee_may_look(e))
		return 0;
	sent = ee_look(e, &ee->starved, look_at_starved);
	ee->look_gap_ns = sent || !ee->look_gap_ns ? LOOK_NS : 2 * ee->look_gap_ns;
	ee->look_gap_ns = RTE_MIN(ee->look_gap_ns, (uint32_t)LOOK_NS_MAX);
	ee->look_ns = engine_now(e) + ee->look_gap_ns;
	return sent;
}
