/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ExecutionEngine's part in missing packets: what arrives behind a gap is kept (context/early.h),
 * and the gap draws one NAK. Stage responder_exec.
 *
 * The NAK is sent at once as long as a gap means a loss. A network that reorders fills its gaps by
 * itself, and a NAK only makes the peer repeat packets in flight. So some of the gaps that drew a
 * NAK are observed, one at a time: if the missing packet arrives twice, the NAK was needless. After
 * two needless ones in a row the queue pair delays its NAKs (patience), by twice as long as the
 * packet was late. A NAK that was needed halves the patience; a probe that fills a gap reduces it
 * by a quarter.
 */
#include "ee_work.h"
#include "pipeline/frames.h"

enum {
	PATIENCE_MAX = 1000, /* reordering by more counts as loss */
	IN_VAIN = 2,	     /* needless NAKs in a row that make a QP patient */
	SAMPLE_MAX = 4000,   /* this long after a NAK no second copy is expected any more */
};

static bool is_equal(const struct qp *qp)
{
	return qp->agreed & AGREED_REPEAT;
}

/* ---- patience ---- */

/* The gap has drawn a NAK: observe it, unless another one is. */
static void observe(const struct engine *e, struct qp *qp)
{
	uint32_t now = ee_time(e);

	if (qp->ee_gap.sample_psn) {
		if (now - qp->ee_gap.sample_since < SAMPLE_MAX)
			return;
		qp->ee_gap.patience /= 2;
		qp->ee_gap.in_vain = 0;
	}
	qp->ee_gap.sample_psn = qp->ee.expected_psn + 1;
	qp->ee_gap.sample_since = qp->ee_gap.since;
	qp->ee_gap.sample_late = 0;
}

static void be_patient(struct qp *qp, uint32_t late)
{
	uint32_t patience = RTE_MIN(2 * late, (uint32_t)PATIENCE_MAX);

	qp->ee_gap.patience = RTE_MAX(qp->ee_gap.patience, patience);
}

static void be_less_patient(struct qp *qp)
{
	qp->ee_gap.patience -= (qp->ee_gap.patience + 3) / 4;
}

/*
 * Is it a probe? An equal sends one after two round trips, so that a real loss may be repaired
 * before the NAK is due. Probes ask for an acknowledgement; other packets do so only at the end of
 * a message or turn.
 */
static bool is_probe(const struct ee_work *w)
{
	const struct wire_headers *h = &w->a->headers;

	return is_equal(w->qp) && h->ackreq && !(wire_opcodes[h->opcode].flags & WIRE_END);
}

void ee_came_twice(struct qp *qp, uint32_t psn)
{
	if (qp->ee_gap.sample_psn != psn + 1 || !qp->ee_gap.sample_late)
		return;
	qp->ee_gap.sample_psn = 0;
	if (qp->ee_gap.in_vain + 1 < IN_VAIN)
		qp->ee_gap.in_vain++;
	else
		be_patient(qp, qp->ee_gap.sample_late);
}

/* ---- NAKs ---- */

/* An equal learns what is kept, unless that is too far ahead for a map, or too recent. */
static enum response_kind nak_kind(const struct engine *e, const struct qp *qp)
{
	uint8_t map[WIRE_SACK_BYTES];

	return is_equal(qp) && ee_describe_gap(e, qp, map) ? RESPONSE_SACK : RESPONSE_ACK;
}

/* Sends the NAK in a buffer of its own, since the packet is kept. No buffer: the next packet
 * tries again. */
static bool nak_gap(struct engine *e, struct qp *qp)
{
	struct rte_mbuf *m = answer_alloc(e, qp);

	if (unlikely(!m))
		return false;
	send_ack(e, e->ee, qp);
	hand_over(e->ee, qp, m, nak_kind(e, qp), qp->ee.expected_psn,
		  wire_outcomes[OUTCOME_SEQUENCE].aeth_syndrome);
	qp->ee.gap |= EE_GAP_SEQUENCE;
	observe(e, qp);
	return true;
}

void ee_wait_no_more(struct engine *e, struct qp *qp)
{
	qp->ee.gap &= ~EE_GAP_LATE;
	qp_list_remove(&e->ee->late, qp);
}

static bool is_due(const struct engine *e, const struct qp *qp)
{
	return ee_time(e) - qp->ee_gap.since >= qp->ee_gap.patience;
}

/* A packet behind the gap has been kept, and no NAK is out. */
static void consider_nak(struct engine *e, struct qp *qp)
{
	if (!(qp->ee.gap & EE_GAP_LATE)) {
		qp->ee_gap.since = ee_time(e);
		if (qp->ee_gap.patience) {
			qp->ee.gap |= EE_GAP_LATE;
			qp_list_add(&e->ee->late, qp);
			return;
		}
	}
	if (is_due(e, qp) && nak_gap(e, qp))
		ee_wait_no_more(e, qp);
}

static void look_at_late(struct engine *e, struct qp *qp)
{
	if (is_due(e, qp) && qp_receives(qp_state(qp)) && nak_gap(e, qp))
		qp->ee.gap &= ~EE_GAP_LATE;
	else
		qp_list_add(&e->ee->late, qp);
}

unsigned ee_late_gaps(struct engine *e)
{
	if (likely(qp_list_empty(&e->ee->late)) || !ee_may_look(e))
		return 0;
	return ee_look(e, &e->ee->late, look_at_late);
}

bool ee_gap_waits(const struct engine *e)
{
	return !qp_list_empty(&e->ee->late);
}

/* ---- selective acknowledgements ---- */

/* The gap is known, and another packet has been kept. Reports that at the end of the burst if the
 * packet asks for an acknowledgement or shows another gap. */
static void consider_sack(struct ee_work *w)
{
	const struct wire_headers *h = &w->a->headers;
	struct qp *qp = w->qp;

	if (!is_equal(qp) || qp->ee_gap.sack || qp->ee.gap & EE_GAP_LATE ||
	    (!h->ackreq && early_has(w->ee->early, qp, psn_sub(h->psn, 1))))
		return;
	qp->ee_gap.sack = 1;
	w->ee->sack[w->ee->sack_count++] = qp;
}

void ee_send_sacks(struct engine *e)
{
	struct execution_engine *ee = e->ee;

	for (unsigned i = 0; i < ee->sack_count; i++) {
		struct qp *qp = ee->sack[i];
		struct rte_mbuf *m = qp->ee_gap.early.kept ? answer_alloc(e, qp) : NULL;

		qp->ee_gap.sack = 0;
		if (m)
			hand_over(ee, qp, m, RESPONSE_SACK, qp->ee.expected_psn, 0);
	}
	ee->sack_count = 0;
}

/* Packets so recent that the network may just have reordered them are not behind a gap yet. */
bool ee_describe_gap(const struct engine *e, const struct qp *qp, uint8_t map[WIRE_SACK_BYTES])
{
	return early_map(e, e->ee->early, qp, psn_add(qp->ee.expected_psn, 1),
			 (uint64_t)qp->ee_gap.patience << EE_TIME_SHIFT, map, WIRE_SACK_BYTES);
}

/* ---- gaps ---- */

static bool keep(struct ee_work *w)
{
	struct qp *qp = w->qp;

	if (engine_setting(w->e, loss_recovery) == LOSS_RECOVERY_STANDARD ||
	    qp->ee.gap & EE_GAP_RNR ||
	    !early_keep(w->e, w->ee->early, qp, w->m, w->a->headers.psn, qp->ee.expected_psn))
		return false;
	w->a->icrc_bytes = 0; /* it is intact */
	qp->ee.gap |= EE_GAP_EARLY;
	count(w->c, COUNTER_early_kept);
	return true;
}

/* While the NAK waits, too: a second copy of what is kept says nothing about the missing packet. */
static bool is_silent(const struct ee_work *w)
{
	const struct qp *qp = w->qp;

	return qp->ee.gap & EE_GAP_SILENT ||
	       (qp->ee.gap & EE_GAP_LATE && early_has(w->ee->early, qp, w->a->headers.psn));
}

enum ee_state ee_behind_gap(struct ee_work *w)
{
	struct qp *qp = w->qp;
	bool silent = is_silent(w);

	qp->ee.ahead++;
	if (keep(w)) {
		if (silent)
			consider_sack(w);
		else
			consider_nak(w->e, qp);
		return EE_IDLE;
	}
	count(w->c, COUNTER_drop_out_of_sequence);
	if (silent)
		return EE_DROP;
	ee_wait_no_more(w->e, qp);
	qp->ee.gap |= EE_GAP_SEQUENCE;
	return fail(w, OUTCOME_SEQUENCE);
}

/* The missing packet has come: how late? */
static void end_wait(struct ee_work *w)
{
	struct qp *qp = w->qp;
	uint32_t late = ee_time(w->e) - qp->ee_gap.since + 1;

	if (qp->ee.gap & EE_GAP_LATE) {
		if (is_probe(w))
			be_less_patient(qp);
		else
			be_patient(qp, late);
		ee_wait_no_more(w->e, qp);
	} else if (qp->ee_gap.sample_psn == psn_sub(qp->ee.expected_psn, 1) + 1) {
		qp->ee_gap.sample_late = late;
	}
	qp->ee.gap &= ~EE_GAP_SILENT;
}

void ee_fill_gap(struct ee_work *w)
{
	struct qp *qp = w->qp;
	struct early *early = w->ee->early;
	bool asked = qp->ee.gap & EE_GAP_SEQUENCE || is_equal(qp);

	end_wait(w);
	if (!qp->ee.gap)
		return;
	if (!early_pass(early, qp, qp->ee.expected_psn)) {
		qp->ee.gap = 0;
	} else if (early_has(early, qp, qp->ee.expected_psn)) {
		w->then = EE_EARLY;
		w->ee->filled = qp;
		if (w->respond == RESPONSE_ACK) /* what follows is acknowledged with it */
			w->respond = RESPONSE_NONE;
		return;
	}
	if (asked && w->respond == RESPONSE_NONE)
		w->respond = RESPONSE_ACK;
}

unsigned ee_take_early(struct execution_engine *ee, struct qp *qp, struct rte_mbuf **run,
		       unsigned room)
{
	uint32_t psn = qp->ee.expected_psn;
	unsigned n = 0;

	while (n < room && (run[n] = early_take(ee->early, qp, psn))) {
		struct wire_headers *h = &arrival_of(run[n++])->headers;

		h->ackreq = 0;
		if (wire_opcodes[h->opcode].kind == WIRE_KIND_READ)
			break;
		psn = psn_add(psn, 1);
	}
	if (n)
		arrival_of(run[n - 1])->headers.ackreq = 1;
	return n;
}

void ee_close_gap(struct engine *e, struct qp *qp)
{
	early_drop(e->ee->early, qp);
	ee_wait_no_more(e, qp);
	qp->ee.gap = 0;
}

unsigned ee_kept(const struct engine *e)
{
	return e->ee->early->count;
}
