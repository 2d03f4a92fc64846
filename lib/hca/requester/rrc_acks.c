/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * RequesterRecvControl's states for acknowledgements and NAKs
 * (doc/modules.md#requesterrecvcontrol), and what counts as a try: an ACK releases, a sequence NAK
 * sends again, an RNR NAK waits, any other NAK ends the queue pair. Stage requester_recv.
 */
#include "context/path_migration.h"
#include "outstanding.h"
#include "retransmission.h"
#include "rrc_acks.h"
#include "rrc_release.h"
#include "timer_control.h"
#include "wire/aeth.h"

/* ---- tries ---- */

typedef void resend(struct engine *e, struct qp *q, uint32_t psn);

/* Another path gets as many tries again, whichever side was the first to move there. */
static bool is_on_another_path(struct qp *q)
{
	uint8_t path = qp_way(q).path;

	if (likely(path == q->rrc.path))
		return false;
	q->rrc.path = path;
	q->rrc.retry_left = q->retry_cnt;
	return true;
}

static bool take_try(struct rrc_work *w)
{
	struct qp *q = w->q;

	if (unlikely(is_on_another_path(q)))
		return true;
	if (q->rrc.retry_left == 0) {
		qp_migrate(w->e, w->c, q); /* unless HeaderParser just has */
		return is_on_another_path(q);
	}
	q->rrc.retry_left--;
	return true;
}

static enum rrc_state retry(struct rrc_work *w, uint32_t psn, resend *again)
{
	struct qp *q = w->q;

	if (!take_try(w)) {
		count(w->c, COUNTER_retry_exceeded);
		return rrc_fail(w, OUTCOME_RETRY_EXC);
	}
	qp_progress(w->e, q);
	again(w->e, q, psn);
	return RRC_IDLE;
}

enum rrc_state rrc_retry(struct rrc_work *w, uint32_t psn)
{
	return retry(w, psn, retransmit_lost);
}

/* The same because of a NAK. A NAK in answer to a probe uses up no try: without progress, the
 * transport timer, which probes do not restart, uses them up. */
static enum rrc_state retry_nak(struct rrc_work *w, uint32_t psn, resend *again)
{
	if (likely(!w->q->rrc.probes))
		return retry(w, psn, again);
	again(w->e, w->q, psn);
	return RRC_IDLE;
}

/*
 * Packets in flight when the retransmission began may draw the same NAK again, from a peer that may
 * NAK anew after a duplicate (C9-80; ours stays silent, C9-114). For as long as an answer takes,
 * ignore such a repetition: it neither counts as a retry nor starts over. Until a round trip has
 * been measured, that time is a guess, doubled with each failed retry: others may keep the peer
 * from its CPU. If the repeated packet itself was lost, a probe or the Loss timer discovers it.
 */
#define NAK_REPEAT_NS 250000

static bool nak_is_repeated(const struct engine *e, const struct qp *q)
{
	uint64_t ns = q->rrc.srtt_ns ? qp_probe_ns(e, q) : 0;
	unsigned tries = q->retry_cnt > q->rrc.retry_left ? q->retry_cnt - q->rrc.retry_left : 0;

	return engine_now(e) - q->rrc.nak_ns < RTE_MAX(ns, (uint64_t)NAK_REPEAT_NS << tries);
}

/*
 * Responses in flight when the READ was requested again continue beyond the gap, from a slow peer
 * for much longer than an answer takes, and perhaps reordered. They say nothing about the new
 * request: its answer begins at the gap, so a loss in it shows when a response comes a second time.
 * Only responses near the gap are tracked: `beyond` has a bit for each.
 */
static bool comes_from_before(struct qp *q, const struct wire_headers *h)
{
	uint32_t near = psn_sub(h->psn, q->rrc.gap_psn), bit = 1u << near % 32;

	if (near >= 32)
		return wire_opcodes[h->opcode].kind != WIRE_KIND_ACK;
	if (q->rrc.beyond & bit)
		return false;
	q->rrc.beyond |= bit;
	return true;
}

/*
 * Asks an equal only for what is missing: the responses before this one, or before an
 * acknowledgement; and if a NAK shows that the request at its PSN is missing, sends that again. The
 * peer will not repeat an acknowledgement of what follows the READ, so it is noted.
 */
static enum rrc_state missing_responses(struct rrc_work *w)
{
	const struct wire_headers *h = &w->a->headers;
	uint32_t next = psn_add(h->psn, 1), done = next;
	struct qp *q = w->q;

	if (wire_opcodes[h->opcode].kind != WIRE_KIND_ACK) {
		retransmit_responses(w->e, q, h->psn, done);
		return RRC_IDLE;
	}
	if (aeth_kind(h->syndrome) != AETH_ACK)
		done = h->psn;
	if (!q->repeat.ack_behind || psn_before(q->repeat.ack_behind, done))
		q->repeat.ack_behind = done | (PSN_MASK + 1); /* never 0 */
	retransmit_responses(w->e, q, next, done);
	return RRC_IDLE;
}

/* Acts only once: until that READ makes progress, further implied NAKs are ignored. */
enum rrc_state rrc_step_implied_nak(struct rrc_work *w)
{
	struct qp *q = w->q;
	uint32_t psn = q->rrc.unacked_psn;

	if (rrc_is_equal(q) && retransmit_trusts(w->e, q))
		return missing_responses(w);
	if (q->rrc.gap_psn == psn + 1 &&
	    (comes_from_before(q, &w->a->headers) || nak_is_repeated(w->e, q)))
		return RRC_IDLE;
	q->rrc.gap_psn = psn + 1;
	q->rrc.beyond = 0;
	comes_from_before(q, &w->a->headers);
	q->rrc.nak_ns = engine_now(w->e);
	return retry_nak(w, psn, retransmit_lost);
}

/* ---- acknowledgements ---- */

/*
 * LSN = MSN + credits (C9-161), unless a newer acknowledgement overtook this one, or the MSN, the
 * SSN of the request done last, is that of a request not sent yet. A peer that once said that it
 * gives no credits no longer limits us by them (C9-153).
 */
void rrc_take_credits(struct rrc_work *w)
{
	const struct wire_headers *h = &w->a->headers;
	struct qp *q = w->q;
	uint32_t old = q->rrc.credits, credits = aeth_credits(aeth_value(h->syndrome));

	if (old & CREDITS_UNLIMITED ||
	    (old & CREDITS_CAME && psn_before(h->msn, q->rrc.credit_msn)))
		return;
	if (unlikely(credits != AETH_CREDITS_UNLIMITED &&
		     !psn_before(h->msn, __atomic_load_n(&q->rtc.ssn, __ATOMIC_RELAXED)))) {
		count(w->c, COUNTER_ack_msn_ahead);
		return;
	}
	q->rrc.credit_msn = h->msn;
	__atomic_store_n(&q->rrc.credits,
			 credits == AETH_CREDITS_UNLIMITED
				 ? CREDITS_UNLIMITED
				 : CREDITS_CAME | psn_add(h->msn, credits),
			 __ATOMIC_RELEASE);
}

static void ack_release(struct rrc_work *w)
{
	rrc_take_credits(w);
	count(w->c, COUNTER_acks);
	rrc_release(w->e, w->q, w->a->headers.psn);
}

enum rrc_state rrc_step_ack_release_normal(struct rrc_work *w)
{
	ack_release(w);
	return RRC_IDLE;
}

enum rrc_state rrc_step_ack_release_exception(struct rrc_work *w)
{
	ack_release(w);
	return RRC_ACK_LOSS_RETRANS;
}

/* ---- selective acknowledgements ---- */

/* Does the map claim packets that were never sent? */
static bool beyond(const struct qp *q, uint32_t psn, const uint8_t map[WIRE_SACK_BYTES])
{
	uint32_t sent = psn_sub(qp_next_psn(q), psn);

	for (unsigned i = 0; i < 8 * WIRE_SACK_BYTES; i++)
		if (map[i / 8] & 1u << i % 8 && i + 1 >= sent)
			return true;
	return false;
}

/* Its PSN is the first that the peer misses: those before it are done, but the responses to READs
 * and atomics may be on their way. */
enum rrc_state rrc_step_sack(struct rrc_work *w)
{
	uint32_t psn = w->a->headers.psn;
	struct qp *q = w->q;

	if (w->a->payload_bytes != WIRE_SACK_BYTES)
		return rrc_drop(w, COUNTER_drop_resp_length);
	if (!qp_sends(qp_state(q)))
		return rrc_drop(w, COUNTER_drop_qp_state);
	if (psn_before(psn, q->rrc.unacked_psn))
		return rrc_drop(w, COUNTER_ack_duplicate);
	if (!psn_before(psn, qp_next_psn(q)) || beyond(q, psn, w->a->payload)) {
		q->rrc.ghosts++;
		return rrc_drop(w, COUNTER_drop_ack_ghost);
	}
	count(w->c, COUNTER_sacks);
	rrc_release(w->e, q, psn_sub(psn, 1));
	retransmit_sacked(w->e, q, psn, w->a->payload);
	return RRC_IDLE;
}

/* ---- NAKs ---- */

static enum rrc_state nak_rnr(struct rrc_work *w)
{
	count(w->c, COUNTER_nak_rnr_received);
	if (w->q->rrc.rnr_waiting) /* the network duplicated it: nothing was sent since (C9-132) */
		return RRC_SILENT_DROP;
	if (w->q->rrc.rnr_left != 0)
		return RRC_RESET_TIMER;
	count(w->c, COUNTER_rnr_retry_exceeded);
	return rrc_fail(w, OUTCOME_RNR_RETRY_EXC);
}

static enum rrc_state nak_fatal(struct rrc_work *w)
{
	static const enum counter counters[OUTCOME_COUNT] = {
		[OUTCOME_INVALID_REQUEST] = COUNTER_nak_invalid_received,
		[OUTCOME_REMOTE_ACCESS] = COUNTER_nak_access_received,
		[OUTCOME_REMOTE_OPERATION] = COUNTER_nak_operation_received,
	};

	count(w->c, counters[w->outcome]);
	return rrc_fail(w, w->outcome);
}

/*
 * Releases everything before the NAK's PSN. Anything older that is still there is a READ that lost
 * a response, unless that READ itself failed (C9-100): it is requested again with the rest, after
 * an RNR NAK when the wait is over (C9-130).
 */
enum rrc_state rrc_step_nak_implicit_release(struct rrc_work *w)
{
	uint32_t psn = w->a->headers.psn;

	rrc_release(w->e, w->q, psn_sub(psn, 1));
	if (w->outcome == OUTCOME_RNR)
		return nak_rnr(w);
	if (psn != w->q->rrc.unacked_psn)
		return RRC_ACK_LOSS_RETRANS;
	return w->outcome == OUTCOME_SEQUENCE ? RRC_NAK_RETRANS : nak_fatal(w);
}

/* Makes TimerControl set the RNR timer. If there is no room for the command, it is as if the NAK
 * had been lost: the Loss timer sends again, and another NAK comes. */
enum rrc_state rrc_step_reset_timer(struct rrc_work *w)
{
	uint64_t ns = aeth_rnr_ns(aeth_value(w->a->headers.syndrome));
	struct qp *q = w->q;

	if (!timer_set(w->e, CHANNEL_RRC_TC, q, TIMER_RNR, ns))
		return RRC_IDLE;
	if (q->rnr_retry != 7)
		q->rrc.rnr_left--;
	__atomic_store_n(&q->rrc.rnr_waiting, 1, __ATOMIC_RELEASE);
	qp_progress(w->e, q);
	return RRC_IDLE;
}

enum rrc_state rrc_step_nak_retrans(struct rrc_work *w)
{
	uint32_t psn = w->a->headers.psn;
	struct qp *q = w->q;

	count(w->c, COUNTER_nak_sequence_received);
	if (q->rrc.rnr_waiting) /* the rest of the message behind an RNR NAK draws this one */
		return RRC_IDLE;
	if (q->rrc.nak_psn == psn + 1 && nak_is_repeated(w->e, q))
		return RRC_IDLE;
	q->rrc.nak_psn = psn + 1;
	q->rrc.nak_ns = engine_now(w->e);
	return retry_nak(w, psn, retransmit_missing);
}
