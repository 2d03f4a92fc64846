/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ExecutionEngine's part in end-to-end flow control (C9-150 to C9-158, doc/transport.md#credits):
 * the credits that acknowledgements carry, and unsolicited acknowledgements. Clients post receives
 * without a doorbell, but for the first ones in RTS; so QPs whose peers have no credits are in a
 * list, and a few of them are polled at intervals: `starved`, or `seldom` once there is little hope.
 * Reads the clients' counts; writes qp->ee; sends through RespPktGen, after every earlier answer
 * (EE_RESPG). Stage responder_exec. Never promises more than is posted.
 */
#include "responder/responder.h"
#include "ee_work.h"

/* There is hope when a look finds a receive, a peer has used up its credits, or a QP has posted its
 * first receive. A look comes after half of the time since then. */
enum {
	LOOK_NS_MIN = 1000,
	LOOK_NS_MAX = 256 * LOOK_NS_MIN, /* and always between looks at the seldom */
	HOPELESS = 16000,		 /* a QP becomes one of the seldom; as ee_time() counts */
};

enum { LISTED_SELDOM = 2 }; /* ee.starved.listed: which of the two lists */

static inline bool gives_credits(const struct engine *e, const struct qp *qp)
{
	return e->settings.e2e_credits && qp_may_give_credits(qp);
}

static void unlist(struct execution_engine *ee, struct qp *qp)
{
	qp_list_remove(qp->ee.starved.listed == LISTED_SELDOM ? &ee->seldom : &ee->starved, qp);
}

/* This QP, whether listed or not, may soon have receives. */
static void hope(struct engine *e, struct qp *qp)
{
	struct execution_engine *ee = e->ee;

	unlist(ee, qp);
	qp_list_add(&ee->starved, qp);
	qp->ee.starved_since = ee_time(e);
	ee->hope_ns = engine_now(e);
	ee->look_ns = RTE_MIN(ee->look_ns, engine_now(e) + LOOK_NS_MIN);
}

/* Adds it to the seldom, unless it is listed. */
static void despair(struct engine *e, struct qp *qp)
{
	if (qp->ee.starved.listed)
		return;
	qp_list_add(&e->ee->seldom, qp);
	qp->ee.starved.listed = LISTED_SELDOM;
}

uint8_t ee_ack_syndrome(struct engine *e, struct qp *qp)
{
	uint32_t credits = 0;
	bool had = qp->ee.credits_granted;

	if (!gives_credits(e, qp))
		return aeth_ack(AETH_CREDIT_INVALID);
	if (qp->ee.has_posted)
		credits = rwm_credits(qp);
	/* qp->rwm is another cold line: without credits it does not matter. */
	qp->ee.credits_granted = credits && credits > qp->rwm.open;
	if (unlikely(!qp->ee.credits_granted)) {
		if (had)
			hope(e, qp);
		else
			despair(e, qp);
	}
	return aeth_ack(aeth_credit_code(credits));
}

void ee_note_first_receive(struct engine *e, struct qp *qp)
{
	if (qp->ee.has_posted || !rwm_claimed(qp))
		return;
	qp->ee.has_posted = 1;
	if (gives_credits(e, qp))
		hope(e, qp);
}

void ee_watch_credits(struct engine *e, struct qp *qp)
{
	if (!gives_credits(e, qp))
		return;
	ee_note_first_receive(e, qp);
	despair(e, qp);
}

void ee_forget_credits(struct engine *e, struct qp *qp)
{
	unlist(e->ee, qp);
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

static bool is_starved(const struct qp *qp)
{
	return qp_receives(qp_state(qp)) && !qp->ee.credits_granted;
}

/* Sends an acknowledgement if there are receives now. */
static bool announces(struct engine *e, struct qp *qp)
{
	return may_announce(qp) && ee_announce_credits(e, qp);
}

/* Looks at a QP taken from its list, which goes to the end of one if its peer still has no credits. */
static void look_at_starved(struct engine *e, struct qp *qp)
{
	if (!is_starved(qp) || announces(e, qp))
		return;
	if (ee_time(e) - qp->ee.starved_since < HOPELESS)
		qp_list_add(&e->ee->starved, qp);
	else
		despair(e, qp);
}

static void look_at_seldom(struct engine *e, struct qp *qp)
{
	bool first;

	if (!is_starved(qp))
		return;
	first = !qp->ee.has_posted && rwm_claimed(qp);
	qp->ee.has_posted |= first;
	if (announces(e, qp))
		return;
	if (first)
		hope(e, qp);
	else
		despair(e, qp);
}

static __rte_noinline unsigned offer_to_starved(struct engine *e, struct execution_engine *ee)
{
	unsigned sent = ee_look(e, &ee->starved, look_at_starved);
	uint64_t gap;

	if (sent)
		ee->hope_ns = engine_now(e);
	gap = RTE_MIN((engine_now(e) - ee->hope_ns) / 2, (uint64_t)LOOK_NS_MAX);
	ee->look_ns = engine_now(e) + RTE_MAX(gap, (uint64_t)LOOK_NS_MIN);
	return sent;
}

static __rte_noinline unsigned offer_to_seldom(struct engine *e, struct execution_engine *ee)
{
	ee->seldom_ns = engine_now(e) + LOOK_NS_MAX;
	return ee_look(e, &ee->seldom, look_at_seldom);
}

unsigned ee_offer_credits(struct engine *e)
{
	struct execution_engine *ee = e->ee;

	/* First, since the starved may be due at every poll. */
	if (unlikely(!qp_list_empty(&ee->seldom) && engine_now(e) >= ee->seldom_ns &&
		     ee_may_look(e)))
		return offer_to_seldom(e, ee);
	if (unlikely(!qp_list_empty(&ee->starved) && engine_now(e) >= ee->look_ns &&
		     ee_may_look(e)))
		return offer_to_starved(e, ee);
	return 0;
}

bool responder_is_due_soon(const struct engine *e)
{
	return !qp_list_empty(&e->ee->starved);
}
