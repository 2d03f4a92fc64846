/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * WQEParse (doc/modules.md#wqeparse): walks the units of a descriptor, fills the request's
 * metadata, checks operation, lengths and entries, and follows the chain: the next descriptor is
 * fetched at once and parsed in the same go as long as WQEScheduler allowed; the rest of a chain
 * goes back to it. Reads QP contexts; counts qp.ws.issued; marks the WQEIndicatorTable. Stage
 * doorbell_wqe.
 *
 * A bad descriptor is never an error here: it becomes a request with an outcome, which completes in
 * its turn behind RequesterTransControl, so that those before it complete first.
 *
 * The table of transitions is wqe_parse.def.
 */
#include <errno.h>
#include "pipeline/machine.h"
#include "descriptors.h"
#include "doorbell_processing.h"
#include "virt-to-phys/v2p.h"
#include "wqe_parse.h"
#include "wqe_scheduler.h"
#include "wire/psn.h"

enum wp_state {
#define STATE(id, text) WP_##id,
#include "wqe_parse.def"
};

#define MACHINE	      wp_machine
#define MACHINE_NAME  "WQEParse"
#define MACHINE_ID(s) WP_##s
#define MACHINE_DEF   "wqe_parse.def"
#include "pipeline/machine_define.h"

struct wp {
	struct rte_mbuf *held; /* a request that VirtToPhys has pending: retried before others */
	bool again;	       /* the request in hand is one */
	/* Buffers for chained descriptors: each is taken before the descriptor in front of it is
	 * parsed. Within one poll. */
	struct rte_mbuf *spare[BURST];
	unsigned spares;
};

/* One descriptor being parsed. */
struct parse {
	struct engine *e;
	const struct qp *q;
	struct request *r;
	const uint8_t *wqe;
	uint32_t at; /* next unit, bytes */
	bool again;  /* VirtToPhys has a request pending: parse again */
};

int wp_create(struct engine *e)
{
	e->wp = engine_alloc(e, "wp", sizeof(struct wp));
	return e->wp ? 0 : -ENOMEM;
}

void wp_destroy(struct engine *e)
{
	struct wp *w = e->wp;

	if (w && w->held)
		rte_mbuf_raw_free(w->held);
	rte_free(w);
	e->wp = NULL;
}

static const struct {
	uint8_t services; /* enum user_service */
	uint8_t traits;	  /* enum user_trait */
} operations[USER_OPCODES] = {
#define OPERATION(id, code, services, traits, packets, wr, wc, call)                               \
	[USER_##id] = {services, traits},
#include "host-abi/user_opcodes.def"
};

static enum wp_state wp_refuse(struct parse *p, enum wire_outcome outcome, enum counter why)
{
	p->r->outcome = outcome;
	p->r->length = 0;
	p->r->data_units = 0;
	p->r->flags &= ~REQUEST_INLINE;
	count(stage_counters(p->e, STAGE_DOORBELL_WQE), why);
	return WP_IDLE;
}

/* The next `bytes` bytes of the descriptor, or NULL if it ends before. */
static inline const void *unit(struct parse *p, uint32_t bytes)
{
	const void *u = p->wqe + p->at;

	if (unlikely(bytes > p->r->wqe_bytes - p->at))
		return NULL;
	p->at += bytes;
	return u;
}

static enum wp_state next_seg(struct parse *p)
{
	const struct wqe_next *next = unit(p, sizeof(*next));
	struct request *r = p->r;
	uint8_t traits = operations[r->opcode].traits;
	enum qp_state state = qp_state(p->q);

	r->imm = next->imm;
	r->traits = traits;
	if (next->flags & WQE_SIGNALED || p->q->sq_signal_all)
		r->flags |= REQUEST_SIGNALED;
	if (next->flags & WQE_SOLICITED)
		r->flags |= REQUEST_SOLICITED;
	if (unlikely(state == QP_ERR || state == QP_SQE)) {
		r->outcome = OUTCOME_FLUSH;
		return WP_IDLE;
	}
	if (unlikely(!(operations[r->opcode].services >> r->service & 1)))
		return wp_refuse(p, OUTCOME_LOCAL_QP_OP, COUNTER_bad_wqe_opcode);
	if (traits & USER_RADDR)
		return WP_ADDR_SEG;
	if (unlikely(traits & USER_LOCAL))
		return WP_LOCAL_SEG;
	if (r->service == SERVICE_UD)
		return WP_UD_SEG;
	return p->at == r->wqe_bytes ? WP_IDLE : WP_JUDGE; /* no data: length 0 */
}

static enum wp_state addr_seg(struct parse *p)
{
	const struct wqe_raddr *u = unit(p, sizeof(*u));

	if (unlikely(!u))
		return wp_refuse(p, OUTCOME_LOCAL_QP_OP, COUNTER_bad_wqe);
	p->r->raddr = u->addr;
	p->r->rkey = u->rkey;
	if (likely(!(p->r->traits & (USER_OPERANDS | USER_SCATTERS))))
		return WP_JUDGE;
	return p->r->traits & USER_OPERANDS ? WP_ATOMIC_SEG : WP_FWD_DATA_SEG;
}

static enum wp_state atomic_seg(struct parse *p)
{
	const struct wqe_atomic *u = unit(p, sizeof(*u));

	if (unlikely(!u))
		return wp_refuse(p, OUTCOME_LOCAL_QP_OP, COUNTER_bad_wqe);
	p->r->swap_add = u->swap_add;
	p->r->compare = u->compare;
	if (likely(p->r->traits & USER_SCATTERS))
		return WP_FWD_DATA_SEG;
	if (unlikely(p->at != p->r->wqe_bytes)) /* it has no data */
		return wp_refuse(p, OUTCOME_LOCAL_QP_OP, COUNTER_bad_wqe);
	return WP_IDLE;
}

/* Does the descriptor have the units that its local operation needs, with reserved fields zero? */
static bool local_units(struct parse *p)
{
	const struct wqe_register *reg;
	const struct wqe_bind *bind;

	switch (p->r->opcode) {
	case USER_BIND_MW:
		bind = unit(p, sizeof(*bind));
		return bind && !bind->reserved;
	case USER_REG_MR:
		reg = unit(p, sizeof(*reg));
		/* No descriptor is long enough for more than WQE_REGISTER_PAGES. */
		return reg && !reg->reserved && reg->pages &&
		       unit(p, reg->pages * (uint32_t)sizeof(reg->page[0]));
	}
	return true; /* LOCAL_INV: the key is in the next unit */
}

/* Its contents are checked when its turn comes, in RequesterTransControl. */
static enum wp_state local_seg(struct parse *p)
{
	uint32_t first = p->at;

	if (unlikely(!local_units(p) || p->r->wqe_bytes - p->at >= WQE_UNIT_BYTES))
		return wp_refuse(p, OUTCOME_LOCAL_QP_OP, COUNTER_bad_wqe_local);
	p->r->data_first = first;
	p->r->flags |= REQUEST_LOCAL;
	return WP_IDLE;
}

static enum wp_state ud_seg(struct parse *p)
{
	p->r->ud_offset = p->at;
	if (unlikely(!unit(p, sizeof(struct wqe_ud))))
		return wp_refuse(p, OUTCOME_LOCAL_QP_OP, COUNTER_bad_wqe);
	return WP_JUDGE;
}

static enum wp_state wp_judge(struct parse *p)
{
	uint32_t first;

	if (p->at == p->r->wqe_bytes)
		return WP_DATA_SEG_CMD;
	memcpy(&first, p->wqe + p->at,
	       sizeof(first)); /* descriptors are whole units: it is there */
	return first & WQE_INLINE ? WP_INLINE_SEG : WP_DATA_SEG_CMD;
}

/* The longest message has as many packets as may be outstanding, at the smallest path MTU. */
_Static_assert(MESSAGE_BYTES_MAX / 256 == PSN_WINDOW, "C9-61 and C9-72 are one");

/* Is that a length the request can have? Operations that move just eight bytes take the first eight
 * of a longer one. */
static inline bool length_fits(const struct parse *p, uint64_t *length)
{
	if (p->r->traits & USER_EIGHT_BYTES) {
		if (unlikely(*length < sizeof(uint64_t)))
			return false;
		*length = sizeof(uint64_t);
	}
	return *length <= (p->r->service == SERVICE_UD ? p->q->mtu_bytes : MESSAGE_BYTES_MAX);
}

static enum wp_state inline_seg(struct parse *p)
{
	const struct wqe_inline *u = unit(p, sizeof(*u));
	uint64_t length = u->length & ~WQE_INLINE;

	if (unlikely(length > p->r->wqe_bytes - p->at))
		return wp_refuse(p, OUTCOME_LOCAL_QP_OP, COUNTER_bad_wqe);
	if (unlikely(!length_fits(p, &length)))
		return wp_refuse(p, OUTCOME_LOCAL_LENGTH, COUNTER_bad_wqe_length);
	p->r->flags |= REQUEST_INLINE;
	p->r->data_first = p->at;
	p->r->length = length;
	return WP_IDLE;
}

/* Checks local access to every entry where it must be known before the first packet leaves: entries
 * that a response is written to, and messages of several packets. A single packet is checked when
 * it is copied; so is a key that a fast registration further ahead in the queue may still make
 * valid. */
static enum v2p_state entries_allowed(struct parse *p, const struct wqe_data *d, uint32_t units)
{
	uint32_t access = p->r->traits & USER_SCATTERS ? ACCESS_LOCAL_WRITE : V2P_LOCAL_READ;
	enum v2p_state s;

	for (uint32_t i = 0; i < units; i++) {
		s = v2p_check(p->e->v2p_port[STAGE_DOORBELL_WQE], V2P_WP_DATA,
			      &(struct v2p_access){.pd = p->q->pd,
						   .key = d[i].lkey,
						   .va = d[i].addr,
						   .length = d[i].length,
						   .rights = access});
		if (unlikely(s != V2P_SUCCESS) && s != V2P_PENDING) {
			enum v2p_state may = v2p_may_become(p->e->v2p, d[i].lkey);

			s = may == V2P_KEY_ERR ? s : may;
		}
		if (unlikely(s != V2P_SUCCESS)) {
			v2p_count_error(stage_counters(p->e, STAGE_DOORBELL_WQE), s);
			return s;
		}
	}
	return V2P_SUCCESS;
}

/* Gather entries (DATA_SEG_CMD) and scatter entries (FWD_DATA_SEG). */
static enum wp_state data_seg(struct parse *p)
{
	uint32_t units = (p->r->wqe_bytes - p->at) / sizeof(struct wqe_data);
	const struct wqe_data *d = (const struct wqe_data *)(p->wqe + p->at);
	enum v2p_state s = V2P_SUCCESS;
	uint64_t length = 0;

	if (unlikely(units > SGE_MAX))
		return wp_refuse(p, OUTCOME_LOCAL_QP_OP, COUNTER_bad_wqe);
	for (uint32_t i = 0; i < units; i++) {
		if (unlikely(d[i].length & WQE_INLINE))
			return wp_refuse(p, OUTCOME_LOCAL_QP_OP, COUNTER_bad_wqe);
		length += d[i].length;
	}
	if (unlikely(!length_fits(p, &length)))
		return wp_refuse(p, OUTCOME_LOCAL_LENGTH, COUNTER_bad_wqe_length);
	if (length > p->q->mtu_bytes || p->r->traits & USER_SCATTERS)
		s = entries_allowed(p, d, units);
	if (unlikely(s == V2P_PENDING)) {
		p->again = true;
		return WP_IDLE;
	}
	if (unlikely(s != V2P_SUCCESS))
		return wp_refuse(p, OUTCOME_LOCAL_PROT, COUNTER_bad_wqe_access);
	p->r->data_first = p->at;
	p->r->data_units = units;
	p->r->length = length;
	return WP_IDLE;
}

static inline enum wp_state wp_step(struct parse *p, enum wp_state state)
{
	switch (state) {
	case WP_NEXT_SEG:
		return next_seg(p);
	case WP_ADDR_SEG:
		return addr_seg(p);
	case WP_ATOMIC_SEG:
		return atomic_seg(p);
	case WP_LOCAL_SEG:
		return local_seg(p);
	case WP_UD_SEG:
		return ud_seg(p);
	case WP_JUDGE:
		return wp_judge(p);
	case WP_INLINE_SEG:
		return inline_seg(p);
	case WP_DATA_SEG_CMD:
	case WP_FWD_DATA_SEG:
		return data_seg(p);
	case WP_IDLE:
		break;
	}
	return WP_IDLE;
}

/* Every descriptor begins with its next unit. */
static inline void wp_parse(struct parse *p)
{
	enum wp_state state = WP_NEXT_SEG;

	MACHINE_STEP(wp_machine, WP_IDLE, state);
	do {
		enum wp_state next = wp_step(p, state);

		MACHINE_STEP(wp_machine, state, next);
		state = next;
	} while (state != WP_IDLE);
}

/* False: it is to be parsed again at the next poll. */
static bool parse_descriptor(struct engine *e, const struct qp *q, struct rte_mbuf *m)
{
	struct parse p = {.e = e, .q = q, .r = request_of(m), .wqe = request_wqe(m)};

	p.r->service = q->service;
	p.r->outcome = OUTCOME_OK;
	p.r->length = 0;
	p.r->data_units = 0;
	p.r->data_first = 0;
	p.r->sent_bytes = 0;
	p.r->entry = 0;
	p.r->resolution = 0;
	p.r->entry_bytes = 0;
	wp_parse(&p);
	return !p.again;
}

/*
 * Fetches what the next unit of m names into `to`. False: the chain ends here, because the next
 * descriptor does not lie in the queue (counted; there is nothing to complete).
 */
static bool fetch_next(struct engine *e, const struct qp *q, struct rte_mbuf *m,
		       struct rte_mbuf *to)
{
	const struct wqe_next *next = (const struct wqe_next *)request_wqe(m);
	const struct request *r = request_of(m);
	struct request *n = request_of(to);
	uint32_t units = next->ee_nds & WQE_NEXT_NDS_MASK;

	if (unlikely(!wqe_fetch(q, next->nda_nop >> WQE_NEXT_NDA_SHIFT << 6, units, to))) {
		count(stage_counters(e, STAGE_DOORBELL_WQE), COUNTER_bad_wqe);
		return false;
	}
	/* As in wqe_prefetch_chain(); wraps if the chain goes back. */
	wqe_prefetch(q, n->wqe_offset + CHAIN_AHEAD * (n->wqe_offset - r->wqe_offset), units);
	n->qpn = r->qpn;
	n->opcode = next->nda_nop & WQE_NEXT_OP_MASK;
	n->flags = next->ee_nds & WQE_NEXT_F ? REQUEST_FENCE | REQUEST_CHAINED : REQUEST_CHAINED;
	n->client = r->client;
	n->epoch = r->epoch;
	n->sq_epoch = r->sq_epoch;
	n->next = NULL;
	return true;
}

/* Takes at most `most` spares, at least 1. False: none is free. */
static bool spares_take(struct engine *e, struct wp *w, unsigned most)
{
	most = RTE_MIN(most, (unsigned)BURST);
	if (unlikely(rte_mempool_get_bulk(e->descriptors, (void **)w->spare, most) != 0)) {
		most = 1;
		if (rte_mempool_get_bulk(e->descriptors, (void **)w->spare, most) != 0) {
			count(stage_counters(e, STAGE_DOORBELL_WQE), COUNTER_wqe_descriptor_empty);
			return false;
		}
	}
	w->spares = most;
	return true;
}

static void spares_return(struct engine *e, struct wp *w)
{
	if (w->spares)
		rte_mempool_put_bulk(e->descriptors, (void **)w->spare, w->spares);
	w->spares = 0;
}

/* Parses m and what follows it, into out[], until the chain ends or `room` or the allowance is used
 * up; what is left of the chain goes to *rest. Returns how many requests were made. */
static unsigned parse_chain(struct engine *e, struct qp *q, struct rte_mbuf *m,
			    struct rte_mbuf **out, unsigned room, struct rte_mbuf **rest)
{
	struct wp *w = e->wp;
	unsigned allowed = RTE_MIN(room, request_of(m)->allowance);
	unsigned n = 0;

	/* The allowance was granted while there were enough; WQEScheduler judges the rest again. */
	if (dbp_user_gets_less(e, q->user))
		allowed = 1;
	*rest = m;
	while (n < allowed) {
		bool chains = request_chains(m);

		if (chains && !w->spares && !spares_take(e, w, allowed - n))
			return n;
		if (unlikely(!parse_descriptor(e, q, m))) {
			w->again = true;
			return n;
		}
		out[n++] = m;
		if (!chains || !fetch_next(e, q, m, w->spare[w->spares - 1])) {
			*rest = NULL;
			return n;
		}
		*rest = m = w->spare[--w->spares];
	}
	return n;
}

/* One request from WQEScheduler. Returns how many elements of out[] it filled. If VirtToPhys has it
 * pending it is held: those behind it may be of the same QP. */
static unsigned take_request(struct engine *e, struct rte_mbuf *m, struct rte_mbuf **out,
			     unsigned room)
{
	struct wp *w = e->wp;
	bool chain = request_chains(m);
	uint32_t client = request_of(m)->client;
	struct qp *q = request_qp(e, STAGE_DOORBELL_WQE, m);
	struct rte_mbuf *rest;
	unsigned n;

	if (unlikely(!q))
		return 0;
	n = parse_chain(e, q, m, out, room, &rest);
	if (unlikely(n == 0 && w->again)) {
		w->held = m;
		return 0;
	}
	if (chain) /* m itself was counted by DoorbellProcessing */
		descriptors_note(e, client, n + (rest != NULL) - 1);
	if (chain && n)
		q->ws.chain_ahead = (uint8_t)(n - 1);
	q->ws.issued += n - 1; /* m itself was counted by WQEScheduler */
	if (rest)
		channel_put_one(&e->channel[CHANNEL_WP_WS], rest);
	else if (chain)
		wit_clear(e, q);
	return n;
}

/* A held request first, alone; then those from WQEScheduler. */
static bool take_one(struct engine *e, struct rte_mbuf **m)
{
	struct wp *w = e->wp;

	w->again = false;
	if (likely(!w->held))
		return channel_take(&e->channel[CHANNEL_WS_WP], m, 1);
	*m = w->held;
	w->held = NULL;
	return true;
}

/* Prefetches for a request whose queue pair and descriptor are in a cache by now. Returns how many
 * descriptors its next poll will probably take: a chain is as long as the last one. */
static inline unsigned prefetch_request(const struct engine *e, struct rte_mbuf *m, bool same_qp)
{
	const struct qp *q = qp_find(e->qps, request_of(m)->qpn);

	if (unlikely(!q))
		return 1;
	if (!same_qp)
		qp_prefetch_requester(q);
	return 1 + wqe_prefetch_chain(q, m, q->ws.chain_ahead);
}

/*
 * Requests that wait here have often done so for long: neither they nor their queue pairs nor their
 * descriptors are in a cache any more. The next poll will take about n of them. What it reads first
 * is prefetched; what must be read to know that, a poll earlier; and the requests, one more.
 */
static void look_ahead(const struct engine *e, unsigned n)
{
	const struct channel *in = &e->channel[CHANNEL_WS_WP];
	uint32_t qpn, before = 0;
	unsigned descriptors = 0;
	struct rte_mbuf *m;

	for (unsigned i = 0; i < 3 * n && (m = channel_peek(in, i)); i++) {
		if (i >= 2 * n) {
			rte_prefetch0(m);
			rte_prefetch0(request_of(m));
			continue;
		}
		qpn = request_of(m)->qpn;
		if (i >= n) {
			rte_prefetch0(request_wqe(m));
			qp_prefetch_send_queue(e->qps, qpn);
		} else if (descriptors < BURST) { /* else a later poll's */
			descriptors += prefetch_request(e, m, qpn == before);
			before = qpn;
		}
	}
}

static __rte_noinline unsigned wp_work(struct engine *e)
{
	struct wp *w = e->wp;
	struct channel *out = &e->channel[CHANNEL_WP_DP];
	/* No more than RequesterTransControl sends in a poll: requests further ahead would hold
	 * descriptors that others need for whole chains. */
	unsigned room = RTE_MIN(channel_room(out), (unsigned)BURST);
	unsigned back = channel_room(&e->channel[CHANNEL_WP_WS]);
	struct rte_mbuf *m[BURST], *one;
	unsigned n = 0, taken = 0;

	/* One at a time: how many requests a chain makes is not known in advance. Each request
	 * taken makes at least one; without room for it, or for the rest of its chain, it stays
	 * where it is. */
	while (n < room && taken < back && take_one(e, &one)) {
		n += take_request(e, one, m + n, room - n);
		taken++;
		if (unlikely(w->held))
			break;
	}
	look_ahead(e, taken);
	spares_return(e, w);
	if (n) {
		count_n(stage_counters(e, STAGE_DOORBELL_WQE), COUNTER_wqes, n);
		channel_put(out, m, n);
	}
	return n + taken;
}

unsigned wp_poll(struct engine *e)
{
	v2p_poll(e->v2p_port[STAGE_DOORBELL_WQE]);
	if (!e->wp->held && channel_idle(&e->channel[CHANNEL_WS_WP]))
		return 0;
	return wp_work(e);
}
