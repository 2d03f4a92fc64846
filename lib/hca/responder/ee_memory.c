/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ExecutionEngine's steps that touch client memory: receive descriptors, payload, atomics, receive
 * completions. Stage responder_exec. One copy of each byte, from the frame as it was received.
 */
#include "base/assert.h"
#include "base/copy_payload.h"
#include "completion/completion.h"
#include "ee_work.h"
#include "virt-to-phys/payload_ref.h"

/* Writes the completion of the receive descriptor in turn. */
void ee_complete(struct engine *e, struct counters *c, struct qp *qp, struct cqe *cqe,
		 bool solicited)
{
	cqe->my_qpn = qp_number(qp);
	cqe->wqe_offset = rwm_wqe_offset(qp);
	if (unlikely(!cq_post(e->completion, c, qp->cqn_rcv, cqe, solicited)))
		qp_completion_lost(e, c, qp);
}

enum ee_state step_entry_fetch(struct ee_work *w)
{
	note_call(w, CALL_EE_RWM, 1);
	switch (rwm_open(w->c, w->qp)) {
	case RWM_VALID_ENTRY:
		if (unlikely(!w->qp->ee.has_posted))
			ee_note_first_receive(w->e, w->qp);
		if (w->op->kind != WIRE_KIND_SEND)
			return EE_VTP_CMD;
		if (unlikely(w->total > w->qp->rwm.length))
			return fail(w, OUTCOME_LOCAL_LENGTH);
		return EE_SEND_SCATTER;
	case RWM_INVALID_WQE:
		return fail(w, OUTCOME_RNR);
	case RWM_BAD_QUEUE:
		w->bad_queue = true;
		return fail(w, OUTCOME_LOCAL_QP_OP);
	case RWM_BAD_WQE:
	case RWM_INVALID_ENTRY:
		break;
	}
	return fail(w, OUTCOME_LOCAL_QP_OP);
}

/* Writes `bytes` bytes of src into the entries of the open descriptor. */
static enum wire_outcome scatter(struct ee_work *w, const uint8_t *src, uint32_t bytes, bool nt)
{
	while (bytes) {
		struct rwm_entry entry;
		enum v2p_state s;
		uint64_t run;
		uint8_t *dst;
		uint32_t n;

		note_call(w, CALL_EE_RWM, 2); /* fetch; update or release */
		if (rwm_fetch_entry(w->qp, &entry) != RWM_VALID_ENTRY)
			return OUTCOME_LOCAL_LENGTH;
		n = RTE_MIN(bytes, entry.bytes);
		s = v2p_request(w->e->v2p_port[STAGE_RESPONDER_EXEC], V2P_EE_DATA,
				&(struct v2p_access){.pd = w->qp->rq_pd,
						     .key = entry.lkey,
						     .va = entry.va,
						     .length = n,
						     .rights = ACCESS_LOCAL_WRITE},
				&dst, &run);
		if (unlikely(s != V2P_SUCCESS)) {
			refused(w, s, OUTCOME_LOCAL_PROT);
			return OUTCOME_LOCAL_PROT;
		}
		n = (uint32_t)RTE_MIN((uint64_t)n, run);
		copy_payload(dst, src, n, nt);
		if (n == entry.bytes)
			rwm_release_entry(w->qp);
		else
			rwm_update_entry(w->qp, n);
		src += n;
		bytes -= n;
	}
	return OUTCOME_OK;
}

/* UD: the 40 bytes in front of the message: the IP header, right-aligned. */
static enum wire_outcome scatter_grh(struct ee_work *w)
{
	const uint8_t *l3 = rte_pktmbuf_mtod_offset(w->m, const uint8_t *, w->a->l3_offset);
	uint8_t grh[EE_GRH_BYTES] = {0};

	if (w->a->is_ipv6)
		memcpy(grh, l3, WIRE_IPV6_BYTES);
	else
		memcpy(grh + EE_GRH_BYTES - WIRE_IPV4_BYTES, l3, WIRE_IPV4_BYTES);
	return scatter(w, grh, EE_GRH_BYTES, false);
}

/* Was the sender's payload still valid when it had been copied? False: the packet is processed
 * again, and dropped, since its reference leads nowhere any more. */
static inline bool payload_held(struct ee_work *w)
{
	if (likely(!w->a->payload_elsewhere || payload_ref_held(w->a->payload)))
		return true;
	w->then = EE_AGAIN;
	return false;
}

enum ee_state step_send_scatter(struct ee_work *w)
{
	const uint8_t *src = w->payload;

	w->entry = w->qp->rwm.entry;
	w->entry_bytes = w->qp->rwm.entry_bytes;
	if (w->qp->service == SERVICE_UD)
		w->outcome = scatter_grh(w);
	if (likely(w->outcome == OUTCOME_OK))
		w->outcome =
			scatter(w, src, w->a->payload_bytes, bypasses_caches(w->e, w->total, 0));
	if (unlikely(w->outcome != OUTCOME_OK))
		return w->then ? EE_IDLE : EE_ASYNC_ERROR;
	if (unlikely(!payload_held(w)))
		return EE_IDLE;
	return w->op->flags & WIRE_END ? EE_WQE_RELEASE : EE_CXT_WB;
}

/* READ: all of it is checked before anything that follows is executed; the data is read when it is
 * sent. */
static inline enum ee_state vtp_read(struct ee_work *w)
{
	const struct wire_headers *h = &w->a->headers;
	enum v2p_state s = ee_check_read(w->e, w->qp, h);

	if (unlikely(s != V2P_SUCCESS))
		return refused(w, s, OUTCOME_REMOTE_ACCESS);
	send_ack(w->e, w->ee, w->qp); /* for earlier requests, before the PSN advances */
	w->respond = RESPONSE_READ;
	w->psns = psn_packets(h->dma_len, w->qp->mtu_bytes);
	return EE_CXT_WB;
}

static struct write_addr load_addr(struct ee_work *w)
{
	note_call(w, CALL_EE_WAT, 1);
	return wat_load(w->qp);
}

/* WRITE: checks the memory for this packet (C9-89); the key may be revoked between two packets. */
enum ee_state step_vtp_cmd(struct ee_work *w)
{
	const struct wire_headers *h = &w->a->headers;
	uint32_t bytes = w->a->payload_bytes;
	enum v2p_state s;

	if (w->op->kind == WIRE_KIND_READ)
		return vtp_read(w);
	if (w->op->flags & WIRE_START)
		w->write = (struct write_addr){.va = h->va, .rkey = h->rkey, .left = h->dma_len};
	else
		w->write = load_addr(w);
	s = v2p_request(w->e->v2p_port[STAGE_RESPONDER_EXEC], V2P_EE_DATA,
			&(struct v2p_access){.pd = w->qp->pd,
					     .qpn = qp_number(w->qp),
					     .key = w->write.rkey,
					     .va = w->write.va,
					     .length = bytes,
					     .rights = ACCESS_REMOTE_WRITE},
			&w->addr, &w->run);
	if (unlikely(s != V2P_SUCCESS))
		return refused(w, s, OUTCOME_REMOTE_ACCESS);
	if ((w->op->flags & (WIRE_START | WIRE_END)) == WIRE_START)
		walk_on(&w->qp->ee_walk, h->va, h->dma_len);
	return EE_WRITE_DATA;
}

/* A packet that crosses a page border. */
static __rte_noinline enum v2p_state write_pieces(struct ee_work *w, const uint8_t *src,
						  uint32_t bytes, bool nt)
{
	uint64_t at = w->write.va;

	copy_payload(w->addr, src, w->run, nt);
	while (bytes > w->run) {
		enum v2p_state s;

		at += w->run;
		src += w->run;
		bytes -= (uint32_t)w->run;
		s = v2p_request(w->e->v2p_port[STAGE_RESPONDER_EXEC], V2P_EE_DATA,
				&(struct v2p_access){.pd = w->qp->pd,
						     .qpn = qp_number(w->qp),
						     .key = w->write.rkey,
						     .va = at,
						     .length = bytes,
						     .rights = ACCESS_REMOTE_WRITE},
				&w->addr, &w->run);
		if (unlikely(s != V2P_SUCCESS))
			return s;
		copy_payload(w->addr, src, RTE_MIN((uint64_t)bytes, w->run), nt);
	}
	return V2P_SUCCESS;
}

enum ee_state step_write_data(struct ee_work *w)
{
	const uint8_t *src = w->payload;
	uint32_t bytes = w->a->payload_bytes;
	/* Not the last packet: who polls the last byte is to find all before it. */
	bool nt = !(w->op->flags & WIRE_END) &&
		  bypasses_caches(w->e, (uint64_t)w->total - bytes + w->write.left,
				  walk_bytes(&w->qp->ee_walk));
	enum v2p_state s;

	if (likely(w->run >= bytes)) {
		if (bytes)
			copy_payload(w->addr, src, bytes, nt);
	} else if (unlikely((s = write_pieces(w, src, bytes, nt)) != V2P_SUCCESS)) {
		return refused(w, s, OUTCOME_REMOTE_ACCESS);
	}
	if (unlikely(!payload_held(w)))
		return EE_IDLE;
	if (!(w->op->flags & WIRE_END))
		return EE_STORE_ADDR;
	return w->op->flags & WIRE_CONSUMES_RECV ? EE_WQE_RELEASE : EE_CXT_WB;
}

enum ee_state step_store_addr(struct ee_work *w)
{
	w->write.va += w->a->payload_bytes;
	w->write.left -= w->a->payload_bytes;
	note_call(w, CALL_EE_WAT, 1);
	wat_store(w->qp, &w->write);
	return EE_CXT_WB;
}

static uint64_t write_atomically(struct ee_work *w, uint64_t *p)
{
	uint64_t value;

	memcpy(&value, w->payload, sizeof(value));
	/* Release: a reader that sees it sees all earlier writes, too. */
	__atomic_store_n(p, value, __ATOMIC_RELEASE);
	return 0;
}

/* Executed, and answered by a separate response. */
static enum ee_state answered(struct ee_work *w)
{
	send_ack(w->e, w->ee, w->qp); /* for earlier requests, before the PSN advances */
	w->respond = answer_of(w->op);
	return EE_CXT_WB;
}

_Static_assert(ACCESS_FLUSH_GLOBAL / WIRE_FLUSH_GLOBAL ==
		       ACCESS_FLUSH_PERSISTENT / WIRE_FLUSH_PERSISTENT,
	       "rights to flush are placement types, shifted");

/*
 * FLUSH. What the queue pair received before has been written by this lcore, in order; once the
 * fence is over, every other CPU sees it, too. For a whole region, or no bytes, only key and rights
 * are checked, as for the first byte.
 *
 * Nothing about it has to be remembered, and its answer may be given at any time: like that of a
 * duplicate, it holds no resource. So it does not matter whether the peer counts it as a READ.
 */
static enum ee_state ee_flush_memory(struct ee_work *w)
{
	const struct wire_headers *h = &w->a->headers;
	bool range = !(h->compare & WIRE_FLUSH_LEVELS) && h->swap_add;
	uint32_t access = (uint32_t)(h->compare & WIRE_FLUSH_PLACEMENTS) * ACCESS_FLUSH_GLOBAL;
	enum v2p_state s =
		v2p_check(w->e->v2p_port[STAGE_RESPONDER_EXEC], V2P_EE_DATA,
			  &(struct v2p_access){.pd = w->qp->pd,
					       .qpn = qp_number(w->qp),
					       .key = h->rkey,
					       .va = range ? h->va : 0,
					       .length = range ? h->swap_add : 1,
					       .rights = range ? access : access | V2P_RELATIVE});

	if (unlikely(s != V2P_SUCCESS))
		return refused(w, s, OUTCOME_REMOTE_ACCESS);
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	w->duplicate = true;
	return answered(w);
}

enum ee_state step_atomic(struct ee_work *w)
{
	struct wire_headers *h = &w->a->headers;
	struct qp *qp = w->qp;
	uint32_t access =
		w->op->kind == WIRE_KIND_ATOMIC ? ACCESS_REMOTE_ATOMIC : ACCESS_REMOTE_WRITE;
	enum v2p_state s;

	if (w->op->kind == WIRE_KIND_FLUSH)
		return ee_flush_memory(w);
	s = v2p_request(w->e->v2p_port[STAGE_RESPONDER_EXEC], V2P_EE_DATA,
			&(struct v2p_access){.pd = qp->pd,
					     .qpn = qp_number(qp),
					     .key = h->rkey,
					     .va = h->va,
					     .length = sizeof(uint64_t),
					     .rights = access},
			&w->addr, &w->run);
	if (unlikely(s != V2P_SUCCESS))
		return refused(w, s, OUTCOME_REMOTE_ACCESS);
	/* The peer's address is aligned, but the memory behind it is not: the CPU has no
	 * atomic for it. */
	if ((uintptr_t)w->addr % sizeof(uint64_t))
		return fail(w, OUTCOME_INVALID_REQUEST);
	if (h->opcode == WIRE_RC_ATOMIC_WRITE)
		w->a->orig = write_atomically(w, (uint64_t *)w->addr);
	else
		w->a->orig = ee_atomic(h, (uint64_t *)w->addr);
	ee_keep_result(w->e, qp, ee_long_psn(qp, h->psn), w->a->orig);
	return answered(w);
}

/* SEND with invalidate: after the data, before the completion. If the key may not be invalidated,
 * the receive fails and with it the QP, without a NAK (IBTA 9.9.6.3, class J). */
static enum wire_outcome invalidate(struct ee_work *w)
{
	enum v2p_state s = v2p_invalidate(w->e->v2p, w->qp->pd, qp_number(w->qp),
					  w->a->headers.invalidate_rkey);

	if (s == V2P_PENDING)
		w->then = EE_AGAIN;
	v2p_count_error(w->c, s);
	return s == V2P_SUCCESS ? OUTCOME_OK : OUTCOME_BAD_INVALIDATE;
}

static inline void describe_completion(struct ee_work *w, struct cqe *cqe)
{
	const struct wire_headers *h = &w->a->headers;

	cqe->opcode = USER_RECV;
	if (w->op->headers & WIRE_HAS_IMM) {
		cqe->opcode = w->op->kind == WIRE_KIND_WRITE ? USER_RECV_RDMA_IMM : USER_RECV_IMM;
		cqe->imm_or_error = h->imm;
	} else if (w->op->headers & WIRE_HAS_IETH) {
		cqe->opcode = USER_RECV_INV;
		cqe->imm_or_error = h->invalidate_rkey;
	}
}

enum ee_state step_wqe_release(struct ee_work *w)
{
	struct cqe cqe = {.remote_qpn = w->qp->dest_qpn, .byte_count = w->total};

	if (unlikely(w->op->headers & WIRE_HAS_IETH)) {
		w->outcome = invalidate(w);
		if (w->outcome != OUTCOME_OK)
			return w->then ? EE_IDLE : EE_ASYNC_ERROR;
	}
	describe_completion(w, &cqe);
	if (w->qp->service == SERVICE_UD) {
		cqe.remote_qpn = w->a->headers.src_qp;
		cqe.rlid_flags = CQE_HAS_GRH | (w->a->is_ipv6 ? CQE_SL_IPV6 : CQE_SL_IPV4);
	}
	ee_complete(w->e, w->c, w->qp, &cqe, w->a->headers.se);
	note_call(w, CALL_EE_RWM, 1);
	rwm_release_wqe(w->qp);
	return EE_CXT_WB;
}
