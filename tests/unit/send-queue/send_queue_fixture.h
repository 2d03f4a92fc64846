/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SEND_QUEUE_FIXTURE_H
#define SEND_QUEUE_FIXTURE_H
/* Descriptors and doorbells, written as a client writes them. */
#include "engine_fixture.h"
#include "data_pack.h"
#include "descriptors.h"
#include "doorbell_processing.h"
#include "wqe_parse.h"
#include "wqe_scheduler.h"

/* A descriptor being written into a send queue. */
struct wqe {
	unsigned qp;
	uint32_t offset, bytes;
};

/* Begins one with its next unit. */
static inline struct wqe wqe_begin(unsigned qp, uint32_t offset, uint32_t flags)
{
	struct wqe w = {.qp = qp, .offset = offset, .bytes = 16};
	struct wqe_next next = {.flags = flags, .imm = 0x01020304};

	memset(fx->sq[qp] + offset, 0, 16);
	memcpy(fx->sq[qp] + offset, &next, sizeof(next));
	return w;
}

static inline void wqe_add(struct wqe *w, const void *unit, uint32_t bytes)
{
	memcpy(fx->sq[w->qp] + w->offset + w->bytes, unit, bytes);
	w->bytes += bytes;
}

static inline void wqe_add_raddr(struct wqe *w)
{
	struct wqe_raddr r = {.addr = 0x123456789a, .rkey = 0x777};

	wqe_add(w, &r, sizeof(r));
}

static inline void wqe_add_data(struct wqe *w, uint32_t key, uint64_t addr, uint32_t length)
{
	struct wqe_data d = {.length = length, .lkey = key, .addr = addr};

	wqe_add(w, &d, sizeof(d));
}

/* `length` bytes of the pattern `seed`; `claimed` is what the unit says. */
static inline void wqe_add_inline(struct wqe *w, uint32_t length, uint32_t claimed, uint8_t seed)
{
	uint8_t unit[1024] = {0};
	uint32_t head = claimed | WQE_INLINE;

	memcpy(unit, &head, sizeof(head));
	for (uint32_t i = 0; i < length; i++)
		unit[4 + i] = fx_pattern(seed, i);
	wqe_add(w, unit, RTE_ALIGN(4 + length, 16));
}

/* Makes the descriptor at `offset` name the next one. */
static inline void wqe_link(unsigned qp, uint32_t offset, uint32_t next, uint8_t opcode,
			    uint32_t ee_nds)
{
	struct wqe_next *n = (struct wqe_next *)(fx->sq[qp] + offset);

	n->nda_nop = next / 64 << WQE_NEXT_NDA_SHIFT | opcode;
	n->ee_nds = ee_nds;
}

/* An empty SEND at that offset: one unit. */
static inline void wqe_empty_send(unsigned qp, uint32_t offset)
{
	wqe_begin(qp, offset, WQE_SIGNALED);
}

static inline void ring_raw(uint32_t qpn, uint32_t word0, uint32_t units)
{
	uint32_t slot = fx->doorbells % UAR_DOORBELLS,
		 phase = fx->doorbells / UAR_DOORBELLS & 1 ? 0 : DOORBELL_PHASE;
	uint64_t w1 = qpn << DOORBELL_QPN_SHIFT | units;

	__atomic_store_n(&fx->page->uar->doorbell[slot], (word0 | phase) | w1 << 32,
			 __ATOMIC_RELEASE);
	fx->doorbells++;
}

static inline void ring(unsigned qp, uint8_t opcode, uint32_t offset, uint32_t bytes)
{
	ring_raw(fx->qp[qp]->qpn, offset / 16 << DOORBELL_OFFSET_SHIFT | opcode, bytes / 16);
}

/* A descriptor as DoorbellProcessing hands it over. */
static inline struct rte_mbuf *fetched(unsigned qp, uint8_t opcode, uint32_t offset, uint32_t bytes)
{
	struct rte_mbuf *m = rte_mbuf_raw_alloc(fx->descriptors);

	assert_non_null(m);
	assert_true(wqe_fetch(fx->qp[qp], offset, bytes / 16, m));
	request_of(m)->qpn = fx->qp[qp]->qpn;
	request_of(m)->opcode = opcode;
	request_of(m)->flags = 0;
	request_of(m)->client = FX_CLIENT;
	request_of(m)->epoch = fx->qp[qp]->epoch;
	request_of(m)->allowance = 64;
	request_of(m)->next = NULL;
	return m;
}

/* The next element of a ring is the descriptor at `offset` of that queue pair. */
static inline void assert_descriptor(enum channel_id from, unsigned qp, uint32_t offset)
{
	struct rte_mbuf *m = fx_take(from);

	assert_non_null(m);
	assert_int_equal(request_of(m)->qpn, fx->qp[qp]->qpn);
	assert_int_equal(request_of(m)->wqe_offset, offset);
	rte_mbuf_raw_free(m);
}

#endif
