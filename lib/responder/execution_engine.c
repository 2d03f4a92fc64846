/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ExecutionEngine: takes requests from HP_EE, checks them in the order of the standard's flow chart
 * (C9-73), executes them in client memory, writes receive completions, and tells RespPktGen what to
 * answer (EE_RESPG). Stage responder_exec. Reads the frame, never writes into it; never waits;
 * never allocates.
 *
 * Each packet passes the states below, one step function each. The hardware's pairs "command,
 * response" (FETCH_CXT RESP_CXT, VTP_CMD VTP_RESP, ENTRY_FETCH ENTRY_RESP) are one state here,
 * because a call answers at once.
 *
 *   state          condition                                       next            why
 *   FETCH_CXT      QP gone or does not receive                     DROP            C9-76
 *                  otherwise                                       CHECK_PSN
 *   CHECK_PSN      RC: PSN expected; UC: first, only or expected   CHECK_REQUEST   C9-77
 *                  RC: PSN before                                  DUPLICATE       C9-78
 *                  RC: PSN ahead, no NAK out                       ASYNC_ERROR     C9-79, C9-121
 *                  RC: PSN ahead, NAK out; UC: gap; UD: Q_Key      DROP            C9-80
 *                  UD: Q_Key fits                                  ENTRY_FETCH
 *   CHECK_REQUEST  not valid                                       ASYNC_ERROR     C9-81 .. C9-86,
 * C9-92 .. C9-94 needs a receive descriptor                      ENTRY_FETCH WRITE, READ VTP_CMD
 *                  ATOMIC                                          ATOMIC
 *   DUPLICATE      answerable                                      GEN_RESP        C9-102 ..
 * C9-107, o9-66 not                                             DROP            C9-106, C9-108,
 * o9-67 ENTRY_FETCH    none posted, too short, wrong                   ASYNC_ERROR     C9-91, RNR
 *                  SEND                                            SEND_SCATTER
 *                  WRITE with immediate                            VTP_CMD
 *   SEND_SCATTER   local memory refused                            ASYNC_ERROR
 *                  message ends                                    WQE_RELEASE
 *                  otherwise                                       CXT_WB
 *   VTP_CMD        refused                                         ASYNC_ERROR     C9-89
 *                  WRITE                                           WRITE_DATA
 *                  READ                                            CXT_WB          C9-101
 *   WRITE_DATA     a later page refused                            ASYNC_ERROR
 *                  message goes on                                 STORE_ADDR
 *                  message ends, with immediate                    WQE_RELEASE
 *                  message ends                                    CXT_WB
 *   STORE_ADDR                                                     CXT_WB
 *   ATOMIC         refused                                         ASYNC_ERROR
 *                  done                                            CXT_WB
 *   WQE_RELEASE    completion written                              CXT_WB
 *   CXT_WB         RC                                              GEN_RESP        C9-75, C9-147
 *                  UC, UD                                          DROP (the mbuf; executed)
 *   GEN_RESP                                                       IDLE
 *   ASYNC_ERROR    NAK handed over, or UC, UD: nothing             IDLE
 *   DROP                                                           IDLE
 */
#include <rte_malloc.h>
#include "completion/completion.h"
#include "copy.h"
#include "execution_engine.h"
#include "host-abi/cqe.h"
#include "request_check.h"
#include "resp_pkt_gen.h"
#include "rq_wqe_manager.h"
#include "virt-to-phys/v2p.h"
#include "wire/aeth.h"
#include "write_addr_table.h"

enum ee_state {
	EE_IDLE,	  /* IDLE: the packet is done with */
	EE_FETCH_CXT,	  /* FETCH_CXT, RESP_CXT */
	EE_CHECK_PSN,	  /* (within RESP_CXT) */
	EE_CHECK_REQUEST, /* (within RESP_CXT) */
	EE_DUPLICATE,	  /* ours: the seed asks READs again, and acknowledges the rest */
	EE_ENTRY_FETCH,	  /* ENTRY_FETCH, ENTRY_RESP */
	EE_SEND_SCATTER,  /* SEND_SCATTER, ENTRY_UPDATE, ENTRY_RELEASE */
	EE_VTP_CMD,	  /* VTP_CMD, VTP_RESP */
	EE_WRITE_DATA,	  /* WRITE_DATA */
	EE_STORE_ADDR,	  /* STORE_ADDR */
	EE_ATOMIC,	  /* ours: the seed has no atomics */
	EE_WQE_RELEASE,	  /* WQE_RELEASE */
	EE_CXT_WB,	  /* CXT_WB */
	EE_GEN_RESP,	  /* GEN_RESP */
	EE_ASYNC_ERROR,	  /* ASYNC_ERROR */
	EE_DROP,	  /* DROP */
	EE_STATES,
};

/* The table above as data, for the debug assertion. */
#define TO(s) (1u << EE_##s)
static const uint32_t transitions[EE_STATES] = {
	[EE_FETCH_CXT] = TO(DROP) | TO(CHECK_PSN),
	[EE_CHECK_PSN] =
		TO(CHECK_REQUEST) | TO(DUPLICATE) | TO(ASYNC_ERROR) | TO(DROP) | TO(ENTRY_FETCH),
	[EE_CHECK_REQUEST] = TO(ASYNC_ERROR) | TO(ENTRY_FETCH) | TO(VTP_CMD) | TO(ATOMIC),
	[EE_DUPLICATE] = TO(GEN_RESP) | TO(DROP),
	[EE_ENTRY_FETCH] = TO(ASYNC_ERROR) | TO(SEND_SCATTER) | TO(VTP_CMD),
	[EE_SEND_SCATTER] = TO(ASYNC_ERROR) | TO(WQE_RELEASE) | TO(CXT_WB),
	[EE_VTP_CMD] = TO(ASYNC_ERROR) | TO(WRITE_DATA) | TO(CXT_WB),
	[EE_WRITE_DATA] = TO(ASYNC_ERROR) | TO(STORE_ADDR) | TO(WQE_RELEASE) | TO(CXT_WB),
	[EE_STORE_ADDR] = TO(CXT_WB),
	[EE_ATOMIC] = TO(ASYNC_ERROR) | TO(CXT_WB),
	[EE_WQE_RELEASE] = TO(CXT_WB),
	[EE_CXT_WB] = TO(GEN_RESP) | TO(DROP),
	[EE_GEN_RESP] = TO(IDLE),
	[EE_ASYNC_ERROR] = TO(IDLE),
	[EE_DROP] = TO(IDLE),
};

enum { UD_GRH_BYTES = 40 };

/* An ACK owed at the end of the burst, and the mbuf that will carry it to RespPktGen. */
struct owed_ack {
	struct qp *qp;
	struct rte_mbuf *m; /* NULL: it went out earlier */
};

/* The module's own state: valid within one burst. */
struct execution_engine {
	struct rte_mbuf *out[BURST];  /* to EE_RESPG, in order */
	struct rte_mbuf *dead[BURST]; /* to be freed */
	struct owed_ack owed[BURST];  /* qp->ee.ack_pending is the place in it, plus one */
	unsigned outs, deads, owes;
};

/* One packet on its way through the states. */
struct ee_work {
	struct engine *e;
	struct execution_engine *ee;
	struct counters *c;
	struct rte_mbuf *m; /* ours until it is in one of the lists */
	struct arrival *a;
	const struct wire_opcode *op;
	struct qp *qp;
	enum wire_outcome outcome;
	enum response_kind respond; /* RC: what GEN_RESP hands over */
	bool duplicate;
	bool bad_queue; /* the client's count of receive descriptors is impossible */
	uint32_t total; /* of the message with this packet, bytes; UD: with the GRH space */
	uint32_t psns;	/* PSNs that the request takes */
	uint8_t *addr;	/* VTP_CMD: where the WRITE's payload goes */
	uint64_t run;	/* VTP_CMD: contiguous bytes there */
	struct write_addr write;
};

static inline void bury(struct ee_work *w)
{
	w->ee->dead[w->ee->deads++] = w->m;
}

static inline enum ee_state fail(struct ee_work *w, enum wire_outcome outcome)
{
	w->outcome = outcome;
	return EE_ASYNC_ERROR;
}

/* Credit part of an ACK's syndrome (C9-158). */
static inline uint8_t ack_syndrome(const struct engine *e, const struct qp *qp)
{
	if (!e->settings.e2e_credits || !qp->rq)
		return aeth_ack(AETH_CREDIT_INVALID);
	return aeth_ack(aeth_credit_code(rwm_available(qp)));
}

/* Hands a received mbuf over as the carrier of an answer; its arrival says what else. */
static inline void hand_over(struct execution_engine *ee, struct qp *qp, struct rte_mbuf *m,
	uint8_t response, uint32_t psn, uint8_t syndrome)
{
	struct arrival *a = arrival_of(m);

	a->response = response;
	a->response_psn = psn;
	a->msn = qp->ee.msn;
	a->syndrome = syndrome;
	a->done_bytes = 0;
	a->done_packets = 0;
	a->next = NULL;
	ee->out[ee->outs++] = m;
}

/* The ACK that is owed goes out now: PSN of the most recent executed request (C9-95). */
static inline void pay_ack(struct engine *e, struct execution_engine *ee, struct qp *qp)
{
	struct owed_ack *o;

	if (!qp->ee.ack_pending)
		return;
	o = &ee->owed[qp->ee.ack_pending - 1];
	qp->ee.ack_pending = 0;
	hand_over(ee, qp, o->m, RESPONSE_ACK, psn_sub(qp->ee.expected_psn, 1), ack_syndrome(e, qp));
	o->m = NULL;
}

/* One ACK for each QP and burst: the first mbuf that asks for it is kept, later ones are freed. */
static inline void owe_ack(struct ee_work *w)
{
	if (w->qp->ee.ack_pending) {
		bury(w);
		return;
	}
	w->ee->owed[w->ee->owes++] = (struct owed_ack){.qp = w->qp, .m = w->m};
	w->qp->ee.ack_pending = (uint8_t)w->ee->owes;
}

/* Writes the completion of the receive descriptor in turn. */
static void complete(
	struct engine *e, struct counters *c, const struct qp *qp, struct cqe *cqe, bool solicited)
{
	cqe->my_qpn = qp->qpn;
	cqe->wqe_offset = rwm_wqe_offset(qp);
	cq_post(e->completion, c, qp->cqn_rcv, cqe, solicited);
}

static void complete_error(
	struct engine *e, struct counters *c, const struct qp *qp, uint8_t syndrome)
{
	struct cqe cqe = {.opcode = USER_INVALID, .imm_or_error = syndrome};

	complete(e, c, qp, &cqe, true);
}

/* The first packet of a connection: takes up the initial PSN, and tells the client if it does not
 * know yet. */
static void first_packet(struct ee_work *w, enum qp_state state)
{
	struct qp *qp = w->qp;

	qp->ee.comm_est = 1;
	if (qp->service == SERVICE_UD)
		return;
	qp->ee.expected_psn = qp->rq_psn & PSN_MASK;
	if (state == QP_RTR)
		eq_post(w->e->completion, w->c, qp->client, EQE_COMM_EST, qp->qpn);
}

static inline enum ee_state step_fetch_cxt(struct ee_work *w)
{
	enum qp_state state;

	w->qp = qp_find(w->e->qps, w->a->qpn);
	if (unlikely(!w->qp))
		goto drop;
	state = qp_state(w->qp);
	if (unlikely(!qp_receives(state)))
		goto drop;
	if (unlikely(!w->qp->ee.comm_est))
		first_packet(w, state);
	return EE_CHECK_PSN;
drop:
	count(w->c, COUNTER_drop_qp_state);
	return EE_DROP;
}

static inline enum ee_state check_psn_rc(struct ee_work *w)
{
	struct qp *qp = w->qp;
	int32_t ahead = psn_diff(w->a->headers.psn, qp->ee.expected_psn);

	if (likely(ahead == 0))
		return EE_CHECK_REQUEST;
	if (ahead < 0)
		return EE_DUPLICATE;
	count(w->c, COUNTER_drop_out_of_sequence);
	if (qp->ee.nak_sent)
		return EE_DROP;
	qp->ee.nak_sent = 1;
	return fail(w, OUTCOME_SEQUENCE);
}

/* UC: the message in progress is given up, its receive descriptor serves the next one. */
static inline void abandon_message(struct ee_work *w)
{
	w->qp->ee.message = EE_MESSAGE_NONE;
	rwm_rewind(w->qp);
}

/* UC: a gap costs the message; the next first or only packet is taken whatever its PSN. */
static inline enum ee_state check_psn_uc(struct ee_work *w)
{
	struct qp *qp = w->qp;
	uint32_t psn = w->a->headers.psn;
	bool expected = psn == qp->ee.expected_psn;

	if (likely(w->op->flags & WIRE_START)) {
		if (unlikely(qp->ee.message != EE_MESSAGE_NONE)) {
			count(w->c, COUNTER_drop_uc_sequence);
			abandon_message(w);
		}
		qp->ee.expected_psn = psn;
		return EE_CHECK_REQUEST;
	}
	if (likely(expected && qp->ee.message != EE_MESSAGE_NONE))
		return EE_CHECK_REQUEST;
	abandon_message(w);
	count(w->c, COUNTER_drop_uc_sequence);
	return EE_DROP;
}

static inline enum ee_state step_check_psn(struct ee_work *w)
{
	w->total = w->a->payload_bytes;
	w->psns = 1;
	switch ((enum qp_service)w->qp->service) {
	case SERVICE_RC:
		return check_psn_rc(w);
	case SERVICE_UC:
		return check_psn_uc(w);
	case SERVICE_UD:
		break;
	}
	w->total += UD_GRH_BYTES;
	if (likely(w->op->defined && w->a->headers.qkey == w->qp->qkey))
		return EE_ENTRY_FETCH;
	count(w->c, COUNTER_drop_ud_qkey);
	return EE_DROP;
}

static inline enum ee_state step_check_request(struct ee_work *w)
{
	w->outcome = request_check(w->qp, w->a, w->op);
	if (unlikely(w->outcome != OUTCOME_OK))
		return EE_ASYNC_ERROR;
	if (!(w->op->flags & WIRE_START))
		w->total += w->qp->ee.received_bytes;
	w->respond = w->a->headers.ackreq ? RESPONSE_ACK : RESPONSE_NONE;
	if (w->op->flags & WIRE_CONSUMES_RECV)
		return EE_ENTRY_FETCH;
	return w->op->kind == WIRE_KIND_ATOMIC ? EE_ATOMIC : EE_VTP_CMD;
}

/* Rights and memory of a duplicate READ; errors are silent (C9-108). */
static bool duplicate_read(struct ee_work *w)
{
	const struct wire_headers *h = &w->a->headers;
	uint8_t *addr;
	uint64_t run;

	if (!request_check_duplicate_read(w->qp, w->a))
		return false;
	w->respond = RESPONSE_READ;
	return v2p_map(w->e->v2p, w->qp->pd, h->rkey, h->va, h->dma_len, ACCESS_REMOTE_READ, &addr,
		       &run) == V2P_SUCCESS;
}

/* The saved result, never a second execution (o9-66). */
static bool duplicate_atomic(struct ee_work *w)
{
	const struct atomic_result *results = w->qp->ee.results;

	w->respond = RESPONSE_ATOMIC;
	for (unsigned i = 0; i < READS_MAX; i++) {
		if (results[i].valid && results[i].psn == w->a->headers.psn) {
			w->a->orig = results[i].orig;
			return true;
		}
	}
	return false;
}

static enum ee_state step_duplicate(struct ee_work *w)
{
	bool answer = false;

	w->duplicate = true;
	w->respond = RESPONSE_ACK;
	if (w->op->defined) {
		if (w->op->kind == WIRE_KIND_READ)
			answer = duplicate_read(w);
		else if (w->op->kind == WIRE_KIND_ATOMIC)
			answer = duplicate_atomic(w);
		else
			answer = w->op->kind == WIRE_KIND_SEND || w->op->kind == WIRE_KIND_WRITE;
	}
	if (!answer) {
		count(w->c, COUNTER_drop_duplicate);
		return EE_DROP;
	}
	w->qp->ee.nak_sent = 0; /* C9-80: a valid duplicate ends the silence */
	count(w->c, COUNTER_duplicate_requests);
	return EE_GEN_RESP;
}

static inline enum ee_state step_entry_fetch(struct ee_work *w)
{
	switch (rwm_open(w->c, w->qp)) {
	case RWM_VALID_ENTRY:
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

static inline bool is_long(const struct ee_work *w, uint64_t message_bytes)
{
	uint32_t limit = w->e->settings.nt_copy_bytes;

	return unlikely(limit && message_bytes >= limit);
}

/* Writes so many bytes into the entries of the open descriptor. */
static enum wire_outcome scatter(struct ee_work *w, const uint8_t *src, uint32_t bytes, bool nt)
{
	while (bytes) {
		struct rwm_entry entry;
		enum v2p_state s;
		uint64_t run;
		uint8_t *dst;
		uint32_t n;

		if (rwm_fetch_entry(w->qp, &entry) != RWM_VALID_ENTRY)
			return OUTCOME_LOCAL_LENGTH;
		n = RTE_MIN(bytes, entry.bytes);
		s = v2p_map(w->e->v2p, w->qp->pd, entry.lkey, entry.va, n, ACCESS_LOCAL_WRITE, &dst,
			&run);
		if (unlikely(s != V2P_SUCCESS)) {
			v2p_count_error(w->c, s);
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
	uint8_t grh[UD_GRH_BYTES] = {0};

	if (w->a->is_ipv6)
		memcpy(grh, l3, WIRE_IPV6_BYTES);
	else
		memcpy(grh + UD_GRH_BYTES - WIRE_IPV4_BYTES, l3, WIRE_IPV4_BYTES);
	return scatter(w, grh, UD_GRH_BYTES, false);
}

static inline enum ee_state step_send_scatter(struct ee_work *w)
{
	const uint8_t *src = rte_pktmbuf_mtod_offset(w->m, const uint8_t *, w->a->payload_offset);

	if (w->qp->service == SERVICE_UD)
		w->outcome = scatter_grh(w);
	if (likely(w->outcome == OUTCOME_OK))
		w->outcome = scatter(w, src, w->a->payload_bytes, is_long(w, w->total));
	if (unlikely(w->outcome != OUTCOME_OK))
		return EE_ASYNC_ERROR;
	return w->op->flags & WIRE_END ? EE_WQE_RELEASE : EE_CXT_WB;
}

/* READ: all of it is checked before anything that follows is executed; the data is read when it is
 * sent. */
static inline enum ee_state vtp_read(struct ee_work *w)
{
	const struct wire_headers *h = &w->a->headers;
	enum v2p_state s = v2p_map(w->e->v2p, w->qp->pd, h->rkey, h->va, h->dma_len,
		ACCESS_REMOTE_READ, &w->addr, &w->run);

	if (unlikely(s != V2P_SUCCESS)) {
		v2p_count_error(w->c, s);
		return fail(w, OUTCOME_REMOTE_ACCESS);
	}
	w->respond = RESPONSE_READ;
	w->psns = psn_packets(h->dma_len, w->qp->mtu_bytes);
	return EE_CXT_WB;
}

/* WRITE: the whole range with the first packet, each packet's piece with the others: the key may
 * have gone meanwhile. */
static inline enum ee_state step_vtp_cmd(struct ee_work *w)
{
	const struct wire_headers *h = &w->a->headers;
	uint32_t bytes = w->a->payload_bytes;
	enum v2p_state s;

	if (w->op->kind == WIRE_KIND_READ)
		return vtp_read(w);
	if (w->op->flags & WIRE_START) {
		w->write = (struct write_addr){.va = h->va, .rkey = h->rkey, .left = h->dma_len};
		bytes = h->dma_len;
	} else {
		w->write = wat_load(w->qp);
	}
	s = v2p_map(w->e->v2p, w->qp->pd, w->write.rkey, w->write.va, bytes, ACCESS_REMOTE_WRITE,
		&w->addr, &w->run);
	if (likely(s == V2P_SUCCESS))
		return EE_WRITE_DATA;
	v2p_count_error(w->c, s);
	return fail(w, OUTCOME_REMOTE_ACCESS);
}

/* A payload that crosses into another page of the region: piece by piece. */
static enum wire_outcome write_pieces(struct ee_work *w, const uint8_t *src, bool nt)
{
	uint64_t va = w->write.va;
	uint32_t left = w->a->payload_bytes;

	while (left) {
		uint64_t run;
		uint8_t *dst;
		enum v2p_state s = v2p_map(w->e->v2p, w->qp->pd, w->write.rkey, va, left,
			ACCESS_REMOTE_WRITE, &dst, &run);
		uint32_t n = (uint32_t)RTE_MIN((uint64_t)left, run);

		if (s != V2P_SUCCESS) {
			v2p_count_error(w->c, s);
			return OUTCOME_REMOTE_ACCESS;
		}
		copy_payload(dst, src, n, nt);
		va += n;
		src += n;
		left -= n;
	}
	return OUTCOME_OK;
}

static inline enum ee_state step_write_data(struct ee_work *w)
{
	const uint8_t *src = rte_pktmbuf_mtod_offset(w->m, const uint8_t *, w->a->payload_offset);
	uint32_t bytes = w->a->payload_bytes;
	bool nt = is_long(w, (uint64_t)w->total - bytes + w->write.left);

	if (likely(w->run >= bytes)) {
		if (bytes)
			copy_payload(w->addr, src, bytes, nt);
	} else {
		w->outcome = write_pieces(w, src, nt);
		if (w->outcome != OUTCOME_OK)
			return EE_ASYNC_ERROR;
	}
	if (!(w->op->flags & WIRE_END))
		return EE_STORE_ADDR;
	return w->op->flags & WIRE_CONSUMES_RECV ? EE_WQE_RELEASE : EE_CXT_WB;
}

static inline enum ee_state step_store_addr(struct ee_work *w)
{
	w->write.va += w->a->payload_bytes;
	w->write.left -= w->a->payload_bytes;
	wat_store(w->qp, &w->write);
	return EE_CXT_WB;
}

static uint64_t execute_atomic(uint64_t *p, const struct wire_headers *h)
{
	uint64_t expected = h->compare;

	if (h->opcode == WIRE_RC_FETCH_ADD)
		return __atomic_fetch_add(p, h->swap_add, __ATOMIC_SEQ_CST);
	__atomic_compare_exchange_n(
		p, &expected, h->swap_add, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
	return expected;
}

static enum ee_state step_atomic(struct ee_work *w)
{
	struct wire_headers *h = &w->a->headers;
	struct qp *qp = w->qp;
	enum v2p_state s = v2p_map(w->e->v2p, qp->pd, h->rkey, h->va, sizeof(uint64_t),
		ACCESS_REMOTE_ATOMIC, &w->addr, &w->run);

	if (s != V2P_SUCCESS) {
		v2p_count_error(w->c, s);
		return fail(w, OUTCOME_REMOTE_ACCESS);
	}
	/* A region registered under an address that is odd against its memory: the CPU has no
	 * atomic for it. */
	if ((uintptr_t)w->addr % sizeof(uint64_t) || w->run < sizeof(uint64_t))
		return fail(w, OUTCOME_INVALID_REQUEST);
	w->a->orig = execute_atomic((uint64_t *)w->addr, h);
	qp->ee.results[qp->ee.atomic_next] =
		(struct atomic_result){.psn = h->psn, .valid = 1, .orig = w->a->orig};
	qp->ee.atomic_next = (qp->ee.atomic_next + 1) % READS_MAX;
	w->respond = RESPONSE_ATOMIC;
	return EE_CXT_WB;
}

/* SEND with invalidate: VirtToPhys takes no invalidation from the data path yet; the completion
 * reports the key. */
static void invalidate_remote_key(struct ee_work *w, uint32_t rkey)
{
	(void)w;
	(void)rkey;
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
		invalidate_remote_key(w, h->invalidate_rkey);
	}
}

static inline enum ee_state step_wqe_release(struct ee_work *w)
{
	struct cqe cqe = {.remote_qpn = w->qp->dest_qpn, .byte_count = w->total};

	describe_completion(w, &cqe);
	if (w->qp->service == SERVICE_UD) {
		cqe.remote_qpn = w->a->headers.src_qp;
		cqe.rlid_flags = CQE_HAS_GRH;
	}
	complete(w->e, w->c, w->qp, &cqe, w->a->headers.se);
	rwm_release_wqe(w->qp);
	return EE_CXT_WB;
}

static inline enum ee_state step_cxt_wb(struct ee_work *w)
{
	struct qp *qp = w->qp;

	if (w->a->payload_bytes)
		count_n(w->c, COUNTER_executed_bytes, w->a->payload_bytes);
	qp->ee.expected_psn = psn_add(qp->ee.expected_psn, w->psns);
	qp->ee.received_bytes = w->total;
	qp->ee.nak_sent = 0;
	if (w->op->flags & WIRE_END) {
		qp->ee.message = EE_MESSAGE_NONE;
		qp->ee.msn = psn_add(qp->ee.msn, 1);
		count(w->c, COUNTER_executed);
	} else {
		qp->ee.message = message_of(w->op);
	}
	return likely(qp->service == SERVICE_RC) ? EE_GEN_RESP : EE_DROP;
}

/* Hands over a READ's or an atomic's answer. What was executed before is acknowledged in front of
 * it. */
static void answer_explicitly(struct ee_work *w)
{
	const struct wire_headers *h = &w->a->headers;
	struct qp *qp = w->qp;

	pay_ack(w->e, w->ee, qp);
	w->a->length = h->dma_len;
	w->a->va = h->va;
	w->a->rkey = h->rkey;
	response_set_duplicate(w->a, w->duplicate);
	if (!w->duplicate)
		qp->ee.reads_issued++;
	hand_over(w->ee, qp, w->m, w->respond, h->psn, ack_syndrome(w->e, qp));
}

static inline enum ee_state step_gen_resp(struct ee_work *w)
{
	switch (w->respond) {
	case RESPONSE_NONE:
		bury(w);
		break;
	case RESPONSE_ACK:
		owe_ack(w);
		break;
	case RESPONSE_READ:
	case RESPONSE_ATOMIC:
		answer_explicitly(w);
		break;
	}
	return EE_IDLE;
}

/* An error of this side's own making: it ends the QP whatever its service. */
static bool is_local(enum wire_outcome o)
{
	return o == OUTCOME_LOCAL_PROT || o == OUTCOME_LOCAL_QP_OP;
}

/* Completes the receive descriptor in use, moves the QP to ERR, raises the event. */
static void fail_qp(struct ee_work *w)
{
	struct qp *qp = w->qp;

	if (qp->rwm.open) {
		complete_error(w->e, w->c, qp, wire_outcomes[w->outcome].recv_cqe_syndrome);
		rwm_release_wqe(qp);
	}
	qp->ee.message = EE_MESSAGE_NONE;
	if (!qp_set_error(w->e, qp))
		return;
	if (w->bad_queue)
		eq_post(w->e->completion, w->c, qp->client, EQE_WQ_CATAS_ERROR, qp->qpn);
	else if (w->outcome == OUTCOME_REMOTE_ACCESS)
		eq_post(w->e->completion, w->c, qp->client, EQE_WQ_ACCESS_ERROR, qp->qpn);
	else if (!is_local(w->outcome))
		eq_post(w->e->completion, w->c, qp->client, EQE_WQ_INVAL_REQ_ERROR, qp->qpn);
}

/* RC: everything before is done; the NAK carries the expected PSN (C9-87, C9-111). */
static void refuse_rc(struct ee_work *w)
{
	const struct wire_outcome_info *info = &wire_outcomes[w->outcome];
	uint8_t syndrome = info->aeth_syndrome;

	if (w->outcome == OUTCOME_RNR) {
		/* The rest of the message in flight is not to draw a NAK that would overtake the
		 * wait. */
		w->qp->ee.nak_sent = 1;
		syndrome = aeth_rnr(w->qp->min_rnr_timer);
	}
	pay_ack(w->e, w->ee, w->qp);
	hand_over(w->ee, w->qp, w->m, RESPONSE_ACK, w->qp->ee.expected_psn, syndrome);
	if (info->responder_qp == WIRE_QP_ERROR)
		fail_qp(w);
}

static void count_quiet_drop(struct ee_work *w)
{
	if (w->outcome == OUTCOME_RNR)
		count(w->c, COUNTER_drop_no_receive);
	else if (w->qp->service == SERVICE_UD)
		count(w->c, COUNTER_drop_ud_length);
	else
		count(w->c, COUNTER_drop_uc_request);
}

static enum ee_state step_async_error(struct ee_work *w)
{
	if (w->qp->service == SERVICE_RC) {
		refuse_rc(w);
		return EE_IDLE;
	}
	if (is_local(w->outcome)) {
		fail_qp(w);
	} else {
		abandon_message(w);
		count_quiet_drop(w);
	}
	bury(w);
	return EE_IDLE;
}

static enum ee_state step_drop(struct ee_work *w)
{
	bury(w);
	return EE_IDLE;
}

static inline enum ee_state step(struct ee_work *w, enum ee_state state)
{
	switch (state) {
	case EE_FETCH_CXT:
		return step_fetch_cxt(w);
	case EE_CHECK_PSN:
		return step_check_psn(w);
	case EE_CHECK_REQUEST:
		return step_check_request(w);
	case EE_DUPLICATE:
		return step_duplicate(w);
	case EE_ENTRY_FETCH:
		return step_entry_fetch(w);
	case EE_SEND_SCATTER:
		return step_send_scatter(w);
	case EE_VTP_CMD:
		return step_vtp_cmd(w);
	case EE_WRITE_DATA:
		return step_write_data(w);
	case EE_STORE_ADDR:
		return step_store_addr(w);
	case EE_ATOMIC:
		return step_atomic(w);
	case EE_WQE_RELEASE:
		return step_wqe_release(w);
	case EE_CXT_WB:
		return step_cxt_wb(w);
	case EE_GEN_RESP:
		return step_gen_resp(w);
	case EE_ASYNC_ERROR:
		return step_async_error(w);
	case EE_DROP:
		return step_drop(w);
	case EE_IDLE:
	case EE_STATES:
		break;
	}
	return EE_IDLE;
}

static inline void execute(
	struct engine *e, struct execution_engine *ee, struct counters *c, struct rte_mbuf *m)
{
	struct ee_work w = {.e = e, .ee = ee, .c = c, .m = m, .a = arrival_of(m)};
	enum ee_state state = EE_FETCH_CXT;

	w.op = &wire_opcodes[w.a->headers.opcode];
	do {
		enum ee_state next = step(&w, state);

		ASSERT(transitions[state] >> next & 1);
		(void)transitions;
		state = next;
	} while (state != EE_IDLE);
}

/* First pass over a burst: the lines that the second will want. An unknown QPN or key only warms a
 * wrong line. */
static inline void prefetch_burst(struct engine *e, struct rte_mbuf **burst, unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		const struct arrival *a = arrival_of(burst[i]);
		const struct wire_opcode *op = &wire_opcodes[a->headers.opcode];
		struct qp *qp = qp_at(e->qps, a->qpn & e->qps->mask);

		rte_prefetch0(qp);
		rte_prefetch0((uint8_t *)qp + RTE_CACHE_LINE_SIZE);
		rte_prefetch0(&qp->ee);
		if (op->flags & WIRE_CONSUMES_RECV)
			rte_prefetch0(&qp->rwm);
		else
			v2p_prefetch(e->v2p, a->headers.rkey);
	}
}

unsigned ee_poll(struct engine *e)
{
	struct execution_engine *ee = e->module[MODULE_EE];
	struct counters *c = stage_counters(e, STAGE_RESPONDER_EXEC);
	unsigned room = RTE_MIN(channel_room(&e->channel[CHANNEL_EE_RESPG]), (unsigned)BURST);
	struct rte_mbuf *burst[BURST];
	unsigned n = channel_take(&e->channel[CHANNEL_HP_EE], burst, room);

	if (n == 0)
		return 0;
	ee->outs = ee->deads = ee->owes = 0;
	prefetch_burst(e, burst, n);
	for (unsigned i = 0; i < n; i++)
		execute(e, ee, c, burst[i]);
	for (unsigned i = 0; i < ee->owes; i++)
		if (ee->owed[i].m)
			pay_ack(e, ee, ee->owed[i].qp);
	if (ee->outs)
		channel_put(&e->channel[CHANNEL_EE_RESPG], ee->out, ee->outs);
	if (ee->deads)
		rte_pktmbuf_free_bulk(ee->dead, ee->deads);
	return n;
}

/* Gives back posted receive descriptors, the open one first. Returns how many, at most `budget`. */
static unsigned flush(struct engine *e, struct counters *c, struct qp *qp, unsigned budget)
{
	uint32_t claimed = rwm_claimed(qp);
	unsigned n;

	qp->ee.message = EE_MESSAGE_NONE;
	if (claimed > qp->rq_entries) {
		count(c, COUNTER_bad_recv_wqe);
		qp->rwm.open = 0;
		qp->rwm.consumed += claimed;
		qp->rwm.fetched = qp->rwm.consumed;
		return 0;
	}
	for (n = 0; n < claimed && n < budget; n++) {
		complete_error(e, c, qp, SYNDROME_WR_FLUSH);
		rwm_skip_wqe(qp);
	}
	qp->ee.flushed = n == claimed;
	if (!qp->ee.flushed)
		wake_post(&e->wake[WAKE_EE], &qp->wake[WAKE_EE], qp->index);
	return n;
}

unsigned ee_wakes(struct engine *e)
{
	struct counters *c = stage_counters(e, STAGE_RESPONDER_EXEC);
	uint32_t index = wake_take(&e->wake[WAKE_EE]);
	unsigned written = 0;

	while (unlikely(index != WAKE_END)) {
		struct qp *qp = qp_at(e->qps, index);

		index = wake_next(&qp->wake[WAKE_EE]);
		if (qp->qpn != 0 && qp_state(qp) == QP_ERR)
			written += flush(e, c, qp, EE_FLUSH_BUDGET - written);
	}
	return written;
}

int ee_create(struct engine *e)
{
	e->module[MODULE_EE] =
		rte_zmalloc("ee", sizeof(struct execution_engine), RTE_CACHE_LINE_SIZE);
	return e->module[MODULE_EE] ? 0 : -ENOMEM;
}

void ee_destroy(struct engine *e)
{
	rte_free(e->module[MODULE_EE]);
	e->module[MODULE_EE] = NULL;
}
