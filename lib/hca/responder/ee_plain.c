/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ExecutionEngine's fast path for single-packet requests: does in one go what the states do for a
 * WRITE or SEND, alone or in a train (pipeline/train.h), and for READs and atomics in trains. It
 * never refuses a packet: what is irregular in any way is left to the states.
 * Stage responder_exec.
 */
#include "base/copy_bytes.h"
#include "completion/completion.h"
#include "ee_plain.h"
#include "ee_train.h"
#include "pipeline/train.h"
#include "resp_pkt_gen.h"

/* Is this the expected packet, one that passes straight through the states before CHECK_REQUEST? */
static inline bool is_plain(const struct qp *qp, const struct arrival *a)
{
	return a->qpn == qp_number(qp) && a->headers.psn == qp->ee.expected_psn && !qp->ee.gap &&
	       !(a->payload_elsewhere | a->congested | a->icrc_bytes) && a->payload_bytes &&
	       a->payload_bytes <= qp->mtu_bytes && qp_receives(qp_state(qp));
}

static inline bool write_plain(struct engine *e, const struct qp *qp, const struct arrival *a)
{
	const struct wire_headers *h = &a->headers;
	uint32_t bytes = a->payload_bytes;
	uint8_t *to;

	if (!(qp->access & ACCESS_REMOTE_WRITE) || h->dma_len != bytes ||
	    unlikely(!ee_map_remote(e, qp, h->rkey, h->va, bytes, ACCESS_REMOTE_WRITE, &to)))
		return false;
	copy_bytes(to, a->payload, bytes);
	return true;
}

/* The completion is the caller's to post. */
static inline bool send_plain(struct engine *e, struct qp *qp, const struct arrival *a,
			      struct cqe *cqe)
{
	uint32_t bytes = a->payload_bytes;
	struct rwm_entry entry;
	uint8_t *to;

	if (!rwm_sees_single(qp, &entry) || entry.bytes < bytes ||
	    unlikely(!ee_map_entry(e, qp, &entry, bytes, &to)))
		return false;
	copy_bytes(to, a->payload, bytes);
	*cqe = (struct cqe){.opcode = USER_RECV,
			    .my_qpn = qp_number(qp),
			    .remote_qpn = qp->dest_qpn,
			    .byte_count = bytes,
			    .wqe_offset = rwm_wqe_offset(qp)};
	rwm_release_wqe(qp);
	call_note(&e->stage[STAGE_RESPONDER_EXEC], CALL_EE_RWM, EE_RWM_CALLS_PLAIN);
	return true;
}

/* Executes a WRITE or SEND that is_plain(). A SEND's completion is left in *cqe. False: nothing has
 * changed. */
static inline bool execute_one(struct engine *e, struct qp *qp, const struct arrival *a,
			       struct cqe *cqe)
{
	if (a->headers.opcode == WIRE_RC_WRITE_ONLY)
		return write_plain(e, qp, a);
	return a->headers.opcode == WIRE_RC_SEND_ONLY && send_plain(e, qp, a, cqe);
}

/* Posts the completions of n of them, if they are SENDs like a. */
static inline void complete(struct engine *e, struct counters *c, struct qp *qp,
			    const struct arrival *a, const struct cqe *cqe, uint32_t n)
{
	if (a->headers.opcode != WIRE_RC_SEND_ONLY)
		return;
	if (unlikely(!cq_post_burst(e->completion, c, qp->cqn_rcv, cqe, n, a->headers.se)))
		qp_completion_lost(e, c, qp);
}

/* Accounts for `n` executed single-packet messages of `bytes` each. */
static inline void executed(struct execution_engine *ee, struct counters *c, struct qp *qp,
			    uint32_t bytes, uint32_t n)
{
	count_n(c, COUNTER_executed_bytes, (uint64_t)n * bytes);
	count_n(c, COUNTER_executed, n);
	ee_expect_next(qp, n);
	qp->ee.received_bytes = bytes;
	qp->ee.msn = psn_add(qp->ee.msn, n);
	ee->last = qp;
}

static inline void answer(struct execution_engine *ee, struct qp *qp, struct rte_mbuf *m)
{
	if (arrival_of(m)->headers.ackreq)
		ee_defer_ack(ee, qp, m);
	else
		ee->done[ee->done_count++] = m;
}

/* ---- trains in parts ---- */

/* Executes WRITEs or SENDs, as many from the front as are regular. Completions of SENDs are posted
 * together; one by one if there is not room for all of them, because none is executed behind one
 * whose completion is lost (unless another lcore is just taking that room). */
static enum ee_plain execute_parts(struct engine *e, struct execution_engine *ee,
				   struct counters *c, struct qp *qp, struct rte_mbuf *m)
{
	struct arrival *a = arrival_of(m);
	uint32_t n = 0, completed = 0, packets = a->packets, together = packets;
	struct cqe cqe[TRAIN_PACKETS_MAX];

	if (a->headers.opcode == WIRE_RC_SEND_ONLY &&
	    unlikely(!cq_accepts(e->completion, qp->cqn_rcv, packets)))
		together = 1;
	while (n < packets && likely(qp_receives(qp_state(qp)) && execute_one(e, qp, a, &cqe[n]))) {
		if (++n - completed == together) {
			complete(e, c, qp, a, &cqe[completed], together);
			completed = n;
		}
		if (n != packets)
			train_advance(a, 1);
	}
	if (unlikely(!n))
		return EE_PLAIN_NOT;
	if (unlikely(n > completed))
		complete(e, c, qp, a, &cqe[completed], n - completed);
	executed(ee, c, qp, a->payload_bytes, n);
	if (unlikely(n < packets))
		return EE_PLAIN_PART;
	answer(ee, qp, m);
	return EE_PLAIN;
}

/* An atomic of a train. */
struct atomic {
	struct wire_headers h;
	uint64_t *at; /* the client's word */
};

static inline bool read_allowed(struct engine *e, const struct qp *qp, const struct wire_headers *h)
{
	return h->dma_len - 1 < qp->mtu_bytes && ee_check_read(e, qp, h) == V2P_SUCCESS;
}

static inline bool atomic_allowed(struct engine *e, const struct qp *qp, struct atomic *x)
{
	uint8_t *at;

	if (x->h.va % sizeof(uint64_t) ||
	    !ee_map_remote(e, qp, x->h.rkey, x->h.va, sizeof(uint64_t), ACCESS_REMOTE_ATOMIC, &at))
		return false;
	x->at = (uint64_t *)at;
	return (uintptr_t)at % sizeof(uint64_t) == 0;
}

/* How many READs or atomics from the front of the train are allowed. Fills x[] with the atomics. */
static uint32_t allowed_reads(struct engine *e, const struct qp *qp, const struct arrival *a,
			      struct atomic *x)
{
	bool read = a->headers.opcode == WIRE_RC_READ_REQUEST;
	uint32_t used = (uint8_t)(qp->ee.reads_issued - qp->respg.reads_done);
	uint32_t most = qp->max_dest_rd_atomic - RTE_MIN(used, (uint32_t)qp->max_dest_rd_atomic), n;
	const uint8_t *part = a->part;

	if (!(qp->access & (read ? ACCESS_REMOTE_READ : ACCESS_REMOTE_ATOMIC)))
		return 0;
	if (!read)
		most = RTE_MIN(most, respg_results_room(e));
	most = RTE_MIN(most, a->packets);
	x->h = a->headers;
	for (n = 0; n < most && (read ? read_allowed(e, qp, &x->h) : atomic_allowed(e, qp, x));
	     n++) {
		if (n + 1 == most)
			continue;
		if (!read)
			(++x)->h = a->headers;
		wire_read_extensions(part, &x->h);
		part += a->part_bytes;
	}
	return n;
}

static void execute_atomics(struct engine *e, struct qp *qp, const struct atomic *x, uint32_t n)
{
	uint64_t psn = ee_long_psn(qp, qp->ee.expected_psn);

	for (uint32_t i = 0; i < n; i++) {
		uint64_t orig = ee_atomic(&x[i].h, x[i].at);

		ee_keep_result(e, qp, psn + i, orig);
		respg_put_result(e, orig);
	}
}

/* Executes READs or atomics, and hands those to RespPktGen as one train. */
static enum ee_plain execute_reads(struct engine *e, struct execution_engine *ee,
				   struct counters *c, struct qp *qp, struct rte_mbuf *m)
{
	struct arrival *a = arrival_of(m);
	bool read = a->headers.opcode == WIRE_RC_READ_REQUEST;
	struct atomic x[TRAIN_PACKETS_MAX];
	uint32_t n = allowed_reads(e, qp, a, x), packets = a->packets, psn = a->headers.psn;
	struct rte_mbuf *front;

	if (unlikely(n < 2)) /* not worth a train */
		return EE_PLAIN_NOT;
	front = n == packets ? m : train_split(e->clones, m, n);
	if (unlikely(!front))
		return EE_PLAIN_NOT;
	send_ack(e, ee, qp); /* for earlier requests, before the PSN advances */
	if (!read)
		execute_atomics(e, qp, x, n);
	executed(ee, c, qp, 0, n);
	qp->ee.reads_issued += (uint8_t)n;
	response_set_duplicate(arrival_of(front), false);
	hand_over(ee, qp, front, read ? RESPONSE_READ : RESPONSE_ATOMIC, psn,
		  ee_ack_syndrome(e, qp));
	arrival_of(front)->msn = psn_sub(qp->ee.msn, n - 1);
	return n == packets ? EE_PLAIN : EE_PLAIN_PART;
}

/* Is its first packet the expected one, and would it pass straight to CHECK_REQUEST? */
static inline bool train_begins(const struct qp *qp, const struct arrival *a)
{
	return qp->ee.comm_est && qp->ee.message == EE_MESSAGE_NONE &&
	       a->headers.psn == qp->ee.expected_psn && !qp->ee.gap && !a->congested &&
	       a->payload_bytes <= qp->mtu_bytes && qp_receives(qp_state(qp));
}

static enum ee_plain execute_train(struct engine *e, struct execution_engine *ee,
				   struct counters *c, struct rte_mbuf *m)
{
	const struct arrival *a = arrival_of(m);
	struct qp *qp = qp_find(e->qps, a->qpn);

	if (unlikely(!qp || !train_begins(qp, a)))
		return EE_PLAIN_NOT;
	switch (a->headers.opcode) {
	case WIRE_RC_WRITE_ONLY:
	case WIRE_RC_SEND_ONLY:
		return a->payload_bytes ? execute_parts(e, ee, c, qp, m) : EE_PLAIN_NOT;
	case WIRE_RC_READ_REQUEST:
	case WIRE_RC_FETCH_ADD:
	case WIRE_RC_CMP_SWAP:
		return execute_reads(e, ee, c, qp, m);
	}
	return EE_PLAIN_NOT;
}

enum ee_plain ee_execute_plain(struct engine *e, struct execution_engine *ee, struct counters *c,
			       struct rte_mbuf *m)
{
	const struct arrival *a = arrival_of(m);
	struct qp *qp = ee->last;
	struct cqe cqe;

	if (likely(a->packets <= 1)) {
		if (qp && is_plain(qp, a) && execute_one(e, qp, a, &cqe)) {
			complete(e, c, qp, a, &cqe, 1);
			executed(ee, c, qp, a->payload_bytes, 1);
			answer(ee, qp, m);
			return EE_PLAIN;
		}
		ee->last = NULL;
		return EE_PLAIN_NOT;
	}
	ee->last = NULL;
	if (!a->payload_elsewhere)
		return execute_train(e, ee, c, m);
	return ee_execute_train(e, ee, c, m) ? EE_PLAIN : EE_PLAIN_NOT;
}
