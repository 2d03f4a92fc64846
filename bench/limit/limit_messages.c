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

static void build_request(struct messages *m, struct qp *qp, struct rte_mbuf *mbuf)
{
	const struct wqe *w = &m->wqes[qp->head++ % WQES];
	uint8_t *frame = rte_pktmbuf_mtod(mbuf, uint8_t *);
	struct limit_headers *h = (struct limit_headers *)frame;

	if (w->opcode != LIMIT_OPCODE_WRITE_ONLY ||
	    outside(&m->local[w->lkey % REGIONS], w->lkey, w->local_va, w->bytes))
		m->wrong++;
	rte_mov64(frame, qp->template.bytes);
	h->ack_psn = rte_cpu_to_be_32(ACK_REQUESTED | (qp->psn++ & LIMIT_PSN_MASK));
	h->reth.va = rte_cpu_to_be_64(w->remote_va);
	h->reth.rkey = rte_cpu_to_be_32(w->rkey);
	h->reth.bytes = rte_cpu_to_be_32(w->bytes);
	rte_mov64(frame + LIMIT_REQUEST_BYTES, (const uint8_t *)(uintptr_t)w->local_va);
	set_length(mbuf, LIMIT_REQUEST_BYTES + PAYLOAD_BYTES + LIMIT_ICRC_BYTES);
	qp->bytes += w->bytes;
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

/* Executes one request; returns its PSN, or -1 when it fails a check. */
static int64_t execute(struct messages *m, const uint8_t *frame)
{
	const struct limit_headers *h = (const struct limit_headers *)frame;
	struct qp *qp = &m->responder[rte_be_to_cpu_32(h->dest_qp) % QPS];
	uint32_t psn = rte_be_to_cpu_32(h->ack_psn) & LIMIT_PSN_MASK;
	uint32_t rkey = rte_be_to_cpu_32(h->reth.rkey);
	uint32_t bytes = rte_be_to_cpu_32(h->reth.bytes);
	uint64_t va = rte_be_to_cpu_64(h->reth.va);

	if (!limit_is_roce(h, LIMIT_OPCODE_WRITE_ONLY) ||
	    wire_icrc(frame + LIMIT_L3_OFFSET, REQUEST_L3_BYTES, false) !=
		    wire_icrc_load(frame + LIMIT_REQUEST_BYTES + PAYLOAD_BYTES) ||
	    psn != (qp->psn & LIMIT_PSN_MASK) ||
	    outside(&m->remote[rkey % REGIONS], rkey, va, bytes))
		return -1;
	qp->psn++;
	qp->msn++;
	qp->bytes += bytes;
	rte_mov64(m->destination + va, frame + LIMIT_REQUEST_BYTES);
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

static void accept_ack(struct messages *m, const uint8_t *frame)
{
	const struct limit_headers *h = (const struct limit_headers *)frame;
	struct qp *qp = &m->requester[rte_be_to_cpu_32(h->dest_qp) % QPS];
	uint32_t psn = rte_be_to_cpu_32(h->ack_psn) & LIMIT_PSN_MASK;

	if (!limit_is_roce(h, LIMIT_OPCODE_ACK) ||
	    wire_icrc(frame + LIMIT_L3_OFFSET, ACK_L3_BYTES, false) !=
		    wire_icrc_load(frame + LIMIT_ACK_BYTES) ||
	    psn != (qp->psn_acked & LIMIT_PSN_MASK)) {
		m->wrong++;
		return;
	}
	complete(m, qp);
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

double limit_messages_per_s(const struct limit_params *params)
{
	struct messages *m = messages_open();
	double rate;

	if (!m)
		return 0;
	m->icrc_by_burst = params->icrc_by_burst;
	rate = limit_measure(params, messages_step, m);
	if (m->wrong || memcmp(m->source, m->destination, WQES * PAYLOAD_BYTES))
		rate = -1;
	messages_close(m);
	return rate;
}
