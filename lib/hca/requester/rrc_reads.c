/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * RequesterRecvControl's states READ_* (doc/modules.md#requesterrecvcontrol): the responses to
 * READs and atomics are written through the scatter entries of their request, which completes with
 * the last one. Reads the frame, never writes into it. Stage requester_recv.
 */
#include "base/copy_payload.h"
#include "outstanding.h"
#include "requester_trans_control.h"
#include "request_opcodes.h"
#include "rrc_acks.h"
#include "rrc_early.h"
#include "rrc_reads.h"
#include "rrc_release.h"
#include "scatter_entry_manager.h"
#include "pipeline/train.h"
#include "virt-to-phys/payload_ref.h"
#include "wire/aeth.h"

/* The READ or atomic that a response of that PSN belongs to, or NULL. */
static struct rd_element *read_of_psn(struct engine *e, struct qp *q, uint32_t psn)
{
	uint32_t left = mq_count(&q->mq.rd);
	uint32_t i = __atomic_load_n(&q->mq.rd.head, __ATOMIC_ACQUIRE);

	for (; left; left--) {
		struct rd_element *rd = &e->mq->rd[i];

		if (psn_in(psn, rd->psn, rd->packets))
			return rd;
		i = __atomic_load_n(&rd->next, __ATOMIC_ACQUIRE);
	}
	return NULL;
}

/* Is it answered by READ responses, not by an atomic's result? */
static inline bool is_answered_by_data(const struct rd_element *rd)
{
	return request_opcodes[rd->opcode].answer == WIRE_KIND_READ_RESP;
}

/*
 * May the response to `rd` have this opcode at its PSN? FIRST, MIDDLE, LAST or ONLY by its place; a
 * READ requested again from some response on begins there with FIRST (ONLY), as a new request, or
 * with MIDDLE (LAST), as a continuation. Equals ask for holes, which begin and end anywhere.
 */
static bool is_possible(const struct qp *q, const struct rd_element *rd, bool head,
			const struct wire_headers *h)
{
	const struct wire_opcode *op = &wire_opcodes[h->opcode];
	uint32_t index = psn_sub(h->psn, rd->psn);
	bool again = head && index == q->rrc.read_asked;

	if (op->kind != request_opcodes[rd->opcode].answer)
		return false;
	if (rrc_is_equal(q))
		return true;
	if (!!(op->flags & WIRE_END) != (index + 1 == rd->packets))
		return false;
	return op->flags & WIRE_START ? index == 0 || again : index != 0;
}

/* Bytes that the response number `index` of a READ has to carry. */
static uint32_t response_bytes(const struct qp *q, const struct rd_element *rd, uint32_t index)
{
	uint32_t left = rd->length - index * q->mtu_bytes;

	return RTE_MIN(left, (uint32_t)q->mtu_bytes);
}

static enum rrc_state read_fail(struct rrc_work *w, enum wire_outcome outcome)
{
	w->outcome = outcome;
	return RRC_READ_FLUSH;
}

/* The payload is in the memory of the peer's client. If it is no longer there, the response is as
 * good as lost. */
static enum rrc_state data_elsewhere(struct rrc_work *w)
{
	enum v2p_state s = payload_ref_follow(w->a->payload, &w->data);

	w->data += w->a->payload_skip;
	if (likely(s == V2P_SUCCESS))
		return RRC_READ_FETCH_ENTRY;
	if (s != V2P_PENDING)
		return rrc_drop(w, COUNTER_drop_payload_gone);
	w->again = true;
	return RRC_IDLE;
}

/* The next response of the READ or atomic at the head: where its data lie. */
static enum rrc_state response_in_turn(struct rrc_work *w)
{
	const struct arrival *a = w->a;

	if (!is_answered_by_data(w->rd)) {
		w->data = (const uint8_t *)&a->headers.orig;
		w->bytes = sizeof(a->headers.orig);
		return RRC_READ_FETCH_ENTRY;
	}
	if (unlikely(a->payload_bytes != response_bytes(w->q, w->rd, w->q->rrc.read_packets))) {
		count(w->c, COUNTER_drop_resp_length);
		return read_fail(w, OUTCOME_BAD_RESP);
	}
	w->data = a->payload;
	w->bytes = a->payload_bytes;
	if (a->payload_elsewhere)
		return data_elsewhere(w);
	return likely(w->bytes) ? RRC_READ_FETCH_ENTRY : RRC_READ_RELEASE_ENTRY;
}

/*
 * An impossible response changes nothing (C9-133). Any other shows that everything before the READ
 * is done; then its place in the READ matters. It is not one that came before: those have advanced
 * UPSN.
 */
enum rrc_state rrc_step_read_implicit_release(struct rrc_work *w)
{
	const struct wire_headers *h = &w->a->headers;
	struct qp *q = w->q;
	struct rd_element *head = rd_head(w->e->mq, &q->mq.rd), *rd = read_of_psn(w->e, q, h->psn);

	if (unlikely(!rd || !is_possible(q, rd, rd == head, h)))
		return rrc_drop(w, COUNTER_drop_resp_opcode);
	if (wire_opcodes[h->opcode].headers & WIRE_HAS_AETH) {
		if (unlikely(aeth_kind(h->syndrome) != AETH_ACK)) /* C9-120, C9-135 */
			return rrc_drop(w, COUNTER_drop_ack_syndrome);
		rrc_take_credits(w);
	}
	if (mq_count(&q->mq.sw)) /* else that is done already */
		rrc_release(w->e, q, psn_sub(head->psn, 1));
	if (unlikely(h->psn != psn_add(head->psn, q->rrc.read_packets))) {
		rrc_keep_early(w);
		return RRC_READ_RETRANS;
	}
	w->rd = head;
	return response_in_turn(w);
}

enum rrc_state rrc_step_read_fetch_entry(struct rrc_work *w)
{
	if (unlikely(sem_fetch(w->e, w->q, &w->rd->entries, &w->entry) != SEM_VALID_ENTRY))
		return read_fail(w, OUTCOME_LOCAL_LENGTH);
	return RRC_READ_SCATTER;
}

/* Skips the bytes that were written when the response was tried before. */
enum rrc_state rrc_step_read_scatter(struct rrc_work *w)
{
	uint32_t done = w->q->rrc.scattered, piece = RTE_MIN(w->bytes - done, w->entry.length);
	enum v2p_state s;
	uint8_t *to;
	uint64_t run;

	s = v2p_request(w->e->v2p_port[STAGE_REQUESTER_RECV], V2P_RRC_DATA,
			&(struct v2p_access){.pd = w->q->pd,
					     .key = w->entry.lkey,
					     .va = w->entry.addr,
					     .length = piece,
					     .rights = ACCESS_LOCAL_WRITE},
			&to, &run);
	if (unlikely(s == V2P_PENDING)) {
		w->again = true;
		return RRC_IDLE;
	}
	if (unlikely(s != V2P_SUCCESS)) {
		v2p_count_error(w->c, s);
		return read_fail(w, OUTCOME_LOCAL_PROT);
	}
	w->piece = RTE_MIN(piece, (uint32_t)run);
	copy_bytes(to, w->data + done, w->piece);
	return RRC_READ_UPDATE_ENTRY;
}

/* A whole response to a READ has been written. */
static enum rrc_state response_done(struct rrc_work *w)
{
	uint32_t packets = w->q->rrc.read_packets + 1;

	count_n(w->c, COUNTER_read_bytes, w->bytes);
	w->q->rrc.gap_psn = 0;
	__atomic_store_n(&w->q->rrc.read_packets, packets, __ATOMIC_RELAXED); /* before UPSN */
	if (packets == w->rd->packets)
		return RRC_READ_RELEASE_ENTRY;
	rrc_advance(w->e, w->q, psn_add(w->a->headers.psn, 1));
	return RRC_IDLE;
}

enum rrc_state rrc_step_read_update_entry(struct rrc_work *w)
{
	struct qp *q = w->q;

	sem_update(w->e, q, w->piece);
	q->rrc.scattered += w->piece;
	if (q->rrc.scattered < w->bytes)
		return RRC_READ_FETCH_ENTRY;
	q->rrc.scattered = 0;
	return is_answered_by_data(w->rd) ? response_done(w) : RRC_READ_RELEASE_ENTRY;
}

enum rrc_state rrc_step_read_release_entry(struct rrc_work *w)
{
	rrc_release_read(w->e, w->q, w->rd);
	return RRC_IDLE;
}

enum rrc_state rrc_step_read_flush(struct rrc_work *w)
{
	return rrc_fail(w, w->outcome);
}

/* ---- runs ---- */

/* Is there nothing about the queue pair that a response might change, or be changed by? */
static inline bool run_begins(const struct qp *q)
{
	return qp_state(q) == QP_RTS && q->service == SERVICE_RC &&
	       !(q->rrc.scattered | q->rrc.early_waits | q->repeat.ack_behind);
}

/* The READ or atomic that the response answers, with one scatter entry at the head; NULL: the
 * response does not continue a run. It was sent, so its PSN is before `next`. */
static inline struct rd_element *answered_whole(struct multi_queue *mq, const struct qp *q,
						const struct arrival *a, uint8_t opcode,
						uint32_t next)
{
	const struct wire_headers *h = &a->headers;
	struct rd_element *rd = rd_head(mq, &q->mq.rd);
	uint32_t bytes = opcode == WIRE_RC_READ_RESP_ONLY && rd ? rd->length : 0;

	if (unlikely(!rd || mq_count(&q->mq.sw)) || a->qpn != qp_number(q) || h->opcode != opcode ||
	    h->psn != rd->psn || !psn_before(h->psn, next) || rd->packets != 1 ||
	    rd->entries != 1 || wire_opcodes[opcode].kind != request_opcodes[rd->opcode].answer ||
	    a->payload_bytes != bytes || aeth_kind(h->syndrome) != AETH_ACK ||
	    a->payload_elsewhere | a->congested | a->icrc_bytes)
		return NULL;
	return rd;
}

/* Writes the data of a whole answer into the scatter entry at the head. False: not in one piece, or
 * not at once. */
static inline bool write_whole(struct rrc_work *w, const void *data, uint32_t bytes)
{
	const struct re_element *re = re_head(w->e->mq, &w->q->mq.re);
	uint8_t *to;

	if (unlikely(!bytes || re->length < bytes ||
		     !v2p_map_short(w->e->v2p_port[STAGE_REQUESTER_RECV], V2P_RRC_DATA,
				    &(struct v2p_access){.pd = w->q->pd,
							 .key = re->lkey,
							 .va = re->addr,
							 .length = bytes,
							 .rights = ACCESS_LOCAL_WRITE},
				    &to)))
		return false;
	copy_bytes(to, data, bytes);
	return true;
}

/* Takes the answer at w->a, if it continues the run. */
static inline bool take_whole(struct rrc_work *w, uint8_t opcode, uint32_t next,
			      struct send_completions *completions)
{
	const struct arrival *a = w->a;
	struct rd_element *rd = answered_whole(w->e->mq, w->q, a, opcode, next);

	if (!rd || !(opcode == WIRE_RC_ATOMIC_ACK
			     ? write_whole(w, &a->headers.orig, sizeof(a->headers.orig))
			     : write_whole(w, a->payload, a->payload_bytes)))
		return false;
	rrc_complete_read(w->e, w->q, rd, completions);
	return true;
}

/* Accounts for `taken` answers, of `bytes` in all, the last of them at `psn`. */
static void end_run(struct rrc_work *w, unsigned taken, uint32_t bytes, uint32_t psn,
		    struct send_completions *completions)
{
	completions_post(w->e, w->q, completions);
	sem_note(w->e, 3 * taken); /* FETCH_ENTRY, UPDATE_ENTRY, RELEASE_ENTRY */
	count_n(w->c, COUNTER_read_bytes, bytes);
	rrc_release_reads(w->e, w->q, taken, taken, psn_add(psn, 1));
	rrc_bad_requests(w->e, w->q);
	wake_sender(w->e, w->q);
}

unsigned rrc_take_run(struct engine *e, struct counters *c, struct rte_mbuf *const *m, unsigned n)
{
	struct rrc_work w = {.e = e, .c = c, .a = arrival_of(m[0])};
	uint8_t opcode = w.a->headers.opcode;
	struct send_completions completions;
	uint32_t next, bytes = 0;
	unsigned taken;

	w.q = qp_find(e->qps, w.a->qpn);
	if (unlikely(!w.q || !run_begins(w.q)))
		return 0;
	completions_begin(&completions, w.q);
	next = qp_next_psn(w.q);
	for (taken = 0; taken < n; taken++) {
		w.a = arrival_of(m[taken]);
		if (w.a->packets > 1 || !take_whole(&w, opcode, next, &completions))
			break;
		bytes += w.a->payload_bytes;
	}
	if (!taken)
		return 0;
	w.a = arrival_of(m[taken - 1]);
	rrc_take_credits(&w);
	end_run(&w, taken, bytes, w.a->headers.psn, &completions);
	return taken;
}

/* Takes a train of answers, as long as they continue the run. False: m keeps the rest. */
static bool take_parts(struct engine *e, struct counters *c, struct rte_mbuf *m)
{
	struct arrival *a = arrival_of(m);
	struct rrc_work w = {.e = e, .c = c, .a = a, .q = qp_find(e->qps, a->qpn)};
	uint32_t next, packets = a->packets, taken = 0, psn = a->headers.psn;
	struct send_completions completions;

	if (unlikely(!w.q || !run_begins(w.q)))
		return false;
	completions_begin(&completions, w.q);
	next = qp_next_psn(w.q);
	while (taken < packets && take_whole(&w, a->headers.opcode, next, &completions))
		if (++taken < packets)
			train_advance(a, 1);
	if (taken == packets)
		rrc_take_credits(&w);
	if (taken)
		end_run(&w, taken, taken * a->payload_bytes, psn_add(psn, taken - 1), &completions);
	return taken == packets;
}

/* ---- middle responses, alone or in trains ---- */

/* The READ at the head, if these are its next responses and regular middle ones; else NULL. Its
 * request was sent, so these are outstanding. */
static inline struct rd_element *train_due(struct engine *e, const struct qp *q,
					   const struct arrival *a)
{
	struct rd_element *rd = rd_head(e->mq, &q->mq.rd);
	uint32_t done = q->rrc.read_packets;

	if (!rd || mq_count(&q->mq.sw) || a->headers.opcode != WIRE_RC_READ_RESP_MIDDLE ||
	    a->payload_bytes != q->mtu_bytes || a->congested || !is_answered_by_data(rd) ||
	    a->headers.psn != psn_add(rd->psn, done) || !done || rd->packets - done <= a->packets)
		return NULL;
	return rd;
}

/* Copies the payload of a frame that holds it, and checks the ICRC on the way if that is still to be
 * done. */
static inline bool copy_held(struct rte_mbuf *m, uint8_t *to)
{
	const struct arrival *a = arrival_of(m);
	const uint8_t *l3 = rte_pktmbuf_mtod_offset(m, const uint8_t *, a->l3_offset);
	uint32_t headers = (uint32_t)(a->payload - l3), state;

	if (!a->icrc_bytes) {
		copy_bytes(to, a->payload, a->payload_bytes);
		return true;
	}
	state = wire_icrc_headers(l3, headers, a->is_ipv6);
	state = wire_crc_copy(state, to, a->payload, a->payload_bytes);
	state = wire_crc(state, a->payload + a->payload_bytes,
			 a->icrc_bytes - headers - a->payload_bytes);
	return ~state == wire_icrc_load(l3 + a->icrc_bytes);
}

/*
 * Copies what a train refers to, and checks the ICRCs. The owner of the memory may have changed it
 * since the responder read it: then the headers must be right all the same, and the READ gets what
 * is there now. Returns how many packets are valid before the first one that is not.
 */
static uint32_t copy_checked(struct counters *c, const struct rte_mbuf *m, uint8_t *to,
			     const uint8_t *from, bool nt)
{
	uint32_t changed = 0, done = train_copy_checked(m, to, from, nt, &changed);

	if (unlikely(changed))
		count_n(c, COUNTER_payload_changed, changed);
	return done;
}

/* Copies the payload. Returns of how many packets: fewer, if it is gone or an ICRC is wrong. Then
 * more of the READ's buffer may have been overwritten, which harms nothing: the READ is not
 * complete, and a packet does not choose the address. */
static inline uint32_t copy_middle(struct counters *c, struct rte_mbuf *m, uint8_t *to, bool nt)
{
	const struct arrival *a = arrival_of(m);
	const uint8_t *from;

	if (!a->payload_elsewhere)
		return copy_held(m, to);
	if (unlikely(payload_ref_follow(a->payload, &from) != V2P_SUCCESS))
		return 0;
	from += a->payload_skip;
	if (a->icrc_bytes)
		return copy_checked(c, m, to, from, nt);
	copy_payload(to, from, train_bytes(a), nt);
	return a->packets;
}

bool rrc_take_middle(struct engine *e, struct counters *c, struct rte_mbuf *m)
{
	struct arrival *a = arrival_of(m);
	struct qp *q = qp_find(e->qps, a->qpn);
	uint32_t bytes = train_bytes(a), taken;
	struct re_element entry;
	struct rd_element *rd;
	uint64_t ahead;
	uint8_t *to;

	if (unlikely(!q || !run_begins(q)))
		return false;
	rd = train_due(e, q, a);
	if (unlikely(!rd || sem_fetch(e, q, &rd->entries, &entry) != SEM_VALID_ENTRY ||
		     entry.length < bytes ||
		     !v2p_map_short(e->v2p_port[STAGE_REQUESTER_RECV], V2P_RRC_DATA,
				    &(struct v2p_access){.pd = q->pd,
							 .key = entry.lkey,
							 .va = entry.addr,
							 .length = bytes,
							 .rights = ACCESS_LOCAL_WRITE},
				    &to)))
		return false;
	ahead = walk_on(&q->rrc_walk, entry.addr, bytes);
	taken = copy_middle(c, m, to, bypasses_caches(e, rd->length, ahead));
	if (unlikely(!taken))
		return false;
	bytes = taken * a->payload_bytes;
	sem_update(e, q, bytes);
	sem_note(e, 2 * (taken - 1)); /* FETCH_ENTRY, UPDATE_ENTRY */
	count_n(c, COUNTER_read_bytes, bytes);
	q->rrc.gap_psn = 0;
	__atomic_store_n(&q->rrc.read_packets, q->rrc.read_packets + taken,
			 __ATOMIC_RELAXED); /* before UPSN */
	rrc_advance(e, q, psn_add(a->headers.psn, taken));
	wake_sender(e, q);
	if (likely(taken == a->packets))
		return true;
	train_advance(a, taken);
	return false;
}

bool rrc_take_train(struct engine *e, struct counters *c, struct rte_mbuf *m)
{
	return arrival_of(m)->payload_elsewhere ? rrc_take_middle(e, c, m) : take_parts(e, c, m);
}
