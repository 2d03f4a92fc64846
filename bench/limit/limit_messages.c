/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Model of small messages, on one lcore: a requester posts RDMA writes of 64 bytes through a ring
 * to a responder, which acknowledges each through another; the requester retires the WQE and writes
 * a CQE. The memory is what a real path touches: a WQE and a CQE of one line each, a context of one
 * line and a template per QP, one line per memory region.
 */
#include <stdlib.h>
#include <rte_mbuf.h>
#include <rte_memcpy.h>
#include <rte_prefetch.h>
#include <rte_ring.h>
#include "wire/crc.h"
#include "limit_frame.h"
#include "limit_measure.h"

enum {
	PAYLOAD_BYTES = 64,
	BURST = 32,
	WINDOW = 256, /* messages that may be unacknowledged */
	RING_ELEMENTS = 1024,
	POOL_MBUFS = 4095,
	POOL_CACHE = 256,
	DATA_ROOM = RTE_PKTMBUF_HEADROOM + 256,
	WQES = 1024,
	CQES = 4096,
	REGIONS = 64,
	QPS = 64, /* slots of the table; one is used */
	BUFFER_BYTES = 1 << 20,
	KEY = 5,
	QPN = 7,
	AHEAD = 4, /* packets prefetched ahead */
	REQUEST_L3_BYTES = LIMIT_REQUEST_BYTES - LIMIT_L3_OFFSET + PAYLOAD_BYTES,
	ACK_L3_BYTES = LIMIT_ACK_BYTES - LIMIT_L3_OFFSET,
};

#define ACK_REQUESTED 0x80000000u

struct wqe {
	uint64_t id;
	uint32_t opcode;
	uint32_t bytes;
	uint64_t local_va;
	uint64_t remote_va;
	uint32_t rkey;
	uint32_t lkey;
} __attribute__((aligned(64)));

struct cqe {
	uint64_t id;
	uint32_t qpn;
	uint32_t status;
	uint32_t opcode;
	uint32_t bytes;
	uint32_t owner; /* written last */
} __attribute__((aligned(64)));

struct region {
	uint64_t base;
	uint64_t bytes;
	uint32_t key;
} __attribute__((aligned(64)));

struct qp {
	uint32_t head; /* next WQE to send */
	uint32_t tail; /* oldest WQE not acknowledged */
	uint32_t psn;  /* requester: next to send; responder: next expected */
	uint32_t psn_acked;
	uint32_t msn;
	uint32_t peer;
	uint64_t bytes;
	union limit_template template;
} __attribute__((aligned(64)));

struct messages {
	struct rte_mempool *pool;
	struct rte_ring *forth;
	struct rte_ring *back;
	struct wqe *wqes;
	struct cqe *cqes;
	uint8_t *source;
	uint8_t *destination;
	uint64_t sent;
	uint64_t acked;
	uint64_t wrong; /* packets that failed any check */
	uint32_t cqe_index;
	bool icrc_by_burst;
	struct limit_clock clock; /* of the steps below */
	struct region local[REGIONS];
	struct region remote[REGIONS];
	struct qp requester[QPS];
	struct qp responder[QPS];
};

static bool outside(const struct region *r, uint32_t key, uint64_t va, uint32_t bytes)
{
	return r->key != key || va < r->base || va - r->base > r->bytes - bytes;
}

static void messages_close(struct messages *m)
{
	struct rte_mbuf *mbuf;

	while (m->forth && rte_ring_sc_dequeue(m->forth, (void **)&mbuf) == 0)
		rte_pktmbuf_free(mbuf);
	while (m->back && rte_ring_sc_dequeue(m->back, (void **)&mbuf) == 0)
		rte_pktmbuf_free(mbuf);
	rte_ring_free(m->forth);
	rte_ring_free(m->back);
	rte_mempool_free(m->pool);
	free(m->wqes);
	free(m->cqes);
	free(m->source);
	free(m->destination);
	free(m);
}

static void fill(struct messages *m)
{
	for (uint32_t i = 0; i < WQES; i++)
		m->wqes[i] = (struct wqe){
			.id = i,
			.opcode = LIMIT_OPCODE_WRITE_ONLY,
			.bytes = PAYLOAD_BYTES,
			.local_va = (uintptr_t)m->source + i * PAYLOAD_BYTES,
			.remote_va = i * PAYLOAD_BYTES,
			.rkey = KEY,
			.lkey = KEY,
		};
	for (uint32_t i = 0; i < BUFFER_BYTES; i++)
		m->source[i] = (uint8_t)(i * 167 + (i >> 8));
	memset(m->destination, 0, BUFFER_BYTES);
	memset(m->cqes, 0, CQES * sizeof(*m->cqes));
	m->local[KEY] = (struct region){(uintptr_t)m->source, BUFFER_BYTES, KEY};
	m->remote[KEY] = (struct region){0, BUFFER_BYTES, KEY};
	m->requester[QPN].peer = QPN;
	m->responder[QPN].peer = QPN;
	limit_template_build(&m->requester[QPN].template, LIMIT_OPCODE_WRITE_ONLY, QPN,
			     LIMIT_REQUEST_BYTES, PAYLOAD_BYTES);
	limit_template_build(&m->responder[QPN].template, LIMIT_OPCODE_ACK, QPN, LIMIT_ACK_BYTES,
			     0);
}

/* Returns the model, or NULL with all given back. */
static struct messages *messages_open(void)
{
	struct messages *m = aligned_alloc(64, sizeof(*m));

	if (!m)
		return NULL;
	memset(m, 0, sizeof(*m));
	m->pool = rte_pktmbuf_pool_create("limit_messages", POOL_MBUFS, POOL_CACHE, 0, DATA_ROOM,
					  SOCKET_ID_ANY);
	m->forth = rte_ring_create("limit_forth", RING_ELEMENTS, SOCKET_ID_ANY,
				   RING_F_SP_ENQ | RING_F_SC_DEQ);
	m->back = rte_ring_create("limit_back", RING_ELEMENTS, SOCKET_ID_ANY,
				  RING_F_SP_ENQ | RING_F_SC_DEQ);
	m->wqes = aligned_alloc(4096, WQES * sizeof(*m->wqes));
	m->cqes = aligned_alloc(4096, CQES * sizeof(*m->cqes));
	m->source = aligned_alloc(4096, BUFFER_BYTES);
	m->destination = aligned_alloc(4096, BUFFER_BYTES);
	if (!m->pool || !m->forth || !m->back || !m->wqes || !m->cqes || !m->source ||
	    !m->destination) {
		messages_close(m);
		return NULL;
	}
	fill(m);
	return m;
}

static void set_length(struct rte_mbuf *mbuf, unsigned int bytes)
{
	mbuf->data_len = (uint16_t)bytes;
	mbuf->pkt_len = bytes;
}

/* ICRC of one packet: l3_bytes from its IP header on. */
static void seal(struct rte_mbuf *mbuf, unsigned int l3_bytes)
{
	uint8_t *l3 = rte_pktmbuf_mtod(mbuf, uint8_t *) + LIMIT_L3_OFFSET;

	wire_icrc_store(l3 + l3_bytes, wire_icrc(l3, l3_bytes, false));
}

/* The same for a burst: by now the headers have left the store buffer (limit.h, icrc_by_burst). */
static void seal_burst(struct rte_mbuf *const *mbufs, unsigned int n, unsigned int l3_bytes)
{
	for (unsigned int i = 0; i < n; i++)
		seal(mbufs[i], l3_bytes);
}

/* Is the ICRC right of l3_bytes from the IP header on? */
static bool icrc_is_right(const uint8_t *frame, unsigned int l3_bytes)
{
	const uint8_t *l3 = frame + LIMIT_L3_OFFSET;

	return wire_icrc(l3, l3_bytes, false) == wire_icrc_load(l3 + l3_bytes);
}

static void check_wqe(struct messages *m, const struct wqe *w)
{
	if (w->opcode != LIMIT_OPCODE_WRITE_ONLY ||
	    outside(&m->local[w->lkey % REGIONS], w->lkey, w->local_va, w->bytes))
		m->wrong++;
}

static void write_headers(struct qp *qp, const struct wqe *w, struct rte_mbuf *mbuf)
{
	uint8_t *frame = rte_pktmbuf_mtod(mbuf, uint8_t *);
	struct limit_headers *h = (struct limit_headers *)frame;

	rte_mov64(frame, qp->template.bytes);
	h->ack_psn = rte_cpu_to_be_32(ACK_REQUESTED | (qp->psn++ & LIMIT_PSN_MASK));
	h->reth.va = rte_cpu_to_be_64(w->remote_va);
	h->reth.rkey = rte_cpu_to_be_32(w->rkey);
	h->reth.bytes = rte_cpu_to_be_32(w->bytes);
	set_length(mbuf, LIMIT_REQUEST_BYTES + PAYLOAD_BYTES + LIMIT_ICRC_BYTES);
	qp->bytes += w->bytes;
}

static void copy_payload(const struct wqe *w, struct rte_mbuf *mbuf)
{
	rte_mov64(rte_pktmbuf_mtod(mbuf, uint8_t *) + LIMIT_REQUEST_BYTES,
		  (const uint8_t *)(uintptr_t)w->local_va);
}

static void build_request(struct messages *m, struct qp *qp, struct rte_mbuf *mbuf)
{
	const struct wqe *w = &m->wqes[qp->head++ % WQES];

	check_wqe(m, w);
	write_headers(qp, w, mbuf);
	copy_payload(w, mbuf);
}

static void request(struct messages *m)
{
	struct rte_mbuf *mbufs[BURST];

	if (m->sent - m->acked > WINDOW - BURST || rte_pktmbuf_alloc_bulk(m->pool, mbufs, BURST))
		return;
	for (unsigned int i = 0; i < BURST; i++) {
		if (i + 2 < BURST)
			rte_prefetch0(rte_pktmbuf_mtod(mbufs[i + 2], void *));
		build_request(m, &m->requester[QPN], mbufs[i]);
		if (!m->icrc_by_burst)
			seal(mbufs[i], REQUEST_L3_BYTES);
	}
	if (m->icrc_by_burst)
		seal_burst(mbufs, BURST, REQUEST_L3_BYTES);
	rte_ring_sp_enqueue_bulk(m->forth, (void **)mbufs, BURST, NULL);
	m->sent += BURST;
}

static void build_ack(struct qp *qp, struct rte_mbuf *mbuf, uint32_t psn)
{
	uint8_t *frame = rte_pktmbuf_mtod(mbuf, uint8_t *);
	struct limit_headers *h = (struct limit_headers *)frame;

	rte_mov64(frame, qp->template.bytes);
	h->ack_psn = rte_cpu_to_be_32(psn);
	h->aeth = rte_cpu_to_be_32(0x1fu << 24 | (qp->msn & LIMIT_PSN_MASK));
	set_length(mbuf, LIMIT_ACK_BYTES + LIMIT_ICRC_BYTES);
}

/* Checks PSN and memory region of one request; returns its PSN, or -1. */
static int64_t admit(struct messages *m, const struct limit_headers *h)
{
	struct qp *qp = &m->responder[rte_be_to_cpu_32(h->dest_qp) % QPS];
	uint32_t psn = rte_be_to_cpu_32(h->ack_psn) & LIMIT_PSN_MASK;
	uint32_t rkey = rte_be_to_cpu_32(h->reth.rkey);
	uint32_t bytes = rte_be_to_cpu_32(h->reth.bytes);

	if (psn != (qp->psn & LIMIT_PSN_MASK) ||
	    outside(&m->remote[rkey % REGIONS], rkey, rte_be_to_cpu_64(h->reth.va), bytes))
		return -1;
	qp->psn++;
	qp->msn++;
	qp->bytes += bytes;
	return psn;
}

static void store(struct messages *m, const uint8_t *frame)
{
	const struct limit_headers *h = (const struct limit_headers *)frame;

	rte_mov64(m->destination + rte_be_to_cpu_64(h->reth.va), frame + LIMIT_REQUEST_BYTES);
}

/* Executes one request; returns its PSN, or -1 when it fails a check. */
static int64_t execute(struct messages *m, const uint8_t *frame)
{
	const struct limit_headers *h = (const struct limit_headers *)frame;
	int64_t psn = -1;

	if (limit_is_roce(h, LIMIT_OPCODE_WRITE_ONLY) && icrc_is_right(frame, REQUEST_L3_BYTES))
		psn = admit(m, h);
	if (psn >= 0)
		store(m, frame);
	return psn;
}

static void prefetch_frame(struct rte_mbuf *const *mbufs, unsigned int i, unsigned int n)
{
	if (i >= n)
		return;
	rte_prefetch0(rte_pktmbuf_mtod(mbufs[i], uint8_t *));
	rte_prefetch0(rte_pktmbuf_mtod(mbufs[i], uint8_t *) + 64);
}

static void respond(struct messages *m)
{
	struct rte_mbuf *mbufs[BURST], *acks[BURST];
	unsigned int n = rte_ring_sc_dequeue_burst(m->forth, (void **)mbufs, BURST, NULL);

	if (n == 0)
		return;
	if (rte_pktmbuf_alloc_bulk(m->pool, acks, n)) {
		m->wrong += n;
		rte_pktmbuf_free_bulk(mbufs, n);
		return;
	}
	for (unsigned int i = 0; i < n; i++) {
		int64_t psn = execute(m, rte_pktmbuf_mtod(mbufs[i], const uint8_t *));

		prefetch_frame(mbufs, i + AHEAD, n);
		m->wrong += psn < 0;
		build_ack(&m->responder[QPN], acks[i], (uint32_t)psn & LIMIT_PSN_MASK);
		if (!m->icrc_by_burst)
			seal(acks[i], ACK_L3_BYTES);
	}
	rte_pktmbuf_free_bulk(mbufs, n);
	if (m->icrc_by_burst)
		seal_burst(acks, n, ACK_L3_BYTES);
	rte_ring_sp_enqueue_bulk(m->back, (void **)acks, n, NULL);
}

static void complete(struct messages *m, struct qp *qp)
{
	const struct wqe *w = &m->wqes[qp->tail++ % WQES];
	struct cqe *c = &m->cqes[m->cqe_index++ % CQES];

	c->id = w->id;
	c->qpn = qp->peer;
	c->status = 0;
	c->opcode = w->opcode;
	c->bytes = w->bytes;
	__atomic_store_n(&c->owner, m->cqe_index, __ATOMIC_RELEASE);
	qp->psn_acked++;
}

static void accept_psn(struct messages *m, const struct limit_headers *h)
{
	struct qp *qp = &m->requester[rte_be_to_cpu_32(h->dest_qp) % QPS];
	uint32_t psn = rte_be_to_cpu_32(h->ack_psn) & LIMIT_PSN_MASK;

	if (psn == (qp->psn_acked & LIMIT_PSN_MASK))
		complete(m, qp);
	else
		m->wrong++;
}

static void accept_ack(struct messages *m, const uint8_t *frame)
{
	const struct limit_headers *h = (const struct limit_headers *)frame;

	if (limit_is_roce(h, LIMIT_OPCODE_ACK) && icrc_is_right(frame, ACK_L3_BYTES))
		accept_psn(m, h);
	else
		m->wrong++;
}

static uint64_t retire(struct messages *m)
{
	struct rte_mbuf *mbufs[BURST];
	unsigned int n = rte_ring_sc_dequeue_burst(m->back, (void **)mbufs, BURST, NULL);

	for (unsigned int i = 0; i < n; i++) {
		prefetch_frame(mbufs, i + AHEAD, n);
		accept_ack(m, rte_pktmbuf_mtod(mbufs[i], const uint8_t *));
	}
	rte_pktmbuf_free_bulk(mbufs, n);
	m->acked += n;
	return n;
}

static uint64_t messages_step(void *model)
{
	request(model);
	respond(model);
	return retire(model);
}

static bool came_out_wrong(const struct messages *m)
{
	return m->wrong || memcmp(m->source, m->destination, WQES * PAYLOAD_BYTES);
}

double limit_messages_per_s(const struct limit_params *params)
{
	struct messages *m = messages_open();
	double rate;

	if (!m)
		return 0;
	m->icrc_by_burst = params->icrc_by_burst;
	rate = limit_measure(params, messages_step, m);
	if (came_out_wrong(m))
		rate = -1;
	messages_close(m);
	return rate;
}

/* ---- the same, step by step: each passes over a burst ---- */

static const uint8_t *frame_of(const struct rte_mbuf *mbuf)
{
	return rte_pktmbuf_mtod(mbuf, const uint8_t *);
}

static const struct limit_headers *headers_of(const struct rte_mbuf *mbuf)
{
	return rte_pktmbuf_mtod(mbuf, const struct limit_headers *);
}

static void request_by_steps(struct messages *m)
{
	struct qp *qp = &m->requester[QPN];
	struct rte_mbuf *mbufs[BURST];

	if (rte_pktmbuf_alloc_bulk(m->pool, mbufs, BURST))
		return;
	limit_lap(&m->clock, LIMIT_REQUEST_ALLOC);
	for (unsigned int i = 0; i < BURST; i++)
		check_wqe(m, &m->wqes[(qp->head + i) % WQES]);
	limit_lap(&m->clock, LIMIT_REQUEST_WQE);
	for (unsigned int i = 0; i < BURST; i++) {
		if (i + 2 < BURST)
			rte_prefetch0(rte_pktmbuf_mtod(mbufs[i + 2], void *));
		copy_payload(&m->wqes[(qp->head + i) % WQES], mbufs[i]);
	}
	limit_lap(&m->clock, LIMIT_REQUEST_COPY);
	for (unsigned int i = 0; i < BURST; i++)
		write_headers(qp, &m->wqes[qp->head++ % WQES], mbufs[i]);
	limit_lap(&m->clock, LIMIT_REQUEST_HEADERS);
	seal_burst(mbufs, BURST, REQUEST_L3_BYTES);
	limit_lap(&m->clock, LIMIT_REQUEST_ICRC);
	rte_ring_sp_enqueue_bulk(m->forth, (void **)mbufs, BURST, NULL);
	limit_lap(&m->clock, LIMIT_REQUEST_RING);
}

/* The ICRC of a burst that has come, and whether it is RoCE: the steps `icrc` and `parse`. */
static void check_burst(struct messages *m, struct rte_mbuf *const *mbufs, unsigned int n,
			unsigned int l3_bytes, uint8_t opcode, enum limit_step icrc,
			enum limit_step parse)
{
	for (unsigned int i = 0; i < n; i++) {
		prefetch_frame(mbufs, i + AHEAD, n);
		m->wrong += !icrc_is_right(frame_of(mbufs[i]), l3_bytes);
	}
	limit_lap(&m->clock, icrc);
	for (unsigned int i = 0; i < n; i++)
		m->wrong += !limit_is_roce(headers_of(mbufs[i]), opcode);
	limit_lap(&m->clock, parse);
}

static void answer_by_steps(struct messages *m, const int64_t *psn, unsigned int n)
{
	struct rte_mbuf *acks[BURST];

	if (rte_pktmbuf_alloc_bulk(m->pool, acks, n)) {
		m->wrong += n;
		return;
	}
	limit_lap(&m->clock, LIMIT_ACK_ALLOC);
	for (unsigned int i = 0; i < n; i++)
		build_ack(&m->responder[QPN], acks[i], (uint32_t)psn[i] & LIMIT_PSN_MASK);
	limit_lap(&m->clock, LIMIT_ACK_HEADERS);
	seal_burst(acks, n, ACK_L3_BYTES);
	limit_lap(&m->clock, LIMIT_ACK_ICRC);
	rte_ring_sp_enqueue_bulk(m->back, (void **)acks, n, NULL);
	limit_lap(&m->clock, LIMIT_ACK_RING);
}

static void respond_by_steps(struct messages *m)
{
	struct rte_mbuf *mbufs[BURST];
	int64_t psn[BURST];
	unsigned int n = rte_ring_sc_dequeue_burst(m->forth, (void **)mbufs, BURST, NULL);

	limit_lap(&m->clock, LIMIT_ARRIVAL_RING);
	check_burst(m, mbufs, n, REQUEST_L3_BYTES, LIMIT_OPCODE_WRITE_ONLY, LIMIT_ARRIVAL_ICRC,
		    LIMIT_ARRIVAL_PARSE);
	for (unsigned int i = 0; i < n; i++) {
		psn[i] = admit(m, headers_of(mbufs[i]));
		m->wrong += psn[i] < 0;
	}
	limit_lap(&m->clock, LIMIT_ARRIVAL_CHECK);
	for (unsigned int i = 0; i < n; i++)
		if (psn[i] >= 0)
			store(m, frame_of(mbufs[i]));
	limit_lap(&m->clock, LIMIT_ARRIVAL_STORE);
	rte_pktmbuf_free_bulk(mbufs, n);
	limit_lap(&m->clock, LIMIT_ARRIVAL_FREE);
	answer_by_steps(m, psn, n);
}

static uint64_t messages_by_steps(void *model)
{
	struct messages *m = model;
	struct rte_mbuf *mbufs[BURST];
	unsigned int n;

	request_by_steps(m);
	respond_by_steps(m);
	n = rte_ring_sc_dequeue_burst(m->back, (void **)mbufs, BURST, NULL);
	limit_lap(&m->clock, LIMIT_ANSWER_RING);
	check_burst(m, mbufs, n, ACK_L3_BYTES, LIMIT_OPCODE_ACK, LIMIT_ANSWER_ICRC,
		    LIMIT_ANSWER_PARSE);
	for (unsigned int i = 0; i < n; i++)
		accept_psn(m, headers_of(mbufs[i]));
	limit_lap(&m->clock, LIMIT_ANSWER_COMPLETE);
	rte_pktmbuf_free_bulk(mbufs, n);
	limit_lap(&m->clock, LIMIT_ANSWER_FREE);
	return n;
}

int limit_messages_steps(unsigned int ms, struct limit_steps *out)
{
	struct messages *m = messages_open();
	int ret;

	if (!m)
		return -1;
	ret = limit_measure_steps(ms, messages_by_steps, m, &m->clock, 1, out);
	if (came_out_wrong(m))
		ret = -1;
	messages_close(m);
	return ret;
}
