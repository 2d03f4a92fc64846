/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ExecutionEngine's fast path for trains of middle packets (pipeline/train.h): one address
 * translation, one copy and one update of the expected PSN for all of them. It never refuses a
 * packet: what is irregular in any way is left to the states, packet by packet.
 * Stage responder_exec.
 */
#include "base/copy_payload.h"
#include "ee_train.h"
#include "pipeline/train.h"
#include "virt-to-phys/payload_ref.h"

/* Is the queue pair in the middle of this WRITE or SEND, and are these its next packets? */
static inline bool is_expected(const struct qp *qp, const struct arrival *a)
{
	const struct wire_opcode *op = &wire_opcodes[a->headers.opcode];

	return a->headers.psn == qp->ee.expected_psn && !qp->ee.gap &&
	       !(a->congested | a->singly) && a->payload_bytes == qp->mtu_bytes &&
	       qp->ee.message == message_of(op) && qp_receives(qp_state(qp));
}

/* Copies from client to client. False: the sender changed the payload, or gave it up while it was
 * copied. The headers have not left the daemon, so the destination is right all the same. */
static inline bool copy_referred(struct rte_mbuf *m, uint8_t *to, const uint8_t *from,
				 uint32_t bytes, bool nt)
{
	struct arrival *a = arrival_of(m);

	if (!a->icrc_bytes) {
		copy_payload(to, from, bytes, nt);
	} else if (unlikely(train_copy_checked(m, to, from, nt, NULL) < a->packets)) {
		a->singly = 1;
		return false;
	}
	return payload_ref_held(a->payload);
}

static inline bool write_train(struct engine *e, struct qp *qp, struct rte_mbuf *m,
			       const uint8_t *from)
{
	const struct arrival *a = arrival_of(m);
	struct write_addr w = wat_load(qp);
	uint32_t bytes = train_bytes(a);
	bool nt = bypasses_caches(e, (uint64_t)qp->ee.received_bytes + w.left,
				  walk_bytes(&qp->ee_walk));
	uint8_t *to;

	if (!(qp->access & ACCESS_REMOTE_WRITE) || w.left <= bytes ||
	    unlikely(!ee_map_remote(e, qp, w.rkey, w.va, bytes, ACCESS_REMOTE_WRITE, &to)) ||
	    unlikely(!copy_referred(m, to, from, bytes, nt)))
		return false;
	w.va += bytes;
	w.left -= bytes;
	wat_store(qp, &w);
	call_note(&e->stage[STAGE_RESPONDER_EXEC], CALL_EE_WAT, 2 * a->packets);
	return true;
}

static inline bool send_train(struct engine *e, struct qp *qp, struct rte_mbuf *m,
			      const uint8_t *from)
{
	const struct arrival *a = arrival_of(m);
	uint32_t bytes = train_bytes(a);
	uint64_t total = (uint64_t)qp->ee.received_bytes + bytes;
	struct rwm_entry entry;
	uint8_t *to;

	if (total > qp->rwm.length || rwm_fetch_entry(qp, &entry) != RWM_VALID_ENTRY ||
	    entry.bytes < bytes || unlikely(!ee_map_entry(e, qp, &entry, bytes, &to)) ||
	    unlikely(!copy_referred(m, to, from, bytes, bypasses_caches(e, total, 0))))
		return false;
	if (entry.bytes == bytes)
		rwm_release_entry(qp);
	else
		rwm_update_entry(qp, bytes);
	call_note(&e->stage[STAGE_RESPONDER_EXEC], CALL_EE_RWM, EE_RWM_CALLS_MIDDLE * a->packets);
	return true;
}

bool ee_execute_train(struct engine *e, struct execution_engine *ee, struct counters *c,
		      struct rte_mbuf *m)
{
	const struct arrival *a = arrival_of(m);
	struct qp *qp = qp_find(e->qps, a->qpn);
	const uint8_t *from;
	bool done = false;

	if (unlikely(!qp || !is_expected(qp, a) ||
		     payload_ref_follow(a->payload, &from) != V2P_SUCCESS))
		return false;
	from += a->payload_skip;
	if (a->headers.opcode == WIRE_RC_WRITE_MIDDLE)
		done = write_train(e, qp, m, from);
	else if (a->headers.opcode == WIRE_RC_SEND_MIDDLE)
		done = send_train(e, qp, m, from);
	if (unlikely(!done))
		return false;
	count_n(c, COUNTER_executed_bytes, train_bytes(a));
	ee_expect_next(qp, a->packets);
	qp->ee.received_bytes += train_bytes(a);
	if (a->headers.ackreq)
		ee_defer_ack(ee, qp, m);
	else
		ee->done[ee->done_count++] = m;
	return true;
}
