/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef RESPONDER_EE_WORK_H
#define RESPONDER_EE_WORK_H
/*
 * What the files of ExecutionEngine share: its states, the work of one packet as it passes them,
 * and the interface to RespPktGen. The table of transitions is execution_engine.def. Stage
 * responder_exec.
 */
#include "context/early.h"
#include "context/qp_list.h"
#include "execution_engine.h"
#include "host-abi/cqe.h"
#include "pipeline/message.h"
#include "request_check.h"
#include "rq_wqe_manager.h"
#include "virt-to-phys/v2p.h"
#include "wire/aeth.h"
#include "write_addr_table.h"

enum { EE_GRH_BYTES = 40 }; /* in front of a UD message */

/* Calls of RQWQEManager: for a SEND into one entry, open, fetch, release of entry and WQE; for a
 * middle packet, open, fetch, update. */
enum { EE_RWM_CALLS_PLAIN = 4, EE_RWM_CALLS_MIDDLE = 3 };

enum ee_state {
#define STATE(id, text) EE_##id,
#include "execution_engine.def"
	EE_STATES,
};

/* What is executed after a packet. */
enum ee_then {
	EE_NEXT,  /* the one behind it */
	EE_AGAIN, /* itself, at the next poll: VirtToPhys has a request pending, or the payload was
		     copied too late; nothing has happened yet */
	EE_EARLY, /* those behind it that had come early */
};

/* An ACK deferred to the end of the burst, and the mbuf that will carry it to RespPktGen. */
struct deferred_ack {
	struct qp *qp;
	struct rte_mbuf *m;
};

/* The module's state. out, done, deferred and sack last for one burst, the rest persists. */
struct execution_engine {
	struct rte_mbuf *out[BURST];	     /* to EE_RESPG, in order */
	struct rte_mbuf *done[BURST];	     /* to free */
	struct deferred_ack deferred[BURST]; /* qp->ee.ack_pending is the index, plus one */
	struct qp *sack[BURST];		     /* QPs that are to send one: ee_gap.sack */
	unsigned out_count, done_count, deferred_count, sack_count;
	struct qp *
		last; /* QP of the last packet of the burst, if that ended its message; else NULL */
	/* Packets for the next poll, in order: one to retry, which may have been split off a train;
	 * early ones that found no room; the rest of the burst. */
	struct rte_mbuf *held[2 * BURST + 1];
	unsigned held_count;
	struct early *early;
	struct qp_list late;		/* ee_gap.c */
	struct qp *filled;		/* with EE_EARLY: whose gap has been filled */
	struct qp_list starved, seldom; /* ee_credits.c */
	uint64_t look_ns;		/* when to check it next */
	uint64_t hope_ns;		/* when one last was likely to find something */
	uint64_t seldom_ns;		/* when to check `seldom` next */
};

/* One packet on its way through the states. */
struct ee_work {
	struct engine *e;
	struct execution_engine *ee;
	struct counters *c;
	struct rte_mbuf *m; /* ours until it is in one of the lists */
	struct arrival *a;
	const uint8_t *payload; /* in the frame, or in the memory of the peer's client */
	const struct wire_opcode *op;
	struct qp *qp;
	enum wire_outcome outcome;
	enum response_kind respond; /* RC: what GEN_RESP passes to RespPktGen */
	bool duplicate;		    /* or a FLUSH: the answer holds no resource */
	uint8_t then;		    /* enum ee_then */
	bool bad_queue;		    /* the client's count of receive descriptors is impossible */
	uint32_t total; /* of the message with this packet, bytes; UD: with the GRH space */
	uint32_t psns;	/* PSNs that the request takes */
	uint8_t *addr;	/* VTP_CMD: where the WRITE's payload goes */
	uint64_t run;	/* VTP_CMD: contiguous bytes there */
	struct write_addr write;
	uint8_t entry; /* SEND_SCATTER: where in the receive descriptor the packet begins ... */
	uint32_t entry_bytes; /* ... and in its entry */
};

static inline void free_packet(struct ee_work *w)
{
	w->ee->done[w->ee->done_count++] = w->m;
}

/* Counts n calls of another module. */
static inline void note_call(struct ee_work *w, enum call_id which, unsigned n)
{
	call_note(&w->e->stage[STAGE_RESPONDER_EXEC], which, n);
}

static inline enum ee_state fail(struct ee_work *w, enum wire_outcome outcome)
{
	w->outcome = outcome;
	return EE_ASYNC_ERROR;
}

/* The kind of response to a request that a plain ACK does not answer. */
static inline enum response_kind answer_of(const struct wire_opcode *op)
{
	return op->headers & WIRE_HAS_ATOMIC ? RESPONSE_ATOMIC : RESPONSE_READ;
}

/* The next state when VirtToPhys has not granted the access. */
static inline enum ee_state refused(struct ee_work *w, enum v2p_state s, enum wire_outcome outcome)
{
	if (s == V2P_PENDING) {
		w->then = EE_AGAIN;
		return EE_IDLE;
	}
	v2p_count_error(w->c, s);
	return fail(w, outcome);
}

/* May the peer read what its READ asks for? */
static inline enum v2p_state ee_check_read(struct engine *e, const struct qp *qp,
					   const struct wire_headers *h)
{
	return v2p_check(e->v2p_port[STAGE_RESPONDER_EXEC], V2P_EE_DATA,
			 &(struct v2p_access){.pd = qp->pd,
					      .qpn = qp_number(qp),
					      .key = h->rkey,
					      .va = h->va,
					      .length = h->dma_len,
					      .rights = ACCESS_REMOTE_READ});
}

/* An mbuf for an answer that no received packet can carry; its arrival is empty but for the QPN.
 * NULL: there is none. */
static inline struct rte_mbuf *answer_alloc(struct engine *e, const struct qp *qp)
{
	struct rte_mbuf *m = rte_pktmbuf_alloc(e->clones);

	if (likely(m))
		*arrival_of(m) = (struct arrival){.qpn = qp_number(qp)};
	return m;
}

/* Hands over an mbuf to carry an answer to RespPktGen; its arrival describes the rest. */
static inline void hand_over(struct execution_engine *ee, struct qp *qp, struct rte_mbuf *m,
			     uint8_t response, uint32_t psn, uint8_t syndrome)
{
	struct arrival *a = arrival_of(m);

	a->response = response;
	a->response_psn = psn;
	a->msn = qp->ee.msn;
	a->syndrome = syndrome;
	ee->out[ee->out_count++] = m;
}

/* Hands over the pending ACK, if any, with the PSN of the request executed last (C9-95). */
static inline void send_ack(struct engine *e, struct execution_engine *ee, struct qp *qp)
{
	struct deferred_ack *o;

	if (!qp->ee.ack_pending)
		return;
	o = &ee->deferred[qp->ee.ack_pending - 1];
	qp->ee.ack_pending = 0;
	hand_over(ee, qp, o->m, RESPONSE_ACK, psn_sub(qp->ee.expected_psn, 1),
		  ee_ack_syndrome(e, qp));
}

/* A PSN from EPSN - 2^23 to EPSN as a number that does not wrap, so that a PSN that has wrapped is
 * another number. It is at least 2^23, so never 0. */
static inline uint64_t ee_long_psn(const struct qp *qp, uint32_t psn)
{
	uint64_t expected = (1 + (uint64_t)qp->ee.psn_laps) << 24 | qp->ee.expected_psn;

	return expected - psn_sub(qp->ee.expected_psn, psn);
}

/* One ACK for each QP and burst: keeps the first mbuf that asks for it, frees later ones. */
static inline void ee_defer_ack(struct execution_engine *ee, struct qp *qp, struct rte_mbuf *m)
{
	if (qp->ee.ack_pending) {
		ee->done[ee->done_count++] = m;
		return;
	}
	ee->deferred[ee->deferred_count++] = (struct deferred_ack){.qp = qp, .m = m};
	qp->ee.ack_pending = (uint8_t)ee->deferred_count;
}

/* QUERY_QP reads it. */
static inline void ee_set_expected(struct qp *qp, uint32_t psn)
{
	__atomic_store_n(&qp->ee.expected_psn, psn, __ATOMIC_RELAXED);
}

/* The next `psns` PSNs have been executed. */
static inline void ee_expect_next(struct qp *qp, uint32_t psns)
{
	uint32_t next = psn_add(qp->ee.expected_psn, psns);

	qp->ee.psn_laps += next < qp->ee.expected_psn;
	ee_set_expected(qp, next);
}

/* FetchAdd or CmpSwap. Returns the value before. */
static inline uint64_t ee_atomic(const struct wire_headers *h, uint64_t *p)
{
	uint64_t expected = h->compare;

	if (h->opcode == WIRE_RC_FETCH_ADD)
		return __atomic_fetch_add(p, h->swap_add, __ATOMIC_SEQ_CST);
	__atomic_compare_exchange_n(p, &expected, h->swap_add, false, __ATOMIC_SEQ_CST,
				    __ATOMIC_SEQ_CST);
	return expected;
}

/* The result of an atomic, for duplicates: as many as may be out (o9-66). */
static inline void ee_keep_result(struct engine *e, struct qp *qp, uint64_t psn, uint64_t orig)
{
	*qp_result(e->qps, qp, qp->ee.atomic_next) =
		(struct atomic_result){.psn = psn, .orig = orig};
	if (++qp->ee.atomic_next > qp->ee.results_used)
		qp->ee.results_used = qp->ee.atomic_next;
	if (qp->ee.atomic_next >= qp->max_dest_rd_atomic)
		qp->ee.atomic_next = 0;
}

/* Where memory that the peer names is, if VirtToPhys knows at once and allows the access. False:
 * nothing has happened yet. */
static __rte_always_inline bool ee_map_remote(struct engine *e, const struct qp *qp, uint32_t rkey,
					      uint64_t va, uint32_t bytes, uint32_t rights,
					      uint8_t **at)
{
	return v2p_map_short(
		e->v2p_port[STAGE_RESPONDER_EXEC], V2P_EE_DATA,
		&(struct v2p_access){
			.pd = qp->pd, .key = rkey, .va = va, .length = bytes, .rights = rights},
		at);
}

/* The same of the first bytes of a receive descriptor's entry. */
static __rte_always_inline bool ee_map_entry(struct engine *e, const struct qp *qp,
					     const struct rwm_entry *entry, uint32_t bytes,
					     uint8_t **at)
{
	return v2p_map_short(e->v2p_port[STAGE_RESPONDER_EXEC], V2P_EE_DATA,
			     &(struct v2p_access){.pd = qp->rq_pd,
						  .key = entry->lkey,
						  .va = entry->va,
						  .length = bytes,
						  .rights = ACCESS_LOCAL_WRITE},
			     at);
}

/* UC: abandons the message in progress; the next one uses its receive descriptor. */
static inline void abandon_message(struct ee_work *w)
{
	w->qp->ee.message = EE_MESSAGE_NONE;
	rwm_rewind(w->qp);
}

/* Writes the completion of the receive descriptor in turn. */
void ee_complete(struct engine *e, struct counters *c, struct qp *qp, struct cqe *cqe,
		 bool solicited);

enum { EE_TIME_SHIFT = 10 };

/* Times in a queue pair's context: ns >> EE_TIME_SHIFT, about 1 us; they wrap. */
static inline uint32_t ee_time(const struct engine *e)
{
	return (uint32_t)(engine_now(e) >> EE_TIME_SHIFT);
}

enum { EE_LOOK_QPS = 4 }; /* of a list, looked at in each poll */

/* Is there room for what may be sent when a list is looked at? */
static inline bool ee_may_look(struct engine *e)
{
	return channel_room(&e->channel[CHANNEL_EE_RESPG]) >= EE_LOOK_QPS;
}

/* Looks at a QP that was taken from a list: sends one answer at most, or adds it again. */
typedef void (*ee_look_at)(struct engine *e, struct qp *qp);
/* If ee_may_look(), takes a few QPs from the list, which is not empty, and looks at them. Between
 * bursts. Returns how many answers were sent. */
unsigned ee_look(struct engine *e, struct qp_list *list, ee_look_at look_at);

/* The steps; each returns the next state. ee_memory.c: */
enum ee_state step_entry_fetch(struct ee_work *w);
enum ee_state step_send_scatter(struct ee_work *w);
enum ee_state step_vtp_cmd(struct ee_work *w);
enum ee_state step_write_data(struct ee_work *w);
enum ee_state step_store_addr(struct ee_work *w);
enum ee_state step_atomic(struct ee_work *w);
enum ee_state step_wqe_release(struct ee_work *w);
/* ee_gap.c: */
/* RC: packets are missing in front of this one (C9-79, C9-80). It is not executed before those
 * (C9-77), but may be kept. Returns the next state. */
enum ee_state ee_behind_gap(struct ee_work *w);
/* With qp->ee.gap: the expected packet has been executed. Sets w->then if the one behind it had
 * come early. */
void ee_fill_gap(struct ee_work *w);
/*
 * Takes the packets that were kept behind those executed, up to the next gap, or to a READ, which
 * takes several PSNs; at most `room`. Only the last of them asks for an acknowledgement, and
 * ee_fill_gap() ignores this if more follow it: a peer that got an acknowledgement for a part of
 * them would consider the rest missing, and repeat it. The caller owns them. Returns how many.
 */
unsigned ee_take_early(struct execution_engine *ee, struct qp *qp, struct rte_mbuf **run,
		       unsigned room);
/* Sends the selective acknowledgements of the burst. */
void ee_send_sacks(struct engine *e);
/* A packet has arrived for the second time. */
void ee_came_twice(struct qp *qp, uint32_t psn);
/* The NAK of the gap does not wait any more. */
void ee_wait_no_more(struct engine *e, struct qp *qp);
/* ee_error.c: */
enum ee_state step_duplicate(struct ee_work *w);
enum ee_state step_async_error(struct ee_work *w);

#endif
